# Control variates of order 2. That they are unbiased under every way of
# drawing, with weights and offset, is in test-conformance-gradient.R; the
# moments of the chains in test-grid.R.

logistic <- function(n = 400, d = 3, ..., seed = 3) {
  withr::local_seed(seed)
  x <- cbind(1, matrix(rnorm(n * (d - 1)), n))
  y <- rbinom(n, 1, plogis(drop(x %*% rep_len(c(-0.5, 0.8), d))))
  model_glm(x, y, family = "bernoulli", ...)
}

test_that("`order` is 1 or 2", {
  expect_null(gradient_cv()$args$order)
  expect_identical(gradient_cv(order = 2)$args$order, 2)
  for (order in list(0, 3, 1.5, "2", NA, c(1, 2), NULL)) {
    expect_error(gradient_cv(order = order), class = "tall_error_input")
  }
  expect_output(print(gradient_cv(order = 2)), "order: 2")
})

test_that("it is the formula on the rows drawn, in any coordinates", {
  model <- logistic(prior = prior_normal(0.2, 1.5))
  mode <- find_mode(model)
  theta <- mode$estimate + c(0.3, -0.2, 0.25)
  spec <- gradient_cv(mode, order = 2)
  scheme <- subsample_weighted(5, "cubic")
  raw <- estimate_once(model, spec, scheme, theta)$gradient
  # an identity of the prior and the expansions is taken there
  white <- whitened_twin(model, mode$estimate, mode$chol, FALSE)
  origin <- numeric(3)
  p <- subsampling_weights(model, mode, "cubic")
  same <- estimate_once(
    white,
    gradient_cv(mode, order = 2),
    subsample_weighted(5, p),
    theta
  )$gradient
  expect_close(same, raw, "whitened", tolerance = 1e-9)
})

test_that("the noise is far below that of order 1", {
  model <- logistic(4000, prior = prior_normal(0, 2.5))
  mode <- find_mode(model)
  theta <- mode$estimate + backsolve(t(mode$chol), c(1, -1, 1))
  variance <- function(...) {
    pseudo_variance(model, theta, gradient_cv(mode, ...), subsample_uniform(10))
  }
  expect_lt(variance(order = 2), variance() / 200)
  # the formula against minibatches
  for (scheme in list(subsample_uniform(4, FALSE), subsample_weighted(4))) {
    exact <- pseudo_variance(model, theta, gradient_cv(mode, 2), scheme)
    found <- pseudo_variance(
      model,
      theta,
      gradient_cv(mode, 2),
      scheme,
      method = "monte_carlo",
      replicates = 4000,
      seed = 1
    )
    expect_lt(abs(found / exact - 1), 0.15)
  }
})

test_that("cubic weights are what they should be", {
  model <- logistic(50)
  mode <- find_mode(model)
  withr::local_seed(3)
  x <- cbind(1, matrix(rnorm(50 * 2), 50))
  norm <- sqrt(colSums(forwardsolve(mode$chol, t(x))^2))
  eta <- drop(x %*% mode$estimate)
  third <- function(e) plogis(e) * plogis(-e) * abs(1 - 2 * plogis(e))
  K <- mapply(
    function(e, r) max(third(seq(e - 4 * r, e + 4 * r, length.out = 20001))),
    eta,
    norm
  )
  w <- K * norm^3
  expected <- 0.9 * w / sum(w) + 0.1 / 50
  found <- subsampling_weights(model, mode, "cubic")
  expect_close(found, expected, "cubic weights", tolerance = 1e-6)
  expect_close(
    subsampling_weights(model, mode, "cubic", defensive = 0),
    w / sum(w),
    "without uniform ones",
    tolerance = 1e-6
  )
  # nothing to weigh
  normal <- target_linear()$model
  weights <- subsampling_weights(normal, type = "cubic")
  expect_identical(weights, rep(1 / normal$n_data, normal$n_data))
})

test_that("cubic weights with a sampled parameter are third derivatives", {
  for (problem in response_problems()) {
    data <- response_data(problem, 2000)
    model <- model_glm(data$x, data$y, problem$family())
    mode <- find_mode(model)
    at <- as.double(mode$estimate)
    sd <- sqrt(vcov(mode)[4, 4])
    norm <- sqrt(colSums(forwardsolve(mode$chol[1:3, 1:3], t(data$x))^2))
    eta <- drop(data$x %*% at[1:3])
    # by differences of the log density in R
    f <- function(e, s) problem$density(data$y, eta + e, exp(at[[4]] + s))
    h <- 1e-2
    third <- function(n_eta) {
      # product of central differences
      steps <- lapply(list(n_eta, 3 - n_eta), function(n) {
        switch(
          n + 1,
          list(at = 0, of = 1),
          list(at = c(-1, 1), of = c(-1, 1) / 2),
          list(at = -1:1, of = c(1, -2, 1)),
          list(at = c(-2, -1, 1, 2), of = c(-1, 2, -2, 1) / 2)
        )
      })
      out <- 0
      for (i in seq_along(steps[[1]]$at)) {
        for (j in seq_along(steps[[2]]$at)) {
          out <- out + steps[[1]]$of[[i]] * steps[[2]]$of[[j]] *
            f(h * steps[[1]]$at[[i]], h * steps[[2]]$at[[j]])
        }
      }
      abs(out) / h^3 * norm^n_eta * sd^(3 - n_eta)
    }
    w <- sqrt(third(3)^2 + 3 * third(2)^2 + 3 * third(1)^2 + third(0)^2)
    found <- model_weights(model, "cubic", at, mode$chol, 1)
    expect_gt(min(found / w), 0.9)
    expect_lt(stats::median(found / w), 1.5)
  }
})

