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
  # with slices each step has fresh coefficients
  plan$steps <- if (is.null(sums$given)) scaled_steps else 1
  if (!is.null(stand_in)) {
    plan$stand_in <- moved
  }
  plan$why <- paste0(
    "exact steps on ",
    if (is.null(stand_in)) "all rows," else "sums over all rows,",
    " since the prior has hyperparameters",
    if (!is.null(sums$given)) {
      ", which move by slices with the coefficients integrated out"
    }
  )
  plan
}
