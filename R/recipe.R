# The recipe: settings found for a model, so that its user tunes nothing. All
# numbers stand here, once.
recipe_settings <- list(
  step_size = 0.2,       # h, whitened coordinates
  steps = 25,            # steps in an iteration: draws nearly independent
  min_size = 32,         # smallest minibatch
  rows_per_dim = 2.5,    # n = 2.5 (d - 1): noise share h (d - 1) / (4 n) = 2 %
  noise_share = 0.02,    # h tau_j^2 / 4 at most, in the worst coordinate
  pilot_steps = 300,
  full_share = 1 / 4,    # n >= N / 4: full gradient and Metropolis
  small_data = 2000,     # so few rows: likewise, a pass costs next to nothing
  max_dense = 1000,      # more parameters: scales only
  mala_step = 1.65^2,    # h = 1.65^2 d^(-1/3), then adapted
  escape = function(d) 4 * d + 100,
  max_drop = 1,          # log density lost by a step of one sd; normal: 0.5
  laplace_kappa = 1,     # sd of the data over scale of a Laplace prior
  barker_sigma = 0.35    # where Langevin steps are not safe: sd bias 1.6 %
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
  s <- recipe_settings
  d <- model$n_dim
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh, call)
  spend_mode(ledger, mode)
  kappa <- laplace_kappa(model, mode)
  white <- whiten_model(model, mode, in_place, call)
  shape <- check_normal(white, mode)
  # the rows are written anew, and visited once for all points of the check
  spend(ledger, "recipe", if (is.na(shape$drop)) 1 else 2)
  recipe <- list(kappa = kappa, drop = shape$drop)
  # where gradients rise steeply, fixed Langevin steps are thrown out
  is_far <- length(shape$far) > 0
  white$is_far_from_normal <- isTRUE(white$is_far_from_normal) || is_far

  size <- max(s$min_size, ceiling(s$rows_per_dim * (d - 1)))
  exact <- length(bounded_coordinates(model)) > 0 ||
    kappa > s$laplace_kappa ||
    size >= s$full_share * model$n_data ||
    model$n_data <= s$small_data
  if (!exact) {
    plan <- recipe_langevin(white, mode, size, recipe, ledger)
    plan <- recipe_pilot(plan, control, call)
    exact <- plan$recipe$size >= s$full_share * model$n_data
    plan$recipe$far <- white$variables[shape$far]
    if (is_far) {
      warn_far(white, shape, exact, call)
    }
  }
  if (exact) {
    plan <- recipe_mala(white, mode, recipe, ledger)
  }
  plan
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

# ---- coordinates -------------------------------------------------------------

# The model of a fit without a kernel is no model of the parameters any more.
check_not_whitened <- function(model, call = caller_env()) {
  if (model_is_whitened(model)) {
    abort_tall(
      "unsupported",
      c(
        "This model is in the whitened coordinates of the fit that it is from,
         not in its parameters.",
        i = "Make the model again with {.code {model$label}()}. The mode is the
             fit's: {.code fit$mode}."
      ),
      argument = "model",
      call = call
    )
  }
  invisible(model)
}

# The model in phi = L'(theta - theta-hat); L L' = -Hessian, or its diagonal
# when there are very many parameters.
whiten_model <- function(model, mode, in_place, call = caller_env()) {
  is_diagonal <- model$n_dim > recipe_settings$max_dense
  chol <- if (is_diagonal) sqrt(-diag(mode$hessian)) else mode$chol
  whitening <- list(
    center = as.double(mode$estimate),
    chol = chol,
    is_diagonal = is_diagonal
  )
  frame_model(model, whitening, in_place, call)
}

frame_model <- function(
  model,
  whitening,
  in_place = TRUE,
  call = caller_env()
) {
  pointer <- .Call(
    ffi_model_whiten,
    model$pointer,
    whitening$center,
    as.double(whitening$chol),
    whitening$is_diagonal,
    in_place
  )
  if (is.integer(pointer)) {
    abort_status(pointer, call = call)
  }
  model$pointer <- pointer
  model$whitening <- whitening
  model$cache <- new.env(parent = emptyenv())
  model
}

# Directions, in phi, of one posterior sd of each parameter (the others
# following at their conditional means): columns, of length 1.
sd_directions <- function(model) {
  chol <- model$whitening$chol
  if (model$whitening$is_diagonal) {
    return(NULL)
  }
  # theta = c + L^{-T} phi: row j of L^{-T} is the gradient of theta_j
  inverse <- backsolve(t(chol), diag(nrow(chol)))
  t(inverse / sqrt(rowSums(inverse^2)))
}

