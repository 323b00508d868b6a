# Averages by an expansion, see R/fit-average-expansion.R, of rows in databases
# that compute: the sums of a set are aggregates, of which a row comes back for
# each group and combination of levels (R/design-cells.R); of each group some
# rows are read, of which R makes what the expansion leaves out.
#
# What a query asks, list:
#   request, tables, theta  theta: where the expansion is
#   expansion  see R/fit-average-functions.R: of one predictor
#   s        how the rows are read, see R/design-sql.R
#   counted  the same of the rows that count, of which all is known
#   rows     of each table, the rows that count, see counted_rows()
#   by       names that the columns `by` have in queries: g1, ...
#   mean     of a row, see mean_in_sql()

# list(groups, estimate, n_row, n_missing), see average_rows(); NULL: R reads
# the rows.
expansion_by_sql <- function(request, plan, draws) {
  fit <- request$fit
  newdata <- request$newdata
  if (!has_sql_average(request) || !is_passed_over(fit, newdata)) {
    return(NULL)
  }
  source <- average_source(fit, newdata)
  tables <- source_tables(source)
  is_free <- vapply(tables, function(table) table$in_database, TRUE)
  if (length(tables) == 0 || !all(is_free)) {
    return(NULL)
  }
  fit_with_columns(fit, request)
  read_instead <- function(cnd) {
    why <- first_line(conditionMessage(cnd$parent %||% cnd))
    arg <- if (is.null(newdata)) "data" else "newdata"
    tell_streamed(why, getOption("tallbayes.refresh", 1), arg)
  }
  tryCatch(
    {
      end <- source_hold(source)
      on.exit(end())
      in_savepoints(tables, sum_sets(request, plan, draws, tables))
    },
    tall_no_sql = read_instead,
    tall_error_source = read_instead,
    tall_error_worker = read_instead
  )
}

# Functions of the one predictor of a generalised linear model.
has_sql_average <- function(request) {
  inherits(request$fit, "tall_glm") &&
    !inherits(request$fit, c("tall_dpar", "tall_surv")) &&
    request$type %in% c("response", "link")
}

sum_sets <- function(request, plan, draws, tables) {
  ask <- average_ask(request, tables, draws)
  counts <- count_groups(ask)
  ask$counted$n_cells <- counts$n_cells
  ask$rows <- lapply(tables, counted_rows, ask = ask)
  cells <- lapply(plan$sets, set_sums, ask = ask, counts = counts)
  sample <- sample_groups(ask, plan, counts)
  out <- expanded_averages(request, ask$expansion, draws, list(
    groups = counts$groups,
    # of one part
    cells = function(set, g) list(cells[[set]][[g]]),
    sample = sample
  ))
  c(out, list(n_row = sum(counts$n), n_missing = counts$n_missing))
}

average_ask <- function(request, tables, draws) {
  fit <- request$fit
  for (table in tables) {
    con <- table_connection(table)
    check_can_fail(con)
    lacks <- sql_lacks(con)
    if (!is.null(lacks)) {
      no_sql(lacks)
    }
  }
  s <- if (is.null(request$newdata)) {
    head <- source_head(tables[[1]])
    with_cells(sql_of_request(fit$rows$request, head), fit)
  } else {
    predicting_sql(fit, tables[[1]])
  }
  for (table in tables) {
    check_translated(s, table_connection(table))
    check_types(list(numbers = union(s$numbers, request$wts)), table)
  }
  link <- if (request$type == "response") fit$family$link else "identity"
  mean <- mean_in_sql(link)
  check_mean(mean, fit$family, request$type)
  counted <- s
  counted$is_complete <- TRUE
  counted["flag"] <- list(NULL)
  list(
    request = request,
    tables = tables,
    theta = colMeans(draws$theta),
    expansion = expansion_of(fit, request),
    s = s,
    counted = counted,
    by = sprintf("g%d", seq_along(request$by)),
    mean = mean
  )
}

# Is the mean of a response what its link says?
check_mean <- function(mean, family, type) {
  known <- list2env(list(eta = as.double(-4:4)), parent = baseenv())
  for (step in mean$steps) {
    list2env(lapply(step, eval, known), known)
  }
  theirs <- if (type == "link") known$eta else response_mean(family, known$eta)
  if (!isTRUE(all.equal(eval(mean$value, known), as.numeric(theirs)))) {
    no_sql("the mean of the response has no SQL")
  }
}

