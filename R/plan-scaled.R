# The recipe for priors with hyperparameters where all rows decide or, of a
# Gaussian response, sums over them; exact. Hyperparameters are drawn given the
# coefficients before each step; a share of the steps are moves, see
# with_moves(), the others are MALA's in whitened coordinates.

# Of an iteration.
scaled_steps <- 10

# The same where each draws the coefficients anew given all else.
scaled_fresh_steps <- 3

plan_scaled <- function(model, control, mode, ledger) {
  moved <- whiten_model(with_moves(model, mode), mode, in_place = FALSE)
  plan <- recipe_mala(moved, mode, list(), ledger)
  plan$recipe$size <- model$n_data
  plan$steps <- scaled_steps
  plan$why <-
    "exact steps on all rows, since the prior has hyperparameters"
  plan
}

# The same on sums over the rows, wherever these lie.
plan_scaled_sums <- function(model, control) {
  ledger <- new_ledger()
  if (is_remote(model)) {
    spend(ledger, "recipe", 1) # the look
  }
  sums <- sums_of_scaled(model, control$cores)
  spend(ledger, "recipe", sums$passes)
  mode <- scaled_mode_of_sums(model, sums)
  if (is.null(mode) && is_remote(model)) {
    need_rows("the columns fit every response", ledger)
  }
  if (is.null(mode)) {
    mode <- model_mode(model, control$cores, control$refresh)
    spend_mode(ledger, mode)
  }
  # slices go through spikes and feet
  heavy <- if (is.null(sums$given)) {
    plan_heavy_sums(model, sums, mode, control, ledger)
  }
  if (!is.null(heavy)) {
    return(heavy)
  }
  moved <- with_moves(sums$model, mode, sums$given)
  moved <- whiten_model(moved, mode, in_place = FALSE)
  plan <- recipe_mala(moved, mode, list(), ledger)
  plan$model <- model
  plan$stand_in <- moved
  plan$recipe$size <- model$n_data
  # with slices each step has fresh coefficients
  plan$steps <- if (is.null(sums$given)) {
    scaled_steps
  } else if (is_ridge(model)) {
    1
  } else {
    scaled_fresh_steps
  }
  if (!is.null(sums$given)) {
    tell_seconds(slices_seconds(model, plan$steps, control), control)
  }
  plan$why <- paste0(
    "exact steps on sums over all rows, since the response is Gaussian and the",
    " prior has hyperparameters",
    if (!is.null(sums$given) && is_ridge(model)) {
      ", which move by slices with the coefficients integrated out"
    } else if (!is.null(sums$given)) {
      ", given which all coefficients are drawn anew"
    }
  )
  plan
}

# Of slices with the coefficients integrated out, each of some ten
# factorisations.
slices_seconds <- function(model, steps, control) {
  n <- n_seen(model)
  n_slice <- min(n_hyper(model), 3) + model$traits$n_aux
  each <- n_slice * (2.5e-10 * n^3 + 2e-6 * n)
  control$chains * control$iter * steps * each
}
