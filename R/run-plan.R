# A plan: all that a run knows before its chains move.

# A sampler: what moves chains. NULL: what is left to the recipe, or to the
# defaults of the model. Runs, plans and fits have its four parts as their own.
new_sampler <- function(
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant()
) {
  is_one <- function(x, family) {
    inherits(x, paste0("tall_", family))
  }
  stopifnot(
    is.null(kernel) || is_one(kernel, "kernel"),
    is.null(gradient) || is_one(gradient, "gradient"),
    is.null(subsample) || is_one(subsample, "subsample"),
    is_one(schedule, "schedule")
  )
  sampler <- list(
    kernel = kernel,
    gradient = gradient,
    subsample = subsample,
    schedule = schedule
  )
  structure(sampler, class = "tall_sampler")
}

# That of a run, a plan or a fit.
sampler_of <- function(x) {
  new_sampler(x$kernel, x$gradient, x$subsample, x$schedule)
}

# sampler: see new_sampler(); its parts are the plan's own, where some of them
# are settled later. steps: kernel steps in an iteration after warmup. escape: a
# draw with a larger squared norm (in whitened coordinates) is far out. ledger:
# passes over the data before the chains move, by purpose. refill: where rows
# are drawn ahead, what draws more (see run-refill.R); it is not kept in a fit.
new_plan <- function(
  model,
  sampler,
  mode = NULL,
  steps = 1,
  escape = 0,
  recipe = NULL,
  ledger = new_ledger(),
  refill = NULL
) {
  stopifnot(inherits(sampler, "tall_sampler"))
  own <- list(
    mode = mode,
    steps = steps,
    escape = escape,
    recipe = recipe,
    ledger = ledger,
    refill = refill
  )
  structure(c(list(model = model), sampler, own), class = "tall_plan")
}

# The plan of a run whose chains move on another model of the same posterior.
on_stand_in <- function(plan) {
  plan$model <- plan$stand_in %||% plan$model
  plan
}

# Passes over the data for what is not a chain's own step. Shared by the copies
# of a plan.
new_ledger <- function() {
  ledger <- new.env(parent = emptyenv())
  ledger$passes <- c(mode = 0, weights = 0, reference = 0, recipe = 0)
  ledger
}

spend <- function(ledger, what, passes) {
  ledger$passes[[what]] <- ledger$passes[[what]] + passes
}

# A mode is found once, however often it is used.
spend_mode <- function(ledger, at) {
  if (inherits(at, "tall_mode")) {
    ledger$passes[["mode"]] <- at$passes
  }
}

# What compile_spec() may ask.
run_context <- function(plan, control) {
  model <- plan$model
  is_whitened <- model_is_whitened(model)
  reference <- function(spec) {
    at <- spec$args$at %||% plan_mode(plan, control)
    theta <- mode_point(model, at, needs_chol = FALSE)$theta
    spend_mode(plan$ledger, at)
    theta
  }
  list(
    n_data = model$n_data,
    n_dim = model$n_dim,
    chains = control$chains,
    model = model,
    kernel = plan$kernel,
    gradient = plan$gradient,
    is_whitened = is_whitened,
    to_sampler = function(theta) drop(to_sampler(model, theta)),
    reference = reference,
    spend = function(what, passes) spend(plan$ledger, what, passes),
    estimator_reference = function() reference(plan$gradient),
    # in whitened coordinates, at their origin, Sigma is the identity
    weights = function(type) {
      if (type != "uniform") {
        spend(plan$ledger, "weights", 1)
      }
      if (is_whitened) {
        origin <- numeric(model$n_dim)
        weights <- model_weights(model, type, origin, NULL, control$cores)
        return(mix_weights(weights, type))
      }
      at <- plan$gradient$args$at %||% plan_mode(plan, control)
      spend_mode(plan$ledger, at)
      if (is.numeric(at) && type %in% chol_types) {
        spend(plan$ledger, "weights", 1) # the Hessian there
      }
      find_weights(model, at, type, cores = control$cores)
    }
  )
}

plan_mode <- function(plan, control) {
  mode <- plan$mode %||%
    model_mode(plan$model, control$cores, control$refresh)
  spend_mode(plan$ledger, mode)
  mode
}

# Starting points in sampler coordinates, n_dim x chains.
plan_init <- function(plan, init, control) {
  model <- plan$model
  if (!is.null(init)) {
    return(to_sampler(model, init))
  }
  move_inside(draw_init(plan, control), model, reflect = TRUE)
}

# From the normal approximation at the mode.
draw_init <- function(plan, control) {
  model <- plan$model
  if (!is.null(plan$start_draws)) {
    # of a surrogate, far from each other in time
    n <- ncol(plan$start_draws)
    at <- ceiling((seq_len(control$chains) - 0.5) / control$chains * n)
    return(plan$start_draws[, at, drop = FALSE])
  }
  normals <- function(chain) {
    function(n) .Call(ffi_rng_norm, core_seed(control), chain, stream_init, n)
  }
  draw <- model$traits$draw %||% function(normals) normals(model$n_dim)
  noise <- vapply(
    seq_len(control$chains) - 1L,
    function(chain) draw(normals(chain)),
    numeric(model$n_dim)
  )
  noise <- matrix(noise, model$n_dim)
  if (!is.null(model$traits$draw)) {
    return(noise) # a model that can be drawn from
  }
  if (model_is_whitened(model)) {
    return(noise)
  }
  mode <- plan_mode(plan, control)
  if (is.null(mode$chol)) {
    # given all others: no chain starts too far out
    return(as.double(mode$estimate) + (unname(mode$scale) %||% 0) * noise)
  }
  mode$estimate + backsolve(t(mode$chol), noise)
}

# As in `enum tb_stream`
stream_init <- 4L

# The seed as a count: R's may be negative.
core_seed <- function(control) {
  control$seed + 2^31
}
