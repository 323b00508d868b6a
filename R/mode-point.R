# What a search for a mode asks of a model at a point: where it starts, its
# curvature, and the roots of that.

# A model's own starting point may be random: then it is a function.
model_start <- function(model) {
  start <- model$traits$start
  if (is.function(start)) start() else start %||% numeric(model$n_dim)
}

# Log posterior, gradient and minus Hessian at theta. Where the model says that
# a value is not finite, there is an error, or a log posterior of NaN where
# `needs_finite` is FALSE.
curvature <- function(
  model,
  theta,
  index = NULL,
  round = NULL,
  cores = 1,
  needs_finite = TRUE
) {
  weight <- if (is.null(index)) 1 else model$n_data / length(index)
  weight <- weight * likelihood_scale(model)
  out <- .Call(
    ffi_model_curvature,
    model$pointer,
    as.double(theta),
    if (!is.null(index)) as.double(index),
    as.double(weight),
    if (!is.null(round)) as.double(round),
    as.integer(cores)
  )
  if (!needs_finite && status_name(out$status) == "nonfinite") {
    out$log_posterior <- NaN
  } else {
    abort_status(out$status)
  }
  out
}

# Passes over the rows for one Hessian.
curvature_passes <- function(model) {
  model$traits$curvature_passes
}

# Minus the Hessian of the log posterior at theta, where a Laplace prior, which
# has no curvature of its own, counts by its variance, as 1 / (2 s^2): it is
# what identifies columns that depend on each other.
proper_hessian <- function(model, theta, index = NULL, cores = 1) {
  hessian <- curvature(model, theta, index, cores = cores)$hessian
  kinked <- kinked_coordinates(model)
  at <- cbind(kinked, kinked)
  hessian[at] <- hessian[at] + prior_precision(model$prior)[kinked]
  hessian
}

# The diagonal of minus the Hessian of the log posterior at theta.
curvature_diagonal <- function(model, theta, cores = 1) {
  out <- .Call(
    ffi_model_diagonal,
    model$pointer,
    as.double(theta),
    as.double(likelihood_scale(model)),
    as.integer(cores)
  )
  if (is.integer(out)) {
    abort_status(out)
  }
  out
}

# 1 / sqrt of it, where priors without a curvature of their own count by their
# variance: of each parameter the sd given all others.
mode_scale <- function(model, theta, cores) {
  curved <- curvature_diagonal(model, theta, cores)
  without <- c(kinked_coordinates(model), bounded_coordinates(model))
  own <- setdiff(without, model$prior_functional$at + 1)
  curved[own] <- curved[own] + prior_precision(model$prior)[own]
  none <- which(!(curved > 0))
  if (length(none) > 0) {
    abort_no_scale(model, none)
  }
  1 / sqrt(curved)
}

abort_no_scale <- function(model, none) {
  names <- quote_columns(model$coordinates[none])
  abort_tall(
    "improper",
    c(
      "The posterior is not proper: columns say nothing of the response.",
      x = "{names} {cli::qty(length(none))}{?is/are} zero everywhere, or the
           likelihood is flat there, and the prior is flat.",
      i = "{cli::qty(length(none))}Drop {?it/them}, or give a proper prior such
           as {.code prior_normal()}."
    ),
    columns = model$variables[none]
  )
}

# With parameters of the response, such as log sigma, apart from the
# coefficients: models whiten it so. A Gaussian's cross terms are twice the
# prior's gradient at the mode, next to nothing, and those of others small, but
# for some; away from it minus the full Hessian need not be positive definite.
split_sigma <- function(hessian, model) {
  d <- aux_coordinates(model)
  hessian[d, -d] <- hessian[-d, d] <- 0
  hessian
}

# The inverse of minus the Hessian, with all that parameters of the response
# have to do with coefficients; NULL where it is not positive definite.
joint_covariance <- function(hessian) {
  scale <- 1 / sqrt(diag(hessian))
  root <- tryCatch(
    chol(hessian * outer(scale, scale)),
    error = function(e) NULL
  )
  if (!is.null(root) && min(diag(root)) > 1e-6) {
    chol2inv(root) * outer(scale, scale)
  }
}

