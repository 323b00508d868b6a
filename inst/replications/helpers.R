# What the scripts of this folder share: the palette, the length of a run, results
# that are kept, verdicts. Each of them is one figure of a paper:
#
#   source(system.file("replications", "barker-fig02.R", package = "tallbayes"))
#
# draws it and prints its verdict. Two options:
# * tallbayes.replication_fast = TRUE: so short that nothing can be seen, to find
#   out whether a script runs;
# * tallbayes.replication_keep = "folder": results of long runs are kept there and
#   read again by the next call with the same code.
suppressPackageStartupMessages({
  library(tallbayes)
  library(ggplot2)
})
options(tallbayes.refresh = 0)

replication_file <- function(name) {
  system.file("replications", name, package = "tallbayes", mustWork = TRUE)
}

is_fast <- function() isTRUE(getOption("tallbayes.replication_fast"))

# What the figure takes, and what the fast form takes.
full <- function(value, fast) if (is_fast()) fast else value

# The value of an expression, from the folder of kept results if it is there. Its
# key is the code of the expression: throw the folder away when anything else
# changes.
replication_clock <- new.env()
replication_clock$cpu <- 0

once <- function(name, code) {
  folder <- getOption("tallbayes.replication_keep")
  if (is.null(folder) || is_fast()) {
    started <- proc.time()
    force(code)
    note_cpu(cpu_since(started))
    return(code)
  }
  key <- rlang::hash(deparse(substitute(code)))
  file <- file.path(folder, paste0(name, "-", key, ".rds"))
  if (!file.exists(file)) {
    dir.create(folder, showWarnings = FALSE, recursive = TRUE)
    started <- proc.time()
    value <- code
    saveRDS(list(value = value, cpu = cpu_since(started)), file)
  }
  kept <- readRDS(file)
  note_cpu(kept$cpu)
  kept$value
}

# Processor time of what once() was asked for, whenever it ran.
cpu_since <- function(started) {
  sum((proc.time() - started)[c(1, 2, 4, 5)], na.rm = TRUE)
}
note_cpu <- function(seconds) {
  replication_clock$cpu <- replication_clock$cpu + seconds
}
replication_minutes <- function() replication_clock$cpu / 60

# ---- what is said --------------------------------------------------------------

plain <- function(x, digits = 3) {
  # each number on its own: format() aligns decimals
  vapply(signif(x, digits), format, "",
    digits = digits, big.mark = ",", scientific = FALSE
  )
}
percent <- function(x, digits = 2) paste0(plain(100 * x, digits), " %")
decimals <- function(x, digits = 2) {
  text <- formatC(x, digits = digits, format = "f")
  sub("^-(0[.]?0*)$", "\\1", text)
}

# "1.23 (0.04)": a mean over seeds and its standard error; "1.23": of one.
with_error <- function(x, digits = 2) {
  x <- x[!is.na(x)]
  if (length(x) < 2) {
    return(decimals(mean(x), digits))
  }
  error <- stats::sd(x) / sqrt(length(x))
  paste0(decimals(mean(x), digits), " (", decimals(error, digits), ")")
}

# Of each row, a size or a setting, the 95 % interval of the mean over seeds: is all of
# it above zero?
row_intervals <- function(x) {
  apply(x, 1, function(value) {
    mean(value) + c(-1, 1) * stats::qt(0.975, length(value) - 1) * stats::sd(value) /
      sqrt(length(value))
  })
}
above_zero <- function(x) row_intervals(x)[1, ] > 0

# The ratio of two medians with its 95 % interval, from bootstrap samples of what is
# independent: the values, or, of two lists, their elements (seeds), taken together.
ratio_interval <- function(above, below, replicates = 2000) {
  set.seed(1)
  ratio <- function(a, b) stats::median(unlist(a)) / stats::median(unlist(b))
  again <- function(x) sample(seq_along(x), replace = TRUE)
  boot <- replicate(replicates, {
    k <- again(above)
    ratio(above[k], below[if (is.list(above)) k else again(below)])
  })
  ends <- stats::quantile(boot, c(0.025, 0.975), names = FALSE)
  c(ratio = ratio(above, below), low = ends[[1]], high = ends[[2]])
}
interval_text <- function(x, digits = 2) {
  paste0(
    decimals(x[["ratio"]], digits), " (95 % interval ",
    decimals(x[["low"]], digits), " to ", decimals(x[["high"]], digits), ")"
  )
}

# The line under a figure. `holds`: TRUE, FALSE or "in part".
verdict <- function(figure, holds, ...) {
  word <- if (identical(holds, "in part")) {
    "holds in part"
  } else if (isTRUE(as.logical(holds))) {
    "holds"
  } else {
    "does not hold"
  }
  text <- gsub("\\s+", " ", paste0(...))
  line <- paste0("**Verdict, ", figure, ": ", word, ".** ", text)
  if (isTRUE(getOption("knitr.in.progress"))) {
    line <- paste(">", line)
  } else {
    line <- paste(strwrap(line, 90, exdent = 2), collapse = "\n")
  }
  cat("\n", line, "\n\n", sep = "")
  invisible(word)
}

# A table, printed as Markdown.
show_table <- function(table, ...) {
  if (requireNamespace("knitr", quietly = TRUE)) {
    cat(knitr::kable(table, row.names = FALSE, ...), sep = "\n")
    cat("\n\n")
  } else {
    print(table)
  }
}

# ---- how it looks --------------------------------------------------------------

# A method keeps its colour through all pages (Okabe & Ito, which colour-blind
# readers can tell apart); lines tell apart what shares one.
palette_methods <- c(
  "SGLD" = "#D55E00",
  "SGLD-PS" = "#E69F00",
  "SGLD-CV" = "#56B4E9",
  "SGLD-CV-PS" = "#009E73",
  "ASGLD-CV" = "#CC79A7",
  "ASGLD-CV-PS" = "#000000",
  "SAGA" = "#7F7F7F",
  "SGBD" = "#0072B2",
  "MALA" = "#009E73",
  "AdamMCMC" = "#CC79A7",
  "HMC" = "#000000",
  "exact" = "#000000"
)
palette_variants <- c("vanilla" = "solid", "corrected" = "41", "extreme" = "11")
shape_variants <- c("vanilla" = 16, "corrected" = 2, "extreme" = 0)

# Keys that are wide enough for the lines to be told apart.
theme_replication <- function() {
  theme_bw(base_size = 11) +
    theme(
      panel.grid.minor = element_blank(),
      legend.key.width = grid::unit(2.6, "lines"),
      legend.position = "bottom",
      strip.background = element_rect(fill = "grey94", colour = NA)
    )
}
theme_set(theme_replication())

scale_methods <- function(...) {
  scale_colour_manual(values = palette_methods, name = NULL, ...)
}
scale_variants <- function(...) {
  scale_linetype_manual(values = palette_variants, name = NULL, ...)
}

# Numbers one by one: for a sentence.
several <- function(x, digits = 2) {
  x <- plain(x, digits)
  if (length(x) < 2) {
    return(x)
  }
  paste(paste(x[-length(x)], collapse = ", "), "and", x[[length(x)]])
}
