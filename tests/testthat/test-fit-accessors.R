# What glm() and rstanarm have: a meaning, or a refusal.

data <- example_data(80)
gaussian_fit <- here_glm(z ~ a + b, weights = w, iter = 400, chains = 2)
binary_fit <- quick_glm(y ~ a, data, iter = 400, chains = 2)

test_that("deviance, df.residual and weights are glm's", {
  like <- stats::glm(z ~ a + b, data = data, weights = w)
  # the deviance is least at the least squares, and the draws are close to these
  expect_gt(deviance(gaussian_fit), 0.999 * deviance(like))
  expect_lt(deviance(gaussian_fit), 1.05 * deviance(like))
  expect_equal(
    deviance(gaussian_fit),
    sum(residuals(gaussian_fit, type = "deviance")^2)
  )
  expect_equal(df.residual(gaussian_fit), like$df.residual)
  expect_equal(weights(gaussian_fit), weights(like))
  expect_equal(
    weights(binary_fit),
    weights(stats::glm(y ~ a, binomial(), data))
  )
  trials <- withr::with_seed(1, transform(
    data,
    n = w + 1,
    wins = stats::rbinom(80, w + 1, 0.4)
  ))
  trials$a[[3]] <- NA
  tall <- tall_glm(
    cbind(wins, n - wins) ~ a,
    trials,
    binomial(),
    weights = w,
    na.action = na.exclude,
    iter = 100,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  like <- stats::glm(
    cbind(wins, n - wins) ~ a,
    binomial(),
    trials,
    weights = w,
    na.action = na.exclude
  )
  expect_equal(weights(tall), weights(like))
  expect_equal(deviance(tall), sum(residuals(tall, "deviance")^2, na.rm = TRUE))
  expect_error(weights(tall, type = "working"), class = "tall_error_input")
})

test_that("what is of a maximum of the likelihood is refused in words", {
  expect_snapshot(AIC(binary_fit), error = TRUE, cnd_class = TRUE)
  for (f in list(logLik, AIC, BIC, extractAIC)) {
    expect_error(f(binary_fit), "loo", class = "tall_error_unsupported")
    expect_error(f(quick_fit()), "loo", class = "tall_error_unsupported")
  }
})

test_that("functions of vectors are refused", {
  expect_snapshot(mean(binary_fit), error = TRUE, cnd_class = TRUE)
  refused <- list(
    stats::median, stats::quantile, posterior::quantile2, posterior::E,
    posterior::sd, posterior::mad, posterior::var, posterior::entropy
  )
  for (f in refused) {
    expect_error(f(binary_fit), class = "tall_error_unsupported")
  }
})

test_that("posterior's convergence measures are those of each variable", {
  draws <- posterior::as_draws_array(binary_fit)
  measures <- c(
    "rhat", "rhat_basic", "ess_basic", "ess_bulk", "ess_tail", "ess_mean",
    "ess_sd", "ess_median", "mcse_mean", "mcse_sd", "mcse_median"
  )
  for (name in measures) {
    f <- getExportedValue("posterior", name)
    expected <- vapply(
      binary_fit$variables,
      function(v) as.double(f(posterior::extract_variable_matrix(draws, v))),
      0
    )
    expect_equal(f(binary_fit), expected, info = name)
  }
  some <- posterior::ess_quantile(binary_fit, c(0.1, 0.9))
  expect_identical(dimnames(some), list(binary_fit$variables, c("q10", "q90")))
  expect_equal(
    some["a", "q90"],
    as.double(
      posterior::ess_quantile(
        posterior::extract_variable_matrix(draws, "a"),
        0.9
      )
    )
  )
  expect_error(posterior::rhat(decayed_fit()), class = "tall_error_unsupported")
})

test_that("augment() adds what predict() and residuals() give", {
  table <- augment(binary_fit, type.predict = "response", se_fit = TRUE)
  expect_s3_class(table, "tbl_df")
  expect_identical(
    names(table),
    c("y", "a", ".fitted", ".se.fit", ".resid")
  )
  expect_equal(table$.fitted, unname(fitted(binary_fit)))
  expect_equal(table$.resid, unname(residuals(binary_fit, "deviance")))
  new <- augment(binary_fit, newdata = data[1:3, ])
  expect_equal(new$.fitted, unname(predict(binary_fit, data[1:3, ])))
  expect_false(".resid" %in% names(new))
  whole <- augment(binary_fit, data = data)
  expect_true(all(names(data) %in% names(whole)))
  expect_error(
    augment(binary_fit, data = data[1:3, ]),
    class = "tall_error_input"
  )
  cars <- tall_glm(
    mpg ~ wt,
    mtcars,
    iter = 100,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(augment(cars)$.rownames, rownames(mtcars))
  # rows that were left out are predicted as NA
  holes <- data
  holes$a[[2]] <- NA
  padded <- augment(
    quick_glm(y ~ a, holes, iter = 40, chains = 1, na.action = na.exclude)
  )
  expect_identical(nrow(padded), 80L)
  expect_identical(which(is.na(padded$.fitted)), 2L)
})

test_that("coefficients have the names of lme4 and rstanarm", {
  expect_identical(fixef.tall_fit(gaussian_fit), coef(gaussian_fit))
  expect_equal(se.tall_fit(gaussian_fit), sqrt(diag(vcov(gaussian_fit))))
  expect_error(ranef.tall_fit(gaussian_fit), class = "tall_error_unsupported")
  package <- "nlme"
  skip_if_not_installed(package)
  fixef <- getExportedValue(package, "fixef")
  expect_identical(fixef(gaussian_fit), coef(gaussian_fit))
})

test_that("fits of sg_sample() say what is for formulas", {
  plain <- quick_fit()
  functions <- list(
    deviance, df.residual, weights, model.frame, model.matrix, terms, augment,
    fitted, residuals, formula, family
  )
  for (f in functions) {
    expect_error(f(plain), "as.matrix", class = "tall_error_unsupported")
  }
  expect_error(sigma(plain), class = "tall_error_unsupported")
  known <- quick_fit(example_model("gaussian", sigma = 2))
  expect_identical(sigma(known), 2)
  skip_if_not_installed("rstantools")
  functions <- list(
    rstantools::posterior_epred, rstantools::posterior_linpred,
    rstantools::posterior_predict, rstantools::predictive_error,
    rstantools::predictive_interval, rstantools::bayes_R2, rstantools::loo_pit
  )
  for (f in functions) {
    expect_error(f(plain), "tall_glm", class = "tall_error_unsupported")
  }
})

test_that("loo_pit() is the weight of the draws that are below", {
  skip_if_not_installed("rstantools")
  skip_if_not_installed("loo")
  fit <- quick_glm(z ~ a, data, gaussian(), iter = 400, chains = 2)
  found <- suppressWarnings(rstantools::loo_pit(fit, seed = 3))
  yrep <- rstantools::posterior_predict(fit, seed = 3)
  values <- rstantools::log_lik(fit)
  r_eff <- rep(relative_efficiency(fit, nrow(values)), 80)
  psis <- suppressWarnings(loo::psis(-values, r_eff = r_eff))
  weight <- stats::weights(psis, log = FALSE)
  below <- yrep <= rep(data$z, each = nrow(yrep))
  expect_equal(found, unname(colSums(weight * below)))
})
