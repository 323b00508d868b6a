# The plan of a regression whose rows are passed over (spec section 12): exact
# steps from rows that a pass drew ahead, or sums over all rows where the
# response is Gaussian. No row is kept but those drawn.

# The plan. Where exact steps do not pay the rows must be where any can be had:
# a condition of class tall_needs_rows says why, and does not return.
plan_remote <- function(model, control) {
  ledger <- new_ledger()
  spend(ledger, "recipe", 1) # the look
  spend(ledger, "mode", model$remote$found$passes)
  drawn <- draw_rows(model, control, ledger)
  if (is.null(drawn)) {
    need_rows("exact steps would look at too many rows")
  }
  share <- setting("recipe")$exact_pilot / drawn$n_step
  parts <- split_rows(drawn, share, control)
  plan <- plan_of_drawn(model, drawn, parts$pilot, control, ledger)
  report <- exact_pilot(plan, control)
  if (is.null(report)) {
    need_rows("an exact step has no normal law to propose from")
  }
  verdict <- judge_exact(model, report, control, function() {
    weighed <- model_of_drawn(model, drawn, is_weighed = TRUE)
    tail_shape(weighed, plan$mode, control, ledger)
  })
  if (!is.null(verdict$why_not)) {
    need_rows(verdict$why_not)
  }
  n_step <- steps_of_run(control, verdict$steps)
  if (!has_enough(parts$run, verdict$rows, n_step, control)) {
    drawn <- draw_rows(model, control, ledger, n_step, drawn$found)
    if (is.null(drawn)) {
      need_rows("exact steps would look at too many rows")
    }
    parts <- split_rows(drawn, 0, control)
  }
  plan <- plan_of_drawn(model, drawn, parts$run, control, ledger)
  settle_exact(plan, verdict)
}

# The same for a run that goes on.
resume_drawn <- function(model, control, n_step) {
  ledger <- new_ledger()
  found <- model$remote$found
  drawn <- draw_rows(model, control, ledger, n_step, found)
  parts <- split_rows(drawn, 0, control)
  plan_of_drawn(model, drawn, parts$run, control, ledger)
}

need_rows <- function(why) {
  rlang::signal("", class = "tall_needs_rows", why = why)
}

# Are there rows for so many steps, as far as can be told?
has_enough <- function(order, rows_a_step, n_step, control) {
  needed <- rows_a_step * n_step / control$chains
  floor(length(order) / control$chains) >= 1.1 * needed + 6 * sqrt(needed) + 10
}

# Rows of each chain that a pass is to draw at least. They cost nothing beside a
# pass; where steps need fewer, a chain by bad luck needs more than on average,
# and another pass for one row would take as long as all.
least_ahead <- 1000

# So many steps that a pass draws as many rows for. psi: the sum of the bounds
# over all rows, from a pass or the pilot; NULL: not known.
enough_steps <- function(psi, phi, n_step, control) {
  if (is.null(psi)) {
    return(n_step)
  }
  # far fewer than are too many
  n_row <- min(least_ahead * control$chains, setting("chunk_rows") / 4)
  least <- ceiling(n_row / (drawn_share * phi * psi))
  if (is.finite(least)) max(n_step, least) else n_step
}

# Draws, shuffled: those of the pilot and those of the run.
split_rows <- function(drawn, share, control) {
  at <- rep.int(seq_along(drawn$count), drawn$count)
  # passes have stretches of numbers of their own
  first <- drawn$draw$pass * 2^40
  u <- hash_uniforms(core_seed(control), "shuffle", first, length(at))
  at <- at[order(u)]
  n <- ceiling(share * length(at))
  own <- seq_len(length(at)) <= n
  list(pilot = at[own], run = at[!own])
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
    new_search("passes", found$passes, iterations = found$passes)
  )
  plan <- new_plan(
    own,
    new_sampler(kernel_smh(), gradient_ahead(drawn$at, ahead)),
    mode = mode,
    ledger = ledger
  )
  plan$refill <- function(number, left) {
    more <- draw_rows(model, control, ledger, left, drawn$found)
    if (is.null(more)) {
      return(NULL)
    }
    parts <- split_rows(more, 0, control)
    next_plan <- plan_of_drawn(model, more, parts$run, control, ledger)
    next_plan[c("model", "gradient")]
  }
  plan$keeps <- list(
    found = drawn$found
  )
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

# Steps from one draw to the next that are reckoned with before a pilot tells.
steps_ahead <- 3

