# Sum over coordinates, or each, of the Stein kernel at all pairs, by its
# definition: K x K x d.
stein_kernel <- function(x, b, c = 1, beta = -0.5) {
  n <- nrow(x)
  d <- ncol(x)
  out <- array(0, c(n, n, d))
  for (k in seq_len(n)) {
    for (l in seq_len(n)) {
      u <- x[k, ] - x[l, ]
      q <- c^2 + sum(u^2)
      dx <- 2 * beta * u * q^(beta - 1)
      both <- -2 * beta * q^(beta - 1) -
        4 * beta * (beta - 1) * u^2 * q^(beta - 2)
      out[k, l, ] <- b[k, ] * b[l, ] * q^beta - b[k, ] * dx + b[l, ] * dx + both
    }
  }
  out
}

example_points <- function(n = 150, d = 3, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(stats::rnorm(n * d), n) + 5
    slope <- c(1, 2, 0.3, rep(1, d))[seq_len(d)]
    b <- -x * rep(slope, each = n) + stats::rnorm(n)
    list(x = x, b = b)
  })
}

test_that("the Stein kernel is that of its definition, for many shapes", {
  for (shape in list(
    c(2, 1),
    c(5, 2),
    c(64, 3),
    c(65, 1),
    c(150, 3),
    c(70, 70)
  )) {
    p <- example_points(shape[[1]], shape[[2]])
    for (beta in c(-0.5, -0.3, -0.9)) {
      k <- stein_kernel(p$x, p$b, c = 1.3, beta = beta)
      n <- nrow(p$x)
      vector <- sqrt(sum(k)) / n
      coordinate <- sum(sqrt(apply(k, 3, sum))) / n
      at <- paste0(toString(shape), ", ", beta)
      expect_close(ksd(p$x, p$b, 1.3, beta), vector, at)
      expect_close(ksd(p$x, p$b, 1.3, beta, "coordinate"), coordinate, at)
    }
  }
})

test_that("the Stein kernel is the operator applied to the base kernel", {
  # b b' K + b d_y K + b' d_x K + d_x d_y K, by differences
  base <- function(x, y) (1.3^2 + sum((x - y)^2))^-0.4
  x <- c(0.3, -1)
  y <- c(-0.5, 0.2)
  b <- rbind(c(1, -2), c(0.5, 3))
  d_x <- central_difference(function(x) base(x, y), x)
  d_y <- central_difference(function(y) base(x, y), y)
  cross <- central_difference(
    function(y) as.numeric(central_difference(function(x) base(x, y), x)),
    y
  )
  expected <- sum(b[1, ] * b[2, ]) * base(x, y) +
    sum(b[1, ] * d_y) +
    sum(b[2, ] * d_x) +
    sum(diag(cross))
  # of two draws: (k11 + k22 + 2 k12) / 4
  same <- sum(stein_kernel(rbind(x), b[1, , drop = FALSE], 1.3, -0.4)) +
    sum(stein_kernel(rbind(y), b[2, , drop = FALSE], 1.3, -0.4))
  got <- ksd(rbind(x, y), b, c = 1.3, beta = -0.4)
  expect_equal(got^2, (same + 2 * expected) / 4, tolerance = 1e-5)
})

test_that("draws of the posterior have the expected discrepancy", {
  withr::local_seed(2)
  n <- 500
  d <- 4
  squares <- replicate(100, {
    x <- matrix(rnorm(n * d), n)
    c(
      ksd(x, -x)^2,
      ksd(x, -x, form = "coordinate"),
      # gradients of the negative log posterior
      ksd(x, x)^2
    )
  })
  # only the diagonal has a mean: E |b|^2 + d = 2 d
  expect_mean(squares[1, ], 2 * d / n)
  expect_lt(max(squares[2, ]), 4 * d * sqrt(2 / n))
  # the wrong sign of the terms linear in b is far off
  expect_gt(min(squares[3, ]), 20 * max(squares[1, ]))
})

test_that("it sees chains that converged to the wrong distribution", {
  withr::local_seed(3)
  x <- matrix(rnorm(4000), 1000)
  score <- function(x) -x
  good <- ksd(x, score(x))
  for (wrong in list(
    x + 0.3,
    x * 1.3,
    x * 0.7,
    sweep(x, 2, c(0, 0, 0, 1), "+")
  )) {
    expect_gt(ksd(wrong, score(wrong)), 2 * good)
  }
})

