# The engine of parsnip: what tall_glm() and predict() give, in parsnip's shape.

# of this file alone: others run in the same process
before <- options(tallbayes.refresh = 0)

engine_fit <- function(spec, ..., formula, data) {
  parsnip::fit(parsnip::set_engine(spec, "tallbayes", ...), formula, data)
}

test_that("a linear regression predicts as tall_glm() does", {
  skip_if_not_installed("parsnip")
  spec <- parsnip::linear_reg()
  fit <- engine_fit(
    spec, seed = 1, formula = mpg ~ wt + factor(cyl), data = mtcars
  )
  own <- tall_glm(mpg ~ wt + factor(cyl), data = mtcars, seed = 1)
  expect_s3_class(fit$fit, "tall_glm")
  expect_identical(coef(fit$fit), coef(own))
  new <- mtcars[1:4, ]
  expect_identical(predict(fit, new)$.pred, unname(predict(own, new)))
  expect_identical(predict(fit, new, type = "raw"), predict(own, new))
  found <- predict(fit, new, type = "conf_int", level = 0.8, std_error = TRUE)
  expect_named(found, c(".pred_lower", ".pred_upper", ".std_error"))
  draws <- rstantools::posterior_epred(own, newdata = new)
  expect_close(found$.pred_lower, unname(apply(draws, 2, quantile, 0.1)))
  se <- predict(own, new, se.fit = TRUE)$se.fit
  expect_close(found$.std_error, unname(se))
  wide <- predict(fit, new, type = "pred_int", level = 0.8)
  expect_true(all(wide$.pred_lower < found$.pred_lower))
  expect_true(all(wide$.pred_upper > found$.pred_upper))
  # matrices and data frames without a formula
  plain <- parsnip::fit_xy(
    parsnip::set_engine(spec, "tallbayes", seed = 1),
    mtcars["wt"],
    mtcars$mpg
  )
  expect_identical(nrow(predict(plain, mtcars["wt"])), 32L)
})

test_that("the event of a logistic regression is the second level", {
  skip_if_not_installed("parsnip")
  data <- transform(mtcars, gear = factor(ifelse(am == 1, "hand", "auto")))
  fit <- engine_fit(
    parsnip::logistic_reg(), seed = 1, formula = gear ~ wt, data = data
  )
  own <- predict(fit$fit, data, type = "response")
  found <- predict(fit, data, type = "prob")
  expect_named(found, c(".pred_auto", ".pred_hand"))
  expect_identical(found$.pred_hand, unname(own))
  expect_equal(rowSums(found), rep(1, 32))
  classes <- predict(fit, data)$.pred_class
  expect_identical(levels(classes), levels(data$gear))
  expect_identical(classes == "hand", unname(own >= 0.5))
  bounds <- predict(fit, data, type = "conf_int", level = 0.9)
  expect_identical(
    sort(names(bounds)),
    c(
      ".pred_lower_auto",
      ".pred_lower_hand",
      ".pred_upper_auto",
      ".pred_upper_hand"
    )
  )
  expect_true(all(bounds$.pred_lower_hand < own))
  expect_true(all(own < bounds$.pred_upper_hand))
  expect_equal(bounds$.pred_lower_auto, 1 - bounds$.pred_upper_hand)
})

test_that("counts have offsets in the formula", {
  skip_if_not_installed("parsnip")
  data <- transform(warpbreaks, size = 2)
  fit <- engine_fit(
    parsnip::poisson_reg(),
    seed = 1,
    formula = breaks ~ wool + offset(log(size)),
    data = data
  )
  own <- tall_glm(breaks ~ wool + offset(log(size)), data, poisson(), seed = 1)
  expect_identical(
    predict(fit, data)$.pred,
    unname(predict(own, data, type = "response"))
  )
  expect_identical(
    predict(fit, data, type = "linear_pred")$.pred_linear_pred,
    unname(predict(own, data))
  )
})

test_that("the engine is there when parsnip is loaded after the package", {
  skip_if_not_installed("parsnip")
  code <- c(
    "loadNamespace('tallbayes')",
    "stopifnot(!isNamespaceLoaded('parsnip'))",
    "loadNamespace('parsnip')",
    "cat('tallbayes' %in% parsnip::show_engines('poisson_reg')$engine)"
  )
  out <- system2(
    file.path(R.home("bin"), "Rscript"),
    c("-e", shQuote(paste(code, collapse = ";"))),
    stdout = TRUE,
    stderr = FALSE,
    env = paste0("R_LIBS=", paste(.libPaths(), collapse = ":"))
  )
  expect_match(paste(out, collapse = ""), "TRUE$")
})


test_that("times to an event predict as tall_surv() does", {
  skip_if_not_installed("parsnip")
  skip_if_not_installed("prodlim")
  skip_if_not_installed("survival")
  lung <- survival::lung
  lung$seen <- lung$status == 2
  formula <- survival::Surv(time, seen) ~ age + sex
  new <- lung[1:3, ]
  hazards <- parsnip::set_mode(
    parsnip::proportional_hazards(),
    "censored regression"
  )
  fit <- engine_fit(hazards, seed = 1, formula = formula, data = lung)
  own <- tall_surv(formula, lung, seed = 1)
  expect_s3_class(fit$fit, "tall_surv")
  expect_identical(coef(fit$fit), coef(own))
  found <- predict(fit, new, type = "survival", eval_time = c(0, 100, 500))
  expect_length(found$.pred, 3)
  expect_named(found$.pred[[1]], c(".eval_time", ".pred_survival"))
  expect_identical(found$.pred[[1]]$.eval_time, c(0, 100, 500))
  expect_identical(found$.pred[[1]]$.pred_survival[[1]], 1)
  curves <- posterior_survfit(own, new, times = c(100, 500))
  expect_identical(
    found$.pred[[2]]$.pred_survival[-1],
    curves$median[curves$id == 2]
  )
  hazard <- predict(fit, new, type = "hazard", eval_time = 100)
  expect_true(all(vapply(hazard$.pred, function(x) x$.pred_hazard > 0, TRUE)))
  expect_identical(
    predict(fit, new, type = "time")$.pred_time,
    unname(predict(own, new, "median"))
  )
  rising <- predict(fit, new, type = "linear_pred")$.pred_linear_pred
  expect_identical(rising, -unname(predict(own, new)))
  times <- parsnip::survival_reg(dist = "lognormal")
  times <- parsnip::set_mode(times, "censored regression")
  fit <- engine_fit(times, seed = 1, formula = formula, data = lung)
  own <- tall_surv(formula, lung, "lognormal", seed = 1)
  expect_identical(coef(fit$fit), coef(own))
  expect_identical(
    predict(fit, new, type = "linear_pred")$.pred_linear_pred,
    unname(predict(own, new))
  )
  quantiles <- predict(
    fit, new, type = "quantile", quantile_levels = c(0.2, 0.5)
  )
  own <- predict(own, new, "quantile", p = c(0.2, 0.5))
  found <- matrix(quantiles$.pred_quantile, 3, byrow = TRUE)
  expect_equal(found, unname(own))
})

options(before)
