# The rows of a regression: one object, wherever they lie.
#
#   tall_rows_memory    as a model takes them: design, response, weights, offset
#   tall_rows_pilot     the same, some of a source, each for those it stands for
#   tall_rows_frame     a model frame, and the request by which it is read
#   tall_rows_matrix    matrices that a user handed over
#   tall_rows_passes    a source that is read block by block, never all of it
#   tall_rows_database  the same, where the database computes the sums
#   tall_rows_store     the same, whose design lies in a file
#   tall_rows_grouped   the same, which lie by group in a file
#   tall_rows_summed    the same, whose sums the look has
#   tall_rows_tied      the same, of which alike ones count as one, in memory
#   tall_rows_grown     the same, of which all but a last batch are known
#
# What can be asked of them are the generics below. Of members that are passed
# over the methods that need models of a chunk stand above, in R/mode-passes.R,
# R/mode-tied.R, R/mode-sql.R, R/plan-drawn.R, R/plan-sql.R and R/plan-grown.R.
#
# The first four own their values, as R's vectors, until a model has them (see
# without_values()). The others own nothing but what a look found: the source
# opens for each pass and closes after it, a chunk's buffers live as long as the
# pass, and the file of a store is the user's. What a fit keeps is one of them,
# fit$rows, see R/rows-kept.R.

# fields: see the constructors, rows_memory() and its kin.
tall_rows <- function(member, fields) {
  absent <- setdiff(rows_fields[[member]], names(fields))
  if (length(absent) > 0) {
    stop("Rows of \"", member, "\" lack ", absent[[1]], ".")
  }
  # of a database or a store what is not computed there is passed over
  member <- c(
    member,
    if (member == "pilot") "memory",
    if (member == "summed") "database",
    if (member %in% c("database", "store", "grouped", "summed", "grown")) {
      "passes"
    }
  )
  structure(fields, class = c(paste0("tall_rows_", member), "tall_rows"))
}

rows_fields <- list(
  memory = c("x", "y", "weights", "offset", "name", "facts"),
  pilot = c("x", "y", "weights", "offset", "stands", "is_alike", "is_every"),
  frame = c("frame", "request"),
  matrix = c("x", "y", "weights", "offset", "family"),
  passes = "request",
  database = "request",
  store = c("request", "design", "x"),
  grouped = c("source", "request", "x", "groups", "file"),
  summed = c("request", "design", "in_sql", "summed"),
  tied = c("request", "design", "tied", "facts"),
  grown = c("request", "design", "fresh", "kept")
)

is_passed_rows <- function(rows) {
  inherits(rows, "tall_rows_passes")
}

# All of them in memory, class tall_rows_memory: of a store the design stays in
# its file.
whole_rows <- function(rows) {
  UseMethod("whole_rows")
}

# Other rows, of a data frame, to be read as these were: the same member, or
# class tall_rows_memory.
new_rows <- function(rows, data) {
  UseMethod("new_rows")
}

# f(chunk, n, first) for each chunk of rows: buffers x, y, weights and offset
# (NULL: none), of which n rows count, and the number of rows before. The next
# chunk takes their place. list(n_row, n_missing, digest). show: list(label,
# refresh).
each_chunk <- function(rows, f, show = list(refresh = 0)) {
  UseMethod("each_chunk")
}

# What a scan finds of rows whose design is not known yet: see R/design-look.R.
look <- function(rows, refresh = 0) {
  UseMethod("look")
}

# One pass for the sums at theta and the facts of the columns: list(log_lik,
# gradient, hessian, facts, n_missing). pass: its number, to show.
sums_at <- function(rows, theta, control, pass = 1) {
  UseMethod("sums_at")
}

# Sums of products of a Gaussian response, as product_sums() has them, and the
# facts of the columns: one pass.
products_of <- function(rows, control) {
  UseMethod("products_of")
}

# list(rss, gradient = X'W r) at beta: one pass.
residuals_of <- function(rows, beta, control) {
  UseMethod("residuals_of")
}

# One pass: the rows that it drew, each with its count and bound psi, and the
# sums where it is. found: theta, chol and facts of passes before; draw: see
# chunk_draw().
take_rows_ahead <- function(rows, found, draw, control) {
  UseMethod("take_rows_ahead")
}

# One pass: the rows with alike ones counted as one, class tall_rows_tied; or,
# where too many differ and theta is given, as they are, with the sums there as
# `met`.
tie_rows <- function(rows, control, theta = NULL) {
  UseMethod("tie_rows")
}
