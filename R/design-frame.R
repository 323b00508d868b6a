# Model frames of formulas, and where their variables came from.

# Rows of weight 0, and of cbind(successes, failures) without trials: as
# stats::glm() does, they are left out. An error if no others are there.
weightless_rows <- function(response, weights) {
  out <- which(weights == 0)
  if (!is.null(weights) && length(out) == length(weights)) {
    abort_all_zero()
  }
  if (is.matrix(response) && ncol(response) == 2 && is.numeric(response)) {
    none <- unname(which(response[, 1] == 0 & response[, 2] == 0))
    every <- sort(union(out, none))
    # where no row is left, the response is at fault, and refused as such
    if (length(every) < nrow(response)) {
      out <- every
    }
  }
  out
}

# na.omit() and its kin copy a frame also where nothing is missing.
spare_copy <- function(na.action) {
  is_known <- any(vapply(
    list("na.omit", "na.exclude", "na.fail"),
    function(name) {
      identical(na.action, name) ||
        identical(na.action, getExportedValue("stats", name))
    },
    TRUE
  ))
  if (!is_known) {
    return(na.action)
  }
  act <- match.fun(na.action)
  function(object, ...) if (anyNA(object)) act(object, ...) else object
}

# Which variables came from the data: new data must have them. Others, such as
# the knots of a spline, are found where the formula was written.
data_columns <- function(terms, frame_call, data, env) {
  used <- unique(c(
    all.vars(terms),
    all.vars(frame_call$weights),
    all.vars(frame_call$offset)
  ))
  if (!is.null(data)) {
    return(intersect(used, names(data)))
  }
  is_column <- vapply(used, function(name) NROW(get0(name, env)) > 1, TRUE)
  used[is_column]
}

# Where trials, weights and offsets of new rows are to be found. The weights of
# proportions are trials, as in glm().
row_sources <- function(family, y, counts, weights, offset) {
  is_trials <- is.null(counts) && are_proportions(y, family)
  compact(list(
    trial_source = if (is_trials) weights else counts,
    weight_source = if (!is_trials) weights,
    offset_source = offset
  ))
}

# The model frame of a front end, from its matched call: list(frame, call,
# n_missing, missing), the call that made it, how many rows lacked a value, and
# their names. wanted:
# the arguments model.frame() gets; `data` is not read where the call has none.
make_frame <- function(matched, formula, data, wanted, na.action, caller) {
  if (!inherits(formula, "formula")) {
    abort_expected(formula, "a formula", arg = "formula")
  }
  check_terms(formula)
  has_data <- "data" %in% names(matched)
  if (has_data && !is.data.frame(data)) {
    hint <- source_hint(data)
    abort_expected(data, "a data frame", hint, arg = "data")
  }
  check_dot(formula, has_data)
  columns <- if (has_data) names(data)
  matched <- place_arguments(matched, columns, environment(formula), caller)
  frame_call <- matched[c(1, match(wanted, names(matched), 0))]
  used <- as.list(frame_call)[intersect(names(frame_call), placed_arguments)]
  used <- unlist(lapply(c(formula, used), all.vars))
  check_columns_once(columns, used)
  if (has_data) {
    is_text <- vapply(data, is.character, TRUE)
    check_no_arrays(data[intersect(columns[is_text], used)])
  }
  frame_call$na.action <- spare_copy(na.action)
  frame_call$drop.unused.levels <- TRUE
  frame_call[[1]] <- quote(stats::model.frame)
  frame <- tryCatch(
    eval(frame_call, caller),
    error = function(e) {
      if (inherits(e, "tall_error")) {
        rlang::cnd_signal(e)
      }
      abort_frame(e, formula, frame_call, columns, caller)
    }
  )
  tell_beyond_knots(attr(frame, "terms"))
  missing <- names(attr(frame, "na.action"))
  n_missing <- length(missing)
  if (nrow(frame) == 0) {
    abort_no_rows(n_missing, has_subset = !is.null(frame_call$subset))
  }
  check_offsets(frame)
  frame <- drop_weightless(frame, na.action)
  list(
    frame = frame,
    call = frame_call,
    n_missing = n_missing,
    missing = missing
  )
}

# A `.` in a formula stands for the columns of data.
check_dot <- function(formula, has_data) {
  if (!has_data && "." %in% all.vars(formula)) {
    abort_input(
      "{.arg data} must be given: {.arg formula} has a {.code .}, which stands
       for its columns.",
      argument = "data"
    )
  }
}

# No row counts. n_missing: how many lack something, of those of the subset.
# has_weights: may all rows have the weight 0?
abort_no_rows <- function(n_missing, has_subset, has_weights = FALSE) {
  if (has_weights && !has_subset && n_missing == 0) {
    abort_all_zero()
  }
  if (n_missing > 0) {
    abort_input(
      c(
        "{.arg data} must have at least one complete row, not 0.",
        x = "{count_noun(n_missing, 'row')}{if (has_subset) ' of the subset'}
             {cli::qty(n_missing)}lack{?s/} a value of a variable that is used."
      ),
      argument = "data",
      value = 0
    )
  }
  if (has_subset) {
    abort_input(
      "{.arg subset} must keep at least one row{if (has_weights) ' that counts'}
       of {.arg data}, not 0.",
      argument = "subset",
      value = 0
    )
  }
  abort_input(
    "{.arg data} must have at least one row, not 0.",
    argument = "data",
    value = 0
  )
}

