# Averages by an expansion around the posterior mean, see R/fit-average.R, of
# functions of few predictors, see R/fit-average-functions.R.
#
# A cell is a set of changed variables, a group of rows and a part of what is
# averaged, a(eta_1, ..., eta_m) of predictors eta_j = x_j^T theta_j. Of each
# the pass keeps, theta being all theta_j one after the other,
#
#   value   the sum of w_i a_i
#   first   that of its gradient: blocks of w_i a_j x_ij
#   second  that of its Hessian: blocks of w_i a_jk x_ij x_ik^T
#
# and of each group some rows, drawn at random, for what is left out, see
# R/fit-average-sample.R.

expansion_pass <- function(request, plan, draws) {
  expansion <- expansion_of(request$fit, request)
  groups <- average_groups(request$by)
  centre <- colMeans(expansion$theta(draws))
  cells <- list()
  sample <- average_reservoir()
  add <- function(block) {
    of <- groups$of(block)
    chosen <- sample$choose(of)
    rows_of <- changed_rows(request, block$data)
    for (s in seq_along(plan$sets)) {
      rows <- rows_of(plan$sets[[s]])
      blocks <- expansion$blocks(rows)
      slopes <- expand_rows(expansion, blocks, centre)
      for (g in unique(of)) {
        key <- paste(s, g)
        own <- if (any(of != g)) which(of == g)
        cells[[key]] <<- add_cells(
          cells[[key]],
          expansion$parts,
          if (is.null(own)) blocks else some_of_blocks(blocks, own),
          if (is.null(own)) slopes else select_nested(slopes, own),
          if (is.null(own)) block$weight else block$weight[own]
        )
      }
      sample$keep(s, chosen, rows, slopes, block$weight)
    }
  }
  finish <- function() {
    expanded_averages(request, expansion, draws, list(
      groups = groups,
      cells = function(set, g) cells[[paste(set, g)]],
      sample = sample$rows
    ))
  }
  list(add = add, finish = finish)
}

# list(groups, estimate) as of average_rows(). summed: list(groups, of
# average_groups(); cells(set, g), sums of each part; sample(set, g), rows as of
# average_reservoir()$rows()).
expanded_averages <- function(request, expansion, draws, summed) {
  weights <- summed$groups$weights()
  at <- summed$groups$order()
  theta <- expansion$theta(draws)
  away <- theta - rep(colMeans(theta), each = nrow(theta))
  # those of the last two sets, which slopes share
  known <- list()
  parts_of <- function(set, g) {
    key <- paste(set, g)
    if (is.null(known[[key]])) {
      known[[key]] <<- make_parts(set, g)
      known <<- utils::tail(known, 2)
    }
    known[[key]]
  }
  make_parts <- function(set, g) {
    cells <- summed$cells(set, g)
    kept <- summed$sample(set, g)
    rest <- remainder_draws(request, expansion, kept, draws, away)
    lapply(seq_along(rest), function(k) {
      of <- part_columns(expansion, k)
      list(
        value = cell_draws(cells[[k]], away[, of, drop = FALSE]) / weights[[g]],
        rest = rest[[k]],
        weight = kept$weight / sum(kept$weight),
        share = kept$share
      )
    })
  }
  # the last one, which slopes share, too
  key <- found <- NULL
  list(
    groups = summed$groups$table()[at, , drop = FALSE],
    estimate = function(estimand, g, k) {
      own <- list(g, k, estimand[c("low", "high", "unit", "comparison")])
      if (!identical(own, key)) {
        key <<- own
        found <<- expand_estimand(
          estimand,
          function(set) parts_of(set, at[[g]])[[k]]
        )
      }
      times <- coefficient_draws(estimand, draws$theta)
      list(
        value = found$value * times,
        error = found$error * sqrt(mean(times^2))
      )
    }
  )
}

# The slopes of each part, see R/fit-average-differences.R.
expand_rows <- function(expansion, blocks, centre) {
  eta <- Map(function(block, columns) {
    as.numeric(block$x %*% centre[columns]) + block$offset
  }, blocks, expansion$columns)
  lapply(expansion$parts, function(part) part$slopes(eta[part$of]))
}

