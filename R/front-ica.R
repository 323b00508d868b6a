# tall_ica(): the front end for independent components.

#' Independent components
#'
#' `tall_ica()` finds the posterior of an unmixing matrix: independent sources
#' of which the columns of a matrix are linear mixtures. `model_ica()` is the
#' model alone, for [sg_sample()].
#'
#' @param x (numeric matrix or data frame, n_data x K) The observations, a row
#'   each.
#' @param prior_sd (positive number) The prior of every element of the unmixing
#'   matrix is \eqn{N(0, s^2)}.
#' @param init (string, or K x K matrix) Where the search for the mode begins:
#'   `"fastICA"`, by the package of that name; `"identity"`; or an unmixing
#'   matrix.
#' @param standardise (string) What to do with the columns first, after
#'   centring: `"sphere"`, make them uncorrelated with variance one by the
#'   Cholesky factor of their covariance; `"scale"`, divide them by their
#'   standard deviations (the paper); or `"none"`, not even centre. [sources()]
#'   and [mixing()] take it into account.
#' @param storage (string) How the model keeps its rows: `"double"` or, in half
#'   the memory, `"float"`; see [model_glm()].
#' @param keep_data (`TRUE` or `FALSE`) Keep `x` in the fit, so that a fit read
#'   from a file can go on?
#' @param ... The run: arguments of [sg_sample()] but `model`, `init` and
#'   `variables`, with the same defaults. Others are refused.
#'
#' @details With an unmixing matrix \eqn{W} of rows \eqn{w_k} (Mauri & Zanella,
#' 2024, section 4.4) \deqn{p(x \mid W) = |\det W| \prod_k \frac1{4
#' \cosh^2(w_k^\top x / 2)}, \quad W_{kj} \sim N(0, s^2):}{p(x | W) = |det W|
#' prod_k 1 / (4 cosh^2(w_k'x / 2)), W_kj ~ N(0, s^2):} sources with the
#' logistic distribution. The gradient is \eqn{N W^{-\top} - \sum_i
#' \tanh(W x_i / 2) x_i^\top - W / s^2}{N W^-T - sum_i tanh(W x_i / 2) x_i' - W
#' / s^2}; the
#' determinant needs no data and is never estimated.
#'
#' The posterior does not change when rows of \eqn{W} are swapped or change
#' sign. Every draw is therefore aligned with the matrix at the mode before
#' anything is averaged: with \eqn{C = W \hat W^{-1}}, its rows scaled to length
#' one, each row of \eqn{W} takes the place of its largest \eqn{|C_{kj}|}, the
#' largest of all first where two compete, and the sign of that element. So are
#' the matrices that `keep = "none"` averages, and those that monitors see then.
#' `fit$aligned` counts the draws that this changed, where draws are kept. The
#' estimate of the bias of standard deviations takes each chain as it ran.
#'
#' @return `model_ica()`: a `tall_model`. `tall_ica()`: a [`tall_fit`][tall_fit]
#'   of class `c("tall_ica", "tall_fit")` with the variables `W[1,1]`, `W[2,1]`,
#'   ..., the unmixing matrix of the standardised columns. Sphered ones mix
#'   best: where columns are correlated, the elements of an unmixing matrix of
#'   the columns themselves are, too.
#' @section Conditions: `tall_error_input` if there are fewer rows than columns,
#' a column is constant or determined by others, or `init` is singular;
#' `rlib_error_package_not_found` if \pkg{fastICA} is wanted and not installed.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#'
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#' @seealso [sources()], [mixing()], `vignette("ratings-components-topics")`
#' @examples
#' s <- matrix(rlogis(4000), ncol = 2)
#' x <- s %*% rbind(c(1, 0.5), c(-0.3, 1))
#' fit <- tall_ica(x, init = "identity", chains = 2, seed = 1)
#' mixing(fit)$mean
#'
#' # the model alone, of which the draws are unmixing matrices
#' model <- model_ica(x)
#' model
#' @export
tall_ica <- function(
  x,
  prior_sd = 1,
  init = "fastICA",
  standardise = c("sphere", "scale", "none"),
  storage = c("double", "float"),
  ...,
  keep_data = TRUE
) {
  # before the search, which takes its time and shares the seed
  run <- front_run(
    ...,
    .front = tall_ica,
    .without = c(variables = "Components are aligned as wholes.")
  )
  check_given(x)
  check_flag(keep_data)
  standardise <- check_choice(standardise, ica_standards)
  given <- x
  x <- check_components(x)
  scaling <- ica_scaling(x, standardise)
  x <- standard_columns(x, scaling)
  model <- front_model(model_ica(x, prior_sd, storage), run)
  check_monitor(run$monitor, model)
  start <- with_seed(run$control$seed, ica_start(x, init))
  mode <- find_mode(
    model,
    method = "lbfgs",
    init = as.double(start),
    max_iter = 1000
  )
  if (!is.null(run$kernel) && is.null(run$gradient)) {
    run$gradient <- gradient_cv(at = mode)
  }
  reference <- matrix(mode$estimate, ncol(x))
  if ("none" %in% run$control$keep) {
    # no draws will be there to align: the core has to
    model <- build_ica(x, prior_sd, reference, storage)
  }
  model$cache$mode <- mode
  fit <- sample_model(model, run)
  written <- written_call(match.call(), "tall_ica", parent.frame())
  front_fit(fit, run, "tall_ica", written, list(
    data = if (keep_data) list(x = given, prior_sd = prior_sd),
    scaling = scaling,
    storage = model$storage,
    reference = reference
  ))
}

#' @export
rebuild_model.tall_ica <- function(fit) {
  if (is.null(fit$data)) {
    return(NULL)
  }
  x <- standard_columns(check_components(fit$data$x), fit$scaling)
  build_ica(
    x,
    fit$data$prior_sd,
    if ("none" %in% fit$control$keep) fit$reference,
    fit$storage
  )
}

#' @export
finish_fit.tall_ica <- function(fit) {
  if (is.null(fit$draws)) {
    return(fit)
  }
  k <- nrow(fit$reference)
  shape <- dim(fit$draws)
  flat <- function(a) array(unclass(a), c(prod(shape[1:2]), k, k))
  draws <- flat(fit$draws)
  order <- component_order(draws, solve(fit$reference))
  fit$aligned <- sum(rowSums(order != col(order)) > 0)
  if (fit$aligned > 0) {
    fit$draws[] <- reorder_components(draws, order)
    if (!is.null(fit$gradients)) {
      fit$gradients[] <- reorder_components(flat(fit$gradients), order)
    }
  }
  fit
}
