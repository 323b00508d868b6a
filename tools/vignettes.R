# Adds the vignettes to the installed package, where vignette("getting-started")
# finds them. R CMD INSTALL leaves them out when it is given a checkout. What
# they show was computed before (vignettes/precompile.R), so a page takes a
# moment and needs neither pandoc nor a second installation. From the root of
# the package:
#   Rscript tools/vignettes.R

vignette_title <- function(lines) {
  pattern <- "^ *%\\\\VignetteIndexEntry[{](.*)[}] *$"
  sub(pattern, "\\1", grep(pattern, lines, value = TRUE)[[1]])
}

# Code that is shown only has no options; of that which is neither shown nor run
# nothing is left.
plain_code <- function(lines) {
  is_hidden <- FALSE
  kept <- vapply(lines, function(line) {
    opens <- grepl("^```[{]r.*include *= *FALSE.*[}]$", line)
    was_hidden <- is_hidden
    is_hidden <<- opens || (is_hidden && line != "```")
    !opens && !was_hidden
  }, NA)
  sub("^```[{]r.*[}]$", "```r", lines[kept])
}

# The page as HTML, pictures included.
write_page <- function(file, lines, folder) {
  page <- sub("[.]Rmd$", ".html", basename(file))
  folder <- normalizePath(folder)
  old <- setwd(dirname(file))
  on.exit(setwd(old))
  markdown::mark_html(
    text = plain_code(lines),
    output = file.path(folder, page),
    meta = list(title = vignette_title(lines))
  )
  page
}

# To the package that is installed in the folder `root`.
add_vignettes <- function(root) {
  folder <- file.path(root, "doc")
  dir.create(folder, showWarnings = FALSE)
  files <- list.files("vignettes", "[.]Rmd$", full.names = TRUE)
  file.copy(files, folder, overwrite = TRUE)
  lines <- lapply(files, readLines, encoding = "UTF-8")
  pages <- mapply(write_page, files, lines, folder, USE.NAMES = FALSE)
  # as R CMD build would write it
  index <- data.frame(
    File = basename(files),
    Title = vapply(lines, vignette_title, ""),
    PDF = pages,
    R = ""
  )
  index$Depends <- index$Keywords <- rep(list(character()), length(files))
  saveRDS(index, file.path(root, "Meta", "vignette.rds"))
  cat("Vignettes:", sub("[.]html$", "", pages), "\n")
}

# source()d by a test for the functions above
if (sys.nframe() == 0) {
  if (requireNamespace("markdown", quietly = TRUE)) {
    add_vignettes(find.package("tallbayes"))
  } else {
    cat("Without the package markdown the vignettes stay in vignettes/*.Rmd.\n")
  }
}
