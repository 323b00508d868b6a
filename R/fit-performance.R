# performance: measures of how well fits do, in one row.

#' How well fits do
#'
#' A row of measures of a fit, and of several fits side by side, under the names
#' of the package \pkg{performance}, whose generic `model_performance()` takes
#' fits, too.
#'
#' @param model,x (fit of a regression, such as [tall_glm()]) The fit; others
#'   are handed on to \pkg{performance}.
#' @param metrics (string vector) `"all"`, `"common"` (the first four) or some
#'   of:
#'   * `"LOOIC"`: expected log predictive density `ELPD` and `LOOIC`, -2 times
#'     it, with standard errors, by [loo()][loo-tall_glm];
#'   * `"WAIC"`: that of [waic()][loo-tall_glm];
#'   * `"R2"`: the posterior mean of [bayes_R2()][bayes_R2.tall_regression], of
#'     multilevel fits also `R2_marginal`, with effects of groups at 0;
#'   * `"RMSE"`: the root mean square of the [residuals][fitted-values];
#'   * `"SIGMA"`: the residual standard deviation;
#'   * `"LOGLOSS"`: minus the mean logarithm of the expected probability of what
#'     was observed, of binary responses and classes.
#' @param verbose (`TRUE` or `FALSE`) Unused, for the sake of
#'   \pkg{performance}.
#' @param ... Of `compare_performance()`: more fits of the same rows. Else
#'   unused, or handed on.
#'
#' @details Of tall data `loo()` and `waic()` look at a subsample of rows, the
#' same one of all fits; the other measures look at all rows, in blocks. What a
#' response does not have is left out, as is a root mean square of classes.
#'
#' `performance::compare_performance()` takes a list of classes of its own and
#' leaves out others; the one here is for fits of this package.
#'
#' @return A data frame of class `performance_model` with a column for each
#'   measure: `ELPD`, `ELPD_SE`, `LOOIC`, `LOOIC_SE`, `WAIC`, `R2`,
#'   `R2_marginal`, `RMSE`, `Sigma`, `Log_loss`; the attribute `loo` is what
#'   `loo()` returned. `compare_performance()`: one of class
#'   `compare_performance` with columns `Name` and `Model` before, and a row for
#'   each fit.
#' @section Conditions: those of [loo()][loo-tall_glm]; `tall_error_input` for
#'   unknown `metrics`, or fits of other rows; `tall_warning_response` where
#'   their responses are not the same.
#' @examplesIf rlang::is_installed(c("loo", "rstantools"))
#' fit <- tall_glm(mpg ~ wt, mtcars, seed = 1)
#' model_performance(fit)
#' more <- tall_glm(mpg ~ wt + hp, mtcars, seed = 1)
#' compare_performance(fit, more, metrics = "LOOIC")
#' @name model_performance
NULL

#' @rdname model_performance
#' @export
model_performance <- function(model, ...) {
  if (!inherits(model, "tall_fit")) {
    return(hand_on("performance", "model_performance"))
  }
  UseMethod("model_performance")
}

#' @rdname model_performance
#' @export
compare_performance <- function(x, ...) {
  if (!inherits(x, "tall_fit")) {
    # as it was written: names of models are read from that
    return(hand_on("performance", "compare_performance"))
  }
  UseMethod("compare_performance")
}

#' @export
model_performance.tall_fit <- function(model, ...) {
  abort_no_formula(model, "model_performance")
}

#' @export
compare_performance.tall_fit <- function(x, ...) {
  abort_no_formula(x, "compare_performance")
}

#' @rdname model_performance
#' @export
model_performance.tall_regression <- function(
  model,
  metrics = "all",
  verbose = TRUE,
  ...
) {
  check_no_dots(...)
  check_has_data(model)
  metrics <- check_metrics(metrics)
  found <- lapply(performance_metrics[metrics], function(f) f(model))
  loo <- found$LOOIC$loo
  found$LOOIC$loo <- NULL
  columns <- compact(unlist(unname(found), recursive = FALSE))
  out <- as.data.frame(columns)
  attr(out, "loo") <- loo
  class(out) <- c("performance_model", class(out))
  out
}

#' @rawNamespace S3method(performance::model_performance, tall_regression)
#' S3method(performance::model_performance, tall_fit)
NULL

