# Kernels with momentum: their updates number by number, and their stationary
# laws on normal targets, where position and momentum are a linear recursion.

# A normal target, exact gradients: positions of one chain from its own normals.
# `first(xi)` makes the momentum, `move(state, xi)` a step; xi has d normals.
momentum_again <- function(n, start, first, move) {
  d <- length(start)
  seed <- core_seed(list(seed = 1))
  xi <- matrix(.Call(ffi_rng_norm, seed, 0L, 1L, 50 * (n + 1) * d), d)
  used <- 0
  take <- function() {
    used <<- used + 1
    xi[, used]
  }
  state <- first(list(theta = start), take)
  out <- matrix(NA, n, d)
  for (t in seq_len(n)) {
    state <- move(state, take, t)
    out[t, ] <- state$theta
  }
  out
}

precision <- c(0.5, 1, 2)
slope <- function(theta) -precision * theta

expect_update <- function(
  kernel,
  first,
  move,
  schedule = schedule_constant(),
  n = 25
) {
  start <- c(0.5, -1, 0.3)
  fit <- sg_sample(
    target_normal(precision),
    kernel,
    gradient_full(),
    schedule = schedule,
    iter = n,
    warmup = 0,
    chains = 1,
    seed = 1,
    init = start,
    refresh = 0
  )
  again <- momentum_again(n, start, first, move)
  kept <- seq_len(n)[!explored(schedule, n)]
  expect_close(plain_draws(fit), again[kept, ], kernel$name, tolerance = 1e-6)
}

explored <- function(schedule, n) {
  t <- seq_len(n) - 1
  if (schedule$name != "cyclical") {
    return(rep(FALSE, n))
  }
  (t %% schedule$args$length) / schedule$args$length < schedule$args$exploration
}

test_that("SGHMC is its formula, with and without fresh momenta", {
  eta <- c(0.1, 0.05, 0.2)
  a <- 0.3
  kick <- function(state, take, kick = 1, heat = 1, eta = eta) {
    v <- (1 - a) * state$v + kick * eta * slope(state$theta) +
      heat * sqrt(2 * eta * a) * take()
    list(theta = state$theta + v, v = v)
  }
  first <- function(state, take) c(state, list(v = sqrt(eta) * take()))
  expect_update(
    kernel_sghmc(eta, friction = a),
    first,
    function(state, take, t) kick(state, take, eta = eta)
  )
  expect_update(
    kernel_sghmc(eta, friction = a, leapfrog = 4),
    first,
    function(state, take, t) {
      state$v <- sqrt(eta) * take()
      state <- kick(state, take, kick = 0.5, eta = eta)
      for (l in 2:4) {
        state <- kick(state, take, eta = eta)
      }
      state
    }
  )
  cyclical <- schedule_cyclical(length = 8, exploration = 0.5)
  expect_update(
    kernel_sghmc(eta, friction = a),
    first,
    function(state, take, t) {
      r <- ((t - 1) %% 8) / 8
      kick(state, take, heat = r >= 0.5, eta = eta * (cos(pi * r) + 1) / 2)
    },
    cyclical
  )
})

test_that("SGNHT is its formula", {
  eta <- 0.1
  a <- 0.2
  for (cycle in c(FALSE, TRUE)) {
    expect_update(
      kernel_sgnht(eta, diffusion = a),
      function(state, take) c(state, list(v = sqrt(eta) * take(), xi = a)),
      function(state, take, t) {
        r <- if (cycle) ((t - 1) %% 10) / 10 else 0
        h <- eta * (cos(pi * r) + 1) / 2
        heat <- !cycle || r >= 0.2
        v <- (1 - state$xi) * state$v + h * slope(state$theta) +
          heat * sqrt(2 * a * h) * take()
        list(
          theta = state$theta + v,
          v = v,
          xi = state$xi + mean(v^2) - h
        )
      },
      if (cycle) schedule_cyclical(10, 0.2) else schedule_constant()
    )
  }
})

test_that("preconditioned SGLD is its formula", {
  h <- c(0.01, 0.02, 0.01)
  n_data <- target_normal(precision)$n_data
  expect_update(
    kernel_psgld(h, decay = 0.7, epsilon = 0.01),
    function(state, take) c(state, list(square = 0)),
    function(state, take, t) {
      g <- slope(state$theta)
      square <- 0.7 * state$square + 0.3 * (g / n_data)^2
      scale <- h / (0.01 + sqrt(square))
      list(
        theta = state$theta + scale / 2 * g + sqrt(scale) * take(),
        square = square
      )
    }
  )
})

