# Models: data, likelihood and prior behind an external pointer. One constructor
# for each member of src/models/registry.c.
#
# `cache` remembers what is expensive to find and depends on the model alone
# (its mode); it is an environment, so copies of the R object share it. `store`:
# where the core keeps rows for random access, src/data/registry.c.
new_model <- function(
  name,
  params,
  variables,
  ...,
  label,
  store = list(type = "dense", read_only = FALSE),
  call = caller_env()
) {
  pointer <- .Call(ffi_model_create, name, params, store)
  wrap_model(pointer, name, variables, ..., label = label, call = call)
}

# What a door returned, a pointer or a status, as a model.
wrap_model <- function(pointer, name, variables, ..., label, call) {
  if (is.integer(pointer)) {
    abort_status(pointer, call = call)
  }
  model <- structure(
    list(
      name = name,
      label = label,
      pointer = pointer,
      variables = variables,
      ...,
      cache = new.env(parent = emptyenv())
    ),
    class = c(paste0("tall_model_", name), "tall_model")
  )
  info <- model_info(model)
  if (is.null(model$coordinates)) {
    model$coordinates <- variables
  }
  model$n_data <- info$n_data
  model$n_dim <- info$n_dim
  model$fingerprint <- info$fingerprint
  model
}

# Flags and sizes that the core knows.
model_info <- function(model) {
  .Call(ffi_model_info, model$pointer)
}

model_is_alive <- function(model) {
  isTRUE(.Call(ffi_model_is_alive, model$pointer))
}

model_is_unloaded <- function(model) {
  is.na(.Call(ffi_model_is_alive, model$pointer))
}

# A model whose data are there.
check_model <- function(model, arg = "model", call = caller_env()) {
  check_spec(model, "tall_model", "model_*()", arg = arg, call = call)
  if (model_is_unloaded(model)) {
    abort_tall(
      "stale",
      c(
        "{.arg {arg}} has lost its compiled functions.",
        x = "Their library was unloaded, or loaded again.",
        i = "Make it again with {.code {model$label}()}."
      ),
      argument = arg,
      call = call
    )
  }
  if (!model_is_alive(model)) {
    abort_tall(
      "stale",
      c(
        "{.arg {arg}} has lost its data.",
        x = "A model cannot be saved: its data live outside R's memory.",
        i = "Make it again with {.code {model$label}()}."
      ),
      argument = arg,
      call = call
    )
  }
  check_whole_model(model, arg, call)
  invisible(model)
}

# Log density (K) and gradient (n_dim x K) at the columns of theta. Without
# `density`, which costs a third of it, the former is not that of the
# likelihood. Where the model says that a value is not finite, there is an
# error, or NaN for all values of that point where `needs_finite` is FALSE.
model_evaluate <- function(
  model,
  theta,
  parts = c("posterior", "likelihood", "prior"),
  index = NULL,
  weight = 1,
  density = TRUE,
  needs_finite = TRUE,
  call = caller_env()
) {
  code <- c(likelihood = 1L, prior = 2L, posterior = 3L)[[match.arg(parts)]]
  weight <- weight * likelihood_scale(model)
  out <- .Call(
    ffi_model_gradient,
    model$pointer,
    as.double(theta),
    if (!is.null(index)) as.double(index),
    as.double(weight),
    code + if (density) 0L else 4L
  )
  if (needs_finite || status_name(out$status) != "nonfinite") {
    abort_status(out$status, call = call)
  }
  out[c("log_density", "gradient")]
}

# log p(y_i | theta) of the rows (NULL: all), length(rows) x K, at the columns
# of theta, sampler coordinates.
row_log_lik <- function(model, theta, rows = NULL, call = caller_env()) {
  out <- .Call(
    ffi_model_log_lik,
    model$pointer,
    as.double(theta),
    if (!is.null(rows)) as.double(rows)
  )
  if (is.integer(out)) {
    abort_status(out, call = call)
  }
  out
}

# ---- Gibbs posteriors --------------------------------------------------------

# The model of a Gibbs posterior: its likelihood to the power lambda / N, in all
# that asks model_evaluate(), curvature() or likelihood_scale().
temper_model <- function(model, lambda) {
  if (is.null(lambda) || lambda == model$n_data) {
    return(model)
  }
  model["lambda"] <- lambda
  model$cache <- new.env(parent = emptyenv())
  temper_truth(model)
}

