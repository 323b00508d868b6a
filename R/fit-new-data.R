# Rows that predictions are for: the fit's own or new ones, with their trials,
# weights and offsets, in the terms of the fit's formula.

# Rows with their responses: x, offset, y, trials, count = y trials, and weight,
# of the log likelihood or, in Gaussian models, of the precision.
observed_rows <- function(fit, newdata, offset = NULL) {
  if (is.null(newdata)) {
    # where they are passed over, once
    fit <- fit_of_rows(fit)
  }
  new <- prediction_rows(fit, newdata, offset)
  response <- if (is.null(newdata)) {
    own_response(fit)
  } else {
    new_response(fit, newdata)
  }
  n <- nrow(new$x)
  trials <- rep_len(response$trials %||% 1, n)
  list(
    x = new$x,
    offset = new$offset,
    y = response$y,
    trials = trials,
    count = response$y * trials,
    weight = rep_len(response$weight %||% 1, n)
  )
}

# list(y, trials, weight); y is a proportion where there are trials.
own_response <- function(fit) {
  check_has_data(fit, NULL)
  if (has_source(fit)) {
    return(remote_response(fit))
  }
  if (is.null(fit$terms)) {
    found <- frame_response(fit$data$y, fit$family, "y")
    weights <- fit$data$weights
  } else {
    found <- frame_response(
      stats::model.response(fit$frame, "any"),
      fit$family,
      response_name(fit$frame)
    )
    weights <- unname(stats::model.weights(fit$frame))
  }
  split_weights(unname(found$values), unname(found$trials), weights, fit)
}

# Weights of new rows of a Gaussian model: given, of the fit's own data, or from
# newdata. NULL: 1 for each, or no such model.
prediction_weights <- function(fit, newdata, weights, n) {
  if (!has_precisions(fit$family)) {
    if (!is.null(weights)) {
      abort_input(
        c(
          "{.arg weights} is for responses whose weights are precisions, not for
           {.val {fit$family$name}}.",
          i = if (has_trials(fit$family)) "Trials are {.arg trials}."
        ),
        argument = "weights",
        value = weights
      )
    }
    return(NULL)
  }
  if (is.null(weights)) {
    weights <- if (is.null(newdata)) {
      own_response(fit)$weight
    } else {
      found <- eval_source(fit, fit$weight_source, newdata)
      check_source(
        found,
        fit$weight_source,
        newdata,
        "weights",
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
    most = most_of_data,
    arg = "weights"
  )
  if (is.null(weights)) NULL else rep_len(unname(weights), n)
}

# Trials of new rows: given, of the fit's own data, or from newdata.
prediction_trials <- function(fit, newdata, trials, n) {
  if (!has_trials(fit$family)) {
    if (!is.null(trials)) {
      abort_input(
        "{.arg trials} is for binomial models, not for
         {.val {fit$family$name}}.",
        argument = "trials",
        value = trials
      )
    }
    return(NULL)
  }
  if (!is.null(trials)) {
    trials <- check_numeric_vector(
      trials,
      size = c(1, n),
      positive = TRUE,
      arg = "trials"
    )
  } else if (is.null(newdata)) {
    trials <- own_response(fit)$trials
  } else {
    trials <- new_trials(fit, newdata)
  }
  if (is.null(trials)) {
    trials <- 1
  }
  bad <- which(trials != round(trials))
  if (length(bad) > 0) {
    abort_value(trials, bad[[1]], "be whole", arg = "trials")
  }
  rep_len(unname(trials), n)
}

# NULL: one each.
new_trials <- function(fit, newdata) {
  found <- eval_source(fit, fit$trial_source, newdata)
  if (is.matrix(found) && ncol(found) == 2) {
    found <- rowSums(found)
  }
  check_source(found, fit$trial_source, newdata, "trials")
}

# NULL: none, or in the formula.
new_offset <- function(fit, newdata) {
  found <- eval_source(fit, fit$offset_source, newdata)
  found <- check_source(found, fit$offset_source, newdata, "offset")
  if (is.null(found)) NULL else rep_len(as.double(found), nrow(newdata))
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

# ---- which rows --------------------------------------------------------------

# Design matrix and offset of new rows, or of the fit's own.
prediction_rows <- function(fit, newdata, offset = NULL) {
  own <- is.null(newdata)
  new <- if (own) {
    own_rows(fit)
  } else if (is.null(fit$terms)) {
    matrix_rows(fit, newdata)
  } else {
    frame_rows(fit, newdata)
  }
  given <- check_numeric_vector(
    offset,
    size = c(1, nrow(new$x)),
    allow_null = TRUE,
    most = most_of_data,
    arg = "offset"
  )
  if (is.null(given) && !own) {
    given <- new_offset(fit, newdata)
  }
  new$x <- as_rows(new$x)
  new$offset <- add_offsets(nrow(new$x), new$offset, given)
  new
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

own_rows <- function(fit) {
  check_has_data(fit, "newdata")
  if (is.null(fit$terms)) {
    return(list(x = rows_in_memory(fit$data$x), offset = fit$data$offset))
  }
  fit <- fit_of_rows(fit)
  x <- source_design(fit, fit$terms, fit$frame)
  list(x = x, offset = stats::model.offset(fit$frame))
}

matrix_rows <- function(fit, newdata) {
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

frame_rows <- function(fit, newdata, terms = NULL) {
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  if (is.null(terms)) {
    terms <- stats::delete.response(fit$terms)
  }
  frame <- prediction_frame(fit, terms, newdata)
  x <- source_design(fit, stats::delete.response(terms), frame)
  list(x = x, offset = stats::model.offset(frame), frame = frame)
}

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
