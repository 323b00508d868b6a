# Moments of draws under priors with hyperparameters, and their references.

# Of coordinates: natural scales may have no mean.
moments_of <- function(model, kernel, seed, n_draw) {
  fit <- sg_sample(
    model,
    kernel,
    iter = 300 + n_draw,
    warmup = 300,
    seed = seed,
    refresh = 0
  )
  c(list(fit = fit), moments_at(fit$unconstrained))
}

moments_at <- function(at) {
  list(
    mean = apply(at, 3, mean),
    sd = apply(at, 3, stats::sd),
    error = apply(at, 3, posterior::mcse_mean),
    ess = apply(at, 3, posterior::ess_mean)
  )
}

# other: of weighted_moments(), which has to be worth some draws.
expect_moments_near <- function(ours, other) {
  testthat::expect_gt(min(other$ess), 1000)
  z <- (ours$mean - other$mean) / sqrt(ours$error^2 + other$error^2)
  testthat::expect_lt(max(abs(z)), 4.5)
  error <- sqrt(1 / ours$ess + 1 / other$ess)
  testthat::expect_lt(max(abs(log(ours$sd / other$sd)) / error), 6)
}

# Moments of a model whose prior has hyperparameters, by importance sampling:
# hyperparameters from a Student distribution with the moments of `draws`, half
# as wide again, and coefficients given these from one with the likelihood's
# expansion about their mean. The weights are by the model's own density at all
# rows, so that nothing depends on `draws` but how many points count. The steps
# that are tested have no part in it, and no chain has to find its way through a
# funnel.
#
# draws: iterations x chains x coordinates, of coordinates. Returns the mean and
# sd of each coordinate, the error of the mean, and how many independent draws
# the points are worth.
weighted_moments <- function(model, draws, n = 10000, weight = 1, seed = 1) {
  withr::local_seed(seed)
  at <- matrix(draws, ncol = dim(draws)[[3]])
  own <- seq_len(n_seen(model))
  hyper <- setdiff(seq_len(ncol(at)), own)
  phi <- student_points(
    n,
    colMeans(at[, hyper, drop = FALSE]),
    1.5 * chol(stats::cov(at[, hyper, drop = FALSE])),
    df = 4
  )
  mean <- colMeans(at)
  log_lik <- function(theta) {
    model_evaluate(model, theta, "likelihood", weight = weight)
  }
  # by differences of the gradient
  step <- 1e-4 * apply(at[, own], 2, stats::sd)
  h <- vapply(own, FUN.VALUE = numeric(length(own)), function(j) {
    move <- replace(0 * mean, j, step[[j]])
    ends <- log_lik(cbind(mean - move, mean + move))$gradient[own, ]
    (ends[, 1] - ends[, 2]) / (2 * step[[j]])
  })
  # what is proposed from has to be a density, whatever rounding does
  parts <- eigen((h + t(h)) / 2, symmetric = TRUE)
  values <- pmax(parts$values, 1e-9 * max(parts$values))
  h <- parts$vectors %*% (values * t(parts$vectors))
  score <- drop(log_lik(mean)$gradient)[own] + drop(h %*% mean[own])
  precision <- precision_at(model$mixture, t(phi$x))
  theta <- matrix(0, ncol(at), n)
  log_q <- phi$log_density
  for (k in seq_len(n)) {
    total <- h
    covered <- cbind(model$mixture$at, model$mixture$at)
    total[covered] <- total[covered] + precision[, k]
    root <- chol(total)
    centre <- backsolve(root, backsolve(root, score, transpose = TRUE))
    spread <- 1.1 * t(backsolve(root, diag(ncol(h))))
    beta <- student_points(1, centre, spread, df = 20)
    theta[, k] <- c(beta$x, phi$x[k, ])
    log_q[[k]] <- log_q[[k]] + beta$log_density
  }
  log_w <- model_evaluate(model, theta, weight = weight)$log_density - log_q
  w <- exp(log_w - max(log_w))
  w <- w / sum(w)
  mean <- drop(theta %*% w)
  away <- theta - mean
  list(
    mean = mean,
    sd = sqrt(drop(away^2 %*% w)),
    error = sqrt(drop(away^2 %*% w^2)),
    ess = rep(1 / sum(w^2), nrow(theta))
  )
}

# n points of a multivariate Student distribution, and the log density at each
# but for what all have in common. root: triangular, its scale is
# crossprod(root).
student_points <- function(n, centre, root, df) {
  d <- length(centre)
  z <- matrix(stats::rnorm(n * d), n) / sqrt(stats::rchisq(n, df) / df)
  list(
    x = sweep(z %*% root, 2, centre, "+"),
    log_density = -(df + d) / 2 * log1p(rowSums(z^2) / df) -
      sum(log(abs(diag(root))))
  )
}
