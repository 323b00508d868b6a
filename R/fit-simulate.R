# simulate(): responses of the posterior predictive distribution, as a data
# frame.

#' Simulated responses
#'
#' New responses of the rows of the fit, each column from another draw of the
#' posterior: what [posterior_predict()][posterior-predict] returns, in the
#' shape that [stats::simulate()] has.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit, made from a formula, which
#'   kept its data.
#' @param nsim (whole number) How many, at most the number of draws.
#' @param seed (whole number or `NULL`) As in
#'   [posterior_predict()][posterior-predict].
#' @param ... Handed on to `posterior_predict()`, such as `newdata`.
#'
#' @return A data frame with a row for each row that the fit used and `nsim`
#'   columns `sim_1`, `sim_2`, ...: numbers, counts of successes where there are
#'   trials, or classes.
#' @section Conditions: those of [posterior_predict()][posterior-predict].
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' head(simulate(fit, 3, seed = 1))
#' @importFrom stats simulate
#' @export
simulate.tall_fit <- function(object, nsim = 1, seed = NULL, ...) {
  rlang::check_installed("rstantools", "for `simulate()`.")
  check_has_draws(object)
  nsim <- check_count(nsim, max = posterior::ndraws(object$draws))
  drawn <- rstantools::posterior_predict(
    object,
    ndraws = nsim,
    seed = seed,
    ...
  )
  levels <- attr(drawn, "levels")
  out <- lapply(seq_len(nrow(drawn)), function(k) {
    own <- unname(drawn[k, ])
    if (is.null(levels)) {
      own
    } else {
      factor(levels[own], levels, ordered = inherits(object, "tall_polr"))
    }
  })
  names(out) <- paste0("sim_", seq_along(out))
  rows <- colnames(drawn)
  data.frame(out, row.names = if (!anyDuplicated(rows)) rows)
}
