# Averages whose sums a database computes, beside those of the same rows read by
# R.

average_table_rows <- function(n = 1500) {
  rows <- table_rows(n)
  withr::with_seed(5, {
    rows$grp <- sample(c("hi", "it's", NA), n, TRUE, c(1, 1, 0.02))
    rows$own <- stats::runif(n, 0, 2)
    rows$day <- rows$k / 3
  })
  rows
}

table_fit <- function(formula, data, ...) {
  local_short_look(500)
  args <- list(formula, data, ..., iter = 60, chains = 2)
  suppressMessages(do.call(tall_glm, c(args, list(seed = 1, refresh = 0))))
}

# What `code` expands: the sums of every set and group. by_sql: must no row be
# read block by block?
expanded_sums <- function(code, by_sql) {
  found <- NULL
  local_fault("expanded_averages", function(request, expansion, draws, sums) {
    found <<- sums
    stop("found")
  })
  if (by_sql) {
    local_fault("each_average_block", function(...) stop("rows are read"))
  }
  try(code, silent = TRUE)
  found
}

# ask(newdata): NULL, the fit's own rows.
expect_same_sums <- function(ask, theirs, ours, n_set) {
  a <- expanded_sums(ask(theirs), by_sql = TRUE)
  b <- expanded_sums(ask(ours), by_sql = FALSE)
  if (is.null(a)) {
    fail("the database has no sums")
    return()
  }
  at <- list(a$groups$order(), b$groups$order())
  row_names <- function(x) `rownames<-`(x, NULL)
  expect_equal(
    row_names(a$groups$table()[at[[1]], , drop = FALSE]),
    row_names(b$groups$table()[at[[2]], , drop = FALSE])
  )
  expect_equal(a$groups$weights()[at[[1]]], b$groups$weights()[at[[2]]])
  for (set in seq_len(n_set)) {
    for (g in seq_along(at[[1]])) {
      x <- a$cells(set, at[[1]][[g]])[[1]]
      y <- b$cells(set, at[[2]][[g]])[[1]]
      for (name in c("value", "first", "second")) {
        scale <- max(abs(y[[name]])) + 1e-12 * abs(y$value) + 1e-100
        # differences of five points are of 1e-9
        expect_lt(max(abs(x[[name]] - y[[name]])) / scale, 1e-8)
      }
    }
  }
}

# The same rows, read by R.
read_by_r <- function(fit) {
  fit$rows$source$in_database <- FALSE
  fit
}

for (engine in sql_engines) {
  of <- function(what) paste0(engine, ": ", what)

  test_that(of("sums of averages are those of R"), {
    con <- local_engine(engine)
    rows <- average_table_rows()
    if (engine != "SQLite") {
      rows$on <- rows$on == 1
      rows$wait[[10]] <- NaN
    }
    table <- table_of(con, rows)
    by_r <- as_source(table, in_database = FALSE)
    fit <- table_fit(y ~ x * word + on, rows, binomial())
    # groups with weights, one of them of missing values
    expect_same_sums(
      function(newdata) {
        average_comparisons(fit, list(x = 0.5), newdata, by = c("grp", "day"),
          wts = "own", method = "expansion")
      },
      table,
      by_r,
      2
    )
    expect_same_sums(
      function(newdata) {
        on <- if (engine == "SQLite") 1 else TRUE
        average_predictions(fit, list(on = on, word = "b'ee"), newdata,
          type = "link", method = "expansion")
      },
      table,
      by_r,
      1
    )
    # own rows of a fit that the database passed over
    fit <- table_fit(
      count ~ log(wait) + I(x^2) + factor(k) + offset(x / 9),
      table,
      poisson(),
      weights = quote(w),
      subset = quote(word != "ant")
    )
    expect_same_sums(
      function(fit) {
        average_comparisons(fit, list(k = c(2, 4), x = 0.2), by = "on",
          method = "expansion")
      },
      fit,
      read_by_r(fit),
      4
    )
  })
}

