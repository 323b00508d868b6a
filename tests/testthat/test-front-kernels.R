# Metropolis kernels that a front end is given move in whitened coordinates.

# Departures by carrier and origin: carriers' numbers differ a hundredfold, so
# that standard errors do.
departures <- function(n = 2000) {
  withr::with_seed(1, {
    share <- 1.5^-(1:12)
    carrier <- sample(LETTERS[1:12], n, TRUE, share)
    origin <- sample(c("x", "y", "z"), n, TRUE)
    eta <- -1 + 0.05 * match(carrier, LETTERS) - 0.2 * (origin == "y")
    data.frame(late = stats::rbinom(n, 1, stats::plogis(eta)), carrier, origin)
  })
}

# Means and sds of the posterior by importance sampling, on the model that
# sg_sample() would have.
importance_moments <- function(model, n = 20000) {
  mode <- find_mode(model)
  withr::with_seed(2, {
    d <- model$n_dim
    scale <- sqrt(stats::rchisq(n, 10) / 10)
    z <- matrix(stats::rnorm(d * n), d) / rep(scale, each = d)
  })
  theta <- as.double(mode$estimate) + backsolve(t(mode$chol), z)
  log_q <- -(10 + d) / 2 * log1p(colSums(z^2) / 10)
  log_w <- density_at(model, theta) - log_q
  w <- exp(log_w - max(log_w))
  w <- w / sum(w)
  mean <- drop(theta %*% w)
  list(
    mean = mean,
    sd = sqrt(drop((theta - mean)^2 %*% w)),
    size = 1 / sum(w^2)
  )
}

worst_rhat <- function(fit) {
  max(apply(as.array(fit$draws), 3, posterior::rhat))
}

expect_moments <- function(fit, truth, variables = fit$variables) {
  draws <- as.array(fit$draws)[, , variables, drop = FALSE]
  mean <- apply(draws, 3, mean)
  ess <- pmin(apply(draws, 3, posterior::ess_mean), truth$size)
  away <- abs(mean - truth$mean) / truth$sd * sqrt(ess / 2)
  expect_lt(max(away), 4.5)
  size <- pmin(apply(draws^2, 3, posterior::ess_mean), truth$size)
  spread <- abs(apply(draws, 3, stats::sd) / truth$sd - 1) * sqrt(size)
  expect_lt(max(spread), 4.5)
}

