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
      bound <- sgldcv_bound(
        m,
        big,
        d,
        2 * h,
        n,
        k,
        start = 0.5,
        center = center
      )
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

test_that("each part is what proposition 1 says, worked out by hand", {
  m <- 3
  big <- 5
  d <- 4
  # ours is 0.02: theirs
  h <- 0.01
  bound <- function(iter, size = 7, center = 0.2) {
    sgldcv_bound(m, big, d, 2 * h, size, iter, start = 0.5, center = center)
  }
  # without gradient noise a step contracts by 1 - m h, and the drift within one
  # leaves alpha M sqrt(h d) / m
  exact <- bound(c(0, 1, 1e9), size = 1e12)
  expect_close(exact$start, sqrt(0.5 + 4 / 3) * c(1, 1 - 0.03, 0))
  expect_close(exact$discretisation[[3]], 7 * sqrt(2) / 6 * 5 * sqrt(0.04) / 3)
  # with it: 2 h^2 M^2 / n = 2 * 1e-4 * 25 / 7
  noise <- 0.005 / 7
  noisy <- bound(c(0, 1))
  left <- sqrt(noise + 0.97^2)
  expect_close(noisy$start, sqrt(0.5 + 4 / 3) * c(1, left))
  # noise = B^2 / (C + sqrt(A) B), solved for B^2
  c <- noisy$discretisation[[1]] * (1 - left)
  p <- noisy$noise[[1]]
  b <- (p * sqrt(1 - left) + sqrt(p^2 * (1 - left) + 4 * p * c)) / 2
  expect_close(b^2, noise * (0.2 + 4 / 3))
})

# Of theta' = theta - m h (theta - mean) + h xi + sqrt(2 h) zeta, the step size
# the paper's, E xi^2 = (M^2 / n) (theta - center)^2, the most that lemma 1
# allows. In one dimension the first two moments are known exactly, and W2 is at
# least the distance of normals with these moments.
exact_distance <- function(m, big, h, n, iter, start, center) {
  mean <- start
  square <- start^2
  for (k in seq_len(iter)) {
    square <- (1 - m * h)^2 * square +
      h^2 * big^2 / n * (square - 2 * mean * center + center^2) +
      2 * h
    mean <- (1 - m * h) * mean
  }
  sqrt(mean^2 + (sqrt(square - mean^2) - 1 / sqrt(m))^2)
}

test_that("the exact law on a normal posterior stays within the bound", {
  cases <- expand.grid(
    iter = c(1, 20, 400),
    distance = c(0, 300),
    n = c(1, 50),
    ratio = c(1, 3),
    m = c(0.5, 4)
  )
  for (k in seq_len(nrow(cases))) {
    at <- cases[k, ]
    m <- at$m
    big <- at$ratio * m
    # of the largest that proposition 1 allows
    h <- c(0.01, 0.1, 0.9) * 2 * m / (2 * big^2 + m^2)
    start <- at$distance / sqrt(m)
    w2 <- vapply(h, function(h) {
      exact_distance(m, big, h, at$n, at$iter, start, center = 0.7)
    }, 0)
    bound <- vapply(h, function(h) {
      sgldcv_bound(m, big, 1, 2 * h, at$n, at$iter, start^2, 0.7^2)$bound
    }, 0)
    expect_true(all(w2 <= bound))
  }
  # far from the mode the bound is all but reached
  far <- sgldcv_bound(1, 1, 1, 0.02, 1e6, 100, start = 1e8)$bound
  exact <- exact_distance(1, 1, 0.01, 1e6, 100, start = 1e4, center = 0)
  expect_lt(far / exact, 1.001)
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
    found <- sgldcv_budget(
      g$error,
      m,
      m * g$ratio,
      g$d,
      start = 2,
      center = g$center / m
    )
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

test_that("a budget is the least that the theorem's conditions allow", {
  # derived anew: the start gets half of the error, the discretisation and the
  # noise a quarter each. With m h <= n / (2 R^2 + n), A >= m h / 2, so that
  #   (1 - A)^K W2(nu_0)  <= exp(-m h K / 2) W2(nu_0),
  #   C / A               <= 2 alpha M sqrt(h d) / m,
  #   B^2 / (C + sqrt(A) B) <= B / sqrt(A) <= 2 sqrt(h M^2 S / (n m)),
  # S = E|center|^2 + d / m.
  m <- 200
  # errors so large that the other bound of (10) is the smaller one, and
  # reference points so far that minibatches must be large
  wide <- rbind(
    grid,
    expand.grid(error = 40, ratio = c(1, 3), d = c(1, 20), center = c(0, 5000))
  )
  for (k in seq_len(nrow(wide))) {
    g <- wide[k, ]
    g$center <- 100 * g$center
    found <- sgldcv_budget(
      g$error,
      m,
      m * g$ratio,
      g$d,
      start = 2,
      center = g$center / m
    )
    big <- m * g$ratio
    target <- g$error / sqrt(m)
    # h of the paper
    h <- found$step_size / 2
    drift <- (target / 4 * m / (2 * big))^2 / (alpha2 * g$d)
    largest <- m / (2 * big^2 + m^2) # at n = 1
    expect_close(h, min(drift, largest))
    s <- (g$center + g$d) / m
    # h / n <= m / (2 M^2) (1 - m h), so that A >= m h / 2
    size <- max(
      1,
      4 * h * big^2 * s / (m * (target / 4)^2),
      2 * big^2 * h / (m * (1 - m * h))
    )
    expect_identical(found$size, ceiling(size * (1 - 1e-12)))
    w0 <- sqrt(2 + g$d / m)
    expect_identical(found$iter, ceiling(2 / (m * h) * log(2 * w0 / target)))
    # corollary 1
    c1 <- max(2 * g$ratio^2 + 1, 64 * g$ratio^2 * alpha2 * g$d / g$error^2)
    c2 <- 64 * g$ratio^2 / c1 / g$error^2
    expect_close(
      found$limit,
      (c1 * log(m * 2 + g$d) + c1 * log(4 / g$error^2) + 1) *
        (c2 * g$center + c2 * g$d + 1)
    )
  }
  # a step beyond what n = 1 allows: m h <= n / (2 R^2 + n) with the least n
  found <- sgldcv_budget(100, 1, 2, 1, step_size = 0.42)
  expect_identical(found$size, ceiling(8 * 0.21 / 0.79))
  expect_lte(0.21, found$size / (8 + found$size))
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

test_that("one's own step size is met by larger minibatches or more steps", {
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
  bound <- sgldcv_bound(
    100,
    150,
    5,
    half$step_size,
    half$size,
    half$iter,
    1,
    0.05
  )
  expect_lte(bound$bound * 10, 0.5)
})

test_that("the cost does not depend on the number of observations", {
  cost <- function(n) {
    sgldcv_budget(0.3, n, 2 * n, 5, start = 3 / n, center = 1 / n)$gradients
  }
  expect_identical(cost(1e3), cost(1e8))
  expect_gt(
    sgldcv_budget(0.1, 1, 2, 5)$gradients,
    sgldcv_budget(0.2, 1, 2, 5)$gradients
  )
})

test_that("a chain stays within the bound", {
  # linear regression: SGLD-CV has a normal target and, as rows differ, noise
  withr::local_seed(4)
  n_data <- 200
  x <- matrix(rnorm(2 * n_data), n_data)
  y <- drop(x %*% c(1, -1)) + rnorm(n_data)
  model <- model_glm(
    x,
    y,
    family = "gaussian",
    sigma = 1,
    prior = prior_normal(0, 1)
  )
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
