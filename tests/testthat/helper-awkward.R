# Tables of levels with few rows, or without events.

# Levels with these numbers of rows and events; the first is the baseline.
levels_data <- function(n, events) {
  data.frame(
    y = unlist(Map(function(n, k) rep(1:0, c(k, n - k)), n, events)),
    level = factor(rep(letters[seq_along(n)], n))
  )
}

# The posterior of the intercept under normal priors, or a flat one of the
# intercept, the levels integrated out on a grid each.
intercept_by_grid <- function(n, events, scale, is_flat = FALSE) {
  log_lik <- function(eta, g) {
    events[[g]] * stats::plogis(eta, log.p = TRUE) +
      (n[[g]] - events[[g]]) * stats::plogis(-eta, log.p = TRUE)
  }
  a <- seq(-50, 0, length.out = 1001)
  b <- seq(-6 * scale, 6 * scale, length.out = 6001)
  log_b <- stats::dnorm(b, 0, scale, log = TRUE)
  log_p <- log_lik(a, 1)
  if (!is_flat) {
    log_p <- log_p + stats::dnorm(a, 0, scale, log = TRUE)
  }
  for (g in seq_along(n)[-1]) {
    log_p <- log_p + vapply(
      a,
      function(a) {
        l <- log_lik(a + b, g) + log_b
        max(l) + log(sum(exp(l - max(l))))
      },
      0
    )
  }
  p <- exp(log_p - max(log_p))
  mean <- sum(p * a) / sum(p)
  list(mean = mean, sd = sqrt(sum(p * (a - mean)^2) / sum(p)))
}

rare_levels <- list(
  n = c(120, 4000, 3000, 2500, 9, 40),
  events = c(0, 400, 90, 700, 0, 1)
)

expect_intercept_by_grid <- function(fit, exact) {
  draws <- posterior::extract_variable_matrix(fit$draws, "(Intercept)")
  expect_lt(abs(mean(draws) - exact$mean), 4 * posterior::mcse_mean(draws))
  expect_lt(abs(stats::sd(draws) - exact$sd), 4 * posterior::mcse_sd(draws))
  summary <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_lt(max(summary$rhat), 1.01)
  expect_gt(min(summary$ess_bulk), 1000)
}
