# The look: one scan of a source, before any pass (see ?tall_glm, rows that are
# passed over). It counts rows, finds the levels of factors and the ends of
# columns, and keeps a pilot: a sample with some rows of every level and of
# every outcome (src/passes/reservoir.h), each with the number of rows that it
# stands for.

# list(frame, weights, rows, ends, n_read, n_row, n_missing, is_whole,
# response_levels, digest): the pilot's columns as they are in the source and
# the rows each stands for; rows at the ends of columns; what the next pass must
# have, too, see new_digest().
# Where a factor has so many levels that no pilot has them all:
# too_many_levels().
look_at_source <- function(source, request, refresh = 0) {
  head <- source_head(source)
  check_no_arrays(typed_columns(source, head, request$columns))
  args <- list(
    request = request,
    strata = stratum_expressions(head, request),
    settings = setting("look"),
    kinds = column_kinds(head[request$columns]),
    may_change = may_change(source)
  )
  tryCatch(
    {
      parts <- each_shard(
        source,
        look_over,
        args,
        shard_offsets(source_shards(source)),
        list(label = "Looking at the rows", refresh = refresh),
        tells = TRUE
      )
      merge_looks(parts, args)
    },
    tall_too_many = function(cnd) too_many_levels(cnd$name)
  )
}

# Subsets of vectors lose the classes that no package knows.
typed_columns <- function(source, head, columns) {
  if (inherits(source, "tall_source_frame")) {
    Filter(is.character, source$data[columns])
  } else {
    head[columns]
  }
}

# A look over one shard, of which the rows are numbered from first + 1 on: in
# the end list(n_read, n_row, n_missing, kinds, summary, pilot, strata, ends,
# digest).
look_over <- function(args, first) {
  request <- args$request
  s <- args$settings
  strata <- lapply(args$strata, new_stratum, request = request)
  look <- new_look(s$rows, s$of_stratum, s$seed)
  pilot <- new_pile()
  ends <- new_ends(request)
  seen <- list(n_missing = 0, n_row = 0, kinds = NULL)
  digest <- digest_if(args$may_change, request, args$kinds)
  add <- function(block) {
    digest$add(block)
    seen$kinds <<- seen$kinds %||% column_kinds(block$columns)
    own <- look_response(request, block)
    seen$n_missing <<- seen$n_missing + own$n_missing
    seen$n_row <<- seen$n_row + own$n_row
    codes <- lapply(strata, function(stratum) stratum$codes(block))
    if (is.null(codes$outcome)) {
      codes$outcome <- outcome_codes(own$y, block$n, request)
    }
    check_level_count(strata, s)
    number <- first + block$row
    rows <- look_add(look, number, block$n, unname(codes), own$keep)
    if (length(rows) > 0) {
      pilot$add(block, number, rows, codes, request)
      if (pilot$n() > 4 * s$rows) {
        pilot$keep(weights_of_pile(look, pilot)$keep)
      }
    }
    ends$add(block, own$keep)
    TRUE
  }
  end <- function(n_read) {
    if (pilot$n() > 0) {
      pilot$keep(weights_of_pile(look, pilot)$keep)
    }
    c(seen, list(
      n_read = n_read,
      summary = look_summary(look),
      pilot = pilot$parts(),
      strata = lapply(strata, function(stratum) stratum$state()),
      ends = ends$found(),
      digest = digest$found()
    ))
  }
  list(add = add, end = end)
}

# block_response() and n_row, where rows without a value in some column do not
# count either.
look_response <- function(request, block) {
  own <- pass_response(request, block, NA)
  missing <- missing_rows(request, block, own$keep)
  if (request$fails && !is.null(missing)) {
    abort_missing_row(request, block, which(missing)[[1]])
  }
  if (!is.null(missing)) {
    own$n_missing <- own$n_missing + sum(missing)
    own["keep"] <- list(and_rows(own$keep, !missing))
  }
  own$n_row <- if (is.null(own$keep)) block$n else sum(own$keep)
  own
}

# Numbers of rows from a database that are not finite or too large, by their
# columns: these rows have no numbers.
show_numbers <- function(request, raw) {
  for (name in intersect(request$columns, names(raw))) {
    x <- raw[[name]]
    bad <- if (is.numeric(x)) which(abs(as.double(x)) > most_of_data)
    if (length(bad) > 0) {
      where <- "the value of a row"
      abort_number(x, bad[[1]], arg = name, where = where)
    }
  }
}

check_level_count <- function(strata, settings) {
  for (stratum in strata) {
    if (stratum$count() > settings$levels) {
      rlang::signal("", class = "tall_too_many", name = stratum$name)
    }
  }
}

