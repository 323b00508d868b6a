# R-squared and losses of predictions without their row, against loo's own
# functions on whole matrices.

skip_if_not_installed("loo")
skip_if_not_installed("rstantools")

metric_data <- function(n = 200) {
  withr::with_seed(1, {
    data <- data.frame(x = stats::rnorm(n), h = sample(letters[1:3], n, TRUE))
    data$y <- data$x + stats::rnorm(n)
    data$event <- stats::rbinom(n, 1, stats::plogis(data$x))
    data$class <- factor(ifelse(data$y < -0.5, "low", ifelse(data$y > 1, "up",
      "mid")))
    data
  })
}

# Predictions by matrices of all draws and rows.
means_by_loo <- function(fit, mu = rstantools::posterior_epred(fit)) {
  ratios <- -rstantools::log_lik(fit)
  r_eff <- rep(relative_efficiency(fit, nrow(ratios)), ncol(ratios))
  psis <- suppressWarnings(loo::psis(ratios, r_eff = r_eff))
  loo::E_loo(mu, psis, type = "mean", log_ratios = ratios)$value
}

test_that("losses are those of loo's weights", {
  data <- metric_data()
  fit <- quick_glm(y ~ x + h, data, stats::gaussian(), iter = 400)
  error <- data$y - means_by_loo(fit)
  of <- function(metric) loo_predictive_metric(fit, metric)
  expect_equal(of("mae")$estimate, mean(abs(error)))
  expect_equal(of("mae")$se, stats::sd(abs(error)) / sqrt(200))
  expect_equal(of("mse")$estimate, mean(error^2))
  expect_equal(of("mse")$se, stats::sd(error^2) / sqrt(200))
  expect_equal(of("rmse")$estimate, sqrt(mean(error^2)))
  # the delta method, against a bootstrap
  boot <- withr::with_seed(1, replicate(2000, {
    sqrt(mean(sample(error, replace = TRUE)^2))
  }))
  expect_equal(of("rmse")$se, stats::sd(boot), tolerance = 0.1)
})

test_that("shares are of the class that is most probable", {
  data <- metric_data()
  fit <- quick_glm(event ~ x, data, iter = 400)
  right <- (means_by_loo(fit) > 0.5) == data$event
  found <- loo_predictive_metric(fit, "acc")
  expect_equal(found$estimate, mean(right))
  expect_equal(found$se, sqrt(mean(right) * mean(!right) / 200))
  share <- tapply(right, data$event, mean)
  balanced <- loo_predictive_metric(fit, "balanced_acc")
  expect_equal(balanced$estimate, mean(share))
  n <- table(data$event)
  expect_equal(balanced$se, sqrt(sum(share * (1 - share) / n)) / 2)
  classes <- tall_multinom(
    class ~ x,
    data = data,
    seed = 1,
    refresh = 0,
    iter = 200
  )
  mu <- rstantools::posterior_epred(classes)
  p <- vapply(1:3, function(k) means_by_loo(classes, mu[, , k]), numeric(200))
  guess <- levels(data$class)[max.col(p)]
  expect_equal(
    loo_predictive_metric(classes, "acc")$estimate,
    mean(guess == data$class)
  )
})

test_that("R-squared has the mean and spread of the bootstrap", {
  data <- metric_data()
  fit <- quick_glm(y ~ x, data, stats::gaussian())
  error <- data$y - means_by_loo(fit)
  found <- loo_R2(fit, seed = 1)
  expect_length(found, posterior::ndraws(fit$draws))
  expect_identical(found, loo_R2(fit, seed = 1))
  wanted <- withr::with_seed(2, replicate(4000, {
    w <- stats::rexp(200)
    w <- w / sum(w)
    of <- function(v) sum(w * v^2) - sum(w * v)^2
    1 - of(error) / of(data$y)
  }))
  mcse <- stats::sd(wanted) * sqrt(2 / 4000)
  expect_lt(abs(mean(found) - mean(wanted)), 4 * mcse)
  expect_equal(stats::sd(found), stats::sd(wanted), tolerance = 0.06)
  expect_lt(mean(found), mean(rstantools::bayes_R2(fit)) + 0.02)
})

test_that("a subsample is that of loo(), also of rows in a source", {
  data <- metric_data(1500)
  fit <- quick_glm(y ~ x, data, stats::gaussian(), iter = 400)
  some <- loo_predictive_metric(fit, "mse", observations = 100)
  at <- loo::obs_idx(loo::loo(fit, observations = 100))
  expect_equal(some, loo_predictive_metric(fit, "mse", observations = at))
  all <- loo_predictive_metric(fit, "mse", observations = NULL)
  expect_lt(abs(some$estimate - all$estimate), 4 * some$se)
  local_passes(rows = 300)
  stream <- stream_of(data, 400)
  passed <- quick_glm(y ~ x, stream, stats::gaussian(), iter = 400)
  expect_true(has_source(passed))
  expect_equal(
    loo_predictive_metric(passed, "mse", observations = 100)$estimate,
    some$estimate,
    tolerance = 1e-3
  )
})

test_that("what has no rows to predict is refused", {
  data <- metric_data()
  fit <- quick_glm(y ~ x, data, stats::gaussian(), iter = 60)
  expect_error(loo_predictive_metric(fit, "acc"), class = "tall_error_input")
  expect_error(loo_predictive_metric(fit, "auc"), class = "tall_error_input")
  expect_error(loo_predictive_metric(1), class = "tall_error_input")
  classes <- tall_multinom(
    class ~ x,
    data = data,
    seed = 1,
    refresh = 0,
    iter = 20
  )
  expect_error(loo_R2(classes), class = "tall_error_unsupported")
  expect_error(
    loo_predictive_metric(classes, "mae"),
    class = "tall_error_unsupported"
  )
  groups <- tall_glmer(
    y ~ x + (1 | h),
    data = data,
    seed = 1,
    refresh = 0,
    iter = 20
  )
  expect_error(loo_R2(groups), "groups", class = "tall_error_unsupported")
})
