# Rows in memory, as a model takes them.

# x: the design, of which all know shape and names: a matrix, a sparse one, a
# tall_store(), whose values are in its file, or look_at_rows(), whose values
# are read when a model takes them. y: the response as numbers; weights: of the
# likelihood, trials among them; name: what the user calls the response. facts:
# of facts_of(), of all rows where these are some of them, NULL: of these. What
# else was read with them comes by name: `levels` of the response, `trials`,
# `contrasts`, `groups` and others. Values are checked by the model that takes
# them.
rows_memory <- function(
  x,
  y,
  weights = NULL,
  offset = NULL,
  name = "y",
  facts = NULL,
  ...
) {
  tall_rows("memory", list(
    x = x,
    y = y,
    weights = weights,
    offset = offset,
    name = name,
    facts = facts,
    ...
  ))
}

#' @export
whole_rows.tall_rows_memory <- function(rows) {
  rows
}

# What was read with them, without their values: those are the model's now.
without_values <- function(rows) {
  rows[c("x", "y", "weights", "offset", "groups", "factors")] <- NULL
  rows
}

# Some of them, which know the facts that these know; not of a look, which has
# no values. They stand for themselves, also where these are a pilot.
rows_at <- function(rows, at) {
  fields <- unclass(rows)
  fields[c("stands", "is_alike", "is_every", "within")] <- NULL
  stopifnot(!is_looked(fields$x))
  fields$x <- fields$x[at, , drop = FALSE]
  for (name in intersect(c("y", "weights", "offset"), names(fields))) {
    value <- fields[[name]]
    fields[name] <- list(if (!is.null(value)) select_rows(value, at))
  }
  tall_rows("memory", fields)
}

#' @export
each_chunk.tall_rows <- function(rows, f, show = list(refresh = 0)) {
  each_chunk(whole_rows(rows), f, show)
}

#' @export
each_chunk.tall_rows_memory <- function(rows, f, show = list(refresh = 0)) {
  n_row <- nrow(rows$x)
  size <- min(n_row, setting("chunk_rows"))
  for (first in seq(0, n_row - 1, by = size)) {
    n <- min(size, n_row - first)
    part <- rows_at(rows, first + seq_len(n))
    part$x <- as_double_matrix(as.matrix(part$x))
    part$y <- as_double_values(part$y)
    f(part, n, first)
  }
  list(n_row = n_row, n_missing = 0, digest = NULL)
}