test_that("prefixes are those of as many draws", {
  p <- example_points(150)
  at <- c(2, 63, 64, 65, 128, 150)
  for (form in c("vector", "coordinate")) {
    for (diagonal in c(TRUE, FALSE)) {
      table <- ksd(p$x, p$b, form = form, prefixes = at, diagonal = diagonal)
      one <- vapply(at, function(n) {
        ksd(p$x[1:n, ], p$b[1:n, ], form = form, diagonal = diagonal)
      }, 0)
      expect_close(table$ksd, one)
      expect_identical(table$draws, at)
      expect_identical(unique(table$gradient), "given")
    }
  }
})

test_that("without its diagonal it is unbiased, and never below zero", {
  p <- example_points(80)
  k <- apply(stein_kernel(p$x, p$b), 1:2, sum)
  diag(k) <- 0
  expect_close(ksd(p$x, p$b, diagonal = FALSE)^2, sum(k) / (80 * 79))
  withr::local_seed(4)
  x <- matrix(rnorm(200), 100)
  values <- replicate(20, {
    x <- matrix(rnorm(200), 100)
    ksd(x, -x, diagonal = FALSE)
  })
  expect_true(any(values == 0))
  expect_false(anyNA(values))
})

test_that("noise of gradients adds the trace of its covariance to the square", {
  withr::local_seed(5)
  n <- 300
  d <- 3
  sd <- 2
  c <- 1.7
  beta <- -0.4
  raise <- replicate(60, {
    x <- matrix(rnorm(n * d), n)
    noisy <- -x + sd * rnorm(n * d)
    ksd(x, noisy, c, beta)^2 - ksd(x, -x, c, beta)^2
  })
  expect_mean(raise, d * sd^2 * c^(2 * beta) / n)
})

test_that("origin, threads, coordinates that are undone do not matter", {
  p <- example_points(200)
  value <- ksd(p$x, p$b)
  expect_identical(ksd(p$x, p$b, cores = 2), value)
  expect_close(ksd(p$x + 1e4, p$b), value, tolerance = 1e-9)
  s <- crossprod(matrix(c(1, 0.5, 0, 0, 2, 1, 0.3, 0, 1), 3))
  l <- t(chol(s))
  expect_close(
    ksd(p$x, p$b, covariance = s),
    ksd(t(solve(l, t(p$x))), t(t(l) %*% t(p$b)))
  )
  # any square root will do: distances and inner products are the same
  expect_close(
    ksd(p$x %*% t(l), p$b %*% solve(l), covariance = l %*% t(l)),
    value
  )
})

test_that("badly scaled coordinates keep their accuracy", {
  p <- example_points(100, 2)
  scale <- c(1e-4, 1)
  x <- sweep(p$x, 2, scale, "*")
  b <- sweep(p$b, 2, scale, "/")
  expect_close(ksd(x, b), sqrt(sum(stein_kernel(x, b))) / 100)
})

test_that("equal draws are no trouble", {
  x <- matrix(1, 10, 2)
  b <- matrix(0.5, 10, 2)
  expect_close(ksd(x, b), sqrt(sum(stein_kernel(x, b))) / 10)
})

test_that("weights count draws", {
  withr::local_seed(6)
  x <- matrix(rnorm(40), 20, dimnames = list(NULL, c("a", "b")))
  times <- rep(1:4, 5)
  draws <- posterior::weight_draws(posterior::as_draws_matrix(x), times)
  again <- x[rep(1:20, times), ]
  expect_close(ksd(draws, -x), ksd(again, -again))
})

