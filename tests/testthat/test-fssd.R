# The witness of draws at locations, by its definition: K x J x d.
witness <- function(x, b, v, c = 1, beta = -0.5) {
  out <- array(0, c(nrow(x), nrow(v), ncol(x)))
  for (k in seq_len(nrow(x))) {
    for (j in seq_len(nrow(v))) {
      u <- x[k, ] - v[j, ]
      q <- c^2 + sum(u^2)
      out[k, j, ] <- b[k, ] * q^beta + 2 * beta * q^(beta - 1) * u
    }
  }
  out
}

# Both estimates, as sums over pairs of draws.
plain_fssd <- function(x, b, v, ...) {
  tau <- matrix(witness(x, b, v, ...), nrow(x)) / sqrt(ncol(x) * nrow(v))
  pairs <- tcrossprod(tau)
  n <- nrow(x)
  list(
    biased = sqrt(sum(pairs)) / n,
    unbiased = (sum(pairs) - sum(diag(pairs))) / (n * (n - 1))
  )
}

fssd_points <- function(n, d, n_location, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(stats::rnorm(n * d), n) + 5
    v <- matrix(stats::rnorm(n_location * d), n_location) + 5
    list(x = x, b = 3 - x + stats::rnorm(n), v = v)
  })
}

test_that("it is that of its definition, for many shapes", {
  shapes <- list(
    c(
      2,
      1,
      1
    ), c(5, 2, 3), c(64, 3, 2), c(65, 1, 70), c(700, 3, 5), c(70, 70, 2)
  )
  for (shape in shapes) {
    p <- fssd_points(shape[[1]], shape[[2]], shape[[3]])
    for (beta in c(-0.5, -0.3, -0.9)) {
      expected <- plain_fssd(p$x, p$b, p$v, c = 1.3, beta = beta)
      for (estimate in c("biased", "unbiased")) {
        expect_close(
          fssd(p$x, p$b, p$v, 1.3, beta, estimate),
          expected[[estimate]],
          paste0(estimate, " of ", toString(shape), ", ", beta)
        )
      }
    }
  }
})

test_that("the witness is the Stein operator applied to the kernel", {
  base <- function(x, v) (1.3^2 + sum((x - v)^2))^-0.4
  x <- c(0.3, -1)
  v <- c(-0.5, 0.2)
  b <- c(1, -2)
  d_x <- central_difference(function(x) base(x, v), x)
  expect_equal(
    as.numeric(witness(rbind(x), rbind(b), rbind(v), 1.3, -0.4)),
    b * base(x, v) + as.numeric(d_x),
    tolerance = 1e-6
  )
})

test_that("for draws of the posterior the unbiased estimate has mean zero", {
  withr::local_seed(2)
  n <- 100
  d <- 3
  v <- matrix(rnorm(5 * d), 5)
  values <- replicate(400, {
    x <- matrix(rnorm(n * d), n)
    c(
      fssd(x, -x, v),
      fssd(x, -x, v, estimate = "biased")^2,
      # gradients of the negative log posterior
      fssd(x, x, v)
    )
  })
  expect_mean(values[1, ], 0)
  expect_lt(min(values[1, ]), 0)
  # that of the other is E ||xi||^2 / (d K), by integration of its own
  x <- matrix(rnorm(3e4 * d), ncol = d)
  own <- rowMeans(witness(x, -x, v)^2, dims = 1)
  expect_mean(values[2, ] * n, mean(own))
  # the wrong sign of the first term is far off
  expect_gt(min(values[3, ]), 5 * sd(values[1, ]))
})

test_that("it grows with the bias of the draws", {
  withr::local_seed(3)
  x <- matrix(rnorm(4000), 1000)
  v <- matrix(rnorm(40), 10)
  for (estimate in c("unbiased", "biased")) {
    at <- function(x) fssd(x, -x, v, estimate = estimate)
    expect_increasing <- function(values) expect_true(all(diff(values) > 0))
    expect_increasing(
      vapply(c(0, 0.1, 0.2, 0.4, 0.8), function(s) at(x + s), 0)
    )
    expect_increasing(vapply(c(1, 1.2, 1.4, 1.8), function(s) at(x * s), 0))
    expect_increasing(vapply(c(1, 0.8, 0.6, 0.3), function(s) at(x * s), 0))
  }
})

