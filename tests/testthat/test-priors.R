columns <- c("(Intercept)", "age", "sex")

test_that("priors print in two to four lines", {
  expect_snapshot({
    prior_normal()
    prior_normal(0, c(10, 1, 1))
    prior_laplace(1, 0.5, autoscale = TRUE)
    prior_normal(0, 1:8)
    prior_flat()
  })
})

test_that("one value serves every coefficient", {
  out <- prior_resolve(prior_normal(1, 2), names = columns)
  expect_identical(out$kind, c(1L, 1L, 1L))
  expect_identical(out$location, c(1, 1, 1))
  expect_identical(out$scale, c(2, 2, 2))
})

test_that("columns need no names", {
  out <- prior_resolve(prior_laplace(0, 1:2), n_dim = 2)
  expect_identical(out$kind, c(2L, 2L))
  expect_identical(out$scale, c(1, 2))
})

test_that("prior_intercept takes its column from prior, wherever it is", {
  names <- c("age", "(Intercept)", "sex")
  out <- prior_resolve(prior_laplace(0, 1:2), prior_normal(5, 10), names)
  expect_identical(out$kind, c(2L, 1L, 2L))
  expect_identical(out$location, c(0, 5, 0))
  expect_identical(out$scale, c(1, 10, 2))

  out <- prior_resolve(prior_flat(), prior_normal(), c("a", "b"))
  expect_identical(out$kind, c(0L, 0L))
})

test_that("autoscale divides by the sd of the column, and only then", {
  sds <- c(0, 2, 4)
  out <- prior_resolve(prior_normal(), names = columns, column_sd = sds)
  expect_identical(out$scale, c(2.5, 2.5, 2.5))

  prior <- prior_normal(0, 2.5, autoscale = TRUE)
  out <- prior_resolve(prior, names = columns, column_sd = sds)
  expect_identical(out$scale, 2.5 / c(1, 2, 4))

  out <- prior_resolve(
    prior,
    names = columns,
    column_sd = function() sds,
    response_sd = 3
  )
  expect_identical(out$scale, 2.5 * 3 / c(1, 2, 4))
})

test_that("the standard deviations are computed only if they are needed", {
  unwanted <- function() stop("not needed")
  expect_silent(
    prior_resolve(prior_normal(), names = columns, column_sd = unwanted)
  )
})

test_that("a prior is refused in words", {
  expect_snapshot(prior_normal(scale = 0), error = TRUE, cnd_class = TRUE)
  expect_snapshot(prior_normal(scale = c(1, -1)), error = TRUE)
  expect_snapshot(prior_laplace(location = NA), error = TRUE)
  expect_snapshot(prior_laplace(location = "a"), error = TRUE)
  expect_snapshot(prior_normal(1:3, 1:2), error = TRUE)
  expect_snapshot(prior_normal(autoscale = "yes"), error = TRUE)
})

test_that("a prior that does not fit is refused in words", {
  model <- function(prior, prior_intercept = NULL) {
    prior_resolve(prior, prior_intercept, columns)
  }
  expect_snapshot(model(prior_normal(0, 1:2)), error = TRUE)
  expect_snapshot(model(prior_normal(0, 1:3), prior_flat()), error = TRUE)
  expect_snapshot(model(prior_flat(), prior_normal(0, 1:2)), error = TRUE)
  expect_snapshot(model("normal"), error = TRUE)
  expect_snapshot(model(prior_normal), error = TRUE)
  expect_snapshot(model(prior_flat(), 1), error = TRUE)
})
