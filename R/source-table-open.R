# Lazy tables that a function opens, where they are read: here or on a worker.

#' Tables in databases, opened where they are read
#'
#' A lazy table holds a connection, which cannot be sent to another process. A
#' function that makes the connection can: of a list of such functions, each is
#' a shard, and the workers of a [future::plan()] compute their sums at the same
#' time.
#'
#' @param open (function, or list of functions) `open()` connects and returns a
#'   lazy table of \pkg{dbplyr}, whose connection is closed by
#'   `DBI::dbDisconnect()` when it has been read; or a list of `table` and
#'   `close`, a function without arguments that is called instead.
#' @param in_database (`TRUE` or `FALSE`) As in [as_source()].
#'
#' @details With a plan of several workers and more than one table, each pass is
#' a query of each table by a worker, all at the same time: counts, sums and the
#' rows that steps will look at. A worker opens its table, reads, and closes it,
#' for each query; where rows are streamed, for each pass. What it sends back is
#' the square of the number of columns, and drawn rows. This process opens each
#' table once for a fit, too: it writes the queries, and keeps a transaction
#' open. So each table must be open to this process and to any worker: a server
#' in a network is; a file must be where all of them see it, and one of DuckDB
#' must be opened by `duckdb::duckdb(file, read_only = TRUE)`.
#'
#' In PostgreSQL workers read the state of the database that the transaction of
#' this process sees. Elsewhere each query of a worker sees the state of its own
#' time, and counts and sums of all passes are compared.
#'
#' Draws are those of a call without workers where they are reproducible at all,
#' see *Tables in a database* of [tall_source]: of Gaussian responses and of few
#' kinds of rows, but for the order in which the engine adds up; and where rows
#' are streamed in an order, bit for bit. Other rows are drawn by random numbers
#' of the engines.
#'
#' Without a plan, or where `open` holds a connection itself, tables are read
#' one after another by this process.
#'
#' @return An object of class `tall_source`, for [tall_glm()] and wherever else
#'   rows of a [source][tall_source] are taken.
#' @section Conditions:
#' `tall_error_source` where a table cannot be opened or read, here or by a
#' worker: its `parent` is what `open` or the database says, and the field
#' `shard` the number of the table in the list. `tall_error_worker`, also with
#' `shard`, where a worker ends.
#' @seealso [as_source()] for lazy tables that are there.
#' @examplesIf rlang::is_installed(c("RSQLite", "dbplyr"))
#' files <- replicate(2, tempfile(fileext = ".sqlite"))
#' for (file in files) {
#'   con <- DBI::dbConnect(RSQLite::SQLite(), file)
#'   DBI::dbWriteTable(con, "cars", mtcars)
#'   DBI::dbDisconnect(con)
#' }
#' tables <- tall_table(lapply(files, function(file) {
#'   force(file)
#'   function() {
#'     dplyr::tbl(DBI::dbConnect(RSQLite::SQLite(), file), "cars")
#'   }
#' }))
#' fit <- tall_glm(mpg ~ wt, data = tables, seed = 1)
#' nobs(fit)
#' unlink(files)
#' @export
tall_table <- function(open, in_database = TRUE) {
  check_given(open)
  check_flag(in_database)
  check_has_dbplyr()
  if (is.list(open) && length(open) > 0 &&
    all(vapply(open, is.function, TRUE))) {
    return(new_shards(lapply(open, tall_table, in_database = in_database)))
  }
  if (!is.function(open)) {
    expected <- "a function that opens a lazy table, or a list of such"
    abort_expected(open, expected)
  }
  place <- new.env(parent = emptyenv())
  # of a table that nobody closed, as after an error
  reg.finalizer(place, close_place)
  source <- list(open = open, in_database = in_database, place = place)
  structure(source, class = c("tall_table", "tall_source"))
}

check_has_dbplyr <- function() {
  if (!requireNamespace("DBI", quietly = TRUE) ||
    !requireNamespace("dbplyr", quietly = TRUE)) {
    abort_tall(
      "unsupported",
      c(
        "A table in a database needs the packages {.pkg DBI} and
         {.pkg dbplyr}.",
        i = "{.code install.packages(c(\"DBI\", \"dbplyr\"))}"
      )
    )
  }
}

