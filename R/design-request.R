# What a formula asks of the rows of a source: which columns, and how response,
# weights, offset and the rows that count come out of a block of them.

# expressions: list(weights, subset, offset), language or NULL, of data and the
# formula's environment. names: those of the source's columns. fails: is a
# missing value an error? pads: are rows left out NA in what a fit predicts?
new_request <- function(
  formula,
  names,
  family,
  expressions = list(),
  fails = FALSE,
  pads = FALSE
) {
  check_terms(formula)
  empty <- stats::setNames(rep(list(numeric()), length(names)), names)
  # a `.` stands for the columns
  formula <- stats::formula(stats::terms(formula, data = frame_of(empty, 0)))
  terms <- stats::terms(formula)
  if (attr(terms, "response") == 0) {
    abort_no_response()
  }
  variables <- as.list(attr(terms, "variables"))[-1]
  wanted <- unique(c(
    all.vars(formula),
    unlist(lapply(expressions, all.vars))
  ))
  check_columns_once(names, wanted)
  structure(
    list(
      formula = formula,
      env = environment(formula),
      terms = terms,
      family = family,
      response = variables[[1]],
      response_name = deparse1(variables[[1]]),
      covariates = variables[-c(1, attr(terms, "offset"))],
      offsets = c(variables[attr(terms, "offset")], list(expressions$offset)),
      weights = expressions$weights,
      subset = expressions$subset,
      columns = intersect(wanted, names),
      known = names,
      fails = fails,
      pads = pads
    ),
    class = "tall_request"
  )
}

request_expressions <- function(request) {
  Filter(is.language, c(
    request$response,
    request$covariates,
    request$offsets,
    request$weights,
    request$subset
  ))
}

# ---- of a block --------------------------------------------------------------

# The rows of some columns, as a list.
block_slice <- function(block, names) {
  lapply(stats::setNames(nm = names), function(name) {
    slice_rows(block$columns[[name]], block$first, block$n)
  })
}

slice_rows <- function(x, first, n) {
  if (NROW(x) == n) {
    return(x)
  }
  rows <- seq.int(first + 1, length.out = n)
  if (is.matrix(x)) x[rows, , drop = FALSE] else x[rows]
}

# What is asked needs all rows at once: who has them at hand takes this
# condition, and there is no error.
not_in_blocks <- function() {
  rlang::signal("", class = "tall_not_in_blocks")
}

# Are there variables beside the data with a value for each of its n rows?
has_rows_beside <- function(request, n) {
  used <- unique(unlist(lapply(request_expressions(request), all.vars)))
  is_beside <- function(name) NROW(get0(name, request$env)) %in% n
  any(vapply(setdiff(used, request$columns), is_beside, TRUE))
}

# The value of an expression in the rows of a block: one for each row, or an
# error that says what of tall_glm() it is.
block_eval <- function(request, block, expression, what) {
  names <- intersect(all.vars(expression), request$columns)
  check_outside(request, block, expression, what)
  value <- tryCatch(
    eval(expression, block_slice(block, names), request$env),
    error = function(e) {
      if (inherits(e, "tall_error")) {
        rlang::cnd_signal(e)
      }
      expressions <- stats::setNames(list(expression), what)
      check_variable_there(e, expressions, request$known, request$env)
      abort_input(
        "{.arg {what}} cannot be evaluated: {.code {deparse1(expression)}}.",
        argument = what,
        parent = e
      )
    }
  )
  if (NROW(value) == 1 && block$n != 1 && is.atomic(value)) {
    value <- rep(value, block$n)
  }
  if (NROW(value) != block$n) {
    not_in_blocks()
    abort_input(
      c(
        "{.arg {what}} must have a value for each row, and
         {.code {deparse1(expression)}} has {NROW(value)} for
         {count_noun(block$n, 'row')}.",
        i = "Variables that are not in {.arg data} must be single values here."
      ),
      argument = what
    )
  }
  value
}

# A vector that is no column would be taken for the rows of this block.
check_outside <- function(request, block, expression, what) {
  for (name in setdiff(all.vars(expression), request$columns)) {
    if (block$n > 1 && NROW(get0(name, request$env)) == block$n) {
      not_in_blocks()
      abort_input(
        c(
          "{.arg {what}} uses {.code {name}}, which is no column of
           {.arg data}.",
          i = "Rows are read in blocks: make it a column."
        ),
        argument = what
      )
    }
  }
}

# block_response() for a pass: what lies in a column as it is wanted is left
# there, y a list(values, first).
pass_response <- function(request, block, levels) {
  plain_response(request, block) %||%
    block_response(request, block, levels)
}

# NULL: rows may be left out, or refused, or the response is no column of
# numbers.
plain_response <- function(request, block) {
  others <- c(request$weights, request$subset, request$offsets)
  values <- if (is.name(request$response)) {
    block$columns[[as.character(request$response)]]
  }
  is_plain <- (is.numeric(values) || is.logical(values)) &&
    !is.object(values) && is.null(dim(values))
  if (!all(vapply(others, is.null, TRUE)) || !is_plain) {
    return(NULL)
  }
  entry <- find_response(request$family)
  size <- if (entry$takes_proportions) 1 else entry$size
  bad <- first_outside(values, request$family, size, block$first, block$n)
  if (bad > 0) {
    return(NULL)
  }
  list(y = list(values = values, first = block$first), n_missing = 0)
}

