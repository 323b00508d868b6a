# Predictions and draws of many rows, written to a file or a table block by
# block. R/fit-write-rows.R walks the rows, R/fit-write-sinks.R writes blocks.

#' Predictions written to files and tables
#'
#' [predict()][predict.tall_regression], [posterior_predict()],
#' [posterior_epred()] and [posterior_linpred()][posterior-predict] of
#' regressions write what they would return, block by block, where they are
#' given `to`. Rows times draws may then be more than memory has.
#'
#' @name predictions-to
#' @aliases tall_written
#' @param x (`tall_written`) What these functions return with `to`.
#' @param ... Unused: other arguments are refused.
#'
#' @details
#' Rows are written in the order of `newdata`, or of the fit's data, and
#' numbered in it: `.row` is the row that the vector, or column that the matrix,
#' would have.
#'
#' `predict()` writes a line for each row, with the columns `fit` and, where
#' they are asked for, `se.fit`, `lwr` and `upr`; of several classes or times
#' one for each, such as `fit.setosa`; of networks those of the table.
#'
#' Files of draws have a line for each row with the columns `draw_1`, `draw_2`
#' and so on: the matrix, turned. Tables of a database may have few columns
#' only: their lines are `.row`, `.draw` and `value`. Where a matrix would be
#' an array, of several classes, each row has a line for each, by its column
#' `.category`. Classes that `posterior_predict()` draws are counted from 1, in
#' the order of the `levels` of what is returned.
#'
#' The same `seed` gives the same draws as without `to`, but for how products of
#' matrices are rounded. All draws are taken where their number is not said;
#' `predict()` takes as many as without `to`.
#'
#' Memory has a block of some 2 million numbers, and some copies of it, beside
#' `newdata`, which may be a [source][tall_source] that is read block by block.
#' With 4,000 draws a block has 500 rows. Each block that is added to a Parquet
#' file reads the file's index, which has an entry for each column and block:
#' for draws of more than some 10,000 rows take a folder, whose files are not
#' read again.
#'
#' Files are written under another name beside the final one, which they get at
#' the end; tables in a transaction, where the database has them: what fails or
#' is interrupted leaves nothing behind, and what was there before is kept. For
#' a table, rows that are read from a source are first written to the session's
#' temporary folder, since their connection may be the same.
#'
#' @section Where to:
#' `to` (string, or list of a connection and a name) Where to:
#' * `"file.parquet"`: a Parquet file, with a row group for each block;
#' * `"folder/"`, with a slash at its end: a folder of Parquet files, one for
#'   each block, which readers of many Parquet files take, as [tall_parquet()]
#'   does;
#' * `"file.csv"` or `"file.csv.gz"`: text, of 15 significant digits;
#' * `list(con, "name")`: a table of the \pkg{DBI} connection `con`, in place
#'   of the name also a `DBI::Id()`.
#'
#' `overwrite` (`TRUE` or `FALSE`) May a file, folder or table of that name
#' be replaced? Of folders only those with such Parquet files alone.
#'
#' @return An object of class `tall_written`, invisibly: a list of `to`,
#'   `format` (`"parquet"`, `"folder"`, `"csv"` or `"table"`), `n_row`, `n_draw`
#'   (`NULL` of `predict()`), `columns`, the names of the columns, and `levels`
#'   of drawn classes.
#' @section Conditions: `tall_error_input` if `to` has another ending, its
#'   folder does not exist, its connection is none or closed, it exists already,
#'   or there are no rows; `tall_error_unsupported` if the package
#'   \pkg{nanoparquet} or \pkg{DBI} is missing, or if new groups are allowed in
#'   rows of a source: their effects are drawn for all rows at once. Those of
#'   the functions themselves.
#' @seealso [augment()][fit-accessors] for predictions that a database makes,
#'   [average_predictions()] for averages over rows.
#' @examplesIf rlang::is_installed(c("nanoparquet", "rstantools"))
#' fit <- tall_glm(am ~ wt, mtcars, binomial(), iter = 500, seed = 1)
#' file <- tempfile(fileext = ".parquet")
#' written <- posterior_predict(fit, mtcars, seed = 1, to = file)
#' written
#' draws <- nanoparquet::read_parquet(file)
#' draws[1:3, 1:6]
#'
#' table <- tempfile(fileext = ".csv")
#' predict(fit, mtcars, type = "response", se.fit = TRUE, to = table)
#' head(read.csv(table), 3)
#' unlink(c(file, table))
NULL

# Where to write, a record: list(kind, path) of files, list(kind, con, name) of
# tables, and overwrite. NULL: nowhere.
check_to <- function(to, overwrite) {
  check_flag(overwrite)
  if (is.null(to)) {
    return(NULL)
  }
  where <- if (rlang::is_string(to)) {
    file_to(to)
  } else if (is.list(to) && !is.data.frame(to)) {
    table_to(to)
  } else {
    abort_to(to)
  }
  exists <- if (where$kind == "table") table_exists(where) else
    file.exists(where$path)
  if (exists) {
    check_overwrites(where, overwrite)
  }
  where$overwrite <- overwrite
  where
}

