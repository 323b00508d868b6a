make_network <- function(..., n = 12) {
  withr::local_seed(3)
  x <- matrix(stats::rnorm(3 * n), n)
  y <- stats::rnorm(n)
  model_network(x, y, ...)
}

test_that("parameters are named layer by layer, weights before biases", {
  model <- make_network(layers = 2)
  expect_identical(
    model$variables,
    c(
      "layer1.weight[1,1]", "layer1.weight[2,1]", "layer1.weight[1,2]",
      "layer1.weight[2,2]", "layer1.weight[1,3]", "layer1.weight[2,3]",
      "layer1.bias[1]", "layer1.bias[2]",
      "layer2.weight[1,1]", "layer2.weight[1,2]", "layer2.bias[1]", "sigma"
    )
  )
  expect_identical(utils::tail(model$coordinates, 1), "log_sigma")
  known <- make_network(layers = 2, sigma = 1)
  expect_identical(known$variables, utils::head(model$variables, -1))
})

test_that("autoscale divides by the root of the inputs, not for biases", {
  model <- make_network(layers = 4, sigma = 1, prior = prior_normal(0, 3, TRUE))
  at <- function(pattern) {
    unique(model$prior$scale[grepl(pattern, model$variables, fixed = TRUE)])
  }
  expect_equal(at("layer1.weight"), 3 / sqrt(3))
  expect_equal(at("layer2.weight"), 3 / sqrt(4))
  expect_equal(at("bias"), 3)
  plain <- make_network(layers = 4, sigma = 1, prior = prior_normal(0, 3))
  expect_equal(unique(plain$prior$scale), 3)
})

test_that("without hidden layers a network is a generalised linear model", {
  withr::local_seed(4)
  x <- matrix(stats::rnorm(60), 30)
  y <- stats::rbinom(30, 1, 0.4)
  network <- model_network(x, y, NULL, likelihood = "bernoulli")
  glm <- model_glm(cbind(x, 1), y, "bernoulli", prior_normal(0, c(1, 1, 1)))
  theta <- c(0.3, -0.8, 0.1)
  expect_close(
    gradient_of(network, "likelihood")(theta),
    gradient_of(glm, "likelihood")(theta)
  )
  expect_close(
    density_of(network, "likelihood")(theta),
    density_of(glm, "likelihood")(theta)
  )
})

test_that("two classes with opposite outputs are a bernoulli response", {
  withr::local_seed(5)
  x <- matrix(stats::rnorm(40), 20)
  y <- rep_len(c("no", "yes"), 20)
  two <- model_network(x, factor(y), 3, likelihood = "categorical")
  one <- model_network(x, y == "yes", 3, likelihood = "bernoulli")
  theta <- stats::runif(one$n_dim, -1, 1)
  out <- utils::tail(theta, 4)
  pair <- c(utils::head(theta, -4), rbind(-out / 2, out / 2))
  expect_close(
    density_of(two, "likelihood")(pair),
    density_of(one, "likelihood")(theta)
  )
})

test_that("outputs at new rows are the network's formula, draw by draw", {
  withr::local_seed(6)
  x <- matrix(stats::rnorm(3 * 700), 700)
  fit <- list(widths = c(3, 40, 2), activation = "softplus")
  theta <- matrix(stats::rnorm(4 * 242), 4)
  ours <- network_outputs(fit, theta, x)
  expect_identical(dim(ours), c(4L, 700L, 2L))
  for (draw in 1:4) {
    expected <- plain_network(x, theta[draw, ], fit$widths, fit$activation)$f
    expect_close(ours[draw, , ], expected, paste("draw", draw))
  }
})

test_that("the reported sigma has the response's unit", {
  model <- make_network(layers = 2)
  fit <- sg_sample(
    model,
    kernel_mala(1e-4),
    iter = 20,
    warmup = 0,
    chains = 1,
    init = rep(0.1, model$n_dim),
    refresh = 0,
    seed = 1
  )
  sigma <- as.numeric(posterior::extract_variable(fit$draws, "sigma"))
  expect_close(sigma, exp(fit$unconstrained[, 1, model$n_dim]))
})

test_that("the search for a mode starts at random weights, by ADAM", {
  withr::local_seed(7)
  x <- cbind(seq(-2, 2, length.out = 100))
  y <- sin(2 * x[, 1]) + stats::rnorm(100, sd = 0.1)
  model <- model_network(x, y, 8)
  starts <- replicate(2, model_start(model))
  expect_gt(max(abs(starts[, 1] - starts[, 2])), 0.1)
  mode <- find_mode(model, max_iter = 1500, learning_rate = 0.02)
  expect_identical(mode$method, "adam")
  f <- plain_network(x, mode$estimate[-model$n_dim], c(1, 8, 1), "tanh")$f
  # the noise has standard deviation 0.1, the response 0.7
  expect_lt(sqrt(mean((y - f)^2)), 0.2)
})

