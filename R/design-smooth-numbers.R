# Numbers of smooth terms that are dates, times or spans of time: days, seconds,
# and the units that they were fitted in. A record keeps `like`, by variable a
# vector of none of them, so that new data are read, and pictures labelled, as
# the data were.

is_time <- function(x) {
  inherits(x, c("Date", "POSIXct", "difftime"))
}

# Dates may be known by whole numbers.
is_measured <- function(x) {
  is.numeric(x) && !is.factor(x) || is_time(x)
}

# Those of a list that are, of length 0.
times_of <- function(values) {
  lapply(Filter(is_time, values), `[`, 0)
}

# As numbers, of the kind of `like`, NULL: plain ones.
plain_number <- function(x, like, name) {
  x <- in_units_of(x, like, name)
  if (is.double(x) && is.null(attributes(x))) x else as.double(unclass(x))
}

# Refused where it is of another kind; spans of time in the units of `like`.
in_units_of <- function(x, like, name) {
  is_one <- if (is.null(like)) {
    is_plain_numeric(x) || is.logical(x)
  } else {
    inherits(x, class(like)[[1]])
  }
  if (!is_one || length(dim(x)) > 1) {
    expected <- if (is.null(like)) "numeric" else paste("a", class(like)[[1]])
    abort_expected(x, expected, arg = name)
  }
  if (inherits(like, "difftime") && units(x) != units(like)) {
    units(x) <- units(like)
  }
  x
}

# Numbers as dates again. like: NULL: numbers.
as_they_were <- function(x, like) {
  if (!is.null(like)) {
    attributes(x) <- attributes(like)
  }
  x
}

# n of them evenly from the first of two to the second.
even_values <- function(ends, n) {
  x <- as.double(unclass(ends))
  x <- seq(x[[1]], x[[2]], length.out = n)
  as_they_were(x, if (is_time(ends)) ends[0])
}

format_like <- function(x, like) {
  if (is.null(like)) format_number(x) else format(as_they_were(x, like))
}

# Does the curve begin anew behind its ends in this variable?
is_periodic <- function(smooth, name) {
  basis <- smooth$basis
  if (length(smooth$numbers) == 1) {
    return(is.finite(basis$cubics$period %||% NA))
  }
  margin <- basis$object$margin
  k <- match(name, smooth$numbers)
  k <= length(margin) &&
    inherits(margin[[k]], c("cyclic.smooth", "cpspline.smooth"))
}

# "number" or "factor". Times have a number by which a curve, but not its
# multiplier, goes.
value_kind <- function(x, name, spec) {
  if (is.factor(x) || is.character(x)) {
    return("factor")
  }
  is_times <- name %in% spec$by || identical(spec$bs[[1]], "re")
  is_number <- is_plain_numeric(x) || is.logical(x) || is_time(x) && !is_times
  if (!is_number || length(dim(x)) > 1) {
    abort_no_number(x, name, spec)
  }
  if (is_time(x)) {
    x <- as.double(unclass(x))
  }
  bad <- which(abs(x) > most_of_data)
  if (length(bad) > 0) {
    abort_number(x, bad[[1]], arg = name)
  }
  "number"
}

abort_no_number <- function(x, name, spec) {
  abort_input(
    c(
      "{.arg {name}} must be a numeric vector or a factor in
       {.code {smooth_label(spec)}}, not {describe(x)}.",
      i = if (is_time(x) || inherits(x, "integer64")) {
        "{.code as.numeric({name})} is a number."
      },
      i = if (is_time(x) && name %in% spec$by) {
        "{.code t2({spec$term[[1]]}, {name})} is a curve that changes with
         {.code {name}}."
      }
    ),
    argument = name,
    expected = "a numeric vector or a factor",
    value = x
  )
}
