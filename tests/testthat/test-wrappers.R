# Front ends called by functions of users: what they hand on means what it means
# where it was written, and the call of a fit can be evaluated elsewhere.

# of this file alone: others run in the same process
before <- options(tallbayes.refresh = 0)

wrapped_data <- function(n = 60) {
  withr::with_seed(1, {
    d <- data.frame(g = rep(1:6, n / 6), x = rnorm(n), w = 1 + runif(n))
    d$z <- d$x + rnorm(n)
    d$y <- as.numeric(d$z > 0)
    d
  })
}

test_that("what `...` hands on is evaluated in the data", {
  d <- wrapped_data()
  inner <- function(data, ...) tall_glm(z ~ x, data, ..., seed = 1)
  outer <- function(...) inner(...)
  for (f in list(inner, outer)) {
    direct <- tall_glm(z ~ x, d, weights = w, subset = g < 5, seed = 1)
    fit <- f(d, weights = w, subset = g < 5)
    expect_identical(fit$draws, direct$draws)
    expect_identical(fit$call$weights, quote(w))
    expect_identical(fit$call$subset, quote(g < 5))
  }
  # rows that are passed over
  d <- wrapped_data(66000)
  direct <- tall_glm(z ~ x, d, weights = w, subset = g < 5, seed = 1)
  fit <- outer(d, weights = w, subset = g < 5)
  expect_identical(fit$draws, direct$draws)
})

test_that("variables are those of the function where they were written", {
  d <- wrapped_data()
  half <- function(...) {
    most <- 99
    tall_glm(z ~ x, d, ..., seed = 1)
  }
  caller <- function() {
    most <- 3
    half(subset = g <= most)
  }
  expect_equal(nobs(caller()), sum(d$g <= 3))
  # neither in the data nor where the formula was written
  of_rows <- function(formula, rows) {
    tall_glm(formula, d, subset = rows, weights = rows + 1, seed = 1)
  }
  fit <- of_rows(z ~ x, d$g > 2)
  expect_equal(nobs(fit), sum(d$g > 2))
  # a column comes first
  w <- rep(100, 60)
  expect_identical(
    tall_glm(z ~ x, d, weights = w, seed = 1)$draws,
    tall_glm(z ~ x, d, weights = d$w, seed = 1)$draws
  )
})

test_that("update() evaluates the calls that wrappers made", {
  d <- wrapped_data()
  wrapper <- function(...) tall_glm(y ~ x, d, ..., iter = 300, seed = 1)
  fit <- wrapper(binomial(), prior_normal(0, 1))
  expect_identical(fit$call$family, quote(binomial()))
  expect_identical(update(fit)$draws, fit$draws)
  grouped <- function(...) {
    tall_glmer(y ~ x + (1 | g), d, ..., iter = 300, seed = 1)
  }
  fit <- grouped(family = binomial())
  expect_identical(update(fit)$draws, fit$draws)
  # variables of the function that made the fit
  local_fit <- function() {
    own <- d
    twice <- 2 * own$w
    tall_glm(z ~ x, own, weights = twice, seed = 1)
  }
  fit <- local_fit()
  expect_identical(update(fit)$draws, fit$draws)
  expect_identical(formula(update(fit, . ~ 1)), z ~ 1, ignore_attr = TRUE)
  of_formula <- function(this, data) tall_glm(this, data = data, seed = 1)
  fit <- of_formula(z ~ x, d)
  expect_error(update(fit), "data = data", class = "tall_error_stale")
  expect_identical(update(fit, data = d)$draws, fit$draws)
})

test_that("the front end has its own name in the call", {
  d <- wrapped_data()
  fits <- lapply(list(z ~ x), tall_glm, data = d, seed = 1)
  expect_identical(fits[[1]]$call[[1]], quote(tall_glm))
  expect_identical(update(fits[[1]])$draws, fits[[1]]$draws)
  fit <- do.call(tall_glm, list(z ~ x, quote(d), seed = 1))
  expect_identical(fit$call[[1]], quote(tall_glm))
  fit <- tallbayes::tall_glm(z ~ x, d, seed = 1)
  expect_identical(fit$call[[1]], quote(tallbayes::tall_glm))
})

test_that("an argument of the caller that does not exist is named", {
  d <- wrapped_data()
  wrapper <- function(data, given) tall_glm(z ~ x, data, weights = given)
  expect_warning(
    expect_error(
      wrapper(d, nowhere),
      "`weights` cannot be evaluated: `given`",
      class = "tall_error_input"
    ),
    NA
  )
})

options(before)

test_that("names that are bound inside an argument stay what they are", {
  v <- 3
  fit_of <- function(formula, v) {
    tall_glm(
      formula,
      data = mtcars,
      weights = vapply(cyl, function(v) v / 2, 0),
      seed = 1,
      refresh = 0
    )
  }
  weighted <- stats::lm(mpg ~ wt, mtcars, weights = cyl)
  expect_lt(max(abs(coef(fit_of(mpg ~ wt, 100)) - coef(weighted))), 0.1)
  # parts of something, arguments that are not there
  k <- 99
  part_of <- function(formula, e, k, ...) {
    tall_glm(formula, mtcars, weights = e$k, ..., seed = 1, refresh = 0)
  }
  fit <- part_of(mpg ~ wt, list(k = mtcars$cyl), 5)
  expect_lt(max(abs(coef(fit) - coef(weighted))), 0.1)
  handed <- function(...) tall_glm(mpg ~ wt, mtcars, ..., refresh = 0)
  expect_s3_class(eval(str2lang("handed(weights = )")), "tall_glm")
  # values of the fit's own rows are not those of new ones
  off <- function(formula, off) {
    tall_glm(formula, data = mtcars, offset = off, seed = 1, refresh = 0)
  }
  fit <- off(mpg ~ wt, mtcars$cyl)
  error <- expect_error(
    predict(fit, mtcars[32:1, ]),
    "must be given",
    class = "tall_error_input"
  )
  expect_lt(nchar(conditionMessage(error)), 200)
})
