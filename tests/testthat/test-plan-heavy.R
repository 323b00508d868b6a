# Fixed priors with heavy tails beside learnt scales: where a surrogate's chain
# would stay in a spike, trajectories on all rows.

test_that("the held part of a posterior is that of chains of the law", {
  # standard normal rows about `at`, times Student's prior
  at <- 0.4
  location <- -0.1
  scale <- 0.15
  df <- 2
  log_post <- function(x) {
    -(x - at)^2 / 2 - (df + 1) / 2 * log1p(((x - location) / scale)^2 / df)
  }
  mode <- stats::optimize(log_post, c(-0.3, 0.3), maximum = TRUE, tol = 1e-10)
  theta <- mode$maximum
  z <- (theta - location) / scale
  precision <- (df + 1) / ((df + z^2) * scale^2)
  bend <- 1 + (df + 1) * (df - z^2) / (df + z^2)^2 / scale^2
  # the normal law about the mode, and how many of its draws are accepted
  sd <- 1 / sqrt(1 + precision)
  log_ratio <- function(x) log_post(x) - stats::dnorm(x, theta, sd, log = TRUE)
  draws <- withr::with_seed(1, stats::rnorm(1e5, theta, sd))
  accepted <- function(x) mean(pmin(1, exp(log_ratio(draws) - log_ratio(x))))
  grid <- seq(-6, 6, 0.01)
  weight <- exp(log_post(grid))
  is_held <- vapply(grid, accepted, 0) < 1 / 20
  share <- sum(weight[is_held]) / sum(weight)
  expect_gt(share, 0.05)
  found <- student_share(theta, bend, location, scale, df)
  expect_lt(abs(found - share), 0.01)
  # a wide prior, and rows that say all
  expect_lt(student_share(0.1, 1.05, 0, 5, 3), 1e-6)
  expect_lt(student_share(10, 1e4, 0, 0.1, 1), 1e-6)
})

test_that("a narrow Cauchy prior beside a smooth has the posterior it should", {
  withr::local_seed(2)
  d <- data.frame(x = stats::runif(800), z = stats::rnorm(800))
  d$y <- stats::rbinom(800, 1, stats::plogis(sin(6 * d$x) + 0.8 * d$z))
  fit_with <- function(..., prior = prior_student(1, 0, 0.1)) {
    suppressMessages(tall_gam(
      y ~ s(x, k = 8) + z,
      d,
      binomial(),
      prior = prior,
      seed = 1,
      refresh = 0,
      ...
    ))
  }
  fit <- fit_with()
  expect_match(fit$plan, "trajectories .* heavy tails")
  found <- posterior::summarise_draws(posterior::as_draws_array(fit))
  expect_lt(max(found$rhat), 1.01)
  expect_gt(min(found$ess_bulk), 400)
  # the line of the smooth under the same prior from its draws under a wide one
  # (from exact steps), by their weights: z is far out in both
  wide <- fit_with(prior = prior_student(1, 0, 0.5), iter = 6000)
  draws <- posterior::as_draws_matrix(wide)
  log_weight <- function(b) -log1p((b / 0.1)^2) + log1p((b / 0.5)^2)
  weight <- exp(log_weight(draws[, "s(x).7"]) + log_weight(draws[, "z"]))
  weight <- as.numeric(weight / sum(weight))
  n_eff <- 1 / sum(weight^2)
  expect_gt(n_eff, 500)
  line <- as.numeric(draws[, "s(x).7"])
  mean <- sum(weight * line)
  sd <- sqrt(sum(weight * (line - mean)^2))
  at <- match("s(x).7", found$variable)
  expect_lt(abs(found$mean[at] - mean), 5 * sd / sqrt(500))
  expect_lt(abs(found$sd[at] / sd - 1), 0.15)
  # more of the run, by what it was saved with
  expect_s3_class(sg_resume(fit, iter = 100, refresh = 0), "tall_fit")
})

test_that("a prior as wide as what rows say leaves steps as they were", {
  withr::local_seed(2)
  d <- data.frame(x = stats::runif(400))
  d$y <- stats::rbinom(400, 1, stats::plogis(sin(6 * d$x)))
  fit <- suppressMessages(tall_gam(
    y ~ s(x, k = 5),
    d,
    binomial(),
    prior = prior_student(3, 0, 2.5),
    iter = 200,
    seed = 1,
    refresh = 0
  ))
  expect_match(fit$plan, "^exact steps: in a pilot")
})
