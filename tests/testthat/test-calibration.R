# Calibration and ROC curves, against the same by brute force.

calibration_data <- function(n = 1000, seed = 1) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      g = sample(letters[1:8], n, TRUE),
      w = sample(1:3, n, TRUE),
      trials = sample(1:4, n, TRUE)
    )
    p <- stats::plogis(-1 + 1.2 * data$x)
    data$y <- stats::rbinom(n, 1, p)
    data$k <- stats::rbinom(n, data$trials, p)
    data
  })
}

auc_of <- function(p, y) {
  found <- suppressWarnings(stats::wilcox.test(p[y == 1], p[y == 0]))
  found$statistic[[1]] / sum(y == 1) / sum(y == 0)
}

test_that("scores are those of brute force", {
  data <- calibration_data()
  fit <- quick_glm(y ~ x, data, iter = 300)
  curve <- calibration_curve(fit)
  p <- unname(stats::predict(fit, type = "response"))
  expect_equal(attr(curve, "auc")[["estimate"]], auc_of(p, data$y))
  expect_identical(attr(curve, "auc_error"), 0)
  expect_equal(attr(curve, "brier")[["estimate"]], mean((p - data$y)^2))
  # each draw by itself
  each <- rstantools::posterior_epred(fit)
  at <- unique(round(seq(1, nrow(each), length.out = 200)))
  brier <- rowMeans((each[at, ] - rep(data$y, each = length(at)))^2)
  expect_equal(
    unname(attr(curve, "brier")[-1]),
    stats::quantile(brier, c(0.025, 0.975), names = FALSE)
  )
  auc <- apply(each[at, ], 1, auc_of, y = data$y)
  expect_equal(
    unname(attr(curve, "auc")[-1]),
    stats::quantile(auc, c(0.025, 0.975), names = FALSE),
    tolerance = 1e-3
  )
  # recalibration
  logit <- stats::qlogis(p)
  slope <- stats::glm(data$y ~ logit, family = stats::binomial())
  level <- stats::glm(data$y ~ offset(logit), family = stats::binomial())
  expect_equal(attr(curve, "slope"), coef(slope)[[2]], tolerance = 1e-3)
  expect_equal(attr(curve, "intercept"), coef(level)[[1]], tolerance = 1e-3)
})

test_that("groups are rows in the order of their predictions", {
  data <- calibration_data()
  fit <- quick_glm(y ~ x, data, iter = 300)
  curve <- calibration_curve(fit, bins = 5, prob = 0.9)
  expect_identical(nrow(curve), 5L)
  expect_equal(sum(curve$n), 1000)
  expect_lt(max(abs(curve$n / 200 - 1)), 0.05)
  p <- unname(stats::predict(fit, type = "response"))
  group <- rep(1:5, curve$n)[rank(p, ties.method = "first")]
  expect_equal(curve$predicted, as.vector(tapply(p, group, mean)))
  expect_equal(curve$observed, as.vector(tapply(data$y, group, mean)))
  each <- rstantools::posterior_epred(fit)
  at <- unique(round(seq(1, nrow(each), length.out = 200)))
  third <- rowMeans(each[at, group == 3])
  expect_equal(
    c(curve$predicted_lower[[3]], curve$predicted_upper[[3]]),
    stats::quantile(third, c(0.05, 0.95), names = FALSE)
  )
  expect_equal(
    curve$lower[[3]],
    with(curve[3, ], stats::qbeta(0.05, n * observed + 0.5, n * (1 - observed) +
      0.5))
  )
})

test_that("points of the ROC curve are shares above thresholds", {
  data <- calibration_data(300)
  fit <- quick_glm(y ~ x, data, iter = 300)
  curve <- roc_curve(fit)
  p <- unname(stats::predict(fit, type = "response"))
  for (k in c(1, 2, 50, 200, nrow(curve))) {
    says <- p >= curve$threshold[[k]] - 1e-12
    expect_equal(curve$sensitivity[[k]], mean(says[data$y == 1]))
    expect_equal(curve$specificity[[k]], mean(!says[data$y == 0]))
  }
  # the area is that under the curve
  other <- 1 - curve$specificity
  area <- sum(diff(other) * (curve$sensitivity[-1] +
    curve$sensitivity[-nrow(curve)]) / 2)
  expect_equal(attr(curve, "auc")[["estimate"]], area)
})

