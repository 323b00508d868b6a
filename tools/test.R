# Runs every test on the installed package; the last line counts them.
#   Rscript tools/test.R [filter]

Sys.setenv(NOT_CRAN = "true")
filter <- commandArgs(trailingOnly = TRUE)

# `make test` gives BLAS one thread.
threads <- Sys.getenv("OPENBLAS_NUM_THREADS", "as R says")
cat(
  "BLAS: ",
  extSoftVersion()[["BLAS"]],
  ", threads: ",
  threads,
  "\n",
  sep = ""
)

# the last line counts all of them; the reporter reads it when it is made
testthat::set_max_fails(Inf)

# One line per file: a spinner would fill a log.
reporter <- testthat::ProgressReporter$new(
  show_praise = FALSE,
  update_interval = Inf
)

results <- tryCatch(
  as.data.frame(testthat::test_dir(
    "tests/testthat",
    package = "tallbayes",
    load_package = "installed",
    filter = if (length(filter) > 0) filter[[1]],
    reporter = reporter,
    stop_on_failure = FALSE
  )),
  error = function(e) {
    message("The tests stopped: ", conditionMessage(e))
    data.frame(passed = 0, failed = 1, error = FALSE, skipped = 0)
  }
)

n_failed <- sum(results$failed) + sum(results$error)
cat(sprintf(
  "\n%d passed, %d failed, %d skipped\n",
  sum(results$passed),
  n_failed,
  sum(results$skipped)
))
quit(status = if (n_failed > 0) 1 else 0)
