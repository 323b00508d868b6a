# What packages for any regression ask of a fit: the data frame it was made of,
# which a fit does not carry, and draws that all count the same.

# Columns `variables` of the data frame: as given; of the model frame, where
# they are there untransformed; of the source; or of what the call says.
original_data <- function(fit, variables, data = NULL) {
  has_all <- function(data) {
    is.data.frame(data) && all(variables %in% names(data))
  }
  if (!is.null(data)) {
    if (!is.data.frame(data)) {
      abort_expected(data, "a data frame or NULL", arg = "data")
    }
    missing <- setdiff(variables, names(data))
    if (length(missing) > 0) {
      abort_missing_columns(missing, arg = "data")
    }
    return(data[variables])
  }
  candidates <- list(
    function() all_frame(fit$rows),
    function() used_rows(fit, fit$rows$source$data),
    function() used_rows(fit, written_data(fit))
  )
  for (candidate in candidates) {
    found <- candidate()
    if (has_all(found)) {
      return(as.data.frame(found)[variables])
    }
  }
  abort_tall(
    "stale",
    c(
      "The data frame that the fit was made of cannot be found: a fit does not
       carry it.",
      x = "There is none with the {cli::qty(length(variables))}column{?s}
           {.field {variables}} under {.code data} of the call.",
      i = "Give {.arg data}, a data frame; of a table or a stream some rows are
           enough that have all levels."
    ),
    argument = "data"
  )
}

# What `data` of the call is now, or what has come of it by tall_append(); NULL:
# nothing of that name.
written_data <- function(fit) {
  if (!is.null(fit$batch_data)) {
    return(fit$batch_data)
  }
  home <- environment(stats::formula(fit))
  tryCatch(eval(fit$call$data, home), error = function(e) NULL)
}

# Of a data frame the rows that the fit used: without those that `subset` or a
# missing value left out. NULL: they cannot be told.
used_rows <- function(fit, data) {
  if (!is.data.frame(data)) {
    return(NULL)
  }
  formula <- stats::formula(fit)
  rows <- tryCatch(
    eval(fit$call$subset, data, environment(formula)),
    error = function(e) NA
  )
  if (identical(rows, NA)) {
    return(NULL)
  }
  # numbered among the rows of `subset`, of which NA is one
  left_out <- as.integer(fit$na_action)
  if (is.logical(rows) && length(left_out) == 0) {
    rows <- which(rows)
  }
  if (!is.null(rows)) {
    data <- data[rows, , drop = FALSE]
  }
  if (length(left_out) > 0) {
    data <- data[-left_out, , drop = FALSE]
  } else if (isTRUE(fit$n_missing > 0)) {
    own <- intersect(all.vars(formula), names(data))
    data <- data[stats::complete.cases(data[own]), , drop = FALSE]
  }
  data
}

# Draws x variables; those of a decaying step size are repeated by their
# weights.
plain_draws <- function(fit, variables = fit$variables) {
  all <- draws_matrix(fit)
  rows <- choose_rows(fit, NULL, resample = TRUE)$rows
  if (!is.null(rows)) {
    all <- all[rows, , drop = FALSE]
  }
  all[, variables, drop = FALSE]
}

# ---- as it was ---------------------------------------------------------------

# Of rows in memory: `columns` of those that count, of the model frame or of the
# data that it was made of, which must not have been altered since.
# missing(names): what is done where they have no such columns; hint: what to
# give where they are gone.
data_as_it_was <- function(fit, columns, data, missing, hint) {
  known <- all_frame(fit$rows)
  if (is.null(data) && all(columns %in% names(known))) {
    return(known)
  }
  has_formula <- !is.null(fit$terms)
  whole <- whole_data(data %||% if (has_formula) written_data(fit))
  if (is.null(whole)) {
    abort_tall(
      "stale",
      c(
        "The data that the fit was made of cannot be found: a fit does not carry
         them.",
        i = hint
      ),
      argument = "data"
    )
  }
  unknown <- setdiff(columns, names(whole))
  if (length(unknown) > 0) {
    missing(unknown)
  }
  n <- if (is.null(known)) stats::nobs(fit) else nrow(known)
  is_own <- nrow(whole) == n || !has_formula
  own <- if (is_own) whole else used_rows(fit, whole)
  # they may have been altered since
  same <- function(name) {
    identical(as.vector(own[[name]]), as.vector(known[[name]]))
  }
  shared <- intersect(names(own), names(known))
  if (NROW(own) != n || !all(vapply(shared, same, TRUE))) {
    abort_tall(
      "stale",
      c(
        "The data of the call are not those that the fit was made of: they have
         other rows.",
        i = hint
      ),
      argument = "data"
    )
  }
  own
}

# Data as a data frame: of a small source the fit has a frame, and the other
# columns are still there. NULL: none.
whole_data <- function(data) {
  if (is.null(data) || is.data.frame(data)) {
    return(data)
  }
  tryCatch(collect_source(as_source(data)), error = function(e) NULL)
}
