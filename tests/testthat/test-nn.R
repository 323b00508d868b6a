wave <- function(n = 80, seed = 1) {
  withr::with_seed(seed, {
    x <- stats::runif(n, -2, 2)
    group <- factor(rep_len(c("a", "b", "c"), n))
    y <- 5 + 3 * sin(2 * x) + stats::rnorm(n, sd = 0.3)
    data.frame(x = x, group = group, y = y)
  })
}

quick_nn <- function(
  formula = y ~ x,
  data = wave(),
  ...,
  hidden = 4,
  train_iter = 200,
  iter = 60,
  chains = 2,
  seed = 5
) {
  tall_nn(
    formula,
    data,
    hidden = hidden,
    train_iter = train_iter,
    iter = iter,
    chains = chains,
    seed = seed,
    refresh = 0,
    ...
  )
}

fits <- list(
  gaussian = quick_nn(y ~ x + group),
  bernoulli = quick_nn(
    species ~ Sepal.Width,
    transform(iris[51:150, ], species = factor(Species))
  ),
  categorical = quick_nn(Species ~ ., iris)
)

test_that("draws of the mean are the network's formula in the data's units", {
  skip_if_not_installed("rstantools")
  fit <- fits$gaussian
  data <- wave()
  x <- stats::model.matrix(~ x + group, data)[, -1]
  z <- scale(x)
  theta <- posterior::as_draws_matrix(fit$draws)
  epred <- rstantools::posterior_epred(fit)
  expect_identical(dim(epred), c(posterior::ndraws(fit$draws), nrow(data)))
  for (draw in c(1, 17)) {
    weights <- as.numeric(theta[draw, seq_len(fit$n_coef)])
    f <- plain_network(unname(z), weights, c(3, 4, 1), "tanh")$f[, 1]
    expect_close(epred[draw, ], mean(data$y) + stats::sd(data$y) * f)
  }
  # sigma in them too
  s <- fit$unconstrained[, , fit$n_coef + 1]
  expect_close(theta[, "sigma"], stats::sd(data$y) * exp(s))
})

test_that("predict() gives mean, epistemic and total sd, and exact quantiles", {
  skip_if_not_installed("rstantools")
  fit <- fits$gaussian
  new <- wave(9, seed = 2)
  epred <- rstantools::posterior_epred(fit, newdata = new)
  sigma <- as.numeric(posterior::extract_variable(fit$draws, "sigma"))
  table <- predict(fit, new, prob = 0.8)
  expect_close(table$mean, colMeans(epred))
  epistemic <- colMeans(sweep(epred, 2, colMeans(epred))^2)
  expect_close(table$sd_epistemic, sqrt(epistemic))
  expect_close(table$sd, sqrt(epistemic + mean(sigma^2)))
  for (i in 1:9) {
    cdf <- function(q) mean(stats::pnorm(q, epred[, i], sigma))
    expect_close(cdf(table$lower[[i]]), 0.1, tolerance = 1e-8)
    expect_close(cdf(table$upper[[i]]), 0.9, tolerance = 1e-8)
  }
  some <- predict(fit, new, draws = 3)
  rows <- floor((1:3 - 0.5) * nrow(epred) / 3) + 1
  expect_close(some$mean, colMeans(epred[rows, ]))
  interval <- rstantools::predictive_interval(fit, prob = 0.8, newdata = new)
  expect_close(interval, as.matrix(table[c("lower", "upper")]))
})

test_that("quantiles of mixtures far apart are found", {
  mu <- cbind(c(-1e3, 1e3, 0), c(0, 0, 1e-3))
  sigma <- c(1e-3, 10, 1)
  weights <- c(0.2, 0.5, 0.3)
  for (p in c(1e-6, 0.05, 0.2, 0.5, 0.9, 1 - 1e-6)) {
    q <- mixture_quantiles(mu, sigma, weights, p)
    for (i in 1:2) {
      expect_close(
        sum(weights * stats::pnorm(q[[i]], mu[, i], sigma)),
        p,
        tolerance = 1e-8
      )
    }
  }
})

