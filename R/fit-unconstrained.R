# Draws as they were sampled, in unconstrained coordinates.

# list(draws, order, weights, fit): draws x coordinates, a plain matrix of the
# parameters as they were sampled, chain after chain; `order` goes through them
# iteration by iteration.
diagnostic_points <- function(
  draws,
  arg = "draws",
  call = caller_env(),
  needs_all = TRUE
) {
  check_given(draws, arg = arg, call = call)
  if (inherits(draws, "tall_fit")) {
    check_has_draws(draws, call)
    theta <- fit_unconstrained(draws, needs_all, call)
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
  check_matrix(theta, arg = arg, call = call)
  storage.mode(theta) <- "double"
  n <- nrow(theta)
  list(
    draws = theta,
    order = as.integer(t(matrix(seq_len(n), ncol = n_chain))),
    weights = if (is.null(weights)) rep(1, n) else as.double(weights),
    fit = fit
  )
}

# Draws x coordinates of a fit, as they were sampled.
fit_unconstrained <- function(fit, needs_all = TRUE, call = caller_env()) {
  if (needs_all) {
    check_has_all(fit, call)
  }
  if (is.null(fit$unconstrained)) {
    theta <- draws_matrix(fit)
    colnames(theta) <- recorded(fit$coordinates, fit$control)
    return(theta)
  }
  coordinates <- recorded(fit$coordinates, fit$control)
  matrix(
    fit$unconstrained,
    ncol = length(coordinates),
    dimnames = list(NULL, coordinates)
  )
}

# For what needs whole states.
check_has_all <- function(fit, call) {
  if (!is.null(fit$control$record)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept draws of {format_count(length(fit$control$record))} of its
         {count_noun(length(fit$coordinates), 'parameter')}: all are needed
        here.", i = "Run again and keep all."
      ),
      call = call
    )
  }
}
