# The look of a table whose rows are of few kinds: of columns that are text or
# whole numbers of a small range, as they are, one GROUP BY has every kind and
# how many rows are of it. No pilot is drawn, and no pass follows.

kind_settings <- list(
  most_numbers = 4096,   # combinations of whole numbers that there can be
  most = 2^20            # kinds
)

# What look_sql() finds, with `is_every`; NULL: kinds may be many.
look_kinds <- function(tables, s, request) {
  if (!has_kinds(s, request)) {
    return(NULL)
  }
  ranges <- lapply(tables, ranges_of, s)
  if (any(vapply(ranges, is.null, TRUE)) ||
    combined_ranges(do.call(rbind, ranges)) > kind_settings$most_numbers) {
    return(NULL)
  }
  found <- run_on_tables(tables, lapply(tables, kinds_query, s))
  if (max(vapply(found, nrow, 1L)) > kind_settings$most) {
    return(NULL)
  }
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
  columns <- vapply(of_levels, function(v) all.vars(v$expression), "")
  at <- match(columns, s$columns)
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
has_kinds <- function(s, request) {
  is_column <- function(expression) {
    if (rlang::is_call(expression, c("factor", "as.factor"), n = 1)) {
      expression <- expression[[2]]
    }
    is.name(expression) && as.character(expression) %in% s$columns
  }
  response <- request$response
  sides <- if (is.null(s$trials)) list(response) else as.list(response)[-1]
  every <- c(request$covariates, sides, request$offsets, request$weights)
  !find_response(s$family)$is_quadratic && is.null(request$subset) &&
    all(vapply(Filter(Negate(is.null), every), is_column, TRUE))
}

# NULL: the engine lacks what they take.
ranges_of <- function(table, s) {
  con <- table_connection(table)
  tryCatch(
    in_savepoint(con, run_sql(con, ranges_query(table, s))),
    tall_error_source = function(e) NULL
  )
}

# Of the columns of numbers that no factor takes: the least, the largest, and
# how far any is from a whole number.
ranges_query <- function(table, s) {
  con <- table_connection(table)
  double <- sql_engine(con)$double
  of_levels <- Filter(function(v) v$kind == "levels", s$variables)
  of_levels <- unlist(lapply(of_levels, function(v) all.vars(v$expression)))
  at <- match(setdiff(s$numbers, of_levels), s$columns)
  own <- quote_names(con, s$columns[at])
  columns <- paste0("CAST(", own, " AS ", double, ")")
  names(columns) <- sprintf("c%d", at)
  inner <- sql_select(con, columns, table_query(table))
  quoted <- quote_names(con, names(columns))
  off <- vapply(lapply(names(columns), as.name), function(c) {
    sql_translate(bquote(abs(.(c) - as.integer(.(c)))), con)
  }, "")
  of <- sql_number(c(0, 1, 1e6), con)
  off <- paste0(
    "CASE WHEN ABS(", quoted, ") < ", of[[3]], " THEN ", off,
    " WHEN ", quoted, " IS NULL THEN ", of[[1]], " ELSE ", of[[2]], " END"
  )
  k <- seq_along(at)
  aggregates <- stats::setNames(
    c(
      paste0("MIN(", quoted, ")"),
      paste0("MAX(", quoted, ")"),
      paste0("MAX(", off, ")")
    ),
    c(sprintf("low%d", k), sprintf("high%d", k), sprintf("off%d", k))
  )
  if (length(at) == 0) {
    aggregates <- c(n = "COUNT(*)")
  }
  sql_select(con, aggregates, inner)
}

# Inf: some numbers are not whole. A missing value is one more.
combined_ranges <- function(found) {
  of <- function(what) {
    as.matrix(found[startsWith(names(found), what)])
  }
  off <- of("off")
  if (any(!is.na(off) & off > 0)) {
    return(Inf)
  }
  low <- suppressWarnings(apply(of("low"), 2, min, na.rm = TRUE))
  high <- suppressWarnings(apply(of("high"), 2, max, na.rm = TRUE))
  prod(ifelse(is.finite(low), high - low + 2, 1))
}

# Columns of each kind, and n.
kinds_query <- function(table, s) {
  con <- table_connection(table)
  own <- sprintf("c%d", seq_along(s$columns))
  columns <- stats::setNames(quote_names(con, s$columns), own)
  sql <- sql_select(con, columns, table_query(table))
  sql <- sql_select(con, list(n = "COUNT(*)"), sql, keep = own)
  group <- paste(quote_names(con, own), collapse = ", ")
  sql_append(
    sql,
    paste0("GROUP BY ", group, "\nLIMIT ", kind_settings$most + 1)
  )
}
