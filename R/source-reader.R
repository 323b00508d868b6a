# Passes over a source, whose blocks are checked, and what can be done by a pass
# without knowing the member.

# The reader of a pass that is checked. Its next_block() also says
#   row     the number of the block's first row, from 1
#   block   the number of the block, from 1
# and leaves out blocks without rows; columns are those asked for, in that order
# (NULL: those of the first block). n_row(): rows handed out so far. What comes
# after the end or an error is NULL: the source was closed then.
source_reader <- function(source, columns = NULL) {
  state <- list(block = 0, row = 1, kinds = NULL, columns = columns)
  reader <- NULL
  close <- function() {
    if (!is.null(reader)) {
      closing <- reader$close
      reader <<- NULL
      close_stream(closing, "A source")
    }
  }
  guard <- function(code) {
    failed <- TRUE
    on.exit(if (failed) close())
    out <- call_source(code, state)
    failed <- FALSE
    out
  }
  read <- function() {
    repeat {
      state$block <<- state$block + 1
      block <- reader$next_block()
      if (is.null(block)) {
        return(NULL)
      }
      check_is_block(block, state)
      if (block$n > 0) {
        return(check_source_block(block, state))
      }
    }
  }
  next_block <- function() {
    if (is.null(reader)) {
      return(NULL)
    }
    block <- guard(read())
    if (is.null(block)) {
      close()
      return(NULL)
    }
    block$block <- state$block
    block$row <- state$row
    state$columns <<- names(block$columns)
    state$kinds <<- state$kinds %||% column_kinds(block$columns)
    state$row <<- state$row + block$n
    block
  }
  reader <- guard(source_open(source, columns))
  list(next_block = next_block, close = close, n_row = function() state$row - 1)
}

# f(block) of every block, until there are no more or f returns FALSE; the
# number of rows read. The source is closed however this ends.
source_each <- function(source, columns, f) {
  reader <- source_reader(source, columns)
  on.exit(reader$close())
  while (!is.null(block <- reader$next_block())) {
    if (isFALSE(f(block))) {
      break
    }
  }
  reader$n_row()
}

# ---- with a progress bar -----------------------------------------------------

# Bytes that blocks may leave behind before they are collected.
gc_bytes <- 2^25

# What a block of n rows leaves behind: its columns, or, where they are those of
# all rows, what is made of its response and few more.
bytes_left <- function(block) {
  columns <- block$columns
  is_own <- length(columns) > 0 && NROW(columns[[1]]) == block$n
  8 * block$n * if (is_own) 2 + length(columns) else 2
}

# source_each(), in which memory does not grow with the data. request:
# list(columns, ...).
walk_source <- function(source, request, label, refresh, f) {
  total <- source_size(source)
  bar <- progress_bar(label, if (is.na(total)) NA else total, refresh > 0)
  n <- 0
  left <- 0
  source_each(
    source,
    request$columns,
    function(block) {
      if (isFALSE(f(block))) {
        return(FALSE)
      }
      n <<- n + block$n
      # R would let it grow with the data
      left <<- left + bytes_left(block)
      if (left > gc_bytes) {
        left <<- 0
        gc(full = FALSE)
      }
      bar$set(n)
      TRUE
    }
  )
}

# ---- what fails --------------------------------------------------------------

# A reader of n parts, one after the other, each open as long as it is read.
# open(k): a reader.
readers_in_turn <- function(n, open) {
  at <- 0
  reader <- NULL
  close <- function() {
    closing <- reader
    reader <<- NULL
    at <<- n
    if (!is.null(closing)) {
      closing$close()
    }
  }
  next_block <- function() {
    repeat {
      block <- if (!is.null(reader)) reader$next_block()
      if (!is.null(block)) {
        return(block)
      }
      now <- at
      close()
      if (now == n) {
        return(NULL)
      }
      at <<- now + 1
      reader <<- open(at)
    }
  }
  list(next_block = next_block, close = close)
}

# What a member, or a user's function in it, fails of is told with its place.
call_source <- function(code, state) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "tall_error")) {
      e$block <- e$block %||% state$block
      e$row <- e$row %||% state$row
      if (inherits(e, "tall_error_source")) {
        e$call <- rlang::error_call(error_frame())
      }
      rlang::cnd_signal(e)
    }
    abort_source(
      if (state$block == 0) {
        "The source cannot be opened."
      } else {
        "The source failed after {format_count(state$row - 1)} rows, in block
         {format_count(state$block)}."
      },
      state,
      parent = e
    )
  })
}

# A stream that cannot be closed costs no fit: its rows are no longer needed.
close_stream <- function(close, what = "A stream") {
  tryCatch(close(), error = function(e) {
    warn_tall(
      "source",
      c(
        "{what} could not be closed: {.fn close} failed.",
        i = "What was read of it is used."
      ),
      parent = e
    )
  })
}

# f, which may be called more often, but does something the first time alone.
once <- function(f) {
  is_done <- FALSE
  function() {
    if (!is_done) {
      is_done <<- TRUE
      f()
    }
    invisible()
  }
}

# ---- what can be done without knowing the member -----------------------------

#' @export
as_source.tall_source <- function(x, ...) {
  check_no_dots(...)
  x
}

#' @export
as_source.default <- function(x, ...) {
  abort_no_source(x)
}

#' @export
source_open.default <- function(source, columns = NULL) {
  abort_expected(source, "made by `as_source()`", arg = "source")
}

#' @export
source_head.default <- function(source, columns = NULL) {
  reader <- source_reader(source, columns)
  on.exit(reader$close())
  block <- reader$next_block()
  if (is.null(block)) {
    abort_source("The source has no rows.", list(block = 0, row = 1))
  }
  block_frame(block, seq_len(min(block$n, head_rows)))
}

#' @export
source_names.default <- function(source) {
  names(source_head(source))
}

#' @export
source_size.default <- function(source) {
  NA_real_
}

# A pass that ends at the last of the rows.
#' @export
source_fetch.default <- function(source, rows, columns = NULL) {
  rows <- check_source_rows(rows, source_size(source))
  if (length(rows) == 0) {
    return(fetch_none(source, columns))
  }
  wanted <- sort(unique(rows))
  found <- list()
  n_read <- source_each(source, columns, function(block) {
    last <- block$row + block$n - 1
    at <- wanted[wanted >= block$row & wanted <= last] - block$row + 1
    if (length(at) > 0) {
      found[[length(found) + 1]] <<- block_frame(block, at)
    }
    last < wanted[[length(wanted)]]
  })
  if (n_read < wanted[[length(wanted)]]) {
    abort_no_row(wanted[[length(wanted)]], n_read)
  }
  found <- bind_frames(found)
  at <- match(rows, wanted)
  frame_of(lapply(found, column_rows, at), length(at))
}

fetch_none <- function(source, columns) {
  head <- source_head(source, columns)
  frame_of(lapply(head, column_rows, integer()), 0L)
}

# size: NA where nobody knows.
check_source_rows <- function(rows, size) {
  if (length(rows) == 0) {
    return(numeric())
  }
  rows <- check_numeric_vector(rows, arg = "rows")
  bad <- which(rows < 1 | rows != floor(rows))
  if (length(bad) > 0) {
    must <- "be numbers of rows, from 1 on"
    abort_value(rows, bad[[1]], must, arg = "rows")
  }
  if (!is.na(size) && max(rows) > size) {
    abort_no_row(max(rows), size)
  }
  rows
}

abort_no_row <- function(row, n_row) {
  abort_source(
    "There is no row {format_count(row)}: the source has
     {count_noun(n_row, 'row')}.",
    list(row = row)
  )
}
