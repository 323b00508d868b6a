test_that("a run that goes on is the run that never stopped", {
  model <- example_model()
  whole <- quick_fit(model, iter = 120, warmup = 30)
  parts <- sg_resume(quick_fit(model, warmup = 30), 60, refresh = 0)
  expect_identical(parts$draws, whole$draws)
  thrice <- sg_resume(quick_fit(model, warmup = 30), 25, refresh = 0)
  thrice <- sg_resume(thrice, 35, cores = 2, refresh = 0)
  expect_identical(thrice$draws, whole$draws)
})

test_that("all of a fit grows when it goes on", {
  model <- example_model()
  keep <- c("draws", "gradients")
  whole <- quick_fit(model, iter = 120, warmup = 30, thin = 4, keep = keep)
  parts <- quick_fit(model, iter = 75, warmup = 30, thin = 4, keep = keep)
  parts <- sg_resume(parts, 45, refresh = 0)
  expect_identical(parts$draws, whole$draws)
  expect_identical(parts$gradients, whole$gradients)
  expect_identical(parts$sizes, whole$sizes)
  expect_identical(parts$chains$draws, whole$chains$draws)
  expect_equal(parts$chains$passes, whole$chains$passes)
  # the reference of the control variates is made again
  again <- c(mode = 0, weights = 1, reference = 1, recipe = 0)
  expect_equal(parts$preparation - whole$preparation, again)
  none <- quick_fit(model, iter = 75, warmup = 30, keep = "none")
  none <- sg_resume(none, 45, refresh = 0)
  expect_equal(coef(none), coef(quick_fit(model, iter = 120, warmup = 30)))
})

test_that("a decaying schedule and a Metropolis kernel go on as well", {
  model <- example_model()
  decay <- schedule_decay(1, 10, 0.5)
  whole <- quick_fit(model, iter = 90, warmup = 30, schedule = decay)
  parts <- quick_fit(model, warmup = 30, schedule = decay)
  parts <- sg_resume(parts, 30, refresh = 0)
  expect_identical(parts$draws, whole$draws)
  run <- function(iter) {
    sg_sample(
      model,
      kernel_mala(0.02, adapt = TRUE),
      iter = iter,
      warmup = 40,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  expect_identical(sg_resume(run(60), 40, refresh = 0)$draws, run(100)$draws)
})

test_that("the recipe's runs go on", {
  model <- example_model()
  run <- function(iter) {
    sg_sample(
      model,
      iter = iter,
      warmup = 20,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  expect_identical(sg_resume(run(40), 30, refresh = 0)$draws, run(70)$draws)
})

test_that("a fit read from a file prints, summarises and predicts", {
  fit <- quick_glm(iter = 40, chains = 2)
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(fit, file)
  read <- readRDS(file)
  expect_identical(capture.output(print(read)), capture.output(print(fit)))
  expect_identical(summary(read)$table, summary(fit)$table)
  expect_identical(predict(read), predict(fit))
  expect_identical(posterior::as_draws_df(read), posterior::as_draws_df(fit))
})

test_that("a fit read from a file goes on with its model, or with its data", {
  file <- withr::local_tempfile(fileext = ".rds")
  model <- example_model()
  whole <- quick_fit(model, iter = 90, warmup = 30)
  saveRDS(quick_fit(model, warmup = 30), file)
  expect_identical(
    sg_resume(readRDS(file), 30, model = example_model(), refresh = 0)$draws,
    whole$draws
  )
  run <- function(iter, ...) {
    quick_glm(y ~ a + g, iter = iter, warmup = 20, chains = 2, ...)
  }
  saveRDS(run(40), file)
  expect_identical(
    sg_resume(readRDS(file), 20, refresh = 0)$draws,
    run(60)$draws
  )
  weighted <- function(iter) {
    tall_glm(
      count ~ a + offset(log(exposure)),
      example_data(),
      poisson(),
      weights = w,
      iter = iter,
      warmup = 20,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  saveRDS(weighted(40), file)
  expect_identical(
    sg_resume(readRDS(file), 20, refresh = 0)$draws,
    weighted(60)$draws
  )
})

test_that("a fit without its model says what it needs", {
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(quick_fit(), file)
  read <- readRDS(file)
  expect_snapshot(sg_resume(read, 10), error = TRUE, cnd_class = TRUE)
  saveRDS(quick_glm(iter = 20, keep_data = FALSE), file)
  without_data <- readRDS(file)
  expect_snapshot(sg_resume(without_data, 10), error = TRUE)
})

test_that("another model is refused in words", {
  fit <- quick_fit()
  expect_snapshot(
    sg_resume(fit, 10, model = example_model("poisson")),
    error = TRUE,
    cnd_class = TRUE
  )
  smaller <- example_model(data = example_data(100))
  expect_snapshot(sg_resume(fit, 10, model = smaller), error = TRUE)
  expect_snapshot(sg_resume(fit, 10, model = 1), error = TRUE)
})

test_that("bad arguments are refused in words", {
  fit <- quick_fit()
  expect_snapshot(sg_resume(1), error = TRUE)
  expect_snapshot(sg_resume(), error = TRUE)
  expect_snapshot(sg_resume(fit), error = TRUE)
  expect_snapshot(sg_resume(fit, 0), error = TRUE)
  expect_snapshot(sg_resume(fit, 10, cores = 0), error = TRUE)
})

test_that("arrays bind along iterations", {
  a <- array(1:12, c(2, 2, 3), list(NULL, NULL, letters[1:3]))
  b <- array(101:118, c(3, 2, 3), list(NULL, NULL, letters[1:3]))
  both <- bind_arrays(a, b)
  expect_identical(dim(both), c(5L, 2L, 3L))
  expect_equal(both[1:2, , , drop = FALSE], a * 1)
  expect_equal(both[3:5, , , drop = FALSE], b * 1)
  expect_identical(bind_arrays(NULL, b), b)
})

test_that("moments of two stretches merge into those of both", {
  x <- withr::with_seed(1, matrix(rnorm(60), 20))
  moments <- function(rows) {
    part <- x[rows, , drop = FALSE]
    list(
      n = nrow(part),
      mean = colMeans(part),
      square = colSums(sweep(part, 2, colMeans(part))^2)
    )
  }
  both <- merge_moments(moments(1:7), moments(8:20))
  expect_equal(both[c("n", "mean", "square")], moments(1:20))
})

test_that("a run that goes on knows whether its last gradient was exact", {
  run <- function(iter) {
    sg_sample(
      example_model(),
      kernel_sgld(1e-3, variant = "corrected"),
      gradient_svrg(refresh = 2),
      subsample_uniform(5),
      iter = iter,
      warmup = 0,
      chains = 1,
      seed = 1,
      refresh = 0
    )
  }
  whole <- as.matrix(run(20))
  # one of the two stops where SVRG saw all rows
  for (n in 10:11) {
    parts <- sg_resume(run(n), 20 - n, refresh = 0)
    expect_identical(as.matrix(parts), whole)
  }
})
