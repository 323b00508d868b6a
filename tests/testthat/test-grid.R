# Every model x gradient estimator x subsampling scheme x kernel x schedule on
# posteriors known in closed form. What a chain's moments should be is known
# exactly, step-size bias and gradient noise included (normal_covariance()); it
# starts at the posterior mean and 40 independent chains give the Monte Carlo
# error (expect_mean()). Schedules, which only the loop over steps knows of,
# take turns: every pair of one and a member of another family is there. So do
# kernels, but with a regression: an estimator asks every model the same, and
# with a third of the combinations each pair of members is there.

grid_problems <- function() {
  list(
    density = target_density(),
    gaussian = target_correlated(),
    glm = target_linear(),
    network = target_network()
  )
}

# Schemes for n of the 60 rows of a problem.
grid_schemes <- function(n = 20) {
  uneven <- rep(c(1, 2, 4), 20)
  list(
    with = list(
      name = "uniform",
      spec = subsample_uniform(n),
      noise = list(n = n)
    ),
    without = list(
      name = "uniform",
      spec = subsample_uniform(n, replace = FALSE),
      noise = list(n = n, replace = FALSE)
    ),
    weighted = list(
      name = "weighted",
      spec = subsample_weighted(n, uneven),
      noise = list(n = n, p = uneven / sum(uneven))
    ),
    optimal = list(name = "optimal", spec = subsample_optimal(n)),
    adaptive = list(
      name = "adaptive",
      spec = subsample_adaptive(5, uneven, min_size = n)
    )
  )
}

# One entry for each variant and integrator of a kernel.
grid_kernels <- function() {
  entries <- conformance_kernels()
  key <- function(e) paste(e$name, e$variant, e$integrator)
  entries[!duplicated(vapply(entries, key, ""))]
}

problems <- grid_problems()
kernels <- grid_kernels()
gradients <- conformance_gradients()
schemes <- grid_schemes()
schedules <- list(
  constant = list(
    spec = schedule_constant(),
    factor = function(t) rep(1, length(t))
  ),
  decay = list(
    spec = schedule_decay(a = 2, b = 30, gamma = 0.2),
    factor = function(t) 2 * (30 + t)^-0.2
  )
)
step_size <- 0.25

test_that("the grid has every member of every family", {
  name_of <- function(entries) unique(vapply(entries, function(e) e$name, ""))
  # components, factorisations and topics have no closed form: test-ica.R and
  # test-factors.R have exact samplers, test-topics.R enumerates; test-native.R
  # holds models of users against built-in ones; sums are regressions without
  # rows, which test-sums.R draws from; test-classes.R has importance sampling,
  # test-glmer-posterior.R and test-crossed.R grids; test-surv-pieces.R has
  # importance sampling and rows that are split, test-dpar.R importance sampling
  expect_setequal(
    c(names(problems), "ica", "bpmf", "pmf", "lda", "native", "sums",
      "classes", "groups", "crossed", "pieces", "predictors"),
    registered("model")
  )
  expect_covered("kernel", c(name_of(kernels), "gibbs"))
  expect_covered("gradient", name_of(gradients))
  # "fixed" is one minibatch for ever, which no chain can sample from
  expect_setequal(c(name_of(schemes), "fixed"), registered("subsample"))
  # cyclical steps are held against their formula in test-kernels-momentum.R
  expect_setequal(c(names(schedules), "cyclical"), registered("schedule"))
})

grid_run <- function(
  problem,
  kernel,
  gradient,
  scheme,
  schedule,
  iter = 850,
  warmup = 50,
  chains = 40,
  init = problem$mean
) {
  sg_sample(
    problem$model,
    kernel$make(step_size),
    gradient$make(problem$mean + c(0.5, -0.3)),
    scheme$spec,
    schedule$spec,
    iter = iter,
    warmup = warmup,
    chains = chains,
    cores = 2,
    seed = 31,
    init = init,
    refresh = 0
  )
}

grid_noise <- function(problem, kernel, gradient, scheme) {
  # log likelihoods are quadratic here: nothing is left beyond order 2
  if (!gradient$uses_rows || kernel$is_exact || identical(gradient$order, 2)) {
    return(no_noise)
  }
  at <- if (gradient$has_reference) problem$mean + c(0.5, -0.3)
  do.call(
    minibatch_noise,
    c(list(problem$model, problem$mean, at = at), scheme$noise)
  )
}

