# What a run of rows that are passed over will do, once a look has found a pilot
# of them. It is decided here, before the passes: none is made in vain.

too_many_rows <- "exact steps would look at too many rows"

# The pilot's mode, where passes begin; NULL: they need none. Where the rows
# must be where any can be had a condition of class tall_needs_rows says why. A
# pilot's posterior, of rows that each count for those behind them, is about
# that of all rows: so are the bounds and what is left of expansions, from which
# it is known which rows exact steps look at, and which are accepted.
plan_of_look <- function(blueprint, rows, pilot, control) {
  if (find_response(rows$family)$is_quadratic) {
    return(NULL)
  }
  model <- build_model(blueprint, pilot)
  mode <- tryCatch(
    pilot_mode(model, control),
    # all rows may have one, or say better what is wrong
    tall_error_improper = function(cnd) need_rows(NULL),
    tall_error_mode = function(cnd) need_rows(NULL),
    tall_error_singular = function(cnd) need_rows(NULL)
  )
  n_row <- rows$n_row
  if (has_hyper(model)) {
    return(look_at_scales(model, mode, pilot, control, n_row))
  }
  tried <- try_exact(model, mode, control, new_ledger(), n_row)
  if (!is.null(tried$why_not)) {
    # all that differ will be in memory, or all rows would take too much of it:
    # see plan_tied(), plan_awkward()
    is_large <- 8 * n_row * ncol(pilot$x) > setting("rebuilt_bytes")
    serves <- if (pilot$is_alike) {
      serve_ties(model, mode, pilot, control)
    } else {
      is_large && serve_awkward(model, mode, pilot, control)
    }
    if (serves) {
      return(list(
        theta = as.double(mode$estimate),
        why_not = tried$why_not,
        stands = pilot$stands
      ))
    }
    need_rows(tried$why_not)
  }
  n_step <- steps_of_run(control, tried$steps)
  found <- list(theta = as.double(mode$estimate), chol = mode$chol)
  n_drawn <- drawn_by_look(model, pilot$stands, found, n_step, control)
  if (!pilot$is_alike && n_drawn > most_ahead(n_row)) {
    need_rows(too_many_rows)
  }
  list(theta = found$theta, steps = tried$steps)
}

# The same under a prior with hyperparameters: where the surrogate of the pilot
# has its mean, `theta` of what rows see and `phi`, with its metric `chol`, the
# awkward rows' `cut`, and the `way` in which hyperparameters move.
look_at_scales <- function(model, mode, pilot, control, n_row) {
  tried <- try_scales(model, mode, control, new_ledger())
  # where a search in memory would begin
  ledger <- new_ledger()
  spend(ledger, "recipe", 1) # the look
  ledger$theta <- as.double(mode$estimate)
  ledger$stay <- tried$way$every_stay
  if (is.null(tried$plan)) {
    need_rows(tried$why_not, ledger)
  }
  own <- seq_len(n_seen(model))
  at <- tried$plan$gradient$args$at
  moves <- tried$plan$gradient$surrogate
  found <- list(
    theta = at[own],
    phi = at[-own],
    chol = moves$metric,
    stands = pilot$stands,
    steps = tried$plan$steps,
    way = tried$way
  )
  found$cut <- cut_of_pilot(model, found, control, phi = 0)
  n_step <- steps_of_run(control, found$steps)
  n_drawn <-
    drawn_by_look(model, pilot$stands, found, n_step, control, moves$phi)
  if (!pilot$is_alike && n_drawn > most_ahead(n_row)) {
    need_rows(too_many_rows, ledger)
  }
  found
}

# Will exact steps with awkward rows among those that differ pay? The pilot has
# most kinds of rows, if not all.
serve_ties <- function(model, mode, pilot, control) {
  if (pilot$is_every) {
    return(TRUE) # no pass is made for them
  }
  tried <- try_surrogate(model, mode, control, new_ledger(), is_tied = TRUE)
  !is.null(tried$plan)
}

# Has the pilot awkward rows, and not too many?
serve_awkward <- function(model, mode, pilot, control) {
  if (!model_info(model)$has_remainders ||
    model$n_dim > setting("recipe")$awkward_dim) {
    return(FALSE)
  }
  found <- list(
    theta = as.double(mode$estimate),
    chol = mode$chol,
    stands = pilot$stands
  )
  !is.null(cut_of_pilot(model, found, control))
}

# So many rows a pass is expected to draw for n_step steps: a row that is drawn
# more than once is one.
drawn_by_look <- function(
  model,
  stands,
  found,
  n_step,
  control,
  phi = 2 * (model$n_dim + 1)^1.5
) {
  bounds <- bounds_of_pilot(model, found, control, Inf)
  rate <- drawn_share * n_step * phi
  stands <- stands[bounds$rows]
  sum(stands * -expm1(-rate * bounds$psi / stands))
}
