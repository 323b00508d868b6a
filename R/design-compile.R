# A formula's terms made into a program by which C writes rows of the design
# matrix from blocks of columns, the same as model.matrix() would.
#
# A design is list(terms, xlevels, contrasts, columns, variables, program,
# whole, response):
#
# * columns: names of the columns of the matrix.
# * variables: those that the program reads, each list(name, expression, column,
#   kind, size, levels, is_logical, table, units, position, smooth):
#   `expression` is of attr(terms, "predvars"); `column` the name of the data's
#   column that it is, or NULL where R has to evaluate it; `size` the number of
#   columns of numbers;
#   `table` the contrasts; `position` its place among the terms' variables;
#   `smooth` what was settled of a smooth term, whose columns C makes itself.
# * program: see src/data/design.h. NULL where model.matrix() does something
#   else; `whole`, which copies a matrix, then takes what that gives of a block.

# frame: a model frame of some rows, whose factors have all their levels.
compile_design <- function(frame, contrasts = NULL) {
  terms <- attr(frame, "terms")
  is_text <- vapply(frame, is.character, TRUE)
  frame[is_text] <- lapply(frame[is_text], factor)
  frame <- design_variables(frame, terms)
  check_design_size(terms, frame)
  x <- stats::model.matrix(terms, frame, contrasts.arg = contrasts)
  x <- name_smooths(x, terms)
  design <- list(
    terms = terms,
    xlevels = stats::.getXlevels(terms, frame),
    contrasts = attr(x, "contrasts"),
    columns = colnames(x),
    variables = list(),
    program = NULL,
    whole = whole_program(ncol(x)),
    response = terms_response(terms)
  )
  factors <- coded_factors(terms, frame)
  used <- which(rowSums(factors > 0) > 0)
  design$variables <- lapply(used, function(k) {
    describe_variable(frame[[k]], k, terms, design$contrasts)
  })
  names(design$variables) <- names(frame)[used]
  is_known <- vapply(design$variables, function(v) v$kind != "other", TRUE)
  if (all(is_known)) {
    factors <- factors[used, , drop = FALSE]
    program <- make_program(design$variables, factors, terms)
    if (program_agrees(program, design, frame, x)) {
      design$program <- program
    }
  }
  structure(design, class = "tall_design")
}

terms_response <- function(terms) {
  if (attr(terms, "response") > 0) {
    deparse1(attr(terms, "variables")[[1 + attr(terms, "response")]])
  }
}

# The variables of the terms alone, in their order: response and offsets, which
# model.matrix() wants there without reading them, are zeros.
design_variables <- function(frame, terms) {
  is_read <- is_design_variable(terms)
  out <- frame[seq_along(is_read)]
  out[!is_read] <- list(double(nrow(frame)))
  attr(out, "terms") <- terms
  out
}

is_design_variable <- function(terms) {
  is_read <- rep(TRUE, length(attr(terms, "variables")) - 1)
  is_read[c(attr(terms, "response"), attr(terms, "offset"))] <- FALSE
  is_read
}

# Which variables a term has: 1 by contrasts, 2 by all levels. Terms of the
# response are dropped; without an intercept the first factor has all its
# levels, both as model.matrix() does it.
coded_factors <- function(terms, frame) {
  factors <- attr(terms, "factors")
  n_variable <- length(attr(terms, "variables")) - 1
  if (length(factors) == 0) {
    return(matrix(0L, n_variable, 0))
  }
  response <- attr(terms, "response")
  if (response > 0) {
    factors[, factors[response, ] > 0] <- 0L
  }
  if (attr(terms, "intercept") == 0) {
    has_levels <- vapply(frame, has_levels, TRUE)
    at <- which(factors > 0 & has_levels[row(factors)])
    factors[at[seq_len(min(1, length(at)))]] <- 2L
  }
  factors
}

has_levels <- function(x) {
  is.factor(x) || is.logical(x)
}

