# tall_nn() of a source whose inputs go to a file, block by block: one pass
# finds levels, missing values and how a row is read, a second one writes.

# The fit of a source whose inputs are written to front$store. NULL: the source
# is small, or has too many levels for a look.
network_in_store <- function(front, source, run) {
  if (!suits_blocks(front$asked)) {
    return(NULL)
  }
  found <- held_open(source, unless_at_hand(source, {
    reading <- read_network(front, source, run$control$refresh)
    if (!is.null(reading$rows)) {
      write_inputs(reading$rows, front, run$control)
    }
  }))
  if (is.null(found)) {
    return(NULL)
  }
  read <- whole_rows(found$rows)
  rows <- rows_to_keep(found$rows, front$keep_data)
  pilot <- list(
    frame = reading$pilot$frame,
    columns = reading$rows$request$columns
  )
  reader <- front_reader(front, pilot, read)
  n_missing <- found$n_missing
  found <- reading <- NULL
  model <- build_model(front$blueprint, read)
  ready <- front_ready(front, model, read, reader, run)
  read <- NULL # the model has them now
  ledger <- new_ledger()
  spend(ledger, "recipe", 2)
  fit <- spent_before(sample_ready(front, ready), ledger$passes)
  parts <- front_parts(front, ready, NULL, fit)
  parts$n_missing <- n_missing
  end_regression(fit, run, front, rows, c(reader, parts))
}

# ---- the look ----------------------------------------------------------------

# As read_design() has it, without the parts of the pilot. R reads the rows of
# tables, too, so that they are the same in every run.
read_network <- function(front, source, refresh) {
  request <- network_request(front, source)
  rows <- tall_rows("passes", list(source = source, request = request))
  found <- look(rows, refresh)
  if (found$is_whole) {
    check_levels_fit(found)
    return(new_reading(found))
  }
  levels <- found$response_levels
  if (!is.null(levels)) {
    classes <- factor(levels, levels)
    own <- nn_likelihood(classes, request$response_name)
    network_response(classes, own, request$response_name) # are they enough?
    request <- of_likelihood(request, own)
  }
  matched <- front$asked$matched
  pilot <- pilot_frame(found, source, request, matched, refresh)
  refuse_dependent(request, pilot)
  check_covariates(pilot$frame)
  design <- compile_design(pilot$whole)
  check_has_inputs(length(input_columns(design)))
  rows <- rows_passes(list(
    source = source,
    request = request,
    design = design,
    response_levels = levels,
    has_weights = FALSE,
    has_offset = FALSE,
    family = request$family,
    n_row = found$n_row,
    digest = found$digest
  ))
  new_reading(found, rows, pilot["frame"])
}

# What a formula asks of a source: a response of few rows tells which it is.
network_request <- function(front, source) {
  front$blueprint$family <- new_family(find_response("gaussian"))
  request <- source_request(front, source)
  if (has_rows_beside(request, source_size(source))) {
    not_in_blocks()
  }
  check_no_offset(unlist(request$offsets))
  head <- source_head(source, request$columns)
  block <- list(columns = as.list(head), first = 0, n = nrow(head), row = 1)
  name <- request$response_name
  value <- block_eval(request, block, request$response, name)
  if (is.character(value)) {
    # whose levels are found as those of a factor
    request$response <- call("factor", request$response)
  }
  has_levels <- is.character(value) || is.factor(value)
  own <- if (has_levels) "bernoulli" else nn_likelihood(value, name)
  of_likelihood(request, own)
}

of_likelihood <- function(request, likelihood) {
  request$likelihood <- likelihood
  request$family <- new_family(find_response(likelihood))
  request
}

# Which columns of the design are inputs: all but the intercept.
input_columns <- function(design) {
  which(design$columns != "(Intercept)")
}

# ---- the file ----------------------------------------------------------------

# list(rows, n_missing): the inputs in front$store, in standard units, with a
# column of ones after them; the rest of the rows in memory. What standard units
# are all rows tell: till then the inputs lie in a file beside it, which another
# writer sweeps if this process is killed.
write_inputs <- function(rows, front, control) {
  file <- front$store
  raw <- new_writing(file)
  on.exit({
    unlink(raw)
    forget_writing(raw)
  })
  at <- input_columns(rows$design)
  if (control$refresh > 0) {
    bytes <- rows$n_row * (length(at) + 1) * 8
    cli::cli_inform(c(
      i = "The inputs of {count_noun(rows$n_row, 'row')} are written to
           {.path {file}}: up to {format_bytes(bytes)}, and twice that until it
           is whole."
    ))
  }
  of <- write_raw(rows, raw, at, control$refresh)
  x <- open_store(raw)
  scaling <- c(store_scaling(x), list(y_center = 0, y_scale = 1))
  if (find_response(rows$family)$has_units) {
    scaling$y_center <- mean(of$y)
    scaling$y_scale <- response_sd(of$y)
  }
  write_standard(x, file, front$blueprint$storage, scaling)
  levels <- rows$response_levels
  n_out <- if (rows$request$likelihood == "categorical") length(levels) else 1
  network <- list(
    levels = levels,
    n_out = n_out,
    likelihood = rows$request$likelihood,
    scaling = scaling,
    contrasts = rows$design$contrasts
  )
  list(
    rows = rows_store(rows, open_store(file), of["y"], network),
    n_missing = of$n_missing
  )
}

# One pass: the inputs as the formula makes them, what gather_design() has.
write_raw <- function(rows, file, at, refresh) {
  writer <- new_store_writer(file, "double", arg = "store")
  on.exit(writer$abandon())
  names <- rows$design$columns[at]
  write <- function(x) {
    x <- x[, at, drop = FALSE]
    colnames(x) <- names
    writer$add(x)
  }
  show <- list(label = "Writing rows", refresh = refresh)
  of <- gather_design(rows, write, show)
  writer$finish()
  of
}

# Means and standard deviations as nn_parts() has them, to the bit.
store_scaling <- function(x) {
  names <- colnames(x)
  sums <- matrix(0, 3, length(names))
  each_part(x, function(part) sums <<- .Call(ffi_add_sums, sums, part))
  n <- as.double(nrow(x))
  means <- .Call(ffi_sums_means, sums, n)
  squares <- numeric(length(names))
  each_part(x, function(part) {
    squares <<- .Call(ffi_add_squares, squares, part, means[2, ])
  })
  scale <- sqrt(squares / (n - 1))
  scale[scale == 0] <- 1
  list(x_center = stats::setNames(means[1, ], names), x_scale = scale)
}

write_standard <- function(x, file, type, scaling) {
  writer <- new_store_writer(file, type, nrow(x), arg = "store")
  on.exit(writer$abandon())
  each_part(x, function(part) {
    part <- nn_standardise(part, scaling)
    writer$add(cbind(part, "(Intercept)" = 1))
  })
  writer$finish()
}

nn_instead <- c(
  i = "Or give the path of a new file as {.arg store}: inputs are written there,
       and mapped."
)
