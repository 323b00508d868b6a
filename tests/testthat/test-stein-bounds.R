# Posteriors that prior_uniform() cuts off, whose moments are known.

cut_data <- function(n = 40) {
  withr::with_seed(1, {
    x <- stats::rnorm(n)
    list(x = x, y = 0.05 * x + stats::rnorm(n))
  })
}

# One coefficient, positive, with known sigma: a truncated normal.
cut_model <- function(lower = 0, upper = 5) {
  data <- cut_data()
  model_glm(
    cbind(x = data$x),
    data$y,
    family = "gaussian",
    sigma = 1,
    prior = prior_uniform(lower, upper)
  )
}

# Mean and sd of the normal that is cut off, and the mean of what is left.
cut_moments <- function(lower = 0, upper = 5) {
  data <- cut_data()
  sd <- 1 / sqrt(sum(data$x^2))
  mu <- sum(data$x * data$y) * sd^2
  a <- (lower - mu) / sd
  b <- (upper - mu) / sd
  mass <- stats::pnorm(b) - stats::pnorm(a)
  list(
    mu = mu,
    sd = sd,
    mass = mass,
    mean = mu + sd * (stats::dnorm(a) - stats::dnorm(b)) / mass
  )
}

# n exact draws, as of independent chains.
cut_draws <- function(n, lower = 0, upper = 5, seed = 1) {
  m <- cut_moments(lower, upper)
  u <- withr::with_seed(seed, stats::runif(n))
  cbind(x = stats::qnorm(stats::pnorm((lower - m$mu) / m$sd) + u * m$mass) *
    m$sd + m$mu)
}

cut_fit <- function(lower = 0, upper = 5, ...) {
  sg_sample(
    cut_model(lower, upper),
    kernel_barker(0.15),
    gradient_full(),
    keep = c("draws", "gradients"),
    iter = 8000,
    warmup = 500,
    seed = 1,
    refresh = 0,
    ...
  )
}

test_that("draws and gradients agree with the density in coordinates without", {
  data <- cut_data()
  frame <- data.frame(y = data$y, a = data$x + 2, b = rev(data$x))
  x <- stats::model.matrix(y ~ a + b, frame)
  model <- tall_glm(
    y ~ a + b,
    frame,
    sigma = 1,
    prior = prior_uniform(-0.3, 0.4),
    prior_intercept = prior_uniform(-0.5, 0.2),
    kernel = kernel_barker(0.1),
    iter = 10,
    refresh = 0
  )$model
  bounds <- stein_bounds(model)
  expect_identical(bounds$at, 1:3)
  expect_false(is.null(bounds$functional))
  # inside: by the way back
  phi <- rbind(c(0.2, -0.1, 0.6), c(-1, 0.2, -0.3), c(2, -2, 1))
  theta <- bound_points(phi, bounds)
  expect_false(any(is_outside(model, t(theta))))
  expect_close(unbound_points(theta, bounds), phi, tolerance = 1e-10)
  jacobian <- function(phi) {
    slope <- central_difference(
      function(p) drop(bound_points(t(p), bounds)),
      phi
    )
    as.numeric(determinant(matrix(slope, 3))$modulus)
  }
  log_density <- function(phi) {
    at <- drop(bound_points(t(phi), bounds))
    sum(stats::dnorm(data$y, x %*% at, 1, log = TRUE)) + jacobian(phi)
  }
  score <- unbound_gradients(model_gradients(model, theta), theta, bounds)
  for (k in 1:2) {
    numeric <- vapply(1:3, function(j) {
      h <- replace(numeric(3), j, 1e-3)
      (log_density(phi[k, ] + h) - log_density(phi[k, ] - h)) / 2e-3
    }, 0)
    expect_equal(score[k, ], numeric, tolerance = 1e-4)
  }
  # bounds that are far away leave all as it is
  far <- model_glm(
    x,
    data$y,
    family = "gaussian",
    sigma = 1,
    prior = prior_uniform(-1e6, 1e6),
    prior_intercept = prior_uniform(-1e6, 1e6)
  )
  expect_close(
    unbound_points(theta, stein_bounds(far)),
    theta,
    tolerance = 1e-9
  )
  expect_null(stein_bounds(model_glm(x, data$y, family = "gaussian")))
})

