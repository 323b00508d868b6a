# A fit that holds given draws and gradients: what zero_variance() reads.
fake_fit <- function(draws, gradients, model, n_chain = 2) {
  fit <- sg_sample(
    model,
    kernel_sgld(1e-4),
    iter = 4,
    warmup = 0,
    chains = n_chain,
    seed = 1,
    refresh = 0
  )
  shape <- c(nrow(draws) / n_chain, n_chain, ncol(draws))
  names <- list(NULL, NULL, model$variables)
  fit$draws <- posterior::as_draws_array(array(draws, shape, names))
  fit$gradients <- array(gradients, shape, names)
  fit
}

zvcv_estimates <- function(values, draws, gradients, order) {
  options <- list(polyorder = order, regul_reg = FALSE)
  as.numeric(
    ZVCV::zvcv(values, draws, gradients, options = options)$expectation
  )
}

correlated_target <- function() {
  target <- target_correlated()
  target$covariance <- solve(target$precision)
  target
}

# Draws of the posterior itself, and exact scores.
exact_fit <- function(target, n = 400, noise = 0, seed = 1) {
  withr::local_seed(seed)
  d <- length(target$mean)
  z <- matrix(rnorm(n * d), n) %*% chol(target$covariance)
  draws <- sweep(z, 2, target$mean, "+")
  gradients <- -z %*% target$precision + noise * matrix(rnorm(n * d), n)
  fake_fit(draws, gradients, target$model)
}

test_that("order 1 leaves means of a normal posterior without error", {
  target <- correlated_target()
  out <- zero_variance(exact_fit(target))
  expect_s3_class(out, "draws_matrix")
  expect_identical(posterior::variables(out), target$model$variables)
  expect_identical(posterior::nchains(out), 2L)
  expect_close(attr(out, "estimates"), target$mean)
  expect_close(colMeans(unclass(out)), attr(out, "estimates"))
  expect_lt(max(attr(out, "variance_ratio")), 1e-20)
  expect_identical(attr(out, "method"), "least squares")
})

test_that("order 2 leaves second moments of a normal posterior without error", {
  target <- correlated_target()
  products <- function(x) cbind(x[, 1]^2, x[, 2]^2, xy = x[, 1] * x[, 2])
  fit <- exact_fit(target)
  out <- zero_variance(fit, products, order = 2)
  m <- target$mean
  truth <- target$covariance + tcrossprod(m)
  expect_close(attr(out, "estimates"), truth[c(1, 4, 2)])
  expect_lt(max(attr(out, "variance_ratio")), 1e-20)
  # order 1 cannot
  expect_gt(min(attr(zero_variance(fit, products), "variance_ratio")), 0.01)
})

test_that("the control variates have mean zero, those of order 2 included", {
  # not normal: y = log of a gamma(4) variable, log density 4 y - exp(y)
  withr::local_seed(9)
  n <- 4e5
  theta <- cbind(log(rgamma(n, 4)), log(rgamma(n, 4)))
  columns <- stein_columns(theta, 4 - exp(theta), 2)
  expect_identical(ncol(columns), 5L)
  z <- colMeans(columns) / (apply(columns, 2, sd) / sqrt(n))
  expect_lt(max(abs(z)), 5)
})

test_that("noise in the gradients costs what theorem 2 says", {
  # one normal parameter with precision 1, noise variance tau^2: the ratio is
  # tau^2 / (1 + tau^2)
  model <- target_normal(1)
  target <- list(
    mean = 0,
    precision = matrix(1),
    covariance = matrix(1),
    model = model
  )
  n <- 20000
  out <- zero_variance(exact_fit(target, n = n, noise = 0.5))
  ratio <- 0.25 / 1.25
  # R^2 has standard error 2 sqrt(R^2) (1 - R^2) / sqrt(n)
  se <- 2 * sqrt(1 - ratio) * ratio / sqrt(n)
  expect_lt(abs(attr(out, "variance_ratio") - ratio), 5 * se)
})

