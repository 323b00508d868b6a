estimators <- conformance_gradients()
models <- enumeration_models()

test_that("every registered gradient estimator has an entry", {
  expect_covered("gradient", vapply(estimators, function(e) e$name, ""))
})

for (entry in estimators) {
  for (label in names(models)) {
    model <- models[[label]]
    says <- function(law) paste0(entry$name, ", ", label, ": ", law)

    if (!entry$uses_rows) {
      test_that(says("the estimate is the gradient, without noise"), {
        law_exact(entry, model)
      })
      next
    }
    if (label %in% entry$refuses) {
      test_that(says("refused in a sentence"), {
        at <- point_at(model)
        expect_error(
          estimate_once(model, entry$make(at), subsample_uniform(2), at),
          class = "tall_error_unsupported"
        )
      })
      next
    }
    all <- enumerations(model$n_data)
    if (keeps_state(entry)) {
      for (drawn in names(all)) {
        test_that(says(paste("unbiased given its table,", drawn)), {
          law_unbiased_given_state(entry, model, all[[drawn]])
        })
      }
      next
    }
    for (drawn in names(all)) {
      test_that(says(paste("unbiased, and so is its variance,", drawn)), {
        law_unbiased(entry, model, all[[drawn]])
      })
    }
    if (entry$has_reference) {
      test_that(says("at the reference point any minibatch is exact"), {
        law_centred(entry, model)
      })
    }
  }
}

test_that("estimate and variance are the formulas on the rows drawn", {
  model <- subsample_model()
  plain <- Filter(function(e) e$uses_rows && !keeps_state(e), estimators)
  for (entry in plain) {
    for (scheme in conformance_subsamples(model)) {
      if (!scheme$name %in% c("fixed", "optimal", "adaptive")) {
        law_drawn(entry, scheme, model)
      }
    }
  }
})

test_that("the reference point defaults to the mode", {
  model <- models$poisson
  mode <- find_mode(model)
  scheme <- subsample_uniform(2)
  theta <- c(0.5, 0.5)
  with <- function(gradient) {
    estimate_once(model, gradient, scheme, theta)$gradient
  }
  expect_identical(with(gradient_cv()), with(gradient_cv(mode)))
  expect_identical(with(gradient_cv()), with(gradient_cv(mode$estimate)))
  expect_false(identical(with(gradient_cv()), with(gradient_cv(c(0, 0)))))
})

# The stored scalars live in the model: a run must put its own back before
# every slice.
test_that("runs on one model with other reference points do not disturb", {
  build <- function() {
    entry_glm("bernoulli", prior = prior_normal(0, 1), n_data = 40)$model
  }
  sample_with <- function(model, at) {
    sg_sample(
      model,
      kernel_sgld(0.05),
      gradient_cv(at),
      subsample_uniform(4),
      iter = 100,
      warmup = 20,
      chains = 2,
      seed = 4,
      init = numeric(3),
      refresh = 0
    )
  }
  near <- c(0.1, 0, 0)
  far <- c(-1, 1, 2)
  alone <- sample_with(build(), near)
  other <- sample_with(build(), far)
  expect_false(identical(alone$draws, other$draws))

  # one after the other, and the first resumed after the second has run
  model <- build()
  first <- sample_with(model, near)
  expect_identical(sample_with(model, far)$draws, other$draws)
  expect_identical(first$draws, alone$draws)
  expect_identical(
    sg_resume(first, iter = 50, refresh = 0)$draws,
    sg_resume(alone, iter = 50, refresh = 0)$draws
  )

  # interleaved: the other run starts and ends between two slices of the first
  model <- build()
  inside <- NULL
  is_inside <- FALSE
  local_settings(slice_steps = function(...) {
    if (!is_inside) {
      is_inside <<- TRUE
      inside <<- sample_with(model, far)
      is_inside <<- FALSE
    }
    7
  })
  between <- sample_with(model, near)
  expect_identical(between$draws, alone$draws)
  expect_identical(inside$draws, other$draws)
})

test_that("SAGA and SVRG are their formulas on the rows drawn, along a path", {
  schemes <- list(
    subsample_uniform(1),
    subsample_uniform(4), # of 5 rows: duplicates nearly always
    subsample_uniform(2, replace = FALSE),
    subsample_uniform(5, replace = FALSE),
    subsample_weighted(4, c(1, 1, 2, 3, 20))
  )
  for (entry in Filter(keeps_state, estimators)) {
    labels <- c("bernoulli", "poisson", "sigma", "gaussian", "lda", "lda, even")
    for (label in labels) {
      for (scheme in schemes) {
        law_path(entry, models[[label]], scheme)
      }
    }
  }
})

test_that("a table made at a point is that of control variates there", {
  at <- c(0.4, -0.3)
  for (model in models[c("bernoulli", "sigma", "gaussian", "whitened")]) {
    init <- matrix(c(-0.6, 0.9))
    first <- function(gradient) {
      sampler <-
        new_sampler(kernel_sgld(0.1), gradient, subsample_uniform(3))
      plan <- new_plan(model, sampler)
      plan$init <- .Call(ffi_model_to_sampler, model$pointer, init)
      run_segment(plan, test_control(), new_stretch(0, 1))$buffers$draw
    }
    expect_close(first(gradient_saga(at)), first(gradient_cv(at)), "first step")
  }
})

test_that("A stays the sum of its table", {
  withr::local_seed(6)
  x <- matrix(stats::rnorm(80), 40)
  y <- rep(0:1, 20)
  model <- model_glm(x, y, family = "bernoulli", prior = prior_normal(0, 1))
  n <- 20000
  fit <- sg_sample(
    model,
    kernel_sgld(0.05),
    gradient_saga(),
    subsample_uniform(30),
    iter = n,
    warmup = 0,
    thin = n,
    chains = 1,
    seed = 2,
    init = c(3, -3),
    refresh = 0
  )
  # the estimator's state, A and the table, ends the saved bytes
  size <- 64 * ceiling(8 * (2 + 40) / 64)
  bytes <- fit$saved[[1]]
  state <- readBin(utils::tail(bytes, size), "double", 42)
  table <- state[-(1:2)]
  expect_equal(state[1:2], drop(crossprod(x, table)), tolerance = 1e-10)
  # residuals, at the few last positions: no row has been left behind
  expect_close(table, y - stats::plogis(drop(x %*% coef(fit))), "table", 0.5)
})

test_that("runs with SAGA and SVRG do not depend on how they are run", {
  for (entry in Filter(keeps_state, estimators)) {
    kernel <- conformance_kernels()[["sgld, vanilla euler"]]
    kernel$gradient <- entry$make(NULL)
    law_seed(kernel)
    law_cores(kernel)
    law_chains(kernel)
    law_slices(kernel)
    law_resume(kernel)
    law_interrupt(kernel)
  }
})

test_that("SAGA refuses tables above the memory limit", {
  model <- example_model()
  run <- function(gradient, model) {
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient,
      subsample_uniform(5),
      iter = 10,
      chains = 4,
      refresh = 0
    )
  }
  expect_snapshot(
    run(gradient_saga(memory_limit = 5000), model),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_error(
    run(gradient_saga(memory_limit = 9599), model),
    class = "tall_error_unsupported"
  )
  fit <- run(gradient_saga(memory_limit = 9600), model)
  expect_s3_class(fit, "tall_fit")
  rows <- entry_gaussian(n_data = 50)$model
  expect_snapshot(run(gradient_saga(memory_limit = 1000), rows), error = TRUE)
  withr::local_options(tallbayes.memory_limit = 1000)
  expect_error(run(gradient_saga(), rows), class = "tall_error_unsupported")
})