test_that("the slope that moves locations is the derivative", {
  p <- fssd_points(150, 3, 4)
  problem <- stein_problem(p$x, p$b, 1.2, -0.4, NULL)
  problem$weights <- rep(1:3, 50) + 0
  for (diagonal in c(TRUE, FALSE)) {
    value <- function(at) fssd_square(matrix(at, 3), problem, diagonal, 1)$value
    at <- as.numeric(t(p$v))
    slope <- fssd_square(t(p$v), problem, diagonal, 1, TRUE)$slope
    expect_derivative(
      as.numeric(slope),
      as.numeric(central_difference(value, at)),
      scale = value(at)
    )
  }
})

test_that("optimised locations show where draws and posterior differ", {
  withr::local_seed(4)
  # standard normal but for a tenth of the draws that are off in one coordinate
  x <- matrix(rnorm(4000), 2000)
  x[1:200, 1] <- rnorm(200, 4, 0.3)
  before <- fssd(x, -x, 3, seed = 1)
  after <- fssd(x, -x, 3, optimise = 200, seed = 1)
  expect_gt(after, 2 * before)
  found <- attr(after, "locations")
  expect_identical(dim(found), c(3L, 2L))
  expect_close(fssd(x, -x, found), after)
  expect_true(all(found[, 1] > 2))
  expect_true(all(abs(found[, 2]) < 1))
})

test_that("locations follow the normal fitted to the draws, and their seed", {
  p <- fssd_points(40, 2, 1)
  problem <- stein_problem(p$x, p$b, 1, -0.5, NULL)
  problem$weights <- rep(1:4, 10) + 0
  v <- normal_locations(4000, problem, 7)
  fitted <- cov.wt(p$x, problem$weights, method = "ML")
  white <- solve(t(chol(fitted$cov)), v - fitted$center)
  expect_mean(white[1, ], 0)
  expect_mean(white[2, ], 0)
  expect_mean(white[1, ]^2, 1)
  expect_mean(white[2, ]^2, 1)
  expect_mean(white[1, ] * white[2, ], 0)
  one <- fssd(p$x, p$b, seed = 1)
  expect_identical(fssd(p$x, p$b, seed = 1), one)
  expect_false(fssd(p$x, p$b, seed = 2) == one)
  seeded <- withr::with_seed(1, fssd(p$x, p$b))
  expect_identical(withr::with_seed(1, fssd(p$x, p$b)), seeded)
})

test_that("origin, threads, coordinates that are undone do not matter", {
  p <- fssd_points(900, 3, 4)
  value <- fssd(p$x, p$b, p$v)
  expect_identical(fssd(p$x, p$b, p$v, cores = 2), value)
  expect_close(fssd(p$x + 1e4, p$b, p$v + 1e4), value, tolerance = 1e-9)
  s <- crossprod(matrix(c(1, 0.5, 0, 0, 2, 1, 0.3, 0, 1), 3))
  l <- t(chol(s))
  expect_close(
    fssd(p$x, p$b, p$v, covariance = s),
    fssd(t(solve(l, t(p$x))), t(t(l) %*% t(p$b)), t(solve(l, t(p$v))))
  )
  # optimised locations come back in the parameters
  found <- fssd(p$x, p$b, p$v, covariance = s, optimise = 5)
  expect_close(
    fssd(p$x, p$b, attr(found, "locations"), covariance = s),
    found
  )
})

test_that("weights count draws", {
  p <- fssd_points(20, 2, 3)
  times <- rep(1:4, 5)
  colnames(p$x) <- c("a", "b")
  draws <- posterior::weight_draws(posterior::as_draws_matrix(p$x), times)
  again <- rep(1:20, times)
  expect_close(
    fssd(draws, p$b, p$v, estimate = "biased"),
    fssd(p$x[again, ], p$b[again, ], p$v, estimate = "biased")
  )
})

