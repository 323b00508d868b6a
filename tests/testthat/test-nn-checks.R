# Cross-validation, checks and R-squared of networks: against the same from the
# matrices of draws.

nn_fits <- function() {
  withr::with_seed(11, {
    data <- data.frame(x = runif(1500, -2, 2))
    data$y <- sin(2 * data$x) + rnorm(1500, sd = 0.3)
    data$yes <- factor(ifelse(runif(1500) < plogis(2 * data$x), "b", "a"))
    data$kind <- factor(cut(data$x + rnorm(1500, sd = 0.3), c(-9, -1, 1, 9)))
  })
  fit <- function(formula, sigma = NULL) {
    arguments <- list(
      formula,
      data,
      hidden = 4,
      train_iter = 500,
      iter = 200,
      chains = 2,
      seed = 1,
      refresh = 0
    )
    do.call(tall_nn, c(arguments, if (!is.null(sigma)) list(sigma = sigma)))
  }
  list(
    gaussian = fit(y ~ x),
    known = fit(y ~ x, 0.3),
    bernoulli = fit(yes ~ x),
    categorical = fit(kind ~ x)
  )
}

fits <- NULL
the_fits <- function() {
  if (is.null(fits)) {
    fits <<- nn_fits()
  }
  fits
}

test_that("log_lik() as a function is log_lik() as a matrix", {
  skip_if_not_installed("rstantools")
  for (fit in the_fits()) {
    values <- rstantools::log_lik(fit)
    f <- rstantools::log_lik(fit, pointwise = TRUE)
    data <- attr(f, "data")
    draws <- attr(f, "draws")
    expect_equal(
      f(data[c(3, 700), , drop = FALSE], draws),
      unname(values[, c(3, 700)])
    )
    # one row at a time, at few draws: from all rows at once
    few <- draws[c(1, 90, 200), ]
    row <- function(i) f(data[i, , drop = FALSE], few)
    expect_equal(row(1), matrix(values[c(1, 90, 200), 1]))
    expect_equal(row(1500), matrix(values[c(1, 90, 200), 1500]))
    one <- draws[7, , drop = FALSE]
    expect_equal(drop(f(data[9, , drop = FALSE], one)), values[[7, 9]])
  }
})

test_that("loo of a network estimates that of all rows", {
  skip_if_not_installed("loo")
  for (fit in the_fits()) {
    all <- suppressWarnings(loo::loo(fit, observations = NULL))
    expect_s3_class(all, "psis_loo")
    some <- suppressWarnings(loo::loo(fit, observations = 300, seed = 1))
    expect_s3_class(some, "psis_loo_ss")
    error <- some$estimates["elpd_loo", "Estimate"] -
      all$estimates["elpd_loo", "Estimate"]
    expect_lt(
      abs(error),
      5 * some$estimates["elpd_loo", "subsampling SE"] + 0.1
    )
    # the approximation takes most of the variance away
    plain <- 1500 / sqrt(300) * sd(all$pointwise[, "elpd_loo"])
    expect_lt(some$estimates["elpd_loo", "subsampling SE"], plain / 3)
    waic <- suppressWarnings(loo::waic(fit))
    expect_s3_class(waic, "waic")
  }
  # an approximation of one's own
  fit <- the_fits()$gaussian
  other <- suppressWarnings(
    loo::loo_subsample(
      fit,
      observations = 300,
      loo_approximation = "plpd",
      seed = 1
    )
  )
  expect_identical(other$loo_subsampling$loo_approximation, "plpd")
})

test_that("bayes_R2() and predictive_error() are those of the draws", {
  skip_if_not_installed("rstantools")
  fits <- the_fits()
  for (name in c("gaussian", "known", "bernoulli")) {
    fit <- fits[[name]]
    mu <- rstantools::posterior_epred(fit)
    explained <- apply(mu, 1, var)
    residual <- switch(
      name,
      gaussian = draws_matrix(fit)[, "sigma"]^2,
      known = 0.3^2,
      rowMeans(mu * (1 - mu))
    )
    expect_equal(
      rstantools::bayes_R2(fit),
      unname(explained / (explained + residual))
    )
    y <- own_response(fit)$y
    yrep <- rstantools::posterior_predict(fit, draws = 5, seed = 3)
    expect_equal(
      rstantools::predictive_error(fit, draws = 5, seed = 3),
      rep(y, each = 5) - yrep
    )
  }
  expect_error(
    rstantools::bayes_R2(fits$categorical),
    class = "tall_error_unsupported"
  )
  expect_error(
    rstantools::predictive_error(fits$categorical),
    class = "tall_error_unsupported"
  )
})

