# A design by cells: what databases compute of it is of its numeric variables
# alone, by the levels of its factors.
#
# A column of a design is a number by levels times a product of numeric
# variables, its *part*:
#
#   x_j = f_j(levels) p_a(numbers),   a the column's part; p_1 = 1.
#
# A *cell* is a combination of levels that rows have. Sums of products of
# columns over rows are sums over cells of products of f, with weights that are
# sums of products of parts: a GROUP BY of the factors has all that is needed.
# Parts are taken about centres, p_a = centre_a + u_a, as sums of products of
# numbers far from zero lose their digits; centre_1 is 1, and u_1 nothing.
#
# list:
#   columns  of each column list(part, factors, values): numbers of the
#            variables that are factors, and f by level of each
#   parts    list of the variables that are multiplied; the first has none
#   centre   by part
#   factors  every factor, and the levels of each by its number
#   levels
#   shift    means of the pilot's columns, and of its response less the offset

# NULL pilot: centres are 0, and there is no shift. As rows_of_pilot() has it.
cells_of_design <- function(s, design, pilot = NULL) {
  columns <- design_operands(s, design)
  of_part <- lapply(columns, function(operands) {
    is_number <- vapply(operands, function(o) is.null(o$values), TRUE)
    sort(vapply(operands[is_number], `[[`, 1L, "variable"))
  })
  parts <- unique(c(list(integer()), of_part))
  part <- match(of_part, parts)
  columns <- Map(column_by_levels, columns, part)
  factors <- sort(unique(unlist(lapply(columns, `[[`, "factors"))))
  levels <- lapply(names(s$variables)[factors], levels_in_sql, design = design)
  names(levels) <- factors
  out <- list(
    columns = columns,
    part = part,
    parts = parts,
    factors = as.integer(factors),
    levels = levels,
    centre = replace(numeric(length(parts)), 1, 1)
  )
  if (!is.null(pilot)) {
    w <- pilot$weights / sum(pilot$weights)
    y <- pilot$y - (pilot$offset %||% 0)
    out$shift <- c(colSums(pilot$x * w), sum(y * w))
    out$centre[-1] <- vapply(seq_along(parts)[-1], function(a) {
      own <- which(part == a)
      alone <- own[lengths(lapply(columns[own], `[[`, "factors")) == 0]
      sum(out$shift[if (length(alone) > 0) alone[[1]] else own])
    }, 0)
  }
  out
}

# Of each column what is multiplied: list(variable, values by level or NULL).
design_operands <- function(s, design) {
  program <- design$program
  place <- match(vapply(design$variables, `[[`, "", "name"), names(s$variables))
  lapply(seq_along(design$columns), function(j) {
    at <- seq.int(program$start[[j]] + 1, length.out =
      program$start[[j + 1]] - program$start[[j]])
    operands <- lapply(at, function(k) {
      v <- program$variable[[k]] + 1
      smooth <- design$variables[[v]]$smooth
      if (!is.null(smooth)) {
        return(smooth_operands(s, design, smooth, program$at[[k]] + 1))
      }
      size <- program$size[[v]]
      list(list(
        variable = place[[v]],
        values = if (size > 0) program$table[program$at[[k]] + seq_len(size)]
      ))
    })
    unlist(operands, recursive = FALSE)
  })
}

column_by_levels <- function(operands, part) {
  own <- Filter(function(o) !is.null(o$values), operands)
  factors <- vapply(own, `[[`, 1L, "variable")
  order <- order(factors)
  list(
    part = part,
    factors = factors[order],
    values = lapply(own[order], `[[`, "values")
  )
}

# Is a part that of columns without a factor alone?
parts_without_factor <- function(cells) {
  has_factor <- lengths(lapply(cells$columns, `[[`, "factors")) > 0
  !seq_along(cells$parts) %in% cells$part[has_factor]
}

# ---- sums over cells ---------------------------------------------------------

# f of each column in n cells, whose levels are given as codes by factor.
values_by_cell <- function(cells, n, codes) {
  out <- vapply(cells$columns, function(column) {
    value <- rep(1, n)
    for (k in seq_along(column$factors)) {
      own <- codes[[as.character(column$factors[[k]])]]
      value <- value * column$values[[k]][own]
    }
    value
  }, numeric(n))
  matrix(out, n)
}

# Columns less `shift` in cells, as sums of coefficients times u by part, u_1
# being 1: list by part of list(at, x), the columns that have it, and
# coefficients by cell.
columns_in_parts <- function(cells, f, shift = numeric(ncol(f))) {
  n <- nrow(f)
  constant <- f * rep(cells$centre[cells$part], each = n)
  first <- constant - rep(shift, each = n)
  others <- lapply(seq_along(cells$parts)[-1], function(a) {
    at <- which(cells$part == a)
    list(at = at, x = f[, at, drop = FALSE])
  })
  c(list(list(at = seq_len(ncol(f)), x = first)), others)
}

