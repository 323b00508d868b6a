skip_if_not_installed("rstantools")

test_that("draws of predictor and mean are plain matrix products", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    epred <- rstantools::posterior_epred(fit)
    expect_close(no_names(epred), no_names(direct_mean(fit)), name)
    linear <- rstantools::posterior_linpred(fit)
    expect_close(no_names(linear), no_names(direct_linear(fit)), name)
    expect_identical(
      rstantools::posterior_linpred(fit, transform = TRUE),
      epred
    )
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
    weight <- own_response(case$fit)$weight %||% rep(1, ncol(mu))
    yrep <- rstantools::posterior_predict(case$fit, seed = 3)
    expect_identical(dim(yrep), dim(mu))
    variance <- switch(
      case$fit$family$name,
      gaussian = direct_sigma(case$fit)^2 / rep(weight, each = nrow(mu)),
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
  expect_identical(
    rstantools::posterior_predict(fit, draws = 10, seed = 1),
    one
  )
  expect_false(
    identical(rstantools::posterior_predict(fit, draws = 10, seed = 2), one)
  )
  other <- rstantools::posterior_predict(fit, draws = 10)
  set.seed(5)
  expect_identical(rstantools::posterior_predict(fit, draws = 10), other)
  expect_true(all(one %in% 0:1))
})

test_that("trials of new rows come from response, weights or call", {
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
    weight <- own_response(fit)$weight %||% 1
    mu <- direct_mean(fit)
    trials <- prediction_trials(fit, NULL, NULL, ncol(mu)) %||% 1
    size <- rep(trials, each = nrow(mu))
    residual <- switch(
      fit$family$name,
      gaussian = direct_sigma(fit)^2 * mean(1 / weight),
      poisson = rowMeans(mu),
      rowMeans(size * mu * (1 - mu))
    )
    explained <- apply(size * mu, 1, var)
    expect_close(
      rstantools::bayes_R2(fit),
      unname(explained / (explained + residual)),
      name
    )
  }
})

