test_that("schedules print what they are", {
  expect_snapshot({
    schedule_constant()
    schedule_decay(a = 10, b = 1000, gamma = 0.33)
  })
})

test_that("a schedule of ones is the constant one", {
  # gamma next to 0: (1 + t)^-gamma is 1
  decayed <- quick_fit(schedule = schedule_decay(1, 1, 1e-300))
  constant <- quick_fit()
  expect_identical(
    unname(as.matrix(decayed)),
    unname(as.matrix(constant))
  )
})

test_that("draws of a decaying schedule carry its factors as weights", {
  fit <- quick_fit(schedule = schedule_decay(2, 5, 0.5), thin = 3)
  steps <- 30 + 3 * (1:10) - 1
  factors <- rep(2 * (5 + steps)^-0.5, 2)
  expect_equal(as.numeric(fit$weights), factors)
  expect_equal(
    weights(fit$draws),
    factors / sum(factors)
  )
  means <- colSums(as.matrix(fit) * factors) / sum(factors)
  expect_equal(coef(fit), means)
  expect_equal(summary(fit)$table$mean, unname(means))
  expect_equal(unname(diag(vcov(fit)))[1], {
    w <- factors / sum(factors)
    v <- as.matrix(fit)[, 1]
    sum(w * (v - sum(w * v))^2) / (1 - sum(w^2))
  })
})

test_that("schedules are refused in words", {
  expect_snapshot(schedule_decay(-1), error = TRUE, cnd_class = TRUE)
  expect_snapshot(schedule_decay(1, 0), error = TRUE)
  expect_snapshot(schedule_decay(1, 1, 2), error = TRUE)
  expect_snapshot(schedule_decay(1, 1, NaN), error = TRUE)
})

test_that("a run that explores all the time is refused", {
  schedule <- schedule_cyclical(100, exploration = 0.9)
  run <- function(iter, ...) {
    quick_fit(schedule = schedule, iter = iter, warmup = 0, ..., chains = 1)
  }
  expect_snapshot(run(20), error = TRUE, cnd_class = TRUE)
  expect_error(run(91, thin = 2), class = "tall_error_input")
  expect_length(run(92, thin = 2)$draws[, , 1], 1)
  expect_error(schedule_cyclical(), "`length` must be given")
})
