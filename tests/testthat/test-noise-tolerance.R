# Mauri & Zanella (2024), Propositions 1-4 and Corollaries 1-2, and the
# stationary laws of the kernels that use them.

grid <- expand.grid(
  delta = seq(-8, 8, by = 0.4),
  z = c(-1.5, -0.3, 0.3, 1.5),
  tau = c(0.1, 1, 3, 10)
)

test_that("probabilities of +z and -z add up to 1, with and without noise", {
  for (variant in sgbd_variants) {
    up <- sgbd_probability(grid$delta, grid$z, grid$tau, variant)
    down <- sgbd_probability(grid$delta, -grid$z, grid$tau, variant)
    expect_equal(up + down, rep(1, nrow(grid)), tolerance = 1e-12)
    up <- sgbd_expected_probability(grid$delta, grid$z, grid$tau, variant)
    down <- sgbd_expected_probability(grid$delta, -grid$z, grid$tau, variant)
    expect_equal(up + down, rep(1, nrow(grid)), tolerance = 1e-7)
  }
})

test_that("noise shrinks the probability towards one half (Proposition 1)", {
  exact <- sgbd_probability(grid$delta, grid$z)
  noisy <- sgbd_expected_probability(grid$delta, grid$z, grid$tau)
  expect_true(all(abs(noisy - 0.5) <= abs(exact - 0.5) + 1e-9))
  expect_true(all(sign(round(noisy - 0.5, 9)) == sign(round(exact - 0.5, 9))))
  more <- sgbd_expected_probability(grid$delta, grid$z, 2 * grid$tau)
  expect_true(all(abs(more - 0.5) <= abs(noisy - 0.5) + 1e-9))
})

test_that("noise acts as a factor of the gradient to 0.019 (Proposition 2)", {
  factor <- 1.702 / sqrt(1.702^2 + (grid$z * grid$tau)^2)
  noisy <- sgbd_expected_probability(grid$delta, grid$z, grid$tau)
  error <- max(abs(noisy - sgbd_probability(factor * grid$delta, grid$z)))
  expect_lt(error, 0.019)
  # the actual supremum is 0.0111: the bound is not met by accident
  expect_gt(error, 0.008)
})

test_that("the correction undoes noise below the tolerance (Corollary 1)", {
  below <- grid[grid$tau < 1.702 / abs(grid$z), ]
  corrected <- sgbd_expected_probability(
    below$delta,
    below$z,
    below$tau,
    "corrected"
  )
  exact <- sgbd_probability(below$delta, below$z)
  expect_lt(max(abs(corrected - exact)), 0.019)
  vanilla <- sgbd_expected_probability(below$delta, below$z, below$tau)
  expect_gt(max(abs(vanilla - exact)), 0.05)
})

test_that("expected probabilities are means over the noise", {
  withr::local_seed(1)
  g <- stats::rnorm(2e5, 1, 2)
  for (variant in sgbd_variants) {
    p <- sgbd_probability(g, 0.6, 2, variant)
    expected <- sgbd_expected_probability(1, 0.6, 2, variant)
    expect_lt(abs(mean(p) - expected), 4.5 * stats::sd(p) / sqrt(length(p)))
  }
})

test_that("an infinite gradient moves by its sign", {
  expect_identical(sgbd_probability(c(Inf, -Inf), 0.1), c(1, 0))
  expect_identical(sgbd_probability(0, 0.1, variant = "extreme"), 0.5)
})

# ---- stationary laws on N(0, 1) ----------------------------------------------

# A normal posterior with precision 1 whose minibatch gradients have variance
# tau^2: n rows of N, with replacement.
barker_run <- function(
  sigma,
  variant,
  tau,
  constant = 1.702,
  noise = "bimodal"
) {
  # 16 rows or more: one would show no variance
  model <- target_normal(1, spread = 16 * max(tau^2, 1), n_data = 200)
  sg_sample(
    model,
    kernel_sgbd(sigma, variant, noise, constant = constant),
    if (tau > 0) gradient_simple() else gradient_full(),
    if (tau > 0) subsample_uniform(round(target_noise(model) / tau^2)),
    iter = 42000,
    warmup = 2000,
    thin = 1,
    chains = 20,
    seed = 11,
    init = 0,
    refresh = 0
  )
}

# N tr Var(g_i) per coordinate: minibatches of one row have this noise variance.
target_noise <- function(model) {
  rows <- row_gradients(model, model$posterior_mean)
  model$n_data * sum(rows^2) - sum(rows)^2
}

chain_sd <- function(fit) {
  square <- apply(plain_draws(fit)[, , 1]^2, 2, mean)
  c(sd = sqrt(mean(square)), se = stats::sd(square) / sqrt(length(square)) / 2)
}

test_that("exact gradients: the bias of Barker dynamics falls with sigma", {
  skip_on_cran()
  sds <- vapply(
    c(1.2, 0.6, 0.3),
    function(sigma) chain_sd(barker_run(sigma, "vanilla", 0)),
    c(sd = 0, se = 0)
  )
  bias <- abs(sds["sd", ] - 1)
  expect_gt(bias[[1]], 0.03)
  # first order in sigma^2 or better
  expect_lt(bias[[2]], bias[[1]] / 2.5 + 4 * sds["se", 2])
  expect_lt(bias[[3]], bias[[1]] / 6 + 4 * sds["se", 3])
})

