# The laws of a kernel; test-conformance-kernel.R applies them to every entry of
# conformance_kernels(). An entry has
#
#   name       the registered member
#   make       step size -> the spec
#   gradient   the estimator it runs with here; `subsample` likewise
#   is_metropolis  are its moves proposals?
#   is_exact   does their acceptance leave the posterior exactly invariant?
#   needs_full does it take the exact gradient only?
#   needs_rows does it take minibatches only?
#   adapts     does it change its step size in warmup?
#   draws_rows does it take expansions alone, draw its rows itself, and have no
#              step size?

# an entry of a kernel whose moves are proposals
metropolis <- function(
  name,
  variant,
  make,
  rows = FALSE,
  needs_full = FALSE,
  needs_rows = FALSE,
  is_exact = !needs_rows,
  adapts = FALSE
) {
  list(
    name = name,
    variant = variant,
    make = make,
    gradient = if (rows || needs_rows) gradient_simple() else gradient_full(),
    subsample = if (rows || needs_rows) subsample_uniform(5),
    is_metropolis = TRUE,
    is_exact = is_exact,
    needs_full = needs_full,
    needs_rows = needs_rows,
    adapts = adapts
  )
}

conformance_kernels <- function() {
  langevin <- function(variant, integrator) {
    list(
      name = "sgld",
      variant = variant,
      integrator = integrator,
      make = function(step_size) kernel_sgld(step_size, variant, integrator),
      gradient = gradient_simple(),
      subsample = subsample_uniform(5),
      is_metropolis = FALSE,
      is_exact = FALSE,
      adapts = FALSE
    )
  }
  out <- list()
  barker <- function(variant, noise, adaptive = FALSE) {
    list(
      name = "sgbd",
      variant = variant,
      noise = noise,
      make = function(step_size) {
        kernel_sgbd(sqrt(step_size), variant, noise, adaptive = adaptive)
      },
      gradient = gradient_simple(),
      subsample = subsample_uniform(5),
      is_metropolis = FALSE,
      is_exact = FALSE,
      adapts = adaptive
    )
  }
  momentum <- function(name, make) {
    list(
      name = name,
      make = make,
      gradient = gradient_simple(),
      subsample = subsample_uniform(5),
      is_metropolis = FALSE,
      is_exact = FALSE,
      adapts = FALSE
    )
  }
  out[["sghmc"]] <- momentum("sghmc", function(step_size) {
    kernel_sghmc(step_size / 4)
  })
  out[["sghmc, noise estimated"]] <- momentum("sghmc", function(step_size) {
    kernel_sghmc(step_size / 4, 0.5, noise_estimate = "minibatch")
  })
  out[["sghmc, leapfrog"]] <- momentum("sghmc", function(step_size) {
    kernel_sghmc(step_size / 4, leapfrog = 3)
  })
  out[["sgnht"]] <- momentum("sgnht", function(step_size) {
    kernel_sgnht(step_size / 4, diffusion = 0.1)
  })
  out[["baoab"]] <- momentum("baoab", kernel_baoab)
  out[["psgld"]] <- momentum("psgld", function(step_size) {
    kernel_psgld(step_size / 10)
  })
  for (variant in sgld_variants) {
    for (integrator in sgld_integrators) {
      if (integrator != "euler" && variant %in% c("extreme", "modified")) {
        next # refused by the constructor
      }
      label <- paste("sgld,", variant, integrator)
      out[[label]] <- langevin(variant, integrator)
    }
  }
  for (variant in sgbd_variants) {
    for (noise in sgbd_noises) {
      out[[paste("sgbd,", variant, noise)]] <- barker(variant, noise)
    }
  }
  out[["sgbd, adapted"]] <- barker("vanilla", "bimodal", adaptive = TRUE)
  mala <- function(...) function(h) kernel_mala(h, ...)
  exact_barker <- function(...) function(h) kernel_barker(sqrt(h), ...)
  # a trajectory of one step is MALA; of several, no multiple of half a period
  hmc <- function(...) function(h) kernel_hmc(0.8 * sqrt(h), 3, ...)
  # the scales of the mean loss' gradient and its square on these targets
  adam <- function(...) {
    function(h) {
      kernel_adam_mcmc(h, 1.2 * sqrt(h), 0.7, beta = c(0.7, 0.9), ...)
    }
  }
  momentum_sd <- c(0.1, 0.02)
  c(
    out,
    list(
      "mala" = metropolis("mala", "plain", mala()),
      "mala, directional" = metropolis(
        "mala",
        "directional",
        mala(sigma_direction = 20)
      ),
      "mala, adapted" = metropolis(
        "mala",
        "plain",
        mala(adapt = TRUE),
        adapts = TRUE
      ),
      "mala, minibatches" = metropolis("mala", "plain", mala(), rows = TRUE),
      "mala, minibatch ratio" = metropolis(
        "mala",
        "loss",
        mala(ratio = "minibatch"),
        needs_rows = TRUE
      ),
      "barker" = metropolis("barker", "normal", exact_barker()),
      "barker, bimodal" = metropolis(
        "barker",
        "bimodal",
        exact_barker("bimodal")
      ),
      "barker, adapted" = metropolis(
        "barker",
        "normal",
        exact_barker(adapt = TRUE),
        adapts = TRUE
      ),
      "barker, minibatches" = metropolis(
        "barker",
        "normal",
        exact_barker(),
        rows = TRUE
      ),
      "hmc" = metropolis("hmc", "plain", hmc(), needs_full = TRUE),
      "hmc, adapted" = metropolis(
        "hmc",
        "plain",
        hmc(adapt = TRUE),
        needs_full = TRUE,
        adapts = TRUE
      ),
      "adam_mcmc" = metropolis(
        "adam_mcmc",
        "practical",
        adam(),
        is_exact = FALSE
      ),
      "adam_mcmc, adapted" = metropolis(
        "adam_mcmc",
        "practical",
        adam(adapt = TRUE),
        is_exact = FALSE,
        adapts = TRUE
      ),
      "adam_mcmc, minibatches" = metropolis(
        "adam_mcmc",
        "practical",
        adam(),
        rows = TRUE,
        is_exact = FALSE
      ),
      "smh" = list(
        name = "smh",
        variant = "plain",
        make = function(step_size) kernel_smh(),
        gradient = gradient_cv(order = 2),
        is_metropolis = TRUE,
        is_exact = TRUE,
        adapts = FALSE,
        draws_rows = TRUE
      ),
      "adam_mcmc, exact" = metropolis(
        "adam_mcmc",
        "exact",
        adam(exact = TRUE, momentum_sd = momentum_sd),
        needs_full = TRUE
      )
    )
  )
}

