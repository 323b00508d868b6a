# Formulas of two parameters: tall_glm(list(y ~ x, sigma ~ z)), zero inflation.

run_dpar <- function(formula, data, family, ..., iter = 500, chains = 2) {
  tall_glm(
    formula,
    data,
    family,
    ...,
    iter = iter,
    chains = chains,
    seed = 1,
    refresh = 0
  )
}

# y ~ x and what else the problem has.
two_formulas <- function(problem, own = ~z) {
  own <- stats::as.formula(call("~", as.name(problem$dpar), own[[2]]))
  list(y ~ x, own)
}

# The log posterior that the documentation says: priors at the means of columns.
dpar_posterior <- function(fit, data, problem) {
  z <- cbind(1, data$x, 1, data$z)
  mean_x <- mean(data$x)
  mean_z <- mean(data$z)
  prior <- fit$prior
  function(theta) {
    aux <- if (length(theta) > 4) log(theta[[5]]) else 0
    a <- drop(z[, 1:2] %*% theta[1:2])
    b <- drop(z[, 3:4] %*% theta[3:4])
    at <- theta[1:4]
    at[[1]] <- theta[[1]] + mean_x * theta[[2]]
    at[[3]] <- theta[[3]] + mean_z * theta[[4]]
    sum(problem$density(data$y, a, b, rep(1, nrow(data)), aux)) +
      sum(stats::dnorm(at, prior$location[1:4], prior$scale[1:4], log = TRUE)) +
      if (length(theta) > 4) stats::dexp(theta[[5]], 1, log = TRUE) else 0
  }
}

problems <- two_problems()

for (name in names(problems)) {
  problem <- problems[[name]]

  test_that(paste0(name, ": the posterior is that of importance sampling"), {
    # far from normal with few rows where a size is learnt, too
    data <- dpar_data(problem, if (is.null(problem$n_aux)) 250 else 900)
    fit <- run_dpar(
      two_formulas(problem),
      data,
      problem$family,
      iter = 2500,
      chains = 4
    )
    expect_s3_class(fit, "tall_dpar")
    names <- paste0(problem$dpar, c("_(Intercept)", "_z"))
    expect_identical(fit$variables[1:4], c("(Intercept)", "x", names))
    log_posterior <- dpar_posterior(fit, data, problem)
    draws <- draws_matrix(fit)
    # t of 5 degrees of freedom about the draws
    withr::local_seed(2)
    d <- ncol(draws)
    is_log <- seq_len(d) > 4
    to <- function(x) replace(x, is_log, exp(x[is_log]))
    own <- draws
    own[, is_log] <- log(own[, is_log])
    centre <- colMeans(own)
    root <- t(chol(1.2 * stats::cov(own)))
    noise <- matrix(stats::rnorm(d * 8000), d) /
      rep(sqrt(stats::rchisq(8000, 5) / 5), each = d)
    points <- t(centre + root %*% noise)
    log_q <- -(5 + d) / 2 * log1p(colSums(noise^2) / 5)
    log_p <- apply(points, 1, function(x) {
      log_posterior(to(x)) + sum(x[is_log])
    })
    w <- exp(log_p - log_q - max(log_p - log_q))
    w <- w / sum(w)
    expect_gt(1 / sum(w^2), 3000)
    mean <- colSums(w * points)
    sd <- sqrt(colSums(w * (points - rep(mean, each = 8000))^2))
    ess <- posterior::summarise_draws(fit$draws, n = posterior::ess_bulk)$n
    error <- sd * sqrt(1 / ess + sum(w^2))
    expect_lt(max(abs(centre - mean) / error), 4.5)
    expect_lt(max(abs(apply(own, 2, stats::sd) / sd - 1)), 0.12)
  })

  test_that(paste0(name, ": verbs are of both predictors"), {
    data <- dpar_data(problem, 120)
    fit <- run_dpar(two_formulas(problem), data, problem$family, iter = 200)
    draws <- draws_matrix(fit)
    new <- data.frame(x = c(-1, 0.5, 2), z = c(0, 1, -1), y = data$y[1:3])
    a <- draws[, 1:2] %*% rbind(1, new$x)
    b <- draws[, 3:4] %*% rbind(1, new$z)
    linear <- rstantools::posterior_linpred(fit, newdata = new)
    expect_equal(unname(linear), a)
    second <- rstantools::posterior_linpred(fit, newdata = new,
      dpar = problem$dpar)
    expect_equal(unname(second), b)
    natural <- if (problem$dpar == "zi") stats::plogis(b) else exp(b)
    found <- rstantools::posterior_epred(fit, new, dpar = problem$dpar)
    expect_equal(unname(found), natural)
    mean <- switch(
      problem$dpar,
      zi = exp(a) * (1 - natural),
      phi = stats::plogis(a),
      shape = exp(a),
      a
    )
    expected <- rstantools::posterior_epred(fit, new)
    expect_equal(unname(expected), mean)
    expect_equal(
      unname(predict(fit, new, type = "response")),
      colMeans(mean)
    )
    # log likelihoods, and what is made of them
    log_lik <- rstantools::log_lik(fit, new)
    s <- if (ncol(draws) > 4) log(draws[, 5]) else rep(0, nrow(draws))
    by_hand <- vapply(1:3, function(i) {
      y <- rep(new$y[[i]], nrow(draws))
      problem$density(y, a[, i], b[, i], 1, s)
    }, s)
    expect_equal(unname(log_lik), unname(by_hand))
    # responses have the law's mean and spread
    many <- rstantools::posterior_predict(fit, new[rep(2, 300), ], seed = 1)
    drawn <- as.numeric(many)
    law <- mean[, 2]
    spread <- sqrt(stats::var(drawn) / length(drawn) + stats::var(law) / 200)
    expect_lt(abs(mean(drawn) - mean(law)), 5 * spread)
    residuals <- residuals(fit, type = "pearson")
    expect_length(residuals, 120)
    expect_lt(abs(mean(residuals^2) - 1), 1)
    expect_true(all(is.finite(residuals(fit, type = "deviance"))))
  })
}

