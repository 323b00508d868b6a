# What a checkout has and a source package has not.

tool <- function(name) {
  path <- test_path("..", "..", "tools", name)
  testthat::skip_if_not(file.exists(path), "tools/ is not part of the package")
  env <- new.env(parent = globalenv())
  sys.source(path, env)
  env
}

test_that("vignettes are found in a package installed from a checkout", {
  skip_if_not_installed("markdown")
  tools <- tool("vignettes.R")
  root <- withr::local_tempdir()
  dir.create(file.path(root, "Meta"))
  withr::local_dir(test_path("..", ".."))
  expect_output(tools$add_vignettes(root), "getting-started")
  index <- readRDS(file.path(root, "Meta", "vignette.rds"))
  sources <- list.files("vignettes", "[.]Rmd$")
  expect_identical(index$File, sources)
  title <- index$Title[sources == "getting-started.Rmd"]
  expect_identical(title, "Getting started")
  for (page in file.path(root, "doc", index$PDF)) {
    html <- readLines(page, encoding = "UTF-8")
    expect_match(html, "<title>", all = FALSE)
    # no options of chunks are left, no links to pictures that are not there
    expect_no_match(html, "```|opts_chunk|src=\"figures/")
  }
})

test_that("a slow BLAS and one that is wrong in threads are known", {
  tools <- tool("setup.R")
  folder <- "/usr/lib/x86_64-linux-gnu/"
  kinds <- c(
    "blas/libblas.so.3.11.0" = "reference",
    "openblas-serial/libblas.so.3" = "serial",
    "openblas-pthread/libblas.so.3" = "fine",
    "openblas-pthread/libopenblasp-r0.3.21.so" = "fine",
    "libmkl_rt.so" = "fine"
  )
  for (file in names(kinds)) {
    expect_identical(tools$blas_kind(paste0(folder, file)), kinds[[file]])
  }
  expect_identical(tools$blas_kind("/usr/lib/R/lib/libRblas.so"), "reference")
  expect_identical(tools$blas_kind(""), "fine")
})