test_that("they mix and are right where standard errors differ", {
  data <- departures()
  run <- function(kernel, ...) {
    tall_glm(
      late ~ carrier + origin,
      data,
      family = binomial(),
      kernel = kernel,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  # the front end's priors
  model <- rebuild_model(run(kernel_sgld(1e-9), iter = 2))
  expect_false(model_is_whitened(model))
  truth <- importance_moments(model)
  expect_gt(truth$size, 3000)

  fit <- run(kernel_mala(), iter = 1000)
  # was 2.6 in as many iterations
  expect_lt(worst_rhat(fit), 1.01)
  expect_moments(fit, truth)
  expect_true(fit$is_whitened)
  expect_identical(fit$steps, 13)
  expect_identical(
    fit$plan,
    "the kernel as given, in coordinates whitened at the mode, 13 steps an
     iteration" |> gsub(pattern = "\\s+", replacement = " ")
  )
  text <- utils::capture.output(print(fit))
  expect_match(text, "MALA \\(exact\\).*, whitened$", all = FALSE)
  expect_match(text, "Plan: .*whitened at the mode", all = FALSE)
  expect_no_match(text, "Warning")

  fit <- run(kernel_barker(), iter = 1000)
  expect_lt(worst_rhat(fit), 1.02)
  expect_moments(fit, truth)
  fit <- run(kernel_hmc(), iter = 600)
  # 1.005 to 1.03, as processors round
  expect_lt(worst_rhat(fit), 1.05)
  expect_moments(fit, truth)
  expect_identical(fit$steps, 1)
  fit <- run(
    kernel_mala(),
    iter = 400,
    gradient = gradient_cv(),
    subsample = subsample_weighted(400)
  )
  expect_lt(worst_rhat(fit), 1.05)
  expect_moments(fit, truth)
  # approximate by design
  fit <- run(kernel_adam_mcmc(), iter = 400)
  expect_lt(worst_rhat(fit), 1.05)
  expect_true(fit$is_whitened)
})

test_that("however the rows are given", {
  data <- departures(800)
  run <- function(...) {
    fit <- tall_glm(
      late ~ carrier + origin,
      ...,
      family = binomial(),
      kernel = kernel_mala(1, adapt = TRUE),
      iter = 60,
      seed = 1,
      refresh = 0
    )
    expect_true(fit$is_whitened)
    expect_identical(fit$steps, 1)
    fit
  }
  fit <- run(data)
  close <- function(other) {
    expect_identical(other$plan, fit$plan)
    expect_close(draws_matrix(other), draws_matrix(fit), tolerance = 1e-6)
  }
  close(run(as_source(data)))
  close(run(data, sparse = TRUE))
  close(run(as_source(data), store = withr::local_tempfile(fileext = ".tall")))
  x <- stats::model.matrix(~ carrier + origin, data)
  path <- withr::local_tempfile(fileext = ".tall")
  for (rows in list(x, tall_store(x, path))) {
    own <- tall_glm.fit(
      rows,
      data$late,
      family = binomial(),
      kernel = kernel_mala(1, adapt = TRUE),
      iter = 60,
      seed = 1,
      refresh = 0
    )
    expect_close(
      unname(draws_matrix(own)),
      unname(draws_matrix(fit)),
      tolerance = 1e-6
    )
  }
  half <- run(data, storage = "float")
  expect_close(coef(half), coef(fit), tolerance = 0.5)
  # a power of the likelihood
  expect_identical(run(data, lambda = 200)$lambda, 200)
})

test_that("a step is one of posterior standard deviations", {
  data <- departures(500)
  run <- function(formula, kernel) {
    tall_glm(
      formula,
      data,
      family = binomial(),
      kernel = kernel,
      iter = 100,
      seed = 1,
      refresh = 0
    )
  }
  data$a <- match(data$carrier, LETTERS)
  data$b <- 1000 * data$a + 5
  for (kernel in list(kernel_mala(0.8), kernel_barker(0.8))) {
    one <- run(late ~ a, kernel)
    other <- run(late ~ b, kernel)
    expect_identical(one$chains$step_size, other$chains$step_size)
    expect_gt(min(one$chains$acceptance), 0.5)
    expect_close(
      draws_matrix(other)[, "b"] * 1000,
      draws_matrix(one)[, "a"],
      tolerance = 1e-6
    )
  }
})

test_that("one sigma for each parameter is one of parameters", {
  data <- departures(500)
  data$a <- match(data$carrier, LETTERS)
  kernel <- kernel_barker(c(a = 0.03, "(Intercept)" = 0.2))
  fit <- tall_glm(
    late ~ a,
    data,
    family = binomial(),
    kernel = kernel,
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_false(fit$is_whitened)
  expect_null(fit$plan)
  own <- sg_sample(
    rebuild_model(fit),
    kernel,
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_identical(draws_matrix(fit), draws_matrix(own))
})

test_that("init, gradients and more iterations are of the parameters", {
  data <- departures(400)
  data$a <- match(data$carrier, LETTERS)
  run <- function(...) {
    tall_glm(
      late ~ a + origin,
      data,
      family = binomial(),
      seed = 1,
      refresh = 0,
      ...
    )
  }
  init <- c("(Intercept)" = 1, a = 0.1, originy = -2, originz = 3)
  at <- run(kernel = kernel_mala(1e-16), init = init, iter = 1, warmup = 0)
  expect_close(draws_matrix(at)[1, ], init, tolerance = 1e-6)

  kernel <- kernel_mala()
  keep <- c("draws", "gradients")
  whole <- run(kernel = kernel, iter = 60, warmup = 20, keep = keep)
  half <- run(kernel = kernel, iter = 40, warmup = 20, keep = keep)
  path <- withr::local_tempfile(fileext = ".rds")
  saveRDS(half, path)
  for (begun in list(half, readRDS(path))) {
    more <- sg_resume(begun, iter = 20, refresh = 0)
    expect_close(draws_matrix(more), draws_matrix(whole), tolerance = 1e-12)
  }
  theta <- draws_matrix(whole)
  model <- rebuild_model(whole)
  gradients <- matrix(whole$gradients, nrow(theta))
  exact <- t(model_evaluate(model, t(theta))$gradient)
  expect_close(gradients, exact, tolerance = 1e-7)
  expect_equal(
    as.numeric(ksd(whole, gradient = "kept")),
    as.numeric(ksd(whole, gradient = model)),
    tolerance = 1e-6
  )
})

test_that("with very many parameters scales are adjusted", {
  local_settings(most_whitened = 3)
  data <- departures(500)
  data$a <- 1000 * match(data$carrier, LETTERS)
  fit <- tall_glm(
    late ~ a + origin,
    data,
    family = binomial(),
    kernel = kernel_mala(),
    iter = 1000,
    seed = 1,
    refresh = 0
  )
  expect_true(fit$model$whitening$is_diagonal)
  expect_lt(worst_rhat(fit), 1.02)
  expect_moments(fit, importance_moments(rebuild_model(fit)))
})

test_that("a posterior without a mode is sampled in the parameters", {
  data <- data.frame(y = rep(0:1, each = 20), x = c(-(20:1), 1:20))
  run <- function(...) {
    tall_glm(
      y ~ x,
      data,
      family = binomial(),
      prior = prior_flat(),
      prior_intercept = prior_flat(),
      kernel = kernel_mala(1e-3),
      iter = 20,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  expect_error(run(), class = "tall_error_improper")
  fit <- run(init = c(0, 1))
  expect_false(fit$is_whitened)
  expect_match(fit$plan, "in the parameters, since there is no mode")
})

test_that("regressions of classes have them", {
  data <- withr::with_seed(3, {
    n <- 600
    d <- data.frame(x = 100 + stats::rnorm(n), z = stats::rnorm(n, 0, 50))
    cut <- cut(d$x - 100 + d$z / 50 + stats::rlogis(n), c(-Inf, -1, 1, Inf))
    d$k <- ordered(cut, labels = c("a", "b", "c"))
    d
  })
  for (front in list(tall_polr, tall_multinom)) {
    run <- function(...) {
      front(k ~ x + z, data, seed = 1, refresh = 0, ...)
    }
    fit <- run(kernel = kernel_mala(), iter = 600)
    expect_lt(worst_rhat(fit), 1.02)
    expect_true(fit$is_whitened)
    # few rows: the recipe takes the same
    expect_identical(draws_matrix(fit), draws_matrix(run(iter = 600)))
  }
})

test_that("multilevel regressions have them, with as many nodes", {
  data <- withr::with_seed(4, {
    d <- data.frame(g = rep(1:30, each = 8), x = stats::rnorm(240, 0, 1000))
    u <- stats::rnorm(30, 0, 4)
    d$y <- stats::rbinom(240, 1, stats::plogis(d$x / 1000 + u[d$g]))
    d
  })
  run <- function(...) {
    tall_glmer(
      y ~ x + (1 | g),
      data,
      family = binomial(),
      seed = 1,
      refresh = 0,
      ...
    )
  }
  fit <- run(iter = 600, kernel = kernel_mala())
  usual <- run(iter = 600)
  expect_true(fit$is_whitened)
  expect_lt(worst_rhat(fit), 1.02)
  expect_identical(fit$nodes, usual$nodes)
  # few groups: the recipe takes the same
  expect_identical(draws_matrix(fit), draws_matrix(usual))
  # nodes are the data's, whatever the kernel
  expect_gt(fit$nodes, usual_nodes)
  noisy <- run(iter = 10, kernel = kernel_sgld(1e-6))
  expect_identical(noisy$nodes, usual$nodes)
  expect_false(noisy$is_whitened)
  expect_null(noisy$plan)
  more <- sg_resume(fit, iter = 5, refresh = 0)
  expect_identical(draws_matrix(more)[seq_len(5), ], draws_matrix(fit)[1:5, ])
})
