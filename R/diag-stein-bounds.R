# Stein's identity within the bounds of prior_uniform(). It rests on a density
# that vanishes where it ends; one that is cut off at a bound does so in
# coordinates that a bound is infinitely far away in. For theta between m - w
# and m + w, these are
#   phi = m + w atanh(s),  s = (theta - m) / w,
# in which theta stays what it is near the middle, where dphi / dtheta = 1, and
#   d log pi(phi) / dphi = (1 - s^2) d log pi(theta) / dtheta - 2 s / w.

# list(at, centre, half, functional) of the bounded coordinates; NULL where
# there are none. functional: of the intercept among them whose bounds are of
# the predictor at the covariates' means, list(at, others).
stein_bounds <- function(model) {
  at <- bounded_coordinates(model)
  if (length(at) == 0) {
    return(NULL)
  }
  box <- mode_box(model)
  list(
    at = at,
    centre = model$prior$location[at],
    half = model$prior$scale[at],
    functional = if (length(box$at) > 0) list(at = box$at, others = box$others)
  )
}

# Those of the model that gradients are from, or of the fit that the draws are
# of. With draws of some parameters alone, of these.
points_bounds <- function(points, gradient) {
  fit <- points$fit
  if (inherits(gradient, "tall_model")) {
    return(stein_bounds(gradient))
  }
  if (is.null(fit)) {
    return(NULL)
  }
  bounds <- stein_bounds(fit$model)
  kept <- fit$control$record
  if (is.null(bounds) || is.null(kept)) {
    return(bounds)
  }
  if (!is.null(bounds$functional)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept draws of some parameters, and the bounds of
         {.fn prior_uniform} on the intercept are of a sum of all.",
        i = "Run again and keep all."
      )
    )
  }
  among <- bounds$at %in% kept
  if (!any(among)) {
    return(NULL)
  }
  list(
    at = match(bounds$at[among], kept),
    centre = bounds$centre[among],
    half = bounds$half[among]
  )
}

# theta (points x parameters) in coordinates without bounds.
unbound_points <- function(theta, bounds, arg = "draws") {
  theta <- bounds_apart(theta, bounds$functional)
  for (k in seq_along(bounds$at)) {
    j <- bounds$at[[k]]
    s <- (theta[, j] - bounds$centre[[k]]) / bounds$half[[k]]
    beyond <- which(abs(s) > 1 + 1e-8)
    if (length(beyond) > 0) {
      where <- bounds$centre[[k]] + c(-1, 1) * bounds$half[[k]]
      abort_input(
        "{.arg {arg}} must lie within the bounds of the prior,
         [{format_number(where[[1]])}, {format_number(where[[2]])}] for column
         {j}, but row {beyond[[1]]} does not.",
        argument = arg,
        expected = where,
        value = theta[beyond[[1]], j]
      )
    }
    theta[, j] <- bounds$centre[[k]] + bounds$half[[k]] * atanh(inside_one(s))
  }
  bounds_together(theta, bounds$functional)
}

# The gradient there, from that with respect to theta.
unbound_gradients <- function(gradient, theta, bounds) {
  functional <- bounds$functional
  u <- bounds_apart(theta, functional)
  if (!is.null(functional)) {
    gradient <- gradient - outer(gradient[, functional$at], functional$others)
  }
  for (k in seq_along(bounds$at)) {
    j <- bounds$at[[k]]
    s <- inside_one((u[, j] - bounds$centre[[k]]) / bounds$half[[k]])
    gradient[, j] <- (1 - s^2) * gradient[, j] - 2 * s / bounds$half[[k]]
  }
  if (!is.null(functional)) {
    gradient <- gradient + outer(gradient[, functional$at], functional$others)
  }
  gradient
}

# Back from coordinates without bounds.
bound_points <- function(phi, bounds) {
  phi <- bounds_apart(phi, bounds$functional)
  for (k in seq_along(bounds$at)) {
    j <- bounds$at[[k]]
    z <- (phi[, j] - bounds$centre[[k]]) / bounds$half[[k]]
    phi[, j] <- bounds$centre[[k]] + bounds$half[[k]] * tanh(z)
  }
  bounds_together(phi, bounds$functional)
}

# The predictor at the covariates' means in place of the intercept, and back.
bounds_apart <- function(theta, functional) {
  if (!is.null(functional)) {
    shift <- drop(theta %*% functional$others)
    theta[, functional$at] <- theta[, functional$at] + shift
  }
  theta
}

bounds_together <- function(theta, functional) {
  if (!is.null(functional)) {
    shift <- drop(theta %*% functional$others)
    theta[, functional$at] <- theta[, functional$at] - shift
  }
  theta
}

# Rounding may take a point to a bound, which is infinitely far away.
inside_one <- function(s) {
  most <- 1 - .Machine$double.eps
  pmin(pmax(s, -most), most)
}
