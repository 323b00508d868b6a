# The posterior of a logistic regression under the regularised horseshoe (Piironen &
# Vehtari, 2017), by two samplers that share nothing: rstanarm's, and Gibbs with
# Polya-Gamma variables. Read by references-awkward.R.
#
#   beta_j ~ N(0, tau^2 l_j^2), l_j^2 = c^2 lambda_j^2 / (c^2 + tau^2 lambda_j^2),
#   lambda_j ~ t+(df), tau ~ global_scale t+(global_df),
#   c^2 ~ slab_scale^2 InvGamma(slab_df / 2, slab_df / 2).
#
# The reference is the average of both, weighted by their precision; of log tau and
# log c that of the second.

horseshoe_reference <- function(case, iter = 15000, chains = 2, warmup = 1000) {
  compile_c("polya-gamma.c")
  test_polya_gamma()
  x <- as.matrix(case$data[-1])
  y <- case$data[[1]]
  draws <- vapply(seq_len(chains), function(chain) {
    set.seed(chain)
    horseshoe_chain(x, y, case$shrink, iter + warmup)[-seq_len(warmup), ]
  }, matrix(0, iter, ncol(x) + 3))
  gibbs <- summary_of(aperm(draws, c(1, 3, 2)))
  nuts <- rstanarm_summary(case)
  names <- c("(Intercept)", colnames(x), "log hs_global", "log hs_slab")
  coefficients <- seq_len(ncol(x) + 1)
  say_agreement(gibbs[coefficients, ], nuts)
  reference_table(names, rbind(
    pooled(gibbs[coefficients, ], nuts), gibbs[-coefficients, ]
  ))
}

# columns: mean, sd, quantiles, standard errors of mean and sd over sd; draws:
# iterations x chains x parameters
summary_of <- function(draws) {
  draws <- posterior::as_draws_array(draws)
  s <- as.data.frame(posterior::summarise_draws(
    draws, "mean", "sd",
    function(v) stats::setNames(stats::quantile(v, c(0.05, 0.5, 0.95)), c("a", "b", "c")),
    "mcse_mean", "mcse_sd", "rhat", "ess_mean"
  ))
  cat("worst R-hat", fixed(max(s$rhat), 4), "least ESS", fixed(min(s$ess_mean), 0), "\n")
  numbers <- as.matrix(s[2:8])
  numbers[, 6:7] <- numbers[, 6:7] / numbers[, 2]
  numbers
}

say_agreement <- function(a, b) {
  sd <- (a[, 2] + b[, 2]) / 2
  z <- (a[, 1] - b[, 1]) / sd / sqrt(a[, 6]^2 + b[, 6]^2)
  z_sd <- (a[, 2] / b[, 2] - 1) / sqrt(a[, 7]^2 + b[, 7]^2)
  cat(
    "both samplers: means differ by", fixed(max(abs(a[, 1] - b[, 1]) / sd), 3),
    "sds at most, z", fixed(max(abs(z)), 2), "; sds by",
    percent(max(abs(a[, 2] / b[, 2] - 1))), ", z", fixed(max(abs(z_sd)), 2), "\n"
  )
}

pooled <- function(a, b) {
  share <- b[, 6]^2 / (a[, 6]^2 + b[, 6]^2)
  out <- share * a + (1 - share) * b
  out[, 6:7] <- sqrt(share^2 * a[, 6:7]^2 + (1 - share)^2 * b[, 6:7]^2)
  out
}

# E PG(1, z) = tanh(z / 2) / (2 z), Var by differences of its cumulants
test_polya_gamma <- function() {
  set.seed(1)
  for (z in c(0.01, 1, 4)) {
    v <- .Call("polya_gamma", rep(z, 1e5))
    truth <- tanh(z / 2) / (2 * z)
    variance <- (sinh(z) - z) / (4 * z^3 * cosh(z / 2)^2)
    stopifnot(
      abs(mean(v) - truth) < 4.5 * sd(v) / sqrt(1e5),
      abs(var(v) / variance - 1) < 0.05
    )
  }
}

