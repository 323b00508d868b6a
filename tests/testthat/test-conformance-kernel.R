kernels <- conformance_kernels()

test_that("every registered kernel has an entry", {
  # sweeps are of models without a gradient: test-crossed.R
  name <- unique(vapply(kernels, function(e) e$name, ""))
  expect_covered("kernel", c(name, "gibbs"))
})

for (label in names(kernels)) {
  entry <- kernels[[label]]
  says <- function(law) paste0(label, ": ", law)

  test_that(says("the seed is all that decides"), {
    law_seed(entry)
  })

  test_that(says("draws do not depend on the number of threads"), {
    law_cores(entry)
  })

  test_that(says("draws do not depend on the number of chains"), {
    law_chains(entry)
  })

  test_that(says("draws do not depend on the length of slices"), {
    law_slices(entry)
  })

  test_that(says("specs, starting points, models and fits stay as they are"), {
    law_input(entry)
  })

  test_that(says("a resumed run is the run that never stopped"), {
    law_resume(entry)
  })

  test_that(says("an interrupted run, resumed, is the whole one"), {
    law_interrupt(entry)
  })

  test_that(says("a step size far too large is caught and told"), {
    law_diverging(entry)
  })

  test_that(says("its tolerance of gradient noise is known, if it has one"), {
    law_tolerance(entry)
  })

  test_that(says("a start without a finite density is an error"), {
    law_bad_start(entry)
  })

  test_that(says("a chain that cannot start is named"), {
    law_bad_chain(entry)
  })

  if (!entry$adapts && !isTRUE(entry$draws_rows)) {
    test_that(says("a step too small to be seen does not move"), {
      law_still(entry)
    })
  }
}

test_that("recipes resume as if never stopped, also from a file", {
  withr::local_seed(8)
  n <- 6000
  x <- cbind("(Intercept)" = 1, a = rnorm(n))
  y <- rbinom(n, 1, plogis(0.3 * x[, 2]))
  langevin <- function() model_glm(x, y)
  metropolis <- function() model_glm(x[1:60, ], y[1:60])
  for (build in list(langevin, metropolis)) {
    run <- function(iter) {
      sg_sample(
        build(),
        iter = iter,
        warmup = 30,
        chains = 2,
        seed = 1,
        refresh = 0
      )
    }
    whole <- run(60)
    part <- run(45)
    expect_same_outcome(sg_resume(part, iter = 15, refresh = 0), whole)
    file <- withr::local_tempfile()
    saveRDS(part, file)
    resumed <- sg_resume(
      readRDS(file),
      iter = 15,
      model = build(),
      refresh = 0
    )
    expect_same_outcome(resumed, whole)
    expect_same_outcome(run(60), whole)
  }
})

test_that("any model resumes as if never stopped", {
  entry <- kernels[[1]]
  builders <- list(
    function() entry_sigma(prior_exponential(1))$model,
    function() entry_centred()$model,
    function() entry_gaussian()$model
  )
  for (build in builders) {
    whole <- short_run(entry, build(), iter = 83, step_size = 0.005)
    part <- short_run(entry, build(), iter = 47, step_size = 0.005)
    expect_same_outcome(sg_resume(part, iter = 36, refresh = 0), whole)
    part <- unserialize(serialize(part, NULL))
    resumed <- sg_resume(part, iter = 36, model = build(), refresh = 0)
    expect_same_outcome(resumed, whole)
  }
})

test_that("a model with other data or another prior cannot resume a fit", {
  fits <- list(
    glm = list(
      model_glm(matrix(1:4 / 4, 4), c(0, 1, 0, 1)),
      model_glm(matrix(2:5 / 4, 4), c(0, 1, 0, 1)),
      model_glm(matrix(1:4 / 4, 4), c(1, 1, 0, 1)),
      model_glm(matrix(1:4 / 4, 4), c(0, 1, 0, 1), prior = prior_normal(0, 1))
    ),
    gaussian = list(
      model_gaussian(matrix(1:4 / 4, 4), diag(1)),
      model_gaussian(matrix(2:5 / 4, 4), diag(1)),
      model_gaussian(matrix(1:4 / 4, 4), diag(2, 1)),
      model_gaussian(matrix(1:4 / 4, 4), diag(1), prior_mean = 1),
      model_gaussian(matrix(1:4 / 4, 4), diag(1), prior_covariance = diag(1))
    )
  )
  for (models in fits) {
    fit <- sg_sample(
      models[[1]],
      kernel_mala(0.1),
      iter = 10,
      seed = 1,
      refresh = 0
    )
    for (other in models[-1]) {
      expect_error(
        sg_resume(fit, iter = 5, model = other, refresh = 0),
        class = "tall_error_input"
      )
    }
  }
})

