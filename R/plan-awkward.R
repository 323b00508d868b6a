# Exact steps with awkward rows where rows are only passed over (see ?tall_glm;
# the surrogate: src/gradients/surrogate.h). Three passes beside those that
# found the mode: one hands back the awkward rows S, which are those whose bound
# psi there (src/passes/ahead.h) is at least `cut`: that says of any row,
# wherever it turns up, whether it is one of them. Chains on the surrogate find
# where expansions are to be; a pass takes the sums there, and after another
# chain one draws the other rows ahead.

# The plan. Where it does not pay, rows must be where any can be had: see
# plan_remote(). why: exact steps without awkward rows do not.
plan_awkward <- function(model, control, ledger, why) {
  found <- find_awkward(model, control, ledger, why)
  n_step <- steps_of_run(control, steps_ahead) + setting("recipe")$exact_pilot
  drawn <- draw_awkward(model, control, ledger, n_step, found)
  share <- setting("recipe")$exact_pilot / drawn$n_step
  parts <- split_rows(drawn, share, control)
  pilot <- plan_of_awkward(model, drawn, parts$pilot, control, ledger)
  pilot <- pilot_of_drawn(pilot, parts, function(order) {
    plan_of_awkward(model, drawn, order, control, ledger)
  })
  report <- exact_pilot(pilot, control)
  if (is.null(report)) {
    need_rows(why, ledger)
  }
  n_awkward <- NROW(drawn$found$surrogate$of$y)
  plan <- plan_of_awkward(model, drawn, pilot$rest(), control, ledger)
  verdict <-
    judge_surrogate(plan, report, n_awkward, control, settled_share)
  verdict$plan %||% need_rows(verdict$why_not, ledger)
}

# What passes found, with `surrogate`: list(of, cut, theta, chol, moves, init),
# the awkward rows and by which bounds they were chosen, how its chain moves and
# draws of it; theta and chol are where the other rows are to be bounded.
find_awkward <- function(model, control, ledger, why) {
  found <- model$remote$found
  cut <- cut_of_pilot(model, found, control)
  if (is.null(cut)) {
    need_rows(why, ledger)
  }
  draw <- awkward_draw(model, control, phi_bar = 1 / cut)
  taken <- take_rows_ahead(model$remote$rows, found, draw, control)
  spend(ledger, "reference", 1)
  check_same_facts(found, taken, model$remote$rows)
  ledger$theta <- newton_from(found, taken$sums, model)$theta
  s <- list(theta = found$theta, chol = found$chol)
  s[c("of", "cut")] <- keep_awkward(taken, cut, model)
  wide <- wide_columns(s)
  own <- model_of_some(model$remote, s$of)
  own$n_data <- model$n_data # passes are of all rows
  found$surrogate <- s
  found$surrogate$moves <- surrogate_moves(chol2inv(t(found$chol)), wide)
  n_steps <- setting("recipe")$awkward_pilot
  for (k in seq_along(n_steps)) {
    sums <- if (k == 1) {
      taken$sums
    } else {
      spend(ledger, "reference", 1)
      model$remote$count$pass <- model$remote$count$pass + 1
      pass <- model$remote$count$pass + found$passes + 1
      sums_at(model$remote$rows, found$theta, control, pass)
    }
    of <- surrogate_of(found, sums)
    mode <- mode_of_sums(own, model, found, sums)
    draws <- surrogate_draws(own, mode, of, n_steps[[k]], control, ledger)
    found$theta <- rowMeans(draws)
    found$surrogate$init <- draws
    found$surrogate$moves <- surrogate_moves(
      stats::cov(t(draws)),
      wide,
      n_steps[[k]],
      found$surrogate$moves
    )
  }
  found$chol <- found$surrogate$moves$metric
  found$psi <- NULL
  found
}

# As chunk_draw() takes it.
awkward_draw <- function(model, control, phi_bar, rate = 0, radius = NULL) {
  count <- model$remote$count
  count$pass <- count$pass + 1
  list(
    radius = radius %||% remote_radius(n_seen(model)),
    phi_bar = phi_bar,
    rate = rate,
    scale = 1,
    seed = core_seed(control),
    pass = count$pass,
    first = 0
  )
}

