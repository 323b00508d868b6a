# Counts with a hurdle: two fits, and what they say together.

hurdle_counts <- function(n = 600) {
  withr::local_seed(4)
  data <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n))
  rate <- exp(0.3 + 0.5 * data$x)
  above <- stats::qpois(stats::runif(n, exp(-rate), 1), rate)
  data$y <- ifelse(stats::runif(n) < stats::plogis(-0.5 + data$z), 0, above)
  data$o <- rep_len(c(0, 0.2), n)
  data
}

fit_counts <- function(formula, data = hurdle_counts(), ...) {
  tall_glm(
    formula,
    data,
    hurdle_poisson(),
    iter = 300,
    chains = 2,
    seed = 7,
    refresh = 0,
    ...
  )
}

test_that("the parts are the fits that they are by themselves", {
  data <- hurdle_counts()
  fit <- fit_counts(list(y ~ x, hu ~ z))
  run <- list(iter = 300, chains = 2, refresh = 0)
  counts <- do.call(tall_glm, c(
    list(y ~ x, data, truncated_poisson(), subset = quote(y > 0), seed = 7),
    run
  ))
  zeros <- do.call(tall_glm, c(
    list((y == 0) ~ z, data, binomial(), seed = 8),
    run
  ))
  expect_identical(plain_draws(fit$counts), plain_draws(counts))
  expect_identical(plain_draws(fit$zeros), plain_draws(zeros))
  expect_equal(nobs(fit), 600)
  expect_named(coef(fit), c("(Intercept)", "x", "hu_(Intercept)", "hu_z"))
  expect_equal(unname(coef(fit)), unname(c(coef(counts), coef(zeros))))
  covariance <- vcov(fit)
  expect_equal(covariance[3:4, 3:4], vcov(zeros), ignore_attr = TRUE)
  expect_true(all(covariance[1:2, 3:4] == 0))
  # draws of the parts do not go together
  between <- cor(as.matrix(fit))[1:2, 3:4]
  expect_lt(max(abs(between)), 0.2)
  expect_identical(tidy(fit)$component, rep(c("cond", "hu"), each = 2))
  # without a formula, zeros are as probable in every row
  same <- fit_counts(y ~ x)
  expect_named(coef(same), c("(Intercept)", "x", "hu_(Intercept)"))
  # brms' bf() of the same
  bf <- structure(
    list(formula = y ~ x, pforms = list(hu = hu ~ z), pfix = list()),
    class = c("brmsformula", "bform")
  )
  expect_identical(plain_draws(fit_counts(bf)$zeros), plain_draws(zeros))
})

test_that("likelihood and predictions are those of the hurdle", {
  data <- hurdle_counts()
  fit <- fit_counts(list(y ~ x + offset(o), hu ~ z))
  theta <- unname(as.matrix(fit))
  rate <- exp(theta[, 1:2] %*% rbind(1, data$x) + rep(data$o, each = 300))
  h <- stats::plogis(theta[, 3:4] %*% rbind(1, data$z))
  y <- rep(data$y, each = 300)
  expected <- ifelse(
    y == 0,
    log(h),
    log1p(-h) + stats::dpois(y, rate, log = TRUE) -
      stats::ppois(0, rate, lower.tail = FALSE, log.p = TRUE)
  )
  found <- rstantools::log_lik(fit)
  expect_equal(unname(found), matrix(expected, 300))
  mean <- (1 - h) * rate / -expm1(-rate)
  expect_equal(unname(rstantools::posterior_epred(fit)), mean)
  shown <- predict(fit, se.fit = TRUE)
  expect_equal(unname(shown$fit), colMeans(mean))
  expect_equal(unname(shown$se.fit), apply(mean, 2, stats::sd))
  expect_equal(unname(predict(fit, type = "zero")), colMeans(h))
  expect_equal(
    unname(predict(fit, data[1:3, ], "count")),
    colMeans((rate / -expm1(-rate))[, 1:3])
  )
  linear <- rstantools::posterior_linpred(fit, dpar = "hu")
  expect_equal(unname(linear), stats::qlogis(h))
  drawn <- rstantools::posterior_predict(fit, seed = 1)
  z <- (mean(drawn == 0) - mean(h)) / sqrt(mean(h * (1 - h)) / length(h))
  expect_lt(abs(z), 5)
  z <- (mean(drawn) - mean(mean)) / (stats::sd(drawn) / sqrt(length(drawn)))
  expect_lt(abs(z), 5)
  # predictive densities of the parts add up
  skip_if_not_installed("loo")
  whole <- suppressWarnings(loo::loo(fit))$estimates[1, 1]
  part <- function(part) {
    suppressWarnings(loo::loo(part, observations = NULL))$estimates[1, 1]
  }
  expect_equal(whole, part(fit$zeros) + part(fit$counts), tolerance = 1e-3)
  skip_if_not_installed("bayesplot")
  expect_s3_class(bayesplot::pp_check(fit, draws = 10, seed = 1), "ggplot")
  expect_output(print(fit), "Is a count 0?")
  expect_output(print(summary(fit)), "Counts above 0")
})

