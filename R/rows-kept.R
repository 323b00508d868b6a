# The rows that a fit keeps: fit$rows. With fit$blueprint they are its model.
#
# Of rows in memory (members frame and matrix) they are the values themselves,
# of rows that are passed over the source that opens them and what a look found.
# Where passes found more, that is kept with them: facts, of the columns; some,
# a few rows to make models with; products, the sums of a Gaussian response.
# With keep_data = FALSE the values or the source are NULL, and the rest stays:
# how rows of new data are read does not depend on it.

# keeps: with their values, or what opens them?
rows_to_keep <- function(rows, keeps) {
  if (is_tied(rows) || is_summed(rows)) {
    rows <- with_source(kept_of_rows(rows), rows$source)
  }
  if (is_grown(rows)) {
    rows <- without_growth(rows)
  }
  # what the fit has beside them, and what its model has
  other <- c("call", "columns", "na_action", "n_missing", "missing", "rest")
  rows[other] <- NULL
  rows$family <- bare_family(rows$family)
  rows$request <- bare_request(rows$request)
  if (!keeps) {
    rows[intersect(row_values(rows), names(rows))] <- list(NULL)
  }
  rows
}

# How the response is read does not take R's functions of its link, which the
# fit has once, in fit$family.
bare_family <- function(family) {
  if (!is.null(family)) {
    family["object"] <- list(NULL)
  }
  family
}

bare_request <- function(request) {
  if (!is.null(request$family)) {
    request$family <- bare_family(request$family)
  }
  request
}

# What holds the rows, or opens them.
row_values <- function(rows) {
  if (is_passed_rows(rows)) {
    "source"
  } else {
    of_frame <- c("frame", "index", "row")
    c(of_frame, "x", "y", "weights", "offset", "groups", "factors")
  }
}

# Can the rows be had?
has_values <- function(rows) {
  !is.null(rows$frame) || !is.null(rows$source) ||
    !is_passed_rows(rows) && !is.null(rows$x)
}

# How many, NA where nobody has counted.
n_of_rows <- function(rows) {
  held <- rows$frame %||% if (!is_passed_rows(rows)) rows$x
  n_held <- if (is.null(rows$index)) nrow(held) else length(rows$index)
  as.double(rows$n_row %||% rows$facts$n_row %||% n_held %||% NA)
}

# Bytes of R's memory that they hold, but for how they are read. A data frame
# that is passed over counts: it is the user's, and lives as long as either has
# it. A connection or the file of a store does not.
owned_bytes <- function(rows) {
  own <- setdiff(names(rows), c("request", "family", "design"))
  as.double(utils::object.size(unclass(rows)[own]))
}

row_members <- c(
  memory = "Rows in memory, as a model takes them",
  pilot = "Rows in memory that stand for others",
  frame = "Rows of a model frame, in memory",
  matrix = "Rows of a design matrix, as it was given",
  passes = "Rows that are passed over, block by block",
  database = "Rows of a database, which computes the sums of a pass",
  summed = "Sums over the rows of a database, by one query",
  store = "Rows whose design lies in a file",
  grouped = "Rows that lie by group in a file",
  tied = "Rows in memory, of which alike ones count as one",
  grown = "Rows that are passed over, all but the last batch known"
)

# What they are, where they lie, and what they take: lines.
describe_rows <- function(x) {
  n <- n_of_rows(x)
  c(
    paste0("<tall_rows> ", row_members[[sub("tall_rows_", "", class(x)[[1]])]]),
    if (!is.na(n)) paste0("Number: ", format_count(n)),
    paste0("From: ", if (!has_values(x)) {
      "nowhere, they were not kept (keep_data = FALSE)"
    } else if (is.null(x$source)) {
      "R's memory"
    } else {
      source_label(x$source)
    }),
    if (is_store(x$x)) paste0("Design: ", unclass(x$x)$file),
    if (!is.null(x$file)) paste0("By group: ", x$file),
    if (!is.null(x$design)) {
      paste0("Columns: ", format_count(length(x$design$columns)))
    },
    if (!is.null(x$facts)) "Known of all rows: means and spreads of columns",
    if (!is.null(x$products)) "Known of all rows: sums of products",
    if (!is.null(x$some)) {
      paste0("Held beside them: ", count_noun(nrow(x$some$x), "row"))
    },
    paste0("Memory: ", format_bytes(owned_bytes(x)))
  )
}

#' @export
print.tall_rows <- function(x, ...) {
  check_no_dots(...)
  cat(describe_rows(x), sep = "\n")
  invisible(x)
}
