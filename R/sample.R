# sg_sample(): one run. A plan (what will run, in which coordinates) is made
# from the arguments, then executed in slices, then turned into a fit.

#' Sample from the posterior of tall data
#'
#' Runs a model x a gradient estimator x a subsampling scheme x a kernel x a
#' schedule. Without a kernel nothing needs tuning: the settings are found for
#' the model (see *The recipe*).
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param kernel (`tall_kernel` or `NULL`) How chains move: [kernel_sgld()],
#'   [kernel_sgbd()], [kernel_mala()] and others. It runs exactly as given, in
#'   the model's own coordinates.
#'   `NULL`: the recipe.
#' @param gradient (`tall_gradient` or `NULL`) How the gradient is estimated.
#'   `NULL`: [gradient_full()] for Metropolis kernels, else [gradient_cv()].
#' @param subsample (`tall_subsample` or `NULL`) How minibatches are drawn.
#'   `NULL`: Hessian-weighted minibatches of \eqn{\max(32, 2.5 (d - 1))} rows
#'   where the model can weigh its rows, else uniform ones.
#' @param schedule (`tall_schedule`) How the step size changes.
#' @param iter (whole number) Iterations of each chain, warmup included.
#' @param warmup (whole number) Iterations that are discarded.
#' @param thin (whole number) Keep every so manyth iteration.
#' @param chains (whole number) Chains.
#' @param cores (whole number) Threads: chains run side by side on one copy of
#'   the data. The draws do not depend on it. Models whose functions are R's
#'   ([model_custom()]) cannot run in threads: see *Chains on workers*.
#' @param seed (whole number or `NULL`) Seed of the random numbers. `NULL` takes
#'   one from R's generator, so that [set.seed()] alone makes a run
#'   reproducible.
#' @param init (numeric vector of n_dim values, n_dim x chains matrix, or
#'   `NULL`) Starting points, in the parameters (`log_sigma` for `sigma`).
#'   `NULL`: draws from the normal approximation at the mode. Names (of a
#'   matrix: of its rows), where there are any, say which parameter is which; so
#'   do those of vectors of step sizes and of reference points.
#' @param lambda (positive number or `NULL`) Inverse temperature of the Gibbs
#'   posterior, see below. `NULL`: the number of observations, which is Bayes.
#' @param keep (string vector) `"draws"`; with `"gradients"` the gradient at
#'   each draw as well, for later post-processing; or `"none"`: only running
#'   means and standard deviations, with `c("none", "covariance")` the
#'   covariance too.
#' @param variables (strings or `NULL`) Names of the variables whose draws (and
#'   gradients) are kept, where there are too many to keep all. `NULL`: all.
#' @param monitor (list or `NULL`) What to watch while the chains run, see
#'   [monitors].
#' @param refresh (number) 0 is silent; otherwise a progress bar appears on what
#'   takes longer than two seconds.
#' @param ... Unused: other arguments are refused, those of rstanarm and brms
#'   that have no place here with what does their work.
#'
#' @section Units: The gradient is that of the log posterior, summed over the
#' data. Step sizes are variances of the injected noise. `iter` counts warmup
#' and comes before thinning: (iter - warmup) / thin draws of each chain are
#' kept.
#'
#' @section Gibbs posteriors: With the mean loss \eqn{L_n(\theta) = -\frac1N
#' \sum_i \log p(y_i \mid \theta)}{L_n(theta) = -(1/N) sum_i log p(y_i | theta)}
#' and the prior \eqn{p}, what is sampled is \eqn{p_\lambda(\theta) \propto
#' \exp(-\lambda L_n(\theta)) p(\theta)} (Bieringer et al., 2023, eq. 1): the
#' likelihood to the power \eqn{\lambda / N}. All of a run follows it:
#' gradients, their noise, the mode and the recipe; so do [ksd()] and
#' [zero_variance()] of the fit.
#'
#' @section The recipe: For a generalised linear model: the mode
#' \eqn{\hat\theta} by Newton's method; coordinates \eqn{\phi = L^T (\theta -
#' \hat\theta)}{phi = L'(theta - theta-hat)} with \eqn{L L^T = -\nabla^2 \log
#' \pi(\hat\theta)}, in which the posterior is near standard normal;
#' Leimkuhler-Matthews dynamics with \eqn{h = 0.2}, control variates at the
#' mode, robust weights (see [subsampling_weights()]) and minibatches of \eqn{n =
#' \max(32, \lceil 2.5 (d - 1) \rceil)} rows. On top of these, rows that would
#' come more than once, and those whose curvature within 4 standard deviations of
#' the mode can be 0.4 or more of the posterior's, are in every minibatch. A pilot
#' run, the same whatever `seed` is, measures the gradient noise
#' \eqn{\tau_j^2}; where \eqn{h \tau_j^2 / 4} exceeds 2 percent, \eqn{n} grows
#' in proportion. Where minibatches would hold a quarter of the data or \eqn{N
#' \le 2000}, the full gradient is used with a Metropolis correction
#' ([kernel_mala()], adapted), which is exact. After
#' warmup one iteration is 25 steps of the dynamics, so that draws are nearly
#' independent. With more than 1,000 parameters only the scales are adjusted.
#'
#' The same goes for every model that knows its Hessian. Those that cannot
#' rewrite their rows are sampled behind a change of coordinates, with
#' minibatches of equally likely rows and without taking out the 2 percent of
#' noise.
#'
#' Where a step of 1, 2 or 3 posterior standard deviations from the mode, along a
#' parameter or along the rows that matter most, loses more than twice the log
#' density that it would on a normal posterior, [kernel_sgbd()] with \eqn{\sigma =
#' 0.2} (0.35 for [model_ica()]) takes the place of the Langevin steps: no
#' gradient can throw it out. An indicator whose rows all have the same outcome
#' does that, and so does an outlier: a row that weighs nothing at the mode can be
#' a wall one standard deviation away. A warning names the parameters, whose
#' `sd_bias` is then `NA`, and such rows. Barker dynamics in steps of 0.2 stay
#' within about 0.07 standard deviations of the mean at a wall, and 3 percent of
#' the standard deviation; where the mode is at the wall, as with a value of 10^6
#' among values of 1, no kernel knows the scale: bring columns to one unit first. The same happens, with a warning, where chains of
#' Langevin steps are thrown out after all: they are then sampled again. Models
#' that cannot weigh their rows are sampled exactly in both cases.
#'
#' The recipe makes a whitened copy of the model's data; [tall_glm()] works in
#' place.
#'
#' @section Chains on workers: R runs in one thread, so the chains of a
#' [model_custom()] run one after another, whatever `cores` is. They run side by
#' side, each as a future, when a plan of the package \pkg{future} says where:
#' `future::plan("multisession", workers = 4)` on this machine, others on a
#' cluster or by a scheduler. The draws are the same for the same `seed`. Data
#' and functions are sent to each worker, with what the functions find in the
#' workspace; what the functions assign elsewhere stays there. A worker finds
#' the gradients at the reference of control variates by itself: one more pass
#' over the data for each chain, which `passes` counts. An interrupt keeps the
#' draws that all chains have made, to the last twentieth of the run, where
#' workers are on this machine; else the call ends without a fit. Monitors run
#' in the workers; one that holds a model of compiled code keeps the chains
#' here. Short runs that look for settings ([sg_tune()], the recipe's pilot)
#' stay here, too.
#'
#' @return A [`tall_fit`][tall_fit].
#' @section Conditions: `tall_error_input` for arguments that are not as
#' described, `tall_error_worker` if a worker fails, `tall_error_unsupported`
#' for parts that cannot work together, `tall_error_improper` if the posterior
#' is not proper, `tall_error_mode` if a mode is needed that it does not have,
#' `tall_error_nonfinite` if a chain cannot start.
#' `tall_warning_prior` if a Laplace prior is narrow for a kernel that does not
#' accept or reject, see [priors]. A chain whose state stops being finite ends
#' with a `tall_warning_nonfinite` and leaves the draws until then; an interrupt
#' (Ctrl-C) gives a `tall_warning_interrupted` and all draws so far.
#' @seealso [sg_resume()] to go on; [tall_glm()] for formulas.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(model, seed = 1)
#' fit
#'
#' fit <- sg_sample(
#'   model,
#'   kernel_sgld(0.001),
#'   gradient = gradient_cv(),
#'   subsample = subsample_uniform(100),
#'   seed = 1
#' )
#' @export
sg_sample <- function(
  model,
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  iter = 2000,
  warmup = floor(iter / 2),
  thin = 1,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  lambda = NULL,
  keep = "draws",
  variables = NULL,
  monitor = NULL,
  refresh = getOption("tallbayes.refresh", 1),
  ...
) {
  check_no_foreign(..., .known = names(formals(sg_sample)))
  check_model(model)
  lambda <- check_lambda(lambda, model)
  call <- rlang::current_env()
  model <- temper_model(model, lambda)
  rlang::inject(sample_model(model, !!!run_arguments(call), call = call))
}

