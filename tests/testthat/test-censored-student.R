# Numbers with outliers of which some are known to lie beyond limits no more

censored_numbers <- function(n = 250) {
  data <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n))
  y <- 0.5 + 0.7 * data$x + 0.8 * stats::rt(n, 4)
  data$side <- ifelse(y > 1.8, "right", ifelse(y < -1, "left", "none"))
  data$y <- pmin(pmax(y, -1), 1.8)
  is_between <- seq_len(n) %% 6 == 0
  data$side[is_between] <- "interval"
  data$y[is_between] <- floor(y[is_between])
  data$y2 <- ifelse(is_between, data$y + 1, NA)
  data$w <- rep_len(c(1, 2.5), n)
  data
}

# What brms says of the rows, by R's own distribution function.
student_log_lik <- function(data, mu, sigma, df) {
  at <- (data$y - mu) / sigma
  to <- (data$y2 - mu) / sigma
  log(ifelse(
    data$side == "none",
    stats::dt(at, df) / sigma,
    ifelse(
      data$side == "right",
      stats::pt(at, df, lower.tail = FALSE),
      ifelse(
        data$side == "left",
        stats::pt(at, df),
        stats::pt(to, df) - stats::pt(at, df)
      )
    )
  ))
}

run_censored_student <- function(formula, data, family, ..., iter = 600) {
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

test_that("limits of numbers with outliers are those of brms", {
  withr::local_seed(1)
  data <- censored_numbers()
  expect_setequal(data$side, c("none", "right", "left", "interval"))
  rows_of <- function(formula, family, theta, ...) {
    fit <- run_censored_student(formula, data, family, ..., iter = 10)
    model <- build_model(fit$blueprint, whole_rows(fit$rows))
    list(
      rows = row_log_lik(model, theta)[, 1],
      natural = drop(model_variables(model, theta))
    )
  }
  mean_of <- function(found) found$natural[[1]] + found$natural[[2]] * data$x
  left <- y | cens(side, y2) ~ x
  # known degrees of freedom, and sampled ones; weights are precisions
  known <- rows_of(left, student(df = 4), c(0.4, 0.6, -0.2), weights = w)
  sigma <- exp(-0.2) / sqrt(data$w)
  by_hand <- student_log_lik(data, mean_of(known), sigma, 4)
  expect_equal(known$rows, by_hand)
  sampled <- rows_of(left, student(), c(0.4, 0.6, -0.2, 1.3))
  expect_equal(
    sampled$rows,
    student_log_lik(data, mean_of(sampled), exp(-0.2), 1 + exp(1.3))
  )
  # sigma with a formula
  two <- rows_of(
    list(y | cens(side, y2) ~ x, sigma ~ z),
    student(df = 4),
    c(0.4, 0.6, -0.2, 0.3)
  )
  sigma <- exp(two$natural[[3]] + two$natural[[4]] * data$z)
  expect_equal(two$rows, student_log_lik(data, mean_of(two), sigma, 4))
  # none is: the plain response
  plain <- lapply(list(y | cens("none") ~ x, y ~ x), function(formula) {
    rows_of(formula, student(), c(0.4, 0.6, -0.2, 1.3), weights = w)$rows
  })
  expect_equal(plain[[1]], plain[[2]])
})

test_that("censored outliers have the posterior of importance sampling", {
  withr::local_seed(2)
  data <- censored_numbers()
  log_prior <- function(theta) {
    stats::dnorm(theta[[1]] + theta[[2]] * mean(data$x), 0, 2, log = TRUE) +
      stats::dnorm(theta[[2]], log = TRUE) + theta[[3]] - exp(theta[[3]])
  }
  run <- function(family, prior_aux) {
    run_censored_student(
      y | cens(side, y2) ~ x,
      data,
      family,
      prior = prior_normal(0, 1),
      prior_intercept = prior_normal(0, 2),
      prior_aux = prior_aux,
      iter = 2000
    )
  }
  rows <- function(theta, df) {
    mu <- theta[[1]] + theta[[2]] * data$x
    sum(student_log_lik(data, mu, exp(theta[[3]]), df))
  }
  truth <- importance_moments(
    function(theta) rows(theta, 4) + log_prior(theta),
    c(0.5, 0.7, -0.2),
    natural = function(theta) {
      theta[3, ] <- exp(theta[3, ])
      theta
    }
  )
  expect_gt(truth$ess, 1000)
  expect_moments(run(student(df = 4), prior_exponential(1)), truth)
  truth <- importance_moments(
    function(theta) {
      df <- 1 + exp(theta[[4]])
      rows(theta, df) + log_prior(theta) + theta[[4]] +
        stats::dgamma(df, 2, 0.1, log = TRUE)
    },
    c(0.5, 0.7, -0.2, 1.3),
    natural = function(theta) {
      theta[3, ] <- exp(theta[3, ])
      theta[4, ] <- 1 + exp(theta[4, ])
      theta
    }
  )
  expect_gt(truth$ess, 500)
  priors <- list(sigma = prior_exponential(1), nu = prior_gamma(2, 0.1))
  expect_moments(run(student(), priors), truth)
})

test_that("what follows a fit of censored outliers is of the number", {
  withr::local_seed(3)
  data <- censored_numbers()
  fit <- run_censored_student(y | cens(side, y2) ~ x, data, student(df = 4))
  expect_identical(fit$family$name, "censored_student")
  expect_warning(residuals(fit), class = "tall_warning_limits")
  expect_silent(deviance <- residuals(fit, "deviance"))
  expect_true(all(is.finite(deviance)))
  drawn <- rstantools::posterior_predict(fit, data[1:3, ], seed = 1)
  expect_equal(dim(drawn), c(600, 3))
  expect_gt(max(drawn), 1.8)
  if (requireNamespace("loo", quietly = TRUE)) {
    expect_true(is.finite(loo::loo(fit)$estimates["elpd_loo", "Estimate"]))
  }
  # default priors are those of the numbers, 100 times as large
  scales <- lapply(list(y | cens(side, y2) ~ x, y ~ x), function(formula) {
    data$y <- 100 * data$y
    data$y2 <- 100 * data$y2
    run <- run_censored_student(formula, data, student(), iter = 10)
    prior_summary(run)$table$scale
  })
  expect_equal(scales[[1]], scales[[2]])
  curve <- tall_gam(
    y | cens(side, y2) ~ s(x, k = 5),
    data,
    student(df = 4),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(curve$family$name, "censored_student")
  data$g <- rep_len(1:20, nrow(data))
  expect_refusals(
    "tall_error_unsupported",
    tall_glmer(y | cens(side, y2) ~ x + (1 | g), data, student(df = 4))
  )
  expect_refusals(
    "tall_error_input",
    run_censored_student(y | cens("interval", y) ~ x, data, student())
  )
})
