# Columns that are rounded, and what is said of what that does.

rounded_cases <- function(n = 20000) {
  withr::with_seed(1, {
    d <- data.frame(
      x = stats::rnorm(n),
      age = stats::runif(n, 20, 80),
      g = factor(sample(letters[1:3], n, TRUE)),
      w = sample(2, n, TRUE)
    )
    eta <- 0.03 * (d$age - 50) + 0.4 * (d$g == "b")
    d$y <- stats::rbinom(n, 1, stats::plogis(eta - 1))
    d$z <- 2 + eta + stats::rnorm(n)
    d$k <- cut(d$z, c(-Inf, 1.5, 2.5, Inf), labels = 1:3, ordered_result = TRUE)
    d
  })
}

round_fit <- function(f, formula, data, ...) {
  f(formula, data, ..., seed = 1, iter = 1000, refresh = 0)
}

test_that("a fit is that of the rounded rows", {
  d <- rounded_cases()
  rounded <- transform(d, age = 5 * round(age / 5), x = 0.5 * round(x / 0.5))
  steps <- c(age = 5, x = 0.5)
  one <- round_fit(tall_glm, y ~ age + x + g, d, family = binomial(),
    compress = steps)
  two <- round_fit(tall_glm, y ~ age + x + g, rounded, family = binomial())
  expect_identical(one$draws, two$draws)
  expect_identical(one$compressed$steps, steps)
  exact <- round_fit(tall_glm, y ~ age + x + g, d, family = binomial(),
    compress = "exact")
  expect_null(exact$compressed)
  classes <- round_fit(tall_polr, k ~ age + x + g, d, compress = steps)
  expect_match(classes$plan, "alike ones count as one")
})

# Mean of the fit to rows as they are less that of the fit, in its sds.
away_by_fit <- function(exact, fit) {
  own <- function(fit) fit_unconstrained(fit)
  sd <- apply(own(fit), 2, stats::sd)
  (colMeans(own(exact)) - colMeans(own(fit))) / sd
}

test_that("what rounding does is what a fit of the rows as they were tells", {
  d <- rounded_cases()
  steps <- c(age = 10)
  cases <- list(
    list(tall_glm, y ~ age + g, family = binomial()),
    list(tall_glm, z ~ age + g, weights = quote(w)),
    list(tall_glm, y ~ age + g, family = poisson(), subset = quote(x > -1)),
    list(tall_polr, k ~ age + g),
    list(tall_multinom, k ~ age + g)
  )
  for (case in cases) {
    call <- c(case[1:2], list(d), case[-(1:2)])
    rounded <- do.call(round_fit, c(call, list(compress = steps)))
    wanted <- away_by_fit(do.call(round_fit, call), rounded)
    shift <- rounded$compressed$shift
    expect_named(shift, rounded$coordinates)
    # 2,000 draws each, and a second step's worth of what is large
    expect_lt(max(abs(shift - wanted) - 0.1 * abs(wanted)), 0.2)
    expect_gt(max(abs(shift)), 0.5)
  }
})

test_that("rows that are passed over are rounded where they lie", {
  d <- rounded_cases(6000)
  steps <- c(age = 10)
  memory <- round_fit(tall_glm, y ~ age + g, d, family = binomial(),
    compress = steps)
  file <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(d, file, row.names = FALSE)
  halves <- list(d[1:2500, ], d[2501:6000, ])
  sources <- list(
    stream_of(d, 1000),
    as_source(d),
    halves,
    tall_csv(file)
  )
  if (rlang::is_installed(c("RSQLite", "dbplyr"))) {
    path <- withr::local_tempfile()
    con <- DBI::dbConnect(RSQLite::SQLite(), path)
    withr::defer(DBI::dbDisconnect(con))
    DBI::dbWriteTable(con, "d", d)
    open <- function() {
      dplyr::tbl(DBI::dbConnect(RSQLite::SQLite(), path), "d")
    }
    sources <- c(sources, list(dplyr::tbl(con, "d"), tall_table(open)))
  }
  local_passes(1000, 512)
  for (source in sources) {
    fit <- round_fit(tall_glm, y ~ age + g, source, family = binomial(),
      compress = steps)
    expect_match(fit$plan, "alike ones count as one, 42 rows differ")
    # at its own mean, of 2,000 draws
    expect_equal(
      fit$compressed$shift,
      memory$compressed$shift,
      tolerance = 0.05
    )
    gauss <- round_fit(tall_glm, z ~ age + g, source, compress = steps)
    expect_equal(
      gauss$compressed$shift[["age"]],
      away_by_fit(round_fit(tall_glm, z ~ age + g, d), gauss)[["age"]],
      tolerance = 0.1
    )
  }
})

