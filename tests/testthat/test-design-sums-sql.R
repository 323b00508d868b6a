# Gaussian responses in a database: the sums that a look of factors has.

# What is asked of the rows of a table, by text.
local_asked <- function(con) {
  asked <- new.env()
  asked$sql <- character()
  asked$con <- watched(con, function(sql) {
    if (grepl("SUM|COUNT|RANDOM", sql) && grepl("rows", sql)) {
      asked$sql <- c(asked$sql, sql)
    }
    sql
  })
  asked
}

sums_rows <- function(n = 6000) {
  withr::with_seed(8, {
    rows <- data.frame(
      f = sample(c("a", "b", "c"), n, TRUE, c(5, 3, 1)),
      month = sample(12L, n, TRUE),
      x = stats::rnorm(n)
    )
    rows$y <- 1e6 + (rows$f == "b") + stats::rnorm(n)
    rows$near <- 1e6 * (rows$f == "b") + 1e-3 * stats::rnorm(n)
    rows$y[c(4, 99)] <- NA
    rows$f[[7]] <- NA
    rows
  })
}

expect_near_sums <- function(a, b) {
  scale <- sqrt(diag(b$sums)) + 1e-6
  expect_lt(max(abs(a$mean - b$mean) / (1 + abs(b$mean))), 1e-12)
  expect_lt(max(abs(a$sums - b$sums) / outer(scale, scale)), 1e-9)
  expect_equal(a$weight, b$weight)
}

for (engine in sql_engines) {
  test_that(paste("one GROUP BY has a Gaussian's sums:", engine), {
    con <- local_engine(engine)
    local_short_look(500)
    rows <- sums_rows()
    table_of(con, rows)
    asked <- local_asked(con)
    table <- dplyr::tbl(asked$con, "rows")
    formulas <- list(y ~ f, y ~ f * factor(month), y ~ 0 + f, near ~ f)
    for (formula in formulas) {
      asked$sql <- character()
      theirs <- remote_fit(formula, table, gaussian())
      # residuals are looked at where nothing else has digits enough
      is_exact <- identical(formula[[2]], quote(near)) ||
        identical(formula, y ~ 0 + f)
      expect_length(asked$sql, if (is_exact) 4 else 1)
      expect_equal(theirs$passes, length(asked$sql))
      ours <- remote_fit(formula, rows, gaussian())
      expect_near_sums(theirs$rows$products, ours$rows$products)
      expect_equal(
        theirs$rows$facts[c("mean", "sd", "units", "n_row")],
        ours$rows$facts[c("mean", "sd", "units", "n_row")],
        tolerance = 1e-9
      )
      expect_identical(theirs$n_missing, ours$n_missing)
      expect_identical(nobs(theirs), nobs(ours))
      # the same numbers, up to rounding
      expect_equal(as.matrix(theirs), as.matrix(ours), tolerance = 1e-6)
    }
    more <- sg_resume(theirs, 100, refresh = 0)
    expect_identical(posterior::niterations(more$draws), 1100L)
    expect_null(theirs$rows$summed)
  })
}

test_that("shards are summed as one table", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- sums_rows()
  tables <- list(
    table_of(con, rows[1:1000, ], "rows1"),
    table_of(con, rows[-(1:1000), ], "rows2")
  )
  a <- remote_fit(y ~ f + factor(month), tables, gaussian())
  b <- remote_fit(y ~ f + factor(month), rows, gaussian())
  expect_equal(as.matrix(a), as.matrix(b), tolerance = 1e-6)
  expect_equal(a$passes, 1)
})

test_that("what sums of factors do not tell is looked at as ever", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- sums_rows()
  rows$w <- 1 + rows$month / 12
  table_of(con, rows)
  asked <- local_asked(con)
  table <- dplyr::tbl(asked$con, "rows")
  local_fault("level_sums_query", function(...) stop("asked"))
  for (call in alist(
    tall_glm(y ~ f + x, data, seed = 1, refresh = 0),
    tall_glm(y ~ f, data, weights = w, seed = 1, refresh = 0),
    tall_glm(y ~ f + offset(x), data, seed = 1, refresh = 0),
    tall_glm(I(y - 1e6) ~ f, data, seed = 1, refresh = 0)
  )) {
    a <- eval(call, list(data = table))
    b <- eval(call, list(data = rows))
    expect_equal(as.matrix(a), as.matrix(b), tolerance = 1e-6)
  }
})

test_that("numbers that may not be are told as of rows in memory", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- sums_rows()
  of <- function(rows, ...) {
    remote_fit(y ~ f, table_of(con, rows), gaussian(), ...)
  }
  far <- rows
  far$y[[5]] <- 1e200
  expect_error(of(far), class = "tall_error_input")
  error <- expect_error(of(rows, na.action = "na.fail"),
    class = "tall_error_input")
  expect_identical(error$value, 3)
  table_of(con, rows)
  DBI::dbExecute(con, "UPDATE rows SET y = 'many' WHERE rowid = 900")
  error <- expect_error(
    remote_fit(y ~ f, dplyr::tbl(con, "rows"), gaussian()),
    class = "tall_error_source"
  )
  expect_match(conditionMessage(error), "text")
})

test_that("NaN is a missing value", {
  con <- local_postgres()
  local_short_look(500)
  rows <- sums_rows()
  rows$y[c(11, 12)] <- NaN
  a <- remote_fit(y ~ f, table_of(con, rows), gaussian())
  b <- remote_fit(y ~ f, rows, gaussian())
  expect_identical(a$n_missing, 5)
  expect_equal(as.matrix(a), as.matrix(b), tolerance = 1e-6)
})