# The bound from which on rows are awkward, as far as the pilot tells: as many
# as pay, of those that awkward_rows() would take. NULL: there are none, or too
# many that are alike. It lies between the bounds of two rows of the pilot, far
# from both where it can. phi: rows that it makes certain to be looked at are
# awkward, too; 0: those alone that no others tell of.
cut_of_pilot <- function(
  model,
  found,
  control,
  phi = 2 * (model$n_dim + 1)^1.5
) {
  seen <- bounds_of_pilot(model, found, control, Inf)
  stands <- found$stands[seen$rows]
  psi <- seen$psi / stands
  is_awkward <- !is.finite(psi) | phi * psi > 1 |
    seen$norm >= setting("recipe")$awkward_sd
  order <- order(psi, decreasing = TRUE)
  n_row <- cumsum(stands[order])
  last <- max(0, which(is_awkward[order]))
  last <- min(last, sum(n_row <= most_awkward_of(n_seen(model))))
  if (last == 0) {
    return(NULL)
  }
  psi <- psi[order]
  below_all(psi[[last]], psi[-seq_len(last)])
}

# Between the least that is in and the largest that is not.
below_all <- function(least, others) {
  others <- others[others < least * (1 - 1e-9)]
  if (length(others) == 0) least / 2 else sqrt(least) * sqrt(max(others))
}

# list(of, cut) of rows that a pass handed back; where they are many more than
# the pilot told, those with the largest bounds.
keep_awkward <- function(taken, cut, model) {
  most <- min(setting("awkward_rows"), 2 * most_awkward_of(n_seen(model)))
  psi <- ifelse(is.finite(taken$psi), taken$psi, Inf)
  if (length(psi) > most) {
    sorted <- sort(psi, decreasing = TRUE)
    cut <- below_all(sorted[[most]], sorted[-seq_len(most)])
  }
  list(of = rows_taken(taken, psi >= cut), cut = cut)
}

rows_taken <- function(taken, keep) {
  list(
    x = taken$x[keep, , drop = FALSE],
    y = select_rows(taken$y, keep),
    weights = taken$weights[keep],
    offset = taken$offset[keep]
  )
}

# Of awkward rows those that differ and are wide, as columns.
wide_columns <- function(s) {
  x <- unique(s$of$x)
  norm <- sqrt(colSums(forwardsolve(s$chol, t(x))^2))
  unname(t(x[norm >= setting("recipe")$awkward_sd, , drop = FALSE]))
}

# As surrogate_plan() takes it. more: of rows drawn ahead, see gradient_ahead().
surrogate_of <- function(found, sums, more = NULL) {
  s <- found$surrogate
  none <- list(total = 0, always = integer(), rows = integer(), psi = double())
  list(
    at = found$theta,
    awkward = as.double(seq_len(NROW(s$of$y))),
    moves = s$moves,
    init = s$init,
    ahead = c(
      list(
        gradient = sums$gradient,
        hessian = sums$hessian,
        chol = s$moves$metric,
        radius = remote_radius(length(found$theta))
      ),
      more %||% none
    )
  )
}

# The law's mean and curvature, for who asks a plan about the posterior.
mode_of_sums <- function(own, model, found, sums) {
  here <- posterior_at(model, found$theta, sums)
  chol <- lower_chol(here$hessian, model)
  step <- drop(backsolve(t(chol), forwardsolve(chol, here$gradient)))
  new_mode(
    own,
    new_expansion(
      found$theta + step,
      here$log_posterior + sum(here$gradient * step) / 2,
      numeric(model$n_dim),
      here$hessian
    ),
    new_search("passes", found$passes, iterations = found$passes)
  )
}

