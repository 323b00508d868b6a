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
    all <- enumerations(model$n_data)
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
  for (entry in Filter(function(e) e$uses_rows, estimators)) {
    for (scheme in conformance_subsamples(model)) {
      if (scheme$name != "fixed") {
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
  local_function("next_slice", function(n_step, elapsed) {
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