check_lambda <- function(lambda, model, call = caller_env()) {
  check_number(
    lambda,
    positive = TRUE,
    allow_null = TRUE,
    arg = "lambda",
    call = call
  )
  if (!is.null(lambda) && model$n_data == 0) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no observations whose loss {.arg lambda}
         could multiply.",
        i = "Leave {.arg lambda} out, or write the model for {.fn model_custom}
             with a {.arg log_lik}."
      ),
      call = call
    )
  }
  is_tempered <- !is.null(lambda) && lambda != model$n_data
  if (is_tempered && isTRUE(model$has_data_free)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has a part of its likelihood that needs no
         data: {.arg lambda} does not reach it.",
        i = "Leave {.arg lambda} out."
      ),
      call = call
    )
  }
  lambda
}

likelihood_scale <- function(model) {
  if (is.null(model$lambda)) 1 else model$lambda / model$n_data
}

# What a model says of its exact posterior.
temper_truth <- function(model) {
  UseMethod("temper_truth")
}

#' @export
temper_truth.default <- function(model) {
  model
}

#' @export
temper_truth.tall_model_gaussian <- function(model) {
  names <- names(model$posterior_mean)
  before <- model$prior_precision
  pull <- drop(before %*% model$prior_mean)
  precision <- solve(model$posterior_covariance)
  data_pull <- drop(precision %*% model$posterior_mean) - pull
  scale <- likelihood_scale(model)
  after <- solve(scale * (precision - before) + before)
  model$posterior_mean <- stats::setNames(
    drop(after %*% (scale * data_pull + pull)),
    names
  )
  dimnames(after) <- list(names, names)
  model$posterior_covariance <- after
  model
}

# ---- bounds ------------------------------------------------------------------

# Which coordinates have a prior_uniform().
bounded_coordinates <- function(model) {
  which(model$prior$kind == prior_kinds$uniform$code)
}

# What the prior of coordinate j is on: theta_j, or the predictor at the mean of
# the covariates. theta: n_dim x K.
prior_argument <- function(model, j, theta) {
  functional <- model$prior_functional
  if (!is.null(functional) && functional$at + 1 == j) {
    drop(crossprod(functional$weights, theta))
  } else {
    theta[j, ]
  }
}

# Which columns of theta are beyond the bounds.
is_outside <- function(model, theta) {
  out <- logical(ncol(theta))
  for (j in bounded_coordinates(model)) {
    away <- abs(prior_argument(model, j, theta) - model$prior$location[[j]])
    out <- out | away > model$prior$scale[[j]]
  }
  out
}

# Starting points that a user gave.
check_inside <- function(init, model, call) {
  for (j in bounded_coordinates(model)) {
    value <- prior_argument(model, j, init)
    centre <- model$prior$location[[j]]
    half <- model$prior$scale[[j]]
    bad <- which(abs(value - centre) > half)
    if (length(bad) > 0) {
      abort_input(
        c(
          "{.arg init} must lie within the bounds of the prior,
           [{format_number(centre - half)}, {format_number(centre + half)}] for
           {.code {model$coordinates[[j]]}}, not at
           {format_number(value[[bad[[1]]]])}.",
          x = "Chain {bad[[1]]} would start where the posterior is zero."
        ),
        argument = "init",
        value = init,
        call = call
      )
    }
  }
}

# Starting points of our own (sampler coordinates), moved within the bounds:
# to the nearest point, or first as in a mirror, which keeps their distance from
# a bound that the posterior leans against.
move_inside <- function(init, model, reflect = FALSE) {
  at <- bounded_coordinates(model)
  if (length(at) == 0) {
    return(init)
  }
  theta <- .Call(ffi_model_to_parameter, model$pointer, init)
  functional <- model$prior_functional
  # the functional last: it takes the other coordinates as they have become
  last <- functional$at + 1
  for (j in c(setdiff(at, last), intersect(at, last))) {
    value <- prior_argument(model, j, theta)
    reach <- 0.99 * model$prior$scale[[j]]
    centre <- model$prior$location[[j]]
    to <- value
    if (reflect) {
      half <- model$prior$scale[[j]]
      beyond <- pmax(abs(value - centre) - half, 0)
      to <- value - 2 * sign(value - centre) * beyond
      reach <- max(reach, (1 - 1e-9) * half)
    }
    to <- pmin(pmax(to, centre - reach), centre + reach)
    theta[j, ] <- theta[j, ] + to - value
  }
  .Call(ffi_model_to_sampler, model$pointer, theta)
}