# How much log density a step of one posterior sd loses, `drop` at most: 0.5
# for a normal posterior. `far`: the coordinates that lose far more, worst
# first, and what they lose.
check_normal <- function(model, mode) {
  directions <- sd_directions(model)
  # of a point that stands in for a mode no shape is known
  if (is.null(directions) || mode$method == "given sigma") {
    return(list(drop = NA_real_, far = integer(), lost = numeric()))
  }
  points <- cbind(directions, -directions, 0)
  density <- density_at(model, points)
  n <- model$n_dim
  drop <- density[[2 * n + 1]] - density[seq_len(2 * n)]
  drop[!is.finite(drop)] <- Inf
  # bounds are known, and kept by an exact kernel
  theta <- .Call(ffi_model_to_parameter, model$pointer, points)
  drop[is_outside(model, theta)[seq_len(2 * n)]] <- 0
  worst <- pmax(drop[seq_len(n)], drop[n + seq_len(n)])
  far <- order(worst, decreasing = TRUE)
  far <- far[worst[far] > recipe_settings$max_drop]
  list(drop = max(worst), far = far, lost = worst[far])
}

# Bounded steps do sample such a posterior, but the identity behind `sd_bias`
# rests on gradients that are huge in a few draws: it is not reported there.
warn_far <- function(model, shape, exact, call) {
  far <- shape$far
  names <- quote_columns(model$coordinates[far])
  lost <- format(shape$lost[[1]], digits = 2)
  how <- if (exact) {
    "It is sampled exactly, with all rows in every step. A narrower prior is
     faster."
  } else {
    "It is sampled with Barker dynamics, which nothing throws out. The bias of
     the standard deviation is not estimated there. A narrower prior helps."
  }
  warn_tall(
    "recipe",
    c(
      "The posterior of {names} is far from normal at its mode.",
      x = "A step of one standard deviation loses {lost} of log density where
           a normal posterior loses 0.5{far_reason(model, far)}.",
      i = how
    ),
    columns = model$variables[far],
    call = call
  )
}

# What makes a posterior skewed, where that is known.
far_reason <- function(model, far) {
  if (!inherits(model, "tall_model_glm")) {
    ""
  } else if (model$family$name == "gaussian") {
    ": few rows for the columns do that"
  } else {
    paste(
      ": an outcome that (almost) never occurs with",
      if (length(far) == 1) "this column" else "these columns",
      "does that, or a few values that are huge"
    )
  }
}

# Log posterior at many points, in one pass over the data where the model can.
density_at <- function(model, points) {
  log_lik <- .Call(ffi_model_log_lik_many, model$pointer, as.double(points))
  if (is.integer(log_lik)) {
    return(model_evaluate(model, points, needs_finite = FALSE)$log_density)
  }
  likelihood_scale(model) * log_lik +
    model_evaluate(model, points, "prior")$log_density
}

# Of each coordinate with a Laplace prior (by its number, as name), the ratio of
# the sd without that prior to its scale. In the Hessian of the mode the prior
# counts as 1 / (2 s^2).
laplace_ratios <- function(model, mode) {
  laplace <- which(model$prior$kind == prior_kinds$laplace$code)
  if (length(laplace) == 0) {
    return(numeric())
  }
  scale <- model$prior$scale[laplace]
  with_prior <- diag(vcov(mode))[laplace]
  precision <- pmax(1 / with_prior - 1 / (2 * scale^2), 0)
  stats::setNames(1 / sqrt(precision) / scale, laplace)
}

laplace_kappa <- function(model, mode) {
  max(0, laplace_ratios(model, mode))
}

# At the kink of a narrow Laplace prior, steps without acceptance are not
# accurate. Said where the run has had a mode to know by.
warn_laplace <- function(plan, model, call) {
  mode <- known_mode(plan)
  if (kernel_is_metropolis(plan$kernel) || is.null(mode$chol)) {
    return(invisible())
  }
  ratio <- laplace_ratios(model, mode)
  ratio <- sort(ratio[ratio > recipe_settings$laplace_kappa], decreasing = TRUE)
  if (length(ratio) == 0) {
    return(invisible())
  }
  worst <- as.integer(names(ratio))
  names <- quote_columns(model$coordinates[worst])
  alone <- if (is.finite(ratio[[1]])) {
    paste(
      "give a standard deviation", format(ratio[[1]], digits = 2), "times as large"
    )
  } else {
    "say nothing of the parameter"
  }
  warn_tall(
    "prior",
    c(
      "{.code kernel_{plan$kernel$name}()} may not be accurate under the Laplace
       prior of {names}.",
      x = "Its scale is {format_number(model$prior$scale[[worst[[1]]]])}; the
           data alone {alone}.",
      i = "{.fn kernel_mala} is exact, as is a run without a {.arg kernel}."
    ),
    columns = model$variables[worst],
    ratio = unname(ratio),
    call = call
  )
}

# ---- the two plans -----------------------------------------------------------

