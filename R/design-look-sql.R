# The look of tables whose passes the database computes: counts, levels and a
# stratified pilot, as look_at_source() finds them of other sources, and whether
# the database and R mean the same by the terms.

# rows that a database hands out for one reason, such as to show them
few_rows <- 50

tell_streamed <- function(why, refresh, arg = "data") {
  if (refresh > 0) {
    cli::cli_inform(c(
      i = "The rows of {.arg {arg}} are streamed: {escape_cli(why)}."
    ))
  }
}

# The same as look_at_source(), with `in_sql`.
look_sql <- function(tables, request, refresh) {
  is_free <- vapply(tables, function(table) table$in_database, TRUE)
  if (!all(is_free)) {
    no_sql("as asked for by `in_database = FALSE`")
  }
  head <- source_head(tables[[1]])
  check_no_arrays(head[request$columns])
  s <- sql_request(tables, request, head)
  for (table in tables) {
    con <- table_connection(table)
    check_can_fail(con)
    check_translated(s, con)
    lacks <- sql_lacks(con)
    if (!is.null(lacks)) {
      no_sql(lacks)
    }
  }
  sums <- look_sums(tables, s, request, head)
  if (!is.null(sums)) {
    return(sums)
  }
  for (table in tables) {
    check_types(s, table)
    check_terms_run(s, table)
  }
  kinds <- look_kinds(tables, s, request, head)
  if (!is.null(kinds)) {
    return(kinds)
  }
  counts <- count_rows(tables, s)
  if (max(vapply(counts, nrow, 1L)) > setting("most_groups")) {
    return(too_many_groups(tables, s, counts))
  }
  counts <- do.call(rbind, counts)
  check_row_counts(s, tables, request, counts)
  is_complete <- counts$missing == 0
  n_row <- sum(counts$n[is_complete])
  n_missing <- sum(counts$n[!is_complete])
  check_complete_rows(n_row, n_missing, request)
  if (n_row <= setting("look")$rows) {
    return(list(is_whole = TRUE))
  }
  strata <- count_strata(s, counts[is_complete, , drop = FALSE])
  if (max(0, lengths(strata)) > setting("look")$levels) {
    widest <- which.max(lengths(strata))
    name <- s$variables[[as.integer(substring(names(widest), 2))]]$name
    return(too_many_levels(name, max(lengths(strata)), n_row))
  }
  rates <- pilot_rates(strata, n_row)
  queries <- lapply(tables, pilot_query, s = s, rates = rates)
  parts <- lapply(run_on_tables(tables, queries), split_fetched, s)
  for (part in parts) {
    check_terms_agree(s, request, part)
  }
  pilot <- join_pilots(parts)
  weights <- 1 / pilot_rate_of(s, pilot, rates)
  ends <- sql_ends(s, tables, s$ranged)
  s$n_cells <- count_cells(s, counts[is_complete, , drop = FALSE])
  s$is_complete <- n_missing == 0
  s$n_missing <- n_missing
  list(
    frame = pilot$raw,
    weights = weights * n_row / sum(weights),
    rows = seq_along(weights),
    ends = ends,
    n_row = n_row,
    n_missing = n_missing,
    is_whole = FALSE,
    response_levels = NULL,
    in_sql = s
  )
}

# Terms that a database refuses, such as for the types of its columns. Nothing
# is read.
check_terms_run <- function(s, table) {
  fields <- c("y", "missing", sprintf("v%d", seq_along(s$variables)))
  failed <- why_it_fails(s, table, fields, where = "1 = 0")
  if (!is.null(failed)) {
    no_sql(paste0("the database refuses a term (", first_line(failed), ")"))
  }
}

# The words of the database, NULL where these columns can be read.
why_it_fails <- function(s, table, fields, where = NULL) {
  con <- table_connection(table)
  tryCatch(
    in_savepoint(con, {
      rows <- sql_rows(s, table)
      own <- paste0("COUNT(", quote_names(con, fields), ")")
      names(own) <- sprintf("s%d", seq_along(own))
      sql <- sql_select(con, own, rows$sql, where = where)
      DBI::dbGetQuery(con, query_text(con, sql))
      NULL
    }),
    error = function(e) conditionMessage(e)
  )
}

