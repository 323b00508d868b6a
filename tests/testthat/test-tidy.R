test_that("tidy() has the numbers of summary()", {
  fit <- method_cases()$gaussian$fit
  table <- summary(fit, probs = c(0.05, 0.95))$table
  out <- tidy(fit, c("fixed", "auxiliary"), conf.int = TRUE, conf.level = 0.9)
  expect_s3_class(out, "tbl_df")
  expect_identical(out$term, fit$variables)
  expect_close(out$estimate, table$mean)
  expect_close(out$std.error, table$sd)
  expect_close(out$conf.low, table$q5)
  expect_close(out$conf.high, table$q95)
  expect_identical(tidy(fit)$term, setdiff(fit$variables, "sigma"))
  expect_identical(tidy(fit, "auxiliary")$term, "sigma")
  expect_named(tidy(fit), c("term", "estimate", "std.error"))
})

test_that("exponentiate leaves sigma alone", {
  fit <- method_cases()$gaussian$fit
  plain <- tidy(fit, c("fixed", "auxiliary"), conf.int = TRUE)
  out <- tidy(
    fit,
    c("fixed", "auxiliary"),
    conf.int = TRUE,
    exponentiate = TRUE
  )
  coefficients <- plain$term != "sigma"
  expect_close(out$estimate[coefficients], exp(plain$estimate[coefficients]))
  expect_close(out$conf.low[coefficients], exp(plain$conf.low[coefficients]))
  expect_identical(out[!coefficients, ], plain[!coefficients, ])
})

test_that("glance() is one row, whatever was kept", {
  fit <- method_cases()$gaussian$fit
  out <- glance(fit)
  expect_identical(dim(out), c(1L, 10L))
  expect_identical(out$pss, 400L)
  expect_equal(out$nobs, 60)
  expect_identical(out$sigma, sigma(fit))
  expect_identical(out$rhat, max(summary(fit)$table$rhat))
  expect_identical(glance(method_cases()$known$fit)$sigma, 2)
  known_student <- tall_glm(
    dist ~ speed,
    cars,
    student(df = 5, sigma = 2),
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_identical(sigma(known_student), 2)
  expect_identical(glance(known_student)$sigma, 2)
  expect_identical(glance(method_cases()$bernoulli$fit)$sigma, NA_real_)
  none <- quick_fit(keep = "none", chains = 2)
  expect_identical(names(glance(none)), names(out))
  expect_identical(glance(none)$rhat, max(summary(none)$table$rhat))
  alone <- glance(quick_fit(keep = "none", chains = 1))
  expect_identical(alone$rhat, NA_real_)
  expect_identical(nrow(glance(decayed_fit())), 1L)
})

test_that("runs without a formula are tidy too", {
  out <- tidy(quick_fit(example_model("gaussian")), "auxiliary")
  expect_identical(out$term, "sigma")
  model <- model_gaussian(matrix(rnorm(100), 50), diag(2))
  expect_identical(tidy(quick_fit(model))$term, c("x1", "x2"))
  expect_identical(
    tidy(quick_fit(keep = "none"))$term,
    c("(Intercept)", "a", "b")
  )
})

test_that("weighted draws have weighted intervals", {
  fit <- decayed_fit()
  out <- tidy(fit, conf.int = TRUE)
  w <- as.numeric(fit$weights)
  expected <- weighted_quantile(
    as.matrix(fit)[, "a"],
    w / sum(w),
    c(0.025, 0.975)
  )
  expect_close(c(out$conf.low[[2]], out$conf.high[[2]]), expected)
})

test_that("bad arguments are refused in words", {
  fit <- method_cases()$bernoulli$fit
  expect_snapshot(tidy(fit, "ran_vals"), error = TRUE, cnd_class = TRUE)
  expect_snapshot(tidy(fit, conf.level = 95), error = TRUE)
  expect_snapshot(tidy(fit, quick = TRUE), error = TRUE)
  expect_snapshot(
    tidy(quick_fit(keep = "none"), conf.int = TRUE),
    error = TRUE,
    cnd_class = TRUE
  )
})
