# How time and memory of a regression grow with the rows: glm(), biglm's
# bigglm() and tall_glm(), of a data frame and of Parquet files. See README.md.
#
#   Rscript bench/growth.R [largest N]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
arguments <- commandArgs(TRUE)

formula <- y ~ x1 + x2 + x3 + x4 + f
groups <- letters[1:4]
make_rows <- function(n, seed = 1) {
  set.seed(seed)
  d <- lapply(stats::setNames(nm = paste0("x", 1:4)), function(name) stats::rnorm(n))
  d$f <- factor(sample(groups, n, TRUE), groups)
  d$y <- as.integer(stats::rlogis(n) < -1 + 0.5 * d$x1 - 0.3 * d$x2 + 0.4 * (d$f == "b"))
  structure(d, class = "data.frame", row.names = .set_row_names(n))
}

# ---- one measurement, in a process of its own ---------------------------------------

# Rows of one file after the other, 1e5 at a time, as bigglm() asks for them.
pieces_of <- function(files, size = 1e5) {
  file <- 0
  rows <- NULL
  at <- 0
  function(reset = FALSE) {
    if (reset) {
      file <<- at <<- 0
      rows <<- NULL
      return(NULL)
    }
    if (is.null(rows) || at >= nrow(rows)) {
      if (file == length(files)) {
        return(NULL)
      }
      file <<- file + 1
      rows <<- as.data.frame(nanoparquet::read_parquet(files[[file]]))
      rows$f <<- factor(rows$f, groups)
      at <<- 0
    }
    piece <- rows[seq(at + 1, min(at + size, nrow(rows))), ]
    at <<- at + size
    piece
  }
}

calls <- list(
  glm = function(rows) stats::glm(formula, stats::binomial(), rows),
  bigglm = function(rows) {
    biglm::bigglm(formula, pieces_of(rows), stats::binomial(), maxit = 20)
  },
  frame = function(rows) tall_glm(formula, rows, stats::binomial(), seed = 1),
  parquet = function(rows) tall_glm(formula, tall_parquet(rows), stats::binomial(), seed = 1)
)
needs_files <- c(glm = FALSE, bigglm = TRUE, frame = FALSE, parquet = TRUE)

resident <- function(what) {
  lines <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep(what, lines, value = TRUE))) / 1024
}

measure <- function(what, n, folder) {
  few <- make_rows(7e4)
  if (needs_files[[what]]) {
    file <- tempfile(fileext = ".parquet")
    nanoparquet::write_parquet(few, file)
    invisible(calls[[what]](file)) # what loads on first use
    rows <- list.files(folder, full.names = TRUE)
  } else {
    invisible(calls[[what]](few))
  }
  invisible(gc())
  before <- resident("VmRSS")
  if (!needs_files[[what]]) {
    rows <- make_rows(n)
  }
  invisible(gc())
  writeLines("5", "/proc/self/clear_refs")
  time <- system.time(calls[[what]](rows), gcFirst = FALSE)
  cpu <- sum(time[c("user.self", "sys.self")])
  cat("FOUND", cpu, time[["elapsed"]], resident("VmHWM") - before, "\n")
}

if ("one" %in% arguments) {
  measure(arguments[[2]], as.numeric(arguments[[3]]), arguments[[4]])
  quit()
}

# ---- all of them ---------------------------------------------------------------------

largest <- as.numeric(c(arguments, 1e7)[[1]])
sizes <- c(1e5, 3e5, 1e6, 3e6, 1e7)
sizes <- sizes[sizes <= largest]
labels <- c(
  glm = "glm(), data frame",
  bigglm = "bigglm(), Parquet",
  frame = "tall_glm(), data frame",
  parquet = "tall_glm(), Parquet"
)

write_files <- function(n, folder) {
  dir.create(folder)
  for (k in seq_len(ceiling(n / 1e6))) {
    rows <- make_rows(min(1e6, n - (k - 1) * 1e6), k)
    rows$f <- as.character(rows$f)
    nanoparquet::write_parquet(rows, file.path(folder, sprintf("part-%03d.parquet", k)))
  }
}

found_in_process <- function(what, n, folder) {
  lines <- system2(
    file.path(R.home("bin"), "Rscript"),
    c(script, "one", what, format(n, scientific = FALSE), folder),
    stdout = TRUE
  )
  line <- grep("^FOUND", lines, value = TRUE)
  if (length(line) != 1) {
    return(rep(NA_real_, 3))
  }
  as.numeric(strsplit(line, " ")[[1]][2:4])
}

bench_start("growth", "Time and memory of a regression over the rows")
what <- names(calls)
if (!requireNamespace("biglm", quietly = TRUE)) {
  say("biglm is not installed: without `bigglm()`.\n")
  what <- setdiff(what, "bigglm")
}
say(
  "Logistic regression on four numbers and a factor of four levels (8 columns), a call in a\n",
  "process of its own, one core, the middle of three for up to a million rows. Memory: the\n",
  "most that was resident, data included, beyond R with its packages. `bigglm()` reads the\n",
  "same files, 100,000 rows at a time; files have a million rows at most.\n"
)
table <- do.call(rbind, lapply(sizes, function(n) {
  folder <- tempfile("rows")
  write_files(n, folder)
  on.exit(unlink(folder, recursive = TRUE))
  do.call(rbind, lapply(what, function(name) {
    times <- if (n <= 1e6) 3 else 1
    each <- sapply(seq_len(times), function(k) found_in_process(name, n, folder))
    found <- apply(each, 1, stats::median)
    cat(name, n, found, "\n")
    data.frame(
      call = labels[[name]],
      N = format(n, big.mark = ",", scientific = FALSE),
      "CPU s" = number(found[[1]]),
      elapsed = fixed(found[[2]], 1),
      MB = round(found[[3]]),
      check.names = FALSE
    )
  }))
}))
say_table(table)