# A term that a row makes the database fail of, such as the logarithm of 0.
check_terms_compute <- function(s, table) {
  for (k in seq_along(s$variables)) {
    term <- s$variables[[k]]
    if (is.name(term$expression)) {
      next
    }
    one <- s
    one$variables <- one$variables[k]
    failed <- why_it_fails(one, table, "v1")
    if (!is.null(failed)) {
      abort_tall(
        "unsupported",
        c(
          "The database cannot compute the term {.code {term$name}}.",
          x = escape_cli(first_line(failed)),
          i = "Let R read the rows:
               {.code as_source(data, in_database = FALSE)}."
        ),
        argument = "formula",
        value = term$name
      )
    }
  }
}

first_line <- function(text) {
  trimws(strsplit(text, "\n")[[1]][[1]])
}

# SQLite has values of any type in any column.
check_types <- function(s, table) {
  con <- table_connection(table)
  if (!is_sqlite(con) || length(s$numbers) == 0) {
    return(invisible())
  }
  own <- quote_names(con, s$numbers)
  is_wrong <- paste0("typeof(", own, ") IN ('text', 'blob')")
  wrong <- paste0("SUM(", sql_flag(is_wrong, con), ")")
  names(wrong) <- sprintf("s%d", seq_along(wrong))
  found <- run_sql(con, sql_select(con, wrong, table_query(table)))
  bad <- which(unlist(found) > 0)
  if (length(bad) > 0) {
    name <- s$numbers[[bad[[1]]]]
    abort_source(
      "{.field {name}} has numbers and, in
       {count_noun(found[[bad[[1]]]], 'row')}, text.",
      column = name
    )
  }
}

# ---- counts ------------------------------------------------------------------

# Of each table rows by the levels of factors, the outcome and whether they lack
# something: columns n, bad (not allowed), and those.
count_rows <- function(tables, s) {
  queries <- lapply(tables, counts_query, s)
  found <- tryCatch(
    in_savepoints(tables, run_on_tables(tables, queries)),
    tall_error_source = function(e) {
      # not where a table cannot be opened
      if (!is.null(e$sql)) {
        check_terms_compute(s, tables[[e$shard %||% 1]])
      }
      rlang::cnd_signal(e)
    }
  )
  lapply(found, function(counts) {
    counts$n <- as.double(counts$n)
    counts$bad[is.na(counts$bad)] <- 0
    counts
  })
}

counts_query <- function(table, s) {
  rows <- sql_rows(s, table)
  con <- rows$con
  levels <- sql_level_names(s)
  by <- c(levels, "missing", if (!has_units(s)) "outcome")
  columns <- list(bad = sql_bad(s, rows))
  if (!has_units(s)) {
    columns$outcome <- paste0(
      "CASE WHEN ", quote_names(con, "y"), " > 0 THEN 1 ELSE 0 END"
    )
  }
  sql <- sql_select(con, columns, rows$sql, keep = c(levels, "missing"),
    engine = rows$engine)
  sql <- sql_select(con, list(n = "COUNT(*)", bad = "SUM(bad)"), sql, keep = by)
  sql_grouped(con, sql, by, setting("most_groups"))
}

has_units <- function(s) {
  find_response(s$family)$has_units
}

# Rows that lack nothing and have what may not be: infinite numbers, negative
# weights, other responses than the family's.
sql_bad <- function(s, rows) {
  con <- rows$con
  own <- quote_names(con, rows$numbers)
  bad <- paste0("ABS(", own, ") > ", sql_number(most_of_data, con))
  if (has_sql_weight(s)) {
    bad <- c(bad, paste0(quote_names(con, "weight"), " < 0"))
  }
  outside <- s$recipe$outside
  if (!is.null(outside)) {
    bad <- c(bad, sql_translate(outside(has_sql_weight(s)), con))
  }
  bad <- paste(bad, collapse = " OR ")
  sql_flag(paste0(quote_names(con, "missing"), " = 0 AND (", bad, ")"), con)
}

