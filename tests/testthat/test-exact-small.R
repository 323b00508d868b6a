# Small data are sampled exactly: linear regressions with sigma sampled and flat
# priors, which are drawn from, have known moments. With S the residual sum
# of squares and nu = N - d - 1,
#
#   sigma^2 ~ InvGamma(nu / 2, S / 2),  beta ~ t_nu(ols, (S / nu) (X'X)^-1)

small_regression <- function(n, d, seed) {
  withr::with_seed(seed, {
    x <- matrix(stats::rnorm(n * d), n) %*% diag(10^seq(-2, 2, length.out = d))
    data <- as.data.frame(x)
    beta <- stats::rnorm(d) / 10^seq(-2, 2, length.out = d)
    data$y <- 3 + drop(x %*% beta) + stats::rnorm(n, sd = 2)
    data
  })
}

test_that("linear regressions with flat priors are exact, N from 46 to 1,400", {
  skip_on_cran()
  for (case in list(c(46, 3), c(200, 6), c(1400, 10))) {
    data <- small_regression(case[[1]], case[[2]], seed = case[[1]])
    fit <- tall_glm(
      y ~ .,
      data,
      prior = prior_flat(),
      prior_intercept = prior_flat(),
      prior_aux = prior_flat(),
      seed = 1,
      chains = 16,
      refresh = 0
    )
    expect_true(kernel_is_independent(fit$kernel))
    ols <- stats::lm(y ~ ., data)
    s <- sum(stats::residuals(ols)^2)
    nu <- ols$df.residual - 1
    scale <- diag(chol2inv(qr.R(ols$qr)))
    mean <- c(
      stats::coef(ols),
      sqrt(s / 2) * exp(lgamma((nu - 1) / 2) - lgamma(nu / 2))
    )
    second <- s / (nu - 2)
    sd <- sqrt(c(second * scale, second - mean[[length(mean)]]^2))
    # means and variances of 16 independent chains give their own errors
    draws <- plain_draws(fit)
    for (j in seq_along(mean)) {
      z <- (draws[, , j] - mean[[j]]) / sd[[j]]
      centre <- colMeans(z)
      spread <- colMeans(z^2)
      label <- paste(case[[1]], "rows,", dimnames(fit$draws)[[3]][[j]])
      for (sample in list(centre, spread - 1)) {
        t <- mean(sample) / (stats::sd(sample) / 4)
        # |t_15| > 7 has probability 4e-6
        expect_lt(abs(t), 7, label = label)
      }
      # and the errors are small
      expect_lt(abs(mean(centre)), 0.06, label = label)
      expect_lt(abs(mean(spread) - 1), 0.12, label = label)
    }
  }
})