test_that("a fit is taken in the parameters that were sampled", {
  data <- withr::with_seed(7, {
    x <- cbind("(Intercept)" = 1, a = rnorm(200))
    list(x = x, y = drop(x %*% c(1, 2)) + rnorm(200))
  })
  model <- model_glm(data$x, data$y, family = "gaussian")
  fit <- sg_sample(
    model,
    kernel_sgld(1e-3),
    gradient = gradient_full(),
    keep = c("draws", "gradients"),
    iter = 80,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  theta <- matrix(fit$unconstrained, ncol = 3)
  log_posterior <- function(theta) model_evaluate(model, theta)$log_density
  by_difference <- t(
    apply(theta, 1, function(at) central_difference(log_posterior, at))
  )
  exact <- ksd(fit)
  expect_equal(exact, ksd(theta, by_difference), tolerance = 1e-4)
  expect_close(ksd(fit, model), exact)
  # kept on full gradients: the same, and not noisy
  expect_close(ksd(fit, "kept"), exact)
  expect_null(attributes(ksd(fit, "kept")))
  # prefixes go through the chains side by side
  first <- c(1:10, 41:50)
  expect_close(
    ksd(fit, prefixes = 20)$ksd,
    ksd(theta[first, ], by_difference[first, ]),
    tolerance = 1e-4
  )
  expect_identical(ksd(fit, prefixes = 20)$gradient, "exact")
})

test_that("a whitened fit is taken in its own parameters", {
  local_way("order")
  data <- withr::with_seed(8, {
    x <- cbind("(Intercept)" = 1, a = rnorm(2500, 3))
    list(x = x, y = rbinom(2500, 1, plogis(-1 + 0.3 * x[, 2])))
  })
  model <- model_glm(data$x, data$y)
  fit <- sg_sample(
    model,
    iter = 100,
    chains = 2,
    keep = c("draws", "gradients"),
    seed = 1,
    refresh = 0
  )
  expect_true(fit$is_whitened)
  theta <- as.matrix(fit)
  gradient <- t(model_evaluate(model, t(theta))$gradient)
  expect_close(ksd(fit), ksd(theta, gradient))
  noisy <- ksd(fit, "kept")
  expect_identical(attr(noisy, "gradient"), "noisy")
  expect_identical(ksd(fit, "kept", prefixes = 50)$gradient, "noisy")
})

test_that("exact gradients are computed at evenly spaced draws", {
  model <- example_model()
  fit <- quick_fit(
    model,
    iter = 80,
    warmup = 30,
    keep = c("draws", "gradients")
  )
  # 50 iterations of 2 chains, iteration by iteration
  theta <- matrix(aperm(plain_draws(fit), c(2, 1, 3)), 100)
  score <- t(apply(theta, 1, function(at) full_gradient(model, at)))
  every <- seq(4, 100, 4)
  expect_message(
    thinned <- ksd(fit, max_draws = 25),
    class = "tall_message_thinned"
  )
  expect_equal(c(thinned), c(ksd(theta[every, ], score[every, ])))
  expect_silent(all <- ksd(fit, max_draws = 100))
  expect_equal(c(all), c(ksd(theta, score)))
  expect_silent(expect_identical(ksd(fit, max_draws = Inf), all))
  # gradients that are there already, and prefixes, take all draws
  expect_silent(kept <- ksd(fit, "kept", max_draws = 2))
  expect_equal(c(kept), c(ksd(fit, "kept")))
  expect_silent(parts <- ksd(fit, prefixes = c(7, 100), max_draws = 2))
  expect_equal(parts$ksd[[2]], c(all))
  # weights and numbers that do not divide
  weighted <- posterior::weight_draws(posterior::as_draws_matrix(theta), 1:100)
  posterior::variables(weighted) <- c(model$coordinates, ".log_weight")
  few <- suppressMessages(ksd(weighted, model, max_draws = 3))
  three <- c(34, 67, 100)
  w <- posterior::as_draws_matrix(theta[three, ])
  w <- posterior::weight_draws(w, three)
  expect_equal(c(few), c(ksd(w, score[three, ])))
  expect_snapshot(thinned <- ksd(fit, max_draws = 25))
  expect_snapshot(ksd(fit, max_draws = 1), error = TRUE, cnd_class = TRUE)
})

test_that("bad input is named", {
  x <- matrix(rnorm(20), 10)
  gap <- x
  gap[3, 2] <- NA
  expect_snapshot(
    error = TRUE,
    ksd(x[1, , drop = FALSE], -x[1, , drop = FALSE])
  )
  expect_snapshot(error = TRUE, ksd(gap, -x))
  expect_snapshot(error = TRUE, ksd(x, gap))
  expect_snapshot(error = TRUE, ksd(x, -x[1:9, ]))
  expect_snapshot(error = TRUE, ksd(x, -x[, 1]))
  expect_snapshot(error = TRUE, ksd(x))
  expect_snapshot(error = TRUE, ksd(x, "kept"))
  expect_snapshot(error = TRUE, ksd(x, -x, beta = -1))
  expect_snapshot(error = TRUE, ksd(x, -x, prefixes = c(5, 11)))
  expect_snapshot(error = TRUE, ksd(x, -x, covariance = diag(c(1, -1))))
  model <- model_glm(cbind(a = 1, b = 1:20), rnorm(20), family = "gaussian")
  expect_snapshot(error = TRUE, ksd(x, model))
  natural <- cbind(a = rnorm(5), b = 1, sigma = 1)
  expect_snapshot(error = TRUE, ksd(natural, model))
  fit <- sg_sample(
    model,
    kernel_sgld(1e-4),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_snapshot(error = TRUE, ksd(fit, "kept"))
})
