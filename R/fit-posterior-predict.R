# Draws of the linear predictor, the mean and the response: rstantools'
# generics, with a row for each draw and a column for each observation.

#' Posterior predictive draws
#'
#' Methods for the generics of \pkg{rstantools}, as rstanarm and brms have them:
#' draws of the linear predictor, of its inverse link, and of new responses.
#'
#' @param object (`tall_glm`) The fit, from [tall_glm()].
#' @param newdata (data frame, [source][tall_source] or `NULL`) Where to
#'   predict; `NULL`: the data of the fit, if it kept them. A matrix for a fit
#'   of [tall_glm.fit()].
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param offset (numeric vector or `NULL`) Offset of the new rows, when the
#'   fit's was given as an argument rather than in the formula.
#' @param transform (`TRUE` or `FALSE`) Apply the inverse link?
#' @param trials (numeric vector or `NULL`) Trials of the new rows in a binomial
#'   model; `NULL`: those of `cbind(successes, failures)` in `newdata`, or its
#'   `weights` where the response is a proportion, or 1.
#' @param weights (positive numeric vector or `NULL`) Weights of the new rows in
#'   a Gaussian or Student model: a value for each, or one for all. `NULL`:
#'   those of the fit's own rows; the fit's `weights`, evaluated in `newdata`;
#'   or 1 for a fit without weights.
#' @param seed (whole number or `NULL`) Seed of the responses. `NULL` goes on
#'   with R's generator; otherwise its state is what it was before.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param cores (whole number) Threads. The results do not depend on it.
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @details `posterior_epred()` gives probabilities in binomial models, as in
#' rstanarm, while `posterior_predict()` gives counts: 0 or 1 without trials.
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
#' memory.
#'
#' Draws of a run with decaying step sizes carry weights; here they are repeated
#' in proportion to them, so that all rows of a result count the same.
#'
#' @return `posterior_linpred()`, `posterior_epred()`, `posterior_predict()`,
#'   `predictive_error()`: a matrix with a row for each draw and a column for
#'   each observation. `predictive_interval()`: a matrix with a row for each
#'   observation and two columns.
#' @section Conditions: `tall_error_memory` if `newdata` is `NULL` or a source
#' and rows x draws exceeds 5e7 numbers: nothing of that size is made unasked.
#' `tall_error_input` if `newdata` or `draws` are not as described;
#' `tall_error_stale` if the fit did not keep its data.
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
posterior_linpred.tall_glm <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_flag(transform)
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  draws_by_rows(object, newdata, draws, offset, function(new, theta) {
    if (transform) {
      mean_draws(object, new, theta, cores)
    } else {
      linear_draws(new, theta, cores)
    }
  })
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_glm <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  draws_by_rows(object, newdata, draws, offset, function(new, theta) {
    mean_draws(object, new, theta, cores)
  })
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_glm <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  check_own_size(object, newdata, draws)
  newdata <- frame_newdata(object, newdata, draws)
  new <- sized_rows(object, newdata, offset, trials, weights)
  chosen <- choose_draws(object, draws, resample = TRUE)
  out <- with_seed(seed, response_draws(object, new, chosen, cores))
  dimnames(out) <- draw_names(new)
  out
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::predictive_error
predictive_error.tall_glm <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  check_own_size(object, newdata, draws)
  newdata <- frame_newdata(object, newdata, draws)
  seen <- observed_rows(object, newdata, offset)
  chosen <- choose_draws(object, draws, resample = TRUE)
  yrep <- with_seed(seed, response_draws(object, seen, chosen, cores))
  out <- rep(seen$count, each = nrow(yrep)) - yrep
  dimnames(out) <- draw_names(seen)
  out
}

#' @rdname posterior-predict
#' @exportS3Method rstantools::predictive_interval
predictive_interval.tall_glm <- function(
  object,
  prob = 0.9,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  prob <- check_prob(prob)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  probs <- interval_probs(prob)
  passes <- is_passed_over(object, newdata)
  new <- if (!passes) {
    sized_rows(object, newdata, offset, trials, weights)
  }
  if (is.null(draws)) {
    n <- if (passes) n_passed_over(object, newdata) else nrow(new$x)
    draws <- affordable_draws(object, n, most = 1e7)
  }
  chosen <- choose_draws(object, draws, resample = TRUE)
  intervals <- function(new) {
    n <- nrow(new$x)
    out <- matrix(0, n, 2)
    each_block(n, nrow(chosen$theta), function(rows) {
      block <- rows_of(new, rows)
      block$trials <- new$trials[rows]
      block$weight <- new$weight[rows]
      yrep <- response_draws(object, block, chosen, cores)
      out[rows, ] <<- column_quantiles(yrep, probs)
    })
    list(lower = out[, 1], upper = out[, 2])
  }
  out <- with_seed(seed, if (passes) {
    gather_predictions(
      object,
      newdata,
      intervals,
      offset,
      trials,
      weights,
      has_sizes = TRUE,
      pads = FALSE
    )
  } else {
    intervals(new)
  })
  out <- cbind(out$lower, out$upper)
  dimnames(out) <- list(rownames(new$x), percent(probs, ""))
  out
}