# Does the kernel run with this estimator (of conformance_gradients())?
kernel_takes <- function(kernel, gradient) {
  !(isTRUE(kernel$draws_rows) && gradient$name != "cv2") &&
    !(isTRUE(kernel$needs_full) && gradient$uses_rows) &&
    !(isTRUE(kernel$needs_rows) && !gradient$uses_rows) &&
    !(kernel$is_metropolis && keeps_state(gradient))
}

kernel_model <- function() {
  entry_glm("bernoulli", prior = prior_normal(0, 1), n_data = 30)$model
}

# The same for all short runs.
shared_model <- local({
  model <- NULL
  function() {
    if (is.null(model)) {
      model <<- kernel_model()
    }
    model
  }
})

# A short run with everything that may vary in it.
short_run <- function(
  entry,
  model = shared_model(),
  ...,
  schedule = schedule_constant(),
  iter = 60,
  warmup = 20,
  thin = 1,
  chains = 3,
  seed = 5,
  step_size = 0.05
) {
  sg_sample(
    model,
    entry$make(step_size),
    entry$gradient,
    entry$subsample,
    schedule,
    iter = iter,
    warmup = warmup,
    thin = thin,
    chains = chains,
    seed = seed,
    keep = c("draws", "gradients"),
    refresh = 0,
    ...
  )
}

# What a run leaves that must not depend on how it was run.
outcome <- function(fit) {
  list(
    draws = plain_draws(fit),
    unconstrained = fit$unconstrained,
    gradients = fit$gradients,
    sizes = fit$sizes,
    log_posterior = fit$log_posterior,
    weights = fit$weights,
    saved = fit$saved
  )
}

