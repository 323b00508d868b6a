# Likelihoods that rise without end: found, and told of which columns.

# May the likelihood rise without end? A Gaussian one has its maximum, whatever
# the predictor.
can_separate <- function(model) {
  !is.null(separation_facts(model)$does) && has_flat_prior(model)
}

# What columns do where it rises, and which predictors are large; NULL: its rows
# have none.
separation_facts <- function(model) {
  if (model$traits$has_classes) {
    return(list(
      does = find_response("categorical")$separation,
      limit = if (model$method == "probit") binomial_links[["probit"]] else 30
    ))
  }
  if (model$traits$has_columns) {
    entry <- find_response(model$family)
    list(does = entry$separation, limit = entry$links[[model$family$link]])
  }
}

# A likelihood without a maximum rises for ever along the steps of Newton's
# method, whose decrement falls by a constant factor (1/e) where it should fall
# quadratically. Neither that nor a large linear predictor is proof: a row far
# out has one wherever the maximum is. Far ahead along the step the log
# posterior is lower if there is a maximum.
#
# is_last: there is nothing left to climb in double precision, so that a slow
# decrement is proof.
check_separation <- function(
  model,
  theta,
  step,
  here,
  previous,
  decrement,
  is_last
) {
  slow <- is.finite(previous) && decrement > 0.1 * previous
  if (!slow || !can_separate(model) || !has_large_predictor(model, theta)) {
    return(invisible())
  }
  if (!is_last) {
    ahead <- model_evaluate(
      model,
      theta + 1e8 * step,
      needs_finite = FALSE
    )$log_density
    tolerance <- 1e-12 * (1 + abs(here$log_posterior))
    if (!isTRUE(ahead >= here$log_posterior - tolerance)) {
      return(invisible())
    }
  }
  abort_separation(model, step, here)
}

# Thresholds go away along a curve, far ahead on whose tangent is no ascent.
check_unending <- function(model, state) {
  if (
    model$traits$has_classes && !state$converged && can_separate(model) &&
      has_large_predictor(model, state$theta, share = 3)
  ) {
    abort_separation(model, numeric(model$n_dim), state)
  }
}

# share: of what is large.
has_large_predictor <- function(model, theta, share = 1) {
  largest <- .Call(ffi_model_largest_predictor, model$pointer, theta)
  is.finite(largest) && largest > share * separation_facts(model)$limit
}

# Which columns: those that the step moves the predictor by, or about which the
# data have ceased to say anything.
abort_separation <- function(model, step, here) {
  flat <- flat_coordinates(model)
  if (any(flat <= model$n_coef)) {
    # columns before thresholds, which follow them
    flat <- setdiff(flat, model$thresholds)
  }
  # in units of the predictor, whatever those of the columns
  unit <- sqrt(diag(curvature(model, model_start(model))$hessian))
  moves <- (abs(step) * unit)[flat]
  sd <- unit / sqrt(pmax(diag(here$hessian), .Machine$double.xmin))
  at <- flat[moves > 0.1 * max(moves) | sd[flat] > 1e3 * stats::median(sd)]
  if (length(at) == 0) {
    at <- flat[[which.max(sd[flat])]]
  }
  abort_columns_separate(model, at)
}

# Without a Hessian: columns of which the data have ceased to say anything, and
# along which the log posterior is no lower far ahead.
check_wide_separation <- function(model, theta, gradient, cores) {
  flat <- flat_coordinates(model)
  start <- curvature_diagonal(model, model_start(model), cores)
  here <- curvature_diagonal(model, theta, cores)
  at <- flat[start[flat] > 0 & here[flat] < 1e-6 * start[flat]]
  if (length(at) == 0) {
    return(invisible())
  }
  step <- replace(numeric(model$n_dim), at, 1e8 * sign(gradient[at]))
  density <- function(theta) {
    model_evaluate(model, theta, needs_finite = FALSE)$log_density
  }
  before <- density(theta)
  if (isTRUE(density(theta + step) >= before - 1e-12 * (1 + abs(before)))) {
    abort_columns_separate(model, at)
  }
}

abort_columns_separate <- function(model, at) {
  names <- quote_columns(model$variables[at])
  does <- separation_facts(model)$does
  abort_tall(
    "improper",
    c(
      "The posterior is not proper: the likelihood rises without end.",
      x = paste0(
        "{names} {cli::qty(length(at))}",
        does,
        ", and the prior is flat."
      ),
      i = "Give a proper prior such as {.code prior_normal()}."
    ),
    columns = model$variables[at]
  )
}

abort_no_mode <- function(model, theta) {
  abort_tall(
    "improper",
    c(
      "The log posterior is not finite at the starting point.",
      i = if (model$traits$has_columns) {
        "Give {.arg init}, or check the scale of the columns."
      } else {
        "Give an {.arg init} where it is."
      }
    ),
    parent = last_undefined(model)
  )
}

has_flat_prior <- function(model) {
  length(flat_coordinates(model)) > 0
}
