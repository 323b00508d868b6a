# What is said of data that do not have what a formula asks for.

# of this file alone: others run in the same process
before <- options(tallbayes.refresh = 0)

column_data <- function() {
  data.frame(
    z = c(1.2, 0.3, 2.2, 1.9, 0.1, 1.4),
    x = c(1, 2, 3, 5, 4, 7),
    g = rep(1:3, 2),
    weight = 1
  )
}

no_column <- function(code, name, hint) {
  e <- expect_error(code, class = "tall_error_input")
  expect_match(
    conditionMessage(e),
    paste0("`data` has no column `", name, "`."),
    fixed = TRUE
  )
  expect_match(conditionMessage(e), hint, fixed = TRUE)
  expect_match(as.character(e$call[[1]]), "^tall_")
}

test_that("a misspelt column is named, with the one that may be meant", {
  d <- column_data()
  no_column(tall_glm(z ~ wieght, d), "wieght", "Did you mean `weight`?")
  no_column(tall_glm(zz ~ x, d), "zz", "Did you mean `z`?")
  no_column(tall_glm(z ~ x, d, weights = wgt), "wgt", "mean `weight`?")
  no_column(tall_glm(z ~ x, d, subset = log(q1) > 0), "q1", "`subset` uses it")
  no_column(tall_glm(z ~ x, d, offset = q1), "q1", "It has `z`")
  no_column(tall_glmer(z ~ x + (1 | gg), d), "gg", "Did you mean `g`?")
  no_column(tall_glmer(z ~ (1 + xx | g), d), "xx", "Did you mean `x`?")
  no_column(tall_multinom(z > 1 ~ xx, d), "xx", "Did you mean `x`?")
  no_column(tall_nn(z ~ xx, d), "xx", "Did you mean `x`?")
  stream <- tall_stream(function() {
    left <- list(d)
    function() {
      block <- left
      left <<- list()
      if (length(block) > 0) block[[1]]
    }
  })
  for (data in list(as_source(d), stream)) {
    no_column(tall_glm(z ~ xx, data), "xx", "Did you mean `x`?")
    no_column(tall_glm(zz ~ x, data), "zz", "Did you mean `z`?")
    no_column(tall_glm(z ~ x, data, weights = wgt), "wgt", "`weights` uses it.")
    no_column(tall_glmer(z ~ x + (1 | gg), data), "gg", "Did you mean `g`?")
  }
  # one that has the name of a function
  no_column(tall_glm(z ~ gamma, d), "gamma", "It has `z`")
  expect_error(tall_glm(zzz ~ x1), "no variable `zzz`", class = "tall_error")
  # another fault, in which functions are named
  expect_error(
    tall_glm(z ~ I(lapply(x, identity)), d),
    "do not make a model frame",
    class = "tall_error_input"
  )
})

test_that("a shard without the columns is told what they are", {
  d <- column_data()
  e <- expect_error(
    tall_glm(z ~ x, list(d, data.frame(Z = 1, x = 2))),
    class = "tall_error_source"
  )
  expect_match(conditionMessage(e), "no column `z`")
  expect_no_match(conditionMessage(e), "mean \"\"")
})

test_that("what is no data is said of `data`", {
  d <- column_data()
  fault <- function(code, what) {
    e <- expect_error(code, class = "tall_error_input")
    expect_identical(e$argument, "data")
    expect_match(as.character(e$call[[1]]), "^tall_")
    expect_match(conditionMessage(e), what)
  }
  fault(tall_glm(z ~ x, as.list(d)), "as.data.frame\\(data\\)")
  fault(tall_glmer(z ~ (1 | g), as.list(d)), "as.data.frame\\(data\\)")
  fault(tall_polr(z ~ x, as.list(d)), "as.data.frame\\(data\\)")
  three <- list(d, three = 3)
  fault(tall_glm(z ~ x, three), "Element 2 \\(`three`\\) is the number 3")
  fault(tall_glm(z ~ x, list()), "not a list of 0 elements")
  fault(tall_glm(z ~ x, "rows.xls"), "end in `.parquet`, or in `.csv`")
  fault(tall_glm(z ~ x, function() NULL), "tall_stream\\(\\)")
  expect_error(as_source(list(1)), "`x` must be", class = "tall_error_input")
})

