# A regression whose rows come as four streams: how much sooner is it done where
# two workers pass over them?
#
#   Rscript bench/shards.R [rows of a stream]

source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
library(future)

n_row <- as.numeric(c(commandArgs(trailingOnly = TRUE), 2.5e6)[[1]])

bench_start("shards", "Shards on workers")

# Rows that are made as they are read: 5 columns, the same in every pass.
simulated <- function(shard, n_row) {
  function() {
    at <- 0
    function() {
      if (at >= n_row) {
        return(NULL)
      }
      n <- min(50000, n_row - at)
      at <<- at + n
      set.seed(shard * 1e5 + at %/% 50000)
      x <- matrix(rnorm(n * 4), n)
      eta <- -1 + drop(x %*% c(0.5, -0.3, 0.2, 0.1))
      data.frame(
        y = as.double(runif(n) < plogis(eta)),
        a = x[, 1],
        b = x[, 2],
        c = x[, 3],
        d = x[, 4]
      )
    }
  }
}

streams <- tall_stream(lapply(1:4, simulated, n_row = n_row))

fit <- function() {
  tall_glm(y ~ ., data = streams, family = "bernoulli", seed = 1)
}

seconds <- function(f) {
  gc()
  system.time(f())[["elapsed"]]
}

plans <- list(here = NULL, one = 1, two = 2)
start <- function(workers) {
  if (is.null(workers)) {
    plan(sequential)
  } else {
    plan(multisession, workers = I(workers))
    # sessions that have the package
    value(lapply(seq_len(workers), function(k) {
      future({
        loadNamespace("tallbayes")
        Sys.sleep(0.5)
      })
    }))
  }
}

times <- matrix(0, 3, 3, dimnames = list(NULL, names(plans)))
draws <- list()
for (round in 1:3) {
  for (name in names(plans)) {
    start(plans[[name]])
    times[round, name] <- seconds(function() {
      draws[[name]] <<- unclass(fit()$draws)
    })
  }
}
plan(sequential)
stopifnot(
  identical(draws$here, draws$one),
  identical(draws$here, draws$two)
)

medians <- apply(times, 2, median)
load <- readLines("/proc/loadavg")
say("Elapsed seconds of `tall_glm()`, medians of three, one plan after the other in
each round; 4 streams of ", format(n_row, big.mark = ",", scientific = FALSE),
" rows and 5 columns, simulated as they are read. The\ndraws are the same bit for bit.\n")
say_table(data.frame(
  plan = c("sequential", "multisession, 1 worker", "multisession, 2 workers"),
  seconds = format(medians, digits = 3),
  "1 worker / this" = format(medians[["one"]] / medians, digits = 3),
  check.names = FALSE
))
say("Wanted: 1.7 or more of 2 workers. Others used the machine's two cores meanwhile: load\n",
    "averages at the end ", sub("^(\\S+ \\S+ \\S+).*", "\\1", load), ".")
