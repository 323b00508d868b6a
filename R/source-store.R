# tall_store(): rows that are written once to a file and mapped ever after.

#' Rows in a file
#'
#' Writes the rows of a design matrix to a file, block by block, or opens such a
#' file. Models map it instead of copying its rows to memory: what is used stays
#' in the system's cache as far as there is room, shared by all processes, and
#' data may be larger than memory.
#'
#' @param x (numeric matrix, data frame of numbers, list of such, or function)
#'   The rows, of a list one element after the other. A function has no
#'   arguments and returns the next rows each time it is called, and `NULL` when
#'   there are no more. Missing: `file` is opened.
#' @param file (string) The path of the file.
#' @param type (string) How numbers are kept: `"double"`, or `"float"`, rounded
#'   to 24 binary digits in half the space, see [model_glm()].
#' @param overwrite (`TRUE` or `FALSE`) May there be a file already? What maps
#'   it goes on with the old rows.
#' @param block (positive whole number) Rows of `x` that are turned at a time.
#'
#' @details
#' `model_glm(store, y)` and `tall_glm.fit(store, y)` take a store in place of a
#' matrix. A file is read-only: where sampling takes place in whitened
#' coordinates these are a frame around the model, at the cost of two
#' triangular products an iteration, instead of new rows. Draws in a model's own
#' coordinates, of an explicit kernel, are to the bit those that rows in memory
#' have. Fits keep the path of the file, and [sg_resume()] opens it again.
#'
#' The file is written under another name beside `file` and takes its place when
#' it is complete; space for it is reserved first, where the number of rows is
#' known. It is that of machines with the same order of bytes. Files are not
#' mapped on Windows. Do not change or shorten a file that a model has mapped:
#' the system ends processes that read beyond its end. What a process that was
#' killed left of a file, `writing-*.tall`, the next one that writes to the
#' folder removes. Without `overwrite` no file is replaced, also none that came
#' while rows were written.
#'
#' Before a model takes the rows of a file, a source hands them out or all are
#' read as a matrix, they are compared with the hash that was written with them:
#' one pass, once in an R process as long as the file is not written to. `x[i,
#' j]` of some rows does not compare.
#'
#' @return An object of class `tall_store`: what is known of the file, but its
#'   rows. `dim()` and `colnames()` are those of a matrix; `x[i, j]` and
#'   `as.matrix(x)` read rows.
#' @section Conditions:
#' `tall_error_input` for rows that cannot be written and for arguments that are
#' not as described; `tall_error_data`, with the field `file`, for a file that
#' is not there, is no such file, is damaged, of another version or machine, or
#' cannot be written, as when the disk is full: nothing is left of it then.
#' Also, where a model or fit is made of it again, for one that has other rows
#' by now. `tall_error_corrupt`, with the field `file`, for rows that are not
#' those that were written, as where a disk lost some.
#' @seealso [model_glm()], [tall_glm.fit()]
#' @examplesIf .Platform$OS.type != "windows"
#' file <- tempfile(fileext = ".tall")
#' store <- tall_store(cbind("(Intercept)" = 1, wt = mtcars$wt), file)
#' store
#' store[1:3, ]
#' model <- model_glm(store, mtcars$am)
#' identical(tall_store(file = file), store)
#' unlink(file)
#' @export
tall_store <- function(
  x,
  file,
  type = c("double", "float"),
  overwrite = FALSE,
  block = 65536
) {
  if (missing(file) && !missing(x) && rlang::is_string(x)) {
    abort_input(
      c(
        "{.arg file} must be given: {.arg x} is the rows that are written to
         it.",
        i = "{.code tall_store(file = \"{x}\")} opens a file."
      ),
      argument = "file",
      value = x
    )
  }
  check_given(file)
  check_string(file)
  if (missing(x)) {
    return(open_store(file))
  }
  type <- check_choice(type, c("double", "float"))
  check_flag(overwrite)
  block <- check_count(block, min = 1)
  check_no_store_yet(file, overwrite)
  blocks <- row_blocks(x, block)
  writer <- new_store_writer(file, type, blocks$n_row, overwrite)
  on.exit(writer$abandon())
  write_store(blocks, writer)
  open_store(file)
}

# ---- opening -----------------------------------------------------------------

open_store <- function(file) {
  head <- .Call(ffi_file_head, file)
  check_fault(head, file)
  names <- if (length(head$names) > 0) {
    ends <- which(head$names == 0)
    starts <- c(1, ends[-length(ends)] + 1)
    words <- Map(function(from, to) {
      rawToChar(head$names[seq_len(to - from) + from - 1])
    }, starts, ends)
    enc2utf8(`Encoding<-`(unlist(words), "UTF-8"))
  }
  structure(
    list(
      file = normalizePath(file),
      type = if (head$is_float) "float" else "double",
      dim = c(head$n_row, head$n_col),
      names = names,
      mean = head$mean,
      sd = head$sd,
      hash = head$hash
    ),
    class = "tall_store"
  )
}

