# A regression whose passes a database computes (see ?as_source): what it asks
# of the rows, as expressions that dbplyr translates; its rows, as a query.
#
# list(class tall_sql):
#   numbers, others  names of columns, as doubles and as they are
#   variables        by name list(name, written, expression, kind, is_text):
#                    "numbers", or "levels", of text or of numbers; `written`
#                    as in R
#   ranged           those that are numbers of smooth terms
#   bases            columns of these, see with_bases()
#   y, trials        expressions; trials NULL
#   weights, offsets, subset  expressions
#   env, family, columns, fails   of the request
#   is_complete      TRUE: no row lacks anything, as the look found
#   n_missing        how many rows do
#   cells            the design, see cells_of_design()
#   flag             flag(con): columns more beside those of the design, SQL of
#                    the variables by name; NULL: none
#
# A query has other names for columns than the table: v1, ... are variables, y,
# weight, offset; c1, ... the table's own; u a uniform number; u1, ... parts of
# the design.

# What a request asks, in SQL.
sql_request <- function(tables, request, head) {
  recipe <- sql_recipe(request$family)
  if (is.null(recipe)) {
    no_sql("the response has no SQL")
  }
  s <- sql_of_request(request, head)
  s$recipe <- recipe
  s
}

# The same without the likelihood.
sql_of_request <- function(request, head) {
  s <- list(
    columns = request$columns,
    env = request$env,
    family = request$family,
    fails = request$fails,
    response_name = request$response_name
  )
  head <- as.list(head)[request$columns]
  is_numbers <- vapply(head, is_plain_numeric, TRUE)
  s$numbers <- request$columns[is_numbers]
  s$others <- request$columns[!is_numbers]
  s$variables <- sql_variables(request$covariates, head, request$env)
  s$ranged <- sql_ranged(s, request$covariates, request$env)
  s[c("y", "trials")] <- sql_response(request, head)
  s$weights <- sql_numeric(request$weights, head, request$env)
  s$offsets <- lapply(request$offsets, sql_numeric, head, request$env)
  s$offsets <- Filter(function(e) !is.null(e), s$offsets)
  if (!is.null(request$subset)) {
    value <- value_of_head(request$subset, head, request$env)
    if (!is.logical(value)) {
      no_sql("`subset` is not TRUE or FALSE")
    }
    s$subset <- sql_expression(request$subset, head, request$env)
  }
  structure(s, class = "tall_sql")
}

value_of_head <- function(expression, head, env) {
  value <- tryCatch(
    suppressWarnings(eval(expression, head, env)),
    error = function(e) no_sql(paste0("`", deparse1(expression), "` fails"))
  )
  # I()
  if (inherits(value, "AsIs")) {
    class(value) <- setdiff(oldClass(value), "AsIs")
  }
  value
}

sql_response <- function(request, head) {
  y <- request$response
  env <- request$env
  is_pair <- rlang::is_call(y, "cbind", n = 2) && has_trials(request$family)
  if (!is_pair) {
    return(list(y = sql_numeric(y, head, env), trials = NULL))
  }
  s <- sql_numeric(y[[2]], head, env)
  f <- sql_numeric(y[[3]], head, env)
  list(
    y = bquote(ifelse(.(s) + .(f) != 0, .(s) / (.(s) + .(f)), 0)),
    trials = bquote(.(s) + .(f))
  )
}

# A number, or TRUE and FALSE as 1 and 0. NULL stays.
sql_numeric <- function(expression, head, env) {
  if (is.null(expression)) {
    return(NULL)
  }
  value <- value_of_head(expression, head, env)
  if (is.null(value)) {
    return(NULL)
  }
  own <- sql_expression(expression, head, env)
  if (is.logical(value)) {
    bquote(ifelse(.(own), 1, 0))
  } else if (is_plain_numeric(value) && is.null(dim(value))) {
    own
  } else {
    no_sql(paste0("`", deparse1(expression), "` is not a number"))
  }
}

