# The recipe for priors with hyperparameters, exact: these are drawn given the
# coefficients before each step; a fifth of the steps propose all coefficients
# given them, see with_moves(), the others are MALA's in whitened coordinates.
# All rows decide or, of a Gaussian response, sums over them.

# Of an iteration: on average two are proposals of all coefficients.
scaled_steps <- 10

plan_scaled <- function(model, control, mode, ledger) {
  stand_in <- sums_of_scaled(model, mode, control, ledger)
  moved <- with_moves(stand_in %||% model, mode)
  moved <- whiten_model(moved, mode, in_place = FALSE)
  plan <- recipe_mala(moved, mode, list(), ledger)
  plan$model <- if (is.null(stand_in)) moved else model
  plan$recipe$size <- model$n_data
  plan$steps <- scaled_steps
  if (!is.null(stand_in)) {
    plan$stand_in <- moved
  }
  plan$why <- paste(
    "exact steps on",
    if (is.null(stand_in)) "all rows," else "sums over all rows,",
    "since the prior has hyperparameters"
  )
  plan
}

# The model on sums over the rows; NULL where these are not enough.
sums_of_scaled <- function(model, mode, control, ledger) {
  own <- model$n_dim - n_hyper(model)
  held <- held_model(model, unname(mode$estimate)[-seq_len(own)])
  if (!has_sums(held)) {
    return(NULL)
  }
  parts <- sums_parts(held, control$cores)
  spend(ledger, "recipe", parts$passes)
  base <- sums_model(held, parts$sums, parts$fit)
  base$prior$mixture <- model$mixture
  scaled_model(base)
}
