# A fit of a model written in R and that of the same model in C.
both_fits <- function(n = 300, iter = 60, ...) {
  data <- logistic_data(n)
  run <- function(model) {
    sg_sample(
      model,
      kernel_sgld(0.005),
      gradient_cv(c(0.8, 0)),
      subsample_uniform(20),
      iter = iter,
      chains = 2,
      init = c(0.8, 0),
      seed = 1,
      refresh = 0,
      ...
    )
  }
  list(
    data = data,
    own = run(logistic_custom(data$x, data$y)),
    built_in = run(model_glm(data$x, data$y, prior = prior_normal(0, 2)))
  )
}

probability <- function(theta, newdata) {
  stats::plogis(drop(newdata$x %*% theta$beta))
}

test_that("predictions are what the function makes of the draws", {
  fits <- both_fits()
  new <- list(x = fits$data$x[1:7, ])
  draws <- draws_matrix(fits$own)
  expected <- stats::plogis(tcrossprod(draws, new$x))
  found <- predict(fits$own, new, probability, summary = FALSE)
  expect_close(found, expected, tolerance = 1e-14)
  expect_identical(dimnames(found), list(NULL, as.character(1:7)))
  table <- predict(fits$own, new, probability, prob = 0.5)
  expect_close(table$mean, colMeans(expected), tolerance = 1e-12)
  expect_close(table$sd, apply(expected, 2, stats::sd), tolerance = 1e-12)
  quantiles <- apply(expected, 2, stats::quantile, c(0.25, 0.75))
  expect_close(table$lower, quantiles[1, ], tolerance = 1e-12)
  expect_close(table$upper, quantiles[2, ], tolerance = 1e-12)
  few <- predict(fits$own, new, probability, draws = 3, summary = FALSE)
  expect_identical(unname(few), unname(found[c(11, 31, 51), ]))
  expect_identical(
    few,
    predict(fits$own, new, probability, ndraws = 3, summary = FALSE)
  )
})

test_that("predictions of the own data, and in blocks, are the same", {
  fits <- both_fits()
  whole <- predict(fits$own, fits$data, probability)
  expect_identical(predict(fits$own, fun = probability), whole)
  sizes <- numeric()
  looks <- function(theta, newdata) {
    sizes <<- c(sizes, nrow(newdata$x))
    probability(theta, newdata)
  }
  many <- rep(1:300, 300)
  new <- list(x = fits$data$x[many, ])
  blocks <- predict(fits$own, new, looks)
  expect_gt(length(unique(sizes)), 1)
  expect_close(as.matrix(blocks), as.matrix(whole[many, ]), tolerance = 1e-13)
})

test_that("draws come in the shapes of init, new data in those of data", {
  entry <- entry_custom_transforms()
  fit <- sg_sample(
    entry$model,
    kernel_sgld(0.001),
    gradient_simple(),
    subsample_uniform(5),
    iter = 20,
    chains = 1,
    init = entry$model$start,
    seed = 1,
    refresh = 0
  )
  new <- data.frame(
    x = c(0, 1, 2),
    group = factor(c("b", "a", "b"), levels = c("a", "b")),
    row.names = c("one", "two", "three")
  )
  seen <- list()
  found <- predict(
    fit,
    new,
    function(theta, newdata) {
      seen <<- c(seen, list(list(theta, newdata)))
      theta$mu[newdata$group] + sum(theta$w)
    },
    summary = FALSE
  )
  draws <- draws_matrix(fit)
  expect_close(found, draws[, c(2, 1, 2)] + 1, tolerance = 1e-12)
  expect_identical(colnames(found), rownames(new))
  first <- seen[[1]]
  expect_identical(lengths(first[[1]]), c(mu = 2L, sigma = 1L, p = 1L, w = 3L))
  expect_identical(first[[1]]$sigma, draws[[1, "sigma"]])
  rownames(new) <- NULL
  expect_identical(first[[2]], new)
})