test_that("weights and trials count as so many rows", {
  data <- calibration_data(400)
  fit <- quick_glm(
    cbind(k, trials - k) ~ x,
    data,
    stats::binomial("probit"),
    weights = w,
    iter = 300
  )
  curve <- calibration_curve(fit, bins = 4)
  p <- unname(stats::predict(fit, type = "response"))
  long <- with(data, data.frame(
    p = rep(p, trials * w),
    y = unlist(Map(
      function(k, n, w) rep(rep(1:0, c(k, n - k)), w),
      k,
      trials,
      w
    ))
  ))
  expect_equal(sum(curve$n), nrow(long))
  expect_equal(attr(curve, "auc")[["estimate"]], auc_of(long$p, long$y))
  expect_equal(
    attr(curve, "brier")[["estimate"]],
    mean((long$p - long$y)^2)
  )
  each <- rstantools::posterior_epred(fit, ndraws = 3)
  few <- calibration_curve(fit, ndraws = 3)
  times <- data$trials * data$w
  auc <- apply(each, 1, function(p) auc_of(rep(p, times), long$y))
  expect_equal(
    unname(attr(few, "auc")[-1]),
    stats::quantile(auc, c(0.025, 0.975), names = FALSE),
    tolerance = 1e-3
  )
})

test_that("of many rows bins tell the area to the error that is said", {
  data <- calibration_data()
  fit <- quick_glm(y ~ x, data, iter = 300)
  found <- probability_sums(fit, NULL, NULL, NULL)
  p <- unname(stats::predict(fit, type = "response"))
  off <- abs(found$auc$mean - auc_of(p, data$y))
  expect_gt(off, 0)
  expect_lte(off, found$auc_error)
  expect_lt(found$auc_error, 2e-3)
  found$exact <- NULL
  points <- roc_points(found)
  for (k in c(10, 100, nrow(points))) {
    says <- p >= points$threshold[[k]]
    expect_equal(points$sensitivity[[k]], mean(says[data$y == 1]))
  }
})

test_that("rows may lie anywhere, and be others than the fit's", {
  data <- calibration_data()
  data$x[5] <- NA
  fit <- quick_glm(y ~ x, data, iter = 300)
  known <- calibration_curve(fit)
  expect_identical(attr(known, "n_row"), 999)
  expect_identical(attr(known, "n_missing"), 0)
  whole <- calibration_curve(fit, newdata = data)
  expect_identical(attr(whole, "n_row"), 999)
  expect_identical(attr(whole, "n_missing"), 1)
  other <- calibration_data(500, seed = 2)
  stream <- stream_of(other, c(70, 1))
  expect_equal(
    calibration_curve(fit, newdata = stream, ndraws = 100),
    calibration_curve(fit, newdata = other, ndraws = 100),
    tolerance = 1e-10
  )
  local_passes(rows = 300)
  passed <- quick_glm(y ~ x, stream_of(data, 150), iter = 300)
  expect_true(has_source(passed))
  from_source <- roc_curve(passed)
  expect_identical(attr(from_source, "n_row"), 999)
  again <- roc_curve(passed, newdata = data[-5, ])
  expect_equal(attr(from_source, "auc"), attr(again, "auc"))
})

test_that("effects of groups are in the predictions", {
  fit <- tall_glmer(
    y ~ x + (1 | g),
    data = calibration_data(300),
    family = stats::binomial(),
    seed = 1,
    refresh = 0,
    iter = 200
  )
  curve <- roc_curve(fit)
  p <- unname(stats::predict(fit, type = "response"))
  y <- calibration_data(300)$y
  expect_equal(attr(curve, "auc")[["estimate"]], auc_of(p, y), tolerance = 0.01)
  expect_false(identical(
    attr(roc_curve(fit, re_formula = NA), "auc"),
    attr(curve, "auc")
  ))
})

test_that("curves print and plot", {
  skip_if_not_installed("ggplot2")
  fit <- quick_glm(y ~ x, calibration_data(200), iter = 100)
  curve <- calibration_curve(fit)
  points <- roc_curve(fit)
  expect_output(print(curve), "Brier score")
  expect_output(print(points), "other thresholds")
  expect_s3_class(plot(curve), "ggplot")
  expect_s3_class(plot(points), "ggplot")
  expect_identical(class(as.data.frame(points)), "data.frame")
})

test_that("other fits and rows of one outcome are refused", {
  data <- calibration_data(200)
  fit <- quick_glm(y ~ x, data, iter = 60)
  expect_error(
    calibration_curve(quick_glm(x ~ w, data, stats::gaussian(), iter = 60)),
    "binomial",
    class = "tall_error_unsupported"
  )
  classes <- tall_multinom(g ~ x, data = data, seed = 1, refresh = 0, iter = 20)
  expect_error(
    roc_curve(classes),
    "calibration",
    class = "tall_error_unsupported"
  )
  expect_error(
    roc_curve(fit, newdata = data[data$y == 1, ]),
    "events",
    class = "tall_error_input"
  )
  expect_error(calibration_curve(fit, bins = 0), class = "tall_error_input")
  expect_error(calibration_curve(1), class = "tall_error_input")
})
