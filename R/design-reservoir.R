# Which rows a look keeps: a sample that is the same whatever the blocks, with
# enough rows of every stratum. src/passes/reservoir.h has the method.

# k: rows of all; k_stratum: of each stratum. The sets of strata (the levels of
# a factor, say) are as many as the first look_add() has.
new_look <- function(k, k_stratum, seed) {
  look <- new.env(parent = emptyenv())
  look$k <- k
  look$k_stratum <- k_stratum
  look$seed <- seed
  look$pointer <- NULL
  look
}

# Rows of a block, from 1, that may stay: those that were found before and these
# are all that ever can. first_row: the number of the block's first row, from 1.
# strata: list of codes 1, 2, ... of the block's n rows, one for each set, whole
# numbers or NA, or each list(values, first), of which row i of the block is at
# first + i; keep likewise, logical: others than TRUE are not looked at.
look_add <- function(look, first_row, n, strata = list(), keep = NULL) {
  open_look(look, length(strata))
  look_result(
    .Call(
      ffi_reservoir_add,
      look$pointer,
      first_row - 1,
      n,
      lapply(unname(strata), as_column),
      if (!is.null(keep)) as_column(keep)
    )
  )
}

open_look <- function(look, n_set) {
  if (is.null(look$pointer)) {
    purpose <- hash_purposes[["pilot"]]
    look$pointer <- look_result(
      .Call(
        ffi_reservoir_create,
        look$k,
        look$k_stratum,
        n_set,
        look$seed,
        purpose
      )
    )
  }
}

# What another look, of other rows, needs to know of this one: list(counts,
# smallest), by set, that of all rows first; NULL: it has met no rows.
look_summary <- function(look) {
  if (!is.null(look$pointer)) {
    list(
      counts = .Call(ffi_reservoir_counts, look$pointer),
      smallest = .Call(ffi_reservoir_smallest, look$pointer)
    )
  }
}

# Now `look` is as if it had met those rows, too. codes: for each set of strata,
# the codes here of those that are 1, 2, ... there.
look_merge <- function(look, summary, codes = list()) {
  if (is.null(summary)) {
    return(invisible())
  }
  open_look(look, length(codes))
  codes <- c(list(1L), unname(codes))
  for (set in seq_along(codes)) {
    look_result(
      .Call(
        ffi_reservoir_merge,
        look$pointer,
        set - 1,
        summary$counts[[set]],
        summary$smallest[[set]],
        as.integer(codes[[set]])
      )
    )
  }
}

look_result <- function(x) {
  if (is.integer(x)) {
    abort_status(x)
  }
  x
}

# list(n, strata): rows that were looked at, and of each stratum, by its code.
look_counts <- function(look) {
  if (is.null(look$pointer)) {
    return(list(n = 0, strata = list()))
  }
  counts <- .Call(ffi_reservoir_counts, look$pointer)
  list(n = counts[[1]], strata = counts[-1])
}

# Of rows that look_add() found, by their numbers in all data (from 1), with
# their codes: list(keep, weights), whether each stays and the number of rows
# that each of those stands for.
look_weights <- function(look, rows, strata = list()) {
  if (length(rows) == 0) {
    return(list(keep = logical(), weights = double()))
  }
  weights <- .Call(
    ffi_reservoir_weights,
    look$pointer,
    as.double(rows),
    lapply(unname(strata), as_column)
  )
  keep <- weights > 0
  list(keep = keep, weights = weights[keep])
}
