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

# Pages of what the README links to and only a checkout has: scripts and results
# in bench/. Links among them lead nowhere, and are text.
build_checkout <- function() {
  home <- file.path("docs", "index.html")
  lines <- paste(readLines(home, encoding = "UTF-8"), collapse = "\n")
  site <- pkgdown::as_pkgdown(".")
  wanted <- gregexpr("(?<=href=\")bench/[^\"]*", lines, perl = TRUE)
  for (link in unique(regmatches(lines, wanted)[[1]])) {
    # pkgdown takes Markdown for pages
    file <- sub("[.]html$", ".md", link)
    page <- paste0(sub("[.](md|html)$", "", link), ".html")
    build_file(site, file, page)
    lines <- gsub(
      paste0("href=\"", link, "\""),
      paste0("href=\"", page, "\""),
      lines,
      fixed = TRUE
    )
  }
  writeLines(lines, home, useBytes = TRUE)
}

build_file <- function(site, file, page) {
  text <- readLines(file, encoding = "UTF-8")
  title <- file
  if (endsWith(file, ".md")) {
    title <- sub("^# ", "", text[[1]])
    text <- text[-1]
  } else {
    text <- c("```r", text, "```")
  }
  from <- tempfile(fileext = ".md")
  to <- tempfile(fileext = ".html")
  writeLines(text, from, useBytes = TRUE)
  # an id that begins with a number is none to scripts
  options <- "--id-prefix=at-"
  rmarkdown::pandoc_convert(from, "html5", "gfm", to, options = options)
  html <- paste(readLines(to, encoding = "UTF-8"), collapse = "\n")
  html <- gsub("<a href=\"(?!https?:)[^>]*>(.*?)</a>", "\\1", html, perl = TRUE)
  folder <- file.path("docs", dirname(page))
  dir.create(folder, recursive = TRUE, showWarnings = FALSE)
  content <- list(pagetitle = title, body = html)
  pkgdown::render_page(site, "title-body", content, page, quiet = TRUE)
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
  build_checkout()
  if (length(warnings) > 0) {
    cat("Warnings of pkgdown:\n", paste0(warnings, "\n"), sep = "")
    quit(status = 1)
  }
}

library <- file.path(tools::R_user_dir("tallbayes", "cache"), "site-library")
.libPaths(c(if (dir.exists(library)) library, .libPaths()))
build()
