# Modes by L-BFGS, for models without a Hessian.

mode_lbfgs <- function(
  model,
  start,
  max_iter,
  has_curvature,
  cores,
  call = caller_env()
) {
  passes <- 0
  memory <- list(theta = NULL)
  trace <- list()
  box <- mode_box(model)
  evaluate <- function(theta) {
    if (!identical(theta, memory$theta)) {
      passes <<- passes + 1
      found <- model_evaluate(model, theta, needs_finite = FALSE, call = call)
      check_search(found, length(trace) == 0, model, theta, call)
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
  if (has_curvature) {
    # what a step is must not depend on the units of the columns
    at_start <- curvature(
      model,
      box_inside(box, start),
      cores = cores,
      needs_finite = FALSE,
      call = call
    )
    curved <- diag(at_start$hessian)
    known <- is.finite(curved) & curved > 0
    unit[known] <- 1 / sqrt(curved[known])
    passes <- curvature_passes(model)
  }
  fit <- lbfgs_maximise(evaluate, start, box, max_iter, unit)
  final <- evaluate(fit$par)
  is_far <- function() has_large_predictor(model, fit$par, share = 1 / 3)
  if (can_separate(model) && is_far()) {
    # Newton's method, from the start, knows a likelihood that rises without end
    newton_stage(model, start, NULL, NULL, max_iter, cores, call)
  }
  mode <- new_mode(
    model,
    estimate = fit$par,
    log_posterior = final$log_density,
    gradient = drop(final$gradient),
    minus_hessian = if (has_curvature) {
      proper_hessian(model, fit$par, cores = cores, call = call)
    },
    passes = passes + if (has_curvature) curvature_passes(model) else 0,
    iterations = unname(fit$counts[[1]]),
    converged = fit$convergence == 0,
    method = "lbfgs",
    box = box,
    call = call
  )
  if (!is.null(mode$chol)) {
    # a line search may fail at the last digits: what a Newton step would gain
    rest <- box_rest(box, fit$par, drop(final$gradient))
    decrement <- forwardsolve(mode$chol, rest)
    gain <- sum(decrement^2) / 2
    # nor is a small change of a density of thousands the end
    mode$converged <- gain < 1e-8 || (mode$converged && gain < 1e-4)
  }
  mode$trace <- do.call(rbind, trace)
  if (is.null(mode$chol)) {
    # the same where there is no Hessian: what is left of the gradient is
    # rounding
    most <- max(mode$trace$gradient_norm)
    mode$converged <- mode$converged || mode$gradient_norm < 1e-10 * most
  }
  mode
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
check_search <- function(found, is_first, model, theta, call) {
  if (is.finite(found$log_density) && all_finite(found$gradient)) {
    return(invisible())
  }
  if (is_first) {
    abort_no_mode(model, theta, call)
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
    parent = last_undefined(model),
    call = call
  )
}
