# Modes within the bounds of prior_uniform(), and the recipe that starts there.

bounded_data <- function(n = 60) {
  withr::with_seed(3, {
    data <- data.frame(x = rnorm(n, mean = 2))
    data$y <- data$x + 1 + rnorm(n)
    data$z <- rbinom(n, 1, plogis(data$x - 1))
  })
  data
}

quick_glm <- function(...) {
  tall_glm(..., iter = 1000, seed = 1, refresh = 0)
}

test_that("the largest point of a quadratic form within bounds is found", {
  withr::local_seed(1)
  for (n in c(1, 2, 5, 30)) {
    for (repeats in 1:20) {
      root <- matrix(rnorm(n * n), n)
      hessian <- crossprod(root) + diag(0.01, n)
      g <- rnorm(n, sd = 3)
      lower <- ifelse(runif(n) < 0.3, -Inf, -rexp(n))
      upper <- ifelse(runif(n) < 0.3, Inf, rexp(n))
      x <- solve_within(hessian, g, lower, upper)
      rest <- g - drop(hessian %*% x)
      expect_true(all(x >= lower & x <= upper))
      free <- x > lower & x < upper
      expect_lt(max(0, abs(rest[free])), 1e-8)
      expect_true(all(rest[x == lower] <= 0))
      expect_true(all(rest[x == upper] >= 0))
    }
  }
  expect_null(solve_within(-diag(2), c(1, 1), c(-1, -1), c(1, 1)))
})

test_that("modes are those of stats::optim() within the bounds", {
  data <- bounded_data()
  x <- cbind(a = 1, x = data$x, u = data$x^2)
  lower <- c(-1, 0.5, -2)
  upper <- c(1, 2, -0.1)
  model <- model_glm(
    x,
    data$z,
    family = "bernoulli",
    prior = prior_uniform(lower, upper)
  )
  expected <- optim(
    (lower + upper) / 2,
    function(b) -sum(plogis(drop(x %*% b) * (2 * data$z - 1), log.p = TRUE)),
    function(b) drop(crossprod(x, plogis(drop(x %*% b)) - data$z)),
    method = "L-BFGS-B",
    lower = lower,
    upper = upper,
    control = list(factr = 10)
  )$par
  for (method in c("newton", "lbfgs")) {
    mode <- find_mode(model, method)
    expect_true(mode$converged)
    expect_equal(unname(coef(mode)), expected, tolerance = 1e-4)
    at_bound <- abs(expected - lower) < 1e-6 | abs(expected - upper) < 1e-6
    expect_identical(mode$at_bound, colnames(x)[at_bound])
    expect_lt(mode$gradient_norm, 1e-3)
  }
  expect_gt(length(mode$at_bound), 0)
  expect_output(print(mode), "at a bound of the prior: `")
  # wide bounds are as none
  wide <- model_glm(x, data$z, prior = prior_uniform(-1e4, 1e4))
  flat <- model_glm(x, data$z, prior = prior_flat())
  expect_equal(coef(find_mode(wide)), coef(find_mode(flat)), tolerance = 1e-6)
  expect_equal(vcov(find_mode(wide)), vcov(find_mode(flat)), tolerance = 1e-4)
  # columns that depend on each other, and outcomes that are separated
  twice <- model_glm(cbind(x, x), data$z, prior = prior_uniform(-3, 3))
  expect_true(find_mode(twice)$converged)
  apart <- cbind(a = 1, s = data$z)
  apart <- find_mode(model_glm(apart, data$z, prior = prior_uniform(-9, 9)))
  expect_identical(apart$at_bound, "s")
  expect_equal(coef(apart)[["s"]], 9, tolerance = 1e-6)
})

test_that("a binding bound is sampled exactly: against a grid", {
  skip_on_cran()
  data <- bounded_data()
  fit <- quick_glm(
    z ~ x,
    data,
    family = binomial(),
    prior = prior_uniform(3, 4),
    prior_intercept = prior_uniform(0, 2)
  )
  # the intercept at the mean of x
  grid <- expand.grid(
    centre = seq(0, 2, length.out = 401),
    slope = seq(3, 4, length.out = 401)
  )
  grid$intercept <- grid$centre - grid$slope * mean(data$x)
  log_density <- 0
  for (i in seq_len(nrow(data))) {
    eta <- grid$intercept + grid$slope * data$x[[i]]
    log_density <- log_density +
      plogis(eta * (2 * data$z[[i]] - 1), log.p = TRUE)
  }
  w <- exp(log_density - max(log_density))
  w <- w / sum(w)
  draws <- draws_matrix(fit)
  expect_true(all(draws[, "x"] >= 3 & draws[, "x"] <= 4))
  for (name in c("(Intercept)", "x")) {
    values <- if (name == "x") grid$slope else grid$intercept
    mean <- sum(w * values)
    sd <- sqrt(sum(w * (values - mean)^2))
    chains <- as.array(fit)[, , name]
    expect_lt(posterior::rhat(chains), 1.02)
    ess <- posterior::ess_bulk(chains)
    expect_gt(ess, 300)
    expect_lt(abs(mean(chains) - mean), 4 * sd / sqrt(ess))
    # kurtosis of an exponential distribution at most
    ess <- posterior::ess_sd(chains)
    expect_lt(abs(sd(chains) / sd - 1), 4 * sqrt(2 / ess))
  }
})

test_that("chains that lean against a bound agree, however many the rows", {
  for (n in c(60, 3000)) {
    data <- bounded_data(n)
    fit <- quick_glm(y ~ x, data, prior = prior_uniform(5, 6))
    table <- posterior::summarise_draws(fit$draws, "rhat")
    expect_lt(max(table$rhat), 1.03)
    expect_gt(mean(fit$chains$acceptance), 0.3)
    # given the slope at its bound
    residual <- data$y - 5 * data$x
    sigma <- sd(residual - mean(residual))
    expect_lt(abs(stats::sigma(fit) / sigma - 1), 4 / sqrt(2 * n) + 0.02)
  }
  # no warning that the posterior is far from normal: it is cut off
  expect_no_warning(
    quick_glm(z ~ x, data, family = binomial(), prior = prior_uniform(3, 4))
  )
})