expect_same_outcome <- function(fit, expected) {
  actual <- outcome(fit)
  expected <- outcome(expected)
  for (part in names(expected)) {
    same <- identical(actual[[part]], expected[[part]])
    testthat::expect(same, paste(part, "of the two runs differ"))
  }
}

schedules_of <- function(entry) {
  out <- list(constant = schedule_constant())
  if (!entry$is_metropolis) {
    out$decay <- schedule_decay(a = 2, b = 3, gamma = 0.5)
    out$cyclical <- schedule_cyclical(length = 10, exploration = 0.3)
  }
  out
}

law_seed <- function(entry) {
  fit <- short_run(entry)
  expect_true(all(is.finite(plain_draws(fit))))
  expect_same_outcome(short_run(entry), fit)
  other <- short_run(entry, seed = 6)
  same <- plain_draws(other) == plain_draws(fit)
  expect_false(any(same))
  # chains have streams of their own
  draws <- plain_draws(fit)
  expect_false(any(draws[, 1, ] == draws[, 2, ]))

  withr::local_seed(77)
  first <- short_run(entry, seed = NULL)
  set.seed(77)
  expect_same_outcome(short_run(entry, seed = NULL), first)
}

law_cores <- function(entry) {
  fit <- short_run(entry)
  for (cores in 2:4) {
    expect_same_outcome(short_run(entry, cores = cores), fit)
  }
}

# A chain's draws do not depend on how many others run beside it.
law_chains <- function(entry) {
  model <- kernel_model()
  init <- numeric(model$n_dim)
  three <- short_run(entry, model, init = init)
  expect_false(any(plain_draws(three)[, 2, ] == plain_draws(three)[, 3, ]))
  one <- short_run(entry, model, init = init, chains = 1)
  expect_identical(
    plain_draws(three)[, 1, ],
    plain_draws(one)[, 1, ]
  )
}

law_slices <- function(entry) {
  fit <- short_run(entry)
  for (size in c(1, 3, 1000)) {
    local_slices(size)
    expect_same_outcome(short_run(entry), fit)
  }
}

law_input <- function(entry) {
  model <- kernel_model()
  at <- c(0.1, 0.2, 0.3)
  init <- matrix(c(1, 2, 3) / 10, 3, 3)
  if (!gradient_is_full(entry$gradient)) {
    entry$gradient <- gradient_cv(at, max(1, gradient_order(entry$gradient)))
  }
  parts <- list(
    kernel = entry$make(0.05),
    gradient = entry$gradient,
    subsample = entry$subsample,
    init = init,
    at = at
  )
  before <- serialize(parts, NULL)
  density <- model_evaluate(model, at)
  fit <- short_run(entry, model, init = init)
  expect_identical(serialize(parts, NULL), before)
  expect_identical(model_evaluate(model, at), density)
  copy <- serialize(fit$draws, NULL)
  sg_resume(fit, iter = 5, refresh = 0)
  expect_identical(serialize(fit$draws, NULL), copy)
}

# Stopping after `iter` iterations, and going on: as if never stopped. Also
# through a file, with the model made again.
law_resume <- function(entry) {
  schedules <- schedules_of(entry)
  for (pace in names(schedules)) {
    # stopping between two kept draws, too
    thin <- if (pace == "constant") 7 else 1
    run <- function(iter, model = kernel_model()) {
      short_run(
        entry,
        model,
        schedule = schedules[[pace]],
        iter = iter,
        thin = thin
      )
    }
    whole <- run(83)
    part <- run(47)
    resumed <- sg_resume(part, iter = 36, refresh = 0)
    expect_same_outcome(resumed, whole)

    reread <- unserialize(serialize(part, NULL))
    expect_error(
      sg_resume(reread, iter = 36, refresh = 0),
      class = "tall_error_stale"
    )
    again <- sg_resume(reread, iter = 36, model = kernel_model(), refresh = 0)
    expect_same_outcome(again, whole)

    # twice, once with other threads
    twice <- sg_resume(part, iter = 10, refresh = 0)
    twice <- sg_resume(twice, iter = 26, cores = 2, refresh = 0)
    expect_same_outcome(twice, whole)
  }
}

