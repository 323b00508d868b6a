# augment(): the data with predictions as columns.

#' @importFrom generics augment
#' @export
generics::augment

#' @rdname fit-accessors
#' @method augment tall_regression
#' @export
augment.tall_regression <- function(
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
  ndraws = NULL
) {
  check_no_dots(...)
  type.predict <- check_choice(type.predict, c("link", "response"))
  if (type.predict == "response") {
    check_has_means(x, "augment(type.predict = \"response\")")
  }
  type.residuals <- check_choice(type.residuals, rev(residual_types))
  check_flag(se_fit)
  groups <- group_request(x, re_formula, allow_new_levels, seed)
  n_draw <- check_draws(x, draws, ndraws)
  if (inherits(newdata, c("tbl_lazy", "tall_table"))) {
    chosen <- choose_draws(x, n_draw)
    return(augment_table(x, newdata, type.predict, se_fit, chosen))
  }
  own <- is.null(newdata)
  if (own) {
    x <- fit_of_rows(x)
  } else if (is_passed_over(x, newdata)) {
    newdata <- collect_source(data_source(newdata, "newdata"), c(
      i = "Give some of the rows, or write predictions of all:
           {.code predict(fit, newdata, to = )}."
    ))
  }
  table <- if (own) augmented_rows(x, data) else newdata
  is_class <- has_class_response(x)
  scale <- if (is_class) "response" else type.predict
  asked <- ask_rows(x, newdata, groups = groups)
  chosen <- choose_draws(x, n_draw %||% usual_draws(x, asked$n, scale))
  found <- over_rows(asked, chosen, function(rows) {
    predictor_moments(x, rows, chosen, scale, se_fit)
  })
  if (own) {
    check_augmented_rows(table, NROW(found$fit))
  }
  with_columns(table, c(
    if (is_class) class_columns(x, found) else number_columns(found),
    if (own) {
      list(.resid = unname(own_residuals(x, type.residuals, groups, n_draw)))
    }
  ))
}

own_residuals <- function(fit, type, groups, n_draw) {
  if (inherits(fit, "tall_surv")) {
    return(residuals(fit, type, n_draw))
  }
  type <- if (has_class_response(fit)) "response" else type
  asked <- ask_rows(fit, groups = groups, needs = "responses")
  over_means(asked, n_draw, row_residuals(fit, type))
}

number_columns <- function(found) {
  c(
    list(.fitted = unname(found$fit)),
    if (!is.null(found$se.fit)) list(.se.fit = unname(found$se.fit))
  )
}

# The most probable class and the probability of each.
class_columns <- function(fit, found) {
  each <- function(values, prefix) {
    columns <- lapply(seq_len(ncol(values)), function(k) unname(values[, k]))
    stats::setNames(columns, paste0(prefix, colnames(values)))
  }
  c(
    list(.fitted = unname(likely_class(fit, found$fit))),
    each(found$fit, ".prob_"),
    if (!is.null(found$se.fit)) each(found$se.fit, ".se_")
  )
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

#' @method augment tall_fit
#' @export
augment.tall_fit <- function(x, ...) {
  abort_no_formula(x, "augment")
}

check_augmented_rows <- function(data, n) {
  if (nrow(data) != n) {
    expected <- paste("a data frame of", count_noun(n, "row"))
    abort_expected(data, expected, arg = "data")
  }
}

# A model frame with the variables of smooth terms, where they can be found, in
# place of the columns of their bases.
without_smooths <- function(fit, frame) {
  smooths <- if (is.null(fit$bars)) terms_smooths(fit$terms)
  if (length(smooths) == 0) {
    return(frame)
  }
  texts <- unlist(lapply(smooths, function(x) c(x$term, x$by)))
  names <- intersect(all.vars(str2expression(texts)), fit$columns)
  names <- setdiff(names, names(frame))
  frame[written_smooths(fit)] <- NULL
  own <- tryCatch(original_data(fit, names), tall_error = function(e) NULL)
  if (NROW(own) == nrow(frame)) {
    frame[names] <- own
  }
  frame
}

# The data that get new columns.
augmented_rows <- function(fit, data) {
  if (!is.null(data)) {
    if (!is.data.frame(data)) {
      is_table <- inherits(data, c("tbl_lazy", "tall_table"))
      hint <- if (is_table) "A table is given as `newdata`."
      abort_expected(data, "a data frame or NULL", hint, arg = "data")
    }
    return(data)
  }
  check_has_formula(fit, "augment")
  check_has_data(fit, "newdata")
  frame <- without_smooths(fit, all_frame(fit$rows))
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
