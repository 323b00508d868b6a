# Blocks of rows: what one must be, and what is made of its rows.

# ---- what a block must be ----------------------------------------------------

check_is_block <- function(block, state) {
  is_block <- is.list(block) && is.list(block$columns) &&
    is_number(block$first) && is_number(block$n) &&
    isTRUE(block$first >= 0 && block$n >= 0)
  if (!is_block) {
    abort_source(
      "Block {state$block} must be a list of {.field columns}, {.field first}
       and {.field n}, not {describe(block)}.",
      state
    )
  }
}

# A block with rows: its columns are those that were asked for.
check_source_block <- function(block, state) {
  where <- paste("Block", format_count(state$block))
  names <- names(block$columns) %||% character()
  columns <- state$columns %||% names
  absent <- setdiff(columns, names)
  if (length(absent) > 0) {
    abort_absent(absent, names, paste(where, "of the source"), state)
  }
  block$columns <- block$columns[match(columns, names)]
  check_source_lengths(block, where, state)
  check_source_kinds(block$columns, where, state)
  block
}

abort_absent <- function(absent, names, where, state) {
  shown <- quote_columns(absent)
  hint <- did_you_mean(absent[[1]], names, "`")
  if (is.null(hint) && length(names) > 0) {
    hint <- paste0("It has ", quote_columns(names), ".")
  }
  noun <- if (length(absent) == 1) "column" else "columns"
  abort_source(
    c("{where} has no {noun} {shown}.", i = escape_cli(hint)),
    state,
    column = absent[[1]]
  )
}

check_source_lengths <- function(block, where, state) {
  sizes <- vapply(block$columns, NROW, 0)
  bad <- which(sizes < block$first + block$n | sizes != c(sizes, 0)[[1]])
  if (length(bad) > 0) {
    name <- names(sizes)[[bad[[1]]]]
    wanted <- max(block$first + block$n, sizes[[1]])
    abort_source(
      "{where} of the source has {format_count(wanted)} rows, but
       {.field {name}} has {format_count(sizes[[bad[[1]]]])}.",
      state,
      column = name
    )
  }
}

# The types that blocks may not change.
check_source_kinds <- function(columns, where, state) {
  known <- state$kinds
  if (is.null(known)) {
    return(invisible())
  }
  kinds <- column_kinds(columns)
  bad <- which(kinds != known)
  if (length(bad) == 0) {
    return(invisible())
  }
  name <- names(columns)[[bad[[1]]]]
  abort_source(
    c(
      "Every block of a source must have columns of the same types.",
      x = "{where} has {kinds[[bad[[1]]]]} in {.field {name}}, those before it
           {known[[bad[[1]]]]}.",
      i = "{.fn read.csv} guesses types block by block: {.arg colClasses} says
           what they are."
    ),
    state,
    column = name
  )
}

# "numbers", "text", "a factor", ...
column_kinds <- function(columns) {
  vapply(columns, column_kind, "")
}

column_kind <- function(x) {
  if (is.ordered(x)) {
    "an ordered factor"
  } else if (is.factor(x)) {
    "a factor"
  } else if (is.object(x)) {
    paste0("<", class(x)[[1]], ">")
  } else if (is.matrix(x)) {
    paste("a matrix of", count_noun(ncol(x), "column"))
  } else if (is.numeric(x)) {
    "numbers"
  } else if (is.logical(x)) {
    "TRUE and FALSE"
  } else if (is.character(x)) {
    "text"
  } else {
    typeof(x)
  }
}

# Which row of all that is, of a block that begins at `row`.
row_place <- function(row, at) {
  paste("row", format_count(row - 1 + at))
}

# ---- rows of blocks ----------------------------------------------------------

# Values `rows` of a column, which may be a matrix.
column_rows <- function(x, rows) {
  if (length(dim(x)) == 2) x[rows, , drop = FALSE] else x[rows]
}