#' Generalised linear models
#'
#' The posterior of the coefficients of a generalised linear model, from a design
#' matrix. [tall_glm()] builds one from a formula.
#'
#' @param x (numeric matrix, n_data x n_dim) The covariates. Columns are used as
#'   they are: none is added, centred or scaled. `x` is copied once, row by row,
#'   into memory that the chains share.
#' @param y (numeric vector of n_data values) The response: any number
#'   (`"gaussian"`), 0 or 1 (`"bernoulli"`), a proportion in \[0, 1\] with the
#'   number of trials in `weights` (`"binomial"`; their product is the number of
#'   successes and must be whole), or a count (`"poisson"`).
#' @param family (string or family object) `"gaussian"`, `"bernoulli"`,
#'   `"binomial"` or `"poisson"`, with their canonical links, or
#'   [stats::gaussian()], [stats::binomial()], [stats::poisson()]; binomial
#'   families may have the links `"logit"`, `"probit"` and `"cloglog"`.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of every
#'   coefficient; `NULL`: flat.
#' @param prior_intercept (`tall_prior` or `NULL`) The prior of a column named
#'   `(Intercept)`; `NULL`: flat. If it is not given, `prior` is that of this
#'   column, too.
#' @param weights (positive numeric vector of n_data values, or `NULL`)
#'   Observation weights: they multiply the log likelihood, or for `"gaussian"`
#'   divide the variance \eqn{\sigma^2}{sigma^2}, so that \eqn{\sigma}{sigma} is
#'   the standard deviation of a row of weight 1; trials for `"binomial"`.
#' @param offset (numeric vector of n_data values, or `NULL`) Added to the
#'   linear predictor.
#' @param sigma (positive number or `NULL`) The residual standard deviation for
#'   `"gaussian"`, if it is known; `NULL`: it is a parameter, `sigma`.
#' @param prior_aux (`tall_prior` or `NULL`) The prior of `sigma`:
#'   [prior_exponential()] or [prior_flat()]; `NULL`: flat.
#'
#' @details The gradient of an observation is \eqn{g_i(\theta) = r_i x_i} with
#' the scalar \eqn{r_i} the derivative of its log likelihood in the linear
#' predictor: \eqn{r_i = w_i (y_i - \mu_i) / \phi}{r_i = w_i (y_i - mu_i) /
#' phi} for canonical links, \eqn{\phi = \sigma^2}{phi = sigma^2} for
#' `"gaussian"` and 1 otherwise. Curvatures are the observed ones, which for
#' `"probit"` and `"cloglog"` are not those that [glm()]'s standard errors are
#' made of, and are never negative.
#' A `sigma` that is a parameter is sampled as its logarithm, with the Jacobian
#' in the prior, and reported as the last variable. Memory: 8 bytes for each
#' value of `x`, rows padded to 64 bytes where that costs at most 3 percent, and
#' 8 bytes a row for each of response, stored scalar, weights and offset.
#'
#' A model lives outside R's memory. It is lost when the R object is saved and
#' read again; using it then is an error of class `tall_error_stale`.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions:
#' `tall_error_input` names the argument and value at fault: missing or infinite
#' values, a response outside the family's range, lengths that differ.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(500))
#' y <- rbinom(500, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' model
#' @export
model_glm <- function(
  x,
  y,
  family = "bernoulli",
  prior = prior_normal(0, 2.5),
  prior_intercept,
  weights = NULL,
  offset = NULL,
  sigma = NULL,
  prior_aux = prior_exponential(autoscale = TRUE)
) {
  prior <- as_prior(prior)
  prior_aux <- as_prior(prior_aux)
  intercept <- if (!missing(prior_intercept)) as_prior(prior_intercept)
  # other faults are found below
  is_vector <- !missing(y) && is_plain_numeric(y) &&
    (is.null(weights) || is_plain_numeric(weights)) &&
    length(weights) %in% c(0, length(y))
  if (is_vector) {
    known <- resolve_family(family, rlang::current_env())
    check_successes(y, weights, known, "y")
  }
  build_glm(
    x,
    y,
    resolve_family(family, rlang::current_env()),
    prior,
    intercept,
    weights,
    offset,
    sigma,
    prior_aux
  )
}