test_that("BAOAB is its formula", {
  h <- 0.3
  c0 <- exp(-0.7)
  half <- sqrt(h) / 2
  expect_update(
    kernel_baoab(h, friction = 0.7),
    function(state, take) {
      c(state, list(p = take() + half * slope(state$theta)))
    },
    function(state, take, t) {
      p <- state$p + half * slope(state$theta)
      theta <- state$theta + half * p
      p <- c0 * p + sqrt(1 - c0^2) * take()
      theta <- theta + half * p
      list(theta = theta, p = p + half * slope(theta))
    }
  )
})

test_that("BAOAB without persistence is Leimkuhler-Matthews, draw by draw", {
  model <- entry_glm("bernoulli", prior = prior_normal(0, 1), n_data = 30)$model
  run <- function(kernel) {
    sg_sample(
      model,
      kernel,
      gradient_simple(),
      subsample_uniform(10),
      iter = 200,
      warmup = 0,
      seed = 4,
      chains = 2,
      refresh = 0
    )
  }
  expect_close(
    plain_draws(run(kernel_baoab(0.05, friction = Inf))),
    plain_draws(run(kernel_sgld(0.05, integrator = "leimkuhler-matthews"))),
    "draws"
  )
})

# ---- stationary laws ---------------------------------------------------------

# Covariance of x <- A x + N(0, Q)
stationary <- function(A, Q) {
  n <- nrow(A)
  matrix(solve(diag(n^2) - kronecker(A, A), as.vector(Q)), n)
}

# Variance of theta where v <- (1 - a) v - eta l theta + N(0, q), theta <- theta
# + v.
sghmc_variance <- function(eta, a, lambda, q) {
  A <- rbind(c(1 - eta * lambda, 1 - a), c(-eta * lambda, 1 - a))
  stationary(A, matrix(q, 2, 2))[1, 1]
}

momentum_run <- function(model, kernel, ..., iter = 8000, warmup = 500) {
  sg_sample(
    model,
    kernel,
    ...,
    iter = iter,
    warmup = warmup,
    chains = 40,
    cores = 2,
    seed = 9,
    init = numeric(model$n_dim),
    refresh = 0
  )
}

test_that("SGHMC has the variance of its recursion, tending to the target's", {
  skip_on_cran()
  eta <- 0.2
  a <- 0.4
  fit <- momentum_run(
    target_normal(precision),
    kernel_sghmc(eta, friction = a),
    gradient_full()
  )
  truth <- vapply(precision, function(lambda) {
    sghmc_variance(eta, a, lambda, 2 * eta * a)
  }, 0)
  expect_posterior(fit, numeric(3), diag(truth), "SGHMC")
  expect_lt(abs(sghmc_variance(1e-6, a, 1, 2e-6 * a) - 1), 1e-5)
})

test_that("SGHMC with fresh momenta has the variance of its map", {
  skip_on_cran()
  n_step <- 5
  # theta after the steps is linear in theta before and in all normals
  map <- function(lambda, eta, a) {
    keep <- diag(2)
    noise <- rbind(0, sqrt(eta))
    for (l in seq_len(n_step)) {
      pull <- -eta * lambda * if (l == 1) 0.5 else 1
      step <- rbind(c(1 + pull, 1 - a), c(pull, 1 - a))
      keep <- step %*% keep
      noise <- cbind(step %*% noise, sqrt(2 * eta * a))
    }
    sum(noise[1, ]^2) / (1 - keep[1, 1]^2)
  }
  fit <- momentum_run(
    target_normal(precision),
    kernel_sghmc(0.1, friction = 0.1, leapfrog = n_step),
    gradient_full(),
    iter = 4000
  )
  truth <- vapply(precision, map, 0, 0.1, 0.1)
  expect_posterior(fit, numeric(3), diag(truth), "SGHMC, leapfrog")
  # halving the first kick is what makes the limit right
  expect_lt(abs(map(1, 1e-6, 1e-4) - 1), 1e-4)
})

