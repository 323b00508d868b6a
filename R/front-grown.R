# The model of rows that grew by a batch, from what the fit's passes found of
# the others; and the fit made again where they found nothing.

# The fit to all rows; NULL, or a condition of class tall_needs_rows: it has to
# be made again.
append_known <- function(fit, batch, source, run) {
  way <- way_of_batch(fit)
  if (way == "again") {
    return(NULL)
  }
  grow <- switch(way,
    sums = grown_by_sums,
    tied = grown_by_ties,
    drawn = grown_by_draws
  )
  model <- grow(fit, batch, source, run$control)
  if (!is.null(model)) {
    out <- fit_changed(fit, model, run)
    spent_of_batch(out, way, 2 * batch$digest$n / out$n_data)
  }
}

# What code makes of the sums that a fit keeps; NULL: it has to be made again.
from_known <- function(code) {
  tryCatch(
    code,
    tall_needs_rows = function(cnd) NULL,
    tall_error_source = function(e) {
      if (!isTRUE(e$is_empty)) {
        rlang::cnd_signal(e)
      }
      abort_input(
        "{.arg rows} must have at least one row that counts: all of them lack a
         value.",
        argument = "rows",
        value = 0
      )
    }
  )
}

# No look and no pass over all rows was made, which plans count, but `passes`,
# for digest and sums.
spent_of_batch <- function(fit, way, passes) {
  spent <- new_ledger()$passes
  spent[["recipe"]] <- passes - if (way == "sums") 2 else 1
  if (way == "tied") {
    spent[["mode"]] <- -1
  }
  spent_before(fit, spent)
}

# The fit's rows with another source, and what its passes must see.
rows_of_all <- function(fit, batch, source) {
  rows <- rows_of_others(fit, source)
  if (!is.null(rows$digest)) {
    rows$digest <- merge_digests(list(rows$digest, batch$digest))
  }
  rows$n_row <- fit$rows$n_row + batch$digest$n
  rows
}

rows_of_others <- function(fit, source) {
  rows <- with_source(fit$rows, source)
  rows[c("some", "products", "facts")] <- NULL
  rows$is_merged <- TRUE
  rows_passes(rows)
}

grown_by_sums <- function(fit, batch, source, control) {
  new <- products_of(batch$rows, control)
  kept <- fit$rows$products
  sums <- c(merge_products(kept, new), list(
    facts = merge_known(list(fit$rows$facts, new$facts)),
    n_missing = (fit$n_missing %||% 0) + new$n_missing
  ))
  rows <- rows_of_all(fit, batch, source)
  model_of_sums(fit, rows, sums, control)
}

model_of_sums <- function(fit, rows, sums, control) {
  pilot <- rows_drawn(rows, fit$rows$some, sums$facts)
  pass <- fit$passed$pass
  remote <-
    new_remote(fit$blueprint, rows, pilot, sums, sums, control, pass)
  as_remote(build_model(fit$blueprint, pilot), remote, sums$facts)
}

grown_by_ties <- function(fit, batch, source, control) {
  kept <- fit$passed$tied
  new <- tie_rows(batch$rows, control)
  tied <- weigh_ties(join_ties(list(
    unweigh_ties(kept$tied, fit$rows),
    unweigh_ties(new$tied, fit$rows)
  )))
  rows <- rows_tied(
    rows_of_all(fit, batch, source),
    tied,
    merge_known(list(kept$facts, new$facts)),
    kept$n_missing + new$n_missing
  )
  model_of_ties_at(fit, rows, control)
}

# rows: class tall_rows_tied, all of them.
model_of_ties_at <- function(fit, rows, control) {
  start <- list(theta = fit$passed$found$theta)
  model_of_passes(fit$blueprint, rows, whole_rows(rows), control, start)
}

# With the weights of one row again.
unweigh_ties <- function(tied, rows) {
  tied["weights"] <-
    list(if (rows$has_weights) tied$weights / tied$count)
  tied
}

grown_by_draws <- function(fit, batch, source, control) {
  passed <- fit$passed
  found <- passed$found
  new <- sums_at(batch$rows, found$theta, control)
  fresh <- batch$rows
  fresh$facts <- new$facts
  kept <- list(
    theta = found$theta,
    chol = found$chol,
    facts = fit$rows$facts,
    drawn = passed$drawn,
    pass = passed$pass + 1,
    steps = fit$steps,
    n_batch = max(0, nrow(batches_of(fit)) - 1)
  )
  rows <- rows_grown(rows_of_all(fit, batch, source), fresh, source, kept)
  found$facts <- merge_known(list(kept$facts, new$facts))
  found$n_missing <- (fit$n_missing %||% 0) + new$n_missing
  found$passes <- 0
  model_of_draws(fit, rows, found, control)
}

