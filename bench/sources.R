# Regressions by passes: CPU and elapsed time over a plain loop for X'WX of the
# same rows, memory beyond the data, and how time grows with the rows. See
# README.md.
#
#   Rscript bench/sources.R [rows [rounds [stream rows]]]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
arguments <- as.numeric(commandArgs(TRUE))
n_data <- if (length(arguments) > 0) arguments[[1]] else 1e7
rounds <- if (length(arguments) > 1) arguments[[2]] else 3
n_stream <- if (length(arguments) > 2) arguments[[3]] else 1e8
compile_c("weighted.c")

make_data <- function(n) {
  set.seed(1)
  d <- as.data.frame(lapply(
    stats::setNames(nm = paste0("x", 1:6)),
    function(name) stats::rnorm(n)
  ))
  d$f <- factor(sample(letters[1:8], n, TRUE))
  d$y <- stats::rbinom(n, 1, stats::plogis(-2 + 0.5 * d$x1 - 0.3 * d$x2 + 0.4 * (d$f == "b")))
  d
}
formula <- y ~ x1 + x2 + x3 + x4 + x5 + x6 + f
cpu <- function(time) sum(time[c("user.self", "sys.self")])
loop <- function(d) {
  out <- matrix(0, 14, 14)
  numbers <- unname(as.list(d[1:6]))
  system.time(.Call("weighted_factor", numbers, unclass(d$f), out))
}
status <- function(what) {
  lines <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep(what, lines, value = TRUE))) / 1024
}
big <- function(n) format(n, big.mark = ",", scientific = FALSE)

bench_start("sources", paste0("Regressions by passes: N = ", big(n_data)))

# ---- a data frame -----------------------------------------------------------------

d <- make_data(n_data)
invisible(tall_glm(formula, d[1:7e4, ], binomial(), seed = 1)) # what loads on first use
ours <- ours2 <- plain <- list()
invisible(gc())
before <- status("VmRSS")
writeLines("5", "/proc/self/clear_refs")
for (k in seq_len(rounds)) {
  plain[[k]] <- loop(d)
  ours[[k]] <- system.time(fit <- tall_glm(formula, d, binomial(), seed = k))
  if (k == 1) {
    peak <- status("VmHWM") - before
  }
  ours2[[k]] <- system.time(tall_glm(formula, d, binomial(), seed = k, cores = 2))
}
middle <- function(times, f) stats::median(vapply(times, f, 0))
elapsed_of <- function(time) time[["elapsed"]]
say(
  "Logistic regression of ", big(n_data), " rows, six numbers and a factor of eight levels (14\n",
  "columns), default call of 4 x 2,000 iterations (", fit$plan, "), over a\n",
  "plain single-thread loop for X'WX (weighted.c); medians of ", rounds, ":\n"
)
say_table(data.frame(
  what = c("CPU seconds, one core", "elapsed, one core", "CPU seconds, two cores", "elapsed, two cores"),
  ratio = number(c(
    middle(ours, cpu) / middle(plain, cpu),
    middle(ours, elapsed_of) / middle(plain, elapsed_of),
    middle(ours2, cpu) / middle(plain, cpu),
    middle(ours2, elapsed_of) / middle(plain, elapsed_of)
  )),
  asked = c("16", "", "", "10")
))
say("Peak beyond the data (resident, of a call on one core): ", round(peak), " MB; asked for: 300.\n")

some <- d[seq_len(min(n_data, 1e6)), ]
both <- lapply(seq_len(rounds), function(k) {
  c(
    glm = system.time(stats::glm(formula, stats::binomial(), some))[["elapsed"]],
    ours = system.time(tall_glm(formula, some, binomial(), seed = k))[["elapsed"]]
  )
})
ratio <- stats::median(vapply(both, function(x) x[["ours"]] / x[["glm"]], 0))
say("Elapsed over `glm()` at N = ", big(nrow(some)), ": 1/", number(1 / ratio), "; asked for: 1/15.\n")

# ---- a stream ----------------------------------------------------------------------

rm(d, some, fit)
invisible(gc())
simulated <- function(n) {
  tall_stream(function() {
    at <- 0
    function() {
      size <- min(1e5, n - at)
      if (size <= 0) {
        return(NULL)
      }
      set.seed(at / 1e5)
      x <- matrix(stats::runif(5 * size), size)
      at <<- at + size
      y <- as.integer(stats::runif(size) < stats::plogis(-1 + x[, 1] - 0.5 * x[, 2]))
      data.frame(x, y)
    }
  })
}
stream_time <- function(n) {
  system.time(tall_glm(y ~ X1 + X2 + X3 + X4 + X5, simulated(n), binomial(), seed = 1))
}
small <- stream_time(n_stream / 10)
writeLines("5", "/proc/self/clear_refs")
large <- stream_time(n_stream)
say(
  "A stream of ", big(n_stream), " x 5 simulated rows: at most ", round(status("VmHWM")),
  " MB resident (asked for: 1 GB);\ntime per row over that of ", big(n_stream / 10), " rows: ",
  number(cpu(large) / cpu(small) / 10), " (1.2).\n"
)
