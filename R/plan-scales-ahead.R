# The plan of priors with hyperparameters where rows are only passed over (see
# ?tall_glm; the surrogate: src/gradients/surrogate.h). The look's pilot has
# told where its surrogate has its mean; a pass took the sums there, and brought
# the awkward rows. A chain on the surrogate of all rows, which looks at no
# other, finds its mean, the metric of the ball and how far it goes there; where
# that is far from where the sums are a pass takes them anew; then one draws the
# other rows ahead (src/passes/ahead.h).

# The plan. Where it does not pay, rows must be where any can be had: see
# plan_remote().
plan_scales_ahead <- function(model, control) {
  ledger <- new_ledger()
  found <- model$remote$found
  # the look, and where a database counted kinds of rows in vain
  spend(ledger, "recipe", 1 + (model$remote$rows$tried %||% 0))
  if (is_tied(model$remote$rows)) {
    return(plan_scales_tied(model, control, ledger))
  }
  spend(ledger, "mode", found$passes)
  found <- find_scales_ahead(model, control, ledger)
  # where a search in memory would begin
  ledger$theta <- c(found$theta, found$phi)
  n_step <- steps_of_run(control, max(steps_ahead, found$steps)) +
    setting("recipe")$exact_pilot
  drawn <- draw_awkward(model, control, ledger, n_step, found)
  share <- setting("recipe")$exact_pilot / drawn$n_step
  parts <- split_rows(drawn, share, control)
  plan_of <- function(order) {
    plan_of_scales(model, drawn, order, control, ledger)
  }
  pilot <- pilot_of_drawn(plan_of(parts$pilot), parts, plan_of)
  report <- exact_pilot(pilot, control)
  if (is.null(report)) {
    need_rows("an exact step has no distribution to propose from", ledger)
  }
  plan <- plan_of(pilot$rest())
  way <- drawn$found$way
  verdict <- judge_scales(plan, report, control, settled_share, way)
  verdict$plan %||% need_rows(verdict$why_not, ledger)
}

# What passes found, with `surrogate`: list(of, cut, theta, chol), the awkward
# rows and by which bounds they were chosen. theta, chol, radius: where rows are
# bounded, phi_bar: at how far from there; phi: hyperparameters; moves, init: of
# the chain.
find_scales_ahead <- function(model, control, ledger) {
  found <- model$remote$found
  s <- found[c("theta", "chol")]
  if (!is.null(found$cut)) {
    s[c("of", "cut")] <- keep_awkward(found$taken, found$cut, model)
  }
  found$taken <- NULL
  found$surrogate <- s
  some <- s$of
  if (NROW(some$y) == 0) {
    # rows that nobody looks at: a model has some
    some <- unclass(model$remote$some)[c("x", "y", "weights", "offset")]
  }
  own <- model_of_some(model$remote, some)
  own$n_data <- model$n_data
  sums <- found$sums
  found$sums <- NULL
  n_steps <- scales_pilots(n_seen(model))
  near <- sqrt(n_seen(model)) / 2
  for (attempt in 1:4) {
    theta <- found$theta
    draws <- ahead_draws(own, found, sums, max(n_steps), control, ledger)
    at <- rowMeans(draws)
    move <- at[seq_len(n_seen(model))] - found$theta
    found <- moved_scales(own, found, sums, draws)
    if (sqrt(sum(crossprod(found$chol, move)^2)) <= near) {
      break
    }
    spend(ledger, "mode", 1)
    count <- model$remote$count
    count$pass <- count$pass + 1
    pass <- count$pass + found$passes + 1
    taken <- sums_at(model$remote$rows, found$theta, control, pass)
    check_same_facts(found, taken, model$remote$rows)
    sums <- taken[c("log_lik", "gradient", "hessian")]
  }
  tell_heavy(model, own, theta, found$phi, sums, control, ledger)
  found
}

# Draws of the surrogate of all rows, by sums at found$theta; no test, and no
# rows but the awkward ones.
ahead_draws <- function(own, found, sums, n_step, control, ledger) {
  at <- c(found$theta, found$phi)
  moves <- found$moves %||%
    moves_of(found, new_moves(found$chol), chol2inv(t(found$chol)))
  mode <- mode_of_scales(own, found, sums, at, NULL, ledger)
  awkward <- as.double(seq_len(NROW(found$surrogate$of$y)))
  none <- list(total = 0, always = integer(), rows = integer(), psi = double())
  radius <- found$radius %||% remote_radius(n_seen(own))
  plan <- scales_ahead_plan(
    own,
    mode,
    sliced_kernel(
      hyper_proposal(rounds = 2),
      list(moves = moves, awkward = awkward)
    ),
    gradient_ahead(at, c(ahead_sums(sums, moves$metric, radius), none)),
    moves,
    ledger
  )
  plan$gradient$surrogate$untested <- 1
  pilot <- pilot_control(control, 1)
  pilot$keep <- "draws"
  init <- found$init %||% matrix(at)
  plan$init <- init[, ncol(init), drop = FALSE]
  segment <- run_segment(plan, pilot, new_stretch(ceiling(n_step / 5), n_step))
  abort_status(segment$reports[[1]]$status)
  t(matrix(segment$buffers$unconstrained, n_step))
}

