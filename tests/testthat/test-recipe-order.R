# The recipe's Langevin steps with control variates of order 2.

test_that("control variates of order 2 come where exact steps do not pay", {
  local_way("order")
  fit <- recipe_fit(tall_model())
  expect_s3_class(fit$kernel, "tall_kernel_sgld")
  expect_identical(fit$kernel$args$integrator, "leimkuhler-matthews")
  expect_identical(fit$kernel$args$variant, "corrected")
  expect_identical(fit$kernel$args$step_size, 1)
  expect_identical(fit$gradient$args$order, 2)
  expect_identical(fit$subsample$args$weights, "cubic")
  expect_identical(fit$recipe$size, 4)
  expect_identical(fit$steps, 5)
  expect_true(fit$is_whitened)
  expect_match(
    fit$plan,
    "^Langevin steps with control variates of order 2 on 4 rows, since exact"
  )
})

test_that("its draws are those of exact steps, but for a small bias", {
  skip_on_cran()
  model <- withr::with_seed(1, {
    x <- cbind(1, matrix(stats::rnorm(20000 * 9), 20000))
    eta <- drop(x %*% seq(-1, 1, length.out = 10))
    model_glm(x, stats::rbinom(20000, 1, stats::plogis(eta)))
  })
  run <- function(seed) {
    sg_sample(model, iter = 6000, warmup = 1000, seed = seed, refresh = 0)
  }
  exact <- run(1)
  expect_s3_class(exact$kernel, "tall_kernel_smh")
  local_way("order")
  fit <- run(2)
  expect_s3_class(fit$kernel, "tall_kernel_sgld")
  a <- summary(fit)$table
  b <- summary(exact)$table
  error <- sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  expect_lt(max(abs(a$mean - b$mean) - 4 * error), 0.02 * max(b$sd))
  # an sd's own error is 0.7 % in 10,000 draws and more
  expect_lt(max(abs(a$sd / b$sd - 1)), 0.03)
  expect_lt(max(abs(a$sd_bias) - 3 * a$sd_bias_se), 0.02)
})

test_that("minibatches follow the rule, and the pilot's noise", {
  # B^2 / d in place of the noise's share
  expect_identical(order_size(c(3, 1), 4, 1), ceiling(100 / 3 * 1.5 * 16 / 4))
  expect_identical(order_size(c(0.1, 0.1), 4, 1), 4)
  local_way("order")
  local_settings(recipe = list(order_noise = 1e-5))
  model <- tall_model()
  fit <- recipe_fit(model)
  expect_gt(fit$recipe$size, 4)
  expect_lte(fit$recipe$noise_share, 1.1e-5)
  # as many rows as all are not a minibatch
  local_settings(recipe = list(order_noise = 1e-9))
  expect_identical(gradient_order(recipe_fit(model)$gradient), 1)
})

test_that("steps are halved where a variance would be off", {
  local_way("order")
  # what the pilot finds of a variance is never that good
  local_settings(recipe = list(order_bias = -1))
  fit <- recipe_fit(tall_model())
  expect_identical(gradient_order(fit$gradient), 1)
  expect_identical(fit$kernel$args$step_size, setting("recipe")$step_size)
  tried <- NULL
  real <- order_pilot
  local_settings(recipe = list(step_size = 1e-3))
  local_fault("order_pilot", function(plan, ...) {
    tried <<- c(tried, plan$recipe$step_size)
    found <- real(plan, ...)
    found$is_safe <- plan$recipe$step_size <= 0.25
    found
  })
  fit <- recipe_fit(tall_model())
  expect_identical(tried, c(1, 0.5, 0.25))
  expect_identical(fit$kernel$args$step_size, 0.25)
})

test_that("a run by order 2 goes on where it was", {
  local_way("order")
  fit <- recipe_fit(tall_model(4000))
  expect_identical(fit$gradient$args$order, 2)
  expect_goes_on(fit, function() tall_model(4000))
})
