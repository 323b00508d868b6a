# Draws from the prior alone: tall_glm(prior_PD = TRUE), as rstanarm has it.
# They are those of a Gaussian posterior from the sums of no rows.

# The model, of whose posterior the prior alone is kept.
from_prior_alone <- function(model) {
  model$prior_only <- TRUE
  model
}

plan_prior <- function(model, control) {
  check_prior_draws(model)
  p <- model$n_coef
  empty <- from_prior_alone(model)
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
  plan$why <- "draws from the prior, without the data (prior_PD)"
  plan
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
      c(
        "{.code prior_PD = TRUE} draws from normal priors of coefficients.",
        i = if (has_hyper(model) && model$mixture$given != "prior_smooth") {
          "{.code simulate(prior_{model$mixture$kind}(), n_coef = )} draws from
           this one."
        }
      ),
      argument = "prior_PD"
    )
  }
}
