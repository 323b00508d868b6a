# Factorisations by their formulas, in plain R.

triplets <- function(n = 40, n_user = 6, n_item = 5, seed = 2) {
  withr::local_seed(seed)
  data.frame(
    user = c(n_user, sample(n_user, n - 1, TRUE)),
    item = c(n_item, sample(n_item, n - 1, TRUE)),
    rating = sample(1:5, n, TRUE)
  )
}

# theta as lists: user, item (rows x width), mu (width x 2 or NULL), log_lambda
# (width x 2).
split_factors <- function(theta, n_user, n_item, rank, has_bias) {
  width <- rank + has_bias
  take <- function(n) {
    out <- theta[seq_len(n)]
    theta <<- theta[-seq_len(n)]
    out
  }
  list(
    user = matrix(take(n_user * width), n_user, byrow = TRUE),
    item = matrix(take(n_item * width), n_item, byrow = TRUE),
    mu = if (has_bias) matrix(0, width, 2) else matrix(take(2 * width), width),
    log_lambda = matrix(theta, width)
  )
}

plain_means <- function(parts, user, item, rank) {
  u <- parts$user[user, , drop = FALSE]
  v <- parts$item[item, , drop = FALSE]
  k <- seq_len(rank)
  rowSums(u[, k, drop = FALSE] * v[, k, drop = FALSE]) +
    rowSums(u[, -k, drop = FALSE]) + rowSums(v[, -k, drop = FALSE])
}

entry_factors <- function(
  name,
  rank,
  n_user = 4,
  n_item = 3,
  n_data = 11,
  alpha = 1.7,
  mu0 = 0.4,
  a0 = 1.3,
  b0 = 0.8,
  seed = 31
) {
  withr::local_seed(seed)
  # every user but the last of many, some pairs more than once
  user <- sample(n_user, n_data, TRUE)
  item <- sample(n_item, n_data, TRUE)
  user[[1]] <- n_user
  item[[1]] <- n_item
  user[2:3] <- item[2:3] <- 1
  rating <- stats::rnorm(n_data, 3)
  has_bias <- name == "pmf"
  width <- rank + has_bias
  model <- if (has_bias) {
    model_pmf(user, item, rating, rank, alpha, a0, b0)
  } else {
    model_bpmf(user, item, rating, rank, alpha, mu0, a0, b0)
  }
  split <- function(theta) split_factors(theta, n_user, n_item, rank, has_bias)
  error <- function(theta) {
    rating - mean(rating) - plain_means(split(theta), user, item, rank)
  }
  list(
    name = name,
    model = model,
    log_lik = function(theta) {
      stats::dnorm(error(theta), 0, 1 / sqrt(alpha), log = TRUE)
    },
    log_prior = function(theta) {
      p <- split(theta)
      sides <- list(p$user, p$item)
      sum(vapply(1:2, function(s) {
        lambda <- exp(p$log_lambda[, s])
        sd <- 1 / sqrt(lambda)
        rows <- vapply(seq_len(width), function(k) {
          sum(stats::dnorm(sides[[s]][, k], p$mu[k, s], sd[[k]], log = TRUE))
        }, 0)
        means <- if (!has_bias) {
          stats::dnorm(p$mu[, s], mu0, sd, log = TRUE)
        }
        jacobian <- p$log_lambda[, s]
        gamma <- stats::dgamma(lambda, a0, b0, log = TRUE)
        sum(rows) + sum(means) + sum(gamma + jacobian)
      }, 0))
    },
    row_gradient = function(theta) {
      p <- split(theta)
      r <- alpha * error(theta)
      k <- seq_len(rank)
      one <- if (has_bias) 1
      t(vapply(seq_len(n_data), function(i) {
        g <- numeric(length(theta))
        at <- (user[[i]] - 1) * width + seq_len(width)
        g[at] <- r[[i]] * c(p$item[item[[i]], k], one)
        at <- (n_user + item[[i]] - 1) * width + seq_len(width)
        g[at] <- r[[i]] * c(p$user[user[[i]], k], one)
        g
      }, numeric(length(theta))))
    },
    row_hessian = NULL,
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() stats::runif(model$n_dim, -1, 1)
  )
}

factors_entries <- function() {
  list(
    "bpmf, rank 1" = entry_factors("bpmf", rank = 1),
    "bpmf, rank 6" = entry_factors("bpmf", rank = 6, n_user = 9, n_data = 40),
    "pmf, rank 1" = entry_factors("pmf", rank = 1),
    "pmf, rank 7" = entry_factors("pmf", rank = 7, n_item = 12, n_data = 40),
    # several chunks of ratings
    "pmf, many ratings" = entry_factors("pmf", rank = 2, n_data = 9001)
  )
}
