# What plans of rows that are passed over share: how many rows a pass draws
# ahead, for how many steps, and in which order chains use them.

# Where passes do not serve a condition of class tall_needs_rows says why, and
# does not return.
need_rows <- function(why) {
  rlang::signal("", class = "tall_needs_rows", why = why)
}

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

# Rows that a pass draws at most, as far as bounds tell before it: where steps
# need more, another pass draws more.
most_ahead <- function(n_row) {
  max(setting("chunk_rows"), n_row * setting("recipe")$full_share)
}

# Of rows that are tied, draws: they cost no pass.
most_tied_draws <- 2^21

# So many steps at most that a pass draws rows for.
most_steps <- function(model, psi, phi) {
  rows <- model$remote$rows
  most <- if (is_tied(rows)) most_tied_draws else most_ahead(model$n_data)
  steps <- if (is.null(psi)) Inf else floor(most / (drawn_share * phi * psi))
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

# Steps from one draw to the next that are reckoned with before a pilot tells.
steps_ahead <- 3

# A pass draws so many rows for each that its steps are thought to need.
drawn_share <- 1.3

steps_of_run <- function(control, steps) {
  control$chains * (control$warmup + (control$iter - control$warmup) * steps)
}
