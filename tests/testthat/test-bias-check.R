# A normal target: at step size h an Euler chain has variance 1/(1 - h/4).
biased_fit <- function(h, integrator = "euler", iter = 30000, ...) {
  sg_sample(
    target_normal(1),
    kernel_sgld(h, integrator = integrator),
    gradient_full(),
    iter = iter,
    warmup = 100,
    chains = 8,
    seed = 4,
    init = 0,
    refresh = 0,
    ...
  )
}

test_that("summary and bias_check() see the bias of the standard deviation", {
  skip_on_cran()
  h <- 0.6
  fit <- biased_fit(h)
  truth <- 1 / sqrt(1 - h / 4) - 1
  # exact on a normal target
  expect_lt(abs(fit$bias$sd_bias - truth), 4.5 * fit$bias$sd_bias_se)
  expect_gt(fit$bias$sd_bias, 10 * fit$bias$sd_bias_se)
  check <- bias_check(fit, seed = 5, refresh = 0)
  # the next order of the extrapolation: 2 (b(h) - b(h/2)) against b(h)
  second <- 2 * (truth - (1 / sqrt(1 - h / 8) - 1))
  expect_lt(abs(check$table$sd_bias - second), 4.5 * check$table$sd_bias_se)
  expect_gt(check$table$sd_bias, 5 * check$table$sd_bias_se)
  expect_lt(abs(check$table$mean_bias), 4.5 * check$table$mean_bias_se)
  expect_output(print(check), "Beyond 2.5 standard errors")
})

test_that("sd_bias is that of single parameters where they are correlated", {
  skip_on_cran()
  correlation <- matrix(c(1, 0.8, 0.8, 1), 2)
  x <- withr::with_seed(1, matrix(stats::rnorm(100), 50))
  model <- model_gaussian(
    sweep(x, 2, colMeans(x)),
    covariance = 50 * correlation,
    prior_covariance = diag(1e9, 2)
  )
  h <- 0.2
  fit <- sg_sample(
    model,
    kernel_sgld(h, integrator = "euler"),
    gradient_full(),
    iter = 2e5,
    warmup = 1000,
    thin = 100,
    chains = 8,
    seed = 4,
    refresh = 0
  )
  # an Euler chain has the covariance V = Sigma (I - h Sigma^-1 / 4)^-1
  covariance <- correlation %*% solve(diag(2) - h * solve(correlation) / 4)
  truth <- sqrt(diag(covariance)) - 1
  expect_true(all(abs(fit$bias$sd_bias - truth) < 4.5 * fit$bias$sd_bias_se))
  # theta_j g_j has the mean of V Sigma^-1
  apart <- sqrt(diag(covariance %*% solve(correlation))) - 1
  expect_true(all(fit$bias$sd_bias < apart - 6 * fit$bias$sd_bias_se))
})

test_that("the second run has half the step and as much time", {
  fit <- biased_fit(0.6, iter = 500)
  check <- bias_check(fit, seed = 5, refresh = 0)
  expect_equal(check$fit$kernel$args$step_size, 0.3)
  expect_equal(check$fit$steps, 2)
  expect_equal(dim(check$fit$draws), dim(fit$draws))
  again <- bias_check(fit, seed = 5, refresh = 0)
  expect_identical(again$table, check$table)
})

test_that("there must be something to check", {
  fit <- sg_sample(
    example_model(),
    kernel_mala(0.01),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  expect_error(bias_check(fit), class = "tall_error_unsupported")
  expect_error(bias_check(1), class = "tall_error_input")
  none <- quick_fit(keep = "none")
  expect_error(bias_check(none), class = "tall_error_unsupported")
})
