# Time of an iteration against the gather limit, a plain R loop and PyTorch. See
# README.md.
#
#   Rscript bench/iteration.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
compile_c("gather.c")
bench_start("iteration", "Time of an iteration: logistic, N = 581,012, d = 55, one core")

data <- tall_data("covertype")
x <- cbind("(Intercept)" = 1, as.matrix(data[1:54]))
storage.mode(x) <- "double"
# columns of unit size: one step size fits all
x[, 2:11] <- scale(x[, 2:11])
y <- as.double(data$cover_type == 2)
rm(data)
n_data <- nrow(x)
d <- ncol(x)
model <- model_glm(x, y, "bernoulli", prior_normal(0, 2.5))
mode <- find_mode(model)
step_size <- 1e-9

# Seconds of an iteration of ours: a long run less a short one, so that the
# starting cost (control variates: a pass over the data) drops out.
ours <- function(n, gradient) {
  n_short <- max(20, round(1e5 / n))
  n_long <- n_short + max(100, round(4e6 / n))
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model,
      kernel_sgld(step_size),
      gradient = gradient,
      subsample = subsample_uniform(n),
      iter = iter,
      warmup = 0,
      thin = 10,
      chains = 1,
      cores = 1,
      seed = 1,
      init = mode$estimate
    ))
  }
  function() {
    short <- run(n_short)
    (run(n_long) - short) / (n_long - n_short)
  }
}

# What a statistician would write.
plain <- function(n) {
  iter <- max(20, round(2e5 / n))
  function() {
    theta <- mode$estimate
    draws <- matrix(NA_real_, iter, d)
    seconds <- cpu_seconds(
      for (t in seq_len(iter)) {
        i <- sample(n_data, n, replace = TRUE)
        xi <- x[i, ]
        residual <- y[i] - plogis(drop(xi %*% theta))
        gradient <- n_data / n * drop(crossprod(xi, residual)) - theta / 2.5^2
        theta <- theta + step_size / 2 * gradient + sqrt(step_size) * rnorm(d)
        draws[t, ] <- theta
      }
    )
    seconds / iter
  }
}

# The gather limit for n rows, in the middle of a long stretch of them.
invisible(.Call("gather_create", n_data, d))
aheads <- c(4, 8, 12, 16, 24)
tried <- sapply(rep(aheads, 3), function(a) .Call("gather_time", 2e6, a, FALSE))
ahead <- aheads[[which.min(apply(matrix(tried, length(aheads)), 1, median))]]
gather <- function(n, with_obs) {
  function() n * .Call("gather_time", 4e6, ahead, with_obs)
}

python <- find_torch()
if (!is.null(python)) {
  files <- tempfile(c("x", "y"))
  writeBin(as.vector(t(x)), files[[1]])
  writeBin(y, files[[2]])
} else {
  say("PyTorch is not installed: its column is skipped.\n")
}
torch <- function(n) {
  iter <- max(50, round(4e5 / n))
  arguments <- c(
    file.path(bench_folder(), "sgld_torch.py"), files,
    format(c(n_data, d, n, iter), scientific = FALSE, trim = TRUE)
  )
  function() as.numeric(system2(python, arguments, stdout = TRUE))
}

results <- lapply(c(58, 581, 5810), function(n) {
  functions <- list(
    gather = gather(n, FALSE),
    gather_obs = gather(n, TRUE),
    simple = ours(n, gradient_simple()),
    cv = ours(n, gradient_cv(at = mode)),
    plain = plain(n)
  )
  if (length(python) > 0) {
    functions$torch <- torch(n)
  }
  seconds <- interleave(functions, rounds)
  cat("n =", n, "\n")
  print(signif(1e6 * seconds, 3))
  seconds
})
names(results) <- c(58, 581, 5810)
unlink(if (length(python) > 0) files)

say("Ratios, medians of ", rounds, " interleaved rounds. Gather: the loop that only fetches the\nrows, ", ahead, " ahead; with responses: it fetches those too. Processor seconds.\n")
row <- function(label, target, value, met) {
  data.frame(ratio = label, target = target, t(value), met = met, check.names = FALSE)
}
table <- function(above, below) sapply(results, ratio, above = above, below = below)
lines <- list(
  list("simple / gather", "simple", "gather", 1.6, 1),
  list("CV / gather", "cv", "gather", 1.6, 1),
  list("simple / gather with responses", "simple", "gather_obs", NA, 1),
  list("CV / gather with responses", "cv", "gather_obs", NA, 1),
  list("CV / simple", "cv", "simple", 1.2, 1),
  list("plain R / simple", "plain", "simple", 15, -1),
  list("plain R / CV", "plain", "cv", 15, -1)
)
if (length(python) > 0) {
  lines <- c(lines, list(
    list("PyTorch / simple", "torch", "simple", 8, -1),
    list("PyTorch / CV", "torch", "cv", 8, -1),
    list("PyTorch / gather", "torch", "gather", NA, -1)
  ))
}
say_table(do.call(rbind, lapply(lines, function(l) {
  value <- table(l[[2]], l[[3]])
  target <- l[[4]]
  # the gather limit is asked of n >= 581 only
  judged <- if (l[[3]] == "gather") value[-1] else value
  ok <- if (l[[5]] > 0) all(judged <= target) else all(judged >= target)
  out <- data.frame(
    ratio = l[[1]],
    target = if (is.na(target)) "-" else paste(if (l[[5]] > 0) "<=" else ">=", target)
  )
  for (n in names(value)) {
    out[[paste("n =", n)]] <- fixed(value[[n]])
  }
  out$met <- if (is.na(target)) "-" else yes_no(ok)
  out
})))
say("For orientation, microseconds of an iteration (median):\n")
say_table(do.call(rbind, lapply(names(results), function(n) {
  data.frame(n = n, t(number(1e6 * apply(results[[n]], 2, median))), check.names = FALSE)
})))
