# Putcha, Nemeth & Fearnhead (2023), Figure 4: SGLD with and without weights. Differs:
# both samplers start at the mode; (a) new draws of the law, with the covariance of their
# program; (b) KSD from exact gradients, at 200 draws of a chain.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("preferential.R"))

# ---- gaussian ----
bivariate <- gaussian_model(1e4, 105)
gaussian_mode <- find_mode(bivariate)

# ---- run-gaussian ----
shares <- c(0.01, 0.05, 0.1)
share_text <- function(share) paste0("n = ", 100 * share, " % of N")
plain_samplers <- function(share, mode) samplers(share, mode)[c("SGLD", "SGLD-PS")]
gaussian_kl <- function(share, chains) {
  iter <- full(500, 20) / share
  do.call(rbind, Map(function(sampler, method) {
    fit <- run_sampler(
      bivariate, sampler, 1e-4, gaussian_mode$estimate, iter,
      thin = iter / full(5000, 200), chains = chains, seed = 1
    )
    passes <- full(c(5, 10, 20, 50, 100, 200, 350, 500), c(5, 20))
    grid <- expand.grid(chain = seq_len(chains), passes = passes)
    grid$kl <- mapply(function(chain, passes) {
      draws <- posterior::subset_draws(fit$draws, chain = chain, iteration = seq_len(10 * passes))
      kl_gaussian(draws, bivariate$posterior_mean, bivariate$posterior_covariance)
    }, grid$chain, grid$passes)
    cbind(method = method, share = share_text(share), grid)
  }, plain_samplers(share, gaussian_mode), c("SGLD", "SGLD-PS")))
}
kl <- once("preferential-fig04-gaussian", {
  do.call(rbind, lapply(shares, gaussian_kl, chains = full(10, 2)))
})
kl$share <- factor(kl$share, unique(kl$share))

# ---- run-large ----
covertype <- covertype_models()
tree <- covertype$train
tree_mode <- find_mode(tree)
tree_step <- 1e-6
chains_large <- full(10, 1)
passes_large <- full(500, 20)
large_ksd <- function(share, passes, method, chain) {
  # 200 draws
  thin <- round(passes / 200 / share)
  sampler <- plain_samplers(share, tree_mode)[[method]]
  fit <- run_sampler(
    tree, sampler, tree_step, tree_mode$estimate, 200 * thin,
    thin = thin, chains = 1, seed = chain
  )
  grow <- c(2, 4, 8, 14, 20, 30, 40, 60, 80, 120, 160, 200)
  data <- score_chains(fit, tree, method, grow, thin)
  data$chain <- chain
  data$passes <- data$iteration * share
  cbind(data, share = share_text(share))
}
runs_large <- expand.grid(
  method = c("SGLD", "SGLD-PS"), chain = seq_len(chains_large), share = shares,
  stringsAsFactors = FALSE
)
runs_large$passes <- passes_large
large <- do.call(rbind, Map(function(share, passes, method, chain) {
  once(
    paste("preferential-fig04", share, passes, method, chain, sep = "-"),
    large_ksd(share, passes, method, chain)
  )
}, runs_large$share, runs_large$passes, runs_large$method, runs_large$chain))
large$share <- factor(large$share, unique(large$share))
# noise shares of plain SGLD
large_share <- once(
  "preferential-fig04-share",
  noise_share(tree, tree_mode, samplers(0.01, tree_mode)["SGLD"], tree_step)
) * 0.01 / shares

# ---- figure-4a ----
print(
  plot_chains(kl, "passes", "kl", "passes over the data", "KL divergence", "share") +
    scale_y_log10(labels = plain) +
    theme(legend.position = "bottom") +
    ggtitle("(a) Bivariate normal")
)

# ---- figure-4b ----
print(
  plot_chains(
    large, "passes", "ksd", "passes over the data", "KSD", "share",
    scales = "free_x"
  ) +
    scale_y_log10(labels = plain) +
    theme(legend.position = "bottom") +
    ggtitle("(b) Covertype")
)

# ---- figure-4-verdict ----
# of single chains at the end of their runs
end_of <- function(data, y, method, share) {
  one <- data[data$method == method & data$share == share_text(share), ]
  one[one$passes == max(one$passes), y]
}
ratio_4 <- function(data, y, share) {
  ratio_interval(end_of(data, y, "SGLD-PS", share), end_of(data, y, "SGLD", share))
}
a_4 <- lapply(shares, function(share) ratio_4(kl, "kl", share))
b_4 <- lapply(shares, function(share) ratio_4(large, "ksd", share))
# at least as good at all sizes, and better at the smallest
best_of <- function(ratios) {
  low <- vapply(ratios, `[[`, 0, "low")
  high <- vapply(ratios, `[[`, 0, "high")
  if (any(low > 1)) FALSE else if (high[[1]] < 1) TRUE else "in part"
}
ratios_text <- function(ratios) {
  paste0(paste(vapply(ratios, interval_text, ""), collapse = "; "), " at 1, 5 and 10 %")
}
verdict(
  "Figure 4(a)", best_of(a_4),
  "KL divergence of SGLD-PS over that of SGLD, after 500 passes: ", ratios_text(a_4),
  " (medians of ten chains)."
)
verdict(
  "Figure 4(b)", best_of(b_4),
  "KSD of SGLD-PS over that of SGLD, after 500 passes: ", ratios_text(b_4),
  " (medians of ten chains). The noise of SGLD's gradients is ",
  paste(plain(large_share, 2), collapse = ", "), " times the injected one."
)

# ---- figure-4-numbers ----
gaussian_gain <- local({
  exact <- lapply(plain_samplers(0.01, gaussian_mode), function(s) {
    pseudo_variance(bivariate, bivariate$posterior_mean, s[[1]], s[[2]])
  })
  exact[["SGLD-PS"]] / exact[["SGLD"]]
})
medians_4 <- function(data, y, method) {
  vapply(shares, function(share) median(end_of(data, y, method, share)), 0)
}
kl_sgld <- medians_4(kl, "kl", "SGLD")[[1]]
gaussian_share <- noise_share(
  bivariate, gaussian_mode, plain_samplers(0.01, gaussian_mode)["SGLD"], 1e-4
)
show_table(data.frame(
  minibatch = share_text(shares),
  `(a) KL: SGLD` = plain(medians_4(kl, "kl", "SGLD")),
  `SGLD-PS` = plain(medians_4(kl, "kl", "SGLD-PS")),
  `(b) KSD: SGLD` = plain(medians_4(large, "ksd", "SGLD")),
  `SGLD-PS` = plain(medians_4(large, "ksd", "SGLD-PS")),
  `(b) noise share` = plain(large_share, 2),
  check.names = FALSE
))
