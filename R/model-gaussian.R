# model_gaussian(): a posterior that is known exactly.

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
#' @inheritParams model_glm
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
  prior_covariance = diag(1e3, ncol(x)),
  storage = c("double", "float")
) {
  x <- check_matrix(x, most = most_of_data)
  store <- store_of(storage, x)
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
    label = "model_gaussian",
    store = store
  )
}

# Inverse of a covariance matrix.
check_covariance <- function(x, n_dim, arg = caller_arg(x)) {
  check_matrix(x, n_row = n_dim, n_col = n_dim, arg = arg)
  root <- if (isSymmetric(unname(x))) try(chol(x), silent = TRUE)
  if (!is.matrix(root)) {
    abort_expected(
      x,
      "a symmetric positive definite matrix",
      seen = "one that is not",
      arg = arg
    )
  }
  chol2inv(root)
}
