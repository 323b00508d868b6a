# Passes in PostgreSQL servers that the tests start and stop.

test_that("two servers are shards of one table", {
  one <- local_postgres(1)
  two <- local_postgres(2)
  local_short_look(2000)
  rows <- table_rows(12000)
  tables <- list(
    table_of(one, rows[1:5000, ]),
    table_of(two, rows[5001:12000, ])
  )
  formula <- y ~ x + word
  expect_same_passes(
    tall_glm(y ~ x + word, data, binomial(), refresh = 0),
    tables,
    rows
  )
  theirs <- tall_glm(formula, tables, binomial(), seed = 1, refresh = 0)
  ours <- tall_glm(formula, rows, binomial(), seed = 1, refresh = 0)
  expect_same_posterior(theirs, ours)
  # and by another pass
  more <- sg_resume(theirs, iter = 500)
  expect_gt(posterior::ndraws(more$draws), posterior::ndraws(theirs$draws))
})

test_that("a user's transaction goes on", {
  con <- local_postgres()
  local_short_look(500)
  table <- table_of(con, table_rows())
  DBI::dbExecute(con, "BEGIN")
  DBI::dbExecute(con, "CREATE TABLE mine (x int)")
  tall_glm(z ~ x, table, refresh = 0, seed = 1)
  expect_true(is_in_transaction(con))
  DBI::dbExecute(con, "ROLLBACK")
  expect_false(DBI::dbExistsTable(con, "mine"))
})

test_that("a connection that is lost is told", {
  con <- local_postgres()
  other <- local_postgres()
  local_short_look(500)
  table_of(con, table_rows())
  pid <- DBI::dbGetQuery(con, "SELECT pg_backend_pid() AS pid")$pid
  lost <- watched(con, function(sql) {
    if (is_pass_query(sql)) {
      DBI::dbGetQuery(other, paste0("SELECT pg_terminate_backend(", pid, ")"))
    }
    sql
  })
  error <- expect_error(
    tall_glm(z ~ x, dplyr::tbl(lost, "rows"), refresh = 0),
    class = "tall_error_source"
  )
  expect_match(conditionMessage(error$parent), "terminat|closed|connection")
})

test_that("a table that may not be read is told", {
  con <- local_postgres()
  table <- table_of(con, table_rows(), "secret")
  DBI::dbExecute(con, "DROP ROLE IF EXISTS guest")
  DBI::dbExecute(con, "CREATE ROLE guest")
  DBI::dbExecute(con, "SET ROLE guest")
  expect_error(
    tall_glm(z ~ x, table, refresh = 0),
    class = "tall_error_source"
  )
  DBI::dbExecute(con, "RESET ROLE")
})

test_that("Ctrl-C ends the transaction, amid passes and after the last", {
  skip_on_os("windows")
  con <- local_postgres()
  local_short_look(500)
  table <- table_of(con, table_rows())
  press <- function() {
    tools::pskill(Sys.getpid(), tools::SIGINT)
    # where R looks whether somebody did
    wait_until(function() FALSE, 5)
  }
  has_drawn <- FALSE
  pressing <- list(
    amid = watched(con, function(sql) {
      if (is_pass_query(sql)) press()
      sql
    }),
    # the rows that the last pass drew are there
    after = watched(
      con,
      function(sql) {
        has_drawn <<- is_draw_query(sql)
        sql
      },
      function(rows) {
        if (has_drawn) press()
        rows
      }
    )
  )
  for (place in pressing) {
    amid <- dplyr::tbl(place, "rows")
    seen <- tryCatch(
      {
        tall_glm(y ~ x + word, amid, binomial(), refresh = 0, seed = 1)
        "done"
      },
      interrupt = function(cnd) "interrupted"
    )
    expect_identical(seen, "interrupted")
    expect_false(is_in_transaction(con))
    expect_identical(nrow(DBI::dbReadTable(con, "rows")), 3000L)
  }
})

test_that("an interrupt amid a stream ends it", {
  con <- local_postgres()
  local_short_look(500)
  local_settings(block_rows = 500)
  table <- as_source(table_of(con, table_rows()), in_database = FALSE)
  real <- frame_of
  n_block <- 0
  read <- function(block) {
    n_block <<- n_block + 1
    if (n_block == 2) rlang::interrupt()
    TRUE
  }
  seen <- tryCatch(
    source_each(table, NULL, read),
    interrupt = function(cnd) "interrupted"
  )
  expect_identical(seen, "interrupted")
  expect_false(is_in_transaction(con))
  expect_identical(nrow(DBI::dbReadTable(con, "rows")), 3000L)
})

test_that("passes are shared among workers of PostgreSQL", {
  con <- local_postgres()
  table <- table_of(con, data.frame(x = as.double(1:2e5), y = 1))
  DBI::dbExecute(con, "ANALYZE rows")
  DBI::dbExecute(con, "SET parallel_setup_cost = 0")
  DBI::dbExecute(con, "SET min_parallel_table_scan_size = 0")
  engine <- sql_engine(con)
  own <- table_query(as_source(table))
  steps <- sql_select(con, list(e = "EXP(-\"x\")"), own, engine = engine)
  steps <- sql_select(con, list(f = "\"e\" * \"e\""), steps, engine = engine)
  steps <- sql_select(con, list(s = "SUM(\"f\")"), steps)
  plan <- DBI::dbGetQuery(con, paste("EXPLAIN", query_text(con, steps)))[[1]]
  expect_match(plan, "Gather", all = FALSE)
  # and e is still evaluated once
  expect_match(plan, "Subquery Scan", all = FALSE)
})

test_that("a column of arrays is refused by name and type", {
  con <- local_postgres()
  DBI::dbExecute(con, "DROP TABLE IF EXISTS arrays")
  DBI::dbExecute(con, paste(
    "CREATE TABLE arrays AS SELECT i / 100.0::float8 AS x, i % 2 AS y,",
    "ARRAY[i % 3, 2] AS a, ARRAY['k' || (i % 3)] AS words",
    "FROM generate_series(1, 100) i"
  ))
  withr::defer(DBI::dbExecute(con, "DROP TABLE arrays"))
  table <- dplyr::tbl(con, "arrays")
  for (source in list(table, as_source(table, in_database = FALSE))) {
    for (column in c("a", "words")) {
      formula <- stats::reformulate(c("x", column), "y")
      e <- expect_error(
        tall_glm(formula, source, binomial(), refresh = 0),
        class = "tall_error_input"
      )
      expect_identical(e$argument, column)
      expect_match(conditionMessage(e), "(int4|text)\\[\\]")
    }
  }
  # of no use, it does no harm; and what its elements are can be used
  fit <- tall_glm(y ~ x, table, binomial(), iter = 20, seed = 1, refresh = 0)
  expect_s3_class(fit, "tall_glm")
  first <- dplyr::mutate(table, first = dplyr::sql("a[1]"))
  fit <- tall_glm(y ~ first, first, binomial(), iter = 20, seed = 1,
    refresh = 0)
  expect_identical(names(coef(fit)), c("(Intercept)", "first"))
})