test_that("pp_check() shows responses beside those of the draws", {
  skip_if_not_installed("bayesplot")
  for (name in names(the_fits())) {
    fit <- the_fits()[[name]]
    plot <- bayesplot::pp_check(fit, seed = 1, observations = 400)
    expect_s3_class(plot, "ggplot")
    shown <- replicated_responses(fit, 1:1500, 200)
    expect_identical(dim(shown$yrep), c(200L, 1500L))
    if (name == "categorical") {
      expect_identical(sort(unique(as.integer(shown$yrep))), 1:3)
    }
    # means agree: the network has an intercept
    gap <- mean(shown$yrep) - mean(shown$y)
    expect_lt(abs(gap), 5 * sd(shown$y) / sqrt(1500))
  }
})

test_that("glance() has R-hat and effective draws of predictions", {
  fit <- the_fits()$gaussian
  row <- glance(fit)
  expect_identical(row$rhat, max(summary(fit)$rhat))
  expect_identical(row$ess_bulk, min(summary(fit)$ess_bulk))
  expect_identical(row$nobs, 1500)
})

test_that("losses on held-out data are those of the matrices of draws", {
  skip_if_not_installed("rstantools")
  found <- the_fits()
  rows <- c(5, 300, 700, 1100, 1400)
  new <- lapply(found, function(fit) fit$call[[3]][rows, ])
  for (name in names(found)) {
    fit <- found[[name]]
    values <- rstantools::log_lik(fit, newdata = new[[name]])
    expect_close(log_loss(fit, new[[name]]), -mean(log(colMeans(exp(values)))))
    each <- log_loss(fit, new[[name]], "draw")
    expect_close(each, unname(-rowMeans(values)))
    if (name == "categorical") {
      expect_error(rmse(fit, new[[name]]), class = "tall_error_unsupported")
      next
    }
    mu <- rstantools::posterior_epred(fit, newdata = new[[name]])
    y <- if (name == "bernoulli") new$bernoulli$yes == "b" else new[[name]]$y
    range <- c(0.2, 0.6)
    expect_close(rmse(fit, new[[name]]), rmse(unname(mu), y + 0))
    expect_close(
      rmse(fit, new[[name]], "draw", range),
      rmse(unname(mu), y + 0, "draw", range)
    )
  }
  expect_error(rmse(found$gaussian), class = "tall_error_input")
  expect_error(rmse(found$gaussian, 1:3), class = "tall_error_input")
  missing <- replace(new$gaussian, 1, NA)
  expect_error(rmse(found$gaussian, missing), class = "tall_error_input")
})

test_that("monitors of networks take data frames", {
  withr::local_seed(2)
  data <- data.frame(x = runif(120, -2, 2), g = c("a", "b", "c"))
  data$y <- 40 + 10 * sin(2 * data$x) + rnorm(120)
  data$yes <- factor(ifelse(data$y > 40, "high", "low"))
  test <- data[101:120, ]
  run <- function(formula, monitor, ..., train_iter = 200) {
    tall_nn(
      formula,
      data[1:100, ],
      hidden = 3,
      train_iter = train_iter,
      iter = 30,
      warmup = 20,
      thin = 1,
      chains = 1,
      seed = 4,
      monitor = c(list(every = 1), monitor),
      refresh = 0,
      ...
    )
  }
  watched <- list(
    rmse = monitor_rmse(test, range = c(0, 50)),
    lik = monitor_log_lik(test),
    loss = monitor_log_loss(test)
  )
  value <- function(fit, name, statistic) {
    table <- fit$monitor
    keep <- table$monitor == name & table$statistic == statistic
    utils::tail(table$value[keep], 10)
  }
  fits <- list(
    run(y ~ x + g, watched),
    run(y ~ x + g, watched, sigma = 2),
    run(yes ~ x + g, watched),
    run(g ~ x, watched[-1])
  )
  for (fit in fits) {
    values <- log_loss(fit, test, "draw")
    expect_close(value(fit, "loss", "draw"), values)
    expect_close(value(fit, "lik", "draw"), -values)
    last <- value(fit, "loss", "ergodic")[[10]]
    expect_close(last, log_loss(fit, test))
    if (fit$likelihood != "categorical") {
      draws <- rmse(fit, test, "draw", range = c(0, 50))
      expect_close(value(fit, "rmse", "draw"), draws)
      last <- value(fit, "rmse", "ergodic")[[10]]
      expect_close(last, rmse(fit, test, range = c(0, 50)))
    }
  }
  # at the average of the draws, log sigma among them
  fit <- fits[[1]]
  average <- fit
  average$draws <- fit$draws[1, , ]
  mean <- apply(unclass(fit$unconstrained), 3, mean)
  weights <- seq_len(fit$n_coef)
  sigma <- fit$scaling$y_scale * exp(mean[-weights])
  average$draws[] <- c(mean[weights], sigma)
  expect_close(value(fit, "lik", "ergodic")[[10]], -log_loss(average, test))

  more <- sg_resume(fit, 5, refresh = 0)
  expect_identical(sum(more$monitor$monitor == "loss"), 20L + 2L * 15L)

  # refused before the training
  bad <- list(loss = monitor_log_loss(test["y"]))
  withr::defer(setTimeLimit())
  setTimeLimit(elapsed = 60, transient = TRUE)
  expect_error(run(y ~ x, bad, train_iter = 1e9), class = "tall_error_input")
  expect_error(
    run(g ~ x, list(rmse = monitor_rmse(test))),
    class = "tall_error_unsupported"
  )
})

