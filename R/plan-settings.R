# What all plans of the recipe ask, and what steps take. Its numbers are those
# of setting("recipe").

# A model of such rows is that of the pilot's, under the prior of all rows, with
# `remote`: rows (see mode-passes.R), build(known, of) and what passes found.
is_remote <- function(model) {
  !is.null(model$remote)
}

# Rows that tell of such a parameter are not those that tell of the mean:
# minibatches miss them far from the mode, and chains stay there.
samples_aux <- function(model) {
  isTRUE(model$traits$n_aux > 0) && model_has_rows(model)
}

# Of a run of one chain that looks for settings: what it finds depends on the
# model alone.
pilot_control <- function(control, n_step) {
  pilot <- utils::modifyList(
    control,
    list(
      chains = 1,
      thin = n_step,
      seed = setting("recipe")$pilot_seed,
      keep = "none",
      refresh = 0
    )
  )
  pilot["monitor"] <- list(NULL)
  pilot["record"] <- list(NULL)
  pilot
}

# steps: for a draw.
steps_of_chain <- function(steps, control) {
  control$warmup + (control$iter - control$warmup) * steps
}

# Steps of Leimkuhler-Matthews from one nearly independent draw to the next.
steps_of_draw <- function(step_size) {
  s <- setting("recipe")
  ceiling(s$steps * s$step_size / step_size)
}

# About how long chains that look at all rows in every step take one core:
# products of a block of rows come from the cache, and a response that has a
# parameter of its own takes special functions.
all_rows_seconds <- function(model, steps, control) {
  row <- 1e-9 * model$n_dim + if (samples_aux(model)) 4e-8 else 0
  pass <- if (isTRUE(model$traits$is_users)) {
    pass_seconds(model)
  } else {
    row * model$n_data
  }
  control$chains * steps_of_chain(steps, control) * pass
}

# Of a pass by count, so that what is chosen is the same everywhere: the calls,
# the functions of R or C, the products.
pass_seconds <- function(model) {
  2e-5 + model$n_data * (1e-7 + 2e-9 * model$n_dim)
}

# Of a row that takes a product and a sum.
row_seconds <- function(n_dim) {
  5e-8 + 2e-9 * n_dim
}
