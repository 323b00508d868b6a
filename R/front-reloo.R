# Exact cross-validation of the observations that importance weights fail for.

#' Leave-one-out without importance weights, where these fail
#'
#' Fits again without each observation whose Pareto \eqn{k} is large, and puts
#' its exact expected log predictive density in the place of the approximation.
#'
#' @param x (`tall_regression`) The fit, which kept its data.
#' @param loo (`loo` or `NULL`) What [loo()][loo-tall_glm] made of it; `NULL`:
#'   it is made, of all observations.
#' @param k_threshold (number) Observations with a larger Pareto \eqn{k} are
#'   left out.
#' @param ndraws,cores,refresh As in [kfold()][kfold-tall_glm].
#' @param ... Unused: other arguments are refused.
#'
#' @details Each is another fit, as in [kfold()][kfold-tall_glm] with one
#' observation in the fold; where they are many, that is cheaper. `p_loo` of
#' these observations is what their log density under the fit to all of them
#' exceeds the exact one by. Their Pareto \eqn{k} are then 0.
#'
#' @return `loo` with these observations replaced, and its estimates anew.
#' @section Conditions: those of [kfold()][kfold-tall_glm], and
#'   `tall_error_unsupported` for a `loo` of a subsample: `loo(fit, observations
#'   = NULL)` is of all. `loo::loo_moment_match()` is refused with that class.
#' @seealso [kfold()][kfold-tall_glm]
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' cars <- rbind(mtcars, transform(mtcars[1, ], mpg = 60))
#' fit <- tall_glm(mpg ~ wt, data = cars, seed = 1)
#' approximate <- suppressWarnings(loo(fit))
#' reloo(fit, approximate, k_threshold = 0.5)
#' @export
reloo <- function(x, ...) {
  UseMethod("reloo")
}

#' @rdname reloo
#' @export
reloo.tall_fit <- function(
  x,
  loo = NULL,
  k_threshold = 0.7,
  ndraws = NULL,
  ...,
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  check_no_dots(...)
  rlang::check_installed("loo", "for the importance weights")
  k_threshold <- check_number(k_threshold)
  refresh <- check_number(refresh, min = 0)
  cores <- check_cores(cores)
  ndraws <- check_draws(x, NULL, ndraws)
  cross <- cross_fits(x, cores)
  if (is.null(loo)) {
    loo <- suppressWarnings(loo.tall_fit(x, observations = NULL))
  }
  check_reloo(x, loo)
  bad <- which(loo$diagnostics$pareto_k > k_threshold)
  bar <- progress_bar("Fits", length(bad), refresh > 0)
  if (length(bad) > 0) {
    of <- match(seq_len(x$n_data), bad, nomatch = 0L)
    names <- paste("observation", bad)
    ask <- new_crossing(of, names, ndraws, FALSE, FALSE, refresh)
    elpd <- cross(ask, bar)$elpd
    bar$done()
    for (i in bad) {
      loo <- with_exact(loo, i, elpd[[i]])
    }
    loo$estimates <-
      sums_of_pointwise(loo$pointwise[, rownames(loo$estimates), drop = FALSE])
  }
  loo
}

check_reloo <- function(fit, loo) {
  if (inherits(loo, "psis_loo_ss")) {
    abort_tall(
      "unsupported",
      c(
        "{.fn reloo} replaces observations one by one, and this {.arg loo} is of
         a subsample.",
        i = "{.code loo(fit, observations = NULL)} is of all; {.code kfold(fit)}
             needs no importance weights."
      ),
      argument = "loo"
    )
  }
  is_own <- inherits(loo, "psis_loo") && nrow(loo$pointwise) == fit$n_data
  if (!is_own) {
    abort_expected(loo, "what loo() returns for this fit")
  }
}

with_exact <- function(loo, i, elpd) {
  lpd <- sum(loo$pointwise[i, c("elpd_loo", "p_loo")])
  new <- c(elpd_loo = elpd, p_loo = lpd - elpd, looic = -2 * elpd)
  loo$pointwise[i, names(new)] <- new
  more <- intersect(
    c("mcse_elpd_loo", "influence_pareto_k"),
    colnames(loo$pointwise)
  )
  loo$pointwise[i, more] <- 0
  loo$diagnostics$pareto_k[[i]] <- 0
  loo
}

#' @exportS3Method loo::loo_moment_match
loo_moment_match.tall_fit <- function(x, ...) {
  abort_tall(
    "unsupported",
    c(
      "{.fn loo_moment_match} moves the draws of a fit for each observation.",
      i = "{.code reloo(fit)} fits again without those whose Pareto k is large,
           and {.code kfold(fit)} without folds of them."
    ),
    argument = "x"
  )
}
