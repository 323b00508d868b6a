# The recipe: settings found for a model, so that its user tunes nothing. All
# numbers stand here, once.
recipe_settings <- list(
  # exact steps from a few rows
  exact_pilot = 400,         # steps
  exact_acceptance = 0.25,   # where fewer are accepted they do not pay
  exact_correlation = 0.02,  # of draws that follow each other
  exact_normal = 0.95,       # where more are accepted tails are not looked at
  exact_tail = 0.5,          # least log density lost there, of a normal one's
  exact_even = 0.8,          # where it is less, or where fewer are accepted,
  exact_often = 0.5,
  exact_share = 0.5,         # more proposals stay near: this share
  tail_heavy = 200,          # rows that are looked at one and all,
  tail_rows = 2000,          # and of the others
  exact_seconds = 10,        # a run that takes longer is compared with others,
  exact_ratio = 5,           # and taken if it takes no more times their time
  # Langevin steps with control variates of order 2
  order_step = 1,            # h at first, whitened coordinates
  order_size = 4,            # smallest minibatch
  order_noise = 0.01,        # h tau_j^2 / (4 - h) at most
  order_bias = 0.04,         # of a variance, beyond two standard errors
  # and of order 1
  step_size = 0.2,       # h, whitened coordinates
  steps = 25,            # steps in an iteration: draws nearly independent
  min_size = 32,         # smallest minibatch
  noise_share = 0.02,    # h tau_j^2 / 4 at most, in the worst coordinate
  pilot_steps = 2000,
  pilot_seed = 1,
  full_share = 1 / 4,    # n >= N / 4: full gradient and Metropolis
  small_data = 2000,     # so few rows: likewise, a pass costs next to nothing
  escape = function(d) 4 * d + 100,
  radii = 1:3,           # sds at which the shape of a posterior is looked at
  max_ratio = 2,         # log density lost there, of what a normal one loses
  max_points = 2000,     # in how many points; with very many parameters less
  far_seconds = 600,     # all rows in every step where it is not normal
  heavy_rows = 10,       # rows that are looked along, besides the parameters
  laplace_kappa = 1,     # sd of the data over scale of a Laplace prior
  # where Langevin steps are not safe: sd bias 2.2 %, mean 0.07 sd at a wall
  barker_sigma = 0.2,
  barker_skewed = 0.35   # of models that are skewed, but without walls: 1.6 %
)

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
  s <- recipe_settings
  tried$seconds <= s$exact_seconds ||
    tried$seconds <=
      s$exact_ratio * order_seconds(model, mode, control, ledger)
}

# The plan where exact steps from a few rows do not pay: in whitened
# coordinates.
plan_whitened <- function(model, mode, control, in_place, ledger) {
  s <- recipe_settings
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
  s <- recipe_settings
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

# Rows that tell of such a parameter are not those that tell of the mean:
# minibatches miss them far from the mode, and chains stay there.
samples_aux <- function(model) {
  isTRUE(model$traits$n_aux > 0) && model_has_rows(model)
}

# Bounds and kinks take a kernel that accepts or rejects, and few rows allow
# one.
needs_metropolis <- function(model, kappa) {
  s <- recipe_settings
  length(bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    model$n_data <= s$small_data
}

# steps: for a draw.
steps_of_chain <- function(steps, control) {
  control$warmup + (control$iter - control$warmup) * steps
}

# About how long chains that look at all rows in every step take one core:
# products of a block of rows come from the cache, and a response that has a
# parameter of its own takes special functions.
all_rows_seconds <- function(model, steps, control) {
  row <- 1e-9 * model$n_dim + if (samples_aux(model)) 4e-8 else 0
  control$chains * steps_of_chain(steps, control) * row * model$n_data
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