test_that("R-squared of trials is that of counts, as rstanarm has it", {
  d <- withr::with_seed(7, data.frame(x = rnorm(60), n = sample(40, 60, TRUE)))
  d$k <- withr::with_seed(8, rbinom(60, d$n, plogis(0.3 * d$x - 1)))
  short <- function(...) {
    tall_glm(..., iter = 60, chains = 2, seed = 1, refresh = 0)
  }
  fit <- short(cbind(k, n - k) ~ x, d, binomial())
  # rstanarm's bayes_R2(): trials times probabilities, p (1 - p) times trials
  mu <- rstantools::posterior_epred(fit)
  counts <- sweep(mu, 2, d$n, "*")
  noise <- rowMeans(counts * (1 - mu))
  explained <- apply(counts, 1, var)
  r2 <- rstantools::bayes_R2(fit)
  expect_close(r2, unname(explained / (explained + noise)), "counts")
  # the spread of trials is variance explained
  shares <- apply(mu, 1, var)
  expect_gt(mean(r2), 2 * mean(shares / (shares + rowMeans(mu * (1 - mu)))))
  # the same data said otherwise
  d$share <- d$k / d$n
  other <- short(share ~ x, d, binomial(), weights = n)
  expect_close(rstantools::bayes_R2(other), r2, "proportions")
  expect_close(rstantools::bayes_R2(fit, newdata = d), r2, "newdata")
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
  expect_identical(
    dim(rstantools::posterior_epred(fit, fit$rows$frame)),
    c(400L, 60L)
  )
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

# Weighted Gaussian rows: row i has standard deviation 3 / sqrt(w_i).
weighted_rows_of <- function(n, seed, constant = 1) {
  withr::with_seed(seed, {
    w <- rep(c(0.04, 1, 25, 400), length.out = n)
    a <- stats::rnorm(n)
    z <- 1 + 2 * a + 3 * stats::rnorm(n) / sqrt(w)
    data.frame(z = z, a = a, w = constant * w)
  })
}

test_that("weighted intervals cover as they say, at every weight", {
  data <- weighted_rows_of(400, 11)
  new <- weighted_rows_of(8000, 12)
  fit <- tall_glm(z ~ a, data, weights = w, seed = 1, refresh = 0)
  intervals <- function(...) {
    rstantools::predictive_interval(fit, 0.9, ..., seed = 2, draws = 1000)
  }
  found <- intervals(new)
  inside <- new$z > found[, 1] & new$z < found[, 2]
  by_weight <- tapply(inside, new$w, mean)
  expect_length(by_weight, 4)
  expect_lt(max(abs(by_weight - 0.9)), 4 * sqrt(0.9 * 0.1 / 2000))
  # the fit's own rows, too, and matrices
  own <- intervals()
  width <- tapply(own[, 2] - own[, 1], data$w, mean)
  expected <- tapply(found[, 2] - found[, 1], new$w, mean)
  expect_equal(width, expected, tolerance = 0.02)
  x <- cbind("(Intercept)" = 1, a = data$a)
  by_matrix <- tall_glm.fit(x, data$z, weights = data$w, seed = 1, refresh = 0)
  expect_identical(
    unname(rstantools::posterior_predict(by_matrix, seed = 3)),
    unname(rstantools::posterior_predict(fit, seed = 3))
  )
})

test_that("draws, checks and log likelihoods agree on what a weight is", {
  data <- weighted_rows_of(40, 13)
  fit <- tall_glm(z ~ a, data, weights = w, seed = 1, refresh = 0)
  mu <- rstantools::posterior_epred(fit)
  sd <- as.matrix(fit)[, "sigma"] / rep(sqrt(data$w), each = nrow(mu))
  expect_equal(
    unname(rstantools::log_lik(fit)),
    array(dnorm(rep(data$z, each = nrow(mu)), mu, sd, TRUE), dim(mu)),
    tolerance = 1e-12
  )
  noise <- withr::with_seed(4, stats::rnorm(length(mu)))
  expected <- unname(mu + sd * noise)
  found <- rstantools::posterior_predict(fit, seed = 4)
  expect_equal(unname(found), expected, tolerance = 1e-12)
  error <- rstantools::predictive_error(fit, seed = 4)
  expect_equal(unname(error), rep(data$z, each = nrow(mu)) - expected)
  checked <- with_seed(4, replicated_responses(fit, 1:40, NULL))
  expect_equal(unname(checked$yrep), expected, tolerance = 1e-12)
  # the density of held-out rows
  expect_equal(
    log_loss(fit, data, statistic = "draw"),
    -rowMeans(rstantools::log_lik(fit)),
    ignore_attr = TRUE,
    tolerance = 1e-10
  )
})

test_that("new rows have the weights they come with, or are given", {
  data <- weighted_rows_of(40, 13)
  fit <- tall_glm(z ~ a, data, weights = w, seed = 1, refresh = 0)
  predict_at <- function(...) rstantools::posterior_predict(fit, ..., seed = 5)
  new <- data.frame(a = c(0, 1))
  heavy <- predict_at(data.frame(a = c(0, 1), w = 400))
  expect_identical(predict_at(new, weights = 400), heavy)
  expect_identical(predict_at(new, weights = c(400, 400)), heavy)
  centre <- rstantools::posterior_epred(fit, new)
  expect_equal(predict_at(new, weights = 1) - centre, 20 * (heavy - centre))
  expect_snapshot(predict_at(new), error = TRUE)
  expect_snapshot(predict_at(new, weights = 0), error = TRUE)
  expect_snapshot(predict_at(new, weights = 1:3), error = TRUE)
  # what does not depend on weights does not ask for them
  expect_length(predict(fit, new), 2)
  expect_true(is.numeric(rmse(fit, data[c("z", "a")])))
  other <- method_cases()$poisson$fit
  expect_snapshot(
    rstantools::posterior_predict(other, weights = 2),
    error = TRUE
  )
  plain <- method_cases()$gaussian$fit
  expect_identical(
    rstantools::posterior_predict(plain, weights = 1, seed = 1),
    rstantools::posterior_predict(plain, seed = 1)
  )
})

test_that("constant weights change nothing but the unit of sigma", {
  by_weight <- lapply(c(1e-4, 1, 1e4), function(constant) {
    data <- weighted_rows_of(60, 14, constant)
    fit <- tall_glm(z ~ a, data, weights = w, seed = 1, refresh = 0)
    list(
      draws = sweep(as.matrix(fit), 2, c(1, 1, sqrt(constant)), "/"),
      yrep = rstantools::posterior_predict(fit, draws = 10, seed = 1)
    )
  })
  expect_equal(by_weight[[1]], by_weight[[2]], tolerance = 1e-6)
  expect_equal(by_weight[[3]], by_weight[[2]], tolerance = 1e-6)
})
