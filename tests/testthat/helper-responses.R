# Responses with a parameter beside their mean, written once more in R's own
# densities.

# Of each: `family` of the model, with the parameter known where `known` is not
# NULL; draw(eta) responses; density(y, eta, aux) their log densities.
response_problems <- function() {
  list(
    neg_binomial_2 = list(
      family = function(known = NULL) neg_binomial_2(known),
      known = 1.5,
      draw = function(eta) {
        stats::rnbinom(length(eta), size = 1.5, mu = exp(eta))
      },
      density = function(y, eta, aux) {
        stats::dnbinom(y, size = aux, mu = exp(eta), log = TRUE)
      }
    ),
    Gamma = list(
      family = function(known = NULL) {
        if (is.null(known)) stats::Gamma("log") else gamma_regression(known)
      },
      known = 2,
      draw = function(eta) stats::rgamma(length(eta), 2, 2 / exp(eta)),
      density = function(y, eta, aux) {
        stats::dgamma(y, aux, aux / exp(eta), log = TRUE)
      }
    ),
    student = list(
      family = function(known = NULL) student(4, known),
      known = 0.7,
      draw = function(eta) eta + 0.7 * stats::rt(length(eta), 4),
      density = function(y, eta, aux) {
        stats::dt((y - eta) / aux, 4, log = TRUE) - log(aux)
      }
    ),
    beta = list(
      family = function(known = NULL) beta_regression(known),
      known = 5,
      draw = function(eta) {
        p <- stats::plogis(eta)
        stats::rbeta(length(eta), 5 * p, 5 * (1 - p))
      },
      density = function(y, eta, aux) {
        p <- stats::plogis(eta)
        stats::dbeta(y, aux * p, aux * (1 - p), log = TRUE)
      }
    )
  )
}

# Two covariates, and a response with coefficients that are not small.
response_data <- function(problem, n, seed = 1) {
  withr::with_seed(seed, {
    a <- stats::rnorm(n)
    x <- cbind("(Intercept)" = 1, a = a, b = stats::runif(n, -1, 1))
    list(x = x, y = problem$draw(drop(x %*% c(0.5, 0.3, -0.4))))
  })
}

# Log posterior of (coefficients, log aux), or of the coefficients where aux is
# known: normal(0, 1) priors, and exponential(1).
response_posterior <- function(problem, data, known = NULL) {
  function(theta) {
    beta <- theta[1:3]
    s <- theta[4]
    aux <- known %||% exp(s)
    sum(problem$density(data$y, drop(data$x %*% beta), aux)) +
      sum(stats::dnorm(beta, log = TRUE)) +
      if (is.null(known)) s - exp(s) else 0
  }
}

# Moments by importance sampling from a multivariate t about the mode:
# list(mean, sd, ess). f: log density; natural(theta): what moments are wanted
# of, of draws as columns.
importance_moments <- function(f, start, natural = identity, n = 4000) {
  withr::local_seed(3)
  mode <- stats::optim(
    start,
    function(theta) {
      value <- -f(theta)
      if (is.finite(value)) value else 1e10
    },
    method = "BFGS",
    hessian = TRUE,
    control = list(reltol = 1e-12, maxit = 500)
  )
  d <- length(start)
  df <- 6
  root <- chol(solve(mode$hessian)) # t(root) %*% root
  z <- matrix(stats::rnorm(d * n), d)
  scale <- sqrt(stats::rchisq(n, df) / df)
  u <- z / rep(scale, each = d)
  theta <- mode$par + t(root) %*% u
  log_w <- apply(theta, 2, f) + (df + d) / 2 * log1p(colSums(u^2) / df)
  w <- exp(log_w - max(log_w))
  w <- w / sum(w)
  value <- natural(theta)
  mean <- drop(value %*% w)
  list(
    mean = mean,
    sd = sqrt(drop((value - mean)^2 %*% w)),
    ess = 1 / sum(w^2)
  )
}

natural_last <- function(theta) {
  theta[4, ] <- exp(theta[4, ])
  theta
}

# Means within 0.05 sd and sds within 5 percent, beside five Monte Carlo errors.
expect_moments <- function(fit, truth) {
  draws <- matrix(fit$draws, ncol = dim(fit$draws)[[3]])
  found <- list(mean = colMeans(draws), sd = apply(draws, 2, stats::sd))
  ess <- apply(fit$draws, 3, posterior::ess_bulk)
  se <- sqrt(1 / ess + 1 / truth$ess)
  off <- abs(found$mean - truth$mean) / truth$sd
  expect_true(all(off < 0.05 + 5 * se), label = format(max(off)))
  ratio <- abs(found$sd / truth$sd - 1)
  expect_true(all(ratio < 0.05 + 5 * se), label = format(max(ratio)))
}
