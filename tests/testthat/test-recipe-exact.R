# The recipe's exact draws from a few rows.

# An indicator whose rows all have the same outcome: the wider the prior, the
# heavier the tail.
separated_model <- function(
  scale,
  n = 10000,
  n_exposed = 300,
  prior = prior_normal(0, scale)
) {
  n_events <- round(0.3 * n)
  y <- rep(c(1, 0), c(n_events, n - n_events + n_exposed))
  x <- rep(0:1, c(n, n_exposed))
  model_glm(cbind(1, x), y, prior = prior)
}

test_that("tall data get exact steps from a few rows", {
  model <- tall_model()
  fit <- recipe_fit(model)
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_identical(fit$gradient$args$order, 2)
  expect_null(fit$subsample)
  expect_false(fit$is_whitened)
  expect_gt(fit$recipe$acceptance, 0.9)
  expect_lt(fit$recipe$size, 20)
  expect_identical(fit$steps, 2)
  expect_match(fit$plan, "^exact steps: in a pilot they looked at")
  # no copy of the rows was made, and they are as they were
  expect_identical(fit$model$pointer, model$pointer)
  expect_false(is.null(fit$mode$chol))
  formula <- quick_glm(y ~ a + b, example_data(5000), iter = 50)
  expect_s3_class(formula$kernel, "tall_kernel_smh")
})

test_that("draws are of the posterior, and nearly independent", {
  skip_on_cran()
  cases <- list(
    outlier_model(999),
    outlier_model(9999, 1:100),
    separated_model(1),
    withr::with_seed(3, {
      x <- stats::rt(20000, 2)
      y <- stats::rbinom(20000, 1, stats::plogis(0.3 * x))
      model_glm(cbind(1, x), y, prior = prior_normal(0, 1))
    })
  )
  for (model in cases) {
    exact <- grid_posterior(model)
    expect_no_warning(
      fit <- sg_sample(model, iter = 3000, warmup = 500, seed = 4, refresh = 0)
    )
    expect_s3_class(fit$kernel, "tall_kernel_smh")
    slope <- posterior::extract_variable_matrix(fit$draws, fit$variables[[2]])
    error <- posterior::mcse_mean(slope)
    expect_lt(abs(mean(slope) - exact$mean) / error, 4)
    error <- posterior::mcse_sd(slope)
    # of the quadrature's grid, too
    expect_lt(abs(stats::sd(slope) - exact$sd), 4 * error + 2e-3 * exact$sd)
    expect_gt(posterior::ess_bulk(slope), 0.6 * 10000)
  }
})

test_that("a run depends on seed and model alone, and goes on where it was", {
  model <- tall_model(3000)
  fit <- recipe_fit(model)
  expect_same_outcome(recipe_fit(model, cores = 2), fit)
  # the pilot has its own seed
  expect_identical(
    sg_sample(model, iter = 20, seed = 2, refresh = 0)$recipe,
    sg_sample(model, iter = 20, seed = 3, refresh = 0)$recipe
  )
  expect_goes_on(fit, function() tall_model(3000))
})

test_that("priors with bounds and kinks, and Gibbs posteriors, are exact", {
  data <- withr::with_seed(2, {
    x <- cbind(1, stats::rnorm(3000))
    list(x = x, y = stats::rbinom(3000, 1, stats::plogis(0.1 * x[, 2])))
  })
  priors <- list(
    prior_laplace(0, 0.05),
    prior_uniform(c(-0.02, 0.05), c(0.5, 0.3)),
    prior_flat()
  )
  for (prior in priors) {
    model <- model_glm(data$x, data$y, prior = prior)
    for (lambda in list(NULL, 1000)) {
      fit <- sg_sample(
        model,
        iter = 1500,
        warmup = 250,
        seed = 1,
        lambda = lambda,
        refresh = 0
      )
      expect_s3_class(fit$kernel, "tall_kernel_smh")
      tempered <- temper_model(model, lambda)
      at <- lapply(1:2, function(j) {
        sd <- sqrt(diag(vcov(find_mode(tempered))))[[j]]
        coef(find_mode(tempered))[[j]] + sd * seq(-7, 7, length.out = 301)
      })
      grid <- t(as.matrix(expand.grid(at)))
      log_p <- model_evaluate(tempered, grid, needs_finite = FALSE)$log_density
      log_p[is_outside(tempered, grid)] <- -Inf
      p <- exp(log_p - max(log_p))
      mean <- drop(grid %*% p) / sum(p)
      draws <- posterior::as_draws_matrix(fit$draws)
      error <- apply(fit$draws, 3, posterior::mcse_mean)
      expect_lt(max(abs(colMeans(draws) - mean) / error), 4)
    }
  }
})

test_that("what a run may keep and watch works under exact steps", {
  model <- tall_model(3000)
  fit <- recipe_fit(model, keep = c("draws", "gradients"))
  draws <- t(posterior::as_draws_matrix(fit$draws))
  full <- model_evaluate(model, draws)$gradient
  gradients <- posterior::as_draws_matrix(fit$gradients)
  expect_equal(unname(unclass(gradients)[, ]), t(full), tolerance = 1e-9)
  expect_true(is.finite(ksd(fit)))
  expect_true(all(is.finite(zero_variance(fit))))
  few <- recipe_fit(model, variables = "x2")
  expect_identical(
    as.numeric(few$draws),
    as.numeric(posterior::subset_draws(fit$draws, variable = "x2"))
  )
  none <- recipe_fit(model, keep = c("none", "covariance"))
  expect_equal(unname(vcov(none)), unname(vcov(fit)), tolerance = 1e-8)
  total <- function(theta) sum(theta)
  watched <- recipe_fit(model, monitor = list(every = 10, total = total))
  at <- watched$monitor$iteration > watched$control$warmup
  seen <- watched$monitor[at, ]
  at <- seen$iteration[[1]]
  kept <- unclass(watched$draws)[at - watched$control$warmup, , ]
  expect_equal(seen$value[seen$iteration == at], unname(rowSums(kept)))
})