# What a pass draws of the rows that are not awkward: see draw_rows(). found:
# `radius` and `phi`, where they are not those of a normal law.
draw_awkward <- function(model, control, ledger, n_step, found) {
  s <- found$surrogate
  phi <- found$phi_bar %||% (2 * (n_seen(model) + 1)^1.5)
  n_step <- enough_steps(found$psi, phi, n_step, control)
  n_step <- min(n_step, most_steps(model, found, phi))
  rate <- drawn_share * n_step * phi
  draw <- awkward_draw(model, control, phi, rate, found$radius)
  taken <- take_rows_ahead(model$remote$rows, found, draw, control)
  spend(ledger, "reference", 1)
  check_same_facts(found, taken, model$remote$rows)
  n_step <- n_step * taken$rate / draw$rate
  draw$rate <- taken$rate
  if (NROW(s$of$y) > 0) {
    taken <- without_awkward(taken, model, found, draw)
  }
  found[c("psi", "times")] <- list(taken$total, times_drawn(taken))
  c(taken, list(draw = draw, n_step = n_step, found = found))
}

# psi of the awkward ones is part of the sum, and they may be drawn.
without_awkward <- function(taken, model, found, draw) {
  s <- found$surrogate
  draw_none <- replace(draw, "rate", 0)
  own <- rows_pointer(model_of_some(model$remote, s$of))
  own <- chunk_draw(own, found$theta, found$chol, 1, draw_none)
  taken$total <- max(taken$total - own$total, 1e-12 * taken$total)
  if (NROW(taken$y) > 0) {
    then <- draw_none
    then$phi_bar <- 1 / s$cut
    then$radius <- remote_radius(n_seen(model))
    of <- rows_pointer(model_of_some(model$remote, rows_taken(taken, TRUE)))
    is_awkward <- seq_len(NROW(taken$y)) %in%
      chunk_draw(of, s$theta, s$chol, 1, then)$rows
    taken[c("x", "y", "weights", "offset")] <- rows_taken(taken, !is_awkward)
    taken$count <- taken$count[!is_awkward]
    taken$psi <- taken$psi[!is_awkward]
  }
  taken
}

# order: rows of `drawn`, as the chains use them.
plan_of_awkward <- function(model, drawn, order, control, ledger) {
  found <- drawn$found
  s <- found$surrogate
  n <- NROW(s$of$y)
  own <- model_of_both(model, s$of, drawn)
  of <- surrogate_of(found, drawn$sums, list(
    total = drawn$total,
    always = n + which(drawn$count == 0),
    rows = n + order,
    psi = drawn$psi[order]
  ))
  mode <- mode_of_sums(own, model, found, drawn$sums)
  plan <- surrogate_plan(own, mode, of, ledger)
  plan$refill <- refill_awkward(plan_of_awkward, model, control, ledger, found)
  plan$keeps <- list(found = found)
  plan
}

# What draws more rows beside the awkward ones, see run-refill.R. plan_of: of
# rows drawn, the plan.
refill_awkward <- function(plan_of, model, control, ledger, found) {
  force(found)
  function(number, left) {
    n_step <- refill_steps(number, left)
    more <- draw_awkward(model, control, ledger, n_step, found)
    parts <- split_rows(more, 0, control)
    next_plan <- plan_of(model, more, parts$run, control, ledger)
    next_plan[c("model", "gradient")]
  }
}

# Of awkward rows and those that were drawn.
model_of_both <- function(model, awkward, drawn) {
  both <- function(name) {
    join_values(list(awkward[[name]], drawn[[name]]))
  }
  own <- model_of_some(model$remote, list(
    x = rbind(awkward$x, drawn$x),
    y = both("y"),
    weights = both("weights"),
    offset = both("offset")
  ))
  own$n_data <- model$n_data
  own$fingerprint <- model$fingerprint
  own$remote <- model$remote
  own
}

# A run goes on with the awkward rows that it had.
resume_awkward <- function(model, control, n_step) {
  ledger <- new_ledger()
  found <- model$remote$found
  drawn <- draw_awkward(model, control, ledger, n_step, found)
  parts <- split_rows(drawn, 0, control)
  plan_of_awkward(model, drawn, parts$run, control, ledger)
}
