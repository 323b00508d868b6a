# Time of an iteration of the kernels with momentum over that of SGLD. See README.md.
#
#   Rscript bench/momentum.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
bench_start(
  "momentum",
  "Kernels with momentum against SGLD: logistic, N = 581,012, d = 55, one core"
)

data <- tall_data("covertype")
x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
storage.mode(x) <- "double"
# columns of unit size: one step size fits all
x[, 2:11] <- scale(x[, 2:11])
y <- as.double(data$cover_type == 2)
rm(data)
model <- model_glm(x, y, "bernoulli", prior_normal(0, 2.5))
mode <- find_mode(model)$estimate

step <- 1e-9
kernels <- list(
  sgld = kernel_sgld(step),
  sghmc = kernel_sghmc(step),
  sgnht = kernel_sgnht(step),
  baoab = kernel_baoab(step),
  psgld = kernel_psgld(step),
  corrected = kernel_sgld(step, "corrected"),
  estimated = kernel_sghmc(step, noise_estimate = "minibatch")
)

# Seconds of an iteration: a long run less a short one, so that the starting cost
# (control variates: a pass over the data) drops out.
timing <- function(kernel, n, gradient) {
  n_short <- max(20, round(1e5 / n))
  n_long <- n_short + max(100, round(3e6 / n))
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel,
      gradient = gradient,
      subsample = subsample_uniform(n),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      cores = 1,
      seed = 1,
      init = mode
    ))
  }
  function() {
    short <- run(n_short)
    (run(n_long) - short) / (n_long - n_short)
  }
}

sizes <- c(58, 581)
estimators <- list(simple = gradient_simple(), cv = gradient_cv(at = mode))
results <- list()
for (estimator in names(estimators)) {
  for (n in sizes) {
    results[[paste(estimator, n)]] <- interleave(
      lapply(kernels, timing, n = n, gradient = estimators[[estimator]]),
      rounds
    )
  }
}

say(
  "Ratios of processor seconds of an iteration, medians of ", rounds,
  " interleaved rounds. With\nnoise estimate: both kernels need the variance of the ",
  "minibatch, `noise_estimate =\n\"minibatch\"` against `variant = \"corrected\"`.\n"
)
line <- function(label, above, below, target) {
  value <- vapply(results, ratio, 0, above, below)
  out <- data.frame(
    ratio = label,
    target = if (is.na(target)) "-" else paste("<=", target)
  )
  out[sub(" ", ", n = ", names(results))] <- as.list(fixed(value))
  out$met <- if (is.na(target)) "-" else yes_no(all(value <= target))
  out
}
say_table(rbind(
  line("SGHMC / SGLD", "sghmc", "sgld", 1.2),
  line("SGNHT / SGLD", "sgnht", "sgld", 1.2),
  line("BAOAB / SGLD", "baoab", "sgld", NA),
  line("pSGLD / SGLD", "psgld", "sgld", NA),
  line("SGHMC / SGLD, noise estimate", "estimated", "corrected", 1.2)
))
say("For orientation, microseconds of an iteration (median):\n")
say_table(do.call(rbind, lapply(names(results), function(key) {
  parts <- strsplit(key, " ")[[1]]
  data.frame(
    estimator = parts[[1]],
    n = parts[[2]],
    t(number(1e6 * apply(results[[key]], 2, median))),
    check.names = FALSE
  )
})))
