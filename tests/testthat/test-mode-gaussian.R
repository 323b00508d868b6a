# Gaussian models whose coefficients can fit every response. Oracle: with normal
# priors y is normal given sigma, so that the posterior of log sigma is known on
# a grid, and that of the coefficients given it.

wide_data <- function(n = 50, p = 60) {
  withr::with_seed(1, {
    x <- matrix(rnorm(n * p), n)
    y <- drop(x[, 1:3] %*% c(1, -1, 0.5)) + 2 * rnorm(n)
  })
  list(x = x, y = y)
}

# The log density of log sigma, up to a constant.
exact_log_density <- function(s, x, y, prior_sd, rate) {
  vapply(s, function(s) {
    covariance <- exp(2 * s) * diag(nrow(x)) + prior_sd^2 * tcrossprod(x)
    root <- chol(covariance)
    z <- backsolve(root, y, transpose = TRUE)
    -sum(log(diag(root))) - sum(z^2) / 2 + s - rate * exp(s)
  }, 0)
}

test_that("the density of log sigma is that of the response", {
  data <- wide_data()
  s <- log(c(1e-3, 0.1, 0.5, 1, 2, 5))
  for (columns in c(60, 50, 7)) {
    x <- data$x[, seq_len(columns)]
    model <- model_glm(
      x,
      data$y,
      family = "gaussian",
      prior = prior_normal(0, 2),
      prior_aux = prior_exponential(0.7)
    )
    parts <- gaussian_parts(model, 1)
    found <- vapply(s, parts$log_density, 0)
    expected <- exact_log_density(s, x, data$y, 2, 0.7)
    expect_equal(found - found[[4]], expected - expected[[4]], tolerance = 1e-6)
    precision <- crossprod(x) / 4 + diag(columns) / 4
    expect_equal(parts$precision(log(2)), precision)
    mean <- drop(solve(precision, crossprod(x, data$y) / 4))
    expect_equal(parts$mean(log(2)), mean, tolerance = 1e-6)
    expect_identical(parts$fits_all, columns >= 50)
  }
})

test_that("more columns than rows are sampled where the prior tells sigma", {
  skip_on_cran()
  data <- wide_data()
  frame <- data.frame(data$x, y = data$y)
  fit <- expect_no_warning(tall_glm(
    y ~ . - 1,
    frame,
    prior = prior_normal(0, 0.4),
    prior_aux = prior_exponential(0.5),
    iter = 4000,
    seed = 1,
    refresh = 0
  ))
  s <- seq(log(1e-4), log(50), by = 0.01)
  w <- exp(exact_log_density(s, data$x, data$y, 0.4, 0.5))
  w <- w / sum(w)
  log_sigma <- log(draws_matrix(fit)[, "sigma"])
  chains <- log(posterior::extract_variable_matrix(fit$draws, "sigma"))
  ess <- posterior::ess_bulk(chains)
  expect_gt(ess, 400)
  mean <- sum(w * s)
  sd <- sqrt(sum(w * (s - mean)^2))
  expect_lt(abs(mean(log_sigma) - mean), 4 * sd / sqrt(ess))
  expect_lt(abs(sd(log_sigma) / sd - 1), 4 / sqrt(2 * ess))
  # coefficients: their mean is that of their means given sigma
  at <- which(w > 1e-6)
  given <- vapply(at, function(k) {
    v <- crossprod(data$x) * exp(-2 * s[[k]]) + diag(60) / 0.16
    drop(solve(v, crossprod(data$x, data$y) * exp(-2 * s[[k]])))
  }, numeric(60))
  beta <- draws_matrix(fit)[, 1:60]
  error <- abs(colMeans(beta) - drop(given %*% w[at])) / apply(beta, 2, sd)
  ess <- apply(as.array(fit)[, , 1:60], 3, posterior::ess_mean)
  expect_lt(max(error * sqrt(ess)), 4.5)
})

test_that("where nothing tells sigma from the coefficients, that is said", {
  data <- wide_data()
  frame <- data.frame(data$x, y = data$y)
  run <- function(formula, data, ...) {
    tall_glm(
      formula,
      data,
      ...,
      kernel = kernel_mala(),
      iter = 100,
      seed = 1,
      refresh = 0
    )
  }
  expect_snapshot(fit <- run(y ~ ., frame))
  expect_true(all(is.finite(draws_matrix(fit))))
  two <- data.frame(x = c(1, 2), y = c(1, 3))
  two <- suppressWarnings(run(y ~ x, two))
  expect_gt(median(draws_matrix(two)[, "sigma"]), 0.1)
  expect_warning(run(y ~ 1, data.frame(y = 3)), class = "tall_warning_recipe")

  model <- model_glm(data$x, data$y, family = "gaussian")
  expect_snapshot(error = TRUE, find_mode(model))
  # as unfinished as ever
  fine <- model_glm(data$x[, 1:3], data$y, family = "gaussian")
  expect_warning(find_mode(fine, max_iter = 2), "did not converge in 2")
})

test_that("sigma of a posterior that is not proper is named", {
  line <- data.frame(x = seq(0, 1, length.out = 40))
  run <- function(formula, data, ...) {
    tall_glm(formula, data, ..., iter = 10, refresh = 0)
  }
  expect_snapshot(error = TRUE, {
    run(y ~ x, transform(line, y = 3))
    run(y ~ 1, data.frame(y = 3), prior_aux = prior_flat())
  })
  for (scale in c(1e-6, 1, 1e9)) {
    exact <- transform(line, y = scale * (2 - 3 * x))
    expect_error(run(y ~ x, exact), "fit the response exactly")
  }
  # more responses than coefficients, though they can fit all
  again <- data.frame(x = c(1, 1, 2), y = c(1, 1, 3))
  expect_error(run(y ~ x, again), "fit the response exactly")
  # small noise is noise
  noisy <- transform(line, y = 2 - 3 * x + 1e-8 * rep(c(-1, 1), 20))
  fit <- run(y ~ x, noisy, seed = 1)
  expect_lt(abs(log(sigma(fit) / 1e-8)), 0.5)
  # columns that depend on each other are another thing
  expect_error(
    run(y ~ x + I(2 * x), noisy, prior = prior_flat()),
    "depend on each other"
  )
})