test_that("a tail that exact steps would not come back from is seen", {
  model <- separated_model(20)
  # its rows are then known as they are, where that can be
  fit <- recipe_fit(model)
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_identical(fit$kernel$args$awkward, as.double(10001:10300))
  local_settings(recipe = list(awkward_acceptance = 2))
  fit <- suppressWarnings(recipe_fit(model), classes = "tall_warning_recipe")
  expect_s3_class(fit$kernel, "tall_kernel_sgbd")
  expect_match(fit$plan, "also with 300 awkward rows", fixed = TRUE)
  # a milder one takes more steps for a draw
  mild <- recipe_fit(separated_model(2.5))
  expect_s3_class(mild$kernel, "tall_kernel_smh")
  expect_gt(mild$steps, 10)
  expect_identical(mild$kernel$args$share, setting("recipe")$exact_share)
})

test_that("a tail that is heavier than a normal one is visited often enough", {
  skip_on_cran()
  # with a tenth of the proposals near, tails had 97 effective draws of 4,000
  for (seed in 1:4) {
    fit <- sg_sample(separated_model(3), seed = seed, refresh = 0)
    expect_s3_class(fit$kernel, "tall_kernel_smh")
    slope <- posterior::extract_variable_matrix(fit$draws, "x")
    expect_gt(posterior::ess_tail(slope), 800)
  }
})

test_that("what a tail loses is told by some rows as it is by all", {
  models <- list(
    separated_model(2.5),
    separated_model(20),
    # the prior has a tail of its own
    separated_model(prior = prior_laplace(0, 1)),
    tall_model()
  )
  for (model in models) {
    mode <- find_mode(model)
    covariance <- vcov(mode)
    along <- covariance / rep(sqrt(diag(covariance)), each = nrow(covariance))
    at <- as.double(mode$estimate)
    points <- cbind(at, at + tail_radius * along, at - tail_radius * along)
    density <- model_evaluate(model, points)$log_density
    share <- (density[[1]] - density[-1]) / (tail_radius^2 / 2)
    found <- tail_shape(model, mode, list(cores = 1L), new_ledger())
    expect_lt(abs(found - min(share)), 0.03)
  }
})

test_that("a tail that is left to a Laplace prior is seen", {
  data <- data.frame(
    y = rep(0:1, c(284, 16)),
    x = rep(c(0, 1, 1), c(177, 107, 16))
  )
  fit <- tall_glm(
    y ~ x,
    data,
    stats::binomial(),
    prior = prior_laplace(0, 1, autoscale = TRUE),
    iter = 200,
    warmup = 100,
    seed = 1,
    refresh = 0
  )
  expect_s3_class(fit$kernel, "tall_kernel_mala")
  expect_match(fit$plan, "tails are too heavy", fixed = TRUE)
})

test_that("exact steps that take long are compared with others, by count", {
  model <- tall_model(3000)
  mode <- find_mode(model)
  control <- list(chains = 4, warmup = 1000, iter = 2000, cores = 1L)
  fast <- function(seconds) {
    tried <- list(seconds = seconds)
    is_fast_enough(tried, model, mode, control, new_ledger())
  }
  others <- order_seconds(model, mode, control, new_ledger())
  expect_true(fast(10))
  expect_false(fast(10.1))
  local_settings(recipe = list(exact_seconds = 0))
  expect_true(fast(4.9 * others))
  expect_false(fast(5.1 * others))
  # then the others are taken, and the plan says why
  local_settings(recipe = list(exact_ratio = 0, awkward_acceptance = 2))
  fit <- recipe_fit(model)
  expect_s3_class(fit$kernel, "tall_kernel_sgld")
  expect_match(fit$plan, "since exact steps would take about 1 second")
})

test_that("exact is said where it is, and read where a bias is asked for", {
  local_wide()
  model <- tall_model(3000)
  fit <- recipe_fit(model)
  expect_snapshot(
    {
      print(fit)
      summary(fit)
      bias_check(fit)
      noise_tolerance(fit)
    },
    error = TRUE,
    transform = function(lines) {
      sub("Time: .*? passes", "Time: <seconds>; <n> passes", lines)
    }
  )
  expect_true(all(summary(fit)$table$sd_bias == 0))
  skip_if_not_installed("generics")
  expect_identical(generics::glance(fit)$sd_bias, 0)
  expect_identical(generics::glance(fit)$algorithm, "smh (exact)")
})

test_that("all rows in every step are announced where they take long", {
  control <- list(chains = 4, warmup = 1000, iter = 2000, refresh = 1)
  plan <- recipe_mala(
    list(n_data = 1e7, n_dim = 20, whitening = list(is_diagonal = FALSE)),
    NULL,
    list(),
    new_ledger()
  )
  expect_snapshot(tell_slow(plan, control))
  # however quiet the run is
  expect_message(tell_slow(plan, replace(control, "refresh", 0)), "3 hours")
  plan$model$n_data <- 1000
  expect_silent(tell_slow(plan, control))
})