# The arguments of sample_model(), or of another function `f`, that its caller
# has under the same names in its frame, `call`: symbols, so that nothing is
# evaluated before it is checked.
run_arguments <- function(call, f = sample_model, except = NULL) {
  own <- c("model", "in_place", "call", except)
  names <- intersect(setdiff(names(formals(f)), own), ls(call))
  stats::setNames(rlang::syms(names), names)
}

# The arguments of sg_sample() that came through the `...` of a front end; `own`
# are those that it has or sets itself.
check_more <- function(more, own, call) {
  refuse_foreign(names(more), call)
  known <- setdiff(names(formals(sg_sample)), c("model", "...", own))
  check_dots_known(more, known, call)
  more
}

# sg_sample() for callers whose users typed something else (`call` is theirs).
# in_place: the model is ours, its rows may be rewritten.
sample_model <- function(
  model,
  kernel,
  gradient,
  subsample,
  schedule,
  iter,
  warmup,
  thin,
  chains,
  cores,
  seed,
  init,
  keep,
  refresh,
  monitor = NULL,
  in_place = FALSE,
  variables = NULL,
  call = caller_env()
) {
  started <- proc.time()[["elapsed"]]
  control <- check_control(
    iter,
    warmup,
    thin,
    chains,
    cores,
    seed,
    keep,
    refresh,
    call
  )
  check_members(kernel, gradient, subsample, schedule, call)
  control["record"] <- list(
    check_recorded(variables, model, control$keep, call)
  )
  control["monitor"] <- list(check_monitor(monitor, model, call))
  init <- check_init(init, model, control$chains, call)
  check_kernel_bounds(kernel, model, call)
  plan <- if (is.null(kernel)) {
    plan_recipe(model, gradient, subsample, schedule, control, in_place, call)
  } else {
    plan_explicit(model, kernel, gradient, subsample, schedule, control, call)
  }
  plan$init <- plan_init(plan, init, control, call)
  plan$kernel <- settle_kernel(plan, is.null(init), control, call)
  plan$start_chol <- start_chol(plan)
  prepared <- proc.time()[["elapsed"]]
  run <- function(plan) {
    run_segment(
      plan,
      control,
      n_warmup = control$warmup,
      n_sampling = (control$iter - control$warmup) * plan$steps,
      on_futures = use_futures(model, control),
      call = call
    )
  }
  segment <- run(plan)
  again <- recipe_again(plan, segment, control, call)
  if (!is.null(again)) {
    again[c("init", "start_chol")] <- plan[c("init", "start_chol")]
    plan <- again
    segment <- run(plan)
  }
  finished <- proc.time()[["elapsed"]]
  fit <- new_fit(
    plan,
    control,
    segment,
    time = c(preparation = prepared - started, sampling = finished - prepared)
  )
  warn_segment(fit, segment, call)
  warn_laplace(plan, model, call)
  seal_fit(fit)
}