test_that("what a fit was rounded to is printed, and no rows are appended", {
  d <- rounded_cases(3000)
  fit <- round_fit(tall_glm, z ~ age, d, compress = c(age = 10))
  fit$compressed$shift[] <- c(-0.0123, 0.0456, 0.001)
  said <- capture.output(print(fit))
  expect_match(said, "Rounded: age to 10", all = FALSE)
  expect_match(
    said,
    "posterior means move by 0.046 of their sds at most (age)",
    fixed = TRUE,
    all = FALSE
  )
  expect_error(
    tall_append(fit, d, refresh = 0),
    "rows as they are",
    class = "tall_error_unsupported"
  )
  expect_no_match(said, "take smaller steps")
  expect_match(
    compressed_text(list(steps = c(age = 1), shift = c(a = 0, b = 1e-4))),
    "by less than 0.005",
    all = FALSE
  )
  fit$compressed$shift[[2]] <- -3
  expect_match(capture.output(print(fit)), "take smaller$", all = FALSE)
  few <- round_fit(tall_glm, z ~ age, d, compress = c(age = 10),
    variables = "age")
  expect_match(
    capture.output(print(few)),
    "what that does to the posterior is not known",
    all = FALSE
  )
  # new rows are taken as they are
  new <- data.frame(age = c(33, 30))
  expect_gt(abs(diff(predict(fit, new))), 0.05)
})

test_that("rows as they were may have other levels, which loses no fit", {
  d <- rounded_cases(3000)
  local_passes(1000, 512)
  path <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(d, path, row.names = FALSE)
  for (data in list(d, stream_of(d, 1000), tall_csv(path))) {
    fit <- round_fit(tall_glm, y ~ factor(age), data, family = binomial(),
      compress = c(age = 20))
    expect_match(names(coef(fit))[-1], "^factor[(]age[)][468]0$")
    expect_null(fit$compressed$shift)
  }
})

test_that("rounded sources are read by rows and by workers as they are", {
  d <- rounded_cases(300)
  path <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(d, path, row.names = FALSE)
  csv <- rounded_data(tall_csv(path), c(age = 10))
  expect_true(can_travel(csv))
  expect_false(can_travel(rounded_data(as_source(d), c(age = 10))))
  expect_identical(
    source_fetch(csv, c(7, 2), c("age", "w"))$age,
    10 * round(d$age[c(7, 2)] / 10)
  )
  expect_named(source_fetch(csv, 1, "w"), "w")
})

test_that("text is told as text by databases, too", {
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  con <- local_sqlite()
  d <- rounded_cases(300)
  d$a <- rep(c("lo", "mid", "5"), 100)
  DBI::dbWriteTable(con, "d", d)
  expect_error(
    tall_glm(y ~ a, dplyr::tbl(con, "d"), binomial(), compress = c(a = 1)),
    "columns of numbers",
    class = "tall_error_input"
  )
  # behind the first rows
  DBI::dbExecute(con, "CREATE TABLE t AS SELECT y, age FROM d")
  DBI::dbExecute(con, "UPDATE t SET age = 'old' WHERE rowid = 200")
  local_passes(100, 512)
  expect_error(
    tall_glm(y ~ age, dplyr::tbl(con, "t"), binomial(), compress = c(age = 1),
      refresh = 0),
    class = "tall_error"
  )
})

test_that("columns that cannot be rounded are told", {
  d <- rounded_cases(300)
  fit <- function(compress, ..., data = d) {
    tall_glm(y ~ age, data, binomial(), ..., compress = compress, refresh = 0)
  }
  expect_error(fit(c(agee = 1)), "no column `agee`", class = "tall_error_input")
  expect_error(fit(c(agee = 1)), "Did you mean `age`", class = "tall_error")
  expect_error(
    fit(c(agee = 1), data = stream_of(d, 100)),
    "no column `agee`",
    class = "tall_error_input"
  )
  expect_error(fit(c(g = 1)), "columns of numbers", class = "tall_error_input")
  for (bad in list(1, c(age = -1), c(age = 0), c(age = NA), "some", TRUE,
    c(age = 1, age = 2), list(age = 1), character())) {
    expect_error(fit(bad), "compress", class = "tall_error_input")
  }
  expect_error(
    fit(c(age = 1), prior_PD = TRUE),
    "no place with `prior_PD`",
    class = "tall_error_unsupported"
  )
  for (f in list(tall_polr, tall_multinom)) {
    expect_error(
      f(k ~ age, d, compress = c(age = 1), lambda = 10),
      "no place with `lambda`",
      class = "tall_error_unsupported"
    )
  }
  expect_error(
    tall_glm(d$y ~ d$age, family = binomial(), compress = c(age = 1)),
    "was not given",
    class = "tall_error_input"
  )
  expect_error(
    tall_glm(list(z ~ age, sigma ~ x), d, compress = c(age = 1)),
    "models of one predictor",
    class = "tall_error_unsupported"
  )
  expect_identical(round_column(c(1L, 7L, NA), 5, "x"), c(0L, 5L, NA))
})
