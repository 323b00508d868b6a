# Priors with hyperparameters in models: against quadrature and importance
# sampling.

scaled_example <- function(prior, family = "bernoulli", sigma = NULL) {
  set.seed(7)
  x <- cbind("(Intercept)" = 1, a = stats::rnorm(80), b = stats::rnorm(80))
  eta <- drop(x %*% c(-0.3, 0.8, 0))
  y <- if (family == "bernoulli") {
    stats::rbinom(80, 1, stats::plogis(eta))
  } else {
    eta + stats::rnorm(80)
  }
  model_glm(
    x,
    y,
    family,
    prior = prior,
    prior_intercept = prior_normal(0, 2),
    sigma = sigma
  )
}

# in terms of Monte Carlo errors of these draws
expect_mean <- function(x, expected, error = 0) {
  mcse <- sqrt(posterior::mcse_mean(x)^2 + error^2)
  expect_lt(abs(mean(x) - expected), 4.5 * mcse)
}

test_that("variables and coordinates follow those of the model", {
  model <- scaled_example(prior_hs(), "gaussian")
  hyper <- c("hs_global", "hs_slab", "hs_local[a]", "hs_local[b]")
  expect_identical(
    model$variables,
    c("(Intercept)", "a", "b", "sigma", hyper)
  )
  expect_identical(
    model$coordinates,
    c("(Intercept)", "a", "b", "log_sigma", paste0("log_", hyper))
  )
  expect_identical(aux_coordinates(model), 4)
  theta <- c(1, 2, 3, 0.5, -1, 0.3, 0.1, -2)
  expect_equal(
    drop(model_variables(model, theta)),
    c(1, 2, 3, exp(theta[4:8]))
  )
})

test_that("gradients are those of the density", {
  set.seed(2)
  for (prior in list(prior_hs(), prior_ridge(), prior_r2d2())) {
    for (family in c("bernoulli", "gaussian")) {
      model <- scaled_example(prior, family)
      theta <- stats::rnorm(model$n_dim, sd = 0.5)
      density <- function(theta) model_evaluate(model, theta)$log_density
      found <- drop(model_evaluate(model, theta)$gradient)
      h <- 1e-5
      for (j in seq_along(theta)) {
        step <- replace(numeric(model$n_dim), j, h)
        slope <- (density(theta + step) - density(theta - step)) / (2 * h)
        expect_equal(found[[j]], slope, tolerance = 1e-6)
      }
    }
  }
})

test_that("the prior is the one of the help", {
  model <- scaled_example(prior_hs(1, 3, 0.2, 4, 2))
  log_prior <- function(theta) {
    x <- exp(theta[4:7])
    v <- 1 / (1 / x[[2]]^2 + 1 / (x[[1]] * x[3:4])^2)
    c2 <- x[[2]]^2
    stats::dnorm(theta[[1]], 0, 2, log = TRUE) +
      sum(stats::dnorm(theta[2:3], 0, sqrt(v), log = TRUE)) +
      stats::dt(x[[1]] / 0.2, 3, log = TRUE) +
      # 1 / c^2 ~ gamma(2, 8)
      stats::dgamma(1 / c2, 2, 8, log = TRUE) - 2 * log(c2) + log(2 * x[[2]]) +
      sum(stats::dt(x[3:4], 1, log = TRUE)) +
      sum(theta[4:7])
  }
  set.seed(3)
  theta <- matrix(stats::rnorm(7 * 5), 7)
  found <- model_evaluate(model, theta, "prior")$log_density
  expected <- apply(theta, 2, log_prior)
  expect_equal(found - found[[1]], expected - expected[[1]])
})

test_that("the mode is that given hyperparameters, and says so", {
  model <- scaled_example(prior_ridge())
  mode <- find_mode(model)
  expect_identical(mode$given, "log_ridge_sd")
  expect_output(print(mode), "given hyperparameters")
  theta <- unname(mode$estimate)
  gradient <- drop(model_evaluate(model, theta)$gradient)
  expect_lt(max(abs(gradient[1:3])), 1e-4)
  twin <- scaled_example(prior_normal(0, exp(theta[[4]])))
  expect_equal(find_mode(twin)$estimate, mode$estimate[1:3], tolerance = 1e-5)
  expect_equal(
    find_mode(twin)$hessian,
    mode$hessian[1:3, 1:3],
    tolerance = 1e-5
  )
})

