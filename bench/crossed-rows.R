# Sweeps of several grouping factors: threads that share the rows of a chain,
# and rows that are equal and so one.
#
#   Rscript bench/crossed-rows.R
#
# Elapsed seconds of one chain of 100 sweeps over a million rows, by two threads
# beside one; and CPU seconds of the same sweeps where rows repeat, beside those
# of rows that do not. Medians of five interleaved runs. 4 minutes, two cores.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
library(tallbayes)

bench_start(
  "crossed-rows",
  "Several grouping factors: threads of a chain, and equal rows",
  "crossed-rows.R"
)

rows <- function(n, levels, slope) {
  set.seed(1)
  data <- data.frame(
    a = sample(levels[[1]], n, TRUE),
    b = sample(levels[[2]], n, TRUE),
    x = slope(n)
  )
  eta <- 0.5 * data$x + 0.5 * rnorm(levels[[1]])[data$a] +
    0.7 * rnorm(levels[[2]])[data$b]
  data$y <- eta + rnorm(n)
  data$good <- rbinom(n, 1, plogis(eta))
  data
}

model_of <- function(data, response, family) {
  x <- cbind("(Intercept)" = 1, x = data$x)
  model_crossed(
    x,
    data[[response]],
    as.list(data[c("a", "b")]),
    family = family
  )
}

sweeps <- function(model, cores = 1, n = 100) {
  function() {
    sg_sample(
      model,
      kernel_gibbs("none", joint = FALSE),
      iter = n,
      warmup = n / 2,
      thin = 2,
      chains = 1,
      cores = cores,
      seed = 1,
      refresh = 0
    )
  }
}

seconds_of <- function(run, measure) function() measure(run())

# ---- threads -----------------------------------------------------------------

data <- rows(1e6, c(40000, 15000), rnorm)
threads <- do.call(rbind, lapply(
  c(Normal = "y", Logistic = "good"),
  function(response) {
    family <- if (response == "y") "gaussian" else "bernoulli"
    model <- model_of(data, response, family)
    one <- sweeps(model)
    two <- sweeps(model, cores = 2)
    stopifnot(identical(one()$draws, two()$draws))
    seconds <- interleave(
      list(one = seconds_of(one, elapsed), two = seconds_of(two, elapsed)),
      rounds = 5
    )
    data.frame(
      `one thread, s` = fixed(median(seconds[, "one"]), 1),
      `two, s` = fixed(median(seconds[, "two"]), 1),
      faster = times(ratio(seconds, "one", "two")),
      check.names = FALSE
    )
  }
))
say("\n### Two threads, one chain\n\n")
say_table(cbind(response = rownames(threads), threads))

# ---- equal rows --------------------------------------------------------------

say("\n### Equal rows\n\n")
repeated <- rows(1e6, c(2000, 50), function(n) sample(0:1, n, TRUE))
distinct <- transform(repeated, x = x + 1e-9 * seq_along(x) / length(x))
models <- lapply(
  list(cells = repeated, rows = distinct),
  model_of,
  response = "y",
  family = "gaussian"
)
first <- lapply(models, function(model) sweeps(model)())
stopifnot(all.equal(
  unclass(first$cells$draws),
  unclass(first$rows$draws),
  tolerance = 1e-4
))
seconds <- interleave(
  lapply(models, function(model) seconds_of(sweeps(model), cpu_seconds)),
  rounds = 5
)
say_table(data.frame(
  rows = format(1e6, big.mark = ",", scientific = FALSE),
  cells = format(first$cells$recipe$cells, big.mark = ","),
  `rows, CPU s` = fixed(median(seconds[, "rows"]), 1),
  `cells, CPU s` = fixed(median(seconds[, "cells"])),
  cheaper = times(ratio(seconds, "rows", "cells"), 1),
  check.names = FALSE
))
