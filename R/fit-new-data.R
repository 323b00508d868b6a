# The design of rows that predictions are for, the fit's own or new ones, in the
# terms of the fit's formula.

# list(x, offset), and what a class of fits has beside. groups: of
# group_request().
prediction_rows <- function(fit, newdata, offset = NULL, groups = NULL) {
  rows <- design_of(fit, newdata, groups)
  given <- check_numeric_vector(
    offset,
    size = c(1, nrow(rows$x)),
    allow_null = TRUE,
    most = most_of_data,
    arg = "offset"
  )
  if (is.null(given) && !is.null(newdata)) {
    given <- new_offset(fit, newdata)
  }
  rows$x <- as_rows(rows$x)
  rows$offset <- add_offsets(nrow(rows$x), rows$offset, given)
  rows
}

add_offsets <- function(n, ...) {
  total <- rep(0, n)
  for (part in list(...)) {
    if (!is.null(part)) {
      total <- total + part
    }
  }
  total
}

# list(x, offset) of new rows or, NULL, of the fit's own, which are in memory.
design_of <- function(fit, newdata, groups) {
  UseMethod("design_of")
}

# Thresholds are intercepts.
#' @export
design_of.tall_classes <- function(fit, newdata, groups) {
  rows <- NextMethod()
  if (!all(fit$design_columns %in% colnames(rows$x))) {
    abort_corrupt("The fit", "terms")
  }
  rows$x <- rows$x[, fit$design_columns, drop = FALSE]
  rows
}

# Networks take standardised inputs.
#' @export
design_of.tall_nn <- function(fit, newdata, groups) {
  rows <- NextMethod()
  rows$x <- nn_standardise(nn_inputs(rows$x), fit$scaling)
  rows
}

frame_design <- function(fit, newdata) {
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  terms <- stats::delete.response(fit$terms)
  frame <- prediction_frame(fit, terms, newdata)
  tell_extrapolation(terms, newdata)
  x <- fit_design(fit, terms, frame)
  list(x = x, offset = stats::model.offset(frame))
}

# The design of rows in the fit's terms, or in those of both its formulas.
fit_design <- function(fit, terms, frame) {
  if (is.null(fit$dpar)) {
    source_design(fit, terms, frame)
  } else {
    new_dpar_designs(fit$dpar, frame)
  }
}

matrix_design <- function(fit, newdata) {
  x <- newdata
  is_matrix <- is.matrix(x) && is_plain_numeric(x) || is_sparse(x)
  if (is_matrix && nrow(x) > 0) {
    known <- fit$every_variable[seq_len(fit$n_coef)]
    if (!is.null(colnames(x))) {
      x <- unique_columns(x, known)
    }
    named <- !is.null(colnames(x)) && all(known %in% colnames(x))
    if (named) {
      x <- x[, known, drop = FALSE]
    } else if (fit$has_names && !is.null(colnames(x))) {
      missing <- setdiff(known, colnames(x))
      abort_missing_columns(missing)
    }
  }
  if (!is_sparse(x)) {
    check_matrix(x, n_col = fit$n_coef, arg = "newdata")
  } else {
    x <- check_design(x, arg = "newdata")
    if (ncol(x) != fit$n_coef) {
      expected <- paste("a matrix of", count_noun(fit$n_coef, "column"))
      abort_expected(x, expected, arg = "newdata")
    }
  }
  list(x = x, offset = NULL)
}

# As models name the columns of their own matrices, of which some may have the
# same name.
unique_columns <- function(x, known) {
  names <- column_names(x)
  if (!identical(names, known)) {
    check_columns_once(colnames(x), known, "the fit", "newdata")
  } else {
    colnames(x) <- names
  }
  x
}

# ---- model frames of new data ------------------------------------------------

prediction_frame <- function(fit, terms, newdata) {
  wanted <- intersect(all.vars(terms), fit$columns)
  missing <- setdiff(wanted, names(newdata))
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  check_columns_once(names(newdata), fit$columns, "the fit", "newdata")
  frame <- tryCatch(
    stats::model.frame(terms, newdata, na.action = stats::na.pass),
    error = function(e) {
      if (inherits(e, "tall_error")) {
        rlang::cnd_signal(e)
      }
      abort_input(
        "The formula cannot be evaluated in {.arg newdata}.",
        argument = "newdata",
        parent = e
      )
    }
  )
  for (name in intersect(names(fit$xlevels), names(frame))) {
    known <- fit$xlevels[[name]]
    values <- as.character(frame[[name]])
    check_levels(values, known, name)
    contrasts <- attr(frame[[name]], "contrasts")
    frame[[name]] <- factor(
      values,
      levels = known,
      ordered = is.ordered(frame[[name]])
    )
    attr(frame[[name]], "contrasts") <- contrasts
  }
  check_classes(frame, attr(terms, "dataClasses"), names(fit$xlevels))
  frame
}

abort_missing_columns <- function(missing, arg = "newdata") {
  abort_input(
    "{.arg {arg}} must have the column{cli::qty(length(missing))}{?s}
     {.val {missing}}.",
    argument = arg,
    expected = missing
  )
}

check_levels <- function(values, known, name) {
  unknown <- setdiff(unique(values[!is.na(values)]), known)
  if (length(unknown) == 0) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg newdata} has the new level{cli::qty(length(unknown))}{?s}
       {.val {unknown}} of {.arg {name}}.",
      i = "The fit knows {.val {known}}."
    ),
    argument = "newdata",
    expected = known,
    value = unknown
  )
}

# A column that was numeric when the model was fitted still is.
check_classes <- function(frame, classes, factors) {
  for (name in setdiff(intersect(names(classes), names(frame)), factors)) {
    column <- frame[[name]]
    was_number <- classes[[name]] == "numeric" ||
      startsWith(classes[[name]], "nmatrix")
    if (was_number && !is.numeric(column) && !is.logical(column)) {
      abort_input(
        "{.arg {name}} must be numeric in {.arg newdata}, as in the data of the
         fit, not {describe(column)}.",
        argument = "newdata",
        value = column
      )
    }
  }
}

# NULL: none, or in the formula.
new_offset <- function(fit, newdata) {
  found <- eval_source(fit, fit$offset_source, newdata)
  found <- check_source(found, fit$offset_source, newdata, "offset")
  if (is.null(found)) NULL else rep_len(as.double(found), nrow(newdata))
}

check_source <- function(found, source, newdata, arg, hint = NULL) {
  is_right <- is.numeric(found) && length(found) %in% c(1, nrow(newdata))
  if (is.null(source) || is_right) {
    return(found)
  }
  abort_input(
    c(
      "{.arg {arg}} must be given for {.arg newdata}: it does not have
       {.code {rlang::as_label(source)}}.",
      i = hint
    ),
    argument = arg
  )
}

# An argument of the fit in new data; NULL where it cannot be had.
eval_source <- function(fit, source, newdata) {
  missing <- setdiff(intersect(all.vars(source), fit$columns), names(newdata))
  is_absent <- is.null(source) || length(missing) > 0 || holds_values(source)
  if (is_absent || !is.data.frame(newdata)) {
    return(NULL)
  }
  tryCatch(
    eval(source, newdata, environment(fit$formula)),
    error = function(e) NULL
  )
}

# Are values for the rows of the fit in it, which a caller's variable had?
holds_values <- function(x) {
  if (is.call(x)) {
    any(vapply(as.list(x)[-1], holds_values, TRUE))
  } else {
    !is.name(x) && length(x) > 1
  }
}
