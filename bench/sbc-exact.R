# Where the truth lies in the posterior itself, by importance sampling in R's own
# densities: what the ranks of sbc.R would be without a sampler. Whether scores
# that are away from 0 come from the draws or from the data sets shows here.
# Read by sbc.R, after moments.R.

# By the names of sbc_aux_problems(): density(y, eta, aux), log densities of a row
# under draws, aux natural; log_prior(aux).
exact_densities <- list(
  neg_binomial_2 = list(
    density = function(y, eta, aux) {
      dnbinom(y, size = aux[[1]], mu = exp(eta), log = TRUE)
    },
    log_prior = function(aux) -aux[[1]]
  ),
  Gamma = list(
    density = function(y, eta, aux) {
      dgamma(y, aux[[1]], aux[[1]] / exp(eta), log = TRUE)
    },
    log_prior = function(aux) -aux[[1]]
  ),
  student = list(
    density = function(y, eta, aux) {
      dt((y - eta) / aux[[1]], 4, log = TRUE) - log(aux[[1]])
    },
    log_prior = function(aux) -aux[[1]]
  ),
  beta = list(
    density = function(y, eta, aux) {
      p <- plogis(eta)
      dbeta(y, aux[[1]] * p, aux[[1]] * (1 - p), log = TRUE)
    },
    log_prior = function(aux) -aux[[1]] / 200
  ),
  `student, df sampled` = list(
    density = function(y, eta, aux) {
      dt((y - eta) / aux[[1]], aux[[2]], log = TRUE) - log(aux[[1]])
    },
    log_prior = function(aux) {
      -aux[[1]] + dgamma(aux[[2]], 2, 0.1, log = TRUE)
    },
    lower = c(0, 1)
  )
)

# P(parameter < theta | y) of each parameter. set: theta, x, y, model; `scale` of
# the coefficients' normal priors. Draws are t about the mode, in the logs of what
# aux is above its lower bound.
exact_shares <- function(set, exact, scale, n = 400) {
  d <- ncol(set$x)
  mode <- tallbayes::find_mode(set$model)
  draws <- proposal_draws(n, length(mode$estimate), 10)
  at <- mode$estimate + t(chol(vcov(mode))) %*% t(draws$z)
  beta <- at[seq_len(d), , drop = FALSE]
  logs <- at[-seq_len(d), , drop = FALSE]
  aux <- exp(logs) + (if (is.null(exact$lower)) 0 else exact$lower)
  # draws x rows, so that aux is recycled over rows
  eta <- t(set$x %*% beta)
  y <- rep(set$y, each = n)
  columns <- lapply(seq_len(nrow(aux)), function(k) aux[k, ])
  log_lik <- exact$density(y, as.vector(eta), columns)
  log_weight <- rowSums(matrix(log_lik, n)) - colSums(beta^2 / (2 * scale^2)) +
    exact$log_prior(columns) + colSums(logs) - draws$log_density
  weight <- exp(log_weight - max(log_weight))
  below <- rbind(beta, aux) < set$theta
  list(
    # the quotient may be above 1 by rounding
    share = pmin(1, drop(below %*% weight) / sum(weight)),
    efficiency = sum(weight)^2 / sum(weight^2) / n
  )
}

# Mean of the score that independent draws give a share.
expected_scores <- function(share) {
  rank <- 0:sbc_draws
  at <- qnorm((rank + 0.5) / (sbc_draws + 1))
  vapply(share, function(u) sum(dbinom(rank, sbc_draws, u) * at), 0)
}

# Of the data sets of sbc_runs(): scores without a sampler, parameters x
# replications. Efficiency: the least of any data set.
exact_scores <- function(problem, exact, n_rep) {
  scale <- c(0.5, 0.25, 0.25, 0.25)
  parts <- lapply(seq_len(n_rep), function(seed) {
    set <- sbc_set(problem, seed)
    withr::with_seed(seed, exact_shares(set, exact, scale))
  })
  list(
    scores = vapply(
      parts,
      function(p) expected_scores(p$share),
      numeric(length(parts[[1]]$share))
    ),
    efficiency = min(vapply(parts, function(p) p$efficiency, 0))
  )
}
