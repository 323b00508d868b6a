# Runs every test on the installed package; the last line counts them, those
# before it name the tests that failed.
#   Rscript tools/test.R [filter]
# As many processes as there are cores, two at most (TALLBAYES_TEST_PROCESSES:
# another number), take the next file each until there is none; a process that
# dies fails the file it was at. TALLBAYES_TEST_WITHOUT: names, with spaces in
# between, that are left out where there is no filter.

Sys.setenv(NOT_CRAN = "true")

# Those that take longest come first, so that none ends long after the others.
longest <- readLines("tests/long.txt")

test_files <- function(filter) {
  files <- list.files("tests/testthat", "^test-.*[.][rR]$")
  name <- sub("^test-(.*)[.][rR]$", "\\1", files)
  without <- strsplit(Sys.getenv("TALLBAYES_TEST_WITHOUT"), " ")[[1]]
  is_asked <- if (is.na(filter)) !name %in% without else grepl(filter, name)
  files <- files[is_asked]
  name <- name[is_asked]
  files[order(match(name, longest, length(longest) + 1))]
}

n_processes <- function(n_files) {
  cores <- min(2, parallel::detectCores(), na.rm = TRUE)
  n <- as.integer(Sys.getenv("TALLBAYES_TEST_PROCESSES", cores))
  # where nothing forks, one
  n <- if (.Platform$OS.type == "windows") 1 else n
  max(1, min(n, n_files))
}

# ---- one process -------------------------------------------------------------

# One line per file: a spinner would fill a log, and the summary comes once.
file_reporter <- function() {
  reporter <- R6::R6Class(
    inherit = testthat::ProgressReporter,
    public = list(
      show_header = function(...) invisible(),
      end_reporter = function(...) invisible()
    )
  )
  reporter$new(show_praise = FALSE, update_interval = Inf)
}

# What a file says, in one piece: another process writes to the same place.
run_file <- function(file, env) {
  results <- NULL
  said <- utils::capture.output(
    results <- tryCatch(
      testthat::test_file(
        file.path("tests/testthat", file),
        package = "tallbayes",
        reporter = file_reporter(),
        load_package = "installed",
        load_helpers = FALSE,
        env = env
      ),
      error = function(e) {
        cat("The tests of", file, "stopped:", conditionMessage(e), "\n")
      }
    )
  )
  cat(paste0(c(said[nzchar(said)], ""), collapse = "\n"))
  results
}

# Of the results of a file; NULL: it stopped.
counts_of <- function(results, file) {
  if (is.null(results)) {
    return(one_failure(paste0(file, ": it stopped")))
  }
  table <- as.data.frame(results)
  all <- unlist(lapply(results, function(test) test$results), recursive = FALSE)
  is_skip <- vapply(all, inherits, TRUE, "expectation_skip")
  list(
    passed = sum(table$passed),
    failed = sum(table$failed) + sum(table$error),
    skips = vapply(all[is_skip], conditionMessage, ""),
    failures = unlist(lapply(results, failures_of, file = file))
  )
}

one_failure <- function(what) {
  list(passed = 0, failed = 1, skips = character(), failures = what)
}

# One line for each failure of a test: its file, its name, how it begins.
failures_of <- function(test, file) {
  of_class <- c("expectation_failure", "expectation_error")
  failed <- Filter(function(x) inherits(x, of_class), test$results)
  name <- if (is.na(test$test)) "(no test)" else test$test
  begins <- vapply(failed, function(x) first_line(conditionMessage(x)), "")
  sprintf("%s: %s: %s", file, name, begins)
}

# An error's message may begin with a line of its classes.
first_line <- function(message) {
  lines <- trimws(strsplit(cli::ansi_strip(message), "\n")[[1]])
  c(lines[nzchar(lines) & !grepl("^<[^ ]*condition>$", lines)], "")[[1]]
}

# A file that leaves an option of ours to the next one, which may be any, fails.
own_options <- function() {
  all <- options()
  all[startsWith(names(all), "tallbayes.")]
}

