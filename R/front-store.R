# tall_glm() of rows that a run needs all at once, and memory may not hold: the
# design goes to a file (see tall_store()) block by block.

# The fit of a source whose design is written to settings$store. NULL: the
# source is small, or has too many levels for a look.
glm_of_store <- function(source, settings, asked, run) {
  action <- known_na_action(settings$na.action)
  if (!inherits(settings$formula, "formula") || is.null(action)) {
    return(NULL)
  }
  request <- glm_request(source, settings, asked, action)
  end <- source_hold(source)
  on.exit(end())
  started <- proc.time()[["elapsed"]]
  read <- read_design(source, request, asked$matched, run$control)
  if (is.null(read$rows)) {
    return(NULL)
  }
  stored <- write_design(read$rows, settings, run$control)
  end()
  model <- model_of_store(stored, settings, request$response_name)
  from <- frame_source(
    read$pilot,
    settings$formula,
    settings$family,
    read$parts,
    read$pilot$frame
  )
  from$columns <- request$columns
  wrote <- proc.time()[["elapsed"]] - started
  fit <- sample_glm(model, from, settings, run)
  fit$time[["preparation"]] <- fit$time[["preparation"]] + wrote
  front_fit(fit, "tall_glm", asked$written, list(
    n_missing = stored$n_missing,
    source = if (settings$keep_data) source,
    request = request,
    store = list(
      x = stored$x,
      rows = read$rows[setdiff(names(read$rows), "source")]
    )
  ))
}

# list(x, y, weights, offset, n_missing): the design in a file, the rest of the
# rows in memory.
write_design <- function(rows, settings, control) {
  file <- settings$store
  writer <- new_store_writer(file, settings$storage, arg = "store")
  on.exit(writer$abandon())
  if (control$refresh > 0) {
    bytes <- rows$n_row * length(rows$design$columns) *
      if (settings$storage == "float") 4 else 8
    cli::cli_inform(c(
      i = "The design of {count_noun(rows$n_row, 'row')} is written to
           {.path {file}}: {format_bytes(bytes)}."
    ))
  }
  columns <- rows$design$columns
  out <- gather_design(rows, "Writing rows", control$refresh, function(x) {
    colnames(x) <- columns
    writer$add(x)
  })
  writer$finish()
  c(list(x = open_store(file)), out)
}

# One pass: f(x) of each chunk of the design; what it hands out with that is
# kept: list(y, weights, offset, n_missing).
gather_design <- function(rows, label, refresh, f) {
  parts <- list()
  each <- function(chunk, n, first) {
    own <- seq_len(n)
    f(chunk$x[own, , drop = FALSE])
    parts[[length(parts) + 1]] <<- list(
      y = chunk$y[own],
      weights = if (rows$has_weights) chunk$weights[own],
      offset = if (rows$has_offset) chunk$offset[own]
    )
  }
  seen <- each_chunk(rows, label, refresh, each)
  check_same_digest(rows$digest, seen$digest)
  every <- function(name) unlist(lapply(parts, `[[`, name))
  list(
    y = every("y"),
    weights = every("weights"),
    offset = every("offset"),
    n_missing = seen$n_missing
  )
}

model_of_store <- function(of, settings, arg_y) {
  specs <- settings$specs
  build_glm(
    of$x,
    of$y,
    settings$family,
    specs$prior,
    specs$prior_intercept,
    of$weights,
    of$offset,
    settings$sigma,
    specs$prior_aux,
    storage = of$x$type,
    centers = TRUE,
    arg_y = arg_y
  )
}

# The model of such a fit made again: its file, and a pass for the rest. NULL:
# the fit kept no source.
rebuild_stored <- function(fit) {
  if (!has_source(fit)) {
    return(NULL)
  }
  x <- check_store(fit$store$x, arg = "fit$store")
  rows <- c(fit$store$rows, list(source = fit$source))
  of <- gather_design(rows, "Reading rows", 0, identity)
  settings <- list(
    family = fit$family,
    specs = fit$prior_specs,
    sigma = fit$sigma
  )
  model_of_store(c(list(x = x), of), settings, "y")
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
