# Design matrix, response and weights, from a model frame.

# What the formula calls the response.
response_name <- function(frame) {
  deparse1(attr(attr(frame, "terms"), "variables")[[2]])
}

# Design matrix, response, weights and offset of a model frame. sparse: as of
# tall_glm(); NULL is settled here.
frame_parts <- function(frame, family, sparse = FALSE) {
  sides <- frame_sides(frame, family)
  terms <- attr(frame, "terms")
  is_sparse <- sparse %||% is_mostly_zeros(terms, frame)
  design <- if (is_sparse) {
    sparse_design_matrix(terms, frame)
  } else {
    hint <- "{.code sparse = TRUE} keeps what is not 0."
    design_matrix(terms, frame, hint)
  }
  check_some_columns(ncol(design$x))
  c(list(x = design$x), sides, list(
    contrasts = design$contrasts,
    sparse = is_sparse
  ))
}

check_some_columns <- function(n) {
  if (n == 0) {
    abort_input(
      "{.arg formula} must have at least one term or an intercept.",
      argument = "formula"
    )
  }
}

# The same without the design. as_double: FALSE where whole numbers need not
# become doubles, which takes memory.
frame_sides <- function(frame, family, as_double = TRUE) {
  check_covariates(frame)
  response <- left_side(frame)
  if (is.null(response)) {
    abort_no_response()
  }
  name <- response_name(frame)
  y <- frame_response(response, family, name, as_double)
  if (is.null(y$trials)) {
    check_successes(
      y$values,
      stats::model.weights(frame),
      family,
      name,
      row.names(frame)
    )
  }
  list(
    y = y$values,
    levels = y$levels,
    trials = y$trials,
    weights = frame_weights(frame, y$trials),
    offset = stats::model.offset(frame)
  )
}

# Would no more than a quarter of the design be kept? Rows without zeros are
# faster, which a smaller design does not make up for. Looked at in some rows.
is_mostly_zeros <- function(terms, frame, n = 1000, most = 1 / 4) {
  rows <- unique(floor(seq(1, nrow(frame), length.out = n)))
  part <- frame[rows, , drop = FALSE]
  attr(part, "terms") <- terms
  x <- sparse_design_matrix(terms, part)$x
  length(x@x) <= most * nrow(x) * ncol(x)
}

# The same as design_matrix(), of which zeros are never made.
sparse_design_matrix <- function(terms, frame) {
  is_text <- vapply(frame, is.character, TRUE)
  frame[is_text] <- lapply(frame[is_text], factor)
  attr(frame, "terms") <- terms
  x <- Matrix::sparse.model.matrix(terms, frame, row.names = FALSE)
  x <- name_smooths(x, terms)
  list(x = plain_columns(x), contrasts = attr(x, "contrasts"))
}

# Without what was attached to it.
plain_columns <- function(x) {
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  as_columns(x)
}

# An identifier among the covariates can ask for more columns than there is
# memory for, and the system then ends R without a word.
# Contrasts take the square of the levels, with few rows most of it.
check_design_size <- function(terms, frame, hint = NULL) {
  free <- free_memory()
  width <- design_width(terms, frame)
  response <- attr(terms, "response")
  levels <- n_levels(frame[setdiff(seq_along(frame), response)])
  bytes <- 8 * nrow(frame) * sum(width)
  contrasts <- 8 * sum(levels^2)
  if (is.na(free) || max(bytes, contrasts) <= free) {
    return(invisible())
  }
  widest <- names(width)[[which.max(width)]]
  what <- "design matrix takes"
  if (contrasts > bytes) {
    bytes <- contrasts
    what <- "contrasts of its factors take"
  }
  abort_tall(
    "memory",
    c(
      "The {what} {format_bytes(bytes)}, and memory has {format_bytes(free)}.",
      x = "{.code {widest}} has {count_noun(max(width), 'column')}.",
      i = hint,
      i = "Of numbers and outcomes of two kinds, {.fn tall_glmer} takes
           {.code (1 | group)}."
    ),
    argument = "formula",
    value = bytes,
    expected = free
  )
}

# Of each column of a frame, 0: it has none.
n_levels <- function(frame) {
  vapply(frame, function(x) {
    if (is.factor(x)) {
      nlevels(x)
    } else if (is.character(x)) {
      length(unique(x))
    } else {
      0
    }
  }, 0)
}

