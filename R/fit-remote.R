# Rows of a fit whose source is passed over, or of another source: block by
# block, as data frames that methods take as `newdata`, or some of them in the
# place of the model frame that such a fit does not have.

# Does the fit have a source instead of a model frame?
has_source <- function(fit) {
  !is.null(fit$rows$source)
}

# Are the rows that a method is asked for those of a source?
is_passed_over <- function(fit, newdata) {
  if (is.null(newdata)) {
    return(has_source(fit))
  }
  if (is.null(fit$terms)) {
    return(FALSE)
  }
  is_named <- (is.matrix(newdata) || is_sparse(newdata)) &&
    !is.null(colnames(newdata))
  is_one <- inherits(newdata, c("tall_source", "tall_store", "tbl_lazy")) ||
    is.character(newdata) || is_named
  is_shard <- function(x) {
    inherits(x, c("data.frame", "tall_source", "tbl_lazy")) || is.function(x)
  }
  is_one || is.list(newdata) && !is.data.frame(newdata) &&
    length(newdata) > 0 && all(vapply(newdata, is_shard, TRUE))
}

# The rows of a fit, of which some have groups for their data.
n_own_rows <- function(fit) {
  fit[[own_count(fit)]]
}

own_count <- function(fit) {
  if (is.null(fit$n_rows)) "n_data" else "n_rows"
}

# The terms of a row's variables, those of its groups included.
row_terms <- function(fit) {
  fit$design$rows %||% fit$terms
}

# How many, NA where only a pass can tell.
n_passed_over <- function(fit, newdata) {
  if (is.null(newdata)) {
    return(n_own_rows(fit))
  }
  source_size(data_source(newdata, "newdata"))
}

# ---- block by block ----------------------------------------------------------

# f(block) for each block, which is list(data, rows, keep, number, own): a data
# frame of the rows that count and their numbers among these; of the rows that
# `subset` takes, which do (NULL: all) and their numbers in the source; the
# response, list(y, weights, trials) of those that count. Of another source than
# the fit's own every row counts and `own` is NULL. f may return FALSE: no more.
each_newdata <- function(
  fit,
  f,
  newdata = NULL,
  label = "Reading rows",
  refresh = getOption("tallbayes.refresh", 1)
) {
  is_own <- is.null(newdata)
  source <- if (is_own) fit$rows$source else data_source(newdata, "newdata")
  columns <- fit$columns
  if (!is_own) {
    names <- source_names(source)
    check_newdata_columns(fit, names)
    columns <- intersect(columns, names)
  }
  request <- list(columns = columns)
  n_before <- 0
  went_on <- TRUE
  take <- function(block) {
    found <- if (is_own) {
      own_block(fit, block)
    } else {
      list(data = block_frame(block), number = block$row - 1 + seq_len(block$n))
    }
    n <- nrow(found$data)
    if (is_own && n_before + n > n_own_rows(fit)) {
      abort_other_rows(fit, NULL)
    }
    found$rows <- n_before + seq_len(n)
    n_before <<- n_before + n
    went_on <<- !isFALSE(f(found))
    went_on
  }
  walk_source(source, request, label, refresh, function(block) {
    for (at in seq(0, block$n - 1, by = setting("block_rows"))) {
      part <- block
      part$first <- block$first + at
      part$row <- block$row + at
      part$n <- min(setting("block_rows"), block$n - at)
      if (!take(part)) {
        return(FALSE)
      }
    }
    TRUE
  })
  if (is_own && went_on && n_before < n_own_rows(fit)) {
    abort_other_rows(fit, n_before)
  }
  invisible(n_before)
}

# What each_newdata() hands out of a block of the fit's own source.
own_block <- function(fit, block) {
  request <- fit$rows$request
  levels <- fit$rows$response_levels
  own <- block_response(request, block, levels)
  taken <- block_subset(request, block)
  data <- block_frame(block)
  keep <- own$keep %||% rep(TRUE, block$n)
  terms <- stats::delete.response(row_terms(fit))
  # what a function makes of a value may be missing, too
  frame <- stats::model.frame(terms, data, na.action = stats::na.pass)
  keep <- keep & stats::complete.cases(frame)
  number <- block$row - 1 + seq_len(block$n)
  if (!all(keep)) {
    data <- frame_rows_at(data, keep)
    own <- lapply(own[c("y", "weights", "trials")], function(x) {
      if (!is.null(x)) select_rows(x, keep)
    })
  }
  if (!is.null(taken)) {
    number <- number[taken]
    keep <- keep[taken]
  }
  list(data = data, keep = keep, number = number, own = own)
}

