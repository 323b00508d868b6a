# Bieringer et al. (2023): calibrated predictions, against MALA and Adam alone, on 45,730
# proteins. The paper has no numbers: data and settings are ours.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- casp ----
casp <- tall_data("casp")
set.seed(3)
held_out <- sample(nrow(casp), nrow(casp) %/% 10)
train <- casp[-held_out, ]
test <- casp[held_out, ]
n <- nrow(train)

fit_casp <- function(kernel, iter, warmup = iter / 2, ...) {
  tall_nn(
    RMSD ~ .,
    train,
    kernel = kernel,
    iter = iter,
    warmup = warmup,
    chains = 2,
    train_iter = full(4000, 20),
    seed = 1,
    ...
  )
}
adam <- kernel_adam_mcmc(1e-4, 1e-3, 5, adapt = TRUE)
adam_exact <- kernel_adam_mcmc(
  1e-4,
  1e-3,
  5,
  exact = TRUE,
  momentum_sd = c(0.01, 0.001),
  adapt = TRUE
)
# log of the mean over draws of the densities of each row
log_mean_density <- function(log_lik) {
  most <- apply(log_lik, 2, max)
  most + log(colMeans(exp(sweep(log_lik, 2, most))))
}
score <- function(fit) {
  p <- predict(fit, test)
  half <- predict(fit, test, prob = 0.5)
  y <- test$RMSD
  density <- log_mean_density(rstantools::log_lik(fit, newdata = test))
  data.frame(
    `log likelihood` = mean(density),
    RMSE = sqrt(mean((y - p$mean)^2)),
    `cover 50 %` = mean(y > half$lower & y < half$upper),
    `cover 90 %` = mean(y > p$lower & y < p$upper),
    `epistemic sd` = mean(p$sd_epistemic),
    acceptance = mean(fit$chains$acceptance),
    `seconds` = fit$time[["sampling"]],
    check.names = FALSE
  )
}
# Each method is scored, and one of them is kept for the picture.
kernels_casp <- list(
  # steps too small to see: the two trained networks themselves
  "Adam alone, two networks" = list(kernel_mala(1e-14), 4),
  "MALA" = list(kernel_mala(1e-6, adapt = TRUE), full(300, 6)),
  "AdamMCMC" = list(adam, full(300, 6)),
  "AdamMCMC, exact" = list(adam_exact, full(300, 6)),
  "SGLD" = list(kernel_sgld(1e-6), full(10000, 20)),
  "SGBD, corrected" = list(kernel_sgbd(1e-3, "corrected"), full(10000, 20))
)
runs_casp <- once("adam-casp", lapply(names(kernels_casp), function(name) {
  fit <- fit_casp(kernels_casp[[name]][[1]], kernels_casp[[name]][[2]])
  p <- predict(fit, test)
  p$y <- test$RMSD
  list(score = score(fit), pit = if (name == "AdamMCMC") p)
}))
names(runs_casp) <- names(kernels_casp)
scores <- do.call(rbind, lapply(runs_casp, `[[`, "score"))
show_table(
  cbind(method = names(kernels_casp), scores),
  digits = c(0, 3, 2, 3, 3, 2, 2, 1)
)

# ---- casp-verdict ----
two <- function(x) paste(decimals(x), collapse = ", ")
# of a share among 4,573 rows
share_error <- sqrt(0.9 * 0.1 / nrow(test))
calibrated <- abs(scores$"cover 90 %" - 0.9) < 0.03
wider <- scores[3:4, "epistemic sd"] > scores[1, "epistemic sd"]
verdict(
  "calibration on CASP", if (all(calibrated) && !any(wider)) "in part" else all(calibrated),
  "The 90 % intervals of all methods cover ", decimals(min(scores$"cover 90 %"), 3), " to ",
  decimals(max(scores$"cover 90 %"), 3), " of the held-out rows (standard error ",
  decimals(share_error, 3), "): the noise dominates. What sampling adds to two networks ",
  "trained by Adam cannot be seen after 300 iterations: epistemic standard deviations ",
  two(scores[2:4, "epistemic sd"]), " for MALA, AdamMCMC and its exact form, against ",
  decimals(scores[1, "epistemic sd"]), " between the two networks; ",
  two(scores[5:6, "epistemic sd"]), " for SGLD and SGBD."
)

# ---- casp-plot ----
# How often intervals of a nominal coverage hold the response (normal predictive laws).
p <- runs_casp[["AdamMCMC"]]$pit
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
