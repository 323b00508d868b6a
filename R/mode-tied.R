# Passes that tie rows (see R/rows-tied.R), and sums over rows that are tied.

# The rows, tied where the pilot says that they are to be: by a pass, unless the
# pilot has every kind of row. theta: where the mode is thought to be. Where a
# pass meets far more kinds than the pilot told it ends as one for sums at
# theta, and the rows have what it found as `met`.
settle_ties <- function(rows, pilot, control, theta = NULL) {
  if (!is.null(pilot$within) && !is.null(rows$in_sql)) {
    of <- list(x = pilot$x, y = pilot$y, count = pilot$stands)
    return(rows_summed(rows, c(of, list(within = pilot$within))))
  }
  if (!pilot$is_alike) {
    return(rows)
  }
  if (!pilot$is_every) {
    return(tie_rows(rows, control, theta))
  }
  tied <- unclass(pilot)[c("x", "y", "weights", "offset")]
  tied$count <- pilot$stands
  rows$has_every <- TRUE
  rows_tied(rows, tied, facts_of_ties(tied, rows), rows$in_sql$n_missing)
}

#' @export
tie_rows.tall_rows_passes <- function(rows, control, theta = NULL) {
  show <- pass_show(2, control, of = 2)
  args <- list(theta = theta, cores = control$cores, most = most_ties())
  passed <- pass_over(rows, ties_over, args, show)
  if (any(vapply(passed$parts, function(part) !is.null(part$sums), TRUE))) {
    sums <- lapply(passed$parts, function(part) {
      part$sums %||% sums_of_ties(part$tied, rows, args)
    })
    rows$met <- c(
      list(theta = theta),
      Reduce(add_sums, sums, NULL),
      passed[c("facts", "n_missing")]
    )
    return(rows)
  }
  tied <- join_ties(lapply(passed$parts, `[[`, "tied"))
  rows_tied(rows, weigh_ties(tied), passed$facts, passed$n_missing)
}

# Kinds from which on a pass gives up tying: the pilot told of fewer by far.
most_ties <- function() {
  4 * setting("ties")$most
}

# Of a shard: `tied`, or `sums` where it gave up.
ties_over <- function(rows, args, first) {
  columns <- new_column_facts()
  pile <- new_ties()
  sums <- NULL
  add <- function(chunk, n, first) {
    columns$add(chunk, n)
    if (!is.null(sums)) {
      part <- with_chunk_model(chunk, n, rows, function(model) {
        chunk_sums(model, args$theta, args$cores)
      })
      sums <<- add_sums(sums, part)
      return(invisible())
    }
    pile$add(tie_part(chunk, n))
    if (!is.null(args$theta) && pile$n_joined() > args$most) {
      sums <<- sums_of_ties(pile$all(), rows, args)
      pile <<- new_ties()
    }
  }
  end <- function(seen) {
    c(seen, list(tied = pile$all(), sums = sums, columns = columns$total()))
  }
  list(add = add, end = end)
}

# At theta, of rows each of which counts for as many as there are.
sums_of_ties <- function(tied, rows, args) {
  tied <- weigh_ties(tied)
  part <- with_chunk_model(tied, nrow(tied$x), rows, function(model) {
    chunk_sums(model, args$theta, args$cores)
  })
  add_sums(NULL, part)
}

# sums_at(), unless a pass has found them.
sums_met <- function(rows, theta, control, pass) {
  met <- rows$met
  if (pass == 1 && !is.null(met) && identical(met$theta, theta)) {
    return(met[names(met) != "theta"])
  }
  sums_at(rows, theta, control, pass + 1)
}

# Parts that are joined when they are many, so that they take no more memory
# than what differs.
new_ties <- function() {
  parts <- list()
  n <- 0
  n_joined <- 0
  join <- function() {
    parts <<- list(join_ties(parts))
    n <<- length(parts[[1]]$count)
    n_joined <<- n
  }
  list(
    add = function(part) {
      parts[[length(parts) + 1]] <<- part
      n <<- n + length(part$count)
      # at least as many again as there were
      if (n > 4 * setting("chunk_rows") && n > 2 * length(parts[[1]]$count)) {
        join()
      }
    },
    # those that differ, as far as parts were joined
    n_joined = function() n_joined,
    # NULL: there were none
    all = function() join_ties(parts)
  )
}

# A GROUP BY of all that a row has, which hands back no more kinds than tying
# gives up at. A database that groups rows has no sums of them where it does:
# in a large table it is asked first how many kinds a part of the rows has.
#' @export
tie_rows.tall_rows_database <- function(rows, control, theta = NULL) {
  if (is.null(rows$in_sql)) {
    return(NextMethod())
  }
  check_source_kept(rows)
  s <- rows$in_sql
  tables <- source_tables(rows$source)
  # without a point there is nothing else that it could be
  most <- if (is.null(theta)) Inf else most_ties()
  is_large <- rows$n_row > 4 * ties_looked_at * most
  if (is_large && has_many_kinds(tables, s, most)) {
    return(rows)
  }
  found <- run_on_tables(tables, lapply(tables, ties_query, s, most))
  if (max(vapply(found, nrow, 1L)) > most) {
    rows$tried <- 1
    return(rows)
  }
  # by their values: draws are the same in whatever order they come
  keys <- bind_frames(found)
  by <- unname(as.list(keys[value_names(s)]))
  keys <- keys[do.call(order, c(by, method = "radix")), ]
  part <- tied_keys(rows, keys)
  tied <- weigh_ties(tie_part(part, nrow(keys), as.double(keys$n)))
  rows_tied(rows, tied, facts_of_ties(tied, rows), s$n_missing)
}

