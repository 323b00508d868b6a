# The look of a table with a Gaussian response and factors alone: one GROUP BY
# of the factors has their levels, how many rows are of each kind, and the sums
# of the response and of its squares. They are all that the posterior needs:
# nothing else scans the table.

# What look_sql() finds, with `is_every` and `within`, the sum of squares of the
# response about its mean in each kind; NULL: it needs more than these sums.
# head: the first rows.
look_sums <- function(tables, s, request, head) {
  if (!has_level_sums(s, request)) {
    return(NULL)
  }
  shift <- shift_of_head(head[[as.character(request$response)]])
  queries <- lapply(tables, level_sums_query, s, request, shift)
  found <- try_on_tables(tables, queries)
  if (is.null(found)) {
    return(NULL)
  }
  if (max(vapply(found, nrow, 1L)) > setting("most_groups")) {
    return(too_many_groups(tables, s, found))
  }
  found <- bind_frames(found)
  second <- found$second[found$told > 0]
  # neither infinite numbers nor NaN, and no text
  is_plain <- !anyNA(second) && all(second < (most_of_data / 4)^2) &&
    all(found$text == 0)
  if (is_plain) found_of_sums(s, request, found, shift)
}

# Are all terms factors that columns are or are made of, and the response
# another column? Do all rows count alike?
has_level_sums <- function(s, request) {
  kinds <- vapply(s$variables, `[[`, "", "kind")
  find_response(s$family)$is_quadratic && counts_alike(s, request) &&
    length(kinds) > 0 && all(kinds == "levels") &&
    has_kinds(s, request, is_needed = FALSE) &&
    is_column_beside(request$response, s)
}

counts_alike <- function(s, request) {
  is.null(request$weights) && is.null(request$subset) && length(s$offsets) == 0
}

is_column_beside <- function(y, s) {
  is.name(y) && as.character(y) %in% setdiff(s$numbers, level_columns(s))
}

# Squares of numbers far from zero lose their digits: they are taken about a
# number like these.
shift_of_head <- function(y) {
  y <- as.double(y)
  y <- y[is.finite(y) & abs(y) < most_of_data]
  if (length(y) > 0) mean(y) else 0
}

# By the factors v1, v2, ...: rows n, those with a response told, and of the
# latter less the shift the sums first and second; text: is there text among
# numbers?
level_sums_query <- function(table, s, request, shift) {
  con <- table_connection(table)
  engine <- sql_engine(con)
  by <- sprintf("v%d", seq_along(s$variables))
  own <- level_columns(s)
  y <- quote_names(con, as.character(request$response))
  is_typed <- !is_sqlite(con)
  # where every value has a type of its own a cast would hide text
  columns <- c(
    stats::setNames(quote_names(con, own), by),
    y = if (is_typed) paste0("CAST(", y, " AS ", engine$double, ")") else y
  )
  rows <- sql_select(con, columns, table_query(table))
  y <- quote_names(con, "y")
  away <- paste0("(", y, " - ", sql_number(shift, con), ")")
  is_text <- function(x) paste0("(typeof(", x, ") IN ('text', 'blob'))")
  text <- if (is_typed) {
    "0"
  } else {
    numbers <- by[own %in% s$numbers]
    every <- is_text(quote_names(con, c("y", numbers)))
    paste0("SUM(", paste(every, collapse = " OR "), ")")
  }
  sums <- c(
    n = "COUNT(*)",
    told = paste0("COUNT(", y, ")"),
    first = paste0("SUM(", away, ")"),
    second = paste0("SUM(", away, " * ", away, ")"),
    text = text
  )
  sql <- sql_select(con, sums, rows, keep = by)
  sql_grouped(con, sql, by, setting("most_groups"))
}

found_of_sums <- function(s, request, found, shift) {
  by <- sprintf("v%d", seq_along(s$variables))
  n <- as.double(found$n)
  told <- as.double(found$told)
  numbers <- level_columns(s) %in% s$numbers
  found[by[numbers]] <- lapply(found[by[numbers]], as.double)
  is_complete <- stats::complete.cases(found[by])
  n_missing <- sum(n) - sum(told[is_complete])
  check_none_missing(request, n_missing)
  check_complete_rows(sum(told[is_complete]), n_missing, request)
  # by their values: draws are the same in whatever order they come, and
  # whichever table has them
  own <- which(is_complete & told > 0)
  kind <- match_rows(found[own, by, drop = FALSE])
  sum_of <- function(x) as.double(rowsum(as.double(x[own]), kind$number))
  n <- sum_of(told)
  first <- sum_of(found$first)
  second <- sum_of(found$second)
  kinds <- found[own[kind$first], by, drop = FALSE]
  order <- do.call(order, c(unname(as.list(kinds)), method = "radix"))
  show_numbers(request, stats::setNames(as.list(kinds), level_columns(s)))
  s$is_complete <- n_missing == 0
  s$n_missing <- n_missing
  of <- c(
    stats::setNames(as.list(kinds), level_columns(s)),
    stats::setNames(list(shift + first / n), as.character(request$response))
  )[s$columns]
  of <- frame_of(lapply(of, column_rows, order), length(order))
  out <- found_of_kinds(s, of, n[order])
  if (!out$is_whole) {
    out$within <- pmax(0, second - first^2 / n)[order]
  }
  out
}

# Numbers of the rows that differ, as they are met, and the first of each.
match_rows <- function(frame) {
  codes <- lapply(frame, function(x) match(x, unique(x)))
  key <- do.call(paste, unname(codes))
  first <- which(!duplicated(key))
  list(number = match(key, key[first]), first = first)
}