# The rows of a block, all or those at `at`, as a data frame.
block_frame <- function(block, at = seq_len(block$n)) {
  columns <- lapply(block$columns, column_rows, block$first + at)
  frame_of(columns, length(at))
}

# A data frame without the checks, and the change of names, of data.frame().
frame_of <- function(columns, n_row) {
  structure(
    columns,
    names = as.character(names(columns)),
    class = "data.frame",
    row.names = .set_row_names(n_row)
  )
}

# Pieces of columns, one below the other.
bind_frames <- function(frames) {
  if (length(frames) == 1) {
    return(frames[[1]])
  }
  frame_of(bind_columns(frames), sum(vapply(frames, nrow, 0L)))
}

# The same of lists of columns.
bind_columns <- function(parts) {
  columns <- seq_along(parts[[1]])
  names(columns) <- names(parts[[1]])
  lapply(columns, function(j) bind_values(lapply(parts, .subset2, j)))
}

# One value after the other; factors have the levels of all, in their order
# where all have the same, else in that of their names.
bind_values <- function(values) {
  one <- values[[1]]
  if (is.matrix(one)) {
    return(do.call(rbind, values))
  }
  if (!is.factor(one)) {
    return(do.call(c, values))
  }
  every <- lapply(values, levels)
  is_same <- all(vapply(every, identical, TRUE, every[[1]]))
  levels <- if (is_same) every[[1]] else sort(unique(unlist(every)))
  out <- unlist(lapply(values, as.character))
  out <- factor(out, levels = levels, ordered = is.ordered(one))
  if (is_same) {
    attr(out, "contrasts") <- attr(one, "contrasts")
  }
  out
}

# Is it something that rows can be read of, other than a data frame?
is_source_like <- function(x) {
  inherits(x, c("tall_source", "tall_store", "matrix", "Matrix")) ||
    is.list(x) && !is.data.frame(x) || is.character(x)
}

# as_source() of a front end's `data`: what is wrong is said of that.
data_source <- function(data, arg = "data") {
  tryCatch(as_source(data), tall_error_input = function(e) {
    if (is.null(e$rows_of)) {
      rlang::cnd_signal(e)
    }
    abort_no_source(e$rows_of$x, e$rows_of$element, arg)
  })
}

# What rows cannot be read of. element: which of a list cannot be read.
abort_no_source <- function(x, element = NULL, arg = "x") {
  expected <- paste(
    "a data frame, a matrix, paths of CSV or Parquet files, a `tall_store()`,",
    "a `tall_stream()`, a lazy table of dbplyr or a list of such"
  )
  part <- if (is.null(element)) x else x[[element]]
  is_columns <- !is.null(element) && length(unique(lengths(x))) == 1 &&
    all(vapply(x, is.atomic, TRUE)) && !is.null(names(x))
  where <- if (!is.null(element) && !is_columns) {
    name <- names(x)[element] %||% ""
    name <- if (nzchar(name)) paste0(" (`", name, "`)")
    paste0("Element ", element, name, " is ", describe(part), ".")
  }
  abort_input(
    c(
      "{.arg {arg}} must be {expected}, not {describe(x)}.",
      x = escape_cli(where),
      i = if (is_columns) {
        "{.code as.data.frame({arg})} makes a data frame of a list of columns."
      } else {
        escape_cli(source_hint(part))
      }
    ),
    argument = arg,
    expected = expected,
    value = x,
    rows_of = list(x = x, element = element)
  )
}

# Where the rows are that a path or a function stands for; NULL: nowhere.
source_hint <- function(x) {
  if (is.function(x)) {
    "A function that opens a stream of blocks is wrapped in `tall_stream()`."
  } else if (is.character(x)) {
    paste(
      "Names of files end in `.parquet`, or in `.csv`, `.tsv` or `.txt`, also",
      "with `.gz`, `.bz2` or `.xz`: all alike. Rows of `tall_store()` are read",
      "by `tall_store(file = )`."
    )
  }
}
