# Passes in DuckDB, where it is installed.

test_that("sums of DuckDB are those of R", {
  con <- local_duckdb()
  local_short_look(500)
  rows <- table_rows()
  rows$on <- rows$on == 1
  rows$won <- rows$y == 1
  rows$w[[9]] <- NaN
  rows$wait[[10]] <- NaN
  rows$wait[[11]] <- 0.5
  rows$far <- 1e7 + rows$wait
  table <- table_of(con, rows)
  fit <- function(data, formula, family = binomial(), ...) {
    tall_glm(formula, data, family, ..., refresh = 0)
  }
  expect_null(sql_lacks(con))
  expect_same_passes(fit(data, won ~ word * x + factor(k) + on), table, rows)
  expect_same_passes(fit(data, y ~ 0 + word + (x > 3)), table, rows)
  expect_same_passes(
    tall_glm(y ~ x + word, data, binomial(), weights = w, subset = on,
      refresh = 0),
    table,
    rows
  )
  expect_same_passes(
    fit(data, count ~ log(wait) + I(x^2) + offset(x / 9), poisson()),
    table,
    rows
  )
  expect_same_passes(fit(data, cbind(s, k - s) ~ x + `a b`), table, rows)
  expect_same_passes(
    fit(data, count ~ x + log(wait), neg_binomial_2(1.7)),
    table,
    rows
  )
  expect_same_passes(
    fit(data, wait ~ x + offset(x / 9), gamma_regression(2.5)),
    table,
    rows
  )
  # numbers with as many digits as doubles have, and signs that meet
  half <- -0.51234567890123456
  expect_same_passes(
    fit(
      data,
      z ~ exp(wait * half * 0.12345678901234567) + I(- -x - half) + far,
      gaussian()
    ),
    table,
    rows
  )
})

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
  table <- dplyr::tbl(con, "rows")
  rows_of <- function(formula, family, ...) {
    rows_of_call(tall_glm(formula, table, family, ..., refresh = 0))
  }
  seen <- list()
  real <- run_on_tables
  local_function("run_on_tables", function(tables, queries) {
    seen <<- c(seen, Map(function(table, query) {
      text <- query_text(con, query)
      found <- DBI::dbGetQuery(con, paste("DESCRIBE", text))
      stats::setNames(found$column_type, found$column_name)
    }, tables, queries))
    real(tables, queries)
  })
  control <- list(refresh = 0, cores = 1)
  own <- rows_of(y ~ x * factor(on) + k, binomial(), weights = s)
  sums_at(own, c(-1, 0.1, 0.2, 1e-4, 0.3), control)
  own <- rows_of(k ~ x + on, gaussian(), offset = y)
  products_of(own, control)
  residuals_of(own, c(1, 2, 3), control)
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

test_that("whole fits in DuckDB are those of the same rows in memory", {
  con <- local_duckdb()
  local_short_look(2000)
  rows <- table_rows(12000)
  table <- table_of(con, rows)
  cases <- list(
    list(y ~ x + word, binomial()),
    list(count ~ x + log(wait), poisson()),
    list(count ~ x + offset(log(wait)), poisson()),
    list(z ~ x * word, gaussian())
  )
  for (case in cases) {
    fit <- function(data) {
      tall_glm(case[[1]], data, case[[2]], seed = 1, refresh = 0)
    }
    theirs <- fit(table)
    ours <- fit(rows)
    expect_same_posterior(theirs, ours)
    expect_identical(nobs(theirs), nobs(ours))
  }
  weighed <- function(data) {
    tall_glm(y ~ x + word, data, binomial(), weights = w, seed = 1, refresh = 0)
  }
  expect_same_posterior(weighed(table), weighed(rows))
})

test_that("streams of DuckDB obey the laws of sources", {
  con <- local_duckdb()
  rows <- mixed_rows()
  rows$group <- as.character(rows$group)
  source <- as_source(table_of(con, rows))
  expect_source(source, rows)
  local_function("block_rows", 7)
  expect_source(source, rows)
})

