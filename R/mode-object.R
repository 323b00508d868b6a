# tall_mode: where a mode is, its curvature, and how it was found.

# A log posterior about a point, to second order. hessian: minus the Hessian,
# NULL where there is none.
new_expansion <- function(theta, log_posterior, gradient, hessian = NULL) {
  stopifnot(length(gradient) == length(theta))
  expansion <- list(
    theta = theta,
    log_posterior = log_posterior,
    gradient = gradient,
    hessian = hessian
  )
  structure(expansion, class = "tall_expansion")
}

# What a search did.
new_search <- function(method, passes, iterations, converged = TRUE) {
  stopifnot(rlang::is_string(method), rlang::is_bool(converged))
  search <- list(
    method = method,
    passes = passes,
    iterations = iterations,
    converged = converged
  )
  structure(search, class = "tall_search")
}

# about: the expansion at the mode. box: the bounds of its prior, see
# mode_box(). scale: where there is no Hessian, of each parameter the standard
# deviation given all others.
new_mode <- function(model, about, search, box = NULL, scale = NULL) {
  estimate <- about$theta
  gradient <- about$gradient
  minus_hessian <- about$hessian
  if (!is.null(minus_hessian)) {
    minus_hessian <- bounded_hessian(box, minus_hessian, estimate, gradient)
  }
  at_bound <- if (!is.null(box)) box_active(box, estimate, gradient)
  gradient <- box_rest(box, estimate, gradient)
  chol <- if (!is.null(minus_hessian)) lower_chol(minus_hessian, model)
  if (!is.null(minus_hessian)) {
    dimnames(minus_hessian) <- list(model$coordinates, model$coordinates)
  }
  structure(
    list(
      estimate = stats::setNames(estimate, model$coordinates),
      variables = mode_variables(model, estimate),
      log_posterior = about$log_posterior,
      gradient_norm = sqrt(sum(gradient^2)),
      hessian = if (!is.null(minus_hessian)) -minus_hessian,
      chol = chol,
      scale = if (!is.null(scale)) stats::setNames(scale, model$coordinates),
      passes = search$passes,
      iterations = search$iterations,
      converged = search$converged,
      method = search$method,
      at_bound = model$coordinates[at_bound],
      fingerprint = model$fingerprint
    ),
    class = "tall_mode"
  )
}

# The same point in the variables that draws are of.
mode_variables <- function(model, estimate) {
  stats::setNames(drop(model_variables(model, estimate)), model$variables)
}

#' @export
print.tall_mode <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_mode> by ", x$method, sep = "")
  cat(
    if (x$converged) ", " else ", NOT converged, ",
    count_noun(x$iterations, "iteration"),
    ", ",
    format(x$passes, digits = 3),
    " passes over the data\n",
    sep = ""
  )
  cat(
    "  log posterior ",
    format_number(x$log_posterior),
    ", gradient norm ",
    format(x$gradient_norm, digits = 2),
    if (!is.null(x$distance)) {
      paste0(
        " (",
        format(x$distance, digits = 2),
        " posterior sd from the mode)"
      )
    },
    "\n",
    sep = ""
  )
  if (length(x$given) > 0) {
    cat(
      "  given hyperparameters (without them there is no mode): ",
      quote_columns(x$given),
      "\n",
      sep = ""
    )
  }
  shown <- utils::head(x$estimate, 10)
  table <- rbind(
    estimate = shown,
    sd = if (!is.null(x$chol)) utils::head(sqrt(diag(vcov(x))), 10)
  )
  print(t(table), digits = 4)
  more <- length(x$estimate) - length(shown)
  if (more > 0) {
    cat("  ... with", more, "more\n")
  }
  print_mapped(x)
  if (length(x$at_bound) > 0) {
    names <- quote_columns(x$at_bound)
    cat("  at a bound of the prior: ", names, "\n", sep = "")
  }
  invisible(x)
}

# Variables that are other numbers than the parameters.
print_mapped <- function(mode, most = 10) {
  value <- mode$variables
  own <- mode$estimate[names(value)]
  mapped <- value[is.na(own) | own != value]
  if (length(mapped) == 0) {
    return(invisible())
  }
  cat("  in the variables of draws:\n")
  print(cbind(value = utils::head(mapped, most)), digits = 4)
  if (length(mapped) > most) {
    cat("  ... with", length(mapped) - most, "more\n")
  }
}

#' @export
coef.tall_mode <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  object$estimate
}

#' @importFrom stats vcov
#' @export
vcov.tall_mode <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  if (is.null(object$chol)) {
    abort_tall(
      "unsupported",
      c(
        "This mode was found without a Hessian.",
        i = "Find it by {.code find_mode(model, \"newton\")}, or sample: the
             draws have a covariance."
      )
    )
  }
  out <- joint_covariance(-object$hessian) %||% chol2inv(t(object$chol))
  dimnames(out) <- list(names(object$estimate), names(object$estimate))
  out
}
