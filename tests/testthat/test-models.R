x <- example_matrix()
y <- example_data()$y
n <- nrow(x)
put <- function(v, at, value) {
  v[at] <- value
  v
}

test_that("a model says what it is", {
  model <- example_model()
  expect_s3_class(model, c("tall_model_glm", "tall_model"), exact = TRUE)
  expect_identical(nobs(model), 300)
  expect_identical(model$variables, c("(Intercept)", "a", "b"))
  expect_snapshot(print(model), transform = scrub)
  expect_snapshot(print(example_model("poisson")), transform = scrub)
})

test_that("sigma is a parameter only where it is not known", {
  expect_identical(
    example_model("gaussian")$variables,
    c("(Intercept)", "a", "b", "sigma")
  )
  expect_identical(
    example_model("gaussian")$coordinates,
    c("(Intercept)", "a", "b", "log_sigma")
  )
  known <- example_model("gaussian", sigma = 2)
  expect_identical(known$variables, c("(Intercept)", "a", "b"))
})

test_that("columns without a name get one", {
  model <- model_glm(unname(x), y)
  expect_identical(model$variables, c("x1", "x2", "x3"))
  colnames(x) <- c("a", "", "a")
  expect_identical(model_glm(x, y)$variables, c("a", "x2", "a.1"))
})

test_that("integers and logicals serve as doubles", {
  whole <- round(x) + 0 # no negative zeros
  integers <- whole
  storage.mode(integers) <- "integer"
  as_double <- model_glm(whole, y)
  expect_identical(
    model_glm(integers, y == 1)$fingerprint,
    as_double$fingerprint
  )
})

test_that("family is a string, a function or an object", {
  by_name <- model_glm(x, y, "binomial")
  expect_identical(model_glm(x, y, binomial)$family, by_name$family)
  expect_identical(model_glm(x, y, binomial())$family, by_name$family)
  expect_identical(by_name$family$link, "logit")
})

test_that("prior_intercept is that of the column of that name alone", {
  model <- model_glm(
    x,
    y,
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(3, 7)
  )
  expect_identical(model$prior$scale, c(7, 1, 1))
  expect_identical(model$prior$location, c(3, 0, 0))
  expect_identical(model_glm(x, y)$prior$scale, c(2.5, 2.5, 2.5))
})

test_that("the fingerprint knows data and prior", {
  base <- example_model()$fingerprint
  expect_identical(example_model()$fingerprint, base)
  expect_false(model_glm(x, 1 - y)$fingerprint == base)
  expect_false(model_glm(put(x, 4, 2), y)$fingerprint == base)
  expect_false(example_model(prior = prior_normal(0, 1))$fingerprint == base)
  expect_false(example_model(weights = rep(2, n))$fingerprint == base)
  expect_false(example_model("poisson")$fingerprint == base)
})

test_that("a model holds little more than its data", {
  for (d in c(1, 3, 20, 55, 100)) {
    for (columns in 0:2) {
      wide <- matrix(0.5, 2000, d)
      model <- model_glm(
        wide,
        rep(0:1, 1000),
        weights = if (columns > 0) rep(1, 2000),
        offset = if (columns > 1) rep(0, 2000)
      )
      allowed <- 1.1 * 8 * 2000 * d + 8 * 2000 * (2 + columns)
      expect_lte(model_info(model)$memory, allowed)
      expect_gte(model_info(model)$memory, 8 * 2000 * d)
    }
  }
})

test_that("the data of a model are a copy", {
  other <- example_matrix()
  model <- model_glm(other, y)
  before <- model_evaluate(model, c(0.1, 0.2, 0.3))
  other[] <- 0
  expect_identical(model_evaluate(model, c(0.1, 0.2, 0.3)), before)
})

test_that("model_gaussian() gives the exact posterior", {
  data <- withr::with_seed(2, matrix(rnorm(60), 20))
  covariance <- matrix(c(2, 0.5, 0, 0.5, 1, 0, 0, 0, 3), 3)
  prior_covariance <- diag(c(1, 4, 9))
  model <- model_gaussian(data, covariance, 1:3, prior_covariance)
  precision <- 20 * solve(covariance) + solve(prior_covariance)
  expect_equal(unname(model$posterior_covariance), solve(precision))
  score <- solve(covariance) %*% colSums(data) + solve(prior_covariance) %*% 1:3
  expect_equal(unname(model$posterior_mean), drop(solve(precision, score)))
  expect_snapshot(print(model), transform = scrub)
})

