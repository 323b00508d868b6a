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