# A pass draws so many rows for each that its steps are thought to need.
drawn_share <- 1.3

# What a pass draws: list(at, chol, sums, law, rows, ...). `rate` is that of
# each row's count over its bound; n_step that of all chains.
draw_rows <- function(
  model,
  control,
  ledger,
  n_step = steps_of_run(control, steps_ahead) + setting("recipe")$exact_pilot,
  found = model$remote$found
) {
  remote <- model$remote
  d <- model$n_dim
  for (attempt in 1:4) {
    remote$count$pass <- remote$count$pass + 1
    phi <- 2 * (d + 1 + found$distance^2)^1.5
    n_step <- enough_steps(found$psi, phi, n_step, control)
    draw <- list(
      radius = remote_radius(d),
      phi_bar = phi,
      rate = drawn_share * n_step * phi,
      scale = 1,
      seed = core_seed(control),
      pass = remote$count$pass,
      first = 0
    )
    taken <- tryCatch(
      take_rows_ahead(remote$rows, found, draw, control),
      tall_too_many = function(cnd) NULL
    )
    spend(ledger, "reference", 1)
    if (is.null(taken)) {
      return(NULL)
    }
    check_same_facts(found, taken, remote$rows)
    found$psi <- taken$total
    here <- posterior_at(model, found$theta, taken$sums)
    chol <- lower_chol(here$hessian, model)
    mean <- found$theta +
      drop(backsolve(t(chol), forwardsolve(chol, here$gradient)))
    away <- sqrt(sum(crossprod(found$chol, mean - found$theta)^2))
    if (away <= sqrt(d) / 2) {
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
    found$theta <- mean
    found$chol <- chol
    found$distance <- min(1, away / 4)
  }
  NULL
}

steps_of_run <- function(control, steps) {
  control$chains * (control$warmup + (control$iter - control$warmup) * steps)
}

#' @export
take_rows_ahead.tall_rows <- function(rows, found, draw, control) {
  args <- list(
    theta = found$theta,
    chol = found$chol,
    draw = draw,
    cores = control$cores,
    most = list(
      rows = setting("chunk_rows"),
      share = setting("recipe")$full_share
    )
  )
  show <- pass_show(draw$pass + found$passes + 1, control)
  passed <- pass_over(rows, draws_over, args, show, known = found$facts)
  out <- join_drawn(lapply(passed$parts, `[[`, "drawn"))
  check_not_too_many(length(out$y), passed$facts$n_row, args$most)
  every <- function(name) lapply(passed$parts, `[[`, name)
  c(out, list(
    total = Reduce(`+`, every("total")),
    sums = Reduce(add_sums, every("sums")),
    facts = passed$facts
  ))
}

# first: rows that count in the shards before, since draws go by the number of a
# row among all of them.
draws_over <- function(rows, args, first, show) {
  total <- NULL
  psi <- 0
  n_taken <- 0
  parts <- list()
  columns <- new_column_facts()
  draw <- args$draw
  before <- first
  f <- function(chunk, n, first) {
    draw$first <- before + first
    part <- with_chunk_model(chunk, n, rows, function(model) {
      chunk_draw(model, args$theta, args$chol, args$cores, draw)
    })
    total <<- add_sums(total, part)
    psi <<- psi + part$total
    columns$add(chunk, n)
    at <- part$rows
    n_taken <<- n_taken + length(at)
    check_not_too_many(n_taken, first + n, args$most)
    if (length(at) > 0) {
      parts[[length(parts) + 1]] <<- list(
        x = chunk$x[at, , drop = FALSE],
        y = chunk$y[at],
        weights = chunk$weights[at],
        offset = chunk$offset[at],
        count = part$count,
        psi = part$psi
      )
    }
  }
  seen <- each_chunk(rows, f, show)
  drawn <- join_drawn(parts)
  c(seen, list(
    drawn = drawn,
    total = psi,
    sums = total,
    columns = columns$total()
  ))
}

join_drawn <- function(parts) {
  every <- function(name) unlist(lapply(parts, `[[`, name))
  list(
    x = do.call(rbind, lapply(parts, `[[`, "x")),
    y = every("y"),
    weights = every("weights"),
    offset = every("offset"),
    count = every("count"),
    psi = every("psi")
  )
}

# Rows that were taken of n that were seen.
check_not_too_many <- function(n_taken, n, most) {
  if (n_taken > max(most$rows, n * most$share)) {
    rlang::signal("", class = "tall_too_many")
  }
}