# The average of Var(theta_t) over the kept steps, weighted as the draws are.
grid_covariance <- function(problem, kernel, noise, schedule, iter, warmup) {
  if (kernel$is_exact) {
    return(solve(problem$precision))
  }
  factor <- schedule$factor(seq_len(iter) - 1)
  steps <- normal_covariance(
    problem$precision,
    step_size * factor,
    noise,
    kernel$integrator,
    variant = kernel$variant
  )
  kept <- seq(warmup + 1, iter)
  share <- factor[kept] / sum(factor[kept])
  Reduce(`+`, Map(`*`, steps[kept], share))
}

# Why a combination cannot run; NULL: it can.
grid_obstacle <- function(problem, kernel, gradient, scheme, schedule) {
  of_rows <- rows_obstacle(problem, kernel, gradient, scheme)
  if (!is.null(of_rows)) {
    of_rows
  } else if (!kernel_takes(kernel, gradient)) {
    "the kernel does not take the estimator"
  } else if (isTRUE(kernel$needs_rows) && moves_with_state(scheme)) {
    "the kernel compares two points on the same rows"
  } else if (kernel$is_metropolis && schedule$spec$name != "constant") {
    "a Metropolis step needs no decay"
  } else if (identical(scheme$name, "adaptive")) {
    adaptive_obstacle(problem, gradient)
  }
}

rows_obstacle <- function(problem, kernel, gradient, scheme) {
  if (problem$model$n_data == 0 && gradient$uses_rows) {
    "there are no rows"
  } else if (!gradient$uses_rows && !is.null(scheme)) {
    "all rows leave nothing to a scheme"
  } else if (isTRUE(kernel$draws_rows) && case_has_no_predictors(problem)) {
    "the kernel draws rows by bounds that these do not have"
  } else if (isTRUE(kernel$draws_rows) && !is.null(scheme)) {
    "the kernel draws its rows itself"
  }
}

adaptive_obstacle <- function(problem, gradient) {
  if (!gradient$name %in% c("cv", "cv2")) {
    "adaptive sizes bound the noise of control variates"
  } else if (problem$model$name == "network") {
    "networks have no global Lipschitz constants"
  }
}

case_has_no_predictors <- function(problem) {
  !model_info(problem$model)$has_remainders
}

moves_with_state <- function(scheme) {
  scheme$name %in% c("adaptive", "optimal")
}

# Kernels, estimators and schemes whose moments have no closed form are tested
# by themselves; here they must run.
has_known_moments <- function(kernel, gradient, scheme) {
  kernel$is_exact ||
    kernel$name == "sgld" &&
      !keeps_state(gradient) &&
      (is.null(scheme) || !is.null(scheme$noise))
}

# A density's gradient is N times a mean loss': momenta of the other problems'
# scale stick there. test-kernels-metropolis.R has them on their own.
other_scale <- function(case, kernel) {
  case == "density" && identical(kernel$variant, "exact")
}

all_combinations <- function() {
  all <- expand.grid(
    pace = seq_along(schedules),
    kernel = names(kernels),
    scheme = c(names(schemes), "none"),
    gradient = names(gradients),
    case = names(problems),
    stringsAsFactors = FALSE
  )
  turn <- match(all$kernel, names(kernels)) +
    match(all$scheme, c(names(schemes), "none")) +
    match(all$gradient, names(gradients)) +
    match(all$case, names(problems))
  # a Metropolis step refuses the one and must run with the other
  is_metropolis <- vapply(kernels, function(k) k$is_metropolis, TRUE)
  has_pace <- (turn + all$pace) %% 2 == 0 | is_metropolis[all$kernel]
  has_turn <- turn %% 3 == 0 | all$case == "glm" | all$gradient == "full"
  all <- all[has_pace & has_turn, ]
  all$pace <- names(schedules)[all$pace]
  lapply(seq_len(nrow(all)), function(k) combination(all[k, ]))
}