# Coordinates that a part depends on, in the order of its cells.
part_columns <- function(expansion, k) {
  unlist(expansion$columns[expansion$parts[[k]]$of])
}

some_of_blocks <- function(blocks, at) {
  lapply(blocks, function(block) list(x = design_rows(block$x, at)))
}

# ---- cells -------------------------------------------------------------------

# Those of all parts, with these rows. cells: NULL: there were none yet.
add_cells <- function(cells, parts, blocks, slopes, weight) {
  lapply(seq_along(parts), function(k) {
    part <- parts[[k]]
    x <- lapply(blocks[part$of], `[[`, "x")
    new <- new_cell(x, part$pairs, slopes[[k]], weight)
    if (is.null(cells)) new else Map(`+`, cells[[k]], new)
  })
}

# x: designs of the predictors.
new_cell <- function(x, pairs, slopes, weight) {
  places <- split(
    seq_len(sum(vapply(x, ncol, 0L))),
    rep(seq_along(x), vapply(x, ncol, 0L))
  )
  first <- lapply(seq_along(x), function(j) {
    as.numeric(design_product(x[[j]], weight * slopes$first[, j]))
  })
  size <- length(unlist(places))
  second <- matrix(0, size, size)
  for (p in seq_len(nrow(pairs))) {
    j <- pairs[p, 1]
    k <- pairs[p, 2]
    weighed <- x[[k]] * (weight * slopes$second[, p])
    own <- as.matrix(design_product(x[[j]], weighed))
    second[places[[j]], places[[k]]] <- own
    second[places[[k]], places[[j]]] <- t(own)
  }
  list(
    value = sum(weight * slopes$value),
    first = unlist(first),
    second = second
  )
}

design_product <- function(x, y) {
  product <- if (is_sparse(x) || is_sparse(y)) Matrix::crossprod else crossprod
  product(x, y)
}

# What the cell's sums are at draws, which are `away` from the centre.
cell_draws <- function(cell, away) {
  cell$value + drop(away %*% cell$first) +
    rowSums((away %*% cell$second) * away) / 2
}

# ---- what is left out --------------------------------------------------------

# Of each part draws x kept rows.
remainder_draws <- function(request, expansion, kept, draws, away) {
  exact <- average_values(request, kept$rows, draws)
  n_draw <- nrow(away)
  size <- length(exact) / n_draw / length(expansion$parts)
  dim(exact) <- c(n_draw, size, length(expansion$parts))
  moved <- Map(function(block, columns) {
    tcrossprod(away[, columns, drop = FALSE], as.matrix(block$x))
  }, expansion$blocks(kept$rows), expansion$columns)
  each <- function(x) rep(x, each = n_draw)
  lapply(seq_along(expansion$parts), function(k) {
    part <- expansion$parts[[k]]
    slopes <- kept$slopes[[k]]
    t <- moved[part$of]
    out <- matrix(exact[, , k], n_draw) - each(slopes$value)
    for (j in seq_along(t)) {
      out <- out - each(slopes$first[, j]) * t[[j]]
    }
    for (p in seq_len(nrow(part$pairs))) {
      j <- part$pairs[p, ]
      half <- if (j[[1]] == j[[2]]) 2 else 1
      out <- out - each(slopes$second[, p] / half) * t[[j[[1]]]] * t[[j[[2]]]]
    }
    out
  })
}

# A draw's value, with the mean of what is left out, and the standard error of
# that. part_of(set): list(value, rest, weight, share).
expand_estimand <- function(estimand, part_of) {
  high <- part_of(estimand$high)
  high$mean <- high$value + drop(high$rest %*% high$weight)
  if (is.null(estimand$low)) {
    return(list(
      value = high$mean,
      error = rest_error(high$rest, high)
    ))
  }
  low <- part_of(estimand$low)
  low$mean <- low$value + drop(low$rest %*% low$weight)
  value <- compare_draws(estimand$comparison, high$mean, low$mean)
  slope_at <- average_comparers[[estimand$comparison]]$slope
  slope <- slope_at(mean(high$mean), mean(low$mean))
  rest <- slope$high * high$rest + slope$low * low$rest
  list(
    value = value / estimand$unit,
    error = rest_error(rest, high) / estimand$unit
  )
}
