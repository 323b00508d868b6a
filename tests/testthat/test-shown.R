# What prints and pictures say of how much they show, and within which width.

fit_of_many <- function() {
  withr::local_seed(1)
  d <- data.frame(u = rnorm(3000), g = rep(1:60, 50))
  d$y <- d$u + rnorm(3000)
  list(
    data = d,
    fit = tall_glm(y ~ u, d, seed = 1, refresh = 0, iter = 200)
  )
}
many <- fit_of_many()

test_that("print() and summary() stay within the width", {
  withr::local_seed(2)
  grouped <- tall_glmer(
    y ~ u + (1 | g), many$data,
    seed = 1, refresh = 0, iter = 100
  )
  for (width in c(60, 80, 120)) {
    withr::local_options(width = width)
    lines <- capture.output(
      print(many$fit), print(summary(many$fit)),
      print(grouped), print(summary(grouped))
    )
    expect_lte(max(nchar(lines)), width)
  }
})

test_that("waic() of a subsample is that of all, to its standard error", {
  skip_if_not_installed("loo")
  all <- loo::waic(many$fit, observations = NULL)
  some <- lapply(1:5, function(seed) loo::waic(many$fit, seed = seed))
  z <- vapply(some, function(one) {
    away <- one$estimates[, "Estimate"] - all$estimates[, "Estimate"]
    away[["elpd_waic"]] / one$estimates["elpd_waic", "subsampling SE"]
  }, 0)
  expect_lt(max(abs(z)), 4)
  expect_gt(max(abs(z)), 0.01)
  expect_identical(loo::waic(many$fit), loo::waic(many$fit, seed = 1))
  expect_output(print(some[[1]]), "400 subsampled observations of 3,000")
  expect_error(
    loo::loo_compare(some[[1]], some[[2]]),
    class = "tall_error_unsupported"
  )
  expect_error(
    loo::waic(many$fit, observations = 0),
    class = "tall_error_input"
  )
})

test_that("loo() of a multilevel fit is of groups", {
  skip_if_not_installed("loo")
  fit <- tall_glmer(
    y ~ u + (1 | g), many$data,
    seed = 1, refresh = 0, iter = 200
  )
  expect_output(
    print(suppressWarnings(loo::loo(fit))),
    "Of 60 groups, each left out whole, not of 3,000 observations"
  )
  expect_false(any(grepl("group", capture.output(
    print(suppressWarnings(loo::loo(many$fit)))
  ))))
})

test_that("pp_check() says how many observations it shows", {
  skip_if_not_installed("bayesplot")
  some <- bayesplot::pp_check(many$fit, observations = 100, seed = 1)
  expect_identical(some$labels$caption, "100 of 3,000 observations shown")
  expect_null(bayesplot::pp_check(many$fit, seed = 1)$labels$caption)
})

test_that("sg_sample() takes what was tuned, and one rung is told", {
  withr::local_seed(3)
  model <- model_gaussian(matrix(rnorm(400), 200), covariance = diag(2))
  tuned <- sg_tune(
    model, kernel_sgld,
    list(step_size = c(1e-4, 1e-3), size = c(10, 50)),
    budget = 1e5, seed = 1, refresh = 0
  )
  expect_output(print(tuned), "one rung only, of 4 arms")
  run <- function(...) {
    sg_sample(model, ..., iter = 20, seed = 1, refresh = 0)
  }
  whole <- run(tuned)
  parts <- run(tuned$kernel, tuned$gradient, tuned$subsample, tuned$schedule)
  expect_identical(whole$draws, parts$draws)
  other <- run(tuned, subsample = subsample_uniform(20))
  expect_identical(other$subsample$args$size, 20)
})

test_that("bias_check() names chains that do not agree first", {
  withr::local_seed(4)
  model <- model_gaussian(matrix(rnorm(400), 200), covariance = diag(2))
  apart <- matrix(c(-3, 0, 3, 0, 0, 3, 1, 1), 2)
  fit <- sg_sample(
    model, kernel_sgld(1e-6), init = apart,
    iter = 200, seed = 1, refresh = 0
  )
  said <- capture.output(print(bias_check(fit, seed = 2, refresh = 0)))
  expect_match(said[[1]], "chains of the fit do not agree: R-hat")
  kernel <- kernel_sgld(5e-3)
  fine <- sg_sample(model, kernel, iter = 2000, seed = 1, refresh = 0)
  said <- capture.output(print(bias_check(fine, seed = 2, refresh = 0)))
  expect_match(said[[1]], "^Bias of the fit")
})

test_that("what takes long is told before it starts, refresh = 0 or not", {
  d <- many$data
  x <- cbind("(Intercept)" = 1, u = d$u)
  model <- model_groups(x, as.double(d$y > 0), d$g, x, family = "bernoulli")
  plan <- list(model = model, steps = 10, recipe = list(nodes = 9))
  control <- list(chains = 4, cores = 1, refresh = 0, warmup = 0, iter = 1e5)
  said <- function(control) {
    paste(capture_messages(tell_slow_groups(plan, control)), collapse = "")
  }
  expect_match(said(control), "This will take about .* of one core")
  expect_match(gsub("\\s+", " ", said(control)), "more `cores`, up to 4")
  expect_match(gsub("\\s+", " ", said(control)), "looks at all 60 groups at 81")
  control$iter <- 100
  expect_identical(said(control), "")
})
