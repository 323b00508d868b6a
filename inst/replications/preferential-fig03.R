# Putcha, Nemeth & Fearnhead (2023), Figure 3: adaptive minibatches on balanced data.
# Differs: a new draw of the same distribution; bench/preferential.R has ten of them.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("preferential.R"))

# ---- balanced ----
balanced <- balanced_model(1e4, 105)
balanced_mode <- find_mode(balanced)
fixed <- samplers(10, balanced_mode)[c("SGLD-CV", "SGLD-CV-PS")]
adaptive <- adaptive_samplers(
  balanced, balanced_mode, 10,
  step_size = 1e-4, iter = full(10000, 400)
)
adaptive[["ASGLD-CV-PS"]][[2]]

# ---- run-adaptive ----
prefixes <- full(c(10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500), c(10, 20))
figure_3 <- once("preferential-fig03", adaptive_figure(
  balanced, balanced_mode, c(fixed, adaptive), 1e-4, prefixes
))
mean_size <- mean(figure_3$size[["ASGLD-CV-PS"]])
same_size <- once("preferential-fig03-same", adaptive_figure(
  balanced, balanced_mode,
  list("SGLD-CV-PS" = samplers(round(mean_size), balanced_mode)[["SGLD-CV-PS"]]),
  1e-4, prefixes
))

# ---- figure-3a ----
print(
  plot_chains(figure_3$ksd, "iteration", "ksd", "iteration", "KSD") +
    scale_y_log10(labels = plain) +
    ggtitle("(a) Discrepancy")
)

# ---- figure-3b ----
print(plot_sizes(figure_3) + ggtitle("(b) Sizes along one chain of ASGLD-CV-PS"))

# ---- figure-3c ----
print(plot_passes(figure_3, balanced, 10) + ggtitle("(c) Passes over the data"))

# ---- figure-3-verdict ----
final_3 <- final(figure_3$ksd)
loss_3 <- ratio_interval(
  final_of(figure_3$ksd, "ASGLD-CV-PS"), final_of(figure_3$ksd, "SGLD-CV-PS")
)
same_3 <- ratio_interval(
  final_of(same_size$ksd, "SGLD-CV-PS"), final_of(figure_3$ksd, "SGLD-CV-PS")
)
# "no significant loss": up to a tenth
no_loss <- if (loss_3[["low"]] > 1.1) FALSE else if (loss_3[["high"]] < 1.1) TRUE else "in part"
verdict(
  "Figure 3", no_loss,
  "ASGLD-CV-PS makes ", plain(10 / mean_size, 2), " times fewer passes than SGLD-CV-PS, at ",
  interval_text(loss_3), " times its KSD (medians of ten chains)",
  if (identical(no_loss, "in part")) {
    "; whether that is a loss of accuracy ten chains cannot tell: bench/preferential.R has ten data sets"
  }, "."
)

# ---- figure-3-numbers ----
show_table(data.frame(
  sampler = c(names(final_3), paste("SGLD-CV-PS,", round(mean_size), "rows")),
  KSD = plain(c(final_3, final(same_size$ksd))),
  `rows in a minibatch, mean` = plain(c(vapply(names(final_3), function(name) {
    if (is.null(figure_3$size[[name]])) 10 else mean(figure_3$size[[name]])
  }, 0), round(mean_size))),
  check.names = FALSE
))
