# Gibbs posteriors and bounds.

# The likelihood to the power s is that of rows with weight s: the same run in
# two ways. Draws agree to rounding for as long as no decision is that close.
gibbs_pair <- function(s, ..., x = example_matrix(), n = nrow(x)) {
  y <- example_data()$y
  list(
    gibbs = model_glm(x, y, ...),
    weighted = model_glm(x, y, ..., weights = rep(s, n)),
    lambda = s * n
  )
}

expect_same_run <- function(pair, ..., other = list(...)) {
  run <- function(model, args, ...) {
    args <- c(list(model, refresh = 0, seed = 3), args, list(...))
    do.call(sg_sample, args)
  }
  args <- list(...)
  gibbs <- run(pair$gibbs, args, lambda = pair$lambda)
  weighted <- run(pair$weighted, other)
  expect_close(plain_draws(gibbs), plain_draws(weighted), tolerance = 1e-6)
  for (part in c("gradients", "log_posterior")) {
    if (!is.null(weighted[[part]]) && part == "gradients") {
      expect_close(gibbs[[part]], weighted[[part]], part, tolerance = 1e-6)
    }
    # densities without constants differ by one
    if (!is.null(weighted[[part]]) && part == "log_posterior") {
      difference <- gibbs[[part]] - weighted[[part]]
      expect_close(difference, rep(difference[[1]], length(difference)), part,
        tolerance = 1e-6
      )
    }
  }
  expect_equal(gibbs$noise, weighted$noise, tolerance = 1e-6)
  expect_equal(gibbs$bias, weighted$bias, tolerance = 1e-6)
  expect_identical(gibbs$lambda, pair$lambda)
  expect_null(weighted$lambda)
  invisible(gibbs)
}

test_that("every kernel samples the Gibbs posterior", {
  s <- 0.3
  pair <- gibbs_pair(s, prior = prior_normal(0, 1))
  for (label in names(conformance_kernels())) {
    entry <- conformance_kernels()[[label]]
    kernel <- entry$make(0.003)
    other <- kernel
    # scales of the gradient of the mean loss, which weights multiply
    if (!is.null(kernel$args$sigma_direction) && entry$name == "mala") {
      other$args$sigma_direction <- kernel$args$sigma_direction / s
    }
    if (!is.null(kernel$args$momentum_sd)) {
      other$args$momentum_sd <- kernel$args$momentum_sd * c(s, s^2)
    }
    if (entry$name == "adam_mcmc") {
      kernel$args$delta <- other$args$delta <- 1e-300
    }
    run <- function(kernel) {
      list(
        kernel = kernel,
        gradient = entry$gradient,
        subsample = entry$subsample,
        iter = 40,
        chains = 2,
        init = c(-0.5, 0.5, 0.1),
        keep = c("draws", "gradients")
      )
    }
    do.call(
      expect_same_run,
      c(list(pair), run(kernel), list(other = run(other)))
    )
  }
})

test_that("every estimator and scheme follows lambda", {
  pair <- gibbs_pair(2.5, prior = prior_laplace(0, 1))
  at <- c(-0.4, 0.6, 0.1)
  weights <- rep(1:3, 100)
  schemes <- list(
    subsample_uniform(10),
    subsample_uniform(10, replace = FALSE),
    subsample_weighted(10, weights),
    subsample_optimal(10)
  )
  adaptive <- subsample_adaptive(200, weights, min_size = 5)
  run <- function(gradient, scheme) {
    expect_same_run(
      pair,
      kernel = kernel_sgld(1e-3, "corrected"),
      gradient = gradient,
      subsample = scheme,
      iter = 60,
      chains = 2,
      init = c(-0.5, 0.5, 0.1),
      keep = c("draws", "gradients")
    )
  }
  for (gradient in lapply(conformance_gradients(), function(e) e$make(at))) {
    if (gradient_is_full(gradient)) {
      run(gradient, NULL)
      next
    }
    for (scheme in schemes) {
      run(gradient, scheme)
    }
  }
  fit <- run(gradient_cv(at), adaptive)
  expect_gt(stats::sd(fit$sizes), 1)
})

