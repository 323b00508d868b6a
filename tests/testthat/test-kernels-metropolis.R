test_that("Metropolis kernels print what they are", {
  expect_snapshot({
    kernel_mala(0.5, sigma_direction = 2)
    kernel_barker(c(0.1, 0.2), "bimodal")
    kernel_hmc(0.1, 5)
    kernel_adam_mcmc(0.01, 0.1, 1, exact = TRUE, momentum_sd = 0.3)
    kernel_adam_mcmc(0.01, 0.1, ratio = "minibatch")
    kernel_barker()
    kernel_adam_mcmc()
  })
})

test_that("their arguments are refused in words", {
  expect_snapshot(error = TRUE, kernel_mala(1, sigma_direction = -1))
  expect_snapshot(error = TRUE, kernel_mala(1, ratio = "full data"))
  expect_snapshot(error = TRUE, kernel_barker(0))
  expect_snapshot(error = TRUE, kernel_hmc(0.1, 0))
  expect_snapshot(error = TRUE, kernel_adam_mcmc(0.1, 0))
  expect_snapshot(error = TRUE, kernel_adam_mcmc(0.1, 1, beta = c(0.9, 1)))
  expect_snapshot(error = TRUE, kernel_adam_mcmc(0.1, 1, delta = 0))
  expect_snapshot(error = TRUE, kernel_adam_mcmc(0.1, 1, exact = TRUE))
  expect_snapshot(
    error = TRUE,
    kernel_adam_mcmc(0.1, 1, exact = TRUE, momentum_sd = 0)
  )
  expect_snapshot(
    error = TRUE,
    kernel_adam_mcmc(0.1, 1, exact = TRUE, momentum_sd = 1:3)
  )
  expect_snapshot(error = TRUE, kernel_adam_mcmc(0.1, 1, momentum_sd = 1))
  expect_snapshot(
    error = TRUE,
    kernel_adam_mcmc(
      0.1,
      1,
      exact = TRUE,
      momentum_sd = 1,
      ratio = "minibatch"
    )
  )
  expect_snapshot(
    error = TRUE,
    sg_sample(example_model(), kernel_barker(c(1, 2)), refresh = 0)
  )
})

test_that("estimators that will not do are refused in words", {
  model <- example_model()
  refuse <- function(...) {
    expect_snapshot(
      error = TRUE,
      cnd_class = TRUE,
      sg_sample(model, ..., refresh = 0)
    )
  }
  refuse(kernel_hmc(0.1, 5), gradient_cv())
  refuse(
    kernel_adam_mcmc(0.1, 1, exact = TRUE, momentum_sd = 1),
    gradient_simple()
  )
  refuse(kernel_barker(0.1), gradient_svrg())
  refuse(kernel_mala(0.1, ratio = "minibatch"), gradient_full())
  refuse(
    kernel_mala(0.1, ratio = "minibatch"),
    gradient_simple(),
    subsample_optimal(10)
  )
  refuse(kernel_hmc(0.1, 5), schedule = schedule_decay())
  # a model that cannot say its log density
  words <- data.frame(doc = c(1, 1, 2), word = c(1, 2, 2), count = 1)
  model <- model_lda(words, 2)
  refuse(kernel_barker(0.1))
})

test_that("fits tell acceptance, proposals without density, approximation", {
  local_wide()
  poisson <- withr::with_seed(
    1,
    entry_glm("poisson", prior = prior_flat(), n_data = 30)$model
  )
  run <- function(kernel, model = example_model(), ...) {
    init <- numeric(3)
    sg_sample(
      model,
      kernel,
      iter = 100,
      chains = 2,
      seed = 1,
      init = init,
      refresh = 0,
      ...
    )
  }
  wild <- run(kernel_mala(1e6), poisson)
  expect_true(all(wild$chains$nonfinite > 10))
  expect_true(all(wild$chains$acceptance == 0))
  fits <- list(
    wild,
    run(kernel_adam_mcmc(0.01, 0.1)),
    run(kernel_barker(0.1, ratio = "minibatch"), gradient = gradient_simple())
  )
  for (fit in fits) {
    expect_snapshot(print(fit), transform = scrub)
  }
  expect_snapshot(print(summary(fits[[3]])), transform = scrub)
  expect_null(fits[[3]]$log_posterior)
  expect_match(generics::glance(wild)$algorithm, "exact", fixed = TRUE)
  expect_no_match(generics::glance(fits[[2]])$algorithm, "exact", fixed = TRUE)
  # more rows than minibatches alone: the loss takes all
  exact <- run(
    kernel_barker(0.1),
    gradient = gradient_simple(),
    subsample = subsample_uniform(10)
  )
  n <- example_model()$n_data
  expect_equal(exact$chains$passes, rep((101 * (n + 10)) / n, 2))
})

