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
  local_short_look(500)
  rows <- table_rows(6000)
  opens <- local_files(rows, c(2000))
  local_workers()
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
  tables <- tall_table(opens)$shards
  error <- expect_error(
    run_on_tables(tables, list(wrong, wrong)),
    class = "tall_error_source"
  )
  expect_identical(error$sql, sql_text(wrong, FALSE))
  expect_identical(error$shard, 1L)
  expect_match(conditionMessage(error), "shard 1 of 2")
  for (table in tables) close_table(table)
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
  sent <- unserialize(serialize(source$shards[[1]], NULL))
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
  # of streams, too
  count <- function(source) {
    n <- 0
    source_each(source, "k", function(block) n <<- n + block$n)
    n
  }
  expect_equal(count(sent), nrow(rows))
  expect_false(is_table_open(sent))
  sent$place$snapshot <- NULL
  expect_equal(count(sent), sum(rows$k != 1))
})

# ---- a server, or a file, for each shard -------------------------------------

# Functions that open two parts of the rows, which they tell of in `log`. On a
# worker the first time each waits for the other to be open.
local_shards <- function(engine, rows, cut, frame = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = frame)
  parts <- list(rows[seq_len(cut), ], rows[-seq_len(cut), ])
  lapply(1:2, function(k) {
    place <- switch(
      engine,
      PostgreSQL = shard_of_postgres(parts[[k]], k, frame),
      DuckDB = shard_of_duckdb(parts[[k]], file.path(dir, k))
    )
    env <- list2env(
      list(k = k, log = file.path(dir, "log"), here = Sys.getpid()),
      parent = globalenv()
    )
    env$connect <- place
    rlang::new_function(list(), quote({
      tell <- function(what) {
        cat(what, Sys.getpid(), "\n", file = log, append = TRUE)
      }
      is_open <- function(k) file.exists(paste0(log, k))
      con <- connect()
      tell("open")
      if (Sys.getpid() != here) {
        file.create(paste0(log, k))
        for (i in 1:300) if (!is_open(3 - k)) Sys.sleep(0.05)
        if (!is_open(3 - k)) stop("the other shard waits")
      }
      list(
        table = dplyr::arrange(dplyr::tbl(con, "rows"), id),
        close = function() {
          tell("close")
          DBI::dbDisconnect(con)
        }
      )
    }), env)
  })
}

shard_of_postgres <- function(rows, k, frame) {
  con <- local_postgres(k, frame)
  table_of(con, rows)
  port <- DBI::dbGetInfo(con)$port
  rlang::new_function(list(), quote({
    suppressWarnings(DBI::dbConnect(RPostgres::Postgres(), host = "127.0.0.1",
      port = port, user = "tester", dbname = "postgres"))
  }), list2env(list(port = port), parent = globalenv()))
}

shard_of_duckdb <- function(rows, file) {
  con <- local_duckdb(file)
  table_of(con, rows)
  DBI::dbDisconnect(con, shutdown = TRUE)
  library <- dirname(find.package("duckdb", c(
    Filter(nzchar, Sys.getenv("TALLBAYES_DUCKDB_LIB")),
    .libPaths()
  )))
  rlang::new_function(list(), quote({
    loadNamespace("duckdb", lib.loc = library)
    driver <- getExportedValue("duckdb", "duckdb")
    suppressMessages(DBI::dbConnect(driver(file, read_only = TRUE)))
  }), list2env(list(file = file, library = library), parent = globalenv()))
}

for (engine in c("PostgreSQL", "DuckDB")) {
  test_that(paste(engine, "shards are read by workers, at the same time"), {
    skip_on_cran()
    local_short_look(1500)
    rows <- table_rows(6000)
    rows$id <- seq_len(nrow(rows))
    opens <- local_shards(engine, rows, 2500)
    fit <- function(data, formula, family = gaussian(), iter = 100) {
      tall_glm(formula, data, family, seed = 1, refresh = 0, iter = iter)
    }
    # of few fits where it takes long to connect
    is_quick <- engine == "PostgreSQL"
    run <- function() {
      tables <- tall_table(opens)
      rows <- tall_table(opens, in_database = FALSE)
      list(
        sums = fit(tables, z ~ x + word),
        kinds = if (is_quick) fit(tables, y ~ word + k, binomial()),
        drawn = if (is_quick) fit(tables, y ~ x + word, binomial(), 400),
        streamed = fit(rows, y ~ x + word, binomial())
      )
    }
    here <- run()
    expect_identical(unique(told(opens[[1]])$pid), Sys.getpid())
    local_workers()
    theirs <- run()
    expect_all_closed(opens[[1]])
    expect_length(setdiff(told(opens[[1]])$pid, Sys.getpid()), 2)
    draws <- function(fit) unclass(fit$draws)
    # an engine adds up in any order, and draws rows by numbers of its own
    for (name in c("sums", if (is_quick) "kinds")) {
      expect_s3_class(theirs[[name]]$rows$in_sql, "tall_sql")
      expect_equal(draws(theirs[[name]]), draws(here[[name]]),
        tolerance = 1e-8)
    }
    if (is_quick) {
      expect_s3_class(theirs$drawn$rows$in_sql, "tall_sql")
      expect_same_posterior(theirs$drawn, here$drawn)
    }
    expect_null(theirs$streamed$rows$in_sql)
    expect_identical(draws(theirs$streamed), draws(here$streamed))
  })
}

