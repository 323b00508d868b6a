# The recipe: settings found for a model, so that its user tunes nothing. All
# numbers stand here, once.
recipe_settings <- list(
  step_size = 0.2,       # h, whitened coordinates
  steps = 25,            # steps in an iteration: draws nearly independent
  min_size = 32,         # smallest minibatch
  rows_per_dim = 2.5,    # n = 2.5 (d - 1): noise share h (d - 1) / (4 n) = 2 %
  noise_share = 0.02,    # h tau_j^2 / 4 at most, in the worst coordinate
  pilot_steps = 2000,
  pilot_seed = 1,
  full_share = 1 / 4,    # n >= N / 4: full gradient and Metropolis
  small_data = 2000,     # so few rows: likewise, a pass costs next to nothing
  max_dense = 1000,      # more parameters: scales only
  mala_step = 1.65^2,    # h = 1.65^2 d^(-1/3), then adapted
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
  s <- recipe_settings
  ledger <- new_ledger()
  mode <- model_mode(model, control$cores, control$refresh, call)
  spend_mode(ledger, mode)
  kappa <- laplace_kappa(model, mode)
  white <- whiten_model(model, mode, in_place, call)
  size <- max(s$min_size, ceiling(s$rows_per_dim * (model$n_dim - 1)))
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
    !isTRUE(white$is_far_from_normal)
  white$is_far_from_normal <- isTRUE(white$is_far_from_normal) || is_far
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

# Bounds and kinks take a kernel that accepts or rejects, and few rows allow one.
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
    model$is_far_from_normal <- TRUE
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

# How much log density steps of 1, 2 and 3 posterior sds lose, along each
# parameter and along the rows that matter most. `drop`: with one sd, at most (a
# bound, where that is enough); 0.5 for a normal posterior. `far`: the
# coordinates that lose far more than a normal posterior, worst first; of them
# `radius` is where they do, and `lost` what. `touched`: all that take part.
check_normal <- function(model, mode, ledger, cores) {
  directions <- sd_directions(model)
  none <- list(drop = NA_real_, far = integer())
  # of a point that stands in for a mode no shape is known
  if (is.null(directions) || mode$method == "given sigma") {
    return(none)
  }
  s <- recipe_settings
  cubic <- cubic_weights(model, ledger, cores)
  bound <- cubic_bound(model, cubic)
  # what is lost is within r^3 bound / 6 of r^2 / 2
  allowed <- 3 * (s$max_ratio - 1) / s$radii
  radii <- s$radii[!(bound <= allowed)]
  if (length(radii) == 0) {
    return(utils::modifyList(none, list(drop = 0.5 + bound / 6)))
  }
  if (2 * length(radii) * ncol(directions) > s$max_points) {
    radii <- range(radii)
  }
  along <- cbind(directions, heavy_directions(model, cubic))
  lost <- density_lost(model, along, radii)
  spend(ledger, "recipe", 1)
  ratio <- sweep(lost, 2, radii^2 / 2, "/")
  # a direction of rows is told by the parameter nearest to it
  overlap <- abs(crossprod(directions, along))
  of <- apply(overlap, 2, which.max)
  worst <- which(apply(ratio, 1, max) > s$max_ratio)
  worst <- worst[order(apply(ratio[worst, , drop = FALSE], 1, max),
                       decreasing = TRUE)]
  touched <- which(apply(overlap[, worst, drop = FALSE] > 0.05, 1, any))
  worst <- worst[!duplicated(of[worst])]
  # the first radius where it shows
  at <- apply(ratio[worst, , drop = FALSE] > s$max_ratio, 1, which.max)
  list(
    drop = if (1 %in% radii) max(lost[, 1]) else 0.5 + bound / 6,
    far = of[worst],
    touched = touched,
    radius = radii[at],
    lost = lost[cbind(worst, at)]
  )
}

# sup |l_i'''| ||x_i||^3 of every row, in whitened coordinates and within 4 sds;
# NULL: not known.
cubic_weights <- function(model, ledger, cores) {
  if (!model_info(model)$has_weights) {
    return(NULL)
  }
  origin <- numeric(model$n_dim)
  cubic <- .Call(
    ffi_model_weights,
    model$pointer,
    weight_codes[["cubic"]],
    origin,
    NULL,
    cores
  )
  if (is.integer(cubic)) {
    return(NULL)
  }
  spend(ledger, "recipe", 1)
  likelihood_scale(model) * cubic
}

# Of the third derivative of the log posterior in any direction. Priors that are
# not normal have their own.
cubic_bound <- function(model, cubic) {
  quadratic <- c(prior_kinds$flat$code, prior_kinds$normal$code)
  if (is.null(cubic) || !all(model$prior$kind %in% quadratic)) {
    return(Inf)
  }
  sum(cubic)
}

# Directions of the rows whose weight is largest, as columns: an outlier in
# several columns may lie between the parameters.
heavy_directions <- function(model, cubic) {
  if (is.null(cubic)) {
    return(NULL)
  }
  # a tenth of what makes a posterior far from normal
  heavy <- utils::head(
    order(cubic, decreasing = TRUE),
    recipe_settings$heavy_rows
  )
  heavy <- heavy[cubic[heavy] > 0.1]
  # r_i x_i; r_i may vanish at one point and not at another
  sides <- cbind(0, 3 * sd_directions(model), -3 * sd_directions(model))
  rows <- lapply(heavy, function(i) {
    g <- model_evaluate(model, sides, "likelihood", index = i)$gradient
    size <- sqrt(colSums(g^2))
    k <- which.max(replace(size, !is.finite(size), 0))
    if (isTRUE(size[[k]] > 0)) g[, k] / size[[k]]
  })
  do.call(cbind, rows)
}

# Log density that is lost from the mode by a step of each radius along each
# direction or against it, whichever loses more: directions x radii.
density_lost <- function(model, directions, radii) {
  steps <- c(radii, -radii)
  points <- do.call(cbind, lapply(steps, function(r) r * directions))
  density <- density_at(model, cbind(points, 0))
  n <- ncol(points)
  lost <- density[[n + 1]] - density[seq_len(n)]
  lost[!is.finite(lost)] <- Inf
  # bounds are known, and kept by an exact kernel
  theta <- .Call(ffi_model_to_parameter, model$pointer, points)
  lost[is_outside(model, theta)] <- 0
  lost <- array(lost, c(ncol(directions), length(radii), 2))
  pmax(
    matrix(lost[, , 1], ncol(directions)),
    matrix(lost[, , 2], ncol(directions))
  )
}

# Bounded steps do sample such a posterior, but the identity behind `sd_bias`
# rests on gradients that are huge in a few draws: it is not reported there.
warn_far <- function(model, shape, exact, rows, call) {
  far <- shape$far
  names <- quote_columns(model$coordinates[far])
  radius <- shape$radius[[1]]
  lost <- format(shape$lost[[1]], digits = 2)
  # rows may tell of a combination of parameters alone
  is_combination <- length(shape$touched) == 0
  why <- if (is_combination) {
    ": a few values that are huge do that"
  } else {
    far_reason(model, far)
  }
  whose <- if (is_combination) {
    "The posterior is far from normal in a combination of its parameters, but in
     none of them alone."
  } else {
    "The posterior of {names} is far from normal."
  }
  how <- if (exact) {
    "It is sampled exactly, with all rows in every step. A narrower prior is
     faster."
  } else if (is_combination) {
    "It is sampled with Barker dynamics, which nothing throws out, in small
     steps. A narrower prior helps."
  } else {
    "It is sampled with Barker dynamics, which nothing throws out, in small
     steps. The bias of the standard deviation is not estimated there;
     {.code kernel_mala()} has none, at the price of all rows in every step. A
     narrower prior helps."
  }
  warn_tall(
    "recipe",
    c(
      whose,
      x = "A step of {radius} standard deviation{?s} from the mode loses {lost}
           of log density where a normal posterior loses
           {radius^2 / 2}{why}.",
      i = how,
      i = if (length(rows) > 0) {
        "Look at {cli::qty(length(rows))}row{?s} {row_numbers(rows)} of those
         that are used: {cli::qty(length(rows))}{?it/they} can outweigh all
         others."
      }
    ),
    columns = model$variables[far],
    rows = rows,
    call = call
  )
}

# "1, 5 and 98 more"
row_numbers <- function(rows) {
  shown <- format(utils::head(rows, 5), trim = TRUE, scientific = FALSE)
  if (length(rows) > 6) {
    shown <- c(shown, paste(length(rows) - 5, "more"))
  } else {
    shown <- format(rows, trim = TRUE, scientific = FALSE)
  }
  cli::format_inline("{shown}")
}

# What makes a posterior skewed, where that is known.
far_reason <- function(model, far) {
  if (!inherits(model, "tall_model_glm")) {
    ""
  } else {
    columns <- if (length(far) == 1) "this column" else "these columns"
    words <- find_response(model$family)$skewness
    paste0(": ", sub("%s", columns, words, fixed = TRUE))
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
    sigma <- if (is.null(recipe$far)) s$barker_skewed else s$barker_sigma
    step_size <- sigma^2
    kernel_sgbd(sigma, variant = variant)
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
# rows alike for a model without weights. always: those of every minibatch.
recipe_scheme <- function(size, weights = NULL, always = integer()) {
  if (is.null(weights)) {
    return(subsample_uniform(size))
  }
  structure(
    subsample_weighted(
      size,
      weights,
      always = if (length(always) > 0) always else FALSE
    ),
    type = "robust"
  )
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
      seed = s$pilot_seed, # what is found depends on the model alone
      keep = "none",
      monitor = NULL,
      refresh = 0
    )
  )
  weights <- NULL
  always <- integer()
  if (model_info(plan$model)$has_weights) {
    spend(plan$ledger, "weights", 1)
    origin <- numeric(plan$model$n_dim)
    cores <- control$cores
    raw <- model_weights(plan$model, "robust", origin, NULL, cores, call)
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
