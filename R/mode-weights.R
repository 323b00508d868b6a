# Weights of rows for preferential subsampling.

#' Weights for preferential subsampling
#'
#' Selection probabilities that make the estimated gradient less noisy, computed
#' once at a point near the mode.
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param at (`tall_mode`, numeric vector of n_dim values, or `NULL`) The point
#'   \eqn{\hat\theta}{theta-hat}; `NULL` finds the mode.
#' @param type (string) See below.
#' @param defensive (number in \[0, 1)) The share \eqn{\lambda}{lambda} of
#'   uniform weights mixed in (0.1 for cubic ones, which differ most): \eqn{(1 -
#'   \lambda) p_i + \lambda / N}{(1 - lambda) p_i + lambda / N}. It keeps every
#'   probability positive; a row with probability zero would bias the estimate.
#' @param cores (whole number) Threads to use.
#'
#' @details
#' With \eqn{H_i} the Hessian of observation \eqn{i}'s log likelihood at
#' \eqn{\hat\theta}{theta-hat}, \eqn{\hat\Sigma}{Sigma} the inverse of minus the
#' Hessian of the log posterior, \eqn{w_i} the curvature (\eqn{H_i = - w_i x_i
#' x_i^T} in a generalised linear model),
#'
#' * `"leverage"`: \eqn{w_i x_i^T \hat\Sigma x_i}{w_i x_i' Sigma x_i}: least
#'   noise after whitening.
#' * `"robust"`: the same with the largest \eqn{w_i} while the row's linear
#'   predictor is within 4 posterior standard deviations of the mode's,
#'   \eqn{\hat\eta_i \pm 4 \sqrt{x_i^T \hat\Sigma x_i}}{eta_i -+ 4 sqrt(x_i'
#'   Sigma x_i)}: an outlier can weigh next to nothing at the mode and more than
#'   all other rows a standard deviation away. For [model_glm()] and
#'   [model_gaussian()].
#' * `"cubic"`: \eqn{K_i (x_i^T \hat\Sigma x_i)^{3/2}}{K_i (x_i' Sigma
#'   x_i)^(3/2)}, \eqn{K_i} the largest third derivative of the row's log
#'   likelihood in its linear predictor within the same 4 standard deviations:
#'   least noise of [gradient_cv()] with `order = 2`. For [model_glm()] without
#'   a sampled `sigma`, and [model_gaussian()]. Where rows have no third
#'   derivative, as normal ones, they are uniform.
#' * `"hessian"`: \eqn{\sqrt{tr(H_i \hat\Sigma H_i^T)}}{sqrt(tr(H_i Sigma
#'   H_i'))}: least noise of the control-variate gradient in the parameters
#'   (Putcha, Nemeth & Fearnhead, 2023, section 4.2).
#' * `"gradient"`: \eqn{\|g_i(\hat\theta)\|}{||g_i(theta-hat)||}: least noise of
#'   the simple gradient.
#' * `"lipschitz"`: the Lipschitz constants \eqn{L_i}.
#' * `"uniform"`.
#'
#' Leverage and Hessian weights of a generalised linear model take one
#' triangular solve of the rows, \eqn{O(N d^2)}; the paper's formula costs
#' \eqn{O(N d^3)}.
#'
#' @return A numeric vector of n_data positive weights that sum to 1.
#' @section Conditions:
#' `tall_error_unsupported` if the model cannot provide the type;
#' `tall_error_input` for arguments that are not as described.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' x <- cbind(1, rnorm(200))
#' model <- model_glm(x, rbinom(200, 1, 0.5), family = "bernoulli")
#' summary(subsampling_weights(model, type = "leverage"))
#' @export
subsampling_weights <- function(
  model,
  at = NULL,
  type = c(
    "leverage",
    "robust",
    "cubic",
    "hessian",
    "gradient",
    "lipschitz",
    "uniform"
  ),
  defensive = if (identical(type, "cubic")) 0.1 else 0.01,
  cores = getOption("mc.cores", 1L)
) {
  check_model(model)
  check_not_whitened(model)
  type <- check_choice(type, weight_types)
  defensive <- check_number(defensive, min = 0, max = 1)
  cores <- check_cores(cores)
  find_weights(model, at, type, defensive, cores)
}

# The share of uniform weights where none is given.
usual_defensive <- function(type) {
  if (type == "cubic") 0.1 else 0.01
}

# subsampling_weights() once its arguments are known to be good.
find_weights <- function(
  model,
  at,
  type,
  defensive = usual_defensive(type),
  cores = 1
) {
  if (type == "uniform") {
    return(rep(1 / model$n_data, model$n_data))
  }
  point <- mode_point(model, at, needs_chol = type %in% chol_types)
  weights <- model_weights(model, type, point$theta, point$chol, cores)
  mix_weights(weights, type, defensive)
}

# Probabilities, a share of them uniform. Robust weights can be of any size, and
# a share of their mean would drown what all rows but a few are to each other:
# there it is that of the others' mean.
mix_weights <- function(weights, type, defensive = usual_defensive(type)) {
  if (type == "robust") {
    heavy <- heavy_rows(weights)
    mean <- mean(if (length(heavy) > 0) weights[-heavy] else weights)
    weights <- (1 - defensive) * weights + defensive * mean
    return(weights / sum(weights))
  }
  if (type == "cubic" && sum(weights) == 0) {
    return(rep(1 / length(weights), length(weights))) # nothing is left to weigh
  }
  weights <- weights / sum(weights)
  (1 - defensive) * weights + defensive / length(weights)
}

# Rows of a minibatch: n = 2.5 (d - 1) makes the noise's share h (d - 1) / (4 n)
# of a variance 2 % at the recipe's h = 0.2.
rows_per_dim <- 2.5

# Rows whose curvature can be so large a part of the posterior's that a
# minibatch is smaller with them always in it: the noise of the others calls for
# rows_per_dim rows a unit of their robust weights.
heavy_rows <- function(weights) {
  heavy <- which(weights > 1 / rows_per_dim)
  if (length(heavy) < length(weights)) heavy else integer()
}
