models <- conformance_models()

test_that("every registered model has an entry", {
  skip_without_compiler()
  name <- unique(vapply(models, function(e) e$name, ""))
  # a user's own model has a door instead of a registered name, and one that
  # moves its own chains no gradient: test-crossed.R
  expect_covered("model", c(setdiff(name, "custom"), "crossed"))
})

for (label in names(models)) {
  entry <- models[[label]]
  says <- function(law) paste0(label, ": ", law)
  withr::local_seed(100)

  test_that(says("the gradient is the derivative of the log density"), {
    law_gradient(entry)
  })

  test_that(says("the curvature is the derivative of the gradient"), {
    law_curvature(entry)
  })

  test_that(says("log_prob() is the formula in either coordinates"), {
    law_log_prob(entry)
  })

  test_that(says("data and prior sum to the log density of the formula"), {
    law_density(entry)
  })

  test_that(says("sums over rows add up, whatever rows they are"), {
    law_rows(entry)
  })

  test_that(says("log_lik is the density of each row, constants included"), {
    law_log_lik(entry)
  })

  test_that(says("the log likelihood at many points is that at each"), {
    law_log_lik_many(entry)
  })

  test_that(says("subsampling weights are the papers' formulas"), {
    law_weights(entry)
  })

  test_that(says("gradients of rows are Lipschitz with the constants given"), {
    law_lipschitz(entry)
  })

  test_that(says("the whitened twin is a change of variables"), {
    law_whitened(entry, is_diagonal = FALSE)
    law_whitened(entry, is_diagonal = TRUE)
  })

  test_that(says("what was recorded is of one point"), {
    law_recorded(entry)
  })

  if (entry$is_seeded %||% TRUE) {
    test_that(says("a seed is all that is random in a run"), {
      law_model_seed(entry)
    })
  }
}

shifted <- shifted_models()

for (label in names(shifted)) {
  entry <- shifted[[label]]

  test_that(paste0(label, ": what was recorded is of one point, far from 0"), {
    law_recorded(entry)
  })
}

test_that("a posterior of rows seen twice is that of rows with weight two", {
  withr::local_seed(1)
  x <- matrix(rnorm(30), 10)
  y <- rbinom(10, 1, 0.5)
  once <- model_glm(x, y, weights = rep(2, 10))
  twice <- model_glm(rbind(x, x), c(y, y))
  theta <- c(0.3, -1, 0.2)
  expect_close(gradient_of(once)(theta), gradient_of(twice)(theta))
  expect_close(density_of(once)(theta), density_of(twice)(theta))
})

test_that("gaussian: at the closed-form mean the gradient is 0", {
  model <- models[["gaussian"]]$model
  at <- curvature(model, model$posterior_mean)
  expect_close(at$gradient, rep(0, model$n_dim))
  expect_close(solve(at$hessian), model$posterior_covariance)
})
