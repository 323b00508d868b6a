# Mauri & Zanella (2024), Figures 15 and 16: Arrhythmia, accuracy and log-loss against
# mixing, with their step sizes. Differs: three seeds; effective sample sizes by
# posterior::ess_mean(); 344 training rows as in their script (the paper says 362).
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("barker.R"))

# ---- figure-15 ----
arrhythmia <- barker_arrhythmia()
model <- model_glm(arrhythmia$x, arrhythmia$y, prior = prior_normal(0, 1))
exact_arrhythmia <- truth_of("arrhythmia")
grids <- list(
  SGBD_vanilla = c(0.04, 0.05, 0.07, 0.1, 0.15, 0.275, 0.5, 0.75, 1, 1.2),
  SGBD_corrected = c(0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1),
  SGBD_extreme = c(0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1),
  SGLD_vanilla = c(0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3),
  SGLD_corrected = c(0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.275, 0.29),
  SGLD_extreme = c(0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.275, 0.29)
)
sweep_one <- function(method, variant, sigma, seed) {
  fit <- sample_arrhythmia(arrhythmia, model, method, sigma, variant, 10, seed)
  draws <- as.matrix(fit)
  error <- standardised_bias(draws, exact_arrhythmia$mean, exact_arrhythmia$sd)
  p <- plogis(draws[seq(10, nrow(draws), 10), ] %*% t(arrhythmia$x_test))
  data.frame(
    method, variant, sigma, seed,
    ess = median(as.double(posterior::summarise_draws(fit$draws, "ess_mean")$ess_mean)),
    mean = mean(error$mean),
    variance = mean(error$variance),
    log_loss = log_loss(p, y = arrhythmia$y_test)
  )
}
seeds_15 <- full(c(123, 1, 2), 123)
sweep <- do.call(rbind, lapply(seeds_15, function(seed) {
  once(paste0("barker-fig15-", seed), do.call(rbind, lapply(names(grids), function(name) {
    part <- strsplit(name, "_")[[1]]
    do.call(rbind, Map(sweep_one, part[[1]], part[[2]], grids[[name]], seed))
  })))
}))
sweep$variant <- factor(sweep$variant, c("vanilla", "corrected", "extreme"))
# averages over the seeds, for the lines
averaged <- aggregate(
  cbind(ess, mean, variance, log_loss) ~ sigma + variant + method, sweep, mean
)

# ---- figure-15-plot ----
accurate <- subset(averaged, variant != "extreme")
both <- rbind(
  data.frame(accurate, what = "bias of the means", bias = accurate$mean),
  data.frame(accurate, what = "bias of the variances", bias = accurate$variance)
)
print(
  ggplot(both, aes(ess, bias, colour = method, linetype = variant, shape = variant)) +
    geom_line(linewidth = 0.7) +
    geom_point(size = 1.6) +
    facet_wrap(~what, scales = "free_y") +
    scale_x_log10() +
    scale_y_log10() +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_variants() +
    scale_shape_manual(values = shape_variants, name = NULL) +
    labs(x = "median effective sample size", y = "mean standardised bias")
)

# ---- figure-15-verdict ----
# by interpolation: the bias of one seed at an effective sample size
bias_near <- function(method, ess, what = "variance", variant = "vanilla") {
  vapply(unique(sweep$seed), function(seed) {
    s <- sweep[sweep$method == method & sweep$variant == variant & sweep$seed == seed, ]
    exp(approx(log(s$ess), log(s[[what]]), log(ess), ties = mean)$y)
  }, 0)
}
few <- 200
many <- 2000
gap <- function(ess, variant) {
  log(bias_near("SGLD", ess, "variance", variant) / bias_near("SGBD", ess, "variance", variant))
}
both_variants <- c("vanilla", "corrected")
small_step <- all(vapply(both_variants, function(v) all(gap(few, v) < 0), NA))
large_step <- all(vapply(both_variants, function(v) all(gap(many, v) > 0), NA))
verdict(
  "Figure 15",
  if (is_fast()) "in part" else if (small_step && large_step) TRUE else "in part",
  "The paper: SGLD is better at small steps, SGBD at large ones. Bias of the variances ",
  "(of a variance) at a median effective sample size of ", few, ": ",
  with_error(bias_near("SGLD", few), 3), " for v-SGLD and ",
  with_error(bias_near("SGBD", few), 3), " for v-SGBD; at ", plain(many), ": ",
  with_error(bias_near("SGLD", many), 3), " and ", with_error(bias_near("SGBD", many), 3),
  "; corrected: ", with_error(bias_near("SGLD", few, variant = "corrected"), 3), " and ",
  with_error(bias_near("SGBD", few, variant = "corrected"), 3), "; then ",
  with_error(bias_near("SGLD", many, variant = "corrected"), 3), " and ",
  with_error(bias_near("SGBD", many, variant = "corrected"), 3), ". Of the means: ", with_error(bias_near("SGLD", few, "mean"), 3), " and ",
  with_error(bias_near("SGBD", few, "mean"), 3), "; then ",
  with_error(bias_near("SGLD", many, "mean"), 3), " and ",
  with_error(bias_near("SGBD", many, "mean"), 3), " (three seeds, standard errors)."
)