test_that("every kernel and estimator runs on a network", {
  withr::local_seed(8)
  x <- matrix(stats::rnorm(60), 30)
  model <- model_network(x, rep_len(1:3, 30), 3, likelihood = "categorical")
  at <- rep(0.1, model$n_dim)
  for (gradient in conformance_gradients()) {
    for (kernel in conformance_kernels()) {
      if (!kernel_takes(kernel, gradient) || isTRUE(kernel$draws_rows)) {
        next
      }
      fit <- sg_sample(
        model,
        kernel$make(1e-3),
        gradient$make(at),
        if (gradient$uses_rows) subsample_weighted(5, "gradient"),
        iter = 10,
        chains = 2,
        init = at,
        refresh = 0,
        seed = 1
      )
      expect_true(all(is.finite(plain_draws(fit))))
    }
  }
})

test_that("a proposal whose loss is NaN is a rejection", {
  model <- make_network(layers = c(3, 3), activation = "relu", sigma = 1)
  # from here a step of MALA leaves the range of doubles
  fit <- sg_sample(
    model,
    kernel_mala(1e250),
    iter = 20,
    warmup = 0,
    chains = 1,
    init = rep(0.1, model$n_dim),
    refresh = 0,
    seed = 1
  )
  expect_identical(fit$chains$status, "ok")
  expect_identical(fit$chains$acceptance, 0)
  theta <- rep(1e200, model$n_dim)
  expect_false(is.finite(density_of(model)(theta)))
})

test_that("a network's box is seen by Metropolis kernels", {
  model <- make_network(layers = 2, prior = prior_uniform(-0.3, 0.3), sigma = 1)
  fit <- sg_sample(
    model,
    kernel_mala(0.1),
    iter = 300,
    warmup = 0,
    chains = 2,
    init = numeric(model$n_dim),
    refresh = 0,
    seed = 1
  )
  draws <- posterior::as_draws_matrix(fit$draws)
  expect_lte(max(abs(draws)), 0.3)
  expect_gt(max(abs(draws)), 0.2)
  expect_error(
    sg_sample(model, kernel_sgld(1e-3), gradient_simple(), iter = 4),
    class = "tall_error_unsupported"
  )
})

test_that("arguments that cannot be used are named", {
  x <- matrix(1:6 / 6, 3)
  y <- c(0.1, 0.5, 1)
  expect_snapshot(error = TRUE, model_network(x, y, c(5, 0)))
  expect_snapshot(error = TRUE, model_network(x, y, 2.5))
  expect_snapshot(error = TRUE, model_network(x, y, "wide"))
  expect_snapshot(error = TRUE, model_network(x, y, 3, "sigmoid"))
  expect_snapshot(error = TRUE, model_network(x, y, 3, likelihood = "poisson"))
  binary <- function(y) model_network(x, y, 3, likelihood = "bernoulli")
  classes <- function(y) model_network(x, y, 3, likelihood = "categorical")
  expect_snapshot(error = TRUE, binary(y))
  expect_snapshot(error = TRUE, classes(y))
  expect_snapshot(error = TRUE, model_network(x, c(y, 1), 3))
  expect_snapshot(error = TRUE, model_network(x, c(1, NA, 2), 3))
  expect_snapshot(error = TRUE, model_network(x, c(1, NaN, 2), 3, sigma = 0))
  expect_snapshot(error = TRUE, model_network(x, y, 3, sigma = 0))
  aux <- prior_normal()
  expect_snapshot(error = TRUE, model_network(x, y, 3, prior_aux = aux))
  expect_snapshot(error = TRUE, binary(factor(c("a", "b", "c"))))
  expect_snapshot(error = TRUE, classes(factor(c("a", "a", "a"))))
  expect_snapshot(error = TRUE, classes(factor(c("a", NA, "b"))))
  expect_snapshot(error = TRUE, model_network(x, y, rep(2, 40)))
  model <- make_network(layers = 2)
  expect_snapshot(error = TRUE, subsampling_weights(model, rep(0, 12)))
  expect_snapshot(error = TRUE, sg_sample(model))
  expect_snapshot(
    error = TRUE,
    sg_sample(
      model,
      kernel_mala(1e-4),
      monitor = list(error = monitor_rmse(x, y))
    )
  )
})

test_that("a network prints its shape", {
  expect_snapshot(make_network(layers = c(3, 2)))
  expect_snapshot(make_network(layers = 2, activation = "relu", sigma = 0.5))
})
