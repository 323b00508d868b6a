# The full data sets are not part of the package: without them a test says so.
skip_without_data <- function(name) {
  set <- data_sets[[name]]
  if (is.null(data_find(set))) {
    testthat::skip(paste(set$file, "is not on this machine (TALLBAYES_DATA)"))
  }
}
