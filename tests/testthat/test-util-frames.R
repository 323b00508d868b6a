# Which call an error names: the user's. Functions that stand for a user's lie
# in the global environment, as theirs do.

as_users <- function(f) {
  environment(f) <- globalenv()
  f
}

frame_model_of_rows <- function() {
  model_glm(cbind(1, mtcars$wt), mtcars$am, "binomial")
}

# The function that an error of `code` names.
blamed <- function(code) {
  e <- tryCatch(code, error = identity)
  expect_s3_class(e, "tall_error")
  deparse(e$call[[1]])
}

test_that("an argument that fails is told of the function that makes it", {
  model <- frame_model_of_rows()
  expect_identical(blamed(sg_sample(model, kernel_sgld(-1))), "kernel_sgld")
  own <- as_users(function(model, step) {
    tallbayes::sg_sample(model, tallbayes::kernel_sgld(step))
  })
  expect_match(blamed(own(model, -1)), "kernel_sgld")
  expect_identical(
    blamed(tall_glm(am ~ wt, mtcars, prior = prior_normal(0, -1))),
    "prior_normal"
  )
})

test_that("of public functions the one that the user called is told", {
  model <- frame_model_of_rows()
  expect_identical(blamed(sg_sample(model, "sgld")), "sg_sample")
  expect_identical(blamed(tall_glm(am ~ wt, mtcars, iter = -1)), "tall_glm")
  # tall_stream() and tall_source()'s functions are called by the front end
  broken <- tall_stream(function() stop("no rows"))
  expect_identical(blamed(tall_glm(am ~ wt, broken)), "tall_glm")
})

test_that("a method is told by its generic", {
  fit <- tall_glm(am ~ wt, mtcars, family = binomial(), seed = 1, refresh = 0)
  expect_match(blamed(predict(fit, type = "none")), "^predict")
  expect_match(blamed(vcov(fit, wrong = 1)), "^vcov")
  expect_match(blamed(posterior::sd(fit)), "sd$")
})

test_that("functions of R in between are passed through", {
  expect_identical(blamed(lapply(-1, kernel_sgld)), "FUN")
  expect_identical(blamed(do.call("kernel_sgld", list(-1))), "kernel_sgld")
  each <- as_users(function(steps) {
    lapply(steps, function(step) tallbayes::kernel_sgld(step))
  })
  expect_match(blamed(each(-1)), "kernel_sgld")
  expect_identical(
    blamed(tryCatch(kernel_sgld(-1), warning = identity)),
    "kernel_sgld"
  )
})

test_that("what a user's function calls is told, not what calls that", {
  monitor <- as_users(function(theta) tallbayes::kernel_sgld(-1))
  inner <- NULL
  noted <- function(theta) {
    inner <<- tryCatch(monitor(theta), error = identity)
    0
  }
  suppressWarnings(sg_sample(
    frame_model_of_rows(),
    kernel_mala(),
    iter = 4,
    chains = 1,
    monitor = list(every = 2, noted = noted),
    seed = 1,
    refresh = 0
  ))
  expect_match(deparse(inner$call[[1]]), "kernel_sgld")
})

test_that("where nothing public led to it, the nearest function is told", {
  checked <- as_users(function(x) tallbayes:::check_count(x))
  e <- expect_error(checked("a"), class = "tall_error_input")
  expect_identical(e$call, quote(checked("a")))
})

test_that("handlers and compiled code keep the way", {
  # a damaged fit is found out in a handler, where the error has no caller
  fit <- tall_glm(am ~ wt, mtcars, family = binomial(), seed = 1, refresh = 0)
  fit$draws <- "none"
  e <- expect_error(summary(fit), class = "tall_error_corrupt")
  expect_match(deparse(e$call[[1]]), "^summary")
})
