# The recipe: what is run where no kernel is given, so that its user tunes
# nothing.

plan_recipe <- function(model, sampler, control, in_place) {
  check_recipe(model, sampler)
  if (isTRUE(model$prior_only)) {
    return(plan_prior(model, control))
  }
  if (has_scaled_sums(model)) {
    return(plan_scaled_sums(model, control))
  }
  if (has_hyper(model) && is_remote(model)) {
    return(plan_scales_ahead(model, control))
  }
  if (has_hyper(model)) {
    return(plan_hyper(model, control))
  }
  if (is_remote(model) && !has_sums(model)) {
    return(plan_remote(model, control))
  }
  if (has_sums(model)) {
    return(plan_sums(model, control))
  }
  if (model$traits$is_grouped) {
    return(plan_groups(model, control, in_place))
  }
  plan_rows(model, control, in_place)
}

# Why exact steps, and those with awkward rows, do not pay.
why_not_exact <- function(tried, by_surrogate) {
  if (is.null(tried$why_not)) {
    return(
      paste("exact steps would take about", format_seconds(tried$pace_seconds))
    )
  }
  if (!is.null(by_surrogate$plan)) {
    return(paste(
      "exact steps with awkward rows would take about",
      format_seconds(by_surrogate$pace_seconds)
    ))
  }
  # where it says more
  if (isTRUE(by_surrogate$is_tried)) by_surrogate$why_not else tried$why_not
}

plan_hyper <- function(model, control) {
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh)
  spend_mode(ledger, mode)
  heavy <- plan_heavy(model, mode, control, ledger)
  if (!is.null(heavy)) {
    return(heavy)
  }
  tried <- try_scales(model, mode, control, ledger)
  if (!is.null(tried$plan)) {
    tell_seconds(tried$pace_seconds, control)
    return(tried$plan)
  }
  plan <- plan_scaled(model, control, mode, ledger)
  plan$why <- paste0(plan$why, "; ", tried$why_not)
  # a step, and the density after the hyperparameters' draw
  tell_slow(plan, control, passes = 2)
  plan
}

# Of models whose rows are at hand: exact steps from a few rows, with awkward
# rows as they are, or what is left.
plan_rows <- function(model, control, in_place) {
  ledger <- new_ledger()
  mode <- recipe_mode(model, control)
  spend_mode(ledger, mode)
  tried <- try_exact(model, mode, control, ledger)
  if (!is.null(tried$plan) &&
    is_fast_enough(tried, model, mode, control, ledger)) {
    tell_seconds(tried$pace_seconds, control)
    return(tried$plan)
  }
  by_surrogate <- try_surrogate(model, mode, control, ledger)
  if (!is.null(by_surrogate$plan) &&
    is_fast_enough(by_surrogate, model, mode, control, ledger)) {
    tell_seconds(by_surrogate$pace_seconds, control)
    return(by_surrogate$plan)
  }
  why <- why_not_exact(tried, by_surrogate)
  plan <- plan_whitened(model, mode, control, in_place, ledger)
  if (model_info(model)$has_predictors) {
    plan$why <- paste0(plan$why, ", since ", why)
  }
  # of trajectories it is said before the pilot
  if (plan$kernel$name != "hmc") {
    tell_slow(plan, control)
  }
  plan
}

# That of a user's own model is found on distinct rows where these are few.
recipe_mode <- function(model, control) {
  merged <- if (model$traits$is_users && is.null(model$cache$mode)) {
    merge_rows(model)
  }
  if (!is.null(merged)) {
    mode <- model_mode(merged, control$cores, control$refresh)
    mode$passes <- 3 + mode$passes * merged$n_data / model$n_data
    mode$fingerprint <- model$fingerprint
    model$cache$mode <- mode
  }
  model_mode(model, control$cores, control$refresh)
}

# Exact steps are worth a few times the time of others.
is_fast_enough <- function(tried, model, mode, control, ledger) {
  s <- setting("recipe")
  tried$seconds <= s$exact_seconds ||
    tried$seconds <=
      s$exact_ratio * order_seconds(model, mode, control, ledger)
}

