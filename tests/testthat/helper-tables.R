# Tables in databases that tests make.

# A connection to an SQLite database in memory that lasts as long as `frame`.
local_sqlite <- function(frame = parent.frame()) {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(if (DBI::dbIsValid(con)) DBI::dbDisconnect(con), frame)
  con
}

# A lazy table of these rows.
table_of <- function(con, rows, name = "rows") {
  DBI::dbWriteTable(con, name, rows, overwrite = TRUE)
  dplyr::tbl(con, name)
}

# Rows as SQLite hands them out: it has neither logical values nor factors.
as_sqlite <- function(rows) {
  rows[] <- lapply(rows, function(x) {
    if (is.logical(x)) as.integer(x) else if (is.factor(x)) as.character(x) else x
  })
  rows
}