# Columns beside the variables: those of `by`, the weight `wt`, and whether a
# column that predictors are made of is missing, SQL by name.
average_more <- function(ask, con) {
  request <- ask$request
  own <- intersect(average_columns(request$fit), ask$s$columns)
  is_number <- own %in% ask$s$numbers
  c(
    stats::setNames(quote_names(con, request$by), ask$by),
    if (!is.null(request$wts)) {
      c(wt = sql_double(quote_names(con, request$wts), con))
    },
    lacks = sql_any_missing(
      sql_double(quote_names(con, own[is_number]), con),
      quote_names(con, own[!is_number]),
      con
    )
  )
}

# ---- groups ------------------------------------------------------------------

# list(groups, as average_groups() has them; number(keys), those of rows of a
# result; n, rows by group; n_missing; n_cells).
count_groups <- function(ask) {
  request <- ask$request
  found <- run_on_tables(ask$tables, lapply(ask$tables, count_query, ask = ask))
  is_much <- max(vapply(found, nrow, 1L)) > setting("most_groups")
  found <- bind_frames(found)
  n_known <- if (is.null(request$newdata)) request$fit$n_data
  if (!is.null(n_known) && !is_much && sum(found$n_row) != n_known) {
    no_sql("the table has other rows than it had")
  }
  if (any(found$bad > 0)) {
    no_sql("some have a level or a weight that may not be")
  }
  counted <- found[found$n > 0, , drop = FALSE]
  groups <- average_groups(request$by)
  key <- stats::setNames(as.list(counted[ask$by]), request$by)
  number <- groups$of(list(key = key, data = counted, weight = counted$weight))
  if (is_much) {
    no_sql("there are too many combinations of levels")
  }
  if (nrow(counted) == 0) {
    no_sql("there are none")
  }
  seen <- unique(key_text(key))
  list(
    groups = groups,
    number = function(keys) {
      if (length(key) == 0) {
        return(rep(1L, NROW(keys)))
      }
      match(key_text(as.list(keys[ask$by])), seen)
    },
    n = as.double(rowsum(counted$n, number)),
    n_missing = sum(found$n_row - found$n),
    n_cells = nrow(counted)
  )
}

# By group and levels: n_row, rows that the fit has, or all of a table; n, those
# that lack nothing; bad, among these, with levels or weights that may not be;
# weight, their sum.
count_query <- function(table, ask) {
  con <- table_connection(table)
  s <- ask$s
  rows <- sql_rows(s, table, more = average_more(ask, con))
  levels <- sprintf("v%d", s$cells$factors)
  is_row <- paste(quote_names(con, missing_name(s)), "= 0", recycle0 = TRUE)
  counts <- c(is_row, paste(quote_names(con, "lacks"), "= 0"))
  bad <- paste(s$flag(con), "= 0")
  weight <- sql_number(1, con)
  if (!is.null(ask$request$wts)) {
    weight <- quote_names(con, "wt")
    bad <- c(bad, paste(weight, c("IS NULL", "< 0")), paste0(
      "ABS(", weight, ") > ", sql_number(most_of_data, con)
    ))
  }
  both <- function(tests) paste0("(", tests, ")", collapse = " AND ")
  of <- function(tests) {
    if (length(tests) == 0) sql_number(1, con) else sql_flag(both(tests), con)
  }
  columns <- list(
    n_row = of(is_row),
    n = of(counts),
    bad = of(c(counts, paste(bad, collapse = " OR "))),
    weight = paste(
      "CASE WHEN", both(counts), "THEN", weight, "ELSE", sql_number(0, con),
      "END"
    )
  )
  by <- c(ask$by, levels)
  sql <- sql_select(con, columns, rows$sql, keep = by)
  sums <- sprintf("SUM(%s)", quote_names(con, names(columns)))
  sql <- sql_select(con, stats::setNames(sums, names(columns)), sql, keep = by)
  sql_grouped(con, sql, by, setting("most_groups"))
}

# ---- sums of a set -----------------------------------------------------------

