# Checks of names, and of values by name.

# A vector with a value for each of `known`, names of what `noun` says, in their
# order: by its own names if it has any. Values without names are positions, and
# one of them may stand for all; a value with a name stands for that alone.
match_names <- function(
  x,
  known,
  noun = "parameter",
  hint = NULL,
  arg = caller_arg(x)
) {
  given <- names(x)
  if (is.null(given) || is.null(known)) {
    return(x)
  }
  check_all_named(x, arg = arg)
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
      value = unknown
    )
  }
  check_known(given, known, noun, arg = arg)
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
      value = x
    )
  }
  unname(x[known])
}

# Names for all values, each once, or none.
check_all_named <- function(x, arg = caller_arg(x)) {
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
      value = x
    )
  }
  if (anyDuplicated(given)) {
    twice <- given[[anyDuplicated(given)]]
    abort_input(
      "{.arg {arg}} must have each name once, not {.val {twice}} twice.",
      argument = arg,
      value = x
    )
  }
  invisible(x)
}

# All of `x` (names given by a user) are among `known`.
check_known <- function(x, known, what = "name", arg = caller_arg(x)) {
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
      value = unknown
    )
  }
  invisible(x)
}

# Of columns with the same name one would be taken, whichever comes first:
# those that are used are there once. Others do no harm. used: names; `what`:
# what uses them.
check_columns_once <- function(
  names,
  used,
  what = "the formula",
  arg = "data"
) {
  twice <- intersect(names[duplicated(names)], used)
  if (length(twice) > 0) {
    name <- twice[[1]]
    abort_input(
      c(
        "{.arg {arg}} must have one column {.val {name}}, not {sum(names %in%
         name)}: {what} uses it.",
        i = "Rename or drop the others; {.fn make.unique} makes names unique."
      ),
      argument = arg,
      expected = 1,
      value = name
    )
  }
}

# Names for the columns: their own, or x1, x2, ...
column_names <- function(x) {
  make.unique(given_columns(x))
}

# The same, where some may be there twice.
given_columns <- function(x) {
  names <- colnames(x)
  if (is.null(names)) {
    return(paste0("x", seq_len(ncol(x))))
  }
  blank <- is.na(names) | names == ""
  names[blank] <- paste0("x", which(blank))
  names
}

# Names of variables, at least one, or with may_number their numbers.
check_variable_names <- function(
  x,
  known,
  may_number = FALSE,
  arg = caller_arg(x)
) {
  if (may_number && is_plain_numeric(x)) {
    bad <- which(!x %in% seq_along(known))
    if (length(bad) > 0) {
      must <- paste("be numbers of variables, 1 to", length(known))
      abort_value(x, bad[[1]], must, arg = arg)
    }
  } else if (!is.character(x)) {
    abort_expected(x, "names of variables or NULL", arg = arg)
  }
  check_size(x, arg = arg)
  if (is.character(x)) {
    check_known(x, known, "variable", arg = arg)
  }
  invisible(x)
}
