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

test_that("without a mode sd_bias gets directions from the start", {
  skip_on_cran()
  correlation <- matrix(c(1, 0.9, 0.9, 1), 2)
  x <- withr::with_seed(1, matrix(stats::rnorm(2 * 12000), 12000))
  x <- x %*% chol(correlation)
  y <- withr::with_seed(2, stats::rbinom(12000, 1, stats::plogis(x[, 1])))
  colnames(x) <- c("a", "b")
  model <- model_glm(x, y, family = "bernoulli", prior = prior_normal(0, 10))
  mode <- find_mode(model)
  # a copy without the cached mode
  model <- model_glm(x, y, family = "bernoulli", prior = prior_normal(0, 10))
  run <- function(start) {
    sg_sample(
      model,
      kernel_sgld(2e-4),
      gradient_simple(),
      subsample_uniform(200),
      iter = 60000,
      warmup = 5000,
      thin = 20,
      chains = 4,
      seed = 1,
      init = start,
      refresh = 0
    )
  }
  fit <- run(unname(mode$estimate) + c(0.1, -0.1))
  expect_null(fit$mode)
  sd <- apply(as.matrix(fit), 2, stats::sd)
  truth <- sd / sqrt(diag(stats::vcov(mode))) - 1
  # widened by the noise of the gradient
  expect_true(all(truth > 0.1))
  # 10,000 of 12,000 rows, at a start some sds away: a few percent
  expect_true(all(abs(fit$bias$sd_bias - truth) < 0.1 * (1 + truth)))
  expect_identical(fit$preparation[["recipe"]], 10000 / 12000)
  # resumed, the directions are those of the start
  fit <- sg_resume(fit, iter = 100, refresh = 0)
  expect_true(all(abs(fit$bias$sd_bias - truth) < 0.1 * (1 + truth)))
  expect_identical(resume_plan(fit, NULL)$start_chol, fit$start_chol)
})

test_that("sd_bias of a run in parts is that of the run in one", {
  model <- example_model()
  run <- function(iter) {
    sg_sample(
      model,
      kernel_sgld(1e-4), # slow: parts have means of their own
      gradient_simple(),
      subsample_uniform(20),
      iter = iter,
      warmup = 100,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  whole <- run(2100)
  halves <- sg_resume(run(1100), iter = 1000, refresh = 0)
  expect_identical(halves$draws, whole$draws)
  expect_equal(halves$bias, whole$bias)
  parts <- run(200)
  for (k in 1:19) {
    parts <- sg_resume(parts, iter = 100, refresh = 0)
  }
  expect_equal(parts$bias$sd_bias, whole$bias$sd_bias)
  expect_lt(max(abs(log(parts$bias$sd_bias_se / whole$bias$sd_bias_se))), 0.5)
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
