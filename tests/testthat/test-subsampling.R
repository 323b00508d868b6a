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

test_that("subsampling_weights() are probabilities by their formulas", {
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

test_that("minibatches that no step could take are refused before", {
  model <- example_model()
  run <- function(...) {
    sg_sample(
      model,
      kernel_sgld(1e-4),
      gradient_simple(),
      ...,
      iter = 2,
      chains = 1,
      seed = 1,
      refresh = 0
    )
  }
  for (subsample in list(
    subsample_uniform(1e9),
    subsample_weighted(1e9, "uniform"),
    subsample_optimal(1000001)
  )) {
    e <- expect_error(run(subsample), class = "tall_error_input")
    expect_identical(e$argument, "size")
    expect_identical(e$expected, 1e6)
  }
  expect_match(one_line(e), "at most 1,000,000 for 300 rows", fixed = TRUE)
  expect_s3_class(run(subsample_uniform(5000)), "tall_fit")
  # of many rows all may be drawn
  spec <- subsample_uniform(2e6)
  expect_identical(drawn_rows(spec, 2e6), 2e6)
  expect_error(drawn_rows(spec, 2e6 - 1), class = "tall_error_input")
})

test_that("chains that memory does not hold are refused before", {
  model <- example_model()
  run <- function(...) {
    sg_sample(model, kernel_sgld(1e-4), gradient_simple(), ..., iter = 2,
      seed = 1, refresh = 0, keep = "none")
  }
  local_settings(memory = 1e6)
  e <- expect_error(
    run(subsample_uniform(1e6), chains = 2),
    class = "tall_error_memory"
  )
  expect_gt(e$bytes, 2 * 8e6)
  expect_lt(e$bytes, 3 * 8e6)
  expect_match(one_line(e), "chains take .* memory has 1 MB")
  expect_s3_class(run(subsample_uniform(10), chains = 2), "tall_fit")
  # draws, too: the system would end R
  expect_error(
    make_buffers(list(n_keep = 1e6, numbers = list(draw = 1)), 1),
    class = "tall_error_memory"
  )
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
      subsample_weighted(5),
      refresh = 0
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

# The largest curvature of a row, and the largest of its derivative, while its
# predictor is within 4 sds of the mode's: by a fine grid.
test_that("robust and cubic weights are bounds, and the least ones", {
  x <- cbind(1, c(0, 0.1, -0.5, 3, 40, -8, 1, 2), c(1, 0, 0, 2, -1, 1, 0, 1))
  cumulants <- list(
    bernoulli = list(
      second = function(eta) plogis(eta) * plogis(-eta),
      third = function(eta) abs(tanh(eta / 2)) * plogis(eta) * plogis(-eta)
    ),
    poisson = list(second = exp, third = exp),
    gaussian = list(
      second = function(eta) 0 * eta + 1 / 1.7^2,
      third = function(eta) 0 * eta
    )
  )
  weights <- c(1, 2, 0.5, 1, 1, 3, 1, 1)
  chol <- matrix(c(3, 0.5, -0.2, 0, 2, 0.1, 0, 0, 1.5), 3)
  for (family in names(cumulants)) {
    y <- if (family == "gaussian") sin(1:8) else c(1, 0, 0, 1, 1, 0, 1, 0)
    model <- model_glm(
      x,
      y,
      family,
      weights = weights,
      offset = (1:8) / 10,
      sigma = if (family == "gaussian") 1.7 else 1
    )
    for (theta in list(c(0, 0, 0), c(-1, 0.3, 0.5))) {
      eta <- drop(x %*% theta) + (1:8) / 10
      norm <- sqrt(colSums(forwardsolve(chol, t(x))^2))
      largest <- function(f) {
        vapply(seq_along(eta), function(i) {
          max(f(eta[[i]] + norm[[i]] * seq(-4, 4, length.out = 40001)))
        }, 0)
      }
      of <- function(type) model_weights(model, type, theta, chol, 1L)
      f <- cumulants[[family]]
      expect_equal(
        of("robust"),
        weights * largest(f$second) * norm^2,
        tolerance = 1e-6
      )
      expect_equal(
        of("cubic"),
        weights * largest(f$third) * norm^3,
        tolerance = 1e-6
      )
      # the same, in whitened coordinates
      white <- whitened_twin(model, theta, chol, FALSE)
      for (type in c("robust", "cubic")) {
        expect_equal(
          model_weights(white, type, numeric(3), NULL, 1L),
          of(type),
          tolerance = 1e-10
        )
      }
    }
  }
})

test_that("robust weights of a Gaussian with sampled sigma see the residuals", {
  x <- cbind(1, c(-2:2, 9))
  y <- c(0, 1, 0, 1, 0, 30)
  model <- model_glm(x, y, "gaussian", prior = prior_normal(0, 10))
  mode <- find_mode(model)
  p <- subsampling_weights(model, mode, "robust", defensive = 0)
  expect_identical(which.max(p), 6L)
  # H_i at its largest residual within reach, by the formula
  s <- coef(mode)[[3]]
  e <- y - drop(x %*% coef(mode)[1:2])
  # coefficients and sigma apart
  precision <- solve(vcov(mode))
  q <- rowSums((x %*% solve(precision[1:2, 1:2])) * x)
  w <- exp(-2 * s)
  r <- w * (abs(e) + 4 * sqrt(q))
  v <- 1 / precision[3, 3]
  by_hand <- sqrt((w * q)^2 + 8 * r^2 * q * v + (2 * r^2 / w * v)^2)
  expect_equal(p, by_hand / sum(by_hand), tolerance = 1e-6)
})

test_that("robust weights are refused where no bound is known", {
  skip_without_compiler()
  expect_error(
    subsampling_weights(
      native_logistic(cbind(1, sin(1:20)), rep(0:1, 10)),
      c(0, 0),
      "robust"
    ),
    "no weights of type",
    class = "tall_error_unsupported"
  )
})

test_that("rows that come more than once can be in every minibatch", {
  model <- example_model(data = example_data(50))
  expect_error(
    subsample_weighted(5, always = c(1, 1)),
    "`always` must be .* each once",
    class = "tall_error_input"
  )
  for (always in list(0.5, -1, NA, "a", c(TRUE, FALSE))) {
    expect_error(
      subsample_weighted(5, always = always),
      class = "tall_error_input"
    )
  }
  run <- function(always, gradient = gradient_cv(), size = 5) {
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient,
      subsample_weighted(size, c(rep(1, 49), 100), always = always),
      iter = 40,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  expect_error(
    run(51),
    "at most the number of rows",
    class = "tall_error_input"
  )
  expect_error(run(1:50), "must leave some", class = "tall_error_input")
  fit <- run(TRUE)
  expect_true(all(fit$sizes == 6))
  expect_identical(run(50)$draws, fit$draws)
  # a run that goes on has the same rows
  whole <- sg_resume(fit, iter = 20, refresh = 0)
  again <- sg_resume(
    unserialize(serialize(fit, NULL)),
    iter = 20,
    model = example_model(data = example_data(50)),
    refresh = 0
  )
  expect_same_outcome(again, whole)
  for (gradient in list(gradient_simple(), gradient_saga(), gradient_svrg())) {
    expect_identical(run(TRUE, gradient)$chains$status, c("ok", "ok"))
  }
  # the formula, and replicates
  theta <- rbind(coef(find_mode(model)) + 0.2)
  spec <- subsample_weighted(5, c(rep(1, 49), 100), always = TRUE)
  exact <- pseudo_variance(model, theta, gradient_simple(), spec)
  found <- pseudo_variance(
    model,
    theta,
    gradient_simple(),
    spec,
    method = "monte_carlo",
    replicates = 20000,
    seed = 1
  )
  expect_equal(found, exact, tolerance = 0.05)
  without <- subsample_weighted(5, c(rep(1, 49), 100))
  expect_gt(
    pseudo_variance(model, theta, gradient_simple(), without),
    2 * exact
  )
})
