# What predictions are written to: list(write, finish, drop). write(frame) adds
# rows, finish() puts what was written in its place, drop() leaves nothing.

# to: of check_to(). streams: are the rows read from a source meanwhile?
open_sink <- function(to, streams) {
  switch(
    to$kind,
    parquet = parquet_sink(to),
    folder = folder_sink(to),
    csv = csv_sink(to),
    table = if (streams) spooled_sink(to) else table_sink(to)
  )
}

# ---- files -------------------------------------------------------------------

# Beside the file, so that it can be renamed: other disks take copies.
temporary_beside <- function(path) {
  ending <- sub("^[^.]*", "", basename(path))
  tempfile(".tallbayes-", dirname(path), ending)
}

put_in_place <- function(temporary, to) {
  if (dir.exists(to$path)) {
    unlink(to$path, recursive = TRUE)
  }
  if (!file.rename(temporary, to$path)) {
    abort_tall(
      "data",
      "{.path {to$path}} cannot be written.",
      file = to$path
    )
  }
}

parquet_sink <- function(to) {
  temporary <- temporary_beside(to$path)
  list(
    write = function(frame) add_row_group(frame, temporary),
    finish = function() put_in_place(temporary, to),
    drop = function() unlink(temporary)
  )
}

# A row group more, or the first. Any column may have missing values.
add_row_group <- function(frame, path) {
  options <- nanoparquet::parquet_options(keep_row_groups = TRUE)
  if (file.exists(path)) {
    nanoparquet::append_parquet(frame, path, options = options)
  } else {
    schema <- nanoparquet::infer_parquet_schema(frame)
    schema$repetition_type[] <- "OPTIONAL"
    nanoparquet::write_parquet(frame, path, schema, options = options)
  }
}

folder_sink <- function(to) {
  temporary <- temporary_beside(to$path)
  dir.create(temporary)
  n <- 0
  list(
    write = function(frame) {
      n <<- n + 1
      part <- sprintf("part-%06d.parquet", n)
      add_row_group(frame, file.path(temporary, part))
    },
    finish = function() put_in_place(temporary, to),
    drop = function() unlink(temporary, recursive = TRUE)
  )
}

csv_sink <- function(to) {
  temporary <- temporary_beside(to$path)
  is_packed <- grepl("[.]gz$", to$path, ignore.case = TRUE)
  open <- if (is_packed) gzfile else file
  con <- open(temporary, "w", encoding = "UTF-8")
  end <- once(function() close(con))
  is_first <- TRUE
  list(
    write = function(frame) {
      utils::write.table(
        frame,
        con,
        sep = ",",
        row.names = FALSE,
        col.names = is_first,
        qmethod = "double"
      )
      is_first <<- FALSE
    },
    finish = function() {
      end()
      put_in_place(temporary, to)
    },
    drop = function() {
      end()
      unlink(temporary)
    }
  )
}

# ---- tables ------------------------------------------------------------------

table_sink <- function(to) {
  con <- to$con
  writing <- begin_writing(con)
  is_made <- FALSE
  list(
    write = function(frame) {
      factors <- vapply(frame, is.factor, TRUE)
      frame[factors] <- lapply(frame[factors], as.character)
      if (!is_made) {
        if (table_exists(to)) {
          DBI::dbRemoveTable(con, to$name)
        }
        DBI::dbCreateTable(con, to$name, frame)
        is_made <<- TRUE
      }
      DBI::dbAppendTable(con, to$name, frame)
    },
    finish = function() writing$commit(),
    drop = function() {
      writing$rollback()
      # where nothing was taken back
      if (is_made && !to$overwrite) {
        try(if (table_exists(to)) DBI::dbRemoveTable(con, to$name), TRUE)
      }
    }
  )
}

# list(commit, rollback): of a transaction, or, where the user is in one, of a
# savepoint in it. Where there are none they do nothing.
begin_writing <- function(con) {
  execute <- function(...) {
    for (sql in c(...)) DBI::dbExecute(con, sql)
  }
  tries <- function(code) {
    tryCatch(
      {
        force(code)
        TRUE
      },
      error = function(e) FALSE
    )
  }
  is_within <- (is_postgres(con) || is_duckdb(con)) && is_in_transaction(con)
  if (!is_within && tries(DBI::dbBegin(con))) {
    return(list(
      commit = function() DBI::dbCommit(con),
      rollback = function() tries(DBI::dbRollback(con))
    ))
  }
  name <- "SAVEPOINT tallbayes_write"
  if (!is_duckdb(con) && tries(execute(name))) {
    release <- paste("RELEASE", name)
    return(list(
      commit = function() execute(release),
      rollback = function() tries(execute(paste("ROLLBACK TO", name), release))
    ))
  }
  nothing <- function() invisible()
  list(commit = nothing, rollback = nothing)
}

# Rows wait in a file until all have been read: their source may have the same
# connection, which reads and writes one thing at a time.
spooled_sink <- function(to) {
  path <- tempfile("tallbayes-")
  spool <- file(path, "wb")
  n <- 0
  end <- once(function() close(spool))
  remove <- function() {
    end()
    unlink(path)
  }
  list(
    write = function(frame) {
      n <<- n + 1
      serialize(frame, spool, xdr = FALSE)
    },
    finish = function() {
      on.exit(remove())
      end()
      copy_spool(path, n, table_sink(to))
    },
    drop = remove
  )
}

copy_spool <- function(path, n, sink) {
  spool <- file(path, "rb")
  is_done <- FALSE
  on.exit({
    close(spool)
    if (!is_done) sink$drop()
  })
  for (k in seq_len(n)) {
    sink$write(unserialize(spool))
  }
  sink$finish()
  is_done <- TRUE
}
