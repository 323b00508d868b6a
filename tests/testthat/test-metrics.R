test_that("the divergence is zero at its own moments and that of its formula", {
  withr::local_seed(1)
  x <- matrix(rnorm(300), 100, dimnames = list(NULL, c("a", "b", "c")))
  expect_close(kl_gaussian(x, colMeans(x), cov(x)), 0)
  # univariate: log(s2 / s1) + (s1^2 + (m1 - m2)^2) / (2 s2^2) - 1/2
  y <- x[, 1, drop = FALSE]
  expected <- log(2 / sd(y)) + (var(y) + (mean(y) - 0.3)^2) / 8 - 0.5
  expect_close(kl_gaussian(y, 0.3, matrix(4)), expected)
  # general, by the definition
  mu <- c(0.1, 0.2, 0.3)
  sigma <- matrix(c(2, 0.5, 0, 0.5, 1, 0.2, 0, 0.2, 1), 3)
  shift <- colMeans(x) - mu
  expected <- (sum(diag(solve(sigma, cov(x)))) +
    sum(shift * solve(sigma, shift)) -
    3 +
    log(det(sigma) / det(cov(x)))) /
    2
  expect_close(kl_gaussian(x, mu, sigma), expected)
  # names in another order
  names(mu) <- colnames(x)
  dimnames(sigma) <- list(colnames(x), colnames(x))
  expect_close(kl_gaussian(x, mu[3:1], sigma[c(2, 3, 1), c(2, 3, 1)]), expected)
})

test_that("the divergence of exact draws is of its expected size", {
  withr::local_seed(2)
  n <- 1000
  d <- 3
  values <- replicate(
    200,
    kl_gaussian(matrix(rnorm(n * d), n), numeric(d), diag(d))
  )
  # to first order in 1 / n; the next term is d^3 / n^2
  expect_lt(
    abs(mean(values) - d * (d + 3) / (4 * n)),
    5 * sd(values) / sqrt(200) + d^3 / n^2
  )
})

test_that("the divergence of a fit uses what the fit kept", {
  target <- target_correlated()
  sample <- function(keep) {
    sg_sample(
      target$model,
      kernel_sgld(0.05),
      keep = keep,
      iter = 200,
      chains = 1,
      seed = 1,
      refresh = 0
    )
  }
  covariance <- solve(target$precision)
  fit <- sample("draws")
  value <- kl_gaussian(fit, target$mean, covariance)
  expect_close(value, kl_gaussian(as.matrix(fit), target$mean, covariance))
  expect_close(
    kl_gaussian(sample(c("none", "covariance")), target$mean, covariance),
    value
  )
})

test_that("standardised bias divides by what it says", {
  x <- cbind(a = c(1, 2, 3), b = c(0, 4, 8))
  out <- standardised_bias(x, mean = c(1, 5), sd = c(2, 3))
  expect_identical(out$variable, c("a", "b"))
  expect_close(out$mean, c(1 / 2, 1 / 3))
  expect_close(out$variance, c(3 / 4, 7 / 9))
  paper <- standardised_bias(x, c(1, 5), c(2, 3), divisor = "sd")
  expect_close(paper$variance, c(3 / 2, 7 / 3))
  # the default does not depend on units, the paper's does
  small <- standardised_bias(x / 10, c(0.1, 0.5), c(0.2, 0.3))
  expect_close(small$variance, out$variance)
})

test_that("log-loss has the minus before both terms", {
  p <- c(0.9, 0.2, 0.6)
  y <- c(1, 0, 0)
  expect_close(log_loss(p, y), -mean(log(c(0.9, 0.8, 0.4))))
  draws <- rbind(p, c(0.5, 0.5, 0.5))
  expect_close(log_loss(draws, y), -mean(log(c(0.7, 0.65, 0.45))))
  each <- log_loss(draws, y, statistic = "draw")
  expect_close(each, c(log_loss(p, y), log(2)))
  # averages beat the average draw (Jensen)
  expect_lt(log_loss(draws, y), mean(each))
  expect_identical(log_loss(c(0, 1), c(1, 1)), Inf)
  expect_identical(log_loss(c(0, 1), c(0, 1)), 0)
})

