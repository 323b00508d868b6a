# A regression whose rows come as four streams: how much sooner is it done where
# two workers pass over them?
#
#   Rscript bench/shards.R [rows of a stream [rounds]]
#
# Elapsed time says so where two cores have nothing else to do. Processor time says
# it of a busy machine, too: that of this process and of the worker that has most,
# which is what would have elapsed.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R")) # workers, too: one thread each
library(future)

arguments <- as.numeric(commandArgs(trailingOnly = TRUE))
n_row <- c(arguments, 2.5e6)[[1]]
rounds <- c(arguments[-1], 3)[[1]]

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

# Of this process, and of each worker.
cpu_now <- function(workers) {
  own <- function() sum(proc.time()[c("user.self", "sys.self")])
  each <- if (!is.null(workers)) {
    value(lapply(seq_len(workers), function(k) {
      future({
        Sys.sleep(0.5) # one for each worker
        stats::setNames(sum(proc.time()[c("user.self", "sys.self")]), Sys.getpid())
      })
    }))
  }
  each <- unlist(each)
  if (!is.null(each)) {
    each <- each[order(names(each))]
  }
  list(here = own(), workers = each)
}

# c(elapsed, here, worker): seconds; worker: of the one that took most
seconds <- function(f, workers) {
  gc()
  before <- cpu_now(workers)
  elapsed <- system.time(f())[["elapsed"]]
  here <- sum(proc.time()[c("user.self", "sys.self")]) - before$here
  after <- cpu_now(workers)
  stopifnot(identical(names(before$workers), names(after$workers)))
  c(elapsed = elapsed, here = here, worker = max(0, after$workers - before$workers))
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

times <- array(
  0, c(rounds, 3, 3),
  list(NULL, names(plans), c("elapsed", "here", "worker"))
)
draws <- list()
for (round in seq_len(rounds)) {
  for (name in names(plans)) {
    start(plans[[name]])
    times[round, name, ] <- seconds(
      function() {
        draws[[name]] <<- unclass(fit()$draws)
      },
      plans[[name]]
    )
  }
}
plan(sequential)
stopifnot(
  identical(draws$here, draws$one),
  identical(draws$here, draws$two)
)

medians <- apply(times, 2:3, median)
cpu <- medians[, "here"] + medians[, "worker"]
load <- readLines("/proc/loadavg")
say("`tall_glm()`, medians of ", rounds, ", one plan after the other in each round; 4 streams of\n",
    format(n_row, big.mark = ",", scientific = FALSE),
    " rows and 5 columns, simulated as they are read; one thread for each process. CPU\nseconds: of this process, and of the worker that had most. The draws are the same bit for bit.\n")
say_table(data.frame(
  plan = c("sequential", "multisession, 1 worker", "multisession, 2 workers"),
  elapsed = number(medians[, "elapsed"]),
  "1 worker / this" = number(medians[["one", "elapsed"]] / medians[, "elapsed"]),
  "CPU here" = number(medians[, "here"]),
  "CPU worker" = c("-", number(medians[-1, "worker"])),
  "1 worker / this, CPU" = number(cpu[["one"]] / cpu),
  check.names = FALSE
))
say("Wanted: 1.7 or more of 2 workers. Load averages of the machine's two cores at the end: ",
    sub("^(\\S+ \\S+ \\S+).*", "\\1", load), ".")