# The lazy table of a source, which stays open until close_table().
own_table <- function(source) {
  if (!is.null(source$tbl)) {
    return(source$tbl)
  }
  place <- source$place
  if (!is_table_open(source)) {
    # a fork must not end the connection of the process that it comes from
    place$inherited <- c(place$inherited, list(place$tbl))
    opened <- open_table(source$open)
    place$tbl <- opened$table
    place$close <- opened$close
    place$process <- Sys.getpid()
  }
  place$tbl
}

# list(table, close) of what a user's function gives.
open_table <- function(open) {
  opened <- tryCatch(open(), error = abort_not_opened)
  if (inherits(opened, "tbl_lazy")) {
    con <- dbplyr::remote_con(opened)
    return(list(table = opened, close = function() DBI::dbDisconnect(con)))
  }
  is_pair <- is.list(opened) && inherits(opened$table, "tbl_lazy") &&
    is.function(opened$close)
  if (!is_pair) {
    abort_source(
      "{.fn open} must return a lazy table, or a list of {.field table} and
       {.field close}, not {describe(opened)}."
    )
  }
  opened
}

abort_not_opened <- function(error) {
  if (inherits(error, "tall_error")) {
    rlang::cnd_signal(error)
  }
  is_locked <- grepl("set lock on file", conditionMessage(error), fixed = TRUE)
  abort_source(
    c(
      "The table cannot be opened.",
      i = if (is_locked) {
        "Several processes can read a file of DuckDB where each opens it by
         {.code duckdb::duckdb(file, read_only = TRUE)}."
      }
    ),
    parent = error
  )
}

is_table_open <- function(source) {
  if (is.null(source$tbl) && !identical(source$place$process, Sys.getpid())) {
    return(FALSE)
  }
  tbl <- source$tbl %||% source$place$tbl
  # a connection that came from another process is none
  !is.null(tbl) && tryCatch(
    DBI::dbIsValid(dbplyr::remote_con(tbl)),
    error = function(e) FALSE
  )
}

# A user's own lazy table is never closed.
close_table <- function(source) {
  if (!is.null(source$place)) {
    close_place(source$place)
  }
}

close_place <- function(place) {
  close <- if (identical(place$process, Sys.getpid())) place$close
  place$tbl <- place$close <- place$snapshot <- NULL
  if (!is.null(close)) {
    try(close(), silent = TRUE)
  }
}

# Closes what `code` opens.
with_table <- function(source, code) {
  if (!is_table_open(source)) {
    on.exit(close_table(source))
  }
  code
}

table_connection <- function(source) {
  dbplyr::remote_con(own_table(source))
}

# ---- queries of many tables --------------------------------------------------

# What run_sql() gives of each table, a query for each: by workers at the same
# time where tables can be opened there. Errors have the field `shard`.
run_on_tables <- function(tables, queries) {
  n_table <- length(tables)
  travels <- n_table > 1 && has_workers() &&
    all(vapply(tables, can_travel, TRUE))
  if (travels) {
    return(run_on_workers(tables, queries))
  }
  Map(function(table, query, number) {
    in_shard(number, n_table, run_sql(table_connection(table), query))
  }, tables, queries, seq_len(n_table))
}

run_on_workers <- function(tables, queries) {
  # what travels is what the user gave: the limit is for what travels by
  # accident
  rlang::local_options(future.globals.maxSize = Inf)
  jobs <- Map(function(table, query) {
    list(
      open = table$open,
      text = query_text(table_connection(table), query),
      snapshot = table$place$snapshot
    )
  }, tables, queries)
  guard <- function(number, expr) from_shard_worker(number, expr)
  found <- found_globals(lapply(jobs, `[[`, "open"))
  # the drivers' own random numbers, as for names, are none of ours
  crew <- new_crew(unname(jobs), query_job, found, NULL, guard, identity)
  crew$work()
  Map(function(result, job, number) {
    in_shard(number, length(tables), {
      if (is.null(result$value)) {
        abort_query(told_here(result$error), job$text)
      }
      rows <- fetch_strictly(columns_of_query(result$value))
      frame_of(rows, nrow(result$value))
    })
  }, crew$results(), jobs, seq_along(jobs))
}