test_that("mode, starting points and the recipe are those of lambda", {
  for (s in c(0.2, 3)) {
    pair <- gibbs_pair(s, prior = prior_normal(1, 0.5))
    gibbs <- model_mode(temper_model(pair$gibbs, pair$lambda))
    weighted <- model_mode(pair$weighted)
    expect_close(gibbs$estimate, weighted$estimate, tolerance = 1e-8)
    expect_close(gibbs$chol, weighted$chol, tolerance = 1e-8)
    fit <- expect_same_run(pair, iter = 60, chains = 2)
    expect_identical(fit$kernel$name, "smh")
  }
  # all rows different: tied weights would draw others of them by rounding
  data <- example_data(6000)
  y <- data$y
  x <- example_matrix(data)
  pair <- list(
    gibbs = model_glm(x, y),
    weighted = model_glm(x, y, weights = rep(0.4, 6000)),
    lambda = 2400
  )
  ways <- c("exact", "order", "minibatches")
  for (way in ways) {
    if (way != "exact") {
      local_way(way)
    }
    fit <- expect_same_run(pair, iter = 60, chains = 2)
    expect_identical(fit$kernel$name, if (way == "exact") "smh" else "sgld")
  }
})

test_that("lambda = N is Bayes, and lambda must be positive", {
  model <- example_model()
  run <- function(...) {
    sg_sample(model, kernel_mala(0.01), iter = 20, seed = 1, refresh = 0, ...)
  }
  expect_identical(run(lambda = 300)$draws, run()$draws)
  expect_null(run(lambda = 300)$lambda)
  expect_snapshot(error = TRUE, run(lambda = 0))
  expect_snapshot(error = TRUE, run(lambda = -1))
  expect_snapshot(error = TRUE, run(lambda = NA))
  local_wide()
  expect_snapshot(print(run(lambda = 10)), transform = scrub)
})

test_that("the Gibbs posterior of a normal mean is the one it says it is", {
  skip_on_cran()
  target <- target_correlated()
  model <- temper_model(target$model, 20)
  # 20 of 60 observations' worth of precision
  prior <- diag(1 / 4, 2)
  precision <- (target$precision - prior) / 3 + prior
  expect_close(solve(model$posterior_covariance), precision)
  at <- model_evaluate(model, model$posterior_mean)$gradient
  expect_close(at, c(0, 0), tolerance = 1e-9)
  fit <- sg_sample(
    target$model,
    kernel_mala(0.8),
    iter = 5000,
    warmup = 500,
    chains = 40,
    cores = 2,
    seed = 2,
    init = model$posterior_mean,
    lambda = 20,
    refresh = 0
  )
  expect_posterior(
    fit,
    model$posterior_mean,
    model$posterior_covariance,
    "lambda = 20"
  )
})

test_that("resuming and post-processing stay with lambda", {
  model <- example_model()
  run <- function(iter) {
    sg_sample(
      model,
      kernel_barker(0.05),
      iter = iter,
      warmup = 20,
      chains = 2,
      seed = 1,
      lambda = 40,
      keep = c("draws", "gradients"),
      refresh = 0
    )
  }
  whole <- run(60)
  expect_same_outcome(sg_resume(run(35), iter = 25, refresh = 0), whole)
  reread <- unserialize(serialize(run(35), NULL))
  resumed <- sg_resume(reread, 25, model = example_model(), refresh = 0)
  expect_same_outcome(resumed, whole)
  expect_equal(resumed$lambda, 40)
  # the gradients of the draws, by all rows again
  reduced <- zero_variance(whole)
  expect_equal(zero_variance(whole, gradient = "full"), reduced)
  expect_equal(zero_variance(whole, gradient = "full", model = model), reduced)
  expect_equal(ksd(whole), ksd(whole, model))
  expect_equal(c(ksd(whole)), c(ksd(whole, "kept")))
})

# ---- bounds ------------------------------------------------------------------

# y ~ N(theta, 3^2), theta uniform: a normal cut off.
bounded_model <- function(lower, upper) {
  y <- withr::with_seed(4, stats::rnorm(20, 1, 3))
  y <- y - mean(y) + 1
  model_glm(
    cbind(mean = rep(1, 20)),
    y,
    family = "gaussian",
    sigma = 3,
    prior = prior_uniform(lower, upper)
  )
}

cut_moments <- function(lower, upper, mean = 1, sd = 3 / sqrt(20)) {
  moment <- function(k) {
    stats::integrate(
      function(x) x^k * stats::dnorm(x, mean, sd),
      lower,
      upper,
      rel.tol = 1e-10
    )$value
  }
  list(
    mean = moment(1) / moment(0),
    variance = moment(2) / moment(0) - (moment(1) / moment(0))^2
  )
}