test_that("links, smooth terms and slopes by the coefficient are summed", {
  con <- local_sqlite()
  rows <- average_table_rows()
  table <- table_of(con, rows)
  by_r <- as_source(table, in_database = FALSE)
  fit <- table_fit(y ~ x + wait, rows, binomial("probit"))
  expect_same_sums(
    function(newdata) {
      average_slopes(fit, newdata = newdata, method = "expansion")
    },
    table,
    by_r,
    2
  )
  fit <- table_fit(y ~ x, rows, binomial("cloglog"))
  expect_same_sums(
    function(newdata) {
      average_predictions(fit, newdata = newdata, method = "expansion")
    },
    table,
    by_r,
    1
  )
  fit <- tall_gam(z ~ s(wait, k = 5) + word, rows, iter = 60, chains = 2,
    seed = 1, refresh = 0)
  expect_same_sums(
    function(newdata) {
      average_predictions(fit, list(wait = 1.7), newdata, by = "k",
        method = "expansion")
    },
    table,
    by_r,
    1
  )
  # every link has the mean that R's has
  eta <- c(seq(-8, 5, 0.5), 1e-4)
  for (link in c("identity", "log", "logit", "probit", "cloglog", "sqrt")) {
    of <- mean_in_sql(link)
    known <- list2env(list(eta = eta), parent = baseenv())
    for (step in of$steps) {
      list2env(lapply(step, eval, known), known)
    }
    theirs <- stats::make.link(link)
    h <- 1e-4
    slope <- function(f) (f(eta + h) - f(eta - h)) / (2 * h)
    # R's cloglog has no digits at the ends
    there <- eta < 2
    near <- function(a, b, tolerance) {
      a <- rep_len(a, length(eta))
      expect_lt(max((abs(a - b) / (1e-3 + abs(b)))[there]), tolerance)
    }
    near(eval(of$value, known), theirs$linkinv(eta), 1e-11)
    near(eval(of$first, known), slope(theirs$linkinv), 1e-5)
    near(eval(of$second, known), slope(function(e) theirs$mu.eta(e)), 1e-5)
  }
})

test_that("few rows are read, and are any of their group", {
  con <- local_sqlite()
  rows <- average_table_rows(6000)
  rows$size <- ifelse(seq_len(6000) <= 90, "few", "many")
  table_of(con, rows)
  n_read <- 0
  seen <- watched(
    con,
    told = function(rows) {
      n_read <<- n_read + nrow(rows)
      rows
    },
    sent = function(sql) stop("rows are read bit by bit")
  )
  fit <- table_fit(y ~ x * word, rows, binomial())
  of <- function(newdata, ...) {
    # what is left out is of x, of which no value is rare
    average_predictions(fit, list(word = c("ant", "b'ee")), newdata,
      by = "size", ...)
  }
  found <- of(dplyr::tbl(seen, "rows"), method = "expansion")
  expect_gt(n_read, 290)
  expect_lt(n_read, 600)
  exact <- of(rows, method = "exact")
  expect_identical(found$size, exact$size)
  expect_identical(attr(found, "n_row"), attr(exact, "n_row") + 0)
  expect_identical(attr(found, "n_missing"), attr(exact, "n_missing") + 0)
  away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
  error <- sqrt(colMeans(away^2)) / exact$sd
  told <- attr(found, "error")
  # a group that is looked at whole has no error
  expect_equal(told[c(1, 3)], c(0, 0))
  expect_lt(max(error[c(1, 3)]), 1e-7)
  expect_gt(min(told[c(2, 4)]), 0)
  expect_lt(max(error[c(2, 4)] / told[c(2, 4)]), 4)
  # other rows from call to call, of all of a table
  sample_of <- function() {
    summed <- expanded_sums(
      of(dplyr::tbl(con, "rows"), method = "expansion"),
      by_sql = TRUE
    )
    summed$sample(1, which(summed$groups$table()$size == "many"))
  }
  first <- sample_of()
  again <- sample_of()
  expect_identical(dim(first$rows$x), c(200L, 8L))
  expect_equal(first$share, 200 / sum(rows$size == "many" & !is.na(rows$x) &
    !is.na(rows$word)))
  expect_false(identical(first$weight * first$slopes[[1]]$value,
    again$weight * again$slopes[[1]]$value))
  x <- c(first$rows$x[, "x"], again$rows$x[, "x"])
  all <- rows$x[rows$size == "many" & !is.na(rows$x)]
  expect_lt(abs(mean(x) - mean(all)), 5 * stats::sd(all) / sqrt(400))
})