# What a worker does: list(value) or list(error).
query_job <- function(job) {
  tryCatch(
    {
      opened <- open_table(job$open)
      on.exit(opened$close())
      con <- dbplyr::remote_con(opened$table)
      end <- begin_reading(con, job$snapshot)
      on.exit(end(), add = TRUE, after = FALSE)
      list(value = fetch_strictly(DBI::dbGetQuery(con, job$text)))
    },
    error = function(e) list(error = e)
  )
}

# Begins to read a table for a fit: a function that ends it and closes what was
# opened. Workers read the state of the database that this transaction of
# PostgreSQL sees, by its name; no savepoint may be around that.
hold_table <- function(table) {
  con <- table_connection(table)
  end <- begin_reading(con)
  if (!is.null(table$open) && is_postgres(con)) {
    snapshot <- tryCatch(
      DBI::dbGetQuery(con, "SELECT pg_export_snapshot() AS name")$name,
      error = function(e) NULL
    )
    table$place$snapshot <- snapshot
    if (is.null(snapshot)) {
      # the transaction has failed
      end()
      end <- begin_reading(con)
    }
  }
  function() {
    end()
    close_table(table)
  }
}

# Aggregates of the rows of each table: of each list(keys, sums), a row for each
# combination of values of the columns `by`; keys are those, NULL without any.
# made: for each list(rows, sums), the query of its rows and SQL by name, of
# which `names` are taken. NULL of none are 0.
sql_aggregates <- function(tables, made, names, by = NULL) {
  at <- split(seq_along(names), (seq_along(names) - 1) %/% setting("sql_width"))
  parts <- lapply(at, function(own) {
    queries <- lapply(made, function(one) {
      con <- one$rows$con
      columns <- stats::setNames(one$sums[names[own]], paste0("s", own))
      sql <- sql_select(con, columns, one$rows$sql, keep = by)
      sql_grouped(con, sql, by)
    })
    lapply(run_on_tables(tables, queries), split_keys, by)
  })
  lapply(seq_along(tables), function(k) {
    own <- lapply(parts, `[[`, k)
    keys <- own[[1]]$keys
    sums <- lapply(own, function(part) {
      part$sums[match_keys(keys, part$keys), , drop = FALSE]
    })
    sums <- do.call(cbind, sums)
    sums[is.na(sums)] <- 0
    colnames(sums) <- names
    list(keys = keys, sums = sums)
  })
}

split_keys <- function(found, by) {
  sums <- found[setdiff(names(found), by)]
  list(
    keys = if (length(by) > 0) found[by],
    sums = matrix(
      unlist(lapply(sums, as.double), use.names = FALSE),
      nrow = nrow(found)
    )
  )
}

# Where the groups of a query are among those of another, which may hand them
# out in another order.
match_keys <- function(keys, others) {
  if (is.null(keys)) {
    return(1)
  }
  of <- function(keys) do.call(paste, c(unname(as.list(keys)), sep = "\r"))
  match(of(keys), of(others))
}

# A savepoint in every database, in which code may fail.
in_savepoints <- function(tables, code) {
  cons <- lapply(tables, table_connection)
  in_savepoints_of(Filter(Negate(is_sqlite), cons), code)
}

in_savepoints_of <- function(cons, code) {
  if (length(cons) == 0) {
    return(code)
  }
  in_savepoint(cons[[1]], in_savepoints_of(cons[-1], code))
}

# As run_on_tables() has it, of queries which a look begins with; NULL where one
# fails: words for what is wrong come from what the look does then.
try_on_tables <- function(tables, queries) {
  tryCatch(
    in_savepoints(tables, run_on_tables(tables, queries)),
    tall_error_source = function(e) NULL,
    tall_error_worker = function(e) NULL
  )
}