test_that("under a uniform prior exact kernels sample the box", {
  skip_on_cran()
  model <- bounded_model(0.8, 1.9)
  truth <- cut_moments(0.8, 1.9)
  for (label in names(conformance_kernels())) {
    entry <- conformance_kernels()[[label]]
    if (!entry$is_exact) {
      next
    }
    fit <- sg_sample(
      model,
      entry$make(0.3),
      entry$gradient,
      entry$subsample,
      iter = 4000,
      warmup = 500,
      chains = 40,
      cores = 2,
      seed = 9,
      refresh = 0
    )
    draws <- plain_draws(fit)
    expect_true(all(draws >= 0.8 & draws <= 1.9))
    expect_posterior(fit, truth$mean, matrix(truth$variance), label)
    expect_true(all(fit$chains$outside > 0 & fit$chains$outside < 1))
    expect_true(all(fit$chains$nonfinite == 0))
  }
})

test_that("the recipe is exact under bounds, also whitened", {
  skip_on_cran()
  model <- bounded_model(0.8, 1.9)
  truth <- cut_moments(0.8, 1.9)
  fit <- sg_sample(
    model,
    iter = 1000,
    warmup = 500,
    chains = 40,
    cores = 2,
    seed = 9,
    refresh = 0
  )
  expect_false(is.null(fit$stand_in)) # chains move there, on sums
  expect_posterior(fit, truth$mean, matrix(truth$variance), "recipe")
  local_wide()
  expect_snapshot(print(fit), transform = scrub)

  # the bounds of an intercept are those of the mean predictor
  data <- data.frame(y = stats::residuals(stats::lm(dist ~ speed, cars)) + 1)
  data$x <- cars$speed
  fit <- tall_glm(
    y ~ x,
    data,
    prior = prior_uniform(-0.5, 0.2),
    prior_intercept = prior_uniform(0.5, 1.2),
    sigma = 15,
    seed = 1,
    refresh = 0
  )
  draws <- as.matrix(fit)
  centred <- draws[, 1] + draws[, 2] * mean(data$x)
  expect_true(all(draws[, 2] >= -0.5 & draws[, 2] <= 0.2))
  expect_true(all(centred >= 0.5 & centred <= 1.2))
  expect_gt(max(centred), 1.15)
  expect_snapshot(rstantools::prior_summary(fit))
})

test_that("starting points lie within the bounds", {
  # the mode, 1, does not
  model <- bounded_model(2, 3)
  run <- function(...) {
    sg_sample(model, kernel_mala(0.1), iter = 30, seed = 1, refresh = 0, ...)
  }
  draws <- plain_draws(run())
  expect_true(all(draws >= 2 & draws <= 3))
  expect_s3_class(run(init = 2.5), "tall_fit")
  expect_snapshot(error = TRUE, run(init = 1.5), cnd_class = TRUE)
  expect_error(
    run(init = matrix(c(2.5, 2.5, 4, 2.5), 1)),
    "Chain 3",
    class = "tall_error_input"
  )
})

test_that("bounds need a Metropolis kernel", {
  model <- bounded_model(0, 1)
  unadjusted <- Filter(function(e) !e$is_metropolis, conformance_kernels())
  for (entry in unadjusted) {
    expect_error(
      sg_sample(model, entry$make(0.1), refresh = 0),
      "prior_uniform",
      class = "tall_error_unsupported"
    )
  }
  expect_snapshot(error = TRUE, sg_sample(model, kernel_sgld(1), refresh = 0))
})

test_that("uniform priors print, resolve, and refuse what is no box", {
  expect_snapshot(prior_uniform(-1, c(1, 2)))
  out <- prior_resolve(prior_uniform(c(-1, 0), 4), names = c("a", "b"))
  expect_identical(out$kind, c(5L, 5L))
  expect_identical(out$location, c(1.5, 2))
  expect_identical(out$scale, c(2.5, 2))
  expect_snapshot(error = TRUE, prior_uniform(1, 1))
  expect_snapshot(error = TRUE, prior_uniform(c(0, 3), c(1, 2)))
  expect_snapshot(error = TRUE, prior_uniform(0))
  expect_snapshot(error = TRUE, prior_uniform(0, Inf))
  expect_snapshot(error = TRUE, prior_uniform(1:2, 3:5))
})
