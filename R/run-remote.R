# A fit whose rows were passed over: what it keeps of its model, and how it goes
# on. Never the rows.

# fit$remote: list(rows, found, some, products, pass): how rows are read (but
# the source, which is fit$source), what passes found, a few rows to make models
# with, sums of a Gaussian response, passes so far. The model of such a fit is
# hollow: it says what the posterior is, and has no rows.
keep_remote <- function(fit, model, keeps) {
  remote <- model$remote
  fit$remote <- list(
    rows = remote$rows[setdiff(names(remote$rows), "source")],
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
    c("theta", "chol", "distance", "psi", "passes", "facts", "n_missing"),
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

is_remote_fit <- function(fit) {
  !is.null(fit$remote)
}

# The model whose plan is plan_remote()'s, made again. build(of, known): as in
# glm_of_source().
revive_remote <- function(fit, source, build) {
  kept <- fit$remote
  rows <- c(kept$rows, list(source = source))
  build_of <- function(known, of = NULL) {
    build(of %||% kept$some, known)
  }
  model <- build_of(kept$found$facts)
  model$n_data <- fit$n_data
  model$fingerprint <- fit$fingerprint
  count <- new.env(parent = emptyenv())
  count$pass <- kept$pass
  model$remote <- list(
    rows = rows,
    build = build_of,
    found = kept$found,
    n_missing = kept$found$n_missing,
    count = count,
    some = kept$some,
    products = kept$products
  )
  model
}

# The model that a fit has after it went on.
keep_model <- function(fit, plan) {
  if (is_remote_fit(fit)) {
    keep_remote(fit, plan$model, plan$keeps)
  } else {
    fit$model <- plan$model
    fit
  }
}

# The plan of a fit that goes on for n_step steps of all chains: another pass
# draws rows for them.
remote_plan <- function(fit, n_step) {
  UseMethod("remote_plan")
}
