# Tables in databases that tests make.

# A connection to an SQLite database in memory that lasts as long as `frame`.
local_sqlite <- function(frame = parent.frame()) {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(if (DBI::dbIsValid(con)) DBI::dbDisconnect(con), frame)
  con
}

# DuckDB, from a library of its own or wherever it is installed. Compiling it
# takes an hour: the environment variable TALLBAYES_DUCKDB_LIB names a library
# that has it.
skip_without_duckdb <- function() {
  skip_on_cran()
  skip_if_not_installed("dbplyr")
  library <- Sys.getenv("TALLBAYES_DUCKDB_LIB")
  # it has methods for packages that need not be there
  is_there <- suppressWarnings(requireNamespace(
    "duckdb",
    lib.loc = c(if (nzchar(library)) library, .libPaths()),
    quietly = TRUE
  ))
  if (!is_there) {
    skip("DuckDB is not on this machine (TALLBAYES_DUCKDB_LIB)")
  }
}

# A connection to a DuckDB database, in memory or a file, that lasts as long as
# `frame`.
local_duckdb <- function(file = ":memory:", frame = parent.frame()) {
  skip_without_duckdb()
  # it tells where it keeps its extensions, and once that dbplyr is too old
  con <- suppressMessages(DBI::dbConnect(duckdb::duckdb(file)))
  suppressWarnings(dbplyr::sql_translation(con))
  withr::defer(
    if (DBI::dbIsValid(con)) DBI::dbDisconnect(con, shutdown = TRUE),
    frame
  )
  con
}

# The engines that tests go through.
sql_engines <- c("SQLite", "DuckDB", "PostgreSQL")

local_engine <- function(name, frame = parent.frame()) {
  switch(
    name,
    SQLite = local_sqlite(frame),
    DuckDB = local_duckdb(frame = frame),
    PostgreSQL = local_postgres(frame = frame)
  )
}

# Another connection to the same database.
local_other <- function(con, frame = parent.frame()) {
  if (!is_duckdb(con)) {
    return(local_postgres(frame = frame))
  }
  other <- DBI::dbConnect(con@driver)
  withr::defer(DBI::dbDisconnect(other), frame)
  other
}

# A lazy table of these rows.
table_of <- function(con, rows, name = "rows") {
  DBI::dbWriteTable(con, name, rows, overwrite = TRUE)
  dplyr::tbl(con, name)
}

# Rows as SQLite hands them out: it has neither logical values nor factors.
as_sqlite <- function(rows) {
  rows[] <- lapply(rows, function(x) {
    if (is.factor(x)) {
      return(as.character(x))
    }
    if (is.logical(x)) as.integer(x) else x
  })
  rows
}

# Of a call of tall_glm(), what a look finds: its front end, the pilot, and how
# its rows are read, as the call goes on with them.
looked_at <- function(call, env = parent.frame()) {
  matched <- match.call(tall_glm, call)
  given <- lapply(as.list(matched)[c("formula", "data", "family")], eval, env)
  family <- resolve_family(given$family %||% stats::gaussian())
  front <- new_front(
    "glm",
    "tall_glm",
    new_asked("tall_glm", matched, env, c(given, list(
      na.action = stats::na.omit
    ))),
    blueprint_glm(family, list(
      prior = as_prior(eval(formals(tall_glm)$prior)),
      prior_intercept = as_prior(eval(formals(tall_glm)$prior_intercept))
    )),
    request_glm(family),
    keep_data = TRUE
  )
  run <- list(control = list(refresh = 0))
  reading <- read_source(front, data_source(given$data), run)
  pilot <- rows_of_pilot(reading)
  list(
    front = front,
    pilot = pilot,
    rows = settle_database(reading, pilot, 0)
  )
}

rows_of_call <- function(call, env = parent.frame()) {
  looked_at(call, env)$rows
}

local_short_look <- function(rows, frame = parent.frame()) {
  local_settings(look = list(rows = rows), .frame = frame)
}

# Rows with what engines trip over.
table_rows <- function(n = 3000) {
  withr::with_seed(3, {
    rows <- data.frame(
      x = rnorm(n, 3, 0.5),
      k = sample(5L, n, TRUE),
      word = sample(c("ant", "b'ee", "c\"; --", "Ant"), n, TRUE,
        prob = c(5, 4, 3, 0.1)),
      wait = rexp(n) + 0.01,
      w = sample(0:3, n, TRUE) / 2
    )
    rows$on <- as.integer(rows$k > 2)
    eta <- -3 + rows$x - 0.2 * rows$k + (rows$word == "ant")
    rows$y <- rbinom(n, 1, plogis(eta))
    rows$s <- rbinom(n, rows$k, plogis(eta))
    rows$count <- rpois(n, exp(eta / 2))
    rows$z <- eta + rnorm(n)
    rows$`a b` <- rows$x^2
    rows$x[c(7, 99)] <- NA
    rows$word[[5]] <- NA
    rows$y[[6]] <- NA
    rows
  })
}

