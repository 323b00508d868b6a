# ClickHouse, where server and driver are installed: its rows are streamed.

# Halves of the rows on two servers, and a table that has both.
local_halves <- function(rows, frame = parent.frame()) {
  connects <- local_clickhouse(frame)
  lapply(1:2, function(k) {
    con <- connects[[k]]()
    withr::defer(DBI::dbDisconnect(con), frame)
    for (name in c("rows", "own_rows")) {
      DBI::dbExecute(con, paste("DROP TABLE IF EXISTS", name))
    }
    DBI::dbWriteTable(con, "own_rows", rows[rows$id %% 2 == k - 1, ])
    DBI::dbExecute(con, paste(
      "CREATE TABLE rows AS own_rows",
      "ENGINE = Distributed(both, default, own_rows)"
    ))
    list(con = con, connect = connects[[k]])
  })
}

clickhouse_rows <- function() {
  rows <- table_rows(3000)
  rows <- rows[stats::complete.cases(rows), ]
  rows$id <- seq_len(nrow(rows))
  rows$z[[8]] <- NA
  rows[c("id", "x", "k", "word", "y", "z")]
}

test_that("a table of ClickHouse on two servers is streamed, as is said", {
  local_short_look(500)
  rows <- clickhouse_rows()
  con <- local_halves(rows)[[1]]$con
  table <- dplyr::arrange(dplyr::tbl(con, "rows"), id)
  for (case in list(
    list(z ~ x + word, gaussian()),
    list(y ~ x + word, binomial())
  )) {
    fit <- function(data, ...) {
      tall_glm(case[[1]], data, case[[2]], iter = 200, seed = 1, ...)
    }
    expect_message(
      theirs <- fit(table),
      "streamed: passes are not written in the SQL of ClickHouse"
    ) |>
      suppressMessages()
    ours <- fit(as_source(rows), refresh = 0)
    expect_equal(unclass(theirs$draws), unclass(ours$draws), tolerance = 1e-8)
    expect_identical(nobs(theirs), nobs(ours))
    expect_equal(predict(theirs, table), unname(predict(ours, rows)))
  }
  # what is asked of the database alone says so, and the connection is there yet
  error <- expect_error(
    augment(theirs, newdata = table),
    "ClickHouse",
    class = "tall_error_unsupported"
  )
  expect_equal(as.double(DBI::dbGetQuery(con, "SELECT 1 AS a")$a), 1)
  # the database's own words
  expect_error(
    tall_glm(z ~ x, dplyr::filter(table, dplyr::sql("nope(x) = 1")),
      refresh = 0),
    class = "tall_error_source"
  )
})

test_that("workers stream the local tables of two ClickHouse servers", {
  local_short_look(500)
  rows <- clickhouse_rows()
  halves <- local_halves(rows)
  tables <- tall_table(lapply(halves, function(half) {
    rlang::new_function(list(), quote({
      dplyr::arrange(dplyr::tbl(connect(), "own_rows"), id)
    }), list2env(list(connect = half$connect), parent = globalenv()))
  }))
  fit <- function() {
    tall_glm(y ~ x + word, tables, binomial(), iter = 200, seed = 1,
      refresh = 0)
  }
  here <- fit()
  local_workers()
  expect_identical(unclass(fit()$draws), unclass(here$draws))
  expect_equal(nobs(here), nrow(rows))
})
