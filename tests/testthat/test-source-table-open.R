# Tables that functions open: here, and on workers.

# Functions that open parts of these rows in files, and tell of it in `log`.
local_files <- function(rows, cuts, frame = parent.frame()) {
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  dir <- withr::local_tempdir(.local_envir = frame)
  parts <- cut_blocks(rows, cuts)
  lapply(seq_along(parts), function(k) {
    file <- file.path(dir, paste0(k, ".sqlite"))
    con <- DBI::dbConnect(RSQLite::SQLite(), file)
    DBI::dbWriteTable(con, "rows", parts[[k]])
    DBI::dbDisconnect(con)
    opener(file, file.path(dir, "log"))
  })
}

opener <- function(file, log) {
  env <- list2env(list(file = file, log = log), parent = globalenv())
  rlang::new_function(list(), quote({
    con <- DBI::dbConnect(RSQLite::SQLite(), file)
    tell <- function(what) {
      cat(what, Sys.getpid(), "\n", file = log, append = TRUE)
    }
    tell("open")
    list(
      table = dplyr::tbl(con, "rows"),
      close = function() {
        tell("close")
        DBI::dbDisconnect(con)
      }
    )
  }), env)
}

told <- function(open) {
  utils::read.table(environment(open)$log, col.names = c("what", "pid"))
}

expect_all_closed <- function(open) {
  # passes of a test's own close theirs when they are forgotten
  gc()
  what <- told(open)$what
  expect_identical(sum(what == "open"), sum(what == "close"))
}

test_that("tables that are opened obey the laws of sources, and are closed", {
  rows <- as_sqlite(mixed_rows())
  opens <- local_files(rows, c(5, 10))
  expect_source(tall_table(opens), rows)
  expect_source(tall_table(opens[[1]]), rows[1:5, ])
  expect_all_closed(opens[[1]])
  expect_error(tall_table("rows"), class = "tall_error_input")
  expect_error(
    source_names(tall_table(function() mtcars)),
    class = "tall_error_source"
  )
  # a lazy table by itself
  bare <- function() opens[[1]]()$table
  expect_source(tall_table(bare), rows[1:5, ])
})

test_that("a fit opens its tables once, and closes them", {
  local_short_look(500)
  rows <- table_rows()
  opens <- local_files(rows, c(900))
  expect_same_passes(
    tall_glm(y ~ x + word, data, binomial(), weights = w, refresh = 0),
    tall_table(opens),
    rows
  )
  expect_all_closed(opens[[1]])
  before <- nrow(told(opens[[1]]))
  tables <- tall_table(opens)
  fit <- tall_glm(z ~ x + word, tables, refresh = 0, seed = 1)
  expect_all_closed(opens[[1]])
  # two to look at the columns' names, two for the fit
  expect_lte(nrow(told(opens[[1]])) - before, 12)
  expect_equal(
    predict(fit, tables),
    unname(predict(fit, rows)),
    tolerance = 1e-10
  )
  expect_error(tall_glm(z ~ nope, tables, refresh = 0))
  expect_all_closed(opens[[1]])
})

test_that("workers compute the sums of their tables", {
  skip_on_cran()
  local_plan <- function() {
    skip_if_not_installed("future")
    old <- future::plan(future::multisession, workers = 2)
    withr::defer(future::plan(old), parent.frame(2))
  }
  local_short_look(500)
  rows <- table_rows(6000)
  opens <- local_files(rows, c(2000))
  local_plan()
  for (case in list(
    list(y ~ x + word, binomial()),
    list(z ~ x + word, gaussian())
  )) {
    fit <- tall_glm(case[[1]], tall_table(opens), case[[2]], seed = 1,
      refresh = 0)
    ours <- tall_glm(case[[1]], rows, case[[2]], seed = 1, refresh = 0)
    expect_same_posterior(fit, ours)
  }
  log <- told(opens[[1]])
  expect_gt(length(setdiff(log$pid, Sys.getpid())), 0)
  expect_all_closed(opens[[1]])
  # a worker's error is that of the database
  files <- environment(opens[[2]])$file
  wrong <- list(list(select = "SELECT nothing", from = "SELECT * FROM rows"))
  error <- expect_error(
    run_on_tables(tall_table(opens)$shards, list(wrong, wrong)),
    class = "tall_error_source"
  )
  expect_identical(error$sql, sql_text(wrong, FALSE))
})

test_that("workers of PostgreSQL see the state that the fit sees", {
  con <- local_postgres()
  rows <- table_rows()
  table_of(con, rows)
  port <- DBI::dbGetInfo(con)$port
  open <- rlang::new_function(list(), quote({
    con <- suppressWarnings(DBI::dbConnect(RPostgres::Postgres(),
      host = "127.0.0.1", port = port, user = "tester", dbname = "postgres"))
    dplyr::tbl(con, "rows")
  }), list2env(list(port = port), parent = globalenv()))
  source <- tall_table(list(open, open))
  end <- source_hold(source)
  withr::defer(end())
  DBI::dbExecute(con, "DELETE FROM rows WHERE k = 1")
  job <- list(
    open = open,
    text = "SELECT COUNT(*) AS n FROM rows",
    snapshot = source$shards[[1]]$place$snapshot
  )
  expect_equal(as.double(query_job(job)$value$n), nrow(rows))
  job["snapshot"] <- list(NULL)
  expect_equal(as.double(query_job(job)$value$n), sum(rows$k != 1))
})