# n: rows of a source that count. n_missing: those that lack something.
check_complete_rows <- function(n, n_missing, request) {
  if (n == 0) {
    has <- function(name) !is.null(request[[name]])
    abort_no_rows(n_missing, has("subset"), has("weights"))
  }
}

check_offsets <- function(frame) {
  own <- names(frame)[attr(attr(frame, "terms"), "offset")]
  for (name in c(own, intersect("(offset)", names(frame)))) {
    if (!is.numeric(frame[[name]])) {
      arg <- if (name == "(offset)") "offset" else name
      abort_expected(frame[[name]], "numeric", arg = arg)
    }
  }
}

# Some rows of a model frame, with its terms and the levels of its factors.
frame_part <- function(frame, at) {
  terms <- attr(frame, "terms")
  frame <- frame[at, , drop = FALSE]
  attr(frame, "terms") <- terms
  frame
}

# A row of weight 0 or without trials does not count: it is left out as one with
# missing values.
drop_weightless <- function(frame, na.action) {
  weights <- stats::model.weights(frame)
  check_numeric_vector(weights, allow_null = TRUE, most = most_of_data)
  check_row_weights(weights, row.names(frame))
  response <- left_side(frame)
  out <- weightless_rows(response, weights)
  if (length(out) == 0) {
    return(frame)
  }
  before <- attr(frame, "na.action")
  # as row numbers of the data
  row <- seq_len(nrow(frame) + length(before))
  row <- if (is.null(before)) row else row[-as.integer(before)]
  left_out <- c(
    before,
    stats::setNames(row[out], attr(frame, "row.names")[out])
  )
  excludes <- inherits(before, "exclude") ||
    identical(na.action, stats::na.exclude) ||
    identical(na.action, "na.exclude")
  terms <- attr(frame, "terms")
  frame <- frame[-out, , drop = FALSE]
  attr(frame, "terms") <- terms
  attr(frame, "na.action") <- structure(
    left_out[order(left_out)],
    class = if (excludes) "exclude" else "omit"
  )
  frame
}

# rows: their names, where some were left out.
check_row_weights <- function(weights, rows = NULL) {
  bad <- which(weights < 0)
  if (length(bad) > 0) {
    first <- bad[[1]]
    abort_value(
      weights,
      first,
      "be at least 0",
      arg = "weights",
      where = if (is.null(rows)) {
        value_place(weights, first)
      } else {
        paste("row", rows[[first]])
      }
    )
  }
}

abort_all_zero <- function() {
  abort_input(
    "{.arg weights} must be positive for at least one row: all are 0.",
    argument = "weights",
    value = 0
  )
}

# What model.frame() could not do, in the words of tall_glm()'s arguments.
# columns: names of the data's, NULL where there are no data.
abort_frame <- function(error, formula, frame_call, columns, caller) {
  said <- conditionMessage(error)
  expressions <- c(
    list(formula = formula),
    as.list(frame_call)[c("weights", "subset", "offset")]
  )
  home <- environment(formula)
  check_variable_there(error, expressions, columns, home)
  quoted <- regmatches(said, regexec("'\\((weights|offset)\\)'", said))[[1]]
  if (length(quoted) == 2) {
    arg <- quoted[[2]]
    given <- try(
      eval(frame_call[[arg]], eval(frame_call$data, caller), caller),
      silent = TRUE
    )
    abort_input(
      "{.arg {arg}} must be a numeric vector with a value for each row of
       {.arg data}, not {describe(given)}.",
      argument = arg,
      parent = error
    )
  }
  abort_input(
    "{.arg formula} and {.arg data} do not make a model frame.",
    argument = "formula",
    value = formula,
    parent = error
  )
}

# Was it a variable that is no column, and nothing else where the formula was
# written? Most often its name is misspelt, or it has that of a function.
# expressions: by the argument that they are; the error names the variable,
# in whatever language it is.
check_variable_there <- function(error, expressions, columns, home) {
  said <- conditionMessage(error)
  for (arg in names(expressions)) {
    for (name in setdiff(all.vars(expressions[[arg]]), c(columns, "."))) {
      is_there <- !is.null(variable_at(name, home))
      # of a function the type is said to be wrong, not that it is missing
      quotes <- "['\"`\u2018\u201c]"
      before <- if (exists(name, home)) quotes else "[^[:alnum:]._]"
      if (!is_there && names_variable(said, name, before)) {
        abort_no_column(name, columns, arg, error)
      }
    }
  }
}

names_variable <- function(said, name, before) {
  quoted <- gsub("([^[:alnum:]_])", "\\\\\\1", name)
  grepl(paste0(before, quoted, "([^[:alnum:]._]|$)"), said)
}

abort_no_column <- function(name, columns, arg, error) {
  is_own <- arg %in% placed_arguments
  used <- if (is_own) "{.arg {arg}} uses it."
  arg <- if (is_own) arg else "formula"
  if (is.null(columns)) {
    abort_input(
      c(
        "There is no variable {.code {name}}.",
        x = used,
        i = "{.arg data} was not given: variables are looked for where the
             formula was written."
      ),
      argument = arg,
      value = name,
      parent = error
    )
  }
  hint <- did_you_mean(name, columns, "`") %||%
    if (length(columns) > 0) paste0("It has ", quote_columns(columns), ".")
  abort_input(
    c(
      "{.arg data} has no column {.code {name}}.",
      x = used,
      i = escape_cli(hint)
    ),
    argument = arg,
    expected = columns,
    value = name
  )
}
