# Checks of arguments. Each returns its argument, invisibly and in the type
# that its name promises, or raises a `tall_error_input` that names the
# argument, what it must be and what it is.

# An argument without default is there.
check_given <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (missing(x)) {
    abort_input(
      "{.arg {arg}} must be given: it has no default.",
      argument = arg,
      call = call
    )
  }
}

# A finite number, as double.
check_number <- function(
  x,
  min = -Inf,
  max = Inf,
  positive = FALSE,
  allow_null = FALSE,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  ok <- is_number(x) &&
    is.finite(x) &&
    x >= min &&
    x <= max &&
    (!positive || x > 0)
  if (!ok) {
    what <- paste(c("a", if (positive) "positive", "number"), collapse = " ")
    expected <- paste0(what, range_text(min, max), or_null(allow_null))
    abort_expected(x, expected, arg = arg, call = call)
  }
  invisible(as.double(x))
}

# A whole number, as double: counts of rows may exceed the largest integer. What
# is beyond `most` is a mistake; it is said to those who make it alone.
check_count <- function(
  x,
  min = 1,
  max = Inf,
  allow_null = FALSE,
  most = count_limits$whole,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  is_finite <- is_number(x) && is.finite(x)
  if (is_finite && x > most) {
    max <- pmin(max, most)
  }
  ok <- is_finite && x == round(x) && x >= min && x <= max
  if (!ok) {
    expected <- paste0(
      "a whole number",
      range_text(min, max),
      or_null(allow_null)
    )
    abort_expected(x, expected, arg = arg, call = call)
  }
  invisible(as.double(x))
}

# What check_count() takes for mistakes.
count_limits <- list(
  whole = 2^53,                    # doubles no longer tell numbers apart
  integer = .Machine$integer.max,
  iter = 1e10,
  chains = 1e6
)

# Threads, or workers. A process has no use for more than `most`, and what asks
# for more need not be an integer of R or C.
check_cores <- function(
  x,
  most = 1024,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_count(x, arg = arg, call = call)
  if (x > 1 && !blas_takes_threads()) {
    inform_blas(arg)
    x <- 1
  }
  invisible(min(as.double(x), most))
}

# Debian's OpenBLAS without threads of its own (libopenblas0-serial) has no
# locks either: called by several threads at once it gives wrong products, one
# in some thousand. It is known by its folder.
blas_takes_threads <- function(blas = extSoftVersion()[["BLAS"]]) {
  !grepl("openblas-serial", blas, fixed = TRUE)
}

inform_blas <- function(arg) {
  cli::cli_inform(
    c(
      "Chains run one after another, whatever {.arg {arg}} is.",
      x = "R's BLAS, {.pkg libopenblas0-serial}, gives wrong results when
           several threads call it.",
      i = "The package {.pkg libopenblas0-pthread} of Debian is right."
    ),
    class = "tall_message_cores",
    .frequency = "once",
    .frequency_id = "tallbayes_blas"
  )
}

# Significant digits to print.
check_digits <- function(x, arg = caller_arg(x), call = caller_env()) {
  check_count(x, max = 22, arg = arg, call = call)
}

# TRUE or FALSE.
check_flag <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (!is.logical(x) || length(x) != 1 || is.na(x)) {
    abort_expected(x, "TRUE or FALSE", arg = arg, call = call)
  }
  invisible(as.logical(x))
}

check_string <- function(
  x,
  allow_null = FALSE,
  arg = caller_arg(x),
  call = caller_env()
) {
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  if (!is.character(x) || length(x) != 1 || is.na(x)) {
    expected <- paste0("a string", or_null(allow_null))
    abort_expected(x, expected, arg = arg, call = call)
  }
  invisible(as.character(x))
}

