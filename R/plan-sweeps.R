# The plan of a model that moves its own chains, and what runs with it.

plan_sweeps <- function(model, sampler, control) {
  kernel <- sampler$kernel %||% kernel_gibbs()
  if (!kernel_sweeps(kernel)) {
    abort_swept(model, paste0("kernel_", kernel$name), "kernel")
  }
  unused <- list(
    gradient = if (!is.null(sampler$gradient)) {
      paste0("gradient_", sampler$gradient$name)
    },
    subsample = if (!is.null(sampler$subsample)) {
      paste0("subsample_", sampler$subsample$name)
    },
    schedule = if (!schedule_is_constant(sampler$schedule)) {
      paste0("schedule_", sampler$schedule$name)
    }
  )
  unused <- compact(unused)
  if (likelihood_scale(model) != 1) {
    abort_tall(
      "unsupported",
      c(
        "{.fn kernel_gibbs} draws effects given the rows as they are:
         {.arg lambda} does not reach it.",
        i = "Leave {.arg lambda} out."
      ),
      argument = "lambda"
    )
  }
  if (length(unused) > 0) {
    abort_swept(model, unused[[1]], names(unused)[[1]])
  }
  if ("gradients" %in% control$keep) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no gradients that {.arg keep} could hold:
         {.fn kernel_gibbs} draws its effects.",
        i = "Leave {.val gradients} out."
      ),
      argument = "keep"
    )
  }
  pairs <- factor_pairs(model)
  rate <- if (length(pairs$rate) > 0) max(pairs$rate) else 0
  model$n_kept <- pairs$rows
  kernel <- settle_effects(kernel, model, control)
  kernel <- settle_joint(kernel, model, rate)
  is_joint <- kernel$args$joint
  steps <- if (is_joint) 1 else sweeps_of_draw(model, control)
  tell_slow_sweeps(model, control, steps, if (is_joint) rate)
  if (!is_joint) {
    tell_poor_pairs(pairs, names(model$groups))
  }
  plan <- new_plan(model, new_sampler(kernel, gradient_full()), steps = steps)
  plan$recipe <- list(
    sweeps = steps,
    mixing = if (length(pairs$rate) > 0) rate
  )
  if (is_joint) {
    plan$why <- paste(
      "all effects are drawn jointly after each sweep, which by itself would",
      "leave up to",
      format(rate, digits = 3),
      "of where they were"
    )
  }
  if (steps > 1) {
    plan$why <- paste(steps, "sweeps a draw, since these take little time")
  }
  if (model$n_kept < model$n_rows) {
    plan$recipe$cells <- model$n_kept
    cells <- paste("equal rows are one, of which", count_noun(
      model$n_kept,
      "cell"
    ), "are left")
    plan$why <- paste(c(plan$why, cells), collapse = "; ")
  }
  plan
}

# The other way round.
check_sweeps <- function(kernel, model) {
  if (is.null(kernel) || !kernel_sweeps(kernel)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn kernel_gibbs} samples {.fn model_crossed}, whose effects it draws,
       and not {.code {model$label}()}.",
      i = "Leave {.arg kernel} out."
    ),
    argument = "kernel"
  )
}

# ---- what is kept of effects -------------------------------------------------

# Of a front end that has it as an argument.
kernel_of_effects <- function(kernel, keep_effects) {
  if (is.null(kernel)) {
    return(kernel_gibbs(keep_effects))
  }
  if (!is.null(keep_effects)) {
    abort_input(
      c(
        "{.arg keep_effects} must be left out where a {.arg kernel} is given.",
        i = "It is an argument of {.fn kernel_gibbs}."
      ),
      argument = "keep_effects",
      value = keep_effects
    )
  }
  kernel
}

# Draws unless they are too many, which is told, where the user has not said.
settle_effects <- function(kernel, model, control) {
  n_effect <- sum(vapply(model$groups, n_effects, 0))
  n_kept <- floor((control$iter - control$warmup) / control$thin)
  bytes <- 8 * n_effect * control$chains * n_kept
  keep <- kernel$args$keep_effects
  if (is.list(keep)) {
    kept_places(kernel, model$groups)
    return(kernel)
  }
  if (is.null(keep)) {
    is_few <- bytes <= setting("effect_bytes")
    keep <- if (is_few) "draws" else "summary"
    if (!is_few) {
      cli::cli_inform(c(
        i = "Of {format_count(n_effect)} effects means, standard deviations and
             quantiles are kept: draws would take {format_bytes(bytes)}.
             Predictions with effects need these, see {.arg keep_effects}."
      ))
    }
  } else if (identical(keep, "draws") && bytes > 4 * setting("effect_bytes")) {
    cli::cli_inform(c(
      i = "Draws of {format_count(n_effect)} effects take
           {format_bytes(bytes)}."
    ))
  }
  kernel_gibbs(keep, kernel$args$joint)
}

# Joint draws of all effects, of normal responses alone, where rows connect
# levels so poorly that they pay: their iterations grow with the root of the
# number of sweeps.
settle_joint <- function(kernel, model, rate) {
  can <- find_response(model$family)$is_quadratic && length(model$groups) > 1
  joint <- kernel$args$joint
  if (isTRUE(joint) && !can) {
    abort_tall(
      "unsupported",
      c(
        "{.code joint = TRUE} is for Gaussian responses and several grouping
         factors.",
        i = "Leave {.arg joint} out."
      ),
      argument = "joint",
      value = joint
    )
  }
  if (is.null(joint)) {
    joint <- can && rate >= setting("sweeps")$joint
  }
  kernel_gibbs(kernel$args$keep_effects, joint)
}

# Sweeps that take as long as a joint draw: of the iterations until 1e-8 is
# left, at most, half suffice, and each takes a third of a sweep.
joint_sweeps <- function(rate) {
  log(2e8) / 2 / sqrt(1 - min(rate, 0.9999)) / 6
}

# ---- how long, and how well --------------------------------------------------

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

# list(first, second, parts, rate, rows) of pairs of factors: see
# src/ffi/crossed.c.
factor_pairs <- function(model) {
  out <- .Call(ffi_crossed_pairs, model$pointer, setting("sweeps")$passes)
  if (is.integer(out)) {
    abort_status(out)
  }
  out
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
