# Targets with known answers, and the ways of judging a sampler by them.

# Members of a family, as the core registers them.
registered <- function(family) {
  .Call(ffi_registry, family)
}

# Every registered member has an entry; `covered` names those that have.
expect_covered <- function(family, covered) {
  missing <- setdiff(registered(family), covered)
  testthat::expect(
    length(missing) == 0,
    paste0("no conformance entry for ", family, " ", toString(missing))
  )
  unknown <- setdiff(covered, registered(family))
  testthat::expect(
    length(unknown) == 0,
    paste0("an entry for ", family, " ", toString(unknown), ", not registered")
  )
  invisible()
}

# Replace a function of the package until the calling frame ends: for what no
# argument, setting (local_settings()) or object of a test reaches. There are
# 7 such places:
# * connections that dbplyr simulates quote nothing and answer nothing
#   (test-dialects.R: 3);
# * a clock that goes on by the look (test-util-clock.R);
# * a pilot that finds large steps unsafe, which no posterior that the recipe
#   takes this way makes it find (test-recipe-order.R);
# * rows in stores that the model would not choose (helper-conformance-store.R);
# * errors without words, of which test-grid.R counts many.
local_fault <- function(name, value, frame = parent.frame()) {
  namespace <- asNamespace("tallbayes")
  before <- get(name, namespace)
  put <- function(f) {
    unlockBinding(name, namespace)
    assign(name, f, namespace)
    lockBinding(name, namespace)
  }
  put(value)
  withr::defer(put(before), envir = frame)
  invisible(before)
}

# ---- differences -------------------------------------------------------------

# Jacobian of f by central differences, a row for each coordinate of x. The
# step eps^(1/3) balances truncation, O(step^2), against rounding, O(eps/step).
central_difference <- function(f, x) {
  step <- .Machine$double.eps^(1 / 3) * pmax(1, abs(x))
  t(vapply(
    seq_along(x),
    function(j) {
      up <- down <- x
      up[[j]] <- x[[j]] + step[[j]]
      down[[j]] <- x[[j]] - step[[j]]
      (f(up) - f(down)) / (up[[j]] - down[[j]])
    },
    f(x)
  ))
}

# Both errors of a central difference are some eps^(2/3) of the size of the
# function and its derivatives: `scale`, 100 times over.
expect_derivative <- function(actual, expected, scale, label = "derivative") {
  error <- max(abs(actual - expected))
  allowed <- 100 * .Machine$double.eps^(2 / 3) * (1 + scale)
  testthat::expect(
    is.finite(error) && error <= allowed,
    sprintf("%s is off by %.3g; %.3g is allowed", label, error, allowed)
  )
}

# Equal up to the rounding of sums: 1e-10 of the largest element.
expect_close <- function(actual, expected, label = "value", tolerance = 1e-10) {
  actual <- as.numeric(actual)
  expected <- as.numeric(expected)
  scale <- 1 + max(abs(expected))
  error <- if (length(actual) == length(expected)) {
    max(abs(actual - expected)) / scale
  } else {
    NaN
  }
  testthat::expect(
    is.finite(error) && error <= tolerance,
    sprintf("%s is off by %.3g, relative to %.3g", label, error, scale)
  )
}

# ---- Monte Carlo -------------------------------------------------------------

# Chains are independent, so an average over each chain is an independent,
# nearly normal number, and their t test against the truth needs no estimate of
# the autocorrelation. At p = 1e-6 (5.7 standard errors with 40 chains, more
# with fewer) some thousand such tests fail by chance once in a thousand suites
# under other seeds; with the seeds fixed, they do not fail by chance at all.
p_least <- 1e-6

expect_mean <- function(per_chain, truth, label = "mean") {
  n <- length(per_chain)
  se <- stats::sd(per_chain) / sqrt(n)
  if (se < 1e-12 * (1 + abs(truth))) {
    # nothing random is left (a kernel without noise): rounding decides
    return(expect_close(per_chain, rep(truth, n), label))
  }
  t <- (mean(per_chain) - truth) / se
  p <- 2 * stats::pt(-abs(t), n - 1)
  testthat::expect(
    is.finite(p) && p > p_least,
    sprintf(
      "%s: %.5g (se %.2g, %d chains) against %.5g, t = %.1f",
      label, mean(per_chain), se, n, truth, t
    )
  )
}

