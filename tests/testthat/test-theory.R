alpha2 <- (7 * sqrt(2) / 6)^2

test_that("the bound solves the recursion it is derived from", {
  m <- 3
  big <- 5
  d <- 4
  h <- 0.01
  n <- 7
  center <- 0.2
  # x_{k+1}^2 <= [(1 - mh) x_k + C]^2 + (noise) x_k^2 + B^2, the paper's h
  c <- sqrt(alpha2) * big * sqrt(h^3 * d)
  noise <- 2 * h^2 * big^2 / n
  x <- sqrt(0.5 + d / m)
  for (k in 1:400) {
    x <- sqrt(((1 - m * h) * x + c)^2 + noise * x^2 + noise * (center + d / m))
    if (k %in% c(1, 10, 100, 400)) {
      bound <- sgldcv_bound(m, big, d, 2 * h, n, k, start = 0.5, center = center)
      expect_gte(bound$bound, x)
      # and not by much: lemma 6 loses at most a factor that is small here
      expect_lt(bound$bound, 2 * x)
    }
  }
})

test_that("the bound is the sum of its parts and moves the right way", {
  base <- list(
    convexity = 100, smoothness = 150, n_dim = 5, step_size = 1e-4, size = 50,
    iter = 1000, start = 1, center = 0.1
  )
  bound <- function(...) {
    do.call(sgldcv_bound, utils::modifyList(base, list(...)))
  }
  one <- bound()
  expect_close(one$bound, one$start + one$discretisation + one$noise)
  expect_true(all(diff(bound(iter = c(0, 1, 10, 1e3, 1e5))$bound) < 0))
  expect_lt(bound(size = 100)$bound, one$bound)
  expect_gt(bound(center = 1)$bound, one$bound)
  expect_gt(bound(start = 2)$bound, one$bound)
  expect_gt(bound(n_dim = 6)$bound, one$bound)
  expect_gt(bound(smoothness = 160)$bound, one$bound)
  late <- bound(iter = 1e7, step_size = 5e-5)$bound
  expect_lt(late, bound(iter = 1e7)$bound)
  # at no iterations, the distance of the start
  expect_close(bound(iter = 0)$start, sqrt(1 + 5 / 100))
})

test_that("scaling the parameters scales the bound", {
  # theta -> s theta: m, M by s^-2, squares and h by s^2
  s <- 10
  a <- sgldcv_bound(100, 150, 5, 1e-4, 50, 1000, 1, 0.1)
  b <- sgldcv_bound(1, 1.5, 5, 1e-2, 50, 1000, 100, 10)
  expect_close(b$bound, s * a$bound)
  x <- sgldcv_budget(0.5, 100, 150, 5, 1, 0.1)
  y <- sgldcv_budget(0.5, 1, 1.5, 5, 100, 10)
  expect_close(y$step_size, s^2 * x$step_size)
  expect_identical(y[c("size", "iter")], x[c("size", "iter")])
})

grid <- expand.grid(
  error = c(0.1, 0.5, 3),
  ratio = c(1, 1.5, 10),
  d = c(1, 20),
  center = c(0, 5)
)

test_that("a budget meets its error, and both conditions of the theorem", {
  m <- 200
  for (k in seq_len(nrow(grid))) {
    g <- grid[k, ]
    found <- sgldcv_budget(g$error, m, m * g$ratio, g$d, start = 2, center = g$center / m)
    bound <- sgldcv_bound(
      m, m * g$ratio, g$d, found$step_size, found$size, found$iter,
      start = 2,
      center = g$center / m
    )
    at <- paste(k, bound$bound * sqrt(m), g$error)
    expect_lte(bound$bound * sqrt(m), g$error, label = at)
    # (10), the paper's step size
    mh <- m * found$step_size / 2
    r2 <- g$ratio^2
    expect_lte(mh, found$size / (2 * r2 + found$size) * (1 + 1e-12))
    expect_lte(mh, g$error^2 / (64 * r2 * alpha2 * g$d) * (1 + 1e-12))
    expect_lte(found$gradients, found$limit)
  }
})