# ---- acceptance by quadrature ------------------------------------------------

# On N(0, 1) as the mean of n_data observations: the rate of acceptance from the
# density q(x, y) of proposals, on a grid in R's own functions.
expect_rate <- function(kernel, q, label, n_data = 50) {
  fit <- sg_sample(
    target_normal(1, n_data = n_data),
    kernel,
    iter = 4000,
    warmup = 200,
    chains = 40,
    cores = 2,
    seed = 9,
    init = 0,
    refresh = 0
  )
  axis <- seq(-9, 9, length.out = 1801)
  flow <- function(x, y) stats::dnorm(x) * q(x, y)
  rate <- sum(outer(axis, axis, function(x, y) {
    pmin(flow(x, y), flow(y, x))
  })) * diff(axis[1:2])^2
  expect_mean(fit$chains$acceptance, rate, label)
}

test_that("proposals are accepted as often as their densities say", {
  skip_on_cran()
  directional <- function(x, y) {
    # u = x / 50, the gradient of the mean loss
    stats::dnorm(y, x * (1 - 1.5 / 2), sqrt(1.5 + 60^2 * (x / 50)^2))
  }
  expect_rate(kernel_mala(1.5, sigma_direction = 60), directional, "mala")
  barker <- function(size) {
    function(x, y) size(y - x) / (1 + exp((y - x) * x))
  }
  normal <- barker(function(z) 2 * stats::dnorm(z, 0, 1.7))
  expect_rate(kernel_barker(1.7), normal, "barker")
  bimodal <- barker(function(z) {
    stats::dnorm(z, 1.7, 0.17) + stats::dnorm(z, -1.7, 0.17)
  })
  expect_rate(kernel_barker(1.7, "bimodal"), bimodal, "bimodal barker")
})

test_that("trajectories are accepted as often as their energies say", {
  skip_on_cran()
  e <- 1.3
  fit <- sg_sample(
    target_normal(1),
    kernel_hmc(e, 3),
    iter = 4000,
    warmup = 100,
    chains = 40,
    cores = 2,
    seed = 9,
    init = 0,
    refresh = 0
  )
  # three leapfrog steps on N(0, 1) are a linear map of (x, p)
  half <- matrix(c(1, -e / 2, 0, 1), 2)
  drift <- matrix(c(1, 0, e, 1), 2)
  step <- half %*% drift %*% half
  map <- step %*% step %*% step
  axis <- seq(-7, 7, length.out = 1401)
  rate <- sum(outer(axis, axis, function(x, p) {
    x1 <- map[1, 1] * x + map[1, 2] * p
    p1 <- map[2, 1] * x + map[2, 2] * p
    stats::dnorm(x) *
      stats::dnorm(p) *
      pmin(1, exp((x^2 + p^2 - x1^2 - p1^2) / 2))
  })) * diff(axis[1:2])^2
  expect_mean(fit$chains$acceptance, rate, "hmc")
})

# ---- AdamMCMC ----------------------------------------------------------------

# Standard deviations 0.4188 and 0.5604, correlation 0.5.
target_adam <- function(n_data = 20) {
  sd <- c(0.4188, 0.5604)
  covariance <- outer(sd, sd) * matrix(c(1, 0.5, 0.5, 1), 2)
  x <- withr::with_seed(1, matrix(stats::rnorm(2 * n_data), n_data))
  x <- sweep(x, 2, colMeans(x))
  list(
    model = model_gaussian(
      x,
      n_data * covariance,
      prior_covariance = diag(1e9, 2)
    ),
    covariance = covariance,
    lambda = n_data
  )
}