# Draws, iterations x chains x variables, without the weights among them.
plain_draws <- function(fit) {
  unclass(fit$draws)[, , fit$variables, drop = FALSE]
}

# Averages over each chain of f(draws), draws iterations x variables; `weight`
# (iterations x chains) as a decaying schedule leaves it.
chain_means <- function(fit, f, weight = fit$weights) {
  draws <- plain_draws(fit)
  n <- dim(draws)[[1]]
  out <- lapply(seq_len(dim(draws)[[2]]), function(chain) {
    values <- f(matrix(draws[, chain, ], n))
    w <- if (is.null(weight)) rep(1 / n, n) else weight[, chain, 1]
    colSums(as.matrix(values) * w) / sum(w)
  })
  do.call(rbind, out)
}

# Moments of every variable about the known mean, against the truth: means, and
# the entries of the covariance matrix.
expect_posterior <- function(fit, mean, covariance, label = "") {
  d <- length(mean)
  means <- chain_means(fit, identity)
  for (j in seq_len(d)) {
    expect_mean(means[, j], mean[[j]], sprintf("%s: mean of %d", label, j))
  }
  at <- which(upper.tri(diag(d), diag = TRUE), arr.ind = TRUE)
  products <- chain_means(fit, function(draws) {
    centred <- sweep(draws, 2, mean)
    centred[, at[, 1], drop = FALSE] * centred[, at[, 2], drop = FALSE]
  })
  for (k in seq_len(nrow(at))) {
    expect_mean(
      products[, k],
      covariance[at[k, 1], at[k, 2]],
      sprintf("%s: covariance (%d, %d)", label, at[k, 1], at[k, 2])
    )
  }
}

# A chi-square test of counts against probabilities.
expect_frequencies <- function(counts, probability, label = "frequencies") {
  expected <- sum(counts) * probability
  statistic <- sum((counts - expected)^2 / expected)
  p <- stats::pchisq(statistic, length(counts) - 1, lower.tail = FALSE)
  testthat::expect(
    p > p_least,
    sprintf("%s: chi-square %.1f, p = %.2g", label, statistic, p)
  )
}

# ---- conjugate targets -------------------------------------------------------

# A normal mean whose posterior has precision diag(lambda), to 1e-9, and mean
# `center`; the rows have population variance `spread` in every coordinate. The
# minibatch noise of the simple estimator is then the same everywhere,
#   tau_j^2 = lambda_j^2 spread / n   (with replacement; ?pseudo_variance).
target_normal <- function(lambda, spread = 1, n_data = 50, center = 0) {
  d <- length(lambda)
  x <- withr::with_seed(1, matrix(stats::rnorm(n_data * d), n_data))
  x <- sweep(x, 2, colMeans(x))
  x <- sweep(x, 2, sqrt(colMeans(x^2) / spread), "/") + center
  model_gaussian(
    x,
    covariance = diag(n_data / lambda, d),
    prior_covariance = diag(1e9, d)
  )
}

# A linear regression with known sigma and a normal prior: conjugate.
target_linear <- function(n_data = 60, seed = 2) {
  withr::local_seed(seed)
  x <- as_single(cbind(1, stats::rnorm(n_data)))
  y <- drop(x %*% c(0.5, -1)) + stats::rnorm(n_data)
  sigma <- 4
  scale <- c(2, 1)
  location <- c(0.3, 0)
  precision <- crossprod(x) / sigma^2 + diag(1 / scale^2)
  list(
    model = model_glm(
      x,
      y,
      family = "gaussian",
      sigma = sigma,
      prior = prior_normal(location, scale)
    ),
    mean = drop(solve(
      precision,
      crossprod(x, y) / sigma^2 + location / scale^2
    )),
    precision = precision
  )
}

# A density without rows, of two scales.
target_density <- function() {
  mean <- c(0.4, -1)
  sd <- c(0.8, 1.5)
  list(
    model = model_density("normal", mean = mean, sd = sd),
    mean = mean,
    precision = diag(1 / sd^2)
  )
}

# A normal mean with correlated coordinates.
target_correlated <- function(n_data = 60, seed = 3) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(2 * n_data), n_data) + 1
  covariance <- n_data * matrix(c(1, 0.6, 0.6, 0.8), 2)
  model <- model_gaussian(x, covariance, prior_covariance = diag(4, 2))
  list(
    model = model,
    mean = unname(model$posterior_mean),
    precision = unname(solve(model$posterior_covariance))
  )
}
