# The bias estimate beside a normal companion of the chains (src/run/bias.c),
# of Langevin steps that are given, whatever the recipe would take.

langevin_plan <- function(
  model,
  kernel,
  subsample = subsample_uniform(32),
  order = 1
) {
  mode <- find_mode(model)
  new_plan(
    whiten_model(model, mode, in_place = FALSE),
    new_sampler(kernel, gradient_cv(at = mode, order = order), subsample),
    mode = mode,
    steps = 5
  )
}

matthews <- function(step_size, variant = "vanilla") {
  kernel_sgld(step_size, variant, integrator = "leimkuhler-matthews")
}

# sg_sample() with this plan; plain: without the companion.
run_plan <- function(
  plan,
  iter,
  warmup,
  chains = 4,
  cores = 1,
  plain = FALSE,
  model = example_model()
) {
  local_settings(bias_companion = if (plain) 0 else 1)
  control <- check_control(iter, warmup, 1, chains, cores, 1, "draws", 0)
  control["record"] <- list(check_recorded(NULL, model, control$keep))
  sample_plan(plan, model, NULL, control)
}

# Of each chain, the estimated relative bias of every variance.
chain_estimates <- function(fit) {
  vapply(
    fit$bias_blocks,
    function(blocks) {
      -1 - colSums(blocks$product * blocks$count) / sum(blocks$count)
    },
    numeric(length(fit$coordinates))
  )
}

# The same draws, and the same expectation: their difference has mean zero.
expect_coupled <- function(plan, model, most, ...) {
  run <- function(plain) {
    run_plan(plan, model = model, chains = 60, ..., plain = plain)
  }
  coupled <- run(FALSE)
  plain <- run(TRUE)
  expect_identical(coupled$draws, plain$draws)
  a <- chain_estimates(coupled)
  b <- chain_estimates(plain)
  z <- rowMeans(a - b) / apply(a - b, 1, stats::sd) * sqrt(ncol(a))
  expect_lt(max(abs(z)), 4)
  ratio <- apply(a, 1, stats::var) / apply(b, 1, stats::var)
  expect_lt(max(ratio), most)
  # printed with the standard errors that go with it
  se <- apply(a, 1, stats::sd) / sqrt(ncol(a)) / 2
  expect_lt(max(abs(log(coupled$bias$sd_bias_se / se))), log(2))
  expect_lt(max(coupled$bias$sd_bias_se / plain$bias$sd_bias_se), sqrt(most))
}

test_that("coupled, the estimate has its mean and far less variance: sepsis", {
  data <- full_data("sepsis")
  columns <- c("age_years", "sex_0male_1female", "episode_number")
  model <- model_glm(
    cbind(1, as.matrix(data[columns])),
    data$hospital_outcome_1alive_0dead,
    prior = prior_normal(0, 10)
  )
  expect <- function(kernel, size = 32, order = 1) {
    scheme <- subsample_weighted(size, "leverage")
    plan <- langevin_plan(model, kernel, scheme, order)
    expect_coupled(plan, model, 1 / 4, iter = 550, warmup = 50)
  }
  expect(matthews(0.2))
  expect(matthews(0.2, "corrected"))
  expect(matthews(c(0.1, 0.2, 0.3, 0.4)))
  expect(matthews(1), size = 8, order = 2)
})

test_that("of an exactly normal posterior nothing is left to estimate", {
  model <- withr::with_seed(3, {
    x <- cbind(rnorm(200, 1, 2), rnorm(200, -1, 50))
    model_gaussian(x, rbind(c(4, 30), c(30, 2500)))
  })
  fit <- run_plan(
    langevin_plan(model, matthews(0.5)),
    model = model,
    iter = 500,
    warmup = 200
  )
  # but the square of the chains' means, which the estimate measures from
  n_effective <- 300 * 5 * 0.5 / 4
  expect_lt(max(abs(fit$bias$sd_bias)), 10 / n_effective)
  plain <- vapply(fit$bias_blocks, function(blocks) {
    mean <- fit$mode$estimate - blocks$mean
    max(abs(blocks$product - rep(mean, each = 20) * blocks$gradient + 1))
  }, 0)
  expect_lt(max(plain), 1e-8)
})

test_that("the estimate does not depend on how a run is made", {
  model <- example_model()
  plan <- langevin_plan(model, matthews(0.3, "corrected"))
  run <- function(...) run_plan(plan, chains = 3, warmup = 30, ...)
  whole <- run(iter = 130)
  expect_identical(run(iter = 130, cores = 3)$bias, whole$bias)
  local({
    local_slices(7)
    expect_identical(run(iter = 130)$bias, whole$bias)
  })
  # stopped in warmup, and after it
  part <- sg_resume(run(iter = 80), iter = 50, refresh = 0)
  expect_identical(part$draws, whole$draws)
  expect_identical(part$saved, whole$saved)
  expect_equal(part$bias, whole$bias)
  part <- unserialize(serialize(run(iter = 80), NULL))
  part <- sg_resume(part, iter = 50, model = example_model(), refresh = 0)
  expect_identical(part$saved, whole$saved)
  expect_equal(part$bias, whole$bias)
})

test_that("companions go where the posterior is near N(0, I), with a kernel", {
  model <- example_model()
  coupled <- langevin_plan(model, matthews(0.3))
  expect_true(is_bias_coupled(coupled))
  other <- function(part, value) {
    coupled[[part]] <- value
    coupled
  }
  expect_false(is_bias_coupled(other("kernel", kernel_sghmc(0.01))))
  expect_false(is_bias_coupled(other("kernel", kernel_mala(0.1))))
  expect_false(is_bias_coupled(other("schedule", schedule_decay())))
  # explicit kernels are in the parameters
  coupled$model <- model
  expect_false(is_bias_coupled(coupled))
  # scales alone leave correlations
  local_settings(most_whitened = 1)
  expect_false(is_bias_coupled(langevin_plan(model, matthews(0.3))))
})
