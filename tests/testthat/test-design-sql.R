# Passes that a database computes, against those that R makes of the same rows.

test_that("shards are one table", {
  con <- local_sqlite()
  other <- local_sqlite()
  local_short_look(500)
  rows <- table_rows()
  tables <- list(
    table_of(con, rows[1:900, ]),
    table_of(other, rows[901:3000, ])
  )
  expect_same_passes(
    tall_glm(y ~ x + word, data, binomial(), weights = w, refresh = 0),
    tables,
    rows
  )
})

test_that("a pilot has rows of every level, which stand for all", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows(20000)
  source <- as_source(table_of(con, rows))
  request <- new_request(y ~ x + word, names(rows), resolve_family("binomial"))
  look <- look(rows_of_source(source, request))
  complete <- rows[stats::complete.cases(rows[c("y", "x", "word")]), ]
  expect_identical(look$n_row, as.double(nrow(complete)))
  expect_identical(look$n_missing, 4)
  expect_equal(sum(look$weights), nrow(complete))
  kept <- table(look$frame$word)
  expect_setequal(names(kept), unique(complete$word))
  expect_gt(min(kept), 70)
  # estimates of counts: sds of a few per cent
  stands <- tapply(look$weights, look$frame$word, sum)
  n <- table(complete$word)[names(stands)]
  expect_lt(max(abs(stands / n - 1)), 0.3)
})

test_that("rows are drawn with the probabilities that they must have", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows(6000)
  table <- table_of(con, rows)
  seen <- rows_of_call(
    quote(tall_glm(y ~ x + word, table, binomial(), weights = w))
  )
  theta <- c(-2, 0.8, 0.1, -0.5, -0.7)
  control <- list(refresh = 0, cores = 1)
  sums <- sums_at(seen, theta, control)
  found <- list(
    theta = theta,
    chol = t(chol(sums$hessian + diag(5))),
    passes = 1
  )
  draw <- list(radius = 9, phi_bar = 3000, rate = 3000, scale = 1, seed = 1,
    pass = 1, first = 0)
  local_settings(recipe = list(full_share = 1))
  theirs <- take_rows_ahead(seen, found, draw, control)
  seen <- rows_passes(seen)
  ours <- take_rows_ahead(seen, found, draw, control)
  expect_equal(theirs$total, ours$total, tolerance = 1e-8)
  expect_equal(theirs$sums$hessian, ours$sums$hessian, tolerance = 1e-9)
  expect_identical(sum(theirs$count == 0), sum(ours$count == 0))
  # what steps look at always is the same rows
  always <- function(of) sort(of$psi[of$count == 0])
  expect_gt(length(always(theirs)), 0)
  expect_equal(always(theirs), always(ours), tolerance = 1e-9)
  # Poisson counts: their sum and sums by what they were drawn for
  expect_lt(abs(sum(theirs$count) - draw$rate * ours$total),
    5 * sqrt(draw$rate * ours$total))
  mean_of <- function(of) sum(of$count * of$x[, 2]) / sum(of$count)
  n_draw <- c(sum(theirs$count), sum(ours$count))
  spread <- stats::sd(ours$x[, 2]) * sqrt(sum(1 / n_draw))
  expect_lt(abs(mean_of(theirs) - mean_of(ours)), 5 * spread)
})

test_that("bounds of rows are those of the core, whatever the response", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows(2000)
  table <- table_of(con, rows)
  local_settings(recipe = list(full_share = 1))
  control <- list(refresh = 0, cores = 1)
  calls <- list(
    poisson = quote(tall_glm(count ~ x + log(wait), table, poisson())),
    size = quote(tall_glm(count ~ x + log(wait), table, neg_binomial_2(1.7))),
    shape = quote(tall_glm(wait ~ x + w, table, gamma_regression(2.5)))
  )
  for (name in names(calls)) {
    seen <- rows_of_call(calls[[name]])
    theta <- c(-0.3, 0.4, 0.2)
    found <- list(
      theta = theta,
      chol = t(chol(sums_at(seen, theta, control)$hessian)),
      passes = 1
    )
    draw <- list(radius = 6, phi_bar = 60, rate = 60, scale = 1, seed = 1,
      pass = 1, first = 0)
    total <- function() {
        take_rows_ahead(seen, found, draw, control)$total
    }
    theirs <- total()
    expect_s3_class(seen$in_sql, "tall_sql")
    seen <- rows_passes(seen)
    expect_equal(theirs, total(), tolerance = 1e-8, label = name)
  }
})

