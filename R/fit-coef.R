# Estimates of fits as vectors and matrices, and what fits of a formula alone
# have.

#' Methods for fits
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param ... Unused: other arguments are refused.
#'
#' @return `coef()`: posterior means, a named vector. `vcov()`: the posterior
#'   covariance matrix of the draws. For a fit of [tall_glm()] both are those of
#'   the coefficients, one for each column of `model.matrix()`, as in
#'   [stats::glm()] and rstanarm; `sigma` is elsewhere: see
#'   [sigma()][fitted-values], [confint()] and the draws. `nobs()`: the number
#'   of observations.
#'   `formula()` and `family()`: those of [tall_glm()] or [tall_nn()].
#' @section Conditions:
#' `tall_error_unsupported` where a fit was not made from a formula: then there
#' are no `fitted()`, `residuals()`, `formula()`, `family()` or `update()`.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' coef(fit)
#' vcov(fit)
#' nobs(fit)
#' @name fit-methods
NULL

#' @rdname fit-methods
#' @importFrom stats coef
#' @export
coef.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  stats::setNames(fit_moments(object)$mean, object$variables)
}

#' @rdname fit-methods
#' @importFrom stats vcov
#' @export
vcov.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  if (is.null(object$draws) && length(object$moments) > 0) {
    return(moment_covariance(object))
  }
  draws <- draws_matrix(object)
  if (!is.null(object[["weights"]])) {
    w <- as.numeric(object[["weights"]])
    return(stats::cov.wt(draws, w / sum(w))$cov)
  }
  stats::cov(draws)
}

#' @rdname fit-methods
#' @importFrom stats nobs
#' @export
nobs.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  object$n_rows %||% object$n_data
}

# as.formula() asks for one; a formula has its own
any_environment <- list(
  env = list(test = is.environment, expected = "an environment")
)

# What only fits from a formula have: stats' defaults would give NULL, or an
# error about something else.
#' @rdname fit-methods
#' @export
fitted.tall_fit <- function(object, ...) {
  abort_no_formula(object, "fitted")
}

#' @rdname fit-methods
#' @export
residuals.tall_fit <- function(object, ...) {
  abort_no_formula(object, "residuals")
}

#' @rdname fit-methods
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @export
formula.tall_fit <- function(x, ...) {
  abort_no_formula(x, "formula")
}

#' @rdname fit-methods
#' @export
family.tall_fit <- function(object, ...) {
  abort_no_formula(object, "family")
}

#' @rdname fit-methods
#' @importFrom stats update
#' @export
update.tall_fit <- function(object, ...) {
  abort_no_formula(object, "update")
}

# A fit of a regression that an earlier version saved has no blueprint.
check_is_of_now <- function(fit, f) {
  is_regression <- inherits(fit, "tall_regression")
  if (!is_regression && inherits(fit, regression_fronts)) {
    abort_tall(
      "stale",
      c(
        "{.fn {f}} does not read a fit that an earlier version of tallbayes
         saved.",
        i = "{.fn print}, {.fn summary}, {.fn predict} and the draws do. Fit
             again for the rest."
      )
    )
  }
}

abort_no_formula <- function(fit, f) {
  check_is_of_now(fit, f)
  is_front <- inherits(fit, "tall_regression")
  maker <- if (is_front) class(fit)[[1]] else fit$model_label
  abort_tall(
    "unsupported",
    c(
      "{.fn {f}} has no meaning for a fit of {.code {maker}()}: it is for those
       of {.fn tall_glm} and others with one number as their response.",
      i = if (is_front) {
        "{.fn posterior_epred} has what is expected of each row in each draw."
      } else {
        "{.code as.matrix(fit)} has the draws, and
         {.code predict(fit, newdata, fun)} gives what a function makes of
         them."
      }
    )
  )
}
