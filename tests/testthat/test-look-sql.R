# What databases and users can get wrong, and names that are meant to.

quiet_glm <- function(...) {
  tall_glm(..., refresh = 0, seed = 1)
}

test_that("draws are not those of the rows in memory, the posterior is", {
  con <- local_sqlite()
  local_short_look(2000)
  rows <- stats::na.omit(table_rows(12000))
  table <- table_of(con, rows)
  cases <- list(
    list(count ~ x + offset(log(wait) / 9), poisson()),
    list(cbind(s, k - s) ~ x + offset(wait / 9), binomial()),
    list(y ~ x + offset(wait / 9), binomial())
  )
  for (case in cases) {
    fit <- function(data) quiet_glm(case[[1]], data, case[[2]])
    theirs <- fit(table)
    ours <- fit(rows)
    # numbers by which rows are drawn are the engine's: another call, too
    expect_false(identical(theirs$draws, ours$draws))
    expect_false(identical(theirs$draws, fit(table)$draws))
    expect_same_posterior(theirs, ours)
    # the expansion is about the same point
    sd <- sqrt(diag(vcov(ours)))
    off <- theirs$passed$found$theta - ours$passed$found$theta
    expect_lt(max(abs(off) / sd), 0.03) # by chance, of what was drawn
    streamed <- fit(as_source(table, in_database = FALSE))
    expect_identical(streamed$draws, ours$draws)
  }
  # sums alone are asked for
  fit <- function(data) quiet_glm(z ~ x + offset(wait / 9), data)
  expect_equal(fit(table)$draws, fit(rows)$draws, tolerance = 1e-10)
})

test_that("a term that the database sees otherwise is refused by its name", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows()
  table <- table_of(con, rows)
  # halves: R rounds to even
  error <- expect_error(
    quiet_glm(z ~ x + round(k / 2), table),
    class = "tall_error_unsupported"
  )
  expect_identical(error$value, "round(k/2)")
  # the logarithm of 0 is no missing value
  rows$wait[[20]] <- 0
  table <- table_of(con, rows)
  error <- expect_error(
    quiet_glm(z ~ log(wait), table),
    class = "tall_error_unsupported"
  )
  expect_identical(error$value, "log(wait)")
})

test_that("what SQL cannot say is streamed, and said", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows(2000)
  table <- table_of(con, rows)
  said <- function(...) {
    expect_message(
      tall_glm(..., data = table, iter = 300, seed = 1),
      "streamed"
    )
  }
  suppressMessages({
    said(y ~ x, family = binomial("probit"))
    said(z ~ splines::ns(wait, 3))
    own <- function(x) x + 1
    said(z ~ own(x))
    expect_message(
      tall_glm(z ~ x, as_source(table, in_database = FALSE), seed = 1),
      "in_database"
    )
  })
  # no random numbers, no exponential function
  for (lacks in c("^SELECT [^*]*RANDOM", "^SELECT [^*]*EXP")) {
    poor <- watched(con, function(sql) {
      if (grepl(lacks, sql)) stop("no such function") else sql
    })
    table <- dplyr::tbl(poor, "rows")
    suppressMessages(said(y ~ x, family = binomial()))
  }
})

