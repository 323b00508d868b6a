# A segment of a run: compile the plan, and run its chains from where they are.

# How far a segment goes: kernel steps of every chain, and the points where
# monitors are evaluated, see monitor_points(); NULL: at their period.
new_stretch <- function(n_warmup, n_sampling, points = NULL) {
  stopifnot(n_warmup >= 0, n_sampling >= 0)
  stretch <- list(
    n_warmup = as.double(n_warmup),
    n_sampling = as.double(n_sampling),
    points = points
  )
  structure(stretch, class = "tall_stretch")
}

# Where chains stand before a segment.
#
# saved              their states; NULL: the plan's starting points
# n_before           steps that they have made
# n_phase            steps since the last draw that was kept
# iterations_before  iterations that they have made
# monitor_state      what monitors remember
# n_first            the chains' numbers begin after it
new_standing <- function(
  saved = NULL,
  n_before = 0,
  n_phase = 0,
  iterations_before = 0,
  monitor_state = list(),
  n_first = 0
) {
  stopifnot(is.null(saved) || is.list(saved), n_before >= 0, n_phase >= 0)
  standing <- list(
    saved = saved,
    n_before = n_before,
    n_phase = as.double(n_phase),
    iterations_before = iterations_before,
    monitor_state = monitor_state,
    n_first = n_first
  )
  structure(standing, class = "tall_standing")
}

# A stretch of a run, from where chains stand. on_futures: by workers, see
# run-futures.R.
run_segment <- function(
  plan,
  control,
  stretch,
  from = new_standing(),
  noise_every = noise_period(plan$model),
  label = "Sampling",
  on_futures = FALSE
) {
  if (!is.null(plan$sums)) {
    return(sums_segment(plan, control, stretch, from))
  }
  # a pass over the rows that differ is that part of one over all
  share <- if (is.null(plan$model$n_all)) {
    1
  } else {
    plan$model$n_data / plan$model$n_all
  }
  plan <- on_stand_in(plan)
  model <- plan$model
  n_every <- control$thin * plan$steps
  n_collected <- count_collected(
    plan$schedule,
    from$n_before + stretch$n_warmup,
    stretch$n_sampling
  )
  lengths <- list(
    n_warmup = stretch$n_warmup,
    n_sampling = stretch$n_sampling,
    n_phase = from$n_phase,
    n_every = n_every
  )
  n_keep <- floor((from$n_phase + n_collected) / n_every)
  job <- list(
    spec = c(
      compile_run(plan, control, noise_every),
      lengths,
      n_first = from$n_first
    ),
    saved = from$saved,
    sizes = buffer_sizes(model, control, plan, n_keep),
    monitor = control$monitor,
    monitor_state = from$monitor_state,
    points = monitor_points(stretch, plan, control, from),
    refill = compiled_refill(plan, control),
    cores = control$cores,
    refresh = control$refresh,
    label = label
  )
  started <- proc.time()[["elapsed"]]
  run <- if (on_futures) {
    run_on_futures(job, model)
  } else {
    run_chains(job, model)
  }
  spend(plan$ledger, "reference", run$shared / max(1, model$n_data))
  run$seconds <- run$seconds %||% (proc.time()[["elapsed"]] - started)
  made <- c(
    "buffers",
    "reports",
    "interrupted",
    "errors",
    "halted",
    "rejected",
    "monitor",
    "seconds",
    "pace",
    "waiting_rows"
  )
  c(
    # NULL where it does not apply
    lapply(stats::setNames(nm = made), function(name) run[[name]]),
    lengths,
    list(
      passes = share * plan$ledger$passes,
      n_before = from$n_before,
      n_keep = n_keep
    )
  )
}

# What the core has to know of a run, but for how long it is.
compile_run <- function(plan, control, noise_every) {
  check_ahead(plan, control)
  context <- run_context(plan, control)
  model <- plan$model
  asks <- kernel_info(plan$kernel)
  bias_map <- if (!asks$is_metropolis) covariance_map(plan)
  # not of an even model: below zero its variables go against its coordinates
  has_bias <- !asks$is_metropolis && model$n_dim <= 1e4 &&
    !model_info(model)$is_even
  list(
    kernel = compile_spec(plan$kernel, context),
    gradient = compile_spec(plan$gradient, context),
    subsample = compile_spec(plan$subsample, context),
    schedule = compile_spec(plan$schedule, context),
    n_chain = control$chains,
    seed = core_seed(control),
    likelihood_scale = likelihood_scale(model),
    escape = plan$escape,
    n_escape_max = 10,
    n_bias_block = if (has_bias) bias_blocks else 0,
    n_bias_every = if (is.null(bias_map)) min(5, plan$steps) else 5,
    is_bias_coupled = as.double(has_bias && is_bias_coupled(plan)),
    keeps_moments = as.double("none" %in% control$keep),
    keeps_covariance = as.double("covariance" %in% control$keep),
    n_noise_every = if (asks$has_tolerance) noise_every else 0,
    init = as.double(plan$init),
    bias_map = bias_map
  )
}

# Is the bias estimate coupled to a normal companion of the chains
# (src/run/bias.c)? Where the kernel has one and the posterior is near N(0, I)
# in the coordinates they move in: those that the recipe whitened.
is_bias_coupled <- function(plan) {
  whitening <- plan$model$whitening
  is_near_normal <- !is.null(whitening) && !whitening$is_diagonal
  is_near_normal && setting("bias_companion") > 0 &&
    schedule_is_constant(plan$schedule) &&
    kernel_info(plan$kernel)$has_companion
}

# Sigma_jk / Sigma_jj, with Sigma minus the inverse Hessian at the mode or, of a
# run that needed none, at its start: for the bias estimate of a run in the
# model's own coordinates. NULL where a map would cost more than the gradients.
covariance_map <- function(plan, most = 1000) {
  model <- plan$model
  if (model_is_whitened(model) || model$n_dim > most) {
    return(NULL)
  }
  chol <- known_mode(plan)$chol %||% plan$start_chol
  if (is.null(chol)) {
    return(NULL)
  }
  covariance <- chol2inv(t(chol))
  covariance / diag(covariance)
}

known_mode <- function(plan) {
  at <- plan$gradient$args$at
  if (inherits(at, "tall_mode")) at else plan$mode %||% plan$model$cache$mode
}

# Lower Cholesky factor of minus the Hessian where the first chain starts, from
# `n` rows spread over the data: next to a run this costs nothing. NULL where it
# is not needed, or is not positive definite.
start_chol <- function(plan, n = 10000, most = 100) {
  model <- plan$model
  info <- model_info(model)
  can <- !kernel_is_metropolis(plan$kernel) &&
    !info$is_framed &&
    info$has_curvature &&
    curvature_passes(model) == 1 &&
    model$n_dim <= most
  if (!can || !is.null(known_mode(plan)$chol)) {
    return(NULL)
  }
  n <- min(n, model$n_data)
  index <- floor((seq_len(n) - 0.5) * model$n_data / n) + 1
  spend(plan$ledger, "recipe", n / model$n_data)
  tryCatch(
    lower_chol(proper_hessian(model, plan$init[, 1], index), model),
    tall_error = function(cnd) NULL
  )
}

# Steps between looks at the gradient noise: they cost some hundred passes over
# the parameters, which is nothing beside the rows of a model with few of them.
# Tapes give gradients of rows one by one.
noise_period <- function(model) {
  usual <- if (is_taped_model(model)) 100 else 20
  max(usual, ceiling(model$n_dim / 500))
}
