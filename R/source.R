# Sources: where rows lie. A member is a class with a method of source_open()
# and, where it can do better than a pass, of the others; whoever reads asks for
# source_reader() or source_each() and knows no member.

#' Where rows lie
#'
#' A *source* is anything that hands out its rows block by block, from the first
#' to the last, as often as it is asked to: a data frame, a matrix, rows in a
#' file ([tall_store()]), text files ([tall_csv()]), Parquet files
#' ([tall_parquet()]), a stream ([tall_stream()]). `as_source()` makes one of
#' what users give. A class of your own becomes one by a method of
#' `source_open()`, below the class `tall_source`; the other generics have
#' defaults that make a pass.
#'
#' @param x What is to be a source: a data frame (also a tibble or a
#'   data.table), a numeric matrix, a sparse one of \pkg{Matrix}, a
#'   [tall_store()], [tall_csv()], [tall_parquet()] or [tall_stream()], or paths
#'   of files for the second and third, by the ends of their names; a lazy table
#'   (`dplyr::tbl()`, or a query that starts with one), or a list of such,
#'   which are *shards*: their rows follow one another, and workers may share
#'   them.
#' @param source (`tall_source`) Where rows lie.
#' @param columns (strings or `NULL`) Names of the columns that are needed;
#'   `NULL`: all of them.
#' @param rows (positive whole numbers) Rows, counted from 1, in any order.
#' @param ... Not used.
#'
#' @details
#' `source_open(source, columns)` starts a pass and returns a *reader*, a list
#' of two functions. `next_block()` returns the next block, and `NULL` when
#' there are no more; `close()` ends the pass, early or not, and may be called
#' twice. A block is a list of
#' * `columns`: the columns that were asked for, a named list of vectors
#'   (columns of data frames, of one length);
#' * `first`: how many of their values stand before the block's;
#' * `n`: the number of its rows, which may be 0.
#'
#' Rows `first + 1` to `first + n` of the vectors are the block's. So a source
#' that has its columns in memory hands out the same vectors each time, with
#' another `first`, and copies nothing. Every pass must give the same rows in
#' the same order, and every block the same columns, of the same types: integers
#' and doubles are one type, and factors need not have the same levels.
#'
#' @section Tables in a database:
#' Of a lazy table [tall_glm()] lets the database compute: counts and levels, a
#' pilot of some ten thousand rows, sums over all rows at one point (about
#' \eqn{d^2/2}{d^2/2} numbers for \eqn{d}{d} columns), and the rows that exact
#' steps will look at. Terms are translated by \pkg{dbplyr}; arithmetic, `I()`,
#' `log()`, `factor()`, comparisons and what else it knows, and their
#' interactions. What R and the database make of the pilot's rows must be equal
#' to 1e-8, or the term is refused by its name. What cannot be said in SQL
#' (splines, the links probit and cloglog, functions of one's own) is no error:
#' the rows are streamed to R then, which is said, pass by pass.
#'
#' * *Few kinds of rows.* Where terms are columns as they are, of text or of
#'   whole numbers of a small range, one `GROUP BY` of them has all that is
#'   needed, and nothing else is read; the draws of a `seed` are the same then
#'   from call to call. Of a factor with more than 1,000 levels the rows are
#'   brought to memory, which is said with its number, or refused where their
#'   design matrix does not fit.
#' * *Random numbers* by which rows are drawn are the engine's, so that neither
#'   `seed` nor `set.seed()` makes the draws reproducible, nor are they those of
#'   the same rows in a data frame: means differ by Monte Carlo error, 0.02
#'   posterior standard deviations for 4,000 draws. They are exact all the same.
#'   Gaussian responses need sums alone, and have the same draws but for
#'   rounding. With `in_database = FALSE` all are reproducible where the rows
#'   have an order, such as that of `dplyr::arrange()`.
#' * *One state of the data.* A fit reads in one transaction: repeatable read
#'   and read-only in PostgreSQL, where a transaction of the user's own is left
#'   as it is. DuckDB gives a transaction up at any error: within the user's own
#'   the rows are streamed there. Where there are no transactions counts and
#'   sums of all passes are compared. Nothing is written, and no temporary table
#'   made.
#' * *Shards.* Of a list of lazy tables, such as parts of one table on several
#'   servers, each computes its own sums, which are added, and draws its rows.
#'   One after another does so: for all at the same time, by the workers of a
#'   [future::plan()], give functions that connect to [tall_table()].
#' * *ClickHouse.* Its rows are streamed, which a message says. Its SQL lacks
#'   what passes need (version 18.16, by \pkg{RClickhouse}): a missing value
#'   cannot be cast to a plain double, a name that a query gives hides the
#'   column of that name in the same query, NaN equals nothing, `WITH` takes no
#'   queries, random numbers have 32 bits, there are no transactions, and a
#'   statement that cannot be parsed ends the connection. Of a `Distributed`
#'   table a query within a query brings the rows to one server: give the local
#'   table of each server to [tall_table()], and workers stream them.
#'   \pkg{RClickhouse} holds all of a result in memory, so that a table beyond
#'   that is a list of parts, by ranges of its key. `predict()` streams,
#'   `augment()` is a `tall_error_unsupported`.
#' * *Averages.* [average_predictions()] and its kin let the database sum, too.
#' * *Types.* All that is summed is a double, in every engine. Whole numbers of
#'   64 bits are doubles, and an error from \eqn{2^{53}}{2^53} on. SQLite has
#'   neither logical values nor factors: what is text in the database is a
#'   factor in the formula.
#'
#' @return
#' * `as_source()`: an object below the class `tall_source`.
#' * `source_open()`: a reader, see above.
#' * `source_head()`: a data frame of a few rows, which shows the types.
#' * `source_names()`: the names of the columns.
#' * `source_size()`: the number of rows, `NA` where only a pass can tell.
#' * `source_fetch()`: a data frame of those rows, in that order.
#' @section Conditions:
#' `tall_error_input` for what cannot be a source; `tall_error_source` where one
#' does not give what it must, with the fields `block` and `row`, where it was,
#' and `column`, the name of the column at fault.
#' @examples
#' source <- as_source(mtcars)
#' source
#' reader <- source_open(source, c("mpg", "cyl"))
#' str(reader$next_block())
#' reader$close()
#' source_fetch(source, c(3, 1), "mpg")
#' source_names(source)
#' source_size(source)
#'
#' # a source of one's own: squares that lie nowhere
#' source_open.squares <- function(source, columns = NULL) {
#'   at <- 0
#'   list(
#'     next_block = function() {
#'       if (at < source$n) {
#'         at <<- at + 1
#'         list(columns = list(x = at, y = at^2), first = 0, n = 1)
#'       }
#'     },
#'     close = function() NULL
#'   )
#' }
#' registerS3method("source_open", "squares", source_open.squares)
#' squares <- structure(list(n = 4), class = c("squares", "tall_source"))
#' source_fetch(squares, 4:2)
#' @name tall_source
NULL

