test_that("the status table mirrors enum tb_status", {
  header <- test_path("..", "..", "inst", "include", "tallbayes.h")
  skip_if_not(file.exists(header), "the sources are not here")
  lines <- grep("TB_STATUS_[a-z]+ = ", readLines(header), value = TRUE)
  pattern <- ".*TB_STATUS_([a-z]+) = ([0-9]+).*"
  names <- sub(pattern, "\\1", lines)
  codes <- as.integer(sub(pattern, "\\2", lines))
  expect_identical(vapply(codes, status_name, ""), names)
  expect_identical(names(status_table), names)
})

test_that("every status but ok has a sentence and classes", {
  expect_null(abort_status(0))
  expect_null(warn_status("ok"))
  for (status in names(status_table)[-1]) {
    expect_error(
      abort_status(status),
      class = paste0("tall_error_", status),
      info = status
    )
    expect_warning(
      warn_status(status),
      class = paste0("tall_warning_", status)
    )
  }
})

test_that("a status names chain, iteration, coordinate and value", {
  expect_snapshot(
    abort_status(1, 2, 1204, at = new_place("factor(a){b}", NaN)),
    error = TRUE,
    cnd_class = TRUE
  )
  e <- expect_error(
    abort_status(1, 2, 1204, at = new_place("a", NaN)),
    class = "tall_error_nonfinite"
  )
  expect_identical(
    e[c("status", "chain", "iteration", "coordinate", "value")],
    list(
      status = "nonfinite",
      chain = 2,
      iteration = 1204,
      coordinate = "a",
      value = NaN
    )
  )
})

test_that("each status reads well", {
  expect_snapshot(abort_status("nonfinite"), error = TRUE)
  expect_snapshot(abort_status("escaped", chain = 1), error = TRUE)
  expect_snapshot(abort_status("memory"), error = TRUE)
  expect_snapshot(abort_status("unsupported", detail = "{a}"), error = TRUE)
  expect_snapshot(abort_status("argument"), error = TRUE)
  expect_snapshot(abort_status("singular"), error = TRUE)
  failure <- simpleError("log of a negative number")
  expect_snapshot(
    abort_status("callback", 1, 7, parent = failure),
    error = TRUE
  )
})

test_that("an unknown kind or status is a fault of ours", {
  expect_error(abort_tall("foo", "bar"), "should be one of")
  expect_error(status_name(99), "Unknown status")
})

# The first arguments, where they are strings, of all calls of `door` in the
# package.
kinds_raised <- function(door) {
  walk <- function(x) {
    if (!is.call(x)) {
      return(if (is.pairlist(x)) unlist(lapply(as.list(x), walk)))
    }
    own <- identical(x[[1]], as.name(door)) && length(x) > 1 &&
      is.character(x[[2]])
    c(if (own) x[[2]], unlist(lapply(as.list(x)[-1], walk)))
  }
  namespace <- asNamespace("tallbayes")
  functions <- Filter(is.function, mget(ls(namespace), envir = namespace))
  unique(unlist(lapply(functions, function(f) walk(body(f)))))
}

test_that("every kind of condition is raised somewhere, and documented", {
  own <- function(kinds) setdiff(kinds, names(status_table))
  # abort_input() is a door of its own
  expect_setequal(own(kinds_raised("abort_tall")), own(error_kinds))
  expect_setequal(own(kinds_raised("warn_tall")), own(warning_kinds))

  source <- test_path("..", "..", "R", "conditions.R")
  skip_if_not(file.exists(source), "the sources are not here")
  lines <- grep("^#'", readLines(source), value = TRUE)
  documented <- function(prefix) {
    found <- regmatches(lines, gregexpr(paste0(prefix, "_[a-z]+"), lines))
    sub(paste0(prefix, "_"), "", unlist(found), fixed = TRUE)
  }
  # of the ways to stop, a chain's own are named and the rest is "and so on"
  expect_setequal(own(documented("tall_error")), own(error_kinds))
  expect_setequal(own(documented("tall_warning")), own(warning_kinds))
})
