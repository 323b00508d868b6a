# What a model written in R costs beside the user's own functions, and what it costs
# with gradients in R, by automatic differentiation and in C. See README.md.
#
#   Rscript bench/custom.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
compile_c("gather.c")
compile_c(
  system.file("examples", "logistic.c", package = "tallbayes"),
  flags = paste0("-O2 -I'", system.file("include", package = "tallbayes"), "'")
)
bench_start("custom", "A logistic regression written in R: cost of an iteration")

set.seed(1)
n_iter <- 5000

log_lik <- function(theta, batch) {
  eta <- drop(batch$x %*% theta$beta)
  batch$y * eta - log1p(exp(eta))
}
rows <- function(theta, batch) {
  (batch$y - plogis(drop(batch$x %*% theta$beta))) * batch$x
}
prior <- function(theta) -theta$beta / 4
in_r <- function(x, y, ...) {
  model_custom(
    log_lik,
    function(theta) -sum(theta$beta^2) / 8,
    list(x = x, y = as.double(y)),
    list(beta = numeric(ncol(x))),
    ...
  )
}

# Seconds of an iteration: a long run less a short one.
slope <- function(model, n) {
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel_sgld(1e-7),
      gradient_simple(),
      subsample_uniform(n),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      init = numeric(model$n_dim),
      seed = 1
    ))
  }
  function() (run(n_iter + 500) - run(500)) / n_iter
}
median_us <- function(x) 1e6 * stats::median(x)

measure <- function(n, d, n_data = 1e5) {
  x <- matrix(rnorm(n_data * d), n_data)
  y <- rbinom(n_data, 1, plogis(x[, 1]))
  model <- in_r(x, y, rows, prior)
  built_in <- model_glm(x, y, prior = prior_normal(0, 2))
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
    list(
      own = slope(model, n),
      user = user,
      core = slope(built_in, n),
      gather = gather
    ),
    rounds
  )
  data.frame(
    N = format(n_data, big.mark = ",", scientific = FALSE),
    n = n,
    d = d,
    iteration = number(median_us(seconds[, "own"])),
    "user's functions" = number(median_us(seconds[, "user"])),
    overhead = number(median_us(seconds[, "own"] - seconds[, "user"])),
    gather = number(median_us(seconds[, "gather"])),
    "model_glm()" = number(median_us(seconds[, "core"])),
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
# A model that looks at nothing: what is left is the batch, and the calls.
batch_cost <- function(data) {
  model <- model_custom(
    function(theta, batch) numeric(length(batch$y)),
    function(theta) 0,
    data,
    list(a = 0),
    function(theta, batch) numeric(length(batch$y)),
    function(theta) 0,
    check = FALSE
  )
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel_sgld(1e-7),
      gradient_simple(),
      subsample_uniform(500),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      init = 0,
      seed = 1
    ))
  }
  function() (run(n_iter + 500) - run(500)) / n_iter
}
batches <- lapply(c(2000, 1e5, 1e6), function(n_data) {
  x <- matrix(rnorm(n_data * 20), n_data)
  frame <- as.data.frame(x)
  y <- frame$y <- rnorm(n_data)
  forms <- list(list(x = x, y = y), frame)
  seconds <- interleave(
    stats::setNames(lapply(forms, batch_cost), c("matrix", "frame")),
    rounds
  )
  cost <- function(form) number(1e6 * stats::median(seconds[, form]))
  data.frame(
    N = format(n_data, big.mark = ",", scientific = FALSE),
    "matrix and vector" = cost("matrix"),
    "data frame" = cost("frame"),
    check.names = FALSE
  )
})
say(
  "An iteration of a model whose functions look at nothing, 500 rows of 20 columns\n",
  "and a response: calls, and taking the batch out of the data.\n"
)
say_table(do.call(rbind, batches))
say("Largest overhead: ", number(worst), " (wanted: below 20): ", yes_no(worst < 20), "\n")

# One model in three ways, and elsewhere.
ways <- function(n, d, n_data) {
  x <- matrix(rnorm(n_data * d), n_data)
  y <- as.double(rbinom(n_data, 1, plogis(x[, 1])))
  init <- stats::setNames(numeric(d), paste0("b", seq_len(d)))
  functions <- list(
    "R, gradient by hand" = slope(in_r(x, y, rows, prior), n),
    "R, automatic differentiation" = slope(in_r(x, y), n),
    C = slope(
      model_native(
        .Call("logistic_model"),
        list(x = x, y = y),
        init,
        constants = list(prior_sd = 2)
      ),
      n
    ),
    "model_glm()" = slope(model_glm(x, y, prior = prior_normal(0, 2)), n)
  )
  python <- find_torch()
  if (is.null(python)) {
    say("PyTorch is not installed: its row is left out.\n")
  } else {
    files <- tempfile(c("x", "y"))
    writeBin(as.vector(t(x)), files[[1]])
    writeBin(y, files[[2]])
    arguments <- c(
      file.path(bench_folder(), "sgld_torch.py"),
      files,
      format(c(n_data, d, n, n_iter), scientific = FALSE, trim = TRUE)
    )
    functions[["PyTorch's autograd, one thread"]] <-
      function() as.numeric(system2(python, arguments, stdout = TRUE))
  }
  seconds <- interleave(functions, rounds)
  unlink(if (!is.null(python)) files)
  tape <- "R, automatic differentiation"
  say_table(data.frame(
    gradient = names(functions),
    iteration = vapply(names(functions), function(way) {
      number(median_us(seconds[, way]))
    }, ""),
    "/ automatic differentiation" = vapply(names(functions), function(way) {
      sprintf("%.2f", ratio(seconds, way, tape))
    }, ""),
    check.names = FALSE
  ))
  if (!is.null(python)) {
    gain <- ratio(seconds, "PyTorch's autograd, one thread", tape)
    say(
      "PyTorch / automatic differentiation: ", sprintf("%.2f", gain),
      " (wanted: at least 3): ", yes_no(gain >= 3), "\n"
    )
  }
}

if (requireNamespace("RTMB", quietly = TRUE)) {
  say(
    "## Three ways to write a gradient\n\n",
    "The same model and runs, n = 500 out of N = 100,000 rows, d = 20: microseconds\n",
    "of processor time of an iteration, medians, and medians of the ratios within a\n",
    "round.\n"
  )
  ways(500, 20, 1e5)
} else {
  say("RTMB is not installed: no automatic differentiation.\n")
}
