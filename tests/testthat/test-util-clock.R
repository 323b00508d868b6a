# The time of a fit is that of its whole call.

# A clock that goes on at every look.
local_clock <- function(env = parent.frame()) {
  at <- new.env()
  at$n <- 0
  local_fault("clock", function() {
    at$n <- at$n + 1
    list(elapsed = 100 * at$n, cpu = at$n)
  }, env)
  at
}

test_that("fits of every way in have the time of the whole call", {
  rows <- withr::with_seed(1, {
    data.frame(x = rnorm(300), g = rep(1:30, 10), y = rbinom(300, 1, 0.5))
  })
  x <- cbind("(Intercept)" = 1, x = rows$x)
  calls <- alist(
    tall_glm(y ~ x, rows, binomial(), iter = 50, seed = 1),
    tall_glm(x ~ y, rows, iter = 50, seed = 1),
    tall_glm.fit(x, rows$y, binomial(), iter = 50, seed = 1),
    tall_glmer(y ~ x + (1 | g), rows, binomial(), iter = 50, seed = 1),
    tall_polr(ordered(y + (x > 1)) ~ x, rows, iter = 50, seed = 1),
    tall_nn(y ~ x, rows, hidden = 2, iter = 20, train_iter = 5, seed = 1),
    sg_sample(model_glm(x, rows$y), iter = 50, seed = 1)
  )
  at <- local_clock()
  for (call in calls) {
    at$n <- 0
    fit <- suppressWarnings(eval(call))
    # began at the first look, and ended at the last
    expect_equal(sum(fit$time), 100 * (at$n - 1))
    expect_equal(fit$cpu, at$n - 1)
    expect_gt(fit$time[["preparation"]], 0)
    before <- fit
    at$n <- 0
    more <- suppressWarnings(sg_resume(fit, 10, refresh = 0))
    expect_equal(sum(more$time), sum(before$time) + 100 * (at$n - 1))
    expect_equal(more$cpu, before$cpu + at$n - 1)
  }
})

test_that("processors stand beside the clock where a fit is printed", {
  fit <- tall_glm(mpg ~ wt, mtcars, iter = 50, seed = 1, refresh = 0)
  fit$time[] <- c(2, 3)
  fit$cpu <- 1.5
  line <- "Time: 5 s (preparation 2 s), CPU 1.5 s; "
  expect_match(capture.output(print(fit)), line, fixed = TRUE, all = FALSE)
  expect_match(capture.output(print(summary(fit))), line, fixed = TRUE,
    all = FALSE)
  # an earlier version did not tell
  fit$cpu <- NULL
  expect_match(capture.output(print(fit)), "Time: 5 s (preparation 2 s); ",
    fixed = TRUE, all = FALSE)
})
