# Bieringer et al. (2023), section 4.1: does noise along the momentum raise acceptance?
# The paper claims it without numbers: network and grid are ours.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- acceptance ----
set.seed(2)
gap <- data.frame(x = c(runif(150, -2, -0.6), runif(150, 0.8, 2)))
gap$y <- sin(3 * gap$x) + rnorm(300, sd = 0.2)
x <- scale(gap$x)
model <- model_network(x, drop(scale(gap$y)))
trained <- lapply(1:2, function(seed) {
  set.seed(seed)
  suppressWarnings(find_mode(model, "adam", max_iter = full(4000, 20), batch_size = 64))
})
rate <- function(sigma, sigma_direction) {
  run <- sg_sample(
    model,
    kernel_adam_mcmc(2e-4, sigma, sigma_direction),
    iter = full(500, 20),
    warmup = 0,
    chains = 2,
    seed = 1,
    init = vapply(trained, coef, numeric(model$n_dim))
  )
  rate <- run$chains$acceptance
  c(mean(rate), sd(rate) / sqrt(2))
}
grid <- expand.grid(
  sigma = 10^seq(-4, -2.5, 0.5), sigma_direction = c(0, 0.3, 1, 3, 10)
)
grid[c("acceptance", "error")] <- once("adam-acceptance", {
  t(mapply(rate, grid$sigma, grid$sigma_direction))
})

# ---- acceptance-plot ----
# one method: its colour, black for round noise
direction_colour <- c("#000000", rep(palette_methods[["AdamMCMC"]], 4))
direction_line <- c("solid", "11", "solid", "52", "1252")
print(
  ggplot(grid, aes(
    sigma, acceptance,
    colour = factor(sigma_direction), linetype = factor(sigma_direction)
  )) +
    geom_line(linewidth = 0.7) +
    geom_point(aes(shape = factor(sigma_direction)), size = 2) +
    scale_x_log10() +
    scale_colour_manual(values = direction_colour) +
    scale_linetype_manual(values = direction_line) +
    labs(
      x = expression(sigma), y = "acceptance rate", colour = expression(sigma[nabla]),
      linetype = expression(sigma[nabla]), shape = expression(sigma[nabla])
    )
)

# ---- acceptance-table ----
wide <- xtabs(acceptance ~ signif(sigma, 2) + sigma_direction, grid)
wide_error <- xtabs(error ~ signif(sigma, 2) + sigma_direction, grid)
show_table(data.frame(
  sigma = rownames(wide), unclass(round(wide, 3)),
  check.names = FALSE
))

# ---- acceptance-verdict ----
best <- which.max(wide[, "1"] - wide[, "0"])
of_best <- function(column) {
  paste0(
    decimals(wide[best, column], 3), " (", decimals(wide_error[best, column], 3), ")"
  )
}
verdict(
  "noise along the momentum", wide[best, "1"] > wide[best, "0"] + 0.1,
  "At sigma = ", signif(as.numeric(rownames(wide)[best]), 2), " the acceptance rate rises from ",
  of_best("0"), " with round noise to ", of_best("1"), " at sigma_nabla = 1; at 10 it is ",
  of_best("10"), " (standard errors from two chains)."
)