# Rows that R refuses, too, are shown to it: it has the words.
check_row_counts <- function(s, tables, request, counts) {
  if (sum(counts$bad) > 0) {
    for (table in tables) {
      part <- fetch_rows(s, table, function(rows) {
        paste(sql_bad(s, rows), "= 1")
      })
      show_to_r(request, part)
      show_numbers(request, part$raw)
    }
    abort_source(
      "{count_noun(sum(counts$bad), 'row')} of {.arg data} have values that are
       not finite or too large, or no responses of the family."
    )
  }
  missing <- counts$missing > 0
  if (!any(missing)) {
    return(invisible())
  }
  check_none_missing(request, sum(counts$n[missing]))
  # what terms make missing, the database must not alone
  every <- c(request$covariates, request$offsets, list(
    request$response,
    request$weights
  ))
  is_made <- any(vapply(every, is.call, TRUE))
  if (is_made) {
    for (table in tables) {
      con <- table_connection(table)
      own <- sprintf("c%d", seq_along(s$columns))
      part <- fetch_rows(s, table, function(rows) {
        c(
          paste(quote_names(con, "missing"), "= 1"),
          paste(quote_names(con, own), "IS NOT NULL")
        )
      })
      check_terms_agree(s, request, part)
    }
  }
}

# ---- the pilot ---------------------------------------------------------------

# Combinations of levels that rows have.
count_cells <- function(s, counts) {
  nrow(unique(counts[c("missing", sql_level_names(s))]))
}

# Rows by level, for each factor and for the outcome.
count_strata <- function(s, counts) {
  names <- c(sql_level_names(s), if (!has_units(s)) "outcome")
  lapply(stats::setNames(nm = names), function(name) {
    out <- tapply(counts$n, as.character(counts[[name]]), sum)
    stats::setNames(as.double(out), names(out))
  })
}

# Of each row the share that is wanted: list(all, strata), the latter only where
# it is more.
pilot_rates <- function(strata, n_row) {
  all <- setting("look")$rows / n_row
  own <- lapply(strata, function(n) {
    # so many that the least is there almost surely
    rate <- pmin(1.5 * setting("look")$of_stratum / n, 1)
    rate[rate > all]
  })
  list(all = min(1, all), strata = own)
}

pilot_rate_of <- function(s, pilot, rates) {
  out <- rep(rates$all, nrow(pilot$raw))
  for (name in names(rates$strata)) {
    own <- rates$strata[[name]]
    value <- if (name == "outcome") {
      as.integer(pilot$values$y > 0)
    } else {
      pilot$values[[name]]
    }
    rate <- own[as.character(value)]
    out <- pmax(out, rate, na.rm = TRUE)
  }
  out
}

pilot_query <- function(table, s, rates) {
  con <- table_connection(table)
  u <- quote_names(con, "u")
  wanted <- paste(u, "<", sql_number(rates$all, con))
  for (name in names(rates$strata)) {
    own <- rates$strata[[name]]
    if (length(own) == 0) {
      next
    }
    is_level <- if (name == "outcome") {
      paste(quote_names(con, "y"), c("<= 0", "> 0")[as.integer(names(own)) + 1])
    } else {
      variable <- s$variables[[as.integer(substring(name, 2))]]
      literal <- if (variable$is_text) {
        sql_levels(variable, names(own), con)
      } else {
        sql_number(as.double(names(own)), con)
      }
      paste(quote_names(con, name), "=", literal)
    }
    wanted <- c(wanted, paste(is_level, "AND", u, "<", sql_number(own, con)))
  }
  wanted <- paste0("(", wanted, ")", collapse = " OR ")
  rows_query(s, table, function(rows) {
    c(paste(quote_names(con, "missing"), "= 0"), wanted)
  }, below = max(rates$all, unlist(rates$strata)))
}

# A row where each of these is least and one where it is largest, over all
# tables, as a frame; NULL: there are none.
sql_ends <- function(s, tables, at) {
  if (length(at) == 0) {
    return(NULL)
  }
  found <- run_on_tables(tables, lapply(tables, ends_query, s, at))
  found <- matrix(as.double(unlist(found)), 2 * length(at))
  best <- c(
    apply(found[seq_along(at), , drop = FALSE], 1, which.min),
    apply(found[-seq_along(at), , drop = FALSE], 1, which.max)
  )
  ends <- Map(
    function(k, table, value) {
      one <- fetch_rows(s, tables[[table]], function(rows) {
        con <- rows$con
        own <- quote_names(con, sprintf("v%d", k))
        paste(quote_names(con, "missing"), "= 0 AND", own, "=",
          sql_number(value, con))
      }, n = 1)
      one$raw
    },
    c(at, at),
    best,
    found[cbind(seq_along(best), best)]
  )
  bind_frames(ends)
}