test_that("a search for it starts and steps as its user says", {
  model <- scaled_example(prior_ridge())
  mode <- find_mode(model, refresh = 0)
  expect_identical(mode$method, "newton")
  for (method in c("newton", "lbfgs")) {
    other <- find_mode(model, method, refresh = 0)
    expect_identical(other$method, method)
    expect_equal(other$estimate, mode$estimate, tolerance = 1e-4)
  }
  steps <- expect_silent(find_mode(model, "adam", max_iter = 2000, refresh = 0))
  expect_identical(steps$method, "adam")
  expect_equal(steps$iterations, 2000)
  expect_lt(steps$distance, 0.1)
  # the first of two searches has little to do
  from <- function(init) find_mode(model, init = init, refresh = 0)
  there <- from(rev(mode$estimate))
  expect_equal(there$estimate, mode$estimate, tolerance = 0.1)
  expect_lt(there$passes, from(c(3, 3, 3, 0))$passes)
  # where all are shrunk to nothing they are held there
  held <- from(c(log_ridge_sd = log(1e-6), a = 0, b = 0, "(Intercept)" = 0))
  expect_lt(held$estimate[["log_ridge_sd"]], log(1e-4))
  expect_lt(abs(held$estimate[["a"]]), 1e-4)
  expect_error(from(c(0, 0, 0)), "`init`", class = "tall_error_input")
})

# One coefficient without an intercept: beta = z tau on a grid of z and log tau.
ridge_grid <- function(x, y) {
  z <- seq(-7, 7, length.out = 400)
  s <- seq(-12, 6, length.out = 400)
  cells <- expand.grid(z = z, s = s)
  beta <- cells$z * exp(cells$s)
  sums <- vapply(
    split(seq_along(beta), rep(1:400, each = 400)),
    function(at) {
      eta <- outer(x, beta[at])
      # log(1 + e^eta), however large
      colSums(y * eta - pmax(eta, 0) - log1p(exp(-abs(eta))))
    },
    numeric(400)
  )
  log_p <- as.double(sums) +
    stats::dnorm(cells$z, log = TRUE) +
    stats::dt(exp(cells$s) / 0.7, 3, log = TRUE) + cells$s
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  list(
    beta = sum(p * beta),
    beta2 = sum(p * beta^2),
    s = sum(p * cells$s),
    s2 = sum(p * cells$s^2)
  )
}

test_that("the posterior of a ridge is that of quadrature, by every kernel", {
  set.seed(4)
  x <- cbind(a = stats::rnorm(50))
  y <- stats::rbinom(50, 1, stats::plogis(0.9 * x))
  expected <- ridge_grid(drop(x), y)
  model <- model_glm(x, y, prior = prior_ridge(3, scale = 0.7))
  kernels <- list(
    NULL,
    kernel_hmc(),
    kernel_mala(),
    kernel_barker(),
    kernel_smh(),
    kernel_smh(proposal = proposal_marginal(), awkward = 1:20)
  )
  for (kernel in kernels) {
    is_slow <- c("mala", "barker", "smh")
    thin <- if (isTRUE(kernel$name %in% is_slow)) 10 else 1
    fit <- sg_sample(
      model,
      kernel,
      iter = 500 + 2500 * thin,
      warmup = 500,
      thin = thin,
      seed = 1,
      refresh = 0
    )
    draws <- posterior::as_draws_array(fit)
    beta <- posterior::extract_variable_matrix(draws, "a")
    s <- log(posterior::extract_variable_matrix(draws, "ridge_sd"))
    expect_mean(beta, expected$beta)
    expect_mean(beta^2, expected$beta2)
    expect_mean(s, expected$s)
    expect_mean(s^2, expected$s2)
  }
})

# Orthogonal columns and a known sigma: given the scales, coefficients are
# independent and normal, so that draws of the prior need weights alone.
test_that("the posterior of each prior is that of importance sampling", {
  set.seed(5)
  n <- 200
  x <- qr.Q(qr(matrix(stats::rnorm(n * 3), n))) * sqrt(n)
  colnames(x) <- c("a", "b", "c")
  y <- drop(x %*% c(1, 0.12, 0)) + stats::rnorm(n)
  b <- drop(crossprod(x, y)) / n
  priors <- list(
    prior_hs(global_scale = 0.05, slab_scale = 1),
    prior_r2d2(0.4, 3, autoscale = FALSE),
    prior_ridge(Inf, scale = 0.5)
  )
  for (prior in priors) {
    drawn <- simulate(prior, 200000, seed = 1, n_coef = 3)
    model <- model_glm(x, y, "gaussian", prior = prior, sigma = 1)
    hyper <- unclass(drawn)[, -(1:3), drop = FALSE]
    v <- 1 / t(mixture_precision(model$mixture, t(hyper)))
    told <- stats::dnorm(rep(b, each = nrow(v)), 0, sqrt(v + 1 / n), log = TRUE)
    log_weight <- rowSums(matrix(told, ncol = 3))
    weight <- exp(log_weight - max(log_weight))
    weight <- weight / sum(weight)
    # on sums, and on a surrogate, whose expansions are exact
    for (kernel in list(NULL, kernel_smh())) {
      fit <- sg_sample(model, kernel, iter = 3000, seed = 1, refresh = 0)
      if (is.null(kernel)) {
        expect_match(fit$plan, "^exact steps on sums")
      } else {
        expect_true(all(fit$chains$acceptance == 1))
      }
      draws <- posterior::as_draws_array(fit)
      compare <- function(variable, f, values) {
        found <- posterior::extract_variable_matrix(draws, variable)
        expected <- sum(weight * values)
        error <- sqrt(sum(weight^2 * (values - expected)^2))
        expect_mean(f(found), expected, error)
      }
      for (j in 1:3) {
        values <- v[, j] / (v[, j] + 1 / n) * b[[j]]
        compare(colnames(x)[[j]], identity, values)
      }
      names <- model$mixture$names
      for (k in seq_along(names)) {
        f <- if (grepl("r2d2", names[[k]])) identity else log
        compare(names[[k]], f, f(hyper[, k]))
      }
    }
  }
})