# The plan where exact steps from a few rows do not pay: in whitened
# coordinates.
plan_whitened <- function(model, mode, control, in_place, ledger) {
  s <- setting("recipe")
  kappa <- laplace_kappa(model, mode)
  white <- whiten_model(model, mode, in_place)
  spend(ledger, "recipe", 1) # the rows are written anew
  if (needs_metropolis(model, kappa)) {
    return(plan_all_rows(model, white, mode, kappa, control, ledger))
  }
  can_expand <- can_expand(white)
  size <- max(s$min_size, ceiling(rows_per_dim * (model$n_dim - 1)))
  is_large <- size >= s$full_share * model$n_data
  if (is_large && !can_expand) {
    return(recipe_mala(white, mode, list(kappa = kappa), ledger))
  }
  shape <- check_normal(white, mode, ledger, control$cores)
  is_far <- length(shape$far) > 0
  recipe <- list(
    kappa = kappa,
    drop = shape$drop,
    far = if (is_far) white$variables[shape$touched]
  )
  plan <- if (can_expand && !is_far) {
    plan_order(white, mode, recipe, control, ledger)
  } else if (is_far && !samples_aux(model)) {
    try_trajectories(model, mode, recipe, control, ledger)
  }
  if (is_far && !is.null(plan)) {
    warn_far(white, shape, TRUE, NULL, control$front)
  }
  plan %||% plan_minibatches(
    white,
    mode,
    if (is_large) Inf else size,
    recipe,
    shape,
    control,
    ledger
  )
}

# Bounds, kinks or few rows. Of the shape of a user's own model nothing is
# known, which the mode may not tell.
plan_all_rows <- function(model, white, mode, kappa, control, ledger) {
  recipe <- list(kappa = kappa)
  is_open <- model$traits$is_users && kappa <= setting("recipe")$laplace_kappa
  plan <- if (is_open) {
    shape <- check_normal(white, mode, ledger, control$cores)
    if (length(shape$far) > 0) {
      try_trajectories(model, mode, recipe, control, ledger)
    }
  }
  plan %||% recipe_mala(white, mode, recipe, ledger)
}

# Minibatches and small steps, or all rows where that takes too large a part of
# them.
plan_minibatches <- function(
  model,
  mode,
  size,
  recipe,
  shape,
  control,
  ledger
) {
  s <- setting("recipe")
  # where gradients rise steeply, fixed Langevin steps are thrown out
  is_far <- length(shape$far) > 0
  if (is_far && samples_aux(model)) {
    steps <- mala_steps(model$n_dim)
    if (all_rows_seconds(model, steps, control) <= s$far_seconds) {
      warn_far(model, shape, TRUE, NULL, control$front)
      return(recipe_barker(model, mode, recipe, ledger))
    }
  }
  hides <- is_far && is_blind(model)
  model$traits$is_far_from_normal <- model$traits$is_far_from_normal || is_far
  plan <- if (is.finite(size) && !hides) {
    recipe_pilot(recipe_langevin(model, mode, size, recipe, ledger), control)
  }
  exact <- is.null(plan) ||
    plan$recipe$size >= s$full_share * model$n_data
  if (is_far) {
    rows <- if (!exact) plan$recipe$always
    seconds <- all_rows_seconds(model, mala_steps(model$n_dim), control)
    warn_far(model, shape, exact, rows, control$front, seconds)
  }
  if (exact) recipe_mala(model, mode, recipe, ledger) else plan
}

