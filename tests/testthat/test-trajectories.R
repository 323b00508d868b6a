# Trajectories on all rows, where the posterior is far from normal: draws of a
# hierarchical model in its non-centred form, whose law is known but for one
# integral.

# y_ij ~ N(tau z_j, 1), of whole numbers, with many rows that are equal
hierarchy <- function(n_group = 8, each = 300) {
  withr::local_seed(4)
  effect <- 0.25 * rnorm(n_group)
  g <- rep(seq_len(n_group), each = each)
  data.frame(y = round(rnorm(length(g), effect[g])), g = factor(g))
}

hierarchical_model <- function(data) {
  model_custom(
    function(theta, batch) {
      dnorm(batch$y, theta$tau * theta$z[batch$g], 1, log = TRUE)
    },
    function(theta) {
      dnorm(theta$tau, 0, 1, log = TRUE) + sum(dnorm(theta$z, log = TRUE))
    },
    data,
    list(tau = 1, z = numeric(nlevels(data$g))),
    transform = list(tau = "positive")
  )
}

# The mean and sd of tau, with z integrated out, by quadrature.
known_tau <- function(data) {
  n <- tabulate(data$g)
  means <- tapply(data$y, data$g, mean)
  tau <- seq(1e-4, 3, length.out = 20000)
  log_p <- vapply(tau, function(t) {
    dnorm(t, 0, 1, log = TRUE) +
      sum(dnorm(means, 0, sqrt(t^2 + 1 / n), log = TRUE))
  }, 0)
  p <- exp(log_p - max(log_p))
  mean <- sum(p * tau) / sum(p)
  c(mean = mean, sd = sqrt(sum(p * tau^2) / sum(p) - mean^2))
}

test_that("a hierarchical model is sampled exactly, on distinct rows", {
  data <- hierarchy()
  model <- hierarchical_model(data)
  fit <- suppressWarnings(sg_sample(model, seed = 1, refresh = 0))
  expect_identical(fit$kernel$name, "hmc")
  expect_match(fit$plan, "of them distinct")
  expect_equal(fit$n_data, nrow(data))
  summary <- posterior::summarise_draws(fit$draws)
  expect_lt(max(summary$rhat), 1.02)
  known <- known_tau(data)
  tau <- summary[summary$variable == "tau", ]
  error <- known[["sd"]] / sqrt(tau$ess_bulk)
  expect_lt(abs(tau$mean - known[["mean"]]), 5 * error)
  # an sd has about 1 / sqrt(2) of a mean's error; the tail is heavier
  expect_lt(abs(tau$sd - known[["sd"]]), 8 * error)
  # it goes on where it stood
  again <- sg_resume(fit, iter = 200)
  expect_identical(again$draws[1:1000, , ], fit$draws[1:1000, , ])
  expect_true(all(is.finite(again$draws)))
})

test_that("few rows are no reason to trust the mode", {
  data <- hierarchy(each = 100)
  # of which no two are equal
  data$y <- data$y + 1e-3 * sin(seq_len(nrow(data)))
  model <- hierarchical_model(data)
  control <- check_control(200, 100, 1, 2, 1, 1, "draws", 0)
  plan <- suppressWarnings(
    plan_recipe(model, check_sampler(NULL, NULL, NULL, schedule_constant()),
                control, FALSE)
  )
  expect_identical(plan$kernel$name, "hmc")
  expect_null(plan$stand_in)
})

test_that("separated classes of a factor are sampled on distinct rows", {
  withr::local_seed(5)
  data <- data.frame(g = factor(sample(c("a", "b", "c"), 3000, TRUE)))
  data$y <- factor(ifelse(data$g == "c", "u", sample(c("u", "v", "w"), 3000,
                                                     TRUE)))
  fit <- suppressWarnings(tall_multinom(y ~ g, data, seed = 1, refresh = 0))
  expect_identical(fit$kernel$name, "hmc")
  summary <- posterior::summarise_draws(fit$draws)
  expect_lt(max(summary$rhat), 1.02)
  # of `c` all are u: the prior's lower half, cut off softly
  expect_lt(summary$q95[summary$variable == "v:gc"], 0)
  # v against u in a, by counts: the prior hardly matters
  n <- table(data$g, data$y)
  row <- summary[summary$variable == "v:(Intercept)", ]
  sd <- sqrt(1 / n["a", "v"] + 1 / n["a", "u"])
  error <- as.double(row$mean) - log(n["a", "v"] / n["a", "u"])
  expect_lt(abs(error), 5 * sd / sqrt(as.double(row$ess_bulk)) + 0.01 * sd)
  expect_equal(as.double(row$sd) / sd, 1, tolerance = 0.1)
})

test_that("what takes long says so before it starts, however quiet", {
  model <- hierarchical_model(hierarchy())
  control <- check_control(2000, 1000, 1, 4, 1, 1, "draws", 0)
  expect_message(tell_trajectories(model, model, control, most = 0), "one core")
  expect_silent(tell_trajectories(model, model, control, most = Inf))
})

test_that("a pilot without a number keeps the coordinates it has", {
  before <- list(center = 0, chol = matrix(1), is_diagonal = FALSE)
  expect_identical(frame_of_draws(matrix(1, 10, 1), before), before)
  found <- frame_of_draws(matrix(rnorm(1e4, 2, 3), 1e4), before)
  expect_equal(found$center, 2, tolerance = 0.1)
  expect_equal(drop(found$chol), 1 / 3, tolerance = 0.05)
})
