# The data and the runs that the figures of Mauri & Zanella (2024) share.

# The two tables as their experiments used them: a list of the covariates `x` and
# responses `y` of the training and the test part.

# Sepsis: raw covariates and a constant, y = left alive.
barker_sepsis <- function() {
  data <- tall_data("sepsis")
  x <- cbind(
    age = data$age_years,
    sex = data$sex_0male_1female,
    episode = data$episode_number,
    const = 1
  )
  set.seed(123)
  train <- sample(nrow(x), as.integer(0.8 * nrow(x)))
  list(x = x[train, ], y = data$hospital_outcome_1alive_0dead[train])
}

# Arrhythmia: without class 16 and 33 columns (constant, missing or collinear), the
# first 100 of the others, scaled twice (all rows, then the training part), a
# constant last; y = any arrhythmia.
barker_arrhythmia <- function() {
  data <- tall_data("arrhythmia")
  data <- data[data$class < 16, ]
  y <- as.double(data$class != 1)
  left_out <- c(
    11:15, 20, 22, 46, 48, 51, 61, 62, 68, 70, 75, 80, 84, 85, 86, 116, 132, 133,
    140, 142, 144, 146, 152, 157, 158, 165, 205, 265, 275
  )
  kept <- setdiff(names(data), c("class", paste0("v", left_out)))[1:100]
  x <- scale(as.matrix(data[kept]))
  set.seed(123)
  train <- sample(nrow(x), as.integer(0.8 * nrow(x)))
  center <- colMeans(x[train, ])
  sd <- apply(x[train, ], 2, stats::sd)
  x <- cbind(scale(x, center, sd), const = 1)
  list(x = x[train, ], y = y[train], x_test = x[-train, ], y_test = y[-train])
}

# Posterior means and standard deviations, by exact samplers
# (data-raw/barker-truth.R).
truth_of <- function(data, folder = dirname(replication_file("barker-truth.csv"))) {
  truth <- utils::read.csv(file.path(folder, "barker-truth.csv"))
  truth[truth$data == data, ]
}

# ---- kernels ----
kernel_of <- function(method, sigma, variant = "vanilla") {
  if (method == "SGLD") {
    kernel_sgld(step_size = sigma^2, variant)
  } else {
    kernel_sgbd(sigma, variant)
  }
}

# ---- toy-runs ----
# Draws of a target whose gradient has noise.
sample_toy <- function(target, method, sigma, variant = "vanilla") {
  fit <- sg_sample(
    target,
    kernel_of(method, sigma, variant),
    iter = full(2e5, 2000),
    warmup = full(1e5, 1000),
    thin = 50,
    chains = 1,
    seed = 123,
    init = target$start
  )
  as.matrix(fit)
}
skewed <- function(alpha, noise) {
  sd <- model_density("skew-normal", shape = alpha)$moments$sd[[1]]
  model_density(
    "skew-normal",
    shape = alpha,
    dim = 10,
    gradient_noise = "normal",
    noise_scale = noise * sd
  )
}

# ---- sepsis-runs ----
# The whole run from the posterior mean, as in the paper.
sample_sepsis <- function(model, exact, method, sigma, seed = 123) {
  sg_sample(
    model,
    kernel_of(method, sigma),
    gradient_simple(),
    subsample_uniform(881, replace = FALSE),
    iter = full(2e5, 2000),
    warmup = 0,
    thin = 20,
    chains = 1,
    seed = seed,
    init = exact$mean
  )
}
long_draws <- function(fit, ...) {
  draws <- as.matrix(fit)
  data.frame(
    iteration = 20 * seq_len(nrow(draws)),
    variable = rep(colnames(draws), each = nrow(draws)),
    value = as.vector(draws),
    ...
  )
}
label_theta <- function(x) {
  names <- c(
    age = "theta[1]~(age)", sex = "theta[2]~(sex)",
    episode = "theta[3]~(episode)", const = "theta[4]~(constant)"
  )
  factor(names[x], names)
}
# Marginal densities of runs (a column `size` tells lines apart) over the truth.
plot_densities <- function(runs, exact, labels) {
  grey <- do.call(rbind, lapply(seq_len(4), function(j) {
    t <- exact[j, ]
    value <- seq(t$mean - 6 * t$sd, t$mean + 6 * t$sd, length.out = 200)
    data.frame(variable = t$variable, value, density = dnorm(value, t$mean, t$sd))
  }))
  groups <- split(runs, list(runs$variable, runs$method, runs$size), drop = TRUE)
  estimates <- do.call(rbind, lapply(groups, function(r) {
    t <- exact[exact$variable == r$variable[[1]], ]
    range <- t$mean + c(-6, 6) * t$sd
    estimate <- density(r$value, from = range[[1]], to = range[[2]], n = 256)
    data.frame(
      r[1, c("variable", "method", "size")],
      value = estimate$x, density = estimate$y, row.names = NULL
    )
  }))
  ggplot(estimates, aes(value, density)) +
    geom_area(data = grey, fill = "grey85") +
    geom_line(aes(colour = method, linetype = size), linewidth = 0.7) +
    facet_wrap(~ label_theta(variable), scales = "free", labeller = label_parsed) +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_linetype_manual(values = c("21", "solid"), labels = labels) +
    labs(x = NULL, y = NULL, linetype = NULL) +
    theme(
      axis.text.y = element_blank(),
      axis.ticks.y = element_blank(),
      # room for the labels of the ends
      plot.margin = margin(5, 18, 5, 18)
    )
}

# ---- arrhythmia-runs ----
# From a draw of N(0, I), half of the run dropped.
sample_arrhythmia <- function(data, model, method, sigma, variant, thin, seed = 123) {
  set.seed(seed)
  sg_sample(
    model,
    kernel_of(method, sigma, variant),
    gradient_simple(),
    subsample_uniform(34, replace = FALSE),
    iter = full(1e5, 2000),
    warmup = full(5e4, 1000),
    chains = 1,
    seed = seed,
    init = rnorm(101),
    thin = thin
  )
}