# Bounds and kinks take a kernel that accepts or rejects, and few rows allow
# one.
needs_metropolis <- function(model, kappa) {
  s <- setting("recipe")
  length(bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    n_all_rows(model) <= s$small_data
}

# What takes long says so before it starts, however quiet the run is. given: was
# the kernel? passes: of a step.
tell_slow <- function(plan, control, most = 20, given = FALSE, passes = 1) {
  model <- plan$model
  n_step <- steps_of_chain(plan$steps, control)
  is_full <- gradient_is_full(plan$gradient)
  n_row <- if (is_full) model$n_data else minibatch_size(plan)
  if (isTRUE(model$traits$is_grouped) || !is.numeric(n_row)) {
    return(invisible())
  }
  seconds <- if (is_full) {
    passes * all_rows_seconds(model, plan$steps, control)
  } else {
    control$chains * n_step * (1e-6 + n_row * row_seconds(model$n_dim))
  }
  if (seconds <= most) {
    return(invisible())
  }
  rows <- paste0(if (is_full) "all ", format_count(n_row))
  cli::cli_inform(c(
    i = "This will take about {format_seconds(seconds)} of one core: each of
         {format_count(control$chains * n_step)} steps looks at {rows} rows.",
    i = if (given) {
      "Fewer columns or a smaller {.arg iter} is faster; a run without a
       {.arg kernel} mostly is."
    } else {
      "A narrower prior, fewer columns or a smaller {.arg iter} is faster."
    }
  ))
}

# Rows of a step of the recipe's; NULL: not known.
minibatch_size <- function(plan) {
  size <- plan$recipe$size
  if (!is.null(size)) size + length(plan$recipe$always)
}

# The plan where chains of Langevin steps were thrown out; NULL: they were not,
# or nothing else is left.
recipe_again <- function(plan, segment, control) {
  status <- vapply(segment$reports, function(r) status_name(r$status), "")
  thrown <- status %in% c("escaped", "nonfinite")
  if (is.null(plan$recipe$size) || plan$kernel$name != "sgld" || !any(thrown)) {
    return(NULL)
  }
  model <- plan$model
  rows <- sum(vapply(segment$reports, function(r) r$n_row, 0))
  spend(plan$ledger, "recipe", rows / model$n_data)
  recipe <- plan$recipe
  recipe$far <- model$variables
  exact <- !model_info(model)$has_weights
  again <- if (exact) {
    slow <- recipe_mala(model, plan$mode, recipe, plan$ledger)
    if (model$traits$is_grouped) suit_steps(slow, control) else slow
  } else {
    model$traits$is_far_from_normal <- TRUE
    barker <-
      recipe_langevin(model, plan$mode, recipe$size, recipe, plan$ledger)
    barker$subsample <- plan$subsample
    barker
  }
  seconds <- if (!model$traits$is_grouped) {
    all_rows_seconds(model, mala_steps(model$n_dim), control)
  }
  warn_thrown(thrown, exact, exact_remedy(model, control$front), seconds)
  if (exact && model$traits$is_grouped) {
    tell_slow_groups(again, control)
  }
  again
}

# remedy: see exact_remedy(); seconds: of a run with all rows in every step.
warn_thrown <- function(thrown, exact, remedy, seconds = NULL) {
  n <- sum(thrown)
  how <- if (exact) {
    paste0(
      "All are sampled again, exactly, with all rows in every step",
      told_seconds(seconds),
      "."
    )
  } else {
    paste0(
      "All are sampled again with Barker dynamics, which nothing throws out.
       The bias of the standard deviations is not estimated there; ",
      remedy,
      " has none, at the price of all rows in every step",
      told_seconds(seconds),
      "."
    )
  }
  warn_tall(
    "recipe",
    c(
      "The posterior is far from normal in its tails: {n} of
       {length(thrown)} chains of Langevin steps {cli::qty(n)}{?was/were} thrown
       out of it.",
      i = how
    )
  )
}

# With a gradient, scheme or schedule but no kernel, nobody could say what runs.
check_recipe <- function(model, sampler) {
  given <- c("gradient", "subsample", "schedule")[c(
    !is.null(sampler$gradient),
    !is.null(sampler$subsample),
    !schedule_is_constant(sampler$schedule)
  )]
  if (length(given) > 0) {
    abort_input(
      c(
        "{.arg {given}} need{?s/} a {.arg kernel}: without one the recipe
         chooses all parts.",
        i = "Give for instance {.code kernel = kernel_sgld(step_size)}."
      ),
      argument = given[[1]]
    )
  }
  check_not_whitened(model)
  info <- model_info(model)
  if (!info$has_curvature && !info$has_diagonal && !has_hyper(model)) {
    abort_tall(
      "unsupported",
      c(
        "There is no recipe without tuning for {.code {model$label}()}.",
        i = "Give a {.arg kernel}, for instance
             {.code kernel_sgld(step_size)}."
      )
    )
  }
}
