# Kernel Stein discrepancy of 10,000 draws in 55 dimensions: ours, a careful blocked
# version in R on the same threads of BLAS, and the row-wise one of the papers'
# programs in R.
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))

n <- 10000
d <- 55
cores <- parallel::detectCores()
set.seed(1)
x <- matrix(rnorm(n * d), n)
b <- -x

# Three matrix products for each pair of blocks, functions of the distance with few
# passes over a block. symmetric: each pair of blocks once, not twice.
ksd_blocked <- function(x, b, symmetric, block = 1000) {
  n <- nrow(x)
  d <- ncol(x)
  x <- sweep(x, 2, colMeans(x))
  square <- rowSums(x^2)
  inner <- rowSums(x * b)
  # so that b_l.x_k + b_k.x_l is one product
  left <- cbind(x, b)
  right <- cbind(b, x)
  total <- 0
  for (from in seq(1, n, block)) {
    rows <- from:min(n, from + block - 1)
    for (start in seq(if (symmetric) from else 1, n, block)) {
      columns <- start:min(n, start + block - 1)
      r2 <- outer(square[rows], square[columns], `+`) -
        2 * tcrossprod(x[rows, ], x[columns, ])
      inverse <- 1 / (1 + r2)
      cross <- tcrossprod(left[rows, ], right[columns, ]) -
        outer(inner[rows], inner[columns], `+`)
      kernel <- sqrt(inverse) *
        (tcrossprod(b[rows, ], b[columns, ]) +
          inverse * (d - cross - 3 * r2 * inverse))
      total <- total + sum(kernel) * if (symmetric && from != start) 2 else 1
    }
  }
  sqrt(total) / n
}

# All pairs, a row at a time: the sum over `rows`.
ksd_row_wise <- function(x, b, rows = seq_len(nrow(x))) {
  n <- nrow(x)
  d <- ncol(x)
  total <- 0
  for (k in rows) {
    u <- matrix(x[k, ], n, d, byrow = TRUE) - x
    q <- 1 + rowSums(u^2)
    here <- matrix(b[k, ], n, d, byrow = TRUE)
    both <- rowSums(here * b)
    cross <- rowSums((here - b) * u)
    total <- total +
      sum(both * q^-0.5 + cross * q^-1.5 + d * q^-1.5 - 3 * (q - 1) * q^-2.5)
  }
  total
}

bench_start("ksd", "Kernel Stein discrepancy: 10,000 draws, 55 dimensions")
say(cores, " threads for ours and for BLAS.\n")

share <- seq(1, n, length.out = 50)
seconds <- interleave(list(
  ours = function() elapsed(ours <<- ksd(x, b, cores = cores)),
  one = function() elapsed(ksd(x, b, cores = 1)),
  half = function() elapsed(half <<- ksd_blocked(x, b, TRUE)),
  blocked = function() elapsed(blocked <<- ksd_blocked(x, b, FALSE)),
  rows = function() elapsed(ksd_row_wise(x, b, share)) * n / length(share),
  prefixes = function() {
    elapsed(ksd(x, b, prefixes = seq(100, n, 100), cores = cores))
  },
  general = function() elapsed(ksd(x, b, beta = -0.3, cores = cores)),
  coordinate = function() {
    elapsed(ksd(x, b, form = "coordinate", cores = cores))
  }
), rounds = 5)
stopifnot(abs(c(blocked, half) / ours - 1) < 1e-9)
few <- 1:300
slow <- sqrt(ksd_row_wise(x[few, ], b[few, ])) / length(few)
stopifnot(abs(ksd(x[few, ], b[few, ]) / slow - 1) < 1e-9)

of <- function(name) times(ratio(seconds, name, "ours"), 1)
say_table(data.frame(
  what = c(
    "blocked in R, all pairs",
    "blocked in R, each pair of blocks once",
    "row by row in R (from 50 of its rows)",
    "ours on one thread",
    "ours, 100 prefixes",
    "ours, beta = -0.3",
    "ours, by coordinate"
  ),
  "time / ours" = c(
    of("blocked"), of("half"), of("rows"), of("one"), of("prefixes"),
    of("general"), of("coordinate")
  ),
  wanted = c("at least 12 x", "", "at least 100 x", "", "", "", ""),
  check.names = FALSE
))

# Peak memory of a process that does nothing else (Linux).
if (file.exists("/proc/self/status")) {
  script <- tempfile(fileext = ".R")
  writeLines(c(
    "suppressPackageStartupMessages(library(tallbayes))",
    sprintf("x <- matrix(rnorm(%d), %d); b <- -x", n * d, n),
    "if (commandArgs(TRUE)[[1]] == 'run') {",
    sprintf("  invisible(ksd(x, b, cores = %d))", cores),
    "}",
    "cat(grep('VmHWM', readLines('/proc/self/status'), value = TRUE))"
  ), script)
  peak <- function(mode) {
    command <- file.path(R.home("bin"), "Rscript")
    out <- system2(command, c(script, mode), stdout = TRUE)
    as.numeric(gsub("[^0-9]", "", out)) / 1024
  }
  say(
    "Peak memory of the process: ", fixed(peak("run"), 0), " MB (wanted: below 200), ",
    "of which ", fixed(peak("rest"), 0), " MB are R, the package and the draws."
  )
}