test_that("draws do not depend on cores, and go on where they were", {
  model <- scaled_example(prior_hs(global_scale = 0.1))
  run <- function(...) {
    sg_sample(model, ..., warmup = 50, chains = 2, seed = 1, refresh = 0)
  }
  one <- run(iter = 150)
  two <- run(iter = 150, cores = 2)
  expect_identical(one$draws, two$draws)
  whole <- run(iter = 250)
  more <- sg_resume(one, iter = 100, refresh = 0)
  expect_equal(
    unclass(posterior::as_draws_array(more)),
    unclass(posterior::as_draws_array(whole)),
    ignore_attr = TRUE
  )
})

test_that("what cannot sample under them says so", {
  model <- scaled_example(prior_hs())
  refused <- function(kernel, ...) {
    expect_error(
      sg_sample(model, kernel, iter = 20, ..., refresh = 0),
      class = "tall_error_unsupported"
    )
  }
  refused(kernel_sgld(0.01))
  refused(kernel_sgbd(0.01))
  refused(kernel_baoab(0.01))
  refused(kernel_psgld(0.01))
  refused(kernel_sghmc(0.01))
  refused(kernel_sgnht(0.01))
  refused(kernel_adam_mcmc(exact = TRUE, momentum_sd = 1))
  expect_snapshot(sg_sample(model, kernel_sgld(0.1), refresh = 0), error = TRUE)
  normal <- scaled_example(prior_hs(), "gaussian")
  expect_snapshot(
    sg_sample(normal, kernel_sgld(0.1), refresh = 0),
    error = TRUE
  )
  expect_snapshot(sg_sample(normal, kernel_smh(), refresh = 0), error = TRUE)
})

test_that("a fit keeps its prior through a file, and its methods work", {
  skip_if_not_installed("rstantools")
  d <- data.frame(a = stats::qnorm(stats::ppoints(60)), b = rep(1:4, 15))
  d$y <- rep(c(0, 1, 1), 20)
  fit <- tall_glm(
    y ~ a + b,
    d,
    family = binomial(),
    prior = prior_hs(global_scale = 0.1, autoscale = TRUE),
    iter = 200,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  again <- readRDS(path)
  more <- sg_resume(again, iter = 50, refresh = 0)
  expect_identical(posterior::ndraws(more), 300L)
  expect_identical(fit$variables, more$variables)
  expect_identical(dim(rstantools::log_lik(again)), c(200L, 60L))
  expect_identical(dim(rstantools::posterior_epred(fit, d[1:3, ])), c(200L, 3L))
  shown <- summary(fit)$table$variable
  expect_true(all(c("hs_global", "hs_local[b]") %in% shown))
  expect_snapshot(rstantools::prior_summary(fit))
})

test_that("shrinkage factors are those of the formula", {
  set.seed(6)
  n <- 100
  x <- qr.Q(qr(cbind(1, matrix(stats::rnorm(n * 2), n))))[, -1] * sqrt(n)
  d <- data.frame(a = x[, 1], b = x[, 2])
  d$y <- d$a + stats::rnorm(n)
  fit <- tall_glm(
    y ~ a + b,
    d,
    prior = prior_hs(global_scale = 0.1),
    sigma = 2,
    iter = 200,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  draws <- posterior::as_draws_matrix(fit)
  kappa <- posterior::as_draws_matrix(shrinkage(fit))
  v <- 1 / (1 / draws[, "hs_slab"]^2 +
    1 / (draws[, "hs_global"] * draws[, "hs_local[a]"])^2)
  expected <- 1 / (1 + n / 4 * v)
  expect_equal(as.double(kappa[, "kappa[a]"]), as.double(expected))
  expect_equal(
    as.double(kappa[, "n_effective"]),
    2 - rowSums(unclass(kappa)[, 1:2]),
    ignore_attr = TRUE
  )
  expect_snapshot(shrinkage(tall_glm(y ~ a, d, seed = 1)), error = TRUE)
  some <- update(fit, variables = "a")
  expect_error(shrinkage(some), class = "tall_error_unsupported")
})
