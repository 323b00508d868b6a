# Queries of a database, whatever they ask: names and text as it reads them,
# results as R has them, and transactions that see one state of the data.

is_postgres <- function(con) {
  inherits(con, c("PqConnection", "PostgreSQLConnection"))
}

is_sqlite <- function(con) {
  inherits(con, "SQLiteConnection")
}

is_duckdb <- function(con) {
  inherits(con, "duckdb_connection")
}

# Through sparklyr, or by ODBC.
is_spark <- function(con) {
  inherits(con, c("spark_connection", "Spark SQL"))
}

is_clickhouse <- function(con) {
  inherits(con, "ClickhouseConnection")
}

# ---- what comes back ---------------------------------------------------------

# As the engine's text, whatever stands in a name.
quote_names <- function(con, names) {
  as.character(DBI::dbQuoteIdentifier(con, as.character(names)))
}

# Spark takes two quotes in a text for its end and the beginning of another, and
# backslashes for its own; sparklyr escapes neither.
quote_text <- function(con, text) {
  if (is_spark(con)) {
    escaped <- gsub("(['\\\\])", "\\\\\\1", text)
    return(paste0("'", escaped, "'", recycle0 = TRUE))
  }
  as.character(DBI::dbQuoteString(con, as.character(text)))
}

# Values that are not of their column's type come with a warning.
fetch_strictly <- function(code) {
  withCallingHandlers(code, warning = function(w) {
    text <- conditionMessage(w)
    if (grepl("mixed type", text, fixed = TRUE)) {
      # "Column `x`: mixed type, first seen values of ..."
      name <- sub("^Column `(.*)`: mixed type.*", "\\1", text)
      abort_source(
        c(
          "{.field {name}} has values of more than one type.",
          x = escape_cli(text),
          i = "{.code dplyr::mutate()} can make one of them."
        ),
        column = name
      )
    }
  })
}

# Columns as R has them: whole numbers of 64 bits are doubles, as those of 2^53
# or more cannot be.
columns_of_query <- function(columns) {
  columns <- as.list(columns)
  is_long <- vapply(columns, inherits, TRUE, "integer64")
  long <- columns[is_long]
  columns[is_long] <- Map(plain_integers, long, names(long))
  columns
}

# Arrays come as lists, and those of PostgreSQL as text, "{1,2}", of a class
# that says so. Neither has a value for each row.
array_type <- function(x) {
  of_array <- grep("^pq__", class(x), value = TRUE)
  if (length(of_array) > 0) {
    return(paste0(sub("^pq__", "", of_array[[1]]), "[]"))
  }
  if (is.list(x) && !is.data.frame(x) && !inherits(x, "blob")) "list"
}