describe_variable <- function(value, k, terms, contrasts) {
  name <- deparse1(attr(terms, "variables")[[k + 1]])
  expression <- (attr(terms, "predvars") %||% attr(terms, "variables"))[[k + 1]]
  out <- list(
    name = name,
    expression = expression,
    column = if (is.name(expression)) as.character(expression),
    kind = variable_kind(value),
    size = NCOL(value),
    levels = if (is.logical(value)) c("FALSE", "TRUE") else levels(value),
    is_logical = is.logical(value),
    table = NULL,
    units = if (inherits(value, "difftime")) units(value),
    position = k,
    smooth = settled_smooth(expression)
  )
  if (out$kind == "levels") {
    out$table <- contrast_table(out$levels, contrasts[[name]])
  }
  out
}

variable_kind <- function(value) {
  if (has_levels(value)) {
    return(if (is.null(dim(value))) "levels" else "other")
  }
  is_numbers <- typeof(value) %in% c("double", "integer") &&
    length(dim(value)) <= 2
  if (is_numbers) "numbers" else "other"
}

# levels x columns. how: as model.matrix() says what it used.
contrast_table <- function(levels, how) {
  if (is.matrix(how)) {
    return(how)
  }
  f <- factor(levels, levels)
  stats::contrasts(f) <- how
  stats::contrasts(f)
}

# ---- the program -------------------------------------------------------------

# factors: rows of these variables, a column for each term.
make_program <- function(variables, factors, terms) {
  tables <- lapply(variables, variable_tables)
  lengths <- vapply(tables, function(t) length(t$contrasts) + length(t$all), 1)
  offset <- cumsum(c(0, lengths))
  columns <- if (attr(terms, "intercept") > 0) list(NULL)
  for (j in seq_len(ncol(factors))) {
    inside <- which(factors[, j] > 0)
    if (length(inside) > 0) {
      parts <- lapply(inside, function(v) {
        coded <- factors[v, j]
        variable_operands(v, variables[[v]], tables[[v]], coded, offset[[v]])
      })
      columns <- c(columns, all_products(parts))
    }
  }
  part <- function(name) as.integer(unlist(lapply(columns, `[[`, name)))
  n_operand <- vapply(columns, function(c) length(c$variable), 1L)
  size <- vapply(
    variables,
    function(v) if (v$kind == "levels") length(v$levels) else -v$size,
    1L
  )
  list(
    start = as.integer(c(0, cumsum(n_operand))),
    variable = part("variable"),
    at = part("at"),
    single = part("single"),
    table = as.double(unlist(tables)),
    size = unname(size)
  )
}

variable_tables <- function(variable) {
  if (variable$kind != "levels") {
    return(list())
  }
  list(
    contrasts = unname(variable$table),
    all = diag(length(variable$levels))
  )
}

# What each column of a variable is, as the program has it: numbers from 0.
variable_operands <- function(v, variable, tables, coded, offset) {
  if (variable$kind != "levels") {
    at <- seq_len(variable$size) - 1
    return(list(variable = v - 1, at = at, single = rep(-1, length(at))))
  }
  if (coded == 2) {
    offset <- offset + length(tables$contrasts)
  }
  table <- if (coded == 2) tables$all else tables$contrasts
  single <- apply(table, 2, function(column) {
    at <- which(column != 0)
    if (length(at) == 1) at - 1 else -1
  })
  at <- offset + (seq_len(ncol(table)) - 1) * nrow(table)
  list(variable = v - 1, at = at, single = single)
}

# The first part varies fastest.
all_products <- function(parts) {
  index <- expand.grid(lapply(parts, function(part) seq_along(part$at)))
  index <- as.matrix(index)
  lapply(seq_len(nrow(index)), function(row) {
    pick <- function(name) {
      vapply(
        seq_along(parts),
        function(k) as.double(parts[[k]][[name]][[index[row, k]]]),
        1
      )
    }
    list(
      variable = vapply(parts, function(part) part$variable, 1),
      at = pick("at"),
      single = pick("single")
    )
  })
}