# ---- arguments ---------------------------------------------------------------

check_control <- function(
  iter,
  warmup,
  thin,
  chains,
  cores,
  seed,
  keep,
  refresh,
  call
) {
  most <- count_limits$iter
  iter <- check_count(iter, most = most, arg = "iter", call = call)
  warmup <- check_count(
    warmup,
    min = 0,
    most = most,
    arg = "warmup",
    call = call
  )
  thin <- check_count(thin, most = most, arg = "thin", call = call)
  if (iter <= warmup) {
    abort_input(
      "{.arg iter} must be larger than {.arg warmup}, {format_count(warmup)},
       not {format_count(iter)}.",
      argument = "iter",
      expected = warmup + 1,
      value = iter,
      call = call
    )
  }
  if (iter - warmup < thin) {
    abort_input(
      "{.arg thin} must be at most {.code iter - warmup},
       {format_count(iter - warmup)}, not {format_count(thin)}.",
      argument = "thin",
      expected = iter - warmup,
      value = thin,
      call = call
    )
  }
  seed <- check_seed(seed, arg = "seed", call = call)
  if (is.null(seed)) {
    seed <- sample.int(.Machine$integer.max, 1)
  }
  list(
    iter = iter,
    warmup = warmup,
    thin = thin,
    chains = check_count(
      chains,
      most = count_limits$chains,
      arg = "chains",
      call = call
    ),
    cores = check_cores(cores, arg = "cores", call = call),
    seed = seed,
    keep = check_keep(keep, call),
    refresh = check_number(refresh, min = 0, arg = "refresh", call = call)
  )
}

check_keep <- function(keep, call) {
  if (!is.character(keep) || length(keep) == 0) {
    abort_expected(
      keep,
      "\"draws\", c(\"draws\", \"gradients\") or \"none\"",
      arg = "keep",
      call = call
    )
  }
  check_known(
    keep,
    c("draws", "gradients", "none", "covariance"),
    arg = "keep",
    call = call
  )
  if ("none" %in% keep && any(c("draws", "gradients") %in% keep)) {
    abort_input(
      "{.arg keep} cannot hold {.val none} together with {.val draws} or
       {.val gradients}.",
      argument = "keep",
      value = keep,
      call = call
    )
  }
  if ("none" %in% keep) keep else union("draws", setdiff(keep, "covariance"))
}

