# marginaleffects: predictions, comparisons and slopes, as draws.

#' Predictions, comparisons and slopes
#'
#' Methods for the generics of \pkg{marginaleffects}, which its users do not
#' call: `predictions()`, `comparisons()`, `slopes()` and the averages
#' (`avg_slopes()`, ...) take fits of [tall_glm()] and [tall_glmer()], and
#' `get_draws()` has what is behind them.
#'
#' @param model (`tall_glm` or `tall_glmer`) The fit.
#' @param newdata (data frame) As \pkg{marginaleffects} hands it on.
#' @param type (string) `"response"`, `"link"`, or `"prediction"`: draws of
#'   responses.
#' @param ndraws (whole number or `NULL`) Use that many draws, evenly spaced;
#'   `NULL`: all, or as many as rows times draws up to 20 million allow.
#' @param re_formula (`NULL` or `NA`) As in
#'   [posterior_epred()][posterior-predict].
#' @param ... Unused.
#'
#' @details Estimates are posterior medians, intervals those of the draws.
#' Without `newdata`, averages are over the data of the fit, which it does not
#' carry: as in [emmeans()][emmeans-tall_glm]. \pkg{marginaleffects} holds a
#' number for each row and draw, several times. Of many rows it is given fewer
#' draws, but 100 at least, and a message says so; [average_slopes()] and its
#' kin have averages over any number of rows from all draws.
#'
#' The package tells \pkg{marginaleffects} of its classes when that is loaded,
#' by the option `marginaleffects_model_classes`.
#'
#' @return What \pkg{marginaleffects} expects.
#' @examplesIf requireNamespace("marginaleffects", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' marginaleffects::avg_slopes(fit)
#' @name marginaleffects-tall_fit
NULL

#' @rdname marginaleffects-tall_fit
#' @exportS3Method marginaleffects::get_predict
get_predict.tall_fit <- function(
  model,
  newdata = insight::get_data(model),
  type = "response",
  ...,
  ndraws = NULL,
  re_formula = NULL
) {
  type <- type %||% "response"
  verbs <- list(
    link = rstantools::posterior_linpred,
    response = rstantools::posterior_epred,
    prediction = rstantools::posterior_predict
  )
  check_choice(type, names(verbs))
  ndraws <- ndraws %||% marginal_draws(model, nrow(newdata))
  draws <- verbs[[type]](
    model,
    newdata = newdata,
    ndraws = ndraws,
    re_formula = re_formula
  )
  out <- data.frame(
    rowid = newdata[["rowid"]] %||% seq_len(nrow(newdata)),
    estimate = apply(draws, 2, stats::median)
  )
  attr(out, "posterior_draws") <- unname(t(draws))
  out
}

# How many draws of that many rows; NULL: all. A message, once in a while, of
# fewer.
marginal_draws <- function(fit, n_row) {
  n_draw <- affordable_draws(fit, n_row, setting("average_exact"), 100)
  if (!is.null(n_draw)) {
    cli::cli_inform(
      c(
        "{.pkg marginaleffects} holds rows times draws: it is given
         {format_count(n_draw)} of {format_count(posterior::ndraws(fit$draws))}
         draws of {count_noun(n_row, 'row')}.",
        i = "{.fn average_comparisons} and {.fn average_slopes} take all;
             {.arg ndraws} sets their number."
      ),
      .frequency = "regularly",
      .frequency_id = "tallbayes_marginal_draws"
    )
  }
  n_draw
}

#' @rdname marginaleffects-tall_fit
#' @exportS3Method marginaleffects::get_coef
get_coef.tall_fit <- function(model, ...) {
  stats::setNames(
    coef.tall_fit(model)[coefficient_variables(model)],
    coefficient_variables(model)
  )
}

#' @rdname marginaleffects-tall_fit
#' @exportS3Method marginaleffects::get_vcov
get_vcov.tall_fit <- function(model, ...) {
  # intervals are those of draws
  NULL
}

# Classes that a user's option adds to the ones that are known there.
tell_marginaleffects <- function(...) {
  known <- getOption("marginaleffects_model_classes")
  own <- c("tall_glm", "tall_glmer", "tall_crossed")
  options(marginaleffects_model_classes = union(known, own))
}
