# Bieringer et al. (2023): classification by a network. The paper's task (jets of
# particles) is beyond this package; two half moons as in the authors' example. Settings
# are ours.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- moons ----
# Two interleaved half circles with noise.
half_moons <- function(n, sd) {
  upper <- rep(0:1, length.out = n)
  angle <- runif(n, 0, pi)
  data.frame(
    x1 = ifelse(upper == 1, cos(angle), 1 - cos(angle)) + rnorm(n, sd = sd),
    x2 = ifelse(upper == 1, sin(angle), 0.5 - sin(angle)) + rnorm(n, sd = sd),
    class = factor(ifelse(upper == 1, "upper", "lower"))
  )
}
set.seed(4)
moons <- half_moons(600, 0.35)
moons_test <- half_moons(4000, 0.35)
kernels_moons <- list(
  "Adam alone, one network" = list(kernel_mala(1e-14), 4, 1),
  "Adam alone, four networks" = list(kernel_mala(1e-14), 4, 4),
  "MALA" = list(kernel_mala(1e-5, adapt = TRUE), full(2000, 40), 4),
  "AdamMCMC" = list(
    kernel_adam_mcmc(0.0005, 0.005, 1, adapt = TRUE), full(2000, 40), 4
  )
)
fit_moons <- function(how, seed) {
  suppressWarnings(tall_nn(
    class ~ x1 + x2,
    moons,
    kernel = how[[1]], iter = how[[2]], chains = how[[3]],
    train_iter = full(3000, 20),
    seed = seed
  ))
}
far_away <- data.frame(x1 = c(-6, 6, 0, 6), x2 = c(6, -6, -8, 6))
score_moons <- function(how, seed) {
  fit <- fit_moons(how, seed)
  # the probability of the second level
  upper <- function(rows) as.double(predict(fit, rows, type = "response"))
  p <- upper(moons_test)
  y <- moons_test$class == "upper"
  # expected calibration error, ten bins
  bin <- cut(p, 0:10 / 10, include.lowest = TRUE)
  gap <- tapply(p - y, bin, function(d) abs(sum(d)))
  # how far from certain predictions are where there are no data
  away <- upper(far_away)
  c(
    log_loss = -mean(log(ifelse(y, p, 1 - p))),
    error = mean((p > 0.5) != y),
    calibration = sum(gap, na.rm = TRUE) / length(y),
    doubt = mean(pmin(away, 1 - away))
  )
}
moons_scores <- lapply(setNames(names(kernels_moons), names(kernels_moons)), function(name) {
  t(vapply(seq_len(full(3, 1)), function(seed) {
    once(
      paste0("adam-classification-", name, "-", seed),
      score_moons(kernels_moons[[name]], seed)
    )
  }, numeric(4)))
})

# ---- moons-table ----
moons_text <- function(column, digits = 3) {
  vapply(moons_scores, function(s) with_error(s[, column], digits), "")
}
show_table(data.frame(
  method = names(moons_scores),
  `log-loss` = moons_text("log_loss", 4),
  `share of errors` = moons_text("error"),
  `calibration error` = moons_text("calibration"),
  `doubt far away` = moons_text("doubt"),
  check.names = FALSE
))

# ---- moons-verdict ----
middle <- t(sapply(moons_scores, colMeans))
# AdamMCMC less one and four networks, in standard errors over the seeds
differences <- sapply(c("calibration", "log_loss"), function(column) {
  value <- do.call(cbind, lapply(moons_scores, function(s) s[, column]))
  less <- value[, "AdamMCMC"] - value[, 1:2, drop = FALSE]
  colMeans(less) / (apply(less, 2, sd) / sqrt(nrow(less)))
})
both_of <- function(name) {
  paste(moons_text("calibration")[[name]], "and", moons_text("log_loss", 4)[[name]])
}
verdict(
  "classification", isTRUE(all(differences < -2)),
  if (isTRUE(all(abs(differences) < 2))) "No difference could be seen. ",
  "Calibration error and log-loss of AdamMCMC: ", both_of("AdamMCMC"), "; of one and of four ",
  "networks trained by Adam: ", both_of(names(moons_scores)[[1]]), ", ",
  both_of(names(moons_scores)[[2]]), "; of MALA: ", both_of("MALA"),
  " (three seeds, standard errors)."
)
