# The look of a table whose rows are of few kinds: of columns that are text or
# whole numbers of a small range, as they are, one GROUP BY has every kind and
# how many rows are of it. No pilot is drawn, and no pass follows. That kinds
# are few is known before, from the ranges of the numbers and how many levels
# there are; of factors and a response of zeros and ones it is seen at once.

# What look_sql() finds, with `is_every`; NULL: kinds may be many. head: the
# first rows.
look_kinds <- function(tables, s, request, head) {
  if (!has_kinds(s, request)) {
    return(NULL)
  }
  found <- kinds_at_once(tables, s, request, head)
  if (!is.null(found)) {
    return(found_in_kinds(found, s, request))
  }
  if (shows_fractions(s, head)) {
    return(NULL)
  }
  ranges <- try_on_tables(tables, lapply(tables, ranges_query, s))
  if (is.null(ranges)) {
    # an engine that lacks what they take
    return(NULL)
  }
  too_many <- levels_of_ranges(tables, s, ranges)
  if (!is.null(too_many)) {
    return(too_many)
  }
  if (!has_few_kinds(bind_frames(ranges))) {
    return(NULL)
  }
  found <- run_on_tables(tables, lapply(tables, kinds_query, s, request))
  found_in_kinds(bind_frames(found), s, request)
}

# A row for each kind; NULL: there are too many, or nobody knows that a response
# which should be 0 or 1 has few values. SQLite sorts for groups, and does it
# for kinds that are known to be few.
kinds_at_once <- function(tables, s, request, head) {
  others <- setdiff(s$numbers, level_columns(s))
  of_response <- identical(others, deparse1(request$response)) &&
    find_response(s$family)$name %in% c("bernoulli", "binomial")
  cons <- lapply(tables, table_connection)
  if (!of_response || !is_whole_type(head[[others]]) ||
    any(vapply(cons, is_sqlite, TRUE))) {
    return(NULL)
  }
  most <- setting("most_groups")
  queries <- lapply(tables, kinds_query, s, request, most)
  found <- try_on_tables(tables, queries)
  if (!is.null(found) && max(vapply(found, nrow, 1L)) <= most) {
    bind_frames(found)
  }
}

# Do the first rows tell that there are no few kinds, and no factor whose levels
# are to be counted?
shows_fractions <- function(s, head) {
  is_broken <- vapply(head[s$numbers], function(x) {
    is.double(x) && !inherits(x, "integer64") &&
      any(x != floor(x), na.rm = TRUE)
  }, NA)
  any(is_broken) && length(level_columns(s)) == 0
}

is_whole_type <- function(x) {
  is.integer(x) || is.logical(x) || inherits(x, "integer64")
}

found_in_kinds <- function(found, s, request) {
  n <- as.double(found$n)
  kinds <- stats::setNames(
    as.list(found[sprintf("c%d", seq_along(s$columns))]),
    s$columns
  )
  kinds[s$numbers] <- lapply(kinds[s$numbers], as.double)
  kinds <- frame_of(kinds, length(n))
  weigh <- !is_weightless(kinds, request)
  is_complete <- stats::complete.cases(kinds)
  n_missing <- sum(n[weigh & !is_complete])
  check_none_missing(request, n_missing)
  # by their values: draws are the same in whatever order they come
  by <- unname(as.list(kinds))
  order <- do.call(order, c(by, method = "radix"))
  at <- order[(weigh & is_complete)[order]]
  kinds <- frame_of(lapply(kinds, column_rows, at), length(at))
  # R has the words for what may not be
  show_to_r(request, list(raw = kinds))
  show_numbers(request, kinds)
  s$is_complete <- n_missing == 0
  s$n_missing <- n_missing
  check_complete_rows(sum(n[at]), n_missing, request)
  found_of_kinds(s, kinds, n[at])
}

# Rows of weight 0, or of no trials.
is_weightless <- function(kinds, request) {
  out <- logical(nrow(kinds))
  if (!is.null(request$weights)) {
    weights <- kinds[[as.character(request$weights)]]
    out <- !is.na(weights) & weights == 0
  }
  y <- request$response
  if (is.call(y)) {
    trials <- kinds[[as.character(y[[2]])]] + kinds[[as.character(y[[3]])]]
    out <- out | !is.na(trials) & trials == 0
  }
  out
}

found_of_kinds <- function(s, kinds, n) {
  if (sum(n) <= setting("look")$rows) {
    return(list(is_whole = TRUE))
  }
  of_levels <- Filter(function(v) v$kind == "levels", s$variables)
  at <- match(level_columns(s), s$columns)
  levels <- vapply(kinds[at], function(x) length(unique(x)), 1L)
  names(of_levels) <- vapply(of_levels, `[[`, "", "name")
  if (max(0L, levels) > setting("look")$levels) {
    name <- names(of_levels)[[which.max(levels)]]
    return(too_many_levels(name, max(levels), sum(n)))
  }
  s$n_cells <- if (length(at) > 0) nrow(unique(kinds[at])) else 1
  list(
    frame = kinds,
    weights = n,
    rows = seq_along(n),
    ends = NULL,
    n_row = sum(n),
    n_missing = s$n_missing,
    is_whole = FALSE,
    is_every = TRUE,
    response_levels = NULL,
    in_sql = s
  )
}

