# Passes in DuckDB, where it is installed.

test_that("sums and fits of DuckDB are those of R", {
  skip_on_cran()
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("duckdb")
  con <- DBI::dbConnect(duckdb::duckdb())
  withr::defer(DBI::dbDisconnect(con, shutdown = TRUE))
  local_short_look(2000)
  rows <- table_rows(12000)
  table <- table_of(con, rows)
  fit <- function(data, formula, family) {
    tall_glm(formula, data, family, seed = 1, refresh = 0)
  }
  expect_null(sql_lacks(con))
  expect_same_passes(
    fit(data, y ~ word * x + factor(k), binomial()),
    table,
    rows
  )
  expect_same_passes(fit(data, count ~ log(wait), poisson()), table, rows)
  formula <- y ~ x + word
  expect_same_posterior(
    fit(table, formula, binomial()),
    fit(rows, formula, binomial())
  )
})