test_that("units of covariates and response do not matter", {
  data <- wave()
  other <- transform(data, x = 100 * x - 7, y = -20 * y + 3)
  plain <- predict(quick_nn(y ~ x, data), data)
  moved <- predict(quick_nn(y ~ x, transform(other, y = -y)), other)
  expect_close(moved$mean, 20 * plain$mean - 3, tolerance = 1e-6)
  expect_close(moved$sd, 20 * plain$sd, tolerance = 1e-6)
  known <- quick_nn(y ~ x, data, sigma = 0.3)
  expect_identical(sigma(known), 0.3)
  expect_false("sigma" %in% known$variables)
  table <- predict(known)
  expect_close(table$sd^2 - table$sd_epistemic^2, rep(0.09, 80))
})

test_that("classes have probabilities, and their logs", {
  skip_if_not_installed("rstantools")
  for (name in c("bernoulli", "categorical")) {
    fit <- fits[[name]]
    epred <- rstantools::posterior_epred(fit)
    log_lik <- rstantools::log_lik(fit)
    yrep <- rstantools::posterior_predict(fit, seed = 1)
    expect_identical(dim(log_lik), dim(epred)[1:2])
    expect_identical(dim(yrep), dim(epred)[1:2])
    if (name == "categorical") {
      expect_close(apply(epred, 1:2, sum), rep(1, prod(dim(epred)[1:2])))
      y <- as.integer(iris$Species)
      of_y <- vapply(
        seq_along(y),
        function(i) epred[, i, y[[i]]],
        epred[, 1, 1]
      )
      expect_setequal(unique(as.integer(yrep)), 1:3)
      expected <- mean(epred[, , 3])
      actual <- mean(yrep == 3)
    } else {
      y <- as.integer(iris$Species[51:150] == "virginica")
      of_y <- sweep(epred, 2, y, function(p, y) ifelse(y == 1, p, 1 - p))
      expected <- mean(epred)
      actual <- mean(yrep)
    }
    expect_close(log_lik, log(of_y), tolerance = 1e-8)
    # five standard errors of independent events
    se <- sqrt(expected * (1 - expected) / length(yrep))
    expect_lt(abs(actual - expected), 5 * se)
  }
  table <- predict(fits$categorical, iris[c(1, 60, 140), ])
  expect_identical(as.character(table$class), levels(iris$Species))
  shares <- as.matrix(table[paste0("mean.", levels(iris$Species))])
  expect_close(rowSums(shares), rep(1, 3))
  expect_identical(dim(fitted(fits$categorical)), c(150L, 3L))
})

test_that("gaussian log densities and responses", {
  skip_if_not_installed("rstantools")
  fit <- fits$gaussian
  data <- wave()
  epred <- rstantools::posterior_epred(fit)
  sigma <- as.numeric(posterior::extract_variable(fit$draws, "sigma"))
  y <- rep(data$y, each = nrow(epred))
  expected <- stats::dnorm(y, epred, sigma, log = TRUE)
  expect_close(rstantools::log_lik(fit), expected)
  yrep <- rstantools::posterior_predict(fit, seed = 3)
  z <- (yrep - epred) / sigma
  expect_lt(abs(mean(z)), 5 / sqrt(length(z)))
  expect_lt(abs(mean(z^2) - 1), 5 * sqrt(2 / length(z)))
  expect_close(residuals(fit), data$y - colMeans(epred))
  expect_close(fitted(fit), colMeans(epred))
  expect_identical(nobs(fit), 80)
})

test_that("every chain starts where ADAM took it, from weights of its own", {
  fit <- fits$gaussian
  expect_length(fit$modes, 2)
  starts <- vapply(fit$modes, function(m) m$estimate, fit$modes[[1]]$estimate)
  expect_gt(max(abs(starts[, 1] - starts[, 2])), 0.1)
  untrained <- quick_nn(train_iter = 0, iter = 4)
  expect_identical(unname(untrained$modes[[1]]$passes), 0)
  again <- quick_nn(y ~ x + group)
  expect_identical(again$draws, fit$draws)
  unseeded <- function() {
    withr::with_seed(8, quick_nn(iter = 4, train_iter = 5, seed = NULL))$draws
  }
  expect_identical(unseeded(), unseeded())
  before <- withr::with_seed(8, {
    quick_nn(iter = 4, train_iter = 5)
    stats::runif(1)
  })
  expect_identical(before, withr::with_seed(8, stats::runif(1)))
})

