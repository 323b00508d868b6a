# All rows of a source in memory, where they fit.

# All rows of a source as a data frame, in memory, where they fit.
# instead: what a user may do where they do not fit; before: the digest of a
# pass before; columns: those that are needed, NULL: all.
collect_source <- function(
  source,
  instead = passes_instead,
  before = NULL,
  columns = NULL
) {
  digest <- new_digest(names(before$kinds), before$kinds)
  frames <- list()
  bytes <- 0
  most <- memory_for_rows()
  source_each(
    source,
    if (!is.null(columns)) union(columns, names(before$kinds)),
    function(block) {
      digest$add(block)
      frame <- block_frame(block)
      bytes <<- bytes + as.double(utils::object.size(frame))
      if (bytes > most) {
        abort_rows_memory(block, most, instead, bytes, source_size(source))
      }
      frames[[length(frames) + 1]] <<- frame
      TRUE
    }
  )
  check_same_digest(before, digest$found())
  bind_frames(frames)
}

# A model copies them more than once: a fifth of what is free, 2 GB where the
# system does not say.
memory_for_rows <- function() {
  free <- free_memory()
  if (is.na(free)) 2e9 else 0.2 * free
}

passes_instead <- c(
  i = "Passes need no memory for rows: leave out {.arg kernel} and others that
       draw minibatches, or give a narrower prior.",
  i = "Or give the path of a new file as {.arg store}: the design is written
       there, and mapped."
)

# bytes: of the rows up to the block's last; n_row: of all rows, NA where nobody
# knows.
abort_rows_memory <- function(block, most, instead, bytes = NA, n_row = NA) {
  all <- bytes * n_row / (block$row - 1 + block$n)
  abort_tall(
    "memory",
    c(
      "This needs all rows in memory, where they do not fit: more than
       {format_bytes(most)} by row {format_count(block$row)}.",
      x = if (!is.na(all)) {
        "All {count_noun(n_row, 'row')} take some {format_bytes(all)}, of which
         a model makes copies."
      },
      instead
    ),
    argument = "data",
    expected = most
  )
}
