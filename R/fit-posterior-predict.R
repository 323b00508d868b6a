# Draws of the linear predictor, the mean and the response: rstantools'
# generics, with a row for each draw and a column for each observation.

#' Posterior predictive draws
#'
#' Methods for the generics of \pkg{rstantools}, as rstanarm and brms have them:
#' draws of the linear predictor, of its inverse link, and of new responses, for
#' fits of [tall_glm()], [tall_glmer()], [tall_polr()], [tall_multinom()] and
#' [tall_nn()] alike.
#'
#' @inheritParams predict.tall_regression
#' @param newdata (data frame, [source][tall_source] or `NULL`) Where to
#'   predict; `NULL`: the data of the fit, if it kept them. A matrix for a fit
#'   of [tall_glm.fit()].
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param transform (`TRUE` or `FALSE`) Apply the inverse link?
#' @param trials (numeric vector or `NULL`) Trials of the new rows in a binomial
#'   model; `NULL`: those of `cbind(successes, failures)` in `newdata`, or its
#'   `weights` where the response is a proportion, or 1.
#' @param weights (positive numeric vector or `NULL`) Weights of the new rows in
#'   a Gaussian or Student model: a value for each, or one for all. `NULL`:
#'   those of the fit's own rows; the fit's `weights`, evaluated in `newdata`;
#'   or 1 for a fit without weights.
#' @param seed (whole number or `NULL`) Seed of the responses and of effects of
#'   groups. `NULL`: responses go on with R's generator, effects have the fit's
#'   seed; otherwise the generator's state is what it was before.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param to,overwrite (string or list, `TRUE` or `FALSE`) Write the draws to a
#'   file or a table, block by block, and return what was written where: see
#'   [predictions-to].
#'
#' @details `posterior_epred()` gives probabilities in binomial models, as in
#' rstanarm, while `posterior_predict()` gives counts: 0 or 1 without trials.
#' Classes are counted from 1, in the order of the attribute `levels`.
#'
#' Weights of a Gaussian model are precisions: a response of weight \eqn{w} has
#' standard deviation \eqn{\sigma / \sqrt w}{sigma / sqrt(w)}, here as in the
#' fit and in [log_lik()][log-lik]. Where the fit had weights, new rows need
#' theirs; `weights = 1` gives responses of standard deviation
#' \eqn{\sigma}{sigma}. In other models weights that are not trials do not enter
#' predictions.
#'
#' `predictive_interval()` works through blocks of rows and needs no large
#' matrix; without `draws` it thins as [predict()][predict.tall_glm()] does. It
#' and `bayes_R2()` read sources block by block; the matrices bring them to
#' memory. Of a network with a numeric response the intervals are exact, of the
#' mixture of the draws' normal distributions.
#'
#' Draws of a run with decaying step sizes carry weights; here they are repeated
#' in proportion to them, so that all rows of a result count the same.
#'
#' @return `posterior_linpred()`, `posterior_epred()`, `posterior_predict()`,
#'   `predictive_error()`: a matrix with a row for each draw and a column for
#'   each observation; of several classes the first two are arrays of draws x
#'   observations x classes, the predictors of [tall_multinom()] without the
#'   first. `predictive_interval()`: a matrix with a row for each observation
#'   and two columns.
#' @section Conditions: `tall_error_memory` if `newdata` is `NULL` or a source
#' and rows x draws exceeds 5e7 numbers: nothing of that size is made unasked,
#' and `to` writes it. `tall_error_input` if `newdata` or `draws` are not as
#' described; `tall_error_stale` if the fit did not keep its data;
#' `tall_error_unsupported` for errors and intervals of classes.
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' new <- data.frame(wt = c(2, 3, 4))
#' dim(rstantools::posterior_epred(fit, newdata = new))
#' rstantools::posterior_predict(fit, newdata = new, draws = 5, seed = 1)
#' rstantools::predictive_interval(fit, newdata = new, seed = 1)
#' @name posterior-predict
NULL

#' @rdname posterior-predict
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_regression <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  check_flag(transform)
  check_no_dots(..., .ignore = no_dpar)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(object, newdata, offset, groups = groups)
  n_draw <- check_draws(object, draws, ndraws)
  scale <- if (transform) "response" else "link"
  predictor_draws(asked, n_draw, scale, check_cores(cores), to)
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_regression <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  check_no_dots(..., .ignore = no_dpar)
  check_has_means(object, "posterior_epred()")
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(object, newdata, offset, groups = groups)
  n_draw <- check_draws(object, draws, ndraws)
  predictor_draws(asked, n_draw, "response", check_cores(cores), to)
}