# model_glm() for callers whose users typed something else: `call` is theirs.
# family: from resolve_family().
# prior_intercept: NULL if `prior` is that of all columns.
# centers: the intercept's prior is on the predictor at the covariates' means.
# arg_y: what they call the response.
build_glm <- function(
  x,
  y,
  family,
  prior,
  prior_intercept,
  weights,
  offset,
  sigma,
  prior_aux,
  centers = FALSE,
  arg_y = "y",
  call = caller_env()
) {
  entry <- find_response(family)
  facts <- response_facts(family)
  rows <- check_glm_rows(x, y, weights, offset, family, arg_y, call)
  x <- rows$x
  y <- rows$y
  sigma <- check_number(
    sigma,
    positive = TRUE,
    allow_null = TRUE,
    arg = "sigma",
    call = call
  )
  samples_aux <- !is.na(facts$aux) && is.null(sigma)
  coefficients <- column_names(x)
  if (samples_aux) {
    check_no_aux(coefficients, facts$aux, call)
  }
  units <- if (entry$has_units) {
    response_units(y, rows$weights, rows$offset)
  }
  resolved <- prior_resolve(
    prior,
    prior_intercept,
    names = coefficients,
    n_dim = ncol(x),
    column_sd = function() .Call(ffi_column_sds, x),
    response_sd = units$sd %||% 1,
    response_mean = units$mean %||% 0,
    aux = if (samples_aux) prior_aux,
    aux_sd = units$aux_sd,
    call = call
  )
  functional <- if (centers) center_functional(x, samples_aux)
  new_model(
    "glm",
    c(rows, list(
      response = facts$place,
      aux = if (is.null(sigma)) 1 else sigma,
      sample_aux = as.double(samples_aux),
      prior_kind = as.double(resolved$kind),
      prior_location = resolved$location,
      prior_scale = resolved$scale,
      prior_at = functional$at,
      prior_functional = functional$weights
    )),
    variables = c(coefficients, if (samples_aux) facts$aux),
    coordinates = c(coefficients, if (samples_aux) facts$coordinate),
    n_coef = ncol(x),
    family = family,
    prior = resolved,
    prior_functional = functional,
    sigma = sigma,
    samples_aux = samples_aux,
    start = if (samples_aux) c(numeric(ncol(x)), log(units$aux_sd %||% 1)),
    label = "model_glm",
    call = call
  )
}

# Draws have unique names, and one is that of a parameter of the response.
check_no_aux <- function(coefficients, aux, call) {
  if (aux %in% coefficients) {
    abort_input(
      c(
        "No column may be named {.val {aux}}: that is a parameter of the
         response.",
        i = "Rename it, or write {.code I({aux})} in a formula."
      ),
      argument = "x",
      value = aux,
      call = call
    )
  }
}

# What the core takes of each row: list(x, y, weights, offset).
check_glm_rows <- function(x, y, weights, offset, family, arg_y, call) {
  x <- as_double_matrix(check_matrix(x, arg = "x", call = call))
  y <- check_response(y, family, arg_y, call)
  check_same_rows(x, y, arg = "x", arg_y = arg_y, call = call)
  weights <- check_numeric_vector(
    weights,
    size = nrow(x),
    positive = TRUE,
    allow_null = TRUE,
    arg = "weights",
    call = call
  )
  offset <- check_numeric_vector(
    offset,
    size = nrow(x),
    allow_null = TRUE,
    arg = "offset",
    call = call
  )
  list(x = x, y = y, weights = weights, offset = offset)
}

