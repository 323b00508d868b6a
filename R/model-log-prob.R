# The log density of a model and its gradient at points that a user gives.

#' Log density of a model and its gradient
#'
#' `log_prob()` evaluates the log posterior density of a model at given points,
#' `grad_log_prob()` its gradient: what samplers see, to be compared with one's
#' own. The names are those of rstan.
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param theta (numeric vector of n_dim values, K x n_dim matrix or data frame,
#'   or draws of the package \pkg{posterior}) The points, a row each. Values or
#'   columns with names are put in order by these; without names they are in the
#'   order of the model's.
#' @param unconstrained (`TRUE` or `FALSE`) Are `theta` the unconstrained
#'   parameters that samplers move (`log_sigma`, as
#'   `names(find_mode(model)$estimate)` has them)? `FALSE`: the variables that
#'   draws are of (`sigma`).
#' @param jacobian (`TRUE` or `FALSE`) The density of the unconstrained
#'   parameters, which has the Jacobian of the map to the variables? `FALSE`:
#'   that of the variables. The default is that of what is given.
#' @param ... Unused: other arguments are refused.
#'
#' @details With \eqn{v = c(\theta)}{v = c(theta)} the variables at parameters
#' \eqn{\theta}{theta}, the two densities differ by the Jacobian, \eqn{\log
#' p(\theta) = \log p(v) + \log |\det c'(\theta)|}{log p(theta) = log p(v) +
#' log |det c'(theta)|}; `jacobian = FALSE` leaves the last term out, as
#' `jacobian = FALSE` of cmdstanr and `adjust_transform = FALSE` of rstan do.
#' The gradient is in what is given: in \eqn{\theta}{theta}, or, with
#' `unconstrained = FALSE`, in \eqn{v}.
#'
#' Terms that depend on no parameter may be missing, the same at all points. The
#' log likelihood is summed over all observations, which costs a pass over the
#' data for each point. A Student prior's or a user's log density may be large
#' where doubles have few digits left: compare gradients with central
#' differences where it is not.
#'
#' Effects of groups are integrated out ([model_groups()]), by the nodes of the
#' model. [model_lda()] sums over what it never sees, has no log density, and
#' gives an estimate of its gradient.
#'
#' @return `log_prob()`: a numeric vector with a value for each point; `-Inf`
#' where a prior has no mass, and `NaN` where the model has no finite value.
#' `grad_log_prob()`: of a vector `theta` a vector, else a K x n_dim matrix,
#' with the names of the parameters or variables; `NaN` where it is not finite,
#' or there is no density.
#' @section Conditions: `tall_error_input` for points of another size, with
#' unknown names, values that are not finite, or that variables cannot have (a
#' negative standard deviation, a correlation matrix that is none);
#' `tall_error_unsupported` where a model has no log density, where nothing
#' leads from its variables back to its parameters (tables of [model_native()]
#' with a `constrain()`, [model_ica()] whose rows are aligned), and for
#' gradients in the variables of a simplex, which do not vary one by one;
#' `tall_error_stale` if the model is gone.
#' @seealso [find_mode()], [log_lik()] for the log likelihood of each row,
#'   [ksd()]
#' @references
#' Carpenter et al. (2017). Stan: a probabilistic programming language. *Journal
#' of Statistical Software* 76(1).
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(100))
#' model <- model_glm(x, x[, "age"] + rnorm(100), family = "gaussian",
#'   sigma = NULL)
#' mode <- find_mode(model)$estimate
#' log_prob(model, mode)
#' grad_log_prob(model, mode)
#'
#' # in the variables: sigma in the place of log_sigma
#' at <- c("(Intercept)" = 0, age = 1, sigma = 1.2)
#' grad_log_prob(model, rbind(at, 2 * at), unconstrained = FALSE)
#' @export
log_prob <- function(model, theta, ...) {
  UseMethod("log_prob")
}

#' @rdname log_prob
#' @export
grad_log_prob <- function(model, theta, ...) {
  UseMethod("grad_log_prob")
}

#' @export
log_prob.default <- function(model, theta, ...) {
  if (inherits(model, "tall_fit")) {
    abort_input(
      c(
        "{.arg model} must be a model, not {describe(model)}.",
        i = "A fit keeps its model: {.code log_prob(fit$model, theta)}."
      ),
      argument = "model",
      value = model
    )
  }
  check_model(model)
}

#' @export
grad_log_prob.default <- log_prob.default

#' @rdname log_prob
#' @export
log_prob.tall_model <- function(
  model,
  theta,
  unconstrained = TRUE,
  jacobian = unconstrained,
  ...
) {
  check_no_dots(...)
  check_model(model)
  if (!model_info(model)$has_density) {
    abort_no_log_prob(model)
  }
  points <- given_points(model, theta, unconstrained, jacobian)
  found <- evaluate_points(model, points)
  out <- found$log_density
  if (!jacobian) {
    out <- out - points$map$volume(points$theta)$log
  }
  out[is_outside(model, points$theta)] <- -Inf
  stats::setNames(out, points$names)
}

#' @rdname log_prob
#' @export
grad_log_prob.tall_model <- function(
  model,
  theta,
  unconstrained = TRUE,
  jacobian = unconstrained,
  ...
) {
  check_no_dots(...)
  check_model(model)
  points <- given_points(model, theta, unconstrained, jacobian)
  if (!unconstrained && is.null(points$map$pull)) {
    abort_without_gradient(model)
  }
  out <- evaluate_points(model, points)$gradient
  out <- matrix(out, model$n_dim)
  if (!jacobian) {
    out <- out - points$map$volume(points$theta)$gradient
  }
  if (!unconstrained) {
    out <- points$map$pull(points$theta, out)
  }
  out[, is_outside(model, points$theta)] <- NaN
  dimnames(out) <- list(
    if (unconstrained) model$coordinates else model$variables,
    points$names
  )
  if (points$is_one) out[, 1] else t(out)
}

