# Additive models of rows that come by a stream and are never all in memory: CPU
# seconds and memory of 10^6 and 10^7 rows, beside mgcv::bam(discrete = TRUE) of the
# 10^6 in memory, which is taken to grow as they do.

here <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(here), "common.R"))
stopifnot(requireNamespace("mgcv", quietly = TRUE))

arguments <- commandArgs(TRUE)
n_rows <- if (length(arguments) > 0) as.numeric(arguments) else c(1e6, 1e7)

block_rows <- 1e5
block <- function(number) {
  set.seed(number)
  d <- data.frame(
    a = runif(block_rows),
    b = runif(block_rows),
    c = rnorm(block_rows),
    e = runif(block_rows)
  )
  eta <- -1 + sin(6 * d$a) + 4 * (d$b - 0.5)^2 + 0.3 * d$c
  d$y <- as.double(runif(block_rows) < plogis(eta))
  d
}
stream <- function(n_row) {
  tall_stream(function() {
    number <- 0
    function() {
      number <<- number + 1
      if (number <= n_row / block_rows) block(number)
    }
  })
}
formula <- y ~ s(a, k = 10) + s(b, k = 10) + s(c, k = 10) + s(e, k = 10)

status <- function(key) {
  line <- grep(key, readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("\\D", "", line))
}

cpu <- function(code) {
  before <- proc.time()
  value <- force(code)
  used <- proc.time() - before
  list(value = value, cpu = sum(used[c("user.self", "sys.self")]))
}

bench_start("gam-stream", "Smooth terms of rows that come by a stream")
say(
  "Logit, four curves of k = 10: a sine, a parabola, a straight line and nothing. ",
  "4,000 draws. The rows are made anew in every pass, which is in the seconds; memory ",
  "is the most that was resident during the fit beyond what was before.\n"
)

rows <- lapply(n_rows, function(n_row) {
  making <- cpu(for (number in seq_len(n_row / block_rows)) block(number))$cpu
  gc()
  cat("5", file = "/proc/self/clear_refs") # resets the high-water mark
  before <- status("VmRSS")
  ours <- cpu(tall_gam(formula, stream(n_row), binomial(), seed = 1))
  most <- status("VmHWM") - before
  fit <- ours$value
  draws <- posterior::summarise_draws(fit, "rhat", "ess_bulk")
  looks <- 1 + fit$preparation[["mode"]] + ceiling(fit$preparation[["reference"]])
  data.frame(
    rows = n_row,
    cpu = ours$cpu,
    making = making,
    looks = looks,
    memory = most,
    rhat = as.double(max(draws$rhat)),
    ess = as.double(min(draws$ess_bulk)),
    acceptance = mean(fit$chains$acceptance)
  )
})
rows <- do.call(rbind, rows)
data <- do.call(rbind, lapply(seq_len(1e6 / block_rows), block))
theirs <- cpu(mgcv::bam(formula, binomial(), data, discrete = TRUE))$cpu

say_table(data.frame(
  rows = format(rows$rows, big.mark = ",", scientific = FALSE),
  `CPU s` = format(rows$cpu, digits = 3),
  `making the rows once, s` = format(rows$making, digits = 2),
  `passes` = rows$looks,
  `MB` = round(rows$memory / 2^20),
  `CPU over bam's` = format(rows$cpu / (theirs * rows$rows / 1e6), digits = 3),
  `acceptance` = format(rows$acceptance, digits = 2),
  `least bulk effective draws` = round(rows$ess),
  `worst R-hat` = format(rows$rhat, digits = 4),
  check.names = FALSE
))
say(
  "`bam(discrete = TRUE)` of 1,000,000 rows in memory took ", format(theirs, digits = 3),
  " s; of others it is taken to be in proportion.\n"
)