weights_of_pile <- function(look, pilot) {
  look_weights(look, pilot$rows(), unname(pilot$codes()))
}

# look_at_source() of what looks found in the shards, in their order.
merge_looks <- function(parts, args) {
  s <- args$settings
  check_same_kinds(parts)
  strata <- lapply(args$strata, new_stratum, request = args$request)
  look <- new_look(s$rows, s$of_stratum, s$seed)
  pilot <- new_pile()
  ends <- new_ends(args$request)
  for (part in parts) {
    if (!is.null(part$summary)) {
      # outcomes without a dictionary have the same codes everywhere
      codes <- lapply(part$summary$counts[-1], seq_along)
      own <- seq_along(strata)
      codes[own] <- Map(
        function(stratum, state) stratum$absorb(state),
        strata,
        part$strata
      )
      look_merge(look, part$summary, codes)
      pilot$add_parts(part$pilot, codes)
      ends$absorb(part$ends)
    }
  }
  check_level_count(strata, s)
  sum_of <- function(name) sum(vapply(parts, `[[`, 0, name))
  check_complete_rows(sum_of("n_row"), sum_of("n_missing"), args$request)
  found <- weights_of_pile(look, pilot)
  pilot$keep(found$keep)
  list(
    frame = pilot$frame(),
    weights = found$weights,
    rows = pilot$rows(),
    ends = ends$frame(),
    n_read = sum_of("n_read"),
    n_row = sum_of("n_row"),
    n_missing = sum_of("n_missing"),
    digest = merge_digests(lapply(parts, `[[`, "digest")),
    is_whole = all(found$weights == 1),
    response_levels = if (!is.null(strata$outcome)) {
      strata$outcome$levels(pilot$codes()$outcome)
    }
  )
}

# Within a shard the reader sees to it.
check_same_kinds <- function(parts) {
  known <- NULL
  for (k in seq_along(parts)) {
    kinds <- parts[[k]]$kinds
    known <- known %||% kinds
    bad <- which(kinds != known)
    if (length(bad) > 0) {
      name <- names(known)[[bad[[1]]]]
      abort_source(
        c(
          "Every shard of a source must have columns of the same types.",
          x = "Shard {k} has {kinds[[bad[[1]]]]} in {.field {name}}, those
               before it {known[[bad[[1]]]]}."
        ),
        column = name,
        shard = k
      )
    }
  }
}

# ---- strata ------------------------------------------------------------------

# Covariates that are factors, text or TRUE and FALSE, and, named "outcome", a
# response that is a factor. request$apart: covariates that make no columns of
# the design, but a row's group. head: a few rows.
stratum_expressions <- function(head, request) {
  block <- list(
    columns = as.list(head)[request$columns],
    first = 0,
    n = nrow(head),
    row = 1
  )
  is_stratum <- function(expression, also = TRUE) {
    value <- tryCatch(
      suppressWarnings(eval(
        expression,
        block_slice(block, intersect(all.vars(expression), request$columns)),
        request$env
      )),
      error = function(e) NULL
    )
    is.factor(value) || also && (is.character(value) || is.logical(value))
  }
  covariates <- setdiff(request$covariates, request$apart)
  inside <- lapply(covariates, function(expression) {
    if (is_smooth_call(expression, request$env)) {
      smooth_variables(expression, request$env)
    } else {
      list(expression)
    }
  })
  inside <- as.list(unique(unlist(inside, recursive = FALSE)))
  strata <- Filter(is_stratum, inside)
  names(strata) <- rep("", length(strata))
  if (is_stratum(request$response, also = FALSE)) {
    strata$outcome <- request$response
  }
  strata
}

# Values of an expression by number, in the order in which they are met:
# list(codes(block), count(), ...).
new_stratum <- function(expression, request) {
  known <- character()
  last <- list(levels = NULL, map = NULL)
  same <- TRUE
  is_factor <- FALSE
  list(
    name = deparse1(expression),
    count = function() length(known),
    # of another shard's, what it is by number; now it is known here, too
    state = function() list(known = known, same = same, is_factor = is_factor),
    absorb = function(state) {
      if (state$is_factor) {
        is_known <- length(known) == 0 || identical(state$known, known)
        same <<- same && state$same && is_known
      }
      known <<- union(known, state$known)
      match(state$known, known)
    },
    # of a factor, those that some row has: in its order, where all blocks have
    # the same levels. codes: of the rows of the pilot.
    levels = function(codes) {
      used <- known[sort(unique(codes))]
      if (same) used else sort(used)
    },
    codes = function(block) {
      value <- if (is.name(expression)) {
        block$columns[[as.character(expression)]]
      } else {
        what <- deparse1(expression)
        block_eval(request, block, expression, what)
      }
      first <- if (NROW(value) == block$n) 0 else block$first
      if (is.factor(value)) {
        is_factor <<- TRUE
        here <- levels(value)
        if (!identical(here, last$levels)) {
          same <<- length(known) == 0
          known <<- union(known, here)
          last <<- list(levels = here, map = match(here, known))
        }
        if (identical(last$map, seq_along(last$map))) {
          return(list(values = value, first = first))
        }
        return(last$map[as.integer(slice_rows(value, first, block$n))])
      }
      value <- slice_rows(value, first, block$n)
      value <- as.character(value)
      codes <- match(value, known)
      if (anyNA(codes)) {
        known <<- union(known, value[is.na(codes) & !is.na(value)])
        codes <- match(value, known)
      }
      codes
    }
  )
}