# An interrupt between two slices, in warmup or after it.
law_interrupt <- function(entry) {
  schedules <- schedules_of(entry)
  schedules$cyclical <- NULL # keeps other draws than are counted here
  for (schedule in schedules) {
    whole <- short_run(entry, schedule = schedule, thin = 3)
    for (slices in c(0, 4, 7)) {
      fit <- interrupted_run(entry, slices, schedule = schedule, thin = 3)
      expect_same_outcome(sg_resume(fit, refresh = 0), whole)
      n_kept <- if (is.null(fit$draws)) 0 else dim(fit$draws)[[1]]
      # a slice of 1, then 6 steps each; 20 of them warmup
      expect_equal(n_kept, max(0, (1 + 6 * slices - 20) %/% 3))
    }
  }
}

interrupted_run <- function(entry, slices, ...) {
  done <- 0
  local_settings(slice_steps = function(...) {
    if (done == slices) {
      interrupt <- structure(list(), class = c("interrupt", "condition"))
      stop(interrupt)
    }
    done <<- done + 1
    6
  })
  expect_warning(
    fit <- short_run(entry, ...),
    class = "tall_warning_interrupted"
  )
  fit
}

# A step that throws the state out ends in a warning, with the draws before it.
law_diverging <- function(entry) {
  model <- entry_glm(
    "poisson",
    prior = prior_flat(),
    n_data = 30
  )$model
  run <- function(step_size) {
    sg_sample(
      model,
      entry$make(step_size),
      entry$gradient,
      entry$subsample,
      iter = 300,
      warmup = 0,
      chains = 2,
      seed = 1,
      init = numeric(3),
      refresh = 0
    )
  }
  if (isTRUE(entry$draws_rows)) {
    fit <- run(1)
    expect_true(all(is.finite(plain_draws(fit))))
    expect_true(all(fit$chains$status == "ok"))
    return(invisible())
  }
  if (entry$is_metropolis) {
    # every proposal is rejected: the chain stays, and says so
    fit <- run(1e10)
    expect_true(all(is.finite(plain_draws(fit))))
    expect_true(all(fit$chains$status == "ok"))
    expect_lt(max(fit$chains$acceptance), 0.01)
    return(invisible())
  }
  if (entry$name %in% c("sgbd", "psgld")) {
    # increments do not grow with the gradient: no step size runs away
    fit <- run(0.8)
    expect_true(all(fit$chains$status == "ok"))
    expect_true(all(is.finite(plain_draws(fit))))
    return(invisible())
  }
  caught <- NULL
  fit <- withCallingHandlers(
    run(0.8),
    tall_warning_nonfinite = function(w) {
      caught <<- w
      rlang::cnd_muffle(w)
    }
  )
  expect_s3_class(caught, "tall_warning_nonfinite")
  expect_true(any(fit$chains$status == "nonfinite"))
  kept <- fit$chains$draws[fit$chains$status == "nonfinite"]
  expect_true(all(kept < 300))
  expect_true(all(is.finite(plain_draws(fit))))
  expect_true(all(is.finite(unlist(fit$stopped))))
  expect_error(
    sg_resume(fit, iter = 5, refresh = 0),
    class = "tall_error_unsupported"
  )
}

# A kernel whose steps are held against the gradient noise has a tolerance.
law_tolerance <- function(entry) {
  fit <- short_run(entry)
  if (is.null(fit$noise) || fit$noise$looks == 0) {
    expect_error(noise_tolerance(fit), class = "tall_error_unsupported")
    return(invisible())
  }
  table <- noise_tolerance(fit)
  expect_identical(table$variable, fit$coordinates)
  expect_true(all(table$tau > 0 & table$step > 0 & table$tolerance > 0))
  # nothing is beyond a limit that is far away
  expect_identical(table$beyond > 0.99, table$step > 2 * table$largest)
}

law_bad_start <- function(entry) {
  # some minibatch must hold a row whose mean overflows: not left to chance
  withr::local_seed(1)
  model <- entry_glm("poisson", prior = prior_flat(), n_data = 30)$model
  expect_error(
    sg_sample(
      model,
      entry$make(0.1),
      entry$gradient,
      entry$subsample,
      iter = 10,
      init = rep(1e5, 3),
      seed = 1,
      refresh = 0
    ),
    class = "tall_error_nonfinite"
  )
}

