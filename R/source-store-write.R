# How rows come to a file of tall_store(), which has its name once it is whole.

check_no_store_yet <- function(file, overwrite = FALSE, arg = "file") {
  folder <- dirname(file)
  if (!dir.exists(folder)) {
    abort_file("There is no folder {.path {folder}}.", file)
  }
  if (!overwrite && file.exists(file)) {
    abort_there(file, "There is a file {.path {file}} already.", arg)
  }
}

# because: a cli message that may tell `file`.
abort_there <- function(file, because, arg) {
  instead <- if (arg == "file") {
    "{.code tall_store(x, file, overwrite = TRUE)} writes it anew;
     {.code tall_store(file = )} opens it."
  } else {
    "{.arg {arg}} is the path of a new file."
  }
  abort_input(c(because, i = instead), argument = arg, value = file)
}

# list(n_row, next_block): rows that are known of, 0: nobody knows; a function
# that returns matrices of doubles, NULL at the end.
row_blocks <- function(x, block) {
  if (is.function(x)) {
    return(list(n_row = 0, next_block = x))
  }
  if (!is.list(x) || is.data.frame(x)) {
    x <- list(x)
  }
  for (part in x) {
    if (!is.data.frame(part)) {
      check_matrix(part, arg = "x")
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

write_store <- function(blocks, writer) {
  while (!is.null(x <- blocks$next_block())) {
    writer$add(x)
  }
  writer$finish()
}

# list(add(x), finish(), abandon()): rows are appended to a file of another name
# beside `file`, whose place it takes when it is finished. n_row: those that are
# known of, 0: nobody knows; arg: the user's. It must be abandoned in any
# case, and nothing is left then of what was not finished.
new_store_writer <- function(
  file,
  type,
  n_row = 0,
  overwrite = FALSE,
  arg = "file"
) {
  path <- new_writing(file)
  writer <- NULL
  columns <- NULL
  n_written <- 0
  add <- function(x) {
    x <- check_block(x, n_written, columns, type)
    if (is.null(writer)) {
      columns <<- list(n = ncol(x), names = colnames(x))
      created <- create_file(path, type, n_row, columns)
      check_fault(created, file)
      writer <<- created
    }
    check_fault(.Call(ffi_file_append, writer, x), file)
    n_written <<- n_written + nrow(x)
  }
  finish <- function() {
    if (n_written == 0) {
      expected <- "rows, at least one"
      abort_expected(NULL, expected, seen = "none", arg = "x")
    }
    check_fault(.Call(ffi_file_finish, writer), file)
    place_store(path, file, overwrite, arg)
    if (n_written * columns$n > 2^26) {
      gc() # of the memory of blocks a model would not know
    }
  }
  abandon <- function() {
    if (!is.null(writer)) {
      .Call(ffi_file_abandon, writer)
    }
    unlink(path)
    forget_writing(path)
  }
  list(add = add, finish = finish, abandon = abandon)
}

# The name of a file that is written beside `file`, of whose kind those that are
# left are swept.
new_writing <- function(file) {
  path <- tempfile("writing-", dirname(file), ".tall")
  sweep_folder(dirname(file))
  stores_written[[path]] <- TRUE
  path
}

forget_writing <- function(paths) {
  rm(list = intersect(paths, names(stores_written)), envir = stores_written)
}

# What was written at `path` takes its place, in which there may be a file by
# now that was not there when writing began.
place_store <- function(path, file, overwrite, arg) {
  if (!overwrite) {
    placed <- .Call(ffi_file_place, path, file)
    if (names(file_faults)[[placed + 1]] == "exists") {
      because <- "A file {.path {file}} came while rows were written."
      abort_there(file, because, arg)
    }
    check_fault(placed, file)
    if (!is.null(stores_placed[[file]])) {
      stores_placed[[file]] <- TRUE
    }
    return(invisible())
  }
  if (!file.rename(path, file)) {
    abort_file(
      "{.path {file}} cannot take the place of what is there.",
      file
    )
  }
}

# What processes left that were killed while they wrote. This one's own writers
# are known by name: not every disk tells its locks apart within a process.
sweep_folder <- function(folder) {
  all <- list.files(folder, "^writing-[0-9a-f]+[.]tall$", full.names = TRUE)
  for (path in setdiff(all, names(stores_written))) {
    .Call(ffi_file_sweep, path)
  }
}

stores_written <- new.env(parent = emptyenv())

# Code that writes rows to a new file, NULL: none, and makes a fit of them.
# Where it ends in an error the file is of no use, and in the next call's way.
with_new_store <- function(file, code) {
  if (is.null(file)) {
    return(code)
  }
  stores_placed[[file]] <- FALSE
  failed <- TRUE
  on.exit({
    if (failed && stores_placed[[file]]) {
      unlink(file)
    }
    rm(list = file, envir = stores_placed)
  })
  out <- code
  failed <- FALSE
  out
}

# Is it there yet, and ours?
stores_placed <- new.env(parent = emptyenv())

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
check_block <- function(x, n_before, columns, type) {
  x <- check_numbers(x)
  if (!is.null(columns) && ncol(x) != columns$n) {
    seen <- paste("some of", count_noun(ncol(x), "column"))
    expected <- paste("blocks of", count_noun(columns$n, "column"))
    abort_expected(x, expected, seen = seen, arg = "x")
  }
  most <- if (type == "float") largest_float else most_of_data
  # NA is neither within nor beyond
  if (!isTRUE(max(x, 0) <= most && min(x, 0) >= -most)) {
    bad <- which(is.na(x) | abs(x) > most)
    abort_stored(x, bad[[1]], n_before)
  }
  if (!is.double(x)) {
    storage.mode(x) <- "double"
  }
  x
}

check_numbers <- function(x) {
  if (is.data.frame(x) && all(vapply(x, is_plain_numeric, TRUE))) {
    x <- as.matrix(x)
  }
  if (!is.matrix(x) || !is_plain_numeric(x) || ncol(x) == 0) {
    expected <- "numbers: a matrix or a data frame, or blocks of such"
    abort_expected(x, expected, arg = "x")
  }
  x
}

abort_stored <- function(x, index, n_before) {
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
    abort_value(x, index, must, arg = "x", where = where)
  }
  abort_number(x, index, arg = "x", where = where)
}
