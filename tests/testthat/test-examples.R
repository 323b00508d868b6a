# Help pages: every function that is exported is called in an example.

# The pages of the source tree, or of the installed package.
help_pages <- function() {
  folder <- test_path("..", "..", "man")
  if (dir.exists(folder)) {
    files <- list.files(folder, pattern = "[.]Rd$", full.names = TRUE)
    return(lapply(files, tools::parse_Rd))
  }
  tools::Rd_db("tallbayes")
}

# Names in the examples of a page, those that are not run among them.
names_in_examples <- function(page) {
  file <- withr::local_tempfile()
  tools::Rd2ex(page, file)
  if (!file.exists(file)) {
    return(character())
  }
  lines <- sub("^##D ", "", readLines(file))
  all.names(parse(text = lines, keep.source = FALSE))
}

test_that("every exported function is called in an example", {
  pages <- help_pages()
  skip_if(length(pages) == 0, "installed without help")
  called <- unlist(lapply(pages, names_in_examples))
  exported <- sort(getNamespaceExports("tallbayes"))
  expect_identical(setdiff(exported, called), character())
})

test_that("pages of methods of the field have references", {
  pages <- help_pages()
  skip_if(length(pages) == 0, "installed without help")
  tags <- function(page) vapply(page, function(x) attr(x, "Rd_tag"), "")
  name_of <- function(page) {
    as.character(page[[which(tags(page) == "\\name")[[1]]]][[1]])
  }
  names(pages) <- vapply(pages, name_of, "")
  wanted <- c(
    "bias_check",
    "kernels",
    "priors",
    "sg_sample",
    "summary.tall_fit",
    "tall_glm"
  )
  expect_identical(setdiff(wanted, names(pages)), character())
  for (name in wanted) {
    expect_true("\\references" %in% tags(pages[[name]]), info = name)
  }
})
