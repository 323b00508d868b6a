# Weights of models by what they predict: stacking and pseudo-BMA.

#' Weights of models
#'
#' Weights with which fits are averaged for prediction, of
#' [loo()][loo-tall_glm] or [kfold()][kfold-tall_glm], by stacking of predictive
#' distributions or pseudo Bayesian model averaging.
#'
#' @param x (`tall_fit`, what `loo()` or `kfold()` returned, or a list of such)
#'   The fits, of the same rows. A list may have names.
#' @param ... More fits, where `x` is one; else arguments of
#'   [loo::loo_model_weights()].
#' @param method (string) `"stacking"` or `"pseudobma"`.
#' @param BB,BB_n,alpha As in [loo::pseudobma_weights()].
#' @param observations,seed As in [loo()][loo-tall_glm], which fits are given
#'   to.
#'
#' @details Stacking maximises \eqn{\sum_i \log \sum_k w_k \exp
#' \mathrm{elpd}_{ik}}{sum_i log sum_k w_k exp(elpd_ik)} over weights that add
#' up to 1 (Yao, Vehtari, Simpson & Gelman, 2018, eq. 6), by
#' [loo::stacking_weights()]. Of a subsample of the rows, the same of all fits,
#' that is an estimate of those of all; pseudo-BMA needs sums over all rows, and
#' is refused.
#'
#' @return A numeric vector with the names of the fits, of class
#'   `stacking_weights` or `pseudobma_weights`, which \pkg{loo} prints.
#' @section Conditions: `tall_error_input` for fewer than two fits, or fits of
#'   other rows; `tall_error_unsupported` for pseudo-BMA of subsamples;
#'   `tall_warning_response` where their responses are not the same.
#' @references Yao, Vehtari, Simpson & Gelman (2018). Using stacking to average
#' Bayesian predictive distributions. *Bayesian Analysis* 13, 917-1007.
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' light <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' heavy <- tall_glm(mpg ~ wt + hp, data = mtcars, seed = 1)
#' loo_model_weights(light, heavy)
#' loo_model_weights(list(a = kfold(light), b = kfold(heavy)))
#' @name loo_model_weights
NULL

#' @rdname loo_model_weights
#' @export
loo_model_weights <- function(x, ...) {
  if (is_list_of_fits(x)) {
    return(loo_model_weights.tall_list(x, ...))
  }
  hand_on("loo", "loo_model_weights")
}

# loo has a method for lists of its own.
is_list_of_fits <- function(x) {
  own <- c("tall_fit", "tall_loo")
  is.list(x) && !inherits(x, own) && length(x) > 0 &&
    all(vapply(x, inherits, TRUE, own))
}

#' @rdname loo_model_weights
#' @exportS3Method loo::loo_model_weights
loo_model_weights.tall_fit <- function(
  x,
  ...,
  method = c("stacking", "pseudobma"),
  BB = TRUE,
  BB_n = 1000,
  alpha = 1,
  observations = 400,
  seed = NULL
) {
  fits <- list(x, ...)
  written <- as.list(substitute(list(x, ...)))[-1]
  given <- rlang::names2(fits)
  is_fit <- vapply(fits, inherits, TRUE, c("tall_fit", "tall_loo"))
  if (!all(is_fit)) {
    abort_expected(
      fits[[which(!is_fit)[[1]]]],
      "a fit, or what loo() and kfold() return",
      arg = if (nzchar(given[!is_fit][[1]])) given[!is_fit][[1]] else "..."
    )
  }
  names(fits) <- ifelse(
    nzchar(given),
    given,
    vapply(written, deparse1, "", width.cutoff = 60)
  )
  loo_model_weights.tall_list(
    fits,
    method = method,
    BB = BB,
    BB_n = BB_n,
    alpha = alpha,
    observations = observations,
    seed = seed
  )
}

#' @exportS3Method loo::loo_model_weights
loo_model_weights.tall_loo <- loo_model_weights.tall_fit

# A list of fits or results of loo() and kfold().
loo_model_weights.tall_list <- function(
  x,
  ...,
  method = c("stacking", "pseudobma"),
  BB = TRUE,
  BB_n = 1000,
  alpha = 1,
  observations = 400,
  seed = NULL
) {
  check_no_dots(...)
  rlang::check_installed("loo", "for the weights")
  method <- check_choice(method, c("stacking", "pseudobma"))
  if (length(x) < 2 || !is_list_of_fits(x)) {
    abort_expected(x, "two fits or more", arg = "x")
  }
  results <- lapply(x, function(one) {
    if (!inherits(one, "tall_fit")) {
      return(one)
    }
    loo::loo(one, observations = observations, seed = seed)
  })
  check_same_rows_of(results)
  warn_other_responses(results)
  elpd <- pointwise_of(results)
  is_some <- nrow(elpd) < attr(results[[1]], "rows")$n_data
  if (is_some && method == "pseudobma") {
    abort_tall(
      "unsupported",
      c(
        "Pseudo-BMA weighs models by sums over all observations, and these are
         of a subsample.",
        i = "{.code method = \"stacking\"} takes means, or {.code observations =
             NULL} all observations."
      ),
      argument = "method"
    )
  }
  out <- if (method == "stacking") {
    loo::stacking_weights(elpd)
  } else {
    loo::pseudobma_weights(elpd, BB = BB, BB_n = BB_n, alpha = alpha)
  }
  names <- names(x) %||% paste0("model", seq_along(x))
  stats::setNames(out, names)
}

# Observations x models.
pointwise_of <- function(results) {
  is_some <- vapply(results, inherits, TRUE, "psis_loo_ss")
  rows <- lapply(results[is_some], loo::obs_idx)
  same <- length(unique(rows)) < 2 && (all(is_some) || !any(is_some))
  if (!same) {
    abort_input(
      c(
        "Results must be of the same observations.",
        i = "{.code loo(fit, observations = first)}, {.arg first} an earlier
             result, has those of another fit."
      ),
      argument = "x"
    )
  }
  columns <- lapply(results, function(one) {
    name <- grep("^elpd_(loo|kfold|waic)$", colnames(one$pointwise))
    one$pointwise[, name[[1]]]
  })
  do.call(cbind, unname(columns))
}
