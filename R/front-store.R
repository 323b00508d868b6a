# tall_glm() of rows that a run needs all at once, and memory may not hold: the
# design goes to a file (see tall_store()) block by block.

# The fit of a source whose design is written to front$store. NULL: the source
# is small, or has too many levels for a look. passed: of fit_in_passes(), which
# has taken the look already where it came so far.
fit_in_store <- function(front, source, run, passed = list()) {
  if (!suits_blocks(front$asked)) {
    return(NULL)
  }
  found <- held_open(source, {
    reading <- passed$reading %||% read_source(front, source, run)
    if (!is.null(reading$rows)) {
      write_design(reading$rows, front, run$control)
    }
  })
  if (is.null(found)) {
    return(NULL)
  }
  reader <- pilot_reader(front, reading)
  front <- settle_reading(front, reading, reader$terms)
  reading <- NULL
  model <- build_model(front$blueprint, found$rows)
  rows <- rows_to_keep(found$rows, front$keep_data)
  n_missing <- found$n_missing
  found <- NULL # the model has them now
  start <- passed$start
  start_search(model, start, run$control$cores)
  fit_of_source(front, rows, model, reader, run, n_missing, start$spent)
}

# list(rows, n_missing): the design in a file, the rest of the rows in memory.
write_design <- function(rows, front, control) {
  file <- front$store
  storage <- front$blueprint$storage
  writer <- new_store_writer(file, storage, arg = "store")
  on.exit(writer$abandon())
  if (control$refresh > 0) {
    bytes <- rows$n_row * length(rows$design$columns) *
      if (storage == "float") 4 else 8
    cli::cli_inform(c(
      i = "The design of {count_noun(rows$n_row, 'row')} is written to
           {.path {file}}: {format_bytes(bytes)}."
    ))
  }
  columns <- rows$design$columns
  write <- function(x) {
    colnames(x) <- columns
    writer$add(x)
  }
  show <- list(label = "Writing rows", refresh = control$refresh)
  of <- gather_design(rows, write, show)
  writer$finish()
  list(
    rows = rows_store(rows, open_store(file), of[c("y", "weights", "offset")]),
    n_missing = of$n_missing
  )
}

# A path at which nothing is yet: what takes hours is not to fail at its end.
check_new_store <- function(store, sparse) {
  if (is.null(store)) {
    return(invisible())
  }
  check_string(store)
  if (!isFALSE(sparse)) {
    abort_input(
      "{.arg sparse} must be {.code FALSE} with {.arg store}: files have all
       values of a row.",
      argument = "sparse",
      value = sparse
    )
  }
  check_no_store_yet(store, arg = "store")
}
