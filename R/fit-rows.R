# The rows that a function of a regression's fit is asked for: the fit's own or
# new ones, in memory or passed over block by block. Every verb walks them in
# one way:
#
#   asked <- ask_rows(fit, newdata, ...)         which rows, and what of them
#   draws <- choose_draws(fit, n, ...)           which draws
#   over_rows(asked, draws, function(rows) ...)  what is made of each block
#
# A block of rows is a list:
#   x        design, rows x coefficients (of a network: its inputs)
#   offset   a number for each row
#   trials, weight   where they were asked for: what the responses of these rows
#            have, NULL where the response has no such thing
#   y, count         where responses were asked for: proportions where there are
#            trials, and these times the trials; classes count from 1
# and what predictors of its class want beside (effects of groups).

# What of the rows is asked for: their design; what responses that are drawn for
# them have, too; or their own responses, with their weights or without.
row_needs <- c("design", "sizes", "responses", "values")

# offset, trials, weights: of the rows, as the user gave them. groups: of
# group_request().
ask_rows <- function(
  fit,
  newdata = NULL,
  offset = NULL,
  trials = NULL,
  weights = NULL,
  groups = NULL,
  needs = "design"
) {
  needs <- match.arg(needs, row_needs)
  check_sizes_taken(fit, offset, trials, weights)
  is_own <- is.null(newdata)
  passes <- is_passed_over(fit, newdata)
  n <- if (passes) {
    n_passed_over(fit, newdata)
  } else if (is_own) {
    stats::nobs(fit)
  } else {
    NROW(newdata)
  }
  out <- list(
    fit = fit,
    newdata = newdata,
    is_own = is_own,
    passes = passes,
    n = n,
    needs = needs
  )
  given <- list(offset = offset, trials = trials, weights = weights)
  structure(c(out, given, list(groups = groups)), class = "tall_asked_rows")
}

# The same rows in memory, for a matrix with a column for each. Refused before
# anything of the size of the data is made. n_draw: NULL: all draws; size:
# numbers for each row and draw.
in_memory <- function(asked, n_draw = NULL, size = 1) {
  fit <- asked$fit
  if (asked$is_own) {
    check_has_data(fit, "newdata")
    check_matrix_size(fit, asked$n * size, n_draw, NULL)
    asked$fit <- fit_of_rows(fit)
  } else {
    asked$newdata <- frame_newdata(fit, asked$newdata, n_draw)
  }
  asked$passes <- FALSE
  asked
}

# A list of what f(rows) has, each a vector with a value for each row or a
# matrix with a row for each. pads: with NA for rows that na.exclude left out.
over_rows <- function(asked, draws, f, pads = asked$is_own) {
  if (asked$passes) {
    pads <- pads && isTRUE(asked$fit$rows$request$pads)
    return(pass_rows(asked, draws, f, pads))
  }
  rows <- asked_rows(asked, draws)
  lapply(f(rows), function(value) {
    value <- name_rows(value, rownames(rows$x))
    if (pads) stats::napredict(asked$fit$na_action, value) else value
  })
}

name_rows <- function(value, names) {
  if (is.matrix(value)) {
    rownames(value) <- names
  } else {
    names(value) <- names
  }
  value
}

# All rows that are asked for, with what predictors at these draws want.
asked_rows <- function(asked, draws = NULL) {
  fit <- asked$fit
  newdata <- asked$newdata
  if (asked$is_own && asked$passes) {
    # once
    fit <- fit_of_rows(fit)
  }
  rows <- prediction_rows(fit, newdata, asked$offset, asked$groups)
  n <- nrow(rows$x)
  if (asked$needs == "sizes") {
    rows$trials <- prediction_trials(fit, newdata, asked$trials, n)
    rows$weight <- prediction_weights(fit, newdata, asked$weights, n)
  } else if (asked$needs != "design") {
    weighs <- asked$needs == "responses"
    rows <- with_responses(rows, row_responses(fit, newdata, weighs))
  }
  if (is.null(draws)) rows else join_draws(fit, rows, draws, asked$groups)
}

