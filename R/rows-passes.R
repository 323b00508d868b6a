# Rows that are passed over: a source, and how its rows are read.
#
# After a look they have, besides source and request: design (compile_design()),
# response_levels, has_weights, has_offset, family, n_row, digest; of a database
# in_sql, from settle_sql().

# Rows that nobody has looked at.
rows_of_source <- function(source, request) {
  tables <- source_tables(source)
  tall_rows(if (is.null(tables)) "passes" else "database", list(
    source = source,
    request = request
  ))
}

# Of what a look found (NULL in_sql: R reads them).
rows_passes <- function(fields, in_sql = NULL) {
  fields$in_sql <- in_sql
  tall_rows(if (is.null(in_sql)) "passes" else "database", unclass(fields))
}

# The same of another source, such as a shard.
with_source <- function(rows, source) {
  rows["source"] <- list(source)
  rows
}

without_source <- function(rows) {
  rows$source <- NULL
  rows
}

#' @export
look.tall_rows_passes <- function(rows, refresh = 0) {
  look_at_source(rows$source, rows$request, refresh)
}

#' @export
look.tall_rows_database <- function(rows, refresh = 0) {
  found <- tryCatch(
    look_sql(source_tables(rows$source), rows$request, refresh),
    tall_no_sql = function(cnd) conditionMessage(cnd)
  )
  if (!is.character(found)) {
    return(found)
  }
  tell_streamed(found, refresh)
  NextMethod()
}

# A look, and how it says that rows are read: class tall_reading, of look, rows,
# pilot and parts, the last two as pilot_frame() and frame_parts() have them.
# Without `rows`: the source is small or has too many levels, and all its rows
# can be had at once. matched: the front end's call.
read_design <- function(rows, matched, refresh) {
  found <- look(rows, refresh)
  if (found$is_whole) {
    check_levels_fit(found)
    return(new_reading(found))
  }
  request <- rows$request
  pilot <- pilot_frame(found, rows$source, request, matched, refresh)
  refuse_dependent(request, pilot)
  parts <- frame_parts(pilot$frame, request$family)
  rows <- rows_passes(list(
    source = rows$source,
    request = request,
    design = compile_design(pilot$whole),
    response_levels = found$response_levels,
    has_weights = !is.null(parts$weights) || !is.null(parts$trials),
    has_offset = !is.null(parts$offset),
    family = request$family,
    n_row = found$n_row,
    digest = found$digest
  ))
  own <- c("frame", "stands", "call", "data", "counts")
  new_reading(found, rows, pilot[own], parts)
}

new_reading <- function(look, rows = NULL, pilot = NULL, parts = NULL) {
  structure(
    list(look = look, rows = rows, pilot = pilot, parts = parts),
    class = "tall_reading"
  )
}

# The rows, once it is known whether the database computes their passes.
settle_database <- function(reading, pilot, refresh) {
  asked <- reading$look$in_sql
  rows <- reading$rows
  in_sql <- settle_sql(asked, rows$design, pilot)
  if (is.null(in_sql) && !is.null(asked)) {
    why <- smooths_beyond_sql(rows$design) %||% "the design is no SQL"
    tell_streamed(why, refresh)
  }
  rows_passes(rows, in_sql)
}

# R reads them, and nothing is known of all of them.
#' @export
new_rows.tall_rows_passes <- function(rows, data) {
  own <- c("digest", "facts", "some", "products", "n_row", "x", "rest")
  rows[own] <- NULL
  rows_passes(with_source(rows, as_source(data)))
}

# ---- chunks ----------------------------------------------------------------

#' @export
each_chunk.tall_rows_passes <- function(rows, f, show = list(refresh = 0)) {
  check_source_kept(rows)
  chunks <- new_chunks(rows, f)
  walk_source(
    rows$source,
    rows$request,
    show$label,
    show$refresh,
    chunks$add
  )
  chunks$end()
}

# Chunks of the blocks that are added, each told to f(chunk, n, first); $end()
# is what each_chunk() returns.
new_chunks <- function(rows, f) {
  chunk <- new_chunk(
    rows$design,
    setting("chunk_rows"),
    rows$has_weights,
    rows$has_offset,
    response_facts(rows$family)$n_y
  )
  seen <- list(n_row = 0, n_missing = 0)
  before <- rows$digest
  digest <- digest_if(!is.null(before), rows$request, before$kinds)
  flush <- function(n) {
    if (n > 0) {
      f(chunk, n, seen$n_row)
      seen$n_row <<- seen$n_row + n
      chunk$fill <- 0
    }
  }
  add <- function(block) {
    digest$add(block)
    own <- pass_response(rows$request, block, rows$response_levels)
    seen$n_missing <<- seen$n_missing + own$n_missing
    values <- block_values(rows$design, block, rows$request$env)
    from <- 0
    while (from < block$n) {
      found <- fill_chunk(
        chunk,
        rows$design,
        values,
        own$y,
        if (rows$has_weights) own$weights %||% rep(1, block$n),
        if (rows$has_offset) own$offset %||% numeric(block$n),
        own$keep,
        from
      )
      check_filled(found, rows, block)
      seen$n_missing <<- seen$n_missing + found$n_missing
      from <- found$from
      if (found$fill == setting("chunk_rows")) {
        flush(setting("chunk_rows"))
      }
    }
    TRUE
  }
  end <- function() {
    flush(chunk$fill)
    c(seen, list(digest = digest$found()))
  }
  list(add = add, end = end)
}

