# Priors with scales of their own by passes over a stream, beside the same rows
# in memory: CPU seconds, interleaved. See README.md.
#
#   Rscript bench/scales-passes.R [rows [rounds]]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
arguments <- as.numeric(commandArgs(TRUE))
n_data <- if (length(arguments) > 0) arguments[[1]] else 2e5
rounds <- if (length(arguments) > 1) arguments[[2]] else 5

set.seed(1)
data <- data.frame(matrix(rnorm(20 * n_data), n_data))
eta <- -1 + 0.3 * data$X1 - 0.1 * data$X2
data$y <- as.integer(runif(n_data) < plogis(eta))
data$size <- eta + rnorm(n_data)

put_settings <- utils::getFromNamespace("put_settings", "tallbayes")
# where rows are passed over also if they are in memory, and where never
never <- list(rows = 1e9)
passed <- list(rows = 65536)

blocks <- function() {
  at <- 0
  function() {
    rows <- at + seq_len(min(50000, n_data - at))
    at <<- at + length(rows)
    if (length(rows) > 0) data[rows, , drop = FALSE]
  }
}

formulas <- list(
  binomial = reformulate(paste0("X", 1:20), "y"),
  gaussian = reformulate(paste0("X", 1:20), "size")
)
families <- list(binomial = binomial(), gaussian = gaussian())
priors <- list(ridge = prior_ridge(), horseshoe = prior_hs(), R2D2 = prior_r2d2())

passes <- new.env()
timed <- function(family, prior, source, look) {
  function() {
    before <- put_settings(list(look = look))
    on.exit(put_settings(before))
    seconds <- cpu_seconds(
      fit <- suppressWarnings(tall_glm(
        formulas[[family]], source(), families[[family]],
        prior = priors[[prior]], seed = 1, refresh = 0
      ))
    )
    assign(paste(family, prior), fit, passes)
    seconds
  }
}

row_of <- function(family, prior) {
  ways <- list(
    memory = timed(family, prior, function() data, never),
    passes = timed(family, prior, function() tall_stream(blocks), passed)
  )
  seconds <- interleave(ways, rounds)
  fit <- get(paste(family, prior), passes) # the last was by passes
  data.frame(
    response = family,
    prior = prior,
    `in memory, CPU s` = fixed(stats::median(seconds[, "memory"])),
    `by passes` = fixed(stats::median(seconds[, "passes"])),
    ratio = times(ratio(seconds, "passes", "memory")),
    `passes before the chains` = fixed(sum(fit$preparation), 1),
    `rows in memory` = if (is.null(fit$rows$source)) "all" else "few",
    check.names = FALSE
  )
}

bench_start("scales-passes", "Learnt scales by passes", paste(
  "scales-passes.R", paste(commandArgs(TRUE), collapse = " ")
))
say(
  format(n_data, big.mark = ",", scientific = FALSE), " rows, 20 columns, 4,000 draws of 4 chains; medians of ",
  rounds, if (rounds == 1) " round" else " rounds", ", in turn;\nthe stream hands out slices of a data frame that is there.\n"
)
rows <- list()
for (family in names(families)) {
  for (prior in names(priors)) {
    rows <- c(rows, list(row_of(family, prior)))
  }
}
say_table(do.call(rbind, rows))