# The members of one, as arguments of grid_run(), and what is expected of them:
# "refused", "runs", "moments" or "nothing".
combination <- function(at) {
  parts <- list(
    problem = problems[[at$case]],
    kernel = kernels[[at$kernel]],
    gradient = gradients[[at$gradient]],
    scheme = schemes[[at$scheme]],
    schedule = schedules[[at$pace]]
  )
  lacks_scheme <- is.null(parts$scheme) && parts$gradient$uses_rows &&
    !isTRUE(parts$kernel$draws_rows)
  obstacle <- if (!lacks_scheme) do.call(grid_obstacle, parts)
  list(
    title = paste(
      at$case, at$gradient, at$scheme, at$kernel, at$pace,
      sep = " / "
    ),
    group = paste(at$case, at$gradient, at$scheme, sep = " / "),
    kernel = at$kernel,
    parts = parts,
    obstacle = obstacle,
    # the default scheme is one of the others
    expected = if (lacks_scheme) {
      "nothing"
    } else if (!is.null(obstacle)) {
      "refused"
    } else if (other_scale(at$case, parts$kernel)) {
      "nothing"
    } else if (has_known_moments(parts$kernel, parts$gradient, parts$scheme)) {
      "moments"
    } else {
      "runs"
    }
  )
}

# The class of the error of a run, or that there is none.
refusal <- function(one) {
  tryCatch(
    {
      do.call(grid_run, c(one$parts, iter = 60))
      "none"
    },
    error = function(e) class(e)[[1]]
  )
}

# A message takes longer to word than all that comes before it.
local_wordless_errors <- function(frame = parent.frame()) {
  wordless <- function(kind, ...) {
    class <- c(paste0("tall_error_", kind), "tall_error", "error", "condition")
    stop(structure(class = class, list(message = kind, call = NULL)))
  }
  local_fault("abort_tall", wordless, frame)
}

expect_refused <- function(one) {
  found <- refusal(one)
  testthat::expect(
    found == "tall_error_unsupported",
    sprintf("%s: %s, refused: %s", one$title, one$obstacle, found)
  )
}

expect_runs <- function(one) {
  fit <- do.call(grid_run, c(one$parts, iter = 100, chains = 2))
  draws <- plain_draws(fit)
  # without any noise, extreme steps stay at the mode
  moved <- length(unique(draws[, 1, 1])) > 2 ||
    identical(one$parts$kernel$variant, "extreme")
  testthat::expect(
    all(fit$chains$status == "ok") && all(is.finite(draws)) && moved,
    paste0(one$title, ": does not run")
  )
}

expect_moments <- function(one) {
  parts <- one$parts
  fit <- do.call(grid_run, parts)
  truth <- grid_covariance(
    parts$problem,
    parts$kernel,
    do.call(grid_noise, parts[c("problem", "kernel", "gradient", "scheme")]),
    parts$schedule,
    iter = 850,
    warmup = 50
  )
  expect_posterior(fit, parts$problem$mean, truth, one$title)
}

combinations <- all_combinations()
expected <- vapply(combinations, function(one) one$expected, "")
groups <- vapply(combinations, function(one) one$group, "")

test_that("what cannot work together is refused", {
  local_wordless_errors()
  for (one in combinations[expected == "refused"]) {
    expect_refused(one)
  }
})

test_that("a refusal of each kind has its words", {
  refused <- combinations[expected == "refused"]
  kind <- vapply(refused, FUN.VALUE = "", function(one) {
    paste(one$obstacle, one$parts$kernel$name)
  })
  for (one in refused[!duplicated(kind)]) {
    expect_refused(one)
  }
})

for (group in unique(groups[expected == "runs"])) {
  test_that(paste0(group, ": runs with every kernel"), {
    for (one in combinations[expected == "runs" & groups == group]) {
      expect_runs(one)
    }
  })
}

for (group in unique(groups[expected == "moments"])) {
  test_that(paste0(group, ": the moments are those known"), {
    skip_on_cran()
    for (one in combinations[expected == "moments" & groups == group]) {
      expect_moments(one)
    }
  })
}

# Whatever keeps the rows, a chain draws what it draws with dense ones. Each
# estimator with every kernel and scheme, in turns: a store hands out rows,
# whoever asks.
stored_draws <- function(problem, kernel, gradient, scheme) {
  fit <- withCallingHandlers(
    grid_run(
      problem,
      kernel,
      gradient,
      scheme,
      schedules$constant,
      iter = 12,
      warmup = 4,
      chains = 1,
      # not at the mode, where rounding has the sign of a gradient
      init = problem$mean + c(0.2, -0.1)
    ),
    tall_warning_size = function(w) rlang::cnd_muffle(w)
  )
  plain_draws(fit)
}