abort_flat_aux <- function(model, at) {
  name <- model$variables[[at]]
  abort_tall(
    "improper",
    c(
      "The data do not tell {.field {name}}, and its prior does not hold it.",
      i = "Give a proper {.arg prior_aux} such as {.code prior_exponential()},
           or take a response without this parameter."
    ),
    columns = name
  )
}

# Lower Cholesky factor of minus the Hessian, or an error that names the
# columns that depend on each other, if there are columns. Scaled to unit
# diagonal first: what is singular must not depend on units.
lower_chol <- function(hessian, model) {
  hessian <- split_sigma(hessian, model)
  scale <- sqrt(pmax(diag(hessian), 0))
  if (all(is.finite(hessian)) && all(scale > 0)) {
    correlation <- hessian / outer(scale, scale)
    root <- suppressWarnings(chol(correlation, pivot = TRUE, tol = 1e-13))
    rank <- attr(root, "rank")
    if (rank == nrow(hessian)) {
      return(t(chol(correlation)) * scale)
    }
    dependent <- attr(root, "pivot")[-seq_len(rank)]
  } else {
    dependent <- which(!(scale > 0))
  }
  if (!model$traits$has_columns) {
    abort_no_curvature(hessian, model)
  }
  if (length(dependent) > 0 && all(dependent %in% aux_coordinates(model))) {
    abort_flat_aux(model, dependent[[1]])
  }
  names <- quote_columns(model$coordinates[dependent])
  # proper priors may count for nothing beside the likelihood
  is_proper <- !is.null(model$prior$kind) &&
    all(prior_facts(model$prior, "is_proper")[dependent])
  abort_tall(
    "improper",
    if (is_proper) {
      c(
        "The columns depend on each other too closely to compute with.",
        x = "{names} {cli::qty(length(dependent))}{?is a/are} linear
             combination{?/s} of the other columns to six digits or more, as is,
             beside an intercept, a column of values far from zero for their
             spread.",
        i = "{cli::qty(length(dependent))}Centre {?it/them}, for instance with
             {.fn scale}, drop {?it/them}, or give a narrower prior."
      )
    } else {
      c(
        "The posterior is not proper: the columns depend on each other.",
        x = "{names} {cli::qty(length(dependent))}{?is a/are} linear
             combination{?/s} of the other columns, or zero everywhere.",
        i = "{cli::qty(length(dependent))}Drop {?it/them}, or give a proper
             prior such as {.code prior_normal()}."
      )
    },
    columns = model$variables[dependent]
  )
}

# Minus the Hessian of a model without columns has no Cholesky factor.
abort_no_curvature <- function(hessian, model) {
  flat <- if (all(is.finite(hessian))) flat_direction(hessian)
  at <- flat$at %||% which(!is.finite(rowSums(hessian)))
  names <- quote_columns(model$coordinates[at])
  how <- if (is.null(flat)) {
    paste0("Its second derivatives are not finite in ", names, ".")
  } else if (flat$is_flat) {
    paste0("It is flat in ", names, if (length(at) > 1) " together", ".")
  } else {
    paste0("It curves upwards in ", names, if (length(at) > 1) " together", ".")
  }
  abort_tall(
    "mode",
    c(
      "The log posterior has no peak to start and scale by: its Hessian is not
       negative definite where the search for the mode looked.",
      x = escape_cli(how),
      i = "Parameters that the density knows only a combination of need a proper
           prior each; a search that came to the wrong place, another
           {.arg init}.",
      i = if (model$traits$is_grouped) {
        "Large standard deviations of groups need more {.arg nodes}, which
         {.fn model_groups} takes."
      },
      i = "Without a mode there is no recipe; an exact {.arg kernel} such as
           {.code kernel_hmc(step_size, steps, adapt = TRUE)} runs from an
           {.arg init}."
    ),
    coordinates = model$coordinates[at]
  )
}

# list(at, is_flat): the coordinates that make up the direction with the least
# curvature, and whether it is merely flat.
flat_direction <- function(hessian) {
  scale <- sqrt(abs(diag(hessian)))
  scale[scale == 0] <- 1
  parts <- eigen(hessian / outer(scale, scale), symmetric = TRUE)
  last <- length(parts$values)
  share <- abs(parts$vectors[, last])
  n_most <- sum(share > 0.3 * max(share))
  list(
    at = order(share, decreasing = TRUE)[seq_len(n_most)],
    is_flat = parts$values[[last]] > -1e-6
  )
}
