# Step sizes that were not given, from the posterior's scales.

# The kernel of a run whose chains have starting points. at_mode: do they come
# from the mode? Then it is known. What is remembered of the model is looked at
# only where it would be found here, since draws depend on the arguments alone.
settle_kernel <- function(plan, at_mode, control) {
  if (!lacks_step(plan$kernel)) {
    return(plan$kernel)
  }
  model <- plan$model
  d <- model$n_dim
  if (model_is_whitened(model)) {
    curvature <- largest_curvature(model, plan$ledger)
    return(fill_steps(plan$kernel, d, 1 / sqrt(curvature)))
  }
  at_mode <- at_mode && is.null(model$traits$draw)
  given <- plan$gradient$args$at
  mode <- if (inherits(given, "tall_mode")) {
    given
  } else if (at_mode || model_info(model)$has_curvature) {
    # from an `init`, chains can do without one
    tryCatch(
      plan_mode(plan, control),
      tall_error = function(cnd) if (at_mode) rlang::cnd_signal(cnd)
    )
  }
  if (is.null(mode$hessian)) {
    theta <- mode$estimate %||% plan$init[, 1]
    curvature <- curvature_at(plan, as.double(theta))
    return(fill_steps(plan$kernel, d, 1 / sqrt(curvature)))
  }
  precision <- -unname(mode$hessian)
  scale <- 1 / sqrt(diag(precision))
  scaled <- scale * precision * rep(scale, each = d)
  largest <- function(a) largest_eigenvalue(function(v) drop(a %*% v), d)
  fill_steps(
    plan$kernel,
    d,
    common = 1 / sqrt(largest(precision)),
    each = scale / sqrt(largest(scaled))
  )
}

# The largest curvature of the log posterior at a point, from gradients.
curvature_at <- function(plan, theta) {
  model <- plan$model
  n_iter <- 20
  spend(plan$ledger, "recipe", 1 + n_iter)
  gradient_at <- function(theta) {
    drop(model_evaluate(model, theta, needs_finite = FALSE)$gradient)
  }
  here <- gradient_at(theta)
  h <- 1e-5 * (1 + max(abs(theta)))
  apart <- function(v) (here - gradient_at(theta + h * v)) / h
  value <- largest_eigenvalue(apart, model$n_dim, n_iter)
  if (!is.finite(value) || value <= 0) {
    name <- lacking_steps(plan$kernel)[[1]]
    abort_input(
      c(
        "{.arg {name}} must be given: the gradients where the chains start do
         not show the scale of the posterior.",
        i = "Or give an {.arg init} closer to the mode."
      ),
      argument = name
    )
  }
  value
}

# Of a symmetric matrix, by power iteration on what it does to a vector.
largest_eigenvalue <- function(times, n_dim, n_iter = 30) {
  v <- start_direction(n_dim)
  value <- 0
  for (k in seq_len(n_iter)) {
    w <- times(v)
    value <- sqrt(sum(w^2))
    if (!is.finite(value) || value == 0) {
      break
    }
    v <- w / value
  }
  value
}

# A unit vector that no symmetry makes orthogonal to an eigenvector.
start_direction <- function(n_dim) {
  v <- cos(seq_len(n_dim))
  v / sqrt(sum(v^2))
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
