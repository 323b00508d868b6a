# The data, the samplers and the pictures that the figures of Putcha, Nemeth &
# Fearnhead (2023) share; bench/preferential.R takes the first two. Two of their
# sets are public. The others were drawn by numpy, whose streams R does not
# have: these are new draws of the same distributions.

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
adaptive_samplers <- function(model, mode, size, step_size, iter, seed = 100) {
  threshold <- function(weights) {
    noise_threshold(
      model, kernel_sgld(step_size), size, weights,
      chains = 10, at = mode, iter = iter, warmup = 0, init = mode$estimate,
      seed = seed
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

# The same at the end of some stretches of a run: method, chain, iteration, ksd.
score_chains <- function(fit, model, method, prefixes, thin) {
  data <- chain_ksd(fit, model, prefixes)
  data.frame(
    method = method, chain = data$chain,
    iteration = thin * data$draws, ksd = data$ksd
  )
}

# Gradient noise as a share of the injected one, averaged over coordinates, at points
# of the normal approximation.
noise_share <- function(model, mode, samplers, step_size) {
  set.seed(2)
  d <- model$n_dim
  points <- sweep(
    matrix(rnorm(10 * d), 10) %*% chol(vcov(mode)), 2, mode$estimate, "+"
  )
  vapply(samplers, function(s) {
    mean(pseudo_variance(model, points, s[[1]], s[[2]])) * step_size / (4 * d)
  }, 0)
}

# Runs of some samplers from the mode: discrepancies, and the rows in a minibatch for
# every kept iteration of every chain.
adaptive_figure <- function(
  model, mode, samplers, step_size, prefixes,
  seed = 2, chains = 10
) {
  fits <- lapply(samplers, function(s) {
    run_sampler(
      model, s, step_size, mode$estimate, full(10000, 400),
      thin = 20, chains = full(chains, 2), seed = seed
    )
  })
  ksd <- Map(
    score_chains, fits, list(model), names(samplers), list(prefixes), 20
  )
  list(
    ksd = do.call(rbind, ksd),
    size = lapply(fits, function(fit) if (!is.null(fit$sizes)) as.matrix(fit$sizes[, , 1]))
  )
}

# ---- pictures ----------------------------------------------------------------

method_line <- c(
  "SGLD from zero" = "11", "SGLD" = "solid", "SGLD-PS" = "41",
  "SGLD-CV" = "solid", "SGLD-CV-PS" = "41",
  "ASGLD-CV" = "1141", "ASGLD-CV-PS" = "solid"
)
method_scales <- function(methods) {
  colours <- c(palette_methods, "SGLD from zero" = palette_methods[["SGLD"]])
  list(
    scale_colour_manual(values = colours, breaks = methods, name = NULL),
    scale_fill_manual(values = colours, guide = "none"),
    scale_linetype_manual(values = method_line, breaks = methods, name = NULL),
    theme(legend.position = "right")
  )
}

# Medians over the chains, with the quartiles as a band; legend in the order of
# the curves' right ends.
plot_chains <- function(data, x, y, xlab, ylab, facet = NULL, ...) {
  keys <- data[c("method", x, facet)]
  range <- aggregate(data[[y]], keys, quantile, 1:3 / 4)
  range <- data.frame(
    range[names(keys)],
    low = range$x[, 1], mid = range$x[, 2], high = range$x[, 3]
  )
  last <- range[range[[x]] == max(range[[x]]), ]
  last <- tapply(last$mid, last$method, mean)
  methods <- names(sort(last[!is.na(last)], decreasing = TRUE))
  # dashes last, so that they show on the lines that they meet
  dashed <- method_line[methods] != "solid"
  range$method <- factor(range$method, levels = methods[order(dashed)])
  plot <- ggplot(
    range,
    aes(.data[[x]], mid, colour = method, fill = method)
  ) +
    geom_ribbon(aes(ymin = low, ymax = high), alpha = 0.15, colour = NA) +
    geom_line(aes(linetype = method), linewidth = 0.7) +
    method_scales(methods) +
    labs(x = xlab, y = ylab)
  if (!is.null(facet)) {
    plot <- plot + facet_wrap(facet, ...)
  }
  plot
}

power_of_ten <- function(x) parse(text = paste0("10^", round(log10(x))))

# Medians over chains at the end of the runs.
final <- function(data, y = "ksd") {
  last <- data[data$iteration == max(data$iteration), ]
  tapply(last[[y]], last$method, median)
}
final_of <- function(data, method) {
  data$ksd[data$iteration == max(data$iteration) & data$method == method]
}

plot_sizes <- function(figure, method = "ASGLD-CV-PS", chain = 1) {
  size <- figure$size[[method]][, chain]
  ggplot(data.frame(iteration = 20 * seq_along(size), size = size), aes(iteration, size)) +
    geom_step(colour = palette_methods[[method]], linewidth = 0.3) +
    labs(x = "iteration", y = "rows in a minibatch")
}

plot_passes <- function(figure, model, size, methods = c("SGLD-CV-PS", "ASGLD-CV-PS")) {
  sizes <- rowMeans(figure$size[[methods[[2]]]])
  iteration <- c(0, 20 * seq_along(sizes))
  data <- rbind(
    data.frame(method = methods[[1]], iteration, passes = iteration * size / model$n_data),
    data.frame(
      method = methods[[2]], iteration,
      passes = c(0, cumsum(20 * sizes)) / model$n_data
    )
  )
  ggplot(data, aes(iteration, passes, colour = method, linetype = method)) +
    geom_line(linewidth = 0.8) +
    method_scales(methods) +
    labs(x = "iteration", y = "passes over the data")
}