# Variables of covariates by what R calls them, see sql_variable(); of a smooth
# term those that it is made of.
sql_variables <- function(covariates, head, env) {
  written <- lapply(covariates, function(expression) {
    if (is_smooth_call(expression, env)) {
      written_in_smooth(expression, env)
    } else {
      list(expression)
    }
  })
  written <- unlist(written, recursive = FALSE)
  names(written) <- vapply(written, deparse1, "")
  written <- written[!duplicated(names(written))]
  lapply(written, sql_variable, head, env)
}

sql_variable <- function(expression, head, env) {
  name <- deparse1(expression)
  written <- expression
  value <- value_of_head(expression, head, env)
  if (is.factor(value)) {
    is_plain <- is.call(expression) && length(expression) == 2 &&
      (identical(expression[[1]], quote(factor)) ||
        identical(expression[[1]], quote(as.factor)))
    if (!is_plain) {
      no_sql(paste0("`", name, "` is no SQL"))
    }
    expression <- expression[[2]]
    value <- value_of_head(expression, head, env)
    kind <- "levels"
  } else {
    has_levels <- is.character(value) || is.logical(value)
    kind <- if (has_levels) "levels" else "numbers"
  }
  is_text <- is.character(value)
  own <- if (is_text) {
    sql_expression(expression, head, env)
  } else {
    sql_numeric(expression, head, env)
  }
  list(
    name = name,
    written = written,
    expression = own,
    kind = kind,
    is_text = is_text,
    is_logical = is.logical(value)
  )
}

# ---- expressions -------------------------------------------------------------

# With the values of variables that are no columns, and of functions only those
# of R itself that dbplyr knows for the connection (see check_translated()).
sql_expression <- function(expression, head, env) {
  if (is.name(expression)) {
    return(sql_symbol(expression, head, env))
  }
  if (!is.call(expression)) {
    return(expression)
  }
  if (!is.name(expression[[1]])) {
    no_sql(paste0("`", deparse1(expression), "` is no SQL"))
  }
  f <- as.character(expression[[1]])
  if (f %in% c("I", "offset")) {
    return(call("(", sql_expression(expression[[2]], head, env)))
  }
  own <- get0(f, env, mode = "function")
  if (!identical(own, get0(f, baseenv(), mode = "function"))) {
    no_sql(paste0("`", f, "()` is no function that databases have"))
  }
  expression[-1] <- lapply(expression[-1], sql_expression, head, env)
  expression
}

# A column, or the value of another variable.
sql_symbol <- function(symbol, head, env) {
  name <- as.character(symbol)
  if (name %in% names(head)) {
    return(symbol)
  }
  value <- get0(name, env)
  is_one <- is.atomic(value) && length(value) == 1 && !is.object(value)
  if (!is_one || is.na(value)) {
    no_sql(paste0("`", name, "` is neither a column nor one value"))
  }
  value
}

check_translated <- function(s, con) {
  every <- c(
    lapply(s$variables, `[[`, "expression"),
    s$offsets,
    list(s$y, s$trials, s$weights, s$subset)
  )
  known <- dbplyr::sql_translation(con)$scalar
  columns <- unlist(lapply(every, all.vars))
  used <- setdiff(unlist(lapply(every, all.names)), columns)
  unknown <- used[!vapply(used, exists, TRUE, known, inherits = FALSE)]
  if (length(unknown) > 0) {
    no_sql(paste0("`", unknown[[1]], "()` is not translated to SQL"))
  }
}

# May a query fail? A transaction of the user's is lost to DuckDB by that.
check_can_fail <- function(con) {
  check_dialect(con)
  if (is_duckdb(con) && !is_own_read(con) && is_in_transaction(con)) {
    no_sql("a transaction is under way, which DuckDB gives up at any error")
  }
}

# ---- the design --------------------------------------------------------------

