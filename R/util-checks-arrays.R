# Checks of vectors and matrices.

# How large a number of data may be. Beyond, the sums that models need, of
# products of two columns, squared and weighted, are no doubles any more.
most_of_data <- 1e60

# Finite numbers, as doubles with their names. `size`: the lengths allowed;
# `most`: how large they may be, most_of_data for data.
check_numeric_vector <- function(
  x,
  size = NULL,
  positive = FALSE,
  allow_null = FALSE,
  most = Inf,
  arg = caller_arg(x)
) {
  check_given(x, arg = arg)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  check_numbers_of(x, size, or_null(allow_null), most, arg = arg)
  if (positive && any(x <= 0)) {
    abort_value(x, which(x <= 0)[[1]], "be positive", arg = arg)
  }
  out <- as.double(x)
  if (!is.null(names(x))) {
    names(out) <- names(x) # a copy, which a long vector without names is spared
  }
  invisible(out)
}

# The same as they came: `x` may be too long to copy. or: what else it may be.
check_numbers_of <- function(
  x,
  size = NULL,
  or = "",
  most = Inf,
  arg = caller_arg(x)
) {
  if (!is_plain_numeric(x) || length(dim(x)) > 1) {
    abort_expected(x, paste0("a numeric vector", or), arg = arg)
  }
  check_size(x, size, arg = arg)
  check_finite(x, most, arg = arg)
}

check_beta <- function(beta, arg = caller_arg(beta)) {
  force(arg) # before `beta` is a value
  beta <- check_numeric_vector(beta, size = 2, arg = arg)
  if (any(beta < 0 | beta >= 1)) {
    abort_expected(beta, "two numbers of at least 0 and below 1", arg = arg)
  }
  beta
}

# A numeric matrix with finite entries and at least one row and one column. It
# is returned as it came: `x` may be too large to copy.
check_matrix <- function(
  x,
  n_row = NULL,
  n_col = NULL,
  most = Inf,
  arg = caller_arg(x)
) {
  check_given(x, arg = arg)
  if (!is.matrix(x) || !is_plain_numeric(x)) {
    hint <- if (is.data.frame(x)) {
      "Make one with `model.matrix()` or `as.matrix()`."
    } else if (is_sparse(x)) {
      "`model_glm()` and `tall_glm.fit()` take a sparse matrix as it is; here
       `as.matrix()` makes one that has its zeros, too."
    }
    abort_expected(x, "a numeric matrix", hint, arg = arg)
  }
  if (nrow(x) == 0 || ncol(x) == 0) {
    expected <- "a matrix with at least one row and one column"
    abort_expected(x, expected, arg = arg)
  }
  wrong <- (!is.null(n_row) && nrow(x) != n_row) ||
    (!is.null(n_col) && ncol(x) != n_col)
  if (wrong) {
    shape <- c(
      if (!is.null(n_row)) count_noun(n_row, "row"),
      if (!is.null(n_col)) count_noun(n_col, "column")
    )
    expected <- paste("a matrix of", paste(shape, collapse = " and "))
    abort_expected(x, expected, arg = arg)
  }
  check_finite(x, most, arg = arg)
  invisible(x)
}

# The largest number that is one in single precision.
largest_float <- (2 - 2^-23) * 2^127

# No NA, NaN or Inf, nor what is larger than `most`. The usual case allocates
# nothing.
check_finite <- function(x, most = Inf, arg = caller_arg(x)) {
  if (!all_finite(x, most)) {
    bad <- first_nonfinite(x, most)
    abort_number(x, bad, arg = arg)
  }
  invisible(x)
}

# The number `index` of x is not finite, or is larger than data may be.
abort_number <- function(x, index, arg, where = value_place(x, index)) {
  is_large <- is.finite(x[[index]])
  most <- format_number(most_of_data)
  must <- if (is_large) {
    paste0("be between -", most, " and ", most)
  } else {
    "be finite"
  }
  hint <- if (is_large) {
    "Sums that models need overflow beyond: mend it, or measure in larger
     units."
  }
  abort_value(x, index, must, arg, where, hint)
}

