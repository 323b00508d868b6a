# Designs of which only the numbers that are not zero are kept: those of the
# package Matrix, which are never made dense.

# Any of them as a dgCMatrix: doubles, column by column.
as_columns <- function(x) {
  if (methods::is(x, "dgCMatrix")) {
    return(x)
  }
  x <- methods::as(x, "dMatrix")
  x <- methods::as(x, "generalMatrix")
  methods::as(x, "CsparseMatrix")
}

# A design that models take: a matrix of doubles, or a dgCMatrix.
check_design <- function(x, arg = caller_arg(x)) {
  check_given(x, arg = arg)
  if (!is_sparse(x)) {
    return(as_double_matrix(check_matrix(x, most = most_of_data, arg = arg)))
  }
  if (nrow(x) == 0 || ncol(x) == 0) {
    expected <- "a matrix with at least one row and one column"
    abort_expected(x, expected, arg = arg)
  }
  check_n_nonzero(x, arg)
  x <- as_columns(x)
  if (!all_finite(x@x, most_of_data)) {
    at <- first_nonfinite(x@x, most_of_data)
    abort_number(x@x, at, arg, where = nonzero_place(x, at))
  }
  x
}

# Where the at-th number that is not zero stands.
nonzero_place <- function(x, at) {
  column <- findInterval(at - 1, x@p, left.open = FALSE)
  name <- colnames(x)[column]
  is_named <- !is.null(name) && !is.na(name) && name != ""
  paste0(
    "row ",
    format_count(x@i[[at]] + 1),
    ", column ",
    column,
    if (is_named) paste0(" (`", name, "`)")
  )
}

# Places of numbers are integers.
check_n_nonzero <- function(x, arg) {
  n <- n_nonzero(x)
  if (n > count_limits$integer) {
    abort_input(
      c(
        "{.arg {arg}} must have at most {format_count(count_limits$integer)}
         numbers that are not zero, not {format_count(n)}.",
        i = "Sample rows of it, or leave columns out."
      ),
      argument = arg,
      expected = count_limits$integer,
      value = n
    )
  }
}

# What is kept, zeros or not.
n_nonzero <- function(x) {
  if (methods::.hasSlot(x, "x")) length(x@x) else Matrix::nnzero(x)
}

# ---- of columns --------------------------------------------------------------

design_means <- function(x) {
  if (is_sparse(x)) Matrix::colMeans(x) else colMeans(x)
}

# Standard deviations. The zeros are all as far from the mean, whose square is
# not taken from that of others.
design_sds <- function(x) {
  if (!is_sparse(x)) {
    return(.Call(ffi_column_sds, x))
  }
  n <- nrow(x)
  n_in_column <- diff(x@p)
  mean <- Matrix::colMeans(x)
  away <- x
  away@x <- (x@x - rep(mean, n_in_column))^2
  square <- Matrix::colSums(away) + (n - n_in_column) * mean^2
  unname(sqrt(square / max(1, n - 1)))
}

# ---- of rows -----------------------------------------------------------------

# A design whose rows are asked for one after the other: sparse ones row by row.
as_rows <- function(x) {
  if (!is_sparse(x) || methods::is(x, "dgRMatrix")) {
    return(x)
  }
  methods::as(as_columns(x), "RsparseMatrix")
}

# Some rows of it. Those of a sparse matrix by hand: methods for `[` turn all of
# it first.
design_rows <- function(x, rows) {
  if (!methods::is(x, "dgRMatrix")) {
    return(x[rows, , drop = FALSE])
  }
  if (is.logical(rows)) {
    rows <- which(rows)
  }
  n <- x@p[rows + 1] - x@p[rows]
  at <- sequence(n, x@p[rows] + 1)
  names <- dimnames(x)
  methods::new(
    "dgRMatrix",
    p = c(0L, as.integer(cumsum(n))),
    j = x@j[at],
    x = x@x[at],
    Dim = c(length(rows), ncol(x)),
    Dimnames = list(names[[1]][rows], names[[2]])
  )
}
