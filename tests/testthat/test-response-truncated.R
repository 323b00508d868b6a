# Counts of which none is 0. Their law is in test-conformance-response.R.

truncated_data <- function(n = 400) {
  withr::local_seed(3)
  data <- data.frame(a = stats::rnorm(n), g = sample(8, n, TRUE))
  data$w <- rep_len(c(1, 2, 3), n)
  data$time <- stats::runif(n, 0.5, 2)
  rate <- data$time * exp(-0.3 + 0.6 * data$a)
  data$y <- stats::qpois(stats::runif(n, exp(-rate), 1), rate)
  data
}

truncated_density <- function(y, eta) {
  rate <- exp(eta)
  stats::dpois(y, rate, log = TRUE) -
    stats::ppois(0, rate, lower.tail = FALSE, log.p = TRUE)
}

test_that("flat priors have the mode of the likelihood", {
  data <- truncated_data()
  fit <- find_mode(model_glm(
    cbind("(Intercept)" = 1, a = data$a),
    data$y,
    truncated_poisson(),
    prior = NULL,
    weights = data$w,
    offset = log(data$time)
  ))
  falls <- function(beta) {
    eta <- log(data$time) + beta[[1]] + beta[[2]] * data$a
    -sum(data$w * truncated_density(data$y, eta))
  }
  best <- stats::optim(c(0, 0), falls, control = list(reltol = 1e-14))
  expect_equal(unname(fit$estimate), best$par, tolerance = 1e-4)
})

test_that("a step looks at less than one row of many", {
  fit <- tall_glm(
    y ~ a,
    truncated_data(5000),
    truncated_poisson(),
    iter = 400,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "smh")
  expect_lt(mean(fit$sizes), 0.2)
})

test_that("draws have the posterior of quadrature", {
  data <- truncated_data()
  for (n in c(30, 150)) {
    some <- data[seq_len(n), ]
    fit <- tall_glm(
      y ~ a + offset(log(time)),
      some,
      truncated_poisson(),
      prior = prior_normal(0, 1),
      prior_intercept = prior_normal(0, 1),
      iter = 3000,
      seed = 1,
      refresh = 0
    )
    expect_output(print(fit), "Exact: no step size", fixed = TRUE)
    axis <- function(j) {
      coef(fit)[[j]] + seq(-6, 6, length.out = 60) * sqrt(vcov(fit)[j, j])
    }
    grid <- expand.grid(axis(1), axis(2))
    log_p <- apply(grid, 1, function(beta) {
      eta <- log(some$time) + beta[[1]] + beta[[2]] * some$a
      sum(truncated_density(some$y, eta)) +
        stats::dnorm(beta[[1]] + beta[[2]] * mean(some$a), log = TRUE) +
        stats::dnorm(beta[[2]], log = TRUE)
    })
    p <- exp(log_p - max(log_p))
    p <- p / sum(p)
    for (j in 1:2) {
      mean <- sum(p * grid[[j]])
      sd <- sqrt(sum(p * (grid[[j]] - mean)^2))
      draws <- fit$draws[, , j]
      off <- abs(mean(draws) - mean)
      expect_lt(off, 4.5 * posterior::mcse_mean(draws))
      off <- abs(stats::sd(draws) - sd)
      expect_lt(off, 4.5 * posterior::mcse_sd(draws))
    }
  }
})

test_that("predictions are of counts above 0", {
  data <- truncated_data()
  fit <- tall_glm(
    y ~ a,
    data,
    truncated_poisson(),
    iter = 200,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  theta <- as.matrix(fit)
  rate <- exp(theta %*% rbind(1, data$a))
  expect_equal(
    unname(rstantools::posterior_epred(fit)),
    unname(rate / -expm1(-rate)),
    tolerance = 1e-10
  )
  expect_equal(
    unname(rstantools::log_lik(fit)),
    unname(t(truncated_density(data$y, t(log(rate))))),
    tolerance = 1e-10
  )
  drawn <- rstantools::posterior_predict(fit, seed = 2)
  expect_gte(min(drawn), 1)
  expect_lt(
    abs(mean(drawn) - mean(rate / -expm1(-rate))),
    5 * stats::sd(drawn) / sqrt(length(drawn))
  )
  family <- truncated_poisson()
  eta <- c(-12, -1, 0, 3)
  expect_equal(family$linkfun(family$linkinv(eta)), eta, tolerance = 1e-6)
  expect_equal(
    family$mu.eta(eta),
    family$variance(family$linkinv(eta)),
    tolerance = 1e-4
  )
  expect_error(
    tall_glm(I(y - 1) ~ a, data, truncated_poisson()),
    "count above 0",
    class = "tall_error_input"
  )
  expect_error(
    tall_glm(y | trunc(lb = 1) ~ a, data, poisson()),
    "truncated_poisson",
    class = "tall_error_unsupported"
  )
})

test_that("groups have their effects, integrated out or swept", {
  data <- truncated_data(150)
  one <- tall_glmer(
    y ~ a + (1 | g),
    data,
    truncated_poisson(),
    prior_covariance = prior_lkj(sd = prior_exponential(1)),
    iter = 1500,
    seed = 1,
    refresh = 0
  )
  swept <- sg_sample(
    model_crossed(
      cbind("(Intercept)" = 1, a = data$a),
      data$y,
      list(g = data$g),
      truncated_poisson(),
      prior = prior_normal(0, 2.5, autoscale = TRUE),
      prior_covariance = prior_lkj(sd = prior_exponential(1))
    ),
    iter = 1500,
    seed = 1,
    refresh = 0
  )
  for (name in c("a", "sd_g__Intercept")) {
    x <- posterior::extract_variable_matrix(one$draws, name)
    y <- posterior::extract_variable_matrix(swept$draws, name)
    error <- sqrt(posterior::mcse_mean(x)^2 + posterior::mcse_mean(y)^2)
    expect_lt(abs(mean(x) - mean(y)), 4.5 * error)
  }
})
