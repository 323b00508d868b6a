# Draws from the prior alone: tall_glm(prior_PD = TRUE), as rstanarm has it.
# They are those of a Gaussian posterior from the sums of no rows; those of
# priors with hyperparameters are added to it.

# The model, of whose posterior the prior alone is kept.
from_prior_alone <- function(model) {
  model$prior_only <- TRUE
  model
}

plan_prior <- function(model, control) {
  own <- model
  if (has_hyper(model)) {
    phi <- model$mixture$start
    own <- with_prior_at(held_model(model, phi), model, phi)
  }
  check_prior_draws(own)
  # those that are of no column among them
  p <- own$n_coef <- n_seen(own) - own$traits$n_aux
  empty <- from_prior_alone(own)
  empty$n_data <- 0
  empty$remote <- list(products = list(
    mean = numeric(p + 1),
    sums = matrix(0, p + 1, p + 1),
    weight = 0
  ))
  if (model$traits$n_aux == 0) {
    # any scale will do
    empty$sigma <- 1
  }
  plan <- plan_draws(empty, control)
  plan$model <- model
  if (has_hyper(model)) {
    plan$sums$stand_in <- model
    plan$sums$complete <- prior_completion(model)
  }
  plan$why <- "draws from the prior, without the data (prior_PD)"
  plan
}

# What draws of independent normal coefficients lack of a model with
# hyperparameters: these, and the coefficients that they are of. A function of
# the draws, n_dim less hyperparameters x n, and a seed of their own. The
# predictor at the means, which the intercept's prior may be of, stays.
prior_completion <- function(model) {
  at <- model$mixture$at
  weights <- model$prior_functional$weights[at]
  intercept <- model$prior_functional$at + 1
  params <- model$mixture$params
  n_seen <- as.double(n_seen(model))
  function(theta, seed) {
    n <- as.double(ncol(theta))
    drawn <- .Call(ffi_mixture_simulate, params, n_seen, n, seed)
    beta <- drawn$beta[at, , drop = FALSE]
    if (!is.null(weights)) {
      moved <- drop(weights %*% (beta - theta[at, , drop = FALSE]))
      theta[intercept, ] <- theta[intercept, ] - moved
    }
    theta[at, ] <- beta
    rbind(theta, drawn$phi, deparse.level = 0)
  }
}

check_prior_draws <- function(model) {
  flat <- model$coordinates[flat_coordinates(model)]
  if (length(flat) > 0) {
    abort_input(
      c(
        "{.code prior_PD = TRUE} needs proper priors: that of {.val {flat[[1]]}}
         is flat.",
        i = "Give {.arg prior} and {.arg prior_intercept}."
      ),
      argument = "prior"
    )
  }
  if (!has_normal_coefficients(model)) {
    abort_tall(
      "unsupported",
      "{.code prior_PD = TRUE} draws from priors of coefficients that are
       normal, or have scales of their own.",
      argument = "prior_PD"
    )
  }
}