# Algorithm 1 and Theorem 1 of the paper again, from the formulas: covariance
# matrices and their inverses in full, for many chains at once. Draws of the
# last n_keep iterations, chains x 2 x n_keep, and the acceptance rate.
adam_again <- function(
  target,
  gamma,
  s,
  s_d,
  beta,
  momentum_sd = NULL,
  n_chain,
  n_step,
  n_keep
) {
  is_exact <- !is.null(momentum_sd)
  precision <- solve(target$covariance)
  d_of <- function(theta) theta %*% precision / target$lambda
  log_p <- function(theta) -rowSums((theta %*% precision) * theta) / 2
  draw <- function(sd) matrix(stats::rnorm(2 * n_chain, sd = sd), n_chain)
  direction <- function(d, m, k) {
    unbias <- if (is_exact) list(1, 1) else list(1 - beta[1]^k, 1 - beta[2]^k)
    first <- (beta[1] * m[[1]] + (1 - beta[1]) * d) / unbias[[1]]
    second <- (beta[2] * m[[2]] + (1 - beta[2]) * d^2) / unbias[[2]]
    gamma * first / (sqrt(abs(second)) + 1e-8)
  }
  log_q <- function(z, u) {
    # 2 x 2 covariance s^2 I + s_d^2 u u', inverted by its adjugate
    a <- s^2 + s_d^2 * u[, 1]^2
    b <- s_d^2 * u[, 1] * u[, 2]
    c <- s^2 + s_d^2 * u[, 2]^2
    det <- a * c - b^2
    square <- c * z[, 1]^2 - 2 * b * z[, 1] * z[, 2] + a * z[, 2]^2
    -log(det) / 2 - square / det / 2
  }
  theta <- draw(1) %*% chol(target$covariance)
  d <- d_of(theta)
  m <- if (is_exact) {
    list(d + draw(momentum_sd[[1]]), d^2 + draw(momentum_sd[[2]]))
  } else {
    list(0 * d, 0 * d)
  }
  k <- rep(1, n_chain)
  kept <- array(NA, c(n_chain, 2, n_keep))
  accepted <- 0
  for (t in seq_len(n_step)) {
    u <- direction(d, m, k)
    tau <- theta - u + draw(s) + s_d * u * stats::rnorm(n_chain)
    d_tau <- d_of(tau)
    back <- direction(d_tau, m, k)
    log_ratio <- log_p(tau) - log_p(theta) +
      log_q(theta - tau + back, back) - log_q(tau - theta + u, u)
    if (is_exact) {
      for (l in 1:2) {
        distance <- rowSums((m[[l]] - d^l)^2 - (m[[l]] - d_tau^l)^2)
        log_ratio <- log_ratio + distance / (2 * momentum_sd[[l]]^2)
      }
    }
    moves <- log(stats::runif(n_chain)) < log_ratio
    theta[moves, ] <- tau[moves, ]
    d[moves, ] <- d_tau[moves, ]
    for (l in 1:2) {
      after <- beta[[l]] * m[[l]] + (1 - beta[[l]]) * d^l
      if (is_exact) {
        m[[l]] <- after + draw(sqrt(1 - beta[[l]]^2) * momentum_sd[[l]])
      } else {
        m[[l]][moves, ] <- after[moves, ]
      }
    }
    k <- k + moves
    if (t > n_step - n_keep) {
      kept[, , t - n_step + n_keep] <- theta
      accepted <- accepted + mean(moves) / n_keep
    }
  }
  list(draws = kept, acceptance = accepted)
}

adam_case <- function(exact, s = 0.3) {
  list(
    kernel = kernel_adam_mcmc(
      0.05,
      s,
      1,
      beta = c(0.9, 0.99),
      exact = exact,
      momentum_sd = if (exact) c(0.3, 0.3)
    ),
    again = function(target, ...) {
      adam_again(
        target,
        0.05,
        s,
        1,
        c(0.9, 0.99),
        if (exact) c(0.3, 0.3),
        ...
      )
    }
  )
}

adam_fit <- function(target, case, iter = 20000, chains = 40) {
  sg_sample(
    target$model,
    case$kernel,
    iter = iter,
    warmup = 500,
    chains = chains,
    cores = 2,
    seed = 3,
    init = c(0, 0),
    refresh = 0
  )
}

