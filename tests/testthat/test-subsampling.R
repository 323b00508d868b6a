test_that("schemes print what they are", {
  expect_snapshot({
    subsample_uniform(100)
    subsample_uniform(0.01, replace = FALSE)
    subsample_weighted(100)
    subsample_weighted(100, "leverage")
    subsample_weighted(2, 1:20)
  })
})

test_that("a size below one is a fraction of the data", {
  fit <- quick_fit(subsample = subsample_uniform(0.1))
  expect_true(all(fit$sizes == 30))
  fit <- quick_fit(subsample = subsample_uniform(1e-9))
  expect_true(all(fit$sizes == 1))
  fit <- quick_fit(subsample = subsample_uniform(7))
  expect_true(all(fit$sizes == 7))
})

test_that("a minibatch of all rows without replacement is the full gradient", {
  model <- example_model()
  all <- quick_fit(model, subsample = subsample_uniform(300, replace = FALSE))
  full <- quick_fit(model, gradient = gradient_full())
  expect_equal(as.matrix(all), as.matrix(full), tolerance = 1e-8)
})

test_that("numeric weights are used as they are, whatever their scale", {
  model <- example_model()
  w <- seq_len(300)
  by_weights <- quick_fit(model, subsample = subsample_weighted(20, w))
  scaled <- quick_fit(model, subsample = subsample_weighted(20, 1000 * w))
  expect_equal(as.matrix(scaled), as.matrix(by_weights), tolerance = 1e-10)
  equal <- quick_fit(model, subsample = subsample_weighted(20, rep(1, 300)))
  expect_false(identical(equal$draws, by_weights$draws))
})

test_that("subsampling_weights() are probabilities that follow their formulas", {
  model <- example_model()
  mode <- find_mode(model)
  x <- example_matrix()
  p <- plogis(drop(x %*% coef(mode)))
  w <- p * (1 - p)
  h <- rowSums((x %*% vcov(mode)) * x)
  raw <- list(
    leverage = w * h,
    hessian = w * sqrt(rowSums(x^2) * h),
    gradient = abs(example_data()$y - p) * sqrt(rowSums(x^2)),
    lipschitz = rowSums(x^2) / 4,
    uniform = rep(1, 300)
  )
  for (type in names(raw)) {
    expected <- 0.99 * raw[[type]] / sum(raw[[type]]) + 0.01 / 300
    actual <- subsampling_weights(model, mode, type)
    expect_equal(actual, expected, info = type, tolerance = 1e-8)
    expect_equal(sum(actual), 1)
  }
  expect_equal(
    subsampling_weights(model, coef(mode), "leverage"),
    subsampling_weights(model, NULL, "leverage")
  )
  expect_equal(
    subsampling_weights(model, type = "hessian", defensive = 0),
    raw$hessian / sum(raw$hessian),
    tolerance = 1e-8
  )
  expect_identical(
    subsampling_weights(model, mode, cores = 2),
    subsampling_weights(model, mode)
  )
})

test_that("sizes are refused in words", {
  expect_snapshot(subsample_uniform(0), error = TRUE, cnd_class = TRUE)
  expect_snapshot(subsample_uniform(-3), error = TRUE)
  expect_snapshot(subsample_uniform(1.5), error = TRUE)
  expect_snapshot(subsample_weighted(1.5), error = TRUE)
  expect_snapshot(subsample_uniform(NaN), error = TRUE)
  expect_snapshot(subsample_uniform("a"), error = TRUE)
  expect_snapshot(subsample_uniform(), error = TRUE)
  expect_snapshot(subsample_uniform(10, replace = NA), error = TRUE)
})

test_that("a minibatch larger than the data is refused without replacement", {
  model <- example_model()
  expect_snapshot(
    sg_sample(
      model,
      kernel_sgld(1e-3),
      subsample = subsample_uniform(301, replace = FALSE),
      refresh = 0
    ),
    error = TRUE,
    cnd_class = TRUE
  )
  fit <- quick_fit(model, subsample = subsample_uniform(301))
  expect_true(all(fit$sizes == 301))
})

test_that("weights are refused in words", {
  expect_snapshot(subsample_weighted(10, c(1, 0)), error = TRUE)
  expect_snapshot(subsample_weighted(10, c(1, -1)), error = TRUE)
  expect_snapshot(subsample_weighted(10, c(1, NA)), error = TRUE)
  expect_snapshot(subsample_weighted(10, "hesian"), error = TRUE)
  expect_snapshot(subsample_weighted(10, list(1)), error = TRUE)
  model <- example_model()
  expect_snapshot(
    sg_sample(
      model,
      kernel_sgld(1),
      subsample = subsample_weighted(5, 1:3),
      refresh = 0
    ),
    error = TRUE
  )
})

test_that("weights that a model does not have are refused, before a search", {
  lda <- model_lda(tiny_frame(), topics = 2)
  network <- model_network(example_matrix(), example_data()$z, layers = 2)
  for (model in list(lda, network)) {
    for (type in c("leverage", "hessian")) {
      for (at in list(NULL, abs(model_start(model)))) {
        expect_error(
          subsampling_weights(model, at, type),
          "has no Hessian, which these weights need",
          class = "tall_error_unsupported"
        )
      }
    }
    expect_null(model$cache$mode)
    # what is recommended instead is there
    weights <- subsampling_weights(model, abs(model_start(model)), "gradient")
    expect_true(all(weights > 0))
    expect_equal(sum(weights), 1)
  }
  expect_snapshot(subsampling_weights(lda), error = TRUE)
  expect_snapshot(lipschitz(lda), error = TRUE)
  expect_snapshot(
    sg_sample(
      network,
      kernel_sgld(1e-6),
      gradient_simple(),
      subsample_weighted(5)
    ),
    error = TRUE
  )
})

test_that("subsampling_weights() refuses in words", {
  model <- example_model()
  expect_snapshot(subsampling_weights(), error = TRUE)
  expect_snapshot(subsampling_weights(1), error = TRUE)
  expect_snapshot(subsampling_weights(model, type = "a"), error = TRUE)
  expect_snapshot(subsampling_weights(model, at = 1:2), error = TRUE)
  expect_snapshot(subsampling_weights(model, at = "a"), error = TRUE)
  expect_snapshot(subsampling_weights(model, defensive = 2), error = TRUE)
  poisson <- example_model("poisson")
  expect_snapshot(
    subsampling_weights(poisson, type = "lipschitz"),
    error = TRUE,
    cnd_class = TRUE
  )
  # the call is the user's, also from within a run
  e <- expect_error(
    sg_sample(
      poisson,
      kernel_sgld(1),
      subsample = subsample_weighted(5, "lipschitz"),
      refresh = 0
    ),
    class = "tall_error_unsupported"
  )
  expect_identical(as.character(e$call[[1]]), "sg_sample")
})
