# The recipe: what is run where no kernel is given, so that its user tunes
# nothing.

plan_recipe <- function(model, sampler, control, in_place) {
  check_recipe(model, sampler)
  if (isTRUE(model$prior_only)) {
    return(plan_prior(model, control))
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
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh)
  spend_mode(ledger, mode)
  tried <- try_exact(model, mode, control, ledger)
  if (!is.null(tried$plan) &&
    is_fast_enough(tried, model, mode, control, ledger)) {
    return(tried$plan)
  }
  why <- tried$why_not %||%
    paste("exact steps would take about", format_seconds(tried$seconds))
  plan <- plan_whitened(model, mode, control, in_place, ledger)
  if (model_info(model)$has_predictors) {
    plan$why <- paste0(plan$why, ", since ", why)
  }
  tell_slow(plan, control)
  plan
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
    return(recipe_mala(white, mode, list(kappa = kappa), ledger))
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
  # minibatches of equally likely rows may not see what makes it so
  is_blind <- is_far &&
    !model_info(model)$has_weights &&
    !model$traits$is_far_from_normal
  model$traits$is_far_from_normal <- model$traits$is_far_from_normal || is_far
  plan <- if (is.finite(size) && !is_blind) {
    recipe_pilot(recipe_langevin(model, mode, size, recipe, ledger), control)
  }
  exact <- is.null(plan) ||
    plan$recipe$size >= s$full_share * model$n_data
  if (is_far) {
    rows <- if (!exact) plan$recipe$always
    warn_far(model, shape, exact, rows, control$front)
  }
  if (exact) recipe_mala(model, mode, recipe, ledger) else plan
}

# Bounds and kinks take a kernel that accepts or rejects, and few rows allow
# one.
needs_metropolis <- function(model, kappa) {
  s <- setting("recipe")
  length(bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    model$n_data <= s$small_data
}

# All rows in every step can take long: said before it starts, where the user
# waits for it. given: was the kernel?
tell_slow <- function(plan, control, most = 60, given = FALSE) {
  if (!gradient_is_full(plan$gradient) || control$refresh == 0) {
    return(invisible())
  }
  model <- plan$model
  n_step <- steps_of_chain(plan$steps, control)
  seconds <- all_rows_seconds(model, plan$steps, control)
  if (seconds <= most) {
    return(invisible())
  }
  cli::cli_inform(c(
    i = "This will take about {format_seconds(seconds)} of one core: each of
         {format_count(control$chains * n_step)} steps looks at all
         {format_count(model$n_data)} rows.",
    i = if (given) {
      "Fewer columns or a smaller {.arg iter} is faster; a run without a
       {.arg kernel} mostly is."
    } else {
      "A narrower prior, fewer columns or a smaller {.arg iter} is faster."
    }
  ))
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
    recipe_mala(model, plan$mode, recipe, plan$ledger)
  } else {
    model$traits$is_far_from_normal <- TRUE
    barker <-
      recipe_langevin(model, plan$mode, recipe$size, recipe, plan$ledger)
    barker$subsample <- plan$subsample
    barker
  }
  warn_thrown(thrown, exact, exact_remedy(model, control$front))
  again
}

# remedy: see exact_remedy()
warn_thrown <- function(thrown, exact, remedy) {
  n <- sum(thrown)
  how <- if (exact) {
    "All were sampled again, exactly, with all rows in every step."
  } else {
    paste0(
      "All were sampled again with Barker dynamics, which nothing throws out.
       The bias of the standard deviations is not estimated there; ",
      remedy,
      " has none, at the price of all rows in every step."
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
  if (!info$has_curvature && !info$has_diagonal) {
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
