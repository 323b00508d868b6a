# Rows of a source in memory, alike ones once: what kinds there are, and of each
# row which it is, in 4 bytes.

# list(data, index): these columns of the kinds, in the order in which they were
# met, and the kind of each row. NULL index: `data` are all rows, which are few,
# or of which more than a quarter differ. NULL: there are none. instead: as of
# collect_source().
collect_kinds <- function(source, columns, instead) {
  pile <- new_kinds()
  most <- memory_for_rows()
  source_each(
    source,
    columns,
    function(block) {
      pile$add(block_frame(block))
      if (pile$bytes() > most) {
        abort_rows_memory(block, most, instead)
      }
      TRUE
    }
  )
  pile$all()
}

# Kinds of rows, until they are too many: from then on rows, as they are.
new_kinds <- function() {
  s <- setting("ties")
  kinds <- NULL
  index <- list()
  rows <- NULL
  n <- 0
  bytes <- 0
  has_many <- function() {
    nrow(kinds) > s$share * n
  }
  give_up <- function(more = NULL) {
    before <- if (!is.null(kinds)) frame_rows(kinds, unlist(index))
    rows <<- c(if (!is.null(before)) list(before), more)
    kinds <<- NULL
    index <<- list()
    bytes <<- sum(vapply(rows, size_of, 0))
  }
  tie <- function(frame) {
    every <- if (is.null(kinds)) frame else bind_frames(list(kinds, frame))
    found <- tie_frame(every, groups = TRUE)
    if (is.null(found)) {
      return(give_up(list(frame)))
    }
    index[[length(index) + 1]] <<- utils::tail(found$group, nrow(frame))
    kinds <<- frame_rows(every, found$first)
    bytes <<- size_of(kinds) + 4 * n
    if (n > s$least && has_many()) {
      give_up()
    }
  }
  list(
    add = function(frame) {
      n <<- n + nrow(frame)
      if (is.null(rows)) {
        return(tie(frame))
      }
      rows[[length(rows) + 1]] <<- frame
      bytes <<- bytes + size_of(frame)
    },
    bytes = function() bytes,
    all = function() {
      if (n == 0) {
        return(NULL)
      }
      if (is.null(rows) && (n <= s$least || has_many())) {
        give_up()
      }
      if (!is.null(rows)) {
        return(list(data = bind_frames(rows)))
      }
      list(data = kinds, index = unlist(index))
    }
  )
}

size_of <- function(x) {
  as.double(utils::object.size(x))
}

# Rows of a data frame, numbered anew; what else it has is left out.
frame_rows <- function(frame, rows) {
  frame_of(lapply(frame, column_rows, rows), length(rows))
}
