# Draws of the linear predictor, the mean and the response: rstantools'
# generics, with a row for each draw and a column for each observation.

#' Posterior predictive draws
#'
#' Methods for the generics of \pkg{rstantools}, as rstanarm and brms have them:
#' draws of the linear predictor, of its inverse link, and of new responses.
#'
#' @param object (`tall_glm`) The fit, from [tall_glm()].
#' @param newdata (data frame or `NULL`) Where to predict; `NULL`: the data of
#'   the fit, if it kept them. A matrix for a fit of [tall_glm.fit()].
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param offset (numeric vector or `NULL`) Offset of the new rows, when the
#'   fit's was given as an argument rather than in the formula.
#' @param transform (`TRUE` or `FALSE`) Apply the inverse link?
#' @param trials (numeric vector or `NULL`) Trials of the new rows in a binomial
#'   model; `NULL`: those of `cbind(successes, failures)` in `newdata`, or its
#'   `weights` where the response is a proportion, or 1.
#' @param weights (positive numeric vector or `NULL`) Weights of the new rows in
#'   a Gaussian model: a value for each, or one for all. `NULL`: those of the
#'   fit's own rows; the fit's `weights`, evaluated in `newdata`; or 1 for a fit
#'   without weights.
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
#' matrix; without `draws` it thins as [predict()][predict.tall_glm()] does.
#'
#' Draws of a run with decaying step sizes carry weights; here they are repeated
#' in proportion to them, so that all rows of a result count the same.
#'
#' @return `posterior_linpred()`, `posterior_epred()`, `posterior_predict()`,
#'   `predictive_error()`: a matrix with a row for each draw and a column for
#'   each observation. `predictive_interval()`: a matrix with a row for each
#'   observation and two columns.
#' @section Conditions: `tall_error_memory` if `newdata` is `NULL` and rows x
#' draws exceeds 5e7 numbers: nothing of that size is made unasked.
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
  new <- rows_for_matrix(object, newdata, draws, offset)
  new$trials <- prediction_trials(object, newdata, trials, nrow(new$x))
  new$weight <- prediction_weights(object, newdata, weights, nrow(new$x))
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
  new <- prediction_rows(object, newdata, offset)
  n <- nrow(new$x)
  trials <- prediction_trials(object, newdata, trials, n)
  weights <- prediction_weights(object, newdata, weights, n)
  if (is.null(draws)) {
    draws <- affordable_draws(object, n, most = 1e7)
  }
  chosen <- choose_draws(object, draws, resample = TRUE)
  probs <- interval_probs(prob)
  out <- matrix(0, n, 2)
  with_seed(seed, {
    each_block(n, nrow(chosen$theta), function(rows) {
      block <- rows_of(new, rows)
      block$trials <- trials[rows]
      block$weight <- weights[rows]
      yrep <- response_draws(object, block, chosen, cores)
      out[rows, ] <<- column_quantiles(yrep, probs)
    })
  })
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
#' weights the mean of \eqn{\sigma^2 / w_i}, the mean of \eqn{\mu_i (1 - \mu_i)
#' / n_i} in binomial ones (\eqn{n_i} trials, 1 without), the mean of
#' \eqn{\mu_i} in Poisson ones. Works through blocks of
#' rows; without `draws` it thins as [predict()][predict.tall_glm()] does.
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
  new <- prediction_rows(object, newdata, offset)
  n <- nrow(new$x)
  weights <- prediction_weights(object, newdata, weights, n)
  if (is.null(draws)) {
    draws <- affordable_draws(object, n)
  }
  chosen <- choose_draws(object, draws, resample = TRUE)
  # of precisions, or of trials
  sizes <- if (has_trials(object$family)) {
    prediction_trials(object, newdata, NULL, n)
  } else {
    weights
  }
  n_draw <- nrow(chosen$theta)
  residual <- numeric(n_draw)
  spread <- mean_spread(n, n_draw, function(rows) {
    mu <- mean_draws(object, rows_of(new, rows), chosen$theta, cores)
    variance <- response_variance(
      object$family,
      mu,
      sizes[rows],
      chosen$sigma
    )
    residual <<- residual + rowSums(variance)
    mu
  })
  explained <- spread$square / (n - 1)
  explained / (explained + residual / n)
}

# Mean of f(rows) over n rows, and the sum of squares about it, for each draw:
# block by block about the block's mean, without cancellation.
mean_spread <- function(n, n_draw, f) {
  sums <- list(n = 0, mean = numeric(n_draw), square = numeric(n_draw))
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
check_own_size <- function(fit, newdata, draws, call = caller_env()) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata", call)
    check_matrix_size(fit, fit$n_data, draws, newdata, call)
  }
}

rows_for_matrix <- function(
  fit,
  newdata,
  draws,
  offset,
  call = caller_env()
) {
  check_own_size(fit, newdata, draws, call)
  prediction_rows(fit, newdata, offset, call)
}

# The matrix of draws x rows that f makes of rows and draws.
draws_by_rows <- function(
  fit,
  newdata,
  draws,
  offset,
  f,
  call = caller_env()
) {
  new <- rows_for_matrix(fit, newdata, draws, offset, call)
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
    find_response(fit$family)$draw(mu, chosen$sigma, new)
  }
  # a missing covariate has been let through: its predictions are missing
  out <- if (anyNA(mu)) suppressWarnings(draw()) else draw()
  dim(out) <- shape
  out
}

