# The scripts of the papers' figures, and the pages that show them.

scripts <- function(...) {
  folder <- system.file("replications", package = "tallbayes")
  list.files(folder, ..., full.names = TRUE)
}

local_theme <- function(frame = parent.frame()) {
  old <- ggplot2::theme_get()
  withr::defer(ggplot2::theme_set(old), envir = frame)
}

# What the scripts have in common; it sets an option and a theme.
script_helpers <- function(frame = parent.frame()) {
  local_theme(frame)
  withr::local_options(tallbayes.refresh = 0, .local_envir = frame)
  env <- new.env(parent = globalenv())
  sys.source(scripts("^helpers[.]R$"), env)
  env
}

# A script in its fast form, without its pictures: what it prints.
run_fast <- function(name) {
  # the scripts set the second, and ggplot2's theme
  withr::local_options(
    tallbayes.replication_fast = TRUE,
    tallbayes.refresh = 0
  )
  withr::local_pdf(NULL)
  local_theme()
  file <- scripts(paste0("^", name, "[.]R$"))
  env <- new.env(parent = globalenv())
  capture.output(suppressMessages(suppressWarnings(sys.source(file, env))))
}

pages <- function() {
  folder <- test_path("..", "..", "vignettes")
  skip_if_not(dir.exists(folder), "vignettes/ is not beside the tests")
  folder
}

test_that("every script parses, and says what it is", {
  for (file in scripts("[.]R$")) {
    expect_silent(parse(file, keep.source = FALSE))
    expect_match(readLines(file, 1), "^# [A-Z0-9]", info = file)
  }
})

test_that("scripts run from the installed package", {
  skip_on_cran()
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("knitr")
  for (name in c("barker-fig02", "preferential-fig03", "adam-exact")) {
    said <- run_fast(name)
    expect_match(said, "[*][*]Verdict, ", all = FALSE, info = name)
  }
})

test_that("results are kept on request, by the code that made them", {
  skip_if_not_installed("ggplot2")
  env <- script_helpers()
  folder <- withr::local_tempdir()
  withr::local_options(tallbayes.replication_keep = folder)
  kept <- function() env$once("one", stats::runif(1))
  expect_identical(kept(), kept())
  expect_length(list.files(folder), 1)
  expect_false(kept() == env$once("one", stats::runif(n = 1)))
})

test_that("intervals of ratios hold what was put in", {
  skip_if_not_installed("ggplot2")
  env <- script_helpers()
  below <- withr::with_seed(1, stats::rlnorm(200, 0, 0.3))
  found <- env$ratio_interval(3 * rev(below), below)
  expect_equal(found[["ratio"]], 3)
  expect_true(found[["low"]] < 3 && found[["high"]] > 3)
  # of lists the elements are what is independent
  groups <- split(below, rep(1:10, each = 20))
  expect_equal(env$ratio_interval(lapply(groups, `*`, 3), groups)[1:3], c(
    ratio = 3, low = 3, high = 3
  ))
})

test_that("the index leads to pages, anchors and scripts that are there", {
  folder <- pages()
  index <- utils::read.csv(scripts("^index[.]csv$"))
  for (k in seq_len(nrow(index))) {
    row <- index[k, ]
    expect_length(scripts(paste0("^", row$script, "[.]R$")), 1)
    page <- readLines(file.path(folder, paste0(row$page, ".Rmd")))
    anchor <- paste0("{#", row$anchor, "}")
    expect_true(any(grepl(anchor, page, fixed = TRUE)), info = anchor)
    expect_true(
      any(grepl(paste0("\"", row$script, ".R\""), page, fixed = TRUE)),
      info = row$script
    )
  }
  # every figure's script is in the index
  figures <- basename(scripts("-(fig|cost|theory).*[.]R$|^adam"))
  figures <- sub("[.]R$", "", figures)
  expect_setequal(intersect(figures, index$script), figures)
})

test_that("every picture says what is seen", {
  folder <- pages()
  for (file in list.files(folder, "[.]Rmd$", full.names = TRUE)) {
    pictures <- grep("<img src=|^!\\[", readLines(file), value = TRUE)
    if (length(pictures) == 0) {
      next
    }
    expect_no_match(pictures, "plot of chunk|alt=\"\"|!\\[\\]", info = file)
    shown <- regmatches(pictures, regexpr("figures/[^\"\\)]+[.]png", pictures))
    expect_true(all(file.exists(file.path(folder, shown))), info = file)
  }
})
