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
    blocks <- kept_blocks(masked, at)
    engine$sum <- function(theta, batch, weights, first) {
      withCallingHandlers(
        blocks(theta, weights, first) %||%
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

# The sum over a block of a pass over all rows, which comes again and again:
# what a tape cannot read of its rows may be constant on a tape of their own.
# NULL: of other batches, and beyond the first `most` blocks, as tapes take
# memory.
kept_blocks <- function(masked, at, most = 16) {
  kept <- list()
  function(theta, weights, first) {
    key <- paste(first, length(weights))
    if (first == 0 || (is.null(kept[[key]]) && length(kept) >= most)) {
      return(NULL)
    }
    if (is.null(kept[[key]])) {
      rows <- first - 1 + seq_along(weights)
      kept[[key]] <<- record(weighted_log_lik(masked, at, integer(), rows))
    }
    x <- as.double(unlist(theta, use.names = FALSE))
    run_tape(kept[[key]], c(x, weights), length(x))
  }
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
