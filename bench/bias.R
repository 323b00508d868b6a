# What step size and minibatch size do to posterior means and standard deviations,
# and whether the package's own estimates of that bias tell the truth.
#
#   Rscript bench/bias.R
folder <- dirname(
  sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
)
source(file.path(folder, "common.R"))
source(file.path(folder, "bias-problems.R"))
started <- proc.time()[["elapsed"]]

# ---- one setting -------------------------------------------------------------
gradient_part <- function(m, gradient) {
  switch(gradient, simple = gradient_simple(), cv = gradient_cv(at = m$mode))
}
scheme_part <- function(gradient, n) {
  switch(
    gradient,
    simple = subsample_uniform(n),
    cv = subsample_weighted(n, "leverage")
  )
}

# A draw is kept about every relaxation time, so they are nearly independent.
run_setting <- function(
  problem,
  coordinates,
  integrator,
  variant,
  gradient,
  n,
  h,
  draws,
  checks = TRUE
) {
  m <- models[[problem]]
  reference <- truths[[problem]]
  thin <- ceiling(4 / h)
  step <- switch(
    coordinates,
    whitened = h,
    "raw, one step size" = h / max(eigen(-m$mode$hessian)$values),
    "raw, one each" = h / diag(-m$mode$hessian)
  )
  warm <- ceiling(40 / h)
  fit <- sg_sample(
    if (coordinates == "whitened") m$white else m$raw,
    kernel_sgld(step, variant, integrator),
    gradient_part(m, gradient),
    scheme_part(gradient, n),
    iter = warm + thin * draws / 4,
    warmup = warm,
    thin = thin,
    chains = 4,
    seed = 1
  )
  s <- moments(fit)
  check <- if (checks) bias_check(fit, seed = 2)$table
  j <- watched[[problem]]
  mean <- (s$mean - reference$mean) / reference$sd
  sd <- s$sd / reference$sd - 1
  pick <- function(x) if (is.null(x)) NA_real_ else x[[j]]
  details <- data.frame(
    problem,
    coordinates,
    integrator,
    variant,
    gradient,
    n,
    h,
    variable = names(reference$mean),
    mean,
    mean_se = s$mcse_mean / reference$sd,
    sd,
    sd_se = s$mcse_sd / reference$sd,
    summary = fit$bias$sd_bias,
    summary_se = fit$bias$sd_bias_se,
    check_mean = if (checks) check$mean_bias else NA_real_,
    check_mean_se = if (checks) check$mean_bias_se else NA_real_,
    check_sd = if (checks) check$sd_bias else NA_real_,
    check_sd_se = if (checks) check$sd_bias_se else NA_real_,
    rhat = s$rhat,
    ess = s$ess
  )
  cat(problem, coordinates, integrator, variant, gradient, n, h, "\n")
  details
}

settings <- function(...) expand.grid(..., stringsAsFactors = FALSE)

run_settings <- function(problem, grid, draws = 8000, ...) {
  do.call(rbind, lapply(seq_len(nrow(grid)), function(k) {
    do.call(run_setting, c(list(problem), grid[k, ], list(draws = draws, ...)))
  }))
}

signed <- function(x, digits) formatC(x, digits = digits, format = "f", flag = "+")
with_se <- function(x, se, digits) {
  ifelse(is.na(x), "-", paste0(signed(x, digits), " (", fixed(se, digits), ")"))
}

# One row of a table for each setting: the watched parameter.
show_settings <- function(results) {
  j <- watched[[results$problem[[1]]]]
  name <- names(truths[[results$problem[[1]]]]$mean)[[j]]
  r <- results[results$variable == name, ]
  data.frame(
    kernel = paste0(
      ifelse(r$integrator == "euler", "Euler", "LM"),
      ifelse(r$variant == "corrected", ", corrected", "")
    ),
    gradient = r$gradient,
    n = r$n,
    h = r$h,
    "mean, true" = with_se(r$mean, r$mean_se, 3),
    "bias_check()" = with_se(r$check_mean, r$check_mean_se, 3),
    "sd %, true" = with_se(100 * r$sd, 100 * r$sd_se, 1),
    "summary()" = with_se(100 * r$summary, 100 * r$summary_se, 1),
    "bias_check() " = with_se(100 * r$check_sd, 100 * r$check_sd_se, 1),
    "R-hat" = fixed(r$rhat, 2),
    ESS = round(r$ess),
    check.names = FALSE
  )
}