test_that("DuckDB evaluates a random number once for every row", {
  con <- local_duckdb()
  local_short_look(500)
  rows <- table_rows(6000)
  seen <- rows_of_call(
    tall_glm(y ~ x, table_of(con, rows), binomial(), refresh = 0)
  )
  own <- sql_design_rows(seen$in_sql, source_tables(seen$source)[[1]],
    below = 0.5)
  u <- quote_names(con, "u")
  own <- add_columns(own, list(a = u, b = paste(u, "+ 1e0")))
  found <- run_sql(con, sql_select(con, list(), own$sql, keep = own$keep))
  expect_equal(found$a + 1, found$b)
  expect_lt(max(found$a), 0.5)
  expect_gt(min(found$a), 0)
  n <- nrow(found)
  expect_lt(abs(n - 0.5 * 5997), 5 * sqrt(5997 / 4))
  expect_identical(anyDuplicated(found$a), 0L)
})

test_that("rows of DuckDB are drawn with the probabilities they must have", {
  con <- local_duckdb()
  local_short_look(500)
  rows <- table_rows(6000)
  seen <- rows_of_call(
    tall_glm(y ~ x, table_of(con, rows), binomial(), refresh = 0)
  )
  found <- list(theta = c(-2, 0.8), chol = diag(2) * 30)
  draw <- list(radius = 9, phi_bar = 1, rate = 1, scale = 1, seed = 1,
    pass = 1, first = 0)
  local_function("recipe_settings", utils::modifyList(
    recipe_settings, list(full_share = 1)))
  control <- list(refresh = 0, cores = 1)
  total <- take_rows_ahead(seen, found, draw, control)$total
  draw$rate <- 600 / total
  theirs <- take_rows_ahead(seen, found, draw, control)
  seen <- rows_passes(seen)
  ours <- take_rows_ahead(seen, found, draw, control)
  expect_equal(theirs$total, ours$total, tolerance = 1e-8)
  expect_lt(abs(sum(theirs$count) - 600), 5 * sqrt(600))
  mean_of <- function(of) sum(of$count * of$x[, 2]) / sum(of$count)
  n_draw <- c(sum(theirs$count), sum(ours$count))
  spread <- stats::sd(ours$x[, 2]) * sqrt(sum(1 / n_draw))
  expect_lt(abs(mean_of(theirs) - mean_of(ours)), 5 * spread)
})

test_that("DuckDB predicts what R predicts", {
  expect_predicts(local_duckdb())
})

test_that("a fit reads one state of DuckDB, and leaves no transaction", {
  con <- local_duckdb()
  other <- DBI::dbConnect(con@driver)
  withr::defer(DBI::dbDisconnect(other))
  local_short_look(500)
  rows <- table_rows()
  table <- table_of(con, rows)
  real <- products_of
  n_seen <- NULL
  local_function("products_of", function(rows, ...) {
    DBI::dbExecute(other, "DELETE FROM rows WHERE k = 1")
    out <- real(rows, ...)
    n_seen <<- out$facts$n_row
    out
  })
  tall_glm(z ~ x, table, refresh = 0, seed = 1)
  expect_identical(n_seen, sum(!is.na(rows$x)) + 0)
  expect_false(is_in_transaction(con))
  # nor where the fit fails
  expect_error(tall_glm(z ~ nope, table, refresh = 0))
  local_function("products_of", function(...) stop("no"))
  expect_error(tall_glm(z ~ x, table, refresh = 0))
  expect_false(is_in_transaction(con))
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
  local_function("sql_uniform", function(con) "NO_SUCH_FUNCTION()")
  expect_message(
    fit <- tall_glm(z ~ x, table, seed = 1),
    "lacks uniform random numbers"
  ) |>
    suppressMessages()
  expect_false(is_in_transaction(con))
  ours <- tall_glm(z ~ x, rows, seed = 1, refresh = 0)
  expect_equal(coef(fit), coef(ours), tolerance = 1e-6)
})

test_that("an interrupt ends the transaction of DuckDB", {
  con <- local_duckdb()
  local_short_look(500)
  table <- table_of(con, table_rows())
  real <- run_sql
  for (at in 1:4) {
    n_query <- 0
    local_function("run_sql", function(...) {
      n_query <<- n_query + 1
      if (n_query == at) {
        rlang::interrupt()
      }
      real(...)
    })
    seen <- tryCatch(
      {
        tall_glm(y ~ x + word, table, binomial(), refresh = 0, seed = 1)
        "done"
      },
      interrupt = function(cnd) "interrupted"
    )
    expect_identical(seen, "interrupted")
    expect_false(is_in_transaction(con))
    expect_identical(nrow(DBI::dbReadTable(con, "rows")), 3000L)
  }
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
