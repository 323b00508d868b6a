# Models with bounds: points inside.

# Which columns of theta are beyond the bounds.
is_outside <- function(model, theta) {
  out <- logical(ncol(theta))
  for (j in bounded_coordinates(model)) {
    away <- abs(prior_argument(model, j, theta) - model$prior$location[[j]])
    out <- out | away > model$prior$scale[[j]]
  }
  out
}

# Starting points that a user gave.
check_inside <- function(init, model) {
  for (j in bounded_coordinates(model)) {
    value <- prior_argument(model, j, init)
    centre <- model$prior$location[[j]]
    half <- model$prior$scale[[j]]
    bad <- which(abs(value - centre) > half)
    if (length(bad) > 0) {
      abort_input(
        c(
          "{.arg init} must lie within the bounds of the prior,
           [{format_number(centre - half)}, {format_number(centre + half)}] for
           {.code {model$coordinates[[j]]}}, not at
           {format_number(value[[bad[[1]]]])}.",
          x = "Chain {bad[[1]]} would start where the posterior is zero."
        ),
        argument = "init",
        value = init
      )
    }
  }
}

# Starting points of our own (sampler coordinates), moved within the bounds:
# to the nearest point, or first as in a mirror, which keeps their distance from
# a bound that the posterior leans against.
move_inside <- function(init, model, reflect = FALSE) {
  at <- bounded_coordinates(model)
  if (length(at) == 0) {
    return(init)
  }
  theta <- to_parameter(model, init)
  functional <- model$prior_functional
  # the functional last: it takes the other coordinates as they have become
  last <- functional$at + 1
  for (j in c(setdiff(at, last), intersect(at, last))) {
    value <- prior_argument(model, j, theta)
    reach <- 0.99 * model$prior$scale[[j]]
    centre <- model$prior$location[[j]]
    to <- value
    if (reflect) {
      half <- model$prior$scale[[j]]
      beyond <- pmax(abs(value - centre) - half, 0)
      to <- value - 2 * sign(value - centre) * beyond
      reach <- max(reach, (1 - 1e-9) * half)
    }
    to <- pmin(pmax(to, centre - reach), centre + reach)
    theta[j, ] <- theta[j, ] + to - value
  }
  to_sampler(model, theta)
}