# Sums, facts, products and residuals of both.
expect_same_passes <- function(call, table, frame) {
  code <- substitute(call)
  env <- parent.frame()
  of <- function(data) {
    rows_of_call(code, list2env(list(data = data), parent = env))
  }
  theirs <- of(table)
  ours <- of(as_source(frame))
  expect_s3_class(theirs$in_sql, "tall_sql")
  expect_null(ours$in_sql)
  control <- list(refresh = 0, cores = 1)
  d <- length(ours$design$columns)
  expect_identical(theirs$design$columns, ours$design$columns)
  near <- function(a, b, scale = abs(b)) {
    expect_lt(max(abs(a - b) / (scale + 1e-12)), 1e-9)
  }
  near_facts <- function(a, b) {
    expect_identical(a$n_row, as.double(b$n_row))
    near(unlist(a), unlist(b), 1 + abs(unlist(b)))
  }
  theta <- seq(0.2, -0.2, length.out = d) / pmax(1, d)
  if (find_response(ours$family)$is_quadratic) {
    a <- products_of(theirs, control)
    b <- products_of(ours, control)
    near(a$mean, b$mean, 1 + abs(b$mean))
    near(a$weight, b$weight)
    near(a$sums, b$sums, sqrt(outer(diag(b$sums), diag(b$sums))) + 1)
    near_facts(a$facts, b$facts)
    a <- residuals_of(theirs, theta, control)
    b <- residuals_of(ours, theta, control)
    near(a$rss, b$rss)
    near(a$gradient, b$gradient, 1 + abs(b$gradient))
  } else {
    a <- sums_at(theirs, theta, control)
    b <- sums_at(ours, theta, control)
    near(a$log_lik, b$log_lik)
    near(a$gradient, b$gradient, 1 + abs(b$gradient))
    near(a$hessian, b$hessian, 1 + abs(b$hessian))
    near_facts(a$facts, b$facts)
  }
}

# Means and sds of draws of the same posterior, by their Monte Carlo error.
expect_same_posterior <- function(a, b) {
  sum_of <- function(fit) {
    posterior::summarise_draws(
      fit$draws,
      "mean",
      "sd",
      "mcse_mean",
      "mcse_sd"
    )
  }
  a <- sum_of(a)
  b <- sum_of(b)
  expect_identical(a$variable, b$variable)
  # those of independent pilots and draws, and not of the same
  mean_error <- sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  sd_error <- sqrt(a$mcse_sd^2 + b$mcse_sd^2)
  expect_lt(max(abs(a$mean - b$mean) / mean_error), 5)
  expect_lt(max(abs(a$sd - b$sd) / sd_error), 5)
}

# Predictions for lazy tables: streamed, or made by the database.

predict_cases <- function() {
  list(
    list(y ~ x + word, binomial()),
    list(count ~ log(wait) + I(x^2) + offset(x / 9), poisson()),
    list(z ~ word * x + factor(k), gaussian())
  )
}

expect_predicts <- function(con) {
  force(con)
  local_short_look(500)
  rows <- table_rows()
  rows$id <- seq_len(nrow(rows))
  table <- table_of(con, rows)
  new <- rows[order(rows$id), ]
  sorted <- dplyr::arrange(table, id)
  for (case in predict_cases()) {
    fit_to <- function(data) {
      tall_glm(case[[1]], data, case[[2]], iter = 200, seed = 1, refresh = 0)
    }
    ours <- fit_to(rows)
    theirs <- fit_to(table)
    for (fit in list(ours, theirs)) {
      by_r <- predict(fit, new, se.fit = TRUE)
      streamed <- predict(fit, sorted, se.fit = TRUE)
      expect_equal(streamed$fit, unname(by_r$fit))
      expect_equal(streamed$se.fit, unname(by_r$se.fit))
      lazy <- augment(fit, newdata = table, se_fit = TRUE)
      expect_s3_class(lazy, "tbl_lazy")
      expect_identical(colnames(lazy), c(names(rows), ".fitted", ".se.fit"))
      made <- dplyr::collect(dplyr::arrange(lazy, id))
      expect_equal(made$id, new$id)
      expect_equal(made$`a b`, new$`a b`)
      expect_equal(made$.fitted, unname(by_r$fit))
      expect_equal(made$.se.fit, unname(by_r$se.fit), tolerance = 1e-6)
      # it goes on in the database
      few <- dplyr::collect(dplyr::filter(lazy, .fitted > 0))
      expect_identical(nrow(few), sum(by_r$fit > 0, na.rm = TRUE))
      response <- dplyr::collect(dplyr::arrange(
        augment(fit, newdata = table, type.predict = "response"),
        id
      ))
      expect_equal(response$.fitted, case[[2]]$linkinv(unname(by_r$fit)))
    }
  }
}

# The same connection, but for what `ask` makes of the text of every query whose
# rows are fetched at once: it may note it, do something before it, fail in its
# place, or ask something else. told: of the rows that it had; sent: of the text
# of one whose rows are fetched bit by bit.
watched <- function(con, ask = identity, told = identity, sent = identity) {
  name <- paste0("watched_", class(con)[[1]])
  if (!methods::isClass(name, where = globalenv())) {
    methods::setClass(
      name,
      contains = class(con)[[1]],
      slots = c(
        inner = class(con)[[1]],
        ask = "function",
        told = "function",
        sent = "function"
      ),
      where = globalenv()
    )
    methods::setMethod(
      DBI::dbGetQuery,
      c(name, "character"),
      function(conn, statement, ...) {
        conn@told(DBI::dbGetQuery(conn@inner, conn@ask(statement), ...))
      },
      where = globalenv()
    )
    methods::setMethod(
      DBI::dbSendQuery,
      c(name, "character"),
      function(conn, statement, ...) {
        DBI::dbSendQuery(conn@inner, conn@sent(statement), ...)
      },
      where = globalenv()
    )
  }
  methods::new(name, con, inner = con, ask = ask, told = told, sent = sent)
}

# Does a query ask for sums over rows about the pilot's means, which are those
# of a pass? And for the bounds of rows that are drawn?
is_pass_query <- function(sql) {
  grepl("\\bu1\\b", sql)
}

is_draw_query <- function(sql) {
  grepl("\\bpsi\\b", sql)
}
