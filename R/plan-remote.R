# The plan of a regression whose rows are passed over (see ?tall_glm): exact
# steps from rows that a pass drew ahead (src/passes/ahead.h), or sums over all
# rows where the response is Gaussian. No row is kept but those drawn.

# The plan. plan_of_look() has said that exact steps pay, and they are made also
# where all rows tell that they pay less. Where these tell of another posterior
# than the pilot, or of tails that its own do not have, rows must be where any
# can be had: a condition of class tall_needs_rows says why, has the mode that
# passes found, and does not return.
plan_remote <- function(model, control) {
  ledger <- new_ledger()
  found <- model$remote$found
  # the look, and where a database counted kinds of rows in vain
  spend(ledger, "recipe", 1 + (model$remote$rows$tried %||% 0))
  spend(ledger, "mode", passes_of_mode(model))
  ledger$theta <- found$theta
  if (is_tied(model$remote$rows)) {
    return(plan_tied(model, control, ledger, found$why_not))
  }
  if (!is.null(found$why_not)) {
    return(plan_awkward(model, control, ledger, found$why_not))
  }
  drawn <- draw_rows(model, control, ledger)
  if (is.null(drawn)) {
    need_rows("passes over them come to no point to expand about", ledger)
  }
  ledger$theta <- drawn$mean
  share <- setting("recipe")$exact_pilot / drawn$n_step
  parts <- split_rows(drawn, share, control)
  pilot <- plan_of_drawn(model, drawn, parts$pilot, control, ledger)
  pilot <- pilot_of_drawn(pilot, parts, function(order) {
    plan_of_drawn(model, drawn, order, control, ledger)
  })
  report <- exact_pilot(pilot, control)
  if (is.null(report)) {
    need_rows(
      "an exact step has no normal distribution to propose from",
      ledger
    )
  }
  tail <- function() {
    weighed <- model_of_drawn(model, drawn, is_weighed = TRUE)
    tail_shape(weighed, pilot$mode, control, ledger)
  }
  verdict <- judge_exact(model, report, control, tail, share = settled_share)
  if (!is.null(verdict$why_not)) {
    need_rows(verdict$why_not, ledger)
  }
  # of more rows than were drawn another pass draws the rest
  plan <- plan_of_drawn(model, drawn, pilot$rest(), control, ledger)
  settle_exact(plan, verdict)
}

# Of rows that are tied one pass tied them, unless the look did, and sums look
# at what differs.
passes_of_mode <- function(model) {
  found <- model$remote$found
  if (!is_tied(model$remote$rows)) {
    return(found$passes)
  }
  tying <- if (isTRUE(model$remote$rows$has_every)) 0 else 1
  tying + found$passes * pass_share(model)
}

# The same for a run that goes on.
resume_drawn <- function(model, control, n_step) {
  ledger <- new_ledger()
  found <- model$remote$found
  drawn <- draw_rows(model, control, ledger, n_step, found)
  parts <- split_rows(drawn, 0, control)
  plan_of_drawn(model, drawn, parts$run, control, ledger)
}

# order: rows of `drawn`, as the chains use them.
plan_of_drawn <- function(model, drawn, order, control, ledger) {
  own <- model_of_drawn(model, drawn)
  found <- model$remote$found
  ahead <- list(
    gradient = drawn$sums$gradient,
    hessian = drawn$sums$hessian,
    chol = drawn$chol,
    radius = drawn$draw$radius,
    total = drawn$total,
    always = which(drawn$count == 0),
    rows = order,
    psi = drawn$psi[order]
  )
  mode <- new_mode(
    own,
    new_expansion(
      drawn$mean,
      drawn$here$log_posterior +
        sum(drawn$here$gradient * (drawn$mean - drawn$at)) / 2,
      numeric(model$n_dim),
      drawn$curvature
    ),
    new_search("passes", ledger$passes[["mode"]], iterations = found$passes)
  )
  plan <- new_plan(
    own,
    new_sampler(kernel_smh(), gradient_ahead(drawn$at, ahead)),
    mode = mode,
    ledger = ledger
  )
  plan$refill <- function(number, left) {
    n_step <- refill_steps(number, left)
    more <- draw_rows(model, control, ledger, n_step, drawn$found)
    if (is.null(more)) {
      return(NULL)
    }
    parts <- split_rows(more, 0, control)
    next_plan <- plan_of_drawn(model, more, parts$run, control, ledger)
    next_plan[c("model", "gradient")]
  }
  plan$keeps <- list(found = drawn$found, drawn = light_drawn(drawn))
  plan
}

