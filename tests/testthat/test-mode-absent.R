# Eight schools (Rubin 1981), centred and not.
schools <- list(
  y = c(28, 8, -3, 7, -1, 1, 18, 12),
  se = c(15, 10, 16, 11, 9, 11, 10, 18),
  school = 1:8
)

log_scale_prior <- function(mu, tau) {
  stats::dnorm(mu, 0, 5, log = TRUE) + stats::dcauchy(tau, 0, 5, log = TRUE)
}

centred_schools <- function(tau = 1) {
  model_custom(
    log_lik = function(theta, batch) {
      stats::dnorm(batch$y, theta$effect[batch$school], batch$se, log = TRUE)
    },
    log_prior = function(theta) {
      log_scale_prior(theta$mu, theta$tau) +
        sum(stats::dnorm(theta$effect, theta$mu, theta$tau, log = TRUE))
    },
    data = schools,
    init = list(mu = 0, tau = tau, effect = numeric(8)),
    grad_log_lik = function(theta, batch) {
      slope <- (batch$y - theta$effect[batch$school]) / batch$se^2
      rows <- length(slope)
      out <- matrix(0, rows, 8)
      out[cbind(seq_len(rows), batch$school)] <- slope
      list(mu = numeric(rows), tau = numeric(rows), effect = out)
    },
    grad_log_prior = function(theta) {
      away <- theta$effect - theta$mu
      tau <- theta$tau
      c(
        sum(away) / tau^2 - theta$mu / 25,
        -8 / tau + sum(away^2) / tau^3 - 2 * tau / (25 + tau^2),
        -away / tau^2
      )
    },
    transform = list(tau = "positive")
  )
}

noncentred_schools <- function() {
  model_custom(
    log_lik = function(theta, batch) {
      effect <- theta$mu + theta$tau * theta$z[batch$school]
      stats::dnorm(batch$y, effect, batch$se, log = TRUE)
    },
    log_prior = function(theta) {
      log_scale_prior(theta$mu, theta$tau) +
        sum(stats::dnorm(theta$z, log = TRUE))
    },
    data = schools,
    init = list(mu = 0, tau = 1, z = numeric(8)),
    grad_log_lik = function(theta, batch) {
      z <- theta$z[batch$school]
      slope <- (batch$y - theta$mu - theta$tau * z) / batch$se^2
      rows <- length(slope)
      out <- matrix(0, rows, 8)
      out[cbind(seq_len(rows), batch$school)] <- slope * theta$tau
      list(mu = slope, tau = slope * z, z = out)
    },
    grad_log_prior = function(theta) {
      tau <- theta$tau
      c(-theta$mu / 25, -2 * tau / (25 + tau^2), -theta$z)
    },
    transform = list(tau = "positive")
  )
}

test_that("a scale that falls to 0 is seen, and the non-centred form named", {
  for (tau in c(0.1, 1, 10)) {
    model <- centred_schools(tau)
    for (method in c("newton", "lbfgs")) {
      error <- expect_error(find_mode(model, method), class = "tall_error_mode")
      expect_identical(error$coordinate, "log_tau")
      # seven effects more than parameters that they depend on
      expect_close(diff(error$heights), c(21, 21), tolerance = 0.1)
    }
  }
  error <- expect_error(
    sg_sample(model, refresh = 0),
    class = "tall_error_mode"
  )
  expect_identical(as.character(error$call[[1]]), "sg_sample")
  expect_match(conditionMessage(error), "non-centred", fixed = TRUE)
  expect_no_match(conditionMessage(error), "column|not proper|linear comb")
  expect_snapshot(find_mode(centred_schools()), error = TRUE)
})

test_that("the non-centred form that is named has a mode, and runs", {
  fit <- suppressWarnings(sg_sample(
    noncentred_schools(),
    iter = 1500,
    seed = 1,
    refresh = 0
  ))
  # with the effects integrated out
  grid <- expand.grid(mu = seq(-15, 20, 0.5), tau = seq(0.05, 60, 0.2))
  log_density <- log_scale_prior(grid$mu, grid$tau)
  for (j in 1:8) {
    sd <- sqrt(schools$se[[j]]^2 + grid$tau^2)
    log_density <- log_density +
      stats::dnorm(schools$y[[j]], grid$mu, sd, log = TRUE)
  }
  share <- exp(log_density - max(log_density))
  share <- share / sum(share)
  table <- summary(fit)$table
  mu <- table[table$variable == "mu", ]
  expect_lt(abs(mu$mean - sum(share * grid$mu)), 5 * mu$mcse_mean)
  tau <- table[table$variable == "tau", ]
  expect_lt(abs(tau$mean - sum(share * grid$tau)), 5 * tau$mcse_mean)
})

test_that("parameters of which only the sum counts are not called columns", {
  model <- model_custom(
    log_lik = function(theta, batch) {
      stats::dnorm(batch, theta$a + theta$b, log = TRUE)
    },
    log_prior = function(theta) stats::dnorm(theta$c, log = TRUE),
    data = c(1, 2, 4),
    init = list(a = 0, b = 0, c = 0),
    grad_log_lik = function(theta, batch) {
      slope <- batch - theta$a - theta$b
      cbind(slope, slope, 0)
    },
    grad_log_prior = function(theta) c(0, 0, -theta$c)
  )
  for (method in c("newton", "lbfgs")) {
    error <- expect_error(find_mode(model, method), class = "tall_error_mode")
    expect_setequal(error$coordinates, c("a", "b"))
  }
  expect_snapshot(find_mode(model), error = TRUE)
})

test_that("a density that curves upwards where the search ends says so", {
  # the best a is 0 for the gradient, but not for the density
  model <- model_custom(
    log_lik = function(theta, batch) {
      theta$a^2 / 2 - theta$a^4 / 4 - theta$b^2 / 2 + 0 * batch
    },
    log_prior = function(theta) 0,
    data = 1,
    init = list(a = 0, b = 1),
    grad_log_lik = function(theta, batch) {
      cbind(theta$a - theta$a^3, -theta$b + 0 * batch)
    },
    grad_log_prior = function(theta) c(0, 0)
  )
  error <- expect_error(find_mode(model, "lbfgs"), class = "tall_error_mode")
  expect_identical(error$coordinates, "a")
  expect_match(conditionMessage(error), "curves upwards in `a`", fixed = TRUE)
  expect_close(
    abs(find_mode(model, "lbfgs", init = c(0.5, 1))$estimate),
    c(a = 1, b = 0),
    tolerance = 1e-4
  )
})

# ---- log posteriors without a slope where they are largest -------------------

test_that("a gradient that is not finite at the mode names its coordinate", {
  cusp <- function(start) {
    model_custom(
      function(theta, batch) rep(-sqrt(abs(theta$a)), length(batch$x)),
      function(theta) -theta$b^2,
      data.frame(x = 1:3),
      list(b = 1, a = start),
      check = FALSE
    )
  }
  # at once, and where the search ends
  for (start in c(0, 0.3)) {
    for (run in list(find_mode, function(m) sg_sample(m, refresh = 0))) {
      error <- expect_error(run(cusp(start)), class = "tall_error_nonfinite")
      expect_identical(error$coordinate, "a")
    }
  }
  expect_snapshot(find_mode(cusp(0)), error = TRUE)
})