# ---- the update, draw by draw ------------------------------------------------

# Noise and minibatches of a chain are its streams: a run is computed again in
# R. `batch` has the minibatches, `xi` the normals, a column each.
langevin_again <- function(model, start, h, factor, batch, xi, kernel) {
  n <- length(factor)
  is_lm <- kernel$args$integrator != "euler"
  beta <- kernel$args$noise_smoothing %||% 1
  theta <- start
  average <- 0
  out <- matrix(NA, n, length(start))
  for (t in seq_len(n)) {
    rows <- row_gradients(model, theta)[batch$index[, t], , drop = FALSE]
    u <- batch$multiplier[, t] * rows
    g <- drop(model_evaluate(model, theta, "prior")$gradient) + colSums(u)
    s2 <- nrow(u) * apply(u, 2, stats::var)
    average <- (1 - beta) * average + beta * s2
    tau2 <- average / (1 - (1 - beta)^t)
    step <- h * factor[[t]]
    scale <- switch(
      kernel$args$variant,
      vanilla = 1,
      corrected = sqrt(pmax(0, 1 - step * tau2 / 4)),
      extreme = 0,
      modified = pmax(0, 1 - step * tau2 / 8)
    )
    noise <- if (is_lm) (xi[, t] + xi[, t + 1]) / 2 else xi[, t + 1]
    theta <- theta + step / 2 * g + sqrt(step) * scale * noise
    out[t, ] <- theta
  }
  out
}

test_that("langevin steps are the formulas, under every schedule", {
  entry <- entry_glm("bernoulli", prior = prior_normal(0, 1), n_data = 20)
  d <- entry$model$n_dim
  scheme <- subsample_uniform(5)
  h <- c(0.3, 0.1, 0.2)
  start <- c(0.5, -0.5, 1)
  n <- 30
  seed <- core_seed(list(seed = 1))
  xi <- matrix(.Call(ffi_rng_norm, seed, 0L, 1L, (n + 1) * d), d)
  batch <- draw_batches(entry$model, scheme, n, seed)
  factors <- list(rep(1, n), 2 * (3 + seq_len(n) - 1)^-0.7)
  specs <- list(schedule_constant(), schedule_decay(2, 3, 0.7))
  for (variant in sgld_variants) {
    for (integrator in sgld_integrators) {
      if (integrator != "euler" && variant %in% c("extreme", "modified")) {
        next # refused by the constructor
      }
      for (k in 1:2) {
        kernel <- kernel_sgld(h, variant, integrator)
        fit <- sg_sample(
          entry$model,
          kernel,
          gradient_simple(),
          scheme,
          specs[[k]],
          iter = n,
          warmup = 0,
          chains = 1,
          seed = 1,
          init = start,
          refresh = 0
        )
        again <- langevin_again(
          entry$model,
          start,
          h,
          factors[[k]],
          batch,
          xi,
          kernel
        )
        expect_close(plain_draws(fit), again, paste(variant, integrator))
      }
    }
  }
})

# ---- stationary variance -----------------------------------------------------

lambda <- c(0.5, 1, 2)

long_run <- function(
  model,
  kernel,
  gradient,
  subsample = NULL,
  iter = 8000,
  warmup = 200,
  chains = 40,
  ...
) {
  sg_sample(
    model,
    kernel,
    gradient,
    subsample,
    iter = iter,
    warmup = warmup,
    chains = chains,
    cores = 2,
    seed = 9,
    init = numeric(model$n_dim),
    refresh = 0,
    ...
  )
}

test_that("exact gradients: Euler has 1/(l (1 - h l/4)), LM has 1/l", {
  skip_on_cran()
  model <- target_normal(lambda)
  h <- 1.2
  for (variant in setdiff(sgld_variants, "extreme")) {
    euler <- kernel_sgld(h, variant)
    fit <- long_run(model, euler, gradient_full())
    expect_posterior(
      fit,
      numeric(3),
      diag(1 / (lambda * (1 - h * lambda / 4))),
      paste(variant, "euler")
    )
    if (variant == "modified") {
      next # there is no such Leimkuhler-Matthews form
    }
    lm <- kernel_sgld(h, variant, "leimkuhler-matthews")
    fit <- long_run(model, lm, gradient_full())
    expect_posterior(fit, numeric(3), diag(1 / lambda), paste(variant, "LM"))
  }
})

