# Values of data so large that sums of their squares overflow: refused by
# column, row and value, whichever front end or model they come to.

before <- options(tallbayes.refresh = 0)

extreme_data <- function() {
  set.seed(1)
  n <- 60
  data <- data.frame(
    x = rnorm(n),
    a = rnorm(n),
    o = rnorm(n) / 10,
    w = runif(n) + 0.5,
    g = rep(letters[1:6], 10),
    user = rep(1:12, 5),
    item = rep(1:5, each = 12),
    b = rep(0:1, 30),
    count = rpois(n, 2),
    positive = rexp(n) + 0.1,
    class = factor(rep(1:3, 20), ordered = TRUE)
  )
  data$y <- data$x + rnorm(n)
  data
}

with_value <- function(column, value, data = extreme_data()) {
  data[[column]][[7]] <- value
  data
}

# The error says which column, where, and what the value is.
expect_too_large <- function(code, column, value) {
  e <- expect_error(code, class = "tall_error_input")
  expect_identical(e$argument, column)
  expect_identical(e$value, value)
  expect_match(conditionMessage(e), "be (between -1e\\+60 and|.*most) 1e\\+60")
  expect_match(conditionMessage(e), "(row|value) 7")
  expect_match(conditionMessage(e), format_number(value), fixed = TRUE)
}

test_that("front ends refuse values whose squares overflow", {
  formulas <- list(
    quote(tall_nn(y ~ x, data, hidden = 2)),
    quote(tall_glm(y ~ x + offset(o), data, gaussian(), weights = w)),
    quote(tall_glm(b ~ x + offset(o), data, binomial(), weights = w)),
    quote(tall_glm(count ~ x + offset(o), data, poisson(), weights = w)),
    quote(tall_glm(positive ~ x, data, Gamma("log"))),
    quote(tall_glm(count ~ x, data, neg_binomial_2())),
    quote(tall_glm(y ~ x, data, student())),
    quote(tall_glmer(y ~ x + offset(o) + (1 | g), data, weights = w)),
    quote(tall_glmer(b ~ a + (x | g), data, binomial())),
    quote(tall_polr(class ~ x, data, weights = w)),
    quote(tall_multinom(class ~ x, data, weights = w))
  )
  for (call in formulas) {
    used <- setdiff(all.vars(call), c("data", "g", "b", "class"))
    for (column in used) {
      for (value in c(1e308, if (column %in% c("x", "y")) -1e200)) {
        data <- with_value(column, value)
        arg <- if (column == "w") "weights" else column
        arg <- if (column == "o") "offset" else arg
        e <- expect_error(eval(call), class = "tall_error_input")
        expect_true(e$argument %in% c(arg, column, "offset(o)"))
        expect_identical(e$value, value)
        expect_match(conditionMessage(e), "1e+60", fixed = TRUE)
        expect_match(conditionMessage(e), "7 is", fixed = TRUE)
      }
    }
  }
  data <- with_value("y", 1e308)
  expect_too_large(
    tall_factorize(y ~ user + item, data, rank = 2),
    "y",
    1e308
  )
})

test_that("models refuse them, too", {
  data <- extreme_data()
  x <- cbind("(Intercept)" = 1, a = with_value("a", 1e308)$a)
  whole <- cbind("(Intercept)" = 1, a = data$a)
  y <- with_value("y", -1e200)$y
  calls <- list(
    x = quote(model_glm(x, data$y, "gaussian")),
    x = quote(model_glm(Matrix::Matrix(x, sparse = TRUE), data$y, "gaussian")),
    y = quote(model_glm(whole, y, "gaussian")),
    weights = quote(model_glm(whole, data$b, weights = abs(y))),
    offset = quote(model_glm(whole, data$b, offset = y)),
    x = quote(model_groups(x, data$b, data$g)),
    x = quote(model_classes(x, data$class)),
    x = quote(model_gaussian(x, diag(2))),
    x = quote(model_network(x, data$y)),
    y = quote(model_network(whole, y)),
    x = quote(model_ica(cbind(x[, 2], data$y))),
    x = quote(tall_ica(cbind(x[, 2], data$y))),
    rating = quote(model_pmf(data$user, data$item, y, rank = 2)),
    x = quote(tall_store(x, withr::local_tempfile(fileext = ".tall")))
  )
  for (k in seq_along(calls)) {
    e <- expect_error(eval(calls[[k]]), class = "tall_error_input")
    expect_identical(e$argument, names(calls)[[k]])
    expect_match(conditionMessage(e), "be between -1e+60 and 1e+60",
      fixed = TRUE)
    expect_match(conditionMessage(e), "(row|value) 7")
  }
})

test_that("rows of sources and of new data are looked at likewise", {
  data <- with_value("x", 1e308)
  blocks <- function(data) {
    tall_stream(function() {
      at <- 0
      function() {
        at <<- at + 1
        if (at <= 2) data[(at - 1) * 30 + 1:30, ]
      }
    })
  }
  expect_too_large(tall_glm(y ~ x, blocks(data)), "x", 1e308)
  data <- with_value("y", 1e200)
  expect_too_large(tall_glm(y ~ a, blocks(data)), "y", 1e200)
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  rows <- with_value("x", 1e200)
  DBI::dbWriteTable(con, "rows", rows[c("x", "y", "a", "b")])
  table <- dplyr::tbl(con, "rows")
  expect_error(tall_glm(y ~ x, table), "1e\\+60", class = "tall_error")
  expect_error(
    tall_glm(b ~ x, table, binomial()),
    "1e\\+60",
    class = "tall_error"
  )
})

test_that("what is as large as data may be makes a fit", {
  data <- with_value("x", 1e60)
  for (family in list(gaussian(), binomial())) {
    fit <- suppressWarnings(tall_glm(b ~ x, data, family, iter = 20, seed = 1))
    expect_true(all(is.finite(as.matrix(fit))))
  }
})

test_that("sums that overflow are an error in words", {
  model <- model_glm(cbind(a = c(1, 2, 4)), c(1, 3, 2), "gaussian")
  found <- list(mean = c(1, 1), sums = diag(c(1, Inf)), weight = 3)
  e <- expect_error(
    check_sums(found, model),
    "the response are too large",
    class = "tall_error_nonfinite"
  )
  found$sums[1, 1] <- NaN
  expect_error(check_sums(found, model), "Values of a")
})

test_that("a number is told with the digits that are wrong", {
  expect_error(check_count(50 + 1e-10, arg = "iter"), "50.0000000001",
    fixed = TRUE)
  expect_error(check_count(2 + 1e-15, arg = "iter"), "2.0000000000000009",
    fixed = TRUE)
  data <- data.frame(n = c(2 + 1e-9, 1, 4), x = c(1, 3, 2))
  expect_error(
    tall_glm(n ~ x, data, poisson()),
    "`n` must be a count for family \"poisson\", but value 1 is 2.000000001.",
    fixed = TRUE
  )
  # others as short as ever
  expect_identical(format_exactly(pi), "3.141593")
  expect_identical(format_exactly(0.1), "0.1")
  expect_identical(format_exactly(NA), "NA")
  expect_identical(format_exactly(1e308), "1e+308")
})

options(before)
