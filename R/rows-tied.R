# Rows that are alike count as one. Of factors and whole numbers there are few
# combinations, however many rows have them: a likelihood that weighs its rows
# is the same of the combinations, each with the number of rows that have it.

# Of a pass: the source's own fields, and `tied`: list(x, y, weights, offset,
# count), weights being those of the rows times their number. facts and
# n_missing: of all rows.
rows_tied <- function(rows, tied, facts, n_missing) {
  fields <- unclass(rows)
  fields$is_alike <- TRUE
  fields$tied <- tied
  fields$facts <- facts
  fields$n_missing <- n_missing
  tall_rows("tied", fields)
}

is_tied <- function(rows) {
  inherits(rows, "tall_rows_tied")
}

# Of a look that has the sums of a Gaussian response: `summed`, list(x, y,
# count, within), its means, the rows of each kind and their squares about it.
rows_summed <- function(rows, summed) {
  fields <- unclass(rows)
  fields$summed <- summed
  tall_rows("summed", fields)
}

is_summed <- function(rows) {
  inherits(rows, "tall_rows_summed")
}

#' @export
whole_rows.tall_rows_tied <- function(rows) {
  rows_drawn(rows, rows$tied, rows$facts)
}

# What a fit keeps of the rows that were passed over: none of them. It ties them
# again, where it goes on.
kept_of_rows <- function(rows) {
  rows <- without_source(rows)
  if (!is_tied(rows) && !is_summed(rows)) {
    return(rows)
  }
  fields <- unclass(rows)
  fields[c("tied", "facts", "n_missing", "summed", "has_every")] <- NULL
  rows_passes(fields, fields$in_sql)
}

# The first n of rows x, y, weights, offset (list or environment, NULL: none),
# alike ones once: the same, with `count`. count: of each row, NULL: 1.
tie_part <- function(of, n, count = NULL) {
  own <- c("x", "y", "weights", "offset")
  columns <- stats::setNames(lapply(own, function(name) of[[name]]), own)
  is_there <- !vapply(columns, is.null, TRUE)
  found <- tie_columns(unname(columns[is_there]), n, count)
  out <- lapply(columns[is_there], function(column) {
    select_rows(column, found$first)
  })
  out$count <- found$count
  out
}

# Those of several parts, in their order.
join_ties <- function(parts) {
  parts <- parts[!vapply(parts, is.null, TRUE)]
  if (length(parts) <= 1) {
    return(if (length(parts) == 1) parts[[1]])
  }
  every <- function(name) join_values(lapply(parts, `[[`, name))
  of <- list(
    x = do.call(rbind, lapply(parts, `[[`, "x")),
    y = every("y"),
    weights = every("weights"),
    offset = every("offset")
  )
  tie_part(of, nrow(of$x), every("count"))
}

# With the number of rows in the weights.
weigh_ties <- function(tied) {
  tied$weights <- tied$count * (tied$weights %||% 1)
  tied
}

# The rows of a pilot, tied where those of the source are to be; NULL: they are
# not. Of the rows that the pilot has not met no more differ from those that it
# has than rows stand behind those that it met once (Good, 1953, Biometrika
# 40).
# of: list(x, y, weights, offset); stands: rows behind each; look: n_row, of
# all, and whether these are every kind of row that there is.
tie_pilot <- function(of, stands, look) {
  s <- setting("ties")
  n <- nrow(of$x)
  of$x <- as_double_matrix(as.matrix(of$x))
  for (name in c("y", "weights", "offset")) {
    value <- of[[name]]
    of[name] <- list(if (!is.null(value)) as_double_values(value))
  }
  if (isTRUE(look$is_every)) {
    return(tie_part(of, n, stands))
  }
  # mostly no two rows are alike, and few tell
  few <- min(n, 2000)
  is_lone <- tie_part(of, few)$count == 1
  if (mean(is_lone) > 0.99) {
    return(NULL)
  }
  rows <- tie_part(of, n)
  out <- tie_part(of, n, stands)
  unseen <- sum(out$count[rows$count == 1])
  if (length(out$count) + unseen > min(s$most, s$share * look$n_row)) {
    return(NULL)
  }
  out
}

# The pilot's rows, class tall_rows_pilot: each counts for as many as it stands
# for (`stands`); tied, and `is_alike` says so, where all rows are to be.
# is_every: they are all that there are; within: of those, the squares of a
# Gaussian response about its mean.
rows_of_pilot <- function(reading) {
  pilot <- reading$parts
  stands <- reading$pilot$stands
  # of others weights may be precisions, and sums are enough
  tied <- if (!find_response(reading$rows$family)$is_quadratic) {
    tie_pilot(pilot, stands, reading$look)
  }
  if (is.null(tied)) {
    pilot$weights <- stands * (pilot$weights %||% 1)
  } else {
    pilot <- weigh_ties(tied)
  }
  within <- reading$look$within
  own <- list(
    stands = if (is.null(tied)) stands else tied$count,
    is_alike = !is.null(tied),
    is_every = isTRUE(reading$look$is_every),
    within = if (length(within) == nrow(pilot$x)) within
  )
  tall_rows("pilot", c(unclass(rows_drawn(reading$rows, pilot)), own))
}