ends_query <- function(table, s, at) {
  rows <- sql_rows(s, table)
  own <- quote_names(rows$con, sprintf("v%d", at))
  ends <- c(sprintf("MIN(%s)", own), sprintf("MAX(%s)", own))
  names(ends) <- c(sprintf("low%d", at), sprintf("high%d", at))
  where <- paste(quote_names(rows$con, "missing"), "= 0")
  sql_select(rows$con, ends, rows$sql, where = where)
}

# list(raw, values): rows of the table as it has them, and what the database
# makes of them.
fetch_rows <- function(s, table, where, n = few_rows) {
  sql <- sql_append(rows_query(s, table, where), paste("LIMIT", n))
  split_fetched(run_sql(table_connection(table), sql), s)
}

rows_query <- function(s, table, where, below = NULL) {
  rows <- sql_rows(s, table, raw = TRUE, below = below)
  sql_select(
    rows$con,
    list(),
    rows$sql,
    keep = c(sprintf("c%d", seq_along(s$columns)), value_names(s)),
    where = where(rows)
  )
}

split_fetched <- function(found, s) {
  raw <- found[sprintf("c%d", seq_along(s$columns))]
  list(
    raw = frame_of(stats::setNames(raw, s$columns), nrow(found)),
    values = found[value_names(s)]
  )
}

join_pilots <- function(parts) {
  list(
    raw = bind_frames(lapply(parts, `[[`, "raw")),
    values = bind_frames(lapply(parts, `[[`, "values"))
  )
}

# ---- do the database and R mean the same? ------------------------------------

check_terms_agree <- function(s, request, part) {
  if (nrow(part$raw) == 0) {
    return(invisible())
  }
  data <- as.list(part$raw)
  for (k in seq_along(s$variables)) {
    variable <- s$variables[[k]]
    expression <- variable$written
    mine <- suppressWarnings(eval(expression, data, request$env))
    theirs <- part$values[[sprintf("v%d", k)]]
    if (variable$kind == "levels") {
      theirs <- level_text(variable, theirs)
    }
    check_same_term(mine, theirs, part$raw, expression)
  }
  own <- show_to_r(request, part)
  check_same_term(own$y, part$values$y, part$raw, request$response, own$keep)
  for (what in c("weights", "offset")) {
    theirs <- part$values[[c(weights = "weight", offset = "offset")[[what]]]]
    if (!is.null(own[[what]]) && !is.null(theirs)) {
      check_same_term(own[[what]], theirs, part$raw, as.name(what), own$keep)
    }
  }
}

# To 1e-8; a term that differs is refused.
check_same_term <- function(mine, theirs, raw, expression, keep = NULL) {
  if (is.character(mine) || is.factor(mine) || is.logical(mine)) {
    mine <- as.character(mine)
    theirs <- as.character(theirs)
    differs <- is.na(mine) != is.na(theirs) | mine != theirs
  } else {
    mine <- as.double(mine)
    theirs <- as.double(theirs)
    # infinite numbers are told elsewhere
    differs <- is.na(mine) != is.na(theirs) |
      abs(mine - theirs) > 1e-8 * pmax(abs(mine), 1e-300)
  }
  if (!is.null(keep)) {
    differs <- differs & keep
  }
  bad <- which(differs)
  if (length(bad) == 0) {
    return(invisible())
  }
  bad <- bad[[1]]
  name <- deparse1(expression)
  used <- intersect(all.vars(expression), names(raw))
  at <- vapply(used, function(column) {
    paste(column, "=", format(raw[[column]][[bad]], digits = 15))
  }, "")
  abort_tall(
    "unsupported",
    c(
      "The term {.code {name}} is not the same in the database as in R.",
      x = escape_cli(paste0(
        "It is ", format(theirs[[bad]], digits = 15), " there and ",
        format(mine[[bad]], digits = 15), " here, where ",
        paste(at, collapse = " and "), "."
      )),
      i = "Compute it as a column, by {.code dplyr::mutate()}, or let R read the
           rows: {.code as_source(data, in_database = FALSE)}."
    ),
    argument = "formula",
    value = name
  )
}
