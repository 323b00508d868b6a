# Rows of multilevel regressions that are passed over: each block of a source as
# the parts of a model with one grouping factor, cut into chunks as the rows of
# a frame are, so that sums over them are the same.

# What is known of rows before a pass counts them, from the model frame of a
# pilot: list(request, terms, levels, fixed, effects, bars, parts, has_weights,
# has_offset, n_y, digest): how the response's levels are read, terms of the
# whole and of its parts, of which `parts` make columns.
group_reading <- function(frame, request, bars, sides, levels, digest) {
  terms <- attr(frame, "terms")
  part <- function(terms) {
    terms <- stats::delete.response(terms)
    group_part_columns(terms, part_frame(terms, frame))
  }
  list(
    request = request,
    terms = stats::delete.response(terms),
    levels = levels,
    bars = bars,
    fixed = stats::delete.response(sides$fixed),
    effects = sides$effects,
    x = part(sides$fixed),
    z = part(sides$effects),
    has_weights = !is.null(sides$weights),
    has_offset = !is.null(sides$offset),
    n_y = response_facts(request$family)$n_y,
    digest = digest
  )
}

# list(columns, contrasts, design): of a pilot; design NULL: ones, or nothing.
group_part_columns <- function(terms, frame) {
  if (!any(is_design_variable(terms))) {
    return(list(columns = rep("(Intercept)", attr(terms, "intercept"))))
  }
  attr(frame, "terms") <- terms
  design <- compile_design(frame)
  c(unclass(design)[c("columns", "contrasts")], list(design = design))
}

# f(chunk) for chunks of rows_of_width() rows, the last one shorter: list(x, z,
# n, first, y, weights, offset, group), x and z with rows beyond n, group codes
# from code(factor, frame) of each block's groups. list(n_row, n_missing,
# digest). The next chunk takes the place of x and z.
each_group_chunk <- function(source, reading, code, f, show) {
  p <- length(reading$x$columns)
  size <- rows_of_width(p + length(reading$z$columns))
  buffer <- group_buffer(reading, size)
  seen <- list(n_row = 0, n_missing = 0)
  before <- reading$digest
  digest <- digest_if(!is.null(before), reading$request, before$kinds)
  flush <- function() {
    if (buffer$n() > 0) {
      f(c(buffer$take(), list(first = seen$n_row)))
      seen$n_row <<- seen$n_row + buffer$n()
      buffer$empty()
    }
  }
  walk_source(
    source,
    reading$request,
    show$label,
    show$refresh,
    function(block) {
      digest$add(block)
      for (at in seq(0, block$n - 1, by = size)) {
        rows <- group_rows(reading, cut_block(block, at, size))
        seen$n_missing <<- seen$n_missing + rows$n_missing
        rows$group <- code(group_factor(reading$bars$group, rows$frame), rows)
        from <- 0
        while (from < rows$n) {
          from <- buffer$add(rows, from)
          if (buffer$n() == size) {
            flush()
          }
        }
      }
      TRUE
    }
  )
  flush()
  now <- digest$found()
  check_same_digest(before, now)
  c(seen, list(digest = now))
}

# At most `size` rows of a block, from row `at` (0, 1, ...) on.
cut_block <- function(block, at, size) {
  block$first <- block$first + at
  block$row <- block$row + at
  block$n <- min(size, block$n - at)
  block
}

# The rows of a block that count: list(frame, n, row, y, weights, offset,
# n_missing).
group_rows <- function(reading, block) {
  request <- reading$request
  own <- block_response(request, block, reading$levels)
  frame <- stats::model.frame(
    reading$terms,
    block_frame(block),
    na.action = stats::na.pass
  )
  keep <- own$keep %||% rep(TRUE, block$n)
  lacks <- keep & !stats::complete.cases(frame)
  if (request$fails && any(lacks)) {
    abort_missing_row(request, block, which(lacks)[[1]])
  }
  keep <- which(keep & !lacks)
  take <- function(x) if (!is.null(x)) select_rows(x, keep)
  n <- length(keep)
  list(
    frame = frame_of(lapply(frame, column_rows, keep), n),
    n = n,
    row = block$row - 1 + c(keep, 1)[[1]],
    y = take(own$y),
    weights = if (reading$has_weights) take(own$weights) %||% rep(1, n),
    offset = if (reading$has_offset) take(own$offset) %||% numeric(n),
    n_missing = own$n_missing + sum(lacks)
  )
}