test_that("an offset is of the rate alone", {
  data <- hurdle_counts()
  by_argument <- fit_counts(y ~ x, data, offset = o)
  by_formula <- fit_counts(y ~ x + offset(o), data)
  expect_equal(coef(by_argument), coef(by_formula))
  new <- data[1:3, ]
  expect_equal(predict(by_argument, new), predict(by_formula, new))
})

test_that("rows may lie elsewhere, and be left out", {
  data <- hurdle_counts()
  data$x[[5]] <- NA
  fit <- fit_counts(list(y ~ x, hu ~ z), data, subset = z > -1)
  expect_equal(nobs(fit), sum(data$z > -1))
  keep <- data$z > -1 & !is.na(data$x)
  expect_equal(length(predict(fit)), sum(keep))
  streamed <- fit_counts(
    list(y ~ x, hu ~ z),
    tall_stream(stream_of(data, 100)),
    subset = z > -1
  )
  expect_equal(coef(streamed), coef(fit), tolerance = 1e-6)
  expect_error(predict(streamed), class = "tall_error_stale")
  expect_equal(predict(streamed, data[1:4, ]), predict(fit, data[1:4, ]),
    tolerance = 1e-6)
  again <- tall_gam(
    list(y ~ s(x, k = 4), hu ~ z),
    data,
    hurdle_poisson(),
    iter = 50,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_s3_class(again$counts, "tall_gam")
})

test_that("what has no hurdle is refused", {
  data <- hurdle_counts(60)
  data$below <- data$y - 1
  data$none <- 0
  expect_refusals(
    "tall_error_input",
    fit_counts(below ~ x, data),
    fit_counts(I(y + 0.5) ~ x, data),
    fit_counts(none ~ x, data),
    fit_counts(factor(y) ~ x, data),
    fit_counts("y", data),
    fit_counts(~x, data)
  )
  expect_refusals(
    "tall_error_unsupported",
    tall_glm(y | cens("none") ~ a, data, hurdle_poisson()),
    fit_counts(list(y ~ x, zi ~ z), data),
    tall_glm(list(y ~ x, hu ~ z), data, poisson())
  )
})

varied_counts <- function(n = 400) {
  withr::local_seed(9)
  data <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n))
  rate <- exp(0.4 + 0.5 * data$x)
  none <- stats::pnbinom(0, 1.5, mu = rate)
  above <- stats::qnbinom(stats::runif(n, none, 1), 1.5, mu = rate)
  data$y <- ifelse(stats::runif(n) < stats::plogis(data$z), 0, above)
  data
}

test_that("counts above 0 may vary more", {
  data <- varied_counts()
  fit <- tall_glm(
    list(y ~ x, hu ~ z),
    data,
    hurdle_negbinomial(),
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(0, 1),
    prior_aux = prior_exponential(1),
    iter = 4000,
    seed = 3,
    refresh = 0
  )
  above <- data[data$y > 0, ]
  density <- function(y, rate, size) {
    stats::dnbinom(y, size, mu = rate, log = TRUE) -
      stats::pnbinom(0, size, mu = rate, lower.tail = FALSE, log.p = TRUE)
  }
  log_posterior <- function(theta) {
    rate <- exp(theta[[1]] + theta[[2]] * above$x)
    sum(density(above$y, rate, exp(theta[[3]]))) +
      stats::dnorm(theta[[1]] + theta[[2]] * mean(above$x), log = TRUE) +
      stats::dnorm(theta[[2]], log = TRUE) + theta[[3]] - exp(theta[[3]])
  }
  natural <- function(theta) {
    theta[3, ] <- exp(theta[3, ])
    theta
  }
  truth <- importance_moments(log_posterior, c(0.4, 0.5, 0.4), natural)
  expect_gt(truth$ess, 1000)
  expect_moments(fit$counts, truth)

  some <- data[1:20, ]
  theta <- unname(as.matrix(fit))
  n <- nrow(theta)
  each <- function(x) rep(x, each = n)
  rate <- exp(theta[, 1:2] %*% rbind(1, some$x))
  size <- theta[, 3]
  h <- stats::plogis(theta[, 4:5] %*% rbind(1, some$z))
  y <- each(some$y)
  expected <- ifelse(y == 0, log(h), log1p(-h) + density(y, rate, size))
  found <- rstantools::log_lik(fit, some)
  expect_equal(unname(found), matrix(expected, n))
  mean <- (1 - h) * rate / (1 - (1 + rate / size)^-size)
  expect_equal(unname(rstantools::posterior_epred(fit, some)), mean)
  drawn <- rstantools::posterior_predict(fit, some, seed = 1)
  z <- (mean(drawn) - mean(mean)) / (stats::sd(drawn) / sqrt(length(drawn)))
  expect_lt(abs(z), 5)
  # the part by itself has rates, and says so
  expect_error(fitted(fit$counts), "hurdle model", class = "tall_error")
  expect_error(
    tall_glm(y ~ x, above, "truncated_neg_binomial"),
    class = "tall_error_input"
  )
  expect_output(print(family(fit)), "hurdle_negbinomial")
})
