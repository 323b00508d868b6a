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
  kernel <- settle_effects(kernel, model, control)
  tell_memory(model, kernel, control)
  ledger <- new_ledger()
  pairs <- foretold_pairs(model, control, ledger)
  rate <- largest_rate(pairs)
  model$n_kept <- pairs$rows
  kernel <- settle_joint(kernel, model, rate)
  is_joint <- kernel$args$joint
  steps <- if (is_joint) 1 else sweeps_of_draw(model, control)
  tell_slow_sweeps(model, control, steps, if (is_joint) rate)
  if (!is_joint) {
    tell_poor_pairs(pairs, names(model$groups))
  }
  plan <- new_plan(
    model,
    new_sampler(kernel, gradient_full()),
    steps = steps,
    ledger = ledger
  )
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
  bytes <- draws_bytes(n_effect, control)
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