# What opens the rows is there, or the fit that they are of kept it not.
check_source_kept <- function(rows) {
  if (is.null(rows$source)) {
    abort_tall(
      "stale",
      c(
        "The fit did not keep its data.",
        i = "Fit with {.code keep_data = TRUE} to keep them."
      )
    )
  }
}

# na.action = na.fail: what the look did not see, such as the log of a negative
# number.
check_filled <- function(found, rows, block) {
  if (rows$request$fails && found$n_missing > 0) {
    abort_input(
      c(
        "{.arg formula} has missing values in rows {format_count(block$row)} to
         {format_count(block$row - 1 + block$n)} of {.arg data}.",
        i = "{.code na.action = na.omit} leaves such rows out."
      ),
      argument = "data"
    )
  }
}

# ---- some of them in memory --------------------------------------------------

# x, y, weights, offset of rows of the design, as a model takes them; facts: of
# all rows, where they are known.
rows_drawn <- function(rows, of, facts = NULL) {
  x <- of$x
  if (is.null(colnames(x))) {
    colnames(x) <- rows$design$columns
  }
  rows_memory(
    x,
    of$y,
    of$weights,
    of$offset,
    rows$request$response_name,
    facts
  )
}

# One pass: f(x) of each chunk of the design; what it hands out with that is
# kept: list(y, weights, offset, n_missing).
gather_design <- function(rows, f, show) {
  parts <- list()
  each <- function(chunk, n, first) {
    own <- seq_len(n)
    f(chunk$x[own, , drop = FALSE])
    parts[[length(parts) + 1]] <<- list(
      y = select_rows(chunk$y, own),
      weights = if (rows$has_weights) chunk$weights[own],
      offset = if (rows$has_offset) chunk$offset[own]
    )
  }
  seen <- each_chunk(rows, each, show)
  check_same_digest(rows$digest, seen$digest)
  every <- function(name) join_values(lapply(parts, `[[`, name))
  list(
    y = every("y"),
    weights = every("weights"),
    offset = every("offset"),
    n_missing = seen$n_missing
  )
}

# facts: those that passes found, which these rows must have.
#' @export
whole_rows.tall_rows_passes <- function(rows) {
  x <- list()
  keep <- function(part) x[[length(x) + 1]] <<- part
  of <- gather_design(rows, keep, list(label = "Reading rows", refresh = 0))
  of$x <- do.call(rbind, x)
  out <- rows_drawn(rows, of, rows$facts)
  check_as_before(out)
  out
}

# Of a fit: as many rows, with the means that its passes found.
check_as_before <- function(rows) {
  then <- rows$facts
  if (is.null(then)) {
    return(invisible())
  }
  n <- nrow(rows$x)
  if (n != then$n_row) {
    abort_other_number(n, then$n_row)
  }
  away <- abs(colMeans(rows$x) - then$mean)
  if (any(away > 1e-8 * (abs(then$mean) + then$sd))) {
    abort_tall(
      "source",
      c(
        "The fit's data have other values than they had.",
        x = "The mean of {.field {colnames(rows$x)[[which.max(away)]]}} is
             another."
      ),
      argument = "data"
    )
  }
}

abort_other_number <- function(now, then) {
  abort_tall(
    "source",
    c(
      "The fit's data have other rows than they had.",
      x = "{count_noun(now, 'row')} now, {count_noun(then, 'row')} then."
    ),
    argument = "data"
  )
}

# ---- with the design in a file -----------------------------------------------

# x: the tall_store(); of: list(y, weights, offset) of its rows, which are in
# memory, NULL: another pass reads them. network: where the file has the inputs
# of one in standard units, what else read_frame() has of these.
rows_store <- function(rows, x, of = NULL, network = NULL) {
  fields <- unclass(rows)
  fields$x <- x
  fields$rest <- of
  fields$network <- network
  tall_rows("store", fields)
}

#' @export
whole_rows.tall_rows_store <- function(rows) {
  x <- check_store(rows$x, arg = "fit$rows$x")
  show <- list(label = "Reading rows", refresh = 0)
  of <- rows$rest %||% gather_design(rows, identity, show)
  name <- rows$request$response_name
  network <- rows$network
  y <- if (is.null(network)) of$y else in_units(of$y, network$scaling)
  own <- list(x, y, of$weights, of$offset, name)
  do.call(rows_memory, c(own, network))
}
