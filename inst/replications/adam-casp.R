# Bieringer et al. (2023): calibrated predictions, against MALA and Adam alone, on 45,730
# proteins. The paper has no numbers: data and settings are ours; one seed.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- casp ----
casp <- tall_data("casp")
set.seed(3)
held_out <- sample(nrow(casp), nrow(casp) %/% 10)
train <- casp[-held_out, ]
test <- casp[held_out, ]
fit_casp <- function(kernel, iter, seed) {
  tall_nn(
    RMSD ~ .,
    train,
    kernel = kernel,
    iter = iter,
    chains = 2,
    train_iter = full(4000, 20),
    seed = seed
  )
}
# log of the mean over draws of the densities of each row
log_mean_density <- function(log_lik) {
  most <- apply(log_lik, 2, max)
  most + log(colMeans(exp(sweep(log_lik, 2, most))))
}
score <- function(fit, p) {
  half <- predict(fit, test, prob = 0.5)
  y <- test$RMSD
  density <- log_mean_density(rstantools::log_lik(fit, newdata = test))
  c(
    "log likelihood" = mean(density),
    "RMSE" = sqrt(mean((y - p$mean)^2)),
    "cover 50 %" = mean(y > half$lower & y < half$upper),
    "cover 90 %" = mean(y > p$lower & y < p$upper),
    "epistemic sd" = mean(p$sd_epistemic),
    "acceptance" = mean(fit$chains$acceptance)
  )
}
adam <- function(...) kernel_adam_mcmc(1e-4, 1e-3, 5, adapt = TRUE, ...)
kernels_casp <- list(
  # steps too small to see: the two trained networks themselves
  "Adam alone, two networks" = list(kernel_mala(1e-14), 4),
  "MALA" = list(kernel_mala(1e-6, adapt = TRUE), full(300, 6)),
  "AdamMCMC" = list(adam(), full(300, 6)),
  "AdamMCMC, exact" = list(
    adam(exact = TRUE, momentum_sd = c(0.01, 0.001)), full(300, 6)
  ),
  "SGLD" = list(kernel_sgld(1e-6), full(10000, 20)),
  "SGBD, corrected" = list(kernel_sgbd(1e-3, "corrected"), full(10000, 20))
)
# Each method is scored with each seed; the first run of one is kept for the picture.
seeds_casp <- 1
run_casp <- function(how, seed) {
  fit <- fit_casp(how[[1]], how[[2]], seed)
  p <- predict(fit, test)
  list(
    score = score(fit, p),
    rows = if (seed == 1) data.frame(y = test$RMSD, mean = p$mean, sd = p$sd)
  )
}
runs_casp <- lapply(seeds_casp, function(seed) {
  lapply(setNames(names(kernels_casp), names(kernels_casp)), function(name) {
    before <- replication_clock$cpu
    run <- once(paste0("adam-casp-", name, "-", seed), run_casp(kernels_casp[[name]], seed))
    c(run, cpu = replication_clock$cpu - before)
  })
})
# processor seconds of a run, training and scoring included
cpu_casp <- vapply(runs_casp[[1]], `[[`, 0, "cpu")
# rows: seeds
scores <- lapply(setNames(names(kernels_casp), names(kernels_casp)), function(name) {
  do.call(rbind, lapply(runs_casp, function(runs) runs[[name]]$score))
})
score_text <- function(column, digits) {
  vapply(scores, function(s) with_error(s[, column], digits), "")
}
columns_casp <- c(
  "log likelihood" = 3, "RMSE" = 2, "cover 50 %" = 3, "cover 90 %" = 3, "epistemic sd" = 2
)
show_table(data.frame(
  method = names(scores),
  Map(score_text, names(columns_casp), columns_casp),
  acceptance = decimals(vapply(scores, function(s) mean(s[, "acceptance"]), 0)),
  check.names = FALSE
))

# ---- casp-plot ----
# How often intervals of a nominal coverage hold the response (normal predictive laws).
p <- runs_casp[[1]][["AdamMCMC"]]$rows
nominal <- seq(0.05, 0.95, 0.05)
observed <- vapply(nominal, function(level) {
  mean(abs(p$y - p$mean) < qnorm((1 + level) / 2) * p$sd)
}, 0)
print(
  ggplot(data.frame(nominal, observed), aes(nominal, observed)) +
    geom_abline(colour = "grey60") +
    geom_line(colour = palette_methods[["AdamMCMC"]], linewidth = 0.8) +
    geom_point(colour = palette_methods[["AdamMCMC"]], size = 1.4) +
    coord_equal(xlim = 0:1, ylim = 0:1) +
    labs(x = "nominal coverage", y = "share of held-out rows inside")
)

# ---- casp-verdict ----
middle_casp <- sapply(scores, colMeans)
cover <- middle_casp["cover 90 %", ]
likelihood <- middle_casp["log likelihood", ]
epistemic <- score_text("epistemic sd", 2)
# beyond what lies between the trained networks, in each seed
wider <- vapply(scores, function(s) {
  all(s[, "epistemic sd"] > scores[[1]][, "epistemic sd"])
}, NA)
verdict(
  "calibration on CASP",
  if (any(abs(cover - 0.9) > 0.02)) FALSE else if (all(wider[2:4])) TRUE else "in part",
  "Calibrated: the 90 % intervals of all methods cover ", decimals(min(cover), 3), " to ",
  decimals(max(cover), 3), " of the held-out rows (of ", plain(nrow(test), 4),
  " rows the standard error is ", decimals(sqrt(0.9 * 0.1 / nrow(test)), 3),
  "), but so do those of Adam alone: the noise dominates. Sampling adds: ",
  if (all(wider[2:4])) "yes" else "not in 300 iterations with all rows", "; epistemic standard ",
  "deviations are ", epistemic[["AdamMCMC"]], " for AdamMCMC, ", epistemic[["AdamMCMC, exact"]],
  " for its exact form and ", epistemic[["MALA"]], " for MALA, against ", epistemic[[1]],
  " between the two trained networks, and log likelihoods ", decimals(min(likelihood[2:4]), 3),
  " to ", decimals(max(likelihood[2:4]), 3), " against ", decimals(likelihood[[1]], 3),
  ". For SGLD they are ", epistemic[["SGLD"]], " and ", decimals(likelihood[["SGLD"]], 3),
  ", for SGBD ", epistemic[["SGBD, corrected"]], " and ", decimals(likelihood[["SGBD, corrected"]], 3),
  " (one seed)."
)
