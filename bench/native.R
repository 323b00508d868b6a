# Time of an iteration of a user's model in C over that of the built-in one. See
# README.md.
#
#   Rscript bench/native.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
include <- paste0("-I'", system.file("include", package = "tallbayes"), "'")
compile_c("native.c", flags = paste("-O2", include))
compile_c(
  system.file("examples", "logistic.c", package = "tallbayes"),
  flags = paste("-O2", include)
)
bench_start("native", "A model in C against the built-in one: logistic, N = 581,012, d = 55, one core")

data <- tall_data("covertype")
x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
storage.mode(x) <- "double"
# columns of unit size: one step size fits all
x[, 2:11] <- scale(x[, 2:11])
y <- as.double(data$cover_type == 2)
rm(data)
init <- stats::setNames(numeric(ncol(x)), colnames(x))
models <- list(
  built_in = model_glm(x, y, "bernoulli", prior_normal(0, 2.5)),
  helpers = model_native(
    .Call("logistic_model"),
    list(x = x, y = y),
    init,
    constants = list(prior_sd = 2.5)
  ),
  plain = model_native(.Call("plain_model"), list(x = x, y = y), init)
)
mode <- find_mode(models$built_in)$estimate

# Seconds of an iteration: a long run less a short one, so that the starting cost
# (control variates: a pass over the data) drops out.
timing <- function(model, n, gradient) {
  n_short <- max(20, round(1e5 / n))
  n_long <- n_short + max(100, round(3e6 / n))
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel_sgld(1e-9),
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

sizes <- c(58, 581, 5810)
estimators <- list(simple = gradient_simple(), cv = gradient_cv(at = mode))
results <- list()
for (estimator in names(estimators)) {
  for (n in sizes) {
    results[[paste(estimator, n)]] <- interleave(
      lapply(models, timing, n = n, gradient = estimators[[estimator]]),
      rounds
    )
  }
}

say("Ratios of processor seconds of an iteration, medians of ", rounds, " interleaved rounds.\n`logistic.c` is inst/examples/logistic.c, with the header's helpers; `native.c` has plain\nloops over rows, no stored scalars and no prefetching, compiled by -O2 as R does it.\n")
line <- function(label, estimator, above, target) {
  value <- vapply(sizes, function(n) {
    ratio(results[[paste(estimator, n)]], above, "built_in")
  }, 0)
  out <- data.frame(
    ratio = label,
    target = if (is.na(target)) "-" else paste("<=", target)
  )
  out[paste("n =", sizes)] <- as.list(fixed(value))
  out$met <- if (is.na(target)) "-" else yes_no(all(value <= target))
  out
}
say_table(rbind(
  line("logistic.c / model_glm(), simple", "simple", "helpers", 1.1),
  line("logistic.c / model_glm(), CV", "cv", "helpers", 1.1),
  line("native.c / model_glm(), simple", "simple", "plain", NA),
  line("native.c / model_glm(), CV", "cv", "plain", NA)
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