model_of_draws <- function(fit, rows, found, control) {
  pilot <- rows_drawn(rows, fit$rows$some, found$facts)
  remote <- new_remote(
    fit$blueprint,
    rows,
    pilot,
    found,
    control = control,
    pass = fit$passed$pass
  )
  as_remote(build_model(fit$blueprint, pilot), remote, found$facts)
}

# The run of a model of all rows, and the fit, with all else as `fit` has it.
fit_changed <- function(fit, model, run) {
  n_missing <- model$remote$n_missing
  new <- sample_model(model, run)
  old <- unclass(fit)[setdiff(names(fit), c(names(new), "seal", "checked"))]
  old$rows <- rows_to_keep(new$rows, keeps = has_values(new$rows))
  old["na_action"] <- list(NULL)
  old$n_missing <- n_missing
  class <- setdiff(class(fit), c("tall_regression", "tall_fit"))
  front_fit(new, run, class, fit$call, old)
}

# ---- the call again ----------------------------------------------------------

# Where all rows are, a data frame or a source. source: of both, NULL: the fit
# has none.
source_of_all <- function(fit, rows, data, source) {
  if (!is.null(data) || is_remote_fit(fit)) {
    if (is.null(source)) {
      check_source_kept(fit$rows)
    }
    return(if (is.null(data)) source else data)
  }
  before <- data_of_call(fit, "Give {.arg data}, all rows from now on.")
  rows <- rows_in_subset(fit, whole_data(rows))
  columns <- lapply(stats::setNames(nm = fit$columns), function(name) {
    join_column(before[[name]], rows[[name]], name)
  })
  frame_of(columns, nrow(before) + nrow(rows))
}

# Those of a data frame that the fit's call would take.
rows_in_subset <- function(fit, rows) {
  asked <- eval(fit$call$subset, rows, environment(fit$formula))
  if (is.null(asked)) {
    return(rows)
  }
  at <- if (is.logical(asked)) which(asked) else asked
  frame_rows_at(rows, at)
}

# Of factors those that have the same levels.
join_column <- function(a, b, name) {
  if (is.factor(b)) {
    b <- as.character(b)
  }
  if (is.factor(a)) {
    b <- as.character(b)
    check_same_levels(levels(a), b, name)
    return(factor(c(as.character(a), b), levels(a), ordered = is.ordered(a)))
  }
  if (is.numeric(a) != is.numeric(b) || is.logical(a) != is.logical(b)) {
    abort_input(
      "{.field {name}} of {.arg rows} must be as it was, {describe(a)}, not
       {describe(b)}.",
      argument = "rows"
    )
  }
  c(a, b)
}

check_same_levels <- function(levels, values, name) {
  new <- setdiff(values, c(levels, NA))
  if (length(new) > 0) {
    abort_new_level(new[[1]], name)
  }
}

abort_new_level <- function(level, name) {
  abort_input(
    c(
      "{.arg rows} must have the levels that the fit knows.",
      x = "{.field {name}} has {.val {level}}, which would be a new
           coefficient.",
      i = "Fit again, to all rows."
    ),
    argument = "rows",
    value = level
  )
}

# changes: arguments of the run.
fit_again <- function(fit, data, changes, control) {
  if (control$refresh > 0) {
    cli::cli_inform(c(
      i = "The fit is made again, of all rows: it keeps no sums that rows could
           be added to, or taken from."
    ))
  }
  more <- list(data = data, subset = NULL)
  out <- call_again(fit, c(more, run_changes(changes)))
  new <- setdiff(lasting_variables(out), lasting_variables(fit))
  if (length(new) > 0 && is.null(fit$groups)) {
    abort_new_level(new[[1]], "the design")
  }
  # the call's are those of the first fit
  if (is.data.frame(data) && has_values(out$rows) && !is_remote_fit(out)) {
    out$batch_data <- data
  }
  out
}

# Those that are the same whatever rows there are; a hazard has as many pieces
# as the events bear.
lasting_variables <- function(fit) {
  setdiff(fit$every_variable, fit$family$pieces$names)
}
