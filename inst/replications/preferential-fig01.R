# Putcha, Nemeth & Fearnhead (2023), Figure 1: pseudo-variance of the gradient. Differs:
# new draws of the same distributions; trace weights in place of the Frobenius
# norm.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("preferential.R"))

# ---- noise-models ----
models <- list(
  "Gaussian" = gaussian_model(1000, 100),
  "balanced logistic" = balanced_model(1000, 100),
  "imbalanced logistic" = imbalanced_model(1000, 100)
)
estimators <- list(
  "SGLD" = gradient_simple(),
  "SGLD-CV" = gradient_cv()
)
schemes <- list(
  "uniform" = function(n, gradient) subsample_uniform(n),
  "uniform, without replacement" = function(n, gradient) subsample_uniform(n, replace = FALSE),
  "fixed weights" = function(n, gradient) {
    subsample_weighted(n, if (gradient == "SGLD") "gradient" else "hessian")
  },
  "exact weights" = function(n, gradient) subsample_optimal(n)
)

# ---- run-noise ----
noise_of <- function(model, label) {
  mode <- find_mode(model)
  set.seed(2)
  points <- sweep(matrix(rnorm(10 * model$n_dim), 10) %*% chol(vcov(mode)), 2, mode$estimate, "+")
  grid <- expand.grid(
    gradient = names(estimators), scheme = names(schemes), share = full(c(1:9, seq(10, 95, 5), 97:99), c(1, 10, 95)) / 100,
    stringsAsFactors = FALSE
  )
  simulated <- c(0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
  value <- function(row, method) {
    mean(pseudo_variance(
      model, points, estimators[[row$gradient]],
      schemes[[row$scheme]](1000 * row$share, row$gradient),
      method = method, replicates = full(1000, 50), seed = 3
    ))
  }
  rows <- split(grid, seq_len(nrow(grid)))
  grid$exact <- vapply(rows, value, 0, "exact")
  grid$monte_carlo <- vapply(rows, function(row) {
    if (any(abs(row$share - simulated) < 1e-9)) value(row, "monte_carlo") else NA_real_
  }, 0)
  cbind(model = label, grid)
}
noise <- once("preferential-fig01", do.call(rbind, Map(noise_of, models, names(models))))
noise$model <- factor(noise$model, names(models))
# with equal curvature everywhere control variates leave no noise at all
noise <- noise[noise$exact > 1e-6, ]
simulation_error <- with(noise, max(abs(monte_carlo / exact - 1), na.rm = TRUE))

# ---- figure-1 ----
# The samplers of the other figures have their colours; lines say how rows are drawn.
drawn_as <- c(
  "uniform" = "as the sampler draws", "fixed weights" = "as the sampler draws",
  "uniform, without replacement" = "without replacement",
  "exact weights" = "exact weights in place of fixed ones"
)
shown_noise <- transform(
  noise,
  sampler = paste0(gradient, ifelse(grepl("weights", scheme), "-PS", "")),
  drawn = factor(drawn_as[scheme], unique(drawn_as))
)
print(
  ggplot(shown_noise, aes(share, exact, colour = sampler, linetype = drawn)) +
    geom_line(linewidth = 0.6) +
    geom_point(aes(y = monte_carlo, shape = drawn), size = 1.5, na.rm = TRUE) +
    facet_wrap("model", scales = "free_y") +
    scale_x_log10(breaks = c(0.01, 0.1, 1), labels = c("0.01", "0.1", "1")) +
    scale_y_log10(breaks = 10^(-2:8), labels = power_of_ten) +
    scale_methods(breaks = c("SGLD", "SGLD-PS", "SGLD-CV", "SGLD-CV-PS")) +
    scale_linetype_manual(values = c("solid", "11", "52"), name = NULL) +
    scale_shape_manual(values = c(16, 0, 4), name = NULL) +
    labs(x = "share of the rows in a minibatch, n/N", y = "pseudo-variance") +
    theme(legend.box = "vertical", legend.margin = margin(), panel.spacing = grid::unit(1.2, "lines"))
)

# ---- figure-1-verdict ----
curve <- function(model, gradient, scheme) {
  noise[noise$model == model & noise$gradient == gradient & noise$scheme == scheme, ]
}
at_tenth <- function(gradient, scheme, model = "imbalanced logistic") {
  data <- curve(model, gradient, scheme)
  data$exact[abs(data$share - 0.1) < 1e-9]
}
# fixed weights over exact ones, where control variates leave noise at all
exact_gain <- function(model, gradient = "SGLD") {
  at_tenth(gradient, "fixed weights", model) / at_tenth(gradient, "exact weights", model)
}
exact_gains <- vapply(names(models), exact_gain, 0)
exact_gains_cv <- vapply(names(models)[-1], exact_gain, 0, "SGLD-CV")
# up to a fifth of the rows: fixed weights against uniform draws, and the lowest curve
few <- noise[noise$share <= 0.2 + 1e-9, ]
at_few <- function(scheme) few$exact[few$scheme == scheme]
weights_win <- all(at_few("fixed weights") < at_few("uniform"))
lowest <- all(vapply(split(few, list(few$model, few$share), drop = TRUE), function(one) {
  # where control variates leave noise at all
  !any(one$gradient == "SGLD-CV") ||
    one$scheme[which.min(one$exact)] == "exact weights" && one$gradient[which.min(one$exact)] == "SGLD-CV"
}, NA))
wor_wins <- all(vapply(split(noise, list(noise$model, noise$gradient), drop = TRUE), function(one) {
  one <- one[abs(one$share - max(one$share)) < 1e-9, ]
  one$scheme[which.min(one$exact)] == "uniform, without replacement"
}, NA))
# "very little difference" between exact and fixed weights: up to a tenth
exact_close <- all(exact_gains < 1.1)
weights_claim <- weights_win && lowest && wor_wins
verdict(
  "Figure 1", if (weights_claim && !exact_close) "in part" else weights_claim,
  "Up to n = 0.2 N fixed weights leave ", plain(min(at_few("fixed weights") / at_few("uniform")), 2), " to ",
  plain(max(at_few("fixed weights") / at_few("uniform")), 2),
  " of the noise of uniform draws; control variates with exact weights leave least; without ",
  "replacement wins as n nears N. \"Very little difference\" between fixed and exact weights ",
  "without control variates: fixed ones have ", toString(decimals(exact_gains)), " times the noise in ",
  "the Gaussian, balanced and imbalanced examples. The simulated points are within ",
  percent(simulation_error), " of the exact lines (1,000 minibatches at ten points)."
)

# ---- figure-1-numbers ----
noise_row <- function(model, gradient) {
  uniform <- curve(model, gradient, "uniform")
  without <- curve(model, gradient, "uniform, without replacement")
  fixed <- curve(model, gradient, "fixed weights")
  exact <- curve(model, gradient, "exact weights")
  if (nrow(uniform) == 0) {
    return(NULL)
  }
  wins <- fixed$share[fixed$exact < without$exact]
  data.frame(
    posterior = model,
    estimate = gradient,
    `fixed / uniform` = plain(fixed$exact[[1]] / uniform$exact[[1]]),
    `exact / uniform` = plain(exact$exact[[1]] / uniform$exact[[1]]),
    `fixed beat drawing without replacement up to n/N` = plain(max(wins)),
    check.names = FALSE
  )
}
noise_table <- do.call(rbind, Map(
  noise_row,
  rep(names(models), each = 2),
  rep(names(estimators), 3)
))
show_table(noise_table)
weight_gain <- with(
  noise[abs(noise$share - 0.1) < 1e-9, ],
  exact[scheme == "fixed weights"] / exact[scheme == "uniform"]
)
