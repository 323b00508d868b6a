# Modes by Newton's method.

# A step is halved until it rises, down to this share of it.
newton_least_step <- 1e-10

# options: see search_options().
mode_newton <- function(model, start, options, cores) {
  kinked <- kinked_coordinates(model)
  passes <- 0
  iterations <- 0
  round <- NULL
  trace <- NULL
  # which would lead away from where the mode is known to be
  subsample <- if (!options$is_near) newton_rows(model)
  stages <- c(if (!is.null(subsample)) "rows", "all")
  box <- mode_box(model)
  start <- box_inside(box, start)
  state <- list(theta = start)
  for (stage in stages) {
    index <- if (stage == "rows") subsample
    share <- if (stage == "rows") length(index) / model$n_data else 1
    each <- share * curvature_passes(model)
    if (length(kinked) > 0) {
      round <- kink_rounding(model, state$theta, kinked, index, cores)
      passes <- passes + share
    }
    state <- newton_stage(
      model,
      state$theta,
      index,
      round,
      cores,
      options,
      box,
      home = home_of(model, stage, options$is_near || !is.null(subsample))
    )
    steps <- state$steps
    trace <- rbind(
      trace,
      data.frame(
        iteration = iterations + seq_len(nrow(steps)),
        passes = passes + each * steps[, 1],
        # a subsample's log posterior is of another function: its curve ends
        log_posterior = if (stage == "all") steps[, 2] else NA_real_,
        gradient_norm = steps[, 3]
      )
    )
    passes <- passes + each * state$n_evaluation
    iterations <- iterations + state$iterations
    if (stage == "rows" && !state$is_quick) {
      # too few rows for a mode, or none of an outcome, which sends predictors
      # to where the Hessian of all rows is singular: let these decide
      state$theta <- start
    }
  }
  check_unending(model, state)
  if (length(kinked) > 0) {
    hessian <- proper_hessian(model, state$theta, cores = cores)
    passes <- passes + 1
  } else {
    hessian <- state$hessian
  }
  mode <- new_mode(
    model,
    new_expansion(state$theta, state$log_posterior, state$gradient, hessian),
    new_search("newton", passes, iterations, state$converged),
    box
  )
  mode$trace <- trace
  mode
}

# An evenly spaced tenth of the rows, when that is still plenty; no more than
# bring Newton's method near, since their numbers take memory.
newton_rows <- function(model) {
  n <- min(floor(model$n_data / 10), max(2e5, 1000 * model$n_dim))
  # a group says more than a row
  plenty <- if (model$traits$is_grouped) 1000 else 5000
  if (n < max(plenty, 50 * model$n_dim)) {
    return(NULL)
  }
  floor(seq(1, model$n_data, length.out = n))
}

# epsilon_j: the sd that the likelihood alone gives, kept finite by the prior.
kink_rounding <- function(model, theta, kinked, index, cores) {
  hessian <- proper_hessian(model, theta, index, cores)
  sd <- sqrt(diag(chol2inv(t(lower_chol(hessian, model)))))
  round <- numeric(model$n_dim)
  round[kinked] <- sd[kinked]
  round
}

# Where the search of all rows may begin anew, if it began where other rows had
# led it; NULL: nowhere else.
home_of <- function(model, stage, is_led) {
  if (stage == "all" && is_led && !model$traits$is_grouped) {
    box_inside(mode_box(model), model_start(model))
  }
}

