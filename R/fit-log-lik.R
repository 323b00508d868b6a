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
log_lik.tall_glm <- function(
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
  draws <- check_draws(object, draws, ndraws)
  if (pointwise && is.null(newdata) && has_source(object)) {
    chosen <- choose_draws(object, draws, resample = TRUE)
    return(remote_log_lik(object, chosen, offset))
  }
  if (!pointwise) {
    check_own_size(object, newdata, draws)
    newdata <- frame_newdata(object, newdata, draws)
  }
  seen <- observed_rows(object, newdata, offset)
  chosen <- choose_draws(object, draws, resample = TRUE)
  if (pointwise) {
    return(log_lik_function(object, seen, chosen))
  }
  n <- nrow(seen$x)
  out <- matrix(0, nrow(chosen$theta), n)
  each_block(n, nrow(out), size = 2^20, function(rows) {
    out[, rows] <<- log_lik_block(
      object,
      observations_of(seen, rows),
      chosen$theta,
      chosen$aux
    )
  })
  dimnames(out) <- draw_names(seen)
  out
}

log_lik_function <- function(fit, seen, chosen) {
  light <- fit[c("family", "n_coef")]
  loo_function(
    fit,
    nrow(seen$x),
    chosen,
    function(rows, theta, aux) {
      log_lik_block(light, observations_of(seen, rows), theta, aux)
    }
  )
}

# The same where rows are passed over: those that are asked for are fetched, and
# kept until others are; `ahead` fetches rows that will be asked for, one after
# the other.
remote_log_lik <- function(fit, chosen, offset = NULL) {
  offset <- check_cut(offset, fit$n_data, "offset")
  known <- NULL
  seen <- NULL
  ahead <- function(rows) {
    given <- if (length(offset) > 1) offset[rows] else offset
    seen <<- observed_rows(fit_of_rows(fit, rows), NULL, given)
    known <<- rows
  }
  some <- function(rows, theta, aux) {
    if (!all(rows %in% known)) {
      ahead(rows)
    }
    at <- match(rows, known)
    log_lik_block(fit, observations_of(seen, at), theta, aux)
  }
  every <- function(theta, aux) {
    found <- gather_predictions(
      fit,
      NULL,
      function(new) {
        new$weight <- new$weight %||% rep(1, nrow(new$x))
        out <- log_lik_block(fit, new, theta, aux)
        at <- seq_len(nrow(out))
        stats::setNames(lapply(at, function(k) out[k, ]), at)
      },
      offset,
      pads = FALSE
    )
    do.call(rbind, found)
  }
  f <- loo_function(fit, fit$n_data, chosen, some, every)
  structure(f, ahead = ahead)
}

# f(rows, theta, aux) as a function of (data_i, draws). For its approximation
# loo asks for one row after the other at few draws: that is answered for all
# rows at the first call, by `every(theta, aux)` where rows are far.
loo_function <- function(fit, n, chosen, f, every = NULL) {
  draws <- cbind(chosen$theta, chosen$aux)
  coefficients <- seq_len(fit$n_coef)
  colnames(draws) <- c(
    fit$variables[coefficients],
    if (!is.null(chosen$aux)) aux_of_fit(fit)
  )
  split <- function(draws, f) {
    aux <- if (ncol(draws) > length(coefficients)) {
      draws[, -coefficients]
    }
    f(unname(draws[, coefficients, drop = FALSE]), unname(aux))
  }
  evaluate <- function(rows, draws) {
    split(draws, function(theta, aux) f(rows, theta, aux))
  }
  whole <- function(draws) {
    out <- matrix(0, nrow(draws), n)
    each_block(n, nrow(draws), size = 2^20, function(rows) {
      out[, rows] <<- evaluate(rows, draws)
    })
    out
  }
  at <- NULL
  values <- NULL
  out <- function(data_i, draws) {
    n_draw <- dim(draws)[[1]]
    is_few <- n_draw == 1 || (n_draw <= 20 && n_draw * n <= 1e7)
    if (!is_few) {
      return(evaluate(data_i[, 1], draws))
    }
    if (!identical(at, draws)) {
      values <<- if (is.null(every)) whole(draws) else split(draws, every)
      at <<- draws
    }
    values[, data_i[, 1], drop = n_draw == 1]
  }
  data <- matrix(seq_len(n), dimnames = list(NULL, "row"))
  structure(out, data = data, draws = draws)
}

# Draws x rows.
log_lik_block <- function(fit, seen, theta, aux) {
  eta <- linear_draws(seen, theta)
  n_draw <- nrow(eta)
  each <- function(x) rep(x, each = n_draw)
  is_precision <- has_precisions(fit$family)
  out <- response_log_density(
    fit$family,
    eta,
    seen$y,
    if (is_precision) seen$weight else seen$trials,
    aux
  )
  if (!is_precision && any(seen$weight != 1)) {
    out <- each(seen$weight) * out
  }
  out
}

observations_of <- function(seen, rows) {
  out <- lapply(seen[c("offset", "y", "trials", "count", "weight")], `[`, rows)
  out$x <- design_rows(seen$x, rows)
  out
}

# Weights of proportions are trials, as in glm(); others are weights.
split_weights <- function(y, trials, weights, fit) {
  if (is.null(trials) && are_proportions(y, fit$family)) {
    list(y = y, trials = weights, weight = NULL)
  } else {
    list(y = y, trials = trials, weight = weights)
  }
}

new_response <- function(fit, newdata) {
  if (is.null(fit$terms)) {
    abort_input(
      "{.arg newdata} must be {.code NULL} here: a matrix has no response.",
      argument = "newdata"
    )
  }
  frame <- prediction_frame(fit, fit$terms, newdata)
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (!is.null(fit$response_levels)) {
    response <- as.character(response)
    check_levels(response, fit$response_levels, name)
    response <- factor(response, levels = fit$response_levels)
  }
  found <- frame_response(response, fit$family, name)
  trials <- found$trials
  if (is.null(trials)) {
    trials <- new_trials(fit, newdata)
  }
  check_new_values(found, trials, fit$family, name)
  list(y = found$values, trials = trials, weight = new_weights(fit, newdata))
}

# As for the data of the fit; a missing response has a missing likelihood.
check_new_values <- function(found, trials, family, name) {
  values <- replace(found$values, is.na(found$values), 0)
  check_response(values, family, name)
  if (is.null(found$trials)) {
    check_successes(values, trials, family, name)
  }
}

new_weights <- function(fit, newdata) {
  expression <- fit$weight_source
  if (is.null(expression)) {
    return(NULL)
  }
  missing <- setdiff(
    intersect(all.vars(expression), fit$columns),
    names(newdata)
  )
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  found <- eval(expression, newdata, environment(fit$formula))
  found <- check_numeric_vector(
    found,
    size = c(1, nrow(newdata)),
    arg = "weights"
  )
  check_row_weights(found)
  found
}
