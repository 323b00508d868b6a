# Arrow streams: nanoarrow owns them and what they give, the core reads their
# buffers (src/data/arrow.h).

# A reader of what a stream's open() returned, where that is no function.
open_arrow <- function(opened, columns) {
  stream <- as_arrow(opened)
  schema <- stream$get_schema()
  known <- .Call(ffi_arrow_schema, schema)
  if (!known$is_table) {
    abort_source("An Arrow stream must give tables: arrays of type struct.")
  }
  at <- seq_along(known$name)
  if (!is.null(columns)) {
    at <- match(intersect(columns, known$name), known$name)
  }
  list(
    next_block = function() {
      array <- stream$get_next(schema)
      if (!is.null(array)) {
        read_arrow(array, schema, at, known)
      }
    },
    close = once(function() nanoarrow::nanoarrow_pointer_release(stream))
  )
}

as_arrow <- function(opened) {
  is_arrow <- is.object(opened) && !is.data.frame(opened)
  if (is_arrow && !requireNamespace("nanoarrow", quietly = TRUE)) {
    abort_source(c(
      "{.code open()} gave {describe(opened)}, which the package
       {.pkg nanoarrow} is needed for.",
      i = "{.code install.packages(\"nanoarrow\")}"
    ))
  }
  if (!is_arrow) {
    hint <- if (is.data.frame(opened)) {
      "Give `tall_stream()` a function that makes the function that gives
       blocks, not the latter."
    }
    abort_source(c(
      "{.code open()} must return a function that gives the next block, a list
       of {.field next_block} and {.field close}, or an Arrow stream, not
       {describe(opened)}.",
      i = escape_cli(hint)
    ))
  }
  nanoarrow::as_nanoarrow_array_stream(opened)
}

# A block of an array, which is released as soon as its columns are R's; not so
# where nanoarrow made some of them, which may still read from it.
read_arrow <- function(array, schema, at, known) {
  read <- .Call(ffi_arrow_columns, schema, array, as.double(at))
  columns <- stats::setNames(read$columns, known$name[at])
  for (k in which(known$is_ours[at])) {
    if (is.list(columns[[k]])) {
      columns[[k]] <- arrow_factor(columns[[k]])
    }
  }
  foreign <- which(!known$is_ours[at])
  if (length(foreign) == 0) {
    nanoarrow::nanoarrow_pointer_release(array)
  } else {
    children <- array$children
    rows <- read$offset + seq_len(read$n)
    columns[foreign] <- lapply(at[foreign], function(j) {
      column_rows(nanoarrow::convert_array(children[[j]]), rows)
    })
  }
  list(columns = columns, first = 0, n = read$n)
}

# A dictionary may say the same twice, or nothing.
arrow_factor <- function(x) {
  levels <- unique(x$level[!is.na(x$level)])
  place <- if (length(levels) < length(x$level)) {
    match(x$level, levels)[x$place]
  } else {
    x$place
  }
  class <- c(if (x$is_ordered) "ordered", "factor")
  structure(place, levels = levels, class = class)
}
