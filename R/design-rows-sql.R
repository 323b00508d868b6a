# The query of a table's rows, as variables: see R/design-sql.R.

# A table's rows as variables: list(con, engine, sql, names). raw: with the
# table's own columns, too; below: with a uniform number u of each row, and only
# those where it is less; more: further columns, SQL by name. Rows that do not
# count are left out, those with missing values have missing = 1; where there
# are none, no column says so.
sql_rows <- function(s, table, raw = FALSE, below = NULL, more = NULL) {
  u <- !is.null(below)
  con <- table_connection(table)
  engine <- sql_engine(con)
  safe <- sprintf("c%d", seq_along(s$columns))
  places <- column_places(s)
  translate <- function(e) sql_translate(rename_columns(e, places), con)
  as_double <- function(text) sql_double(text, con)
  own <- quote_names(con, s$columns)
  columns <- ifelse(s$columns %in% s$numbers, as_double(own), own)
  names(columns) <- safe
  columns <- c(columns, more, if (u) c(u = sql_uniform(con)))
  inner <- sql_select(
    con,
    columns,
    table_query(table),
    engine = if (u) engine
  )
  fields <- c(sql_of_variables(s, places, con), list(
    y = as_double(translate(s$y))
  ))
  if (has_sql_weight(s)) {
    terms <- Filter(function(e) !is.null(e), list(s$weights, s$trials))
    text <- paste(vapply(terms, translate, ""), collapse = " * ")
    fields$weight <- as_double(text)
  }
  fields$offset <- sql_of_offset(s, places, con)
  numbers <- setdiff(names(fields), sql_text_names(s))
  more <- c(if (raw) safe, names(more), if (u) "u")
  where <- c(
    if (!is.null(s$subset)) translate(s$subset),
    if (u && below < 1) {
      paste(quote_names(con, "u"), "<", sql_number(below, con))
    }
  )
  inner <- sql_select(
    con,
    fields,
    inner,
    keep = more,
    where = where,
    engine = engine
  )
  rows <- list(con = con, engine = engine, sql = inner, numbers = numbers)
  flag_missing(rows, s, keep = c(names(fields), more))
}

# What stands for each column in expressions.
column_places <- function(s) {
  safe <- sprintf("c%d", seq_along(s$columns))
  stats::setNames(lapply(safe, as.name), s$columns)
}

# Variables by name, and the offset, NULL: none, where columns are expressions.
sql_of_variables <- function(s, places, con) {
  names(s$variables) <- sprintf("v%d", seq_along(s$variables))
  lapply(s$variables, function(v) {
    text <- sql_translate(rename_columns(v$expression, places), con)
    if (v$is_text) text else sql_double(text, con)
  })
}

sql_of_offset <- function(s, places, con) {
  if (length(s$offsets) > 0) {
    text <- vapply(s$offsets, function(e) {
      sql_translate(rename_columns(e, places), con)
    }, "")
    sql_double(sql_total(text, con), con)
  }
}

# A column that says whether a row lacks something; rows of weight 0 go.
flag_missing <- function(rows, s, keep) {
  con <- rows$con
  where <- if (has_sql_weight(s)) {
    weight <- quote_names(con, "weight")
    paste0(weight, " IS NULL OR ", weight, " <> 0")
  }
  flag <- if (!isTRUE(s$is_complete)) {
    sql_any_missing(
      quote_names(con, rows$numbers),
      quote_names(con, sql_text_names(s)),
      con
    )
  }
  if (!is.null(flag) || !is.null(where)) {
    columns <- if (is.null(flag)) list() else list(missing = flag)
    rows$sql <- sql_select(con, columns, rows$sql, keep = keep, where = where)
  }
  rows
}

# 1 where one of these is missing, which of doubles NaN is, too, else 0.
sql_any_missing <- function(doubles, others, con) {
  missing <- paste(doubles, "IS NULL", recycle0 = TRUE)
  if (sql_engine(con)$has_nan) {
    nan <- sql_double("'NaN'", con)
    missing <- paste0("(", missing, " OR ", doubles, " = ", nan, ")",
      recycle0 = TRUE)
  }
  missing <- c(missing, paste(others, "IS NULL", recycle0 = TRUE))
  if (length(missing) == 0) {
    return("0")
  }
  paste0("CASE WHEN ", paste(missing, collapse = " OR "), " THEN 1 ELSE 0 END")
}

# Names that no engine takes for something else, or expressions. names: by
# column.
rename_columns <- function(expression, names) {
  if (is.name(expression)) {
    return(names[[as.character(expression)]] %||% expression)
  }
  if (is.call(expression)) {
    expression[-1] <- lapply(expression[-1], rename_columns, names)
  }
  expression
}

has_sql_weight <- function(s) {
  !is.null(s$weights) || !is.null(s$trials)
}

# Columns of sql_rows().
value_names <- function(s) {
  c(
    sprintf("v%d", seq_along(s$variables)),
    "y",
    if (has_sql_weight(s)) "weight",
    if (length(s$offsets) > 0) "offset"
  )
}

missing_name <- function(s) {
  if (!isTRUE(s$is_complete)) "missing"
}

sql_text_names <- function(s) {
  is_text <- vapply(s$variables, function(v) v$is_text, TRUE)
  sprintf("v%d", which(is_text))
}

sql_level_names <- function(s) {
  is_levels <- vapply(s$variables, function(v) v$kind == "levels", TRUE)
  sprintf("v%d", which(is_levels))
}

# Levels of a variable as they are written in SQL.
sql_levels <- function(variable, levels, con) {
  if (variable$is_text) {
    return(quote_text(con, levels))
  }
  numbers <- if (variable$is_logical) levels == "TRUE" else levels
  sql_number(as.double(numbers), con)
}

level_text <- function(variable, values) {
  if (variable$is_logical) {
    c("FALSE", "TRUE")[values + 1]
  } else {
    as.character(values)
  }
}
