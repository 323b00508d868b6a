# Lipschitz constants of a model's rows and prior: they bound the noise of its
# gradient.

#' Lipschitz constants of the gradient
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param cores (whole number) Threads to use.
#'
#' @details \eqn{L_i} is the smallest known constant with \eqn{\|g_i(\theta) -
#' g_i(\theta')\| \le L_i \|\theta - \theta'\|}{||g_i(theta) - g_i(theta')|| <=
#' L_i
#' ||theta - theta'||} for all \eqn{\theta, \theta'}{theta, theta'}:
#' \eqn{w_i \|x_i\|^2 / 4}{w_i ||x_i||^2 / 4} in a logistic regression, \eqn{w_i
#' \|x_i\|^2}{w_i ||x_i||^2} in a probit one, \eqn{w_i \|x_i\|^2 /
#' \sigma^2}{w_i ||x_i||^2 / sigma^2} in a linear one with known
#' \eqn{\sigma}{sigma}, the largest eigenvalue of the precision for
#' [model_gaussian()] (Putcha, Nemeth & Fearnhead, 2023, appendix C). Poisson
#' and complementary log-log regressions and models with a sampled `sigma` have
#' none. A normal prior's is
#' the largest eigenvalue of its precision. The model of a fit without a kernel
#' (`fit$model`) is in whitened coordinates, and so are its constants.
#'
#' @return A numeric vector of n_data + 1 values. The first, named `prior`, is
#'   that of the prior's gradient: `NA` where there is none, as under a Laplace
#'   prior.
#' @section Conditions:
#' `tall_error_unsupported` if the model has no global Lipschitz constants.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' x <- cbind(1, rnorm(200))
#' model <- model_glm(x, rbinom(200, 1, 0.5), family = "bernoulli")
#' head(lipschitz(model))
#' @export
lipschitz <- function(model, cores = getOption("mc.cores", 1L)) {
  check_model(model)
  cores <- check_cores(cores)
  constants <- model_lipschitz(
    model,
    hint = paste(
      "{.fn subsampling_weights} of type",
      weights_left(model),
      "need none."
    ),
    cores = cores
  )
  out <- c(prior_lipschitz(model), constants)
  names(out) <- c("prior", character(length(constants)))
  out
}

# Of the prior; NA: none.
prior_lipschitz <- function(model) {
  known <- model_info(model)$lipschitz_prior
  if (!is.nan(known)) {
    return(known)
  }
  is_quadratic <- all(prior_has_form(model$prior, "quadratic"))
  if (!model_is_whitened(model) || !is_quadratic) {
    return(NA_real_)
  }
  # a full map mixes the coordinates: -Hessian = L^-1 (D + a a' / s^2) L^-T
  precision <- prior_precision(model$prior)
  root <- diag(sqrt(precision), model$n_dim)
  functional <- model$prior_functional
  if (!is.null(functional)) {
    at <- functional$at + 1
    root[, at] <- functional$weights * sqrt(precision[[at]])
  }
  svd(forwardsolve(model$whitening$chol, root), nu = 0, nv = 0)$d[[1]]^2
}

# Of the rows. `hint`: what to do for a model without, a cli message.
model_lipschitz <- function(model, hint, cores = 1) {
  if (!model_info(model)$has_weights) {
    abort_tall(
      "unsupported",
      c("{.code {model$label}()} has no Lipschitz constants.", i = hint)
    )
  }
  model_weights(model, "lipschitz", NULL, NULL, cores, hint = hint)
}
