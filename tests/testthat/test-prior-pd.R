test_that("prior_PD = TRUE draws from the prior", {
  data <- withr::with_seed(1, {
    data.frame(
      y = stats::rbinom(400, 1, 0.3),
      size = stats::rnorm(400, 5, 3),
      x = stats::rnorm(400, 2, 10),
      z = stats::rexp(400)
    )
  })
  draw <- function(formula, family, ...) {
    tall_glm(
      formula,
      data,
      family,
      prior_PD = TRUE,
      iter = 6000,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  z <- function(x, mean, sd) {
    n <- length(x)
    c((mean(x) - mean) / sd * sqrt(n), log(stats::sd(x) / sd) * sqrt(2 * n))
  }
  fit <- draw(
    y ~ x + z,
    binomial(),
    prior = prior_normal(1, 0.5),
    prior_intercept = prior_normal(0, 2)
  )
  expect_match(fit$plan, "prior")
  d <- posterior::as_draws_matrix(fit)
  expect_lt(max(abs(z(d[, "x"], 1, 0.5))), 4.5)
  expect_lt(max(abs(z(d[, "z"], 1, 0.5))), 4.5)
  # the intercept's is that of the predictor at the means
  centre <- d[, "(Intercept)"] + mean(data$x) * d[, "x"] +
    mean(data$z) * d[, "z"]
  expect_lt(max(abs(z(centre, 0, 2))), 4.5)
  expect_lt(abs(stats::cor(d[, "x"], d[, "z"])), 4.5 / sqrt(nrow(d)))

  fit <- draw(size ~ x, gaussian())
  d <- posterior::as_draws_matrix(fit)
  sd_y <- stats::sd(data$size)
  expect_lt(max(abs(z(d[, "x"], 0, 2.5 * sd_y / stats::sd(data$x)))), 4.5)
  u <- stats::pexp(d[, "sigma"], 1 / sd_y)
  expect_gt(stats::ks.test(as.vector(u), "punif")$p.value, 1e-4)

  # more of them, and of rows that are passed over
  more <- posterior::as_draws_matrix(sg_resume(fit, 3000, refresh = 0))
  expect_identical(nrow(more), 2L * nrow(d))
  expect_lt(
    max(abs(z(more[, "x"], 0, 2.5 * sd_y / stats::sd(data$x)))),
    4.5
  )
  local_passes(rows = 100, chunk = 128)
  fit <- draw(y ~ x + z, binomial(), prior = prior_normal(1, 0.5))
  expect_false(is.null(fit$rows$source))
  more <- posterior::as_draws_matrix(sg_resume(fit, 3000, refresh = 0))
  expect_lt(max(abs(z(more[, "x"], 1, 0.5))), 4.5)

  expect_error(
    draw(y ~ x, binomial(), prior = NULL),
    class = "tall_error_input"
  )
  expect_error(
    draw(y ~ x, binomial(), prior = prior_student(3)),
    class = "tall_error_unsupported"
  )
  expect_error(
    draw(y ~ x, binomial(), kernel = kernel_sgld(0.1)),
    class = "tall_error_input"
  )
})

test_that("what stands beside the mean is drawn from its prior", {
  data <- withr::with_seed(2, {
    data.frame(x = stats::rnorm(100), y = stats::rexp(100))
  })
  draw <- function(family, prior_aux) {
    fit <- tall_glm(
      y ~ x,
      data,
      family,
      prior = prior_normal(0, 1),
      prior_aux = prior_aux,
      prior_PD = TRUE,
      iter = 3000,
      seed = 1,
      refresh = 0
    )
    list(fit = fit, draws = posterior::as_draws_matrix(fit))
  }
  expect_law <- function(x, cdf) {
    p <- stats::ks.test(as.vector(x), cdf)$p.value
    expect_gt(p, 1e-4)
  }
  # degrees of freedom are cut off at 1
  above <- function(q) {
    below <- stats::pgamma(1, 2, 0.5)
    (stats::pgamma(q, 2, 0.5) - below) / (1 - below)
  }
  priors <- list(sigma = prior_gamma(3, 2), nu = prior_gamma(2, 0.5))
  both <- draw(student(), priors)
  expect_law(both$draws[, "sigma"], function(q) stats::pgamma(q, 3, 2))
  expect_law(both$draws[, "nu"], above)
  expect_law(both$draws[, "x"], stats::pnorm)
  r <- stats::cor(both$draws)
  expect_lt(max(abs(r[upper.tri(r)])), 4.5 / sqrt(nrow(both$draws)))
  more <- posterior::as_draws_matrix(sg_resume(both$fit, 2000, refresh = 0))
  expect_law(more[, "nu"], above)

  one <- draw(student(sigma = 2), list(nu = prior_exponential(0.2)))
  expect_law(one$draws[, "nu"] - 1, function(q) stats::pexp(q, 0.2))
  one <- draw(gamma_regression(), prior_gamma(2, 4))
  expect_law(one$draws[, "shape"], function(q) stats::pgamma(q, 2, 4))

  # the density is that of the prior, in the coordinates
  d <- as.data.frame(both$draws)
  at <- stats::dnorm(d$x, log = TRUE) +
    stats::dgamma(d$sigma, 3, 2, log = TRUE) +
    log(d$sigma) +
    stats::dgamma(d$nu, 2, 0.5, log = TRUE) +
    log(d$nu - 1)
  centre <- d[["(Intercept)"]] + mean(data$x) * d$x
  skip_if_not_installed("bayesplot")
  given <- bayesplot::log_posterior(both$fit)
  given <- given$Value[order(given$Chain, given$Iteration)]
  rest <- stats::lm(given - at ~ I(centre^2) + centre)
  expect_lt(max(abs(stats::residuals(rest))), 1e-6)
})

test_that("priors with scales of their own are drawn from", {
  data <- withr::with_seed(3, {
    data <- data.frame(x = stats::runif(200), z = stats::rnorm(200, 4))
    data$g <- factor(sample(letters[1:4], 200, TRUE))
    data$y <- stats::rnorm(200, sin(6 * data$x), 2)
    data
  })
  fit <- tall_gam(
    y ~ s(x, k = 6) + z + (1 | g),
    data,
    prior_PD = TRUE,
    iter = 4000,
    seed = 1,
    refresh = 0
  )
  d <- posterior::as_draws_matrix(fit)
  sd_y <- stats::sd(data$y)
  for (name in c("smooth_sd[s(x)1]", "smooth_sd[s(g)1]", "sigma")) {
    u <- stats::pexp(as.vector(d[, name]), 1 / sd_y)
    expect_gt(stats::ks.test(u, "punif")$p.value, 1e-4)
  }
  # effects of levels, given their scale; and the intercept's prior is that of
  # the predictor at the means, effects of levels 0
  z <- d[, "s(g).b"] / d[, "smooth_sd[s(g)1]"]
  expect_gt(stats::ks.test(as.vector(z), "pnorm")$p.value, 1e-4)
  smooth <- rowMeans(posterior_smooths(fit, "s(x)", newdata = data))
  centre <- d[, "(Intercept)"] + mean(data$z) * d[, "z"] + smooth
  z <- (centre - mean(data$y)) / 2.5 / sd_y
  expect_gt(stats::ks.test(as.vector(z), "pnorm")$p.value, 1e-4)
  expect_true(all(is.na(smooth_table(fit)$k_index)))
  more <- sg_resume(fit, 500, refresh = 0)
  again <- tall_gam(
    y ~ s(x, k = 6) + z + (1 | g),
    data,
    prior_PD = TRUE,
    iter = 4500,
    warmup = 2000,
    seed = 1,
    refresh = 0
  )
  expect_identical(
    unclass(posterior::as_draws_array(more)),
    unclass(posterior::as_draws_array(again))
  )

  # a prior of scales by simulate() and through the front end
  fit <- tall_glm(
    y ~ x + z,
    data,
    prior = prior_ridge(),
    prior_PD = TRUE,
    iter = 4000,
    seed = 1,
    refresh = 0
  )
  d <- posterior::as_draws_matrix(fit)
  other <- stats::simulate(
    prior_ridge(),
    8000,
    seed = 2,
    n_coef = 2
  )
  ours <- as.vector(d[, "z"])
  expect_gt(stats::ks.test(ours, as.vector(other[, "x1"]))$p.value, 1e-4)
})