# Rows that are looked at beforehand: a part of them, and so many times as many
# as there may be kinds.
ties_looked_at <- 2

# Have the first rows of a table more kinds than all may have?
has_many_kinds <- function(tables, s, most) {
  queries <- lapply(tables, kinds_of_some_query, s, ties_looked_at * most)
  found <- run_on_tables(tables, queries)
  any(vapply(found, function(n) as.double(n$n), 0) > most)
}

kinds_of_some_query <- function(table, s, n) {
  rows <- sql_rows(s, table)
  con <- rows$con
  by <- value_names(s)
  some <- sql_select(con, list(), rows$sql, keep = by)
  some <- sql_append(some, sql_limit(n))
  kinds <- sql_select(con, list(n = "COUNT(*)"), some, keep = by)
  sql_select(con, list(n = "COUNT(*)"), sql_grouped(con, kinds, by))
}

ties_query <- function(table, s, most) {
  rows <- sql_rows(s, table)
  con <- rows$con
  by <- value_names(s)
  where <- if (!isTRUE(s$is_complete)) {
    paste(quote_names(con, "missing"), "= 0")
  }
  sql <- sql_select(
    con,
    list(n = "COUNT(*)"),
    rows$sql,
    keep = by,
    where = where
  )
  sql_grouped(con, sql, by, most)
}

# Design, response, weights and offset of rows that the database has by the
# values of their variables.
tied_keys <- function(rows, keys) {
  s <- rows$in_sql
  design <- rows$design
  n <- nrow(keys)
  source_at <- function(k) {
    variable <- s$variables[[k]]
    values <- keys[[sprintf("v%d", k)]]
    values <- if (variable$is_logical) {
      values == 1
    } else if (variable$kind == "levels") {
      level_text(variable, values)
    } else {
      as.double(values)
    }
    list(values = values, first = 0)
  }
  sources <- lapply(design$variables, function(variable) {
    if (is.null(variable$smooth)) {
      return(source_at(match(variable$name, names(s$variables))))
    }
    parts <- lapply(smooth_parts(variable$smooth), function(part) {
      source_at(place_of_text(s, part$name, part$kind))
    })
    list(parts = parts)
  })
  columns <- Map(variable_column, sources, design$variables, n)
  values <- list(columns = unname(columns), n = n, row = 1, sources = sources)
  chunk <- new_chunk(design, n, rows$has_weights, rows$has_offset)
  fill_chunk(
    chunk,
    design,
    values,
    as.double(keys$y),
    if (rows$has_weights) as.double(keys$weight),
    if (rows$has_offset) as.double(keys$offset)
  )
  if (chunk$fill != n) {
    abort_source("The database has other rows than the look found.")
  }
  chunk
}

# Facts of all rows from those that differ: see new_column_facts().
facts_of_ties <- function(tied, rows) {
  n <- sum(tied$count)
  y <- first_column(tied$y) - (tied$offset %||% 0)
  z <- cbind(tied$x, y)
  mean <- colSums(tied$count * z) / n
  away <- z - rep(mean, each = nrow(z))
  square <- colSums(tied$count * away^2)
  total <- list(n = n, mean = unname(mean), square = unname(square))
  if (rows$has_weights) {
    w <- sum(tied$weights)
    centre <- sum(tied$weights * y) / w
    total$weighted <- c(
      max(tied$weights / tied$count),
      w,
      centre,
      sum(tied$weights * (y - centre)^2)
    )
  }
  facts_of(total)
}

# ---- sums that the look has --------------------------------------------------

# Of kinds of rows, of which squares of the response within are known. Where
# residuals are looked at, their sums have lost too many digits: a pass does.
#' @export
products_of.tall_rows_summed <- function(rows, control) {
  of <- rows$summed
  n <- sum(of$count)
  z <- cbind(of$x, of$y)
  mean <- unname(colSums(of$count * z) / n)
  away <- z - rep(mean, each = nrow(z))
  sums <- unname(crossprod(away, of$count * away))
  d <- ncol(z)
  sums[d, d] <- sums[d, d] + sum(of$within)
  facts <- facts_of(list(n = n, mean = mean, square = diag(sums)))
  list(
    mean = mean,
    sums = sums,
    weight = n,
    facts = facts,
    n_missing = rows$in_sql$n_missing
  )
}

# ---- sums over rows that are tied --------------------------------------------

#' @export
sums_at.tall_rows_tied <- function(rows, theta, control, pass = 1) {
  told_of_all(NextMethod(), rows)
}

#' @export
take_rows_ahead.tall_rows_tied <- function(rows, found, draw, control) {
  told_of_all(NextMethod(), rows)
}

told_of_all <- function(out, rows) {
  out$facts <- rows$facts
  out$n_missing <- rows$n_missing
  out
}
