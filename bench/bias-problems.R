# The posteriors of bias.R and bias-compute.R, and what is true of them.
#
# Truth: importance sampling in plain R, on the raw data, with another density
# routine than the package's.

# ---- problems ----------------------------------------------------------------

# 9 correlated covariates on scales from 0.01 to 100, and an intercept.
logistic_problem <- function(n_data = 20000, n_dim = 10) {
  set.seed(11)
  root <- chol(0.6^abs(outer(seq_len(n_dim - 1), seq_len(n_dim - 1), "-")))
  z <- matrix(rnorm(n_data * (n_dim - 1)), n_data) %*% root
  scale <- 10^seq(-2, 2, length.out = n_dim - 1)
  beta <- c(0.8, -0.6, 0.4, 0.3, -0.3, 0.2, 0.2, -0.1, 0)
  x <- cbind("(Intercept)" = 1, sweep(z, 2, scale, "*"))
  colnames(x)[-1] <- paste0("x", seq_len(n_dim - 1))
  y <- as.double(runif(n_data) < plogis(-2 + drop(z %*% beta)))
  list(name = "logistic", x = x, y = y, family = "bernoulli")
}

# Very skewed: 20,000 rows with some 40 events.
poisson_problem <- function(n_data = 20000) {
  set.seed(12)
  x <- cbind(
    "(Intercept)" = 1,
    x1 = sample(0:1, n_data, TRUE),
    x2 = sample(-2:2, n_data, TRUE),
    x3 = sample(0:9, n_data, TRUE) / 3
  )
  y <- rpois(n_data, exp(drop(x %*% c(-6.4, -0.7, 0.4, -0.2))))
  list(name = "poisson", x = x, y = as.double(y), family = "poisson")
}

# ---- truth -------------------------------------------------------------------

log_likelihood <- function(p, theta) {
  # equal rows are counted, not repeated
  key <- do.call(paste, as.data.frame(p$x))
  first <- which(!duplicated(key))
  count <- tabulate(match(key, key[first]))
  out <- drop(crossprod(theta, crossprod(p$x, p$y)))
  for (start in seq(1, ncol(theta), by = 500)) {
    at <- start:min(ncol(theta), start + 499)
    eta <- p$x[first, , drop = FALSE] %*% theta[, at, drop = FALSE]
    loss <- if (p$family == "poisson") exp(eta) else log1p(exp(eta))
    out[at] <- out[at] - colSums(loss * count)
  }
  out
}

# Flat prior. A t at the mode, antithetic, in ten batches: their spread is the
# error of the reference itself.
truth <- function(p, n_draw, df, batches = 10) {
  glm <- glm.fit(
    p$x,
    p$y,
    family = if (p$family == "poisson") poisson() else binomial(),
    control = list(epsilon = 1e-12)
  )
  mode <- glm$coefficients
  root <- chol(crossprod(p$x * sqrt(glm$weights)))
  d <- length(mode)
  one <- function() {
    # second moments as those of the normal, exactly
    z <- matrix(rnorm(d * n_draw / 2), d)
    z <- forwardsolve(t(chol(tcrossprod(z) / ncol(z))), z)
    z <- cbind(z, -z)
    z <- z * rep(sqrt(df / rchisq(n_draw / 2, df)), 2)[col(z)]
    theta <- mode + backsolve(root, z)
    log_w <- log_likelihood(p, theta) +
      (df + d) / 2 * log1p(colSums(z^2) / df)
    w <- exp(log_w - max(log_w))
    w <- w / sum(w)
    mean <- drop(theta %*% w)
    sd <- sqrt(drop((theta - mean)^2 %*% w))
    list(
      mean = mean,
      sd = sd,
      skew = drop(((theta - mean) / sd)^3 %*% w),
      efficiency = 1 / (n_draw * sum(w^2))
    )
  }
  set.seed(13)
  runs <- replicate(batches, one(), simplify = FALSE)
  pick <- function(what) sapply(runs, function(r) r[[what]])
  mean <- stats::setNames(rowMeans(pick("mean")), colnames(p$x))
  sd <- rowMeans(pick("sd"))
  list(
    mean = mean,
    sd = sd,
    skew = rowMeans(pick("skew")),
    error_mean = max(apply(pick("mean"), 1, stats::sd) / sd) / sqrt(batches),
    error_sd = max(apply(pick("sd"), 1, stats::sd) / sd) / sqrt(batches),
    efficiency = mean(pick("efficiency"))
  )
}

problems <- list(logistic_problem(), poisson_problem())
names(problems) <- vapply(problems, function(p) p$name, "")
truths <- list(
  logistic = truth(problems$logistic, 1500, 500),
  poisson = truth(problems$poisson, 40000, 10)
)
# the most skewed posterior is the one to watch
watched <- vapply(truths, function(t) which.max(abs(t$skew)), 1L)

# ---- models ------------------------------------------------------------------

# The model in the recipe's coordinates, where the posterior is near N(0, I).
whiten <- function(p) {
  model <- model_glm(p$x, p$y, p$family, prior = prior_flat())
  mode <- find_mode(model)
  list(
    raw = model,
    mode = mode,
    white = tallbayes:::whiten_model(model, mode, FALSE)
  )
}
models <- lapply(problems, whiten)

moments <- function(fit) {
  table <- posterior::summarise_draws(
    fit$draws,
    mean = mean,
    sd = stats::sd,
    mcse_mean = posterior::mcse_mean,
    mcse_sd = posterior::mcse_sd,
    rhat = posterior::rhat,
    ess = posterior::ess_bulk
  )
  as.data.frame(lapply(table[-1], as.double))
}

rms <- function(x) sqrt(mean(x^2))
