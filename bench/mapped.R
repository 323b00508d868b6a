# Rows in a file: memory beyond the page cache, and time of an iteration. See
# README.md.
#
#   Rscript bench/mapped.R [rounds [rows]]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
arguments <- as.numeric(commandArgs(TRUE))
rounds <- if (length(arguments) > 0) arguments[[1]] else 5
n_data <- if (length(arguments) > 1) arguments[[2]] else 1e7
d <- 20

# What a process does that has nothing in memory but the responses; run by itself,
# and watched.
if (Sys.getenv("BENCH_MAPPED") != "") {
  path <- Sys.getenv("BENCH_MAPPED")
  writeLines(as.character(Sys.getpid()), paste0(path, ".pid"))
  set.seed(1)
  theta <- c(-1, rep(c(0.5, -0.3), length.out = d - 1))
  y <- integer(n_data)
  at <- 0
  rows <- function() {
    n <- min(50000, n_data - at)
    if (n == 0) {
      return(NULL)
    }
    x <- cbind(1, matrix(rnorm(n * (d - 1)), n))
    y[at + seq_len(n)] <<- rbinom(n, 1, plogis(x %*% theta))
    at <<- at + n
    x
  }
  writing <- elapsed(store <- tall_store(rows, path))
  model <- model_glm(store, y)
  mode <- find_mode(model)
  fit <- sg_sample(
    model,
    kernel_sgld(1e-7),
    gradient_cv(at = mode),
    subsample_uniform(581),
    iter = 20000,
    chains = 1,
    seed = 1,
    init = mode$estimate
  )
  saveRDS(list(y = y, writing = writing, mode = mode), paste0(path, ".rds"))
  quit("no")
}

bench_start("mapped", paste0(
  "Rows in a file: logistic, N = ", format(n_data, big.mark = ",", scientific = FALSE), ", d = ", d
))
path <- tempfile("rows", fileext = ".tall")
kilobytes <- function(pid, what) {
  lines <- try(readLines(file.path("/proc", pid, "status")), silent = TRUE)
  value <- if (is.character(lines)) grep(paste0("^", what, ":"), lines, value = TRUE)
  if (length(value) == 1) as.numeric(gsub("[^0-9]", "", value)) else NA
}
system2(
  file.path(R.home("bin"), "Rscript"),
  c(script, rounds, format(n_data, scientific = FALSE)),
  env = paste0("BENCH_MAPPED=", path),
  wait = FALSE
)
while (!file.exists(paste0(path, ".pid"))) {
  Sys.sleep(0.02)
}
Sys.sleep(0.1)
pid <- readLines(paste0(path, ".pid"))
seen <- numeric()
while (dir.exists(file.path("/proc", pid))) {
  seen <- c(seen, kilobytes(pid, "RssAnon"))
  Sys.sleep(0.02)
}
peak <- max(seen, na.rm = TRUE) / 1024
written <- readRDS(paste0(path, ".rds"))
say("Writing, mode and 20,000 iterations in a process of their own: at most ", round(peak), " MB\nresident beyond the page cache (RssAnon, looked at every 20 ms; the responses are ", round(n_data * (4 + 16) / 2^20), "\nof them: integers of R, and two numbers a row in the model); asked for: at most 300. The file has ", round(file.size(path) / 2^20), " MB and was\nwritten in ", number(written$writing), " s, making the rows included.\n")

store <- tall_store(file = path)
y <- written$y
mapped <- model_glm(store, y)
dense <- model_glm(as.matrix(store), y)
invisible(gc())
run <- function(model, n, estimator, iter, seed = 1) {
  gradient <- switch(estimator, simple = gradient_simple(), cv = gradient_cv(at = written$mode))
  sg_sample(
    model,
    kernel_sgld(1e-7),
    gradient,
    subsample_uniform(n),
    iter = iter,
    warmup = 0,
    thin = 10,
    chains = 1,
    cores = 1,
    seed = seed,
    init = written$mode$estimate
  )
}
iteration <- function(model, n, estimator) {
  n_short <- 20
  n_long <- n_short + max(100, round(4e6 / n))
  function() {
    short <- cpu_seconds(run(model, n, estimator, n_short))
    (cpu_seconds(run(model, n, estimator, n_long)) - short) / (n_long - n_short)
  }
}
same <- identical(
  unclass(run(mapped, 581, "cv", 1000)$draws),
  unclass(run(dense, 581, "cv", 1000)$draws)
)
cases <- expand.grid(n = c(58, 581, 5810), estimator = c("simple", "cv"), stringsAsFactors = FALSE)
results <- lapply(seq_len(nrow(cases)), function(k) {
  interleave(
    list(
      dense = iteration(dense, cases$n[[k]], cases$estimator[[k]]),
      mapped = iteration(mapped, cases$n[[k]], cases$estimator[[k]])
    ),
    rounds
  )
})
share <- vapply(results, ratio, 0, above = "mapped", below = "dense")
say("mapped / dense, an iteration once the file is cached: medians of ", rounds, " interleaved\nrounds, processor seconds. Asked for: at most 1.15. Draws are ", if (same) "identical" else "**not identical**", ".\n")
micro <- t(vapply(results, function(r) 1e6 * apply(r, 2, stats::median), numeric(2)))
say_table(data.frame(
  cases,
  dense_us = number(micro[, 1]),
  mapped_us = number(micro[, 2]),
  "mapped / dense" = fixed(share),
  met = yes_no(share <= 1.15),
  check.names = FALSE
))
unlink(paste0(path, c("", ".pid", ".rds")))
