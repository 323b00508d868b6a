# Subsampling schemes. One constructor for each member of
# src/subsampling/registry.c, and the weights that weighted ones use.

#' Subsampling schemes
#'
#' Which rows a minibatch holds.
#'
#' @param size (positive number) Rows in a minibatch; a number below 1 is a
#'   fraction of the data.
#' @param replace (`TRUE` or `FALSE`) Draw rows with replacement?
#' @param weights (string or positive numeric vector of n_data values) Weights
#'   that selection probabilities are proportional to: a `type` of
#'   [subsampling_weights()], found at the reference point of the gradient
#'   estimator, or numbers, which are normalised and otherwise used as they are.
#'
#' @details
#' Weighted minibatches are drawn with replacement by the alias method (Walker,
#' 1977; Vose, 1991): O(N) once, O(1) for each row. The estimate stays unbiased
#' because a row that is drawn often counts less: \eqn{1 / (n p_i)}.
#'
#' @return A spec of class `tall_subsample` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, or, once the model is
#' known, if a minibatch without replacement is larger than the data.
#' @references
#' Walker (1977). An efficient method for generating discrete random variables
#' with general distributions. *ACM TOMS* 3, 253-256.
#'
#' Vose (1991). A linear algorithm for generating random numbers with a given
#' distribution. *IEEE Transactions on Software Engineering* 17, 972-975.
#' @seealso [subsampling_weights()]
#' @examples
#' subsample_uniform(100)
#' subsample_uniform(0.01, replace = FALSE)
#' subsample_weighted(100, weights = "hessian")
#' @name subsampling
NULL

#' @rdname subsampling
#' @export
subsample_uniform <- function(size, replace = TRUE) {
  new_spec(
    "subsample",
    "uniform",
    size = check_batch_size(size),
    replace = check_flag(replace)
  )
}

#' @rdname subsampling
#' @export
subsample_weighted <- function(size, weights = "hessian") {
  if (is.character(weights)) {
    weights <- check_choice(weights, weight_types)
  } else {
    weights <- check_numeric_vector(weights, positive = TRUE)
  }
  new_spec("subsample", "weighted", size = check_batch_size(size), weights = weights)
}

# A given minibatch every time; for enumeration in tests.
subsample_fixed <- function(index, multiplier, finite = 1) {
  new_spec(
    "subsample",
    "fixed",
    index = index,
    multiplier = multiplier,
    finite = finite
  )
}

check_batch_size <- function(size, arg = "size", call = caller_env()) {
  size <- check_number(size, positive = TRUE, arg = arg, call = call)
  if (size >= 1 && size != round(size)) {
    abort_expected(
      size,
      "a whole number, or a fraction of the data below 1",
      arg = arg,
      call = call
    )
  }
  size
}

# Rows for a size that may be a fraction.
batch_rows <- function(size, n_data) {
  if (size < 1) max(1, floor(size * n_data)) else size
}

#' @export
compile_spec.tall_subsample_uniform <- function(
  spec,
  context,
  call = caller_env()
) {
  size <- batch_rows(spec$args$size, context$n_data)
  if (!spec$args$replace && size > context$n_data) {
    abort_input(
      c(
        "{.arg size} must be at most the number of rows,
         {format_count(context$n_data)}, when drawing without replacement,
         not {format_count(size)}.",
        i = "Use {.fn gradient_full} for all rows, or {.code replace = TRUE}."
      ),
      argument = "size",
      expected = context$n_data,
      value = size,
      call = call
    )
  }
  member("uniform", list(size = size, replace = spec$args$replace))
}

#' @export
compile_spec.tall_subsample_weighted <- function(
  spec,
  context,
  call = caller_env()
) {
  size <- batch_rows(spec$args$size, context$n_data)
  weights <- spec$args$weights
  if (is.character(weights)) {
    weights <- context$weights(weights, call)
  } else {
    check_size(weights, context$n_data, arg = "weights", call = call)
  }
  member("weighted", list(size = size, weights = weights))
}

