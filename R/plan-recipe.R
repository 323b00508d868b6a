# The recipe: settings found for a model, so that its user tunes nothing. All
# numbers stand here, once.
recipe_settings <- list(
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
  heavy_rows = 10,       # rows that are looked along, besides the parameters
  laplace_kappa = 1,     # sd of the data over scale of a Laplace prior
  # where Langevin steps are not safe: sd bias 2.2 %, mean 0.07 sd at a wall
  barker_sigma = 0.2,
  barker_skewed = 0.35   # of models that are skewed, but without walls: 1.6 %
)

plan_recipe <- function(
  model,
  gradient,
  subsample,
  schedule,
  control,
  in_place,
  call
) {
  check_recipe(model, gradient, subsample, schedule, call)
  if (has_sums(model)) {
    return(plan_sums(model, control, call))
  }
  s <- recipe_settings
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh, call)
  spend_mode(ledger, mode)
  kappa <- laplace_kappa(model, mode)
  white <- whiten_model(model, mode, in_place, call)
  size <- max(s$min_size, ceiling(rows_per_dim * (model$n_dim - 1)))
  spend(ledger, "recipe", 1) # the rows are written anew
  if (needs_all_rows(model, kappa, size)) {
    return(recipe_mala(white, mode, list(kappa = kappa), ledger))
  }
  shape <- check_normal(white, mode, ledger, control$cores)
  recipe <- list(
    kappa = kappa,
    drop = shape$drop,
    far = if (length(shape$far) > 0) white$variables[shape$touched]
  )
  # where gradients rise steeply, fixed Langevin steps are thrown out
  is_far <- length(shape$far) > 0
  # minibatches of equally likely rows may not see what makes it so
  exact <- is_far &&
    !model_info(white)$has_weights &&
    !white$traits$is_far_from_normal
  white$traits$is_far_from_normal <- white$traits$is_far_from_normal || is_far
  if (!exact) {
    plan <- recipe_langevin(white, mode, size, recipe, ledger)
    plan <- recipe_pilot(plan, control, call)
    exact <- plan$recipe$size >= s$full_share * model$n_data
  }
  if (is_far) {
    warn_far(white, shape, exact, if (!exact) plan$recipe$always, call)
  }
  if (exact) {
    plan <- recipe_mala(white, mode, recipe, ledger)
  }
  plan
}

# Bounds and kinks take a kernel that accepts or rejects, and few rows allow
# one.
needs_all_rows <- function(model, kappa, size) {
  s <- recipe_settings
  length(bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    size >= s$full_share * model$n_data ||
    model$n_data <= s$small_data
}

# The plan where chains of Langevin steps were thrown out; NULL: they were not,
# or nothing else is left.
recipe_again <- function(plan, segment, control, call) {
  status <- vapply(segment$reports, function(r) status_name(r$status), "")
  thrown <- status %in% c("escaped", "nonfinite")
  if (is.null(plan$recipe) || plan$kernel$name != "sgld" || !any(thrown)) {
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
  warn_thrown(thrown, exact, call)
  again
}

warn_thrown <- function(thrown, exact, call) {
  n <- sum(thrown)
  how <- if (exact) {
    "All were sampled again, exactly, with all rows in every step."
  } else {
    "All were sampled again with Barker dynamics, which nothing throws out. The
     bias of the standard deviations is not estimated there;
     {.code kernel_mala()} has none, at the price of all rows in every step."
  }
  warn_tall(
    "recipe",
    c(
      "The posterior is far from normal in its tails: {n} of
       {length(thrown)} chains of Langevin steps {cli::qty(n)}{?was/were} thrown
       out of it.",
      i = how
    ),
    call = call
  )
}

# With a gradient, scheme or schedule but no kernel, nobody could say what runs.
check_recipe <- function(model, gradient, subsample, schedule, call) {
  given <- c("gradient", "subsample", "schedule")[c(
    !is.null(gradient),
    !is.null(subsample),
    !schedule_is_constant(schedule)
  )]
  if (length(given) > 0) {
    abort_input(
      c(
        "{.arg {given}} need{?s/} a {.arg kernel}: without one the recipe
         chooses all parts.",
        i = "Give for instance {.code kernel = kernel_sgld(step_size)}."
      ),
      argument = given[[1]],
      call = call
    )
  }
  check_not_whitened(model, call)
  info <- model_info(model)
  if (!info$has_curvature) {
    abort_tall(
      "unsupported",
      c(
        "There is no recipe without tuning for {.code {model$label}()}.",
        i = "Give a {.arg kernel}, for instance
             {.code kernel_sgld(step_size)}."
      ),
      call = call
    )
  }
}