# Names of variables, at least one, or with may_number their numbers.
check_variable_names <- function(
  x,
  known,
  may_number = FALSE,
  arg = caller_arg(x),
  call = caller_env()
) {
  if (may_number && is_plain_numeric(x)) {
    bad <- which(!x %in% seq_along(known))
    if (length(bad) > 0) {
      must <- paste("be numbers of variables, 1 to", length(known))
      abort_value(x, bad[[1]], must, arg = arg, call = call)
    }
  } else if (!is.character(x)) {
    abort_expected(x, "names of variables or NULL", arg = arg, call = call)
  }
  check_size(x, arg = arg, call = call)
  if (is.character(x)) {
    check_known(x, known, "variable", arg = arg, call = call)
  }
  invisible(x)
}

# One of `choices`; an argument left at its default, which is all of them, is
# the first.
check_choice <- function(
  x,
  choices,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (identical(x, choices)) {
    return(invisible(choices[[1]]))
  }
  if (!is.character(x) || length(x) != 1 || !x %in% choices) {
    expected <- paste0(
      if (length(choices) > 1) "one of ",
      quote_all(choices, last = "or")
    )
    hint <- did_you_mean(x, choices)
    abort_expected(x, expected, hint, arg = arg, call = call)
  }
  invisible(x)
}

# NULL, or a whole number as set.seed() takes it.
check_seed <- function(x, arg = caller_arg(x), call = caller_env()) {
  check_count(x, min = -Inf, allow_null = TRUE, arg = arg, call = call)
  limit <- .Machine$integer.max
  check_count(x, -limit, limit, allow_null = TRUE, arg = arg, call = call)
}

# Finite numbers, as doubles with their names. `size`: the lengths allowed.
check_numeric_vector <- function(
  x,
  size = NULL,
  positive = FALSE,
  allow_null = FALSE,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  if (!is_plain_numeric(x) || length(dim(x)) > 1) {
    expected <- paste0("a numeric vector", or_null(allow_null))
    abort_expected(x, expected, arg = arg, call = call)
  }
  check_size(x, size, arg = arg, call = call)
  check_finite(x, arg = arg, call = call)
  if (positive && any(x <= 0)) {
    abort_value(x, which(x <= 0)[[1]], "be positive", arg = arg, call = call)
  }
  out <- as.double(x)
  if (!is.null(names(x))) {
    names(out) <- names(x) # a copy, which a long vector without names is spared
  }
  invisible(out)
}

# A numeric matrix with finite entries and at least one row and one column. It
# is returned as it came: `x` may be too large to copy.
check_matrix <- function(
  x,
  n_row = NULL,
  n_col = NULL,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (!is.matrix(x) || !is_plain_numeric(x)) {
    hint <- if (is.data.frame(x)) {
      "Make one with `model.matrix()` or `as.matrix()`."
    }
    abort_expected(x, "a numeric matrix", hint, arg = arg, call = call)
  }
  if (nrow(x) == 0 || ncol(x) == 0) {
    expected <- "a matrix with at least one row and one column"
    abort_expected(x, expected, arg = arg, call = call)
  }
  wrong <- (!is.null(n_row) && nrow(x) != n_row) ||
    (!is.null(n_col) && ncol(x) != n_col)
  if (wrong) {
    shape <- c(
      if (!is.null(n_row)) count_noun(n_row, "row"),
      if (!is.null(n_col)) count_noun(n_col, "column")
    )
    expected <- paste("a matrix of", paste(shape, collapse = " and "))
    abort_expected(x, expected, arg = arg, call = call)
  }
  check_finite(x, arg = arg, call = call)
  invisible(x)
}

# No NA, NaN or Inf. The usual case allocates nothing.
check_finite <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (!all_finite(x)) {
    bad <- first_nonfinite(x)
    abort_value(x, bad, "be finite", arg = arg, call = call)
  }
  invisible(x)
}

# `x` has one of the lengths in `size` (NULL: any but zero).
check_size <- function(
  x,
  size = NULL,
  arg = caller_arg(x),
  call = caller_env()
) {
  if (is.null(size) && length(x) == 0) {
    expected <- "a vector with at least one value"
    abort_expected(x, expected, arg = arg, call = call)
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
      value = x,
      call = call
    )
  }
  invisible(x)
}