# Outcomes by number: failures and successes, counts that are 0 and others.
# Rows that do not count are NA.
outcome_codes <- function(y, n, request) {
  entry <- find_response(request$family)
  if (is.null(entry$shows)) {
    return(NULL)
  }
  y <- if (is.list(y)) slice_rows(y$values, y$first, n) else y
  entry$shows(y) + 1L
}

# Rows of columns with missing values, of those that count; NULL: none.
missing_rows <- function(request, block, keep) {
  own <- unlist(lapply(
    Filter(drops_missing, request$covariates),
    all.vars
  ))
  missing <- NULL
  for (name in intersect(unique(own), request$columns)) {
    x <- block$columns[[name]]
    if (has_missing(x, block$first, block$n)) {
      x <- slice_rows(x, block$first, block$n)
      here <- if (is.matrix(x)) rowSums(is.na(x)) > 0 else is.na(x)
      missing <- if (is.null(missing)) here else missing | here
    }
  }
  if (is.null(missing) || is.null(keep)) {
    return(missing)
  }
  missing <- missing & keep
  if (any(missing)) missing
}

# Of n rows after `first`.
has_missing <- function(x, first, n) {
  if (is.null(dim(x)) && is_scanned(x)) {
    .Call(ffi_column_missing, x, first, n)
  } else {
    anyNA(slice_rows(x, first, n))
  }
}

# Vectors that lie in memory as C has them; bit64's have a missing value of
# their own.
is_scanned <- function(x) {
  typeof(x) %in% c("double", "integer", "logical") && !inherits(x, "integer64")
}

# Functions that make something of a missing value.
fills_missing <- c("is.na", "ifelse", "addNA", "replace", "coalesce", "is.nan")

drops_missing <- function(expression) {
  !any(fills_missing %in% all.names(expression))
}

# ---- the ends of columns -----------------------------------------------------

# list(rows, values) of a column of numbers; none of others, or where all are
# missing.
ends_of_block <- function(block, name, keep) {
  x <- slice_rows(block$columns[[name]], block$first, block$n)
  if (!is_plain_numeric(x) || is.matrix(x)) {
    return(list(rows = integer()))
  }
  if (!is.null(keep)) {
    x[!keep] <- NA
  }
  rows <- c(which.min(x), which.max(x))
  list(rows = rows, values = x[rows])
}

# The rows where numeric columns inside functions, such as splines, are smallest
# and largest: their knots and bounds must be those of all rows.
new_ends <- function(request) {
  inside <- Filter(function(expression) !is.name(expression),
                   request$covariates)
  names <- intersect(
    unique(unlist(lapply(inside, all.vars))),
    request$columns
  )
  ends <- list()
  # value: least and most; low, high: functions of the rows that have them
  meet <- function(name, value, low, high) {
    known <- ends[[name]]
    if (is.null(known) || value[[1]] < known$value[[1]]) {
      known$value[1] <- value[[1]]
      known$low <- low()
    }
    if (length(known$value) < 2 || value[[2]] > known$value[[2]]) {
      known$value[2] <- value[[2]]
      known$high <- high()
    }
    ends[[name]] <<- known
  }
  list(
    add = function(block, keep) {
      for (name in names) {
        here <- ends_of_block(block, name, keep)
        if (length(here$rows) == 2) {
          pick <- function(k) pick_rows(block, request$columns, here$rows[[k]])
          meet(name, here$values, function() pick(1), function() pick(2))
        }
      }
    },
    found = function() ends,
    absorb = function(others) {
      for (name in names(others)) {
        other <- others[[name]]
        meet(name, other$value, function() other$low, function() other$high)
      }
    },
    # NULL: none
    frame = function() {
      parts <- unlist(
        lapply(ends, function(end) list(end$low, end$high)),
        recursive = FALSE
      )
      if (length(parts) == 0) {
        return(NULL)
      }
      frame_of(bind_columns(parts), length(parts))
    }
  )
}
