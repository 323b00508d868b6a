# The look of a table whose rows are of few kinds: of columns that are text or
# whole numbers of a small range, as they are, one GROUP BY has every kind and
# how many rows are of it. No pilot is drawn, and no pass follows. That kinds
# are few is known before, from the count of rows by levels, which has the
# ranges of the numbers as well.

kind_settings <- list(
  most_numbers = 4096,   # combinations of whole numbers that levels can have
  most = 2^20            # kinds
)

# What look_sql() finds, with `is_every`. Kinds are few: see has_few_kinds().
look_kinds <- function(tables, s, request) {
  found <- run_on_tables(tables, lapply(tables, kinds_query, s, request))
  found <- bind_frames(found)
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
  check_complete_rows(sum(n))
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
  every <- c(request$covariates, sides, request$offsets, request$weights)
  is_weighed <- !find_response(s$family)$is_quadratic || !is_needed
  is_weighed && is.null(request$subset) &&
    all(vapply(Filter(Negate(is.null), every), is_column, TRUE))
}

# Of the columns of numbers that no factor takes, which look_sql() counts rows
# with: SQL of how far each is from a whole number, by the names "off k", where
# it is the k-th column c<k>; and of aggregates of these.
range_names <- function(s) {
  at <- match(setdiff(s$numbers, level_columns(s)), s$columns)
  list(
    own = sprintf("c%d", at),
    off = sprintf("off%d", at),
    low = sprintf("low%d", at),
    high = sprintf("high%d", at)
  )
}

off_columns <- function(s, con) {
  names <- range_names(s)
  quoted <- quote_names(con, names$own)
  off <- vapply(lapply(names$own, as.name), function(c) {
    sql_translate(bquote(abs(.(c) - as.integer(.(c)))), con)
  }, "")
  of <- sql_number(c(0, 1, 1e6), con)
  off <- paste0(
    rep("CASE WHEN ABS(", length(off)), quoted, ") < ", of[[3]], " THEN ", off,
    " WHEN ", quoted, " IS NULL THEN ", of[[1]], " ELSE ", of[[2]], " END"
  )
  stats::setNames(as.list(off), names$off)
}

range_aggregates <- function(s, con) {
  names <- range_names(s)
  of <- function(what, columns) {
    sprintf("%s(%s)", what, quote_names(con, columns))
  }
  stats::setNames(
    as.list(c(of("MIN", names$own), of("MAX", names$own), of("MAX", names$off))),
    c(names$low, names$high, names$off)
  )
}

# No more kinds than whole numbers between the ends in every group of levels. A
# missing value is one more.
has_few_kinds <- function(counts) {
  of <- function(what) {
    as.matrix(counts[startsWith(names(counts), what)])
  }
  off <- of("off")
  if (any(!is.na(off) & off > 0)) {
    return(FALSE)
  }
  width <- of("high") - of("low")
  width[is.na(width)] <- -1
  each <- apply(width + 1 + (counts$missing > 0), 1, prod)
  max(each) <= kind_settings$most_numbers && sum(each) <= kind_settings$most
}

# Columns of each kind of rows that may count, and n.
kinds_query <- function(table, s, request) {
  con <- table_connection(table)
  own <- sprintf("c%d", seq_along(s$columns))
  columns <- stats::setNames(quote_names(con, s$columns), own)
  sql <- sql_select(con, columns, table_query(table))
  names(own) <- s$columns
  sql <- sql_select(con, list(n = "COUNT(*)"), sql,
    keep = unname(own),
    where = weightless_sql(request, own, con)
  )
  group <- paste(quote_names(con, own), collapse = ", ")
  sql_append(sql, paste("GROUP BY", group))
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