# `x` has one of the lengths in `size` (NULL: any but zero).
check_size <- function(x, size = NULL, arg = caller_arg(x)) {
  if (is.null(size) && length(x) == 0) {
    expected <- "a vector with at least one value"
    abort_expected(x, expected, arg = arg)
  }
  if (!is.null(size) && !length(x) %in% size) {
    size <- unique(size)
    wanted <- paste(format_count(size), collapse = " or ")
    noun <- if (identical(as.double(size), 1)) "value" else "values"
    has <- length(x)
    abort_input(
      "{.arg {arg}} must have {wanted} {noun}, not {format_count(has)}.",
      argument = arg,
      expected = paste(wanted, noun),
      value = x
    )
  }
  invisible(x)
}

# `y` has as many values (rows) as `x` has rows (values).
check_same_rows <- function(x, y, arg = caller_arg(x), arg_y = caller_arg(y)) {
  if (NROW(x) != NROW(y)) {
    has_x <- rows_text(x)
    has_y <- rows_text(y)
    abort_input(
      "{.arg {arg}} has {has_x} but {.arg {arg_y}} has {has_y}.",
      argument = arg_y,
      expected = NROW(x),
      value = NROW(y)
    )
  }
  invisible(y)
}

# Are there not more parameters than a vector may have values? `x` made them.
check_n_dim <- function(n_dim, x, arg = caller_arg(x)) {
  if (n_dim > count_limits$integer) {
    abort_input(
      "{.arg {arg}} must make at most {format_count(count_limits$integer)}
       parameters, not {format_count(n_dim)}.",
      argument = arg,
      expected = count_limits$integer,
      value = x
    )
  }
}

# Without the copy that `storage.mode<-` makes of a matrix that is double
# already.
as_double_matrix <- function(x) {
  if (!is.double(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# ---- helpers ---------------------------------------------------------------

# A sum is finite only if its terms are, and needs no memory; it may overflow
# although they are. most: how large they may be, beyond all integers.
all_finite <- function(x, most = Inf) {
  if (!is.double(x)) {
    !anyNA(x)
  } else if (is.finite(most)) {
    # NA is neither within nor beyond
    isTRUE(max(x, 0) <= most && min(x, 0) >= -most)
  } else {
    is.finite(sum(x)) || is.na(first_nonfinite(x))
  }
}

# Index of the first that is not finite, or larger than `most`, NA if there is
# none; one column at a time.
first_nonfinite <- function(x, most = Inf) {
  n_row <- NROW(x)
  for (j in seq_len(NCOL(x))) {
    column <- if (is.matrix(x)) x[, j] else x
    bad <- which(!is.finite(column) | abs(column) > most)
    if (length(bad) > 0) {
      return((j - 1) * n_row + bad[[1]])
    }
  }
  NA
}

# "`y` must be finite, but value 3 is NA." or "`y` must be finite, not NA."
abort_value <- function(
  x,
  index,
  must,
  arg,
  where = value_place(x, index),
  hint = NULL
) {
  shown <- format_exactly(x[[index]])
  but <- if (is.null(where)) "not" else paste("but", where, "is")
  abort_input(
    c("{.arg {arg}} must {must}, {but} {shown}.", i = hint),
    argument = arg,
    expected = must,
    value = x[[index]],
    index = index
  )
}

value_place <- function(x, index) {
  if (length(x) == 1) {
    NULL
  } else if (is.matrix(x)) {
    row <- (index - 1) %% nrow(x) + 1
    column <- (index - 1) %/% nrow(x) + 1
    name <- colnames(x)[column]
    is_named <- !is.null(name) && !is.na(name) && name != ""
    name <- if (is_named) paste0(" (`", name, "`)")
    paste0("row ", format_count(row), ", column ", column, name)
  } else {
    paste("value", format_count(index))
  }
}

is_sparse <- function(x) {
  if (!isS4(x)) {
    return(FALSE)
  }
  # without its package a class has no parents
  loadNamespace("Matrix")
  methods::is(x, "sparseMatrix")
}
