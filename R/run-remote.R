# A fit whose rows were passed over: what it keeps of its model, and how it goes
# on. Never all the rows.

# fit$rows: how rows are read, with what passes found of them: facts, a few rows
# to make models with, sums of a Gaussian response. fit$passed: list(found,
# pass, drawn, tied): what passes found of the posterior, how many there were,
# and for tall_append() the rows that the last one drew, see light_drawn(), or
# those that differ where alike ones count as one. The model of such a fit is
# hollow: it says what the posterior is, and has no rows.
keep_remote <- function(fit, model, keeps) {
  remote <- model$remote
  found <- keeps$found %||% remote$found
  rows <- rows_to_keep(remote$rows, keeps = TRUE)
  rows$facts <- found$facts
  rows$some <- remote$some
  rows$products <- remote$products[c("mean", "sums", "weight")]
  fit$rows <- rows
  fit$passed <- list(
    found = light_found(found),
    pass = remote$count$pass,
    drawn = if (!is_tied(remote$rows)) keeps$drawn,
    tied = light_tied(remote$rows)
  )
  fit$model <- hollow_model(model)
  fit
}

light_found <- function(found) {
  found[intersect(
    c("theta", "chol", "distance", "psi", "times", "passes", "facts",
      "n_missing", "is_whole", "surrogate",
      "phi", "phi_bar", "radius", "moves", "init"),
    names(found)
  )]
}

# list(tied, facts, n_missing); NULL: they are not tied, or take more than a fit
# keeps.
light_tied <- function(rows) {
  out <- if (is_tied(rows)) unclass(rows)[c("tied", "facts", "n_missing")]
  if (utils::object.size(out) <= setting("kept_bytes")) out
}

# Were its rows passed over?
is_remote_fit <- function(fit) {
  !is.null(fit$passed)
}

hollow_model <- function(model) {
  model$remote <- NULL
  # as it is after it was read from a file
  model$pointer <- unserialize(serialize(model$pointer, NULL))
  model$cache <- new.env(parent = emptyenv())
  model
}

# The model whose plan is plan_remote()'s, made again.
revive_remote <- function(fit) {
  rows <- fit$rows
  found <- fit$passed$found
  found$facts <- rows$facts
  own <- rows[c("some", "products")]
  rows[names(own)] <- NULL
  remote <- new_remote(
    fit$blueprint,
    rows,
    rows_drawn(rows, own$some, found$facts),
    found,
    own$products,
    fit$control,
    fit$passed$pass
  )
  model <- build_model(remote$blueprint, remote$some)
  model$n_data <- fit$n_data
  model$fingerprint <- fit$fingerprint
  model$remote <- remote
  model
}

# The model that a fit has after a run, or after it went on.
keep_model <- function(fit, plan) {
  if (is.null(plan$model$remote)) {
    fit$model <- plan$model
    fit
  } else {
    keep_remote(fit, plan$model, plan$keeps)
  }
}

# The plan of a fit that goes on for n_step steps of all chains: another pass
# draws rows for them.
remote_plan <- function(fit, n_step) {
  UseMethod("remote_plan")
}