test_that("a type that no design has is refused by name", {
  d <- column_data()
  d$cx <- complex(real = d$x, imaginary = 1)
  d$raw <- as.raw(1:6)
  refuse <- function(code, name) {
    e <- expect_error(code, class = "tall_error_input")
    expect_identical(e$argument, name)
  }
  refuse(tall_glm(z ~ cx, d), "cx")
  refuse(tall_glm(z ~ I(cx^2), d), "I(cx^2)")
  refuse(tall_glm(z ~ raw, d), "raw")
  refuse(tall_glmer(z ~ x + (1 + cx | g), d), "cx")
  refuse(tall_multinom(z > 1 ~ cx, d), "cx")
  refuse(tall_nn(z ~ cx, d), "cx")
  refuse(tall_glm(z ~ x, d, offset = cx), "offset")
  refuse(tall_glm(z ~ x + offset(cx), d), "offset(cx)")
})

test_that("faults of a source are those of the front end's call", {
  e <- expect_error(
    tall_glm(z ~ x, tall_stream(function() stop("no line"))),
    class = "tall_error_source"
  )
  expect_identical(e$call[[1]], quote(tall_glm))
  e <- expect_error(tall_store("rows.tall"), class = "tall_error_input")
  expect_match(
    conditionMessage(e),
    "tall_store(file = \"rows.tall\")",
    fixed = TRUE
  )
})

test_that("of two columns with one name neither is taken", {
  d <- column_data()
  twice <- cbind(d, x = 6:1)
  twice$b <- c(0, 1, 1, 0, 1, 0)
  refused <- function(code, name = "x", arg = "data") {
    e <- expect_error(code, class = "tall_error_input")
    expect_identical(e$argument, arg)
    expect_match(
      conditionMessage(e),
      paste0("`", arg, "` must have one column \"", name, "\", not 2"),
      fixed = TRUE
    )
  }
  stream <- tall_stream(function() {
    is_done <- FALSE
    function() {
      if (!is_done) {
        is_done <<- TRUE
        twice
      }
    }
  })
  refused(tall_glm(z ~ x, twice))
  refused(tall_glm(x ~ z, twice))
  refused(tall_glm(z ~ log(x), twice, storage = "float"))
  refused(tall_glm(z ~ g, cbind(d, weight = 1), weights = weight), "weight")
  refused(tall_glm(z ~ g, cbind(d, on = 1, on = 2), subset = on == 1), "on")
  refused(tall_glm(z ~ x, stream))
  refused(tall_glm(z ~ x, list(stream, stream)))
  refused(tall_glm(z ~ x, as_source(cbind(z = 1:6, x = 1, x = 2))))
  refused(tall_glmer(z ~ x + (1 | g), twice))
  refused(tall_glmer(z ~ weight + (x | g), twice))
  refused(tall_polr(factor(g) ~ x, twice))
  refused(tall_multinom(factor(g) ~ x, twice))
  refused(tall_nn(z ~ x, twice, hidden = 2))
  refused(tall_factorize(z ~ g + x, twice, rank = 2))
  words <- data.frame(doc = 1:2, word = 1:2, word = 1, count = 1,
    check.names = FALSE)
  refused(tall_topics(words, k = 2), "word", "dtm")
  # of new data
  few <- list(iter = 20, seed = 1)
  fit <- do.call(tall_glm, c(list(z ~ x, d), few))
  refused(predict(fit, twice), arg = "newdata")
  refused(log_lik(fit, newdata = twice), arg = "newdata")
  x <- cbind("(Intercept)" = 1, x = d$x)
  fit <- do.call(tall_glm.fit, c(list(x, d$z), few))
  refused(predict(fit, cbind(x, x = 1)), arg = "newdata")
  # what is not used does no harm
  ours <- do.call(tall_glm, c(list(z ~ g, twice), few))
  theirs <- do.call(tall_glm, c(list(z ~ g, d), few))
  expect_identical(as.matrix(ours), as.matrix(theirs))
  ours <- do.call(tall_glm, c(list(z ~ g, stream), few))
  expect_identical(posterior::ndraws(ours$draws), 40L)
  # a model's own matrix, whose columns get names of their own, predicts
  x <- cbind("(Intercept)" = 1, a = d$x, a = 6:1)
  fit <- do.call(tall_glm.fit, c(list(x, d$z), few))
  expect_identical(names(coef(fit))[1:3], c("(Intercept)", "a", "a.1"))
  expect_length(predict(fit, x), 6)
})

options(before)
