# The prior of a model coordinate by coordinate: `model$prior`, where it is from
# prior_resolve(). Other models have none of these coordinates.

# Which have a density that ends.
bounded_coordinates <- function(model) {
  which(prior_has_form(model$prior, "bounded"))
}

# Which have a density with a kink, and no curvature there.
kinked_coordinates <- function(model) {
  which(prior_has_form(model$prior, "kinked"))
}

# Which coefficients have a prior that is not proper.
flat_coordinates <- function(model) {
  flat <- which(!prior_facts(model$prior, "is_proper"))
  setdiff(flat, c(aux_coordinates(model), model$proper_coordinates))
}

# What the prior of coordinate j is on: theta_j, or the predictor at the mean of
# the covariates. theta: n_dim x K.
prior_argument <- function(model, j, theta) {
  functional <- model$prior_functional
  if (!is.null(functional) && functional$at + 1 == j) {
    drop(crossprod(functional$weights, theta))
  } else {
    theta[j, ]
  }
}

# What the priors of the first n coordinates are of, in rows: a coordinate, or
# of the intercept the predictor at the means of the columns.
places_of_priors <- function(model, n = n_seen(model)) {
  of <- diag(n)
  functional <- model$prior_functional
  if (!is.null(functional)) {
    of[functional$at + 1, ] <- functional$weights[seq_len(n)]
  }
  of
}
