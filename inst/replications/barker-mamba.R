# Mauri & Zanella (2024) tune by MAMBA on Sepsis only (Figure 13): the same on
# Arrhythmia, against the error of every step size. No figure of theirs; steps of Figure
# 15, budget and score of Figure 13.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("barker.R"))

# ---- mamba-model ----
arrhythmia <- barker_arrhythmia()
model <- model_glm(arrhythmia$x, arrhythmia$y, prior = prior_normal(0, 1))
exact_arrhythmia <- truth_of("arrhythmia")

# ---- mamba ----
steps_mamba <- list(
  SGLD = c(0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3),
  SGBD = c(0.04, 0.05, 0.07, 0.1, 0.15, 0.275, 0.5, 0.75, 1, 1.2)
)
race <- function(method, seed, iterations, ...) {
  sg_tune(
    model,
    function(sigma) kernel_of(method, sigma),
    list(sigma = steps_mamba[[method]]),
    budget = iterations * 34,
    gradient = gradient_simple(),
    subsample = subsample_uniform(34, replace = FALSE),
    chains = 1,
    seed = seed,
    ...
  )$best$sigma
}
settings_mamba <- list(
  # from the posterior mean, in the units of the parameters, all draws scored
  "as on Sepsis" = list(
    full(2e4, 2000),
    metric = "fssd", covariance = NULL, points = full(4000, 50),
    init = exact_arrhythmia$mean
  ),
  # KSD in posterior standard deviations, from off the mode
  "default" = list(full(2e5, 2000), metric = "ksd", points = full(100, 20))
)
races <- once("barker-mamba", lapply(settings_mamba, function(setting) {
  lapply(setNames(names(steps_mamba), names(steps_mamba)), function(method) {
    vapply(seq_len(full(8, 1)), function(seed) {
      do.call(race, c(list(method, seed), setting))
    }, 0)
  })
}))
# The same races as the first, scored by KSD.
races[["as on Sepsis, by KSD"]] <- once("barker-mamba-ksd", {
  lapply(setNames(names(steps_mamba), names(steps_mamba)), function(method) {
    vapply(seq_len(full(8, 1)), function(seed) {
      race(
        method, seed, full(2e4, 2000),
        metric = "ksd", covariance = NULL, points = full(400, 50),
        init = exact_arrhythmia$mean
      )
    }, 0)
  })
})

# Error of every step size in a run of Figure 15: root mean square of those of the means
# (in standard deviations) and of the standard deviations (relative); three seeds.
error_of <- function(method, sigma, seed) {
  fit <- sample_arrhythmia(arrhythmia, model, method, sigma, "vanilla", 10, seed)
  draws <- as.matrix(fit)
  off <- (colMeans(draws) - exact_arrhythmia$mean) / exact_arrhythmia$sd
  wide <- apply(draws, 2, sd) / exact_arrhythmia$sd - 1
  sqrt(mean(c(off, wide)^2))
}
errors_mamba <- once("barker-mamba-errors", do.call(rbind, lapply(
  names(steps_mamba),
  function(method) {
    runs <- expand.grid(sigma = steps_mamba[[method]], seed = full(c(123, 1, 2), 123))
    error <- mapply(error_of, method, runs$sigma, runs$seed)
    data.frame(method, runs, error)
  }
)))

# ---- mamba-figure ----
curve_mamba <- aggregate(error ~ sigma + method, errors_mamba, mean)
chosen_mamba <- do.call(rbind, lapply(names(races), function(setting) {
  do.call(rbind, lapply(names(steps_mamba), function(method) {
    times <- table(races[[setting]][[method]])
    data.frame(method, setting, sigma = as.double(names(times)), races = as.double(times))
  }))
}))
chosen_mamba <- merge(chosen_mamba, curve_mamba)
print(
  ggplot(curve_mamba, aes(sigma, error, colour = method)) +
    geom_line(linewidth = 0.7) +
    geom_point(data = chosen_mamba, aes(shape = setting), size = 4, stroke = 1) +
    scale_x_log10(breaks = c(0.02, 0.05, 0.1, 0.2, 0.5, 1)) +
    scale_y_log10() +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_shape_manual(values = c("as on Sepsis" = 0, "as on Sepsis, by KSD" = 4, "default" = 19), name = "chosen") +
    labs(x = expression(sigma), y = "error of a long run") +
    theme(legend.box = "vertical", legend.margin = margin())
)

# ---- mamba-verdict ----
best_mamba <- function(method) {
  own <- curve_mamba[curve_mamba$method == method, ]
  own[which.min(own$error), ]
}
chosen_text <- function(setting, method) {
  own <- chosen_mamba[chosen_mamba$setting == setting & chosen_mamba$method == method, ]
  paste0(own$sigma, " (", own$races, ", error ", plain(own$error, 2), ")", collapse = ", ")
}
mamba_text <- function(setting) {
  paste0(
    chosen_text(setting, "SGLD"), " for SGLD and ", chosen_text(setting, "SGBD"), " for SGBD"
  )
}
# within a half of the least error
close_mamba <- function(setting) {
  own <- chosen_mamba[chosen_mamba$setting == setting, ]
  least <- vapply(own$method, function(method) best_mamba(method)$error, 0)
  all(own$error < 1.5 * least)
}
end_mamba <- best_mamba("SGBD")$sigma == min(steps_mamba$SGBD)
verdict(
  "MAMBA on Arrhythmia, by the paper's score", close_mamba("as on Sepsis"),
  "Steps chosen as on Sepsis, in ", length(races[[1]]$SGLD), " races for each method (how ",
  "often, and the error that a long run has there): ", mamba_text("as on Sepsis"),
  ". The least errors are ",
  plain(best_mamba("SGLD")$error, 2), " at ", best_mamba("SGLD")$sigma, " and ",
  plain(best_mamba("SGBD")$error, 2), " at ", best_mamba("SGBD")$sigma,
  if (end_mamba) ", the smallest step of its grid", ". With KSD in place of FSSD: ",
  mamba_text("as on Sepsis, by KSD"), ". By the defaults of sg_tune(): ", mamba_text("default"), "."
)
