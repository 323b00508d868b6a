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
#' the system ends processes that read beyond its end.
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
#' by now.
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
  path <- tempfile("writing-", dirname(file), ".tall")
  on.exit(unlink(path))
  write_store(row_blocks(x, block), path, file, type, rlang::current_env())
  place_store(path, file)
  open_store(file)
}

check_no_store_yet <- function(
  file,
  overwrite = FALSE,
  arg = "file",
  call = caller_env()
) {
  folder <- dirname(file)
  if (!dir.exists(folder)) {
    abort_file("There is no folder {.path {folder}}.", file, call = call)
  }
  if (!overwrite && file.exists(file)) {
    abort_input(
      c(
        "There is a file {.path {file}} already.",
        i = "{.code tall_store(x, file, overwrite = TRUE)} writes it anew;
             {.code tall_store(file = )} opens it."
      ),
      argument = arg,
      value = file,
      call = call
    )
  }
}

# What was written at `path` takes its place.
place_store <- function(path, file, call = caller_env()) {
  if (!file.rename(path, file)) {
    abort_file(
      "{.path {file}} cannot take the place of what is there.",
      file,
      call = call
    )
  }
}

# ---- writing -----------------------------------------------------------------

# list(n_row, next_block): rows that are known of, 0: nobody knows; a function
# that returns matrices of doubles, NULL at the end.
row_blocks <- function(x, block, call = caller_env()) {
  if (is.function(x)) {
    return(list(n_row = 0, next_block = x))
  }
  if (!is.list(x) || is.data.frame(x)) {
    x <- list(x)
  }
  for (part in x) {
    if (!is.data.frame(part)) {
      check_matrix(part, arg = "x", call = call)
    }
  }
  at <- 1
  start <- 0
  list(
    n_row = sum(vapply(x, nrow, 0L)),
    next_block = function() {
      if (at > length(x)) {
        return(NULL)
      }
      rows <- start + seq_len(min(block, nrow(x[[at]]) - start))
      out <- x[[at]][rows, , drop = FALSE]
      start <<- start + length(rows)
      if (start >= nrow(x[[at]])) {
        at <<- at + 1
        start <<- 0
      }
      out
    }
  )
}

# call: the user's. What a failure leaves is the caller's to remove.
write_store <- function(blocks, path, file, type, call) {
  writer <- new_store_writer(path, file, type, call, blocks$n_row)
  on.exit(writer$abandon())
  while (!is.null(x <- blocks$next_block())) {
    writer$add(x)
  }
  writer$finish()
}

# list(add(x), finish(), abandon()): rows are appended to the file at `path`,
# which is to be `file`. n_row: those that are known of, 0: nobody knows. What
# was not finished must be abandoned, also where it was.
new_store_writer <- function(path, file, type, call, n_row = 0) {
  writer <- NULL
  columns <- NULL
  n_written <- 0
  add <- function(x) {
    x <- check_block(x, n_written, columns, type, call)
    if (is.null(writer)) {
      columns <<- list(n = ncol(x), names = colnames(x))
      created <- create_file(path, type, n_row, columns)
      check_fault(created, file, call)
      writer <<- created
    }
    check_fault(.Call(ffi_file_append, writer, x), file, call)
    n_written <<- n_written + nrow(x)
  }
  finish <- function() {
    if (n_written == 0) {
      expected <- "rows, at least one"
      abort_expected(NULL, expected, seen = "none", arg = "x", call = call)
    }
    check_fault(.Call(ffi_file_finish, writer), file, call)
    if (n_written * columns$n > 2^26) {
      gc() # of the memory of blocks a model would not know
    }
  }
  abandon <- function() {
    if (!is.null(writer)) {
      .Call(ffi_file_abandon, writer)
    }
  }
  list(add = add, finish = finish, abandon = abandon)
}

create_file <- function(path, type, n_row, columns) {
  names <- as.character(columns$names)
  names[is.na(names)] <- ""
  bytes <- lapply(enc2utf8(names), function(name) c(charToRaw(name), as.raw(0)))
  .Call(
    ffi_file_create,
    path,
    type == "float",
    as.double(n_row),
    as.double(columns$n),
    as.raw(unlist(bytes))
  )
}