# home: see home_of(). Where other rows sent predictors far, as of a level that
# has no event among them, the Hessian is next to nothing, and steps from there
# fall until they are next to nothing, too.
newton_stage <- function(
  model,
  theta,
  index,
  round,
  cores,
  options,
  box = mode_box(model),
  home = NULL
) {
  look <- function(theta) {
    curvature(model, theta, index, round, cores, needs_finite = FALSE)
  }
  here <- look(theta)
  n_evaluation <- 1
  steps <- NULL
  decrement <- previous <- Inf
  converged <- FALSE
  for (iteration in seq_len(options$max_iter)) {
    if (!is.finite(here$log_posterior)) {
      abort_no_mode(model, theta)
    }
    steps <- rbind(
      steps,
      c(n_evaluation, here$log_posterior, sqrt(sum(here$gradient^2)))
    )
    check_aux_stays(model, theta)
    step <- newton_step(model, theta, here, is.null(index), box)
    if (is.null(step)) {
      break
    }
    previous <- decrement
    decrement <- sum(step * here$gradient)
    done <- is_search_done(model, decrement, previous, here)
    if (is.null(index)) {
      check_separation(
        model,
        theta,
        step,
        here,
        previous,
        decrement,
        is_last = done
      )
    }
    if (done) {
      converged <- TRUE
      break
    }
    falls <- rise_tolerance(model, here, decrement)
    retreat <- if (iteration <= 3) home
    went <- walk_along(look, theta, step, here, falls, retreat, options)
    n_evaluation <- n_evaluation + went$n_evaluation
    if (is.null(went$here)) {
      converged <- decrement < 1e-6
      break
    }
    home <- if (!went$is_home) home
    theta <- went$theta
    here <- went$here
  }
  list(
    theta = theta,
    log_posterior = here$log_posterior,
    gradient = here$gradient,
    hessian = here$hessian,
    converged = converged,
    # quadratically, as where there is a maximum
    is_quick = converged && decrement < 0.05 * previous,
    iterations = iteration,
    n_evaluation = n_evaluation,
    steps = steps
  )
}

# list(theta, here, n_evaluation, is_home): a step that is halved until it
# rises, or falls no more than `falls`; here NULL: it does not. home: where a
# step leads whose whole length does not rise; NULL: nowhere else.
walk_along <- function(look, theta, step, here, falls, home, options) {
  scale <- 1
  n_evaluation <- 0
  while (scale >= options$least_step) {
    there <- look(theta + scale * step)
    n_evaluation <- n_evaluation + 1
    rise <- there$log_posterior - here$log_posterior
    if (is.finite(rise) && rise >= -falls) {
      return(list(
        theta = theta + scale * step,
        here = there,
        n_evaluation = n_evaluation,
        is_home = FALSE
      ))
    }
    if (!is.null(home)) {
      return(list(
        theta = home,
        here = look(home),
        n_evaluation = n_evaluation + 1,
        is_home = TRUE
      ))
    }
    scale <- scale / 2
  }
  list(n_evaluation = n_evaluation)
}

# Quadratic convergence, or nothing left to gain in double precision? Gradients
# of groups are those of integrals that few nodes do not reach: where Newton's
# method creeps at last, 1e-4 posterior sds are near enough.
is_search_done <- function(model, decrement, previous, here) {
  if (model$traits$is_grouped && decrement > 0.3 * previous) {
    return(abs(decrement) < 1e-8)
  }
  decrement < 1e-10 && (decrement < 0.05 * previous ||
    decrement < 1e-20 * (1 + abs(here$log_posterior)))
}

# How far a step may fall. Of groups gradients are those of the integral, not of
# the quadrature's sum, which few nodes leave some 1e-4 apart.
rise_tolerance <- function(model, here, decrement) {
  rounding <- 1e-12 * (1 + abs(here$log_posterior))
  is_near <- model$traits$is_grouped && decrement < 0.01
  rounding + if (is_near) max(decrement, 1e-3) else 0
}

# NULL: none to be had, because a subsample is singular where all rows are not.
newton_step <- function(model, theta, here, is_last, box) {
  if (!is.null(box)) {
    here$hessian <- split_sigma(damped_sigma(here, model), model)
    step <- box_step(box, theta, here)
    if (!is.null(step) || !is_last) {
      return(step)
    }
  }
  root <- step_root(here, model) %||% tryCatch(
    lower_chol(damped_sigma(here, model), model),
    tall_error = identity
  )
  if (!is.matrix(root) && any(prior_facts(model$prior, "has_tails"))) {
    root <- uphill_step_root(here, model) %||% root
  }
  if (is.matrix(root)) {
    step <- drop(backsolve(t(root), forwardsolve(root, here$gradient)))
    return(short_step(step, model))
  }
  if (is_last) {
    # rows that are separated leave the Hessian, and columns with them
    if (can_separate(model) && has_large_predictor(model, theta)) {
      abort_separation(model, numeric(model$n_dim), here)
    }
    rlang::cnd_signal(root)
  }
}