#' @rdname model_performance
#' @export
compare_performance.tall_regression <- function(
  x,
  ...,
  metrics = "all",
  verbose = TRUE
) {
  fits <- list(x, ...)
  written <- as.list(substitute(list(x, ...)))[-1]
  labels <- rlang::names2(written)
  labels[labels == ""] <- vapply(written[labels == ""], deparse1, "")
  is_fit <- vapply(fits, inherits, TRUE, "tall_regression")
  if (!all(is_fit)) {
    abort_expected(
      fits[[which(!is_fit)[[1]]]],
      "a fit of a regression, such as of tall_glm()",
      arg = labels[!is_fit][[1]]
    )
  }
  rows <- lapply(fits, model_performance.tall_regression, metrics = metrics)
  loos <- lapply(rows, attr, "loo")
  if (all(lengths(loos) > 0)) {
    check_same_rows_of(stats::setNames(loos, labels))
    warn_other_responses(loos)
  }
  columns <- unique(unlist(lapply(rows, names)))
  rows <- lapply(rows, function(row) {
    row[setdiff(columns, names(row))] <- NA_real_
    as.data.frame(unclass(row)[columns])
  })
  out <- data.frame(
    Name = make.unique(labels),
    Model = vapply(fits, function(fit) class(fit)[[1]], "")
  )
  out <- cbind(out, do.call(rbind, rows))
  class(out) <- c("compare_performance", "see_compare_performance", class(out))
  out
}

check_metrics <- function(metrics) {
  known <- names(performance_metrics)
  if (identical(tolower(metrics), "all")) {
    return(known)
  }
  if (identical(tolower(metrics), "common")) {
    return(known[1:4])
  }
  if (!is.character(metrics) || length(metrics) == 0) {
    abort_expected(metrics, "\"all\", \"common\" or names of metrics")
  }
  given <- sub("LOG_LOSS", "LOGLOSS", toupper(metrics))
  check_known(given, known, "metric", arg = "metrics")
  known[known %in% given]
}

# Each: the columns of a fit, or none.
performance_metrics <- list(
  LOOIC = function(fit) {
    loo <- suppressWarnings(loo.tall_fit(fit))
    found <- loo$estimates
    at <- function(pattern) grep(pattern, rownames(found))
    list(
      ELPD = found[at("^elpd"), "Estimate"],
      ELPD_SE = found[at("^elpd"), "SE"],
      LOOIC = found[at("^looic"), "Estimate"],
      LOOIC_SE = found[at("^looic"), "SE"],
      loo = loo
    )
  },
  WAIC = function(fit) {
    found <- suppressWarnings(waic.tall_fit(fit))
    list(WAIC = found$estimates["waic", "Estimate"])
  },
  R2 = function(fit) {
    if_there({
      out <- list(R2 = mean(bayes_R2.tall_regression(fit)))
      if (has_groups(fit)) {
        marginal <- bayes_R2.tall_regression(fit, re_formula = NA)
        out$R2_marginal <- mean(marginal)
      }
      out
    })
  },
  RMSE = function(fit) {
    if_there(if (!has_class_response(fit)) {
      residual <- stats::residuals(fit)
      list(RMSE = sqrt(mean(residual^2, na.rm = TRUE)))
    })
  },
  SIGMA = function(fit) {
    sigma <- fit_sigma(fit)
    if (!is.na(sigma)) list(Sigma = sigma)
  },
  LOGLOSS = function(fit) {
    if_there(compact(list(Log_loss = observed_loss(fit))))
  }
)

# NULL where a fit has no such thing.
if_there <- function(code) {
  tryCatch(code, tall_error_unsupported = function(e) NULL)
}

# NULL of responses that have no probabilities.
observed_loss <- function(fit) {
  is_binary <- identical(fit$family$object$family, "binomial")
  if (!is_binary && !has_class_response(fit)) {
    return(NULL)
  }
  response <- own_response(fit)
  mu <- stats::na.omit(stats::fitted(fit))
  if (has_class_response(fit)) {
    return(-mean(log(mu[cbind(seq_len(nrow(mu)), response$y)])))
  }
  if (is.null(response$trials)) {
    -mean(log(ifelse(response$y > 0, mu, 1 - mu)))
  }
}