test_that("estimates have less error on a posterior that is not normal", {
  data <- withr::with_seed(10, {
    x <- cbind("(Intercept)" = 1, a = rnorm(500))
    list(x = x, y = rbinom(500, 1, plogis(x %*% c(0.5, 1))))
  })
  model <- model_glm(data$x, data$y)
  sample <- function(seed) {
    sg_sample(
      model,
      kernel_mala(0.012),
      iter = 700,
      warmup = 200,
      chains = 2,
      keep = c("draws", "gradients"),
      seed = seed,
      refresh = 0
    )
  }
  fits <- lapply(1:10, sample)
  plain <- vapply(fits, coef, numeric(2))
  reduced <- lapply(fits, zero_variance)
  twice <- lapply(fits, zero_variance, order = 2)
  estimates <- function(x) vapply(x, attr, numeric(2), "estimates")
  spread <- function(x) apply(x, 1, var)
  # both are unbiased; F(9, 9) stays below 10 but once in a thousand
  expect_true(all(spread(plain) > 10 * spread(estimates(reduced))))
  expect_true(all(spread(plain) > 20 * spread(estimates(twice))))
  shift <- abs(rowMeans(plain) - rowMeans(estimates(reduced)))
  expect_true(all(shift < 5 * sqrt(spread(plain) / 10)))
  # exact gradients again
  full <- zero_variance(fits[[1]], gradient = "full")
  expect_close(full, reduced[[1]])
})

test_that("it works on the parameters as they were sampled", {
  data <- withr::with_seed(11, {
    x <- cbind("(Intercept)" = 1, a = rnorm(300))
    list(x = x, y = drop(x %*% c(1, 2)) + 0.7 * rnorm(300))
  })
  model <- model_glm(data$x, data$y, family = "gaussian")
  fit <- sg_sample(
    model,
    kernel_mala(0.002),
    iter = 2000,
    keep = c("draws", "gradients"),
    chains = 2,
    seed = 1,
    refresh = 0
  )
  out <- zero_variance(fit, order = 2)
  expect_identical(posterior::variables(out), c("(Intercept)", "a", "sigma"))
  expect_true(all(attr(out, "variance_ratio") < 0.02))
  se <- posterior::summarise_draws(fit$draws, posterior::mcse_mean)[[2]]
  expect_true(all(abs(attr(out, "estimates") - coef(fit)) < 5 * se))
})

test_that("few draws are shrunk, and it is said", {
  target <- correlated_target()
  fit <- exact_fit(target, n = 20)
  expect_no_message(zero_variance(fit))
  expect_snapshot(out <- zero_variance(fit, order = 2))
  expect_identical(attr(out, "method"), "Ledoit-Wolf")
  expect_true(all(attr(out, "variance_ratio") < 1))
  # with more draws the shrinkage goes away
  withr::local_seed(1)
  x <- matrix(rnorm(5000), ncol = 5) %*% matrix(runif(25), 5)
  x <- sweep(x, 2, colMeans(x))
  w <- rep(1 / 1000, 1000)
  expect_lt(
    norm(ledoit_wolf(x, w) - crossprod(x) / 1000),
    0.05 * norm(crossprod(x) / 1000)
  )
  # fewer draws than columns: still invertible
  expect_true(all(eigen(ledoit_wolf(x[1:3, ], rep(1 / 3, 3)))$values > 0))
  # equal variances and no correlation: all of it is noise
  y <- matrix(rnorm(30 * 20), 30)
  y <- sweep(y, 2, colMeans(y))
  s <- ledoit_wolf(y, rep(1 / 30, 30))
  expect_lt(
    max(abs(s[upper.tri(s)])),
    0.2 * max(abs(crossprod(y)[upper.tri(s)] / 30))
  )
})

