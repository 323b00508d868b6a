# Rows of a model frame, and the requests by which frames are read.

# What a formula asks of a model frame: class tall_request_glm, _groups,
# _crossed, _classes or _network, by what is read. More of it: see
# new_request(), for rows that are passed over.
frame_request <- function(kind, ...) {
  structure(
    list(...),
    class = c(paste0("tall_request_", kind), "tall_request")
  )
}

# family: from resolve_family(); sparse: of tall_glm(), NULL: where it pays.
request_glm <- function(family, sparse = FALSE) {
  frame_request("glm", family = family, sparse = sparse)
}

# bars: of split_bars(); sigma: the response's, where it is known.
request_groups <- function(family, bars, sigma = NULL) {
  frame_request("groups", family = family, bars = bars, sigma = sigma)
}

# bars: of read_bars(), of several factors.
request_crossed <- function(family, bars, sigma = NULL) {
  frame_request("crossed", family = family, bars = bars, sigma = sigma)
}

# is_ordered: has the response an order, and so no intercepts but thresholds?
request_classes <- function(is_ordered) {
  frame_request("classes", is_ordered = is_ordered)
}

# family: with both predictors; dpar: of dpar_terms().
request_dpar <- function(family, dpar) {
  frame_request("dpar", family = family, dpar = dpar)
}

request_network <- function() {
  frame_request("network")
}

# made: of make_frame(); columns: which of the variables are columns of the
# data.
rows_frame <- function(made, request, columns = NULL) {
  tall_rows("frame", list(
    frame = made$frame,
    request = request,
    columns = columns,
    call = made$call,
    na_action = attr(made$frame, "na.action"),
    n_missing = made$n_missing,
    missing = made$missing
  ))
}

#' @export
whole_rows.tall_rows_frame <- function(rows) {
  read_frame(rows$request, all_frame(rows))
}

# The model frame of all rows, where `index` says of which kind each of them is
# (see R/front-alike.R), and `row` their numbers.
all_frame <- function(rows) {
  if (is.null(rows$index)) {
    return(rows$frame)
  }
  frame <- frame_rows(rows$frame, rows$index)
  attr(frame, "terms") <- attr(rows$frame, "terms")
  attr(frame, "na.action") <- attr(rows$frame, "na.action")
  if (!is.null(rows$row)) {
    attr(frame, "row.names") <- rows$row
  }
  frame
}

# A missing value is an error.
#' @export
new_rows.tall_rows_frame <- function(rows, data) {
  terms <- attr(rows$frame, "terms")
  frame_call <- rows$call[intersect(names(rows$call), c("weights", "offset"))]
  frame_call <- as.call(c(quote(stats::model.frame), as.list(frame_call)))
  frame_call$formula <- terms
  frame_call$data <- data
  frame_call$xlev <- stats::.getXlevels(terms, rows$frame)
  frame_call$na.action <- stats::na.fail
  frame <- eval(frame_call, environment(terms))
  response <- attr(terms, "response")
  if (response > 0 && is.factor(rows$frame[[response]])) {
    levels <- levels(rows$frame[[response]])
    frame[[response]] <- factor(frame[[response]], levels)
  }
  rows_frame(list(frame = frame, call = rows$call), rows$request, rows$columns)
}

# Where all are at hand nothing has to be found.
#' @export
look.tall_rows <- function(rows, refresh = 0) {
  list(is_whole = TRUE)
}

# A model frame as its request reads it: rows_memory().
read_frame <- function(request, frame) {
  UseMethod("read_frame")
}

#' @export
read_frame.tall_request_glm <- function(request, frame) {
  parts <- frame_parts(frame, request$family, request$sparse)
  rows_memory(
    parts$x,
    parts$y,
    parts$weights,
    parts$offset,
    response_name(frame),
    family = request$family,
    levels = parts$levels,
    trials = parts$trials,
    contrasts = parts$contrasts,
    sparse = parts$sparse
  )
}

# No matrix is made: `x` is what a look at the rows found, which reads them.
#' @export
read_frame.tall_request_groups <- function(request, frame) {
  sides <- glmer_sides(frame, request$bars, request$family)
  reader <- glmer_reader(frame, sides)
  check_groups(sides, request$family, request$sigma)
  check_effects(reader$effects)
  x <- look_at_rows(reader, sides$group)
  check_varies(x, sides$name)
  rows_of_sides(
    x,
    sides,
    request,
    groups = sides[c("group", "name", "correlated")],
    design = glmer_design(frame, sides, reader)
  )
}

# Effects are sampled, and rows are kept as they are.
#' @export
read_frame.tall_request_crossed <- function(request, frame) {
  sides <- crossed_sides(frame, request$bars, request$family)
  check_crossed(sides, request$family, request$sigma)
  rows_of_sides(
    sides$x,
    sides,
    request,
    factors = sides$factors,
    design = crossed_design(frame, sides)
  )
}

# Of a regression with groups. sides: of glmer_sides() or crossed_sides().
rows_of_sides <- function(x, sides, request, ...) {
  rows_memory(
    x,
    sides$y,
    sides$weights,
    sides$offset,
    sides$arg_y,
    family = request$family,
    levels = sides$levels,
    trials = sides$trials,
    terms = sides$fixed,
    ...
  )
}

#' @export
read_frame.tall_request_classes <- function(request, frame) {
  parts <- class_parts(frame, request$is_ordered)
  rows_memory(
    parts$x,
    parts$response$values,
    parts$weights,
    parts$offset,
    response_name(frame),
    levels = parts$response$levels,
    columns = colnames(parts$x),
    contrasts = parts$contrasts
  )
}

# In standard units: `scaling` says which.
#' @export
read_frame.tall_request_network <- function(request, frame) {
  parts <- nn_parts(frame)
  rows_memory(
    parts$x,
    parts$response$values,
    name = response_name(frame),
    levels = parts$response$levels,
    n_out = parts$response$n_out,
    likelihood = parts$likelihood,
    scaling = parts$scaling,
    contrasts = parts$contrasts
  )
}

#' @export
read_frame.tall_request_dpar <- function(request, frame) {
  sides <- frame_sides(frame, request$family)
  made <- dpar_designs(request$dpar, frame)
  rows_memory(
    made$x,
    sides$y,
    sides$weights,
    sides$offset,
    response_name(frame),
    family = request$family,
    contrasts = made$contrasts,
    width = made$width
  )
}