test_that("AdamMCMC is the paper's algorithm, exact or not", {
  skip_on_cran()
  target <- target_adam()
  for (exact in c(FALSE, TRUE)) {
    case <- adam_case(exact)
    fit <- adam_fit(target, case, iter = 5500)
    again <- withr::with_seed(
      2,
      case$again(target, n_chain = 2000, n_step = 700, n_keep = 400)
    )
    label <- paste("exact =", exact)
    # both are simulations: two-sample comparisons of averages over chains
    for (j in 1:2) {
      ours <- chain_means(fit, function(draws) draws[, j]^2)
      theirs <- rowMeans(again$draws[, j, ]^2)
      z <- (mean(ours) - mean(theirs)) /
        sqrt(stats::var(ours) / length(ours) + stats::var(theirs) / 2000)
      expect_lt(abs(z), 5.5, label = paste(label, "variance", j))
    }
    expect_equal(
      mean(fit$chains$acceptance),
      again$acceptance,
      tolerance = 0.01,
      label = label
    )
  }
})

test_that("C = 1 biases AdamMCMC as documented, the exact form not", {
  skip_on_cran()
  target <- target_adam()
  truth <- diag(target$covariance)
  sds <- function(exact) {
    fit <- adam_fit(target, adam_case(exact), iter = 10500)
    if (exact) {
      expect_posterior(fit, c(0, 0), target$covariance, "exact")
    }
    sqrt(colMeans(chain_means(fit, function(draws) draws^2)))
  }
  exact <- sds(TRUE)
  practical <- sds(FALSE)
  # the figures of ?kernel_adam_mcmc; the Monte Carlo error is below 0.002
  expect_equal(exact, sqrt(truth), tolerance = 0.01)
  expect_equal(practical, c(0.404, 0.540), tolerance = 0.01)
})

test_that("AdamMCMC tunes its scale in warmup when asked", {
  target <- target_adam()
  run <- function(adapt) {
    sg_sample(
      target$model,
      kernel_adam_mcmc(0.5, 2, 1, adapt = adapt),
      iter = 3000,
      warmup = 2000,
      chains = 4,
      seed = 1,
      init = c(0, 0),
      refresh = 0
    )$chains
  }
  still <- run(FALSE)
  expect_identical(still$step_size, rep(2, 4))
  tuned <- run(TRUE)
  expect_true(all(tuned$step_size < 1.5))
  expect_lt(abs(mean(tuned$acceptance) - 0.574), 0.08)
  expect_gt(mean(tuned$acceptance), mean(still$acceptance) + 0.1)
})

test_that("directional noise far larger than the rest stays exact", {
  skip_on_cran()
  target <- target_correlated()
  # sigma_direction |u| is some 1e4 times sqrt(h) in the tails
  fit <- sg_sample(
    target$model,
    kernel_mala(0.3, sigma_direction = 150),
    iter = 20000,
    warmup = 500,
    chains = 40,
    cores = 2,
    seed = 9,
    init = target$mean,
    refresh = 0
  )
  expect_lt(mean(fit$chains$acceptance), 0.5)
  expect_posterior(fit, target$mean, solve(target$precision), "prolate")
})

# ---- curved and bimodal densities --------------------------------------------

test_that("exact kernels leave a banana and a mixture invariant", {
  skip_on_cran()
  targets <- list(
    banana = model_density("banana", curvature = 0.5, sd = c(1, 0.7)),
    mixture = model_density(
      "mixture",
      means = c(-0.7, 0.7),
      sds = 0.6,
      weights = c(3, 7),
      dim = 2
    )
  )
  # without rows lambda is 1: u is the gradient itself
  exact <- list(
    mala = kernel_mala(0.5),
    directional = kernel_mala(0.4, sigma_direction = 0.5),
    barker = kernel_barker(0.9),
    hmc = kernel_hmc(0.4, 3),
    adam = kernel_adam_mcmc(
      0.3,
      0.6,
      0.7,
      beta = c(0.5, 0.8),
      exact = TRUE,
      momentum_sd = c(1.5, 3)
    )
  )
  starts <- list(stationary = NULL, elsewhere = c(-1.5, 2))
  for (name in names(targets)) {
    for (label in names(exact)) {
      for (start in names(starts)) {
        fit <- sg_sample(
          targets[[name]],
          exact[[label]],
          iter = 5000,
          warmup = if (start == "stationary") 0 else 500,
          chains = 40,
          cores = 2,
          seed = 9,
          init = starts[[start]],
          refresh = 0
        )
        expect_posterior(
          fit,
          targets[[name]]$moments$mean,
          vcov(targets[[name]]),
          paste(name, label, start)
        )
      }
    }
  }
})

