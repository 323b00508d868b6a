# Cross-validation, checks and R-squared of networks: against the same from the
# matrices of draws.

nn_fits <- function() {
  withr::with_seed(11, {
    data <- data.frame(x = runif(1500, -2, 2))
    data$y <- sin(2 * data$x) + rnorm(1500, sd = 0.3)
    data$yes <- factor(ifelse(runif(1500) < plogis(2 * data$x), "b", "a"))
    data$kind <- factor(cut(data$x + rnorm(1500, sd = 0.3), c(-9, -1, 1, 9)))
  })
  fit <- function(formula, sigma = NULL) {
    arguments <- list(
      formula,
      data,
      hidden = 4,
      train_iter = 500,
      iter = 200,
      chains = 2,
      seed = 1,
      refresh = 0
    )
    do.call(tall_nn, c(arguments, if (!is.null(sigma)) list(sigma = sigma)))
  }
  list(
    gaussian = fit(y ~ x),
    known = fit(y ~ x, 0.3),
    bernoulli = fit(yes ~ x),
    categorical = fit(kind ~ x)
  )
}

fits <- NULL
the_fits <- function() {
  if (is.null(fits)) {
    fits <<- nn_fits()
  }
  fits
}

test_that("log_lik() as a function is log_lik() as a matrix", {
  skip_if_not_installed("rstantools")
  for (fit in the_fits()) {
    values <- rstantools::log_lik(fit)
    f <- rstantools::log_lik(fit, pointwise = TRUE)
    data <- attr(f, "data")
    draws <- attr(f, "draws")
    expect_equal(f(data[c(3, 700), , drop = FALSE], draws), unname(values[, c(3, 700)]))
    # one row at a time, at few draws: from all rows at once
    few <- draws[c(1, 90, 200), ]
    row <- function(i) f(data[i, , drop = FALSE], few)
    expect_equal(row(1), matrix(values[c(1, 90, 200), 1]))
    expect_equal(row(1500), matrix(values[c(1, 90, 200), 1500]))
    one <- draws[7, , drop = FALSE]
    expect_equal(drop(f(data[9, , drop = FALSE], one)), values[[7, 9]])
  }
})

test_that("loo of a network estimates that of all rows", {
  skip_if_not_installed("loo")
  for (fit in the_fits()) {
    all <- suppressWarnings(loo::loo(fit, observations = NULL))
    expect_s3_class(all, "psis_loo")
    some <- suppressWarnings(loo::loo(fit, observations = 300, seed = 1))
    expect_s3_class(some, "psis_loo_ss")
    error <- some$estimates["elpd_loo", "Estimate"] -
      all$estimates["elpd_loo", "Estimate"]
    expect_lt(abs(error), 5 * some$estimates["elpd_loo", "subsampling SE"] + 0.1)
    # the approximation takes most of the variance away
    plain <- 1500 / sqrt(300) * sd(all$pointwise[, "elpd_loo"])
    expect_lt(some$estimates["elpd_loo", "subsampling SE"], plain / 3)
    waic <- suppressWarnings(loo::waic(fit))
    expect_s3_class(waic, "waic")
  }
  # an approximation of one's own
  fit <- the_fits()$gaussian
  other <- suppressWarnings(
    loo::loo_subsample(fit, observations = 300, loo_approximation = "plpd", seed = 1)
  )
  expect_identical(other$loo_subsampling$loo_approximation, "plpd")
})

test_that("bayes_R2() and predictive_error() are those of the draws", {
  skip_if_not_installed("rstantools")
  fits <- the_fits()
  for (name in c("gaussian", "known", "bernoulli")) {
    fit <- fits[[name]]
    mu <- rstantools::posterior_epred(fit)
    explained <- apply(mu, 1, var)
    residual <- switch(
      name,
      gaussian = draws_matrix(fit)[, "sigma"]^2,
      known = 0.3^2,
      rowMeans(mu * (1 - mu))
    )
    expect_equal(
      rstantools::bayes_R2(fit),
      unname(explained / (explained + residual))
    )
    y <- nn_observed(fit, NULL)
    yrep <- rstantools::posterior_predict(fit, draws = 5, seed = 3)
    expect_equal(
      rstantools::predictive_error(fit, draws = 5, seed = 3),
      rep(y, each = 5) - yrep
    )
  }
  expect_error(
    rstantools::bayes_R2(fits$categorical),
    class = "tall_error_unsupported"
  )
  expect_error(
    rstantools::predictive_error(fits$categorical),
    class = "tall_error_unsupported"
  )
})

test_that("pp_check() shows responses beside those of the draws", {
  skip_if_not_installed("bayesplot")
  for (name in names(the_fits())) {
    fit <- the_fits()[[name]]
    plot <- bayesplot::pp_check(fit, seed = 1, observations = 400)
    expect_s3_class(plot, "ggplot")
    shown <- replicated_responses(fit, 1:1500, 200)
    expect_identical(dim(shown$yrep), c(200L, 1500L))
    if (name == "categorical") {
      expect_identical(sort(unique(as.integer(shown$yrep))), 1:3)
    }
    # means agree: the network has an intercept
    gap <- mean(shown$yrep) - mean(shown$y)
    expect_lt(abs(gap), 5 * sd(shown$y) / sqrt(1500))
  }
})

test_that("glance() has R-hat and effective draws of predictions", {
  fit <- the_fits()$gaussian
  row <- glance(fit)
  expect_identical(row$rhat, max(summary(fit)$rhat))
  expect_identical(row$ess_bulk, min(summary(fit)$ess_bulk))
  expect_identical(row$nobs, 1500)
})
