# Automatic differentiation: what C calls while chains run.

# list(tape, prior_tape, sum, rows), as ffi_model_custom() takes them.
autodiff_engine <- function(functions, data, n_data, init, kind, plan, state) {
  at <- list(init = init, kind = kind, data = data, n_data = n_data)
  engine <- list()
  if (plan$log_lik == "tape") {
    masked <- mask_function(functions$log_lik)
    some <- spread_rows(n_data, 50)
    engine$tape <- list(
      inputs = as.double(plan$inputs - 1),
      make = keeping(state, "log_lik", init, function(n) {
        record(weighted_log_lik(masked, at, plan$inputs, rep_len(some, n)))
      })
    )
  }
  if (plan$log_lik == "retape") {
    masked <- mask_function(functions$log_lik)
    engine$sum <- function(theta, batch, weights) {
      withCallingHandlers(
        retaped_sum(masked, theta, batch, weights),
        error = function(e) custom_fail(state, "log_lik", theta, parent = e)
      )
    }
    engine$rows <- function(theta, batch) {
      withCallingHandlers(
        retaped_rows(masked, theta, batch),
        error = function(e) custom_fail(state, "log_lik", theta, parent = e)
      )
    }
  }
  if (plan$log_prior == "tape") {
    masked_prior <- mask_function(functions$log_prior)
    engine$prior_tape <- list(
      inputs = numeric(),
      make = keeping(state, "log_prior", init, function(n) {
        record(weighted_log_prior(masked_prior, at))
      })
    )
  }
  engine
}

# make(n), whose value is kept for as long as the function: C has pointers into
# it.
keeping <- function(state, name, init, make) {
  kept <- list()
  function(n) {
    made <- withCallingHandlers(
      make(n),
      error = function(e) custom_fail(state, name, init, parent = e)
    )
    kept[[length(kept) + 1]] <<- made
    made
  }
}

is_taped_model <- function(model) {
  isTRUE(model$plan$log_lik %in% c("tape", "retape"))
}
