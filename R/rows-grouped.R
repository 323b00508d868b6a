# Rows of a multilevel regression with one grouping factor in a file, those of a
# group after each other, where passes over their source put them: a look, a
# pass that counts the rows of each group and what else is known of all of
# them, and one that writes. Memory is that of a block and of the groups.
#
# Fields: source and request, of what is passed over; file; x, what
# look_at_rows() would have found; groups (levels, sizes, name, correlated);
# facts and spread of the response.

# list(reading, sides, pilot, n_row, n_missing): what a look finds; NULL: the
# source is small, or its rows are too much for a look, and all can be had at
# once. request: of new_request(), for the model frame of all variables.
look_at_groups <- function(source, request, bars, matched, refresh) {
  own <- c(variables_of(bars$fixed), variables_of(bars$effects))
  is_apart <- !vapply(request$covariates, deparse1, "") %in% own
  request$apart <- request$covariates[is_apart]
  found <- look_at_source(source, request, refresh)
  if (found$is_whole) {
    check_levels_fit(found)
    return(NULL)
  }
  pilot <- pilot_frame(found, source, request, matched, refresh)
  refuse_dependent(request, pilot)
  sides <- glmer_sides(pilot$frame, bars, request$family)
  reading <- group_reading(
    pilot$whole,
    request,
    bars,
    sides,
    found$response_levels,
    found$digest
  )
  check_some_columns(length(reading$x$columns))
  if (length(reading$z$columns) == 0) {
    abort_no_effect(bars$name)
  }
  check_effects(reading$z$columns)
  list(
    reading = reading,
    sides = sides,
    pilot = pilot,
    design = list(
      fixed = sides$fixed,
      effects = sides$effects,
      xlevels = stats::.getXlevels(sides$fixed, pilot$frame),
      zlevels = stats::.getXlevels(sides$effects, pilot$frame),
      contrasts = reading$x$contrasts,
      z_contrasts = reading$z$contrasts,
      rows = attr(pilot$frame, "terms")
    )
  )
}

variables_of <- function(formula) {
  terms <- stats::terms(formula)
  vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
}

# What a pass over all rows tells a model: list(x, groups, facts, spread, n_row,
# n_missing), where groups are checked, as rows of a frame are. sigma: of the
# front end; folder: for a file that is there meanwhile.
count_by_group <- function(source, found, sigma, folder, refresh) {
  reading <- found$reading
  family <- reading$request$family
  groups <- new_groups(reading$bars)
  look <- new_group_look(reading$x$columns, reading$z$columns)
  spread <- if (find_response(family)$has_units) new_spread(folder)
  on.exit(if (!is.null(spread)) spread$close())
  sizes <- numeric()
  is_weighted <- FALSE
  each <- function(chunk) {
    check_concave(family, chunk)
    sizes <<- add_sizes(sizes, chunk$group, groups$n())
    look$add(chunk, groups$n())
    if (!is.null(spread)) {
      spread$add(chunk)
    }
    is_weighted <<- is_weighted || any(chunk$weights != 1)
  }
  show <- list(label = "Counting groups", refresh = refresh)
  seen <- each_group_chunk(source, reading, groups$code, each, show)
  order <- groups$levels()
  sides <- found$sides
  sides$group <- factor(character(), order$levels)
  sides$n_row <- seen$n_row
  sides$weights <- if (is_weighted) 0.5
  check_groups(sides, family, sigma)
  x <- look$found(seen$n_row)
  check_varies(x, sides$name)
  of <- if (!is.null(spread)) spread$found()
  list(
    x = x,
    groups = list(
      levels = order$levels,
      sizes = sizes[order$at],
      name = sides$name,
      correlated = sides$correlated
    ),
    facts = if (!is.null(of)) list(units = of$units, sd = x$sd),
    spread = of$spread,
    n_row = seen$n_row,
    n_missing = seen$n_missing
  )
}

add_sizes <- function(sizes, codes, n) {
  tabulate(codes, n) + c(sizes, numeric(n - length(sizes)))
}

# As build_model() checks responses in memory.
check_concave <- function(family, chunk) {
  if (!is_log_concave(family, chunk$y)) {
    check_grouped_family(family, y = chunk$y)
  }
}