test_that("prefixes are those of as many draws, seen from the same places", {
  p <- fssd_points(150, 3, 4)
  at <- c(128, 2, 63, 150, 64, 65, 2)
  for (estimate in c("biased", "unbiased")) {
    table <- fssd(p$x, p$b, p$v, estimate = estimate, prefixes = at)
    one <- vapply(at, function(n) {
      fssd(p$x[1:n, ], p$b[1:n, ], p$v, estimate = estimate)
    }, 0)
    expect_close(table$fssd, one)
    expect_identical(table$draws, at)
    expect_identical(unique(table$gradient), "given")
  }
  # locations are those of all draws
  s <- diag(3:1)
  drawn <- fssd(p$x, p$b, prefixes = c(10, 150), covariance = s, seed = 3)
  expect_close(drawn$fssd[[2]], fssd(p$x, p$b, covariance = s, seed = 3))
  found <- fssd(p$x, p$b, p$v, prefixes = c(20, 150), optimise = 5)
  whole <- fssd(p$x, p$b, p$v, optimise = 5)
  expect_identical(attr(found, "locations"), attr(whole, "locations"))
  expect_close(found$fssd[[2]], whole)
  colnames(p$x) <- c("a", "b", "c")
  times <- rep(1:3, 50)
  draws <- posterior::weight_draws(posterior::as_draws_matrix(p$x), times)
  again <- rep(1:60, times[1:60])
  for (estimate in c("biased", "unbiased")) {
    expected <- if (estimate == "biased") {
      fssd(p$x[again, ], p$b[again, ], p$v, estimate = estimate)
    } else {
      problem <- stein_problem(p$x[1:60, ], p$b[1:60, ], 1, -0.5, NULL)
      problem$weights <- times[1:60] + 0
      fssd_square(t(p$v), problem, FALSE, 1)$value
    }
    expect_close(
      fssd(draws, p$b, p$v, estimate = estimate, prefixes = 60)$fssd,
      expected
    )
  }
})

test_that("a fit gives its gradients", {
  data <- withr::with_seed(7, {
    x <- cbind("(Intercept)" = 1, a = rnorm(200))
    list(x = x, y = drop(x %*% c(1, 2)) + rnorm(200))
  })
  model <- model_glm(data$x, data$y, family = "gaussian")
  fit <- sg_sample(
    model,
    kernel_sgld(1e-3),
    subsample = subsample_uniform(20),
    keep = c("draws", "gradients"),
    iter = 80,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  theta <- matrix(fit$unconstrained, ncol = 3)
  exact <- t(model_evaluate(model, t(theta))$gradient)
  expect_close(fssd(fit, seed = 1), fssd(theta, exact, seed = 1))
  # at few of the draws, iteration by iteration
  side_by_side <- as.integer(t(matrix(seq_len(80), ncol = 2)))
  few <- side_by_side[seq(4, 80, 4)]
  expect_message(
    thinned <- fssd(fit, locations = theta[1:3, ], max_draws = 20),
    class = "tall_message_thinned"
  )
  expect_close(thinned, fssd(theta[few, ], exact[few, ], theta[1:3, ]))
  # prefixes go through the chains side by side, and take all draws
  first <- side_by_side[1:30]
  expect_silent(
    part <- fssd(fit, locations = theta[1:3, ], prefixes = 30, max_draws = 2)
  )
  expect_close(part$fssd, fssd(theta[first, ], exact[first, ], theta[1:3, ]))
  expect_identical(part$gradient, "exact")
  noisy <- fssd(fit, "kept", seed = 1)
  expect_identical(attr(noisy, "gradient"), "noisy")
  expect_close(noisy, fssd(theta, matrix(fit$gradients, ncol = 3), seed = 1))
})

test_that("bad input is named", {
  x <- matrix(rnorm(20), 10)
  expect_snapshot(
    error = TRUE,
    fssd(x[1, , drop = FALSE], -x[1, , drop = FALSE])
  )
  expect_snapshot(error = TRUE, fssd(x))
  expect_snapshot(error = TRUE, fssd(x, -x, locations = 0))
  expect_snapshot(error = TRUE, fssd(x, -x, locations = matrix(0, 2, 3)))
  expect_snapshot(error = TRUE, fssd(x, -x, beta = 0.5))
  expect_snapshot(error = TRUE, fssd(x, -x, estimate = "unbiasd"))
  expect_snapshot(error = TRUE, fssd(x, -x, optimise = -1))
  expect_snapshot(error = TRUE, fssd(x, -x, c = 0))
  expect_snapshot(error = TRUE, fssd(x, -x, prefixes = c(5, 11)))
})