test_that("one condition of (10) is not enough", {
  # the maximum, as printed: the discretisation alone exceeds its share
  m <- 1
  ratio <- 1
  error <- 0.1
  d <- 20
  printed <- max(1 / (2 * ratio^2 + 1), error^2 / (64 * ratio^2 * alpha2 * d))
  bound <- sgldcv_bound(m, ratio, d, 2 * printed * 0.999, 1e9, 1e6)
  expect_gt(bound$discretisation, error / 4)
  expect_error(
    sgldcv_budget(error, m, ratio, d, step_size = 2 * printed),
    class = "tall_error_input"
  )
})

test_that("a step size of one's own is met by larger minibatches or more steps", {
  found <- sgldcv_budget(0.5, 100, 150, 5, start = 1, center = 0.05)
  half <- sgldcv_budget(
    0.5, 100, 150, 5,
    start = 1,
    center = 0.05,
    step_size = found$step_size / 2
  )
  same <- sgldcv_budget(
    0.5, 100, 150, 5,
    start = 1,
    center = 0.05,
    step_size = found$step_size
  )
  fields <- c("size", "iter", "gradients")
  expect_identical(same[fields], found[fields])
  expect_lte(half$size, found$size)
  expect_gt(half$iter, found$iter)
  bound <- sgldcv_bound(100, 150, 5, half$step_size, half$size, half$iter, 1, 0.05)
  expect_lte(bound$bound * 10, 0.5)
})

test_that("the cost does not depend on the number of observations", {
  cost <- function(n) {
    sgldcv_budget(0.3, n, 2 * n, 5, start = 3 / n, center = 1 / n)$gradients
  }
  expect_identical(cost(1e3), cost(1e8))
  expect_gt(sgldcv_budget(0.1, 1, 2, 5)$gradients, sgldcv_budget(0.2, 1, 2, 5)$gradients)
})

test_that("a chain stays within the bound", {
  # linear regression: SGLD-CV has a normal target and, as rows differ, noise
  withr::local_seed(4)
  n_data <- 200
  x <- matrix(rnorm(2 * n_data), n_data)
  y <- drop(x %*% c(1, -1)) + rnorm(n_data)
  model <- model_glm(x, y, family = "gaussian", sigma = 1, prior = prior_normal(0, 1))
  precision <- crossprod(x) + diag(2)
  mean <- drop(solve(precision, crossprod(x, y)))
  covariance <- solve(precision)
  lipschitz <- rowSums(x^2)
  m <- min(eigen(precision)$values)
  smoothness <- sum(lipschitz) + 1
  expect_gt(smoothness, max(eigen(precision)$values))
  step_size <- 0.5 * 4 * m / (2 * smoothness^2 + m^2)
  center <- mean + c(0.3, -0.3)
  size <- 2
  fit <- sg_sample(
    model,
    kernel_sgld(step_size),
    gradient = gradient_cv(at = center),
    subsample = subsample_weighted(size, weights = lipschitz),
    init = mean,
    iter = 3e5,
    warmup = 1e5,
    thin = 20,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  # W2 of normals with the same moments, a lower bound for the chain's
  root <- function(s) {
    e <- eigen(s, TRUE)
    e$vectors %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
  }
  s <- vcov(fit)
  r <- root(s)
  w2 <- sqrt(sum((coef(fit) - mean)^2) +
    sum(diag(s + covariance - 2 * root(r %*% covariance %*% r))))
  bound <- sgldcv_bound(
    m, smoothness, 2, step_size, size, 1e5,
    center = sum((center - mean)^2)
  )$bound
  expect_lt(w2, bound)
})

test_that("bad input is named", {
  expect_snapshot(error = TRUE, sgldcv_bound(2, 1, 5, 0.1, 10, 100))
  expect_snapshot(error = TRUE, sgldcv_bound(1, 2, 5, 0.5, 10, 100))
  expect_snapshot(error = TRUE, sgldcv_budget(0.5, 1, 2, 5, step_size = 0.1))
  expect_snapshot(error = TRUE, sgldcv_budget(-0.5, 1, 2, 5))
})
