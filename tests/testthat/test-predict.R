test_that("predictions are averages of the inverse link over the draws", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    linear <- direct_linear(fit)
    mean <- direct_mean(fit)
    sds <- function(x) sqrt(colMeans(sweep(x, 2, colMeans(x))^2))
    link <- predict(fit, se.fit = TRUE)
    expect_close(link$fit, colMeans(linear), name)
    expect_close(link$se.fit, sds(linear), name, tolerance = 1e-6)
    response <- predict(fit, type = "response", se.fit = TRUE)
    expect_close(response$fit, colMeans(mean), name)
    expect_close(response$se.fit, sds(mean), name, tolerance = 1e-6)
  }
})

test_that("newdata gives what the fit's own rows give", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    # columns of the data, not of the frame
    data <- eval(fit$call$data, environment(fit$formula))
    if (name == "poisson") {
      again <- predict(fit, data, "response", offset = log(data$exposure))
    } else {
      again <- predict(fit, data, "response")
    }
    expect_close(again, predict(fit, type = "response"), name)
  }
})

test_that("draws are thinned evenly", {
  fit <- method_cases()$bernoulli$fit
  theta <- as.matrix(fit)
  expect_identical(choose_draws(fit, 400)$theta, unname(theta))
  expect_identical(choose_draws(fit, 4)$rows, c(51, 151, 251, 351))
  expect_length(unique(choose_draws(fit, 399)$rows), 399)
  new <- data.frame(a = c(0, 1), g = "v")
  x <- cbind(1, c(0, 1), 1, 0)
  expect_close(
    predict(fit, new, "response", ndraws = 4),
    rowMeans(plogis(x %*% t(theta[c(51, 151, 251, 351), ])))
  )
})

test_that("the cost is bounded when nobody says how many draws", {
  fit <- method_cases()$bernoulli$fit
  expect_null(affordable_draws(fit, 60))
  expect_null(affordable_draws(fit, 1e9))
  expect_identical(affordable_draws(fit, 60, most = 6000, least = 50), 100)
  expect_identical(affordable_draws(fit, 1e9, most = 6000, least = 50), 50)
})

test_that("weights of a decaying schedule count", {
  fit <- decayed_fit()
  w <- as.numeric(fit$weights)
  theta <- as.matrix(fit)
  new <- data.frame(a = c(-1, 2))
  mu <- plogis(cbind(1, c(-1, 2)) %*% t(theta))
  expect_close(
    predict(fit, new, "response"),
    drop(mu %*% w) / sum(w)
  )
  chosen <- choose_draws(fit, resample = TRUE)
  counts <- tabulate(chosen$rows, nrow(theta))
  expect_lt(max(abs(counts - length(w) * w / sum(w))), 1)
})

test_that("missing covariates give missing predictions", {
  fit <- method_cases()$bernoulli$fit
  new <- data.frame(a = c(0, NA, 1), g = c("u", "u", NA))
  for (type in c("link", "response")) {
    out <- predict(fit, new, type, se.fit = TRUE)
    expect_identical(is.na(unname(out$fit)), c(FALSE, TRUE, TRUE))
    expect_identical(is.na(unname(out$se.fit)), c(FALSE, TRUE, TRUE))
  }
})

test_that("na.exclude puts back the rows that were left out", {
  data <- example_data(50)
  data$a[c(3, 20)] <- NA
  fit <- quick_glm(y ~ a, data, iter = 100, na.action = na.exclude)
  for (values in list(
    predict(fit),
    predict(fit, type = "response"),
    predict(fit, se.fit = TRUE)$se.fit,
    fitted(fit),
    residuals(fit, "pearson")
  )) {
    expect_length(values, 50)
    expect_identical(unname(which(is.na(values))), c(3L, 20L))
  }
  fit <- quick_glm(y ~ a, data, iter = 100)
  expect_length(predict(fit), 48)
})

test_that("variables that are no data are found where the formula stands", {
  knot <- 15
  data <- example_data(50)
  fit <- quick_glm(y ~ I(b > knot) + factor(w), data, iter = 100)
  new <- data.frame(b = c(12, 17), w = c(1, 3))
  expect_length(predict(fit, new), 2)
  a <- data$a
  y <- data$y
  fit <- tall_glm(y ~ a, family = binomial(), iter = 100, seed = 1, refresh = 0)
  expect_error(predict(fit, new), class = "tall_error_input")
})

test_that("predictions work after a file", {
  fit <- method_cases()$poisson$fit
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  again <- readRDS(file)
  expect_identical(
    predict(again, type = "response"),
    predict(fit, type = "response")
  )
})

test_that("bad arguments are refused in words", {
  fit <- method_cases()$bernoulli$fit
  new <- data.frame(a = 1, g = "v")
  expect_snapshot(predict(fit, new["a"]), error = TRUE, cnd_class = TRUE)
  expect_snapshot(predict(fit, data.frame(x = 1)), error = TRUE)
  expect_snapshot(predict(fit, transform(new, g = "z")), error = TRUE)
  expect_snapshot(predict(fit, transform(new, a = "1")), error = TRUE)
  expect_snapshot(predict(fit, list(a = 1)), error = TRUE)
  expect_snapshot(predict(fit, new, draws = 401), error = TRUE)
  expect_snapshot(predict(fit, new, ndraws = 401), error = TRUE)
  expect_snapshot(predict(fit, new, draws = 2, ndraws = 2), error = TRUE)
  expect_snapshot(predict(fit, new, se_fit = TRUE), error = TRUE)
  expect_snapshot(predict(fit, new, "link", FALSE, 2, NULL, 1), error = TRUE)
  expect_snapshot(predict(fit, new, offset = 1:2), error = TRUE)
  expect_snapshot(predict(fit, new, type = "terms"), error = TRUE)
})

test_that("a fit without data says so", {
  fit <- quick_glm(iter = 100, keep_data = FALSE)
  expect_snapshot(predict(fit), error = TRUE, cnd_class = TRUE)
  expect_length(predict(fit, example_data(3)), 3)
})

test_that("a matrix is matched by name, else by place", {
  x <- example_matrix()
  fit <- tall_glm.fit(
    x,
    example_data()$y,
    "bernoulli",
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expected <- predict(fit, x)
  expect_identical(predict(fit, cbind(extra = 0, x[, 3:1])), expected)
  expect_identical(predict(fit, unname(x)), expected)
  expect_snapshot(predict(fit, x[, 1:2]), error = TRUE)
  expect_snapshot(predict(fit, unname(x[, 1:2])), error = TRUE)
  expect_snapshot(predict(fit, as.data.frame(x)), error = TRUE)
})

test_that("no rows have no predictions", {
  fit <- method_cases()$poisson$fit
  none <- data.frame(a = numeric())
  for (type in c("link", "response")) {
    out <- predict(fit, none, type = type, offset = 0, se.fit = TRUE)
    expect_identical(unname(out), list(numeric(), numeric()))
  }
})
