# tall_append() and tall_retract(): a fit of rows that grew, or of some that
# were deleted, from what the fit's passes found of the others.

#' Add rows to a fit, or take some away
#'
#' Tables grow: new rows arrive every day, others are deleted. `tall_append()`
#' makes the fit that a new one to all rows, old and new, would be, and reads
#' the new rows alone where it can. `tall_retract()` makes the fit without rows
#' that were deleted.
#'
#' @param fit (`tall_regression`) The fit, from [tall_glm()] or another front
#'   end of a formula.
#' @param rows (data frame or source) The new rows, or those that were deleted,
#'   with the columns that the fit was made of: whatever [as_source()] takes.
#' @param ... Arguments of the run that are to be others than the fit's: `iter`,
#'   `warmup`, `thin`, `chains`, `cores`, `seed`, `refresh`.
#' @param data (data frame or source) What opens all rows from now on: for
#'   `tall_append()` old and new ones, as of a table into which new rows were
#'   inserted; for `tall_retract()` those that stay. `NULL`: the fit's own
#'   source followed by `rows`; after `tall_retract()` the fit has none, unless
#'   `rows` are a batch that was appended.
#'
#' @details The log likelihood is a sum over rows, so that what passes found of
#' the earlier rows is added to what one finds of the new ones.
#'
#' * Of a Gaussian response these are sums of products (*sufficient
#'   statistics*), whatever came before: exact, and the earlier rows are not
#'   needed any more.
#' * Where alike rows count as one (see [tall_glm()]) so are the counts.
#' * Of other responses whose steps are exact from rows drawn ahead, the sums of
#'   log likelihood, gradient and Hessian at the point of expansion
#'   \eqn{\hat\theta}{theta-hat} are kept, and the rows that were drawn, each
#'   with its bound. Of the new rows the sums at that point are taken and rows
#'   are drawn at the same bounds; together they are what one pass over all rows
#'   would have found and drawn. Draws are exact. But they use rows again that
#'   the earlier fit used: given the data, draws of the two fits are not
#'   independent of each other, and those of the one do not tell the Monte Carlo
#'   error of the other. Where the mean of the posterior moves more than
#'   \eqn{\sqrt{d}}{sqrt(d)} posterior standard deviations away from
#'   \eqn{\hat\theta}{theta-hat}, or the drawn rows do not last for the run,
#'   all rows are passed over, and expanded where it is now. With batches from
#'   one population that takes a few passes each time the number of rows
#'   doubles.
#' * All other fits are made again by their call, of all rows, and a message
#'   says so.
#'
#' Priors with `autoscale = TRUE` and the centre of the covariates, to which the
#' prior of an intercept refers, are those of all rows, as in a new fit.
#' Constants of `poly()`, splines, `scale()` and other terms stay those of the
#' first fit: coefficients keep their meaning.
#'
#' The fit keeps drawn rows, or those that differ, up to 32 MB, if it was made
#' with `keep_data = TRUE`; beyond that, all rows are passed over. `fit$batches`
#' says what it holds: a data frame with a row for each batch, of `rows` and
#' `digest`, a fingerprint of their values (`NA` of the first rows where these
#' were in memory). A batch that it holds already is refused.
#'
#' `tall_retract()` subtracts sums and counts. Of rows that were drawn it takes
#' away batches that were appended, whole: give it the same rows. Rows that are
#' not among those of the fit are noticed where alike rows count as one, else
#' they are not: sums do not have them.
#'
#' A fit after `tall_append()` has the call of the first one. [stats::update()]
#' of it needs `data`.
#'
#' @return A fit of the class of `fit`.
#' @section Conditions: `tall_error_input` for a batch that the fit holds, for
#'   rows with levels that it does not know (a new coefficient needs a new fit),
#'   or columns of other types; `tall_error_stale` where all rows are needed and
#'   nothing opens them; `tall_error_unsupported` for fits of which rows cannot
#'   be taken away.
#' @references
#' Cornish, Vanetti, Bouchard-Côté, Deligiannidis & Doucet (2019). Scalable
#' Metropolis-Hastings for exact Bayesian inference with large datasets.
#' *Proceedings of the 36th International Conference on Machine Learning*.
#' @seealso [sg_resume()] for more draws of the same rows, [tall_glm()] for how
#'   rows are passed over.
#' @examples
#' days <- split(warpbreaks, rep(1:2, length.out = 54))
#' fit <- tall_glm(breaks ~ wool + tension, as_source(days[[1]]), seed = 1)
#' grown <- tall_append(fit, days[[2]])
#' grown$batches
#' tall_retract(grown, days[[1]], data = days[[2]])$batches
#' @export
tall_append <- function(fit, rows, ..., data = NULL) {
  began <- clock()
  check_growing(fit, "tall_append")
  run <- run_of_batch(fit, list(...), began)
  check_given(rows)
  batch <- read_batch(fit, rows, run$control)
  check_new_batch(fit, batch)
  source <- if (is.null(data)) {
    join_sources(fit$rows$source, batch$source)
  } else {
    data_source(data)
  }
  out <- from_known(append_known(fit, batch, source, run))
  if (is.null(out)) {
    whole <- source_of_all(fit, rows, data, source)
    out <- fit_again(fit, whole, list(...), run$control)
  }
  shards <- if (is.null(data) && !is.null(shards_of(fit))) {
    c(shards_of(fit), n_shards(batch$source))
  }
  end_batch(out, fit, rbind(batches_of(fit), batch$entry), shards)
}