test_that("names, levels and text are what they say and nothing else", {
  con <- local_sqlite()
  local_short_look(300)
  withr::local_seed(5)
  odd <- c(
    "a'b", "a''b", "a\"b", "a`b", "a\\", "'; DROP TABLE rows; --", "--", "/*",
    "%s", "{x}", "?", ":x", "$1", "select", "\u00e9\u4e2d", " ", "a b", "NULL",
    "tb_u", "v1", "x1", "eta", "weight", "y ", "%", "\\n", "\n"
  )
  canary <- data.frame(alive = 1)
  DBI::dbWriteTable(con, "canary", canary)
  for (turn in 1:4) {
    n <- 900
    levels <- sample(odd, 5)
    names <- sample(setdiff(odd, c(" ", "\n")), 3)
    rows <- data.frame(rnorm(n), sample(levels, n, TRUE), rnorm(n))
    names(rows) <- names
    table <- table_of(con, rows)
    quoted <- lapply(names, as.name)
    formula <- eval(bquote(.(quoted[[3]]) ~ .(quoted[[1]]) * .(quoted[[2]])))
    some <- levels[[1]]
    expect_same_passes(
      tall_glm(formula, data, refresh = 0),
      table,
      rows
    )
    theirs <- rows_of_call(bquote(
      tall_glm(formula, table, subset = .(quoted[[2]]) != some)
    ))
    expect_false(some %in% theirs$design$variables[[2]]$levels)
    expect_identical(DBI::dbReadTable(con, "canary"), canary)
    expect_true(DBI::dbExistsTable(con, "rows"))
  }
})

test_that("values that may not be are told as of rows in memory", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows()
  refuse <- function(rows, ..., class = "tall_error_input") {
    expect_error(quiet_glm(data = table_of(con, rows), ...), class = class)
  }
  bad <- rows
  bad$y[[30]] <- 2
  refuse(bad, y ~ x, family = binomial())
  bad <- rows
  bad$count[[30]] <- 0.5
  refuse(bad, count ~ x, family = poisson())
  bad <- rows
  bad$w[[30]] <- -1
  refuse(bad, z ~ x, weights = w)
  refuse(rows, z ~ x, na.action = na.fail)
  refuse(rows[0, ], z ~ x, class = "tall_error")
  refuse(rows, z ~ x, subset = x > 1e6)
  # text among numbers
  table <- table_of(con, rows)
  DBI::dbExecute(con, "UPDATE rows SET x = 'many' WHERE k = 2")
  error <- expect_error(quiet_glm(z ~ x, table), class = "tall_error_source")
  expect_identical(error$column, "x")
})

test_that("a table that changes between passes is told", {
  con <- local_sqlite()
  local_short_look(500)
  table_of(con, table_rows())
  # in a transaction of the user's, whose changes are seen
  DBI::dbBegin(con)
  withr::defer(DBI::dbRollback(con))
  changing <- watched(con, function(sql) {
    if (is_draw_query(sql)) {
      DBI::dbExecute(con, "DELETE FROM rows WHERE k = 1")
    }
    sql
  })
  expect_error(
    quiet_glm(y ~ x, dplyr::tbl(changing, "rows"), binomial()),
    class = "tall_error_source"
  )
})

test_that("values that change before the rows are drawn are told", {
  con <- local_sqlite()
  local_short_look(500)
  # as many rows, and the same response; offsets are summed with all columns
  changes <- c(
    x = "UPDATE rows SET x = x + 0.001 WHERE rowid = 17",
    y = "UPDATE rows SET y = 1 - y WHERE rowid = 17"
  )
  for (formula in list(y ~ x, y ~ x + offset(x / 9))) {
    for (change in changes) {
      table_of(con, table_rows(9000))
      is_changed <- FALSE
      changing <- watched(con, function(sql) {
        if (!is_changed && is_draw_query(sql)) {
          DBI::dbExecute(con, change)
          is_changed <<- TRUE
        }
        sql
      })
      expect_error(
        quiet_glm(formula, dplyr::tbl(changing, "rows"), binomial()),
        "other rows",
        class = "tall_error_source"
      )
    }
  }
})

test_that("random numbers that are none are told", {
  con <- local_sqlite()
  local_short_look(500)
  table_of(con, table_rows(9000))
  # the same for every row
  uniform <- sql_uniform(con)
  constant <- watched(con, function(sql) {
    gsub(uniform, "0.0001", sql, fixed = TRUE)
  })
  expect_error(
    quiet_glm(y ~ x, dplyr::tbl(constant, "rows"), binomial()),
    class = "tall_error_source"
  )
})
