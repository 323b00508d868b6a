# The recipe for priors with hyperparameters, exact: these are drawn given the
# coefficients before each step; a fifth of the steps propose all coefficients
# given them, see with_moves(), the others are MALA's in whitened coordinates.
# All rows decide or, of a Gaussian response, sums over them.

# Of an iteration: on average two are proposals of all coefficients.
scaled_steps <- 10

plan_scaled <- function(model, control, mode, ledger) {
  sums <- sums_of_scaled(model, mode, control$cores)
  spend(ledger, "recipe", sums$passes %||% 0)
  stand_in <- sums$model
  moved <- with_moves(stand_in %||% model, mode, sums$given)
  moved <- whiten_model(moved, mode, in_place = FALSE)
  plan <- recipe_mala(moved, mode, list(), ledger)
  plan$model <- if (is.null(stand_in)) moved else model
  plan$recipe$size <- model$n_data
  plan$steps <- if (is.null(sums$given)) scaled_steps else given_sigma_steps
  if (!is.null(stand_in)) {
    plan$stand_in <- moved
  }
  plan$why <- paste0(
    "exact steps on ",
    if (is.null(stand_in)) "all rows," else "sums over all rows,",
    " since the prior has hyperparameters",
    if (!is.null(sums$given)) {
      ", which move given sigma alone, coefficients integrated out"
    }
  )
  plan
}

# Of an iteration where slices move the hyperparameters, and draws the
# coefficients, given sigma before it.
given_sigma_steps <- 3
