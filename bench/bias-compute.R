# Error of posterior means and standard deviations at equal compute: minibatch
# samplers, which are biased, against MALA and NUTS, which are exact.
#
#   Rscript bench/bias-compute.R
folder <- dirname(
  sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
)
source(file.path(folder, "common.R"))
source(file.path(folder, "bias-problems.R"))
started <- proc.time()[["elapsed"]]

# Error of a run against the truth, all parameters: bias and Monte Carlo together.
errors <- function(draws, reference) {
  c(
    mean = rms((colMeans(draws) - reference$mean) / reference$sd),
    sd = rms(apply(draws, 2, stats::sd) / reference$sd - 1)
  )
}

# budget: passes over the data, four chains together, warmup (a fifth) included.
budget_run <- function(method, budget, seed) {
  m <- models$logistic
  n_data <- nrow(problems$logistic$x)
  n <- switch(method, mala = n_data, "sgld, simple" = 100, 32)
  steps <- floor(budget * n_data / n / 4)
  warmup <- floor(steps / 5)
  kernel <- switch(
    method,
    mala = kernel_mala(1.65^2 * m$white$n_dim^(-1 / 3), adapt = TRUE),
    "LM, cv" = kernel_sgld(0.2, "corrected", "leimkuhler-matthews"),
    "Euler, cv" = kernel_sgld(0.2),
    "sgld, simple" = kernel_sgld(0.002)
  )
  thin <- max(1, floor((steps - warmup) / 5000))
  gradient <- switch(method, mala = gradient_full(), "sgld, simple" = gradient_simple(), gradient_cv(at = m$mode))
  scheme <- switch(
    method,
    mala = NULL,
    "sgld, simple" = subsample_uniform(n),
    subsample_weighted(n, "leverage")
  )
  seconds <- cpu_seconds(fit <- sg_sample(
    m$white, kernel, gradient, scheme,
    iter = steps, warmup = warmup, thin = thin, chains = 4, seed = seed
  ))
  draws <- as.matrix(fit)
  c(
    errors(draws, truths$logistic),
    ess = min(moments(fit)$ess),
    rhat = max(moments(fit)$rhat),
    seconds = seconds
  )
}

labels <- c(
  "LM, cv" = "LM, corrected, cv, n = 32, h = 0.2",
  "Euler, cv" = "Euler, cv, n = 32, h = 0.2",
  "sgld, simple" = "Euler, simple, n = 100, h = 0.002",
  mala = "MALA, adapted (exact)"
)
budgets <- c(100, 1000, 5000)
equal <- do.call(rbind, lapply(budgets, function(budget) {
  do.call(rbind, lapply(names(labels), function(method) {
    seeds <- if (budget == max(budgets)) 1 else 1:3
    runs <- sapply(seeds, function(seed) budget_run(method, budget, seed))
    out <- data.frame(
      passes = budget,
      method = labels[[method]],
      mean = rms(runs["mean", ]),
      sd = rms(runs["sd", ]),
      ess = mean(runs["ess", ]),
      rhat = mean(runs["rhat", ]),
      seconds = mean(runs["seconds", ])
    )
    cat("equal compute:", budget, method, "\n")
    out
  }))
}))

# NUTS: whitened rows as well, so that it needs no metric; its leapfrog steps are
# passes. Its adaptation takes 300 iterations of each chain.
nuts_rows <- function() {
  program <- "
    data { int N; int d; matrix[N, d] x; int y[N]; vector[N] eta; }
    parameters { vector[d] phi; }
    model { y ~ bernoulli_logit_glm(x, eta, phi); }"
  p <- problems$logistic
  m <- models$logistic
  root <- m$mode$chol
  x <- t(forwardsolve(root, t(p$x)))
  compiled <- rstan::stan_model(model_code = program)
  data <- list(
    N = nrow(x), d = ncol(x), x = x, y = as.integer(p$y),
    eta = drop(p$x %*% m$mode$estimate)
  )
  one <- function(iter, warmup) {
    seconds <- cpu_seconds(fit <- rstan::sampling(
      compiled,
      data,
      chains = 4,
      cores = 1,
      iter = iter,
      warmup = warmup,
      seed = 1,
      refresh = 0
    ))
    phi <- rstan::extract(fit, "phi", permuted = FALSE)
    flat <- matrix(phi, ncol = ncol(x))
    theta <- t(m$mode$estimate + backsolve(t(root), t(flat)))
    shaped <- array(theta, c(dim(phi)[1:2], ncol(x)))
    ess <- min(apply(shaped, 3, posterior::ess_bulk))
    rhat <- max(apply(shaped, 3, posterior::rhat))
    leapfrogs <- sum(sapply(rstan::get_sampler_params(fit, TRUE), function(s) {
      sum(s[, "n_leapfrog__"])
    }))
    error <- errors(theta, truths$logistic)
    data.frame(
      passes = leapfrogs, method = "NUTS (rstan)", mean = error[["mean"]],
      sd = error[["sd"]], ess, rhat, seconds
    )
  }
  rbind(one(200, 150), one(700, 300))
}
nuts <- if (requireNamespace("rstan", quietly = TRUE)) {
  tryCatch(nuts_rows(), error = function(e) conditionMessage(e))
} else {
  "rstan is not installed"
}
if (is.data.frame(nuts)) {
  equal <- rbind(equal, nuts)
  equal <- equal[order(equal$passes), ]
}

bench_start("bias-compute", "Error at equal compute: logistic, N = 20,000, d = 10")

say("All methods in whitened coordinates, four chains, warmup included. A pass is a
gradient of every row; MALA and NUTS take one for each step. Error: root mean
square over the parameters of bias and Monte Carlo error together, against the
reference. At most 20,000 draws of a minibatch sampler or MALA are kept. ", if (is.data.frame(nuts)) {
  "NUTS chooses its own number of passes; 150 and 300 iterations of
warmup, 50 and 400 kept in each chain."
} else {
  paste0("NUTS is left out: ", nuts, ".")
}, "\n")
say_table(data.frame(
  passes = format(round(equal$passes), big.mark = ",", trim = TRUE),
  method = equal$method,
  "error of means, sds" = fixed(equal$mean, 3),
  "error of sds" = paste(fixed(100 * equal$sd, 1), "%"),
  "least ESS" = round(equal$ess),
  "R-hat" = fixed(equal$rhat, 2),
  "processor seconds" = fixed(equal$seconds, 1),
  check.names = FALSE
))
say("Took ", round(proc.time()[["elapsed"]] - started), " seconds.")
