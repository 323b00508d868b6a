# Two workers for the rest of a test, in R sessions of their own: the same for
# all tests of a file, or, for a test that ends one, by another strategy.
local_workers <- function(strategy = "cluster", frame = parent.frame()) {
  skip_on_cran()
  skip_if_not_installed("future")
  workers <- if (strategy == "cluster") worker_sessions() else 2
  before <- future::plan(strategy, workers = workers)
  withr::defer(future::plan(before), frame)
}

workers_place <- new.env()

worker_sessions <- function() {
  if (is.null(workers_place$sessions)) {
    workers_place$sessions <- future::makeClusterPSOCK(2)
    withr::defer(
      {
        parallel::stopCluster(workers_place$sessions)
        rm(sessions, envir = workers_place)
      },
      testthat::teardown_env()
    )
  }
  workers_place$sessions
}