frame_rows_at <- function(data, rows) {
  data <- data[rows, , drop = FALSE]
  attr(data, "row.names") <- .set_row_names(nrow(data))
  data
}

abort_other_rows <- function(fit, n) {
  now <- if (is.null(n)) "More rows" else count_noun(n, "row")
  abort_tall(
    "source",
    c(
      "The fit's data have other rows than they had.",
      x = "{now} now, {count_noun(n_own_rows(fit), 'row')} then."
    ),
    argument = "data"
  )
}

check_newdata_columns <- function(fit, names) {
  terms <- stats::delete.response(fit$terms)
  missing <- setdiff(intersect(all.vars(terms), fit$columns), names)
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
}

# What f(block) returns, vectors with a value for each of its rows or matrices
# with a row for each, one block after the other. pads: with NA for rows that
# na.exclude left out.
gather_rows <- function(
  fit,
  f,
  newdata = NULL,
  pads = is.null(newdata) && isTRUE(fit$rows$request$pads)
) {
  parts <- list()
  each_newdata(
    fit,
    function(block) {
      values <- if (nrow(block$data) > 0) f(block)
      parts[[length(parts) + 1]] <<- list(
        values = values,
        keep = if (pads) block$keep
      )
      TRUE
    },
    newdata
  )
  names <- unique(unlist(lapply(parts, function(part) names(part$values))))
  lapply(stats::setNames(nm = names), function(name) {
    values <- lapply(parts, function(part) part$values[[name]])
    known <- Find(Negate(is.null), values)
    if (is.null(known)) {
      return(NULL)
    }
    padded <- Map(function(value, part) {
      pad_rows(value, part$keep, known)
    }, values, parts)
    if (is.matrix(known)) do.call(rbind, padded) else unlist(padded)
  })
}

# A value for each row that is kept, with NA in the place of others; keep: NULL:
# all are. like: where a block keeps none, what those of others are like.
pad_rows <- function(value, keep, like) {
  if (!is.matrix(like)) {
    value <- unname(value)
    if (is.null(keep)) {
      return(value)
    }
    return(replace(rep(NA_real_, length(keep)), keep, value))
  }
  if (!is.null(value)) {
    rownames(value) <- NULL
  }
  if (is.null(keep)) {
    return(value)
  }
  out <- matrix(NA_real_, length(keep), ncol(like))
  colnames(out) <- colnames(like)
  if (any(keep)) {
    out[keep, ] <- value
  }
  out
}

# ---- some or all of them in memory -------------------------------------------

# The same fit with a model frame: of all its rows, or of some (numbers among
# those that count, in this order), as if it had been made of these in memory.
fit_of_rows <- function(fit, which = NULL) {
  if (!has_source(fit)) {
    return(fit)
  }
  if (any(which < 1 | which > n_own_rows(fit))) {
    abort_no_row(max(which), n_own_rows(fit))
  }
  check_frame_size(fit, if (is.null(which)) n_own_rows(fit) else length(which))
  held <- own_newdata(fit, which)
  frame <- own_frame(fit, held)
  request <- fit$rows$request
  if (inherits(fit$rows, "tall_rows_grouped")) {
    # effects are those of all rows
    fit$grouped <- fit$rows
    request <- request_groups(fit$family, fit$bars, fit$sigma)
  }
  fit$rows <- rows_frame(list(frame = frame), request)
  fit[own_count(fit)] <- nrow(frame)
  fit$na_action <- if (is.null(which)) attr(frame, "na.action")
  fit
}

# Memory for so many rows that nobody asked for?
check_frame_size <- function(fit, n) {
  n_column <- max(fit$n_coef, length(fit$columns))
  if (n * n_column <= setting("large_matrix")) {
    return(invisible())
  }
  size <- structure(8 * n * n_column, class = "object_size")
  abort_tall(
    "memory",
    c(
      "{count_noun(n, 'row')} x {count_noun(n_column, 'column')} are
       {format_count(n * n_column)} numbers ({format(size, units = 'auto')}),
       and the fit has its rows in a source.",
      i = "{.code tallbayes::source_fetch(fit$rows$source, rows)} has some of
           them as a data frame, which can be {.arg newdata}."
    ),
    argument = "newdata",
    value = n * n_column,
    expected = setting("large_matrix")
  )
}

