# The recipe's plans: Langevin or Barker steps on minibatches, MALA and Barker's
# Metropolis steps on all rows.

recipe_langevin <- function(model, mode, size, recipe, ledger) {
  s <- setting("recipe")
  step_size <- s$step_size / largest_curvature(model, ledger)
  recipe$size <- size
  recipe$step_size <- step_size
  # behind a frame the variance of a gradient costs more than the gradient: the
  # noise that is left, 2 percent at most, stays
  variant <- if (model_info(model)$has_whiten) "corrected" else "vanilla"
  if (model$traits$is_far_from_normal) {
    sigma <- if (is.null(recipe$far)) s$barker_skewed else s$barker_sigma
    step_size <- sigma^2
    kernel <- kernel_sgbd(sigma, variant = variant)
    # its increments are bounded: nothing runs away
    escape <- 0
  } else {
    kernel <- kernel_sgld(
      step_size,
      variant = variant,
      integrator = "leimkuhler-matthews"
    )
    escape <- s$escape(model$n_dim) * largest_variance(model, mode)
  }
  plan <- new_plan(
    model,
    new_sampler(kernel, gradient_cv(at = mode), recipe_scheme(size)),
    mode = mode,
    steps = steps_of_draw(step_size),
    escape = escape,
    recipe = recipe,
    ledger = ledger
  )
  plan$why <- if (escape > 0) {
    "small Langevin steps on minibatches"
  } else {
    "Barker steps on minibatches, which nothing throws out"
  }
  plan
}

# All rows in every step, of a posterior that is far from normal: steps that do
# not run away where gradients rise steeply, and are accepted or rejected.
recipe_barker <- function(model, mode, recipe, ledger) {
  plan <- recipe_mala(model, mode, recipe, ledger)
  plan$kernel <- kernel_barker(sqrt(plan$kernel$args$step_size), adapt = TRUE)
  plan$why <- "exact steps on all rows of a posterior far from normal"
  plan
}

# Weights found before, with their type for fits to keep instead of N numbers;
# rows alike for a model without weights. always: those of every minibatch.
recipe_scheme <- function(
  size,
  weights = NULL,
  always = integer(),
  type = "robust"
) {
  if (is.null(weights)) {
    return(subsample_uniform(size))
  }
  structure(
    subsample_weighted(
      size,
      weights,
      always = if (length(always) > 0) always else FALSE
    ),
    type = type
  )
}

# Measure the gradient noise and enlarge the minibatch where it is too much.
recipe_pilot <- function(plan, control) {
  s <- setting("recipe")
  n_data <- plan$model$n_data
  weights <- NULL
  always <- integer()
  if (model_info(plan$model)$has_weights) {
    spend(plan$ledger, "weights", 1)
    origin <- numeric(plan$model$n_dim)
    cores <- control$cores
    raw <- model_weights(plan$model, "robust", origin, NULL, cores)
    weights <- mix_weights(raw, "robust")
    always <- heavy_rows(raw)
    weights[always] <- 0
    always <- sort(union(always, certain_rows(weights, plan$recipe$size)))
    weights[always] <- max(weights) # any positive number: they are not drawn
  }
  plan$recipe$always <- always
  if (plan$recipe$size + length(always) >= s$full_share * n_data) {
    plan$recipe$size <- n_data
    return(plan)
  }
  for (attempt in 1:2) {
    plan$subsample <- recipe_scheme(plan$recipe$size, weights, always)
    pilot <- plan
    pilot$steps <- 1
    pilot$init <- matrix(0, plan$model$n_dim, 1)
    report <- run_segment(
      pilot,
      pilot_control(control, s$pilot_steps),
      new_stretch(50, s$pilot_steps),
      noise_every = 1
    )$reports[[1]]
    spend(plan$ledger, "recipe", report$n_row / n_data)
    noise <- report$noise
    tau2 <- noise[1 + seq_len(plan$model$n_dim)] / noise[[1]]
    share <- plan$recipe$step_size / 4 * max(tau2)
    plan$recipe$noise_share <- share
    if (!is.finite(share) || share <= s$noise_share * 1.1) {
      break
    }
    # more than all rows would not be a number of rows
    size <- ceiling(plan$recipe$size * share / s$noise_share)
    plan$recipe$size <- min(size, n_data)
    plan$recipe$noise_share <- s$noise_share
    if (plan$recipe$size + length(always) >= s$full_share * n_data) {
      plan$recipe$size <- n_data
      break
    }
    plan$subsample <- recipe_scheme(plan$recipe$size, weights, always)
  }
  plan
}

# For a draw: the relaxation time grows as d^(1/3).
mala_steps <- function(n_dim) {
  ceiling(5 * n_dim^(1 / 3))
}

recipe_mala <- function(model, mode, recipe, ledger) {
  d <- model$n_dim
  recipe$size <- model$n_data
  step_size <- langevin_step * d^(-1 / 3) / largest_curvature(model, ledger)
  plan <- new_plan(
    model,
    new_sampler(kernel_mala(step_size, adapt = TRUE), gradient_full()),
    mode = mode,
    steps = mala_steps(d),
    recipe = recipe,
    ledger = ledger
  )
  plan$why <- "exact steps on all rows"
  plan
}
