# SQL as text: what an engine can do, nested queries, sums in blocks. Names and
# text are quoted by DBI, numbers are written here, terms are dbplyr's.

# list(double, reads_double, has_nan, ends, nests): the engine's type of
# doubles; is a number with an exponent one to it? Whether it has NaN; what ends
# a sub-query that it must not merge with the one around it, so that what stands
# in it is evaluated once; whether steps of a query are nested and not common
# table expressions.
#
# PostgreSQL takes no sub-query with OFFSET to its parallel workers, unless the
# number is seen to be 0 where the query is parsed: 0 is an integer that is cast
# later, '0' is not. A common table expression that draws random numbers it
# writes out, by one process.
#
# To sparklyr doubles are REAL, which is Spark's name of numbers of 32 bits.
sql_engine <- function(con) {
  list(
    double = if (is_spark(con)) {
      "DOUBLE"
    } else {
      tryCatch(
        DBI::dbDataType(con, 1.5),
        error = function(e) "DOUBLE PRECISION"
      )
    },
    reads_double = is_sqlite(con) || is_duckdb(con),
    has_nan = !is_sqlite(con),
    ends = if (is_sqlite(con)) {
      "LIMIT -1 OFFSET 0"
    } else if (is_postgres(con)) {
      "OFFSET '0'"
    },
    nests = is_postgres(con)
  )
}

# Where SQL cannot do: a condition with the reason.
no_sql <- function(why) {
  rlang::abort(why, class = "tall_no_sql")
}

# Uniform numbers between 0 and 1, another for every row.
sql_uniform <- function(con) {
  says_rand <- c(
    "BigQueryConnection",
    "Hive",
    "MariaDBConnection",
    "MySQLConnection"
  )
  if (is_sqlite(con)) {
    # 53 of 64 random bits
    "((RANDOM() & 9007199254740991) + 0.5e0) / 9007199254740992e0"
  } else if (is_spark(con) || inherits(con, says_rand)) {
    "RAND()"
  } else if (inherits(con, "Snowflake")) {
    # its RANDOM() are whole numbers
    "UNIFORM(CAST(0 AS DOUBLE), CAST(1 AS DOUBLE), RANDOM())"
  } else {
    "RANDOM()"
  }
}

# What an engine lacks that passes need; NULL: nothing.
sql_lacks <- function(con) {
  asked <- c(
    "the exponential function" = sql_translate(quote(exp(0.5)), con),
    "the logarithm" = sql_translate(quote(log(2.5)), con),
    "uniform random numbers" = sql_uniform(con)
  )
  for (what in names(asked)) {
    if (!is_number(try_sql(con, paste("SELECT", asked[[what]])))) {
      return(paste("the database lacks", what))
    }
  }
}

# One number that a query gives; NULL where it fails.
try_sql <- function(con, sql) {
  tryCatch(
    in_savepoint(con, as.double(DBI::dbGetQuery(con, sql)[[1]])),
    error = function(e) NULL
  )
}

# An R expression in columns, as SQL. The environment has functions that dbplyr
# does not translate: there must be none.
sql_translate <- function(expression, con) {
  quo <- rlang::new_quosure(with_doubles(expression, con), baseenv())
  paste0("(", dbplyr::translate_sql_(list(quo), con = con), ")")
}

# Where dbplyr would write decimals: elsewhere, as in round(x, 2), a function
# may want a whole number.
takes_doubles <- c(
  "+", "-", "*", "/", "^", "(", "<", "<=", ">", ">=", "==", "!=",
  "ifelse", "exp", "sqrt", "abs"
)

# The expression with its numbers as they are written here.
with_doubles <- function(expression, con) {
  if (is_plain_numeric(expression) && all(is.finite(expression))) {
    return(dbplyr::sql(sql_number(expression, con)))
  }
  if (!is.call(expression)) {
    return(expression)
  }
  f <- expression[[1]]
  written <- is.name(f) && as.character(f) %in% takes_doubles
  expression[-1] <- lapply(expression[-1], function(e) {
    if (is.call(e) || written) with_doubles(e, con) else e
  })
  if (is_minus(expression) && is_minus(expression[[2]])) {
    # two signs begin a comment
    expression[[2]] <- call("(", expression[[2]])
  }
  expression
}

is_minus <- function(expression) {
  rlang::is_call(expression, "-", n = 1)
}

