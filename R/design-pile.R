# Rows that a look keeps, until it knows which of them stay.

# Rows of blocks, one pile of them: their columns, numbers and strata.
new_pile <- function() {
  parts <- list()
  n <- 0
  join <- function() {
    if (length(parts) != 1) {
      parts <<- list(join_parts(parts))
    }
    parts[[1]]
  }
  list(
    # first: the number of the block's first row
    add = function(block, first, rows, codes, request) {
      parts[[length(parts) + 1]] <<- list(
        columns = pick_rows(block, request$columns, rows),
        rows = first - 1 + rows,
        codes = lapply(codes, codes_at, rows)
      )
      n <<- n + length(rows)
    },
    parts = function() parts,
    # those of another pile; codes: here, for those there
    add_parts = function(others, codes) {
      for (part in others) {
        part$codes <- Map(function(own, map) map[own], part$codes, codes)
        parts[[length(parts) + 1]] <<- part
        n <<- n + length(part$rows)
      }
    },
    keep = function(which) {
      all <- join()
      parts <<- list(list(
        columns = lapply(all$columns, column_rows, which),
        rows = all$rows[which],
        codes = lapply(all$codes, `[`, which)
      ))
      n <<- length(parts[[1]]$rows)
    },
    n = function() n,
    rows = function() join()$rows,
    codes = function() join()$codes,
    frame = function() frame_of(join()$columns, n)
  )
}

pick_rows <- function(block, names, rows) {
  lapply(stats::setNames(nm = names), function(name) {
    x <- block$columns[[name]]
    column_rows(x, if (NROW(x) == block$n) rows else block$first + rows)
  })
}

# Codes of rows of a block, which may lie in a longer vector.
codes_at <- function(codes, rows) {
  codes <- as_column(codes)
  as.integer(codes$values[codes$first + rows])
}

join_parts <- function(parts) {
  strata <- seq_along(parts[[1]]$codes)
  names(strata) <- names(parts[[1]]$codes)
  list(
    columns = bind_columns(lapply(parts, `[[`, "columns")),
    rows = unlist(lapply(parts, `[[`, "rows")),
    codes = lapply(strata, function(k) {
      unlist(lapply(parts, function(part) part$codes[[k]]))
    })
  )
}
