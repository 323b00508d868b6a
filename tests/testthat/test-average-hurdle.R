# Averages of hurdle models, whose zeros and counts are fits of their own.

hurdle_data_of <- function(n) {
  withr::local_seed(6)
  data <- data.frame(
    x = stats::rnorm(n),
    z = stats::runif(n, 1, 3),
    g = factor(rep_len(c("a", "b", "c"), n)),
    w = rep_len(c(1, 0.5), n)
  )
  above <- 1 + stats::rpois(n, exp(0.4 * data$x))
  is_zero <- stats::runif(n) < stats::plogis(data$z - 2)
  data$y <- ifelse(is_zero, 0, above)
  data
}

run_hurdle <- function(front, formula, data, family) {
  # found by the call
  args <- list(formula, data, family, iter = 200, chains = 2, seed = 1)
  suppressWarnings(do.call(front, c(args, list(refresh = 0))))
}

expect_rows <- function(average, all, rows = TRUE, weight = 1) {
  weight <- rep_len(weight, ncol(all))[rows]
  by_hand <- all[, rows] %*% weight / sum(weight)
  found <- posterior::draws_of(average$draws)
  expect_equal(unname(found[, 1]), drop(unname(by_hand)), tolerance = 1e-10)
}

test_that("averages of hurdles are those of rows times draws", {
  data <- hurdle_data_of(300)
  data$x[5] <- NA
  data$z[7] <- NA
  whole <- data[stats::complete.cases(data), ]
  fits <- list(
    run_hurdle(tall_glm, list(y ~ x + g, hu ~ z), data, hurdle_poisson()),
    run_hurdle(
      tall_glm,
      list(y ~ x + offset(w), hu ~ z + g),
      data,
      hurdle_negbinomial()
    ),
    run_hurdle(
      tall_glmer,
      list(y ~ x + (1 | g), hu ~ z),
      data,
      hurdle_poisson()
    )
  )
  for (fit in fits) {
    all <- rstantools::posterior_epred(fit, whole)
    expect_rows(average_predictions(fit), all)
    found <- average_predictions(fit, newdata = data, wts = "w", by = "g")
    expect_rows(found, all, whole$g == "a", whole$w)
    expect_identical(attr(found, "n_missing"), 2)
    # of either part
    found <- average_comparisons(fit, list(z = c(1, 2)), ndraws = 30)
    of <- function(value) {
      data <- transform(whole, z = value)
      rstantools::posterior_epred(fit, data, ndraws = 30)
    }
    expect_rows(found, of(2) - of(1))
  }
  fit <- fits[[1]]
  for (type in c("zero", "count", "response")) {
    expect_equal(
      average_predictions(fit, type = type)$mean,
      mean(predict(fit, type = type))
    )
  }
  expect_identical(
    average_slopes(fit)$contrast,
    c("d/dx", "b - a", "c - a", "d/dz")
  )
  expect_refusals(
    "tall_error_input",
    average_predictions(fit, type = "link"),
    average_predictions(fit, times = 1),
    average_predictions(fit, by = "nothing"),
    average_slopes(fit, "w")
  )
  expect_refusals(
    "tall_error_unsupported",
    average_predictions(fits[[3]], method = "expansion")
  )
})

test_that("rows of a hurdle's source are passed over", {
  data <- hurdle_data_of(600)
  blocks <- stream_of(data, 200)
  # as of more rows than are brought to memory
  local_settings(look = list(rows = 100, of_stratum = 50))
  formula <- list(y ~ x + g, hu ~ z)
  fit <- run_hurdle(tall_glm, formula, blocks, hurdle_poisson())
  expect_true(is_passed_over(fit$zeros, NULL))
  expected <- average_predictions(fit, newdata = data, by = "g", wts = "w")
  for (newdata in list(NULL, blocks)) {
    for (method in c("exact", "expansion")) {
      found <- average_predictions(
        fit,
        newdata = newdata,
        by = "g",
        wts = "w",
        method = method
      )
      expect_equal(found$mean, expected$mean, tolerance = 1e-3)
    }
  }
})

test_that("what a part does not hang on has no effect, and no error", {
  data <- hurdle_data_of(300)
  formula <- list(y ~ x + g, hu ~ z)
  fit <- run_hurdle(tall_glm, formula, data, hurdle_poisson())
  none <- average_comparisons(fit, "g", type = "zero", method = "expansion")
  expect_identical(none$mean, c(0, 0)[seq_len(nrow(none))])
  expect_identical(attr(none, "error"), none$mean)
  expect_output(print(none), "an error of 0 posterior sds")
  expect_error(
    average_predictions(fit, dpar = "hu"),
    "`type` is \"zero\"",
    class = "tall_error_input"
  )
})