test_that("a formula of a parameter that is the same for all is that without", {
  data <- dpar_data(problems$gaussian_sigma, 300)
  two <- run_dpar(list(y ~ x, sigma ~ 1), data, stats::gaussian(), iter = 4000)
  one <- run_dpar(y ~ x, data, stats::gaussian(), iter = 4000)
  both <- c("(Intercept)", "x")
  expect_equal(coef(two)[both], coef(one)[both], tolerance = 0.01)
  sigma <- exp(draws_matrix(two)[, 3])
  expect_lt(abs(mean(sigma) / sigma(one) - 1), 0.01)
  expect_length(sigma(two), 300)
  expect_lt(max(abs(sigma(two) / mean(sigma) - 1)), 1e-6)
})

test_that("weights, offsets and missing rows are those of tall_glm()", {
  data <- dpar_data(problems$gaussian_sigma, 80)
  data$w <- rep_len(c(1, 2), 80)
  data$o <- rep_len(c(-1, 0.5), 80)
  data$z[[3]] <- NA
  fit <- run_dpar(
    list(y ~ x + offset(o), sigma ~ z),
    data,
    stats::gaussian(),
    weights = w,
    iter = 60
  )
  expect_equal(stats::nobs(fit), 79)
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  theta <- c(0.3, -0.4, 0.2, 0.6)
  natural <- drop(model_variables(model, theta))
  kept <- data[-3, ]
  by_hand <- stats::dnorm(
    kept$y,
    natural[[1]] + natural[[2]] * kept$x + kept$o,
    exp(natural[[3]] + natural[[4]] * kept$z) / sqrt(kept$w),
    log = TRUE
  )
  expect_equal(row_log_lik(model, theta)[, 1], by_hand)
  link <- predict(fit, data[1:2, ])
  b <- coef(fit)
  expect_equal(unname(link), b[[1]] + b[[2]] * data$x[1:2] + data$o[1:2])
  # weights of new rows are precisions, and those of a row divide its sigma
  drawn <- function(weights) {
    rstantools::posterior_predict(fit, data[1:2, ], weights = weights, seed = 1)
  }
  mean <- rstantools::posterior_linpred(fit, newdata = data[1:2, ])
  expect_equal(drawn(c(4, 1)) - mean, (drawn(1) - mean) / rep(2:1, each = 60),
    ignore_attr = TRUE)
})