recipe_langevin <- function(model, mode, size, recipe, ledger) {
  s <- recipe_settings
  step_size <- s$step_size / largest_curvature(model, ledger)
  recipe$size <- size
  recipe$step_size <- step_size
  # behind a frame the variance of a gradient costs more than the gradient: the
  # noise that is left, 2 percent at most, stays
  variant <- if (model_info(model)$has_whiten) "corrected" else "vanilla"
  kernel <- if (isTRUE(model$is_far_from_normal)) {
    step_size <- s$barker_sigma^2
    kernel_sgbd(s$barker_sigma, variant = variant)
  } else {
    kernel_sgld(
      step_size,
      variant = variant,
      integrator = "leimkuhler-matthews"
    )
  }
  new_plan(
    model,
    kernel,
    gradient_cv(at = mode),
    recipe_scheme(size),
    schedule_constant(),
    mode = mode,
    steps = ceiling(s$steps * s$step_size / step_size),
    # Barker increments are bounded: nothing runs away
    escape = if (kernel$name == "sgbd") {
      0
    } else {
      s$escape(model$n_dim) * largest_variance(model, mode)
    },
    recipe = recipe,
    ledger = ledger
  )
}

# 1 after full whitening; the largest eigenvalue of the scaled Hessian, by power
# iteration on gradients, when only the scales were adjusted.
largest_curvature <- function(model, ledger, n_iter = 30) {
  if (!model$whitening$is_diagonal) {
    return(1)
  }
  spend(ledger, "recipe", 1 + n_iter)
  v <- start_direction(model$n_dim)
  origin <- model_evaluate(model, numeric(model$n_dim))$gradient
  value <- 1
  for (k in seq_len(n_iter)) {
    w <- (origin - model_evaluate(model, 1e-3 * v)$gradient) / 1e-3
    value <- sqrt(sum(w^2))
    v <- drop(w) / value
  }
  max(1, 1.05 * value)
}

# Of a direction in the sampler's coordinates, near the mode: 1 after full
# whitening; with scales alone, correlated columns leave more.
largest_variance <- function(model, mode, n_iter = 30) {
  if (!model$whitening$is_diagonal || is.null(mode$chol)) {
    return(1)
  }
  scale <- model$whitening$chol
  v <- start_direction(model$n_dim)
  value <- 1
  for (k in seq_len(n_iter)) {
    w <- backsolve(t(mode$chol), forwardsolve(mode$chol, scale * v)) * scale
    value <- sqrt(sum(w^2))
    v <- drop(w) / value
  }
  max(1, value)
}

# A unit vector that no symmetry makes orthogonal to an eigenvector.
start_direction <- function(n_dim) {
  v <- cos(seq_len(n_dim))
  v / sqrt(sum(v^2))
}

# Weights found before, with their type for fits to keep instead of N numbers;
# rows alike for a model without weights.
recipe_scheme <- function(size, weights = NULL) {
  if (is.null(weights)) {
    return(subsample_uniform(size))
  }
  structure(subsample_weighted(size, weights), type = "leverage")
}

# Measure the gradient noise and enlarge the minibatch where it is too much.
recipe_pilot <- function(plan, control, call) {
  s <- recipe_settings
  n_data <- plan$model$n_data
  pilot_control <- utils::modifyList(
    control,
    list(
      chains = 1,
      thin = s$pilot_steps,
      keep = "none",
      monitor = NULL,
      refresh = 0
    )
  )
  weights <- if (model_info(plan$model)$has_weights) {
    run_context(plan, control)$weights("leverage", call)
  }
  for (attempt in 1:2) {
    plan$subsample <- recipe_scheme(plan$recipe$size, weights)
    pilot <- plan
    pilot$steps <- 1
    pilot$init <- matrix(0, plan$model$n_dim, 1)
    report <- run_segment(
      pilot,
      pilot_control,
      n_warmup = 50,
      n_sampling = s$pilot_steps,
      noise_every = 1,
      call = call
    )$reports[[1]]
    spend(plan$ledger, "recipe", report$n_row / n_data)
    noise <- report$noise
    tau2 <- noise[1 + seq_len(plan$model$n_dim)] / noise[[1]]
    share <- plan$recipe$step_size / 4 * max(tau2)
    plan$recipe$noise_share <- share
    if (!is.finite(share) || share <= s$noise_share * 1.1) {
      break
    }
    plan$recipe$size <- ceiling(plan$recipe$size * share / s$noise_share)
    plan$recipe$noise_share <- s$noise_share
    plan$subsample <- recipe_scheme(plan$recipe$size, weights)
    if (plan$recipe$size >= s$full_share * n_data) {
      break
    }
  }
  plan
}

recipe_mala <- function(model, mode, recipe, ledger) {
  s <- recipe_settings
  d <- model$n_dim
  recipe$size <- model$n_data
  new_plan(
    model,
    kernel_mala(
      s$mala_step * d^(-1 / 3) / largest_curvature(model, ledger),
      adapt = TRUE
    ),
    gradient_full(),
    NULL,
    schedule_constant(),
    mode = mode,
    # its relaxation time grows as d^(1/3)
    steps = ceiling(5 * d^(1 / 3)),
    recipe = recipe,
    ledger = ledger
  )
}
