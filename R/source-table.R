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
  # a worker's own, of the state that the fit sees
  stop_reading <- begin_reading(con, source$place$snapshot)
  end <- function() {
    stop_reading()
    if (!was_open) {
      close_table(source)
    }
  }
  failed <- TRUE
  put_back <- function() NULL
  on.exit(if (failed) {
    put_back()
    end()
  })
  if (is_postgres(con) && is_in_transaction(con)) {
    put_back <- set_savepoint(con)
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
    put_back()
    end()
  })
  failed <- FALSE
  list(
    next_block = function() {
      if (DBI::dbHasCompleted(result)) {
        return(NULL)
      }
      rows <- fetch_strictly(DBI::dbFetch(result, setting("block_rows")))
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
names_without_pass.tall_table <- function(source) {
  source_names(source)
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
  tables <- source_tables(source)
  for (k in seq_along(tables)) {
    ends <- c(ends, in_shard(k, length(tables), hold_table(tables[[k]])))
  }
  failed <- FALSE
  once(function() for (end in rev(ends)) end())
}
