# Modes by L-BFGS, for models without a Hessian.

mode_lbfgs <- function(model, start, max_iter, has_curvature, cores) {
  passes <- 0
  memory <- list(theta = NULL)
  trace <- list()
  box <- mode_box(model)
  evaluate <- function(theta) {
    if (!identical(theta, memory$theta)) {
      passes <<- passes + 1
      found <- model_evaluate(model, theta, needs_finite = FALSE)
      check_search(found, length(trace) == 0, model, theta)
      memory <<- c(list(theta = theta), found)
      trace[[length(trace) + 1]] <<- data.frame(
        iteration = length(trace) + 1,
        passes = passes,
        log_posterior = memory$log_density,
        gradient_norm = sqrt(sum(memory$gradient^2))
      )
    }
    memory
  }
  unit <- rep(1, length(start))
  has_scales <- !has_curvature && model_info(model)$has_diagonal
  if (has_curvature || has_scales) {
    # what a step is must not depend on the units of the columns
    curved <- start_curvature(
      model,
      box_inside(box, start),
      has_curvature,
      cores
    )
    known <- is.finite(curved) & curved > 0
    unit[known] <- 1 / sqrt(curved[known])
    passes <- curvature_passes(model)
  }
  fit <- lbfgs_maximise(evaluate, start, box, max_iter, unit)
  final <- evaluate(fit$par)
  here <- list(theta = fit$par, gradient = drop(final$gradient))
  check_lbfgs_separation(model, start, here, has_scales, max_iter, cores)
  mode <- new_mode(
    model,
    new_expansion(
      fit$par,
      final$log_density,
      here$gradient,
      if (has_curvature) proper_hessian(model, fit$par, cores = cores)
    ),
    new_search(
      "lbfgs",
      passes + lbfgs_passes(model, has_curvature, has_scales),
      unname(fit$counts[[1]]),
      fit$convergence == 0
    ),
    box,
    if (has_scales) mode_scale(model, fit$par, cores)
  )
  mode$trace <- do.call(rbind, trace)
  mode$converged <- has_converged(mode, box_rest(box, fit$par, here$gradient))
  mode
}

# For what the mode is scaled by.
lbfgs_passes <- function(model, has_curvature, has_scales) {
  if (has_curvature) curvature_passes(model) else as.double(has_scales)
}

# A line search may fail at the last digits, and a small change of a density of
# thousands is not the end: what would a Newton step gain? Where that is not
# known, what is left of the gradient may be rounding. rest: the gradient within
# bounds.
has_converged <- function(mode, rest) {
  decrement <- if (!is.null(mode$chol)) {
    forwardsolve(mode$chol, rest)
  } else {
    mode$scale * rest
  }
  if (length(decrement) == 0) {
    most <- max(mode$trace$gradient_norm)
    return(mode$converged || mode$gradient_norm < 1e-10 * most)
  }
  gain <- sum(decrement^2) / 2
  gain < 1e-8 || (mode$converged && gain < 1e-4)
}

# Newton's method, from the start, knows a likelihood that rises without end;
# without a Hessian the scales tell.
check_lbfgs_separation <- function(
  model,
  start,
  here,
  has_scales,
  max_iter,
  cores
) {
  is_far <- can_separate(model) &&
    has_large_predictor(model, here$theta, share = 1 / 3)
  if (!is_far) {
    return(invisible())
  }
  if (has_scales) {
    check_wide_separation(model, here$theta, here$gradient, cores)
  } else {
    newton_stage(model, start, NULL, NULL, max_iter, cores)
  }
}

# Diagonal of minus the Hessian, which need not be had whole.
start_curvature <- function(model, start, has_curvature, cores) {
  if (!has_curvature) {
    return(curvature_diagonal(model, start, cores))
  }
  at_start <- curvature(model, start, cores = cores, needs_finite = FALSE)
  diag(at_start$hessian)
}

# What optim() returns, for the log density and gradient that evaluate() gives,
# within the box if there is one. unit: of each coordinate, about its sd.
lbfgs_maximise <- function(evaluate, start, box, max_iter, unit) {
  control <- list(maxit = max_iter, factr = 10, pgtol = 0, parscale = unit)
  if (is.null(box)) {
    return(stats::optim(
      start,
      fn = function(theta) -evaluate(theta)$log_density,
      gr = function(theta) -drop(evaluate(theta)$gradient),
      method = "L-BFGS-B",
      control = control
    ))
  }
  fit <- stats::optim(
    box_from(box, box_inside(box, start)),
    fn = function(u) -evaluate(box_to(box, u))$log_density,
    gr = function(u) {
      -box_gradient(box, drop(evaluate(box_to(box, u))$gradient))
    },
    method = "L-BFGS-B",
    lower = box$lower,
    upper = box$upper,
    control = control
  )
  fit$par <- box_to(box, fit$par)
  fit
}

# A line search cannot step back from a value that is not finite.
check_search <- function(found, is_first, model, theta) {
  if (is.finite(found$log_density) && all_finite(found$gradient)) {
    return(invisible())
  }
  if (is_first) {
    abort_no_mode(model, theta)
  }
  abort_tall(
    "nonfinite",
    c(
      "The search for the mode came to a point where the log posterior or its
       gradient is not finite.",
      i = "Give {.arg init} closer to the mode, or use
           {.code find_mode(method = \"adam\")}."
    ),
    status = "nonfinite",
    parent = last_undefined(model)
  )
}