abort_to <- function(to) {
  abort_expected(
    to,
    paste(
      "a path that ends in \".parquet\", \".csv\", \".csv.gz\" or \"/\", or",
      "`list(con, \"name\")` of a database's connection and a table's name"
    ),
    arg = "to"
  )
}

file_to <- function(to) {
  kinds <- c(
    folder = "/$",
    parquet = "[.]parquet$",
    csv = "[.]csv([.]gz)?$"
  )
  found <- vapply(kinds, grepl, TRUE, to, ignore.case = TRUE)
  if (!any(found)) {
    abort_to(to)
  }
  kind <- names(kinds)[found]
  if (kind != "csv") {
    check_writes_with("nanoparquet", "Parquet files are written")
  }
  path <- path.expand(sub("/+$", "", to))
  parent <- dirname(path)
  if (path == "" || !dir.exists(parent)) {
    abort_input(
      "{.arg to} must be in a folder that exists: {.path {parent}} does not.",
      argument = "to",
      value = to
    )
  }
  list(kind = kind, path = path)
}

check_writes_with <- function(package, what) {
  if (!requireNamespace(package, quietly = TRUE)) {
    abort_tall(
      "unsupported",
      c(
        "{what} by the package {.pkg {package}}.",
        i = "{.code install.packages(\"{package}\")}"
      ),
      argument = "to"
    )
  }
}

table_to <- function(to) {
  if (length(to) != 2) {
    abort_to(to)
  }
  check_writes_with("DBI", "Tables are written")
  con <- to[[1]]
  name <- to[[2]]
  if (!inherits(con, "DBIConnection")) {
    abort_expected(con, "a DBI connection", arg = "to[[1]]")
  }
  if (!DBI::dbIsValid(con)) {
    abort_input(
      "{.arg to} must have a connection that is open: it was closed.",
      argument = "to"
    )
  }
  if (!inherits(name, "Id") && !(rlang::is_string(name) && nzchar(name))) {
    abort_expected(name, "the name of a table, or a DBI::Id()", arg = "to[[2]]")
  }
  list(kind = "table", con = con, name = name)
}

table_exists <- function(where) {
  DBI::dbExistsTable(where$con, where$name)
}

check_overwrites <- function(where, overwrite) {
  shown <- escape_cli(shown_to(where))
  if (!overwrite) {
    abort_input(
      c(
        paste0("{.arg to} exists already: ", shown, "."),
        i = "{.code overwrite = TRUE} replaces it."
      ),
      argument = "to"
    )
  }
  is_folder <- where$kind != "table" && dir.exists(where$path)
  if (is_folder && (where$kind != "folder" || !all(is_part(where$path)))) {
    abort_input(
      c(
        paste0("{.arg to} is a folder with other files: ", shown, "."),
        i = "Only a folder of such Parquet files alone is replaced."
      ),
      argument = "to"
    )
  } else if (where$kind == "folder" && !is_folder) {
    abort_input(
      paste0("{.arg to} is a file, and no folder: ", shown, "."),
      argument = "to"
    )
  }
}

# Of what a folder has, which are files that were written here?
is_part <- function(path) {
  grepl("^part-[0-9]+[.]parquet$", list.files(path, all.files = TRUE,
    no.. = TRUE))
}

# "the table flights", "preds.csv"
shown_to <- function(where) {
  if (where$kind != "table") {
    return(where$path)
  }
  name <- if (inherits(where$name, "Id")) where$name@name else where$name
  paste("the table", paste(name, collapse = "."))
}

# ---- what is returned --------------------------------------------------------

#' @rdname predictions-to
#' @export
print.tall_written <- function(x, ...) {
  check_no_dots(...)
  formats <- c(
    parquet = "a Parquet file",
    folder = "a folder of Parquet files",
    csv = "text",
    table = "a table of a database"
  )
  n_column <- length(x$columns)
  columns <- if (n_column > 6) {
    c(x$columns[1:3], "...", x$columns[[n_column]])
  } else {
    x$columns
  }
  cat(
    "<tall_written> ",
    if (is.null(x$n_draw)) "Predictions" else count_noun(x$n_draw, "draw"),
    " of ",
    count_noun(x$n_row, "row"),
    "\nin ",
    shown_to(list(
      kind = x$format,
      path = x$to,
      name = if (x$format == "table") x$to[[2]]
    )),
    ", ",
    formats[[x$format]],
    "\ncolumns: ",
    paste(columns, collapse = ", "),
    if (!is.null(x$levels)) {
      c("\nclasses, counted from 1: ", paste(x$levels, collapse = ", "))
    },
    "\n",
    sep = ""
  )
  invisible(x)
}
