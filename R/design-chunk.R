# Rows of a design in chunks, from blocks of columns.
#
# A block is list(columns, first, n, row): `columns` a named list of vectors or
# matrices, of which rows first + 1, ..., first + n are the block's (a data
# frame in memory gives its columns as they are, for every block); `row`, which
# may be absent, the number of the block's first row in all data.
#
# A column for C is list(values, first): row i of the block is at first + i.
# Codes of levels may come with `map`, what each of them means.

# The variables of a design on a block: list(columns, n, row, sources), the last
# the data that codes come from, to say which level is unknown.
block_values <- function(design, block, env) {
  variables <- design$variables
  sources <- lapply(variables, variable_source, block, env)
  columns <- Map(variable_column, sources, variables, block$n)
  out <- list(
    columns = unname(columns),
    n = block$n,
    row = block$row %||% (block$first + 1),
    sources = sources
  )
  if (is.null(design$program)) {
    out$columns <- list(list(values = whole_values(design, out), first = 0))
  }
  out
}

# The same of the rows of a model frame.
frame_values <- function(design, frame) {
  n <- nrow(frame)
  sources <- lapply(design$variables, function(v) {
    list(values = frame[[v$position]], first = 0)
  })
  columns <- Map(variable_column, sources, design$variables, n)
  list(columns = unname(columns), n = n, row = 1, sources = sources)
}

# list(values, first): the column of the data, whole, or what an expression is
# on the rows of the block.
variable_source <- function(variable, block, env) {
  if (is_in_table(variable$smooth)) {
    parts <- smooth_parts(variable$smooth)
    return(list(parts = lapply(parts, variable_source, block, env)))
  }
  column <- variable$column
  if (!is.null(column) && column %in% names(block$columns)) {
    return(list(values = block$columns[[column]], first = block$first))
  }
  values <- block_value(variable$expression, block, env)
  if (NROW(values) != block$n) {
    not_in_blocks()
    abort_input(
      "{.arg {variable$name}} must have a value for each row: it has
       {format_count(NROW(values))} for {count_noun(block$n, 'row')}.",
      argument = variable$name,
      expected = block$n,
      value = values
    )
  }
  list(values = values, first = 0)
}

# An expression on the rows of a block; also of weights, offsets, responses.
block_value <- function(expression, block, env) {
  used <- intersect(all.vars(expression), names(block$columns))
  eval(expression, lapply(block$columns[used], rows_of_block, block), env)
}

rows_of_block <- function(x, block) {
  if (block$first == 0 && block$n == NROW(x)) {
    return(x)
  }
  select_rows(x, block$first + seq_len(block$n))
}

# A variable's values as C takes them; those of levels as codes.
variable_column <- function(source, variable, n) {
  if (!is.null(source$parts)) {
    return(smooth_source_column(source, variable$smooth, n))
  }
  values <- source$values
  if (variable$kind == "levels") {
    return(level_column(source, variable, n))
  }
  is_numbers <- typeof(values) %in% c("double", "integer", "logical") &&
    !is.factor(values)
  if (variable$kind == "numbers") {
    if (!is_numbers || NCOL(values) != variable$size) {
      expected <- if (variable$size == 1) {
        "numeric"
      } else {
        paste("a numeric matrix of", variable$size, "columns")
      }
      abort_expected(values, expected, arg = variable$name)
    }
    if (!is.null(variable$units) && inherits(values, "difftime")) {
      units(values) <- variable$units
    }
  }
  list(values = values, first = source$first)
}

# A smooth term that C makes of the columns that it reads.
smooth_source_column <- function(source, smooth, n) {
  parts <- Map(part_column, source$parts, smooth_parts(smooth), n)
  smooth_column(
    smooth$basis$cubics,
    smooth$columns,
    parts,
    lengths(smooth$levels)
  )
}

part_column <- function(source, part, n) {
  if (part$kind == "numbers") {
    source$values <- in_units_of(source$values, part$like, part$name)
  }
  variable_column(source, part, n)
}

# Factors of the same levels and logical values are taken as they are.
level_column <- function(source, variable, n) {
  values <- source$values
  first <- source$first
  if (is.logical(values) && variable$is_logical) {
    return(list(values = values, first = first))
  }
  if (is.factor(values)) {
    if (identical(levels(values), variable$levels)) {
      return(list(values = values, first = first))
    }
    map <- match(levels(values), variable$levels, nomatch = -1L)
    return(list(values = values, first = first, map = map))
  }
  if (!is.atomic(values) || variable$is_logical) {
    expected <- if (variable$is_logical) "logical" else "a factor or character"
    abort_expected(values, expected, arg = variable$name)
  }
  text <- select_rows(values, first + seq_len(n))
  codes <- match(as.character(text), variable$levels)
  unknown <- which(is.na(codes))
  codes[unknown[!is.na(text[unknown])]] <- -1L
  list(values = codes, first = 0, map = NULL)
}

# A matrix of n columns, as it is.
whole_program <- function(n) {
  list(
    start = 0:n,
    variable = integer(n),
    at = seq_len(n) - 1L,
    single = rep(-1L, n),
    table = double(),
    size = -n
  )
}