# columns: the first rows of those that are used.
check_no_arrays <- function(columns, arg = "data") {
  for (name in names(columns)) {
    type <- array_type(columns[[name]])
    if (!is.null(type)) {
      abort_input(
        c(
          "{.arg {arg}} must have a single value in each row of {.field {name}},
           not an array ({.code {type}}).",
          i = "Make columns of its elements in the database, as by
               {.code mutate(first = sql(\"{name}[1]\"))}."
        ),
        argument = name,
        expected = "a single value in each row",
        value = type
      )
    }
  }
}

plain_integers <- function(x, name) {
  out <- suppressWarnings(as.double(
    if (requireNamespace("bit64", quietly = TRUE)) {
      bit64::as.double.integer64(x)
    } else {
      as.character(x)
    }
  ))
  if (any(abs(out) >= 2^53, na.rm = TRUE)) {
    abort_source(
      c(
        "{.field {name}} has whole numbers of 2^53 or more, which doubles
         round.",
        i = "Identifiers can be text: {.code dplyr::mutate({name} =
             as.character({name}))}."
      ),
      column = name
    )
  }
  out
}

abort_query <- function(error, text, ...) {
  if (inherits(error, "tall_error")) {
    rlang::cnd_signal(error)
  }
  abort_source(
    "The database could not compute a pass over the rows.",
    NULL,
    parent = error,
    sql = text,
    ...
  )
}

# ---- one state of the data ---------------------------------------------------

# Begins a transaction that reads one state of the database, where there are
# such and none is under way; a function that ends it. snapshot: of another
# connection's transaction, see export_snapshot().
begin_reading <- function(con, snapshot = NULL) {
  nothing <- function() invisible()
  if ((is_postgres(con) || is_duckdb(con)) && is_in_transaction(con)) {
    return(nothing)
  }
  begun <- tryCatch(
    {
      DBI::dbBegin(con)
      TRUE
    },
    error = function(e) FALSE
  )
  if (!begun) {
    return(nothing)
  }
  own_reads$connections <- c(own_reads$connections, list(con))
  end <- once(function() {
    is_ours <- vapply(own_reads$connections, identical, TRUE, con)
    own_reads$connections <- own_reads$connections[!is_ours]
    try(DBI::dbRollback(con), silent = TRUE)
  })
  failed <- TRUE
  on.exit(if (failed) end())
  if (is_postgres(con)) {
    DBI::dbExecute(
      con,
      "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
    )
    if (!is.null(snapshot)) {
      name <- quote_text(con, snapshot)
      DBI::dbExecute(con, paste("SET TRANSACTION SNAPSHOT", name))
    }
    DBI::dbExecute(con, "SET LOCAL synchronize_seqscans = off")
    compile_plainly(con)
  }
  failed <- FALSE
  end
}

# The connections with a transaction that was begun here.
own_reads <- new.env(parent = emptyenv())
own_reads$connections <- list()

is_own_read <- function(con) {
  any(vapply(own_reads$connections, identical, TRUE, con))
}

# PostgreSQL compiles a query, again in every worker: what it takes to optimise
# hundreds of sums is more than they then save.
compile_plainly <- function(con) {
  settings <- c("jit_inline_above_cost", "jit_optimize_above_cost")
  try(silent = TRUE, in_savepoint(con, {
    for (name in settings) DBI::dbExecute(con, paste("SET LOCAL", name, "= -1"))
  }))
}

# To BEGIN inside of a transaction PostgreSQL answers with a notice, and DuckDB
# by giving the transaction up. Two queries by themselves are of two
# transactions: another number, another time when it began.
is_in_transaction <- function(con) {
  began <- if (is_duckdb(con)) "txid_current()" else "now()::text"
  ask <- function() DBI::dbGetQuery(con, paste("SELECT", began, "AS at"))$at
  identical(ask(), ask())
}

# A query that may fail: a transaction is put back where it was then. DuckDB has
# no savepoints, and a transaction is of no more use to it: one that was begun
# here begins anew, and others see no such query (see check_can_fail()).
in_savepoint <- function(con, code) {
  if (is_clickhouse(con)) {
    # a statement that it cannot parse ends the connection
    return(code)
  }
  if (is_duckdb(con)) {
    failed <- TRUE
    on.exit(if (failed && is_own_read(con)) {
      try(DBI::dbRollback(con), silent = TRUE)
      try(DBI::dbBegin(con), silent = TRUE)
    })
    out <- code
    failed <- FALSE
    return(out)
  }
  is_saved <- tryCatch(
    {
      DBI::dbExecute(con, "SAVEPOINT tallbayes")
      TRUE
    },
    error = function(e) FALSE
  )
  end <- paste(c("ROLLBACK TO", "RELEASE"), "SAVEPOINT tallbayes")
  on.exit(if (is_saved) {
    try(for (sql in end) DBI::dbExecute(con, sql), silent = TRUE)
  })
  out <- code
  end <- end[[2]]
  out
}

# A transaction of PostgreSQL is lost where a query is ended before its last
# row: a function that puts it back where it is now.
set_savepoint <- function(con) {
  name <- "SAVEPOINT tallbayes_rows"
  DBI::dbExecute(con, name)
  function() {
    back <- paste(c("ROLLBACK TO", "RELEASE"), name)
    try(for (sql in back) DBI::dbExecute(con, sql), silent = TRUE)
  }
}