test_that("the extreme variant is gradient ascent: it ends at the mode", {
  fit <- long_run(
    target_normal(lambda),
    kernel_sgld(1.2, "extreme"),
    gradient_full()
  )
  expect_lt(max(abs(plain_draws(fit))), 1e-10)
})

test_that("exact gradients: a step size for each coordinate is its own", {
  skip_on_cran()
  model <- target_normal(lambda)
  h <- c(0.2, 1.5, 0.9)
  fit <- long_run(model, kernel_sgld(h), gradient_full())
  truth <- diag(1 / (lambda * (1 - h * lambda / 4)))
  expect_posterior(fit, numeric(3), truth, "euler")
})

# With minibatch noise tau^2 (the same everywhere; see target_normal()) the
# variance grows by (h^2/4) tau^2 / (1 - a^2), a = 1 - h l/2, that is by
# h tau^2 / (l (4 - h l)); unit precision: 1 + h tau^2/(4 - h) for LM.
noisy_variance <- function(h, lambda, tau2, integrator) {
  exact <- if (integrator == "euler") {
    1 / (lambda * (1 - h * lambda / 4))
  } else {
    1 / lambda
  }
  exact + h * tau2 / (lambda * (4 - h * lambda))
}

test_that("gradient noise adds h tau^2/(l (4 - h l)) to vanilla kernels", {
  skip_on_cran()
  h <- 1
  n <- 10
  model <- target_normal(lambda, spread = 8, n_data = 50)
  schemes <- list(
    with = subsample_uniform(n),
    without = subsample_uniform(n, replace = FALSE)
  )
  for (drawn in names(schemes)) {
    # without replacement: (N^2/n) (1 - n/N) times the variance with N - 1
    shrink <- if (drawn == "with") 1 else (1 - n / 50) * 50 / 49
    tau2 <- lambda^2 * 8 / n * shrink
    for (integrator in sgld_integrators) {
      fit <- long_run(
        model,
        kernel_sgld(h, integrator = integrator),
        gradient_simple(),
        schemes[[drawn]]
      )
      truth <- noisy_variance(h, lambda, tau2, integrator)
      products <- chain_means(fit, function(x) x^2)
      for (j in 1:3) {
        expect_mean(products[, j], truth[[j]], paste(drawn, integrator, j))
      }
    }
  }
})

test_that("corrected kernels take the gradient noise out again", {
  skip_on_cran()
  h <- 1
  n <- 20
  model <- target_normal(c(1, 1), spread = 30, n_data = 200)
  tau2 <- 1.5
  expect_variance <- function(model, integrator, truth) {
    fit <- long_run(
      model,
      kernel_sgld(h, "corrected", integrator, noise_smoothing = 0.01),
      gradient_simple(),
      subsample_uniform(n),
      # the average of the noise forgets its first values
      warmup = 1000
    )
    squares <- chain_means(fit, function(x) x^2)
    for (j in 1:2) {
      expect_mean(squares[, j], truth, paste("corrected", integrator))
    }
  }
  expect_variance(model, "euler", 1 / (1 - h / 4))
  # in coordinates not known to have precision 1, LM takes out h tau^2 / 4 of
  # the h tau^2 / (4 - h) that the noise adds
  lm <- "leimkuhler-matthews"
  expect_variance(model, lm, 1 - h * tau2 / 4 + h * tau2 / (4 - h))
  # in whitened coordinates it takes out all
  model$whitening <- list(center = c(0, 0), chol = diag(2), is_diagonal = FALSE)
  expect_variance(model, lm, 1)
})

test_that("the step size recorded as beyond tolerance is that of the noise", {
  model <- target_normal(c(1, 1), spread = 20, n_data = 200)
  beyond <- function(h) {
    fit <- sg_sample(
      model,
      kernel_sgld(h, "corrected"),
      gradient_simple(),
      subsample_uniform(20),
      iter = 400,
      chains = 1,
      seed = 1,
      init = c(0, 0),
      refresh = 0
    )
    mean(fit$noise$beyond / fit$noise$looks)
  }
  # tau^2 = 1: the tolerance h tau^2 / 4 = 1 is at h = 4, where Euler diverges
  # only slowly
  expect_identical(beyond(1), 0)
  expect_gt(beyond(3.9), 0.1)
  expect_lt(beyond(3.9), 0.9)
})

# ---- Metropolis kernels ------------------------------------------------------

exact_kernels <- Filter(function(e) e$is_exact, kernels)
# those that take a normal mean, whose rows have no linear predictor
mean_kernels <- Filter(function(e) !isTRUE(e$draws_rows), exact_kernels)

