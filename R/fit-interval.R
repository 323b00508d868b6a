# Posterior intervals of variables.

#' Posterior intervals
#'
#' Central intervals of the posterior draws.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param parm,pars,variables (names or numbers) Which variables; all by
#'   default.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param level,prob (number between 0 and 1) Probability of the intervals.
#' @param ... Unused: other arguments are refused.
#'
#' @return A matrix with a row for each variable and two columns, the quantiles.
#' @section Conditions:
#' `tall_error_unsupported` if the fit kept no draws; `tall_error_input` for an
#' unknown variable.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' confint(fit)
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' rstantools::posterior_interval(fit, prob = 0.5)
#' @name intervals
NULL

#' @rdname intervals
#' @importFrom stats confint
#' @export
confint.tall_fit <- function(object, parm = NULL, level = 0.95, ...) {
  check_no_dots(...)
  level <- check_prob(level)
  interval_matrix(object, parm, level, " ", "parm")
}

#' @rdname intervals
#' @exportS3Method rstantools::posterior_interval
posterior_interval.tall_fit <- function(
  object,
  prob = 0.9,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  ...
) {
  check_no_dots(..., .ignore = list(type = central_only))
  prob <- check_prob(prob)
  if (!is.null(regex_pars)) {
    variables <- select_variables(
      object$variables,
      variables,
      regex_pars,
      may_number = TRUE
    )
  }
  interval_matrix(
    object,
    variables,
    prob,
    "",
    "variables"
  )
}

# rstanarm's argument.
central_only <- list(
  test = function(x) identical(x, "central"),
  expected = "\"central\"",
  hint = "Other intervals can be had of the draws, `as.matrix(fit)`."
)

interval_matrix <- function(fit, variables, prob, space, arg) {
  probs <- interval_probs(prob)
  out <- fit_quantiles(fit, probs)
  colnames(out) <- percent(probs, space)
  if (is.null(variables)) {
    return(out)
  }
  check_variable_names(
    variables,
    rownames(out),
    may_number = TRUE,
    arg = arg
  )
  out[variables, , drop = FALSE]
}
