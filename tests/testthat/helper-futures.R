# Two workers for the rest of a test, in R sessions of their own.
local_workers <- function(strategy = "multisession", frame = parent.frame()) {
  skip_on_cran()
  skip_if_not_installed("future")
  before <- future::plan(strategy, workers = 2)
  withr::defer(future::plan(before), frame)
}