#' @rdname tall_source
#' @export
as_source <- function(x, ...) {
  UseMethod("as_source")
}

#' @rdname tall_source
#' @export
source_open <- function(source, columns = NULL) {
  UseMethod("source_open")
}

#' @rdname tall_source
#' @export
source_head <- function(source, columns = NULL) {
  UseMethod("source_head")
}

#' @rdname tall_source
#' @export
source_names <- function(source) {
  UseMethod("source_names")
}

#' @rdname tall_source
#' @export
source_size <- function(source) {
  UseMethod("source_size")
}

#' @rdname tall_source
#' @export
source_fetch <- function(source, rows, columns = NULL) {
  UseMethod("source_fetch")
}

# Names of columns where a source can read a few of them for less than all, and
# tells their names without a pass; NULL otherwise.
names_without_pass <- function(source) {
  UseMethod("names_without_pass")
}

#' @export
names_without_pass.default <- function(source) {
  NULL
}

# Those columns of all rows, where they lie in memory; NULL: they lie elsewhere.
held_columns <- function(source, columns) {
  UseMethod("held_columns")
}

#' @export
held_columns.default <- function(source, columns) {
  NULL
}

is_in_memory <- function(source) {
  !is.null(held_columns(source, character()))
}

# Sources whose rows, one after the other, are those of the source: what several
# workers can pass over at a time.
source_shards <- function(source) {
  UseMethod("source_shards")
}

#' @export
source_shards.default <- function(source) {
  list(source)
}

# How many rows source_head() shows at most.
head_rows <- 10

# state: list(block, row, ...), where it was.
abort_source <- function(
  message,
  state = NULL,
  column = NULL,
  ...,
  .envir = parent.frame()
) {
  abort_tall(
    "source",
    message,
    block = state$block,
    row = state$row,
    column = column,
    ...,
    .envir = .envir
  )
}

#' @export
print.tall_source <- function(x, ...) {
  check_no_dots(...)
  size <- source_size(x)
  rows <- if (is.na(size)) "rows not counted" else count_noun(size, "row")
  cat("<tall_source> ", source_label(x), ", ", rows, "\n", sep = "")
  invisible(x)
}

# What it is, in a few words that follow an article.
source_label <- function(source) {
  label <- c(
    tall_source_frame = "a data frame",
    tall_source_matrix = "a matrix",
    tall_source_store = "rows in a file",
    tall_stream = "a stream of blocks",
    tall_parquet = "Parquet files",
    tall_csv = "text files",
    tall_table = "a table in a database",
    tall_shards = "shards"
  )[class(source)[[1]]]
  if (is.na(label)) paste0("<", class(source)[[1]], ">") else unname(label)
}