test_that("exact kernels leave a correlated normal invariant", {
  skip_on_cran()
  target <- target_correlated()
  for (label in names(mean_kernels)) {
    for (h in c(0.3, 2)) {
      fit <- long_run(
        target$model,
        mean_kernels[[label]]$make(h * 0.3),
        mean_kernels[[label]]$gradient,
        mean_kernels[[label]]$subsample,
        iter = 4000,
        warmup = 500
      )
      truth <- solve(target$precision)
      expect_posterior(fit, target$mean, truth, paste(label, h))
    }
  }
})

test_that("exact kernels leave a logistic posterior invariant", {
  skip_on_cran()
  entry <- entry_glm(
    "bernoulli",
    prior = prior_laplace(0, 1),
    n_data = 12,
    n_dim = 2
  )
  # the posterior on a grid: an integral, not a simulation
  axis <- seq(-9, 9, length.out = 721)
  grid <- as.matrix(expand.grid(axis, axis))
  density <- .Call(
    ffi_model_log_lik_many,
    entry$model$pointer,
    as.double(t(grid))
  )
  density <- density + apply(abs(grid), 1, function(t) -sum(t))
  w <- exp(density - max(density))
  w <- w / sum(w)
  mean <- colSums(grid * w)
  centred <- sweep(grid, 2, mean)
  truth <- crossprod(centred * w, centred)
  for (label in names(exact_kernels)) {
    fit <- long_run(
      entry$model,
      exact_kernels[[label]]$make(1.5),
      exact_kernels[[label]]$gradient,
      exact_kernels[[label]]$subsample,
      iter = 4000,
      warmup = 500
    )
    expect_posterior(fit, mean, truth, label)
  }
})

test_that("exact kernels are reversible: as many moves there as back", {
  skip_on_cran()
  target <- target_normal(1)
  breaks <- c(-Inf, -1, -0.2, 0.4, 1.2, Inf)
  for (label in names(mean_kernels)) {
    fit <- long_run(
      target,
      mean_kernels[[label]]$make(2),
      mean_kernels[[label]]$gradient,
      mean_kernels[[label]]$subsample,
      iter = 4000
    )
    draws <- plain_draws(fit)[, , 1]
    n <- nrow(draws)
    from <- cut(draws[-n, ], breaks)
    to <- cut(draws[-1, ], breaks)
    moves <- unclass(table(from, to))
    net <- moves - t(moves)
    at <- upper.tri(net)
    # pmax: where no chain went one way none should have come back
    z <- net[at] / sqrt(pmax((moves + t(moves))[at], 1))
    # ten nearly normal numbers; moves cancel in part, so their sd is below 1
    expect_lt(max(abs(z)), -qnorm(p_least / 2))
  }
})

test_that("mala accepts with the Metropolis-Hastings probability", {
  skip_on_cran()
  h <- 2.5
  target <- target_normal(1)
  fit <- long_run(target, kernel_mala(h), gradient_full(), iter = 4000)
  # the same for x ~ N(0, 1), y ~ q(x, .), on a grid in R's own densities
  axis <- seq(-8, 8, length.out = 801)
  q <- function(from, to) dnorm(to, from * (1 - h / 2), sqrt(h))
  flow <- function(x, y) dnorm(x) * q(x, y)
  rate <- sum(outer(axis, axis, function(x, y) {
    pmin(flow(x, y), flow(y, x))
  })) * diff(axis[1:2])^2
  draws <- plain_draws(fit)[, , 1]
  moved <- colMeans(draws[-1, ] != draws[-nrow(draws), ])
  expect_mean(moved, rate, "acceptance")
  expect_mean(fit$chains$acceptance, rate, "reported acceptance")
})

test_that("mala adapts its step towards an acceptance of 0.574", {
  skip_on_cran()
  target <- target_correlated()
  rates <- vapply(c(1e-4, 1, 100), function(h) {
    fit <- long_run(
      target$model,
      kernel_mala(h, adapt = TRUE),
      gradient_full(),
      iter = 3000,
      warmup = 2000,
      chains = 8
    )
    expect_identical(length(unique(fit$chains$step_size)), 8L)
    # the average over the warmup is what is kept, not its noisy last value
    expect_lt(stats::sd(log(fit$chains$step_size)), 0.1)
    mean(fit$chains$acceptance)
  }, 0)
  # dual averaging over 2,000 steps is within a few percent
  expect_true(all(abs(rates - 0.574) < 0.08))
})
