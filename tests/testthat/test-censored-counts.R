# Counts of which some are known to lie beyond limits no more

# Rows of each kind about counts y: a sixth to the right, to the left, and in
# intervals, of brms' limits.
censored_data <- function(n = 300, size = Inf) {
  data <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n))
  mu <- exp(1 + 0.5 * data$x)
  y <- if (is.finite(size)) {
    stats::rnbinom(n, size = size, mu = mu)
  } else {
    stats::rpois(n, mu)
  }
  sides <- c("none", "right", "none", "left", "interval", "none")
  data$side <- rep_len(sides, n)
  # more than 2 is seen as such, and so on
  data$side[data$side == "right" & y <= 2] <- "none"
  data$side[data$side == "left" & y > 4] <- "none"
  data$side[data$side == "interval" & y == 0] <- "none"
  is_between <- data$side == "interval"
  data$y <- ifelse(data$side == "right", 2, ifelse(data$side == "left", 4, y))
  data$y[is_between] <- 3 * ((y[is_between] - 1) %/% 3)
  data$y2 <- ifelse(is_between, data$y + 3, NA)
  data
}

# What brms says of the rows, by R's own distribution functions.
brms_log_lik <- function(data, mu, size = Inf) {
  below <- function(y) stats::pnbinom(y, size = size, mu = mu)
  above <- stats::pnbinom(data$y, size = size, mu = mu, lower.tail = FALSE)
  log(ifelse(
    data$side == "none",
    stats::dnbinom(data$y, size = size, mu = mu),
    ifelse(
      data$side == "right",
      above,
      ifelse(data$side == "left", below(data$y), below(data$y2) - below(data$y))
    )
  ))
}

run_censored <- function(formula, data, family, ..., iter = 600) {
  tall_glm(
    formula,
    data,
    family,
    ...,
    iter = iter,
    chains = 2,
    seed = 1,
    refresh = 0
  )
}

test_that("limits of counts are those of brms", {
  withr::local_seed(1)
  data <- censored_data()
  expect_setequal(data$side, c("none", "right", "left", "interval"))
  theta <- c(0.9, 0.4, log(1.7))
  for (size in c(Inf, 1.7)) {
    family <- if (is.finite(size)) neg_binomial_2() else stats::poisson()
    fit <- run_censored(y | cens(side, y2) ~ x, data, family, iter = 10)
    model <- build_model(fit$blueprint, whole_rows(fit$rows))
    n_dim <- if (is.finite(size)) 3 else 2
    natural <- drop(model_variables(model, theta[seq_len(n_dim)]))
    mu <- exp(natural[[1]] + natural[[2]] * data$x)
    expect_equal(
      row_log_lik(model, theta[seq_len(n_dim)])[, 1],
      brms_log_lik(data, mu, size)
    )
  }
  # codes are words; 5 or more is more than 4
  data$code <- c(right = 1, none = 0, left = -1, interval = 2)[data$side]
  again <- run_censored(y | cens(code, y2) ~ x, data, family, iter = 10)
  expect_identical(plain_draws(again), plain_draws(fit))
})

test_that("censored counts have the posterior of importance sampling", {
  withr::local_seed(2)
  data <- censored_data(size = 2)
  prior <- list(
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(0, 2)
  )
  run <- function(family, ...) {
    formula <- y | cens(side, y2) ~ x
    args <- c(list(formula, data, family, iter = 2000, ...), prior)
    do.call(run_censored, args)
  }
  log_prior <- function(theta) {
    stats::dnorm(theta[[1]] + theta[[2]] * mean(data$x), 0, 2, log = TRUE) +
      stats::dnorm(theta[[2]], log = TRUE)
  }
  mu <- function(theta) exp(theta[[1]] + theta[[2]] * data$x)
  # R's own tails have no number far from the posterior
  truth <- suppressWarnings(importance_moments(
    function(theta) sum(brms_log_lik(data, mu(theta))) + log_prior(theta),
    c(1, 0.5)
  ))
  expect_gt(truth$ess, 1000)
  expect_moments(run(stats::poisson()), truth)
  truth <- importance_moments(
    function(theta) {
      size <- exp(theta[[3]])
      sum(brms_log_lik(data, mu(theta), size)) + log_prior(theta) +
        theta[[3]] - size
    },
    c(1, 0.5, 0.7),
    natural = function(theta) {
      theta[3, ] <- exp(theta[3, ])
      theta
    }
  )
  expect_gt(truth$ess, 1000)
  expect_moments(
    run(neg_binomial_2(), prior_aux = prior_exponential(1)),
    truth
  )
})

