# The vignettes take longer than a check should, so they are run here and their
# output is committed. From this folder, with the package installed and the full
# data at hand (see ?tall_data):
#
#   Rscript precompile.R
#
# *.Rmd.orig -> *.Rmd, pictures in figures/. With TALLBAYES_KEEP=folder results
# of the long runs of inst/replications are kept there and read again by the
# next call.

vignette_started <- proc.time()[["elapsed"]]

vignette_options <- function(name) {
  look <- bayesplot::theme_default(base_family = "sans", base_size = 11)
  options(width = 105, tallbayes.refresh = 0, cli.num_colors = 1, digits = 4)
  bayesplot::color_scheme_set("viridis")
  bayesplot::bayesplot_theme_set(look)
  ggplot2::theme_set(look)
  knitr::opts_chunk$set(
    collapse = TRUE,
    comment = "#>",
    # knitr would write the message into the page and go on
    error = FALSE,
    fig.path = paste0("figures/", name, "-"),
    fig.width = 7.5,
    fig.align = "center",
    dpi = 150,
    dev = "png",
    dev.args = list(type = "cairo"),
    out.width = "100%"
  )
}

# A page of the papers' figures: the chunks of the scripts whose names match
# `pattern` are at hand, what they share is sourced.
replication_setup <- function(pattern, ...) {
  folder <- file.path("..", "inst", "replications")
  pattern <- paste0(pattern, ".*[.]R$")
  for (file in list.files(folder, pattern, full.names = TRUE)) {
    knitr::read_chunk(file)
  }
  for (file in c("helpers.R", ...)) {
    source(file.path(folder, file))
  }
  keep <- Sys.getenv("TALLBAYES_KEEP")
  options(tallbayes.replication_keep = if (nzchar(keep)) keep)
}

# The line that says how to run a figure.
script <- function(name) {
  file <- file.path("..", "inst", "replications", paste0(name, ".R"))
  stopifnot(file.exists(file))
  paste0(
    "*Script: `source(system.file(\"replications\", \"", name,
    ".R\", package = \"tallbayes\"))`.*"
  )
}

# The tables of a section of a result in bench/, or the one numbered `which`, as
# they stand there.
bench_table <- function(title, file = "bias.md", which = NULL) {
  cat("", bench_rows(title, file, which), "", sep = "\n")
}

# The same as a data frame.
bench_data <- function(title, file, which = 1) {
  rows <- bench_rows(title, file, which)[-2]
  cells <- do.call(rbind, strsplit(sub("^[|]", "", rows), "|", fixed = TRUE))
  cells <- apply(cells, 2, trimws)
  out <- as.data.frame(cells[-1, , drop = FALSE])
  names(out) <- cells[1, ]
  utils::type.convert(out, as.is = TRUE)
}

bench_rows <- function(title, file, which = NULL) {
  lines <- bench_lines(file)
  from <- grep(paste0("^##? ", title), lines)[[1]]
  to <- c(grep("^## |^Took ", lines), length(lines) + 1)
  section <- lines[from:(min(to[to > from]) - 1)]
  is_row <- grepl("^[|]", section)
  table <- cumsum(is_row & !c(FALSE, is_row[-length(is_row)]))
  section[is_row & (is.null(which) | table %in% which)]
}

# What the groups of `pattern` match in the text of a result.
bench_says <- function(pattern, file) {
  text <- gsub(" +", " ", paste(bench_lines(file), collapse = " "))
  found <- regmatches(text, regexec(pattern, text))[[1]]
  stopifnot(length(found) > 1)
  found[-1]
}

# What its first table says of a problem.
bench_problem <- function(name) {
  rows <- grep(paste0("^[|] ", name, " "), bench_lines("bias.md"), value = TRUE)
  row <- rows[[1]]
  cell <- trimws(strsplit(row, "|", fixed = TRUE)[[1]])
  paste0(
    "N = ", cell[[3]], ", d = ", cell[[4]], ", ", cell[[5]],
    " events, condition number ", format(as.numeric(cell[[6]]), big.mark = ","),
    ", skewness ", cell[[10]]
  )
}

bench_lines <- function(file) {
  readLines(file.path("..", "bench", "results", file))
}

# source()d by the vignettes for the functions above; run as a script for the
# rest
if (sys.nframe() == 0) {
  arguments <- commandArgs(TRUE)
  names <- if (length(arguments) > 0) {
    arguments
  } else {
    c(
      "getting-started",
      "summary",
      "exact-posteriors",
      "big-data",
      "control-variates",
      "preferential-subsampling",
      "barker-dynamics",
      "multilevel",
      "smooth-terms",
      "neural-networks",
      "your-own-model",
      "from-rstanarm-and-brms",
      "which-kernel",
      "which-response",
      "priors",
      "reading-the-output",
      "ratings-components-topics",
      "latent-structure",
      # last: it reads the others
      "replications"
    )
  }
  for (name in names) {
    knitr::knit(
      paste0(name, ".Rmd.orig"),
      paste0(name, ".Rmd"),
      envir = new.env(),
      quiet = TRUE
    )
  }
  # pictures of few colours, so that the package stays small
  pictures <- Sys.glob(paste0("figures/", names, "-*.png"))
  if (nzchar(Sys.which("pngquant")) && length(pictures) > 0) {
    how <- c("--skip-if-larger", "--force", "--ext", ".png", "32")
    system2("pngquant", c(how, pictures))
  }
}
