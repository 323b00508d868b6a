# Putcha, Nemeth & Fearnhead (2023), Figure 5: adaptive minibatches on CASP. Their
# settings; ten seeds, pilot chains and thresholds included, of ten (the first) and four
# chains each (they: ten chains of one).
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("preferential.R"))

# ---- casp-adaptive ----
casp <- casp_model()
casp_mode <- find_mode(casp)
casp_size <- 45
casp_step <- 1e-5
casp_samplers <- samplers(casp_size, casp_mode)
one_seed <- function(seed) {
  adaptive <- adaptive_samplers(
    casp, casp_mode, casp_size, casp_step,
    iter = full(10000, 400), seed = 100 * seed
  )
  chosen <- c(casp_samplers[c("SGLD-CV", "SGLD-CV-PS")], adaptive)
  grow <- if (seed == 1) c(10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500) else 500
  figure <- adaptive_figure(
    casp, casp_mode, chosen, casp_step, full(grow, 20), seed,
    chains = if (seed == 1) 10 else 4
  )
  list(
    seed = seed,
    ksd = figure$ksd,
    # those of all seeds but the first are summarised
    size = if (seed == 1) figure$size,
    mean_size = sapply(figure$size[names(adaptive)], mean),
    median_size = sapply(figure$size[names(adaptive)], median),
    largest = sapply(figure$size[names(adaptive)], max)
  )
}
figure_5_seeds <- once("preferential-fig05", lapply(seq_len(full(10, 2)), one_seed))
figure_5 <- figure_5_seeds[[1]]

# ---- figure-5a ----
print(
  plot_chains(figure_5$ksd, "iteration", "ksd", "iteration", "KSD") +
    scale_y_log10(labels = plain) +
    ggtitle("(a) Discrepancy")
)

# ---- figure-5b ----
print(
  plot_passes(figure_5, casp, casp_size, c("SGLD-CV", "ASGLD-CV")) +
    ggtitle("(b) Passes over the data, uniform draws")
)

# ---- figure-5c ----
print(
  plot_passes(figure_5, casp, casp_size) +
    ggtitle("(c) Passes over the data, preferential draws")
)

# ---- figure-5-sizes ----
print(plot_sizes(figure_5) + ggtitle("Sizes along one chain of ASGLD-CV-PS"))

# ---- figure-5-verdict ----
seeds_5 <- function(method) lapply(figure_5_seeds, function(s) final_of(s$ksd, method))
all_5 <- function(method) unlist(seeds_5(method))
by_seed <- function(method) {
  vapply(figure_5_seeds, function(s) median(final_of(s$ksd, method)), 0)
}
sizes_5 <- function(what, method) vapply(figure_5_seeds, function(s) s[[what]][[method]], 0)
loss_ps <- ratio_interval(seeds_5("ASGLD-CV-PS"), seeds_5("SGLD-CV-PS"))
loss_cv <- ratio_interval(seeds_5("ASGLD-CV"), seeds_5("SGLD-CV"))
saved_ps <- casp_size / sizes_5("mean_size", "ASGLD-CV-PS")
saved_cv <- casp_size / sizes_5("mean_size", "ASGLD-CV")
verdict(
  "Figure 5",
  if (loss_ps[["low"]] > 1) "in part" else TRUE,
  "Far fewer rows with weights only: ASGLD-CV-PS takes ", with_error(saved_ps, 1), " times ",
  "fewer than SGLD-CV-PS, ASGLD-CV ", with_error(saved_cv, 1), " times fewer than SGLD-CV (means ",
  "of the ratios of ten seeds, standard errors). \"No significant loss of accuracy\" does not ",
  "hold: the KSD is ", interval_text(loss_ps), " times that of SGLD-CV-PS, and ",
  interval_text(loss_cv), " times that of SGLD-CV (medians over ", length(all_5("SGLD-CV")),
  " chains; intervals over seeds)."
)

# ---- figure-5-numbers ----
methods_5 <- c("SGLD-CV", "SGLD-CV-PS", "ASGLD-CV", "ASGLD-CV-PS")
range_text <- function(x) {
  if (min(x) == max(x)) plain(min(x)) else paste(plain(min(x)), "to", plain(max(x)))
}
show_table(data.frame(
  sampler = methods_5,
  `KSD, median` = vapply(methods_5, function(m) plain(median(all_5(m))), ""),
  `medians of the seeds` = vapply(methods_5, function(m) range_text(by_seed(m)), ""),
  `worst chain` = vapply(methods_5, function(m) plain(max(all_5(m))), ""),
  `rows in a minibatch, mean` = c(
    plain(c(casp_size, casp_size)),
    vapply(methods_5[3:4], function(m) plain(mean(sizes_5("mean_size", m))), "")
  ),
  check.names = FALSE
))
