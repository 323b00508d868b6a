# The data of Putcha, Nemeth & Fearnhead (2023), for preferential.R and the vignette
# "Preferential subsampling". Two of their sets are public. The others were drawn by
# numpy, whose streams R does not have: these are new draws of the same laws.

# Two normal clusters at vertices of the cube [-1, 1]^4, each with a random
# covariance, and a share `flip` of the labels drawn anew: what scikit-learn's
# make_classification() documents, with four informative features.
classification_data <- function(n_data, seed, share = c(0.5, 0.5), flip = 0.01) {
  set.seed(seed)
  centre <- as.matrix(expand.grid(rep(list(c(-1, 1)), 4)))[sample(16, 2), ]
  label <- rep(0:1, round(share * n_data))
  z <- matrix(rnorm(4 * n_data), n_data)
  for (k in 0:1) {
    own <- label == k
    z[own, ] <- sweep(z[own, ] %*% matrix(runif(16, -1, 1), 4), 2, centre[k + 1, ], "+")
  }
  flipped <- runif(n_data) < flip
  label[flipped] <- sample(0:1, sum(flipped), replace = TRUE)
  list(x = cbind(1, z), y = label)
}

balanced_model <- function(n_data, seed) {
  data <- classification_data(n_data, seed, flip = 0.3)
  model_glm(data$x, data$y, "bernoulli", prior = prior_normal(0, sqrt(10)))
}

imbalanced_model <- function(n_data, seed) {
  data <- classification_data(n_data, seed, share = c(0.01, 0.99))
  model_glm(data$x, data$y, "bernoulli", prior = prior_normal(0, sqrt(10)))
}

# The covariance that the authors' program samples with.
gaussian_model <- function(n_data, seed) {
  set.seed(seed)
  covariance <- matrix(c(1, -0.5, -0.5, 1.5), 2)
  x <- matrix(rnorm(2 * n_data), n_data) %*% chol(covariance)
  model_gaussian(
    sweep(x, 2, c(0, 1), "+"),
    covariance,
    prior_covariance = diag(10, 2)
  )
}

# All columns standardised, the response (the first) too.
casp_model <- function() {
  data <- scale(as.matrix(tall_data("casp")))
  model_glm(
    cbind("(Intercept)" = 1, data[, -1]),
    data[, 1],
    "gaussian",
    prior = prior_normal(0, sqrt(10)),
    sigma = 1
  )
}

# The ten measurements centred by their medians and divided by their interquartile
# ranges; 75 % of each class for training.
covertype_models <- function() {
  data <- tall_data("covertype")
  x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
  y <- as.double(data$cover_type == 2)
  for (j in 2:11) {
    quartile <- quantile(x[, j], 1:3 / 4)
    x[, j] <- (x[, j] - quartile[[2]]) / (quartile[[3]] - quartile[[1]])
  }
  set.seed(1)
  test <- unlist(lapply(split(seq_along(y), y), function(row) {
    sample(row, round(length(row) / 4))
  }))
  prior <- prior_normal(0, sqrt(10))
  list(
    train = model_glm(x[-test, ], y[-test], "bernoulli", prior = prior),
    test = model_glm(x[test, ], y[test], "bernoulli", prior = prior)
  )
}

# ---- runs --------------------------------------------------------------------

# The samplers of the paper: an estimator of the gradient and a way to draw rows.
samplers <- function(size, mode) {
  list(
    "SGLD" = list(gradient_simple(), subsample_uniform(size)),
    "SGLD-PS" = list(gradient_simple(), subsample_weighted(size, "gradient")),
    "SGLD-CV" = list(gradient_cv(mode), subsample_uniform(size)),
    "SGLD-CV-PS" = list(gradient_cv(mode), subsample_weighted(size, "hessian"))
  )
}

# Their adaptive forms, with the threshold of the paper's recipe: ten pilot chains
# of the fixed size.
adaptive_samplers <- function(model, mode, size, step_size, iter) {
  threshold <- function(weights) {
    noise_threshold(
      model, kernel_sgld(step_size), size, weights,
      chains = 10, at = mode, iter = iter, warmup = 0, init = mode$estimate, seed = 100
    )
  }
  adaptive <- function(weights) {
    list(gradient_cv(mode), subsample_adaptive(threshold(weights), weights))
  }
  list("ASGLD-CV" = adaptive("uniform"), "ASGLD-CV-PS" = adaptive("hessian"))
}

# Without burn-in: from the mode, unless `init` says otherwise.
run_sampler <- function(model, sampler, step_size, init, iter, warmup = 0, ...) {
  sg_sample(
    model,
    kernel_sgld(step_size),
    gradient = sampler[[1]],
    subsample = sampler[[2]],
    init = init,
    iter = iter + warmup,
    warmup = warmup,
    ...
  )
}

# Discrepancy of each chain, from exact gradients: chain, draws, ksd.
chain_ksd <- function(fit, model, prefixes = NULL) {
  chains <- seq_len(posterior::nchains(fit$draws))
  do.call(rbind, lapply(chains, function(chain) {
    draws <- posterior::subset_draws(fit$draws, chain = chain)
    if (is.null(prefixes)) {
      prefixes <- posterior::ndraws(draws)
    }
    cbind(chain, ksd(draws, model, prefixes = prefixes)[c("draws", "ksd")])
  }))
}