test_that("long Leimkuhler-Matthews steps from four rows have the moments", {
  skip_on_cran()
  model <- logistic(4000, d = 4, prior = prior_normal(0, 2.5))
  mode <- find_mode(model)
  # steps are long in whitened coordinates; here the covariates are nearly so
  h <- 0.5 / max(eigen(crossprod(t(mode$chol)))$values)
  fit <- sg_sample(
    model,
    kernel_sgld(h, integrator = "leimkuhler-matthews"),
    gradient_cv(mode, order = 2),
    subsample_weighted(4, "cubic"),
    iter = 6000,
    warmup = 100,
    chains = 20,
    cores = 2,
    seed = 2,
    refresh = 0
  )
  exact <- sg_sample(
    model,
    kernel_smh(),
    iter = 6000,
    warmup = 100,
    chains = 20,
    cores = 2,
    seed = 3,
    refresh = 0
  )
  moments <- function(fit) {
    posterior::summarise_draws(
      fit$draws,
      mean = mean,
      sd = sd,
      mcse_mean = posterior::mcse_mean,
      mcse_sd = posterior::mcse_sd
    )
  }
  a <- moments(fit)
  b <- moments(exact)
  error <- sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  expect_lt(max(abs(a$mean - b$mean) / error), 5)
  # the noise adds h tau^2 / (4 - h), here below 1 %
  expect_lt(max(abs(a$sd / b$sd - 1)), 0.01 + 5 * max(error / b$sd))
})

test_that("what goes with order 1 goes with order 2", {
  model <- logistic(300, prior = prior_laplace(0, 1))
  mode <- find_mode(model)
  run <- function(kernel, subsample = subsample_uniform(8), ...) {
    sg_sample(
      model,
      kernel,
      gradient_cv(mode, order = 2),
      subsample,
      iter = 60,
      warmup = 10,
      chains = 2,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  fits <- list(
    run(kernel_sgld(1e-3, "corrected")),
    run(kernel_sgbd(0.02, "corrected")),
    run(kernel_sgld(1e-3), subsample_adaptive(50, min_size = 2)),
    run(kernel_sgld(1e-3), subsample_optimal(4)),
    run(kernel_sgld(1e-3), subsample_weighted(8, "cubic", always = TRUE)),
    run(kernel_mala(1e-3)),
    run(kernel_mala(1e-3, ratio = "minibatch"))
  )
  for (fit in fits) {
    expect_true(all(fit$chains$status == "ok"))
    expect_output(print(fit), "control variates of order 2")
  }
  check <- bias_check(fits[[1]], iter = 50, refresh = 0)
  expect_s3_class(check, "tall_bias_check")
  expect_s3_class(noise_tolerance(fits[[1]]), "data.frame")
})

test_that("a Gibbs posterior has the expansions of its own scale", {
  model <- logistic(200, prior = prior_normal(0, 1))
  theta <- c(-0.2, 0.5, 0.1)
  at <- c(0, 0.3, 0.2)
  # enumerated: the mean over all rows, one at a time
  fit <- sg_sample(
    model,
    kernel_still(),
    gradient_cv(at, order = 2),
    subsample_uniform(200, replace = FALSE),
    lambda = 50,
    init = theta,
    iter = 1,
    warmup = 0,
    chains = 1,
    keep = c("draws", "gradients"),
    refresh = 0
  )
  prior <- model_evaluate(model, theta, "prior")$gradient
  rows <- model_evaluate(model, theta, "likelihood")$gradient
  expect_close(fit$gradients, prior + rows / 4, "gradient", tolerance = 1e-9)
})

test_that("models without derivatives, or with too many, are told", {
  wide <- model_glm(
    matrix(0.1, 3, 4001),
    c(0, 1, 0),
    family = "bernoulli",
    prior = prior_normal(0, 1)
  )
  at <- numeric(4001)
  run <- function(model, at) {
    sg_sample(
      model,
      kernel_sgld(1e-4),
      gradient_cv(at, order = 2),
      subsample_uniform(2),
      iter = 2,
      init = at,
      refresh = 0
    )
  }
  expect_snapshot(error = TRUE, run(wide, at))
  topics <- one_token_model("natural")
  expect_snapshot(error = TRUE, run(topics, rep(1, topics$n_dim)))
  expect_error(
    pseudo_variance(wide, at, gradient_cv(at, 2), subsample_uniform(2)),
    class = "tall_error_unsupported"
  )
})

test_that("the recipe's estimator has moves beside what users say", {
  moves <- new_moves(diag(2), lines = matrix(1, 2, 1))
  expect_s3_class(moves, "tall_moves")
  expect_named(moves, c("metric", "lines"))
  own <- gradient_expanded(c(0, 1), moves)
  users <- gradient_cv(c(0, 1), order = 2)
  expect_identical(own$args, users$args)
  expect_identical(class(own), class(users))
  expect_identical(own$surrogate, moves)
  expect_false(is_ahead(own))
  # chains that stay on the surrogate
  expect_identical(without_test(own)$surrogate$untested, 1)
  params <- surrogate_params(
    kernel_smh(awkward = 2),
    without_test(own)$surrogate,
    n_data = 5,
    n_dim = 2
  )
  expect_identical(params[["awkward"]], 1)
  expect_identical(params[["untested"]], 1)
  expect_false(is.object(params))
})
