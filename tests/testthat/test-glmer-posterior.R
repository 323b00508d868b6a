# The posterior of tall_glmer() against one found anew on a grid: successes of
# groups with an intercept alone, integrated by the trapezoidal rule.

# Means and sds of intercept and sd of groups, k successes of n in each.
grid_posterior <- function(k, n, scale = 2.5) {
  v <- seq(-7, 7, length.out = 141)
  b <- seq(-4, 4, length.out = 161)
  lambda <- seq(-9, log(9), length.out = 140)
  step <- v[[2]] - v[[1]]
  count <- table(factor(k, levels = 0:n))
  seen <- which(count > 0)
  base <- stats::dnorm(v, log = TRUE) + log(step)
  log_post <- vapply(lambda, function(l) {
    eta <- outer(b, exp(l) * v, "+")
    up <- stats::plogis(eta, log.p = TRUE)
    down <- stats::plogis(-eta, log.p = TRUE)
    groups <- vapply(seen, function(j) {
      terms <- (j - 1) * up + (n - j + 1) * down + rep(base, each = length(b))
      top <- do.call(pmax, as.data.frame(terms))
      top + log(rowSums(exp(terms - top)))
    }, b)
    drop(groups %*% count[seen]) + stats::dnorm(b, 0, 2.5, log = TRUE) +
      stats::dt(exp(l) / scale, 3, log = TRUE) + l
  }, b)
  p <- exp(log_post - max(log_post))
  p <- p / sum(p)
  moments <- function(x, p) {
    mean <- sum(x * p)
    c(mean = mean, sd = sqrt(sum((x - mean)^2 * p)))
  }
  rbind(moments(b, rowSums(p)), moments(exp(lambda), colSums(p)))
}

expect_posterior <- function(k, n, exact, seed = 1) {
  d <- data.frame(g = rep(seq_along(k), each = n))
  d$y <- unlist(lapply(k, function(k) rep(1:0, c(k, n - k))))
  fit <- tall_glmer(
    y ~ 1 + (1 | g),
    d,
    stats::binomial(),
    seed = seed,
    refresh = 0
  )
  expect_identical(kernel_is_exact(fit$kernel), exact)
  table <- summary(fit)$table %||% as.data.frame(summary(fit))
  expected <- grid_posterior(k, n)
  draws <- as.matrix(fit)
  ess <- apply(draws, 2, function(x) posterior::ess_basic(matrix(x, ncol = 4)))
  error <- (colMeans(draws) - expected[, "mean"]) / expected[, "sd"]
  expect_lt(max(abs(error) * sqrt(ess)), 4)
  ratio <- apply(draws, 2, stats::sd) / expected[, "sd"]
  # heavy tails of an sd make its own error some times that of a normal one
  expect_lt(max(abs(ratio - 1)), 4 * 1.5 / sqrt(2 * min(ess)) + 0.02)
  invisible(fit)
}

test_that("8 groups are sampled exactly", {
  withr::local_seed(1)
  k <- stats::rbinom(8, 20, stats::plogis(stats::rnorm(8)))
  expect_posterior(k, 20, exact = TRUE)
})

test_that("50 groups of 2 are", {
  withr::local_seed(2)
  k <- stats::rbinom(50, 2, stats::plogis(1.5 * stats::rnorm(50)))
  expect_posterior(k, 2, exact = TRUE)
})

test_that("200 groups of 50 take a few groups a step", {
  withr::local_seed(3)
  k <- stats::rbinom(200, 50, stats::plogis(0.5 + stats::rnorm(200)))
  fit <- expect_posterior(k, 50, exact = FALSE)
  expect_lt(fit$passes, 2000)
})

test_that("an sd of 0 is sampled exactly, and print() says why", {
  withr::local_seed(4)
  k <- stats::rbinom(60, 10, 0.5)
  fit <- expect_posterior(k, 10, exact = TRUE)
  expect_output(print(fit), "`sd_g__Intercept` is far from normal")
})
