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
    iter = 6,
    warmup = 0,
    refresh = 0
  )
  expect_true(all(is.na(agreement_table(decaying)$ess_bulk)))
  expect_output(print(summary(decaying)), "Time")
  none <- agreeing_fit(keep = "none", chains = 1)
  expect_null(agreement_table(none))
  expect_true(all(is.na(summary(none)$table$rhat)))
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

# Chains in two modes, which they do not leave.
two_modes <- function() {
  model_custom(
    log_lik = function(theta, batch) {
      log(stats::dnorm(theta$a, -5) + stats::dnorm(theta$a, 5)) + 0 * batch
    },
    log_prior = function(theta) 0,
    data = 1:10 / 10,
    init = list(a = 1),
    grad_log_lik = function(theta, batch) {
      matrix(-theta$a + 5 * tanh(5 * theta$a), length(batch))
    },
    grad_log_prior = function(theta) 0,
    check = FALSE
  )
}

test_that("chains in two modes are told without plain draws, too", {
  run <- function(..., init = matrix(c(-5, 5, -5, 5), 1)) {
    sg_sample(
      two_modes(),
      kernel_sgld(0.1),
      gradient_simple(),
      subsample_uniform(5),
      ...,
      iter = 1500,
      chains = 4,
      init = init,
      seed = 1,
      refresh = 0
    )
  }
  decaying <- list(schedule = schedule_decay())
  for (how in list(decaying, list(keep = "none"))) {
    apart <- do.call(run, how)
    together <- do.call(run, c(how, list(init = 5)))
    for (x in list(apart, summary(apart))) {
      expect_output(print(x), "do not agree: R-hat up to [0-9.]+ for a. Run")
    }
    expect_gt(summary(apart)$table$rhat, 5)
    expect_lt(summary(together)$table$rhat, 1.3)
  }
  # the last ones kept no draws
  expect_lt(summary(together)$table$rhat, 1.05)
  for (x in list(together, summary(together))) {
    expect_false(any(grepl("agree", capture.output(print(x)))))
  }
})

test_that("R-hat of moments and of weighted draws is that of the draws", {
  run <- function(...) {
    sg_sample(
      target_normal(c(1, 2)),
      kernel_sgld(0.3),
      ...,
      iter = 600,
      seed = 1,
      refresh = 0
    )
  }
  fit <- run()
  x <- unclass(fit$draws)
  means <- apply(x, 2:3, mean)
  n <- nrow(x)
  within <- colMeans(apply(x, 2:3, stats::var))
  by_hand <- sqrt((n - 1) / n + apply(means, 2, stats::var) / within)
  none <- summary(run(keep = "none"))$table
  expect_close(none$rhat, unname(by_hand), tolerance = 1e-10)
  # with equal weights, that of split chains
  equal <- fit
  equal$weights <- array(1, c(dim(x)[1:2], 1))
  split <- apply(x, 3, function(x) posterior::rhat_basic(x, split = TRUE))
  expect_close(unname(weighted_rhat(equal)), unname(split), tolerance = 1e-10)
})

test_that("moments leave out chains that stopped, as draws do", {
  fit <- agreeing_fit(keep = "none", chains = 3)
  stopped <- fit
  stopped$chains$status[[2]] <- "nonfinite"
  stopped$moments[[2]]$mean[] <- 1e6
  kept <- fit
  kept$moments <- fit$moments[c(1, 3)]
  kept$chains <- fit$chains[c(1, 3), ]
  expect_identical(
    summary(stopped)$table[c("mean", "sd", "rhat")],
    summary(kept)$table[c("mean", "sd", "rhat")]
  )
})

test_that("chains that never move are told so, and not to run longer", {
  run <- function(step_size, init, ...) {
    sg_sample(
      target_normal(c(1, 2)),
      kernel_mala(step_size, ...),
      iter = 40,
      chains = 3,
      init = init,
      seed = 1,
      refresh = 0
    )
  }
  # one start: no spread, no R-hat; three: all of both
  for (init in list(c(1, 1), diag(3)[1:2, ])) {
    stuck <- run(1e6, init)
    expect_identical(stuck$chains$acceptance, numeric(3))
    for (x in list(stuck, summary(stuck))) {
      out <- paste(capture.output(print(x)), collapse = "\n")
      expect_match(out, "no proposal of the chains was accepted", fixed = TRUE)
      expect_match(out, "smaller `step_size`, or `adapt = TRUE`", fixed = TRUE)
      expect_no_match(out, "Run longer")
    }
  }
  one <- stuck
  one$chains$acceptance <- c(0.6, 0.005, 0.7)
  said <- "hardly any proposal of 1 of 3 chains was accepted: it stands"
  expect_output(print(one), said, fixed = TRUE)
  fine <- capture.output(print(run(0.5, c(1, 1))))
  expect_no_match(paste(fine, collapse = "\n"), "accepted:")
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
