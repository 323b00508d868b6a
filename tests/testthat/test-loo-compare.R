# Rows that a fit leaves out are counted, named, and in the way of comparisons.

skip_if_not_installed("loo")

# 600 rows, of which x and z lack some, and two weigh nothing.
holed <- function(n = 600) {
  withr::with_seed(8, {
    data <- data.frame(x = rnorm(n), z = rnorm(n), g = gl(12, n / 12))
    data$y <- rbinom(n, 1, plogis(data$x))
    data$level <- cut(data$x + rnorm(n), c(-Inf, -1, 1, Inf), labels = FALSE)
    data$w <- 1
    data$x[c(4, 90)] <- NA
    data$z[c(4, 77, 300)] <- NA
    data$w[c(11, 12)] <- 0
    rownames(data) <- paste0("row", seq_len(n))
    data
  })
}

data_line <- function(x) {
  out <- utils::capture.output(print(x))
  sub("Data: *", "", grep("^Data:", out, value = TRUE))
}

quiet <- function(fit) suppressWarnings(suppressMessages(fit))

test_that("print() and summary() count what missing values left out", {
  withr::local_seed(1)
  data <- holed()
  fits <- list(
    tall_glm(y ~ x, data, binomial(), iter = 60, refresh = 0),
    tall_glmer(y ~ x + (1 | g), data, binomial(), iter = 60, refresh = 0),
    tall_polr(ordered(level) ~ x, data, iter = 60, refresh = 0),
    tall_multinom(factor(level) ~ x, data, iter = 60, refresh = 0),
    tall_nn(
      y ~ x, data,
      hidden = 2, iter = 20, train_iter = 10, chains = 2, refresh = 0
    )
  ) |> quiet()
  for (fit in fits) {
    expect_match(data_line(fit), "^598 observations.*; 2 left out for missing")
    shown <- quiet(summary(fit))
    expect_match(data_line(shown), "; 2 left out for missing values$")
    expect_identical(
      na.action(fit),
      na.action(model.frame(y ~ x, data))
    )
  }
  whole <- tall_glm(y ~ w, data, binomial(), iter = 60, refresh = 0)
  expect_identical(data_line(whole), "600 observations")
  expect_null(na.action(whole))
})

test_that("rows without weight are counted apart", {
  withr::local_seed(1)
  fit <- tall_glm(
    y ~ x, holed(), binomial(),
    weights = w, iter = 60, refresh = 0
  )
  expect_identical(
    data_line(fit),
    paste(
      "596 observations; 2 left out for missing values;",
      "2 left out of weight 0 or no trials"
    )
  )
  expect_identical(as.integer(na.action(fit)), c(4L, 11L, 12L, 90L))
  # those of passes are not counted, but known
  local_passes(200, 128)
  for (formula in list(y ~ x, y ~ level)) {
    passed <- tall_glm(
      formula, holed(), binomial(),
      weights = w, iter = 60, refresh = 0
    )
    expect_true(is_remote_fit(passed))
    out <- if ("x" %in% all.vars(formula)) c(4L, 90L)
    expect_identical(
      as.integer(na.action(passed)),
      sort(c(out, 11L, 12L))
    )
  }
})

test_that("passes over a source count and name the same rows", {
  withr::local_seed(1)
  local_passes(200, 128)
  data <- holed()
  reference <- model.frame(y ~ x, data, subset = g != "3")
  fit <- tall_glm(
    y ~ x, data, binomial(),
    subset = g != "3", na.action = na.exclude, iter = 60, refresh = 0
  )
  expect_true(is_remote_fit(fit))
  expect_null(fit$na_action)
  expect_match(data_line(fit), "; 2 left out for missing values$")
  expect_identical(
    structure(na.action(fit), class = "omit"),
    na.action(reference)
  )
  stream <- stream_of(data, 70)
  fit <- tall_glm(y ~ x, stream, binomial(), iter = 60, refresh = 0)
  expect_match(data_line(fit), "; 2 left out for missing values$")
  expect_identical(as.integer(na.action(fit)), c(4L, 90L))
  expect_s3_class(na.action(fit), "omit")
  fit <- tall_glm(
    y ~ x, stream, binomial(),
    iter = 60, refresh = 0, keep_data = FALSE
  )
  expect_match(data_line(fit), "; 2 left out for missing values$")
  expect_error(na.action(fit), class = "tall_error_stale")
})

test_that("passes of a database count them", {
  withr::local_seed(1)
  con <- local_sqlite()
  local_short_look(200)
  DBI::dbWriteTable(con, "holed", holed()[c("x", "y", "z")])
  table <- dplyr::tbl(con, "holed")
  for (formula in list(y ~ x, z ~ x)) {
    family <- if (identical(formula, y ~ x)) binomial() else gaussian()
    fit <- tall_glm(formula, table, family, iter = 60, refresh = 0)
    expect_true(is_remote_fit(fit))
    out <- which(!complete.cases(holed()[all.vars(formula)]))
    expect_match(
      data_line(fit),
      paste0("; ", length(out), " left out for missing values$")
    )
    expect_identical(as.integer(na.action(fit)), out)
  }
})

