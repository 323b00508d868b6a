# Time of an iteration and of a pass by how rows are kept. See README.md.
#
#   Rscript bench/storage.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
bench_start("storage", "How rows are kept: logistic, N = 581,012, d = 55, one core")

data <- tall_data("covertype")
x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
storage.mode(x) <- "double"
# columns of unit size: one step size fits all
x[, 2:11] <- scale(x[, 2:11])
y <- as.double(data$cover_type == 2)
rm(data)
n_data <- nrow(x)
storages <- c("double", "float")
models <- lapply(storages, function(storage) {
  model_glm(x, y, "bernoulli", prior_normal(0, 2.5), storage = storage)
})
names(models) <- storages
modes <- lapply(models, find_mode)

# Seconds of an iteration: a long run less a short one, so that the starting cost
# (control variates: a pass over the data) drops out.
iteration <- function(storage, n, estimator) {
  n_short <- max(20, round(1e5 / n))
  n_long <- n_short + max(100, round(4e6 / n))
  gradient <- switch(
    estimator,
    simple = gradient_simple(),
    cv = gradient_cv(at = modes[[storage]])
  )
  run <- function(iter) {
    cpu_seconds(sg_sample(
      models[[storage]],
      kernel_sgld(1e-9),
      gradient = gradient,
      subsample = subsample_uniform(n),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      cores = 1,
      seed = 1,
      init = modes[[storage]]$estimate
    ))
  }
  function() {
    short <- run(n_short)
    (run(n_long) - short) / (n_long - n_short)
  }
}

# Seconds of a pass: the gradient of all rows at a point.
pass <- function(storage) {
  theta <- matrix(modes[[storage]]$estimate)
  function() {
    cpu_seconds(for (k in 1:3) {
      sg_sample(
        models[[storage]],
        kernel_mala(1e-9),
        iter = 20,
        warmup = 0,
        chains = 1,
        seed = 1,
        init = theta[, 1]
      )
    }) / 60
  }
}

cases <- expand.grid(n = c(58, 581, 5810), estimator = c("simple", "cv"), stringsAsFactors = FALSE)
results <- lapply(seq_len(nrow(cases)), function(k) {
  functions <- lapply(storages, iteration, n = cases$n[[k]], estimator = cases$estimator[[k]])
  names(functions) <- storages
  interleave(functions, rounds)
})
passes <- interleave(stats::setNames(lapply(storages, pass), storages), rounds)

say("float / double: medians of ", rounds, " interleaved rounds, processor seconds. Asked for:\nat most 0.75 with n = 5,810.\n")
of <- function(estimator) {
  vapply(results[cases$estimator == estimator], ratio, 0, above = "float", below = "double")
}
table <- data.frame(
  "float / double" = c("simple, iteration", "CV, iteration", "all rows, a pass"),
  rbind(fixed(of("simple")), fixed(of("cv")), fixed(ratio(passes, "float", "double"))),
  check.names = FALSE
)
names(table)[2:4] <- paste("n =", c(58, 581, 5810))
table[3, 2:3] <- "-"
table$met <- c(yes_no(as.numeric(table[[4]][1:2]) <= 0.75), "-")
say_table(table)

bytes <- vapply(models, function(model) tallbayes:::model_info(model)$memory, 0)
sds <- lapply(modes, function(mode) sqrt(diag(solve(-mode$hessian))))
say("Memory of the model: ", fixed(bytes[["float"]] / bytes[["double"]]), " of double's. Largest relative difference of a\nstandard deviation at the mode: ", number(max(abs(sds$float / sds$double - 1)), 2), ".\n")
say("For orientation, microseconds of an iteration (median):\n")
micro <- t(vapply(results, function(r) 1e6 * apply(r, 2, stats::median), numeric(2)))
say_table(data.frame(cases, double = number(micro[, 1]), float = number(micro[, 2])))
