# What the scripts share: a log that is printed and kept, C compiled on the fly,
# interleaved timing.

suppressPackageStartupMessages(library(tallbayes))
options(tallbayes.refresh = 0, width = 100)

# The folder this file is in, wherever Rscript was called.
bench_folder <- function() {
  arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
  if (length(arg) == 0) "bench" else dirname(sub("^--file=", "", arg[[1]]))
}

bench_log <- new.env()

# Start a result file: results/<name>.md
bench_start <- function(name, title, command = paste0(name, ".R")) {
  bench_log$path <- file.path(bench_folder(), "results", paste0(name, ".md"))
  bench_log$lines <- character()
  dir.create(dirname(bench_log$path), showWarnings = FALSE)
  say("# ", title, "\n")
  say("`Rscript bench/", command, "`, ", format(Sys.Date()), "; ", machine(), "\n")
}

# One line (or several), printed and kept.
say <- function(...) {
  text <- paste0(...)
  cat(text, "\n", sep = "")
  bench_log$lines <- c(bench_log$lines, text)
  # so that what was measured is kept when a later part fails
  writeLines(bench_log$lines, bench_log$path)
}

# A data frame as a markdown table; columns of numbers are formatted before.
say_table <- function(table) {
  text <- lapply(table, as.character)
  width <- Map(function(x, name) max(nchar(c(x, name))), text, names(table))
  is_number <- vapply(text, function(x) {
    all(grepl("^([-+<>~]?[0-9. ]*[0-9][0-9.,e%+-]*( [x%s])?|-)$", x))
  }, TRUE)
  fill <- function(x, width, right) {
    formatC(x, width = width, flag = if (right) "" else "-")
  }
  cells <- Map(fill, text, width, is_number)
  head <- Map(fill, names(table), width, is_number)
  rule <- Map(function(w, right) {
    paste0(strrep("-", if (right) w - 1 else w), if (right) ":")
  }, width, is_number)
  row <- function(x) paste0("| ", paste(x, collapse = " | "), " |")
  lines <- c(
    row(unlist(head)),
    row(unlist(rule)),
    apply(do.call(cbind, cells), 1, row)
  )
  say(paste(lines, collapse = "\n"), "\n")
}

machine <- function() {
  cpu <- "unknown processor"
  if (file.exists("/proc/cpuinfo")) {
    lines <- grep("^model name", readLines("/proc/cpuinfo"), value = TRUE)
    cpu <- sub(".*: *", "", lines[[1]])
  }
  paste0(
    cpu, ", ", parallel::detectCores(), " cores, ",
    R.version$platform, "; R ", getRversion(),
    ", BLAS ", blas_text(),
    ", tallbayes ", utils::packageVersion("tallbayes")
  )
}

# Its file, whose folder tells Debian's apart, and the threads that it was told to
# take when R started.
blas_text <- function() {
  threads <- Sys.getenv(c(
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS"
  ))
  threads <- c(threads[nzchar(threads)], "all")[[1]]
  file <- extSoftVersion()[["BLAS"]]
  name <- file.path(basename(dirname(file)), basename(file))
  if (!grepl("openblas|mkl", file)) {
    return(name)
  }
  paste0(name, " (", threads, if (threads == "1") " thread)" else " threads)")
}

number <- function(x, digits = 3) {
  formatC(x, digits = digits, format = "fg", flag = "#")
}
fixed <- function(x, digits = 2) formatC(x, digits = digits, format = "f")
percent <- function(x, digits = 1) paste0(fixed(100 * x, digits), " %")
times <- function(x, digits = 2) paste0(fixed(x, digits), " x")
yes_no <- function(x) ifelse(x, "yes", "**no**")

# Compile a C file, of this folder if there is no such path, in a temporary one
# and load it.
compile_c <- function(file, flags = "-O3", libs = "") {
  folder <- tempfile("bench")
  dir.create(folder)
  path <- if (file.exists(file)) file else file.path(bench_folder(), file)
  file <- basename(file)
  file.copy(path, folder)
  writeLines(
    c(paste("PKG_CFLAGS =", flags), paste("PKG_LIBS =", libs)),
    file.path(folder, "Makevars")
  )
  old <- setwd(folder)
  on.exit(setwd(old))
  command <- file.path(R.home("bin"), "R")
  log <- system2(command, c("CMD", "SHLIB", file), stdout = TRUE, stderr = TRUE)
  library <- sub("\\.c$", .Platform$dynlib.ext, file)
  if (!file.exists(library)) {
    stop(paste(log, collapse = "\n"))
  }
  dyn.load(file.path(folder, library))
}

# Seconds of each expression (functions without arguments that return their own
# seconds), `rounds` times in turn, so that a busy machine hits all of them: a
# matrix, rounds x functions.
interleave <- function(functions, rounds = 7) {
  out <- matrix(
    NA_real_, rounds, length(functions),
    dimnames = list(NULL, names(functions))
  )
  for (round in seq_len(rounds)) {
    for (name in names(functions)) {
      out[round, name] <- functions[[name]]()
    }
  }
  out
}

# Median over the rounds of the ratio within a round.
ratio <- function(seconds, above, below) {
  stats::median(seconds[, above] / seconds[, below])
}

elapsed <- function(expr) {
  system.time(expr, gcFirst = FALSE)[["elapsed"]]
}

# Processor seconds: the elapsed ones of a single thread that nothing interrupts,
# and close to them on a busy machine.
cpu_seconds <- function(expr) {
  seconds <- system.time(expr, gcFirst = FALSE)
  sum(seconds[c("user.self", "sys.self")])
}

# A python that has PyTorch and numpy; NULL: none.
find_torch <- function() {
  candidates <- Filter(
    nzchar,
    c(Sys.getenv("PYTHON"), "/usr/bin/python3", Sys.which("python3"))
  )
  for (python in candidates) {
    status <- suppressWarnings(system2(
      python,
      c("-c", shQuote("import torch, numpy")),
      stdout = FALSE,
      stderr = FALSE
    ))
    if (status == 0) {
      return(python)
    }
  }
}