# The rows that were drawn as a model. is_weighed: each with the number of rows
# it stands for, so that sums over them are those of all.
model_of_drawn <- function(model, drawn, is_weighed = FALSE) {
  of <- drawn[c("x", "y", "weights", "offset")]
  if (is_weighed) {
    stands <- drawn$count / (drawn$draw$rate * drawn$psi)
    stands[drawn$count == 0] <- 1
    of$weights <- stands * (of$weights %||% 1)
  }
  remote <- model$remote
  out <- model_of_some(remote, of)
  if (!is_weighed) {
    out$n_data <- model$n_data
    out$fingerprint <- model$fingerprint
    out$remote <- remote
  }
  out
}

# ---- rows drawn ahead --------------------------------------------------------

# What a pass draws: list(at, chol, sums, law, rows, ...). `rate` is that of
# each row's count over its bound; n_step that of all chains. Where the mean of
# the posterior turns out to be too far from where rows are expanded the pass
# was one of the search for it, and where it is not known well enough to draw
# rows there, passes take the sums alone. NULL: they come to no such point.
draw_rows <- function(
  model,
  control,
  ledger,
  n_step = steps_of_run(
    control,
    max(steps_ahead, model$remote$found$steps)
  ) + setting("recipe")$exact_pilot,
  found = model$remote$found
) {
  remote <- model$remote
  d <- model$n_dim
  near <- sqrt(d) / 2
  for (attempt in 1:6) {
    if (found$distance > near) {
      found <- nearer(found, model, control, ledger)
      next
    }
    remote$count$pass <- remote$count$pass + 1
    phi <- 2 * (d + 1 + found$distance^2)^1.5
    n_step <- enough_steps(found$psi, phi, n_step, control)
    n_step <- min(n_step, most_steps(model, found, phi))
    draw <- list(
      radius = remote_radius(d),
      phi_bar = phi,
      rate = drawn_share * n_step * phi,
      scale = 1,
      seed = core_seed(control),
      pass = remote$count$pass,
      first = 0
    )
    taken <- take_rows_ahead(remote$rows, found, draw, control)
    check_same_facts(found, taken, remote$rows)
    n_step <- n_step * taken$rate / draw$rate
    draw$rate <- taken$rate
    # of rows that grew they are those of the first draws
    draw[names(taken$draw)] <- taken$draw
    found[c("psi", "times")] <- list(taken$total, times_drawn(taken))
    to <- newton_from(found, taken$sums, model)
    here <- to$here
    mean <- to$theta
    away <- sqrt(sum(crossprod(found$chol, mean - found$theta)^2))
    is_near <- if (is.null(taken$draw)) {
      away <= near
    } else {
      draws_last(taken, remote$rows, away, d, control)
    }
    share <- taken$share %||% pass_share(model)
    spend(ledger, if (is_near) "reference" else "mode", share)
    if (is_near) {
      taken$draw <- NULL
      return(c(taken, list(
        at = found$theta,
        chol = found$chol,
        draw = draw,
        here = here,
        mean = mean,
        curvature = here$hessian,
        away = away,
        found = found,
        n_step = n_step
      )))
    }
    found <- moved_on(found, to, away)
    ledger$theta <- mean
  }
  NULL
}

# `found` after a pass for the sums alone.
nearer <- function(found, model, control, ledger) {
  count <- model$remote$count
  count$pass <- count$pass + 1
  pass <- count$pass + found$passes + 1
  sums <- sums_at(model$remote$rows, found$theta, control, pass)
  spend(ledger, "mode", pass_share(model))
  check_same_facts(found, sums, model$remote$rows)
  to <- newton_from(found, sums, model)
  away <- sqrt(sum(crossprod(to$chol, to$theta - found$theta)^2))
  ledger$theta <- to$theta
  moved_on(found, to, away)
}
