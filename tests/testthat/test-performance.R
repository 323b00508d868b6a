# Measures of fits under performance's names, against what they are of.

before <- options(tallbayes.refresh = 0)

measured <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      d <- withr::with_seed(1, {
        d <- data.frame(x = rnorm(100), g = rep(1:10, 10))
        d$y <- d$x + rnorm(10)[d$g] + rnorm(100)
        d
      })
      d$b <- d$y > 0
      d$o <- cut(d$y, c(-Inf, -1, 1, Inf), ordered_result = TRUE)
      made <<- list(
        data = d,
        glm = tall_glm(y ~ x, d, iter = 400, seed = 1),
        flat = tall_glm(y ~ 1, d, iter = 400, seed = 1),
        binary = tall_glm(b ~ x, d, binomial(), iter = 400, seed = 1),
        glmer = tall_glmer(y ~ x + (1 | g), d, iter = 400, seed = 1),
        polr = tall_polr(o ~ x, d, iter = 400, seed = 1)
      )
    }
    made
  }
})

test_that("measures are those of loo, rstantools and residuals", {
  skip_if_not_installed("loo")
  skip_if_not_installed("rstantools")
  fits <- measured()
  d <- fits$data
  fit <- fits$glm
  out <- model_performance(fit)
  expect_s3_class(out, c("performance_model", "data.frame"), exact = TRUE)
  expect_identical(
    names(out),
    c("ELPD", "ELPD_SE", "LOOIC", "LOOIC_SE", "WAIC", "R2", "RMSE", "Sigma")
  )
  expect_identical(
    names(model_performance(fit, metrics = "common")), names(out)[1:7]
  )
  theirs <- suppressWarnings(loo::loo(fit))$estimates
  expect_equal(out$ELPD, theirs["elpd_loo", 1])
  expect_equal(out$LOOIC_SE, theirs["looic", 2])
  waic <- suppressWarnings(loo::waic(fit))
  expect_equal(out$WAIC, waic$estimates["waic", 1])
  expect_equal(out$R2, mean(rstantools::bayes_R2(fit)))
  mean <- drop(cbind(1, d$x) %*% coef(fit))
  expect_equal(out$RMSE, sqrt(mean((d$y - mean)^2)), tolerance = 1e-6)
  expect_equal(out$Sigma, sigma(fit))
  # least squares leave one out, nearly
  lm <- lm(y ~ x, d)
  left <- residuals(lm) / (1 - hatvalues(lm))
  s <- summary(lm)$sigma
  expect_lt(abs(out$ELPD - sum(dnorm(left, 0, s, log = TRUE))), 2)
  expect_s3_class(attr(out, "loo"), "loo")
})

test_that("a fit has the measures of its response", {
  skip_if_not_installed("loo")
  fits <- measured()
  d <- fits$data
  binary <- model_performance(fits$binary, metrics = c("LOGLOSS", "rmse"))
  expect_identical(names(binary), c("RMSE", "Log_loss"))
  mu <- fitted(fits$binary)
  expect_equal(binary$Log_loss, -mean(log(ifelse(d$b, mu, 1 - mu))))
  expect_equal(binary$RMSE, sqrt(mean((d$b - mu)^2)))
  # of several trials there is no loss of a row
  trials <- tall_glm(cbind(b, 3 - b) ~ x, d, binomial(), iter = 40, seed = 1)
  of_trials <- model_performance(trials, metrics = c("LOGLOSS", "rmse"))
  expect_identical(names(of_trials), "RMSE")
  polr <- model_performance(fits$polr)
  expect_identical(
    names(polr), c("ELPD", "ELPD_SE", "LOOIC", "LOOIC_SE", "WAIC", "Log_loss")
  )
  theirs <- MASS::polr(o ~ x, d)
  expect_lt(abs(polr$Log_loss - deviance(theirs) / 200), 0.01)
  groups <- model_performance(fits$glmer, metrics = "R2")
  expect_gt(groups$R2, groups$R2_marginal)
  expect_equal(
    groups$R2_marginal,
    mean(rstantools::bayes_R2(fits$glmer, re_formula = NA))
  )
  expect_error(
    model_performance(fits$glm, metrics = "AIC"), class = "tall_error_input"
  )
})

test_that("fits are compared", {
  skip_if_not_installed("loo")
  fits <- measured()
  fit <- fits$glm
  expect_warning(
    out <- compare_performance(fit, none = fits$flat, fits$polr),
    class = "tall_warning_response"
  )
  expect_silent(compare_performance(fit, fits$flat))
  expect_identical(out$Name, c("fit", "none", "fits$polr"))
  expect_identical(out$Model, c("tall_glm", "tall_glm", "tall_polr"))
  expect_identical(out$RMSE[[3]], NA_real_)
  expect_equal(out$LOOIC[[2]], model_performance(fits$flat)$LOOIC)
  expect_lt(out$LOOIC[[1]], out$LOOIC[[2]])
  expect_identical(compare_performance(fit)$Name, "fit")
  expect_error(compare_performance(fit, 1), class = "tall_error_input")
  few <- tall_glm(y ~ x, fits$data[1:50, ], iter = 400, seed = 1)
  expect_error(compare_performance(fit, few), class = "tall_error_input")
})

test_that("performance's own generic takes fits, and ours other models", {
  skip_if_not_installed("loo")
  skip_if_not_installed("performance")
  fits <- measured()
  out <- performance::model_performance(fits$glm)
  expect_equal(out, model_performance(fits$glm))
  expect_equal(out$RMSE, performance::performance_rmse(fits$glm))
  expect_equal(
    model_performance(fits$binary)$Log_loss,
    as.numeric(performance::performance_logloss(fits$binary)),
    tolerance = 0.001
  )
  expect_match(capture.output(print(out)), "LOOIC", all = FALSE)
  both <- compare_performance(fits$glm, fits$flat)
  expect_match(capture.output(print(both)), "tall_glm", all = FALSE)
  lm <- lm(y ~ x, fits$data)
  expect_equal(model_performance(lm), performance::model_performance(lm))
  expect_equal(
    compare_performance(lm, glm = lm)$R2,
    performance::compare_performance(lm, glm = lm)$R2
  )
})

options(before)