test_that("SGHMC takes the noise it estimates out of the friction's", {
  skip_on_cran()
  eta <- 0.05
  a <- 0.2
  n <- 20
  model <- target_normal(c(1, 1), spread = 60, n_data = 200)
  tau2 <- 60 / n
  run <- function(noise_estimate) {
    momentum_run(
      model,
      kernel_sghmc(
        eta,
        friction = a,
        noise_estimate = noise_estimate,
        noise_smoothing = 0.01
      ),
      gradient_simple(),
      subsample_uniform(n),
      warmup = 1000
    )
  }
  without <- sghmc_variance(eta, a, 1, 2 * eta * a + eta^2 * tau2)
  within <- sghmc_variance(eta, a, 1, 2 * eta * a)
  plain <- chain_means(run("none"), function(x) x^2)
  corrected <- chain_means(run("minibatch"), function(x) x^2)
  for (j in 1:2) {
    expect_mean(plain[, j], without, "no estimate")
    expect_mean(corrected[, j], within, "estimated")
  }
})

test_that("the thermostat takes up gradient noise of unknown size", {
  skip_on_cran()
  eta <- 0.0025
  a <- 0.05
  n <- 10
  model <- target_normal(rep(1, 8), spread = 200, n_data = 200)
  fit <- momentum_run(
    model,
    kernel_sgnht(eta, diffusion = a),
    gradient_simple(),
    subsample_uniform(n),
    iter = 12000,
    warmup = 2000
  )
  squares <- rowMeans(chain_means(fit, function(x) x^2))
  se <- stats::sd(squares) / sqrt(length(squares))
  # its discretisation is of order eta; without the thermostat the variance is
  # half as large again
  inflated <- sghmc_variance(eta, a, 1, 2 * eta * a + eta^2 * 200 / n)
  expect_gt(inflated, 1.4)
  expect_lt(abs(mean(squares) - 1), 0.02 + 4 * se)
})

test_that("BAOAB has the exact variance on a normal target", {
  skip_on_cran()
  for (friction in c(0.3, 2)) {
    fit <- momentum_run(
      target_normal(precision),
      kernel_baoab(0.9, friction = friction),
      gradient_full()
    )
    label <- paste("BAOAB", friction)
    expect_posterior(fit, numeric(3), diag(1 / precision), label)
  }
})

test_that("preconditioned SGLD is Euler at the scale it finds", {
  skip_on_cran()
  # an average over very many steps is nearly constant: G = 1 / sqrt(E (g/N)^2),
  # and E g^2 = l^2 Var(theta), Var(theta) = 1 / (l (1 - h G l / 4))
  h <- 0.01
  n_data <- 50
  fit <- momentum_run(
    target_normal(precision, n_data = n_data),
    kernel_psgld(h, decay = 0.9999),
    gradient_full(),
    iter = 60000,
    warmup = 40000
  )
  truth <- vapply(precision, function(lambda) {
    stats::uniroot(function(v) {
      scale <- n_data / (lambda * sqrt(v))
      v - 1 / (lambda * (1 - h * scale * lambda / 4))
    }, c(1, 3) / lambda, tol = 1e-10)$root
  }, 0)
  squares <- chain_means(fit, function(x) x^2)
  for (j in seq_along(precision)) {
    se <- stats::sd(squares[, j]) / sqrt(nrow(squares))
    expect_lt(abs(mean(squares[, j]) - truth[[j]]), 0.01 * truth[[j]] + 4 * se)
  }
})

test_that("momentum kernels refuse what they cannot use", {
  expect_refusals(
    "tall_error_input",
    kernel_sghmc(0),
    kernel_sghmc(0.1, friction = 0),
    kernel_sghmc(0.1, friction = 1.1),
    kernel_sghmc(0.1, leapfrog = 0),
    kernel_sgnht(c(1, 2)),
    kernel_sgnht(0.1, diffusion = NA),
    kernel_baoab(0.1, friction = 0),
    kernel_psgld(0.1, decay = 1),
    kernel_psgld(0.1, epsilon = 0),
    schedule_cyclical(10, 1),
    schedule_cyclical(10, 0.96),
    schedule_cyclical(0)
  )
  model <- target_normal(precision)
  expect_snapshot(error = TRUE, {
    sg_sample(
      model,
      kernel_sghmc(0.01, noise_estimate = "minibatch"),
      gradient_simple(),
      subsample_uniform(1)
    )
  })
  fit <- sg_sample(
    model,
    kernel_sgnht(0.01),
    gradient_simple(),
    subsample_uniform(5),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  expect_error(noise_tolerance(fit), class = "tall_error_unsupported")
  expect_error(bias_check(fit), class = "tall_error_unsupported")
})
