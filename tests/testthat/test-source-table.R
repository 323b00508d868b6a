# Lazy tables as sources whose rows are streamed.

test_that("tables of SQLite obey the laws of sources", {
  con <- local_sqlite()
  rows <- as_sqlite(mixed_rows())
  source <- as_source(table_of(con, rows))
  expect_source(source, rows)
  local_settings(block_rows = 7)
  expect_source(source, rows)
  # a query, and shards
  query <- dplyr::filter(dplyr::tbl(con, "rows"), z > 1)
  kept <- rows[rows$z > 1, ]
  rownames(kept) <- NULL
  expect_source(as_source(query), kept)
  parts <- cut_blocks(rows, c(5, 10))
  tables <- lapply(1:3, function(k) {
    table_of(con, parts[[k]], paste0("part", k))
  })
  expect_source(as_source(tables), rows)
  expect_length(source_shards(as_source(tables)), 3)
})

test_that("names are names, whatever they say", {
  con <- local_sqlite()
  rows <- data.frame(1:3, 4:6, 7:9, 10:12)
  names(rows) <- c("select", "a \"b\"", "`x`; DROP TABLE rows; --", "o'c")
  source <- as_source(table_of(con, rows))
  expect_source(source, rows)
})

test_that("whole numbers of 64 bits are doubles, below 2^53", {
  skip_if_not_installed("bit64")
  con <- local_sqlite()
  rows <- data.frame(x = 1:2)
  rows$big <- bit64::as.integer64(c("9007199254740991", "3"))
  table <- table_of(con, rows)
  expect_identical(all_rows(as_source(table))$big, c(2^53 - 1, 3))
  DBI::dbExecute(con, "UPDATE rows SET big = big + 1")
  error <- expect_error(all_rows(as_source(table)), class = "tall_error_source")
  expect_identical(error$column, "big")
})

test_that("text among numbers is told", {
  con <- local_sqlite()
  table <- table_of(con, data.frame(x = c(1, 2, 3)))
  DBI::dbExecute(con, "UPDATE rows SET x = 'many' WHERE x = 2")
  expect_error(all_rows(as_source(table)), class = "tall_error_source")
})

test_that("a connection is left as it was", {
  con <- local_sqlite()
  table <- table_of(con, source_rows())
  source <- as_source(table)
  all_rows(source)
  try(source_each(source, NULL, function(block) stop("no")), silent = TRUE)
  reader <- source_open(source)
  reader$next_block()
  reader$close()
  # no transaction is left, and one of the user's stays
  DBI::dbExecute(con, "CREATE TABLE other (x)")
  DBI::dbBegin(con)
  DBI::dbExecute(con, "INSERT INTO other VALUES (1)")
  all_rows(source)
  end <- source_hold(source)
  end()
  DBI::dbCommit(con)
  expect_identical(nrow(DBI::dbReadTable(con, "other")), 1L)
  DBI::dbDisconnect(con)
  expect_error(all_rows(source), class = "tall_error_source")
})

test_that("arrays are no columns of numbers or text", {
  # as they come from PostgreSQL and from engines with lists
  columns <- list(
    x = 1:2,
    a = structure(c("{1,2}", "{3,4}"), class = "pq__int4"),
    l = list(1:2, 3)
  )
  expect_silent(check_no_arrays(columns["x"]))
  e <- expect_error(check_no_arrays(columns[1:2]), class = "tall_error_input")
  expect_identical(e$argument, "a")
  expect_match(conditionMessage(e), "int4[]", fixed = TRUE)
  expect_error(
    check_no_arrays(columns["l"]),
    "array (`list`)",
    fixed = TRUE,
    class = "tall_error_input"
  )
  rows <- data.frame(y = rep(0:1, 10), x = 1:20)
  rows$a <- structure(rep(c("{1,2}", "{3,4}"), 10), class = "pq__int4")
  rows$g <- rep(1:4, 5)
  calls <- list(
    quote(tall_glm(y ~ x + a, rows, binomial())),
    quote(tall_glm(y ~ x + a, rows, binomial(), sparse = TRUE)),
    quote(tall_glmer(y ~ x + a + (1 | g), rows, binomial())),
    quote(tall_multinom(y ~ a, rows))
  )
  for (call in calls) {
    e <- expect_error(eval(call), class = "tall_error_input")
    expect_identical(e$argument, "a")
    expect_match(conditionMessage(e), "int4[]", fixed = TRUE)
  }
})

test_that("many tables have their savepoints at once", {
  con <- local_sqlite()
  DBI::dbWriteTable(con, "d", data.frame(x = 1:3))
  table <- as_source(dplyr::tbl(con, "d"))
  expect_identical(in_savepoints(rep(list(table), 2000), 7), 7)
})
