# A Gaussian regression whose blocks of coefficients have a standard deviation
# each, by quadrature: of log scales (and of log sigma, where it is not known)
# on a grid, with the coefficients integrated out.
#
# of: block of each column, 0: none, N(0, prior_sd[j]^2); law(s): log density of
# a scale; law_sigma: of sigma. Returns the grid's points, their probabilities,
# and moments of the coefficients given each.
smooth_grid <- function(
  x,
  y,
  of,
  prior_sd,
  law,
  law_sigma = NULL,
  n = 60,
  low = -13,
  high = 3,
  sigma = 1
) {
  n_block <- max(of)
  axes <- rep(list(seq(low, high, length.out = n)), n_block)
  if (!is.null(law_sigma)) {
    s <- stats::sd(stats::lm.fit(x, y)$residuals)
    axes$sigma <- log(s) + seq(-5, 5, length.out = 15) / sqrt(2 * nrow(x))
  }
  phi <- as.matrix(expand.grid(axes))
  xx <- crossprod(x)
  xy <- drop(crossprod(x, y))
  yy <- sum(y^2)
  beta <- variance <- matrix(0, nrow(phi), ncol(x))
  log_p <- numeric(nrow(phi))
  for (k in seq_len(nrow(phi))) {
    sd_k <- if (is.null(law_sigma)) sigma else exp(phi[k, n_block + 1])
    scales <- exp(phi[k, seq_len(n_block)])
    precision <- ifelse(of == 0, 1 / prior_sd^2, 1 / c(NA, scales)[of + 1]^2)
    root <- chol(xx / sd_k^2 + diag(precision))
    inverse <- chol2inv(root)
    b <- drop(inverse %*% xy) / sd_k^2
    beta[k, ] <- b
    variance[k, ] <- diag(inverse)
    log_p[[k]] <- sum(law(scales) + log(scales)) +
      sum(log(precision[precision > 0])) / 2 -
      sum(log(diag(root))) - nrow(x) * log(sd_k) -
      (yy / sd_k^2 - sum(b * xy) / sd_k^2) / 2 +
      if (is.null(law_sigma)) 0 else law_sigma(sd_k) + log(sd_k)
  }
  p <- exp(log_p - max(log_p))
  list(phi = phi, p = p / sum(p), beta = beta, variance = variance)
}

grid_mean <- function(grid, f) sum(grid$p * f)

# x: iterations x chains
expect_moment <- function(x, expected, label = "mean") {
  z <- (mean(x) - expected) / posterior::mcse_mean(x)
  testthat::expect(
    is.finite(z) && abs(z) < 4.5,
    sprintf("%s: %.5g against %.5g, z = %.1f", label, mean(x), expected, z)
  )
}
