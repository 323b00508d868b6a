# Multilevel regressions by R's own densities: groups integrated out in closed
# form, or by the trapezoidal rule, which no node of the package has a part in.

# One response of each kind, with groups of 1 to 5 rows and two effects.
groups_entries <- function() {
  list(
    "groups, normal" = entry_groups("gaussian"),
    "groups, logistic" = entry_groups("bernoulli", q = 1)
  )
}

# derivative by each coordinate, to fourth order: values x coordinates
slopes <- function(f, theta, h) {
  vapply(
    seq_along(theta),
    function(j) {
      at <- function(k) f(replace(theta, j, theta[[j]] + k * h))
      (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    },
    f(theta)
  )
}

# T of z = T z': z' in one unit, and about 0 where z is far from it; the first
# column is one of ones.
span_of <- function(z, correlated = TRUE) {
  span <- diag(ncol(z))
  size <- sqrt(mean(z[, 1]^2))
  for (a in seq_len(ncol(z))[-1]) {
    mean <- mean(z[, a])
    sd <- sqrt(mean((z[, a] - mean)^2))
    is_far <- correlated && abs(mean) > 2.5 * sd
    unit <- signif((if (is_far) sd else sqrt(mean(z[, a]^2))) / size, 6)
    span[a, ] <- 0
    span[a, a] <- unit
    # as many digits as the package keeps
    span[a, 1] <- if (is_far) round(mean / sd * size, 6) * unit else 0
  }
  span
}

# Canonical partial correlations of (sds, correlations): rows of a matrix whose
# sums of squares are 1.
partial_root <- function(zeta, q) {
  root <- diag(q)
  at <- 0
  for (a in seq_len(q)[-1]) {
    rest <- 1
    for (b in seq_len(a - 1)) {
      at <- at + 1
      root[a, b] <- tanh(zeta[[at]]) * sqrt(rest)
      rest <- rest * (1 - tanh(zeta[[at]])^2)
    }
    root[a, a] <- sqrt(rest)
  }
  root
}

# of the covariance of the effects of z
factor_of <- function(theta, q, span = diag(q)) {
  own <- exp(theta[seq_len(q)]) * partial_root(theta[-seq_len(q)], q)
  solve(t(span), own)
}

# lambda of such a covariance, of two effects
lambda_of <- function(covariance, span) {
  own <- t(span) %*% covariance %*% span
  c(log(diag(own)) / 2, atanh(stats::cov2cor(own)[2, 1]))
}

# log int prod_i p(y_i | eta_i + z_i s v) N(v; 0, 1) dv of each group with one
# effect
integrate_groups <- function(
  group,
  log_density,
  eta,
  sd,
  z = 1,
  most = 9,
  n = 241
) {
  v <- seq(-most, most, length.out = n)
  step <- v[[2]] - v[[1]]
  shifted <- outer(z * sd * rep(1, length(eta)), v) + eta
  sums <- rowsum(log_density(shifted), group)
  terms <- sums + rep(stats::dnorm(v, log = TRUE), each = nrow(sums))
  top <- apply(terms, 1, max)
  unname(top + log(rowSums(exp(terms - top)) * step))
}

# log density in lambda of standard deviations with half Student t(3, 0, scale)
# and correlations with LKJ(eta), up to a constant of z
lambda_density <- function(theta, q, scale, eta = 1, span = diag(q)) {
  covariance <- tcrossprod(factor_of(theta, q, span))
  sd <- sqrt(diag(covariance))
  t <- sum(-(3 + 1) / 2 * log1p((sd / scale)^2 / 3))
  if (q == 1) {
    return(t + theta[[1]])
  }
  # volumes: of the covariance in sds and correlations, and in lambda
  in_sds <- q * sum(log(sd))
  column <- unlist(lapply(seq_len(q)[-1], function(a) seq_len(a - 1)))
  in_lambda <- (q + 1) * sum(theta[seq_len(q)]) -
    sum((q - column + 1) * log(cosh(theta[-seq_len(q)])))
  log_cor <- log(det(stats::cov2cor(covariance)))
  t + (eta - 1) * log_cor - in_sds + in_lambda
}

entry_groups <- function(
  family,
  q = 2,
  n_group = 24,
  far = 0,
  seed = 23
) {
  withr::local_seed(seed)
  size <- rep_len(c(1, 4, 2, 5, 3), n_group)
  group <- rep(seq_len(n_group), size)
  n <- length(group)
  x <- as_single(cbind(1, stats::rnorm(n) + far))
  z <- x[, seq_len(q), drop = FALSE]
  effect <- stats::rnorm(n_group)[group]
  is_normal <- family == "gaussian"
  offset <- stats::rnorm(n) / 3
  weights <- if (is_normal) stats::runif(n, 0.5, 2)
  y <- if (is_normal) {
    effect + stats::rnorm(n)
  } else {
    stats::rbinom(n, 1, stats::plogis(effect))
  }
  colnames(z) <- c("(Intercept)", "x")[seq_len(q)]
  span <- span_of(z)
  m <- q * (q + 1) / 2
  lambda <- 2 + seq_len(m)
  normal_group <- function(theta, rows) {
    half <- z[rows, , drop = FALSE] %*% factor_of(theta[lambda], q, span)
    sigma <- exp(theta[[3 + m]])
    v <- tcrossprod(half) + diag(sigma^2 / weights[rows], length(rows))
    e <- y[rows] - offset[rows] - drop(x[rows, , drop = FALSE] %*% theta[1:2])
    root <- chol(v)
    scaled <- backsolve(root, e, transpose = TRUE)
    -length(rows) / 2 * log(2 * pi) - sum(log(diag(root))) - sum(scaled^2) / 2
  }
  log_lik <- function(theta) {
    if (is_normal) {
      rows <- split(seq_len(n), group)
      return(unname(vapply(rows, normal_group, 0, theta = theta)))
    }
    eta <- drop(x %*% theta[1:2]) + offset
    integrate_groups(
      group,
      function(eta) stats::plogis((2 * y - 1) * eta, log.p = TRUE),
      eta,
      exp(theta[[3]]),
      n = 1001
    )
  }
  row_gradient <- function(theta, h = 2e-3) slopes(log_lik, theta, h)
  list(
    name = "groups",
    model = model_groups(
      x,
      y,
      group,
      z,
      family = family,
      prior = prior_normal(0.3, 1.5),
      prior_aux = prior_exponential(2),
      prior_covariance = prior_lkj(2, prior_student(3, 0, 1.5)),
      weights = weights,
      offset = offset,
      nodes = 401
    ),
    log_lik = log_lik,
    # what both quadratures leave, where sds are large
    rounding = if (is_normal) 0 else if (far == 0) 1e-10 else 1e-8,
    log_prior = function(theta) {
      aux <- if (is_normal) {
        stats::dexp(exp(theta[[3 + m]]), 2, log = TRUE) + theta[[3 + m]]
      }
      sum(
        stats::dnorm(theta[1:2], 0.3, 1.5, log = TRUE),
        lambda_density(theta[lambda], q, 1.5, 2, span),
        aux
      )
    },
    row_gradient = row_gradient,
    row_hessian = function(theta) {
      d <- length(theta)
      all <- slopes(function(t) c(row_gradient(t, 4e-3)), theta, 4e-3)
      all <- array(-all, c(n_group, d, d))
      lapply(seq_len(n_group), function(i) {
        (all[i, , ] + t(all[i, , ])) / 2
      })
    },
    hessian_tolerance = 1e-5,
    blocks = if (is_normal) 3 + m,
    lipschitz = NULL,
    lipschitz_prior = NA,
    # coefficients, standard deviations, correlations, sigma
    natural = function(theta) {
      covariance <- tcrossprod(factor_of(theta[lambda], q, span))
      cor <- stats::cov2cor(covariance)
      c(
        theta[1:2],
        sqrt(diag(covariance)),
        cor[lower.tri(cor)],
        if (is_normal) exp(theta[[3 + m]])
      )
    },
    point = function() stats::runif(2 + m + is_normal, -0.7, 0.7)
  )
}
