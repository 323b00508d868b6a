# A fit goes on whose rows are passed over.

#' @export
remote_plan.default <- function(fit, n_step) {
  is_prior <- isTRUE(fit$prior_PD)
  if (!has_values(fit$rows) && is.null(fit$rows$products) && !is_prior) {
    abort_tall(
      "stale",
      c(
        "The fit did not keep its source, and new draws need another pass over
         the rows.",
        i = "Fit with {.code keep_data = TRUE} to keep what opens it."
      ),
      argument = "fit"
    )
  }
  model <- revive_remote(fit)
  control <- fit$control
  plan <- if (is_prior) {
    plan_prior(model, control)
  } else if (isTRUE(model$remote$found$is_whole)) {
    resume_tied(model, fit)
  } else if (!is.null(model$remote$products)) {
    resume_sums(model, fit)
  } else if (has_hyper(model)) {
    resume_scales(model, control, n_step)
  } else if (!is.null(model$remote$found$surrogate)) {
    resume_awkward(model, control, n_step)
  } else {
    resume_drawn(model, control, n_step)
  }
  plan$kernel <- fit$kernel
  plan$steps <- fit$steps
  plan$escape <- fit$escape
  plan$mode <- fit$mode
  plan$recipe <- fit$recipe
  plan$init <- matrix(0, model$n_dim, control$chains)
  plan$start_chol <- fit$start_chol
  plan
}

# Of a Gaussian response: sums that were kept, in the coordinates of the chains.
resume_sums <- function(model, fit) {
  ledger <- new_ledger()
  cores <- fit$control$cores
  plan <- new_plan(model, sampler_of(fit), ledger = ledger)
  if (kernel_is_independent(fit$kernel)) {
    plan$sums <- sums_posterior(model, cores)
  } else {
    own <- new_ledger()
    plan$stand_in <- resumed_stand_in(fit, model, own)
    # residuals may be looked at again
    spend(ledger, "recipe", own$passes[["recipe"]] - passes_of_products(model))
  }
  plan
}