# Room for `size` rows: add(rows, from) takes those of group_rows() from row
# `from` (0, 1, ...) on, as many as there is room for, and says where it ended.
group_buffer <- function(reading, size) {
  x <- part_buffer(reading$x, reading$fixed, size)
  z <- part_buffer(reading$z, reading$effects, size)
  more <- c(
    "y", "group",
    if (reading$has_weights) "weights",
    if (reading$has_offset) "offset"
  )
  held <- list()
  n <- 0
  list(
    n = function() n,
    add = function(rows, from) {
      own <- from + seq_len(min(size - n, rows$n - from))
      x$add(rows, from)
      z$add(rows, from)
      part <- lapply(rows[more], select_rows, own)
      held[[length(held) + 1]] <<- part
      n <<- n + length(own)
      from + length(own)
    },
    take = function() {
      parts <- lapply(stats::setNames(nm = more), function(name) {
        join_values(lapply(held, `[[`, name))
      })
      parts$y <- as_double_values(parts$y)
      c(list(x = x$rows(), z = z$rows(), n = n), parts)
    },
    empty = function() {
      held <<- list()
      n <<- 0
      x$empty()
      z$empty()
    }
  )
}

# Columns of one part. part: of group_part_columns().
part_buffer <- function(part, terms, size) {
  if (is.null(part$design)) {
    ones <- matrix(1, size, length(part$columns))
    nothing <- function(...) NULL
    return(list(add = nothing, rows = function() ones, empty = nothing))
  }
  design <- part$design
  chunk <- new_chunk(design, size, n_y = 0)
  list(
    add = function(rows, from) {
      frame <- part_frame(terms, rows$frame)
      values <- frame_values(design, frame)
      values$row <- rows$row
      if (is.null(design$program)) {
        whole <- whole_values(design, values)
        values$columns <- list(list(values = whole, first = 0))
      }
      fill_chunk(chunk, design, values, from = from)
    },
    rows = function() chunk$x,
    empty = function() chunk$fill <- 0
  )
}

# ---- groups, as they are met -------------------------------------------------

# The groups of blocks, by number in the order in which they are met: code() as
# each_group_chunk() takes it; n(): how many there are; levels(): their names in
# the order that a factor of all rows has, and `at`, which of them they are.
new_groups <- function(bars) {
  known <- character()
  parts <- list()
  names <- group_variables(bars$group)
  list(
    n = function() length(known),
    code = function(group, rows) {
      here <- levels(group)
      codes <- match(here, known)
      is_new <- is.na(codes)
      if (any(is_new)) {
        codes[is_new] <- length(known) + seq_len(sum(is_new))
        known <<- c(known, here[is_new])
        first <- match(which(is_new), as.integer(group))
        parts[[length(parts) + 1]] <<-
          frame_of(lapply(rows$frame[names], column_rows, first), length(first))
      }
      codes[as.integer(group)]
    },
    levels = function() {
      levels <- levels(group_factor(bars$group, bind_frames(parts)))
      list(levels = levels, at = match(levels, known))
    }
  )
}

# What a model frame calls the variables of a grouping factor.
group_variables <- function(group) {
  if (is.call(group) && identical(group[[1]], as.name(":"))) {
    return(unique(c(
      group_variables(group[[2]]),
      group_variables(group[[3]])
    )))
  }
  deparse1(strip_parens(group))
}

# The groups of later passes, by number among `levels`.
group_codes <- function(levels) {
  function(group, rows) {
    codes <- match(levels(group), levels)
    if (anyNA(codes)) {
      new <- levels(group)[is.na(codes)][[1]]
      abort_other_groups("{.val {new}} came in a later pass alone.", new)
    }
    codes[as.integer(group)]
  }
}

abort_other_groups <- function(because, value = NULL, .envir = caller_env()) {
  abort_tall(
    "source",
    c(
      "{.arg data} gave other groups than it did at first.",
      x = because,
      i = "Every pass must see the same rows in the same order."
    ),
    argument = "data",
    value = value,
    .envir = .envir
  )
}

# ---- a look ------------------------------------------------------------------

# Of rows that come in chunks, what look_at_rows() finds: add(chunk, n_group),
# found(reader).
new_group_look <- function(columns, effects) {
  q <- length(effects)
  seen <- matrix(NaN, 1024, q)
  look <- NULL
  list(
    add = function(chunk, n_group) {
      if (q > 1 && n_group > nrow(seen)) {
        more <- matrix(NaN, max(n_group, 2 * nrow(seen)) - nrow(seen), q)
        seen <<- rbind(seen, more)
      }
      # C writes into it in place
      there <- if (q > 1) seen
      look <<- look_on(look, chunk, chunk$n, 0, chunk$group, there)
    },
    found = function(n_row) looked_of(look, n_row, columns, effects)
  )
}