test_that("designs are those of each formula", {
  data <- dpar_data(problems$gaussian_sigma, 90)
  fit <- run_dpar(
    list(y ~ poly(x, 2) * g, sigma ~ 0 + g + z),
    data,
    stats::gaussian(),
    iter = 60
  )
  mu <- stats::model.matrix(y ~ poly(x, 2) * g, data)
  sigma <- stats::model.matrix(~ 0 + g + z, data)
  expect_equal(
    fit$variables,
    c(colnames(mu), paste0("sigma_", colnames(sigma)))
  )
  expect_equal(
    unname(model.matrix(fit)),
    unname(cbind(mu, sigma)),
    ignore_attr = TRUE
  )
  # new rows have the bases of the old, whatever their levels
  b <- coef(fit)
  new <- data[5:6, ]
  new$g <- as.character(new$g)
  expect_equal(
    unname(predict(fit, new)),
    drop(mu[5:6, ] %*% b[seq_len(ncol(mu))]),
    ignore_attr = TRUE
  )
  # a dot is the other columns
  dots <- run_dpar(
    list(y ~ ., sigma ~ . - g),
    data,
    stats::gaussian(),
    iter = 60
  )
  expect_identical(
    dots$variables,
    c("(Intercept)", "x", "z", "gv", "gw", "sigma_(Intercept)", "sigma_x",
      "sigma_z")
  )
})

test_that("units of covariates do not matter", {
  data <- dpar_data(problems$gaussian_sigma, 400)
  raw <- data
  raw$x <- 1e5 + 300 * data$x
  raw$z <- -40 + 0.01 * data$z
  raw$y <- 1e4 + 50 * data$y
  plain <- run_dpar(list(y ~ x, sigma ~ z), data, stats::gaussian(),
    iter = 2000)
  moved <- run_dpar(list(y ~ x, sigma ~ z), raw, stats::gaussian(),
    iter = 2000)
  expect_equal(coef(moved)[["x"]], coef(plain)[["x"]] * 50 / 300,
    tolerance = 0.02)
  expect_equal(coef(moved)[["sigma_z"]], coef(plain)[["sigma_z"]] * 100,
    tolerance = 0.03)
  rhat <- posterior::summarise_draws(moved$draws, r = posterior::rhat)$r
  expect_lt(max(rhat), 1.02)
})

test_that("priors are of each, or by name", {
  data <- dpar_data(problems$gaussian_sigma, 60)
  fit <- run_dpar(
    list(y ~ x, sigma ~ z),
    data,
    stats::gaussian(),
    prior = list(sigma = prior_normal(0, 0.01)),
    iter = 200
  )
  expect_lt(abs(coef(fit)[["sigma_z"]]), 0.02)
  expect_equal(fit$prior$scale[[4]], 0.01)
  expect_equal(
    fit$prior$scale[[2]],
    2.5 * stats::sd(data$y) / stats::sd(data$x)
  )
  expect_equal(fit$prior$location[[3]], log(stats::sd(data$y)))
  expect_output(print(prior_summary(fit)), "Intercept")
})

test_that("many rows take Langevin steps, and agree with all rows", {
  problem <- problems$zero_inflated_poisson
  data <- dpar_data(problem, 20000)
  fit <- run_dpar(
    two_formulas(problem),
    data,
    problem$family,
    iter = 2000,
    chains = 4
  )
  expect_identical(fit$kernel$name, "sgld")
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  mode <- find_mode(model)
  at <- drop(model_variables(model, mode$estimate))
  sd <- apply(draws_matrix(fit), 2, stats::sd)
  expect_lt(max(abs(coef(fit) - at) / sd), 0.15)
})

