# The design that a look at a source finds: of the pilot's rows, and how all
# rows are read.

# The model frames of the pilot's rows, and of these with those at the ends of
# columns; how many rows each of the former stands for; the data of all of them
# as they were given, of which each row counts so often.
pilot_frame <- function(look, source, request, matched, refresh) {
  n <- nrow(look$frame)
  data <- look$frame
  if (!is.null(look$ends)) {
    data <- bind_frames(list(data, look$ends))
  }
  counts <- c(look$weights, numeric(nrow(data) - n))
  frame_call <- matched[c(1, match(
    c("formula", "weights", "offset"),
    names(matched),
    0
  ))]
  frame_call$formula <- request$formula
  frame_call$weights <- request$weights
  frame_call$offset <- request$offsets[[length(request$offsets)]]
  frame_call$data <- data
  frame_call$na.action <- stats::na.omit
  frame_call$drop.unused.levels <- TRUE
  frame_call[[1]] <- quote(stats::model.frame)
  told <- function(code) told_as_frame(code, frame_call, request)
  whole <- told(eval(frame_call, request$env))
  takes <- constant_variables(attr(whole, "terms"))
  settled <- frame_call
  if (length(takes) > 0 && is_in_memory(source)) {
    settled$formula <- told(constants_of_all(whole, takes, source, request))
    whole <- told(eval(settled, request$env))
  } else {
    tell_constants(whole, takes, refresh)
    if (length(terms_smooths(attr(whole, "terms"))) > 0) {
      settled$formula <- told(constants_by_weight(whole, data, counts))
      whole <- told(eval(settled, request$env))
    }
  }
  tell_beyond_knots(attr(whole, "terms"))
  left <- setdiff(seq_len(nrow(data)), as.integer(attr(whole, "na.action")))
  own <- left <= n
  frame <- whole[own, , drop = FALSE]
  attr(frame, "terms") <- attr(whole, "terms")
  rows <- look$rows[left[own]]
  # by which errors tell them
  if (max(rows, 0) <= .Machine$integer.max) {
    attr(frame, "row.names") <- as.integer(rows)
  }
  n_missing <- sum(as.integer(attr(whole, "na.action")) <= n)
  check_complete_rows(nrow(frame), n_missing, request)
  frame_call$data <- matched$data
  list(
    data = data,
    whole = whole,
    frame = frame,
    stands = look$weights[left[own]],
    counts = counts,
    call = frame_call
  )
}

# What fails in `code` is said in the words of the front end's arguments.
told_as_frame <- function(code, frame_call, request) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "tall_error")) {
      rlang::cnd_signal(e)
    }
    abort_frame(e, request$formula, frame_call, request$known, request$env)
  })
}

# ---- constants of terms ------------------------------------------------------

# Which covariates take constants from the rows, as poly() its basis, splines
# their knots and scale() its centre: model.frame() writes them down.
constant_variables <- function(terms) {
  written <- as.list(attr(terms, "variables"))[-1]
  settled <- as.list(attr(terms, "predvars"))[-1]
  which(is_design_variable(terms) & !mapply(identical, written, settled))
}

# Terms of the pilot's frame with the constants of all rows, as model.frame()
# takes them: before subset or missing values of others leave rows out. One
# variable at a time: what its function makes of all rows goes again.
constants_of_all <- function(whole, takes, source, request) {
  terms <- attr(whole, "terms")
  predvars <- attr(terms, "predvars")
  for (k in takes) {
    written <- attr(terms, "variables")[[k + 1]]
    names <- intersect(all.vars(written), request$columns)
    if (!is.null(settled_smooth(predvars[[k + 1]]))) {
      columns <- held_columns(source, names)
      predvars[[k + 1]] <- settle_smooth(written, columns, request$env)
      next
    }
    n <- source_size(source)
    check_constants_size(written, n, whole[[k]])
    columns <- complete_columns(held_columns(source, names))
    value <- eval(written, columns, request$env)
    predvars[[k + 1]] <- stats::makepredictcall(value, written)
  }
  attr(terms, "predvars") <- predvars
  terms
}

# The same of smooth terms alone, whose pilot has rows that stand for others:
# weights, 0 of the ends of columns.
constants_by_weight <- function(whole, data, weights) {
  terms <- attr(whole, "terms")
  predvars <- attr(terms, "predvars")
  home <- attr(terms, ".Environment")
  for (k in seq_along(predvars)[-1]) {
    if (!is.null(settled_smooth(predvars[[k]]))) {
      written <- attr(terms, "variables")[[k]]
      predvars[[k]] <- settle_smooth(written, data, home, weights)
    }
  }
  attr(terms, "predvars") <- predvars
  terms
}

# Without the rows that lack a value; the columns as they are where none does.
complete_columns <- function(columns) {
  if (!any(vapply(columns, anyNA, TRUE))) {
    return(columns)
  }
  keep <- stats::complete.cases(columns)
  lapply(columns, column_rows, keep)
}

# Numbers a row that are in memory meanwhile, for each column of a term and the
# one it is made of: about those of poly(), and of scale(), which has no class.
# Splines take less.
constants_take <- function(value) {
  (NCOL(value) + 1) * if (is.object(value)) 10 else 4
}

# value: of the variable, in the pilot.
check_constants_size <- function(written, n, value) {
  free <- free_memory()
  bytes <- 8 * n * constants_take(value)
  if (is.na(free) || bytes <= free) {
    return(invisible())
  }
  pilot <- setting("look")$rows
  abort_tall(
    "memory",
    c(
      "The constants of {.code {deparse1(written)}} are taken from all rows,
       which may need {format_bytes(bytes)}, and memory has
       {format_bytes(free)}.",
      i = "Hand the rows out by {.fn tall_stream}: then a pilot of
           {format_count(pilot)} of them gives the constants."
    ),
    argument = "formula",
    value = bytes,
    expected = free
  )
}

tell_constants <- function(whole, takes, refresh) {
  terms <- attr(whole, "terms")
  is_of_rows <- function(k) {
    smooth <- settled_smooth(attr(terms, "predvars")[[k + 1]])
    is.null(smooth) || smooth$takes_rows
  }
  takes <- Filter(is_of_rows, takes)
  if (refresh > 0 && length(takes) > 0) {
    shown <- vapply(as.list(attr(terms, "variables"))[1 + takes], deparse1, "")
    pilot <- setting("look")$rows
    cli::cli_inform(c(
      i = "A pilot of {format_count(pilot)} rows, not all, has the
           constants of {.code {shown}}, and {?its/their} coefficients refer to
           them."
    ))
  }
}

refuse_dependent <- function(request, pilot) {
  more <- request[c("weights", "subset")]
  bad <- row_dependent(
    attr(pilot$whole, "terms"),
    pilot$data,
    request$env,
    Filter(function(expression) !is.null(expression), more)
  )
  if (length(bad) == 0) {
    return(invisible())
  }
  not_in_blocks()
  abort_input(
    c(
      "The term {.code {bad[[1]]}} depends on other rows than its own, and of so
       many rows some are seen at a time.",
      i = "Compute it before, as a column of {.arg data}, or with fixed numbers:
           {.code cut(x, c(0, 1, 2))}, {.code x - 3.2}."
    ),
    argument = "formula",
    value = bad
  )
}