test_that("a density without observations has no lambda", {
  expect_snapshot(
    error = TRUE,
    cnd_class = TRUE,
    sg_sample(model_density("normal"), kernel_mala(1), lambda = 2)
  )
})

# ---- steps that are not given ------------------------------------------------

step_problem <- function(n = 300) {
  withr::local_seed(21)
  x <- cbind("(Intercept)" = 1, a = rnorm(n), b = 3 * rnorm(n))
  y <- rbinom(n, 1, plogis(0.3 + x[, 2] - 0.2 * x[, 3]))
  model_glm(x, y, "bernoulli", prior_normal(0, 2))
}

test_that("kernels without a step find one and sample the posterior", {
  model <- step_problem()
  exact <- sg_sample(model, iter = 2000, chains = 2, seed = 1, refresh = 0)
  exact <- posterior::summarise_draws(exact$draws)
  kernels <- list(
    kernel_mala(),
    kernel_mala(ratio = "full", sigma_direction = 0.1),
    kernel_barker(),
    kernel_barker(noise = "bimodal"),
    kernel_hmc(),
    kernel_adam_mcmc(exact = TRUE, momentum_sd = 0.1)
  )
  for (kernel in kernels) {
    fit <- sg_sample(
      model,
      kernel,
      iter = 2000,
      chains = 2,
      seed = 2,
      refresh = 0
    )
    target <- if (kernel$name == "hmc") 0.8 else 0.574
    acceptance <- mean(fit$chains$acceptance)
    expect_lt(abs(acceptance - target), 0.15, label = kernel$name)
    found <- posterior::summarise_draws(fit$draws)
    room <- 4 * sqrt(1 / found$ess_bulk + 1 / exact$ess_bulk)
    expect_true(
      all(abs(found$mean - exact$mean) / exact$sd < room),
      info = kernel$name
    )
  }
})

test_that("a step that is found starts from the curvature at the mode", {
  model <- step_problem()
  precision <- -unname(find_mode(model)$hessian)
  largest <- max(eigen(precision)$values)
  start <- function(kernel, ...) {
    fit <- sg_sample(
      model,
      kernel,
      iter = 20,
      chains = 1,
      seed = 1,
      refresh = 0,
      ...
    )
    fit$kernel$args
  }
  h <- 1.65^2 * 3^(-1 / 3) / largest
  expect_close(start(kernel_mala())$step_size, h, tolerance = 1e-3)
  expect_close(
    start(kernel_hmc(steps = 2))$step_size,
    3^(-1 / 4) / sqrt(largest),
    tolerance = 1e-3
  )
  adam <- start(kernel_adam_mcmc())
  expect_close(adam$sigma, sqrt(h), tolerance = 1e-3)
  expect_close(adam$learning_rate, sqrt(h) / 10, tolerance = 1e-3)
  scale <- 1 / sqrt(diag(precision))
  scaled <- max(eigen(scale * t(scale * precision))$values)
  expect_close(
    start(kernel_barker())$sigma,
    1.65 * 3^(-1 / 6) * scale / sqrt(scaled),
    tolerance = 1e-3
  )
  # a step that is given stays, and is not adapted
  expect_identical(start(kernel_mala(0.01))$step_size, 0.01)
  expect_false(kernel_mala(0.01)$args$adapt)
  expect_identical(start(kernel_adam_mcmc(sigma = 0.1))$learning_rate, 0.01)
})

