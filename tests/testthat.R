library(testthat)
library(tallbayes)

test_check("tallbayes")
