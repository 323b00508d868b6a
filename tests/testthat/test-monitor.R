held_out <- function() {
  data <- example_data(n = 400, seed = 2)
  list(
    train = example_model(data = data[1:300, ]),
    test = example_model(data = data[301:400, ]),
    x = example_matrix(data)[301:400, ],
    y = data$y[301:400]
  )
}

watch <- function(monitor, model, ..., iter = 60) {
  sg_sample(
    model,
    kernel_sgld(1e-3),
    iter = iter,
    chains = 2,
    seed = 3,
    monitor = monitor,
    refresh = 0,
    ...
  )
}

values <- function(fit, name, statistic) {
  table <- fit$monitor
  keep <- table$monitor == name &
    table$statistic == statistic &
    table$chain == 1
  table$value[keep]
}

test_that("monitors give what the draws give", {
  data <- held_out()
  fit <- watch(
    list(
      every = 1,
      loss = monitor_log_loss(data$test),
      lik = monitor_log_lik(data$test),
      rmse = monitor_rmse(data$x, data$y, range = c(0.05, 0.95)),
      mine = function(theta) theta[["a"]]
    ),
    data$train
  )
  theta <- unclass(fit$draws)[, 1, ]
  dimnames(theta) <- list(NULL, colnames(theta))
  p <- unname(stats::plogis(tcrossprod(data$x, theta)))
  density <- data$y * p + (1 - data$y) * (1 - p)
  running <- t(apply(density, 1, cumsum)) /
    rep(seq_len(ncol(density)), each = 100)
  clipped <- pmin(pmax(p, 0.05), 0.95)
  average <- t(apply(clipped, 1, cumsum)) / rep(seq_len(ncol(p)), each = 100)

  kept <- 31:60
  expect_equal(values(fit, "loss", "draw")[kept], -colMeans(log(density)))
  # the erratum of eq. 41: the minus stands before both terms
  expect_equal(values(fit, "loss", "ergodic"), -colMeans(log(running)))
  expect_equal(values(fit, "lik", "draw")[kept], colMeans(log(density)))
  mean_theta <- apply(theta, 2, cumsum) / seq_len(nrow(theta))
  at_mean <- unname(stats::plogis(tcrossprod(data$x, mean_theta)))
  expect_equal(
    values(fit, "lik", "ergodic"),
    colMeans(log(data$y * at_mean + (1 - data$y) * (1 - at_mean)))
  )
  rmse <- function(p) sqrt(colMeans((data$y - p)^2))
  expect_equal(values(fit, "rmse", "draw")[kept], rmse(clipped))
  expect_equal(values(fit, "rmse", "ergodic"), rmse(average))
  expect_equal(values(fit, "mine", "draw")[kept], unname(theta[, "a"]))
})

test_that("watching does not change the draws, nor the slices", {
  data <- held_out()
  plain <- watch(NULL, data$train)
  watched <- watch(list(every = 7, m = function(theta) 1), data$train)
  expect_identical(watched$draws, plain$draws)
  expect_identical(unique(watched$monitor$iteration), seq(7, 60, by = 7))
})

test_that("monitors go on when a run is resumed", {
  data <- held_out()
  monitor <- list(every = 10, loss = monitor_log_loss(data$test))
  whole <- watch(monitor, data$train, iter = 100, warmup = 30)
  parts <- watch(monitor, data$train, iter = 70, warmup = 30)
  parts <- sg_resume(parts, 30, refresh = 0)
  expect_equal(parts$monitor, whole$monitor, ignore_attr = TRUE)
})

test_that("a monitor that fails leaves NA, and is told", {
  data <- held_out()
  count <- 0
  failing <- function(theta) {
    count <<- count + 1
    if (count == 5) stop("no luck") else 1
  }
  expect_warning(
    fit <- watch(list(every = 10, bad = failing), data$train),
    "no luck",
    class = "tall_warning_monitor"
  )
  expect_equal(sum(is.na(fit$monitor$value)), 1)
  expect_equal(posterior::ndraws(fit$draws), 60)
  grows <- function(theta) {
    count <<- count + 1
    seq_len(count)
  }
  expect_warning(
    watch(list(every = 10, bad = grows), data$train),
    class = "tall_warning_monitor"
  )
  expect_warning(
    watch(list(every = 10, bad = function(theta) "a"), data$train),
    class = "tall_warning_monitor"
  )
})

test_that("keep = \"none\" keeps the moments that the draws have", {
  model <- held_out()$train
  draws <- unclass(watch(NULL, model)$draws)
  all <- matrix(draws, ncol = 3)
  none <- watch(NULL, model, keep = c("none", "covariance"))
  expect_null(none$draws)
  expect_equal(unname(coef(none)), colMeans(all))
  expect_equal(unname(vcov(none)), stats::cov(all))
  expect_equal(summary(none)$table$sd, apply(all, 2, stats::sd))
  less <- watch(NULL, model, keep = "none")
  expect_error(vcov(less), class = "tall_error_unsupported")
  resumed <- sg_resume(
    watch(NULL, model, keep = c("none", "covariance"), iter = 45, warmup = 30),
    15,
    refresh = 0
  )
  expect_equal(vcov(resumed), vcov(none))
})

test_that("bad monitors are refused", {
  data <- held_out()
  other <- model_glm(data$x[, 1:2], data$y)
  for (monitor in list(
    5,
    list(every = 0, m = function(theta) 1),
    list(every = 10),
    list(every = 10, function(theta) 1),
    list(m = "a"),
    list(m = monitor_log_loss(other))
  )) {
    expect_error(watch(monitor, data$train), class = "tall_error_input")
  }
})

test_that("plot(fit, \"monitor\") draws them", {
  skip_if_not_installed("ggplot2")
  data <- held_out()
  fit <- watch(list(every = 10, loss = monitor_log_loss(data$test)), data$train)
  expect_s3_class(plot(fit, "monitor"), "ggplot")
  expect_error(
    plot(watch(NULL, data$train), "monitor"),
    class = "tall_error_unsupported"
  )
})

test_that("tall_glm() takes held-out data frames", {
  data <- example_data(n = 400, seed = 2)
  train <- data[1:300, ]
  test <- data[301:400, ]
  fit <- tall_glm(
    y ~ a + g + offset(log(exposure)),
    train,
    stats::binomial(),
    monitor = list(
      every = 100,
      loss = monitor_log_loss(test),
      rmse = monitor_rmse(test)
    ),
    seed = 1,
    refresh = 0
  )
  last <- fit$monitor[fit$monitor$iteration == 2000 & fit$monitor$chain == 1, ]
  draw <- unclass(fit$draws)[1000, 1, ]
  x <- stats::model.matrix(~ a + g, test)
  p <- stats::plogis(drop(x %*% draw) + log(test$exposure))
  value <- function(name) {
    last$value[last$monitor == name & last$statistic == "draw"]
  }
  expect_equal(value("loss"), -mean(stats::dbinom(test$y, 1, p, log = TRUE)))
  expect_equal(value("rmse"), sqrt(mean((test$y - p)^2)))
  expect_error(
    tall_glm(
      y ~ a,
      train,
      stats::binomial(),
      monitor = list(every = 10, loss = monitor_log_loss(test["y"])),
      refresh = 0
    ),
    class = "tall_error_input"
  )
})
