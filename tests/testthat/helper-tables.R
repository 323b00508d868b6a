# Tables in databases that tests make.

# A connection to an SQLite database in memory that lasts as long as `frame`.
local_sqlite <- function(frame = parent.frame()) {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(if (DBI::dbIsValid(con)) DBI::dbDisconnect(con), frame)
  con
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

# Of a call of tall_glm(): how its rows are read once the look was taken.
rows_of_call <- function(code) {
  grab <- function(rows, ...) {
    rlang::abort("", class = "test_rows", rows = rows)
  }
  local_function("remote_draws", grab)
  local_function("remote_sums", grab)
  tryCatch(
    {
      code
      NULL
    },
    test_rows = function(cnd) cnd$rows
  )
}

local_short_look <- function(rows, frame = parent.frame()) {
  settings <- utils::modifyList(look_settings, list(rows = rows))
  local_function("look_settings", settings, frame)
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
  theirs <- rows_of_call(eval(code, list(data = table), env))
  ours <- rows_of_call(eval(code, list(data = as_source(frame)), env))
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
    a <- products_of(theirs, control, NULL)
    b <- products_of(ours, control, NULL)
    near(a$mean, b$mean, 1)
    near(a$weight, b$weight)
    near(a$sums, b$sums, sqrt(outer(diag(b$sums), diag(b$sums))) + 1)
    near_facts(a$facts, b$facts)
    a <- residuals_of(theirs, theta, control, NULL)
    b <- residuals_of(ours, theta, control, NULL)
    near(a$rss, b$rss)
    near(a$gradient, b$gradient, 1 + abs(b$gradient))
  } else {
    a <- sums_at(theirs, theta, 1, control, NULL)
    b <- sums_at(ours, theta, 1, control, NULL)
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
