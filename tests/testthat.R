library(testthat)
library(tallbayes)

# On CRAN's terms, without the files that take longest.
if (identical(Sys.getenv("NOT_CRAN"), "true")) {
  test_check("tallbayes")
} else {
  long <- paste0("^(", paste(readLines("long.txt"), collapse = "|"), ")$")
  test_check("tallbayes", filter = long, invert = TRUE)
}