# Weights of new rows of a Gaussian model: given, of the fit's own data, or from
# newdata. NULL: 1 for each, or no such model.
prediction_weights <- function(
  fit,
  newdata,
  weights,
  n,
  call = caller_env()
) {
  if (!has_precisions(fit$family)) {
    if (!is.null(weights)) {
      abort_input(
        c(
          "{.arg weights} is for Gaussian models, not for
           {.val {fit$family$name}}.",
          i = if (has_trials(fit$family)) "Trials are {.arg trials}."
        ),
        argument = "weights",
        value = weights,
        call = call
      )
    }
    return(NULL)
  }
  if (is.null(weights)) {
    weights <- if (is.null(newdata)) {
      own_response(fit, call)$weight
    } else {
      found <- eval_source(fit, fit$weight_source, newdata)
      check_source(
        found,
        fit$weight_source,
        newdata,
        "weights",
        call,
        hint = "Give {.code weights = 1} for responses with standard deviation
                {.field sigma}."
      )
    }
  }
  weights <- check_numeric_vector(
    weights,
    size = c(1, n),
    positive = TRUE,
    allow_null = TRUE,
    arg = "weights",
    call = call
  )
  if (is.null(weights)) NULL else rep_len(unname(weights), n)
}

# Trials of new rows: given, of the fit's own data, or from newdata.
prediction_trials <- function(
  fit,
  newdata,
  trials,
  n,
  call = caller_env()
) {
  if (!has_trials(fit$family)) {
    if (!is.null(trials)) {
      abort_input(
        "{.arg trials} is for binomial models, not for
         {.val {fit$family$name}}.",
        argument = "trials",
        value = trials,
        call = call
      )
    }
    return(NULL)
  }
  if (!is.null(trials)) {
    trials <- check_numeric_vector(
      trials,
      size = c(1, n),
      positive = TRUE,
      arg = "trials",
      call = call
    )
  } else if (is.null(newdata)) {
    trials <- own_response(fit, call)$trials
  } else {
    trials <- new_trials(fit, newdata, call)
  }
  if (is.null(trials)) {
    trials <- 1
  }
  bad <- which(trials != round(trials))
  if (length(bad) > 0) {
    abort_value(trials, bad[[1]], "be whole", arg = "trials", call = call)
  }
  rep_len(unname(trials), n)
}

# NULL: one each.
new_trials <- function(fit, newdata, call) {
  found <- eval_source(fit, fit$trial_source, newdata)
  if (is.matrix(found) && ncol(found) == 2) {
    found <- rowSums(found)
  }
  check_source(found, fit$trial_source, newdata, "trials", call)
}

# NULL: none, or in the formula.
new_offset <- function(fit, newdata, call) {
  found <- eval_source(fit, fit$offset_source, newdata)
  found <- check_source(found, fit$offset_source, newdata, "offset", call)
  if (is.null(found)) NULL else rep_len(as.double(found), nrow(newdata))
}

# An argument of the fit in new data; NULL where it cannot be had.
eval_source <- function(fit, source, newdata) {
  missing <- setdiff(intersect(all.vars(source), fit$columns), names(newdata))
  if (is.null(source) || length(missing) > 0 || !is.data.frame(newdata)) {
    return(NULL)
  }
  tryCatch(
    eval(source, newdata, environment(fit$formula)),
    error = function(e) NULL
  )
}

check_source <- function(found, source, newdata, arg, call, hint = NULL) {
  is_right <- is.numeric(found) && length(found) %in% c(1, nrow(newdata))
  if (is.null(source) || is_right) {
    return(found)
  }
  abort_input(
    c(
      "{.arg {arg}} must be given for {.arg newdata}: it does not have
       {.code {deparse1(source)}}.",
      i = hint
    ),
    argument = arg,
    call = call
  )
}

# Run `code` with the generator seeded, and put back as it was after; NULL: with
# the generator as it is. The kinds are R's defaults, whatever the user's are:
# the same seed, the same numbers.
with_seed <- function(seed, code) {
  if (!is.null(seed)) {
    before <- globalenv()$.Random.seed
    on.exit({
      if (is.null(before)) {
        rm(".Random.seed", envir = globalenv())
      } else {
        assign(".Random.seed", before, globalenv())
      }
    })
    set.seed(
      seed,
      kind = "Mersenne-Twister",
      normal.kind = "Inversion",
      sample.kind = "Rejection"
    )
  }
  force(code)
}

check_prob <- function(prob, arg = caller_arg(prob), call = caller_env()) {
  ok <- is_number(prob) && is.finite(prob) && prob > 0 && prob < 1
  if (!ok) {
    expected <- "a number between 0 and 1, both excluded"
    abort_expected(prob, expected, arg = arg, call = call)
  }
  as.double(prob)
}

interval_probs <- function(prob) {
  (1 + c(-1, 1) * prob) / 2
}

# "5%"
percent <- function(probs, space = " ") {
  paste0(
    format(100 * probs, trim = TRUE, digits = 3, drop0trailing = TRUE),
    space,
    "%"
  )
}

# Columns x two probs, missing where a column is: quantile() without its sort
# of all and its price for each call.
column_quantiles <- function(x, probs) {
  at <- 1 + probs * (nrow(x) - 1)
  low <- floor(at)
  high <- ceiling(at)
  share <- at - low
  wanted <- unique(c(low, high))
  out <- matrix(NA_real_, ncol(x), length(probs))
  for (j in seq_len(ncol(x))) {
    column <- x[, j]
    if (!anyNA(column)) {
      sorted <- sort.int(column, partial = wanted)
      out[j, ] <- (1 - share) * sorted[low] + share * sorted[high]
    }
  }
  out
}