test_that("predictions have the arguments and shapes of tall_glm()'s", {
  skip_if_not_installed("rstantools")
  new <- data.frame(x = c(-1, 0, 1), row.names = c("u", "v", "w"))
  for (kind in c("gaussian", "known", "bernoulli")) {
    fit <- the_fits()[[kind]]
    table <- predict(fit, new)
    found <- predict(fit, new, "response", TRUE, cores = 1)
    expect_equal(found$fit, stats::setNames(table$mean, rownames(new)))
    draws <- rstantools::posterior_epred(fit, new, offset = NULL, cores = 1)
    eta <- rstantools::posterior_linpred(fit, newdata = new)
    n <- nrow(draws)
    expect_equal(found$se.fit, apply(draws, 2, stats::sd) * sqrt((n - 1) / n))
    expect_equal(predict(fit, new, type = "link"), colMeans(eta))
    expect_s3_class(predict(fit, new, draws = 3), "data.frame")
  }
  classes <- the_fits()$categorical
  p <- predict(classes, new, type = "response", se.fit = TRUE)
  expect_identical(dim(p$fit), c(3L, 3L))
  expect_identical(
    dimnames(p$fit),
    list(rownames(new), classes$response_levels)
  )
  expect_equal(unname(rowSums(p$fit)), rep(1, 3))
  expect_identical(dim(p$se.fit), c(3L, 3L))
  fit <- the_fits()$bernoulli
  expect_identical(names(predict(fit, type = "link"))[1:2], c("1", "2"))
  interval <- rstantools::predictive_interval(fit, newdata = new, seed = 1)
  expect_true(all(interval %in% c(0, 1)))
  expect_identical(dimnames(interval), list(rownames(new), c("5%", "95%")))
  # what networks have not
  for (f in list(
    stats::predict, rstantools::posterior_epred, rstantools::posterior_predict,
    rstantools::posterior_linpred, rstantools::predictive_interval,
    rstantools::log_lik, rstantools::bayes_R2, rstantools::predictive_error
  )) {
    expect_error(f(fit, offset = 1), "offset", class = "tall_error_input")
  }
  expect_error(
    rstantools::posterior_predict(fit, trials = 2),
    class = "tall_error_input"
  )
  expect_error(predict(fit, new, se.fit = TRUE), class = "tall_error_input")
})

test_that("residuals have the types of tall_glm()'s", {
  fit <- the_fits()$bernoulli
  mu <- fitted(fit)
  y <- as.numeric(fit$rows$frame$yes == "b")
  expect_equal(residuals(fit, "pearson"), (y - mu) / sqrt(mu * (1 - mu)))
  deviance <- -2 * (y * log(mu) + (1 - y) * log(1 - mu))
  expect_equal(residuals(fit, "deviance"), sign(y - mu) * sqrt(deviance))
  expect_equal(deviance(fit), sum(deviance))
  numbers <- the_fits()$gaussian
  expect_equal(residuals(numbers, "deviance"), residuals(numbers))
  expect_error(
    residuals(the_fits()$categorical, "pearson"),
    class = "tall_error_unsupported"
  )
  expect_identical(unname(weights(fit)), rep(1, 1500))
  expect_error(df.residual(fit), class = "tall_error_unsupported")
  table <- augment(numbers, newdata = data.frame(x = 0), se_fit = TRUE)
  expect_identical(names(table), c("x", ".fitted", ".se.fit"))
})