test_that("values that are not finite are refused in words", {
  expect_snapshot(model_glm(put(x, 305, NA), y), error = TRUE, cnd_class = TRUE)
  expect_snapshot(model_glm(put(x, 305, NaN), y), error = TRUE)
  expect_snapshot(model_glm(put(x, 305, -Inf), y), error = TRUE)
  expect_snapshot(model_glm(x, put(y, 3, NA)), error = TRUE)
  expect_snapshot(model_glm(x, put(y, 3, Inf), "gaussian"), error = TRUE)
  expect_snapshot(model_glm(x, y, weights = put(y + 1, 4, NA)), error = TRUE)
  expect_snapshot(model_glm(x, y, offset = put(y, 4, Inf)), error = TRUE)
})

test_that("an input error of a model has its fields", {
  e <- expect_error(model_glm(x, put(y, 3, NA)), class = "tall_error_input")
  expect_identical(e$argument, "y")
  expect_identical(e$value, NA_integer_)
  expect_equal(e$index, 3)
})

test_that("a response out of its family's range is refused in words", {
  expect_snapshot(model_glm(x, put(y, 3, 2)), error = TRUE)
  expect_snapshot(model_glm(x, put(y, 3, 1.5), "binomial"), error = TRUE)
  expect_snapshot(model_glm(x, put(y, 3, -1), "poisson"), error = TRUE)
  expect_snapshot(model_glm(x, put(y, 3, 0.5), "poisson"), error = TRUE)
  expect_snapshot(model_glm(x, factor(y)), error = TRUE)
})

test_that("lengths that differ are refused in words", {
  expect_snapshot(model_glm(x, y[-1]), error = TRUE)
  expect_snapshot(model_glm(x, y, weights = 1:3), error = TRUE)
  expect_snapshot(model_glm(x, y, offset = 1:3), error = TRUE)
})

test_that("designs without rows or columns are refused in words", {
  expect_snapshot(model_glm(x[0, ], y[0]), error = TRUE)
  expect_snapshot(model_glm(x[, 0], y), error = TRUE)
  expect_snapshot(model_glm(as.data.frame(x), y), error = TRUE)
  expect_snapshot(model_glm(x[, 1], y), error = TRUE)
  expect_snapshot(model_glm(y = y), error = TRUE)
  expect_snapshot(model_glm(x), error = TRUE)
})

test_that("weights that are not positive are refused in words", {
  expect_snapshot(model_glm(x, y, weights = put(y + 1, 4, 0)), error = TRUE)
  expect_snapshot(model_glm(x, y, weights = put(y + 1, 4, -2)), error = TRUE)
})

test_that("unknown families and links are refused in words", {
  expect_snapshot(model_glm(x, y, "weibull"), error = TRUE)
  expect_snapshot(model_glm(x, y, "poison"), error = TRUE)
  expect_snapshot(model_glm(x, y, inverse.gaussian), error = TRUE)
  expect_snapshot(model_glm(x, y, mean), error = TRUE)
  expect_snapshot(model_glm(x, y, binomial("cauchit")), error = TRUE)
})

test_that("what is no prior is refused in words", {
  expect_snapshot(model_glm(x, y, prior = 1), error = TRUE)
  expect_snapshot(model_glm(x, y, prior = prior_normal(0, 1:2)), error = TRUE)
  expect_snapshot(model_glm(x, y, prior = prior_exponential()), error = TRUE)
  expect_snapshot(model_glm(x, y, prior_intercept = "a"), error = TRUE)
  expect_snapshot(
    model_glm(x, y, "gaussian", prior_aux = prior_normal()),
    error = TRUE
  )
  expect_snapshot(model_glm(x, y, "gaussian", sigma = -1), error = TRUE)
})