test_that("draws with weights are repeated in proportion", {
  data <- logistic_data()
  fit <- sg_sample(
    logistic_custom(data$x, data$y),
    kernel_sgld(0.01),
    gradient_simple(),
    subsample_uniform(6),
    schedule_decay(),
    iter = 2000,
    warmup = 0,
    chains = 1,
    init = c(-3, 3),
    seed = 1,
    refresh = 0
  )
  table <- predict(fit, list(x = diag(2)), function(theta, newdata) theta$beta)
  weights <- as.numeric(fit$weights)
  mean <- colSums(draws_matrix(fit) * weights) / sum(weights)
  plain <- colMeans(draws_matrix(fit))
  expect_lt(max(abs(table$mean - mean)), 0.05 * max(abs(plain - mean)))
})

test_that("predictions work for other models, and for fits from a file", {
  skip_if_not_installed("rstantools")
  fits <- both_fits()
  line <- function(theta, newdata) drop(newdata %*% theta)
  x <- fits$data$x[1:3, ]
  expect_close(
    predict(fits$built_in, x, line, summary = FALSE),
    tcrossprod(draws_matrix(fits$built_in), x),
    tolerance = 1e-12
  )
  path <- withr::local_tempfile()
  saveRDS(fits$own, path)
  again <- readRDS(path)
  new <- list(x = x)
  expect_identical(
    predict(again, new, probability),
    predict(fits$own, new, probability)
  )
  expect_error(predict(again, fun = probability), class = "tall_error_stale")
  expect_error(rstantools::log_lik(again), class = "tall_error_stale")
})

test_that("a model written in R predicts from whole draws only", {
  data <- logistic_data(50)
  run <- function(model) {
    sg_sample(
      model,
      kernel_sgld(0.005),
      gradient_simple(),
      subsample_uniform(20),
      iter = 20,
      chains = 1,
      init = c(0.8, 0),
      seed = 1,
      variables = model$variables[[2]],
      refresh = 0
    )
  }
  new <- list(x = data$x[1:3, ])
  own <- run(logistic_custom(data$x, data$y))
  expect_error(predict(own, new, probability), class = "tall_error_unsupported")
  # another model's function is given what there is
  built_in <- run(model_glm(data$x, data$y, prior = prior_normal(0, 2)))
  second <- function(theta, newdata) rep(theta[["x2"]], 3)
  found <- predict(built_in, new, second, summary = FALSE)
  expect_identical(found[, 1], unname(draws_matrix(built_in)[, 1]))
})

test_that("what is wrong with a prediction is said", {
  fits <- both_fits()
  own <- function(...) predict(fits$own, ...)
  new <- list(x = diag(2))
  expect_snapshot(error = TRUE, {
    own(new)
    own(new, 3)
    own(new, function(theta) 1)
    own(new, function(theta, newdata) 1)
    own(new, function(theta, newdata) c("a", "b"))
    own(new, function(theta, newdata) stop("no {luck}"))
    own(list(diag(2)), probability)
    own(list(x = diag(2), y = 1), probability)
    own(new, probability, prob = 2)
    own(new, probability, draws = 1e6)
    own(new, probability, type = "response")
    predict(fits$built_in, fun = probability)
  })
  error <- expect_error(
    own(new, function(theta, newdata) stop("no luck")),
    class = "tall_error_callback"
  )
  expect_identical(names(error$theta), "beta")
  without <- both_fits(keep = "none")$own
  expect_error(
    predict(without, new, probability),
    class = "tall_error_unsupported"
  )
})