test_that("a response without SQL has its rows brought to R", {
  con <- local_sqlite()
  for (name in names(response_problems())) {
    problem <- response_problems()[[name]]
    data <- response_data(problem, 400)
    frame <- data.frame(data$x[, -1], y = data$y)
    table <- table_of(con, frame, paste0("of_", name))
    # a parameter of it is sampled
    fit <- function(data) {
      tall_glm(y ~ a + b, data, problem$family(), seed = 1, iter = 400,
        chains = 1, refresh = 0)
    }
    theirs <- suppressMessages(suppressWarnings(fit(table)))
    ours <- suppressWarnings(fit(frame))
    expect_equal(coef(theirs), coef(ours), tolerance = 0.2, label = name)
    expect_identical(theirs$variables, ours$variables)
    expect_identical(nobs(theirs), nobs(ours))
  }
})

test_that("numbers are written in full, and sums do not nest deeply", {
  con <- local_sqlite()
  x <- c(0.1, 1 / 3, -2, 1e300, 1e-300, 0, 123456789.25, pi * 1e-7, 2^53,
    .Machine$double.xmax)
  read <- vapply(sql_number(x, con), function(text) {
    eval(parse(text = text)[[1]])
  }, 0, USE.NAMES = FALSE)
  expect_identical(read, x)
  # an engine must take them neither for whole numbers nor for decimals
  expect_match(sql_number(x, con), "e")
  expect_error(sql_number(Inf, con))
  found <- DBI::dbGetQuery(con, paste(
    "SELECT", paste(sql_number(x, con), "AS", letters[seq_along(x)],
      collapse = ", ")
  ))
  # SQLite reads some to the last digit but one
  expect_equal(unlist(found, use.names = FALSE) / x, x / x, tolerance = 1e-15)
  terms <- sql_number(1:5000, con)
  total <- sql_total(terms, con)
  depth <- cumsum((utf8ToInt(total) == 40) - (utf8ToInt(total) == 41))
  expect_lt(max(depth), 20)
  found <- DBI::dbGetQuery(con, paste("SELECT", total))[[1]]
  expect_identical(found, sum(1:5000) + 0)
  expect_identical(sql_total(character(), con), sql_number(0, con))
})

test_that("a wide design goes in blocks of sums", {
  con <- local_sqlite()
  local_short_look(500)
  local_settings(sql_width = 50)
  rows <- table_rows()
  expect_same_passes(
    tall_glm(y ~ word * x * factor(k), data, binomial(), refresh = 0),
    table_of(con, rows),
    rows
  )
})

test_that("rows beyond what can be drawn are left, and no others", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- table_rows(6000)
  table_of(con, rows)
  # random numbers above what is asked for are those of rows that are left
  limit <- "(?<=`u` < )[-+.0-9e]+"
  below <- NULL
  told <- watched(con, function(sql) {
    if (is_draw_query(sql) && grepl(limit, sql, perl = TRUE)) {
      text <- regmatches(sql, regexpr(limit, sql, perl = TRUE))
      below <<- as.double(sub("e0$", "", text))
    }
    sql
  })
  seen <- rows_of_call(
    quote(tall_glm(y ~ x, dplyr::tbl(told, "rows"), binomial()))
  )
  found <- list(theta = c(-2, 0.8), chol = diag(2) * 30)
  draw <- list(radius = 9, phi_bar = 1, rate = 1, scale = 1, seed = 1,
    pass = 1, first = 0)
  local_settings(recipe = list(full_share = 1))
  total <- take_rows_ahead(seen, found, draw, list(refresh = 0))$total
  # some tenth of the rows
  draw$rate <- 600 / total
  taken <- take_rows_ahead(seen, found, draw, list(refresh = 0))
  expect_lt(below, 1)
  expect_gte(below, max(draw$rate * taken$psi))
  n <- sum(taken$count)
  expect_lt(abs(n - 600), 5 * sqrt(600))
})
