# Lazy tables of dbplyr: rows that lie in a database. As a source like any other
# they are streamed; passes that the database computes itself stand in
# design-sql.R and mode-sql.R.

# A source of one table: list(tbl, in_database), or list(open, in_database,
# place), see tall_table().
#' @rdname tall_source
#' @param in_database (`TRUE` or `FALSE`) Of a lazy table: may the database
#'   compute the passes of a fit? See *Tables in a database*.
#' @export
as_source.tbl_lazy <- function(x, ..., in_database = TRUE) {
  check_no_dots(...)
  check_flag(in_database)
  check_has_dbplyr()
  source <- list(tbl = x, in_database = in_database)
  structure(source, class = c("tall_table", "tall_source"))
}

table_connection <- function(source) {
  dbplyr::remote_con(own_table(source))
}

# The query of the table, as text.
table_query <- function(source) {
  as.character(dbplyr::sql_render(own_table(source)))
}

# The tables that a source is made of, one or shards; NULL: it is made of
# something else, too.
source_tables <- function(source) {
  if (inherits(source, "tall_table")) {
    return(list(source))
  }
  if (!inherits(source, "tall_shards")) {
    return(NULL)
  }
  parts <- lapply(source$shards, source_tables)
  if (!any(vapply(parts, is.null, TRUE))) unlist(parts, recursive = FALSE)
}

# ---- rows that are streamed --------------------------------------------------

# An order of the rows is the user's, by dplyr::arrange(): but a scan that
# PostgreSQL starts anywhere, or shares among workers, has none at all.
#' @export
source_open.tall_table <- function(source, columns = NULL) {
  was_open <- is_table_open(source)
  con <- table_connection(source)
  stop_reading <- begin_reading(con)
  end <- function() {
    stop_reading()
    if (!was_open) {
      close_table(source)
    }
  }
  failed <- TRUE
  on.exit(if (failed) end())
  if (is_postgres(con) && is_in_transaction(con)) {
    DBI::dbExecute(con, "SET LOCAL max_parallel_workers_per_gather = 0")
  }
  sql <- table_query(source)
  if (!is.null(columns)) {
    columns <- intersect(columns, source_names(source))
    sql <- pick_query(con, columns, sql)
  }
  result <- DBI::dbSendQuery(con, sql)
  close <- once(function() {
    try(DBI::dbClearResult(result), silent = TRUE)
    end()
  })
  failed <- FALSE
  list(
    next_block = function() {
      if (DBI::dbHasCompleted(result)) {
        return(NULL)
      }
      rows <- fetch_strictly(DBI::dbFetch(result, block_rows))
      # a query without columns has rows, too
      columns <- columns_of_query(rows[setdiff(names(rows), no_column)])
      list(columns = columns, first = 0, n = nrow(rows))
    },
    close = close
  )
}

no_column <- "tb_none"

pick_query <- function(con, columns, sql) {
  picked <- if (length(columns) > 0) {
    paste(quote_names(con, columns), collapse = ", ")
  } else {
    paste("1 AS", quote_names(con, no_column))
  }
  paste0("SELECT ", picked, " FROM (", sql, ") ", quote_names(con, "tb_q"))
}

# As the engine's text, whatever stands in a name.
quote_names <- function(con, names) {
  as.character(DBI::dbQuoteIdentifier(con, as.character(names)))
}

quote_text <- function(con, text) {
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

#' @export
source_head.tall_table <- function(source, columns = NULL) {
  with_table(source, table_head(source, columns))
}

table_head <- function(source, columns) {
  known <- source_names(source)
  check_fetched(columns, known, source)
  con <- table_connection(source)
  few <- table_query(list(tbl = utils::head(own_table(source), head_rows)))
  sql <- pick_query(con, if (is.null(columns)) known else columns, few)
  rows <- call_source(
    fetch_strictly(DBI::dbGetQuery(con, sql)),
    list(block = 0, row = 1)
  )
  if (nrow(rows) == 0) {
    abort_source("The table has no rows.", list(block = 0, row = 1))
  }
  frame_of(columns_of_query(rows), nrow(rows))
}

#' @export
source_names.tall_table <- function(source) {
  with_table(source, colnames(own_table(source)))
}

# ---- one state of the data ---------------------------------------------------

# While rows are read more than once: a function that ends it. The connections
# are as they were then.
source_hold <- function(source) {
  ends <- list()
  failed <- TRUE
  on.exit(if (failed) for (end in rev(ends)) end())
  for (table in source_tables(source)) {
    ends <- c(ends, hold_table(table))
  }
  failed <- FALSE
  once(function() for (end in rev(ends)) end())
}

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

is_postgres <- function(con) {
  inherits(con, c("PqConnection", "PostgreSQLConnection"))
}

is_sqlite <- function(con) {
  inherits(con, "SQLiteConnection")
}

is_duckdb <- function(con) {
  inherits(con, "duckdb_connection")
}

# To BEGIN inside of a transaction PostgreSQL answers with a notice, and DuckDB
# by giving the transaction up. Two queries by themselves are of two
# transactions: another number, another time when it began.
is_in_transaction <- function(con) {
  began <- if (is_duckdb(con)) "txid_current()" else "now()::text"
  ask <- function() DBI::dbGetQuery(con, paste("SELECT", began, "AS at"))$at
  identical(ask(), ask())
}
