# What every engine must do, whatever its dialect. What is one engine's own
# stands in test-sql-duckdb.R, test-sql-postgres.R and, of SQLite, in the tests
# of designs and looks.

# Those in which others may write while a fit reads.
shared_engines <- setdiff(sql_engines, "SQLite")

whole_calls <- alist(
  tall_glm(y ~ x + word, data, binomial()),
  tall_glm(y ~ x + word, data, binomial(), weights = w),
  tall_glm(count ~ x + offset(log(wait)), data, poisson()),
  tall_glm(z ~ x * word, data)
)

whole_fit <- function(call, rows) {
  call[c("iter", "seed", "refresh")] <- c(1000, 1, 0)
  eval(call, list(data = rows))
}

# Of rows in memory, made once for all engines.
whole_fits <- local({
  fits <- NULL
  function() {
    fits <<- fits %||% lapply(whole_calls, whole_fit, table_rows(12000))
    fits
  }
})

for (engine in sql_engines) {
  of <- function(what) paste0(engine, ": ", what)

  test_that(of("sums are those of R"), {
    con <- local_engine(engine)
    local_short_look(500)
    rows <- table_rows()
    rows$far <- 1e7 + rows$wait
    if (engine != "SQLite") {
      # SQLite has neither
      rows$on <- rows$on == 1
      rows$won <- rows$y == 1
      rows$w[[9]] <- NaN
      rows$wait[[10]] <- NaN
    } else {
      rows$won <- rows$y
    }
    rows$wait[[11]] <- 0.5
    table <- table_of(con, rows)
    # numbers with as many digits as doubles have, and signs that meet
    half <- -0.51234567890123456
    calls <- alist(
      tall_glm(won ~ word * x + factor(k) + on, data, binomial()),
      tall_glm(y ~ 0 + word + (x > 3), data, binomial()),
      tall_glm(count ~ log(wait) + I(x^2) + offset(x / 9), data, poisson()),
      tall_glm(cbind(s, k - s) ~ x + `a b`, data, binomial()),
      tall_glm(count ~ x + log(wait), data, neg_binomial_2(1.7)),
      tall_glm(wait ~ x + offset(x / 9), data, gamma_regression(2.5)),
      tall_glm(z ~ x / k, data),
      tall_glm(
        z ~ exp(wait * half * 0.12345678901234567) + I(- -x - half) + far,
        data
      ),
      tall_glm(y ~ x + word, data, binomial(), weights = 2 * w),
      tall_glm(y ~ x + word, data, binomial(), weights = w, subset = k > 2),
      tall_glm(count ~ x, data, poisson(), subset = word != "ant", weights = w),
      tall_glm(z ~ x + k, data, weights = w, subset = k > 1, offset = wait)
    )
    for (call in calls) {
      call$refresh <- 0
      eval(bquote(expect_same_passes(.(call), table, rows)))
    }
  })

  test_that(of("whole fits are those of the same rows in memory"), {
    con <- local_engine(engine)
    local_short_look(2000)
    table <- table_of(con, table_rows(12000))
    ours <- whole_fits()
    for (k in seq_along(ours)) {
      theirs <- whole_fit(whole_calls[[k]], table)
      expect_same_posterior(theirs, ours[[k]])
      expect_identical(nobs(theirs), nobs(ours[[k]]))
    }
  })

  test_that(of("streams obey the laws of sources"), {
    con <- local_engine(engine)
    rows <- mixed_rows()
    rows$group <- as.character(rows$group)
    rows <- if (engine == "SQLite") as_sqlite(rows) else rows
    source <- as_source(table_of(con, rows))
    expect_source(source, rows)
    local_settings(block_rows = 7)
    expect_source(source, rows)
  })

  test_that(of("a random number is evaluated once for every row"), {
    con <- local_engine(engine)
    local_short_look(500)
    rows <- table_rows(6000)
    seen <- rows_of_call(
      quote(tall_glm(y ~ x, table_of(con, rows), binomial()))
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

  test_that(of("rows are drawn with the probabilities they must have"), {
    con <- local_engine(engine)
    local_short_look(500)
    rows <- table_rows(6000)
    seen <- rows_of_call(
      quote(tall_glm(y ~ x, table_of(con, rows), binomial()))
    )
    found <- list(theta = c(-2, 0.8), chol = diag(2) * 30)
    draw <- list(radius = 9, phi_bar = 1, rate = 1, scale = 1, seed = 1,
      pass = 1, first = 0)
    local_settings(recipe = list(full_share = 1))
    control <- list(refresh = 0, cores = 1)
    total <- take_rows_ahead(seen, found, draw, control)$total
    # some tenth of the rows
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

  test_that(of("predictions are those of R"), {
    expect_predicts(local_engine(engine))
  })
}

for (engine in shared_engines) {
  of <- function(what) paste0(engine, ": ", what)

  test_that(of("a fit reads one state, and leaves no transaction"), {
    con <- local_engine(engine)
    other <- local_other(con)
    local_short_look(500)
    rows <- table_rows()
    table_of(con, rows)
    n_deleted <- 0
    deleting <- watched(con, function(sql) {
      if (is_pass_query(sql)) {
        gone <- "DELETE FROM rows WHERE k = 1"
        n_deleted <<- n_deleted + DBI::dbExecute(other, gone)
      }
      sql
    })
    fit <- tall_glm(z ~ x, dplyr::tbl(deleting, "rows"), refresh = 0, seed = 1)
    expect_gt(n_deleted, 0)
    expect_identical(nobs(fit), sum(!is.na(rows$x)) + 0)
    expect_false(is_in_transaction(con))
    # nor where the fit fails
    expect_error(tall_glm(z ~ nope, dplyr::tbl(con, "rows"), refresh = 0))
    failing <- watched(con, function(sql) {
      if (is_pass_query(sql)) stop("no") else sql
    })
    table <- dplyr::tbl(failing, "rows")
    expect_error(
      tall_glm(z ~ x, table, refresh = 0),
      class = "tall_error_source"
    )
    expect_false(is_in_transaction(con))
  })

  test_that(of("an interrupt ends the transaction, not the connection"), {
    con <- local_engine(engine)
    local_short_look(500)
    table_of(con, table_rows())
    # any query of rows, from the first look to the draws
    for (at in 1:5) {
      n_query <- 0
      pressed <- watched(con, function(sql) {
        n_query <<- n_query + grepl("tb_q1", sql)
        if (n_query == at) {
          rlang::interrupt()
        }
        sql
      })
      table <- dplyr::tbl(pressed, "rows")
      seen <- tryCatch(
        {
          tall_glm(y ~ x + word, table, binomial(), refresh = 0, seed = 1)
          "done"
        },
        interrupt = function(cnd) "interrupted"
      )
      expect_identical(seen, "interrupted")
      expect_false(is_in_transaction(con))
      if (engine == "PostgreSQL") {
        # what a transaction set for itself is as it was
        found <- DBI::dbGetQuery(con, "SHOW transaction_read_only")[[1]]
        expect_identical(found, "off")
      }
      expect_identical(nrow(DBI::dbReadTable(con, "rows")), 3000L)
    }
  })
}
