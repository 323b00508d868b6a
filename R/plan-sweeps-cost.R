# What sweeps of several grouping factors cost, told before they start.

# ---- memory ------------------------------------------------------------------

# Draws of so many effects.
draws_bytes <- function(n_effect, control) {
  n_kept <- floor((control$iter - control$warmup) / control$thin)
  8 * n_effect * control$chains * n_kept
}

# What takes much memory says so before it starts: the rows that sweeps look at,
# with levels and indices, what each chain has of its own, and what is kept.
tell_memory <- function(model, kernel, control) {
  places <- kept_places(kernel, model$groups)
  bytes <- c(
    rows = model_info(model)$memory,
    chain = .Call(ffi_crossed_chain_size, model$pointer),
    draws = draws_bytes(length(places), control)
  )
  total <- sum(bytes * c(1, control$chains, 1))
  if (total <= setting("sweeps")$bytes) {
    return(invisible())
  }
  free <- free_memory()
  left <- if (!is.na(free)) {
    paste0("; memory has ", format_bytes(free), " left")
  }
  each <- lapply(bytes, format_bytes)
  cli::cli_inform(c(
    i = "Sweeps take {format_bytes(total)} besides the data: rows and their
         levels {each$rows}, each of {count_noun(control$chains, 'chain')}
         {each$chain} of effects and scratch, draws of effects
         {each$draws}{left}."
  ))
}

# ---- time --------------------------------------------------------------------

# Sweeps that take as long as a joint draw: of the iterations until 1e-8 is
# left, at most, half suffice, and each takes a third of a sweep.
joint_sweeps <- function(rate) {
  log(2e8) / 2 / sqrt(1 - min(rate, 0.9999)) / 6
}

# model$n_kept: rows, or cells of them, that are looked at; NULL: not known yet.
sweep_seconds <- function(model) {
  s <- setting("sweeps")
  is_quadratic <- find_response(model$family)$is_quadratic
  of_row <- if (is_quadratic) s$normal else s$other
  (model$n_kept %||% model$n_rows) *
    (length(model$groups) * of_row + model$n_coef * s$column)
}

# Draws of few rows cost next to nothing, and are made of several sweeps, unless
# the user thins them.
sweeps_of_draw <- function(model, control) {
  s <- setting("sweeps")
  if (control$thin > 1) {
    return(1)
  }
  max(1, min(s$most, floor(s$draw / sweep_seconds(model))))
}

# What takes long says so before it starts.
# rate: of joint draws, NULL: none.
tell_slow_sweeps <- function(model, control, steps, rate = NULL) {
  n_sweep <- control$chains * steps_of_chain(steps, control)
  own <- if (is.null(rate)) 0 else joint_sweeps(rate)
  seconds <- n_sweep * (1 + own) * sweep_seconds(model)
  if (seconds <= setting("sweeps")$told) {
    return(invisible())
  }
  what <- if (model$n_kept < model$n_rows) "cells of rows" else "rows"
  cli::cli_inform(c(
    i = "This will take about {format_seconds(seconds)} of one core: each of
         {format_count(n_sweep)} sweeps looks at all
         {format_count(model$n_kept)} {what}."
  ))
}

tell_pilot <- function(model) {
  s <- setting("sweeps")
  seconds <- sum(s$pilot) * sweep_seconds(model)
  if (seconds > s$told) {
    cli::cli_inform(c(
      i = "A pilot of {sum(s$pilot)} sweeps takes about
           {format_seconds(seconds)} of one core: it says how well they mix."
    ))
  }
}