# The rows in `file`, a new one: class tall_rows_grouped.
write_groups <- function(source, found, counted, file, refresh) {
  reading <- found$reading
  entry <- find_response(reading$request$family)
  x <- counted$x
  writer <- new_group_writer(file, counted, reading, entry)
  on.exit(writer$abandon())
  show <- list(label = "Writing rows", refresh = refresh)
  code <- group_codes(counted$groups$levels)
  seen <- each_group_chunk(source, reading, code, writer$add, show)
  writer$finish(seen$n_row)
  request <- reading$request
  tall_rows("grouped", c(
    counted[c("x", "groups", "facts", "spread", "n_row")],
    list(
      source = source,
      request = request,
      response_levels = reading$levels,
      family = request$family,
      digest = reading$digest,
      name = request$response_name,
      file = normalizePath(file)
    )
  ))
}

# add(chunk), finish(n_row), abandon(), in any case: rows go to a file beside
# `file`, whose place it takes.
new_group_writer <- function(file, counted, reading, entry) {
  path <- new_writing(file)
  merged <- new_writing(file)
  abandon <- function() {
    out <<- NULL
    unlink(c(path, merged))
    forget_writing(c(path, merged))
  }
  failed <- TRUE
  on.exit(if (failed) abandon())
  x <- counted$x
  n_row <- counted$n_row
  out <- .Call(
    ffi_groups_rows,
    "dense",
    counted$groups$sizes,
    as.double(ncol(x) + sum(is.na(x$same))),
    as.double(reading$n_y),
    reading$has_weights,
    reading$has_offset,
    entry$is_quadratic,
    path
  )
  check_group_door(out, file)
  add <- function(chunk) {
    if (chunk$first + chunk$n > n_row) {
      abort_other_number(chunk$first + chunk$n, n_row)
    }
    # a group's rows stay in their order, and pages are written one by one
    order <- order(chunk$group)
    take <- function(x) if (!is.null(x)) select_rows(x, order)
    is_last <- chunk$first + chunk$n == n_row
    status <- .Call(
      ffi_groups_add,
      out,
      take(model_columns(chunk, chunk$n, x)),
      as.double(chunk$n),
      0,
      take(chunk$group),
      take(chunk$y),
      take(chunk$weights),
      take(chunk$offset),
      is_last
    )
    if (status != 0) {
      abort_other_groups("A group has more rows in a later pass.")
    }
  }
  finish <- function(n_seen) {
    if (n_seen != n_row) {
      abort_other_number(n_seen, n_row)
    }
    is_merged <- FALSE
    if (length(x$effects) > 1) {
      pools <- isTRUE(entry$has_trials)
      # where there is no room for it, rows stay as they are
      is_merged <- isTRUE(.Call(ffi_groups_merge, out, pools, merged))
    }
    .Call(ffi_groups_finish, out)
    place_store(if (is_merged) merged else path, file, FALSE, "store")
  }
  failed <- FALSE
  list(add = add, finish = finish, abandon = abandon)
}

#' @export
whole_rows.tall_rows_grouped <- function(rows) {
  rows
}

# The address of a file's rows, for a model's parameter "rows".
open_group_rows <- function(file) {
  out <- .Call(ffi_groups_open, file)
  check_group_door(out, file)
  out
}

# What a door found wrong: a status of the core, or a fault of the file.
check_group_door <- function(out, file = NULL) {
  if (!is.list(out)) {
    return(invisible())
  }
  if (!is.null(out$status)) {
    abort_status(out$status)
  }
  fault <- names(file_faults)[[out$fault + 1]]
  if (fault == "altered") {
    abort_altered_groups(file)
  }
  if (fault == "foreign") {
    because <- "is not a file that {.fn tall_glmer} wrote."
    abort_file(paste("{.path {file}}", because), file)
  }
  check_fault(out$fault, file)
}

abort_altered_groups <- function(file) {
  abort_tall(
    "corrupt",
    c(
      "{.path {file}} is damaged: its rows are not those that were written.",
      i = "The disk lost them, or something else wrote to the file: fit again,
           with another {.arg store}."
    ),
    component = "rows",
    file = file
  )
}