test_that("shards are summed as one table, sums without a factor apart", {
  con <- local_sqlite()
  local_settings(cell_numbers = 10)
  rows <- average_table_rows()
  fit <- table_fit(y ~ x + word, rows, binomial())
  shards <- list(
    table_of(con, rows[1:400, ], "rows1"),
    table_of(con, rows[-(1:400), ], "rows2")
  )
  expect_same_sums(
    function(newdata) {
      average_predictions(fit, newdata = newdata, by = "k",
        method = "expansion")
    },
    shards,
    as_source(rows),
    1
  )
})

test_that("what the database cannot sum is read, and errors are those of R", {
  con <- local_sqlite()
  rows <- average_table_rows(600)
  rows$id <- seq_len(600)
  rows$minus <- -1
  rows$other <- ifelse(rows$word == "Ant", "new", rows$word)
  table <- table_of(con, rows)
  by_r <- as_source(table, in_database = FALSE)
  withr::local_options(tallbayes.refresh = 1)
  own <- function(x) x^2
  expect_read <- function(formula, ask) {
    fit <- table_fit(formula, rows, binomial())
    suppressMessages(b <- ask(fit, by_r))
    expect_message(a <- ask(fit, table), "`newdata` are streamed")
    expect_equal(a$mean, b$mean)
  }
  as_they_are <- function(fit, newdata) {
    average_predictions(fit, newdata = newdata, method = "expansion")
  }
  expect_read(y ~ own(x), as_they_are)
  expect_read(y ~ splines::ns(wait, 3), as_they_are)
  # a change of which the database makes NULL
  fit <- table_fit(y ~ log(wait), rows, binomial())
  expect_message(
    expect_null(expanded_sums(
      average_comparisons(fit, list(wait = -0.1), table, method = "expansion"),
      by_sql = TRUE
    )),
    "out of domain|missing values"
  )
  expect_read(y ~ x, function(fit, newdata) {
    # SQL that fails
    local_fault("sample_query", function(...) list(list(select = "SELEKT")))
    as_they_are(fit, newdata)
  })
  fit <- table_fit(y ~ x + word, rows, binomial())
  withr::local_options(tallbayes.refresh = 0)
  ask <- function(...) {
    average_predictions(fit, newdata = table, ..., method = "expansion")
  }
  expect_refusals(
    "tall_error_input",
    ask(by = "nothing"),
    ask(wts = "nothing"),
    ask(wts = "minus"),
    ask(wts = "word"),
    ask(wts = "y"),
    average_predictions(
      fit,
      newdata = dplyr::mutate(table, word = other),
      method = "expansion"
    )
  )
  local_fault("most_groups", 100)
  local_fault("each_average_block", function(...) stop("rows are read"))
  expect_refusals("tall_error_input", ask(by = "id"))
  expect_identical(ask(by = "k")$k, 1:5)
  # rows of a fit that are others now
  fit <- table_fit(y ~ x + word, table, binomial())
  DBI::dbExecute(con, "DELETE FROM rows WHERE id = 300")
  expect_null(expanded_sums(
    average_predictions(fit, method = "expansion"),
    by_sql = TRUE
  ))
})

test_that("terms that the database makes otherwise are read", {
  con <- local_sqlite()
  rows <- average_table_rows(300)
  fit <- table_fit(y ~ x + wait, rows, binomial())
  table <- table_of(con, rows)
  local_fault("sql_of_variables", function(s, places, con) {
    c(v1 = "c1", v2 = "c2 * 1.001")
  })
  withr::local_options(tallbayes.refresh = 1)
  ask <- function() {
    average_predictions(fit, newdata = table, method = "expansion")
  }
  expect_message(found <- ask(), "not the same in the database")
  expect_equal(
    found$mean,
    average_predictions(fit, newdata = rows, method = "expansion")$mean
  )
})
