# How well sweeps of several grouping factors mix, before they are made:
# src/models/crossed-mixing.c.

# list(first, second, parts, rate, rows) of pairs of factors: see
# src/ffi/crossed.c. place: of pilot_place(); NULL: where the prior of an effect
# is worth so many rows. 0: at most, whatever the standard deviations are.
factor_pairs <- function(model, place = NULL, worth = 1) {
  out <- .Call(
    ffi_crossed_pairs,
    model$pointer,
    setting("sweeps")$passes,
    worth,
    place$theta,
    place$effects
  )
  if (is.integer(out)) {
    abort_status(out)
  }
  out
}

# Those where chains will be. Rows that connect levels well do so whatever the
# standard deviations are, else a short chain finds these.
foretold_pairs <- function(model, control, ledger) {
  s <- setting("sweeps")
  pairs <- factor_pairs(model, worth = 0)
  if (largest_rate(pairs) < min(s$joint, s$poor)) {
    return(pairs)
  }
  model$n_kept <- pairs$rows
  tell_pilot(model)
  place <- pilot_place(model, control, ledger)
  if (is.null(place)) factor_pairs(model) else factor_pairs(model, place)
}

# Of no pair: 0.
largest_rate <- function(pairs) {
  max(0, pairs$rate)
}

# list(theta, effects), means of a short chain, the same whatever the run's seed
# is; NULL where it cannot be made.
pilot_place <- function(model, control, ledger) {
  n <- setting("sweeps")$pilot
  plan <- new_plan(
    model,
    new_sampler(kernel_gibbs("summary", FALSE), gradient_full()),
    ledger = ledger
  )
  pilot <- pilot_control(control, 1)
  pilot$keep <- "draws"
  plan$init <- plan_init(plan, NULL, pilot)
  segment <- run_segment(plan, pilot, new_stretch(n[[1]], n[[2]]))
  report <- segment$reports[[1]]
  spend(ledger, "recipe", report$n_row / model$n_data)
  pass_interrupt(report$status)
  if (status_name(report$status) != "ok" || segment$interrupted) {
    return(NULL)
  }
  n_effect <- sum(vapply(model$groups, n_effects, 0))
  list(
    theta = colMeans(matrix(segment$buffers$unconstrained, n[[2]])),
    effects = report$effects[1 + seq_len(n_effect)]
  )
}

# Effects of factors whose rows connect their levels poorly are correlated in
# the posterior, and sweeps move them slowly.
tell_poor_pairs <- function(pairs, names) {
  at <- which.max(pairs$rate)
  if (length(at) == 0 || pairs$rate[[at]] < setting("sweeps")$poor) {
    return(invisible())
  }
  rate <- pairs$rate[[at]]
  names <- names[c(pairs$first[[at]], pairs$second[[at]])]
  cli::cli_inform(c(
    i = "The rows connect the levels of {.field {names[[1]]}} and
         {.field {names[[2]]}} poorly: a sweep leaves up to
         {format(rate, digits = 3)} of where their effects were, so that about
         {format_count(ceiling((1 + rate) / (1 - rate)))} sweeps count for one
         independent draw of some of them.",
    i = "{.code fit$effects} has the R-hat of each. Means of effects and
         standard deviations may need a larger {.arg iter}."
  ))
}
