skip_if_not_installed("rstantools")

test_that("draws of predictor and mean are plain matrix products", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    epred <- rstantools::posterior_epred(fit)
    expect_close(no_names(epred), no_names(direct_mean(fit)), name)
    linear <- rstantools::posterior_linpred(fit)
    expect_close(no_names(linear), no_names(direct_linear(fit)), name)
    expect_identical(rstantools::posterior_linpred(fit, transform = TRUE), epred)
    expect_identical(colnames(epred), rownames(model.matrix(fit)))
    thinned <- rstantools::posterior_epred(fit, ndraws = 4)
    expect_identical(thinned, epred[c(51, 151, 251, 351), ])
  }
})

test_that("predictions do not depend on the number of threads", {
  for (name in c("weighted", "poisson", "gaussian")) {
    fit <- method_cases()[[name]]$fit
    for (f in list(
      rstantools::posterior_epred,
      rstantools::posterior_linpred,
      rstantools::bayes_R2,
      function(...) predict(..., type = "response", se.fit = TRUE),
      function(...) rstantools::posterior_predict(..., seed = 1),
      function(...) rstantools::predictive_interval(..., seed = 1)
    )) {
      expect_identical(f(fit, cores = 2), f(fit, cores = 1))
    }
  }
  expect_error(
    rstantools::posterior_epred(fit, cores = 0),
    class = "tall_error_input"
  )
})

test_that("responses have the mean and variance of their distribution", {
  for (name in names(method_cases())) {
    case <- method_cases()[[name]]
    mu <- rstantools::posterior_epred(case$fit)
    trials <- prediction_trials(case$fit, NULL, NULL, ncol(mu)) %||% 1
    size <- rep(trials, each = nrow(mu))
    yrep <- rstantools::posterior_predict(case$fit, seed = 3)
    expect_identical(dim(yrep), dim(mu))
    variance <- switch(
      case$fit$family$name,
      gaussian = direct_sigma(case$fit)^2,
      poisson = mu,
      size * mu * (1 - mu)
    )
    z <- (yrep - size * mu) / sqrt(variance)
    n <- length(z)
    expect_lt(abs(mean(z)) * sqrt(n), 4)
    # z^2 - 1 has variance 2 + excess kurtosis
    spread <- sd(z^2) / sqrt(n)
    expect_lt(abs(mean(z^2) - 1) / spread, 4)
  }
})

test_that("seed sets the responses and leaves R's generator alone", {
  fit <- method_cases()$bernoulli$fit
  set.seed(5)
  before <- .Random.seed
  one <- rstantools::posterior_predict(fit, draws = 10, seed = 1)
  expect_identical(.Random.seed, before)
  expect_identical(rstantools::posterior_predict(fit, draws = 10, seed = 1), one)
  expect_false(
    identical(rstantools::posterior_predict(fit, draws = 10, seed = 2), one)
  )
  other <- rstantools::posterior_predict(fit, draws = 10)
  set.seed(5)
  expect_identical(rstantools::posterior_predict(fit, draws = 10), other)
  expect_true(all(one %in% 0:1))
})

test_that("trials of new rows come from the response, the weights or the call", {
  new <- data.frame(a = c(0, 1), b = 15, wins = c(2, 0), losses = c(98, 7))
  fit <- method_cases()$cbind$fit
  expect_identical(prediction_trials(fit, new, NULL, 2), c(100, 7))
  expect_identical(prediction_trials(fit, new, 5, 2), c(5, 5))
  fit <- method_cases()$proportion$fit
  new$trials <- c(4, 3)
  expect_identical(prediction_trials(fit, new, NULL, 2), c(4, 3))
  fit <- method_cases()$weighted$fit
  expect_identical(prediction_trials(fit, new, NULL, 2), c(1, 1))
})