test_that("log likelihoods are the model's, in whatever coordinates it ran", {
  skip_if_not_installed("rstantools")
  data <- logistic_data(2500)
  expected <- function(draws) {
    p <- stats::plogis(tcrossprod(draws, data$x))
    log(ifelse(rep(data$y == 1, each = nrow(p)), p, 1 - p))
  }
  run <- function(model, ...) {
    sg_sample(model, ..., iter = 30, chains = 2, seed = 1, refresh = 0)
  }
  own <- logistic_custom(data$x, data$y)
  fits <- list(
    recipe = run(own),
    own = run(own, kernel_sgld(1e-4)),
    "built in" = run(model_glm(data$x, data$y))
  )
  expect_true(fits$recipe$is_whitened)
  for (name in names(fits)) {
    found <- rstantools::log_lik(fits[[name]])
    draws <- draws_matrix(fits[[name]])
    expect_close(found, expected(draws), name, tolerance = 1e-10)
    few <- rstantools::log_lik(fits[[name]], draws = 3)
    expect_identical(few, found[c(6, 16, 26), ])
    f <- rstantools::log_lik(fits[[name]], pointwise = TRUE)
    at <- attr(f, "data")[c(7, 3), , drop = FALSE]
    expect_close(
      f(at, attr(f, "draws")),
      found[, c(7, 3)],
      name,
      tolerance = 1e-12
    )
  }
  held_out <- logistic_custom(data$x[1:4, ], data$y[1:4])
  expect_close(
    rstantools::log_lik(fits$own, newdata = held_out),
    rstantools::log_lik(fits$own)[, 1:4],
    tolerance = 1e-12
  )
  expect_error(
    rstantools::log_lik(fits$own, newdata = data.frame(x = 1)),
    class = "tall_error_input"
  )
  density <- run(model_density("normal"), kernel_sgld(0.1))
  expect_error(rstantools::log_lik(density), class = "tall_error_unsupported")
})

test_that("log likelihoods of transformed parameters take the coordinates", {
  skip_if_not_installed("rstantools")
  entry <- entry_custom_transforms()
  fit <- sg_sample(
    entry$model,
    kernel_sgld(0.001),
    gradient_simple(),
    subsample_uniform(5),
    iter = 12,
    chains = 1,
    init = entry$model$start,
    seed = 1,
    refresh = 0
  )
  expected <- t(apply(fit_unconstrained(fit), 1, entry$log_lik))
  expect_close(rstantools::log_lik(fit), expected, tolerance = 1e-12)
})

test_that("loo of a model written in R is that of its log likelihoods", {
  skip_if_not_installed("loo")
  skip_if_not_installed("rstantools")
  data <- logistic_data(1500)
  rows <- 0
  calls <- 0
  counts <- function(theta, batch) {
    calls <<- calls + 1
    rows <<- rows + length(batch$y)
    eta <- drop(batch$x %*% theta$beta)
    batch$y * eta - log1p(exp(eta))
  }
  model <- model_custom(
    counts,
    function(theta) -sum(theta$beta^2) / 8,
    data,
    list(beta = c(0, 0)),
    logistic_rows,
    function(theta) -theta$beta / 4
  )
  fit <- sg_sample(
    model,
    kernel_sgld(0.002),
    gradient_cv(c(1, 0)),
    subsample_uniform(30),
    iter = 200,
    chains = 2,
    init = c(1, 0),
    seed = 1,
    refresh = 0
  )
  all <- suppressWarnings(loo::loo(rstantools::log_lik(fit)))
  calls <- rows <- 0
  some <- loo::loo(fit, observations = 100, seed = 3)
  # the rows of the sample together: once a draw; and all rows at the mean
  expect_identical(calls, 201)
  expect_identical(rows, 200 * 100 + 1500)
  expect_s3_class(some, "psis_loo_ss")
  error <- some$estimates["elpd_loo", "Estimate"] - all$estimates["elpd_loo", 1]
  expect_lt(abs(error), 4 * some$estimates["elpd_loo", "subsampling SE"])
  subsample <- loo::loo_subsample(fit, observations = 100, seed = 3)
  expect_identical(subsample$estimates, some$estimates)
  given <- suppressMessages(loo::loo(fit, observations = c(5, 9, 700)))
  expect_identical(given$loo_subsampling$data_dim, c(1500L, 1L))
  whole <- suppressWarnings(loo::loo(fit, observations = NULL))
  expect_close(
    whole$pointwise[, "elpd_loo"],
    all$pointwise[, "elpd_loo"],
    tolerance = 0.01
  )
  waic <- suppressWarnings(loo::waic(fit, observations = NULL))
  direct <- suppressWarnings(loo::waic(rstantools::log_lik(fit)))
  expect_identical(waic$estimates, direct$estimates)
})
