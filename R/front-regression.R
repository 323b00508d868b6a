# The one entrance of regressions:
#
#   run     front_run(..., .front = tall_x): the run's arguments, checked
#           before anything takes time
#   rows    front_rows(): of a model frame, of matrices, or passed over
#   model   build_model(blueprint, rows), with the run's lambda
#   sample  front_ready(): monitors, a training; then sample_model()
#   fit     front_parts(): what methods need of it; then front_fit()
#
# A front end is its arguments, its help, and a record of class
# tall_front_<kind>, with methods of the generics here where it has a way of its
# own.

# What a user typed: formula and data, and the call that they stand in, from the
# environment of the front end. name: of that.
new_asked <- function(name, matched, caller, front) {
  has_data <- "data" %in% names(matched)
  written <- written_call(matched, name, caller)
  formula <- with_limits(one_formula(front$formula), limits_of_fronts[[name]])
  if (!identical(formula, front$formula)) {
    matched$formula <- formula
  }
  asked <- structure(
    list(
      name = name,
      formula = formula,
      data = if (has_data) front$data,
      has_data = has_data,
      na.action = front$na.action,
      matched = matched,
      caller = caller,
      written = written
    ),
    class = "tall_asked"
  )
  compress_asked(asked, front$compress)
}

# What may say on the left of a formula between which limits a row lies.
limits_of_fronts <- list(
  tall_surv = "Surv",
  tall_glm = "cens",
  tall_gam = "cens",
  tall_glmer = "cens"
)

# What a front end may have of its own, and what one that says nothing has.
front_fields <- list(
  takes = character(),  # more of its arguments that model.frame() gets
  in_place = TRUE,      # of sample_model()
  whitens = TRUE,       # likewise
  data = NULL,          # matrices and vectors, in place of a frame
  prior_PD = FALSE,     # draws of the prior?
  store = NULL,         # a file for the design
  pilot = NULL,         # of a source: some rows of its data, see pilot_frame()
  train_iter = NULL,    # steps of a training
  in_columns = FALSE    # may levels of grouping factors be columns?
)

# class: of its fits; request: how a model frame is read; keep_data: does the
# fit keep its rows? `...`: of front_fields.
new_front <- function(
  kind,
  class,
  asked,
  blueprint,
  request,
  keep_data,
  ...
) {
  own <- list(...)
  unknown <- setdiff(names(own), names(front_fields))
  if (length(unknown) > 0) {
    stop("A front end has no ", unknown[[1]], ", see front_fields.")
  }
  fields <- front_fields
  fields[names(own)] <- own
  of_all <- list(
    class = class,
    asked = asked,
    blueprint = blueprint,
    request = request,
    keep_data = keep_data
  )
  kinds <- c(paste0("tall_front_", kind), "tall_front")
  structure(c(of_all, fields), class = kinds)
}

# run: of front_run().
fit_regression <- function(front, run) {
  with_new_store(front$store, fit_of_front(front, run))
}

fit_of_front <- function(front, run) {
  UseMethod("fit_of_front")
}

#' @export
fit_of_front.default <- function(front, run) {
  fit_in_memory(front, front_rows(front, run), run)
}

# start: what passes over the same rows left, see start_of_passes().
fit_in_memory <- function(front, rows, run, start = NULL) {
  began <- front
  made <- alike_model(front, rows, run) %||%
    model_of_read(front, rows, whole_rows(rows))
  front <- made$front
  read <- made$read
  model <- made$model
  rm(made)
  start_search(model, start, run$control$cores)
  reader <- front_reader(front, rows, read)
  ready <- front_ready(front, model, read, reader, run)
  # the model has them now, and the run does without
  read <- without_values(read)
  fit <- spent_before(sample_ready(front, ready), start$spent)
  exact <- function() exact_model(began, rows, run)
  gradients <- rounded_in_memory(ready$model, exact)
  fit$compressed <- compressed_by(front, fit, gradients)
  more <- if (inherits(rows, "tall_rows_frame")) {
    unclass(rows)[c("na_action", "n_missing")]
  }
  more <- c(front_parts(front, ready, read, fit), more)
  end_regression(fit, run, front, rows, c(reader, more))
}