# list(y, weights, offset, keep, trials, n_missing) of a block's rows: y as the
# core takes it, weights of the likelihood (trials or precisions) and offset or
# NULL, keep or NULL: those that count. levels: of a response that is a factor,
# NA: not known yet, y is not wanted then.
block_response <- function(request, block, levels = NULL) {
  response <- block_eval(
    request,
    block,
    request$response,
    request$response_name
  )
  weights <- block_number(request, block, request$weights, "weights")
  offset <- block_offset(request, block)
  keep <- block_subset(request, block)
  is_there <- stats::complete.cases(response)
  if (!is.null(weights)) {
    is_there <- is_there & !is.na(weights)
    check_block_weights(weights, block)
    keep <- and_rows(keep, weights > 0 | is.na(weights))
  }
  if (!is.null(offset)) {
    is_there <- is_there & !is.na(offset)
  }
  if (is.matrix(response) && ncol(response) == 2) {
    keep <- and_rows(keep, !(rowSums(response) %in% 0))
  }
  n_missing <- sum(!is_there & (keep %||% TRUE))
  if (request$fails && n_missing > 0) {
    abort_missing_row(request, block, which(!is_there)[[1]])
  }
  if (n_missing > 0) {
    keep <- and_rows(keep, is_there)
  }
  found <- block_values_of_response(
    response,
    keep,
    weights,
    request,
    block,
    levels
  )
  if (!is.null(found$trials)) {
    weights <- found$trials * (weights %||% 1)
  }
  list(
    y = found$values,
    weights = weights,
    offset = offset,
    keep = keep,
    trials = found$trials,
    n_missing = n_missing
  )
}

and_rows <- function(keep, more) {
  more <- more & !is.na(more)
  if (is.null(keep)) {
    if (all(more)) NULL else more
  } else {
    keep & more
  }
}

block_number <- function(request, block, expression, what) {
  if (is.null(expression)) {
    return(NULL)
  }
  value <- block_eval(request, block, expression, what)
  if (is.null(value)) {
    return(NULL)
  }
  if (!is_plain_numeric(value) && !is.logical(value)) {
    abort_input(
      "{.arg {what}} must be a numeric vector with a value for each row of
       {.arg data}, not {describe(value)}.",
      argument = what
    )
  }
  as.double(value)
}

block_offset <- function(request, block) {
  total <- NULL
  for (expression in request$offsets) {
    one <- block_number(request, block, expression, "offset")
    if (!is.null(one)) {
      total <- if (is.null(total)) one else total + one
    }
  }
  total
}

block_subset <- function(request, block) {
  if (is.null(request$subset)) {
    return(NULL)
  }
  value <- block_eval(request, block, request$subset, "subset")
  if (!is.logical(value)) {
    not_in_blocks()
    abort_input(
      "{.arg subset} must be TRUE or FALSE for each row of {.arg data} where
       there are so many, not {describe(value)}.",
      argument = "subset",
      value = value
    )
  }
  and_rows(NULL, value)
}

# The response of the rows that count; others are 0.
block_values_of_response <- function(
  response,
  keep,
  weights,
  request,
  block,
  levels
) {
  name <- request$response_name
  family <- request$family
  none <- zero_values(block$n, response_facts(family)$n_y)
  if (is.factor(response)) {
    if (identical(levels, NA)) {
      return(list(values = none, trials = NULL))
    }
    response <- factor(response, levels = levels)
  }
  if (!is.null(keep)) {
    response <- select_rows(response, keep)
    weights <- weights[keep]
  }
  if (NROW(response) == 0) {
    return(list(values = none, trials = NULL))
  }
  rows <- if (is.null(keep)) seq_len(block$n) else which(keep)
  rows <- block$row - 1 + rows
  found <- if (is.null(request$likelihood)) {
    frame_response(response, family, name)
  } else {
    network_response(response, request$likelihood, name)
  }
  if (is.null(found$trials)) {
    check_successes(found$values, weights, family, name, rows)
  }
  bad <- first_outside(found$values, family)
  if (bad > 0) {
    where <- paste("row", format_count(rows[[bad]]))
    abort_outside(found$values, bad, family, name, where)
  }
  spread <- function(x) {
    if (is.null(x) || is.null(keep)) {
      return(x)
    }
    out <- zero_values(block$n, NCOL(x))
    if (is.matrix(x)) {
      out[keep, ] <- x
    } else {
      out[keep] <- x
    }
    out
  }
  list(values = spread(found$values), trials = spread(found$trials))
}

check_block_weights <- function(weights, block) {
  bad <- which(weights < 0 | weights > most_of_data)
  if (length(bad) > 0) {
    abort_value(
      weights,
      bad[[1]],
      paste("be at least 0 and at most", format_number(most_of_data)),
      arg = "weights",
      where = paste("row", format_count(block$row - 1 + bad[[1]]))
    )
  }
}

abort_missing_row <- function(request, block, at) {
  row <- format_count(block$row - 1 + at)
  abort_input(
    c(
      "{.arg data} has missing values, first in row {row}.",
      i = "{.code na.action = na.omit} leaves such rows out."
    ),
    argument = "data",
    value = block$row - 1 + at
  )
}
