# The recipe for Gaussian responses: sums over the rows are enough.

plan_sums <- function(model, control) {
  plan <- if (has_normal_coefficients(model)) {
    plan_draws(model, control)
  } else {
    plan_quadratic(model, control)
  }
  if (is_remote(model)) {
    spend(plan$ledger, "recipe", 1) # the look
  }
  plan
}

# Normal or flat priors: independent draws.
plan_draws <- function(model, control) {
  ledger <- new_ledger()
  posterior <- sums_posterior(model, control$cores)
  spend(ledger, "recipe", posterior$passes)
  plan <- new_plan(
    model,
    new_sampler(kernel_of_draws(), gradient_full()),
    ledger = ledger
  )
  plan$sums <- posterior
  plan$why <- "sums over all rows, since the response is Gaussian"
  plan
}

# Others: MALA on the quadratic log likelihood, in whitened coordinates. Its
# steps cost the square of the number of columns, however many rows there are.
plan_quadratic <- function(model, control) {
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh)
  spend_mode(ledger, mode)
  parts <- sums_parts(model, control$cores)
  spend(ledger, "recipe", parts$passes)
  stand_in <- sums_model(model, parts$sums, parts$fit)
  stand_in <- whiten_model(stand_in, mode, in_place = FALSE)
  recipe <- list(kappa = laplace_kappa(model, mode))
  plan <- recipe_mala(stand_in, mode, recipe, ledger)
  plan$model <- model
  plan$stand_in <- stand_in
  plan$recipe$size <- model$n_data
  plan$why <- "steps on sums over all rows, since the response is Gaussian"
  plan
}
