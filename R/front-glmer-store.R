# tall_glmer() with one grouping factor of rows that go to a file, front$store,
# by group: passes over a source, or a data frame, put them there.

# NULL: rows are few, or cannot be read in blocks, and are had at once.
fit_in_groups <- function(front, run) {
  asked <- front$asked
  if (is.null(front$store) || !asked$has_data || !suits_blocks(asked) ||
    is_small_frame(asked$data)) {
    return(NULL)
  }
  source <- data_source(asked$data)
  made <- held_open(
    source,
    unless_at_hand(source, rows_by_group(front, source, run$control))
  )
  if (is.null(made)) {
    return(NULL)
  }
  model <- build_model(front$blueprint, made$rows)
  start_search(model, NULL, run$control$cores)
  reader <- front_reader(front, made$pilot, made$read)
  ready <- front_ready(front, model, made$read, reader, run)
  ledger <- new_ledger()
  spend(ledger, "recipe", 3)
  fit <- spent_before(sample_ready(front, ready), ledger$passes)
  parts <- front_parts(front, ready, made$read, fit)
  parts$n_missing <- made$n_missing
  end_regression(fit, run, front, made$rows, c(reader, parts))
}

# list(rows, pilot, read, n_missing): the rows in the file, and what methods
# take of a pilot in the place of a frame.
rows_by_group <- function(front, source, control) {
  bars <- front$request$bars
  front$asked$formula <- front$asked$matched$formula <- bars$frame
  request <- source_request(front, source)
  if (has_rows_beside(request, source_size(source))) {
    not_in_blocks()
  }
  refresh <- control$refresh
  matched <- front$asked$matched
  found <- look_at_groups(source, request, bars, matched, refresh)
  if (is.null(found)) {
    return(NULL)
  }
  sigma <- front$blueprint$sigma
  folder <- dirname(front$store)
  counted <- count_by_group(source, found, sigma, folder, refresh)
  tell_group_file(counted, found$reading, front, refresh)
  rows <- write_groups(source, found, counted, front$store, refresh)
  pilot <- list(
    frame = found$pilot$frame,
    call = found$pilot$call,
    columns = request$columns
  )
  sides <- found$sides
  read <- list(
    y = sides$y,
    trials = sides$trials,
    levels = sides$levels,
    terms = sides$fixed,
    design = found$design
  )
  list(rows = rows, pilot = pilot, read = read, n_missing = counted$n_missing)
}

tell_group_file <- function(counted, reading, front, refresh) {
  if (refresh == 0) {
    return(invisible())
  }
  sizes <- counted$groups$sizes
  width <- ncol(counted$x) + sum(is.na(counted$x$same))
  if (find_response(front$blueprint$family)$is_quadratic) {
    sizes <- pmin(sizes, width + 1)
  }
  each <- width + reading$n_y + reading$has_weights + reading$has_offset
  bytes <- 8 * sum(sizes) * each
  cli::cli_inform(c(
    i = "{count_noun(counted$n_row, 'row')} of
         {count_noun(length(sizes), 'group')} are written to
         {.path {front$store}}, by group: {format_bytes(bytes)}."
  ))
}
