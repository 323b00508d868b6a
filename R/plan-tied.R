# The plan of rows that are passed over and tied: the rows that differ are all
# in memory, each with the number of rows that it stands for, and exact steps,
# with awkward rows among them where the posterior is far from normal, need no
# other pass.

# The plan. Where such steps do not pay either, rows must be where any can be
# had: see plan_remote(). why: exact steps without awkward rows do not; NULL:
# the look says that they do.
plan_tied <- function(model, control, ledger, why) {
  own <- model_of_ties(model)
  start_mode(own, model$remote$found$theta, control$cores)
  mode <- tryCatch(
    model_mode(own, control$cores, 0),
    tall_error_mode = function(cnd) need_rows(why, ledger),
    tall_error_singular = function(cnd) need_rows(why, ledger)
  )
  # a pass over those that differ is a small part of one
  mode$passes <- ledger$passes[["mode"]] + mode$passes * pass_share(model)
  ledger$theta <- as.double(mode$estimate)
  tried <- if (is.null(why)) {
    try_exact(own, mode, control, new_ledger(), model$n_data)
  }
  if (is.null(tried$plan)) {
    why <- why %||% tried$why_not
    tried <- try_surrogate(own, mode, control, new_ledger(), is_tied = TRUE)
  }
  settle_tied(tried, own, model, control, ledger, why)
}

# The plan that was tried on `own`, the rows that differ, for those of `model`.
# why: it does not pay.
settle_tied <- function(tried, own, model, control, ledger, why) {
  if (is.null(tried$plan)) {
    need_rows(why, ledger)
  }
  spend(ledger, "recipe", pass_share(model))
  tell_seconds(tried$pace_seconds, control)
  plan <- tried$plan
  plan$ledger <- ledger
  plan$model <- as_tied_model(own, model)
  plan$recipe$n_differ <- own$n_data
  plan$why <- paste0(plan$why, told_ties(own$n_data))
  found <- model$remote$found
  found$is_whole <- TRUE
  plan$keeps <- list(found = found)
  plan
}

told_ties <- function(n_differ) {
  n <- count_noun(n_differ, "row")
  paste0("; alike ones count as one, ", n, " differ")
}

# Where no more numbers differ from 0 a sparse matrix is faster.
sparse_share <- 1 / 4

# The rows that differ as a model; n_data is their number.
model_of_ties <- function(model) {
  remote <- model$remote
  of <- remote$rows$tied[c("x", "y", "weights", "offset")]
  if (mean(of$x != 0) <= sparse_share) {
    colnames(of$x) <- remote$rows$design$columns
    of$x <- Matrix::Matrix(of$x, sparse = TRUE)
  }
  model_of_some(remote, of)
}

# The same for who asks of all rows.
as_tied_model <- function(own, model) {
  own$n_data <- model$n_data
  own$fingerprint <- model$fingerprint
  own$remote <- model$remote
  own
}

# Of a run that goes on: the fit's sampler, on rows that are tied again.
resume_tied <- function(model, fit) {
  ledger <- new_ledger()
  model$remote$rows <- tie_rows(model$remote$rows, fit$control)
  spend(ledger, "reference", 1)
  own <- as_tied_model(model_of_ties(model), model)
  plan <- new_plan(own, sampler_of(fit), ledger = ledger)
  plan$keeps <- list(found = model$remote$found)
  plan
}
