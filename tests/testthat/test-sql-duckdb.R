# Passes in DuckDB, where it is installed.

test_that("whole numbers and decimals of DuckDB are summed as doubles", {
  con <- local_duckdb()
  local_short_look(500)
  rows <- table_rows()
  rows$k <- rows$k * 103
  rows$x <- round(rows$x, 6)
  table_of(con, rows)
  types <- c(k = "BIGINT", y = "TINYINT", on = "HUGEINT", s = "BIGINT",
    x = "DECIMAL(18, 6)")
  for (name in names(types)) {
    DBI::dbExecute(con, paste(
      "ALTER TABLE rows ALTER", quote_names(con, name), "TYPE", types[[name]]
    ))
  }
  seen <- list()
  is_pass <- FALSE
  describing <- watched(con, function(sql) {
    if (!is_pass) {
      return(sql)
    }
    found <- DBI::dbGetQuery(con, paste("DESCRIBE", sql))
    types <- stats::setNames(found$column_type, found$column_name)
    seen <<- c(seen, list(types))
    sql
  })
  table <- dplyr::tbl(describing, "rows")
  rows_of <- function(...) {
    call <- sys.call()
    call[[1]] <- quote(tall_glm)
    call$data <- quote(table)
    rows_of_call(call)
  }
  control <- list(refresh = 0, cores = 1)
  own <- rows_of(y ~ x * factor(on) + k, binomial(), weights = s)
  is_pass <- TRUE
  sums_at(own, c(-1, 0.1, 0.2, 1e-4, 0.3), control)
  is_pass <- FALSE
  own <- rows_of(k ~ x + on, gaussian(), offset = y)
  is_pass <- TRUE
  products_of(own, control)
  residuals_of(own, c(1, 2, 3), control)
  is_pass <- FALSE
  # the rows are counted, everything else is a double
  sums <- lapply(seen, function(types) types[startsWith(names(types), "s")])
  sums <- Filter(length, sums)
  expect_gte(length(sums), 3)
  expect_true(all(vapply(sums, function(types) {
    sum(types == "BIGINT") <= 1 && all(types %in% c("DOUBLE", "BIGINT"))
  }, TRUE)))
  expect_same_passes(
    tall_glm(y ~ x * factor(on) + k, data, binomial(), refresh = 0),
    table,
    rows
  )
  expect_same_passes(tall_glm(k ~ x + on, data, refresh = 0), table, rows)
})

test_that("a user's transaction of DuckDB goes on, and its rows are streamed", {
  con <- local_duckdb()
  local_short_look(500)
  table <- table_of(con, table_rows())
  DBI::dbBegin(con)
  DBI::dbExecute(con, "CREATE TABLE mine (x int)")
  DBI::dbExecute(con, "DELETE FROM rows WHERE k = 1")
  expect_message(
    tall_glm(z ~ x, table, seed = 1),
    "a transaction is under way"
  ) |>
    suppressMessages()
  fit <- tall_glm(y ~ x, table, binomial(), refresh = 0, seed = 1, iter = 200,
    chains = 1)
  kept <- table_rows()[table_rows()$k != 1, c("x", "y")]
  expect_equal(nobs(fit), sum(stats::complete.cases(kept)))
  expect_true(is_in_transaction(con))
  DBI::dbCommit(con)
  expect_true(DBI::dbExistsTable(con, "mine"))
})

test_that("a term that DuckDB refuses leaves a transaction that can be read", {
  con <- local_duckdb()
  local_short_look(500)
  rows <- table_rows()
  table <- table_of(con, rows)
  # words are no numbers there: rows are streamed, and R has its say
  expect_message(
    try(tall_glm(z ~ x + I(-word), table, seed = 1), silent = TRUE),
    "streamed"
  ) |>
    suppressMessages()
  expect_false(is_in_transaction(con))
  # an engine that lacks something is asked for it first
  poor <- watched(con, function(sql) {
    gsub(sql_uniform(con), "NO_SUCH_FUNCTION()", sql, fixed = TRUE)
  })
  expect_message(
    fit <- tall_glm(z ~ x, dplyr::tbl(poor, "rows"), seed = 1),
    "lacks uniform random numbers"
  ) |>
    suppressMessages()
  expect_false(is_in_transaction(con))
  ours <- tall_glm(z ~ x, rows, seed = 1, refresh = 0)
  expect_equal(coef(fit), coef(ours), tolerance = 1e-6)
})

test_that("files of DuckDB are shards of one table", {
  local_short_look(500)
  rows <- table_rows()
  folder <- withr::local_tempdir()
  files <- file.path(folder, c("one.duckdb", "two.duckdb"))
  parts <- list(rows[1:900, ], rows[901:3000, ])
  for (k in 1:2) {
    con <- local_duckdb(files[[k]])
    table_of(con, parts[[k]])
    DBI::dbDisconnect(con, shutdown = TRUE)
  }
  tables <- tall_table(lapply(files, function(file) {
    force(file)
    function() {
      con <- suppressMessages(DBI::dbConnect(duckdb::duckdb(file, TRUE)))
      dplyr::tbl(con, "rows")
    }
  }))
  theirs <- tall_glm(z ~ x + word, tables, refresh = 0, seed = 1)
  ours <- tall_glm(z ~ x + word, rows, refresh = 0, seed = 1)
  expect_equal(coef(theirs), coef(ours), tolerance = 1e-8)
  expect_identical(nobs(theirs), nobs(ours))
})
