# Putcha, Nemeth & Fearnhead (2023), Figure 2: four samplers at the same cost, CASP and
# covertype. Their settings. Differs: KSD from exact gradients, at every 20th and 50th
# draw; the mode by Newton; SGLD from the mode as well as from zero.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("preferential.R"))

# ---- casp ----
casp <- casp_model()
casp_mode <- find_mode(casp)
casp

# ---- casp-settings ----
casp_size <- 45
casp_step <- 1e-5
casp_samplers <- samplers(casp_size, casp_mode)

# ---- run-casp ----
grow <- full(c(10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500), 20)
draws_casp <- function(sampler, ..., seed = 1) {
  run_sampler(
    casp, sampler, casp_step,
    iter = full(10000, 400), thin = 20, chains = full(10, 2), seed = seed, ...
  )
}
casp_runs <- once("preferential-fig02-casp", {
  fits <- lapply(casp_samplers, draws_casp, init = casp_mode$estimate)
  fits[["SGLD from zero"]] <- draws_casp(
    casp_samplers$SGLD,
    init = numeric(10), warmup = full(10000, 400)
  )
  noisy_run <- run_sampler(
    casp, casp_samplers[["SGLD-CV-PS"]], casp_step, casp_mode$estimate,
    iter = full(10000, 400), thin = 20, chains = 1, seed = 1,
    keep = c("draws", "gradients")
  )
  list(
    ksd = do.call(rbind, Map(
      score_chains, fits, list(casp), names(fits), list(grow), 20
    )),
    noise = noise_share(casp, casp_mode, casp_samplers, casp_step),
    # what the authors' program computes, step by step
    variants = c(
      exact = ksd(noisy_run),
      noisy = as.numeric(ksd(noisy_run, "kept")),
      sign = ksd(noisy_run$draws, -matrix(noisy_run$gradients, ncol = 10)),
      coordinate = ksd(noisy_run, form = "coordinate")
    )
  )
})
casp_ksd <- casp_runs$ksd
casp_noise <- casp_runs$noise
ksd_variants <- casp_runs$variants

# ---- figure-2a ----
print(
  plot_chains(casp_ksd, "iteration", "ksd", "iteration", "KSD") +
    scale_y_log10(labels = plain) +
    ggtitle("(a) CASP, linear regression")
)

# ---- covertype ----
covertype <- covertype_models()
tree <- covertype$train
tree_mode <- find_mode(tree)
tree_mode

# ---- covertype-settings ----
tree_size <- 0.001
tree_step <- 1e-6
tree_samplers <- samplers(tree_size, tree_mode)

# ---- run-covertype ----
grow_tree <- full(c(5, 10, 20, 30, 50, 75, 100, 150, 200), 8)
tree_scores <- function(sampler, method, warmup = 0, ...) {
  fit <- run_sampler(
    tree, sampler, tree_step,
    iter = full(10000, 400), thin = 50, chains = full(10, 2), seed = 1, warmup = warmup,
    monitor = list(every = full(500, 200), "log-loss" = monitor_log_loss(covertype$test)),
    ...
  )
  watched <- fit$monitor
  watched <- watched[watched$statistic == "draw" & watched$iteration > warmup, ]
  watched$iteration <- watched$iteration - warmup
  watched$method <- method
  list(ksd = score_chains(fit, tree, method, grow_tree, 50), loss = watched)
}
tree_runs <- lapply(setNames(names(tree_samplers), names(tree_samplers)), function(name) {
  once(
    paste0("preferential-fig02-", name),
    tree_scores(tree_samplers[[name]], name, init = tree_mode$estimate)
  )
})
tree_runs[["SGLD from zero"]] <- once("preferential-fig02-zero", tree_scores(
  tree_samplers$SGLD, "SGLD from zero",
  init = numeric(55), warmup = full(10000, 400)
))
tree_ksd <- do.call(rbind, lapply(tree_runs, `[[`, "ksd"))
tree_loss <- do.call(rbind, lapply(tree_runs, `[[`, "loss"))
tree_noise <- noise_share(tree, tree_mode, tree_samplers, tree_step)

# ---- figure-2b ----
print(
  plot_chains(tree_ksd, "iteration", "ksd", "iteration", "KSD") +
    scale_y_log10(labels = plain) +
    ggtitle("(b)(i) Covertype, logistic regression")
)

# ---- figure-2c ----
print(
  plot_chains(tree_loss, "iteration", "value", "iteration", "log-loss of single draws") +
    ggtitle("(b)(ii) Covertype, held-out rows")
)

# ---- figure-2-verdict ----
casp_final <- final(casp_ksd)
tree_final <- final(tree_ksd)
loss_final <- final(tree_loss, "value")
gain <- function(data, method, over) ratio_interval(final_of(data, method), final_of(data, over))
casp_gain <- gain(casp_ksd, "SGLD-CV", "SGLD-CV-PS")
tree_gain <- gain(tree_ksd, "SGLD-CV", "SGLD-CV-PS")
verdict(
  "Figure 2",
  if (casp_gain[["low"]] > 1 && tree_gain[["low"]] > 1) TRUE else "in part",
  "On CASP SGLD-CV-PS is best: SGLD-CV has ", interval_text(casp_gain, 1), " times its KSD. ",
  "On covertype plain SGLD has ", interval_text(gain(tree_ksd, "SGLD", "SGLD-CV-PS"), 1),
  " times its KSD, but SGLD-CV ", interval_text(tree_gain), " times: a tie. Weights help plain ",
  "SGLD on CASP, where it has ", interval_text(gain(casp_ksd, "SGLD", "SGLD-PS"), 1),
  " times the KSD of SGLD-PS; on covertype that cannot be told, ",
  interval_text(gain(tree_ksd, "SGLD", "SGLD-PS")), " times (medians of ten chains)."
)

# ---- figure-2-numbers ----
order_2 <- c("SGLD from zero", names(casp_samplers))
show_table(data.frame(
  sampler = order_2,
  `CASP: KSD` = plain(casp_final[order_2]),
  `over SGLD-CV-PS` = plain(casp_final[order_2] / casp_final[["SGLD-CV-PS"]], 2),
  `noise share` = plain(casp_noise[sub(" from zero", "", order_2)], 2),
  `covertype: KSD` = plain(tree_final[order_2]),
  `over SGLD-CV-PS` = plain(tree_final[order_2] / tree_final[["SGLD-CV-PS"]], 2),
  `noise share` = plain(tree_noise[sub(" from zero", "", order_2)], 2),
  check.names = FALSE
))