test_that("zero variance within bounds is of the truth", {
  truth <- cut_moments()$mean
  fit <- cut_fit()
  expect_lt(abs(coef(fit) - truth), 0.01)
  for (order in 1:2) {
    for (gradient in c("kept", "full")) {
      out <- zero_variance(fit, order = order, gradient = gradient)
      # what was wrong by a third of the mean
      expect_lt(abs(attr(out, "estimates") - truth), 0.003)
      expect_lt(attr(out, "variance_ratio"), 0.3)
    }
  }
  # without mass near them, bounds cost nothing
  wide <- zero_variance(cut_fit(-50, 50))
  expect_close(
    unname(attr(wide, "estimates")),
    cut_moments()$mu,
    tolerance = 1e-3
  )
  expect_lt(attr(wide, "variance_ratio"), 1e-4)
})

test_that("an intercept at the covariates' means is within its bounds", {
  data <- data.frame(y = cut_data()$y + 1, x = cut_data()$x + 3)
  fit <- tall_glm(
    y ~ x,
    data,
    sigma = 1,
    prior = prior_flat(),
    prior_intercept = prior_uniform(1.1, 3),
    kernel = kernel_barker(c(0.4, 0.15)),
    gradient = gradient_full(),
    keep = c("draws", "gradients"),
    iter = 6000,
    seed = 1,
    refresh = 0
  )
  middle <- function(draws) {
    draws[, 1] + draws[, 2] * mean(data$x)
  }
  sd <- 1 / sqrt(nrow(data))
  a <- (1.1 - mean(data$y)) / sd
  truth <- mean(data$y) + sd * stats::dnorm(a) / stats::pnorm(-a)
  out <- zero_variance(fit, middle)
  expect_lt(abs(attr(out, "estimates") - truth), 0.003)
  some <- sg_sample(
    fit$model,
    kernel_barker(0.1),
    variables = "x",
    keep = c("draws", "gradients"),
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_error(zero_variance(some), class = "tall_error_unsupported")
})

test_that("discrepancies of exact draws in bounds are those of exact draws", {
  model <- cut_model()
  scale <- matrix(cut_moments()$sd^2)
  at <- cbind(c(0.05, 0.15, 0.3))
  square <- function(draws, locations = at, ...) {
    fssd(draws, model, locations, covariance = scale, max_draws = Inf, ...)
  }
  squares <- vapply(1:20, function(seed) square(cut_draws(500, seed = seed)), 0)
  se <- stats::sd(squares) / sqrt(20)
  expect_lt(abs(mean(squares)), 4 * se)
  # by the draws as they are, it is there
  exact <- cut_draws(4000)
  plain <- fssd(
    exact,
    model_gradients(model, exact),
    at,
    covariance = scale
  )
  expect_gt(plain, 20 * abs(square(exact)))
  # a fit knows its bounds, with kept gradients, too; prefixes fall
  fit <- cut_fit(thin = 10)
  for (gradient in list(NULL, "kept")) {
    expect_lt(
      ksd(fit, gradient, covariance = scale, diagonal = FALSE, max_draws = Inf),
      0.1
    )
  }
  wrong <- cut_draws(2000) + 0.15
  expect_gt(ksd(wrong, model, covariance = scale, diagonal = FALSE), 0.15)
})

test_that("locations are in the parameters, and within the bounds", {
  model <- cut_model()
  found <- fssd(cut_draws(300) + 0.05, model, 2, optimise = 10, seed = 1)
  places <- attr(found, "locations")
  expect_true(all(places > 0 & places < 5))
  expect_error(
    fssd(cut_draws(300), model, cbind(-1)),
    class = "tall_error_input"
  )
  error <- expect_error(
    ksd(cut_draws(300) - 1, model),
    class = "tall_error_input"
  )
  expect_identical(error$argument, "draws")
  expect_identical(error$expected, c(0, 5))
})

test_that("tuning judges within the bounds", {
  judge <- function(metric) {
    make_judge(
      metric,
      cut_model(),
      list(cores = 1, refresh = 0, seed = 1),
      100,
      if (metric == "ksd") 100 else cbind(c(0.05, 0.2)),
      1,
      -0.5,
      "mode"
    )$score
  }
  for (metric in c("ksd", "fssd")) {
    score <- function(theta) judge(metric)(theta, rep(1, nrow(theta)))
    exact <- cut_draws(1000)
    expect_gt(score(exact + 0.15), 2 * score(exact))
    expect_gt(score(exact / 2), 2 * score(exact))
  }
})