#' Bayesian R-squared
#'
#' The share of variance that the model explains, for each posterior draw: the
#' variance of the expected responses over that plus the residual variance
#' (Gelman, Goodrich, Gabry & Vehtari, 2019).
#'
#' @inheritParams posterior-predict
#'
#' @details The residual variance is \eqn{\sigma^2} in Gaussian models, with
#' weights the mean of \eqn{\sigma^2 / w_i}, the mean of \eqn{\mu_i} in Poisson
#' ones, that of the variance of the response in others ([response-families]).
#' Binomial responses are counts of successes here, as in rstanarm: of
#' \eqn{n_i} trials (1 without) and probability \eqn{\mu_i} the expected
#' response is \eqn{n_i \mu_i} and the residual variance the mean of \eqn{n_i
#' \mu_i (1 - \mu_i)}, so that a difference in trials is variance explained.
#' Works through blocks of rows; without `draws` it thins as
#' [predict()][predict.tall_glm()] does.
#'
#' @return A numeric vector with a value for each draw.
#' @section Conditions:
#' Those of [posterior_epred()][posterior-predict].
#' @references
#' Gelman, Goodrich, Gabry & Vehtari (2019). R-squared for Bayesian regression
#' models. *The American Statistician* 73.
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' summary(rstantools::bayes_R2(fit))
#' @exportS3Method rstantools::bayes_R2
bayes_R2.tall_glm <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  weights = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  passes <- is_passed_over(object, newdata)
  new <- if (!passes) sized_rows(object, newdata, offset, NULL, weights)
  if (is.null(draws)) {
    n <- if (passes) n_passed_over(object, newdata) else nrow(new$x)
    draws <- affordable_draws(object, n)
  }
  chosen <- choose_draws(object, draws, resample = TRUE)
  n_draw <- nrow(chosen$theta)
  residual <- numeric(n_draw)
  spread <- no_spread(n_draw)
  add <- function(new) {
    look <- function(rows) {
      mu <- mean_draws(object, rows_of(new, rows), chosen$theta, cores)
      found <- r2_moments(
        object$family,
        mu,
        new$trials[rows],
        new$weight[rows],
        chosen$aux
      )
      residual <<- residual + rowSums(found$variance)
      found$mean
    }
    spread <<- mean_spread(nrow(new$x), n_draw, look, spread)
    NULL
  }
  if (passes) {
    gather_predictions(
      object,
      newdata,
      add,
      offset,
      weights = weights,
      has_sizes = TRUE,
      pads = FALSE
    )
  } else {
    add(new)
  }
  explained <- spread$square / (spread$n - 1)
  explained / (explained + residual / spread$n)
}

# list(mean, variance) of responses, draws x rows, whose mean is mu, or, where
# there are trials, whose probability it is: those are counts. Precisions are
# `weight`.
r2_moments <- function(family, mu, trials, weight, aux) {
  if (!has_trials(family)) {
    variance <- response_variance(family, mu, weight, aux)
    check_finite_variance(variance)
    return(list(mean = mu, variance = variance))
  }
  each <- rep(trials, each = nrow(mu))
  variance <- response_variance(family, mu, trials, aux) * each^2
  check_finite_variance(variance)
  list(mean = mu * each, variance = variance)
}

# Rows with missing values have none.
check_finite_variance <- function(variance) {
  if (!any(variance == Inf, na.rm = TRUE)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "There is no R-squared of these responses: their variance is not finite.",
      i = "{.code predictive_interval(fit)} says how far they are from their
           means."
    )
  )
}

no_spread <- function(n_draw) {
  list(n = 0, mean = numeric(n_draw), square = numeric(n_draw))
}

# Mean of f(rows) over n rows more than those of `sums`, and the sum of squares
# about it, for each draw: block by block about the block's mean, without
# cancellation.
mean_spread <- function(n, n_draw, f, sums = no_spread(n_draw)) {
  each_block(n, n_draw, size = 2^20, function(rows) {
    mu <- f(rows)
    centre <- rowMeans(mu)
    block <- list(
      n = length(rows),
      mean = centre,
      square = rowSums((mu - centre)^2)
    )
    sums <<- if (sums$n == 0) block else merge_moments(sums, block)
  })
  sums
}

# ---- parts -------------------------------------------------------------------

# Refuse before anything of the size of the data is made.
check_own_size <- function(fit, newdata, draws) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    check_matrix_size(fit, fit$n_data, draws, newdata)
  }
}

# Rows with the trials and weights that predictions are for.
sized_rows <- function(fit, newdata, offset, trials, weights) {
  fit <- own_fit(fit, newdata)
  new <- prediction_rows(fit, newdata, offset)
  n <- nrow(new$x)
  new$trials <- prediction_trials(fit, newdata, trials, n)
  new$weight <- prediction_weights(fit, newdata, weights, n)
  new
}

# The fit whose own rows are asked for, with these in memory.
own_fit <- function(fit, newdata) {
  if (is.null(newdata)) fit_of_rows(fit) else fit
}

# The matrix of draws x rows that f makes of rows and draws.
draws_by_rows <- function(fit, newdata, draws, offset, f) {
  check_own_size(fit, newdata, draws)
  newdata <- frame_newdata(fit, newdata, draws)
  new <- prediction_rows(fit, newdata, offset)
  out <- f(new, choose_draws(fit, draws, resample = TRUE)$theta)
  dimnames(out) <- draw_names(new)
  out
}

# Dimnames of a matrix of draws x rows. They are assigned where the matrix was
# made: as an argument it would be copied.
draw_names <- function(new) {
  list(NULL, rownames(new$x) %||% as.character(seq_len(nrow(new$x))))
}

# Responses, draws x rows, column by column.
response_draws <- function(fit, new, chosen, cores) {
  mu <- mean_draws(fit, new, chosen$theta, cores)
  shape <- dim(mu)
  draw <- function() {
    find_response(fit$family)$draw(mu, chosen$aux, new)
  }
  # a missing covariate has been let through: its predictions are missing
  out <- if (anyNA(mu)) suppressWarnings(draw()) else draw()
  dim(out) <- shape
  out
}