test_that("the seed of a fit makes its training, too, whose passes count", {
  withr::local_seed(3)
  fit <- quick_nn(seed = NULL, iter = 10)
  again <- quick_nn(seed = fit$seed, iter = 10)
  expect_identical(fit$modes, again$modes)
  expect_identical(fit$draws, again$draws)
  training <- sum(vapply(fit$modes, function(m) m$passes, 0))
  expect_gt(training, 200)
  expect_equal(
    fit$passes,
    sum(fit$chains$passes) + training,
    tolerance = 1e-12
  )
})

test_that("a run that cannot be made is refused before the training", {
  withr::local_seed(3)
  before <- .Random.seed
  expect_error(quick_nn(seed = NULL, iter = 10, warmup = 20), "larger than")
  expect_identical(.Random.seed, before)
})

test_that("other kernels take minibatches", {
  fit <- quick_nn(kernel = kernel_sgld(1e-5))
  expect_identical(fit$gradient$name, "simple")
  expect_identical(fit$subsample$args$size, 80)
  fit <- quick_nn(
    kernel = kernel_sgbd(1e-3),
    gradient = gradient_cv(),
    subsample = subsample_uniform(10)
  )
  expect_true(all(is.finite(predict(fit)$mean)))
})

test_that("fits go on, also from a file", {
  short <- quick_nn(iter = 40, warmup = 30, thin = 1)
  long <- quick_nn(iter = 60, warmup = 30, thin = 1)
  expect_identical(sg_resume(short, 20, refresh = 0)$draws, long$draws)
  file <- withr::local_tempfile()
  saveRDS(short, file)
  read <- readRDS(file)
  expect_identical(predict(read), predict(short))
  expect_identical(sg_resume(read, 20, refresh = 0)$draws, long$draws)
  # predictions are compared anew, also without the data
  both <- quick_nn(iter = 60, warmup = 30, thin = 1, keep_data = FALSE)
  light <- quick_nn(iter = 40, warmup = 30, thin = 1, keep_data = FALSE)
  expect_identical(sg_resume(short, 20, refresh = 0)$checked, long$checked)
  expect_identical(sg_resume(light, 20, refresh = 0)$checked, both$checked)
  expect_false(identical(short$checked, long$checked))
  light <- quick_nn(iter = 4, keep_data = FALSE)
  expect_error(predict(light), class = "tall_error_stale")
  expect_identical(nrow(predict(light, wave(3))), 3L)
})

test_that("missing values and factor levels are treated as elsewhere", {
  fit <- fits$gaussian
  new <- wave(6)
  new$x[[2]] <- NA
  table <- predict(fit, new)
  expect_identical(which(is.na(table$mean)), 2L)
  expect_identical(which(is.na(table$upper)), 2L)
  new$group <- "z"
  expect_error(predict(fit, new), class = "tall_error_input")
  expect_error(predict(fit, new["x"]), class = "tall_error_input")
  data <- wave()
  data$x[[3]] <- NA
  fit <- quick_nn(y ~ x, data, na.action = stats::na.exclude, iter = 4)
  expect_identical(which(is.na(predict(fit)$mean)), 3L)
  expect_identical(unname(which(is.na(residuals(fit)))), 3L)
  expect_length(residuals(fit), 80)
  classes <- quick_nn(Species ~ ., iris[c(1, 60, 140, 2:20), ], iter = 4)
  table <- predict(classes, transform(iris[1:2, ], Sepal.Width = c(NA, 3)))
  expect_identical(is.na(table$class), c(TRUE, FALSE))
})

test_that("epistemic sd grows where there are no data", {
  skip_on_cran()
  data <- wave(300)
  data <- data[abs(data$x) > 0.7, ]
  fit <- quick_nn(
    y ~ x,
    data,
    hidden = 20,
    train_iter = 3000,
    iter = 2000,
    chains = 4
  )
  table <- predict(fit, data.frame(x = c(-1.4, 1.4, 0)))
  expect_gt(table$sd_epistemic[[3]], 2 * max(table$sd_epistemic[1:2]))
  # noise of 0.3
  expect_lt(abs(sigma(fit) - 0.3), 0.05)
})