with_options_back <- function(counts, before, file) {
  now <- own_options()
  if (identical(now, before)) {
    return(counts)
  }
  added <- setdiff(names(now), names(before))
  options(c(before, stats::setNames(vector("list", length(added)), added)))
  left <- one_failure(paste0(file, ": it leaves options changed"))
  counts$failed <- counts$failed + left$failed
  counts$failures <- c(counts$failures, left$failures)
  counts
}

# A process whose heap has grown to this takes no other file, MB: what files
# leave makes each collection of garbage, and so the files after it, slower, by
# three times and more.
most_heap <- 150

heap <- function() sum(gc()[, 2])

# Files that nobody has taken, one after another, until the heap has grown by
# `most` MB; `folder` has a folder for each that was taken, with its counts when
# it ended.
work_on <- function(files, folder, most = Inf) {
  # the last line counts all of them; the reporter reads it when it is made
  testthat::set_max_fails(Inf)
  suppressPackageStartupMessages(library(testthat))
  library(tallbayes)
  env <- testthat::test_env("tallbayes")
  testthat::source_test_helpers("tests/testthat", env)
  at_first <- heap()
  for (file in files) {
    if (heap() - at_first > most) {
      break
    }
    if (dir.create(file.path(folder, file), showWarnings = FALSE)) {
      before <- own_options()
      counts <- counts_of(run_file(file, env), file)
      counts <- with_options_back(counts, before, file)
      saveRDS(counts, file.path(folder, file, "counts.rds"))
    }
  }
}

# ---- all of them -------------------------------------------------------------

run_all <- function(filter) {
  files <- test_files(filter)
  if (length(files) == 0) {
    return(summarise(list(one_failure("no test file is called that"))))
  }
  folder <- tempfile("tests")
  dir.create(folder)
  n <- n_processes(length(files))
  # `make test` gives BLAS one thread.
  cat(
    "BLAS: ",
    extSoftVersion()[["BLAS"]],
    ", threads: ",
    Sys.getenv("OPENBLAS_NUM_THREADS", "as R says"),
    "; processes: ",
    n,
    "\n",
    sep = ""
  )
  if (n == 1) {
    work_on(files, folder)
  } else {
    saveRDS(files, file.path(folder, "files.rds"))
    arguments <- c("tools/test.R", "--files-of", shQuote(folder))
    n_taken <- function() sum(dir.exists(file.path(folder, files)))
    start <- function(...) {
      before <- -1
      # one that takes no file, and so cannot begin, is not started again
      while (n_taken() < length(files) && n_taken() > before) {
        before <- n_taken()
        system2(file.path(R.home("bin"), "Rscript"), arguments)
      }
    }
    parallel::mclapply(seq_len(n), start, mc.cores = n)
  }
  counts <- lapply(files, function(file) {
    path <- file.path(folder, file, "counts.rds")
    if (file.exists(path)) {
      return(readRDS(path))
    }
    one_failure(paste0(file, ": its process ended before its tests did"))
  })
  summarise(counts)
}

summarise <- function(counts) {
  total <- function(what) sum(vapply(counts, function(x) x[[what]], 0))
  skips <- unlist(lapply(counts, function(x) x$skips))
  reasons <- table(sub("^Reason: ", "", skips))
  if (length(reasons) > 0) {
    cat("\nSkipped:\n")
    cat(paste0("  ", names(reasons), " (", reasons, ")\n"), sep = "")
  }
  failures <- unlist(lapply(counts, function(x) x$failures))
  if (length(failures) > 0) {
    # .ci/run repeats these lines at its end
    cat("\n", paste0("FAILED: ", failures, "\n"), sep = "")
  }
  n_failed <- total("failed")
  cat(sprintf(
    "\n%d passed, %d failed, %d skipped\n",
    total("passed"),
    n_failed,
    length(skips)
  ))
  quit(status = if (n_failed > 0) 1 else 0)
}

given <- commandArgs(trailingOnly = TRUE)
if (length(given) > 0 && given[[1]] == "--files-of") {
  work_on(readRDS(file.path(given[[2]], "files.rds")), given[[2]], most_heap)
} else {
  run_all(c(given, NA)[[1]])
}