# ---- figure-16 ----
single <- data.frame(
  method = rep(c("SGBD", "SGLD"), each = 3),
  variant = rep(c("vanilla", "corrected", "extreme"), 2),
  sigma = c(0.27, 0.22, 0.07, 0.145, 0.113, 0.09)
)
along_one <- function(k, seed) {
  s <- single[k, ]
  fit <- sample_arrhythmia(arrhythmia, model, s$method, s$sigma, s$variant, 100, seed)
  p <- plogis(as.matrix(fit) %*% t(arrhythmia$x_test))
  ergodic <- apply(p, 2, cumsum) / seq_len(nrow(p))
  y <- rep(arrhythmia$y_test, each = nrow(p))
  loss <- matrix(-log(ifelse(y == 1, ergodic, 1 - ergodic)), nrow(p))
  data.frame(
    s, seed,
    iteration = 5e4 + 100 * seq_len(nrow(p)), loss = rowMeans(loss), row.names = NULL
  )
}
along <- once("barker-fig16", do.call(rbind, lapply(seeds_15, function(seed) {
  do.call(rbind, lapply(seq_len(6), along_one, seed = seed))
})))
along$variant <- factor(along$variant, c("vanilla", "corrected", "extreme"))

# ---- figure-16-plot ----
first <- along[along$seed == 123, ]
panels <- rbind(
  data.frame(
    panel = "along the chains",
    x = first$iteration / 1e3, first[c("method", "variant", "loss")]
  ),
  data.frame(
    panel = "all draws, against mixing",
    x = averaged$ess, averaged[c("method", "variant")], loss = averaged$log_loss
  )
)
panels <- subset(panels, loss < 0.6 & (panel == "along the chains" | x > 300))
titles <- c(
  "along the chains" = "thousand iterations",
  "all draws, against mixing" = "all draws, against the median effective sample size"
)
panels$panel <- factor(titles[panels$panel], titles)
print(
  ggplot(panels, aes(x, loss, colour = method, linetype = variant)) +
    geom_line(linewidth = 0.7) +
    facet_wrap(~panel, scales = "free_x") +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_variants() +
    labs(x = NULL, y = "log-loss")
)

# ---- figure-16-verdict ----
last <- along[along$iteration == max(along$iteration), ]
loss_text <- function(method, variant) {
  with_error(last$loss[last$method == method & last$variant == variant], 3)
}
loss_mean <- tapply(last$loss, list(last$variant, last$method), mean)
better_a <- loss_mean[, "SGBD"] < loss_mean[, "SGLD"]
# (b): the lines of the right panel, where both methods have one
variants_16 <- c("vanilla", "corrected", "extreme")
line_16 <- function(method, variant, ess) {
  a <- averaged[averaged$method == method & averaged$variant == variant, ]
  approx(a$ess, a$log_loss, ess)$y
}
mixing <- seq(300, 3500, 10)
worse_at <- lapply(setNames(variants_16, variants_16), function(v) {
  mixing[which(line_16("SGBD", v, mixing) > line_16("SGLD", v, mixing))]
})
never_worse <- names(worse_at)[lengths(worse_at) == 0]
# by interpolation along each seed
loss_at <- function(method, ess, variant = "vanilla") {
  vapply(seeds_15, function(seed) {
    s <- sweep[sweep$method == method & sweep$variant == variant & sweep$seed == seed, ]
    approx(s$ess, s$log_loss, ess, ties = mean)$y
  }, 0)
}
ends_16 <- 3100
holds_b <- length(never_worse) == 3
verdict(
  "Figure 16",
  if (all(better_a) && holds_b) TRUE else if (any(better_a)) "in part" else FALSE,
  "(a) ", if (all(better_a)) "holds" else "does not hold for all variants",
  ": at steps of equal mixing (effective sample size about 1,000) the log-loss of ergodic ",
  "averages is, for v-, c- and e-SGBD, ", loss_text("SGBD", "vanilla"), ", ",
  loss_text("SGBD", "corrected"), " and ", loss_text("SGBD", "extreme"), "; for SGLD ",
  loss_text("SGLD", "vanilla"), ", ", loss_text("SGLD", "corrected"), " and ",
  loss_text("SGLD", "extreme"), ". (b) ",
  if (holds_b) "holds for every variant" else paste0(
    "holds for the variants ", paste(never_worse, collapse = " and "),
    " at every effective sample size shown, for vanilla up to ",
    plain(min(worse_at$vanilla, Inf), 2)
  ),
  ": at ", plain(ends_16), " v-SGBD has ", with_error(loss_at("SGBD", ends_16), 3),
  ", v-SGLD ", with_error(loss_at("SGLD", ends_16), 3), " (three seeds; standard errors are ",
  "over seeds, not over the ", nrow(arrhythmia$x_test), " held-out rows)."
)