test_that("a table that cannot be opened is told by its shard", {
  skip_on_cran()
  local_short_look(500)
  opens <- local_files(table_rows(), 1200)
  fails <- function(data) {
    expect_error(
      tall_glm(y ~ x + word, data, binomial(), seed = 1, refresh = 0),
      "cannot be opened.*shard 2 of 2",
      class = "tall_error_source"
    )
  }
  refuses <- function() stop("no {route} to host")
  error <- fails(tall_table(list(opens[[1]], refuses)))
  expect_identical(error$shard, 2L)
  expect_match(conditionMessage(error$parent), "no {route}", fixed = TRUE)
  expect_all_closed(opens[[1]])
  # by a worker alone
  local_workers()
  env <- list2env(list(open = opens[[2]], here = Sys.getpid()),
    parent = globalenv())
  opens[[2]] <- rlang::new_function(list(), quote({
    if (Sys.getpid() != here) stop("no {route} to host")
    open()
  }), env)
  for (in_database in c(TRUE, FALSE)) {
    error <- fails(tall_table(opens, in_database))
    expect_identical(error$shard, 2L)
    expect_match(conditionMessage(error$parent), "no {route}", fixed = TRUE)
    expect_identical(deparse(error$call[[1]]), "tall_glm")
  }
  expect_all_closed(opens[[1]])
  # one table has no shards to tell of
  error <- expect_error(
    tall_glm(y ~ x, tall_table(refuses), refresh = 0),
    class = "tall_error_source"
  )
  expect_null(error$shard)
})

test_that("a file of DuckDB that one process may write says what to do", {
  skip_without_duckdb()
  local_short_look(500)
  dir <- withr::local_tempdir()
  place <- shard_of_duckdb(table_rows(), file.path(dir, "rows"))
  writes <- rlang::new_function(list(), quote({
    driver <- getExportedValue("duckdb", "duckdb")(file)
    list(
      table = dplyr::tbl(suppressMessages(DBI::dbConnect(driver)), "rows"),
      close = function() getExportedValue("duckdb", "duckdb_shutdown")(driver)
    )
  }), environment(place))
  source <- tall_table(writes)
  end <- source_hold(source)
  withr::defer(end())
  local_workers()
  other <- future::future(
    tryCatch(connect(), error = identity),
    globals = list(connect = place),
    seed = NULL
  )
  error <- future::value(other)
  expect_error(
    open_table(function() stop(error)),
    "read_only = TRUE",
    class = "tall_error_source"
  )
})

test_that("a fork opens tables anew", {
  skip_on_cran()
  skip_on_os("windows")
  opens <- local_files(table_rows(), 1200)
  source <- tall_table(opens[[1]])
  end <- source_hold(source)
  job <- parallel::mcparallel({
    was_open <- is_table_open(source)
    n <- 0
    source_each(source, "k", function(block) n <<- n + block$n)
    list(was_open, n)
  })
  found <- parallel::mccollect(job)[[1]]
  expect_identical(found, list(FALSE, 1200))
  expect_true(is_table_open(source))
  end()
  pids <- table(told(opens[[1]])$pid)
  expect_length(pids, 2)
  expect_true(all(pids == 2))
})

test_that("a stream that is a lazy table says what takes it", {
  opens <- local_files(table_rows(), 1200)
  error <- expect_error(
    tall_glm(y ~ x, list(function() opens[[1]]()$table), refresh = 0),
    "tall_table",
    class = "tall_error_source"
  )
})

test_that("a stream that ends early leaves the transaction of PostgreSQL", {
  con <- local_postgres()
  DBI::dbExecute(con, "DROP TABLE IF EXISTS many")
  DBI::dbExecute(con, paste(
    "CREATE TABLE many AS SELECT i AS id, random() AS x, random() AS y",
    "FROM generate_series(1, 500000) i"
  ))
  withr::defer(DBI::dbExecute(con, "DROP TABLE many"))
  local_settings(block_rows = 1000)
  shards <- as_source(list(dplyr::tbl(con, "many"), dplyr::tbl(con, "many")))
  end <- source_hold(shards)
  expect_identical(source_names(shards), c("id", "x", "y"))
  expect_identical(nrow(source_fetch(shards, 2)), 1L)
  expect_true(is_in_transaction(con))
  end()
  expect_false(is_in_transaction(con))
})
