# Mauri & Zanella (2024), Figures 2 and 10: the densities of skew-normal draws.
# Differs: ten coordinates at once; SGLD added.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("barker.R"))

# ---- figure-10 ----
density_table <- function(alpha, sigmas, methods = c("SGLD", "SGBD")) {
  target <- skewed(alpha, 1)
  sd <- target$moments$sd[[1]]
  do.call(rbind, lapply(methods, function(method) {
    do.call(rbind, lapply(sigmas, function(sigma) {
      draws <- sample_toy(target, method, sigma * sd)
      each <- apply(draws, 2, stats::sd) / sd
      estimate <- density(draws, bw = 0.05, from = -2.5, to = 4.5)
      data.frame(
        alpha, method, sigma,
        theta = estimate$x, density = estimate$y,
        sd = mean(each), error = stats::sd(each) / sqrt(length(each))
      )
    }))
  }))
}
shapes <- once("barker-fig10", rbind(
  density_table(5, c(0.1, 0.5)),
  density_table(20, c(0.05, 0.1, 0.5, 0.75))
))
grey <- expand.grid(alpha = c(5, 20), theta = seq(-2.5, 4.5, length.out = 400))
grey$density <- 2 * dnorm(grey$theta) * pnorm(grey$alpha * grey$theta)
facet_alpha <- function(x) factor(paste0("alpha == ", x), paste0("alpha == ", c(5, 20)))
print(
  ggplot(shapes, aes(theta, density)) +
    geom_area(data = grey, fill = "grey85") +
    geom_line(aes(colour = method, linetype = factor(sigma)), linewidth = 0.6) +
    facet_grid(method ~ facet_alpha(alpha), labeller = labeller(.cols = label_parsed)) +
    scale_methods(guide = "none") +
    scale_linetype_manual(values = c("12", "42", "71", "solid")) +
    labs(x = expression(theta), linetype = expression(sigma / sd))
)

# ---- figure-10-verdict ----
widest <- function(method) {
  s <- shapes[shapes$alpha == 20 & shapes$method == method & shapes$sigma == 0.75, ]
  s[1, ]
}
widest_text <- function(method) {
  paste0(decimals(widest(method)$sd), " (", decimals(widest(method)$error, 3), ")")
}
verdict(
  "Figure 10",
  widest("SGLD")$sd - 1 > 2 * (widest("SGBD")$sd - 1),
  "At alpha = 20 and sigma = 0.75 sd the draws of v-SGBD have ", widest_text("SGBD"),
  " times the standard deviation of the target, those of v-SGLD ", widest_text("SGLD"),
  " times (standard errors over ten coordinates)."
)