# Are all terms columns as they are, and each row a likelihood's by its weight?
# is_needed: or else does that not matter?
has_kinds <- function(s, request, is_needed = TRUE) {
  is_column <- function(expression) {
    if (rlang::is_call(expression, c("factor", "as.factor"), n = 1)) {
      expression <- expression[[2]]
    }
    is.name(expression) && as.character(expression) %in% s$columns
  }
  response <- request$response
  sides <- if (is.null(s$trials)) list(response) else as.list(response)[-1]
  covariates <- unname(lapply(s$variables, `[[`, "written"))
  every <- c(covariates, sides, request$offsets, request$weights)
  is_weighed <- !find_response(s$family)$is_quadratic || !is_needed
  is_weighed && is.null(request$subset) &&
    all(vapply(Filter(Negate(is.null), every), is_column, TRUE))
}

# Of each variable that is a factor, the column that it is made of.
level_columns <- function(s) {
  of_levels <- Filter(function(v) v$kind == "levels", s$variables)
  vapply(of_levels, function(v) all.vars(v$expression), "")
}

# By the factors v1, v2, ..., rows n and of the other columns of numbers the
# least, the largest, and how far any is from a whole number. SQLite, which
# sorts for groups, counts the levels of each factor instead.
ranges_query <- function(table, s) {
  con <- table_connection(table)
  double <- sql_engine(con)$double
  at <- match(setdiff(s$numbers, level_columns(s)), s$columns)
  by <- sql_level_names(s)
  own <- quote_names(con, s$columns[at])
  columns <- paste0("CAST(", own, " AS ", double, ")", recycle0 = TRUE)
  names(columns) <- sprintf("c%d", at)
  levels <- stats::setNames(quote_names(con, level_columns(s)), by)
  inner <- sql_select(con, c(levels, columns), table_query(table))
  sums <- c(n = "COUNT(*)", range_aggregates(names(columns), con))
  if (is_sqlite(con)) {
    counts <- sprintf("COUNT(DISTINCT %s)", quote_names(con, by))
    names(counts) <- sprintf("levels%s", substring(by, 2))
    return(sql_select(con, c(sums, counts), inner))
  }
  sql <- sql_select(con, sums, inner, keep = by)
  sql_grouped(con, sql, by, setting("most_groups"))
}

range_aggregates <- function(names, con) {
  quoted <- quote_names(con, names)
  off <- vapply(lapply(names, as.name), function(c) {
    sql_translate(bquote(abs(.(c) - as.integer(.(c)))), con)
  }, "")
  of <- sql_number(c(0, 1, 1e6), con)
  off <- sprintf(
    "CASE WHEN ABS(%s) < %s THEN %s WHEN %s IS NULL THEN %s ELSE %s END",
    quoted, of[[3]], off, quoted, of[[1]], of[[2]]
  )
  k <- seq_along(names)
  stats::setNames(
    c(
      sprintf("MIN(%s)", quoted),
      sprintf("MAX(%s)", quoted),
      sprintf("MAX(%s)", off)
    ),
    c(sprintf("low%d", k), sprintf("high%d", k), sprintf("off%d", k))
  )
}

# Of a factor with more levels than a pass takes, or of too many groups.
levels_of_ranges <- function(tables, s, ranges) {
  if (max(vapply(ranges, nrow, 1L)) > setting("most_groups")) {
    return(too_many_groups(tables, s, ranges))
  }
  found <- bind_frames(ranges)
  counts <- columns_like(found, "levels")
  if (ncol(counts) > 0 && max(counts) > setting("look")$levels) {
    widest <- which.max(apply(counts, 2, max))
    k <- as.integer(substring(colnames(counts)[[widest]], 7))
    n_row <- sum(as.double(found$n))
    too_many_levels(s$variables[[k]]$name, max(counts[, widest]), n_row)
  }
}

columns_like <- function(found, what) {
  as.matrix(found[startsWith(names(found), what)])
}

# No more kinds than whole numbers between the ends, and levels. A missing value
# is one more.
has_few_kinds <- function(found) {
  off <- columns_like(found, "off")
  if (any(!is.na(off) & off > 0)) {
    return(FALSE)
  }
  width <- columns_like(found, "high") - columns_like(found, "low")
  width[is.na(width)] <- -1
  each <- apply(width + 2, 1, prod)
  levels <- apply(columns_like(found, "levels") + 1, 1, prod)
  s <- setting("kinds")
  max(each) <= s$numbers && sum(each * levels) <= s$most
}

# Columns of each kind of rows that may count, and n; `most` kinds and one more.
kinds_query <- function(table, s, request, most = Inf) {
  con <- table_connection(table)
  own <- sprintf("c%d", seq_along(s$columns))
  columns <- stats::setNames(quote_names(con, s$columns), own)
  sql <- sql_select(con, columns, table_query(table))
  names(own) <- s$columns
  sql <- sql_select(con, list(n = "COUNT(*)"), sql,
    keep = unname(own),
    where = weightless_sql(request, own, con)
  )
  sql_grouped(con, sql, own, most)
}

# Leaves out rows of weight 0, or of no trials, which the ranges do not know.
# own: names of the columns.
weightless_sql <- function(request, own, con) {
  quoted <- function(e) quote_names(con, own[[as.character(e)]])
  y <- request$response
  sums <- c(
    if (!is.null(request$weights)) quoted(request$weights),
    if (is.call(y)) paste(quoted(y[[2]]), "+", quoted(y[[3]]))
  )
  if (length(sums) > 0) {
    paste0("(", sums, ") IS NULL OR (", sums, ") <> 0")
  }
}
