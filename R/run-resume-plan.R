# The plan of a run that goes on: of the fit's own parts, on its own model.

# n_step: of all chains together.
resume_plan <- function(fit, model, n_step) {
  if (is_remote_fit(fit)) {
    if (!is.null(model)) {
      abort_input(
        "{.arg model} is not for a fit whose rows were passed over: it opens its
         source again.",
        argument = "model"
      )
    }
    return(remote_plan(fit, n_step))
  }
  if (is.null(model)) {
    model <- fit_model(fit)
  } else {
    check_model(model, may_sweep = TRUE)
    is_same <- identical(model$fingerprint, fit$fingerprint)
    if (!is_same && !is_mended(model, fit)) {
      abort_input(
        c(
          "{.arg model} must be the one that made the fit, not one with other
           data or another prior.",
          x = if (model$n_data != fit$n_data ||
            model$n_dim != length(fit$coordinates)) {
            "The fit has {count_noun(fit$n_data, 'observation')} and
             {count_noun(length(fit$coordinates), 'parameter')}, the model has
             {count_noun(model$n_data, 'observation')} and
             {count_noun(model$n_dim, 'parameter')}."
          }
        ),
        argument = "model"
      )
    }
  }
  ledger <- new_ledger()
  model <- restore_nodes(fit, temper_model(model, fit$lambda))
  if (fit$is_whitened && !model_is_whitened(model)) {
    # the mode's, or those that a pilot found
    model <- if (is.null(fit$whitening)) {
      whiten_model(model, fit$mode, in_place = FALSE)
    } else {
      frame_model(model, fit$whitening, in_place = FALSE)
    }
    spend(ledger, "recipe", 1)
  }
  plan <- new_plan(
    model,
    sampler_of(fit),
    mode = fit$mode,
    steps = fit$steps,
    escape = fit$escape,
    recipe = fit$recipe,
    ledger = ledger
  )
  plan$init <- matrix(0, model$n_dim, fit$control$chains)
  plan$start_chol <- fit$start_chol
  if (kernel_is_independent(fit$kernel)) {
    plan$sums <- independent_law(fit, model)
    spend(ledger, "recipe", plan$sums$passes)
  }
  if (!is.null(fit$stand_in)) {
    plan$stand_in <- resumed_stand_in(fit, model, ledger)
  }
  plan
}

# What moved in the model's place: sums over its rows, or rows that are alike as
# one.
resumed_stand_in <- function(fit, model, ledger) {
  cores <- fit$control$cores
  if (has_hyper(model)) {
    sums <- sums_of_scaled(model, cores)
    spend(ledger, "recipe", sums$passes)
    stand_in <- with_moves(sums$model, fit$mode, sums$given)
  } else if (has_sums(model)) {
    parts <- sums_parts(model, cores)
    spend(ledger, "recipe", parts$passes)
    stand_in <- sums_model(model, parts$sums, parts$fit)
  } else {
    spend(ledger, "recipe", 3)
    stand_in <- merge_rows(model)
  }
  frame_model(stand_in, fit$stand_in, FALSE)
}

# May the model take the place of the fit's, with functions or data that were
# mended?
is_mended <- function(model, fit) {
  !is.null(fit$halted) &&
    model$traits$runs_r &&
    identical(model$n_data, fit$n_data) &&
    identical(model$coordinates, fit$coordinates) &&
    identical(model$variables, fit$every_variable)
}

# What independent draws come from; of a fit of the prior alone it needs no
# rows.
independent_law <- function(fit, model) {
  UseMethod("independent_law")
}

#' @export
independent_law.default <- function(fit, model) {
  sums_posterior(model, fit$control$cores)
}

# Draws to come are appended to those that are there: of the same kinds.
check_keeps_alike <- function(fit, model) {
  if (!is.null(fit$draws) && is.null(fit$unconstrained) &&
    model_has_map(model)) {
    abort_no_unconstrained()
  }
}

abort_no_unconstrained <- function() {
  abort_tall(
    "stale",
    c(
      "The fit has no draws of the parameters as they were sampled, which are
       needed here.",
      x = "It was made by another version of tallbayes, which kept none.",
      i = "Its draws of the variables are as good as they were. Run again for
           the parameters."
    ),
    component = "unconstrained"
  )
}