# What model.matrix() makes of a block, where a program does not.
whole_values <- function(design, values) {
  rows <- seq_len(values$n)
  n_variable <- length(attr(design$terms, "variables")) - 1
  frame <- rep(list(double(values$n)), n_variable)
  for (k in seq_along(design$variables)) {
    variable <- design$variables[[k]]
    column <- values$columns[[k]]
    part <- select_rows(column$values, column$first + rows)
    if (variable$kind == "levels" && !variable$is_logical) {
      codes <- as.integer(part)
      if (!is.null(column$map)) {
        codes <- column$map[codes]
      }
      unknown <- which(codes == -1)
      if (length(unknown) > 0) {
        abort_row(design, values, k, unknown[[1]])
      }
      part <- factor(variable$levels[codes], variable$levels)
    }
    frame[[variable$position]] <- part
  }
  names(frame) <- vapply(
    as.list(attr(design$terms, "variables"))[-1],
    deparse1,
    ""
  )
  frame <- structure(frame, row.names = rows, class = "data.frame")
  attr(frame, "terms") <- design$terms
  x <- stats::model.matrix(
    design$terms,
    frame,
    contrasts.arg = design$contrasts
  )
  as_double_matrix(x)
}

# ---- chunks ------------------------------------------------------------------

# Room for `size` rows, of n_y columns of the response. C writes into these
# arrays in place: they belong to the chunk alone. What is read from chunk$x is
# another matrix after the next fill_chunk(), so nothing may keep it: copy
# (chunk$x + 0) what must last.
new_chunk <- function(
  design,
  size,
  has_weights = FALSE,
  has_offset = FALSE,
  n_y = 1
) {
  chunk <- new.env(parent = emptyenv())
  chunk$x <- matrix(0, size, length(design$columns))
  chunk$y <- if (n_y > 0) zero_values(size, n_y)
  chunk$weights <- if (has_weights) double(size)
  chunk$offset <- if (has_offset) double(size)
  chunk$fill <- 0
  chunk
}

# Write complete rows of a block, from row `from` (0, 1, ...) on, after the
# chunk's first `fill` rows, until it is full or the block ends; the caller sets
# chunk$fill to 0 when the rows were used. Where `y` or another is NULL, what
# the chunk has of it stays as it is. y, weights, offset, keep: vectors of
# the block's rows (y a matrix where it has several columns), or list(values,
# first); a factor y comes as list(values,
# first, table), `table` the number of each level. Rows without TRUE in keep are
# passed over, and those that lack a value, of which n_missing are counted.
#
# Returns list(from, fill, n_missing): where to go on in the block. A number
# that is not finite or larger than most_of_data, or a level that is unknown, of
# a row that lacks nothing is an error that names row and variable.
fill_chunk <- function(
  chunk,
  design,
  values,
  y = NULL,
  weights = NULL,
  offset = NULL,
  keep = NULL,
  from = 0
) {
  targets <- list(y = y, weights = weights, offset = offset)
  is_there <- !vapply(targets, is.null, TRUE)
  targets <- lapply(targets[is_there], as_column)
  into <- mget(names(targets), chunk)
  out <- .Call(
    ffi_design_fill,
    design$program %||% design$whole,
    values$columns,
    unname(targets),
    if (!is.null(keep)) as_column(keep),
    values$n,
    from,
    chunk$x,
    unname(into),
    chunk$fill
  )
  chunk$fill <- out$fill
  if (out$bad_row > 0) {
    abort_bad_row(design, values, targets, out)
  }
  out[c("from", "fill", "n_missing")]
}

as_column <- function(x) {
  if (is.list(x)) x else list(values = x, first = 0)
}

# What C found: a variable, a target, or, of model.matrix(), a column.
abort_bad_row <- function(design, values, targets, out) {
  column <- out$bad_column
  n_column <- length(values$columns)
  if (column <= n_column && !is.null(design$program)) {
    abort_row(design, values, column, out$bad_row)
  }
  if (column <= n_column) {
    column <- values$columns[[1]]
    row <- column$values[out$bad_row, ]
    bad <- first_nonfinite(as.double(row), most_of_data)
    name <- design$columns[[bad]]
    value <- column$values[[out$bad_row, bad]]
  } else {
    target <- targets[[column - n_column]]
    name <- names(targets)[[column - n_column]]
    if (name == "y") {
      name <- design$response %||% name
    }
    value <- target$values[[target$first + out$bad_row]]
  }
  abort_nonfinite(value, name, values$row + out$bad_row - 1)
}

# Which of the columns that a smooth term reads has what cannot be in that row.
bad_part <- function(sources, parts, row) {
  is_bad <- Map(
    function(source, part) {
      value <- select_rows(source$values, source$first + row)
      if (part$kind == "levels") {
        !as.character(value) %in% part$levels
      } else {
        first_nonfinite(as.double(value), most_of_data) > 0
      }
    },
    sources,
    parts
  )
  which(unlist(is_bad))[[1]]
}

abort_nonfinite <- function(value, name, row) {
  where <- paste("row", format_count(row))
  abort_number(value, 1, arg = name, where = where)
}

# Row `bad` of the block, numbered from 1, of the k-th variable.
abort_row <- function(design, values, k, bad) {
  variable <- design$variables[[k]]
  source <- values$sources[[k]]
  if (!is.null(source$parts)) {
    parts <- smooth_parts(variable$smooth)
    at <- bad_part(source$parts, parts, bad)
    variable <- parts[[at]]
    source <- source$parts[[at]]
  }
  seen <- select_rows(source$values, source$first + bad)
  row <- values$row + bad - 1
  if (variable$kind != "levels") {
    seen <- as.double(seen)
    bad <- first_nonfinite(seen, most_of_data)
    abort_nonfinite(seen[[bad]], variable$name, row)
  }
  level <- as.character(seen)
  abort_input(
    c(
      "{.arg {variable$name}} has the new level {.val {level}} in row
       {format_count(row)}.",
      i = "The levels known are {.val {variable$levels}}."
    ),
    argument = variable$name,
    expected = variable$levels,
    value = level,
    index = row
  )
}