test_that("steps are found without a Hessian and away from a mode", {
  withr::local_seed(22)
  x <- matrix(rnorm(80), 40)
  network <- model_network(x, x[, 1] + rnorm(40, sd = 0.3), layers = 2)
  init <- cos(seq_len(network$n_dim))
  run <- function(model) {
    sg_sample(
      model,
      kernel_mala(),
      iter = 400,
      chains = 2,
      seed = 1,
      init = init,
      refresh = 0
    )
  }
  fit <- run(network)
  expect_gt(min(fit$chains$acceptance), 0.3)
  expect_gt(fit$preparation[["recipe"]], 0)
  # whatever was asked of the model before
  model_mode(network, refresh = 0)
  expect_identical(run(network)$draws, fit$draws)
  # a posterior that has no mode: Neal's funnel
  funnel <- model_custom(
    function(theta, batch) dnorm(batch, 0, 100, log = TRUE),
    function(theta) {
      dnorm(theta$v, 0, 3, log = TRUE) +
        dnorm(theta$z, 0, exp(theta$v / 2), log = TRUE)
    },
    c(1, 2),
    list(v = 0, z = 0.1),
    autodiff = FALSE,
    grad_log_lik = function(theta, batch) matrix(0, 2, 2),
    grad_log_prior = function(theta) {
      pull <- theta$z * exp(-theta$v)
      c(-theta$v / 9 - 0.5 + theta$z * pull / 2, -pull)
    }
  )
  fit <- sg_sample(
    funnel,
    kernel_mala(),
    iter = 200,
    chains = 2,
    init = c(0, 0.1),
    seed = 1,
    refresh = 0
  )
  expect_gt(min(fit$chains$acceptance), 0.1)
})

test_that("what has no default step says what has", {
  expect_error(
    kernel_mala(adapt = FALSE),
    "`step_size` must be given with `adapt = FALSE`",
    class = "tall_error_input"
  )
  expect_error(
    kernel_barker(adapt = FALSE),
    "`sigma` must be given",
    class = "tall_error_input"
  )
  noisy <- list(
    kernel_sgld,
    kernel_sgbd,
    kernel_sghmc,
    kernel_sgnht,
    kernel_baoab,
    kernel_psgld
  )
  for (kernel in noisy) {
    for (make in list(function() kernel(), function() kernel(NULL))) {
      error <- expect_error(
        make(),
        "sg_sample\\(model\\)` without a `kernel`.*sg_tune\\(\\)",
        class = "tall_error_input"
      )
      expect_match(error$argument, "^(step_size|sigma)$")
    }
  }
})

test_that("a grid gives the step that a kernel lacks", {
  tuned <- sg_tune(
    step_problem(),
    kernel_mala(),
    list(step_size = c(1e-3, 1e-2)),
    budget = 2e5,
    seed = 1,
    refresh = 0
  )
  expect_false(tuned$kernel$args$adapt)
  expect_error(
    sg_tune(
      step_problem(),
      kernel_mala(),
      list(sigma_direction = c(0, 1)),
      budget = 2e5,
      seed = 1,
      refresh = 0
    ),
    "nothing to tune",
    class = "tall_error_unsupported"
  )
})

# A trajectory of a fixed length can come back to where it began: R-hat was 1.1
# to 1.4 here.
test_that("trajectories of steps that are not given do not come back", {
  x <- cbind(1, datasets::mtcars$wt - 3)
  model <- model_glm(x, datasets::mtcars$am, prior = prior_normal(0, 2.5))
  for (seed in 1:2) {
    fit <- sg_sample(model, kernel_hmc(), seed = seed, refresh = 0)
    table <- posterior::summarise_draws(fit$draws)
    expect_lt(max(table$rhat), 1.02)
    expect_gt(min(table$ess_bulk), 400)
  }
})

test_that("a jitter of the step leaves the law exact", {
  expect_null(kernel_hmc(0.1)$args$jitter)
  for (jitter in list(1, -0.1, "a")) {
    expect_error(kernel_hmc(0.1, jitter = jitter), class = "tall_error_input")
  }
  model <- model_density("normal", sd = 1.5)
  fit <- sg_sample(
    model,
    kernel_hmc(1.6, 3, jitter = 0.9),
    iter = 30000,
    warmup = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  draws <- posterior::extract_variable_matrix(fit$draws, fit$variables[[1]])
  blocks <- matrix(draws[seq_len(29500), ]^2, 500)
  expect_mean(colMeans(blocks), 1.5^2, "second moment")
  expect_lt(mean(fit$chains$acceptance), 0.99)
})
