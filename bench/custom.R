# What a model written in R costs beside the user's own functions. See README.md.
#
#   Rscript bench/custom.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
compile_c("gather.c")
bench_start("custom", "A logistic regression written in R: cost of an iteration")

set.seed(1)
n_iter <- 5000

rows <- function(theta, batch) {
  (batch$y - plogis(drop(batch$x %*% theta$beta))) * batch$x
}
prior <- function(theta) -theta$beta / 4

measure <- function(n, d, n_data = 1e5) {
  x <- matrix(rnorm(n_data * d), n_data)
  y <- rbinom(n_data, 1, plogis(x[, 1]))
  model <- model_custom(
    function(theta, batch) {
      eta <- drop(batch$x %*% theta$beta)
      batch$y * eta - log1p(exp(eta))
    },
    function(theta) -sum(theta$beta^2) / 8,
    list(x = x, y = as.double(y)),
    list(beta = numeric(d)),
    rows,
    prior
  )
  built_in <- model_glm(x, y, prior = prior_normal(0, 2))
  run <- function(model, iter) {
    cpu_seconds(sg_sample(
      model,
      kernel_sgld(1e-7),
      gradient_simple(),
      subsample_uniform(n),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      init = numeric(d),
      seed = 1
    ))
  }
  # a long run less a short one
  slope <- function(model) {
    function() (run(model, n_iter + 500) - run(model, 500)) / n_iter
  }
  theta <- list(beta = rnorm(d))
  batch <- list(x = x[seq_len(n), , drop = FALSE], y = as.double(y[seq_len(n)]))
  user <- function() {
    cpu_seconds(for (k in seq_len(n_iter)) {
      rows(theta, batch)
      prior(theta)
    }) / n_iter
  }
  invisible(.Call("gather_create", n_data, d))
  gather <- function() n * .Call("gather_time", 4e6, 8, TRUE)
  seconds <- interleave(
    list(own = slope(model), user = user, core = slope(built_in), gather = gather),
    rounds
  )
  median <- function(x) 1e6 * stats::median(x)
  data.frame(
    N = format(n_data, big.mark = ",", scientific = FALSE),
    n = n,
    d = d,
    iteration = number(median(seconds[, "own"])),
    "user's functions" = number(median(seconds[, "user"])),
    overhead = number(median(seconds[, "own"] - seconds[, "user"])),
    gather = number(median(seconds[, "gather"])),
    "model_glm()" = number(median(seconds[, "core"])),
    check.names = FALSE
  )
}

say(
  "Microseconds of processor time, SGLD with plain minibatches of n out of N rows;\n",
  "overhead: an iteration less the user's gradient and prior called by themselves\n",
  "on one batch. It includes taking the batch out of the data: gather is the loop of\n",
  "gather.c, which only fetches its rows and responses. 2,000 rows are in the cache.\n",
  "Medians of ", rounds, " rounds.\n"
)
table <- rbind(
  measure(32, 5),
  measure(100, 10),
  measure(500, 20, 2000),
  measure(500, 20),
  measure(500, 20, 1e6)
)
say_table(table)
worst <- max(as.numeric(table$overhead))
say("Largest overhead: ", number(worst), " (wanted: below 20): ", yes_no(worst < 20), "\n")
