# Modes within the bounds of prior_uniform().

# The box of the bounded coordinates, in coordinates u that it is a box in:
# those of the model, but the predictor at the covariates' means in place of an
# intercept whose prior is on that. NULL without bounds.
mode_box <- function(model) {
  bounded <- bounded_coordinates(model)
  if (length(bounded) == 0) {
    return(NULL)
  }
  lower <- rep(-Inf, model$n_dim)
  upper <- rep(Inf, model$n_dim)
  # rounding must not take a point at a bound outside
  reach <- (1 - 1e-9) * model$prior$scale[bounded]
  lower[bounded] <- model$prior$location[bounded] - reach
  upper[bounded] <- model$prior$location[bounded] + reach
  functional <- model$prior_functional
  at <- intersect(functional$at + 1, bounded)
  others <- if (length(at) > 0) {
    replace(functional$weights, at, 0)
  } else {
    numeric(model$n_dim)
  }
  list(
    bounded = bounded,
    lower = lower,
    upper = upper,
    half_width = model$prior$scale[bounded],
    precision = prior_precision(model$prior)[bounded],
    at = at,
    others = others
  )
}

# u of theta, also of differences.
box_from <- function(box, theta) {
  theta[box$at] <- theta[box$at] + sum(box$others * theta)
  theta
}

box_to <- function(box, u) {
  u[box$at] <- u[box$at] - sum(box$others * u)
  u
}

# A gradient, or minus a Hessian, with respect to u.
box_gradient <- function(box, gradient) {
  if (length(box$at) == 0) {
    return(gradient)
  }
  gradient - box$others * gradient[[box$at]]
}

box_hessian <- function(box, hessian) {
  if (length(box$at) == 0) {
    return(hessian)
  }
  column <- hessian[, box$at]
  cross <- outer(column, box$others)
  hessian - cross - t(cross) + column[[box$at]] * tcrossprod(box$others)
}

# The nearest point of the box.
box_inside <- function(box, theta) {
  if (is.null(box)) {
    return(theta)
  }
  u <- box_from(box, theta)
  box_to(box, pmin(pmax(u, box$lower), box$upper))
}

# Bounded coordinates that are at a bound which the gradient points out of.
box_active <- function(box, theta, gradient) {
  u <- box_from(box, theta)
  g <- box_gradient(box, gradient)
  margin <- replace(numeric(length(u)), box$bounded, 1e-8 * box$half_width)
  which((u <= box$lower + margin & g < 0) | (u >= box$upper - margin & g > 0))
}

# What is left of the gradient inside the box.
box_rest <- function(box, theta, gradient) {
  if (is.null(box)) {
    return(gradient)
  }
  replace(box_gradient(box, gradient), box_active(box, theta, gradient), 0)
}

# Newton's step, to the maximum of the quadratic approximation within the box.
box_step <- function(box, theta, here) {
  u <- box_from(box, theta)
  hessian <- box_hessian(box, here$hessian)
  # next to nothing, but where the likelihood is flat the bounds end the step
  at <- cbind(box$bounded, box$bounded)
  hessian[at] <- hessian[at] + 1e-8 / box$half_width^2
  step <- solve_within(
    hessian,
    box_gradient(box, here$gradient),
    box$lower - u,
    box$upper - u
  )
  if (!is.null(step)) box_to(box, step)
}

# The x between lower and upper where g'x - x'Hx / 2 is largest, by principal
# pivoting: all coordinates whose sign is wrong change sides, or, once that no
# longer makes them fewer, the last one, which ends (Murty, 1974). NULL if H is
# not positive definite.
solve_within <- function(hessian, g, lower, upper) {
  side <- integer(length(g)) # -1: at lower, 1: at upper
  x <- numeric(length(g))
  fewest <- Inf
  patience <- 3
  repeat {
    free <- side == 0
    x[side < 0] <- lower[side < 0]
    x[side > 0] <- upper[side > 0]
    if (any(free)) {
      root <- tryCatch(
        chol(hessian[free, free, drop = FALSE]),
        error = function(e) NULL
      )
      if (is.null(root)) {
        return(NULL)
      }
      pull <- g[free] -
        drop(hessian[free, !free, drop = FALSE] %*% x[!free])
      x[free] <- backsolve(root, backsolve(root, pull, transpose = TRUE))
    }
    rest <- g - drop(hessian %*% x)
    wrong <- (free & (x < lower | x > upper)) |
      (side < 0 & rest > 0) |
      (side > 0 & rest < 0)
    n_wrong <- sum(wrong)
    if (n_wrong == 0) {
      return(x)
    }
    if (n_wrong < fewest) {
      fewest <- n_wrong
      patience <- 3
    } else if (patience > 0) {
      patience <- patience - 1
    } else {
      wrong <- seq_along(g) == max(which(wrong))
    }
    out <- ifelse(x < lower, -1L, 1L)
    side[wrong] <- ifelse(free, out, 0L)[wrong]
  }
}

# Minus a Hessian whose inverse is a covariance to start and scale by: a uniform
# prior counts by its variance, a posterior that falls away from a bound as an
# exponential distribution of its slope there.
bounded_hessian <- function(box, hessian, theta, gradient) {
  if (is.null(box)) {
    return(hessian)
  }
  precision <- numeric(length(theta))
  precision[box$bounded] <- box$precision
  active <- box_active(box, theta, gradient)
  slope <- box_gradient(box, gradient)[active]
  precision[active] <- precision[active] + slope^2
  own <- setdiff(box$bounded, box$at)
  hessian[cbind(own, own)] <- hessian[cbind(own, own)] + precision[own]
  for (j in box$at) {
    of <- replace(box$others, j, 1)
    hessian <- hessian + precision[[j]] * tcrossprod(of)
  }
  hessian
}