test_that("counts of which none is censored are those of the plain response", {
  withr::local_seed(3)
  data <- censored_data(size = 3)
  for (family in list(stats::poisson(), neg_binomial_2(), neg_binomial_2(2))) {
    fits <- lapply(list(y | cens("none") ~ x, y ~ x), function(formula) {
      run_censored(formula, data, family, iter = 2000)
    })
    theta <- c(0.9, 0.4, 0.3)[seq_along(fits[[1]]$variables)]
    rows <- lapply(fits, function(fit) {
      row_log_lik(build_model(fit$blueprint, whole_rows(fit$rows)), theta)[, 1]
    })
    expect_equal(rows[[1]], rows[[2]])
    # by other steps, the same posterior
    off <- (coef(fits[[1]]) - coef(fits[[2]])) / sqrt(diag(vcov(fits[[2]])))
    expect_lt(max(abs(off)), 0.2)
  }
})

test_that("what follows a fit of censored counts is of counts", {
  withr::local_seed(4)
  data <- censored_data(size = 2)
  fit <- run_censored(y | cens(side, y2) ~ x, data, neg_binomial_2())
  expect_identical(fit$family$name, "censored_neg_binomial_2")
  expect_warning(residuals(fit), class = "tall_warning_limits")
  expect_warning(rmse(fit, data), class = "tall_warning_limits")
  expect_silent(deviance <- residuals(fit, "deviance"))
  expect_true(all(is.finite(deviance)))
  drawn <- rstantools::posterior_predict(fit, data[1:3, ], seed = 1)
  expect_equal(dim(drawn), c(600, 3))
  expect_true(all(drawn >= 0 & drawn == floor(drawn)))
  expect_equal(
    unname(predict(fit, data[1:3, ], "response")),
    unname(colMeans(rstantools::posterior_epred(fit, data[1:3, ])))
  )
  if (requireNamespace("loo", quietly = TRUE)) {
    expect_true(is.finite(loo::loo(fit)$estimates["elpd_loo", "Estimate"]))
  }
  # both parameters of rows, and the other front ends
  run <- list(iter = 20, chains = 1, seed = 1, refresh = 0)
  left <- list(y | cens(side, y2) ~ x, shape ~ z)
  two <- do.call(tall_glm, c(list(left, data, neg_binomial_2()), run))
  expect_identical(two$family$name, "censored_neg_binomial_2_shape")
  model <- build_model(two$blueprint, whole_rows(two$rows))
  theta <- c(0.9, 0.4, 0.2, -0.3)
  natural <- drop(model_variables(model, theta))
  expect_equal(
    row_log_lik(model, theta)[, 1],
    brms_log_lik(
      data,
      exp(natural[[1]] + natural[[2]] * data$x),
      exp(natural[[3]] + natural[[4]] * data$z)
    )
  )
  smooth <- y | cens(side, y2) ~ s(x, k = 5)
  curve <- do.call(tall_gam, c(list(smooth, data, stats::poisson()), run))
  expect_identical(curve$family$name, "censored_poisson")
  data$g <- rep_len(1:20, nrow(data))
  bars <- y | cens(side, y2) ~ x + (1 | g)
  groups <- do.call(tall_glmer, c(list(bars, data, stats::poisson()), run))
  expect_identical(groups$family$name, "censored_poisson")
})

test_that("what is no count, or no interval of counts, is refused", {
  withr::local_seed(5)
  data <- censored_data(30)
  go <- function(left, family = stats::poisson()) {
    formula <- stats::as.formula(paste(left, "~ x"))
    run_censored(formula, data, family)
  }
  expect_refusals(
    "tall_error_input",
    go("I(y + 0.5) | cens(side, y2)"),
    go("I(y - 5) | cens(side, y2)"),
    go("y | cens('interval', y)"),
    go("y | cens('interval', y + 0.5)"),
    go("y | cens('interval')"),
    go("y | cens('beyond')")
  )
  expect_refusals(
    "tall_error_unsupported",
    go("y | cens(side, y2)", truncated_poisson()),
    go("y | cens(side, y2)", zero_inflated_poisson()),
    go("I(y > 2) | cens(side)", stats::binomial())
  )
})