# Both, at parameters, although the model may be whitened.
evaluate_points <- function(model, points) {
  position <- to_sampler(model, points$theta)
  out <- model_evaluate(model, position, needs_finite = FALSE)
  if (model_is_whitened(model)) {
    chol <- model$whitening$chol
    is_diagonal <- model$whitening$is_diagonal
    log_volume <- sum(log(if (is_diagonal) chol else diag(chol)))
    out$log_density <- out$log_density + log_volume
    gradient <- matrix(out$gradient, model$n_dim)
    out$gradient <- if (is_diagonal) chol * gradient else chol %*% gradient
  }
  out
}

# list(theta, map, names, is_one): parameters, n_dim x K.
given_points <- function(model, theta, unconstrained, jacobian) {
  check_flag(unconstrained)
  check_flag(jacobian)
  check_given(theta)
  known <- if (unconstrained) model$coordinates else model$variables
  is_one <- is.numeric(theta) && is.null(dim(theta))
  if (posterior::is_draws(theta)) {
    weights <- posterior::reserved_variables(theta)
    theta <- posterior::as_draws_matrix(theta)
    theta <- matrix(
      theta,
      nrow(theta),
      dimnames = list(NULL, colnames(theta))
    )
    theta <- theta[, setdiff(colnames(theta), weights), drop = FALSE]
  } else if (is.data.frame(theta)) {
    theta <- as.matrix(theta)
  } else if (is_one) {
    theta <- matrix(theta, 1, dimnames = list(NULL, names(theta)))
  }
  theta <- check_point_matrix(theta, known, model, unconstrained, is_one)
  map <- if (!unconstrained || !jacobian) model_map(model)
  values <- t(theta)
  storage.mode(values) <- "double"
  list(
    theta = if (unconstrained) {
      unname(values)
    } else {
      parameters_of(model, unname(values), map)
    },
    map = map,
    names = rownames(theta),
    is_one = is_one
  )
}

# A K x n matrix of finite numbers, its columns in the order of `known`.
check_point_matrix <- function(theta, known, model, unconstrained, is_one) {
  if (is_one) {
    check_numeric_vector(theta[1, ], arg = "theta")
  } else {
    check_matrix(theta, arg = "theta")
  }
  names <- colnames(theta)
  if (is.null(names) && ncol(theta) != length(known)) {
    abort_point_size(theta, known, is_one)
  }
  other <- if (unconstrained) model$variables else model$coordinates
  unknown <- setdiff(names, known)
  if (length(unknown) > 0 && all(names %in% other)) {
    abort_other_names(unknown[[1]], unconstrained)
  }
  if (!is.null(names)) {
    at <- stats::setNames(seq_along(names), names)
    at <- match_names(
      at,
      known,
      if (unconstrained) "parameter" else "variable",
      arg = "theta"
    )
    theta <- theta[, at, drop = FALSE]
  }
  check_matrix(theta, n_row = nrow(theta), n_col = length(known), arg = "theta")
  theta
}

abort_point_size <- function(theta, known, is_one) {
  abort_input(
    c(
      "{.arg theta} must have
       {count_noun(length(known), if (is_one) 'value' else 'column')}, not
       {format_count(ncol(theta))}.",
      i = "These are {quote_columns(known, most = 12)}."
    ),
    argument = "theta",
    expected = known,
    value = if (is_one) theta[1, ] else theta
  )
}

abort_other_names <- function(name, unconstrained) {
  what <- c("variables", "unconstrained parameters")
  what <- if (unconstrained) what else rev(what)
  abort_input(
    c(
      "{.arg theta} must have {what[[2]]}, not {what[[1]]} as {.val {name}}
       is.",
      i = "Give {.code unconstrained = {!unconstrained}}."
    ),
    argument = "theta",
    value = name
  )
}

# The parameters (n_dim x K) of variables, which have to be such of them.
parameters_of <- function(model, values, map) {
  theta <- map$to_free(values)
  there <- theta
  there[!is.finite(there)] <- 0
  back <- matrix(model_variables(model, there), ncol = ncol(values))
  close <- abs(back - values) <= 1e-6 * (1 + abs(values))
  lost <- colSums(!is.finite(theta)) > 0
  bad <- which(lost | colSums(!close) > 0)
  if (length(bad) == 0) {
    return(theta)
  }
  row <- bad[[1]]
  at <- which(!close[, row])
  name <- if (length(at) > 0) model$variables[[at[[1]]]]
  value <- if (length(at) > 0) values[at[[1]], row]
  abort_input(
    c(
      "{.arg theta} must have values that the variables of
       {.code {model$label}()} can have, not those of point {row}.",
      x = if (!is.null(name)) "There {.code {name}} is {format_number(value)}.",
      i = "Standard deviations are positive, thresholds increase, correlations
           are those of a matrix, and simplices have the sum 1."
    ),
    argument = "theta",
    value = values[, row]
  )
}

abort_no_log_prob <- function(model) {
  abort_tall(
    "unsupported",
    c(
      "{.code {model$label}()} has no log density: it sums over what it never
       sees.",
      i = "{.fn grad_log_prob} has an estimate of its gradient."
    )
  )
}

abort_without_gradient <- function(model) {
  abort_tall(
    "unsupported",
    c(
      "There is no gradient in the variables of a simplex, which do not vary one
       by one.",
      i = "Take it in the unconstrained parameters, with
           {.code unconstrained = TRUE}."
    ),
    argument = "unconstrained"
  )
}
