# Pointwise log likelihoods, and what is made of them.

#' Pointwise log likelihood
#'
#' Method for the generic of \pkg{rstantools}: as a matrix, or as a function of
#' rows and draws, which is what tall data need.
#'
#' @inheritParams posterior-predict
#' @param pointwise (`TRUE` or `FALSE`) Return a function instead of a matrix?
#'
#' @details The constants of the densities are included, so that models can be
#' compared. Observation weights multiply the log likelihood; trials are trials.
#' In Gaussian models they divide the variance, as in [stats::glm()].
#'
#' For a fit of [sg_sample()] it is the model's own log likelihood, constants as
#' the model has them, and `newdata` is a model of the same parameters made from
#' other data. Models of functions in R are called once for each draw and block
#' of rows.
#'
#' The function form has the arguments `data_i`, a matrix of row numbers with
#' one column, and `draws`, and carries both in full as attributes `data` and
#' `draws`: `loo::loo_subsample(f, data = attr(f, "data"), draws = attr(f,
#' "draws"))`.
#'
#' @return A matrix with a row for each draw and a column for each observation;
#'   with `pointwise = TRUE` a function.
#' @section Conditions:
#' Those of [posterior_epred()][posterior-predict].
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' dim(rstantools::log_lik(fit))
#'
#' f <- rstantools::log_lik(fit, pointwise = TRUE)
#' dim(f(attr(f, "data")[1:2, , drop = FALSE], attr(f, "draws")))
#' @name log-lik
NULL

#' @rdname log-lik
#' @exportS3Method rstantools::log_lik
log_lik.tall_regression <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  pointwise = FALSE,
  ...,
  ndraws = NULL
) {
  check_flag(pointwise)
  check_no_dots(..., .ignore = no_groups)
  check_not_robust(object, "log_lik")
  n_draw <- check_draws(object, draws, ndraws)
  groups <- if (has_groups(object)) group_request(object)
  asked <- ask_rows(
    object,
    newdata,
    offset,
    groups = groups,
    needs = "responses"
  )
  chosen <- choose_draws(object, n_draw, resample = TRUE)
  if (pointwise && asked$is_own && asked$passes) {
    return(remote_log_lik(asked, chosen))
  }
  if (!pointwise) {
    size <- length(predicted_names(object, "response"))
    asked <- in_memory(asked, n_draw, max(1, size))
  }
  rows <- asked_rows(asked, chosen)
  if (pointwise) {
    light <- light_fit(object)
    f <- function(at, draws) log_density(light, some_rows(rows, at), draws)
    return(loo_function(light, nrow(rows$x), chosen, f))
  }
  out <- log_densities(object, rows, chosen)
  dimnames(out) <- draw_names(rows)
  out
}

# The likelihood of a group is that of its rows together: a row of the model.
#' @rdname log-lik
#' @exportS3Method rstantools::log_lik
log_lik.tall_glmer <- function(object, ...) {
  log_lik.tall_fit(object, ...)
}

# Draws x rows, block by block.
log_densities <- function(fit, rows, draws) {
  n <- nrow(rows$x)
  n_draw <- nrow(draws$theta)
  out <- matrix(0, n_draw, n)
  each_density(fit, rows, draws, function(at, value) out[, at] <<- value)
  out
}

# f(at, value) of the log densities of rows `at`, block by block.
each_density <- function(fit, rows, draws, f) {
  size <- max(1, length(predicted_names(fit, "response")))
  n_each <- nrow(draws$theta) * size
  each_block(nrow(rows$x), n_each, size = 2^20, function(at) {
    f(at, log_density(fit, some_rows(rows, at), draws))
  })
}

# As loo_function() where rows are passed over: those that are asked for are
# fetched, and kept until others are; `ahead` fetches rows that will be asked
# for, one after the other.
remote_log_lik <- function(asked, chosen) {
  fit <- asked$fit
  offset <- check_cut(asked$offset, fit$n_data, "offset")
  known <- NULL
  seen <- NULL
  ahead <- function(rows) {
    given <- if (length(offset) > 1) offset[rows] else offset
    some <- fit_of_rows(fit, rows)
    own <- ask_rows(
      some,
      NULL,
      given,
      groups = asked$groups,
      needs = "responses"
    )
    seen <<- asked_rows(own, chosen)
    known <<- rows
  }
  some <- function(rows, draws) {
    if (!all(rows %in% known)) {
      ahead(rows)
    }
    log_density(fit, some_rows(seen, match(rows, known)), draws)
  }
  every <- function(draws) {
    found <- over_rows(asked, chosen, pads = FALSE, f = function(rows) {
      out <- log_density(fit, rows, draws)
      at <- seq_len(nrow(out))
      stats::setNames(lapply(at, function(k) out[k, ]), at)
    })
    do.call(rbind, found)
  }
  f <- loo_function(fit, fit$n_data, chosen, some, every)
  structure(f, ahead = ahead)
}
