# Two figures of Putcha, Nemeth & Fearnhead (2023) as numbers: what adaptive
# minibatches save on the balanced synthetic set, and what control variates with
# weights gain over plain SGLD on covertype.
#
#   Rscript bench/preferential.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
source(file.path(dirname(script), "..", "inst", "replications", "preferential.R"))
bench_start("preferential", "Preferential and adaptive subsampling")
started <- proc.time()

# ---- adaptive sizes ----------------------------------------------------------

# Of one data set: sizes, and the discrepancies of the chains.
adaptive_row <- function(seed, size = 10, step_size = 1e-4, iter = 1e4, chains = 40) {
  model <- balanced_model(1e4, seed)
  mode <- find_mode(model)
  run <- function(sampler, seed) {
    run_sampler(
      model, sampler, step_size, mode$estimate, iter,
      thin = 20, chains = chains, seed = seed
    )
  }
  distance <- function(fit) {
    draws <- posterior::as_draws_matrix(fit$draws)
    rowSums(sweep(draws, 2, mode$estimate)^2)
  }
  score <- function(fit) chain_ksd(fit, model)$ksd
  fixed <- run(samplers(size, mode)[["SGLD-CV-PS"]], 1)
  sampler <- adaptive_samplers(model, mode, size, step_size, iter)[["ASGLD-CV-PS"]]
  adaptive <- run(sampler, 2)
  mean_size <- mean(adaptive$sizes)
  same <- run(samplers(round(mean_size), mode)[["SGLD-CV-PS"]], 3)
  large <- run(samplers(1000, mode)[["SGLD-CV-PS"]], 4)
  list(
    seed = seed,
    mean_size = mean_size,
    factor = size / mean_size,
    # the size that the recipe gives before it is rounded up to a whole number
    unrounded = size / (mean_size - 0.5),
    spread = stats::quantile(distance(fixed), 0.95) / mean(distance(fixed)),
    ksd = list(
      fixed = score(fixed), adaptive = score(adaptive),
      same = score(same), large = score(large)
    )
  )
}

rows <- lapply(1:10, adaptive_row)
pooled <- function(name) stats::median(unlist(lapply(rows, function(r) r$ksd[[name]])))
# over data sets and chains: half of the draws again and again
relative <- function(above, below = "fixed", replicates = 2000) {
  a <- lapply(rows, function(r) r$ksd[[above]])
  b <- lapply(rows, function(r) r$ksd[[below]])
  again <- function(x) unlist(lapply(x, function(k) sample(k, replace = TRUE)))
  value <- stats::median(unlist(a)) / stats::median(unlist(b))
  boot <- replicate(replicates, stats::median(again(a)) / stats::median(again(b)))
  c(value = value, se = stats::sd(boot))
}
set.seed(1)
say(
  "## Adaptive minibatches\n\n",
  "Balanced synthetic logistic regression, N = 10,000, d = 5, h = 1e-4: 10,000\n",
  "iterations of SGLD-CV-PS with n = 10 against ASGLD-CV-PS with the threshold of\n",
  "the paper's recipe (ten pilot chains, 95 % quantile). ", length(rows), " data sets, 40\n",
  "chains each; `factor` is passes over the data, fixed over adaptive, while\n",
  "sampling. KSD: medians over chains, from exact gradients at every 20th draw.\n"
)
number_of <- function(r, name) stats::median(r$ksd[[name]])
say_table(do.call(rbind, lapply(rows, function(r) {
  data.frame(
    `data set` = r$seed,
    `mean size` = fixed(r$mean_size),
    factor = times(r$factor),
    `before rounding` = times(r$unrounded),
    `q95 / mean` = fixed(r$spread),
    `KSD n = 10` = fixed(number_of(r, "fixed")),
    adaptive = fixed(number_of(r, "adaptive")),
    `fixed, same mean` = fixed(number_of(r, "same")),
    `n = 1,000` = fixed(number_of(r, "large")),
    check.names = FALSE
  )
})))
factors <- vapply(rows, `[[`, 0, "factor")
change <- relative("adaptive")
same <- relative("same")
large <- relative("large")
within <- abs(change[["value"]] - 1) <= 0.1
plus <- function(x) paste0(fixed(x[["value"]]), " (standard error ", fixed(x[["se"]]), ")")
say(
  "Passes saved: **", times(stats::median(factors)), "** (median; ",
  times(min(factors)), " to ", times(max(factors)), "; wanted 3 x or more: ",
  yes_no(stats::median(factors) >= 3), ").\n",
  "KSD, adaptive over fixed: ", plus(change), "; within 10 %: ", yes_no(within), ".\n",
  "KSD, fixed at the same mean size over n = 10: ", plus(same), ".\n",
  "KSD, n = 1,000 over n = 10: ", plus(large), ".\n"
)
say(
  "Why this factor. With the recipe the size is n ||theta - mode||^2 / q, q the 95 %\n",
  "quantile of the squared distance, rounded up to a whole number. So the factor is q\n",
  "over the mean of the squared distance, less the rounding, and depends on the\n",
  "posterior's shape alone: ", fixed(stats::qchisq(0.95, 1)), " where one direction is much wider than the\n",
  "others, ", fixed(stats::qchisq(0.95, 5) / 5), " where all five are alike; the largest of ten pilot chains adds\n",
  "some. Rounding costs half a row an iteration.\n\n",
  "What it is worth. A size proportional to the squared distance makes the noise the\n",
  "same everywhere, but not smaller on average than a fixed minibatch of the same mean\n",
  "size: n_t = c D_t gives D_t / n_t = 1 / c = mean(D) / mean(n). The column `fixed,\n",
  "same mean` shows it.\n"
)