# One chain that cannot start is an error that names it, whichever it is.
law_bad_chain <- function(entry) {
  model <- entry_glm("poisson", prior = prior_flat(), n_data = 30)$model
  for (chain in 1:3) {
    start <- matrix(0, 3, 3)
    start[, chain] <- 1e5
    error <- expect_error(
      short_run(entry, model, init = start),
      class = "tall_error_nonfinite"
    )
    expect_equal(error$chain, chain)
  }
}

law_still <- function(entry) {
  model <- kernel_model()
  make <- entry$make
  entry$make <- function(step_size) kernel_still(make(step_size))
  init <- matrix(stats::rnorm(9), 3)
  fit <- short_run(entry, model, init = init)
  for (k in c(1, 40)) {
    expect_identical(t(unname(plain_draws(fit)[k, , ])), init)
  }
}

# ---- laws on a normal target -------------------------------------------------

# Second moments of Langevin dynamics on N(mean, P^-1), exactly, step by step:
#
#   x' = A x + (h/2) e + u,  A = I - (h/2) P,  Var e = C + sum_jk V_jk D_jk / 2
#   u = S sqrt(h) xi, or S sqrt(h)/2 (xi + xi'),  S^2 = I - share
#
# because a minibatch gradient of a normal target is linear in x with noise of
# a variance C(x) quadratic in x, whose mean is known from V = Var x alone. The
# corrected variants take share_j = h tau_j^2 / (4 - h precision), tau_j^2 the
# jth variance of e (Euler: precision 0), the modified ones S = 1 - h tau^2 / 8,
# the extreme ones S = 0. Returns V after every step.
normal_covariance <- function(
  precision,
  step_sizes,
  noise,
  integrator = "euler",
  variant = "vanilla",
  known_precision = 0,
  start = 0 * precision
) {
  d <- nrow(precision)
  is_lm <- integrator != "euler"
  v <- start
  out <- vector("list", length(step_sizes))
  # Leimkuhler-Matthews: Cov(x, xi), xi the noise shared with the next step
  cross <- matrix(0, d, d)
  for (t in seq_along(step_sizes)) {
    h <- step_sizes[[t]]
    a <- diag(d) - h / 2 * precision
    c <- noise(v)
    divisor <- if (is_lm) 4 - h * known_precision else 4
    scale <- switch(
      variant,
      vanilla = rep(1, d),
      corrected = sqrt(pmax(0, 1 - h * diag(c) / divisor)),
      modified = pmax(0, 1 - h * diag(c) / 8),
      extreme = rep(0, d)
    )
    s <- diag(scale, d)
    if (is_lm) {
      both <- sqrt(h) / 2 * a %*% cross %*% s
      v <- a %*% v %*% a + h^2 / 4 * c + h / 2 * s^2 + both + t(both)
      cross <- sqrt(h) / 2 * s
    } else {
      v <- a %*% v %*% a + h^2 / 4 * c + h * s^2
    }
    out[[t]] <- v
  }
  out
}

no_noise <- function(v) 0 * v

# E C(x) over x ~ (mean, V), C(x) = Var of the estimate of a minibatch of n rows
# at x: quadratic in x, so its second differences give it exactly.
minibatch_noise <- function(
  model,
  mean,
  n,
  p = NULL,
  replace = TRUE,
  at = NULL
) {
  d <- length(mean)
  n_data <- model$n_data
  if (is.null(p)) {
    p <- rep(1 / n_data, n_data)
  }
  base <- if (is.null(at)) 0 else row_gradients(model, at)
  variance <- function(x) {
    a <- row_gradients(model, x) - base
    if (replace) {
      (crossprod(a / p, a) - tcrossprod(colSums(a))) / n
    } else {
      n_data^2 / n * (1 - n / n_data) * stats::cov(a)
    }
  }
  unit <- function(j) mean + (seq_len(d) == j)
  c0 <- variance(mean)
  second <- lapply(seq_len(d), function(j) {
    lapply(seq_len(d), function(k) {
      both <- mean + (seq_len(d) == j) + (seq_len(d) == k)
      variance(both) - variance(unit(j)) - variance(unit(k)) + c0
    })
  })
  function(v) {
    out <- c0
    for (j in seq_len(d)) {
      for (k in seq_len(d)) {
        out <- out + v[j, k] / 2 * second[[j]][[k]]
      }
    }
    out
  }
}
