# Subsampling schemes. One constructor for each member of
# src/subsampling/registry.c, and the weights that weighted ones use.

#' Subsampling schemes
#'
#' Which rows a minibatch holds.
#'
#' @param size (positive number) Rows in a minibatch; a number below 1 is a
#'   fraction of the data. At most as many as there are rows, with replacement
#'   at most 1e6 where there are fewer.
#' @param replace (`TRUE` or `FALSE`) Draw rows with replacement?
#' @param weights (string or positive numeric vector of n_data values) Weights
#'   that selection probabilities are proportional to: a `type` of
#'   [subsampling_weights()], found at the reference point of the gradient
#'   estimator, or numbers, which are normalised and otherwise used as they are.
#' @param always (`TRUE`, `FALSE` or whole numbers) Rows that are in every
#'   minibatch, on top of `size`: with `TRUE` those that would be in it more
#'   than once, on average; or the numbers of rows.
#' @param threshold (positive number) \eqn{V_0}: the noise, \eqn{E\|\hat g -
#'   g\|^2}{E||g-hat - g||^2}, that adaptive minibatches allow at most; from
#'   [noise_threshold()].
#' @param min_size,max_size (positive number) The least and the most rows in an
#'   adaptive minibatch; below 1 fractions of the data. `max_size = NULL`: all
#'   rows, which give the full gradient.
#'
#' @details
#' Weighted minibatches are drawn with replacement by the alias method (Walker,
#' 1977; Vose, 1991): O(N) once, O(1) for each row. The estimate stays unbiased
#' because a row that is drawn often counts less: \eqn{1 / (n p_i)}.
#'
#' With `always = TRUE` rows with \eqn{n p_i > 1}{n p_i > 1} are in each
#' minibatch, once and with multiplier 1, and the others are drawn with the
#' probabilities that are left: the certainty stratum of survey sampling. A few
#' rows that outweigh all others then bring no noise.
#'
#' `subsample_adaptive()` (Putcha, Nemeth & Fearnhead, 2023, section 5) draws,
#' with replacement, \deqn{n(\theta) = \left\lfloor \frac{1}{V_0} \|\theta -
#' \hat\theta\|^2 \sum_i \frac{L_i^2}{p_i} \right\rfloor + 1}{n(theta) =
#' floor((1/V_0) ||theta - theta-hat||^2 sum_i L_i^2 / p_i) + 1} rows, at least
#' `min_size`; where that reaches the number of rows, the full gradient is used.
#' \eqn{L_i} are the [Lipschitz constants][lipschitz()] and
#' \eqn{\hat\theta}{theta-hat} is the reference point of [gradient_cv()], the
#' estimator that it needs. The size depends on \eqn{\theta} alone, so that the
#' estimate stays unbiased. The sizes used are in the element `sizes` of a fit;
#' `plot(fit, "size")` draws them. With a corrected kernel take `min_size = 2`
#' or more: one row does not show its noise, and the correction then takes that
#' of larger minibatches, which is more.
#'
#' `subsample_optimal()` draws with the probabilities of least variance at the
#' current state, \eqn{p_i \propto \|a_i(\theta)\|}{p_i ~ ||a_i(theta)||}, where
#' \eqn{a_i} is what the estimator sums over the minibatch (\eqn{g_i(\theta)},
#' less its reference); uniformly where all \eqn{a_i} are 0 (section 4.1). Every
#' minibatch costs a pass over the data, and is counted as one: it is there to
#' study what fixed weights lose.
#'
#' @return A spec of class `tall_subsample` for [sg_sample()].
#' @section Conditions: `tall_error_input` if an argument is not as described,
#' or, once the model is known, if a minibatch without replacement is larger
#' than the data, or all rows would always be in it. `tall_error_unsupported` if
#' adaptive minibatches are asked of an estimator other than [gradient_cv()] or
#' of a model without Lipschitz constants. A `tall_warning_size` says when
#' adaptive minibatches are nearly always as large as they may be.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#'
#' Walker (1977). An efficient method for generating discrete random variables
#' with general distributions. *ACM TOMS* 3, 253-256.
#'
#' Vose (1991). A linear algorithm for generating random numbers with a given
#' distribution. *IEEE Transactions on Software Engineering* 17, 972-975.
#' @seealso [subsampling_weights()], [noise_threshold()], [pseudo_variance()]
#' @examples
#' subsample_uniform(100)
#' subsample_uniform(0.01, replace = FALSE)
#' subsample_weighted(100, weights = "hessian")
#' subsample_adaptive(threshold = 50, min_size = 10)
#' subsample_optimal(100)
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
subsample_weighted <- function(size, weights = "hessian", always = FALSE) {
  weights <- check_weights(weights)
  always <- check_always(always)
  new_spec(
    "subsample",
    "weighted",
    size = check_batch_size(size),
    weights = weights,
    always = if (!isFALSE(always)) always
  )
}

# A flag, or row numbers in their order.
check_always <- function(always, arg = caller_arg(always)) {
  force(arg) # before `always` is assigned
  if (is.logical(always)) {
    return(check_flag(always, arg = arg))
  }
  always <- check_numeric_vector(always, arg = arg)
  bad <- which(always < 1 | always != round(always) | duplicated(always))
  if (length(bad) > 0) {
    abort_input(
      "{.arg {arg}} must be TRUE, FALSE or the numbers of rows, each once, not
       {format_number(always[[bad[[1]]]])}.",
      argument = arg,
      value = always
    )
  }
  sort(always)
}

#' @rdname subsampling
#' @export
subsample_adaptive <- function(
  threshold,
  weights = "hessian",
  min_size = 1,
  max_size = NULL
) {
  threshold <- check_number(threshold, positive = TRUE)
  weights <- check_weights(weights)
  min_size <- check_batch_size(min_size)
  if (!is.null(max_size)) {
    max_size <- check_batch_size(max_size)
  }
  new_spec(
    "subsample",
    "adaptive",
    threshold = threshold,
    weights = weights,
    min_size = min_size,
    max_size = max_size
  )
}

#' @rdname subsampling
#' @export
subsample_optimal <- function(size) {
  new_spec("subsample", "optimal", size = check_batch_size(size))
}

# A type of weights, or positive numbers.
check_weights <- function(weights, arg = caller_arg(weights)) {
  if (is.character(weights)) {
    check_choice(weights, weight_types, arg = arg)
  } else {
    check_numeric_vector(weights, positive = TRUE, arg = arg)
  }
}

# A given minibatch every time; for enumeration in tests.
subsample_fixed <- function(index, multiplier, finite = 1, always = NULL) {
  new_spec(
    "subsample",
    "fixed",
    index = index,
    multiplier = multiplier,
    finite = finite,
    always = always
  )
}

check_batch_size <- function(size, arg = caller_arg(size)) {
  force(arg) # names the promise, so before `size` is assigned
  size <- check_number(size, positive = TRUE, arg = arg)
  if (size > count_limits$integer) {
    expected <- paste("at most", format_count(count_limits$integer), "rows")
    abort_expected(size, expected, arg = arg)
  }
  if (size >= 1 && size != round(size)) {
    abort_expected(
      size,
      "a whole number, or a fraction of the data below 1",
      arg = arg
    )
  }
  size
}

# Rows for a size that may be a fraction.
batch_rows <- function(size, n_data) {
  if (size < 1) max(1, floor(size * n_data)) else size
}
