# Values of rows: a vector, or a matrix of several columns with a row for each.

select_rows <- function(x, rows) {
  if (length(dim(x)) == 2) x[rows, , drop = FALSE] else x[rows]
}

# Those of several parts, one after the other. NULL: there are none.
join_values <- function(parts) {
  known <- Find(Negate(is.null), parts)
  if (is.matrix(known)) do.call(rbind, parts) else unlist(parts)
}

# As doubles, of the same shape and without names.
as_double_values <- function(x) {
  if (is.matrix(x)) {
    x <- unname(x)
    storage.mode(x) <- "double"
    x
  } else {
    as.double(x)
  }
}

# n zeros, or a matrix of n rows of them.
zero_values <- function(n, n_column = 1) {
  if (n_column == 1) numeric(n) else matrix(0, n, n_column)
}

# The number of a row, the first of several columns: of limits where a row lies,
# or a time.
first_column <- function(x) {
  if (is.matrix(x)) unname(x[, 1]) else x
}

# ---- alike rows --------------------------------------------------------------

# list(first, count): of rows of these columns, vectors and matrices of doubles,
# the first of each kind, and how many they are; `group`, which kind each row
# is, where it is asked for. count: as many as a row stands for, NULL: one.
tie_columns <- function(columns, n, count = NULL, groups = FALSE) {
  found <- .Call(ffi_tie_rows, columns, n, count, groups)
  if (is.integer(found)) {
    abort_status(found)
  }
  found
}

# The same of a data frame; NULL: a column is not of a type that is known.
tie_frame <- function(frame, count = NULL, groups = FALSE) {
  columns <- lapply(unname(as.list(frame)), alike_column)
  if (!any(vapply(columns, is.null, TRUE))) {
    tie_columns(columns, nrow(frame), count, groups)
  }
}

# As doubles of which equal ones are of equal values; NULL: not of such a type.
alike_column <- function(x) {
  if (length(dim(x)) > 2) {
    return(NULL)
  }
  if (is.character(x)) {
    x[] <- match(x, unique(as.vector(x)))
    storage.mode(x) <- "double"
  }
  if (typeof(x) %in% c("double", "integer", "logical")) {
    as_double_values(unclass(x))
  }
}
