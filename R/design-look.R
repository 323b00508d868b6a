# The look: one scan of a source (spec section 12). It counts rows, finds the
# levels of factors and the ends of columns, and keeps a pilot: a sample with
# some rows of every level and of every outcome, each with the number of rows
# that it stands for.

look_settings <- list(
  rows = 65536,      # of the pilot; of fewer all are kept
  of_stratum = 100,  # of every level and outcome
  levels = 1000,     # more: that is no design for a pass
  seed = 1           # of which rows they are: the same for every run
)

# list(frame, weights, ends, levels, n_read, n_row, n_missing, is_whole, has_weights,
# has_offset): the pilot's columns as they are in the source and the rows each
# stands for; rows at the ends of columns; levels by variable. NULL: a factor
# has so many levels that no pilot has them all.
take_look <- function(source, request, refresh = 0, call = caller_env()) {
  s <- look_settings
  strata <- look_strata(source, request, call)
  look <- new_look(s$rows, s$of_stratum, s$seed)
  pilot <- new_pile()
  ends <- new_ends(request)
  seen <- list(n_missing = 0, n_row = 0)
  read <- function(block) {
    own <- block_response(request, block, NA, call)
    missing <- missing_rows(request, block, own$keep)
    if (request$fails && !is.null(missing)) {
      abort_missing_row(request, block, which(missing)[[1]], call)
    }
    n_missing <- own$n_missing
    keep <- own$keep
    if (!is.null(missing)) {
      n_missing <- n_missing + sum(missing)
      keep <- and_rows(keep, !missing)
    }
    seen$n_missing <<- seen$n_missing + n_missing
    seen$n_row <<- seen$n_row + if (is.null(keep)) block$n else sum(keep)
    codes <- lapply(strata, function(stratum) stratum$codes(block, call))
    if (is.null(codes$outcome)) {
      codes$outcome <- outcome_codes(own, request)
    }
    most <- max(0, vapply(strata, function(stratum) stratum$count(), 0L))
    if (most > s$levels) {
      seen$too_many <<- TRUE
      return(FALSE)
    }
    rows <- look_add(look, block$row, block$n, unname(codes), keep)
    if (length(rows) > 0) {
      pilot$add(block, rows, codes, request)
      if (pilot$n() > 4 * s$rows) {
        pilot$keep(look_weights(look, pilot$rows(), unname(pilot$codes()))$keep)
      }
    }
    ends$add(block, keep)
    TRUE
  }
  label <- "Looking at the rows"
  n_read <- walk_source(source, request, label, refresh, read, call)
  if (isTRUE(seen$too_many)) {
    return(NULL)
  }
  if (seen$n_row == 0) {
    abort_input(
      "{.arg data} must have at least one complete row, not 0.",
      argument = "data",
      value = 0,
      call = call
    )
  }
  found <- look_weights(look, pilot$rows(), unname(pilot$codes()))
  pilot$keep(found$keep)
  list(
    frame = pilot$frame(),
    weights = found$weights,
    rows = pilot$rows(),
    ends = ends$frame(),
    n_read = n_read,
    n_row = seen$n_row,
    n_missing = seen$n_missing,
    is_whole = all(found$weights == 1),
    response_levels = if (!is.null(strata$outcome)) strata$outcome$levels(pilot$codes()$outcome)
  )
}

gc_blocks <- 8

# f(block) for every block of a source, until it returns FALSE.
walk_source <- function(
  source,
  request,
  label,
  refresh,
  f,
  call = caller_env()
) {
  total <- source_size(source)
  shows <- refresh > 0
  if (shows) {
    bar <- cli::cli_progress_bar(
      label,
      total = if (is.na(total)) NA else total,
      .envir = environment()
    )
  }
  n <- 0
  n_block <- 0
  source_each(
    source,
    request$columns,
    function(block) {
      if (isFALSE(f(block))) {
        return(FALSE)
      }
      n <<- n + block$n
      # R would let what blocks leave behind grow with the data
      n_block <<- n_block + 1
      if (n_block %% gc_blocks == 0) {
        gc(full = FALSE)
      }
      if (shows) {
        cli::cli_progress_update(set = n, id = bar)
      }
      TRUE
    },
    call
  )
}

# ---- strata ------------------------------------------------------------------

