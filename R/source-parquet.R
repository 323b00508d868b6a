# tall_parquet(): files of which nanoparquet reads the columns that are needed,
# one file at a time.

#' Rows in Parquet files
#'
#' Rows that lie in files of the Parquet format, read by the package
#' \pkg{nanoparquet}, a file at a time and of each only the columns that are
#' needed. Factors come back as factors where R wrote the file.
#'
#' @param paths (strings) Paths of files, in the order of their rows, or of
#'   folders: the files in one, and in folders within it, whose names end in
#'   `.parquet`, in alphabetical order.
#' @param columns (strings or `NULL`) Names of the columns that the source is to
#'   have; `NULL`: all of them.
#'
#' @details
#' Folders named `key=value`, as of `arrow::write_dataset()`, Hive and Spark,
#' are columns: of `flights/year=2013/month=1/part-0.parquet` all rows have
#' `year` 2013 and `month` 1. They come after the columns of the files, and are
#' numbers, logical values or dates where the values of all folders are, else
#' text; `__HIVE_DEFAULT_PARTITION__` is a missing value. Names that begin with
#' `_` or a dot are left out. In alphabetical order `month=10` comes before
#' `month=2`, which matters to the order of rows alone.
#'
#' How many rows a file has stands in it, so that they are known without a pass.
#' Workers may pass over one file each. A file is read whole: one of which what
#' is needed would take more than a gigabyte in memory, 8 bytes a number, is
#' refused. The package \pkg{arrow} reads such files in pieces, as
#' `tall_stream(function() arrow::Scanner$create(arrow::open_dataset(path),
#' projection = columns)$ToRecordBatchReader())`.
#'
#' @return An object of classes `tall_parquet` and `tall_source`, see
#'   [tall_source].
#' @section Conditions:
#' `tall_error_data`, with the field `file`, for a file that is not there or is
#' not Parquet, and folders whose keys differ or are columns, too;
#' `tall_error_source`, with the field `file`, for one that is too large, and as
#' other sources; `tall_error_unsupported` without \pkg{nanoparquet}.
#' @seealso [tall_stream()]
#' @examplesIf requireNamespace("nanoparquet", quietly = TRUE)
#' file <- tempfile(fileext = ".parquet")
#' nanoparquet::write_parquet(mtcars, file)
#' source <- tall_parquet(file, c("mpg", "wt"))
#' source
#' source_head(source)
#' unlink(file)
#' @export
tall_parquet <- function(paths, columns = NULL) {
  check_given(paths)
  if (!is.character(paths) || length(paths) == 0 || anyNA(paths)) {
    abort_expected(paths, "paths of files or folders")
  }
  if (!is.null(columns) && (!is.character(columns) || anyNA(columns))) {
    abort_expected(columns, "names of columns or NULL")
  }
  if (!requireNamespace("nanoparquet", quietly = TRUE)) {
    abort_tall("unsupported", c(
      "{.fn tall_parquet} needs the package {.pkg nanoparquet}.",
      i = "{.code install.packages(\"nanoparquet\")}"
    ))
  }
  files <- lapply(paths, files_in, pattern = "[.]parquet$", noun = "*.parquet")
  keys <- folder_keys(unlist(files), unlist(lapply(files, names)))
  paths <- unlist(files, use.names = FALSE)
  n_row <- vapply(paths, parquet_rows, 0, USE.NAMES = FALSE)
  known <- parquet_names(paths[[1]])
  check_new_keys(keys, known, paths[[1]])
  known <- c(known, names(keys))
  if (!is.null(columns)) {
    check_known(columns, known, "column", arg = "columns")
  }
  names <- if (is.null(columns)) known else unique(columns)
  new_parquet(paths, n_row, names, keys)
}

# keys: a data frame with a row for each file: columns that all of its rows
# have.
new_parquet <- function(paths, n_row, names, keys) {
  source <- list(paths = paths, n_row = n_row, names = names, keys = keys)
  structure(source, class = c("tall_parquet", "tall_source"))
}

# ---- files -------------------------------------------------------------------

parquet_rows <- function(path) {
  info <- tryCatch(nanoparquet::read_parquet_info(path), error = function(e) {
    abort_tall(
      "data",
      "{.path {path}} is not a Parquet file that can be read.",
      file = path,
      parent = e
    )
  })
  as.double(info$num_rows)
}

# The first row is the table itself.
parquet_names <- function(path) {
  schema <- nanoparquet::read_parquet_schema(path)[-1, ]
  schema$name[is.na(schema$num_children)]
}

# Those of the columns that the file has, and of its keys; n_row: its rows.
read_parquet_file <- function(path, n_row, columns, keys) {
  from_file <- setdiff(columns, names(keys))
  read <- read_parquet_columns(path, n_row, from_file)
  of_keys <- lapply(keys[intersect(columns, names(keys))], rep, n_row)
  frame_of(c(read, of_keys), n_row)
}

read_parquet_columns <- function(path, n_row, columns) {
  if (length(columns) > 0) {
    columns <- intersect(columns, parquet_names(path))
  }
  if (length(columns) == 0) {
    return(list())
  }
  n_byte <- 8 * n_row * length(columns)
  if (n_byte > setting("parquet_bytes")) {
    size <- format(structure(n_byte, class = "object_size"), units = "GB")
    abort_source(
      c(
        "{.path {path}} would take {size} in memory: it is read whole.",
        i = "The package {.pkg arrow} reads it in pieces:
             {.code tall_stream(function() arrow::Scanner$create(
             arrow::open_dataset(path))$ToRecordBatchReader())}. Or write it
             as several files."
      ),
      file = path
    )
  }
  as.list(nanoparquet::read_parquet(path, columns))
}

# ---- as a source -------------------------------------------------------------

#' @export
source_open.tall_parquet <- function(source, columns = NULL) {
  columns <- intersect(columns %||% source$names, source$names)
  readers_in_turn(length(source$paths), function(k) {
    data <- read_parquet_file(
      source$paths[[k]],
      source$n_row[[k]],
      columns,
      source$keys[k, , drop = FALSE]
    )
    frame_reader(data, columns)
  })
}

#' @export
source_shards.tall_parquet <- function(source) {
  lapply(seq_along(source$paths), parquet_file, source = source)
}

# The source of one of the files.
parquet_file <- function(k, source) {
  new_parquet(
    source$paths[[k]],
    source$n_row[[k]],
    source$names,
    source$keys[k, , drop = FALSE]
  )
}

#' @export
names_without_pass.tall_parquet <- function(source) {
  source_names(source)
}

#' @export
source_names.tall_parquet <- function(source) {
  source$names
}

#' @export
source_size.tall_parquet <- function(source) {
  sum(source$n_row)
}

# Files without any of the rows are not read.
#' @export
source_fetch.tall_parquet <- function(source, rows, columns = NULL) {
  rows <- check_source_rows(rows, source_size(source))
  names <- columns %||% source$names
  check_fetched(names, source$names, source)
  if (length(rows) == 0) {
    return(fetch_none(source, names))
  }
  file <- findInterval(rows - 1, cumsum(source$n_row)) + 1
  before <- cumsum(source$n_row) - source$n_row
  found <- lapply(sort(unique(file)), function(k) {
    at <- which(file == k)
    found <- source_fetch.default(
      parquet_file(k, source),
      rows[at] - before[[k]],
      names
    )
    list(at = at, rows = found)
  })
  all <- bind_frames(lapply(found, `[[`, "rows"))
  turn <- order(unlist(lapply(found, `[[`, "at")))
  frame_of(lapply(all, column_rows, turn), length(turn))
}
