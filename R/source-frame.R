# Rows in memory: data frames, whose columns are handed out as they are, and
# matrices, of which the rows of a block are taken as columns.

#' @export
as_source.data.frame <- function(x, ...) {
  check_no_dots(...)
  source <- list(data = x)
  structure(source, class = c("tall_source_frame", "tall_source"))
}

#' @export
source_open.tall_source_frame <- function(source, columns = NULL) {
  frame_reader(source$data, columns)
}

# Blocks of one data frame, its columns whole.
frame_reader <- function(data, columns) {
  columns <- pick_columns(data, columns)
  n_row <- nrow(data)
  in_turns(n_row, setting("block_rows"), function(first, n) {
    list(columns = columns, first = first, n = n)
  })
}

# Those of the columns that are there; what is missing is told by the reader.
pick_columns <- function(data, columns) {
  data <- as.list(unclass(data))
  attributes(data) <- list(names = names(data))
  if (is.null(columns)) data else data[intersect(columns, names(data))]
}

# A reader of n_row rows, of which `block(first, n)` makes blocks.
in_turns <- function(n_row, size, block) {
  at <- 0
  list(
    next_block = function() {
      if (at >= n_row) {
        return(NULL)
      }
      first <- at
      at <<- min(at + size, n_row)
      block(first, at - first)
    },
    close = function() at <<- n_row
  )
}

#' @export
source_head.tall_source_frame <- function(source, columns = NULL) {
  source_fetch(source, seq_len(min(nrow(source$data), head_rows)), columns)
}

#' @export
source_names.tall_source_frame <- function(source) {
  names(source$data)
}

#' @export
source_size.tall_source_frame <- function(source) {
  as.double(nrow(source$data))
}

#' @export
source_fetch.tall_source_frame <- function(source, rows, columns = NULL) {
  rows <- check_source_rows(rows, nrow(source$data))
  found <- pick_columns(source$data, columns)
  check_fetched(columns, names(found), source)
  frame_of(lapply(found, column_rows, rows), length(rows))
}

#' @export
held_columns.tall_source_frame <- function(source, columns) {
  pick_columns(source$data, columns)
}

check_fetched <- function(columns, names, source) {
  absent <- setdiff(columns, names)
  if (length(absent) > 0) {
    abort_absent(absent, source_names(source), "The source", NULL)
  }
}

# ---- matrices ----------------------------------------------------------------

#' @export
as_source.matrix <- function(x, ...) {
  check_no_dots(...)
  if (!is_plain_numeric(x) && !is.logical(x)) {
    hint <- "`as.data.frame()` makes columns of it that may have any type."
    abort_expected(x, "a numeric matrix", hint)
  }
  source_matrix(x)
}

#' @export
as_source.Matrix <- function(x, ...) {
  check_no_dots(...)
  source_matrix(if (is_sparse(x)) as_columns(x) else as.matrix(x))
}

source_matrix <- function(x) {
  source <- list(x = x, names = given_columns(x))
  structure(source, class = c("tall_source_matrix", "tall_source"))
}

# Rows of a block of so many columns.
rows_of_width <- function(n_col) {
  most <- floor(setting("block_numbers") / max(1, n_col))
  max(setting("block_least"), min(setting("block_rows"), most))
}

#' @export
source_open.tall_source_matrix <- function(source, columns = NULL) {
  columns_reader(source, columns)
}

# width: how many columns are read.
columns_reader <- function(source, columns, width = length(at)) {
  names <- source$names
  at <- match(if (is.null(columns)) names else columns, names)
  at <- at[!is.na(at)]
  take <- matrix_taker(source$x, at)
  in_turns(nrow(source$x), rows_of_width(width), function(first, n) {
    columns <- matrix_columns(take(first + seq_len(n)), names[at])
    list(columns = columns, first = 0, n = n)
  })
}

# take(rows): those rows of the columns `at`. Rows of a sparse matrix are the
# columns of what is made here, where their numbers lie together.
matrix_taker <- function(x, at) {
  if (!is_sparse(x)) {
    return(function(rows) x[rows, at, drop = FALSE])
  }
  turned <- Matrix::t(x[, at, drop = FALSE])
  function(rows) {
    out <- matrix(0, length(rows), length(at))
    sizes <- turned@p[rows + 1] - turned@p[rows]
    from <- sequence(sizes, turned@p[rows] + 1)
    place <- cbind(rep.int(seq_along(rows), sizes), turned@i[from] + 1)
    out[place] <- turned@x[from]
    out
  }
}

matrix_columns <- function(x, names) {
  columns <- lapply(seq_len(ncol(x)), function(j) unname(x[, j]))
  stats::setNames(columns, names)
}

#' @export
source_head.tall_source_matrix <- function(source, columns = NULL) {
  source_fetch(source, seq_len(min(nrow(source$x), head_rows)), columns)
}

#' @export
source_names.tall_source_matrix <- function(source) {
  source$names
}

#' @export
source_size.tall_source_matrix <- function(source) {
  as.double(nrow(source$x))
}

#' @export
source_fetch.tall_source_matrix <- function(source, rows, columns = NULL) {
  rows <- check_source_rows(rows, nrow(source$x))
  names <- if (is.null(columns)) source$names else columns
  check_fetched(columns, source$names, source)
  x <- source$x[rows, match(names, source$names), drop = FALSE]
  frame_of(matrix_columns(as.matrix(x), names), length(rows))
}

#' @export
held_columns.tall_source_matrix <- function(source, columns) {
  at <- match(columns, source$names)
  lapply(stats::setNames(at, columns), function(j) {
    as.vector(source$x[, j])
  })
}

# ---- rows in a file ----------------------------------------------------------

# A matrix whose rows come from the file.
#' @export
as_source.tall_store <- function(x, ...) {
  check_no_dots(...)
  check_store(x)
  source <- list(x = x, names = given_columns(x))
  own <- c("tall_source_store", "tall_source_matrix")
  structure(source, class = c(own, "tall_source"))
}

# A row is read whole.
#' @export
source_open.tall_source_store <- function(source, columns = NULL) {
  check_rows(source$x)
  columns_reader(source, columns, width = ncol(source$x))
}

#' @export
held_columns.tall_source_store <- function(source, columns) {
  NULL
}