# list(front, read, model): with all that rows tell of them.
model_of_read <- function(front, rows, read, build = build_model) {
  columns <- colnames(read$x)
  front <- settle_front(front, attr(rows$frame, "terms"), columns)
  front <- settle_response(front, read$y, read$weights, columns, rows$frame)
  model <- build(front$blueprint, read)
  list(front = front, read = read, model = model)
}

# Of the rows as they were before some columns were rounded; rows: rounded.
exact_model <- function(front, rows, run) {
  front <- exact_front(front, attr(rows$frame, "terms"))
  front$asked <- collect_asked(front$asked)
  rows <- front_rows(front, run)
  model_of_read(front, rows, whole_rows(rows))$model
}

# The same with alike rows counted as one; NULL where steps draw rows as the
# user said, or where there are few alike ones. What is wrong with the rows is
# told by who looks at them all.
alike_model <- function(front, rows, run) {
  is_alike <- counts_rows(front$blueprint) &&
    !front$prior_PD &&
    is.null(run$lambda) &&
    sees_all_rows(run)
  read <- if (is_alike) alike_rows(rows)
  if (!is.null(read)) {
    tryCatch(
      model_of_read(front, rows, read, build_alike),
      tall_error = function(cnd) NULL
    )
  }
}

# spent: passes before its own, by purpose.
spent_before <- function(fit, spent) {
  if (!is.null(spent)) {
    fit$preparation <- fit$preparation + spent[names(fit$preparation)]
    fit$passes <- fit$passes + sum(spent)
  }
  fit
}

# The front end when the design's columns are known, and before there is a
# model. terms: of its frame.
settle_front <- function(front, terms, columns) {
  UseMethod("settle_front")
}

#' @export
settle_front.default <- function(front, terms, columns) {
  front
}

# The same when responses are known: y, weight (NULL: 1 each) and frame of all
# rows, or of a pilot; columns: names of the design's.
settle_response <- function(front, y, weight, columns, frame) {
  UseMethod("settle_response")
}

#' @export
settle_response.default <- function(front, y, weight, columns, frame) {
  front
}

# The fit, with its rows, what its model is but for these, and other `parts`:
# how new rows are read, what methods need.
end_regression <- function(fit, run, front, rows, parts) {
  own <- list(
    blueprint = front$blueprint,
    rows = rows_to_keep(fit$rows %||% rows, front$keep_data)
  )
  if (!front$keep_data) {
    fit$passed[c("drawn", "tied")] <- NULL
  }
  front_fit(fit, run, front$class, front$asked$written, c(own, parts))
}

sample_ready <- function(front, ready) {
  sample_model(
    ready$model,
    ready$run,
    in_place = front$in_place,
    whitens = front$whitens
  )
}

# Its rows: of a model frame, unless it has others.
front_rows <- function(front, run) {
  UseMethod("front_rows")
}

#' @export
front_rows.default <- function(front, run) {
  front_frame(front)
}

front_frame <- function(front) {
  asked <- front$asked
  made <- make_frame(
    asked$matched,
    asked$formula,
    asked$data,
    c("formula", "data", "subset", "na.action", front$takes),
    asked$na.action,
    asked$caller
  )
  terms <- attr(made$frame, "terms")
  home <- environment(asked$formula)
  columns <- data_columns(terms, made$call, asked$data, home)
  rows_frame(made, front$request, columns)
}

# How rows of new data are read as these were: a list of what the fit has of it.
# read: of whole_rows().
front_reader <- function(front, rows, read) {
  UseMethod("front_reader")
}

#' @export
front_reader.default <- function(front, rows, read) {
  terms <- attr(rows$frame, "terms")
  list(
    formula = front$asked$formula,
    terms = terms,
    xlevels = stats::.getXlevels(terms, rows$frame),
    contrasts = read$contrasts,
    response_levels = read$levels,
    columns = rows$columns
  )
}

# A model that can run, and its run: class tall_ready, with what the front end
# found meanwhile.
front_ready <- function(front, model, read, reader, run) {
  UseMethod("front_ready")
}

#' @export
front_ready.default <- function(front, model, read, reader, run) {
  new_ready(front_model(model, run), run)
}

new_ready <- function(model, run, ...) {
  structure(list(model = model, run = run, ...), class = "tall_ready")
}

# More fields of the fit. read: of rows without their values.
front_parts <- function(front, ready, read, fit) {
  UseMethod("front_parts")
}
