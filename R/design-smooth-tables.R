# Bases of one variable as tables of piecewise cubics, which src/data/smooth.c
# evaluates: between two breaks each column is a cubic, beyond the last ones it
# goes on as one, or, of cyclic bases, begins anew. Whether a basis is such a
# table is found by comparing, never by its name.

# list(breaks, coefficients, period): `coefficients` 4 x columns x intervals, of
# powers of the distance from the break at the left of an interval; the first
# interval is what lies before all breaks, about the first, the last what lies
# behind. period: NA, or the distance of the outer breaks. NULL: it is no table.
new_cubics <- function(basis, range, tolerance = 1e-10) {
  breaks <- basis_breaks(basis$object, range)
  span <- breaks[[length(breaks)]] - breaks[[1]]
  tries <- list(
    list(period = NA, is_straight = TRUE),
    list(period = NA, is_straight = FALSE),
    list(period = span, is_straight = FALSE)
  )
  for (try in tries) {
    cubics <- tryCatch(
      fit_cubics(basis, breaks, try$period, try$is_straight),
      error = function(e) NULL
    )
    if (!is.null(cubics) && cubics_agree(cubics, basis, tolerance)) {
      return(cubics)
    }
  }
  NULL
}

# Wherever mgcv has something that may be a knot; more of them do no harm.
basis_breaks <- function(object, range) {
  shift <- object$shift[[1]] %||% 0
  own <- if (is_by_level(object)) object$base else list()
  found <- c(
    object$xp, object$knots, object$Xu + shift, object$knt + shift,
    own$xp, own$knots
  )
  found <- found[is.finite(found)]
  if (is.null(found) || length(found) == 0) {
    found <- range
  }
  # closer ones are one, up to rounding
  found <- sort(unique(found))
  found[c(TRUE, diff(found) > 1e-10 * diff(range(found)))]
}

# is_straight: is it a straight line beyond the breaks?
fit_cubics <- function(basis, breaks, period, is_straight = FALSE) {
  nodes <- c(0.04, 0.31, 0.69, 0.96)
  width <- diff(breaks)
  span <- diff(range(breaks))
  # of each interval where it begins, and a length
  from <- c(breaks[[1]], breaks)
  length <- c(-span, width, span)
  if (!is.na(period)) {
    # never used, but for rounding
    first <- breaks[-length(breaks)]
    from <- c(first[[1]], first, first[[length(first)]])
    length <- c(width[[1]], width, width[[length(width)]])
  }
  x <- rep(from, each = 4) + rep(length, each = 4) * nodes
  values <- mgcv_basis(basis, list(x))
  p <- ncol(values)
  powers <- solve(outer(nodes, 0:3, `^`))
  values <- array(values, c(4, length(from), p))
  out <- array(0, c(4, p, length(from)))
  for (i in seq_along(from)) {
    out[, , i] <- powers %*% matrix(values[, i, ], 4) / length[[i]]^(0:3)
  }
  if (is_straight) {
    for (i in c(1, length(from))) {
      ends <- matrix(values[c(1, 4), i, ], 2)
      x <- nodes[c(1, 4)] * length[[i]]
      slope <- (ends[2, ] - ends[1, ]) / (x[[2]] - x[[1]])
      out[, , i] <- rbind(ends[1, ] - slope * x[[1]], slope, 0, 0)
    }
  }
  list(breaks = breaks, coefficients = out, period = period)
}

# On a fine grid, the breaks, and beyond them.
cubics_agree <- function(cubics, basis, tolerance) {
  breaks <- cubics$breaks
  n <- length(breaks)
  span <- breaks[[n]] - breaks[[1]]
  inside <- rep(breaks[-n], each = 7) +
    rep(diff(breaks), each = 7) * c(0.01, 0.15, 0.37, 0.5, 0.63, 0.85, 0.99)
  away <- span * c(1e-3, 0.02, 0.1, 0.3, 0.5, 0.8, 1.3, 2.1, 2.9)
  x <- c(breaks, inside, breaks[[1]] - away, breaks[[n]] + away)
  wanted <- mgcv_basis(basis, list(x))
  made <- cubic_columns(cubics, x)
  # beyond, where it is a sum of cubes, mgcv's own digits go with the distance
  beyond <- pmax(0, breaks[[1]] - x, x - breaks[[n]]) / span
  allowed <- tolerance * (1 + beyond)^3 * pmax(1, abs(wanted))
  isTRUE(all(abs(made - wanted) <= allowed))
}

# n x columns of finite numbers, in C.
cubic_columns <- function(cubics, x) {
  p <- dim(cubics$coefficients)[[2]]
  columns <- list(basis = seq_len(p), level = integer(p))
  made <- smooth_column(cubics, columns, list(list(values = x, first = 0)))
  filled_columns(made, length(x), p)
}

# The same of all columns of a term that C makes. values: by variable, numbers
# and codes; nothing is missing.
columns_of_table <- function(smooth, values) {
  order <- c(smooth$numbers, names(smooth$levels), smooth$multiplier)
  parts <- lapply(values[order], function(x) list(values = x, first = 0))
  made <- smooth_column(
    smooth$basis$cubics,
    smooth$columns,
    parts,
    lengths(smooth$levels)
  )
  filled_columns(made, length(values[[1]]), nrow(smooth$columns))
}

filled_columns <- function(made, n, p) {
  out <- matrix(0, n, p)
  program <- whole_program(p)
  .Call(
    ffi_design_fill,
    program,
    list(made),
    list(),
    NULL,
    n,
    0,
    out,
    list(),
    0
  )
  out
}