test_that("corrected Barker dynamics has the law of exact gradients", {
  skip_on_cran()
  exact <- chain_sd(barker_run(0.5, "vanilla", 0))
  tau <- 1
  corrected <- chain_sd(barker_run(0.5, "corrected", tau))
  vanilla <- chain_sd(barker_run(0.5, "vanilla", tau))
  error <- 4 * (exact[["se"]] + corrected[["se"]])
  expect_lt(abs(corrected[["sd"]] / exact[["sd"]] - 1), 0.015 + error)
  expect_gt(vanilla[["sd"]], exact[["sd"]] + 4 * vanilla[["se"]])
})

test_that("adaptive increments keep to the tolerance and freeze", {
  skip_on_cran()
  model <- target_normal(1, spread = 20, n_data = 200)
  rows <- 4
  fit <- sg_sample(
    model,
    kernel_sgbd(50, adaptive = TRUE),
    gradient_simple(),
    subsample_uniform(rows),
    iter = 4000,
    warmup = 2000,
    chains = 2,
    seed = 1,
    init = 0,
    refresh = 0
  )
  tau <- sqrt(target_noise(model) / rows)
  expect_equal(
    mean(fit$chains$step_size),
    1.702 / (1.233 * tau),
    tolerance = 0.3
  )
  moves <- abs(diff(plain_draws(fit)[, 1, 1]))
  ratio <- moves / fit$chains$step_size[[1]]
  expect_equal(noise_tolerance(fit)$step, mean(fit$step_sizes))
  expect_identical(fit$step_sizes[, 1], fit$chains$step_size)
  # increments N(sigma, (0.1 sigma)^2) of a sigma that no longer changes
  expect_equal(mean(ratio), 1, tolerance = 0.02)
  expect_equal(stats::sd(ratio), 0.1, tolerance = 0.1)
})

test_that("each coordinate gets increments of its own size", {
  model <- model_density(
    "normal",
    dim = 3,
    gradient_noise = "normal",
    noise_scale = c(0.5, 4, 40)
  )
  fit <- sg_sample(
    model,
    kernel_sgbd(2, adaptive = TRUE),
    iter = 400,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  steps <- pmin(2, 1.702 / (1.233 * c(0.5, 4, 40)))
  expect_equal(noise_tolerance(fit)$step, steps)
  expect_equal(unname(fit$step_sizes), rbind(steps, steps), ignore_attr = TRUE)
  moves <- apply(abs(diff(plain_draws(fit)[, 1, ])), 2, mean)
  expect_equal(unname(moves), steps, tolerance = 0.05)
})

# ---- the diagnostic ----------------------------------------------------------

# variance of the gradient, coordinate by coordinate
noise_of <- function(model, rows) {
  each <- row_gradients(model, model$posterior_mean)
  (model$n_data * colSums(each^2) - colSums(each)^2) / rows
}

test_that("noise_tolerance() reports the noise and what it exceeds", {
  model <- target_normal(c(1, 1), spread = 20, n_data = 200)
  rows <- 20
  run <- function(kernel) {
    sg_sample(
      model,
      kernel,
      gradient_simple(),
      subsample_uniform(rows),
      iter = 3000,
      chains = 2,
      seed = 1,
      init = c(0, 0),
      refresh = 0
    )
  }
  tau <- sqrt(noise_of(model, rows))
  table <- noise_tolerance(run(kernel_sgbd(0.5)))
  expect_equal(table$tau, tau, tolerance = 0.05)
  expect_equal(table$tolerance, rep(4 * stats::dnorm(0) / 0.5, 2))
  expect_equal(table$largest, 1.702 / (1.2326 * table$tau), tolerance = 1e-4)
  small <- noise_tolerance(run(kernel_sgbd(0.2 / max(tau))))
  large <- noise_tolerance(run(kernel_sgbd(4 / min(tau))))
  expect_lt(max(small$beyond), 1e-6)
  expect_gt(min(large$beyond), 0.9)
  expect_output(print(large), "beyond the kernel's tolerance")

  langevin <- noise_tolerance(run(kernel_sgld(0.25)))
  expect_equal(langevin$tolerance, rep(4, 2))
  expect_equal(langevin$largest, 2 / langevin$tau)
})

test_that("summaries say what noise and the extreme variant do", {
  fit <- quick_fit()
  expect_no_match(capture.output(print(fit)), "extreme")
  model <- example_model()
  extreme <- sg_sample(
    model,
    kernel_sgbd(0.01, "extreme"),
    iter = 40,
    seed = 1,
    refresh = 0
  )
  expect_output(print(extreme), "does not sample the posterior")
})

test_that("bad input is refused", {
  expect_refusals(
    "tall_error_input",
    kernel_sgbd(0),
    kernel_sgbd(NA_real_),
    kernel_sgbd(1, noise_smoothing = 0, variant = "corrected"),
    sg_sample(example_model(), kernel_sgbd(c(1, 2)), refresh = 0)
  )
  expect_error(
    kernel_sgld(1, "extreme", "leimkuhler-matthews"),
    class = "tall_error_unsupported"
  )
  fit <- sg_sample(
    example_model(),
    kernel_mala(0.01),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  expect_error(noise_tolerance(fit), class = "tall_error_unsupported")
})