test_that("fits are saved, resumed and updated", {
  problem <- problems$neg_binomial_2_shape
  data <- dpar_data(problem, 150)
  fit <- tall_glm(
    list(y ~ x, shape ~ z),
    data,
    neg_binomial_2(),
    iter = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_identical(predict(again, data[1:3, ]), predict(fit, data[1:3, ]))
  more <- sg_resume(again, 100, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 150L)
  updated <- update(fit, . ~ 1)
  expect_identical(updated$variables[[2]], "shape_(Intercept)")
  expect_output(print(fit), "shape ~ z")
  expect_output(print(summary(fit)), "neg_binomial_2 (log; shape: log)",
    fixed = TRUE)
  loo <- suppressWarnings(loo::loo(fit))
  expect_s3_class(loo, "psis_loo")
  expect_identical(family(fit)$family, "neg_binomial_2")
})

test_that("bf() of brms is read, and of one formula zi is the same for all", {
  problem <- problems$zero_inflated_poisson
  data <- dpar_data(problem, 100)
  bf <- structure(
    list(
      formula = y ~ x,
      pforms = list(zi = zi ~ z),
      pfix = list(),
      resp = "y"
    ),
    class = c("brmsformula", "bform")
  )
  fit <- run_dpar(bf, data, "zero_inflated_poisson", iter = 60)
  same <- run_dpar(list(y ~ x, zi ~ z), data, zero_inflated_poisson, iter = 60)
  expect_identical(fit$draws, same$draws)
  one <- run_dpar(y ~ x, data, zero_inflated_poisson(), iter = 60)
  expect_identical(one$variables, c("(Intercept)", "x", "zi_(Intercept)"))
})

test_that("marginal means are those of the mean's formula", {
  skip_if_not_installed("emmeans")
  data <- dpar_data(problems$gaussian_sigma, 90)
  fit <- run_dpar(list(y ~ x + g, sigma ~ z), data, stats::gaussian(),
    iter = 100)
  means <- as.data.frame(emmeans::emmeans(fit, ~g))
  at <- data.frame(x = mean(data$x), z = 0, g = c("u", "v", "w"))
  by_hand <- rstantools::posterior_linpred(fit, newdata = at)
  by_hand <- apply(by_hand, 2, stats::median)
  expect_equal(means$emmean, unname(by_hand))
  expect_identical(stats::df.residual(fit), 90 - 6)
})

test_that("what has no place is refused", {
  data <- dpar_data(problems$gaussian_sigma, 60)
  go <- function(formula, family = stats::gaussian(), ...) {
    run_dpar(formula, data, family, ..., iter = 20)
  }
  both <- list(y ~ x, sigma ~ z)
  expect_refusals(
    "tall_error_unsupported",
    go(list(y ~ x, nu ~ z), student()),
    go(list(y ~ x, zi ~ z), stats::poisson()),
    go(list(y ~ x, sigma ~ z), stats::poisson()),
    go(list(y ~ x, sigma ~ z, sigma ~ x)),
    go(list(y ~ x, sigma ~ s(z))),
    go(list(y ~ x, sigma ~ (1 | g))),
    go(list(y ~ x, sigma ~ offset(z))),
    go(both, sigma = 2),
    go(both, prior_PD = TRUE),
    go(both, sparse = TRUE),
    go(both, prior = prior_hs()),
    tall_gam(y ~ x, data, zero_inflated_poisson()),
    tall_gam(both, data)
  )
  expect_refusals(
    "tall_error_input",
    go(both, student(sigma = 2)),
    go(both, prior_aux = prior_exponential()),
    go(list(y ~ x, sigma ~ 0)),
    go(list(y ~ x, sigma ~ nothing)),
    go(list(~x, sigma ~ z)),
    tall_glm(list(y ~ ., sigma ~ z)),
    go(list(y ~ x, 3)),
    go(y ~ x, zero_inflated_poisson())
  )
})

test_that("limits of numbers whose sigma changes are those of a tobit", {
  withr::local_seed(5)
  n <- 300
  data <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n))
  whole <- 0.5 + 0.6 * data$x + exp(0.2 + 0.5 * data$z) * stats::rnorm(n)
  data$side <- ifelse(whole > 1.5, "right", ifelse(whole < -1, "left", "none"))
  data$y <- pmin(pmax(whole, -1), 1.5)
  fit <- run_dpar(
    list(y | cens(side) ~ x, sigma ~ z),
    data,
    stats::gaussian(),
    iter = 2000
  )
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  theta <- c(0.4, 0.7, 0.1, 0.4)
  natural <- drop(model_variables(model, theta))
  mean <- natural[[1]] + natural[[2]] * data$x
  sd <- exp(natural[[3]] + natural[[4]] * data$z)
  z <- (data$y - mean) / sd
  beyond <- stats::pnorm(ifelse(data$side == "left", z, -z), log.p = TRUE)
  by_hand <- ifelse(
    data$side == "none",
    stats::dnorm(data$y, mean, sd, log = TRUE),
    beyond
  )
  expect_equal(row_log_lik(model, theta)[, 1], by_hand)
  z <- (coef(fit) - c(0.5, 0.6, 0.2, 0.5)) / sqrt(diag(vcov(fit)))
  expect_lt(max(abs(z)), 3.5)
  # what is predicted is the number, seen or not
  law <- rstantools::posterior_predict(fit, data[1:2, ], seed = 1)
  expect_gt(max(law), 1.5)
  # the same for all rows: as without
  two <- run_dpar(
    list(y | cens(side) ~ x, sigma ~ 1),
    data,
    stats::gaussian(),
    iter = 2000
  )
  one <- run_dpar(y | cens(side) ~ x, data, stats::gaussian(), iter = 2000)
  both <- c("(Intercept)", "x")
  apart <- (coef(two)[both] - coef(one)[both]) / sqrt(diag(vcov(one))[both])
  expect_lt(max(abs(apart)), 0.25)
  expect_refusals(
    "tall_error_unsupported",
    run_dpar(list(y | cens(side) ~ x, shape ~ z), data, stats::Gamma("log"))
  )
})
