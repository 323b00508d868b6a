# What an iteration of a Metropolis kernel costs, in evaluations of the full loss
# and gradient. See README.md.
#
#   Rscript bench/metropolis.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
if (Sys.getenv("TALLBAYES_BENCH_CHILD") == "") {
  # BLAS reads its number of threads when it is loaded
  Sys.setenv(
    TALLBAYES_BENCH_CHILD = "1",
    OPENBLAS_NUM_THREADS = "1",
    OMP_NUM_THREADS = "1"
  )
  status <- system2(
    file.path(R.home("bin"), "Rscript"), c(script, commandArgs(TRUE))
  )
  quit(status = status)
}
source(file.path(dirname(script), "common.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
bench_start("metropolis", "Metropolis kernels: iterations in evaluations, one core")

# Seconds of an iteration: a long run less a short one.
iteration <- function(model, theta, kernel, n, ...) {
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel,
      iter = iter,
      warmup = 0,
      chains = 1,
      cores = 1,
      seed = 1,
      init = theta,
      ...
    ))
  }
  function() {
    short <- run(2)
    (run(n + 2) - short) / n
  }
}

# Seconds of one evaluation of the log posterior and its gradient.
evaluation <- function(model, theta, n) {
  function() {
    cpu_seconds(for (k in seq_len(n)) tallbayes:::model_evaluate(model, theta)) / n
  }
}

measure <- function(title, model, theta, n, step, batch) {
  minibatch <- list(gradient = gradient_simple(), subsample = subsample_uniform(batch))
  with_batch <- function(kernel, n) {
    do.call(iteration, c(list(model, theta, kernel, n), minibatch))
  }
  d <- model$n_dim
  functions <- list(
    evaluation = evaluation(model, theta, n),
    mala = iteration(model, theta, kernel_mala(step), n),
    directional = iteration(model, theta, kernel_mala(step, 1), n),
    barker = iteration(model, theta, kernel_barker(sqrt(step)), n),
    hmc = iteration(model, theta, kernel_hmc(sqrt(step), 5), ceiling(n / 5)),
    adam = iteration(
      model, theta, kernel_adam_mcmc(step, sqrt(step), 1), n
    ),
    exact = iteration(
      model,
      theta,
      kernel_adam_mcmc(step, sqrt(step), 1, exact = TRUE, momentum_sd = 1),
      n
    ),
    minibatch = with_batch(kernel_mala(step), n),
    approximate = with_batch(kernel_mala(step, ratio = "minibatch"), 20 * n),
    sgld = with_batch(kernel_sgld(step), 20 * n)
  )
  seconds <- interleave(functions, rounds)
  in_evaluations <- function(name) ratio(seconds, name, "evaluation")
  rows <- list(
    c("MALA", in_evaluations("mala"), 1.15),
    c("MALA, directional noise", in_evaluations("directional"), 1.15),
    c("Barker", in_evaluations("barker"), 1.15),
    c("HMC, of its five steps", in_evaluations("hmc") / 5, 1.15),
    c("AdamMCMC", in_evaluations("adam"), 1.15),
    c("AdamMCMC, exact", in_evaluations("exact"), 1.15),
    c("MALA, minibatch gradient, full ratio", in_evaluations("minibatch"), 1.15)
  )
  say("## ", title, "\n")
  say(
    format(model$n_data, big.mark = ",", scientific = FALSE), " rows, ", d, " parameters; minibatches of ",
    batch, ". An evaluation: ",
    number(1e3 * stats::median(seconds[, "evaluation"])), " ms.\n"
  )
  values <- as.numeric(vapply(rows, `[[`, "", 2))
  say_table(data.frame(
    iteration = vapply(rows, `[[`, "", 1),
    evaluations = times(values, 3),
    "met (at most 1.15)" = yes_no(values <= 1.15),
    check.names = FALSE
  ))
  say(
    "A ratio of minibatch losses (approximate): ",
    times(ratio(seconds, "approximate", "sgld")),
    " an SGLD iteration, which evaluates one minibatch without its loss.\n"
  )
}

set.seed(1)
n <- 1e5
d <- 50
x <- cbind(1, matrix(rnorm(n * (d - 1)), n))
y <- rbinom(n, 1, plogis(drop(x %*% rnorm(d, sd = 0.2))))
model <- model_glm(x, y, prior = prior_normal(0, 1))
measure(
  "Logistic regression",
  model,
  as.double(find_mode(model)$estimate),
  n = 60,
  step = 1e-5,
  batch = 1000
)

n <- 45730
x <- matrix(rnorm(10 * n), n)
model <- model_network(x, rnorm(n), c(50, 50), sigma = 1)
measure(
  "Network 10-50-50-1",
  model,
  tallbayes:::model_start(model),
  n = 10,
  step = 1e-7,
  batch = 512
)
