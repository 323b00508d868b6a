# Fixed priors with heavy tails beside learnt scales: where a surrogate's chain
# would stay in a spike, trajectories on all rows.

test_that("what of a posterior chains of the law seldom leave is found", {
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
  is_stuck <- vapply(grid, accepted, 0) < 1 / 20
  share <- sum(weight[is_stuck]) / sum(weight)
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

# b next to 0 under a Cauchy prior of scale s, a normal likelihood:
# P(|b| < 10 s).
share_near <- function(at, se, s) {
  b <- seq(-15 * se, at + 15 * se, length.out = 2e5 + 1)
  w <- stats::dcauchy(b, 0, s) * stats::dnorm(b, at, se)
  sum(w[abs(b) < 10 * s]) / sum(w)
}

test_that("sums over the rows of a Gaussian response are gone through, too", {
  d <- withr::with_seed(3, {
    d <- data.frame(x = stats::runif(2000), q = stats::rnorm(2000))
    d$y <- sin(3 * d$x) + stats::rnorm(2000)
    # with 0.065 at most likely, three standard errors
    b <- stats::coef(stats::lm(y ~ q + poly(x, 5), d))[["q"]]
    d$y <- d$y + (0.065 - b) * d$q
    d
  })
  fit <- tall_gam(
    y ~ q + s(x, k = 6),
    d,
    prior = prior_student(1, 0, 0.002),
    seed = 1,
    refresh = 0
  )
  expect_match(fit$plan, "sums .* slices with the coefficients integrated out")
  expect_lt(fit$passes, 4)
  q <- posterior::extract_variable_matrix(fit$draws, "q")
  near <- abs(q) < 0.02
  se <- summary(stats::lm(y ~ q + poly(x, 5), d))$coefficients["q", 2]
  error <- 0.5 / sqrt(posterior::ess_mean(near + 0))
  expect_lt(error, 0.02)
  expect_lt(abs(mean(near) - share_near(0.065, se, 0.002)), 4 * error + 0.02)
  more <- sg_resume(fit, iter = 100, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 1100L)
})

test_that("so it is beside scales of single coefficients", {
  d <- withr::with_seed(4, {
    d <- data.frame(matrix(stats::rnorm(4 * 2000), 2000))
    d$y <- 0.5 * d$X1 + stats::rnorm(2000)
    # with 0.065 at most likely, three standard errors
    d$y <- d$y - mean(d$y) + 0.065
    d
  })
  fit <- tall_glm(
    y ~ .,
    d,
    prior = prior_hs(),
    prior_intercept = prior_student(1, 0, 0.002),
    iter = 1000,
    seed = 1,
    refresh = 0
  )
  expect_match(fit$plan, "trajectories on sums .* heavy tails")
  expect_lt(fit$passes, 4)
  x <- colMeans(d[1:4])
  draws <- posterior::as_draws_matrix(fit$draws)
  at <- drop(draws[, c("(Intercept)", names(x))] %*% c(1, x))
  near <- abs(at) < 0.02
  chains <- matrix(near + 0, ncol = 4)
  error <- 0.5 / sqrt(posterior::ess_mean(chains))
  expect_lt(error, 0.03)
  se <- summary(stats::lm(y ~ ., d))$sigma / sqrt(2000)
  expect_lt(abs(mean(near) - share_near(0.065, se, 0.002)), 4 * error)
})

test_that("a prior of the centred intercept is looked at where it is", {
  withr::local_seed(1)
  d <- data.frame(a = stats::rnorm(1000) + 1000, b = stats::rnorm(1000))
  d$y <- stats::rbinom(1000, 1, stats::plogis(0.5 + 0.1 * d$b))
  fit <- tall_glm(
    y ~ a + b,
    d,
    stats::binomial(),
    prior = prior_hs(),
    prior_intercept = prior_student(3, 0, 2.5),
    iter = 200,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "smh")
})

test_that("where trajectories would take too long a warning says so", {
  withr::local_seed(2)
  d <- data.frame(x = stats::runif(3000), z = stats::rnorm(3000))
  d$y <- stats::rbinom(3000, 1, stats::plogis(sin(6 * d$x) + 0.1 * d$z))
  run <- function(data, ...) {
    suppressMessages(tall_gam(
      y ~ s(x, k = 5) + z,
      data,
      stats::binomial(),
      prior = prior_student(1, 0, 0.005),
      iter = 200,
      seed = 1,
      refresh = 0,
      ...
    ))
  }
  local_settings(recipe = list(far_seconds = 0.1))
  expect_warning(run(d), "spike", class = "tall_warning_prior")
  local_passes(1000, 1024)
  expect_warning(run(stream_of(d, 700)), class = "tall_warning_prior")
  # in time they are brought to memory for it
  local_settings(recipe = list(far_seconds = 600))
  fit <- run(stream_of(d, 700))
  expect_match(fit$plan, "trajectories on all rows")
})