# The numbers of the variables whose draws are kept; NULL: all.
check_recorded <- function(variables, model, keep, call) {
  if (is.null(variables)) {
    return(NULL)
  }
  if (!is.character(variables) || length(variables) == 0 || anyNA(variables)) {
    abort_expected(
      variables,
      "names of variables or NULL",
      arg = "variables",
      call = call
    )
  }
  if ("none" %in% keep) {
    abort_input(
      "{.arg variables} must be {.code NULL} where {.arg keep} is {.val none}:
       there are no draws.",
      argument = "variables",
      value = variables,
      call = call
    )
  }
  if (length(model$variables) != length(model$coordinates)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has other variables than parameters: draws of
         some of them cannot be kept alone.",
        i = "Leave {.arg variables} out."
      ),
      argument = "variables",
      call = call
    )
  }
  check_known(
    variables,
    model$variables,
    "variable",
    arg = "variables",
    call = call
  )
  sort(unique(match(variables, model$variables)))
}

check_members <- function(kernel, gradient, subsample, schedule, call) {
  check_spec(
    kernel,
    "tall_kernel",
    "kernel_*()",
    allow_null = TRUE,
    arg = "kernel",
    call = call
  )
  check_spec(
    gradient,
    "tall_gradient",
    "gradient_*()",
    allow_null = TRUE,
    arg = "gradient",
    call = call
  )
  check_spec(
    subsample,
    "tall_subsample",
    "subsample_*()",
    allow_null = TRUE,
    arg = "subsample",
    call = call
  )
  check_spec(
    schedule,
    "tall_schedule",
    "schedule_*()",
    arg = "schedule",
    call = call
  )
}

# n_dim x chains, in the parameters; NULL stays.
check_init <- function(init, model, chains, call) {
  if (is.null(init)) {
    return(NULL)
  }
  if (is.matrix(init)) {
    check_matrix(
      init,
      n_row = model$n_dim,
      n_col = chains,
      arg = "init",
      call = call
    )
    at <- stats::setNames(seq_len(nrow(init)), rownames(init))
    at <- match_names(at, model$coordinates, arg = "init", call = call)
    init <- init[at, , drop = FALSE]
  } else {
    init <- check_numeric_vector(
      init,
      size = model$n_dim,
      arg = "init",
      call = call
    )
    init <- match_names(init, model$coordinates, call = call)
  }
  init <- matrix(as.double(init), model$n_dim, chains)
  check_inside(init, model, call)
  init
}

# ---- plans -------------------------------------------------------------------

# A momentum that was drawn for one theta is not the law's for the theta that a
# Gibbs draw leaves.
check_gibbs <- function(kernel, model, call) {
  if (is.null(model[["gibbs_every"]]) || !isTRUE(kernel$args$exact)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.code kernel_{kernel$name}(exact = TRUE)} cannot be exact where
       {.fn {model$label}} draws some parameters itself.",
      i = "Make the model with {.code gibbs_every = NULL}."
    ),
    argument = "gibbs_every",
    call = call
  )
}

# A kernel as given, in the model's own coordinates.
plan_explicit <- function(
  model,
  kernel,
  gradient,
  subsample,
  schedule,
  control,
  call
) {
  check_gibbs(kernel, model, call)
  check_schedule(kernel, schedule, call)
  check_collected(schedule, control, call)
  if (kernel_is_metropolis(kernel)) {
    check_has_density(kernel, model, call)
    gradient <- metropolis_gradient(kernel, gradient, subsample, call)
  }
  if (is.null(gradient)) {
    gradient <- if (!model_has_rows(model)) {
      gradient_full()
    } else {
      model[["gradient"]] %||% gradient_cv()
    }
  }
  if (!model_has_rows(model)) {
    check_rowless(model, gradient, subsample, call)
  }
  if (kernel_is_metropolis(kernel) && model_is_noisy(model)) {
    abort_tall(
      "unsupported",
      c(
        "{.code kernel_{kernel$name}()} needs exact gradients, and those of this
         {.fn model_density} have noise.",
        i = "Make the model with {.code gradient_noise = \"none\"}."
      ),
      call = call
    )
  }
  if (gradient_is_full(gradient)) {
    if (!is.null(subsample)) {
      abort_tall(
        "unsupported",
        c(
          "{.fn gradient_full} uses all rows: {.arg subsample} has no use.",
          i = "Leave {.arg subsample} out, or use {.fn gradient_cv}."
        ),
        call = call
      )
    }
  } else if (is.null(subsample)) {
    subsample <- default_subsample(model)
  }
  check_noise(model, kernel, gradient, subsample, call)
  new_plan(
    model,
    kernel,
    gradient,
    subsample,
    schedule,
    mode = if (inherits(gradient$args$at, "tall_mode")) gradient$args$at
  )
}

