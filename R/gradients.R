# Gradient estimators. One constructor for each member of
# src/gradients/registry.c.

#' Gradient estimators
#'
#' How the gradient of the log posterior is estimated from a minibatch. All are
#' unbiased, whatever the subsampling scheme.
#'
#' @param at (numeric vector of n_dim values, a [`tall_mode`][find_mode()], or
#'   `NULL`) The reference point \eqn{\hat\theta}{theta-hat} of the control
#'   variates; `NULL` finds the mode.
#'
#' @details
#' With \eqn{g_0} the gradient of the log prior, \eqn{g_i} that of observation
#' \eqn{i}'s log likelihood, \eqn{S} the minibatch and \eqn{p_i} the selection
#' probabilities of [subsampling][subsample_uniform()],
#'
#' * `gradient_simple()`: \eqn{g_0(\theta) + \frac1n \sum_{i \in S} g_i(\theta) /
#'   p_i}{g_0(theta) + (1/n) sum_S g_i(theta)/p_i} (Welling & Teh, 2011; Putcha,
#'   Nemeth & Fearnhead, 2023, eq. 8).
#' * `gradient_cv()`: \eqn{g_0(\theta) + \sum_i g_i(\hat\theta) + \frac1n
#'   \sum_{i \in S} [g_i(\theta) - g_i(\hat\theta)] / p_i}{g_0(theta) + sum_i
#'   g_i(theta-hat) + (1/n) sum_S [g_i(theta) - g_i(theta-hat)]/p_i} (Baker,
#'   Fearnhead, Fox & Nemeth, 2019, section 3). In a generalised linear model
#'   one stored number for each row makes it as cheap as the simple estimate.
#' * `gradient_full()`: the exact gradient, from all rows.
#'
#' @return A spec of class `tall_gradient` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if `at` is not as described or, once the model is known,
#' has the wrong length.
#' @references
#' Baker, Fearnhead, Fox & Nemeth (2019). Control variates for stochastic gradient
#' MCMC. *Statistics and Computing* 29, 599-615.
#'
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' gradient_cv()
#' gradient_full()
#' @name gradients
NULL

#' @rdname gradients
#' @export
gradient_simple <- function() {
  new_spec("gradient", "simple")
}

#' @rdname gradients
#' @export
gradient_cv <- function(at = NULL) {
  if (!inherits(at, "tall_mode")) {
    at <- check_numeric_vector(at, allow_null = TRUE)
  }
  new_spec("gradient", "cv", at = at)
}

#' @rdname gradients
#' @export
gradient_full <- function() {
  new_spec("gradient", "full")
}

#' @export
compile_spec.tall_gradient_cv <- function(
  spec,
  context,
  call = caller_env()
) {
  member("cv", list(at = context$to_sampler(context$reference(spec, call))))
}

gradient_is_full <- function(gradient) {
  inherits(gradient, "tall_gradient_full")
}