# Its rows are those that were written. All of them are read, once in a process
# as long as the file stays as it is; what was written to it since is told by
# its times, unless these are so new that another write may have the same.
check_rows <- function(x) {
  times <- file_times(x$file)
  state <- list(x$hash, file.size(x$file), times)
  if (identical(stores_checked[[x$file]], state)) {
    return(invisible())
  }
  now <- as.double(Sys.time())
  fault <- .Call(ffi_file_check, x$file)
  if (names(file_faults)[[fault + 1]] == "altered") {
    abort_altered(x$file)
  }
  check_fault(fault, x$file)
  if (now - max(times) > setting("store_settles")) {
    stores_checked[[x$file]] <- state
  }
}

file_times <- function(file) {
  as.double(unlist(file.info(file, extra_cols = FALSE)[c("mtime", "ctime")]))
}

stores_checked <- new.env(parent = emptyenv())

is_store <- function(x) {
  inherits(x, "tall_store")
}

# The rows of a design: read where they are in a file.
rows_in_memory <- function(x) {
  if (is_store(x)) as.matrix(x) else x
}

# The file is there and has the rows that it had.
check_store <- function(x, arg = caller_arg(x)) {
  is_whole <- is.list(x) && rlang::is_string(unclass(x)$file) &&
    rlang::is_string(unclass(x)$hash) && length(unclass(x)$dim) == 2
  if (!is_whole) {
    abort_corrupt(paste0("`", arg, "`"), "file")
  }
  now <- open_store(x$file)
  parts <- c("type", "dim", "names", "hash")
  if (!identical(unclass(now)[parts], unclass(x)[parts])) {
    abort_file(
      c(
        "{.path {x$file}} has other rows than it had.",
        i = "{.code tall_store(file = )} opens it as it is now."
      ),
      x$file
    )
  }
  invisible(x)
}

# f(part) of the rows of a file, some at a time.
each_part <- function(x, f) {
  n <- nrow(x)
  size <- max(1, floor(2^20 / ncol(x)))
  for (first in seq(0, n - 1, by = size)) {
    f(x[seq.int(first + 1, min(first + size, n)), , drop = FALSE])
  }
}

# ---- as a matrix -------------------------------------------------------------

#' @export
dim.tall_store <- function(x) {
  shape <- unclass(x)$dim
  if (all(shape <= .Machine$integer.max)) as.integer(shape) else shape
}

#' @export
dimnames.tall_store <- function(x) {
  names <- unclass(x)$names
  if (!is.null(names)) list(NULL, names)
}

#' @export
`[.tall_store` <- function(x, i, j, ..., drop = TRUE) {
  check_no_dots(...)
  n_index <- nargs() - !missing(drop)
  if (n_index < 3) {
    abort_input(
      "Rows and columns of a store are read by {.code x[i, j]}.",
      argument = "i"
    )
  }
  rows <- seq_len(nrow(x))
  rows <- if (missing(i)) rows else rows[i]
  columns <- stats::setNames(seq_len(ncol(x)), colnames(x))
  columns <- if (missing(j)) columns else columns[j]
  if (anyNA(rows) || anyNA(columns)) {
    abort_input("There are no such rows or columns.", argument = "i")
  }
  check_store(x)
  if (length(rows) >= nrow(x)) {
    check_rows(x)
  }
  out <- .Call(
    ffi_file_rows,
    x$file,
    unclass(x)$dim[[1]],
    unclass(x)$dim[[2]],
    as.double(rows)
  )
  check_fault(out, x$file)
  dimnames(out) <- dimnames(x)
  out[, columns, drop = drop]
}

#' @export
as.matrix.tall_store <- function(x, ...) {
  check_no_dots(...)
  x[seq_len(nrow(x)), seq_len(ncol(x)), drop = FALSE]
}

#' @export
print.tall_store <- function(x, ...) {
  check_no_dots(...)
  shape <- unclass(x)$dim
  bytes <- prod(shape) * if (x$type == "float") 4 else 8
  size <- format(structure(bytes, class = "object_size"), units = "auto")
  cat(
    "<tall_store> ",
    count_noun(shape[[1]], "row"),
    ", ",
    count_noun(shape[[2]], "column"),
    if (x$type == "float") ", single precision",
    "\n",
    sep = ""
  )
  cat("  ", x$file, if (!file.exists(x$file)) " (not there)", "\n", sep = "")
  cat("  ", size, " of rows\n", sep = "")
  invisible(x)
}