# Of standard deviations of groups, on the log scale: far below the mode the
# posterior is all but linear there.
short_step <- function(step, model, most = 1.5) {
  if (!model$traits$is_grouped) {
    return(step)
  }
  lambda <- model$n_coef + seq_along(model$groups$effects)
  step * min(1, most / max(abs(step[lambda])))
}

# Minus the Hessian for a step. Where sigma is far too large the curvature in
# log sigma is next to nothing, and a full step would be thousands long: with
# the slope added the step is below 1, and the same where the slope is 0. That
# of other parameters may be negative, too.
damped_sigma <- function(here, model) {
  hessian <- here$hessian
  for (d in aux_coordinates(model)) {
    slope <- here$gradient[[d]]
    hessian[d, d] <- if (is_quadratic_response(model)) {
      hessian[d, d] + max(0, -slope)
    } else {
      max(hessian[d, d], abs(slope))
    }
  }
  hessian
}

# Of responses that are not Gaussian, which have means of their own: a parameter
# that has gone so far comes to no end, as the size of a negative binomial does
# where counts vary less than Poisson ones and nothing holds it.
check_aux_stays <- function(model, theta, most = 35) {
  aux <- aux_coordinates(model)
  far <- abs(theta[aux] - model_start(model)[aux]) >= most
  if (!any(far) || is_quadratic_response(model)) {
    return(invisible())
  }
  d <- aux[far][[1]]
  grows <- theta[[d]] > 0
  abort_tall(
    "improper",
    c(
      "The posterior has no mode, and is not proper unless a prior holds it: its
       density rises without end as {.field {model$variables[[d]]}}
       {if (grows) 'grows' else 'falls to 0'}.",
      i = if (grows) {
        "Give a proper {.arg prior_aux} such as {.code prior_exponential()}, or
         take a response without this parameter."
      } else {
        "Columns that fit (almost) every response do that: drop some, or give a
         known {.field {model$variables[[d]]}}."
      }
    ),
    columns = model$variables[[d]]
  )
}

# Networks have a response of another make.
is_quadratic_response <- function(model) {
  !model$traits$has_columns || find_response(model$family)$is_quadratic
}

# The root for a step where minus the Hessian as it stands will do, cross terms
# of a parameter of the response and all; or where the response is not
# log-concave, and it is not positive definite, that of the same with its
# eigenvalues turned positive: a step uphill. NULL: see lower_chol().
step_root <- function(here, model) {
  is_grouped <- model$traits$is_grouped
  if (is_quadratic_response(model) && !is_grouped) {
    return(NULL)
  }
  hessian <- damped_sigma(here, model)
  scale <- sqrt(abs(diag(hessian)))
  if (!all(is.finite(hessian)) || !all(scale > 0)) {
    return(NULL)
  }
  scaled <- hessian / outer(scale, scale)
  # that of standard deviations of groups is not, whatever the response
  is_concave <- is_log_concave(model$family) && !is_grouped
  if (is_concave && model$traits$n_aux == 0) {
    return(NULL)
  }
  root <- tryCatch(chol(scaled), error = function(e) NULL)
  if (!is.null(root) && min(diag(root)) > 1e-6) {
    return(t(root) * scale)
  }
  if (!is_concave) turned_root(scaled, scale)
}

# Far from its centre a prior with heavy tails bends the other way, and may do
# so more than the rows: a step uphill. NULL: it is not that.
uphill_step_root <- function(here, model) {
  hessian <- damped_sigma(here, model)
  scale <- sqrt(abs(diag(hessian)))
  if (all(is.finite(hessian)) && all(scale > 0)) {
    turned_root(hessian / outer(scale, scale), scale)
  }
}

# Its eigenvalues turned positive; NULL: columns depend on each other.
turned_root <- function(scaled, scale) {
  parts <- eigen(scaled, symmetric = TRUE)
  size <- abs(parts$values)
  if (all(parts$values > -1e-10 * max(size))) {
    return(NULL)
  }
  size <- pmax(size, 1e-3 * max(size))
  turned <- parts$vectors %*% (size * t(parts$vectors))
  t(chol((turned + t(turned)) / 2)) * scale
}