# found: list(y, trials, weight), NULL: 1 each
with_responses <- function(rows, found) {
  n <- nrow(rows$x)
  rows$y <- found$y
  rows$trials <- rep_len(found$trials %||% 1, n)
  rows$count <- first_column(found$y) * rows$trials
  rows$weight <- rep_len(found$weight %||% 1, n)
  rows
}

# Some of the rows of a block.
some_rows <- function(rows, at) {
  vectors <- c("offset", "y", "trials", "count", "weight", "uniform")
  vectors <- intersect(vectors, names(rows))
  rows[vectors] <- lapply(rows[vectors], select_rows, at)
  rows$x <- design_rows(rows$x, at)
  if (!is.null(rows$zeros)) {
    # of a hurdle model
    rows$zeros <- some_rows(rows$zeros, at)
  }
  if (!is.null(rows$factors)) {
    rows$factors <- lapply(rows$factors, some_of_factor, at = at)
  }
  rows
}

# own: of `factors`, see R/fit-predictor-groups.R
some_of_factor <- function(own, at) {
  own$z <- own$z[at, , drop = FALSE]
  vectors <- intersect(c("label", "group"), names(own))
  own[vectors] <- lapply(own[vectors], `[`, at)
  own
}

# f(rows) for blocks of rows that make about `size` numbers with n_draw draws.
each_block <- function(n, n_draw, f, size = 2^22) {
  block <- max(1, floor(size / n_draw))
  for (start in (seq_len(ceiling(n / block)) - 1) * block) {
    f(seq(start + 1, min(n, start + block)))
  }
}

# ---- passed over -------------------------------------------------------------

# f(rows) of each block of a source, one after the other. Arguments with a value
# for each row are cut.
pass_rows <- function(asked, draws, f, pads) {
  asked <- check_cuts(asked)
  gather_rows(
    asked$fit,
    function(block) f(block_of_rows(asked, draws, block)),
    asked$newdata,
    pads = pads
  )
}

block_of_rows <- function(asked, draws, block) {
  fit <- asked$fit
  n <- nrow(block$data)
  cut <- function(x) if (length(x) > 1) x[block$rows] else x
  offset <- cut(asked$offset)
  is_own <- asked$is_own
  rows <-
    prediction_rows(fit, block$data, if (!is_own) offset, asked$groups)
  own <- if (is_own) block_sizes(fit, block)
  if (is_own) {
    rows$offset <- add_offsets(n, rows$offset, offset)
  }
  if (asked$needs == "sizes") {
    trials <- cut(asked$trials) %||% if (has_trials(fit$family)) own$trials
    rows$trials <- prediction_trials(fit, block$data, trials, n)
    weight <- cut(asked$weights) %||% if (has_precisions(fit$family)) own$weight
    rows$weight <- prediction_weights(fit, block$data, weight, n)
  } else if (asked$needs != "design") {
    weighs <- asked$needs == "responses"
    rows <- with_responses(rows, own %||% new_response(fit, block$data, weighs))
  }
  if (is.null(draws)) rows else join_draws(fit, rows, draws, asked$groups)
}

check_cuts <- function(asked) {
  for (name in c("offset", "trials", "weights")) {
    asked[name] <- list(check_cut(asked[[name]], asked$n, name))
  }
  asked
}

# A value, or one for each row: of rows that were not counted, a value.
check_cut <- function(x, n, arg) {
  check_numeric_vector(
    x,
    size = if (is.na(n)) 1 else c(1, n),
    allow_null = TRUE,
    arg = arg
  )
}

# list(y, trials, weight) of a block of own rows, trials 1 where nothing was
# given.
block_sizes <- function(fit, block) {
  own <- split_own(fit, block$own)
  n <- NROW(own$y)
  list(
    y = own$y,
    trials = rep_len(as.double(own$trials %||% 1), n),
    weight = if (is.null(own$weight)) NULL else as.double(own$weight)
  )
}

# What the predictors of these rows need beside them at these draws, as effects
# of their groups.
join_draws <- function(fit, rows, draws, groups) {
  UseMethod("join_draws")
}

#' @export
join_draws.tall_regression <- function(fit, rows, draws, groups) {
  rows
}
