# Mauri & Zanella (2024), Figures 3, 11 and 12: Sepsis, doubling the step size. Their
# settings; the run of the pictures is that of seed 123, the numbers are of five.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("barker.R"))

# ---- sepsis ----
sepsis <- barker_sepsis()
model_sepsis <- model_glm(sepsis$x, sepsis$y, prior = prior_normal(0, 1))
exact_sepsis <- truth_of("sepsis")

# ---- figure-3-runs ----
four <- list(
  list(method = "SGLD", size = "smaller", sigma = 2e-4),
  list(method = "SGLD", size = "larger", sigma = 4e-4),
  list(method = "SGBD", size = "smaller", sigma = 7.5e-4),
  list(method = "SGBD", size = "larger", sigma = 1.5e-3)
)
one_run <- function(s, seed) {
  fit <- sample_sepsis(model_sepsis, exact_sepsis, s$method, s$sigma, seed = seed)
  draws <- as.matrix(fit)
  list(
    draws = if (seed == 123) long_draws(fit, method = s$method, size = s$size),
    sd = apply(draws, 2, sd) / exact_sepsis$sd,
    ess = min(posterior::summarise_draws(fit$draws, "ess_bulk")$ess_bulk)
  )
}
sepsis_runs <- once("barker-fig03", lapply(four, function(s) {
  lapply(c(123, 1:4), function(seed) one_run(s, seed))
}))
runs <- do.call(rbind, lapply(sepsis_runs, function(r) r[[1]]$draws))
runs$size <- factor(paste0(runs$size, "~sigma"), c("smaller~sigma", "larger~sigma"))

# ---- figure-3 ----
band <- merge(
  data.frame(
    variable = exact_sepsis$variable,
    low = exact_sepsis$mean - 2 * exact_sepsis$sd,
    high = exact_sepsis$mean + 2 * exact_sepsis$sd
  ),
  data.frame(size = levels(runs$size))
)
panel_of <- function(variable, size) {
  text <- function(variable, size) sprintf("list(%s, %s)", variable, size)
  all <- expand.grid(
    size = levels(runs$size), variable = levels(label_theta(variable))
  )
  factor(text(label_theta(variable), size), text(all$variable, all$size))
}
band$panel <- panel_of(band$variable, band$size)
runs$panel <- panel_of(runs$variable, runs$size)
runs$method <- factor(runs$method, c("SGLD", "SGBD")) # SGBD in front
shown <- runs[runs$iteration %% 100 == 0, ]
# cut at ten standard deviations: SGLD at the larger step would hide SGBD in theta_1
scaled <- match(shown$variable, exact_sepsis$variable)
center <- exact_sepsis$mean[scaled]
reach <- 10 * exact_sepsis$sd[scaled]
shown$value <- pmin(pmax(shown$value, center - reach), center + reach)
print(
  ggplot(shown, aes(iteration, value)) +
    geom_line(aes(colour = method), linewidth = 0.15, alpha = 0.8) +
    geom_hline(data = band, aes(yintercept = low), linewidth = 0.25) +
    geom_hline(data = band, aes(yintercept = high), linewidth = 0.25) +
    facet_wrap(~panel, ncol = 2, scales = "free_y", labeller = label_parsed) +
    scale_methods() +
    scale_x_continuous(breaks = c(0, 1e5, 2e5), labels = c("0", "100,000", "200,000")) +
    guides(colour = guide_legend(override.aes = list(linewidth = 1, alpha = 1))) +
    labs(y = NULL) +
    theme(plot.margin = margin(5, 18, 5, 5))
)

# ---- figure-3-verdict ----
# rows: seeds; the four settings in columns
sd_age <- sapply(sepsis_runs, function(r) vapply(r, function(one) one$sd[[1]], 0))
colnames(sd_age) <- vapply(four, function(s) paste(s$method, s$size), "")
inflation <- function(method) {
  sd_age[, paste(method, "larger")] / sd_age[, paste(method, "smaller")]
}
verdict(
  "Figures 3 and 12",
  min(inflation("SGLD")) > 5 * max(inflation("SGBD")),
  "Doubling sigma multiplies the standard deviation of theta_1 by ",
  with_error(inflation("SGLD"), 1), " with SGLD and by ", with_error(inflation("SGBD")),
  " with SGBD (means over five seeds, standard errors). It is then ",
  with_error(sd_age[, 2], 1), " and ", with_error(sd_age[, 4]), " times the true one."
)

# ---- figure-3-table ----
sds <- sapply(sepsis_runs, function(r) {
  apply(sapply(r, `[[`, "sd"), 1, with_error)
})
ess <- sapply(sepsis_runs, function(r) median(sapply(r, `[[`, "ess")))
show_table(
  data.frame(
    method = vapply(four, function(s) s$method, ""),
    sigma = vapply(four, function(s) format(s$sigma, scientific = FALSE), ""),
    t(sds),
    "ESS of the slowest" = round(ess),
    check.names = FALSE, row.names = NULL
  ),
  caption = paste(
    "Standard deviation over the true one (mean of five seeds, standard error), and",
    "median effective sample size of the coordinate that mixes worst"
  )
)

# ---- figure-11 ----
print(plot_densities(runs, exact_sepsis, scales::label_parse()))

# ---- figure-11-verdict ----
verdict(
  "Figure 11", sd_age[1, "SGLD larger"] > 3 && sd_age[1, "SGBD larger"] < 2,
  "At the larger step the density of theta_1 under SGLD is flat beside the true one ",
  "(standard deviation ", plain(sd_age[1, "SGLD larger"]), " times the true one in the run ",
  "shown); that of SGBD is widened (", plain(sd_age[1, "SGBD larger"]), " times). Means of ",
  "five runs: table of Figure 3."
)
