# A fit whose rows were passed over: what it keeps of its model, and how it goes
# on. Never the rows.

# fit$remote: list(rows, found, some, products, pass): how rows are read (but
# the source, which is fit$source), what passes found, a few rows to make models
# with, sums of a Gaussian response, passes so far. The model of such a fit is
# hollow: it says what the posterior is, and has no rows.
keep_remote <- function(fit, model, keeps) {
  remote <- model$remote
  fit$remote <- list(
    rows = kept_of_rows(remote$rows),
    found = light_found(keeps$found %||% remote$found),
    some = remote$some,
    products = remote$products[c("mean", "sums", "weight")],
    pass = remote$count$pass
  )
  fit$model <- hollow_model(model)
  fit
}

light_found <- function(found) {
  found[intersect(
    c("theta", "chol", "distance", "psi", "passes", "facts", "n_missing",
      "is_whole", "surrogate"),
    names(found)
  )]
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
  kept <- fit$remote
  rows <- kept_rows(fit)
  found <- kept$found
  remote <- new_remote(
    fit$blueprint,
    rows,
    rows_drawn(rows, kept$some, found$facts),
    found,
    kept$products,
    fit$control,
    kept$pass
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