# About how many columns each term has.
design_width <- function(terms, frame) {
  own <- n_levels(frame)
  none <- own == 0
  own[none] <- vapply(frame[none], NCOL, 0)
  is_level <- vapply(frame, function(x) is.factor(x) || is.character(x), TRUE)
  factors <- attr(terms, "factors")
  if (length(factors) == 0) {
    return(c("1" = 1))
  }
  # its rows are the first columns of the frame; 1: contrasts of the levels
  apply(factors, 2, function(part) {
    is_in <- which(part > 0)
    prod(pmax(own[is_in] - (is_level[is_in] & part[is_in] == 1), 1))
  })
}

# Of the formula of a fit, or what will be one, and rows in its terms.
source_design <- function(source, terms, frame) {
  if (!isTRUE(source$sparse)) {
    x <- stats::model.matrix(terms, frame, contrasts.arg = source$contrasts)
    return(name_smooths(x, terms))
  }
  x <- plain_columns(Matrix::sparse.model.matrix(
    terms,
    frame,
    contrasts.arg = source$contrasts
  ))
  x <- name_smooths(x, terms)
  # a level that is missing is no level there, and the row would be another's
  own <- setdiff(names(frame), c("(weights)", "(offset)"))
  missing <- !stats::complete.cases(frame[own])
  if (any(missing)) {
    x[missing, 1] <- NA
  }
  x
}

# model.matrix() by blocks of rows: its row names and its copies are then those
# of a block. What depends on all rows (levels, bases of poly() or splines) is
# in the frame already, except the levels of character columns.
design_matrix <- function(terms, frame, hint = NULL, size = 2^20) {
  check_design_size(terms, frame, hint)
  is_text <- vapply(frame, is.character, TRUE)
  frame[is_text] <- lapply(frame[is_text], factor)
  n <- nrow(frame)
  # most columns of a design are single columns of the frame
  n_block <- max(1, floor(size / max(1, length(frame))))
  block_at <- function(first) {
    rows <- seq(first, min(n, first + n_block - 1))
    block <- frame[rows, , drop = FALSE]
    # without them model.matrix() would evaluate the formula anew
    attr(block, "terms") <- terms
    name_smooths(stats::model.matrix(terms, block), terms)
  }
  block <- block_at(1)
  contrasts <- attr(block, "contrasts")
  x <- matrix(0, n, ncol(block), dimnames = list(NULL, colnames(block)))
  x[seq_len(nrow(block)), ] <- block
  for (first in seq_len(ceiling(n / n_block) - 1) * n_block + 1) {
    block <- block_at(first)
    x[seq(first, length.out = nrow(block)), ] <- block
  }
  list(x = x, contrasts = contrasts)
}

# Factors vary and nothing is missing: after model.matrix() one could no longer
# name the variable.
check_covariates <- function(frame) {
  response <- attr(attr(frame, "terms"), "response")
  own <- names(frame) %in% c("(weights)", "(offset)")
  for (k in setdiff(seq_along(frame)[!own], response)) {
    column <- frame[[k]]
    name <- names(frame)[[k]]
    if (is.character(column)) {
      column <- factor(column)
    }
    check_covariate_type(column, name)
    is_plain <- is_plain_numeric(column)
    is_whole <- if (is_plain) {
      all_finite(column, most_of_data)
    } else {
      !anyNA(column)
    }
    if (!is_whole) {
      abort_covariate(column, is_plain, name, frame)
    }
    if (is.factor(column) && nlevels(column) < 2) {
      abort_input(
        "{.arg {name}} must have at least two levels, not
         {nlevels(column)} ({.val {levels(column)}}).",
        argument = name,
        expected = 2,
        value = nlevels(column)
      )
    }
  }
}

# The first value that cannot be.
abort_covariate <- function(column, is_plain, name, frame) {
  bad <- if (is_plain) {
    first_nonfinite(column, most_of_data)
  } else {
    which(is.na(column))[[1]]
  }
  # rows as `data` numbers them: some may have been left out
  row <- attr(frame, "row.names")[[(bad - 1) %% nrow(frame) + 1]]
  where <- paste("row", if (is.numeric(row)) format_count(row) else row)
  if (is_plain) {
    abort_number(column, bad, arg = name, where = where)
  }
  abort_value(column, bad, "not be missing", name, where)
}

# model.matrix() takes no others.
check_covariate_type <- function(column, name) {
  if (typeof(column) %in% c("complex", "raw", "list")) {
    expected <- "numeric, logical, text or a factor"
    seen <- describe(unclass(column))
    abort_expected(column, expected, seen = seen, arg = name)
  }
}

# model.response() gives every value a name, and so a copy.
left_side <- function(frame) {
  at <- attr(attr(frame, "terms"), "response")
  if (at > 0 && is.null(dim(frame[[at]]))) {
    return(frame[[at]])
  }
  stats::model.response(frame, "any")
}

