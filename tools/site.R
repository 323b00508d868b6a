# Builds the site of the package in docs/, with the package installed. What
# pages show was computed before (vignettes/precompile.R), examples are not run.
# Nothing is loaded from elsewhere, neither now nor by a browser. A warning of
# pkgdown is an error.
#   Rscript tools/site.R

# Scripts that pkgdown would fetch, by the places where it keeps what it has
# fetched: ours do what its pages ask of them.
scripts <- list(
  "headroom/0.11.0" = c(
    "headroom.min.js" = "",
    "jQuery.headroom.min.js" = "headroom.js"
  ),
  "bootstrap-toc/1.0.1" = c("bootstrap-toc.min.js" = "toc.js"),
  "clipboard.js/2.0.11" = c("clipboard.min.js" = "clipboard.js"),
  "search/1.0.0" = c(
    "fuse.min.js" = "search.js",
    "autocomplete.jquery.min.js" = "",
    "mark.min.js" = ""
  )
)

put_scripts <- function(cache) {
  for (place in names(scripts)) {
    folder <- file.path(cache, "R", "pkgdown", place)
    dir.create(folder, recursive = TRUE)
    for (name in names(scripts[[place]])) {
      ours <- scripts[[place]][[name]]
      text <- if (nzchar(ours)) {
        readLines(file.path("pkgdown", "scripts", ours))
      } else {
        character()
      }
      writeLines(text, file.path(folder, name))
    }
  }
}

# The README's links to what is in a checkout only, bench/.
unlink_checkout <- function() {
  page <- file.path("docs", "index.html")
  lines <- paste(readLines(page, encoding = "UTF-8"), collapse = "\n")
  plain <- gsub("<a href=\"bench/[^\"]*\">(.*?)</a>", "\\1", lines, perl = TRUE)
  writeLines(plain, page, useBytes = TRUE)
}

build <- function() {
  cache <- tempfile("cache")
  put_scripts(cache)
  Sys.setenv(R_USER_CACHE_DIR = cache)
  # it asks whether the package is on CRAN: no
  httr2::local_mocked_responses(function(req) httr2::response(404))
  unlink("docs", recursive = TRUE)
  warnings <- character()
  withCallingHandlers(
    pkgdown::build_site(
      examples = FALSE,
      devel = FALSE,
      lazy = FALSE,
      preview = FALSE,
      new_process = FALSE,
      install = FALSE
    ),
    warning = function(w) {
      # a package that is not on this machine
      if (!grepl("@examplesIf condition", conditionMessage(w), fixed = TRUE)) {
        warnings <<- c(warnings, conditionMessage(w))
      }
      invokeRestart("muffleWarning")
    }
  )
  unlink_checkout()
  if (length(warnings) > 0) {
    cat("Warnings of pkgdown:\n", paste0(warnings, "\n"), sep = "")
    quit(status = 1)
  }
}

library <- file.path(tools::R_user_dir("tallbayes", "cache"), "site-library")
.libPaths(c(if (dir.exists(library)) library, .libPaths()))
build()
