# What two passes over a source must have in common. Whoever passes over rows
# that others have passed over before adds each block to a digest, and compares
# it at the end.

# Can a source hand out other rows when it is opened again? What lies in memory
# cannot, and a file of tall_store() is looked after by itself; of shards, all
# are compared where one can.
may_change <- function(source) {
  fixed <- c("tall_source_frame", "tall_source_matrix")
  any(!vapply(source_shards(source), inherits, TRUE, fixed))
}

# add(block), of some columns, in the order in which they are named; found():
# list(kinds, n, sum), see src/ffi/digest.c. kinds: what the columns were in a
# pass before, NULL: nobody has seen them.
new_digest <- function(columns, kinds = NULL) {
  state <- list(kinds = kinds, n = 0, sum = c(0, 0))
  list(
    add = function(block) {
      own <- block$columns[columns]
      now <- column_kinds(own)
      if (is.null(state$kinds)) {
        state$kinds <<- now
      } else {
        check_known_kinds(state$kinds, now, block)
      }
      state$n <<- state$n + block$n
      state$sum <<-
        .Call(ffi_rows_digest, unname(own), block$first, block$n, state$sum)
      NULL
    },
    found = function() state
  )
}

# A digest where one is wanted, else one that is always NULL. request:
# list(columns, ...).
digest_if <- function(is_wanted, request, kinds) {
  if (!is_wanted) {
    nothing <- function(...) NULL
    return(list(add = nothing, found = nothing))
  }
  new_digest(request$columns, kinds)
}

check_known_kinds <- function(known, now, block) {
  bad <- names(known)[known != now]
  if (length(bad) == 0) {
    return(invisible())
  }
  name <- bad[[1]]
  abort_source(
    c(
      "{.arg data} has columns of other types than it had at first.",
      x = "{.field {name}} had {known[[name]]}, and has {now[[name]]} in block
           {format_count(block$block)}.",
      i = "Every pass must see the same rows, and columns of the same types."
    ),
    block,
    column = name,
    argument = "data"
  )
}

# Of shards, one after the other. NULL: none, or nothing that may change.
merge_digests <- function(digests) {
  digests <- Filter(Negate(is.null), digests)
  if (length(digests) == 0) {
    return(NULL)
  }
  Reduce(function(a, b) {
    sum <- a$sum + b$sum
    sum[[1]] <- (sum[[1]] + floor(sum[[2]] / 2^32)) %% 2^32
    sum[[2]] <- sum[[2]] %% 2^32
    list(kinds = a$kinds, n = a$n + b$n, sum = sum)
  }, digests)
}

# Of the rows that stay when others go.
unmerge_digest <- function(all, gone) {
  sum <- all$sum - gone$sum
  sum[[1]] <- (sum[[1]] - (sum[[2]] < 0)) %% 2^32
  sum[[2]] <- sum[[2]] %% 2^32
  list(kinds = all$kinds, n = all$n - gone$n, sum = sum)
}

# NULL: nobody has looked at them before.
check_same_digest <- function(before, now) {
  is_same <- is.null(before) || is.null(now) ||
    before$n == now$n && identical(before$sum, now$sum)
  if (is_same) {
    return(invisible())
  }
  rows <- function(digest) count_noun(digest$n, "row")
  abort_tall(
    "source",
    c(
      "{.arg data} gave other rows than it did at first.",
      x = if (before$n == now$n) {
        "{rows(now)} both times, with other values."
      } else {
        "{rows(before)} then, {rows(now)} now."
      },
      i = "Every pass must see the same rows in the same order."
    ),
    argument = "data"
  )
}