# What passes need, once the design is known. NULL: model.matrix() makes
# something of it.
settle_sql <- function(s, design, pilot) {
  if (is.null(s) || is.null(design$program) ||
    length(design$columns) > sql_columns ||
    !is.null(smooths_beyond_sql(design))) {
    return(NULL)
  }
  s <- with_bases(s, design)
  s$cells <- cells_of_design(s, design, pilot)
  s
}

# Norms take the square of them in products: wider designs are streamed.
sql_columns <- 200

# The rows that count, with the parts of the design about their centres: rows$u
# is their SQL, that of the first is 1; rows$by are the names of its factors.
sql_design_rows <- function(
  s,
  table,
  raw = FALSE,
  below = NULL,
  more = NULL
) {
  kept <- c(
    if (raw) sprintf("c%d", seq_along(s$columns)),
    names(more),
    if (!is.null(below)) "u"
  )
  add_parts(sql_rows(s, table, raw, below, more), s, kept)
}

# Of sql_rows(); kept: what other columns go on.
add_parts <- function(rows, s, kept) {
  con <- rows$con
  cells <- s$cells
  if (length(s$bases) > 0) {
    rows <- add_distances(rows, s, c(value_names(s), kept, missing_name(s)))
  }
  parts <- vapply(seq_along(cells$parts)[-1], sql_part, "", s, con)
  names(parts) <- sprintf("u%d", seq_along(parts))
  flags <- if (!is.null(s$flag)) s$flag(con)
  rows$u <- c(sql_number(1, con), quote_names(con, names(parts)))
  rows$by <- if (length(cells$factors) > 0) sprintf("v%d", cells$factors)
  variables <- sprintf("v%d", seq_along(s$variables))
  rows$keep <- c(rows$by, setdiff(value_names(s), variables), kept)
  rows$sql <- sql_select(
    con,
    c(parts, flags),
    rows$sql,
    keep = rows$keep,
    where = if (!isTRUE(s$is_complete)) {
      paste(quote_names(con, "missing"), "= 0")
    },
    engine = if (is_dear_part(s)) rows$engine
  )
  rows$keep <- c(rows$keep, names(parts), names(flags))
  rows
}

# Is there one that is to be made once?
is_dear_part <- function(s) {
  length(s$bases) > 0 || any(lengths(s$cells$parts) > 1)
}

# A part about its centre.
sql_part <- function(a, s, con) {
  cells <- s$cells
  own <- vapply(cells$parts[[a]], function(k) {
    base <- k - length(s$variables)
    if (base > 0) {
      paste0("(", sql_of_basis(s, s$bases[[base]], con), ")")
    } else {
      quote_names(con, sprintf("v%d", k))
    }
  }, "")
  centre <- cells$centre[[a]]
  product <- paste(own, collapse = " * ")
  if (centre == 0) {
    return(product)
  }
  paste(product, "-", sql_number(centre, con))
}

# Numbers by levels as SQL, NULL: all are 0. values: by combination of the
# factors' levels.
sql_by_levels <- function(s, factors, values, con) {
  if (all(values == 0)) {
    return(NULL)
  }
  if (length(factors) == 0) {
    return(sql_number(values, con))
  }
  k <- factors[[length(factors)]]
  levels <- s$cells$levels[[as.character(k)]]
  values <- matrix(values, ncol = length(levels))
  used <- which(colSums(values != 0) > 0)
  results <- if (length(factors) == 1) {
    sql_number(values[used], con)
  } else {
    vapply(used, function(level) {
      sql_by_levels(s, factors[-length(factors)], values[, level], con)
    }, "")
  }
  levels <- sql_levels(s$variables[[k]], levels[used], con)
  paste0(
    "CASE ", quote_names(con, sprintf("v%d", k)), " ",
    paste("WHEN", levels, "THEN", results, collapse = " "),
    " ELSE ", sql_number(0, con), " END"
  )
}

# Is it an engine whose SQL is known to lack what queries here need? (See
# ?tall_source, tables in a database.)
check_dialect <- function(con) {
  if (is_clickhouse(con)) {
    no_sql("passes are not written in the SQL of ClickHouse")
  }
}