# What a kernel wants to know of the gradient noise, minibatches must show.
check_noise <- function(model, kernel, gradient, subsample, call) {
  if (!kernel_info(kernel)$uses_variance || gradient_is_full(gradient)) {
    return(invisible())
  }
  option <- noise_option(kernel)
  if (!gradient_info(gradient)$has_variance) {
    abort_tall(
      "unsupported",
      c(
        "{.code kernel_{kernel$name}({option$given})} needs the variance of the
         gradient noise, which {.code gradient_{gradient$name}()} does not
         report.",
        i = "Use {.fn gradient_cv}, or {.code {option$instead}}."
      ),
      argument = "gradient",
      call = call
    )
  }
  largest <- subsample_largest(subsample, model$n_data)
  if (largest > 1) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.code kernel_{kernel$name}({option$given})} needs the variance of the
       gradient noise, which a minibatch of one row does not show.",
      i = "Take minibatches of at least 2 rows, or {.code {option$instead}}."
    ),
    argument = "subsample",
    expected = 2,
    value = largest,
    call = call
  )
}

# The argument by which a kernel asks for that variance, and how not to.
noise_option <- function(kernel) {
  args <- kernel$args
  if (isTRUE(args$adaptive)) {
    list(given = "adaptive = TRUE", instead = "adaptive = FALSE")
  } else if (!is.null(args$noise_estimate)) {
    list(
      given = paste0("noise_estimate = \"", args$noise_estimate, "\""),
      instead = "noise_estimate = \"none\""
    )
  } else {
    list(
      given = paste0("variant = \"", args$variant, "\""),
      instead = "variant = \"vanilla\""
    )
  }
}

# Minibatches are drawn from rows, which this model does not have.
check_rowless <- function(model, gradient, subsample, call) {
  arg <- if (!gradient_is_full(gradient)) {
    "gradient"
  } else if (!is.null(subsample)) {
    "subsample"
  }
  if (!is.null(arg)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no rows to draw minibatches from.",
        i = "Leave {.arg {arg}} out: the gradient is {.fn gradient_full}'s."
      ),
      call = call
    )
  }
}

default_size <- function(model) {
  if (!is.null(model[["batch"]])) {
    return(min(model$n_data, model[["batch"]]))
  }
  min(model$n_data, max(32, ceiling(2.5 * (model$n_dim - 1))))
}

default_subsample <- function(model) {
  info <- model_info(model)
  if (info$has_weights && info$has_curvature) {
    subsample_weighted(default_size(model), "hessian")
  } else {
    subsample_uniform(default_size(model))
  }
}