# A matrix of doubles as the file takes them. n_before: rows there are; columns:
# those of the first block, NULL: this one is.
check_block <- function(x, n_before, columns, type, call) {
  x <- check_numbers(x, call)
  if (!is.null(columns) && ncol(x) != columns$n) {
    seen <- paste("some of", count_noun(ncol(x), "column"))
    expected <- paste("blocks of", count_noun(columns$n, "column"))
    abort_expected(x, expected, seen = seen, arg = "x", call = call)
  }
  most <- if (type == "float") largest_float else most_of_data
  # NA is neither within nor beyond
  if (!isTRUE(max(x, 0) <= most && min(x, 0) >= -most)) {
    bad <- which(is.na(x) | abs(x) > most)
    abort_stored(x, bad[[1]], n_before, call)
  }
  if (!is.double(x)) {
    storage.mode(x) <- "double"
  }
  x
}

check_numbers <- function(x, call) {
  if (is.data.frame(x) && all(vapply(x, is_plain_numeric, TRUE))) {
    x <- as.matrix(x)
  }
  if (!is.matrix(x) || !is_plain_numeric(x) || ncol(x) == 0) {
    expected <- "numbers: a matrix or a data frame, or blocks of such"
    abort_expected(x, expected, arg = "x", call = call)
  }
  x
}

abort_stored <- function(x, index, n_before, call) {
  row <- n_before + (index - 1) %% nrow(x) + 1
  column <- (index - 1) %/% nrow(x) + 1
  name <- colnames(x)[column]
  where <- paste0(
    "row ", format_count(row), ", column ", column,
    if (length(name) == 1) paste0(" (`", name, "`)")
  )
  is_float <- is.finite(x[[index]]) && abs(x[[index]]) <= most_of_data
  if (is_float) {
    must <- "be within single precision"
    abort_value(x, index, must, arg = "x", call = call, where = where)
  }
  abort_number(x, index, arg = "x", call = call, where = where)
}

# ---- opening -----------------------------------------------------------------

open_store <- function(file, call = caller_env()) {
  head <- .Call(ffi_file_head, file)
  check_fault(head, file, call)
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

is_store <- function(x) {
  inherits(x, "tall_store")
}

# The rows of a design: read where they are in a file.
rows_in_memory <- function(x) {
  if (is_store(x)) as.matrix(x) else x
}

# The file is there and has the rows that it had.
check_store <- function(x, arg = caller_arg(x), call = caller_env()) {
  is_whole <- is.list(x) && rlang::is_string(unclass(x)$file) &&
    rlang::is_string(unclass(x)$hash) && length(unclass(x)$dim) == 2
  if (!is_whole) {
    abort_corrupt(paste0("`", arg, "`"), "file", call = call)
  }
  now <- open_store(x$file, call)
  parts <- c("type", "dim", "names", "hash")
  if (!identical(unclass(now)[parts], unclass(x)[parts])) {
    abort_file(
      c(
        "{.path {x$file}} has other rows than it had.",
        i = "{.code tall_store(file = )} opens it as it is now."
      ),
      x$file,
      call = call
    )
  }
  invisible(x)
}

# ---- what is wrong with a file -----------------------------------------------

# In the order of `enum tb_file_fault` in src/data/file.h. Each completes the
# path.
file_faults <- c(
  ok = "",
  unreadable = "cannot be read.",
  foreign = "is not a file that {.fn tall_store} wrote.",
  byte_order = "was written on a machine with another order of bytes.",
  version = "is of another version of the format.",
  damaged = "is damaged: its head is not what was written.",
  truncated = "is damaged: it ends before its rows do.",
  full = "does not fit: there is no space for it.",
  unwritable = "cannot be written.",
  memory = "cannot be mapped: there is not enough memory.",
  unsupported = "cannot be mapped: this system has no such way to read files."
)

# out: what a door returned, an integer where there is a fault.
check_fault <- function(out, file, call) {
  if (!is.integer(out) || out == 0) {
    return(invisible())
  }
  is_absent <- names(file_faults)[[out + 1]] == "unreadable" &&
    !file.exists(file)
  fault <- if (is_absent) "does not exist." else file_faults[[out + 1]]
  abort_file(paste("{.path {file}}", fault), file, call = call)
}

abort_file <- function(
  message,
  file,
  call = caller_env(),
  .envir = parent.frame()
) {
  abort_tall("data", message, file = file, call = call, .envir = .envir)
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
  out <- .Call(
    ffi_file_rows,
    x$file,
    unclass(x)$dim[[1]],
    unclass(x)$dim[[2]],
    as.double(rows)
  )
  check_fault(out, x$file, rlang::current_env())
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