# ---- comparisons -------------------------------------------------------------

test_that("fits with different rows are not compared, and say which differ", {
  withr::local_seed(1)
  data <- holed()
  of <- function(formula, ...) {
    loo(tall_glm(formula, data, binomial(), ..., iter = 200, refresh = 0)) |>
      quiet()
  }
  by_x <- of(y ~ x)
  by_z <- of(y ~ z)
  by_w <- of(y ~ w)
  expect_error(
    loo::loo_compare(by_x, by_z),
    paste0(
      "598 observations, 2 left out.*597 observations, 3 left out.*",
      "Row 77 and 1 other are used by.*Row 90 is used by"
    ),
    class = "tall_error_input"
  )
  # in a list, by its names
  expect_error(
    loo_compare(list(one = by_x, other = by_w)),
    "`one` has 598.*`other` has 600.*Row 4 and 1 other are used by `other`",
    class = "tall_error_input"
  )
  # as many rows, but others
  data$x[[77]] <- NA
  expect_error(
    loo_compare(of(y ~ x), by_z),
    "597 observations.*597 observations.*Row 300 is used by.*Row 90 is used by",
    class = "tall_error_input"
  )
  data <- holed()
  # the same rows, left out in another way
  same <- of(y ~ 1, subset = !is.na(x))
  expect_equal(nrow(loo_compare(by_x, same)), 2)
  expect_error(
    loo_compare(tall_glm(y ~ x, data, binomial(), iter = 60, refresh = 0), 1),
    "what loo\\(\\) returns",
    class = "tall_error_input"
  )
})

test_that("rows of passes are compared, too, and groups with rows not at all", {
  withr::local_seed(1)
  local_passes(200, 128)
  data <- holed()
  data$x[[77]] <- NA
  of <- function(formula) {
    tall_glm(formula, data, binomial(), iter = 200, refresh = 0)
  }
  expect_error(
    loo_compare(loo(of(y ~ x)), loo(of(y ~ z))),
    "Row 300 is used by.*Row 90 is used by",
    class = "tall_error_input"
  )
  grouped <- quiet(
    tall_glmer(y ~ x + (1 | g), data, binomial(), iter = 200, refresh = 0)
  )
  expect_error(
    quiet(loo_compare(loo(grouped), loo(of(y ~ x)))),
    "597 observations in 12 groups, 3 left out",
    class = "tall_error_input"
  )
  # as many groups, of other rows
  other <- quiet(update(grouped, . ~ . - x + z))
  same <- quiet(update(grouped, . ~ . + w))
  expect_error(
    quiet(loo_compare(loo(grouped), loo(other))),
    "Row 300 is used by.*Row 90 is used by",
    class = "tall_error_input"
  )
  table <- quiet(loo_compare(loo(grouped), loo(same)))
  expect_setequal(rownames(table), c("grouped", "same"))
  # a class of fits whose method hands on
  ranks <- quiet(tall_multinom(level ~ x, data, iter = 200, refresh = 0))
  expect_identical(attr(quiet(loo(ranks)), "model_name"), "ranks")
})

test_that("rows of a source beyond memory are compared by their number", {
  withr::local_seed(1)
  local_passes(200, 128)
  data <- holed()
  of <- function(formula) {
    stream <- stream_of(data, 200)
    quiet(loo(tall_glm(formula, stream, binomial(), iter = 200, refresh = 0)))
  }
  by_x <- of(y ~ x)
  expect_error(
    loo_compare(by_x, of(y ~ z)),
    "598 observations, 2 left out.*597 observations, 3 left out",
    class = "tall_error_input"
  )
  expect_equal(nrow(loo_compare(by_x, of(y ~ x + w))), 2)
})

test_that("waic() knows its rows as well", {
  withr::local_seed(1)
  data <- holed()
  of <- function(formula) {
    waic(tall_glm(formula, data, binomial(), iter = 200, refresh = 0)) |>
      quiet()
  }
  expect_error(loo_compare(of(y ~ x), of(y ~ z)), class = "tall_error_input")
  expect_equal(nrow(loo_compare(of(y ~ x), of(y ~ x + g))), 2)
  # as many, of which nothing is left out, but others
  data <- holed()[c("y", "g")]
  one <- data[1:300, ]
  data <- one
  first <- of(y ~ g)
  data <- holed()[301:600, ]
  expect_warning(loo_compare(first, of(y ~ g)), "yhash")
  data <- holed()[301:500, ]
  expect_error(loo_compare(first, of(y ~ g)), "with the same `subset`")
})