# `y` has as many values (rows) as `x` has rows (values).
check_same_rows <- function(
  x,
  y,
  arg = caller_arg(x),
  arg_y = caller_arg(y),
  call = caller_env()
) {
  if (NROW(x) != NROW(y)) {
    has_x <- rows_text(x)
    has_y <- rows_text(y)
    abort_input(
      "{.arg {arg}} has {has_x} but {.arg {arg_y}} has {has_y}.",
      argument = arg_y,
      expected = NROW(x),
      value = NROW(y),
      call = call
    )
  }
  invisible(y)
}

# A spec made by one of the constructors of a family:
# check_spec(kernel, "tall_kernel", "kernel_*()").
check_spec <- function(
  x,
  class,
  constructor,
  allow_null = FALSE,
  arg = caller_arg(x),
  call = caller_env()
) {
  check_given(x, arg = arg, call = call)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  if (!inherits(x, class)) {
    hint <- if (is.function(x)) {
      "Call the function: what it returns is wanted here."
    }
    expected <- paste0("made by `", constructor, "`", or_null(allow_null))
    abort_expected(x, expected, hint, arg = arg, call = call)
  }
  if (inherits(x, "tall_spec")) {
    check_whole_spec(x, arg, call)
  } else if (inherits(x, "tall_prior")) {
    check_whole_prior(x, arg, call)
  }
  invisible(x)
}

# What a function of the user returns; its error is one of the argument.
call_user <- function(f, arg, call, ...) {
  tryCatch(f(...), error = function(e) {
    if (inherits(e, "tall_error")) {
      rlang::cnd_signal(e)
    }
    abort_input(
      "{.fn {arg}} failed.",
      argument = arg,
      parent = e,
      call = call
    )
  })
}

# Are there not more parameters than a vector may have values? `x` made them.
check_n_dim <- function(n_dim, x, arg = caller_arg(x), call = caller_env()) {
  if (n_dim > count_limits$integer) {
    abort_input(
      "{.arg {arg}} must make at most {format_count(count_limits$integer)}
       parameters, not {format_count(n_dim)}.",
      argument = arg,
      expected = count_limits$integer,
      value = x,
      call = call
    )
  }
}

# What came with `...`, a list, are arguments among `known`.
check_dots_known <- function(given, known, call) {
  if (length(given) > 0 && (is.null(names(given)) || any(names(given) == ""))) {
    abort_input(
      "Arguments in {.arg ...} must have names.",
      argument = "...",
      call = call
    )
  }
  if (length(given) > 0) {
    check_known(names(given), known, "argument", arg = "...", call = call)
  }
}

# A vector with a value for each of `known`, names of what `noun` says, in their
# order: by its own names if it has any. Values without names are positions, and
# one of them may stand for all; a value with a name stands for that alone.
match_names <- function(
  x,
  known,
  noun = "parameter",
  hint = NULL,
  arg = caller_arg(x),
  call = caller_env()
) {
  given <- names(x)
  if (is.null(given) || is.null(known)) {
    return(x)
  }
  check_all_named(x, arg = arg, call = call)
  unknown <- setdiff(given, known)
  if (length(unknown) > 0 && !is.null(hint)) {
    abort_input(
      c(
        "{.arg {arg}} has the unknown {noun}{cli::qty(length(unknown))}{?s}
         {quote_all(unknown)}.",
        i = hint
      ),
      argument = arg,
      expected = known,
      value = unknown,
      call = call
    )
  }
  check_known(given, known, noun, arg = arg, call = call)
  absent <- setdiff(known, given)
  if (length(absent) > 0) {
    shown <- quote_columns(absent)
    abort_input(
      c(
        "{.arg {arg}} must have a value for each {noun}, not none for {shown}.",
        i = "Values with names are not recycled; {.fn unname} takes the names
             away."
      ),
      argument = arg,
      expected = known,
      value = x,
      call = call
    )
  }
  unname(x[known])
}

