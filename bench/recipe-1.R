# The recipe as it was before exact steps from a few rows were the default, for
# scripts that measure later ones against it: in whitened
# coordinates Leimkuhler-Matthews steps of variance 0.2 with control variates of
# order 1, as many rows as a rule and a pilot say, 25 steps a draw; MALA on few
# rows, where there are bounds or kinks, and where minibatches would be a large
# part of the rows; Barker steps where the posterior is far from normal.
#
#   fit <- recipe_1(model, iter = 2000, chains = 4, seed = 1)
#   plan <- recipe_1_plan(model)
#
# Settings and the order of things are its own, so that a later default does not
# change them. Whitening, weights, the look at the shape and the run itself are
# the package's, whose inner functions it calls. Two things are left out: sums of
# Gaussian responses, and sampling again what was thrown out of its tails.
recipe_1_settings <- list(
  step_size = 0.2,
  steps = 25,
  min_size = 32,
  rows_per_dim = 2.5,
  noise_share = 0.02,
  pilot_steps = 2000,
  full_share = 1 / 4,
  small_data = 2000,
  laplace_kappa = 1,
  mala_step = 1.65^2,
  barker_sigma = 0.2,
  barker_skewed = 0.35,
  escape = function(d) 4 * d + 100
)

inside <- asNamespace("tallbayes")

recipe_1 <- function(
  model,
  iter = 2000,
  warmup = floor(iter / 2),
  chains = 4,
  cores = 1,
  seed = 1
) {
  plan <- recipe_1_plan(model, cores)
  control <- recipe_1_control(iter, warmup, 1, chains, cores, seed, "draws")
  plan$init <- inside$plan_init(plan, NULL, control)
  started <- proc.time()[["elapsed"]]
  segment <- inside$run_segment(
    plan,
    control,
    inside$new_stretch(warmup, (iter - warmup) * plan$steps)
  )
  time <- c(preparation = 0, sampling = proc.time()[["elapsed"]] - started)
  inside$seal_fit(inside$new_fit(plan, control, segment, time))
}

recipe_1_plan <- function(model, cores = 1) {
  s <- recipe_1_settings
  d <- model$n_dim
  mode <- find_mode(model)
  kappa <- inside$laplace_kappa(model, mode)
  white <- inside$whiten_model(model, mode, in_place = FALSE)
  size <- max(s$min_size, ceiling(s$rows_per_dim * (d - 1)))
  needs_all <- length(inside$bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    size >= s$full_share * model$n_data ||
    model$n_data <= s$small_data
  if (needs_all) {
    return(recipe_1_mala(white, mode))
  }
  shape <- inside$check_normal(white, mode, inside$new_ledger(), cores)
  is_far <- length(shape$far) > 0
  is_skewed <- white$traits$is_far_from_normal
  has_weights <- inside$model_info(white)$has_weights
  if (is_far && !has_weights && !is_skewed) {
    return(recipe_1_mala(white, mode))
  }
  kernel <- recipe_1_kernel(white, is_far, is_skewed)
  recipe_1_pilot(white, mode, kernel, size, cores)
}

recipe_1_kernel <- function(white, is_far, is_skewed) {
  s <- recipe_1_settings
  # behind a frame the variance of a gradient costs more than the gradient
  has_whiten <- inside$model_info(white)$has_whiten
  variant <- if (has_whiten) "corrected" else "vanilla"
  if (is_far) {
    return(kernel_sgbd(s$barker_sigma, variant = variant))
  }
  if (is_skewed) {
    return(kernel_sgbd(s$barker_skewed, variant = variant))
  }
  curvature <- inside$largest_curvature(white, inside$new_ledger())
  kernel_sgld(
    s$step_size / curvature,
    variant = variant,
    integrator = "leimkuhler-matthews"
  )
}

recipe_1_langevin <- function(white, mode, kernel, subsample) {
  s <- recipe_1_settings
  is_barker <- kernel$name == "sgbd"
  step_size <- if (is_barker) kernel$args$sigma^2 else kernel$args$step_size
  inside$new_plan(
    white,
    inside$new_sampler(kernel, gradient_cv(at = mode), subsample),
    mode = mode,
    steps = ceiling(s$steps * s$step_size / step_size),
    # increments of Barker steps are bounded: nothing runs away
    escape = if (is_barker) {
      0
    } else {
      s$escape(white$n_dim) * inside$largest_variance(white, mode)
    }
  )
}

# Measure the gradient noise, and enlarge the minibatch where it is too much.
recipe_1_pilot <- function(white, mode, kernel, size, cores) {
  s <- recipe_1_settings
  n_data <- white$n_data
  control <- recipe_1_control(
    iter = 50 + s$pilot_steps,
    warmup = 50,
    thin = s$pilot_steps,
    chains = 1,
    cores = cores,
    seed = 1,
    keep = "none"
  )
  weights <- recipe_1_weights(white, size, cores)
  for (attempt in 1:3) {
    n_row <- size + length(weights$always)
    if (n_row >= s$full_share * n_data) {
      return(recipe_1_mala(white, mode))
    }
    subsample <- recipe_1_scheme(size, weights)
    plan <- recipe_1_langevin(white, mode, kernel, subsample)
    if (attempt == 3) {
      break
    }
    pilot <- plan
    pilot$steps <- 1
    pilot$init <- matrix(0, white$n_dim, 1)
    report <- inside$run_segment(
      pilot,
      control,
      inside$new_stretch(50, s$pilot_steps),
      noise_every = 1
    )$reports[[1]]
    tau2 <- report$noise[1 + seq_len(white$n_dim)] / report$noise[[1]]
    h <- s$step_size / inside$largest_curvature(white, inside$new_ledger())
    share <- h / 4 * max(tau2)
    if (!is.finite(share) || share <= s$noise_share * 1.1) {
      break
    }
    size <- min(ceiling(size * share / s$noise_share), n_data)
  }
  plan
}

# Robust ones, and the rows that are in every minibatch; NULL: rows are alike.
recipe_1_weights <- function(white, size, cores) {
  if (!inside$model_info(white)$has_weights) {
    return(NULL)
  }
  origin <- numeric(white$n_dim)
  raw <- inside$model_weights(white, "robust", origin, NULL, cores)
  weights <- inside$mix_weights(raw, "robust")
  always <- inside$heavy_rows(raw)
  weights[always] <- 0
  always <- sort(union(always, inside$certain_rows(weights, size)))
  weights[always] <- max(weights) # any positive number: they are not drawn
  list(weights = weights, always = always)
}

recipe_1_scheme <- function(size, weights) {
  if (is.null(weights)) {
    return(subsample_uniform(size))
  }
  always <- weights$always
  subsample_weighted(
    size,
    weights$weights,
    always = if (length(always) > 0) always else FALSE
  )
}

recipe_1_mala <- function(white, mode) {
  d <- white$n_dim
  curvature <- inside$largest_curvature(white, inside$new_ledger())
  step_size <- recipe_1_settings$mala_step * d^(-1 / 3) / curvature
  inside$new_plan(
    white,
    inside$new_sampler(kernel_mala(step_size, adapt = TRUE), gradient_full()),
    mode = mode,
    # its relaxation time grows as d^(1/3)
    steps = ceiling(5 * d^(1 / 3))
  )
}

recipe_1_control <- function(iter, warmup, thin, chains, cores, seed, keep) {
  inside$check_control(
    iter, warmup, thin, chains, cores, seed, keep, refresh = 0
  )
}
