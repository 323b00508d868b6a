# The line about chains that do not agree, where fits are printed.

agreeing_fit <- function(...) {
  tall_glm(mpg ~ wt, mtcars, ..., iter = 1000, seed = 1, refresh = 0)
}

test_that("chains that do not agree are told", {
  fit <- agreeing_fit()
  note <- "do not agree|few effective draws"
  for (x in list(fit, summary(fit))) {
    expect_false(any(grepl(note, capture.output(print(x)))))
  }
  apart <- fit
  shift <- unclass(apart$draws)[, 1, "sigma"] + 5
  apart$draws[, 1, "sigma"] <- shift
  rhat <- posterior::rhat(as.array(apart)[, , "sigma"])
  said <- paste("R-hat up to", format(rhat, digits = 3), "for sigma")
  expect_output(print(apart), said, fixed = TRUE)
  expect_output(print(summary(apart)), said, fixed = TRUE)

  # the same place, but few of them
  few <- fit
  few$draws[, , "wt"] <- unclass(fit$draws)[rep(1:25, each = 20), , "wt"]
  ess <- posterior::ess_bulk(as.array(few)[, , "wt"])
  expect_lt(ess, 400)
  said <- paste("few effective draws,", floor(ess), "for wt")
  expect_output(print(few), said, fixed = TRUE)
  expect_output(print(summary(few)), said, fixed = TRUE)
})

test_that("what has no R-hat is left alone", {
  fit <- agreeing_fit()
  constant <- fit
  constant$draws[, , "wt"] <- 1
  expect_output(print(constant), "Time")
  expect_false(any(grepl("agree", capture.output(print(constant)))))
  short <- tall_glm(mpg ~ wt, mtcars, iter = 4, warmup = 2, refresh = 0)
  expect_null(agreement_table(short))
  expect_output(print(summary(short)), "Time")
  decaying <- sg_sample(
    target_normal(c(1, 2)),
    kernel_sgld(0.1),
    schedule = schedule_decay(),
    iter = 20,
    refresh = 0
  )
  expect_null(agreement_table(decaying))
  expect_output(print(summary(decaying)), "Time")
  none <- agreeing_fit(keep = "none")
  expect_null(agreement_table(none))
  # of many variables some, the last among them
  many <- fit
  many$draws <- posterior::as_draws_array(
    array(0, c(5, 2, 300), list(NULL, NULL, paste0("v", 1:300)))
  )
  many$variables <- paste0("v", 1:300)
  table <- agreement_table(many)
  expect_identical(nrow(table), 50L)
  expect_identical(table$variable[c(1, 50)], c("v1", "v300"))
})

test_that("networks whose chains predict differently say so", {
  data <- data.frame(x = seq(-2, 2, length.out = 60))
  data$y <- sin(2 * data$x) + rep(c(-0.1, 0.1), 30)
  fit <- tall_nn(
    y ~ x,
    data,
    hidden = 3,
    train_iter = 100,
    iter = 60,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  fit$checked$rhat <- c(rep(1.01, 45), rep(1.5, 14), 1.554)
  for (x in list(fit, summary(fit))) {
    expect_output(print(x), "predict differently at 25% .* R-hat up to 1.55")
  }
  fit$checked$rhat <- c(rep(1.01, 58), 1.06, 1.06)
  for (x in list(fit, summary(fit))) {
    expect_false(any(grepl("differently", capture.output(print(x)))))
  }
})
