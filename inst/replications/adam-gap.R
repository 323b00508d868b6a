# Bieringer et al. (2023): regression by a network, and its uncertainty where there are
# no data. The paper has no numbers: data and settings are ours.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- gap ----
set.seed(2)
gap <- data.frame(x = c(runif(150, -2, -0.6), runif(150, 0.8, 2)))
gap$y <- sin(3 * gap$x) + rnorm(300, sd = 0.2)
fit_gap <- function(seed) {
  tall_nn(
    y ~ x,
    gap,
    kernel = kernel_adam_mcmc(0.0005, 0.005, 1, adapt = TRUE),
    iter = full(4000, 40),
    train_iter = full(2000, 20),
    seed = seed
  )
}
fit <- fit_gap(1)
fit

# ---- gap-plot ----
print(plot(fit, "prediction"))

# ---- gap-table ----
at <- c(-1.9, -1.3, -0.7, -0.2, 0.1, 0.4, 0.9, 1.4, 1.9)
table <- predict(fit, data.frame(x = at))
show_table(cbind(x = at, table), digits = 2)

# ---- gap-verdict ----
ratio_of <- function(fit) {
  table <- predict(fit, data.frame(x = at))
  inside <- at > -0.6 & at < 0.8
  mean(table$sd_epistemic[inside]) / mean(table$sd_epistemic[!inside])
}
# two more sets of chains
ratios <- c(ratio_of(fit), once("adam-gap", vapply(2:3, function(s) ratio_of(fit_gap(s)), 0)))
verdict(
  "uncertainty without data", min(ratios) > 2,
  "In the gap the epistemic standard deviation is ", with_error(ratios, 1),
  " times that where there are data (three seeds, standard error); the noise is estimated ",
  "at ", decimals(sigma(fit)), " (made with 0.2)."
)

# ---- gap-summary ----
summary(fit)