# Without the copy that `storage.mode<-` makes of a matrix that is double
# already.
as_double_matrix <- function(x) {
  if (!is.double(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# Never zero: it divides.
response_sd <- function(y) {
  sd <- if (length(y) > 1) stats::sd(y) else 0
  if (sd > 0) sd else 1
}

# Mean and standard deviation of what the coefficients of a Gaussian model are
# to explain, and `aux_sd`: that of a row of weight 1, which sigma is. Weights
# are precisions: it grows with their root, as sigma does.
response_units <- function(y, weights, offset) {
  if (!is.null(offset)) {
    y <- y - offset
  }
  sd <- response_sd(y)
  out <- list(mean = mean(y), sd = sd, aux_sd = sd)
  if (!is.null(weights)) {
    largest <- max(weights)
    share <- weights / largest
    centre <- sum(share * y) / sum(share)
    square <- sum(share * (y - centre)^2) / max(1, length(y) - 1)
    square <- if (square > 0) square else mean(share)
    out$aux_sd <- sqrt(largest * square)
  }
  out
}

# The predictor at the mean of the covariates: 1 for the intercept, column means
# elsewhere; `at` counts from 0. NULL without an intercept.
center_functional <- function(x, samples_aux) {
  at <- which(colnames(x) == "(Intercept)")
  if (length(at) != 1) {
    return(NULL)
  }
  weights <- colMeans(x)
  weights[[at]] <- 1
  list(at = at - 1, weights = unname(c(weights, if (samples_aux) 0)))
}

# Names for the columns: their own, or x1, x2, ...
column_names <- function(x) {
  names <- colnames(x)
  if (is.null(names)) {
    return(paste0("x", seq_len(ncol(x))))
  }
  blank <- is.na(names) | names == ""
  names[blank] <- paste0("x", which(blank))
  make.unique(names)
}

#' Mean of a normal distribution with known covariance
#'
#' A conjugate model: the posterior is normal with a known mean and covariance,
#' so that a sampler can be judged exactly.
#'
#' @param x (numeric matrix, n_data x n_dim) The observations.
#' @param covariance (numeric matrix, n_dim x n_dim) Their known covariance
#'   \eqn{\Sigma_x}.
#' @param prior_mean (numeric vector) Prior mean \eqn{\mu_0}: one value, or
#'   n_dim, in the order of the columns or with their names.
#' @param prior_covariance (numeric matrix, n_dim x n_dim) Prior covariance
#'   \eqn{\Lambda_0}.
#'
#' @details \eqn{x_i \mid \theta \sim N(\theta, \Sigma_x)}, \eqn{\theta \sim
#' N(\mu_0, \Lambda_0)} (Putcha, Nemeth & Fearnhead, 2023, appendix C.1). The
#' posterior has precision \eqn{N \Sigma_x^{-1} + \Lambda_0^{-1}}.
#'
#' @return A `tall_model` for [sg_sample()]; its elements `posterior_mean` and
#'   `posterior_covariance` are the exact answer.
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, or a covariance is not
#' positive definite.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' model <- model_gaussian(matrix(rnorm(200), 100), diag(2))
#' model$posterior_mean
#' @export
model_gaussian <- function(
  x,
  covariance,
  prior_mean = 0,
  prior_covariance = diag(1e3, ncol(x))
) {
  x <- check_matrix(x)
  x <- as_double_matrix(x)
  n_dim <- ncol(x)
  precision <- check_covariance(covariance, n_dim)
  prior_precision <- check_covariance(prior_covariance, n_dim)
  prior_mean <- check_numeric_vector(prior_mean, size = c(1, n_dim))
  prior_mean <- match_names(prior_mean, column_names(x))
  prior_mean <- rep_len(unname(prior_mean), n_dim)
  posterior_covariance <- solve(nrow(x) * precision + prior_precision)
  posterior_mean <- drop(
    posterior_covariance %*%
      (precision %*% colSums(x) + prior_precision %*% prior_mean)
  )
  variables <- column_names(x)
  dimnames(posterior_covariance) <- list(variables, variables)
  new_model(
    "gaussian",
    list(
      x = x,
      precision = as.double(precision),
      prior_precision = as.double(prior_precision),
      prior_mean = prior_mean,
      log_det = as.double(determinant(precision)$modulus),
      largest = max(eigen(precision, TRUE, TRUE)$values),
      largest_prior = max(eigen(prior_precision, TRUE, TRUE)$values)
    ),
    variables = variables,
    posterior_mean = stats::setNames(posterior_mean, variables),
    posterior_covariance = posterior_covariance,
    prior_mean = prior_mean,
    prior_precision = prior_precision,
    label = "model_gaussian"
  )
}

# Inverse of a covariance matrix.
check_covariance <- function(
  x,
  n_dim,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_matrix(x, n_row = n_dim, n_col = n_dim, arg = arg, call = call)
  root <- if (isSymmetric(unname(x))) try(chol(x), silent = TRUE)
  if (!is.matrix(root)) {
    abort_expected(
      x,
      "a symmetric positive definite matrix",
      seen = "one that is not",
      arg = arg,
      call = call
    )
  }
  chol2inv(root)
}

#' @export
print.tall_model <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_model> ", x$label, "()", sep = "")
  if (!is.null(x$family)) {
    cat(": ", x$family$name, " (", x$family$link, ")", sep = "")
  }
  if (!is.null(x$title)) {
    cat(": ", x$title, sep = "")
  }
  cat("\n")
  cat(
    "  ",
    count_noun(x$n_data, "observation"),
    ", ",
    count_noun(x$n_dim, "parameter"),
    "\n",
    sep = ""
  )
  if (model_is_unloaded(x)) {
    cat("  its compiled functions are lost (unloaded)\n")
  } else if (!model_is_alive(x)) {
    cat("  its data are lost (read back from a file)\n")
  } else {
    bytes <- structure(model_info(x)$memory, class = "object_size")
    cat("  ", format(bytes, units = "auto"), " of data\n", sep = "")
  }
  invisible(x)
}

#' @importFrom stats nobs
#' @export
nobs.tall_model <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  object$n_data
}
