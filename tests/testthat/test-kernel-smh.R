# Scalable Metropolis-Hastings. Detailed balance, the law of a step and the
# bounds are in tools/core-check/test-factorised.c; seeds, threads, slices and
# resuming in test-conformance-kernel.R.

# A small posterior in two dimensions with its moments by quadrature.
small_posterior <- function(family, link, prior, n = 25, seed = 2) {
  withr::local_seed(seed)
  x <- cbind(a = 1, b = rnorm(n))
  x[3, 2] <- 6 # a row with leverage
  eta <- drop(x %*% c(0.3, -0.4)) / 2
  weights <- NULL
  y <- switch(
    family,
    poisson = rpois(n, exp(eta)),
    gaussian = eta + rnorm(n),
    bernoulli = rbinom(n, 1, plogis(eta))
  )
  args <- list(
    x,
    y,
    prior = prior,
    offset = rnorm(n, 0, 0.2),
    weights = if (family == "gaussian") NULL else 0.5 + runif(n)
  )
  family <- switch(
    family,
    gaussian = "gaussian",
    poisson = "poisson",
    bernoulli = stats::binomial(link)
  )
  if (identical(family, "gaussian")) {
    args$sigma <- 1.3
  }
  model <- do.call(model_glm, c(args, list(family = family)))
  axes <- lapply(1:2, function(j) {
    mode <- find_mode(model)
    sd <- sqrt(diag(vcov(mode)))[[j]]
    mode$estimate[[j]] + sd * seq(-9, 9, length.out = 401)
  })
  grid <- t(as.matrix(expand.grid(axes)))
  density <- model_evaluate(model, grid, needs_finite = FALSE)$log_density
  density[is_outside(model, grid)] <- -Inf
  w <- exp(density - max(density))
  w <- w / sum(w)
  mean <- unname(drop(grid %*% w))
  centred <- grid - mean
  list(model = model, mean = mean, truth = centred %*% (w * t(centred)))
}

test_that("posteriors of every response and prior are those of quadrature", {
  skip_on_cran()
  cases <- list(
    list("bernoulli", "logit", prior_normal(0, 2.5)),
    list("bernoulli", "logit", prior_laplace(0, 0.3)),
    list("bernoulli", "logit", prior_uniform(c(-0.5, -1), c(0.6, 0.2))),
    list("bernoulli", "probit", prior_flat()),
    list("bernoulli", "cloglog", prior_normal(0.2, 0.5)),
    list("poisson", "log", prior_normal(0, 2.5)),
    list("poisson", "log", prior_laplace(0, 0.2)),
    list("gaussian", "identity", prior_laplace(0, 0.3)),
    list("gaussian", "identity", prior_flat())
  )
  for (case in cases) {
    small <- small_posterior(case[[1]], case[[2]], case[[3]])
    fit <- sg_sample(
      small$model,
      kernel_smh(),
      iter = 4000,
      warmup = 200,
      chains = 40,
      cores = 2,
      seed = 5,
      refresh = 0
    )
    label <- paste(case[[1]], case[[2]], class(case[[3]])[[1]])
    expect_posterior(fit, small$mean, small$truth, label)
    expect_gt(min(fit$chains$acceptance), 0.05)
  }
})

test_that("a reference off the mode changes the cost, not the posterior", {
  skip_on_cran()
  small <- small_posterior("bernoulli", "logit", prior_normal(0, 1))
  at <- small$mean + c(0.4, -0.3)
  fit <- sg_sample(
    small$model,
    kernel_smh(),
    gradient_cv(at, order = 2),
    iter = 4000,
    warmup = 200,
    chains = 40,
    cores = 2,
    seed = 6,
    refresh = 0
  )
  expect_posterior(fit, small$mean, small$truth, "off the mode")
})

