# Moments of a posterior by importance sampling, and how far a fit is from them.
# Read by accuracy.R and classes.R.

# n x d standardised t draws, with their log density. Antithetic, whitened exactly
# and with stratified radii: for a normal posterior the first two moments come out
# with almost no Monte Carlo error.
proposal_draws <- function(n, d, df) {
  z <- matrix(rnorm(n / 2 * d), n / 2)
  z <- z %*% solve(chol(crossprod(z) / nrow(z)))
  z <- rbind(z, -z)
  u <- sample((seq_len(n / 2) - runif(n / 2)) / (n / 2))
  z <- z * rep(sqrt(df / qchisq(u, df)), 2)
  list(z = z, log_density = -(df + d) / 2 * log1p(rowSums(z^2) / df))
}

# Self-normalised importance sampling from a t about a mode, in independent
# batches, whose spread is the reference's own error. log_density(theta): of each
# column; natural(theta): what a fit has draws of.
moments_about <- function(
  log_density,
  mode,
  covariance,
  natural = identity,
  df = 20,
  n = 500,
  batches = 8
) {
  root <- t(chol(covariance))
  runs <- replicate(batches, simplify = FALSE, {
    draws <- proposal_draws(n, length(mode), df)
    theta <- mode + root %*% t(draws$z)
    log_weight <- log_density(theta) - draws$log_density
    weight <- exp(log_weight - max(log_weight))
    weight <- weight / sum(weight)
    theta <- natural(theta)
    mean <- drop(theta %*% weight)
    list(
      mean = mean,
      sd = sqrt(drop((theta - mean)^2 %*% weight)),
      efficiency = 1 / (n * sum(weight^2))
    )
  })
  summarise_batches(runs, n * batches)
}

# runs: list(mean, sd, efficiency) each
summarise_batches <- function(runs, draws) {
  means <- sapply(runs, function(r) r$mean)
  sds <- sapply(runs, function(r) r$sd)
  sd <- rowMeans(sds)
  error <- function(x) apply(x, 1, stats::sd) / sqrt(length(runs))
  list(
    mean = rowMeans(means),
    sd = sd,
    error_mean = error(means) / sd,
    error_sd = error(sds) / sd,
    efficiency = mean(sapply(runs, function(r) r$efficiency)),
    draws = draws,
    how = "importance sampling"
  )
}

compare <- function(fit, reference) {
  draws <- posterior::as_draws_matrix(fit$draws)
  sd <- apply(draws, 2, stats::sd)
  list(
    mean = unname((colMeans(draws) - reference$mean) / reference$sd),
    sd = unname(sd / reference$sd - 1)
  )
}

# Errors over their standard errors, the reference's own included: what is left
# where draws are exact.
scores <- function(fit, reference) {
  off <- compare(fit, reference)
  error <- function(f) unname(apply(fit$draws, 3, f)) / reference$sd
  c(
    off$mean / sqrt(error(posterior::mcse_mean)^2 + reference$error_mean^2),
    off$sd / sqrt(error(posterior::mcse_sd)^2 + reference$error_sd^2)
  )
}

is_exact <- function(fit) all(summary(fit)$table$sd_bias %in% 0)

smallest_ess <- function(fit) {
  draws <- fit$draws
  each <- apply(unclass(draws), 3, function(x) posterior::ess_mean(x))
  min(each)
}

describe <- function(name, label, d, comparison, target_mean, target_sd, ...) {
  worst <- max(abs(comparison$mean))
  worst_sd <- max(abs(comparison$sd))
  data.frame(
    problem = name,
    run = label,
    "mean, worst" = fixed(worst, 3),
    "mean, median" = fixed(median(abs(comparison$mean)), 3),
    "sd, worst" = percent(worst_sd),
    "sd, median" = percent(median(abs(comparison$sd))),
    ...,
    met = yes_no(worst <= target_mean && worst_sd <= target_sd),
    check.names = FALSE
  )
}
