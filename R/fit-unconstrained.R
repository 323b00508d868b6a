# Draws as they were sampled, in unconstrained coordinates.

# list(draws, order, weights, fit): draws x coordinates, a plain matrix of the
# parameters as they were sampled, chain after chain; `order` goes through them
# iteration by iteration.
diagnostic_points <- function(draws, arg = "draws", needs_all = TRUE) {
  check_given(draws, arg = arg)
  if (inherits(draws, "tall_fit")) {
    check_has_draws(draws)
    theta <- fit_unconstrained(draws, needs_all)
    n_chain <- posterior::nchains(draws$draws)
    weights <- draws$weights
    fit <- draws
  } else {
    fit <- NULL
    weights <- NULL
    n_chain <- 1
    theta <- draws
    if (posterior::is_draws(draws)) {
      n_chain <- posterior::nchains(draws)
      weights <- stats::weights(draws)
      theta <- unclass(posterior::as_draws_array(draws))
      theta <- theta[, , posterior::variables(draws), drop = FALSE]
      theta <- matrix(
        theta,
        ncol = dim(theta)[[3]],
        dimnames = list(NULL, dimnames(theta)[[3]])
      )
    } else if (is.data.frame(draws)) {
      theta <- as.matrix(draws)
    }
  }
  check_matrix(theta, arg = arg)
  storage.mode(theta) <- "double"
  n <- nrow(theta)
  list(
    draws = theta,
    order = as.integer(t(matrix(seq_len(n), ncol = n_chain))),
    weights = if (is.null(weights)) rep(1, n) else as.double(weights),
    fit = fit
  )
}

# Draws x coordinates of a fit, as they were sampled: those that were kept
# beside the variables, or the variables themselves, of a model without a map.
fit_unconstrained <- function(fit, needs_all = TRUE) {
  if (needs_all) {
    check_has_all(fit)
  }
  if (is.null(fit$unconstrained)) {
    check_has_no_map(fit)
  }
  coordinates <- recorded(fit$coordinates, fit$control)
  matrix(
    fit$unconstrained %||% draws_matrix(fit),
    ncol = length(coordinates),
    dimnames = list(NULL, coordinates)
  )
}

# Fits that do not say whether their model had a map are of a time when names
# were asked: of some models these were the same on both sides of it, and the
# parameters were not kept.
check_has_no_map <- function(fit) {
  has_map <- fit$has_map %||% may_have_map(fit)
  if (has_map) {
    abort_no_unconstrained()
  }
}

# Those whose names did not tell.
may_have_map <- function(fit) {
  inherits(fit$model, c("tall_model_classes", "tall_model_native"))
}

# For what needs whole states.
check_has_all <- function(fit) {
  if (!is.null(fit$control$record)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept draws of {format_count(length(fit$control$record))} of its
         {count_noun(length(fit$coordinates), 'parameter')}: all are needed
        here.", i = "Run again and keep all."
      )
    )
  }
}
