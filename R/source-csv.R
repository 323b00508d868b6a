# tall_csv(): text files with separators, read in pieces of whole records
# (R/source-csv-records.R), which a package for such files, or R, makes columns
# of (R/source-csv-parse.R).

#' Rows in text files
#'
#' Rows that lie in files of values with separators (CSV, TSV), plain or
#' compressed, read block by block by \pkg{data.table} or \pkg{readr}, whichever
#' is there, or by R itself.
#'
#' @param paths (strings) Paths of files, in the order of their rows, or of
#'   folders: the files in one, and in folders within it, whose names end in
#'   `.csv`, `.tsv` or `.txt`, also with `.gz`, `.bz2` or `.xz`, in alphabetical
#'   order. The first line of each file has the names of its columns.
#' @param columns (strings or `NULL`) Names of the columns that the source is to
#'   have; `NULL`: all of them.
#' @param types (named strings or `NULL`) Types of some columns, such as `c(zip
#'   = "character")`: `"numeric"`, `"character"`, `"logical"` or `"Date"`
#'   (`YYYY- MM-DD`). Others are of the type that their first rows are of.
#' @param guess (whole number or `Inf`) How many rows that are; `Inf`: all,
#'   which is a pass over the files.
#' @param sep (string or `NULL`) What separates values, one character; `NULL`:
#'   that of comma, semicolon, tab and `|` which the first line has most of.
#' @param dec (string) The decimal point: `"."` or `","`.
#' @param quote (string) What values with separators or line ends in them stand
#'   in, twice within them for one; `""`: nothing.
#' @param na (strings) What stands for a missing value, quoted or not.
#'
#' @details
#' Line ends within quotes are values, so that a record may have several lines;
#' lines without anything are left out, as is white space around values that are
#' not quoted. Text is UTF-8. `TRUE`, `FALSE`, `true` and `false` are logical
#' values. Whole numbers of 16 digits or more are text, since a double does not
#' hold them. A column whose first rows are all missing is numeric.
#'
#' Where a later row does not have the type of its column there is an error that
#' names row, column and value, and how to say the type, rather than a column
#' that changes, or a missing value.
#'
#' How many rows there are only a pass tells. Workers may pass over one file
#' each. Where rows are read many times, [tall_store()] or Parquet is faster.
#'
#' @return An object of classes `tall_csv` and `tall_source`, see [tall_source].
#' @section Conditions:
#' `tall_error_data`, with the field `file`, for files that are not there, or
#' cannot be read, and for lines of names that are not the same in all;
#' `tall_error_source`, with the fields `file`, `row` and `column`, for values
#' of other types, records with more or fewer values than names, quotes that do
#' not end and text that is not UTF-8; `tall_error_input` for columns that are
#' not there.
#' @seealso [tall_parquet()], [tall_stream()]
#' @examples
#' file <- tempfile(fileext = ".csv")
#' write.csv(mtcars, file, row.names = FALSE)
#' source <- tall_csv(file, c("mpg", "wt", "am"))
#' source_head(source)
#' fit <- tall_glm(mpg ~ wt, data = source, seed = 1, refresh = 0)
#'
#' # the same
#' fit <- tall_glm(mpg ~ wt, data = file, seed = 1, refresh = 0)
#' unlink(file)
#' @export
tall_csv <- function(
  paths,
  columns = NULL,
  types = NULL,
  guess = 10000,
  sep = NULL,
  dec = ".",
  quote = "\"",
  na = c("", "NA")
) {
  check_given(paths)
  if (!is.character(paths) || length(paths) == 0 || anyNA(paths)) {
    abort_expected(paths, "paths of files or folders")
  }
  if (!is.null(columns) && (!is.character(columns) || anyNA(columns))) {
    abort_expected(columns, "names of columns or NULL")
  }
  guess <- if (!identical(guess, Inf)) check_count(guess) else guess
  format <- check_csv_format(sep, dec, quote, na)
  paths <- unlist(
    lapply(paths, files_in, pattern = csv_pattern, noun = "*.csv"),
    use.names = FALSE
  )
  format$sep <- sep %||% guess_separator(paths[[1]], format)
  known <- csv_names(paths, format)
  check_csv_types(types, known)
  if (!is.null(columns)) {
    check_known(columns, known, "column", arg = "columns")
  }
  columns <- if (is.null(columns)) known else unique(columns)
  of_columns <- stats::setNames(rep("character", length(known)), known)
  source <- new_csv(paths, columns, of_columns, format)
  source$types[columns] <- guess_types(source, types, guess)
  source
}

csv_pattern <- "[.](csv|tsv|txt)([.](gz|bz2|xz))?$"

# types: of every column of the files, by name; format: list(sep, dec, quote,
# na, engine).
new_csv <- function(paths, names, types, format) {
  source <- list(paths = paths, names = names, types = types, format = format)
  structure(source, class = c("tall_csv", "tall_source"))
}

