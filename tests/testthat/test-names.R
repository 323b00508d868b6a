# A second definition of a name silently takes the place of the first.
names_twice <- function(files) {
  lines <- unlist(lapply(files, readLines))
  pattern <- "^([A-Za-z_.][A-Za-z0-9_.]*) <- .*"
  names <- sub(pattern, "\\1", grep(pattern, lines, value = TRUE))
  unique(names[duplicated(names)])
}

test_that("no name of the package is defined twice", {
  folder <- test_path("..", "..", "R")
  skip_if_not(dir.exists(folder), "the sources are not here")
  expect_identical(
    names_twice(dir(folder, "[.]R$", full.names = TRUE)),
    character()
  )
})

test_that("no name of the tests' helpers is defined twice", {
  helpers <- dir(test_path(), "^helper.*[.]R$", full.names = TRUE)
  expect_gt(length(helpers), 10)
  expect_identical(names_twice(helpers), character())
})
