# augment(): the data with predictions as columns.

#' @importFrom generics augment
#' @export
generics::augment

#' @rdname fit-accessors
#' @method augment tall_glm
#' @export
augment.tall_glm <- function(
  x,
  data = NULL,
  newdata = NULL,
  type.predict = c("link", "response"),
  type.residuals = c("deviance", "pearson", "response"),
  se_fit = FALSE,
  draws = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  type.predict <- check_choice(type.predict, c("link", "response"))
  kinds <- c("deviance", "pearson", "response")
  type.residuals <- check_choice(type.residuals, kinds)
  check_flag(se_fit)
  if (inherits(x, "tall_nn")) {
    check_is_number(x, "augment")
  }
  if (inherits(newdata, c("tbl_lazy", "tall_table"))) {
    chosen <- choose_draws(x, check_draws(x, draws, ndraws))
    return(augment_table(x, newdata, type.predict, se_fit, chosen))
  }
  if (is.null(newdata)) {
    x <- fit_of_rows(x)
  }
  augment_rows(
    x,
    data,
    newdata,
    predict = function(se.fit) {
      stats::predict(
        x,
        newdata,
        type = type.predict,
        se.fit = se.fit,
        draws = draws,
        ndraws = ndraws
      )
    },
    residuals = function() {
      stats::residuals(x, type = type.residuals, draws = draws, ndraws = ndraws)
    },
    se_fit = se_fit
  )
}

#' @rdname tall_glmer-rows
#' @method augment tall_glmer
#' @export
augment.tall_glmer <- function(
  x,
  data = NULL,
  newdata = NULL,
  type.predict = c("link", "response"),
  type.residuals = c("deviance", "pearson", "response"),
  se_fit = FALSE,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  type.predict <- check_choice(type.predict, c("link", "response"))
  kinds <- c("deviance", "pearson", "response")
  type.residuals <- check_choice(type.residuals, kinds)
  check_flag(se_fit)
  augment_rows(
    x,
    data,
    newdata,
    predict = function(se.fit) {
      stats::predict(
        x,
        newdata,
        type = type.predict,
        se.fit = se.fit,
        re_formula = re_formula,
        allow_new_levels = allow_new_levels,
        ndraws = ndraws,
        seed = seed
      )
    },
    residuals = function() {
      stats::residuals(
        x,
        type = type.residuals,
        re_formula = re_formula,
        ndraws = ndraws,
        seed = seed
      )
    },
    se_fit = se_fit
  )
}

# The rows with what predict(se.fit) and, of the fit's own, residuals() say.
augment_rows <- function(fit, data, newdata, predict, residuals, se_fit) {
  own <- is.null(newdata)
  table <- if (own) augmented_rows(fit, data) else newdata
  found <- if (se_fit) predict(TRUE) else list(fit = predict(FALSE))
  if (own) {
    check_augmented_rows(table, length(found$fit))
  }
  with_columns(table, c(
    list(.fitted = unname(found$fit)),
    if (se_fit) list(.se.fit = unname(found$se.fit)),
    if (own) list(.resid = unname(residuals()))
  ))
}

# A tibble of the rows and what is new.
with_columns <- function(table, columns) {
  # numbers say where rows were left out
  named <- !identical(rownames(table), as.character(seq_len(nrow(table))))
  old <- as.list(table)[setdiff(names(table), names(columns))]
  structure(
    c(if (named) list(.rownames = rownames(table)), old, columns),
    row.names = .set_row_names(nrow(table)),
    class = c("tbl_df", "tbl", "data.frame")
  )
}

#' @rdname fit-accessors
#' @method augment tall_nn
#' @export
augment.tall_nn <- augment.tall_glm

#' @method augment tall_fit
#' @export
augment.tall_fit <- function(x, ...) {
  abort_no_formula(x, "augment")
}

#' @rdname predict.tall_classes
#' @param data (data frame or `NULL`) Of `augment()`: the data of the fit, with
#'   columns that it did not use; `NULL`: those that it kept.
#' @method augment tall_classes
#' @export
augment.tall_classes <- function(
  x,
  data = NULL,
  newdata = NULL,
  draws = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  own <- is.null(newdata)
  table <- if (own) augmented_rows(x, data) else newdata
  probs <- stats::predict(
    x,
    newdata,
    type = "probs",
    draws = draws,
    ndraws = ndraws
  )
  if (own) {
    check_augmented_rows(table, nrow(probs))
  }
  each <- lapply(seq_len(ncol(probs)), function(k) unname(probs[, k]))
  names(each) <- paste0(".prob_", colnames(probs))
  with_columns(table, c(
    list(.fitted = unname(likely_class(x, probs))),
    each,
    if (own) {
      list(.resid = unname(stats::residuals(x, draws = draws, ndraws = ndraws)))
    }
  ))
}

check_augmented_rows <- function(data, n) {
  if (nrow(data) != n) {
    expected <- paste("a data frame of", count_noun(n, "row"))
    abort_expected(data, expected, arg = "data")
  }
}

# The data that get new columns.
augmented_rows <- function(fit, data) {
  if (!is.null(data)) {
    if (!is.data.frame(data)) {
      abort_expected(data, "a data frame or NULL", arg = "data")
    }
    return(data)
  }
  check_has_formula(fit, "augment")
  check_has_data(fit, "newdata")
  frame <- fit$frame
  attr(frame, "terms") <- NULL
  # rows that na.exclude left out are predicted, too, as NA
  if (inherits(fit$na_action, "exclude")) {
    rows <- stats::naresid(fit$na_action, seq_len(nrow(frame)))
    names <- replace(rownames(frame)[rows], fit$na_action, names(fit$na_action))
    frame <- frame[rows, , drop = FALSE]
    rownames(frame) <- names
  }
  frame
}