# Names for all values, each once, or none.
check_all_named <- function(x, arg = caller_arg(x), call = caller_env()) {
  given <- names(x)
  if (is.null(given)) {
    return(invisible(x))
  }
  blank <- which(is.na(given) | given == "")
  if (length(blank) > 0) {
    abort_input(
      "{.arg {arg}} must have names for all of its values or for none: value
       {blank[[1]]} has no name.",
      argument = arg,
      value = x,
      call = call
    )
  }
  if (anyDuplicated(given)) {
    twice <- given[[anyDuplicated(given)]]
    abort_input(
      "{.arg {arg}} must have each name once, not {.val {twice}} twice.",
      argument = arg,
      value = x,
      call = call
    )
  }
  invisible(x)
}

# All of `x` (names given by a user) are among `known`.
check_known <- function(
  x,
  known,
  what = "name",
  arg = caller_arg(x),
  call = caller_env()
) {
  unknown <- setdiff(x, known)
  if (length(unknown) > 0) {
    listed <- quote_all(unknown)
    what <- paste0(what, if (length(unknown) > 1) "s")
    hint <- did_you_mean(unknown[[1]], known) %||%
      paste0("Known: ", quote_all(known), ".")
    abort_input(
      c("{.arg {arg}} has the unknown {what} {listed}.", i = escape_cli(hint)),
      argument = arg,
      expected = known,
      value = unknown,
      call = call
    )
  }
  invisible(x)
}

# ---- helpers ---------------------------------------------------------------

is_plain_numeric <- function(x) {
  is.numeric(x) && !is.object(x)
}

is_number <- function(x) {
  is_plain_numeric(x) && length(x) == 1 && is.null(dim(x))
}

# A sum is finite only if its terms are, and needs no memory; it may overflow
# although they are.
all_finite <- function(x) {
  if (is.double(x)) {
    is.finite(sum(x)) || is.na(first_nonfinite(x))
  } else {
    !anyNA(x)
  }
}

# Index of the first, NA if there is none; one column at a time.
first_nonfinite <- function(x) {
  n_row <- NROW(x)
  for (j in seq_len(NCOL(x))) {
    column <- if (is.matrix(x)) x[, j] else x
    bad <- which(!is.finite(column))
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
  call,
  where = value_place(x, index)
) {
  shown <- format_number(x[[index]])
  but <- if (is.null(where)) "not" else paste("but", where, "is")
  abort_input(
    "{.arg {arg}} must {must}, {but} {shown}.",
    argument = arg,
    expected = must,
    value = x[[index]],
    index = index,
    call = call
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

range_text <- function(min, max) {
  if (is.finite(min) && is.finite(max)) {
    paste(" between", format_count(min), "and", format_count(max))
  } else if (is.finite(min)) {
    paste(" of at least", format_count(min))
  } else if (is.finite(max)) {
    paste(" of at most", format_count(max))
  } else {
    ""
  }
}

or_null <- function(allow_null) {
  if (allow_null) " or NULL" else ""
}

rows_text <- function(x) {
  noun <- if (length(dim(x)) > 1) "row" else "value"
  count_noun(NROW(x), noun)
}

# "a", "b" and "c"
quote_all <- function(x, last = "and") {
  x <- paste0("\"", x, "\"")
  n <- length(x)
  if (n == 1) {
    return(x)
  }
  paste(paste(x[-n], collapse = ", "), last, x[[n]])
}

did_you_mean <- function(x, choices) {
  if (!rlang::is_string(x)) {
    return(NULL)
  }
  distance <- utils::adist(x, choices, ignore.case = TRUE, partial = FALSE)
  if (min(distance) > max(1, nchar(x) %/% 3)) {
    return(NULL)
  }
  paste0("Did you mean \"", choices[[which.min(distance)]], "\"?")
}
