# Modes by L-BFGS, for models without a Hessian.

mode_lbfgs <- function(model, start, max_iter, has_curvature, cores) {
  passes <- 0
  memory <- list(theta = NULL)
  trace <- list()
  box <- mode_box(model)
  # strict: a line search that cannot step back from what is not finite
  evaluate <- function(theta, strict = TRUE) {
    if (!identical(theta, memory$theta)) {
      passes <<- passes + 1
      found <- model_evaluate(model, theta, needs_finite = FALSE)
      if (!strict && !is_finite_look(found)) {
        return(found)
      }
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
  about <- new_expansion(
    fit$par,
    final$log_density,
    here$gradient,
    if (has_curvature) proper_hessian(model, fit$par, cores = cores)
  )
  finish <- if (has_curvature && is.null(box)) {
    # what optim() calls the end may be left a little earlier
    least <- if (fit$convergence == 0) 1e-4 else 1e-8
    if (!is_peak(about, model, least)) {
      newton_finish(model, about, evaluate, floor(max_iter / 5), cores)
    }
  }
  about <- finish$about %||% about
  search <- new_search(
    "lbfgs",
    passes + lbfgs_passes(model, has_curvature, has_scales) +
      (finish$hessians %||% 0) * curvature_passes(model),
    unname(fit$counts[[1]]) + (finish$steps %||% 0),
    fit$convergence == 0
  )
  scale <- if (has_scales) mode_scale(model, fit$par, cores)
  mode <- new_mode(model, about, search, box, scale)
  mode$trace <- do.call(rbind, trace)
  mode$converged <-
    has_converged(mode, box_rest(box, about$theta, about$gradient))
  if (!mode$converged && model$traits$is_users) {
    check_cusps(model, about)
  }
  mode
}

# Newton's steps from where L-BFGS came to no end, as it does along a ridge:
# what a hierarchical model's scale does to all of its effects together.
# list(about, steps, hessians): the last point. evaluate(theta, strict): of the
# log posterior and its gradient. most: steps.
newton_finish <- function(model, about, evaluate, most, cores) {
  steps <- hessians <- 0
  while (steps < most) {
    root <- uphill_root(about$hessian, model)
    if (is.null(root)) {
      break
    }
    step <- drop(backsolve(t(root), forwardsolve(root, about$gradient)))
    there <- uphill(about, step, evaluate)
    if (is.null(there)) {
      break
    }
    steps <- steps + 1
    hessians <- hessians + 1
    hessian <- proper_hessian(model, there$theta, cores = cores)
    if (!all(is.finite(hessian))) {
      break
    }
    about <- new_expansion(
      there$theta,
      there$log_density,
      drop(there$gradient),
      hessian
    )
    if (is_peak(about, model, 1e-10)) {
      break
    }
  }
  list(about = about, steps = steps, hessians = hessians)
}

# Would a Newton step gain next to nothing, and is it a step to a peak?
is_peak <- function(about, model, least) {
  root <- tryCatch(
    lower_chol(about$hessian, model),
    tall_error = function(e) NULL
  )
  !is.null(root) && sum(forwardsolve(root, about$gradient)^2) / 2 < least
}

# A factor of minus the Hessian, with its eigenvalues turned positive where it
# is not positive definite; NULL: it is flat, or not finite.
uphill_root <- function(hessian, model) {
  scale <- sqrt(abs(diag(hessian)))
  if (!all(is.finite(hessian)) || !all(scale > 0)) {
    return(NULL)
  }
  tryCatch(
    lower_chol(hessian, model),
    tall_error = function(e) turned_root(hessian / outer(scale, scale), scale)
  )
}

# The first point of halved steps whose log posterior is no lower; NULL: none.
uphill <- function(about, step, evaluate, halvings = 10) {
  room <- 1e-12 * (1 + abs(about$log_posterior))
  for (k in seq_len(halvings) - 1) {
    theta <- about$theta + 2^-k * step
    there <- evaluate(theta, strict = FALSE)
    if (is_finite_look(there) &&
      there$log_density >= about$log_posterior - room) {
      return(c(list(theta = theta), there[c("log_density", "gradient")]))
    }
  }
}

is_finite_look <- function(found) {
  is.finite(found$log_density) && all_finite(found$gradient)
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
    options <- search_options(model, "newton", max_iter)
    newton_stage(model, start, NULL, NULL, cores, options)
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
  if (is_finite_look(found)) {
    return(invisible())
  }
  if (is.finite(found$log_density)) {
    abort_no_gradient(model, theta, found$gradient)
  }
  if (is_first) {
    abort_no_mode(model, theta)
  }
  abort_tall(
    "nonfinite",
    c(
      "The search for the mode came to a point where the log posterior is not
       finite.",
      i = "Give {.arg init} closer to the mode, or use
           {.code find_mode(method = \"adam\")}."
    ),
    status = "nonfinite",
    parent = last_undefined(model)
  )
}

# Where no step raises the log posterior, its slope may be the steeper the
# nearer the search comes, up on the one side and down on the other: at the
# mode there is none.
check_cusps <- function(model, about, most = 3) {
  steepest <- order(abs(about$gradient), decreasing = TRUE)
  for (j in utils::head(steepest, most)) {
    slope <- function(h) {
      theta <- about$theta
      theta[[j]] <- theta[[j]] + h * max(1, abs(theta[[j]]))
      drop(model_evaluate(model, theta, needs_finite = FALSE)$gradient)[[j]]
    }
    far <- c(slope(-1e-4), slope(1e-4))
    near <- c(slope(-1e-8), slope(1e-8))
    is_cusp <- far[[1]] > 0 && far[[2]] < 0 &&
      near[[1]] > 10 * far[[1]] && near[[2]] < 10 * far[[2]]
    if (isTRUE(is_cusp)) {
      gradient <- replace(about$gradient, j, Inf)
      abort_no_gradient(model, about$theta, gradient)
    }
  }
}

# The log posterior is finite there, but not its slope, as where a density has a
# corner without one: at the mode no run can start.
abort_no_gradient <- function(model, theta, gradient) {
  at <- which(!is.finite(gradient))
  names <- model$coordinates[at]
  shown <- quote_columns(names)
  first <- names[[1]]
  value <- theta[[at[[1]]]]
  abort_tall(
    "nonfinite",
    c(
      "The gradient of the log posterior is not finite in {shown} where the
       search for the mode ended.",
      x = "There {.code {first}} is {format_number(value)}.",
      i = "Write the density so that it has a slope there, or give an
           {.arg init} from which the search does not come by it."
    ),
    status = "nonfinite",
    coordinate = first,
    coordinates = names,
    value = value,
    parent = last_undefined(model)
  )
}
