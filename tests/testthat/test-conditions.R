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
    abort_status(1, 2, 1204, coordinate = "factor(a){b}", value = NaN),
    error = TRUE,
    cnd_class = TRUE
  )
  e <- expect_error(
    abort_status(1, 2, 1204, coordinate = "a", value = NaN),
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
