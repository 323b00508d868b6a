# What plans of rows that are passed over share: how many rows a pass draws
# ahead, for how many steps, and in which order chains use them.

# Where passes do not serve a condition of class tall_needs_rows says why, and
# does not return. ledger: of the passes that were made before that was known,
# which have found the mode: see start_of_passes().
need_rows <- function(why, ledger = NULL) {
  rlang::signal(
    "",
    class = "tall_needs_rows",
    why = why,
    start = start_of_passes(ledger)
  )
}

# What passes leave to a model whose rows are at hand: list(theta, spent, stay),
# where its mode is as far as they tell, how many there were, by purpose, and
# how long chains of learnt scales stay where they are, see choose_way().
start_of_passes <- function(ledger) {
  if (!is.null(ledger)) {
    list(theta = ledger$theta, spent = ledger$passes, stay = ledger$stay)
  }
}

# Such a model begins there.
start_search <- function(model, start, cores) {
  model$cache$stay <- start$stay
  start_mode(model, start$theta, cores)
}

# What was decided from a look stays, where all rows tell a little otherwise: of
# its thresholds this share is enough.
settled_share <- 1 / 2

# What a pass looks at, as a share of all rows.
pass_share <- function(model) {
  rows <- model$remote$rows
  if (is_tied(rows)) length(rows$tied$count) / model$n_data else 1
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

# So many steps that another pass draws rows for, where `left` are left: chains
# out in a tail use many times the rows that they are thought to need, and it
# would be pass after pass.
refill_steps <- function(number, left) {
  left * 2^number
}

# Rows that a pass draws at most, as far as bounds tell before it: where steps
# need more, another pass draws more.
most_ahead <- function(n_row) {
  max(setting("chunk_rows"), n_row * setting("recipe")$full_share)
}

# Draws of a pass at most, a row that is drawn more than once included; of rows
# that are tied they cost no pass.
most_draws <- 2^21

# How often a pass drew a row that it drew.
times_drawn <- function(taken) {
  max(1, sum(taken$count) / max(1, sum(taken$count > 0)))
}

# So many steps at most that a pass draws rows for. found: `psi`, the sum of the
# bounds, NULL: not known; `times`, see times_drawn(), of a pass before.
most_steps <- function(model, found, phi) {
  rows <- model$remote$rows
  most <- if (is_tied(rows)) {
    most_draws
  } else {
    most_row <- most_ahead(model$n_data)
    max(most_row, min(most_draws, most_row * (found$times %||% 1)))
  }
  steps <- floor(most / (drawn_share * phi * (found$psi %||% 0)))
  max(2 * setting("recipe")$exact_pilot, steps)
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

# The plan of a pilot, which takes of the run's rows where its own do not last:
# another pass for a few steps would be in vain. parts: see split_rows();
# plan_of(order): a plan with these rows. $rest(): what it left of the run's.
pilot_of_drawn <- function(plan, parts, plan_of) {
  rest <- parts$run
  another_pass <- plan$refill
  plan$refill <- function(number, left) {
    n <- min(length(rest), max(1, length(parts$pilot)) * 2^number)
    if (n == 0) {
      return(another_pass(number, left))
    }
    more <- plan_of(rest[seq_len(n)])
    rest <<- rest[-seq_len(n)]
    more[c("model", "gradient")]
  }
  plan$rest <- function() rest
  plan
}

# Steps from one draw to the next that are reckoned with before a pilot tells.
steps_ahead <- 3

# A pass draws so many rows for each that its steps are thought to need.
drawn_share <- 1.3

steps_of_run <- function(control, steps) {
  control$chains * (control$warmup + (control$iter - control$warmup) * steps)
}