test_that("root mean squared errors clip each draw before they average", {
  prediction <- rbind(c(0, 3), c(4, 7))
  y <- c(3, 5)
  expect_close(rmse(prediction, y, range = c(1, 5)), sqrt(mean(c(0.5, 1)^2)))
  expect_close(rmse(prediction, y), sqrt(mean(c(1, 0)^2)))
  expect_close(
    rmse(prediction, y, "draw", c(1, 5)),
    sqrt(c(mean(c(2, 2)^2), mean(c(1, 0)^2)))
  )
})

test_that("losses of a fit are those of its predictions", {
  data <- withr::with_seed(3, {
    data <- data.frame(
      x = rnorm(300),
      g = factor(sample(c("u", "v"), 300, TRUE))
    )
    data$y <- factor(rbinom(300, 1, plogis(data$x)), labels = c("no", "yes"))
    data
  })
  test <- 201:300
  fit <- tall_glm(
    y ~ x + g,
    data[-test, ],
    binomial(),
    iter = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  held_out <- data[test, ]
  x <- model.matrix(~ x + g, held_out)
  p <- plogis(tcrossprod(as.matrix(fit), x))
  y <- as.double(held_out$y == "yes")
  expect_close(log_loss(fit, held_out), log_loss(p, y))
  expect_close(log_loss(fit, held_out, "draw"), log_loss(p, y, "draw"))
  expect_close(rmse(fit, held_out), rmse(p, y))
  expect_close(rmse(fit, held_out, "draw"), rmse(p, y, "draw"))
  # a model of the held-out data
  model <- model_glm(unname_rows(x), y)
  expect_close(log_loss(fit, model), log_loss(p, y))
  # other families, a sampled scale
  fit <- tall_glm(
    x ~ g,
    data[-test, ],
    gaussian(),
    iter = 100,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  theta <- as.matrix(fit)
  eta <- tcrossprod(theta[, 1:2], model.matrix(~g, held_out))
  density <- dnorm(rep(held_out$x, each = nrow(theta)), eta, theta[, 3])
  expect_close(
    log_loss(fit, held_out),
    -mean(log(colMeans(matrix(density, nrow(theta)))))
  )
})

test_that("bad input is named", {
  x <- matrix(rnorm(20), 10)
  expect_snapshot(error = TRUE, kl_gaussian(x, 1:3, diag(2)))
  expect_snapshot(error = TRUE, kl_gaussian(x, c(0, 0), diag(3)))
  expect_snapshot(error = TRUE, kl_gaussian(x, c(0, 0), matrix(1, 2, 2)))
  expect_snapshot(error = TRUE, kl_gaussian(x[1:2, ], c(0, 0), diag(2)))
  expect_snapshot(error = TRUE, log_loss(c(0.5, 1.2), c(0, 1)))
  expect_snapshot(error = TRUE, log_loss(c(0.5, 0.2), c(0, 2)))
  expect_snapshot(error = TRUE, log_loss(c(0.5, 0.2), 1))
  expect_snapshot(error = TRUE, rmse(c(0.5, 0.2), c(1, 2), range = c(5, 1)))
  expect_snapshot(error = TRUE, standardised_bias(x, c(0, 0), c(1, -1)))
  model <- target_normal(c(1, 2))
  fit <- sg_sample(
    model,
    kernel_sgld(0.1),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_snapshot(error = TRUE, log_loss(fit, mtcars))
  expect_snapshot(error = TRUE, log_loss(fit, target_normal(c(1, 2, 3))))
  target <- model_density("banana")
  fit <- sg_sample(target, kernel_mala(0.1), iter = 20, seed = 1, refresh = 0)
  expect_snapshot(error = TRUE, log_loss(fit, target))
})
