# Putcha, Nemeth & Fearnhead (2023), Figure 4: SGLD with and without weights. (a) their
# settings. (b) differs: 500 passes at 1 % only, one chain; 40 passes and two chains at
# 5 and 10 %; KSD from exact gradients at 100 draws of a chain.
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
large_ksd <- function(share, passes, chains) {
  iter <- passes / share
  thin <- iter / 100
  do.call(rbind, Map(function(sampler, method) {
    fit <- run_sampler(
      tree, sampler, tree_step, tree_mode$estimate, iter,
      thin = thin, chains = chains, seed = 1
    )
    data <- score_chains(
      fit, tree, method, full(c(5, 10, 20, 35, 50, 75, 100), 100), thin
    )
    data$passes <- data$iteration * share
    cbind(data, share = share_text(share))
  }, plain_samplers(share, tree_mode), c("SGLD", "SGLD-PS")))
}
large <- rbind(
  once("preferential-fig04-500", large_ksd(0.01, full(500, 1), 1)),
  once("preferential-fig04-40", rbind(
    large_ksd(0.05, full(40, 10), full(2, 1)), large_ksd(0.1, full(40, 10), full(2, 1))
  ))
)
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
best_a <- vapply(a_4, function(x) x[["high"]] < 1, NA)
verdict(
  "Figure 4(a)", if (all(best_a)) TRUE else "in part",
  "KL divergence of SGLD-PS over that of SGLD, after 500 passes: ",
  paste(vapply(a_4, interval_text, ""), collapse = "; "), " at 1, 5 and 10 % (medians of ",
  "ten chains)."
)
verdict(
  "Figure 4(b)", "in part",
  "At 1 % and the paper's 500 passes the KSD of SGLD-PS is ", decimals(b_4[[1]][["ratio"]]),
  " times that of SGLD (one chain each); at 5 and 10 %, after 40 passes (two chains), ", decimals(b_4[[2]][["ratio"]]), " and ",
  decimals(b_4[[3]][["ratio"]]), " times. So few chains cannot tell apart ratios near 1: the ",
  "noise shares are ", paste(plain(large_share, 2), collapse = ", "), "."
)

# ---- figure-4-numbers ----
gaussian_gain <- local({
  exact <- lapply(plain_samplers(0.01, gaussian_mode), function(s) {
    pseudo_variance(bivariate, bivariate$posterior_mean, s[[1]], s[[2]])
  })
  exact[["SGLD-PS"]] / exact[["SGLD"]]
})
kl_sgld <- median(end_of(kl, "kl", "SGLD", 0.01))
gaussian_share <- noise_share(
  bivariate, gaussian_mode, plain_samplers(0.01, gaussian_mode)["SGLD"], 1e-4
)
