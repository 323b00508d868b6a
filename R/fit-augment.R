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
augment_rows <- function(
  fit,
  data,
  newdata,
  predict,
  residuals,
  se_fit,
  call = caller_env()
) {
  own <- is.null(newdata)
  table <- if (own) augmented_rows(fit, data, call) else newdata
  found <- if (se_fit) predict(TRUE) else list(fit = predict(FALSE))
  fits <- nrow(table) == length(found$fit)
  if (own && !fits) {
    expected <- paste("a data frame of", count_noun(length(found$fit), "row"))
    abort_expected(data, expected, arg = "data", call = call)
  }
  # numbers say where rows were left out
  named <- !identical(rownames(table), as.character(seq_len(nrow(table))))
  out <- c(
    if (named) list(.rownames = rownames(table)),
    as.list(table),
    list(.fitted = unname(found$fit)),
    if (se_fit) list(.se.fit = unname(found$se.fit)),
    if (own) list(.resid = unname(residuals()))
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