runs_by_default <- function(kernel, gradient, scheme) {
  lacks_scheme <- is.null(scheme) && gradient$uses_rows &&
    !isTRUE(kernel$draws_rows)
  !lacks_scheme && is.null(
    grid_obstacle(problems$glm, kernel, gradient, scheme, schedules$constant)
  )
}

stored_problems <- lapply(
  stats::setNames(nm = registered("store")),
  made_in,
  read_only = FALSE,
  make = target_linear
)
for (name in names(gradients)) {
  test_that(paste0("stores: ", name, ": draws are those with dense rows"), {
    gradient <- gradients[[name]]
    for (kernel in names(kernels)) {
      for (scheme in c(names(schemes), "none")) {
        turn <- match(kernel, names(kernels)) +
          match(scheme, c(names(schemes), "none")) +
          match(name, names(gradients))
        run <- list(kernels[[kernel]], gradient, schemes[[scheme]])
        takes_turn <- turn %% 3 == 0 || is.null(run[[3]])
        if (!takes_turn || !runs_by_default(run[[1]], gradient, run[[3]])) {
          next
        }
        draws <- lapply(stored_problems, function(problem) {
          do.call(stored_draws, c(list(problem), run))
        })
        for (type in names(draws)) {
          label <- paste(type, kernel, scheme)
          expect_close(draws[[type]], draws$dense, label, tolerance = 1e-8)
        }
      }
    }
  })
}

test_that("defaults: a scheme for estimators that need one, cv, or all rows", {
  model <- problems$glm$model
  run <- function(...) {
    sg_sample(model, ..., iter = 10, chains = 1, seed = 1, refresh = 0)
  }
  fit <- run(kernel_sgld(0.01))
  expect_identical(fit$gradient$name, "cv")
  expect_identical(fit$subsample$name, "weighted")
  fit <- run(kernel_mala(0.01))
  expect_identical(fit$gradient$name, "full")
  expect_null(fit$subsample)
  fit <- sg_sample(
    problems$gaussian$model,
    kernel_sgld(0.01),
    iter = 10,
    chains = 1,
    refresh = 0
  )
  expect_s3_class(fit, "tall_fit")
})

test_that("without a kernel only the recipe chooses, where there is one", {
  expect_error(
    sg_sample(problems$glm$model, gradient = gradient_simple(), refresh = 0),
    class = "tall_error_input"
  )
  expect_error(
    sg_sample(problems$glm$model, schedule = schedule_decay(), refresh = 0),
    class = "tall_error_input"
  )
  expect_error(
    sg_sample(problems$density$model, refresh = 0),
    class = "tall_error_unsupported"
  )
})

test_that("the recipe has the moments of the posterior", {
  skip_on_cran()
  # conjugate, so whitened exactly: no bias but that of step size and noise,
  # which corrected Leimkuhler-Matthews steps take out
  conjugate <- function(n_data) {
    withr::local_seed(5)
    covariance <- matrix(c(1, 0.5, 0, 0.5, 2, 0.3, 0, 0.3, 0.5), 3)
    x <- matrix(stats::rnorm(3 * n_data), n_data) %*% chol(covariance)
    model_gaussian(x, covariance, prior_covariance = diag(3))
  }
  model <- conjugate(4000)
  fit <- sg_sample(
    model,
    iter = 450,
    warmup = 50,
    chains = 40,
    cores = 2,
    seed = 6,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "sgld")
  truth <- unname(model$posterior_covariance)
  expect_posterior(fit, unname(model$posterior_mean), truth, "langevin")
  # a chain is centred at its own mean, which takes 1 / (2 ESS) off: its 10,000
  # steps of h = 0.2 have an autocorrelation time of 4 / h
  centring <- -1 / (2 * 10000 * 0.2 / 4)
  off <- (fit$bias$sd_bias - centring) / fit$bias$sd_bias_se
  expect_lt(max(abs(off)), 5.7)

  model <- conjugate(300)
  fit <- sg_sample(
    model,
    iter = 550,
    warmup = 250,
    chains = 40,
    cores = 2,
    seed = 6,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "mala")
  truth <- unname(model$posterior_covariance)
  expect_posterior(fit, unname(model$posterior_mean), truth, "metropolis")

  target <- target_linear()
  fit <- sg_sample(
    target$model,
    iter = 150,
    warmup = 50,
    chains = 40,
    cores = 2,
    seed = 6,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "independent")
  expect_posterior(fit, target$mean, solve(target$precision), "sums")
})