# list(value, first, second) of each group, as new_cell() has them.
set_sums <- function(set, ask, counts) {
  s <- ask$counted
  made <- lapply(ask$rows, set_query, set = set, ask = ask)
  each <- cells_of_tables(s, ask$tables, made, ask$by)
  sums <- do.call(rbind, lapply(each, `[[`, "sums"))
  keys <- do.call(rbind, lapply(each, `[[`, "keys"))
  number <- counts$number(keys %||% sums)
  if (!all(is.finite(sums)) || anyNA(number)) {
    no_sql("it has no finite sums")
  }
  f <- values_by_cell(s$cells, nrow(sums), codes_of_keys(s, keys))
  lapply(seq_along(counts$n), function(g) {
    own <- which(number == g)
    of <- list(sums = sums[own, , drop = FALSE])
    n <- c(sum(of$sums[, "n"]), sum(of$sums[, "known"]))
    if (any(n != counts$n[[g]])) {
      no_sql("predictors have missing values")
    }
    pieces <- columns_in_parts(s$cells, f[own, , drop = FALSE])
    list(
      value = sum(of$sums[, "value"]),
      first = sums_of_columns(pieces, sums_of(of, "g")),
      second = if (identical(ask$mean$second, 0)) {
        matrix(0, ncol(f), ncol(f))
      } else {
        products_of_columns(pieces, sums_of(of, "h"))
      }
    )
  })
}

# list(rows, sums, alone), as of sum_by_cells().
set_query <- function(rows, set, ask) {
  s <- ask$counted
  mean <- ask$mean
  kept <- c(ask$by, if (!is.null(ask$request$wts)) "wt")
  rows <- change_columns(rows, s, set, kept)
  rows <- add_parts(rows, s, kept)
  rows <- add_eta(rows, s, ask$theta, set$.shift %||% 0)
  rows <- add_steps(rows, mean$steps)
  con <- rows$con
  weighed <- function(e) {
    if (!is.null(ask$request$wts)) {
      e <- bquote(wt * (.(e)))
    }
    sql_translate(e, con)
  }
  is_bent <- !identical(mean$second, 0)
  rows <- add_columns(rows, lapply(c(
    list(value = mean$value, slope = mean$first),
    if (is_bent) list(bend = mean$second)
  ), weighed))
  own <- quote_names(con, "value")
  sums <- c(
    n = "COUNT(*)",
    known = paste0("COUNT(", own, ")"),
    value = paste0("SUM(", own, ")"),
    first_aggregates("g", times_parts(rows, "slope"))
  )
  if (is_bent) {
    h <- names_of_parts(rows, "h")
    rows <- add_columns(rows, stats::setNames(times_parts(rows, "bend"), h))
    sums <- c(sums, product_aggregates("h", quote_names(con, h), rows$u))
  }
  list(rows = rows, sums = sums, alone = sums_without_factor(s, "h"))
}

# The rows that count, as sql_rows() has them, with their own columns. rates: of
# those that are drawn, see sample_rates().
counted_rows <- function(table, ask, rates = NULL) {
  con <- table_connection(table)
  s <- ask$s
  more <- average_more(ask, con)
  rows <- sql_rows(s, table, raw = TRUE, below = rates$top, more = more)
  u <- if (!is.null(rates)) "u"
  rows$sql <- sql_select(
    con,
    list(),
    rows$sql,
    keep = c(
      value_names(s),
      sprintf("c%d", seq_along(s$columns)),
      setdiff(names(more), "lacks"),
      u
    ),
    where = c(
      paste(quote_names(con, c(missing_name(s), "lacks")), "= 0"),
      if (!is.null(u)) paste(quote_names(con, u), "<", rates$sql(con))
    )
  )
  rows
}

# With variables changed; kept: what other columns go on.
change_columns <- function(rows, s, set, kept) {
  changed <- setdiff(names(set), ".shift")
  if (length(changed) == 0) {
    return(rows)
  }
  con <- rows$con
  places <- column_places(s)
  if (!all(changed %in% names(places))) {
    no_sql("what is changed is no column")
  }
  for (name in changed) {
    places[[name]] <- changed_place(
      set[[name]],
      places[[name]],
      name %in% s$numbers
    )
  }
  is_changed <- function(e) any(all.vars(e) %in% changed)
  new <- sql_of_variables(s, places, con)
  new <- new[vapply(s$variables, function(v) is_changed(v$expression), NA)]
  if (any(vapply(s$offsets, is_changed, NA))) {
    new$offset <- sql_of_offset(s, places, con)
  }
  keep <- c(setdiff(value_names(s), names(new)), kept)
  rows$sql <- sql_select(con, new, rows$sql, keep, engine = rows$engine)
  rows
}

