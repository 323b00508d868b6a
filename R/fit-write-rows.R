# The rows of predictions that are written, block by block.
#
# What is made of a block is a record, one of
#
#   columns  named vectors, with a value for each row
#   draws    draws x rows, or draws x rows x classes (names in its dimnames)

# The `tall_written` of rows that are asked for. sets: draws of choose_draws();
# make(joined): of a block of rows, joined with each of these, a record as
# above; n_draw: of draws, NULL of predictions; size: numbers of a row and draw;
# pads: with NA for rows that na.exclude left out.
write_rows <- function(
  asked,
  sets,
  make,
  to,
  n_draw = NULL,
  size = 1,
  pads = FALSE
) {
  check_can_write(asked)
  # drivers of databases draw names from R's generator
  sink <- keep_generator(open_sink(to, asked$passes))
  is_done <- FALSE
  on.exit(if (!is_done) sink$drop())
  is_long <- to$kind == "table"
  bar <- progress_bar(
    "Writing rows",
    asked$n,
    !asked$passes && getOption("tallbayes.refresh", 1) > 0
  )
  n_before <- 0
  last <- NULL
  # rows up to `upto`, of which the record has those of these numbers
  put <- function(record, number, upto) {
    frame <- written_frame(record, number, n_before, upto, is_long)
    none <- lapply(record$columns, `[`, 0)
    last <<- list(columns = none, names = names(frame))
    n_before <<- upto
    keep_generator(sink$write(frame))
    if (8 * nrow(frame) * length(frame) > gc_bytes / 4) {
      # R would let what blocks leave behind grow
      frame <- record <- NULL
      gc(full = FALSE)
    }
    bar$set(upto)
  }
  n_row <- each_written_part(asked, pads, function(rows, number, upto) {
    joined <- lapply(sets, function(draws) {
      join_draws(asked$fit, rows, draws, asked$groups)
    })
    n <- length(number)
    each_written_block(n, size * (n_draw %||% 1), function(at) {
      end <- at[[length(at)]]
      own <- lapply(joined, some_rows, at)
      put(make(own), number[at], if (end == n) upto else number[[end]])
    })
  })
  if (is.null(last)) {
    abort_input("There are no rows to predict.", argument = "newdata")
  }
  if (n_before < n_row) {
    put(last["columns"], integer(), n_row)
  }
  keep_generator(sink$finish())
  is_done <- TRUE
  invisible(new_written(to, n_row, n_draw, last$names))
}

new_written <- function(to, n_row, n_draw, columns) {
  where <- to$path %||% list(to$con, to$name)
  structure(
    list(
      to = where,
      format = to$kind,
      n_row = n_row,
      n_draw = n_draw,
      columns = columns
    ),
    class = "tall_written"
  )
}

# Draws of what value(fit, rows, draws) makes of rows, draws x rows, or x
# classes, of which there are `size`.
write_draws <- function(asked, n_draw, cores, to, value, size = 1) {
  fit <- asked$fit
  draws <- choose_draws(fit, n_draw, resample = TRUE, cores = cores)
  make <- function(joined) list(draws = value(fit, joined[[1]], draws))
  write_rows(asked, list(draws), make, to, nrow(draws$theta), size)
}

# Effects of new groups are drawn together.
check_can_write <- function(asked) {
  if (!asked$passes || !isTRUE(asked$groups$allows_new)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.arg to} takes no new groups from rows that are read block by block:
       their effects are drawn for all rows at once.",
      i = "A data frame as {.arg newdata} may have them."
    ),
    argument = "allow_new_levels"
  )
}

# ---- which rows --------------------------------------------------------------

# f(at) for blocks of n rows that are written at once, of which each makes
# `width` numbers.
each_written_block <- function(n, width, f) {
  size <- setting("written_numbers")
  each_block(n, max(width, size / setting("block_rows")), f, size = size)
}

# f(rows, number, upto) of all rows that are asked for where they are in memory,
# else of those of each block of their source. number: their numbers among those
# that are written; upto: the last number of this part, which may be that of a
# row that was left out. How many there are.
each_written_part <- function(asked, pads, f) {
  if (asked$passes) {
    return(each_passed_part(asked, pads, f))
  }
  rows <- asked_rows(asked)
  out <- if (pads) asked$fit$na_action
  left <- if (inherits(out, "exclude")) as.integer(out)
  n <- nrow(rows$x) + length(left)
  f(rows, setdiff(seq_len(n), left), n)
  n
}

each_passed_part <- function(asked, pads, f) {
  asked <- check_cuts(asked)
  pads <- pads && isTRUE(asked$fit$rows$request$pads)
  n <- 0
  each_newdata(
    asked$fit,
    function(block) {
      keep <- if (pads) block$keep else rep(TRUE, nrow(block$data))
      if (any(keep)) {
        rows <- block_of_rows(asked, NULL, block)
        f(rows, n + which(keep), n + length(keep))
      }
      n <<- n + length(keep)
      TRUE
    },
    asked$newdata,
    label = "Writing rows"
  )
  n
}

# ---- what is written of a block ----------------------------------------------

# A data frame of the rows after n_before and up to `upto`, of which the record
# has those of these numbers: others are NA. is_long: draws one below the other.
written_frame <- function(record, number, n_before, upto, is_long) {
  if (!is.null(record$draws)) {
    return(written_draws(record$draws, number, is_long))
  }
  n <- upto - n_before
  at <- number - n_before
  columns <- lapply(record$columns, function(x) {
    if (length(at) == n) x else x[match(seq_len(n), at)]
  })
  frame_of(c(list(.row = numbers_of_rows(n_before + seq_len(n))), columns), n)
}

numbers_of_rows <- function(x) {
  if (length(x) > 0 && max(x) > .Machine$integer.max) x else as.integer(x)
}

written_draws <- function(draws, number, is_long) {
  shape <- dim(draws)
  classes <- dimnames(draws)[[3]]
  n_line <- length(draws) / shape[[1]]
  if (length(shape) == 3) {
    draws <- aperm(draws, c(1, 3, 2))
  }
  each <- n_line / shape[[2]]
  labels <- list(.row = rep(numbers_of_rows(number), each = each))
  if (length(shape) == 3) {
    labels$.category <- rep(classes, shape[[2]])
  }
  if (!is_long) {
    values <- t(matrix(draws, shape[[1]]))
    values <- lapply(seq_len(shape[[1]]), function(k) as.double(values[, k]))
    names(values) <- paste0("draw_", seq_along(values))
    return(frame_of(c(labels, values), n_line))
  }
  labels <- lapply(labels, rep, each = shape[[1]])
  labels$.draw <- rep(seq_len(shape[[1]]), n_line)
  frame_of(c(labels, list(value = as.double(draws))), length(draws))
}

# list(fit, se.fit) and the like, vectors and matrices with a row for each row,
# as columns: a matrix has one for each of its own.
prediction_columns <- function(values) {
  parts <- lapply(names(values), function(name) {
    value <- values[[name]]
    if (!is.matrix(value)) {
      return(stats::setNames(list(unname(value)), name))
    }
    own <- colnames(value) %||% seq_len(ncol(value))
    columns <- lapply(seq_len(ncol(value)), function(k) unname(value[, k]))
    stats::setNames(columns, paste(name, own, sep = "."))
  })
  do.call(c, parts)
}
