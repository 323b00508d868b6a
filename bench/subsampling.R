# What weights and stored gradients cost: weights against one crossprod(X), a
# weighted iteration against a uniform one, SAGA and SVRG against control
# variates.
#
#   Rscript bench/subsampling.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 5
bench_start("subsampling", "Cost of weights and of stored gradients, one core")

# ---- weights -----------------------------------------------------------------

# `mode` with its Hessian is given.
weight_row <- function(label, x, model, mode) {
  seconds <- interleave(
    list(
      crossprod = function() elapsed(crossprod(x)),
      hessian = function() {
        elapsed(subsampling_weights(model, mode, "hessian", cores = 1))
      },
      leverage = function() {
        elapsed(subsampling_weights(model, mode, "leverage", cores = 1))
      }
    ),
    rounds
  )
  worst <- max(
    ratio(seconds, "hessian", "crossprod"),
    ratio(seconds, "leverage", "crossprod")
  )
  data.frame(
    data = label,
    `crossprod, s` = number(stats::median(seconds[, "crossprod"])),
    hessian = times(ratio(seconds, "hessian", "crossprod")),
    leverage = times(ratio(seconds, "leverage", "crossprod")),
    target = "< 3 x",
    met = yes_no(worst < 3),
    check.names = FALSE
  )
}

covertype <- function() {
  data <- tall_data("covertype")
  x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
  storage.mode(x) <- "double"
  x[, 2:11] <- scale(x[, 2:11])
  model <- model_glm(x, as.double(data$cover_type == 2), "bernoulli")
  weight_row("covertype, 581,012 x 55", x, model, find_mode(model))
}

# The paper's formula costs O(N d^3) here: 6e12 operations.
wide <- function(n_data = 50000, d = 500) {
  set.seed(1)
  x <- matrix(rnorm(n_data * d), n_data)
  y <- rbinom(n_data, 1, plogis(drop(x[, 1:20] %*% rnorm(20, sd = 0.2))))
  model <- model_glm(x, y, "bernoulli")
  weight_row("simulated, 50,000 x 500", x, model, find_mode(model))
}

say(
  "Time of `subsampling_weights()`, given a mode with its Hessian, over one\n",
  "`crossprod(X)`: medians of ", rounds, " interleaved rounds.\n"
)
table <- rbind(covertype(), wide())
say_table(table)

# ---- iterations --------------------------------------------------------------

# Seconds of an iteration: a long run less a short one, so that the starting
# cost (tables, control variates) drops out.
iteration <- function(model, mode, gradient, subsample, n_long = 20000) {
  n_short <- n_long / 10
  run <- function(iter) {
    sg_sample(
      model,
      kernel_sgld(1e-12),
      gradient,
      subsample,
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      cores = 1,
      seed = 1,
      init = mode$estimate
    )$time[["sampling"]]
  }
  function() {
    short <- run(n_short)
    (run(n_long) - short) / (n_long - n_short)
  }
}

tall <- function(n_data = 1e7, d = 20) {
  set.seed(2)
  x <- matrix(rnorm(n_data * d), n_data)
  y <- as.double(runif(n_data) < plogis(0.5 * x[, 1]))
  model <- model_glm(x, y, "bernoulli")
  model
}

n <- 500
model <- tall()
invisible(gc())
mode <- find_mode(model)
weights <- subsampling_weights(model, mode, "hessian")
uniform <- subsample_uniform(n)
weighted <- subsample_weighted(n, weights)
seconds <- interleave(
  list(
    cv = iteration(model, mode, gradient_cv(mode), uniform),
    cv_weighted = iteration(model, mode, gradient_cv(mode), weighted),
    saga = iteration(model, mode, gradient_saga(mode), uniform),
    saga_weighted = iteration(model, mode, gradient_saga(mode), weighted),
    # the reference never moves after the start
    svrg = iteration(model, mode, gradient_svrg(1e9), uniform)
  ),
  rounds
)
say(
  "Time of an iteration, logistic regression, N = 10,000,000, d = 20, n = ", n,
  ":\nmedians of ", rounds, " interleaved rounds. SVRG without its refreshes.\n"
)
row <- function(label, above, below, target) {
  value <- ratio(seconds, above, below)
  data.frame(
    ratio = label,
    value = times(value),
    target = if (is.na(target)) "-" else paste("<=", target, "x"),
    met = if (is.na(target)) "-" else yes_no(value <= target)
  )
}
say_table(rbind(
  row("weighted / uniform (CV)", "cv_weighted", "cv", 1.5),
  row("SAGA / CV", "saga", "cv", 1.5),
  row("SAGA / CV, weighted", "saga_weighted", "cv_weighted", 1.5),
  row("SVRG / CV", "svrg", "cv", NA)
))
say(
  "For orientation, microseconds of an iteration (median): ",
  paste0(
    colnames(seconds), " ",
    number(1e6 * apply(seconds, 2, stats::median)),
    collapse = ", "
  ),
  ".\n"
)