# An expression for a changed column, see R/fit-average-plan.R.
changed_place <- function(change, column, is_number) {
  value <- if (is.list(change)) change$add else change
  if (!is_number && is.numeric(value) || is_time(value)) {
    no_sql("a change is no number of the table")
  }
  if (is_number) {
    value <- as.double(value)
  }
  if (is.na(value) || is.numeric(value) && !is.finite(value)) {
    no_sql("a change is not finite")
  }
  if (is.list(change)) bquote((.(column) + .(value))) else value
}

# ---- rows that are read ------------------------------------------------------

# sample(set, g), as average_reservoir()$rows().
sample_groups <- function(ask, plan, counts) {
  request <- ask$request
  most <- sample_size(length(counts$n))
  rates <- sample_rates(ask, counts, most)
  queries <- lapply(ask$tables, sample_query, ask = ask, rates = rates)
  drawn <- bind_frames(run_on_tables(ask$tables, queries))
  number <- counts$number(drawn)
  of_group <- lapply(seq_along(counts$n), function(g) {
    own <- which(number == g)
    utils::head(own[order(drawn$u[own])], most)
  })
  if (anyNA(number) || any(lengths(of_group) < pmin(most, counts$n))) {
    no_sql("its random numbers are not uniform")
  }
  raw <- lapply(drawn[sprintf("c%d", seq_along(ask$s$columns))], identity)
  data <- frame_of(stats::setNames(raw, ask$s$columns), nrow(drawn))
  weight <- drawn$wt %||% rep(1, nrow(drawn))
  rows_of <- changed_rows(request, data)
  own <- rows_of(list())
  own$x <- as.matrix(own$x)
  check_predictors(own, ask$theta, drawn$eta)
  of_set <- lapply(plan$sets, function(set) {
    rows <- rows_of(set)
    blocks <- ask$expansion$blocks(rows)
    list(rows = rows, slopes = expand_rows(ask$expansion, blocks, ask$theta))
  })
  function(set, g) {
    own <- of_group[[g]]
    list(
      rows = dense_rows(some_rows(of_set[[set]]$rows, own)),
      slopes = select_nested(of_set[[set]]$slopes, own),
      weight = weight[own],
      share = length(own) / counts$n[[g]]
    )
  }
}

# So many rows of a group are drawn that `most` of them are there almost surely:
# list(top, sql(con)), the largest rate, and that of each row.
sample_rates <- function(ask, counts, most) {
  rate <- pmin(1, (most + 6 * sqrt(most) + 10) / counts$n)
  # most groups can have that of the largest
  all <- min(1, 1.25 * min(rate))
  own <- which(rate > all)
  values <- counts$groups$table()[own, , drop = FALSE]
  list(top = max(rate, all), sql = function(con) {
    if (length(own) == 0) {
      return(sql_number(all, con))
    }
    tests <- lapply(seq_along(values), function(k) {
      sql_equals(quote_names(con, ask$by[[k]]), values[[k]], con)
    })
    tests <- do.call(paste, c(tests, sep = " AND "))
    paste(
      "CASE",
      paste("WHEN", tests, "THEN", sql_number(rate[own], con), collapse = " "),
      "ELSE", sql_number(all, con), "END"
    )
  })
}

# Tests of a column, one for each value.
sql_equals <- function(name, values, con) {
  known <- !is.na(values)
  out <- paste(name, "IS NULL", recycle0 = TRUE)[rep(1, length(values))]
  if (is.double(values) && !is.object(values)) {
    own <- sql_number(ifelse(known, values, 0), con)
    name <- sql_double(name, con)
  } else {
    own <- vapply(seq_along(values), function(k) {
      as.character(DBI::dbQuoteLiteral(con, values[k]))
    }, "")
  }
  ifelse(known, paste(name, "=", own), out)
}

sample_query <- function(table, ask, rates) {
  s <- ask$counted
  rows <- counted_rows(table, ask, rates)
  kept <- c(
    ask$by,
    if (!is.null(ask$request$wts)) "wt",
    sprintf("c%d", seq_along(s$columns)),
    "u"
  )
  rows <- add_eta(add_parts(rows, s, kept), s, ask$theta)
  sql_select(rows$con, list(), rows$sql, keep = c(kept, "eta"))
}