horseshoe_chain <- function(x, y, prior, iter) {
  means <- colMeans(x)
  x <- cbind(1, sweep(x, 2, means))
  d <- ncol(x) - 1
  half_t <- function(u, df) u - (df + 1) / 2 * log1p(exp(2 * u) / df)
  slab <- function(v) -prior$slab_df / 2 * (v + exp(-v))
  # log sd of coefficients: log(tau l), with a = log tau, u = log lambda
  log_sd <- function(a, u, v) {
    log_c <- v / 2 + log(prior$slab_scale)
    a + u - log1p(exp(2 * (a + u - log_c))) / 2
  }
  of_beta <- function(beta, log_sd) -log_sd - beta^2 * exp(-2 * log_sd) / 2
  global <- function(a) half_t(a - log(prior$global_scale), prior$global_df)
  log_lik <- function(eta) sum(y * eta - pmax(eta, 0) - log1p(exp(-abs(eta))))

  theta <- c(qlogis(mean(y)), numeric(d))
  u <- numeric(d)
  a <- log(prior$global_scale)
  v <- 0
  xy <- crossprod(x, y - 0.5)
  out <- matrix(0, iter, d + 3)
  for (i in seq_len(iter)) {
    # coefficients
    omega <- .Call("polya_gamma", drop(x %*% theta))
    s <- c(log(2.5), log_sd(a, u, v))
    root <- chol(crossprod(x * sqrt(omega)) + diag(exp(-2 * s)))
    theta <- drop(backsolve(
      root, backsolve(root, xy, transpose = TRUE) + rnorm(d + 1)
    ))
    # scales given coefficients
    beta <- theta[-1]
    u <- slices(u, function(u) half_t(u, prior$df) + of_beta(beta, log_sd(a, u, v)))
    a <- slices(a, function(a) global(a) + sum(of_beta(beta, log_sd(a, u, v))))
    v <- slices(v, function(v) slab(v) + sum(of_beta(beta, log_sd(a, u, v))))
    # tau, all tau lambda_j being kept
    move <- slices(0, function(c) global(a + c) + sum(half_t(u - c, prior$df)))
    a <- a + move
    u <- u - move
    # tau, coefficients over their sd being kept
    z <- beta * exp(-log_sd(a, u, v))
    eta_of <- function(a) theta[[1]] + drop(x[, -1] %*% (z * exp(log_sd(a, u, v))))
    a <- slices(a, function(a) global(a) + log_lik(eta_of(a)))
    theta[-1] <- z * exp(log_sd(a, u, v))
    out[i, ] <- c(
      theta[[1]] - sum(means * theta[-1]), theta[-1],
      a, v / 2 + log(prior$slab_scale)
    )
  }
  out
}

# Slice sampling (Neal, 2003) of each element of x, f elementwise.
slices <- function(x, f, width = 2) {
  height <- f(x) - rexp(length(x))
  lower <- x - runif(length(x)) * width
  upper <- lower + width
  while (any(out <- f(lower) > height)) lower[out] <- lower[out] - width
  while (any(out <- f(upper) > height)) upper[out] <- upper[out] + width
  repeat {
    at <- lower + runif(length(x)) * (upper - lower)
    if (all(good <- f(at) > height)) {
      return(at)
    }
    low <- !good & at < x
    high <- !good & at >= x
    lower[low] <- at[low]
    upper[high] <- at[high]
    # what is accepted stays
    lower[good] <- upper[good] <- at[good]
  }
}

# Of the coefficients; rstanarm keeps no draws of scales.
rstanarm_summary <- function(case, iter = 2500, chains = 2) {
  prior <- do.call(rstanarm::hs, case$shrink)
  fit <- rstanarm::stan_glm(
    case$formula, stats::binomial(), case$data,
    prior = prior, prior_intercept = rstanarm::normal(0, 2.5),
    chains = chains, iter = iter, warmup = 500, cores = 1, seed = 1, refresh = 0
  )
  cat("divergences", rstan::get_num_divergent(fit$stanfit), "\n")
  names <- c("(Intercept)", all.vars(case$formula)[-1])
  summary_of(rstan::extract(fit$stanfit, names, permuted = FALSE))
}
