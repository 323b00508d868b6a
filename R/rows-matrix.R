# Rows that a user hands over as matrices: tall_glm.fit().

# data: list(x, y, weights, offset), of which x may be a tall_store(); the
# response may be a factor, or cbind(successes, failures).
rows_matrix <- function(data, family) {
  tall_rows("matrix", list(
    x = data$x,
    y = data$y,
    weights = data$weights,
    offset = data$offset,
    family = family
  ))
}

#' @export
whole_rows.tall_rows_matrix <- function(rows) {
  response <- frame_response(rows$y, rows$family, "y")
  check_same_rows(rows$x, rows$y, arg = "x", arg_y = "y")
  weights <- rows$weights
  if (is.null(response$trials)) {
    check_successes(response$values, weights, rows$family, "y")
  } else {
    weights <- response$trials * (weights %||% 1)
  }
  rows_memory(
    rows$x,
    response$values,
    weights,
    rows$offset,
    family = rows$family,
    levels = response$levels,
    trials = response$trials
  )
}

#' @export
new_rows.tall_rows_matrix <- function(rows, data) {
  rows_matrix(data, rows$family)
}