# Along which awkward rows are moved by slices, see surrogate_moves().
moves_of <- function(found, moves, covariance, n_step = Inf) {
  wide <- if (NROW(found$surrogate$of$y) > 0) wide_columns(found$surrogate)
  if (length(wide) == 0) {
    return(moves)
  }
  with_lines(moves, covariance, wide, n_step, found$moves)
}

ahead_sums <- function(sums, chol, radius) {
  list(
    gradient = sums$gradient,
    hessian = sums$hessian,
    chol = chol,
    radius = radius
  )
}

scales_ahead_plan <- function(own, mode, kernel, gradient, moves, ledger) {
  gradient$surrogate <- moves
  new_plan(own, new_sampler(kernel, gradient), mode = mode, ledger = ledger)
}

# `found` after a chain: its mean, and the ball about that, see
# ball_of_scales(). A pass bounds rows in one ball, beyond which no step goes:
# it holds the whole chain, and more.
moved_scales <- function(own, found, sums, draws) {
  rows <- seq_len(n_seen(own))
  at <- rowMeans(draws)
  hessian <- sums$hessian + fixed_precision(own)
  moves <- ball_of(own, at, draws, hessian)
  spread <- stats::cov(t(draws[rows, , drop = FALSE]))
  moves <- moves_of(found, moves, spread, ncol(draws))
  away <- draws[rows, , drop = FALSE] - at[rows]
  moves$radius <- ball_radius(own, moves$metric, away)
  found$theta <- at[rows]
  found$phi <- at[-rows]
  found$chol <- moves$metric
  found$radius <- moves$radius
  found$phi_bar <- moves$phi
  found$moves <- moves
  found$init <- draws
  found["psi"] <- list(NULL)
  found
}

# The mode given the hyperparameters at `at`, by a step from there: see
# scaled_mode(). sd: of their coordinates, NULL: 1.
mode_of_scales <- function(model, found, sums, at, sd, ledger) {
  own <- seq_len(n_seen(model))
  phi <- at[-own]
  held <- held_model(model, phi)
  prior <- model_evaluate(held, at[own], "prior")
  gradient <- sums$gradient + prior$gradient[, 1]
  hessian <- sums$hessian + fixed_precision(model)
  covered <- model$mixture$at
  diag(hessian)[covered] <- diag(hessian)[covered] +
    drop(precision_at(model$mixture, phi))
  chol <- lower_chol(hessian, held)
  step <- drop(backsolve(t(chol), forwardsolve(chol, gradient)))
  whole <- diag(1 / pmax(sd %||% rep(1, length(at)), 1e-3)^2, model$n_dim)
  whole[own, own] <- hessian
  mode <- new_mode(
    model,
    new_expansion(
      c(at[own] + step, phi),
      sums$log_lik + prior$log_density[[1]] + sum(gradient * step) / 2,
      numeric(model$n_dim),
      whole
    ),
    new_search("passes", ledger$passes[["mode"]], iterations = found$passes)
  )
  mode$given <- model$mixture$coordinates
  mode
}

# order: rows of `drawn`, as the chains use them.
plan_of_scales <- function(model, drawn, order, control, ledger) {
  found <- drawn$found
  of <- found$surrogate$of
  n <- NROW(of$y)
  own <- model_of_both(model, of, drawn)
  at <- c(found$theta, found$phi)
  ahead <- c(
    ahead_sums(drawn$sums, found$chol, found$radius),
    list(
      total = drawn$total,
      always = n + which(drawn$count == 0),
      rows = n + order,
      psi = drawn$psi[order]
    )
  )
  sd <- apply(found$init, 1, stats::sd)
  mode <- mode_of_scales(own, found, drawn$sums, at, sd, ledger)
  plan <- scales_ahead_plan(
    own,
    mode,
    sliced_kernel(
      found$way$proposal,
      list(moves = found$moves, awkward = as.double(seq_len(n)))
    ),
    gradient_ahead(at, ahead),
    found$moves,
    ledger
  )
  plan$start_draws <- found$init
  found$init <- sparse_draws(found$init, control)
  plan$refill <- refill_awkward(plan_of_scales, model, control, ledger, found)
  plan$keeps <- list(found = found)
  plan
}

# As many as a fit has to keep: their spread.
sparse_draws <- function(draws, control) {
  n <- ncol(draws)
  draws[, unique(ceiling(seq_len(20) / 20 * n)), drop = FALSE]
}

# A run goes on with the awkward rows and the ball that it had.
resume_scales <- function(model, control, n_step) {
  ledger <- new_ledger()
  found <- model$remote$found
  drawn <- draw_awkward(model, control, ledger, n_step, found)
  parts <- split_rows(drawn, 0, control)
  plan_of_scales(model, drawn, parts$run, control, ledger)
}

# Rows that are tied: those that differ are all in memory.
plan_scales_tied <- function(model, control, ledger) {
  spend(ledger, "mode", 1)
  own <- model_of_ties(model)
  mode <- tryCatch(
    search_mode(own, cores = control$cores, refresh = 0),
    tall_error = function(cnd) need_rows(NULL, ledger)
  )
  if (would_stick(own, mode)) {
    need_rows(why_heavy, ledger)
  }
  tried <- try_scales(own, mode, control, new_ledger())
  settle_tied(tried, own, model, control, ledger, tried$why_not)
}