# As in `enum tb_weight_type`; "uniform" needs no model.
weight_types <- c("leverage", "hessian", "gradient", "lipschitz", "uniform")
weight_codes <- c(gradient = 0L, hessian = 1L, lipschitz = 2L, leverage = 3L)

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
#' @param defensive (number in \[0, 1)) The share \eqn{\lambda}{lambda} of uniform
#'   weights mixed in: \eqn{(1 - \lambda) p_i + \lambda / N}{(1 - lambda) p_i +
#'   lambda / N}. It keeps every probability positive; a row with probability
#'   zero would bias the estimate.
#' @param cores (whole number) Threads to use.
#'
#' @details
#' With \eqn{H_i} the Hessian of observation \eqn{i}'s log likelihood at
#' \eqn{\hat\theta}{theta-hat}, \eqn{\hat\Sigma}{Sigma} the inverse of minus the
#' Hessian of the log posterior, \eqn{w_i} the curvature (\eqn{H_i = - w_i x_i
#' x_i^T} in a generalised linear model),
#'
#' * `"leverage"`: \eqn{w_i x_i^T \hat\Sigma x_i}{w_i x_i' Sigma x_i}: least noise
#'   after whitening.
#' * `"hessian"`: \eqn{\sqrt{tr(H_i \hat\Sigma H_i^T)}}{sqrt(tr(H_i Sigma H_i'))}:
#'   least noise of the control-variate gradient in the parameters (Putcha, Nemeth
#'   & Fearnhead, 2023, section 4.2).
#' * `"gradient"`: \eqn{\|g_i(\hat\theta)\|}{||g_i(theta-hat)||}: least noise of
#'   the simple gradient.
#' * `"lipschitz"`: the Lipschitz constants \eqn{L_i}.
#' * `"uniform"`.
#'
#' Leverage and Hessian weights of a generalised linear model take one triangular
#' solve of the rows, \eqn{O(N d^2)}; the paper's formula costs \eqn{O(N d^3)}.
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
  type = c("leverage", "hessian", "gradient", "lipschitz", "uniform"),
  defensive = 0.01,
  cores = getOption("mc.cores", 1L)
) {
  check_model(model)
  type <- check_choice(type, weight_types)
  defensive <- check_number(defensive, min = 0, max = 1)
  cores <- check_count(cores)
  find_weights(model, at, type, defensive, cores)
}

# subsampling_weights() once its arguments are known to be good.
find_weights <- function(
  model,
  at,
  type,
  defensive = 0.01,
  cores = 1,
  call = caller_env()
) {
  if (type == "uniform") {
    return(rep(1 / model$n_data, model$n_data))
  }
  needs_chol <- type %in% c("leverage", "hessian")
  point <- mode_point(model, at, needs_chol, call)
  weights <- model_weights(
    model,
    type,
    point$theta,
    point$chol,
    cores,
    call
  )
  weights <- weights / sum(weights)
  (1 - defensive) * weights + defensive / model$n_data
}

# Unnormalised, from the core.
model_weights <- function(model, type, theta, chol, cores, call = caller_env()) {
  if (!model_info(model)$has_weights) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} does not provide subsampling weights.",
        i = "Use {.fn subsample_uniform}, or give numbers."
      ),
      call = call
    )
  }
  out <- .Call(
    ffi_model_weights,
    model$pointer,
    weight_codes[[type]],
    theta,
    chol,
    cores
  )
  if (is.integer(out)) {
    if (type == "lipschitz" && status_name(out) == "unsupported") {
      family <- if (!is.null(model$family)) {
        paste0(" of family \"", model$family$name, "\"")
      }
      abort_tall(
        "unsupported",
        c(
          "{.code {model$label}()}{family} has no global Lipschitz constants.",
          i = "Use weights of type {.val leverage} or {.val hessian}."
        ),
        call = call
      )
    }
    abort_status(out, call = call)
  }
  out
}