test_that("a Gibbs posterior is that of weighted rows", {
  skip_on_cran()
  withr::local_seed(4)
  x <- cbind(1, rnorm(60))
  y <- rbinom(60, 1, 0.4)
  run <- function(model, ...) {
    sg_sample(
      model,
      kernel_smh(),
      iter = 4000,
      warmup = 200,
      chains = 20,
      seed = 8,
      refresh = 0,
      ...
    )
  }
  prior <- prior_normal(0, 1)
  plain <- model_glm(x, y, family = "bernoulli", prior = prior)
  gibbs <- run(plain, lambda = 20)
  weighted <- run(model_glm(
    x,
    y,
    family = "bernoulli",
    prior = prior,
    weights = rep(1 / 3, 60)
  ))
  a <- posterior::summarise_draws(gibbs$draws, "mean", "sd", "mcse_mean")
  b <- posterior::summarise_draws(weighted$draws, "mean", "sd", "mcse_mean")
  z <- (a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  expect_lt(max(abs(z)), 4.5)
  expect_lt(max(abs(a$sd / b$sd - 1)), 0.03)
})

test_that("chains from outside the first shells come home", {
  small <- small_posterior("bernoulli", "logit", prior_normal(0, 2.5))
  run <- function(sds) {
    sg_sample(
      small$model,
      kernel_smh(),
      iter = 1500,
      warmup = 1000,
      chains = 4,
      init = unname(small$mean + sds * sqrt(diag(small$truth))),
      seed = 1,
      refresh = 0
    )
  }
  fit <- run(4)
  expect_true(all(fit$chains$status == "ok"))
  expect_lt(max(abs(apply(plain_draws(fit), 3, mean) - small$mean)), 0.5)
  # far out, where the normal law says nothing, it stays; nothing breaks
  fit <- run(60)
  expect_true(all(fit$chains$status == "ok"))
  expect_true(all(is.finite(plain_draws(fit))))
})

test_that("whitened coordinates change nothing", {
  skip_on_cran()
  for (prior in list(prior_normal(0.1, 1), prior_laplace(0, 0.3))) {
    small <- small_posterior("bernoulli", "probit", prior)
    mode <- find_mode(small$model)
    white <- whitened_twin(small$model, mode$estimate, mode$chol, FALSE)
    sampler <- new_sampler(kernel_smh(), gradient_cv(mode, order = 2))
    plan <- new_plan(white, sampler)
    control <- test_control(4200, 200, chains = 40, keep = "draws")
    plan$init <- plan_init(plan, NULL, control)
    segment <- run_segment(plan, control, new_stretch(200, 4000))
    draws <- array(segment$buffers$draw, c(4000, 40, 2))
    label <- paste("whitened,", class(prior)[[1]])
    expect_mean(colMeans(draws[, , 1]), small$mean[[1]], label)
    expect_mean(colMeans(draws[, , 2]), small$mean[[2]], label)
    sds <- apply(draws, 3, sd)
    expect_lt(max(abs(sds / sqrt(diag(small$truth)) - 1)), 0.03)
  }
})

test_that("gradients that are kept are those of all rows", {
  small <- small_posterior("poisson", "log", prior_normal(0, 1))
  fit <- sg_sample(
    small$model,
    kernel_smh(),
    iter = 40,
    warmup = 10,
    chains = 2,
    seed = 3,
    keep = c("draws", "gradients"),
    refresh = 0
  )
  draws <- plain_draws(fit)
  for (chain in 1:2) {
    exact <- model_evaluate(small$model, t(draws[, chain, ]))$gradient
    expect_close(t(fit$gradients[, chain, ]), exact, "gradients", 1e-10)
  }
  expect_s3_class(zero_variance(fit), "draws_matrix")
})

test_that("what it did is told", {
  withr::local_seed(1)
  x <- cbind(1, matrix(rnorm(3 * 3000), 3000))
  model <- model_glm(x, rbinom(3000, 1, 0.3), family = "bernoulli")
  fit <- sg_sample(
    model,
    kernel_smh(),
    iter = 600,
    warmup = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_true(all(fit$chains$acceptance > 0.8))
  expect_true(all(fit$chains$rows_thinned > 0.1))
  expect_true(all(fit$chains$rows_thinned < 30))
  # nobody looks at a row whatever its bound says
  expect_true(all(fit$chains$rows_always == 0))
  expect_output(print(fit), "scalable Metropolis-Hastings [(]exact[)]")
  expect_output(print(fit), "acceptance 0.[0-9]+, [0-9.]+ rows a step")
  expect_output(print(fit), "Rows in a step: .* drawn by their bounds")
  expect_null(fit$log_posterior)
  expect_null(fit$bias)
  # rows a step, also after going on
  more <- sg_resume(fit, iter = 600, refresh = 0)
  ratio <- more$chains$rows_thinned / fit$chains$rows_thinned
  expect_lt(max(abs(ratio - 1)), 0.5)
  expect_lt(sum(fit$chains$passes), 8)
  expect_error(bias_check(fit), class = "tall_error_unsupported")
})

test_that("what it cannot run with is told, with what to use instead", {
  withr::local_seed(1)
  x <- cbind(1, rnorm(40))
  y <- rnorm(40)
  logistic <- model_glm(x, rep(0:1, 20), family = "bernoulli")
  run <- function(model = logistic, ...) {
    sg_sample(model, kernel_smh(), ..., iter = 10, seed = 1, refresh = 0)
  }
  expect_snapshot(error = TRUE, run(model_glm(x, y, family = "gaussian")))
  expect_snapshot(error = TRUE, run(model_gaussian(x, diag(2))))
  expect_snapshot(error = TRUE, run(gradient = gradient_cv()))
  expect_snapshot(error = TRUE, run(gradient = gradient_full()))
  expect_snapshot(error = TRUE, run(subsample = subsample_adaptive(5)))
  expect_snapshot(error = TRUE, run(schedule = schedule_decay()))
  separated <- model_glm(
    x,
    as.numeric(x[, 2] > 0),
    family = "bernoulli",
    prior = prior_flat()
  )
  expect_error(run(separated), class = "tall_error_improper")
  twice <- model_glm(
    cbind(x, x[, 2]),
    rep(0:1, 20),
    family = "bernoulli",
    prior = prior_flat()
  )
  at_zero <- gradient_cv(numeric(3), order = 2)
  expect_error(
    run(twice, gradient = at_zero, init = numeric(3)),
    class = "tall_error_singular"
  )
})