check_csv_format <- function(sep, dec, quote, na) {
  check_string(sep, allow_null = TRUE)
  if (!is.null(sep) && nchar(sep) != 1) {
    abort_expected(sep, "one character or NULL")
  }
  dec <- check_choice(dec, c(".", ","))
  check_string(quote)
  if (nchar(quote) > 1) {
    abort_expected(quote, "one character, or \"\"")
  }
  if (!is.character(na) || anyNA(na)) {
    abort_expected(na, "strings")
  }
  list(sep = sep, dec = dec, quote = quote, na = na, engine = csv_engine())
}

check_csv_types <- function(types, known) {
  if (is.null(types)) {
    return(invisible())
  }
  is_named <- is.character(types) && !is.null(names(types)) &&
    !anyDuplicated(names(types))
  if (!is_named) {
    abort_expected(types, "types of columns, by their names, or NULL")
  }
  check_known(names(types), known, "column", arg = "types")
  for (type in types) {
    check_choice(type, text_types, arg = "types")
  }
}

# ---- names and types ---------------------------------------------------------

# Of the first line, quotes and what is in them aside.
guess_separator <- function(path, format) {
  reader <- record_reader(path, format)
  on.exit(reader$close())
  line <- reader$read(1)$text %||% ""
  if (nzchar(format$quote)) {
    quoted <- paste0(format$quote, "[^", format$quote, "]*", format$quote)
    line <- gsub(quoted, "", line)
  }
  marks <- c(",", ";", "\t", "|")
  n <- vapply(marks, function(mark) {
    sum(lengths(regmatches(line, gregexpr(mark, line, fixed = TRUE))))
  }, 0L)
  marks[[which.max(n)]]
}

# Of all files: the same, in whatever order.
csv_names <- function(paths, format) {
  found <- lapply(paths, function(path) {
    reader <- record_reader(path, format)
    on.exit(reader$close())
    read_csv_names(reader, path, format)
  })
  for (k in seq_along(paths)) {
    other <- setdiff(union(found[[k]], found[[1]]),
                     intersect(found[[k]], found[[1]]))
    if (length(other) > 0) {
      abort_file(
        c(
          "All files must have the same columns.",
          x = "{.field {other[[1]]}} is not in both {.path {paths[[k]]}} and
               {.path {paths[[1]]}}."
        ),
        paths[[k]]
      )
    }
  }
  found[[1]]
}

read_csv_names <- function(reader, path, format) {
  piece <- reader$read(1)
  if (is.null(piece)) {
    abort_file("{.path {path}} has no line of names.", path)
  }
  names <- scan(
    text = sub("^\ufeff", "", split_records(piece, format)),
    what = "",
    sep = format$sep,
    quote = format$quote,
    strip.white = TRUE,
    quiet = TRUE,
    na.strings = character()
  )
  empty <- which(!nzchar(names))
  names[empty] <- paste0("V", empty)
  twice <- names[duplicated(names)]
  if (length(twice) > 0) {
    abort_file(
      "{.path {path}} has two columns {.field {twice[[1]]}}.",
      path
    )
  }
  gsub(line_mark, "\n", names, fixed = TRUE)
}

# Of the columns that the source has: what the user says, or what the first rows
# are of. source: all of whose types are "character".
guess_types <- function(source, types, guess) {
  ask <- setdiff(source$names, names(types))
  found <- list()
  if (length(ask) > 0) {
    source_each(source, ask, function(block) {
      rows <- block_frame(block, seq_len(min(block$n, guess - block$row + 1)))
      found[[length(found) + 1]] <<- vapply(rows, function(x) {
        text_type(with_point(x, source$format$dec))
      }, "")
      block$row + block$n <= guess
    })
  }
  of <- vapply(source$names, function(name) {
    if (name %in% names(types)) {
      return(types[[name]])
    }
    seen <- vapply(found, `[[`, "", name)
    seen <- unique(seen[!is.na(seen)])
    switch(min(length(seen), 2) + 1, "numeric", seen, "character")
  }, "")
  unname(of)
}

# ---- as a source -------------------------------------------------------------

#' @export
source_open.tall_csv <- function(source, columns = NULL) {
  columns <- intersect(columns %||% source$names, source$names)
  readers_in_turn(length(source$paths), function(k) {
    open_csv(source$paths[[k]], source, columns)
  })
}

#' @export
source_shards.tall_csv <- function(source) {
  lapply(source$paths, new_csv, source$names, source$types, source$format)
}

#' @export
names_without_pass.tall_csv <- function(source) {
  source_names(source)
}

#' @export
source_names.tall_csv <- function(source) {
  source$names
}

# A reader of one file.
open_csv <- function(path, source, columns) {
  format <- source$format
  reader <- record_reader(path, format)
  names <- read_csv_names(reader, path, format)
  absent <- setdiff(columns, names)
  if (length(absent) > 0) {
    reader$close()
    abort_absent(absent, names, paste("The file", path), NULL)
  }
  next_block <- function() {
    piece <- reader$read(setting("block_rows"))
    if (is.null(piece)) {
      return(NULL)
    }
    parsed <- parse_csv(piece, source$types[names], columns, format)
    list(columns = parsed[columns], first = 0, n = piece$n)
  }
  list(next_block = next_block, close = reader$close)
}