# list(values, levels, trials), as stats::glm: a factor or logical is 0 at its
# first level; cbind(successes, failures) is a proportion of trials. as_double:
# of frame_sides().
frame_response <- function(response, family, name, as_double = TRUE) {
  takes_trials <- has_trials(family)
  levels <- NULL
  if (response_facts(family)$n_y > 1) {
    values <- limits_response(response, name)
    return(list(values = values, levels = NULL, trials = NULL))
  }
  if (is.matrix(response)) {
    return(counts_response(response, takes_trials, name))
  }
  if (takes_trials && is.factor(response)) {
    levels <- levels(response)
    if (length(levels) != 2) {
      abort_input(
        "{.arg {name}} must have two levels, not {length(levels)}.",
        argument = name,
        expected = 2,
        value = length(levels)
      )
    }
    response <- response == levels[[2]]
  }
  if (!is.numeric(response) && !is.logical(response)) {
    expected <- paste0(
      "numeric",
      if (takes_trials) ", logical or a factor with two levels"
    )
    hint <- if (is.character(response) && takes_trials) {
      "Make it a factor with `factor()`."
    }
    abort_expected(response, expected, hint, arg = name)
  }
  stays <- !as_double && is.null(attributes(response))
  list(
    values = if (stays) response else as.double(response),
    levels = levels,
    trials = NULL
  )
}

# Proportions are of whole numbers of trials and of successes, up to the
# rounding that stats::glm() lets pass. rows: their names, where some were left
# out.
check_successes <- function(y, trials, family, name, rows = NULL) {
  # the usual case, without memory
  is_binary <- !find_response(family)$takes_proportions || !is.double(y) ||
    first_outside(y, family, size = 1) == 0
  # what is no proportion is refused elsewhere
  if (is_binary || !are_proportions(y, family) || any(y < 0 | y > 1)) {
    return(invisible())
  }
  n <- rep_len(trials %||% 1, length(y))
  is_whole <- function(x) abs(x - round(x)) <= 1e-3
  bad <- which(!(is_whole(n) & is_whole(n * y)))
  if (length(bad) == 0) {
    return(invisible())
  }
  at <- bad[[1]]
  place <- paste("row", if (is.null(rows)) format_count(at) else rows[[at]])
  abort_input(
    c(
      if (is.null(trials)) {
        "{.arg {name}} must be 0 or 1 where there are no trials, but {place} is
         {format_number(y[[at]])}."
      } else if (is_whole(n[[at]])) {
        "{.arg {name}} times the trials in {.arg weights} must be whole numbers
         of successes, but {place} has {format_number(y[[at]])} x
         {format_number(n[[at]])} = {format_number(y[[at]] * n[[at]])}."
      } else {
        "{.arg weights} are trials where {.arg {name}} is a proportion, and must
         be whole, but {place} has {format_number(n[[at]])}."
      },
      i = "Give the number of trials as {.arg weights}, or the counts as
           {.code cbind(successes, failures)}. A share of something else than
           trials is for {.fn model_custom}."
    ),
    argument = if (is_whole(n[[at]])) name else "weights",
    value = y[[at]],
    index = at
  )
}

# cbind(successes, failures)
counts_response <- function(response, takes_trials, name) {
  if (!takes_trials || ncol(response) != 2 || !is.numeric(response)) {
    abort_expected(
      response,
      if (takes_trials) {
        "a vector or cbind(successes, failures)"
      } else {
        "a numeric vector"
      },
      arg = name
    )
  }
  storage.mode(response) <- "double"
  check_finite(response, most_of_data, arg = name)
  bad <- which(response < 0 | response != round(response))
  if (length(bad) > 0) {
    abort_value(response, bad[[1]], "be a count", arg = name)
  }
  trials <- rowSums(response)
  if (any(trials == 0)) {
    abort_value(
      trials,
      which(trials == 0)[[1]],
      "have at least one trial in each row",
      arg = name
    )
  }
  list(values = response[, 1] / trials, levels = NULL, trials = trials)
}

# Weights of the likelihood: those given times the trials.
frame_weights <- function(frame, trials) {
  weights <- stats::model.weights(frame)
  if (is.null(trials)) {
    weights
  } else if (is.null(weights)) {
    trials
  } else {
    weights * trials
  }
}

are_proportions <- function(y, family) {
  find_response(family)$takes_proportions && is.double(y) &&
    first_outside(y, family, size = 1) > 0 &&
    any(y > 0 & y < 1, na.rm = TRUE)
}