# ---- covertype ---------------------------------------------------------------

covertype <- covertype_models()
model <- covertype$train
mode <- find_mode(model)
size <- 0.001
iter <- 10000
chosen <- samplers(size, mode)

# Discrepancies of one seed, and passes over the data with all preparation.
covertype_row <- function(seed) {
  # preparation: passes for the mode, the sum of its gradients, the weights
  run <- function(name, init, preparation, warmup = 0) {
    fit <- run_sampler(
      model, chosen[[name]], 1e-6, init, iter, warmup,
      thin = 50, chains = 1, seed = seed
    )
    sampling <- (iter + warmup) * floor(size * model$n_data) / model$n_data
    c(ksd = chain_ksd(fit, model)$ksd, passes = sampling + preparation)
  }
  zero <- numeric(model$n_dim)
  rbind(
    zero = run("SGLD", zero, 0, warmup = iter),
    mode = run("SGLD", mode$estimate, mode$passes),
    cv = run("SGLD-CV", mode$estimate, mode$passes + 1),
    `cv-ps` = run("SGLD-CV-PS", mode$estimate, mode$passes + 2)
  )
}

results <- lapply(1:5, covertype_row)
value <- function(name, what = "ksd") vapply(results, function(r) r[name, what], 0)
ksd_row <- function(label, name) {
  data.frame(
    sampler = label,
    passes = fixed(value(name, "passes")[[1]], 1),
    KSD = fixed(stats::median(value(name)), 0),
    `over SGLD-CV-PS` = times(stats::median(value(name) / value("cv-ps"))),
    range = paste(
      times(min(value(name) / value("cv-ps"))), "to",
      times(max(value(name) / value("cv-ps")))
    ),
    check.names = FALSE
  )
}
say(
  "## Covertype, n = 0.1 %\n\n",
  "Logistic regression, N = 435,759, d = 55, h = 1e-6, 10,000 iterations (10 passes)\n",
  "kept, KSD from exact gradients at every 50th draw; medians over 5 seeds. Passes\n",
  "include burn-in (SGLD from zero, as in the paper), the mode by Newton's method,\n",
  "the sum of its gradients and the weights.\n"
)
say_table(rbind(
  ksd_row("SGLD from zero, 10,000 burn-in", "zero"),
  ksd_row("SGLD from the mode, no burn-in", "mode"),
  ksd_row("SGLD-CV", "cv"),
  ksd_row("SGLD-CV-PS", "cv-ps")
))
say("Took ", round((proc.time() - started)[["elapsed"]]), " s on a busy machine.")
