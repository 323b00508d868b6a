# tall_stream(): a function that opens a stream of blocks, and lists of such.

#' Streams of blocks of rows
#'
#' Rows that come from anywhere, block by block: a large CSV file, the result of
#' a query, a file format of which another package has a reader. Passes go
#' through the stream from its beginning to its end, so that no more than a
#' block is in memory; each pass opens it anew.
#'
#' @param open (function, or list of functions) `open()` opens the stream at its
#'   beginning and returns one of
#'   * a function without arguments, which returns the next block, a data frame,
#'     each time it is called, and `NULL` when there are no more;
#'   * a list of two functions, `next_block` as above and `close`, which is
#'     called at the end of a pass, also where it ends early;
#'   * an Arrow stream: what `nanoarrow::as_nanoarrow_array_stream()` returns or
#'     takes, as a `RecordBatchReader` of the package \pkg{arrow}. Its columns
#'     are read in C: whole numbers (of 64 bits, or of 32 without sign: as
#'     doubles), numbers, booleans, text and dictionaries (factors); what else
#'     there is \pkg{nanoarrow} converts.
#'
#'   A list is one of *shards*: streams whose rows follow one another. Workers
#'   may pass over one each.
#'
#' @details Every pass must give the same rows in the same order: a query needs
#' an order, and rows must not change between passes. The columns of a formula
#' are compared from pass to pass, by their types and a sum of hashes of their
#' rows, whatever the order of these, and other rows are a `tall_error_source`.
#' Blocks must have the same columns, of the same types; they may be of any
#' length, and ten thousand to a hundred thousand rows are a good one.
#'
#' @return An object of classes `tall_stream` (`tall_shards` of a list) and
#'   `tall_source`, see [tall_source].
#' @inheritSection tall_source Conditions
#' @seealso [tall_parquet()]; [tall_store()] for rows that are read at random.
#' @examples
#' # a CSV file, 1,000 rows at a time; without colClasses each block would have
#' # the types that its own rows suggest
#' file <- tempfile(fileext = ".csv")
#' rows <- data.frame(x = rnorm(2500), group = rep(c("a", "b"), 1250))
#' write.csv(rows, file, row.names = FALSE)
#' stream <- tall_stream(function() {
#'   con <- file(file, "r")
#'   names <- scan(con, "", sep = ",", nlines = 1, quiet = TRUE)
#'   list(
#'     next_block = function() {
#'       # read.csv() fails where there are no lines left
#'       lines <- readLines(con, 1000)
#'       if (length(lines) > 0) {
#'         types <- c("numeric", "character")
#'         read.csv(text = lines, header = FALSE, col.names = names,
#'                  colClasses = types)
#'       }
#'     },
#'     close = function() close(con)
#'   )
#' })
#' stream
#' source_fetch(stream, c(1, 2500))
#' unlink(file)
#' @export
tall_stream <- function(open) {
  check_given(open)
  if (is.function(open)) {
    source <- list(open = open)
    return(structure(source, class = c("tall_stream", "tall_source")))
  }
  is_list <- is.list(open) && !is.data.frame(open) && length(open) > 0 &&
    all(vapply(open, is.function, TRUE))
  if (!is_list) {
    hint <- if (is.data.frame(open)) {
      "`as_source()` takes a data frame as it is."
    }
    expected <- "a function that opens a stream, or a list of such"
    abort_expected(open, expected, hint)
  }
  new_shards(lapply(open, tall_stream))
}

#' @export
source_open.tall_stream <- function(source, columns = NULL) {
  opened <- source$open()
  if (is.function(opened)) {
    opened <- list(next_block = opened, close = function() NULL)
  }
  is_reader <- is.list(opened) && is.function(opened$next_block) &&
    is.function(opened$close)
  if (inherits(opened, "tbl_lazy")) {
    abort_source(c(
      "A stream must give blocks of rows, not a lazy table.",
      i = "{.fn tall_table} takes functions that open lazy tables."
    ))
  }
  if (!is_reader) {
    return(open_arrow(opened, columns))
  }
  list(
    next_block = function() {
      data <- opened$next_block()
      if (is.null(data)) {
        return(NULL)
      }
      if (!is.data.frame(data)) {
        abort_source("A stream must give data frames, and NULL at the end, not
                      {describe(data)}.")
      }
      list(columns = pick_columns(data, columns), first = 0, n = nrow(data))
    },
    close = once(function() close_stream(opened$close))
  )
}

# ---- shards ------------------------------------------------------------------

new_shards <- function(shards) {
  structure(list(shards = shards), class = c("tall_shards", "tall_source"))
}

#' @export
as_source.list <- function(x, ...) {
  check_no_dots(...)
  if (length(x) == 0) {
    abort_no_source(x)
  }
  shards <- lapply(seq_along(x), function(k) {
    shard <- x[[k]]
    tryCatch(
      if (is.function(shard)) tall_stream(shard) else as_source(shard),
      tall_error_input = function(e) {
        if (is.null(e$rows_of)) {
          rlang::cnd_signal(e)
        }
        abort_no_source(x, k)
      }
    )
  })
  new_shards(stats::setNames(shards, names(x)))
}

#' @export
source_shards.tall_shards <- function(source) {
  unlist(lapply(source$shards, source_shards), recursive = FALSE)
}

# One after the other.
#' @export
source_open.tall_shards <- function(source, columns = NULL) {
  readers_in_turn(length(source$shards), function(k) {
    in_shard(k, length(source$shards), source_open(source$shards[[k]], columns))
  })
}

#' @export
names_without_pass.tall_shards <- function(source) {
  in_shard(1, length(source$shards), names_without_pass(source$shards[[1]]))
}

#' @export
source_names.tall_shards <- function(source) {
  names_without_pass(source) %||% names(source_head(source))
}

#' @export
held_columns.tall_shards <- function(source, columns) {
  parts <- lapply(source$shards, held_columns, columns)
  if (!any(vapply(parts, is.null, TRUE))) bind_columns(parts)
}

#' @export
source_size.tall_shards <- function(source) {
  sum(vapply(source$shards, source_size, 0))
}