# Of all rows at once, or written block by block.
predictor_draws <- function(asked, n_draw, scale, cores, to = NULL) {
  names <- predicted_names(asked$fit, scale)
  if (!is.null(to)) {
    value <- function(fit, rows, draws) {
      out <- predictor(fit, rows, draws, scale)
      if (!is.null(names)) dimnames(out) <- list(NULL, NULL, names)
      out
    }
    size <- max(1, length(names))
    return(write_draws(asked, n_draw, cores, to, value, size))
  }
  all <- rows_and_draws(asked, n_draw, cores, max(1, length(names)))
  out <- predictor(all$fit, all$rows, all$draws, scale)
  dimnames(out) <- draw_names(all$rows, names)
  out
}

# All rows in memory, and draws that count the same: list(fit, rows, draws).
# size: numbers for each row and draw.
rows_and_draws <- function(asked, n_draw, cores, size = 1) {
  asked <- in_memory(asked, n_draw, size)
  fit <- asked$fit
  draws <- choose_draws(fit, n_draw, resample = TRUE, cores = cores)
  list(fit = fit, rows = asked_rows(asked, draws), draws = draws)
}

# Responses of these rows, draws x rows.
drawn_responses <- function(all, seed) {
  out <- with_seed(seed, response_draws(all$fit, all$rows, all$draws))
  dimnames(out) <- draw_names(all$rows)
  out
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_regression <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  check_no_dots(..., .ignore = no_dpar)
  seed <- check_seed(seed)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(object, newdata, offset, trials, weights, groups, "sizes")
  n_draw <- check_draws(object, draws, ndraws)
  cores <- check_cores(cores)
  levels <- if (has_class_response(object)) object$response_levels
  if (!is.null(to)) {
    out <- with_seed(
      seed,
      write_draws(asked, n_draw, cores, to, response_draws)
    )
    out$levels <- levels
    return(invisible(out))
  }
  out <- drawn_responses(rows_and_draws(asked, n_draw, cores), seed)
  attr(out, "levels") <- levels
  out
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::predictive_error
predictive_error.tall_regression <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_dpar)
  check_is_number(object, "predictive_error")
  warn_of_limits(object, "predictive_error()")
  seed <- check_seed(seed)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(
    object,
    newdata,
    offset,
    groups = groups,
    needs = "responses"
  )
  n_draw <- check_draws(object, draws, ndraws)
  all <- rows_and_draws(asked, n_draw, check_cores(cores))
  yrep <- drawn_responses(all, seed)
  rep(all$rows$count, each = nrow(yrep)) - yrep
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::predictive_interval
predictive_interval.tall_regression <- function(
  object,
  prob = 0.9,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_dpar)
  check_is_number(object, "predictive_interval", is_drawn = TRUE)
  prob <- check_prob(prob)
  seed <- check_seed(seed)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(object, newdata, offset, trials, weights, groups, "sizes")
  n_draw <- check_draws(object, draws, ndraws)
  n_draw <- n_draw %||% affordable_draws(object, asked$n, most = 1e7)
  cores <- check_cores(cores)
  found <- if (is.null(exact_quantiles(object))) {
    chosen <- choose_draws(object, n_draw, resample = TRUE, cores = cores)
    with_seed(
      seed,
      row_quantiles(asked, chosen, prob, response_draws, pads = FALSE)
    )
  } else {
    exact_intervals(asked, choose_draws(object, n_draw), prob)
  }
  out <- cbind(found$lower, found$upper)
  dimnames(out) <- list(names(found$lower), percent(interval_probs(prob), ""))
  out
}

# Quantiles of the mixture of the draws' distributions; NULL: responses are
# drawn.
exact_quantiles <- function(fit) {
  if (inherits(fit, "tall_nn")) find_response(fit$family)$network$quantiles
}

exact_intervals <- function(asked, draws, prob) {
  fit <- asked$fit
  probs <- interval_probs(prob)
  over_rows(asked, draws, pads = FALSE, f = function(rows) {
    n <- nrow(rows$x)
    out <- matrix(0, n, 2)
    each_block(n, nrow(draws$theta), size = 2^20, function(at) {
      mu <- predictor(fit, some_rows(rows, at), draws, "response")
      for (k in 1:2) {
        out[at, k] <<-
          exact_quantiles(fit)(mu, draws$aux, draws$weights, probs[[k]])
      }
    })
    list(lower = out[, 1], upper = out[, 2])
  })
}