test_that("weights are used", {
  target <- correlated_target()
  fit <- exact_fit(target, n = 100)
  withr::local_seed(12)
  fit$weights <- array(runif(100), c(50, 2, 1))
  out <- zero_variance(fit, function(x) x[, 1]^2, order = 2)
  truth <- target$covariance[1, 1] + target$mean[[1]]^2
  expect_close(attr(out, "estimates"), truth)
})

test_that("ZVCV agrees", {
  skip_if_not_installed("ZVCV")
  target <- correlated_target()
  fit <- exact_fit(target, n = 300, noise = 1, seed = 2)
  x <- as.matrix(fit)
  g <- matrix(fit$gradients, ncol = 2)
  f <- function(x) cbind(exp(x[, 1]), x[, 2]^3)
  for (order in 1:2) {
    theirs <- zvcv_estimates(f(x), x, g, order)
    ours <- attr(zero_variance(fit, f, order = order), "estimates")
    expect_equal(unname(ours), theirs, tolerance = 1e-8)
  }
})

test_that("ZVCV agrees on the parameters as they were sampled", {
  skip_if_not_installed("ZVCV")
  data <- withr::with_seed(13, {
    x <- cbind("(Intercept)" = 1, a = rnorm(300))
    list(x = x, y = drop(x %*% c(1, 2)) + 0.7 * rnorm(300))
  })
  fit <- sg_sample(
    model_glm(data$x, data$y, family = "gaussian"),
    kernel_mala(0.002),
    iter = 400,
    keep = c("draws", "gradients"),
    chains = 2,
    seed = 1,
    refresh = 0
  )
  # sigma is averaged, log_sigma is what the gradients are of
  natural <- as.matrix(fit)
  sampled <- cbind(natural[, 1:2], log(natural[, "sigma"]))
  g <- matrix(fit$gradients, ncol = 3)
  for (order in 1:2) {
    theirs <- zvcv_estimates(natural, sampled, g, order)
    ours <- attr(zero_variance(fit, order = order), "estimates")
    expect_equal(unname(ours), theirs, tolerance = 1e-8)
    # and is not what the draws alone say
    expect_gt(max(abs(ours - colMeans(natural))), 1e-4)
    wrong <- zvcv_estimates(natural, natural, g, order)
    if (order == 2) expect_gt(max(abs(wrong - theirs)), 1e-6)
  }
})

test_that("gradients of some parameters serve what depends on them", {
  # the first of two correlated variables, by its own gradient
  target <- correlated_target()
  n <- 400
  withr::local_seed(4)
  z <- matrix(rnorm(n * 2), n) %*% chol(target$covariance)
  fit <- fake_fit(
    sweep(z, 2, target$mean, "+"),
    -z %*% target$precision,
    target$model
  )
  part <- fit
  part$variables <- fit$variables[1]
  part$control$record <- 1L
  part$draws <- fit$draws[, , 1]
  part$gradients <- fit$gradients[, , 1, drop = FALSE]
  out <- zero_variance(part)
  draws <- as.numeric(part$draws)
  slope <- -as.numeric(part$gradients) / 2
  expected <- mean(draws) - cov(draws, slope) / var(slope) * mean(slope)
  expect_close(attr(out, "estimates"), expected)
  ratio <- 1 - cor(draws, slope)^2
  expect_close(attr(out, "variance_ratio"), ratio)
  expect_identical(posterior::variables(out), fit$variables[1])
})

test_that("bad input is named", {
  model <- target_normal(c(1, 2))
  fit <- sg_sample(
    model,
    kernel_sgld(0.1),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_snapshot(error = TRUE, zero_variance(fit))
  fit$gradients <- plain_draws(fit)
  expect_snapshot(error = TRUE, zero_variance(fit, function(x) 1:3))
  expect_snapshot(error = TRUE, zero_variance(fit, "mean"))
  expect_snapshot(error = TRUE, zero_variance(fit, order = 3))
  expect_snapshot(error = TRUE, zero_variance(1))
  wide <- matrix(0, 10, 200)
  expect_snapshot(error = TRUE, stein_columns(wide, wide, 2))
})