test_that("summaries are about predictions", {
  local_wide()
  found <- summary(fits$gaussian)
  expect_s3_class(found, "tall_nn_summary")
  expect_length(found$rhat, 80)
  # words, not numbers
  scrubbed <- function(x) gsub("[0-9]+[0-9.]*[0-9%]*", "#", x)
  expect_snapshot(fits$gaussian, transform = scrubbed)
  expect_snapshot(fits$categorical, transform = scrubbed)
  expect_output(print(found), "R-hat")
  error <- sqrt(mean((wave()$y - fitted(fits$gaussian))^2))
  expect_close(found$error, error)
})

test_that("the design of a network is that of its formula", {
  data <- wave()
  expect_equal(
    model.matrix(fits$gaussian),
    stats::model.matrix(y ~ x + group, data),
    ignore_attr = "contrasts"
  )
})

test_that("pictures can be drawn", {
  skip_if_not_installed("ggplot2")
  expect_error(
    plot(fits$gaussian, "foo"),
    "calibration.*prediction.*trace",
    class = "tall_error_input"
  )
  for (fit in fits) {
    expect_s3_class(plot(fit), "ggplot")
  }
  expect_s3_class(plot(quick_nn(iter = 20), "prediction"), "ggplot")
  expect_error(
    plot(fits$gaussian, "prediction"),
    class = "tall_error_unsupported"
  )
  calibration <- interval_calibration(fits$gaussian, NULL)
  inside <- predict(fits$gaussian, prob = 0.5)
  y <- wave()$y
  expect_equal(
    calibration$observed[calibration$nominal == 0.5],
    mean(y > inside$lower & y < inside$upper)
  )
})

test_that("arguments that cannot be used are named", {
  skip_if_not_installed("rstantools")
  data <- wave(10)
  expect_snapshot(error = TRUE, tall_nn(y ~ x, data, hidden = c(3, 0)))
  expect_snapshot(error = TRUE, tall_nn("y ~ x", data))
  expect_snapshot(error = TRUE, tall_nn(y ~ 1, data))
  expect_snapshot(error = TRUE, tall_nn(~x, data))
  expect_snapshot(error = TRUE, tall_nn(y ~ x + offset(2 * x), data))
  expect_snapshot(error = TRUE, tall_nn(cbind(y, x) ~ group, data))
  expect_snapshot(error = TRUE, tall_nn(y ~ x, as.matrix(data["x"])))
  expect_snapshot(error = TRUE, tall_nn(y ~ x, data, sigma = -1))
  expect_snapshot(error = TRUE, tall_nn(y ~ x, transform(data, y = NA)))
  expect_snapshot(error = TRUE, tall_nn(y ~ x, data, train_iter = -1))
  expect_snapshot(
    error = TRUE,
    rstantools::predictive_interval(fits$categorical)
  )
  expect_snapshot(error = TRUE, predict(fits$gaussian, wave(2), type = "terms"))
})

test_that("a network starts within the bounds of its prior", {
  withr::local_seed(4)
  data <- data.frame(x = runif(300, -2, 2))
  data$y <- 3 * data$x + rnorm(300, sd = 0.1)
  fit <- tall_nn(
    y ~ x,
    data,
    hidden = 3,
    prior = prior_uniform(-0.4, 0.4),
    train_iter = 500,
    iter = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  weights <- draws_matrix(fit)[, seq_len(fit$n_coef)]
  expect_true(all(abs(weights) <= 0.4))
  trained <- vapply(fit$modes, function(m) max(abs(m$estimate)), 0)
  expect_gt(max(trained), 0.4)
})

test_that("an error of some of the rows is not said to be that of all", {
  fit <- list(
    family = list(name = "gaussian", link = "identity"),
    check_rows = list(y = 1:200)
  )
  said <- function(n_data) {
    fit$n_data <- n_data
    print_nn_lines(list(fit = fit, error = 0.1, sd_epistemic = 0.2), 3)
  }
  expect_output(said(1000), "At 200 rows of the training data: root mean")
  expect_output(said(200), "On the training data: root mean")
})
