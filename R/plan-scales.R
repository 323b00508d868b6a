# The recipe for priors with hyperparameters: exact steps from a few rows by
# transitions on a surrogate of coefficients and hyperparameters, whose rows are
# known by their expansions (spec section 16). What it cannot sample goes to
# plan_scaled(), which looks at all rows.

# list(plan, pace_seconds, why_not), as try_exact() has it: nothing is chosen by
# its seconds.
try_scales <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  n_coef <- model$n_dim - n_hyper(model)
  if (!model_info(model)$has_remainders) {
    return(list(why_not = no_remainders(model)))
  }
  if (n_coef > setting("most_whitened")) {
    return(list(why_not = "exact steps from a few rows are for fewer columns"))
  }
  awkward <- wide_rows(model, mode, control, ledger)
  found <- find_scales(model, mode, control, ledger, awkward)
  plan <- scales_plan(model, mode, found, ledger)
  report <- exact_pilot(plan, control)
  if (is.null(report)) {
    return(list(why_not = "an exact step has no distribution to propose from"))
  }
  judge_scales(plan, report, control)
}

# S: the rows that no others tell of, given the hyperparameters at the mode (see
# awkward_rows()); NULL: there are none, or of many columns too many rows are
# such, which is for their expansions.
wide_rows <- function(model, mode, control, ledger) {
  n_coef <- model$n_dim - n_hyper(model)
  own <- seq_len(n_coef)
  estimate <- unname(as.double(mode$estimate))
  given <- list(estimate = estimate[own], chol = unname(mode$chol)[own, own])
  held <- held_model(model, estimate[-own])
  # the rows alone, which nobody asks of their prior
  held$pointer <- model$base$pointer
  awkward <- awkward_rows(held, given, control, ledger)
  rows <- awkward$rows[awkward$which_wide]
  if (length(rows) > 0 && length(rows) <= model$n_data / 10) rows
}

# Where the rows are expanded and how the surrogate is moved: chains on it, each
# about the mean of the one before, the first about the mode, which look at no
# row. awkward: row numbers of S; fixed: where the rows are expanded all the
# same.
#
# at      all coordinates: the mean of the last chain
# moves   what the estimator has to know, see factors_set_surrogate(): `metric`,
#         L of L L^T = H + P, P the precisions of coefficients where their
#         scales are large (99 % quantiles in the chain): of z = L^T (beta - at)
#         the test takes the norm; `radius` and `phi`, of ||z|| in the chain
# beyond  share of the chain that is outside the radius
# init    the last chain
find_scales <- function(
  model,
  mode,
  control,
  ledger,
  awkward = NULL,
  fixed = NULL
) {
  own <- seq_len(model$n_dim - n_hyper(model))
  at <- fixed %||% unname(mode$estimate)
  found <- list(
    at = at,
    awkward = awkward,
    moves = new_moves(unname(mode$chol)[own, own]),
    init = matrix(at)
  )
  for (n_step in scales_pilots(length(own))) {
    draws <- scales_draws(model, mode, found, n_step, control, ledger)
    found$at <- fixed %||% rowMeans(draws)
    found$moves <- ball_of_scales(model, found$at, draws, control, ledger)
    found$init <- draws
  }
  found
}

# The plan of a kernel_smh() that was given: what its surrogate needs.
with_scales <- function(plan, control) {
  model <- plan$model
  kernel <- plan$kernel
  at <- plan$gradient$args$at
  mode <- if (inherits(at, "tall_mode")) {
    at
  } else {
    model_mode(model, control$cores, control$refresh)
  }
  spend_mode(plan$ledger, mode)
  fixed <- if (!is.null(at)) mode_point(model, at, needs_chol = FALSE)$theta
  awkward <- kernel$args$awkward
  if (length(awkward) > 0 && max(awkward) > model$n_data) {
    abort_awkward_rows(awkward, model$n_data)
  }
  found <- find_scales(model, mode, control, plan$ledger, awkward, fixed)
  scales_plan(model, mode, found, plan$ledger, kernel)
}

# Steps of the chains; of very many coefficients each takes long.
scales_pilots <- function(n_coef) {
  n_step <- setting("recipe")$scales_pilot
  ceiling(n_step * min(1, (300 / n_coef)^2 + 0.1))
}

ball_of_scales <- function(model, at, draws, control, ledger) {
  hessian <- likelihood_hessian(model, at, control$cores)
  spend(ledger, "recipe", 1)
  ball_of(model, at, draws, hessian)
}

# hessian: minus that of all but the priors that have hyperparameters.
ball_of <- function(model, at, draws, hessian) {
  own <- seq_len(n_seen(model))
  precision <- precision_at(model$mixture, draws[-own, , drop = FALSE])
  wide <- apply(precision, 1, stats::quantile, 0.01, names = FALSE)
  covered <- model$mixture$at
  diag(hessian)[covered] <- diag(hessian)[covered] + wide
  chol <- lower_chol(hessian, model)
  z <- crossprod(chol, draws[own, , drop = FALSE] - at[own])
  norm <- sqrt(colSums(z^2))
  new_moves(
    metric = chol,
    radius = stats::quantile(norm, 0.9, names = FALSE),
    phi = 2 * mean(norm^3)
  )
}

# Minus the Hessian of all but the priors that have hyperparameters, of the
# coordinates that rows see.
likelihood_hessian <- function(model, at, cores) {
  n_coef <- model$n_dim - n_hyper(model)
  phi <- at[-seq_len(n_coef)]
  held <- held_model(model, phi)
  hessian <- proper_hessian(held, at[seq_len(n_coef)], cores = cores)
  covered <- model$mixture$at
  diag(hessian)[covered] <- diag(hessian)[covered] -
    drop(precision_at(model$mixture, phi))
  hessian
}

scales_plan <- function(model, mode, found, ledger, kernel = NULL) {
  kernel <- kernel %||% kernel_smh(awkward = found$awkward)
  plan_of_moves(model, mode, kernel, found, ledger)
}

# Draws of the surrogate, parameters x n_step, after a fifth as many that are
# thrown away: no test, and no rows but S.
scales_draws <- function(model, mode, found, n_step, control, ledger) {
  kernel <- kernel_smh(
    proposal = hyper_proposal(rounds = 2),
    awkward = found$awkward
  )
  plan <- scales_plan(model, mode, found, ledger, kernel)
  plan$init <- found$init[, ncol(found$init), drop = FALSE]
  run_on_surrogate(plan, n_step, control)$unconstrained
}

# share: of the acceptance that is asked of such steps, as much is enough.
judge_scales <- function(plan, report, control, share = 1) {
  s <- setting("recipe")
  model <- plan$model
  n_coef <- model$n_dim - n_hyper(model)
  acceptance <- report$n_accept / report$n_propose
  rows <- (report$n_row - report$n_full * model$n_data) / report$n_propose
  if (acceptance < share * s$scales_acceptance) {
    why_not <- "exact steps from a few would be accepted with probability"
    return(list(why_not = paste(why_not, short(acceptance))))
  }
  steps <- exact_steps(acceptance)
  n_step <- control$warmup + (control$iter - control$warmup) * steps
  plan$steps <- steps
  plan$recipe <- list(size = rows, acceptance = acceptance)
  plan$why <- paste0(
    "exact steps: in a pilot they looked at ",
    short(rows),
    " rows each, whatever the hyperparameters, and ",
    short(100 * acceptance),
    "% were accepted"
  )
  list(
    plan = plan,
    rows = rows,
    acceptance = acceptance,
    pace_seconds = control$chains * n_step * report$pace
  )
}
