# What priors that learn their scales did to each coefficient.

#' Shrinkage factors of a fit
#'
#' How much of each coefficient is left to the prior, after a fit with
#' [prior_hs()], [prior_ridge()] or [prior_r2d2()]: 0 for a coefficient that the
#' data determine, 1 for one that is held at its location.
#'
#' @param fit ([`tall_fit`][tall_fit]) The fit, which kept the draws of all
#'   hyperparameters.
#'
#' @details With \eqn{P_j} the precision of the coefficient's normal prior given
#' the hyperparameters, and \eqn{h_j} the information that the data have of it,
#' \deqn{\kappa_j = \frac{P_j}{P_j + h_j},} which is \eqn{1 / (1 + N
#' \sigma^{-2} s_j^2 v_j)}{1 / (1 + N s_j^2 v_j / sigma^2)} of Piironen &
#' Vehtari (2017, section 2.3), \eqn{v_j} as in [prior_hs()], in a linear
#' regression with centred columns of variance 1. In general \eqn{h_j} is taken
#' from minus the Hessian \eqn{H} of the log likelihood at `fit$mode`, where the
#' intercept is free: \eqn{h_j = H_{jj} - H_{j0}^2 / H_{00}}{h_j = H_jj - H_j0^2
#' / H_00}; other coefficients are held. The effective number of coefficients is
#' \eqn{\sum_j (1 - \kappa_j)}{sum_j (1 - kappa_j)}.
#'
#' @return A [posterior::draws_array()] of `kappa[x]` for each coefficient under
#'   the prior, and `n_effective`, of the posterior's draws.
#' @section Conditions: `tall_error_unsupported` for a fit whose prior has no
#' hyperparameters, or which has not kept all of them.
#' @references
#' Piironen & Vehtari (2017). Sparsity information and regularization in the
#' horseshoe and other shrinkage priors. *Electronic Journal of Statistics* 11,
#' 5018-5051.
#' @seealso [prior_hs()]; [projpred-tall_glm] for the smallest set of columns
#'   that predicts as well
#' @examples
#' fit <- tall_glm(
#'   mpg ~ wt + hp + drat + qsec,
#'   data = mtcars,
#'   prior = prior_hs(global_scale = 0.2, autoscale = TRUE),
#'   seed = 1
#' )
#' posterior::summarise_draws(shrinkage(fit), "mean", "sd")
#' @export
shrinkage <- function(fit) {
  check_spec(fit, "tall_fit", "tall_glm()")
  check_has_draws(fit)
  mixture <- fit$prior$mixture
  names <- fit$every_variable[mixture$at]
  if (is.null(mixture) || !all(mixture$names %in% fit$variables)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn shrinkage} needs the draws of a prior's hyperparameters, which
         this fit has not.",
        i = if (is.null(mixture)) {
          "Fit with {.fn prior_hs}, {.fn prior_ridge} or {.fn prior_r2d2}."
        } else {
          "Fit with {.code variables = NULL}, which keeps them."
        }
      )
    )
  }
  natural <- draws_array(fit, mixture$names)
  n_draw <- prod(dim(natural)[1:2])
  precision <- mixture_precision(mixture, t(matrix(natural, n_draw)))
  kappa <- precision / (precision + data_information(fit, mixture))
  out <- rbind(kappa, colSums(1 - kappa))
  posterior::as_draws_array(array(
    t(out),
    c(dim(natural)[1:2], nrow(out)),
    list(NULL, NULL, c(paste0("kappa[", names, "]"), "n_effective"))
  ))
}

# h_j of the coefficients under the mixture.
data_information <- function(fit, mixture) {
  # of a kernel that needed none
  mode <- fit$mode %||% model_mode(fit_model(fit), fit$control$cores, 0)
  at <- mixture$at
  free <- unname(mode$estimate[mixture$coordinates])
  hessian <- -unname(mode$hessian)
  own <- cbind(at, at)
  hessian[own] <- hessian[own] - precision_at(mixture, free)
  intercept <- which(fit$every_variable == "(Intercept)")
  intercept <- setdiff(intercept, at)
  h <- hessian[own]
  if (length(intercept) == 1) {
    h <- h - hessian[at, intercept]^2 / hessian[intercept, intercept]
  }
  pmax(h, 0)
}