# Does the program make these rows of model.matrix()?
program_agrees <- function(program, design, frame, x, tolerance = 1e-12) {
  if (length(program$start) != ncol(x) + 1) {
    return(FALSE)
  }
  design$program <- program
  values <- frame_values(design, frame)
  keep <- is.finite(rowSums(x)) & stats::complete.cases(frame)
  chunk <- new_chunk(design, max(1, sum(keep)))
  if (any(keep)) {
    fill_chunk(chunk, design, values, keep = keep)
  }
  if (chunk$fill != sum(keep)) {
    return(FALSE)
  }
  made <- if (any(keep)) chunk$x else chunk$x[0, , drop = FALSE]
  wanted <- if (all(keep)) x else x[keep, , drop = FALSE]
  # mostly they are the same numbers, which is seen at once
  all(made == wanted) || all(abs(made - wanted) <= tolerance * abs(wanted))
}

# ---- terms that look at other rows -------------------------------------------

# The variables of terms as they are to be evaluated on new rows, named as they
# were written; of a smooth term, which is settled, those that it reads.
variable_expressions <- function(terms) {
  names <- vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
  predvars <- attr(terms, "predvars") %||% attr(terms, "variables")
  every <- lapply(as.list(predvars)[-1], function(expression) {
    smooth <- settled_smooth(expression)
    if (is.null(smooth)) {
      return(list(expression))
    }
    lapply(smooth_parts(smooth), `[[`, "expression")
  })
  stats::setNames(unlist(every, recursive = FALSE), rep(names, lengths(every)))
}

# Names of the variables of terms, and of `more` expressions, whose value of a
# row depends on which other rows there are: on these rows and halves of them,
# or in another order, they differ. data: columns of a few rows.
row_dependent <- function(
  terms,
  data,
  env = environment(terms),
  more = list()
) {
  expressions <- c(variable_expressions(terms), more)
  n <- NROW(data[[1]])
  if (n < 2) {
    return(character())
  }
  is_call <- vapply(expressions, is.call, TRUE)
  half <- seq_len(n %/% 2)
  orders <- list(half, setdiff(seq_len(n), half), rev(seq_len(n)), 1L)
  differs <- vapply(
    expressions[is_call],
    function(expression) {
      all <- value_on(expression, data, seq_len(n), env)
      !all(vapply(
        c(orders, largest_rows(all)),
        function(rows) {
          part <- value_on(expression, data, rows, env)
          same_values(select_rows(all, rows), part)
        },
        TRUE
      ))
    },
    TRUE
  )
  names(expressions)[is_call][differs]
}

# Those where a number is largest: ranks and codes of levels are others there.
largest_rows <- function(x) {
  if (!is.numeric(x) || length(dim(x)) == 2 || all(is.na(x))) {
    return(NULL)
  }
  list(which(x == max(x, na.rm = TRUE)))
}

# NULL where it fails, as it may on half of the rows. The generator stays.
value_on <- function(expression, data, rows, env) {
  used <- intersect(all.vars(expression), names(data))
  part <- lapply(data[used], select_rows, rows)
  tryCatch(
    suppressWarnings(with_seed(1, eval(expression, part, env))),
    error = function(e) NULL
  )
}

# Products of matrices may round otherwise where there are fewer rows.
same_values <- function(a, b, tolerance = 1e-8) {
  if (is.null(a) || NROW(a) != NROW(b) || NCOL(a) != NCOL(b)) {
    return(FALSE)
  }
  if (!typeof(a) %in% c("double", "integer") || is.factor(a)) {
    return(identical(as.character(a), as.character(b)))
  }
  a <- unname(as.matrix(unclass(a)))
  b <- unname(as.matrix(unclass(b)))
  is_number <- is.finite(a)
  identical(is_number, is.finite(b)) &&
    all(abs(a - b)[is_number] <= tolerance * max(1e-300, abs(a[is_number])))
}
