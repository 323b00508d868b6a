# Rows of a fit whose source is passed over, or of another source: block by
# block, as data frames that methods take as `newdata`.

# Does the fit have a source instead of a model frame?
has_source <- function(fit) {
  !is.null(fit$source)
}

is_passed_over <- function(fit, newdata) {
  if (is.null(newdata)) has_source(fit) else is_source_like(newdata)
}

# f(newdata, rows, own) for each block: a data frame of the rows that count,
# their numbers among these, and their response, list(y, weights, trials). Of
# another source than the fit's own, every row counts and `own` is NULL.
# f may return FALSE: no more.
each_newdata <- function(
  fit,
  f,
  newdata = NULL,
  label = "Reading rows",
  refresh = getOption("tallbayes.refresh", 1),
  call = caller_env()
) {
  is_own <- is.null(newdata)
  source <- if (is_own) fit$source else as_source(newdata)
  request <- fit$request
  if (!is_own) {
    names <- source_names(source)
    check_newdata_columns(fit, names, call)
    request$columns <- intersect(request$columns, names)
  }
  n_before <- 0
  walk_source(source, request, label, refresh, function(block) {
    data <- frame_of(block_slice(block, request$columns), block$n)
    own <- NULL
    if (is_own) {
      own <- block_response(request, block, fit$response_levels, call)
      keep <- own$keep %||% rep(TRUE, block$n)
      terms <- stats::delete.response(fit$terms)
      # what a function makes of a value may be missing, too
      frame <- stats::model.frame(terms, data, na.action = stats::na.pass)
      keep <- keep & stats::complete.cases(frame)
      if (!all(keep)) {
        data <- data[keep, , drop = FALSE]
        attr(data, "row.names") <- .set_row_names(nrow(data))
      }
      own <- lapply(
        own[c("y", "weights", "trials", "offset")],
        function(x) x[keep]
      )
    }
    if (nrow(data) == 0) {
      return(TRUE)
    }
    rows <- n_before + seq_len(nrow(data))
    n_before <<- n_before + nrow(data)
    f(data, rows, own)
  })
  if (is_own && n_before < fit$n_data) {
    abort_other_rows(fit, n_before, call)
  }
  invisible(n_before)
}

abort_other_rows <- function(fit, n, call) {
  abort_tall(
    "source",
    c(
      "The fit's data have other rows than they had.",
      x = "{count_noun(n, 'row')} now, {count_noun(fit$n_data, 'row')} then."
    ),
    argument = "data",
    call = call
  )
}

check_newdata_columns <- function(fit, names, call) {
  terms <- stats::delete.response(fit$terms)
  missing <- setdiff(intersect(all.vars(terms), fit$columns), names)
  if (length(missing) > 0) {
    abort_missing_columns(missing, call)
  }
}

# Some of the fit's own rows as a data frame, NULL: all. which: numbers among
# those that count; the frame has them in this order.
own_newdata <- function(fit, which = NULL, call = caller_env()) {
  parts <- list()
  each_newdata(
    fit,
    function(newdata, rows, own) {
      if (!is.null(which)) {
        at <- rows %in% which
        newdata <- newdata[at, , drop = FALSE]
        rows <- rows[at]
      }
      if (length(rows) > 0) {
        parts[[length(parts) + 1]] <<- list(
          columns = as.list(newdata),
          rows = rows
        )
      }
    },
    call = call
  )
  joined <- join_parts(parts)
  out <- frame_of(joined$columns, length(joined$rows))
  if (is.null(which)) {
    return(out)
  }
  out <- out[match(which, joined$rows), , drop = FALSE]
  attr(out, "row.names") <- .set_row_names(nrow(out))
  out
}

# Responses, weights and trials of all of the fit's own rows.
remote_response <- function(fit, call) {
  parts <- list()
  each_newdata(
    fit,
    function(newdata, rows, own) {
      parts[[length(parts) + 1]] <<- own
    },
    call = call
  )
  every <- function(name) unlist(lapply(parts, `[[`, name))
  weights <- every("weights")
  trials <- every("trials")
  if (!is.null(trials)) {
    weights <- weights / trials
  }
  split_weights(every("y"), trials, weights, fit)
}