# For each covariate that is a factor, text or TRUE and FALSE: list(codes(block,
# call), count()), its values by number, in the order in which they are met.
look_strata <- function(source, request, call) {
  head <- source_head(source)
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
  strata <- lapply(
    Filter(is_stratum, request$covariates),
    new_stratum,
    request = request
  )
  names(strata) <- rep("", length(strata))
  if (is_stratum(request$response, also = FALSE)) {
    strata$outcome <- new_stratum(request$response, request)
  }
  strata
}

new_stratum <- function(expression, request) {
  known <- character()
  last <- list(levels = NULL, map = NULL)
  same <- TRUE
  list(
    count = function() length(known),
    # of a factor, those that some row has: in its order, where all blocks have
    # the same levels. codes: of the rows of the pilot.
    levels = function(codes) {
      used <- known[sort(unique(codes))]
      if (same) used else sort(used)
    },
    codes = function(block, call) {
      value <- if (is.name(expression)) {
        slice_rows(
          block$columns[[as.character(expression)]],
          block$first,
          block$n
        )
      } else {
        what <- deparse1(expression)
        block_eval(request, block, expression, what, call)
      }
      if (is.factor(value)) {
        here <- levels(value)
        if (!identical(here, last$levels)) {
          same <<- length(known) == 0
          known <<- union(known, here)
          last <<- list(levels = here, map = match(here, known))
        }
        is_same <- identical(last$map, seq_along(last$map))
        codes <- unclass(value)
        attributes(codes) <- NULL
        return(if (is_same) codes else last$map[codes])
      }
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
outcome_codes <- function(own, request) {
  if (find_response(request$family)$has_units) {
    return(NULL)
  }
  as.integer(own$y > 0) + 1L
}

# Rows of columns with missing values, of those that count; NULL: none.
missing_rows <- function(request, block, keep) {
  own <- unlist(lapply(request$covariates, all.vars))
  missing <- NULL
  for (name in intersect(unique(own), request$columns)) {
    x <- slice_rows(block$columns[[name]], block$first, block$n)
    if (anyNA(x)) {
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

# ---- rows that are kept ------------------------------------------------------

# Rows of blocks, one pile of them: their columns, numbers and strata.
new_pile <- function() {
  parts <- list()
  n <- 0
  join <- function() {
    if (length(parts) != 1) {
      parts <<- list(join_parts(parts))
    }
    parts[[1]]
  }
  list(
    add = function(block, rows, codes, request) {
      parts[[length(parts) + 1]] <<- list(
        columns = pick_rows(block, request$columns, rows),
        rows = block$row - 1 + rows,
        codes = lapply(codes, function(code) code[rows])
      )
      n <<- n + length(rows)
    },
    keep = function(which) {
      all <- join()
      parts <<- list(list(
        columns = lapply(all$columns, column_rows, which),
        rows = all$rows[which],
        codes = lapply(all$codes, `[`, which)
      ))
      n <<- length(parts[[1]]$rows)
    },
    n = function() n,
    rows = function() join()$rows,
    codes = function() join()$codes,
    frame = function() frame_of(join()$columns, n)
  )
}

pick_rows <- function(block, names, rows) {
  lapply(stats::setNames(nm = names), function(name) {
    x <- block$columns[[name]]
    column_rows(x, if (NROW(x) == block$n) rows else block$first + rows)
  })
}

join_parts <- function(parts) {
  strata <- seq_along(parts[[1]]$codes)
  names(strata) <- names(parts[[1]]$codes)
  list(
    columns = bind_columns(lapply(parts, `[[`, "columns")),
    rows = unlist(lapply(parts, `[[`, "rows")),
    codes = lapply(strata, function(k) {
      unlist(lapply(parts, function(part) part$codes[[k]]))
    })
  )
}

# ---- the ends of columns -----------------------------------------------------

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
  list(
    add = function(block, keep) {
      for (name in names) {
        x <- slice_rows(block$columns[[name]], block$first, block$n)
        if (!is.numeric(x) || is.matrix(x) || is.factor(x)) {
          next
        }
        if (!is.null(keep)) {
          x[!keep] <- NA
        }
        at <- c(which.min(x), which.max(x))
        if (length(at) < 2) {
          next
        }
        known <- ends[[name]]
        value <- x[at]
        if (is.null(known) || value[[1]] < known$value[[1]]) {
          known$value[1] <- value[[1]]
          known$low <- pick_rows(block, request$columns, at[[1]])
        }
        if (length(known$value) < 2 || value[[2]] > known$value[[2]]) {
          known$value[2] <- value[[2]]
          known$high <- pick_rows(block, request$columns, at[[2]])
        }
        ends[[name]] <<- known
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
