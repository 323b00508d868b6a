# A segment of a run: compile the plan, start chains, advance them.

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
    "waiting_rows"
  )
  c(
    # NULL where it does not apply
    lapply(stats::setNames(nm = made), function(name) run[[name]]),
    lengths,
    list(
      passes = plan$ledger$passes,
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

# Is the bias estimate coupled to a normal companion of the chains (spec section
# 10)? Where the kernel has one and the posterior is near N(0, I) in the
# coordinates they move in: those that the recipe whitened.
is_bias_coupled <- function(plan) {
  whitening <- plan$model$whitening
  is_near_normal <- !is.null(whitening) && !whitening$is_diagonal
  is_near_normal &&
    schedule_is_constant(plan$schedule) &&
    kernel_info(plan$kernel)$has_companion
}

# failed: what ffi_run_create() returned instead of a run.
check_run_fits <- function(failed, free, spec, model) {
  bytes <- attr(failed, "bytes")
  if (status_name(failed) != "memory" || !isTRUE(bytes > free)) {
    return(invisible())
  }
  chains <- spec$n_chain
  abort_tall(
    "memory",
    c(
      "The {cli::qty(chains)}chain{?s} take{?s/} {format_bytes(bytes)}, and
       memory has {format_bytes(free)}.",
      x = "{count_noun(chains, 'chain')} of {count_noun(model$n_dim,
           'parameter')}, each with a minibatch and its scratch.",
      i = "Fewer {.arg chains} or parameters, or smaller minibatches, take
           less."
    ),
    bytes = bytes,
    value = bytes,
    expected = free
  )
}

# The chains of a job, in threads. Their numbers begin after spec$n_first.
run_chains <- function(job, model) {
  spec <- job$spec
  buffers <- make_buffers(job$sizes, spec$n_chain)
  take_errors(model) # of other runs
  take_errors(model, "undefined")
  free <- free_memory()
  run <- .Call(
    ffi_run_create,
    model$pointer,
    c(spec, list(bytes_most = if (is.na(free)) Inf else free)),
    buffers,
    job$saved,
    as.integer(job$cores)
  )
  if (is.integer(run)) {
    if (status_name(run) == "argument" && !is.null(job$saved)) {
      abort_corrupt("`fit`", "saved")
    }
    pass_interrupt(run)
    check_run_fits(run, free, spec, model)
    abort_status(run)
  }
  on.exit(.Call(ffi_run_destroy, run))
  if (is.null(job$saved)) {
    check_started(.Call(ffi_run_status, run), model, spec$n_first)
  }
  monitor <- if (!is.null(job$monitor)) {
    monitor_recorder(job$monitor, model, job$monitor_state, spec$n_first)
  }
  checkpoints <- checkpoint_recorder(job, run, monitor)
  stops <- list(
    step = sort(unique(c(job$points$step, checkpoints$step))),
    at = function(step) {
      due <- match(step, job$points$step)
      if (!is.na(due)) {
        monitor$at(
          job$points$iteration[[due]],
          job$points$is_warmup[[due]],
          .Call(ffi_run_position, run)
        )
      }
      if (step %in% checkpoints$step) {
        checkpoints$at(step)
      }
    }
  )
  keeper <- halt_recorder(run, model, monitor, spec$n_first)
  started <- proc.time()[["elapsed"]]
  outcome <- advance_run(run, job, stops, keeper, model)
  reports <- .Call(ffi_run_report, run)
  waits <- vapply(reports, is_waiting, TRUE)
  list(
    seconds = proc.time()[["elapsed"]] - started,
    buffers = buffers,
    # chains that wait are where they are, and can go on
    reports = lapply(reports, function(report) {
      if (is_waiting(report)) replace(report, "status", 0) else report
    }),
    waiting_rows = if (any(waits)) {
      list(chains = spec$n_first + which(waits), reason = outcome$reason)
    },
    interrupted = outcome$interrupted,
    errors = outcome$errors,
    halted = keeper$result(),
    rejected = outcome$rejected,
    shared = .Call(ffi_run_progress, run)$n_shared,
    monitor = if (!is.null(monitor)) monitor$result(),
    checkpoints = checkpoints$result()
  )
}

# Every chain has a gradient where it starts. found: what ffi_run_status() says.
check_started <- function(found, model, n_first) {
  failed <- which(found$status != 0)
  if (length(failed) == 0) {
    return(invisible())
  }
  report <- lapply(found, function(x) x[[failed[[1]]]])
  chain <- n_first + failed[[1]]
  pass_interrupt(report$status)
  if (status_name(report$status) != "nonfinite") {
    abort_status(report$status, chain = chain)
  }
  name <- coordinate_name(model, report$coordinate)
  abort_tall(
    "nonfinite",
    c(
      "Chain {chain} cannot start: the log posterior or its gradient is not
       finite there.",
      x = "The largest coordinate of the starting point is
           {.code {name}} = {format_number(report$value)}.",
      i = "Give {.arg init} closer to the mode, or leave it out."
    ),
    status = "nonfinite",
    chain = chain,
    iteration = 0,
    coordinate = name,
    value = report$value,
    parent = last_undefined(model)
  )
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

# How many blocks the bias estimate takes its standard error from.
bias_blocks <- 20
