# predict() of tall_gam(): term by term, too.

#' Predictions of additive models
#'
#' As [predict()][predict.tall_regression] of other regressions, and the terms
#' of the linear predictor one by one.
#'
#' @inheritParams predict.tall_regression
#' @param object (`tall_gam`) The fit.
#' @param type (string) `"link"`, `"response"`, or `"terms"`: a column for each
#'   term of the formula, which with the attribute `constant` and the offset add
#'   up to the linear predictor.
#' @param terms (string vector or `NULL`) With `type = "terms"`: which terms, by
#'   the names of their columns; `NULL`: all. Given alone it implies the type.
#' @param ... Arguments of [predict()][predict.tall_regression].
#'
#' @details The constant is the posterior mean of the intercept. Unlike those of
#' [stats::predict.lm()] ordinary terms are not centred, as in
#' `mgcv::predict.gam()`.
#'
#' @return As [predict()][predict.tall_regression] says; for `type = "terms"` a
#'   matrix, rows x terms, of posterior means with the attribute `constant`;
#'   with `se.fit = TRUE` a list of two such matrices, `fit` and `se.fit`.
#' @section Conditions: Those of [predict()][predict.tall_regression];
#'   `tall_warning_extrapolation` where `newdata` leave the range of a smooth.
#' @examplesIf requireNamespace("mgcv", quietly = TRUE)
#' fit <- tall_gam(mpg ~ hp + s(wt, k = 6), mtcars, seed = 1)
#' new <- data.frame(wt = c(2, 3), hp = 100)
#' predict(fit, new, type = "terms")
#' predict(fit, new, terms = "s(wt)", se.fit = TRUE)
#' predict(fit, new)
#' @export
predict.tall_gam <- function(
  object,
  newdata = NULL,
  type = NULL,
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  terms = NULL,
  ndraws = NULL
) {
  if (is.null(type) && !is.null(terms)) {
    type <- "terms"
  }
  if (!identical(type, "terms")) {
    if (!is.null(terms)) {
      abort_input(
        "{.arg terms} needs {.code type = \"terms\"}.",
        argument = "terms",
        value = terms
      )
    }
    if (!is.null(type)) {
      check_choice(type, c("link", "response", "terms"))
    }
    return(predict.tall_regression(
      object,
      newdata,
      type,
      se.fit,
      draws,
      offset,
      ...,
      ndraws = ndraws
    ))
  }
  check_no_dots(...)
  check_flag(se.fit)
  n_draw <- check_draws(object, draws, ndraws)
  predict_terms(ask_rows(object, newdata, offset), terms, n_draw, se.fit)
}

# Rows x terms: each is linear in the coefficients of its own columns.
predict_terms <- function(asked, terms, n_draw, se.fit) {
  fit <- asked$fit
  of <- columns_of_terms(fit)
  if (!is.null(terms)) {
    if (!is.character(terms) || anyNA(terms)) {
      abort_expected(terms, "strings or NULL")
    }
    check_known(terms, names(of), "term", "terms")
    of <- of[terms]
  }
  chosen <- choose_draws(fit, n_draw)
  out <- over_rows(asked, chosen, function(rows) {
    offset <- rep(0, nrow(rows$x))
    parts <- lapply(of, function(at) {
      part <- list(x = design_rows_of(rows$x, at), offset = offset)
      own <- chosen
      own$theta <- chosen$theta[, at, drop = FALSE]
      predictor_moments(fit, part, own, "link", se.fit)
    })
    bind <- function(name) {
      part <- as.double(unlist(lapply(parts, `[[`, name)))
      matrix(part, nrow(rows$x), length(of), dimnames = list(NULL, names(of)))
    }
    if (se.fit) list(fit = bind("fit"), se.fit = bind("se.fit")) else
      list(fit = bind("fit"))
  })
  at <- match("(Intercept)", fit$every_variable[seq_len(fit$n_coef)])
  theta <- chosen$theta
  mean <- if (is.na(at)) 0 else sum(theta[, at] * chosen$weights)
  attr(out$fit, "constant") <- mean
  if (se.fit) out else out$fit
}

design_rows_of <- function(x, at) {
  x[, at, drop = FALSE]
}

# Which columns of the design each term of the formula has, smooth ones by their
# label.
columns_of_terms <- function(fit) {
  columns <- fit$every_variable[seq_len(fit$n_coef)]
  smooth <- gam_layout(fit)$columns
  variable <- as.character(smooth$variable)
  of <- split(as.integer(smooth$at), factor(variable, unique(variable)))
  others <- setdiff(seq_along(columns), c(unlist(of), which(
    columns == "(Intercept)"
  )))
  ordinary <- ordinary_terms(fit, columns[others])
  own <- split(others, factor(ordinary, unique(ordinary)))
  c(own, of)
}

# The terms of ordinary columns, by their names: which term a column is of does
# not depend on the data.
ordinary_terms <- function(fit, columns) {
  if (length(columns) == 0) {
    return(character())
  }
  terms <- stats::delete.response(fit$terms)
  frame <- frame_of_classes(terms, fit$xlevels)
  x <- stats::model.matrix(terms, frame, contrasts.arg = fit$contrasts)
  every <- fit$every_variable[seq_len(fit$n_coef)]
  if (ncol(x) != length(every)) {
    abort_corrupt("The fit", "terms")
  }
  attr(terms, "term.labels")[attr(x, "assign")[match(columns, every)]]
}

# A model frame of one row, with variables of the kinds that terms say.
frame_of_classes <- function(terms, xlevels) {
  classes <- attr(terms, "dataClasses")
  variables <- vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
  frame <- lapply(stats::setNames(nm = variables), function(name) {
    class <- classes[[name]]
    if (!is.null(xlevels[[name]])) {
      levels <- xlevels[[name]]
      return(factor(levels[[1]], levels, ordered = class == "ordered"))
    }
    if (class == "logical") {
      return(FALSE)
    }
    size <- sub("^nmatrix[.]", "", class)
    if (size == class) 0 else matrix(0, 1, as.integer(size))
  })
  structure(frame, row.names = 1L, class = "data.frame", terms = terms)
}
