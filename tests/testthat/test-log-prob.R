# log_prob() of every model is in helper-conformance-model.R; here what it is
# given, the prior of effects of groups, and rows that are merged.

slopes_model <- function(hour, group, y, ...) {
  x <- cbind("(Intercept)" = 1, hour = hour)
  model_groups(
    x, y, group, x,
    family = "bernoulli",
    prior = NULL,
    prior_covariance = prior_lkj(2, prior_student(3, 0, 1.5)),
    nodes = 25,
    ...
  )
}

test_that("the prior of effects is one of their covariance in raw units", {
  withr::local_seed(1)
  hour <- sample(5:23, 200, TRUE)
  model <- slopes_model(hour, rep(1:20, 10), rbinom(200, 1, 0.4))
  # the covariate is moved and scaled inside
  expect_gt(abs(model$span[2, 1]), 0)
  v <- cbind(-1, 0.1, c(0.4, 0.9, 2), c(0.02, 0.3, 0.1), c(-0.9, 0, 0.5))
  colnames(v) <- model$variables
  theta <- lambda <- model_map(model)$to_free(unname(t(v)))
  prior <- log_prob(model, v, unconstrained = FALSE) -
    model_evaluate(model, theta, "likelihood")$log_density
  expected <- rowSums(-2 * log1p((v[, 3:4] / 1.5)^2 / 3)) + log(1 - v[, 5]^2)
  expect_close(diff(prior), diff(expected), "prior")
})

test_that("where 0 of a covariate lies and its unit are no matter", {
  withr::local_seed(2)
  hour <- sample(5:23, 200, TRUE)
  group <- rep(1:20, 10)
  y <- rbinom(200, 1, 0.4)
  raw <- slopes_model(hour, group, y)
  moved <- slopes_model((hour - 14) / 5, group, y)
  # b0 + b1 h = (b0 + 14 b1) + 5 b1 (h - 14) / 5
  turn <- rbind(c(1, 14), c(0, 5))
  sd <- c(0.8, 0.1)
  covariance <- diag(sd) %*% matrix(c(1, -0.6, -0.6, 1), 2) %*% diag(sd)
  other <- turn %*% covariance %*% t(turn)
  likelihood <- function(model, beta, covariance) {
    v <- c(beta, sqrt(diag(covariance)), cov2cor(covariance)[2, 1])
    theta <- model_map(model)$to_free(matrix(v))
    model_evaluate(model, theta, "likelihood")$log_density
  }
  expect_close(
    likelihood(raw, c(-1, 0.05), covariance),
    likelihood(moved, turn %*% c(-1, 0.05), other),
    "likelihood",
    1e-8
  )
})

test_that("rows of a group that say the same are merged, and nothing changes", {
  withr::local_seed(3)
  hour <- sample(5:10, 300, TRUE)
  group <- rep(1:15, 20)
  mean <- exp(hour / 10 + rnorm(15, 0, 0.3)[group])
  x <- cbind("(Intercept)" = 1, hour = hour)
  trials <- sample(1:3, 300, TRUE)
  p <- plogis(mean - 2)
  cases <- list(
    bernoulli = list(y = rbinom(300, 1, p), w = NULL, family = "bernoulli"),
    binomial = list(
      y = rbinom(300, trials, p) / trials, w = trials, family = "binomial"
    ),
    poisson = list(y = rpois(300, mean), w = NULL, family = "poisson"),
    weighted = list(
      y = rpois(300, mean), w = rep(c(0.5, 2), 150), family = "poisson"
    )
  )
  for (name in names(cases)) {
    case <- cases[[name]]
    make <- function(x) {
      model_groups(
        x, case$y, group, x[, 1:2],
        family = case$family, weights = case$w, nodes = 15, prior = NULL
      )
    }
    merged <- make(x)
    expect_lt(merged_rows(merged), 226)
    # a column that tells all rows apart, and has a coefficient of 0
    apart <- make(cbind(x, row = seq_len(300) / 300))
    expect_identical(merged_rows(apart), 300)
    theta <- c(-0.5, 0.1, log(0.4), log(0.1), 0.3)
    wide <- append(theta, 0, 2)
    expect_close(
      row_log_lik(merged, theta), row_log_lik(apart, wide), name, 1e-9
    )
    expect_close(
      grad_log_prob(merged, theta), grad_log_prob(apart, wide)[-3], name, 1e-9
    )
  }
})

test_that("points come in many shapes, and names put them in order", {
  model <- model_glm(
    cbind("(Intercept)" = 1, age = 1:9 / 9), rnorm(9), family = "gaussian",
    sigma = NULL
  )
  names <- model$coordinates
  points <- matrix(c(1:6 / 5), 2, dimnames = list(NULL, names))
  value <- log_prob(model, points)
  expect_identical(log_prob(model, unname(points)), value)
  expect_identical(log_prob(model, points[, 3:1]), value)
  expect_identical(log_prob(model, as.data.frame(points[, c(2, 1, 3)])), value)
  expect_identical(log_prob(model, points[1, ]), value[[1]])
  expect_identical(
    grad_log_prob(model, points[2, ]),
    grad_log_prob(model, points)[2, ]
  )
  fit <- sg_sample(model, iter = 20, seed = 1, refresh = 0)
  at <- log_prob(model, posterior::as_draws(fit), unconstrained = FALSE)
  expect_length(at, 40)
  expect_true(all(is.finite(at)))
})

test_that("what is no point is refused", {
  model <- model_glm(
    cbind("(Intercept)" = 1, age = 1:9 / 9), rnorm(9), family = "gaussian",
    sigma = NULL
  )
  refuse <- function(...) {
    expect_error(log_prob(model, ...), class = "tall_error_input")
    expect_error(grad_log_prob(model, ...), class = "tall_error_input")
  }
  refuse(1:2)
  refuse("a")
  refuse(c(1, NA, 2))
  refuse(matrix(0, 2, 4))
  refuse(c(a = 1, age = 2, log_sigma = 0))
  refuse(c("(Intercept)" = 1, age = 2, sigma = 1))
  refuse(1:3, unconstrained = NA)
  refuse(1:3, jacobian = "yes")
  refuse(c(1, 1, -1), unconstrained = FALSE)
  refuse(1:3, unused = 1)
  expect_error(log_prob(1, 1:3), class = "tall_error_input")
  bounded <- model_glm(matrix(1:9), rnorm(9), prior = prior_uniform(-1, 1),
    family = "gaussian", sigma = 1)
  expect_identical(log_prob(bounded, 2), -Inf)
  expect_identical(unname(grad_log_prob(bounded, 2)), NaN)
})
