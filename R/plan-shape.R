# Is the posterior near normal where its mass is? The recipe looks.

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
  s <- setting("recipe")
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
  if (is.null(cubic) || !all(prior_has_form(model$prior, "quadratic"))) {
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
    setting("recipe")$heavy_rows
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
  theta <- to_parameter(model, points)
  lost[is_outside(model, theta)] <- 0
  lost <- array(lost, c(ncol(directions), length(radii), 2))
  pmax(
    matrix(lost[, , 1], ncol(directions)),
    matrix(lost[, , 2], ncol(directions))
  )
}

# front: see exact_remedy(). Bounded steps do sample such a posterior, but the
# identity behind `sd_bias` rests on gradients that are huge in a few draws: it
# is not reported there. seconds: of a run with all rows in every step.
warn_far <- function(
  model,
  shape,
  exact,
  rows,
  front = TRUE,
  seconds = NULL
) {
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
    paste0(
      "It is sampled with Barker dynamics, which nothing throws out, in small
       steps. Exact draws look at all rows in every step",
      told_seconds(seconds),
      ". A narrower prior helps."
    )
  } else {
    paste0(
      "It is sampled with Barker dynamics, which nothing throws out, in small
       steps. The bias of the standard deviation is not estimated there; ",
      exact_remedy(model, front),
      " has none, at the price of all rows in every step",
      told_seconds(seconds),
      ". A narrower prior helps."
    )
  }
  warn_tall(
    "recipe",
    c(
      whose,
      x = "A step of {radius} standard deviation{?s} from the mode loses {lost}
           of log density where a normal posterior loses
           {radius^2 / 2}{why}.",
      i = how,
      i = if (!exact && samples_aux(model)) {
        "Minibatches may miss the rows that tell of it, and chains drift away
         then: where {.field rhat} is not near 1 the draws are wrong."
      },
      i = if (length(rows) > 0) {
        "Look at {cli::qty(length(rows))}row{?s} {row_numbers(rows)} of those
         that are used: {cli::qty(length(rows))}{?it/they} can outweigh all
         others."
      }
    ),
    columns = model$variables[far],
    rows = rows
  )
}

told_seconds <- function(seconds) {
  if (!is.null(seconds)) {
    paste0(": about ", format_seconds(seconds), " of one core")
  }
}

# What samples exactly where the recipe does not, as it is typed. front: in a
# call of a front end, which runs such a kernel in whitened coordinates? Of a
# model, in whose own coordinates it may hardly move, such a call is named.
exact_remedy <- function(model, front) {
  if (front || !model$label %in% c("model_glm", "model_classes")) {
    "{.code kernel = kernel_mala()}"
  } else if (model$label == "model_glm") {
    "{.code tall_glm.fit(x, y, kernel = kernel_mala())}"
  } else if (model$method == "softmax") {
    "{.code tall_multinom(kernel = kernel_mala())}"
  } else {
    "{.code tall_polr(kernel = kernel_mala())}"
  }
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
  if (!model$traits$has_columns) {
    return("")
  }
  # beside the mean: its scale may end nearby, as degrees of freedom do at 1
  if (all(far > model$n_dim - model$traits$n_aux)) {
    return(": it may lie next to the end of its range, or rows may be few")
  }
  columns <- if (length(far) == 1) "this column" else "these columns"
  words <- find_response(model$family)$skewness
  paste0(": ", sub("%s", columns, words, fixed = TRUE))
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
# counts by its variance.
laplace_ratios <- function(model, mode) {
  kinked <- kinked_coordinates(model)
  if (length(kinked) == 0) {
    return(numeric())
  }
  scale <- model$prior$scale[kinked]
  variance <- if (is.null(mode$chol)) mode$scale^2 else diag(vcov(mode))
  with_prior <- variance[kinked]
  own <- prior_precision(model$prior)[kinked]
  precision <- pmax(1 / with_prior - own, 0)
  stats::setNames(1 / sqrt(precision) / scale, kinked)
}

laplace_kappa <- function(model, mode) {
  max(0, laplace_ratios(model, mode))
}

# At the kink of a narrow Laplace prior, steps without acceptance are not
# accurate. Said where the run has had a mode to know by.
warn_laplace <- function(plan, model) {
  mode <- known_mode(plan)
  if (kernel_is_metropolis(plan$kernel) || is.null(mode$chol)) {
    return(invisible())
  }
  ratio <- laplace_ratios(model, mode)
  is_sharp <- ratio > setting("recipe")$laplace_kappa
  ratio <- sort(ratio[is_sharp], decreasing = TRUE)
  if (length(ratio) == 0) {
    return(invisible())
  }
  worst <- as.integer(names(ratio))
  names <- quote_columns(model$coordinates[worst])
  alone <- if (is.finite(ratio[[1]])) {
    times <- format(ratio[[1]], digits = 2)
    paste("give a standard deviation", times, "times as large")
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
      # one step size for coordinates of other scales is slow
      i = if (model_info(model)$has_curvature) {
        "A run without a {.arg kernel} is exact."
      } else {
        "{.fn kernel_mala} is exact."
      }
    ),
    columns = model$variables[worst],
    ratio = unname(ratio)
  )
}