test_that("model_gaussian() refuses in words", {
  expect_snapshot(model_gaussian(x, diag(2)), error = TRUE)
  expect_snapshot(model_gaussian(x, matrix(1, 3, 3)), error = TRUE)
  expect_snapshot(model_gaussian(x, diag(3), 1:2), error = TRUE)
  expect_snapshot(
    model_gaussian(x, diag(3), prior_covariance = -diag(3)),
    error = TRUE
  )
  expect_snapshot(model_gaussian(put(x, 5, NA), diag(3)), error = TRUE)
  expect_snapshot(model_gaussian(x), error = TRUE)
})

test_that("a model that was saved has lost its data, and says so", {
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(example_model(), file)
  model <- readRDS(file)
  expect_false(model_is_alive(model))
  expect_snapshot(print(model), transform = scrub)
  expect_snapshot(find_mode(model), error = TRUE, cnd_class = TRUE)
  expect_snapshot(subsampling_weights(model), error = TRUE)
  expect_snapshot(sg_sample(model, kernel_sgld(1)), error = TRUE)
})

test_that("gradients at many points are those of each, chunk after chunk", {
  withr::local_seed(1)
  n <- 20000
  x <- cbind(1, rnorm(n))
  y <- rbinom(n, 1, 0.4)
  model <- model_glm(x, y, "bernoulli", prior = prior_normal(0, 2))
  theta <- matrix(rnorm(10), 2)
  eta <- x %*% theta
  gradient <- crossprod(x, y - plogis(eta)) - theta / 4
  together <- model_evaluate(model, theta)
  expect_close(together$gradient, gradient)
  alone <- vapply(
    1:5,
    function(k) model_evaluate(model, theta[, k])$log_density,
    0
  )
  expect_close(together$log_density, alone)
  expect_close(
    diff(together$log_density),
    diff(colSums(y * eta - log1p(exp(eta))) - colSums(theta^2) / 8)
  )
  expect_close(model_evaluate(model, theta, density = FALSE)$gradient, gradient)
})

test_that("sigma's default prior is scaled at weight 1", {
  rate <- function(y, weights = NULL, offset = NULL) {
    model <- model_glm(
      cbind(1, seq_along(y)),
      y,
      "gaussian",
      weights = weights,
      offset = offset
    )
    1 / model$prior$scale[[3]]
  }
  y <- c(3, 1, 4, 1, 5, 9, 2, 6)
  expect_equal(rate(y), 1 / sd(y))
  expect_equal(rate(y, rep(1, 8)), 1 / sd(y))
  expect_equal(rate(y, rep(1e4, 8)), 1 / (100 * sd(y)))
  w <- c(1, 10, 100, 1, 10, 100, 1, 10)
  null <- stats::lm(y ~ 1, weights = w)
  expect_equal(rate(y, w), 1 / stats::sigma(null))
  # an offset is no part of what is to be explained
  expect_equal(rate(y + 1e3 * (1:8), offset = 1e3 * (1:8)), 1 / sd(y))
})

test_that("standard deviations under weights are those of lm()", {
  # meta-regression: weights are inverse variances, sigma is near 1
  n <- 60
  rows <- withr::with_seed(3, {
    se <- stats::runif(n, 0.005, 0.05)
    x <- stats::rnorm(n)
    data.frame(x = x, w = 1 / se^2, y = 0.1 * x + se * stats::rnorm(n))
  })
  known <- summary(stats::lm(y ~ x, rows, weights = w))
  fit <- tall_glm(y ~ x, rows, weights = w, seed = 1, refresh = 0)
  # t with n - 2 degrees; the prior counts for little
  expected <- known$coefficients[, 2] * sqrt((n - 2) / (n - 4))
  found <- apply(as.matrix(fit), 2, sd)[1:2]
  expect_lt(max(abs(found / expected - 1)), 0.08)
  expect_lt(abs(sigma(fit) / known$sigma - 1), 0.05)
})

test_that("an offset does not move the intercept's prior", {
  rows <- withr::with_seed(4, {
    x <- stats::rnorm(50)
    data.frame(x = x, shift = 1e6, y = 1e6 + x + stats::rnorm(50))
  })
  ols <- summary(stats::lm(I(y - shift) ~ x, rows))$coefficients
  fit <- tall_glm(y ~ x, rows, offset = shift, seed = 1, refresh = 0)
  expect_lt(max(abs(coef(fit) - ols[, 1]) / ols[, 2]), 0.2)
})