# list(data, number, left_out): own rows that count, as a data frame; their
# numbers in the source; of all rows, which na.action left out, named by theirs.
own_newdata <- function(fit, which = NULL) {
  parts <- list()
  n_seen <- 0
  each_newdata(
    fit,
    function(block) {
      data <- block$data
      rows <- block$rows
      left <- base::which(!block$keep)
      number <- block$number[block$keep]
      if (!is.null(which)) {
        at <- rows %in% which
        data <- frame_rows_at(data, at)
        rows <- rows[at]
        number <- number[at]
      }
      parts[[length(parts) + 1]] <<- list(
        data = data,
        rows = rows,
        number = number,
        left_out = stats::setNames(n_seen + left, block$number[left])
      )
      n_seen <<- n_seen + length(block$keep)
      TRUE
    }
  )
  every <- function(name) unlist(lapply(parts, `[[`, name))
  data <- bind_frames(lapply(parts, `[[`, "data"))
  number <- every("number")
  if (!is.null(which)) {
    at <- match(which, every("rows"))
    data <- frame_rows_at(data, at)
    number <- number[at]
  }
  left_out <- if (is.null(which)) every("left_out")
  list(data = data, number = number, left_out = left_out)
}

# Which of all rows na.action left out, as model frames say it: a pass.
source_left_out <- function(fit) {
  parts <- list()
  n_seen <- 0
  each_newdata(
    fit,
    function(block) {
      left <- base::which(!block$keep)
      parts[[length(parts) + 1]] <<-
        stats::setNames(n_seen + left, block$number[left])
      n_seen <<- n_seen + length(block$keep)
      TRUE
    }
  )
  as_na_action(unlist(parts), fit)
}

# left_out: row numbers, named by those in the source.
as_na_action <- function(left_out, fit) {
  if (length(left_out) == 0) {
    return(NULL)
  }
  rows <- source_row_names(fit$rows$source, as.double(names(left_out)))
  structure(
    stats::setNames(as.integer(left_out), rows),
    class = if (isTRUE(fit$rows$request$pads)) "exclude" else "omit"
  )
}

# The model frame of such rows, as tall_glm() makes it of rows in memory.
own_frame <- function(fit, held) {
  request <- fit$rows$request
  data <- held$data
  terms <- row_terms(fit)
  reader <- list(
    columns = fit$columns,
    xlevels = fit$xlevels %||% fit$design$xlevels
  )
  frame <- prediction_frame(reader, terms, data)
  levels <- fit$rows$response_levels
  if (is.factor(frame[[1]]) && !is.null(levels)) {
    frame[[1]] <- factor(
      as.character(frame[[1]]),
      levels = levels,
      ordered = is.ordered(frame[[1]])
    )
  }
  block <- list(columns = as.list(data), first = 0, n = nrow(data), row = 1)
  argument <- request$offsets[[length(request$offsets)]]
  frame[["(weights)"]] <-
    block_number(request, block, request$weights, "weights")
  frame[["(offset)"]] <- block_number(request, block, argument, "offset")
  # with the classes of weights and offset
  attr(frame, "terms") <- terms
  attr(frame, "row.names") <- source_row_names(fit$rows$source, held$number)
  attr(frame, "na.action") <- as_na_action(held$left_out, fit)
  frame
}

# Those of a data frame, else their numbers.
source_row_names <- function(source, number) {
  names <- if (inherits(source, "tall_source_frame")) {
    attr(source$data, "row.names")
  }
  if (is.character(names)) {
    names[number]
  } else if (max(number, 0) <= .Machine$integer.max) {
    as.integer(number)
  } else {
    as.character(number)
  }
}

# newdata that is a source, in memory: for matrices with a column for each row.
frame_newdata <- function(fit, newdata, draws) {
  if (is.null(newdata) || !is_passed_over(fit, newdata)) {
    return(newdata)
  }
  frames <- list()
  n_row <- 0
  each_newdata(
    fit,
    function(block) {
      n_row <<- n_row + nrow(block$data)
      check_matrix_size(fit, n_row, draws, NULL)
      frames[[length(frames) + 1]] <<- block$data
      TRUE
    },
    newdata
  )
  bind_frames(frames)
}

#' @export
design_of.tall_regression <- function(fit, newdata, groups) {
  if (is.null(newdata)) {
    own_design(fit)
  } else if (is.null(fit$terms)) {
    matrix_design(fit, newdata)
  } else {
    frame_design(fit, newdata)
  }
}

own_design <- function(fit) {
  check_has_data(fit, "newdata")
  if (is.null(fit$terms)) {
    return(list(x = rows_in_memory(fit$rows$x), offset = fit$rows$offset))
  }
  fit <- fit_of_rows(fit)
  frame <- all_frame(fit$rows)
  x <- fit_design(fit, fit$terms, frame)
  list(x = x, offset = stats::model.offset(frame))
}