test_that("missing covariates give missing draws", {
  for (name in c("bernoulli", "poisson", "gaussian")) {
    fit <- method_cases()[[name]]$fit
    new <- data.frame(a = c(0, NA), b = 15, g = "u", exposure = 1)
    expect_silent(yrep <- rstantools::posterior_predict(fit, new, seed = 1))
    expect_identical(unname(colSums(is.na(yrep))), c(0, 400))
    interval <- rstantools::predictive_interval(fit, newdata = new, seed = 1)
    expect_identical(unname(rowSums(is.na(interval))), c(0, 2))
  }
})

test_that("predictive intervals are quantiles of the responses", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    yrep <- rstantools::posterior_predict(fit, seed = 4)
    expected <- rstantools::predictive_interval(yrep, prob = 0.8)
    found <- rstantools::predictive_interval(fit, prob = 0.8, seed = 4)
    expect_equal(found, expected, ignore_attr = TRUE, tolerance = 1e-12)
    expect_identical(colnames(found), c("10%", "90%"))
    error <- rstantools::predictive_error(fit, seed = 4)
    y <- method_cases()[[name]]$y
    expect_close(no_names(error), no_names(rep(y, each = 400) - yrep), name)
  }
})

test_that("blocks of rows change nothing", {
  x <- matrix(rnorm(5000), 2500)
  found <- NULL
  each_block(2500, 1000, function(rows) found <<- c(found, rows), size = 7e5)
  expect_identical(found, 1:2500)
})

test_that("R-squared is its formula", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    mu <- direct_mean(fit)
    trials <- prediction_trials(fit, NULL, NULL, ncol(mu)) %||% 1
    residual <- switch(
      fit$family$name,
      gaussian = direct_sigma(fit)^2,
      poisson = rowMeans(mu),
      rowMeans(mu * (1 - mu) / rep(trials, each = nrow(mu)))
    )
    explained <- apply(mu, 1, var)
    expect_close(
      rstantools::bayes_R2(fit),
      unname(explained / (explained + residual)),
      name
    )
  }
})

test_that("what nobody asked for is refused", {
  fit <- method_cases()$bernoulli$fit
  fit$n_data <- 2e5
  expect_snapshot(
    rstantools::posterior_epred(fit),
    error = TRUE,
    cnd_class = TRUE
  )
  fit$n_data <- 1e8
  for (f in list(
    rstantools::posterior_linpred,
    rstantools::posterior_predict,
    rstantools::predictive_error,
    rstantools::log_lik
  )) {
    e <- expect_error(f(fit), class = "tall_error_memory")
    expect_match(conditionMessage(e), "newdata", fixed = TRUE)
  }
  expect_identical(dim(rstantools::posterior_epred(fit, fit$frame)), c(400L, 60L))
})

test_that("bad arguments are refused in words", {
  fit <- method_cases()$cbind$fit
  new <- data.frame(a = 0, b = 15, exposure = 1)
  predict_new <- rstantools::posterior_predict
  expect_snapshot(predict_new(fit, new), error = TRUE, cnd_class = TRUE)
  expect_snapshot(predict_new(fit, new, trials = 2.5), error = TRUE)
  expect_snapshot(predict_new(fit, new, trials = 1:3), error = TRUE)
  expect_snapshot(predict_new(fit, new, seed = "a"), error = TRUE)
  expect_snapshot(predict_new(fit, new, draws = 0), error = TRUE)
  expect_snapshot(
    predict_new(method_cases()$poisson$fit, new, trials = 1),
    error = TRUE
  )
  expect_snapshot(rstantools::predictive_interval(fit, prob = 1), error = TRUE)
  expect_snapshot(rstantools::predictive_error(fit, new), error = TRUE)
})

test_that("a fit without data or draws says so", {
  fit <- quick_glm(iter = 100, keep_data = FALSE)
  expect_snapshot(
    rstantools::posterior_predict(fit),
    error = TRUE,
    cnd_class = TRUE
  )
  fit <- quick_glm(iter = 100, keep = "none")
  expect_snapshot(
    rstantools::posterior_epred(fit),
    error = TRUE,
    cnd_class = TRUE
  )
})
