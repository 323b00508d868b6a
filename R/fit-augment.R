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
  own <- is.null(newdata)
  if (own) {
    x <- fit_of_rows(x)
  }
  table <- if (own) augmented_rows(x, data) else newdata
  predict <- function(se.fit) {
    stats::predict(
      x,
      newdata,
      type = type.predict,
      se.fit = se.fit,
      draws = draws,
      ndraws = ndraws
    )
  }
  found <- if (se_fit) predict(TRUE) else list(fit = predict(FALSE))
  fits <- nrow(table) == length(found$fit)
  if (own && !fits) {
    expected <- paste("a data frame of", count_noun(length(found$fit), "row"))
    abort_expected(data, expected, arg = "data")
  }
  # numbers say where rows were left out
  named <- !identical(rownames(table), as.character(seq_len(nrow(table))))
  out <- c(
    if (named) list(.rownames = rownames(table)),
    as.list(table),
    list(.fitted = unname(found$fit)),
    if (se_fit) list(.se.fit = unname(found$se.fit)),
    if (own) {
      list(.resid = unname(stats::residuals(
        x,
        type = type.residuals,
        draws = draws,
        ndraws = ndraws
      )))
    }
  )
  structure(
    out,
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

# The data that get new columns.
augmented_rows <- function(fit, data, call = caller_env()) {
  if (!is.null(data)) {
    if (!is.data.frame(data)) {
      abort_expected(data, "a data frame or NULL", arg = "data", call = call)
    }
    return(data)
  }
  check_has_formula(fit, "augment", call)
  check_has_data(fit, "newdata", call)
  frame <- fit$frame
  attr(frame, "terms") <- NULL
  # rows that na.exclude left out are predicted, too, as NA
  if (inherits(fit$na_action, "exclude")) {
    rows <- stats::naresid(fit$na_action, seq_len(nrow(frame)))
    frame <- frame[rows, , drop = FALSE]
  }
  frame
}