# A double, all of it. Digits with no more than a point are decimals to many
# engines, which have too few places for their sums and products.
sql_number <- function(x, con) {
  stopifnot(all(is.finite(x)))
  short <- sprintf("%.15g", x)
  text <- ifelse(as.double(short) == x, short, sprintf("%.17g", x))
  text <- paste0(text, ifelse(grepl("e", text), "", "e0"))
  engine <- sql_engine(con)
  if (engine$reads_double) {
    return(ifelse(x < 0, paste0("(", text, ")"), text))
  }
  paste0("CAST(", text, " AS ", engine$double, ")")
}

sql_double <- function(text, con) {
  paste0("CAST(", text, " AS ", sql_engine(con)$double, ")")
}

# 1 where a test holds, else 0: doubles, which are summed.
sql_flag <- function(test, con) {
  of <- sql_number(c(1, 0), con)
  paste("CASE WHEN", test, "THEN", of[[1]], "ELSE", of[[2]], "END")
}

# A sum whose brackets nest no deeper than engines can take.
sql_total <- function(terms, con) {
  if (length(terms) == 0) {
    return(sql_number(0, con))
  }
  while (length(terms) > 1) {
    if (length(terms) %% 2 == 1) {
      terms <- c(terms, NA)
    }
    left <- terms[c(TRUE, FALSE)]
    right <- terms[c(FALSE, TRUE)]
    terms <- ifelse(is.na(right), left, paste0("(", left, " + ", right, ")"))
  }
  terms
}

# A query in steps, each a SELECT from the one before, the first from text:
# columns, SQL by name; keep, names of columns that go on as they are. engine:
# given where it must not merge the step with the next.
sql_select <- function(
  con,
  columns,
  from,
  keep = character(),
  where = NULL,
  engine = NULL
) {
  own <- if (length(columns) > 0) {
    paste(unlist(columns), "AS", quote_names(con, names(columns)))
  }
  picked <- c(if (length(keep) > 0) quote_names(con, keep), own)
  is_first <- !inherits(from, "sql_steps")
  step <- list(
    select = paste("SELECT", paste(picked, collapse = ", ")),
    from = if (is_first) from,
    rest = paste0(
      if (length(where) > 0) {
        paste0("\nWHERE ", paste0("(", where, ")", collapse = " AND "))
      },
      if (!is.null(engine$ends)) paste0("\n", engine$ends)
    )
  )
  structure(c(if (!is_first) from, list(step)), class = "sql_steps")
}

step_name <- function(k) {
  paste0("tb_q", k)
}

# What stands at the end of the last step.
sql_append <- function(steps, text) {
  n <- length(steps)
  steps[[n]]$rest <- paste0(steps[[n]]$rest, "\n", text)
  steps
}

# As a whole number, which 1e5 is not everywhere.
sql_limit <- function(n) {
  paste("LIMIT", format(n, scientific = FALSE))
}

# By combinations of the columns `by`, where there are some; one more than
# `most` at most.
sql_grouped <- function(con, sql, by, most = Inf) {
  if (length(by) == 0) {
    return(sql)
  }
  group <- paste(quote_names(con, by), collapse = ", ")
  sql <- sql_append(sql, paste("GROUP BY", group))
  if (is.finite(most)) sql_append(sql, sql_limit(most + 1)) else sql
}

# One below the other: nested, they would be more than some parsers take.
sql_text <- function(steps, nests = FALSE) {
  steps <- unclass(steps)
  n <- length(steps)
  text <- character(n)
  for (k in seq_len(n)) {
    step <- steps[[k]]
    within <- if (k == 1) step$from else if (nests) text[[k - 1]]
    source <- paste0(
      if (length(within) > 0) paste0("(", within, ") "),
      step_name(k - 1)
    )
    text[[k]] <- paste0(
      step$select, "\nFROM ", source, paste(step$rest, collapse = "")
    )
  }
  if (nests || n == 1) {
    return(text[[n]])
  }
  own <- paste0(step_name(seq_len(n - 1)), " AS (\n", text[-n], "\n)")
  paste0("WITH ", paste(own, collapse = ",\n"), "\n", text[[n]])
}

query_text <- function(con, steps) {
  sql_text(steps, sql_engine(con)$nests)
}

run_sql <- function(con, sql) {
  text <- query_text(con, sql)
  rows <- tryCatch(
    fetch_strictly(DBI::dbGetQuery(con, text)),
    error = function(e) abort_query(e, text)
  )
  frame_of(columns_of_query(rows), nrow(rows))
}
