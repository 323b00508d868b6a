# Weights of models, against those that loo makes of whole results.

skip_if_not_installed("loo")

weight_fits <- function(n = 150) {
  data <- withr::with_seed(3, data.frame(
    x = stats::rnorm(n),
    z = stats::rnorm(n),
    e = stats::rnorm(n)
  ))
  data$y <- 0.3 * data$x + 0.3 * data$z + data$e
  of <- function(formula) {
    quick_glm(formula, data, stats::gaussian(), iter = 300)
  }
  list(x = of(y ~ x), z = of(y ~ z))
}

test_that("they are those of loo's own results", {
  fits <- weight_fits()
  results <- lapply(fits, loo::loo)
  wanted <- loo::loo_model_weights(results)
  found <- loo_model_weights(fits)
  expect_s3_class(found, "stacking_weights")
  expect_equal(as.vector(found), as.vector(wanted))
  expect_named(found, c("x", "z"))
  expect_true(all(found > 0.05))
  expect_equal(loo_model_weights(results), found)
  # by hand: no weights do better
  elpd <- cbind(
    results$x$pointwise[, "elpd_loo"],
    results$z$pointwise[, "elpd_loo"]
  )
  score <- function(w) sum(log(exp(elpd) %*% c(w, 1 - w)))
  best <- stats::optimize(score, c(0, 1), maximum = TRUE, tol = 1e-8)
  expect_equal(found[["x"]], best$maximum, tolerance = 1e-3)
  one <- fits$x
  other <- fits$z
  expect_named(loo_model_weights(one, other), c("one", "other"))
  expect_named(loo::loo_model_weights(one, b = other), c("one", "b"))
  bma <- loo_model_weights(fits, method = "pseudobma", BB = FALSE)
  sums <- colSums(elpd)
  expect_equal(as.vector(bma), exp(sums - max(sums)) / sum(exp(sums -
    max(sums))))
})

test_that("results of kfold() have weights, too", {
  fits <- weight_fits()
  folds <- lapply(fits, loo::kfold, K = 3, refresh = 0)
  elpd <- vapply(folds, function(k) k$pointwise[, "elpd_kfold"], numeric(150))
  expect_equal(
    as.vector(loo_model_weights(folds)),
    as.vector(loo::stacking_weights(elpd))
  )
  expect_equal(
    as.vector(loo_model_weights(folds$x, folds$z)),
    as.vector(loo_model_weights(folds))
  )
})

test_that("of subsamples they are of the same rows, and of stacking alone", {
  fits <- weight_fits(1100)
  results <- lapply(fits, loo::loo, observations = 100)
  elpd <- vapply(results, function(loo) {
    loo$pointwise[, "elpd_loo"]
  }, numeric(100))
  expect_equal(
    as.vector(loo_model_weights(fits, observations = 100)),
    as.vector(loo::stacking_weights(elpd))
  )
  expect_error(
    loo_model_weights(results, method = "pseudobma"),
    "subsample",
    class = "tall_error_unsupported"
  )
  results <- list(
    loo::loo(fits$x, observations = 100),
    loo::loo(fits$z, observations = 90)
  )
  expect_error(loo_model_weights(results), class = "tall_error_input")
})

test_that("one fit, and fits of other rows, are refused", {
  fits <- weight_fits()
  expect_error(loo_model_weights(fits$x), class = "tall_error_input")
  other <- quick_glm(mpg ~ 1, mtcars, stats::gaussian(), iter = 300)
  expect_error(
    loo_model_weights(fits$x, other),
    "same rows",
    class = "tall_error_input"
  )
})

test_that("weights of fits of other responses are warned of", {
  skip_if_not_installed("loo")
  data <- mtcars
  fits <- lapply(c(mpg ~ wt, log(mpg) ~ wt), function(formula) {
    tall_glm(formula, data, iter = 300, seed = 1, refresh = 0)
  })
  results <- suppressWarnings(lapply(fits, loo))
  expect_warning(loo_model_weights(results), class = "tall_warning_response")
})
