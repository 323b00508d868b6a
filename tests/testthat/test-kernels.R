test_that("kernels print what they are", {
  expect_snapshot({
    kernel_sgld(1e-4)
    kernel_sgld(c(0.1, 0.2), "corrected", "leimkuhler-matthews")
    kernel_mala(0.5, adapt = TRUE)
  })
})

test_that("one step size and equal ones are the same", {
  model <- example_model()
  run <- function(kernel) {
    sg_sample(model, kernel, iter = 40, chains = 1, seed = 1, refresh = 0)
  }
  expect_identical(
    run(kernel_sgld(rep(1e-3, 3)))$draws,
    run(kernel_sgld(1e-3))$draws
  )
  slow <- run(kernel_sgld(c(1e-3, 1e-3, 1e-12)))
  expect_lt(diff(range(slow$draws[, , "b"])), 1e-3)
  expect_gt(diff(range(slow$draws[, , "a"])), 1e-3)
})

test_that("each option of a kernel changes the run", {
  model <- example_model()
  run <- function(...) {
    fit <- sg_sample(
      model,
      kernel_sgld(1e-3, ...),
      subsample = subsample_uniform(10),
      iter = 40,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    c(as.matrix(fit))
  }
  runs <- list(
    run(),
    run(integrator = "leimkuhler-matthews"),
    run(variant = "corrected"),
    run(variant = "corrected", noise_smoothing = 1)
  )
  for (i in 2:4) {
    for (j in seq_len(i - 1)) {
      expect_false(identical(runs[[i]], runs[[j]]))
    }
  }
})

test_that("step sizes are refused in words", {
  expect_snapshot(kernel_sgld(), error = TRUE, cnd_class = TRUE)
  expect_snapshot(kernel_sgld(-1), error = TRUE)
  expect_snapshot(kernel_sgld(0), error = TRUE)
  expect_snapshot(kernel_sgld(NaN), error = TRUE)
  expect_snapshot(kernel_sgld(c(1, -1)), error = TRUE)
  expect_snapshot(kernel_sgld(c(1, NaN)), error = TRUE)
  expect_snapshot(kernel_sgld("a"), error = TRUE)
  expect_snapshot(kernel_mala(-1), error = TRUE)
  expect_snapshot(kernel_mala(NaN), error = TRUE)
  expect_snapshot(kernel_mala(c(1, 2)), error = TRUE)
  model <- example_model()
  expect_snapshot(
    sg_sample(model, kernel_sgld(c(1, 2)), refresh = 0),
    error = TRUE
  )
})

test_that("unknown variants and integrators are refused in words", {
  expect_snapshot(kernel_sgld(1, variant = "corected"), error = TRUE)
  expect_snapshot(kernel_sgld(1, integrator = "rk4"), error = TRUE)
  expect_snapshot(kernel_mala(1, adapt = 2), error = TRUE)
  expect_snapshot(
    kernel_sgld(1, "corrected", noise_smoothing = 2),
    error = TRUE
  )
})

test_that("kernels that need a variance refuse estimators that report none", {
  # of today's members there is none
  expect_snapshot(
    check_noise(
      example_model(),
      kernel_sgld(1e-3, "corrected"),
      gradient_simple(),
      subsample_uniform(10),
      info = list(has_variance = FALSE)
    ),
    error = TRUE,
    cnd_class = TRUE
  )
})

test_that("kernels that need a variance refuse minibatches of one row", {
  model <- example_model()
  run <- function(kernel, subsample, gradient = NULL) {
    sg_sample(
      model,
      kernel,
      gradient,
      subsample,
      iter = 4,
      seed = 1,
      refresh = 0
    )
  }
  one <- subsample_uniform(1)
  expect_snapshot(
    run(kernel_sgld(1e-3, "corrected"), one),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(run(kernel_sgbd(0.1, adaptive = TRUE), one), error = TRUE)
  for (kernel in list(
    kernel_sgld(1e-3, "corrected"),
    kernel_sgld(1e-3, "modified"),
    kernel_sgbd(0.1, "corrected"),
    kernel_sgbd(0.1, adaptive = TRUE)
  )) {
    for (subsample in list(
      one,
      subsample_weighted(0.001),
      subsample_adaptive(1, max_size = 1),
      subsample_optimal(1)
    )) {
      gradients <- list(gradient_cv(), gradient_saga(), gradient_svrg(10))
      adapts <- inherits(subsample, "tall_subsample_adaptive")
      for (gradient in gradients[if (adapts) 1 else 1:3]) {
        expect_error(
          run(kernel, subsample, gradient),
          class = "tall_error_unsupported"
        )
      }
    }
  }
  expect_s3_class(run(kernel_sgld(1e-3), one), "tall_fit")
  expect_s3_class(run(kernel_sgbd(0.1, "extreme"), one), "tall_fit")
  expect_s3_class(
    run(kernel_sgld(1e-3, "corrected"), NULL, gradient_full()),
    "tall_fit"
  )
  expect_s3_class(
    run(kernel_sgld(1e-3, "corrected"), subsample_uniform(2)),
    "tall_fit"
  )
})

test_that("what a kernel asks of a run comes from its table, options counted", {
  kernels <- list(
    kernel_sgld(0.1),
    kernel_sgld(c(0.1, 0.2, 0.3), variant = "corrected"),
    kernel_sgbd(c(0.1, 0.2), adaptive = TRUE),
    kernel_sghmc(0.1, noise_estimate = "minibatch"),
    kernel_baoab(0.1),
    kernel_mala(0.1),
    kernel_mala(0.1, ratio = "minibatch"),
    kernel_hmc(0.1, 3),
    kernel_adam_mcmc(0.1, 0.1),
    kernel_adam_mcmc(0.1, 0.1, exact = TRUE, momentum_sd = 1)
  )
  asks <- function(what) vapply(kernels, function(k) kernel_info(k)[[what]], NA)
  expect_identical(which(asks("uses_variance")), 2:4)
  expect_identical(which(asks("has_tolerance")), 1:4)
  expect_identical(which(asks("is_metropolis")), 6:10)
  expect_identical(which(!asks("takes_schedule")), 6:10)
  expect_identical(which(asks("uses_loss")), 7L)
  expect_identical(which(asks("needs_full_gradient")), c(8L, 10L))
})