# Sums of columns. sums: by cell, a column for each part.
sums_of_columns <- function(pieces, sums) {
  out <- numeric(ncol(pieces[[1]]$x))
  for (a in seq_along(pieces)) {
    own <- pieces[[a]]
    out[own$at] <- out[own$at] + drop(crossprod(own$x, sums[, a]))
  }
  out
}

# Of their products. sums: by cell, a column for each two parts, see
# pairs_of_parts().
products_of_columns <- function(pieces, sums) {
  d <- ncol(pieces[[1]]$x)
  out <- matrix(0, d, d)
  pairs <- pairs_of_parts(length(pieces))
  for (k in seq_len(nrow(pairs))) {
    a <- pieces[[pairs[k, 1]]]
    b <- pieces[[pairs[k, 2]]]
    here <- crossprod(a$x, sums[, k] * b$x)
    out[a$at, b$at] <- out[a$at, b$at] + here
    if (pairs[k, 1] != pairs[k, 2]) {
      out[b$at, a$at] <- out[b$at, a$at] + t(here)
    }
  }
  (out + t(out)) / 2
}

# Sums of their squares; sums: as before, of which those of a part with itself
# and with the first are looked at.
squares_of_columns <- function(pieces, sums) {
  pairs <- pairs_of_parts(length(pieces))
  out <- numeric(ncol(pieces[[1]]$x))
  for (a in seq_along(pieces)) {
    own <- pieces[[a]]
    square <- which(pairs[, 1] == a & pairs[, 2] == a)
    here <- colSums(own$x^2 * sums[, square])
    if (a > 1) {
      with_first <- which(pairs[, 1] == 1 & pairs[, 2] == a)
      first <- pieces[[1]]$x[, own$at, drop = FALSE]
      here <- here + 2 * colSums(first * own$x * sums[, with_first])
    }
    out[own$at] <- out[own$at] + here
  }
  out
}

# Every two of n parts, the first not after the second.
pairs_of_parts <- function(n) {
  unname(which(upper.tri(diag(n), diag = TRUE), arr.ind = TRUE))
}

# ---- numbers by levels -------------------------------------------------------

# W x as a sum of terms, each a part's u times numbers by the levels of some
# factors: list(parts, factors, table), of one part and a column of the table
# for each combination of levels, the first factor varying fastest.
terms_by_levels <- function(cells, w) {
  terms <- list()
  add <- function(part, factors, table) {
    key <- paste(part, paste(factors, collapse = " "), sep = ":")
    known <- terms[[key]]$table
    table <- if (is.null(known)) table else known + table
    terms[[key]] <<- list(parts = part, factors = factors, table = table)
  }
  for (j in seq_along(cells$columns)) {
    column <- cells$columns[[j]]
    f <- Reduce(function(a, b) as.vector(outer(a, b)), column$values, 1)
    table <- outer(w[, j], f)
    add(1L, column$factors, cells$centre[[column$part]] * table)
    if (column$part > 1) {
      add(column$part, column$factors, table)
    }
  }
  unname(terms)
}

# ||W x||^2 as such a sum: list(parts, factors, table), of two parts and a
# table of one row.
square_by_levels <- function(cells, w) {
  terms <- terms_by_levels(cells, w)
  out <- list()
  pairs <- pairs_of_parts(length(terms))
  for (k in seq_len(nrow(pairs))) {
    a <- terms[[pairs[k, 1]]]
    b <- terms[[pairs[k, 2]]]
    factors <- sort(union(a$factors, b$factors))
    sizes <- lengths(cells$levels[as.character(factors)])
    codes <- do.call(expand.grid, lapply(unname(sizes), seq_len))
    at <- function(term) {
      own <- match(term$factors, factors)
      step <- cumprod(c(1, sizes[own]))
      out <- rep(1, max(1, prod(sizes)))
      for (i in seq_along(own)) {
        out <- out + (codes[[own[[i]]]] - 1) * step[[i]]
      }
      out
    }
    table <- colSums(
      a$table[, at(a), drop = FALSE] * b$table[, at(b), drop = FALSE]
    )
    twice <- if (pairs[k, 1] == pairs[k, 2]) 1 else 2
    parts <- sort(c(a$parts, b$parts))
    key <- paste(c(parts, "by", factors), collapse = " ")
    known <- out[[key]]$table %||% 0
    out[[key]] <- list(
      parts = parts,
      factors = factors,
      table = known + twice * rbind(table, deparse.level = 0)
    )
  }
  unname(out)
}