bench_start("bias", "Bias against step size and minibatch size")
say("Posterior of the parameters of a generalised linear model with a flat prior.
Means in posterior sds, sds in percent, Monte Carlo standard errors in brackets.
`true`: the run's value against the reference. `summary()`: what the summary of
the same run prints as sd_bias. `bias_check()`: what it extrapolates from a
second run at half the step size. n: rows of a minibatch; simple: drawn
uniformly; cv: control variates at the mode, leverage weights. LM:
Leimkuhler-Matthews. Step size h in whitened coordinates, where the posterior is
near N(0, I). 8,000 draws (1,000 for simple gradients), nearly independent.\n")

say("Reference posteriors. Error: the reference's own standard error, worst
parameter. Watched: the most skewed parameter, shown below.\n")
say_table(do.call(rbind, lapply(names(problems), function(name) {
  p <- problems[[name]]
  t <- truths[[name]]
  precision <- -models[[name]]$mode$hessian
  data.frame(
    problem = name,
    N = format(nrow(p$x), big.mark = ","),
    d = ncol(p$x),
    events = format(sum(p$y), big.mark = ","),
    "condition number" = format(signif(kappa(precision, exact = TRUE), 2), digits = 2),
    "error of mean" = fixed(t$error_mean, 4),
    "error of sd" = paste(fixed(100 * t$error_sd, 2), "%"),
    watched = names(t$mean)[[watched[[name]]]],
    skewness = fixed(t$skew[[watched[[name]]]], 2),
    check.names = FALSE
  )
})))

# ---- the tables --------------------------------------------------------------

all_results <- list()
for (name in names(problems)) {
  steps <- settings(
    coordinates = "whitened",
    integrator = c("euler", "leimkuhler-matthews"),
    variant = "vanilla",
    gradient = "cv",
    n = 128,
    h = c(0.1, 0.2, 0.5, 1)
  )
  steps <- steps[order(steps$integrator, steps$h), ]
  sizes <- settings(
    coordinates = "whitened",
    integrator = c("euler", "leimkuhler-matthews"),
    variant = c("vanilla", "corrected"),
    gradient = "cv",
    n = c(8, 32),
    h = 0.2
  )
  sizes <- sizes[order(sizes$integrator, sizes$variant != "vanilla", sizes$n), ]
  a <- run_settings(name, steps)
  b <- run_settings(name, sizes)
  simple <- settings(
    coordinates = "whitened",
    integrator = "euler",
    variant = c("vanilla", "corrected"),
    gradient = "simple",
    n = c(100, 1000),
    h = c(0.02, 0.1)
  )
  simple <- simple[order(simple$variant != "vanilla", simple$h, simple$n), ]
  c <- run_settings(name, simple, draws = 1000)
  say("## ", name, ": step size\n")
  say_table(show_settings(a))
  say("## ", name, ": minibatch size\n")
  say_table(show_settings(b))
  say("## ", name, ": simple gradients\n")
  say_table(show_settings(c))
  all_results <- c(all_results, list(a, b, c))
}
whitened <- do.call(rbind, all_results)

say("## Explicit kernels in raw coordinates: logistic\n")
say("Covariates as they come, Euler. One step size: h over the largest curvature, the
largest that keeps the worst direction as h does above; the other directions
hardly move, and R-hat says so before any bias estimate means something. One
each: h_j = h / H_jj, a vector `step_size`.\n")
raw <- settings(
  coordinates = c("raw, one step size", "raw, one each"),
  integrator = "euler",
  variant = "vanilla",
  gradient = "cv",
  n = 128,
  h = c(0.1, 0.5)
)
raw <- raw[order(raw$coordinates, raw$h), ]
raw_results <- run_settings("logistic", raw, draws = 4000)
table <- show_settings(raw_results)
table$gradient <- NULL
j <- names(truths$logistic$mean)[[watched[["logistic"]]]]
table <- cbind(
  coordinates = raw_results$coordinates[raw_results$variable == j],
  table
)
say_table(table)

# ---- do the estimates tell the truth? ----------------------------------------

say("## Estimate minus truth, all parameters and settings in whitened coordinates\n")
say("z: the difference over its Monte Carlo standard error; 1 for an estimate whose
only error is noise. `true` is the average of the true bias (mean: of its size).\n")
group <- with(whitened, ifelse(
  gradient == "simple",
  "simple gradients",
  paste0(
    ifelse(integrator == "euler", "Euler", "LM"),
    ifelse(h <= 0.2, ", h <= 0.2", ", h > 0.2"),
    ifelse(n < 32, ", n = 8", "")
  )
))
say_table(do.call(rbind, lapply(split(whitened, group), function(r) {
  z <- function(estimate, se, true, true_se) {
    rms((estimate - true) / sqrt(se^2 + true_se^2))
  }
  data.frame(
    settings = group[[match(rownames(r)[[1]], rownames(whitened))]],
    "sd: true" = paste(signed(100 * mean(r$sd), 1), "%"),
    "summary(), rms error" = paste(fixed(100 * rms(r$summary - r$sd), 1), "%"),
    "z " = fixed(z(r$summary, r$summary_se, r$sd, r$sd_se), 1),
    "bias_check(), rms error" = paste(fixed(100 * rms(r$check_sd - r$sd), 1), "%"),
    "z  " = fixed(z(r$check_sd, r$check_sd_se, r$sd, r$sd_se), 1),
    "mean: true" = fixed(mean(abs(r$mean)), 3),
    "bias_check(), rms error " = fixed(rms(r$check_mean - r$mean), 3),
    "z   " = fixed(z(r$check_mean, r$check_mean_se, r$mean, r$mean_se), 1),
    check.names = FALSE
  )
})))

say("Took ", round(proc.time()[["elapsed"]] - started), " seconds.")
