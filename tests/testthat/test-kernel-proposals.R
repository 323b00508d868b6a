# Proposals of kernel_smh(). Their reversibility, and the gradient of the
# surrogate, are in tools/core-check/test-factorised.c.

# A level of 20 rows without an event: a wall, and a tail behind it.
walled <- function(scale, n = 3000, n_rare = 20) {
  y <- rep(c(1, 0), c(900, n - 900 + n_rare))
  x <- cbind("(Intercept)" = 1, rare = rep(0:1, c(n, n_rare)))
  model_glm(x, y, prior = prior_normal(0, scale))
}
walled_rows <- 3001:3020

test_that("posteriors are those of quadrature, whatever proposes", {
  skip_on_cran()
  all <- proposal_mixture(
    proposal_independent(),
    proposal_autoregressive(0.8),
    proposal_hmc(0.5, 3),
    proposal_slice(3),
    times = 3
  )
  cases <- list(
    list(2.5, proposal_hmc()),
    list(2.5, NULL),
    list(8, proposal_slice(4)),
    list(8, all)
  )
  for (case in cases) {
    model <- walled(case[[1]])
    exact <- grid_posterior(model)
    kernel <- kernel_smh(proposal = case[[2]], awkward = walled_rows)
    fit <- sg_sample(
      model,
      kernel,
      iter = 6000,
      warmup = 1000,
      seed = 3,
      refresh = 0
    )
    slope <- posterior::extract_variable_matrix(fit$draws, "rare")
    error <- posterior::mcse_mean(slope)
    expect_lt(abs(mean(slope) - exact$mean) / error, 4.5)
    error <- posterior::mcse_sd(slope)
    expect_lt(abs(stats::sd(slope) - exact$sd), 4.5 * error + 2e-3 * exact$sd)
  }
})

test_that("those that it takes by itself are proposals as others", {
  model <- tall_model(2500)
  run <- function(kernel) {
    sg_sample(model, kernel, iter = 60, warmup = 20, seed = 1, refresh = 0)
  }
  own <- proposal_mixture(
    proposal_autoregressive(0.9),
    proposal_independent(),
    shares = c(1, 9)
  )
  plain <- run(kernel_smh())
  expect_identical(run(kernel_smh(proposal = own))$draws, plain$draws)
})

test_that("a surrogate of all rows is the posterior: all are accepted", {
  withr::local_seed(1)
  x <- cbind(1, stats::rnorm(40))
  for (prior in list(prior_normal(0, 1), prior_laplace(0, 1))) {
    model <- model_glm(x, rep(0:1, 20), family = "bernoulli", prior = prior)
    kernel <- kernel_smh(proposal = proposal_slice(), awkward = 1:40)
    fit <- sg_sample(model, kernel, iter = 300, seed = 1, refresh = 0)
    expect_true(all(fit$chains$acceptance == 1))
    expect_true(all(fit$chains$rows_thinned == 0))
  }
})

test_that("draws do not depend on cores, and go on where they were", {
  model <- walled(2.5)
  mixed <- proposal_mixture(proposal_hmc(), proposal_slice(), times = 2)
  run <- function(...) {
    sg_sample(
      model,
      kernel_smh(proposal = mixed, awkward = walled_rows),
      warmup = 20,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  fit <- run(iter = 60)
  expect_identical(run(iter = 60, cores = 2)$draws, fit$draws)
  longer <- sg_resume(
    unserialize(serialize(fit, NULL)),
    iter = 40,
    model = model,
    refresh = 0
  )
  whole <- run(iter = 100)
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
})

test_that("what cannot be is told", {
  model <- walled(2.5)
  run <- function(...) {
    sg_sample(model, kernel_smh(...), iter = 10, seed = 1, refresh = 0)
  }
  expect_snapshot(error = TRUE, {
    proposal_autoregressive(1)
    proposal_hmc(step_size = 0)
    proposal_slice(coordinates = 0.5)
    proposal_mixture()
    proposal_mixture(proposal_hmc(), 3)
    proposal_mixture(proposal_mixture(proposal_hmc()))
    proposal_mixture(proposal_hmc(), shares = c(1, 2))
    kernel_smh(proposal = list(proposal_hmc(), proposal_slice()))
    kernel_smh(proposal = "hmc")
    kernel_smh(0.1, proposal = proposal_hmc())
    kernel_smh(awkward = 0)
    kernel_smh(awkward = character())
    kernel_smh(awkward = 1:6000)
    run(awkward = 4000)
    run(proposal = proposal_slice(coordinates = 3))
  })
  expect_snapshot({
    proposal_hmc()
    proposal_mixture(proposal_hmc(), proposal_slice(), shares = 1:2, times = 3)
    kernel_smh(proposal = proposal_slice(), awkward = c(7, 3))
    mixed <- proposal_mixture(proposal_hmc(0.5), proposal_slice(), times = 2)
    kernel_smh(proposal = mixed)
    kernel_smh(awkward = integer())
  })
  expect_identical(kernel_smh(awkward = integer()), kernel_smh())
  expect_identical(kernel_smh(0.1), kernel_smh())
})

test_that("a fit says how often its awkward rows are looked at", {
  expect_identical(always_text(2.5, 0), "2.5 in every step")
  expect_identical(always_text(1, 1), "1 awkward row, looked at 1 time")
  expect_identical(
    always_text(560, 20),
    "20 awkward rows, looked at 28 times"
  )
  model <- walled(2.5)
  kernel <- kernel_smh(
    proposal = proposal_mixture(proposal_slice(), times = 3),
    awkward = 3001:3020
  )
  fit <- sg_sample(model, kernel, iter = 50, seed = 1, refresh = 0)
  times <- mean(fit$chains$rows_always) / 20
  expect_gt(times, 3) # of each of three steps
  expect_output(print(fit), always_text(20 * times, 20), fixed = TRUE)
})