# steps: kernel steps in an iteration after warmup. escape: a draw with a larger
# squared norm (in whitened coordinates) is far out. ledger: passes over the
# data before the chains move, by purpose.
new_plan <- function(
  model,
  kernel,
  gradient,
  subsample,
  schedule,
  mode = NULL,
  steps = 1,
  escape = 0,
  recipe = NULL,
  ledger = new_ledger()
) {
  list(
    model = model,
    kernel = kernel,
    gradient = gradient,
    subsample = subsample,
    schedule = schedule,
    mode = mode,
    steps = steps,
    escape = escape,
    recipe = recipe,
    ledger = ledger
  )
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

model_is_whitened <- function(model) {
  !is.null(model$whitening)
}

# What compile_spec() may ask.
run_context <- function(plan, control) {
  model <- plan$model
  is_whitened <- model_is_whitened(model)
  reference <- function(spec, call) {
    at <- spec$args$at %||% plan_mode(plan, control, call)
    theta <- mode_point(model, at, needs_chol = FALSE, call = call)$theta
    spend_mode(plan$ledger, at)
    theta
  }
  list(
    n_data = model$n_data,
    n_dim = model$n_dim,
    chains = control$chains,
    model = model,
    gradient = plan$gradient,
    is_whitened = is_whitened,
    to_sampler = function(theta) {
      drop(.Call(ffi_model_to_sampler, model$pointer, as.double(theta)))
    },
    reference = reference,
    spend = function(what, passes) spend(plan$ledger, what, passes),
    estimator_reference = function(call) reference(plan$gradient, call),
    # in whitened coordinates, at their origin, Sigma is the identity
    weights = function(type, call) {
      if (type != "uniform") {
        spend(plan$ledger, "weights", 1)
      }
      if (is_whitened) {
        origin <- numeric(model$n_dim)
        weights <- model_weights(model, type, origin, NULL, control$cores, call)
        return(mix_weights(weights, type))
      }
      at <- plan$gradient$args$at %||% plan_mode(plan, control, call)
      spend_mode(plan$ledger, at)
      if (is.numeric(at) && type %in% chol_types) {
        spend(plan$ledger, "weights", 1) # the Hessian there
      }
      find_weights(model, at, type, cores = control$cores, call = call)
    }
  )
}

plan_mode <- function(plan, control, call) {
  mode <- plan$mode %||%
    model_mode(plan$model, control$cores, control$refresh, call)
  spend_mode(plan$ledger, mode)
  mode
}

# Starting points in sampler coordinates, n_dim x chains.
plan_init <- function(plan, init, control, call) {
  model <- plan$model
  if (!is.null(init)) {
    return(.Call(ffi_model_to_sampler, model$pointer, init))
  }
  move_inside(draw_init(plan, control, call), model, reflect = TRUE)
}

# From the normal approximation at the mode.
draw_init <- function(plan, control, call) {
  model <- plan$model
  normals <- function(chain) {
    function(n) .Call(ffi_rng_norm, core_seed(control), chain, stream_init, n)
  }
  draw <- model$draw %||% function(normals) normals(model$n_dim)
  noise <- vapply(
    seq_len(control$chains) - 1L,
    function(chain) draw(normals(chain)),
    numeric(model$n_dim)
  )
  noise <- matrix(noise, model$n_dim)
  if (!is.null(model$draw)) {
    return(noise) # a model that can be drawn from
  }
  if (model_is_whitened(model)) {
    return(noise)
  }
  mode <- plan_mode(plan, control, call)
  if (is.null(mode$chol)) {
    return(matrix(mode$estimate, model$n_dim, control$chains))
  }
  mode$estimate + backsolve(t(mode$chol), noise)
}

# As in `enum tb_stream`
stream_init <- 4L

# The seed as a count: R's may be negative.
core_seed <- function(control) {
  control$seed + 2^31
}

# ---- running -----------------------------------------------------------------

# A stretch of a run: n_warmup and n_sampling kernel steps of every chain, from
# the plan's starting points or from saved states after n_before steps.
# points: where monitors are evaluated. n_first: the chains' numbers begin after
# it. on_futures: by workers, see futures.R.
run_segment <- function(
  plan,
  control,
  n_warmup,
  n_sampling,
  n_phase = 0,
  n_before = 0,
  saved = NULL,
  noise_every = noise_period(plan$model),
  monitor_state = list(),
  iterations_before = 0,
  points = monitor_points(
    control$monitor$every,
    plan,
    n_warmup,
    n_sampling,
    iterations_before
  ),
  n_first = 0,
  label = "Sampling",
  on_futures = FALSE,
  call = caller_env()
) {
  model <- plan$model
  n_every <- control$thin * plan$steps
  n_collected <-
    count_collected(plan$schedule, n_before + n_warmup, n_sampling)
  stretch <- list(
    n_warmup = as.double(n_warmup),
    n_sampling = as.double(n_sampling),
    n_phase = as.double(n_phase),
    n_every = n_every
  )
  n_keep <- floor((n_phase + n_collected) / n_every)
  job <- list(
    spec = c(
      compile_run(plan, control, noise_every, call),
      stretch,
      n_first = n_first
    ),
    saved = saved,
    sizes = buffer_sizes(model, control, plan, n_keep),
    monitor = control$monitor,
    monitor_state = monitor_state,
    points = points,
    cores = control$cores,
    refresh = control$refresh,
    label = label
  )
  started <- proc.time()[["elapsed"]]
  run <- if (on_futures) {
    run_on_futures(job, model, call)
  } else {
    run_chains(job, model, call)
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
    "seconds"
  )
  c(
    run[made],
    stretch,
    list(passes = plan$ledger$passes, n_before = n_before, n_keep = n_keep)
  )
}

# What the core has to know of a run, but for how long it is.
compile_run <- function(plan, control, noise_every, call) {
  context <- run_context(plan, control)
  model <- plan$model
  asks <- kernel_info(plan$kernel)
  bias_map <- if (!asks$is_metropolis) covariance_map(plan)
  # not of an even model: below zero its variables go against its coordinates
  has_bias <- !asks$is_metropolis && model$n_dim <= 1e4 &&
    !model_info(model)$is_even
  list(
    kernel = compile_spec(plan$kernel, context, call),
    gradient = compile_spec(plan$gradient, context, call),
    subsample = compile_spec(plan$subsample, context, call),
    schedule = compile_spec(plan$schedule, context, call),
    n_chain = control$chains,
    seed = core_seed(control),
    likelihood_scale = likelihood_scale(model),
    escape = plan$escape,
    n_escape_max = 10,
    n_bias_block = if (has_bias) bias_blocks else 0,
    n_bias_every = if (is.null(bias_map)) min(5, plan$steps) else 5,
    keeps_moments = as.double("none" %in% control$keep),
    keeps_covariance = as.double("covariance" %in% control$keep),
    n_noise_every = if (asks$has_tolerance) noise_every else 0,
    init = as.double(plan$init),
    bias_map = bias_map
  )
}

# The chains of a job, in threads. Their numbers begin after spec$n_first.
run_chains <- function(job, model, call) {
  spec <- job$spec
  buffers <- make_buffers(job$sizes, spec$n_chain, call)
  take_errors(model) # of other runs
  take_errors(model, "undefined")
  run <- .Call(
    ffi_run_create,
    model$pointer,
    spec,
    buffers,
    job$saved,
    as.integer(job$cores)
  )
  if (is.integer(run)) {
    if (status_name(run) == "argument" && !is.null(job$saved)) {
      abort_corrupt("`fit`", "saved", call = call)
    }
    abort_status(run, call = call)
  }
  on.exit(.Call(ffi_run_destroy, run))
  if (is.null(job$saved)) {
    check_started(.Call(ffi_run_status, run), model, spec$n_first, call)
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
  list(
    seconds = proc.time()[["elapsed"]] - started,
    buffers = buffers,
    reports = .Call(ffi_run_report, run),
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
check_started <- function(found, model, n_first, call) {
  failed <- which(found$status != 0)
  if (length(failed) == 0) {
    return(invisible())
  }
  report <- lapply(found, function(x) x[[failed[[1]]]])
  chain <- n_first + failed[[1]]
  if (status_name(report$status) != "nonfinite") {
    abort_status(report$status, chain = chain, call = call)
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
    parent = last_undefined(model),
    call = call
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

# What is kept of a chain: the sizes of the vectors that the core writes to,
# NULL where nothing is kept.
buffer_sizes <- function(model, control, plan, n_keep) {
  keeps_draws <- "draws" %in% control$keep
  info <- model_info(model)
  which <- control$record
  n_variable <- if (is.null(which)) info$n_natural else length(which)
  n_dim <- if (is.null(which)) info$n_dim else length(which)
  list(
    n_keep = as.double(n_keep),
    which = if (!is.null(which)) as.double(which),
    numbers = list(
      draw = if (keeps_draws) n_variable,
      unconstrained = if (keeps_draws && model_is_constrained(model)) n_dim,
      gradient = if ("gradients" %in% control$keep) n_dim,
      size = 1,
      weight = if (schedule_is_weighted(plan$schedule)) 1,
      log_posterior = if (kernel_has_density(plan$kernel)) 1
    )
  )
}

make_buffers <- function(sizes, n_chain, call = caller_env()) {
  n <- sizes$n_keep * n_chain
  all <- n * sum(unlist(sizes$numbers))
  vectors <- with_room(8 * all, call, {
    lapply(sizes$numbers, function(k) if (!is.null(k)) rep(NA_real_, n * k))
  })
  c(sizes[c("n_keep", "which")], vectors)
}

# What does nothing but allocate the memory of a run's draws.
with_room <- function(bytes, call, expr) {
  tryCatch(expr, error = function(e) {
    abort_tall(
      "memory",
      c(
        "There is not enough memory for the draws: they take
         {format_bytes(bytes)}.",
        i = "Keep fewer with {.arg thin} or {.arg variables}, or none with
             {.code keep = \"none\"}."
      ),
      bytes = bytes,
      parent = e,
      call = call
    )
  })
}

# Do the variables differ from the coordinates?
model_is_constrained <- function(model) {
  !identical(model$variables, model$coordinates)
}

# Advance in slices of 0.15 s, with a progress bar; a slice ends early where a
# stop is due. list(interrupted, errors, rejected): was it, by the user or by
# the file job$halt; the errors of a user's functions that stopped chains, named
# by them; the first that had proposals rejected.
advance_run <- function(run, job, stops, keeper, model) {
  n_step <- 16
  outcome <- 0L
  made <- 0
  due <- 1
  shows <- job$refresh > 0
  total <- .Call(ffi_run_progress, run)$total
  if (shows) {
    bar <- cli::cli_progress_bar(
      job$label,
      total = total,
      .envir = environment()
    )
  }
  interrupted <- FALSE
  errors <- list()
  rejected <- NULL
  tryCatch(
    while (outcome == 0L) {
      left <- stops$step[due] - made
      is_known <- length(left) == 1 && !is.na(left)
      slice <- if (is_known) min(n_step, left) else n_step
      keeper$look()
      before <- proc.time()[["elapsed"]]
      # an error of a user's function is caught by the core, which stops its
      # chain; the handler keeps R from printing it
      outcome <- tryCatch(
        .Call(ffi_run_advance, run, slice, as.integer(job$cores)),
        tall_error_callback = identity
      )
      elapsed <- proc.time()[["elapsed"]] - before
      found <- sort_errors(names(errors), run, model, job$spec$n_first)
      keeper$catch(names(found$errors))
      errors <- c(errors, found$errors)
      rejected <- rejected %||% found$rejected
      made <- made + slice
      if (identical(slice, left)) {
        stops$at(stops$step[[due]])
        due <- due + 1
      }
      if (shows) {
        cli::cli_progress_update(
          set = .Call(ffi_run_progress, run)$done,
          id = bar
        )
      }
      if (slice == n_step) {
        n_step <- next_slice(n_step, elapsed)
      }
      if (outcome == 0L && !is.null(job$halt) && file.exists(job$halt)) {
        interrupted <- TRUE
        break
      }
    },
    interrupt = function(condition) interrupted <<- TRUE
  )
  if (shows) {
    cli::cli_progress_done(id = bar)
  }
  list(
    interrupted = interrupted || outcome == 2L,
    errors = errors,
    rejected = rejected
  )
}

# Those of a slice. Each stopped a chain in it, in their order, except those of
# a Metropolis kernel, for which a density that is not a number is one of zero.
sort_errors <- function(stopped, run, model, n_first) {
  errors <- list()
  rejected <- NULL
  for (kind in c("errors", "undefined")) {
    new <- take_errors(model, kind)
    if (length(new) > 0) {
      status <- if (kind == "errors") "callback" else "nonfinite"
      chains <- as.character(n_first + chains_with(run, status))
      chains <- setdiff(chains, stopped)
      if (length(chains) == length(new)) {
        errors[chains] <- new
      } else if (kind == "undefined") {
        rejected <- new[[1]]
      }
    }
  }
  list(errors = errors, rejected = rejected)
}

chains_with <- function(run, status) {
  found <- .Call(ffi_run_status, run)$status
  which(vapply(found, status_name, "") == status)
}

# Steps for a slice of about 0.15 s, growing at most fourfold at a time.
next_slice <- function(n_step, elapsed, target = 0.15) {
  factor <- if (elapsed < target / 4) 4 else target / elapsed
  max(1, floor(n_step * factor))
}

# Say what went wrong in a segment whose draws are kept.
warn_segment <- function(fit, segment, call) {
  warn_sizes(fit$subsample, segment$buffers$size, fit$n_data, call)
  warn_monitor(segment$monitor$problems, call)
  if (!is.null(segment$rejected)) {
    warn_tall(
      "callback",
      c(
        "Proposals were rejected because a function of the model is not a number
         there.",
        i = "Where the density is zero, {.code -Inf} says so without a warning."
      ),
      parent = segment$rejected,
      call = call
    )
  }
  status <- vapply(segment$reports, function(r) r$status, 0)
  # what stopped those that wait to go on was said before
  failed <- setdiff(which(status != 0), segment$waiting)
  if (length(failed) > 0) {
    chain <- failed[[1]]
    report <- segment$reports[[chain]]
    at <- report_place(report, fit$model)
    never_moved <- report$n_step == 0
    signal <- if (all(status != 0) && never_moved) abort_status else warn_status
    error <- segment$errors[[as.character(chain)]]
    others <- if (length(failed) > 1) {
      paste0(
        length(failed),
        " of ",
        length(status),
        " chains stopped; the first is shown."
      )
    }
    signal(
      report$status,
      chain = chain,
      iteration = step_iteration(report$n_step + 1, segment, fit),
      coordinate = at$coordinate,
      value = at$value,
      detail = others,
      parent = error,
      hint = if (can_go_on(chain, segment)) {
        "Mend it and go on with {.code sg_resume(fit)}; where the model was made
         again, it is its {.arg model}."
      },
      call = call
    )
  }
  if (segment$interrupted) {
    kept <- if (is.null(fit$draws)) 0 else dim(fit$draws)[[1]]
    warn_tall(
      "interrupted",
      c(
        "The run was interrupted: {format_count(kept)} {cli::qty(kept)}draw{?s}
         of each chain {?was/were} made.",
        i = "Go on with {.code sg_resume(fit)}."
      ),
      call = call
    )
  }
}

# The iteration (counting from 1, warmup included) that a step belongs to.
step_iteration <- function(step, segment, fit) {
  sampled <- max(0, step - segment$n_warmup)
  before <- fit$progress$iterations_before
  if (sampled == 0) {
    return(before + step)
  }
  before + segment$n_warmup + ceiling(sampled / fit$steps)
}

# list(coordinate, value) at fault in a chain that stopped, NULL where there is
# none.
report_place <- function(report, model) {
  if (report$coordinate > model$n_dim) {
    return(list(coordinate = NULL, value = NULL))
  }
  list(
    coordinate = coordinate_name(model, report$coordinate),
    value = report$value
  )
}

coordinate_name <- function(model, index) {
  if (model_is_whitened(model)) {
    paste("whitened coordinate", index)
  } else {
    model$coordinates[[index]]
  }
}
