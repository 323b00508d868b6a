# Averages by an expansion around the posterior mean, see R/fit-average.R.
#
# A cell is a set of changed variables and a group of rows. Of each the pass
# keeps
#
#   weight  the sum of w_i
#   value   that of w_i a_i
#   first   that of w_i a_i' x_i: n_coef
#   second  that of w_i a_i'' x_i x_i^T: n_coef x n_coef
#
# and of each group some rows, drawn at random, for what is left out, see
# R/fit-average-sample.R.

expansion_pass <- function(request, plan, draws) {
  fit <- request$fit
  groups <- average_groups(request$by)
  at_centre <- centre_draws(draws)
  cells <- list()
  sample <- average_reservoir()
  add <- function(block) {
    of <- groups$of(block)
    chosen <- sample$choose(of)
    rows_of <- changed_rows(request, block$data)
    for (s in seq_along(plan$sets)) {
      rows <- rows_of(plan$sets[[s]])
      slopes <- expand_rows(fit, rows, at_centre, request$type)
      for (g in unique(of)) {
        key <- paste(s, g)
        own <- if (any(of != g)) which(of == g)
        cells[[key]] <<- add_cell(
          cells[[key]],
          if (is.null(own)) rows$x else design_rows(rows$x, own),
          if (is.null(own)) slopes else lapply(slopes, `[`, own),
          if (is.null(own)) block$weight else block$weight[own]
        )
      }
      sample$keep(s, chosen, rows, slopes, block$weight)
    }
  }
  finish <- function() {
    expanded_averages(request, draws, list(
      groups = groups,
      cell = function(set, g) cells[[paste(set, g)]],
      sample = sample$rows
    ))
  }
  list(add = add, finish = finish)
}

# The posterior mean, as draws are.
centre_draws <- function(draws) {
  list(theta = t(colMeans(draws$theta)), aux = NULL, cores = draws$cores)
}

# list(groups, estimate) as of average_rows(). summed: list(groups, of
# average_groups(); cell(set, g), its sums; sample(set, g), rows of it).
expanded_averages <- function(request, draws, summed) {
  weights <- summed$groups$weights()
  at <- summed$groups$order()
  centre <- colMeans(draws$theta)
  away <- draws$theta - rep(centre, each = nrow(draws$theta))
  # those of the last two sets, which slopes share
  known <- list()
  part_of <- function(set, g) {
    key <- paste(set, g)
    if (is.null(known[[key]])) {
      known[[key]] <<- make_part(set, g)
      known <<- utils::tail(known, 2)
    }
    known[[key]]
  }
  make_part <- function(set, g) {
    cell <- summed$cell(set, g)
    kept <- summed$sample(set, g)
    t <- tcrossprod(away, kept$x)
    slopes <- lapply(kept$slopes, rep, each = nrow(away))
    rows <- kept[c("x", "offset")]
    exact <- predictor(request$fit, rows, draws, request$type)
    list(
      value = (cell$value + drop(away %*% cell$first) +
        rowSums((away %*% cell$second) * away) / 2) / weights[[g]],
      rest = matrix(exact, nrow(away)) - slopes$value - slopes$first * t -
        slopes$second * t^2 / 2,
      weight = kept$weight / sum(kept$weight),
      share = kept$share
    )
  }
  # the last one, which slopes share, too
  key <- found <- NULL
  list(
    groups = summed$groups$table()[at, , drop = FALSE],
    estimate = function(estimand, g, k) {
      own <- list(g, estimand[c("low", "high", "unit", "comparison")])
      if (!identical(own, key)) {
        key <<- own
        found <<- expand_estimand(
          estimand,
          function(set) part_of(set, at[[g]])
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

# list(value, first, second) of a(eta) of these rows, by differences of five
# points: with a step of 0.01 their error is some 1e-9 of a function that bends
# within a unit of eta.
expand_rows <- function(fit, rows, at, type) {
  eta <- as.numeric(predictor(fit, rows, at, "link"))
  if (type == "link") {
    n <- length(eta)
    return(list(value = eta, first = rep(1, n), second = numeric(n)))
  }
  step <- 0.01
  of <- lapply(-2:2, function(k) {
    as.numeric(response_mean(fit$family, eta + k * step))
  })
  list(
    value = of[[3]],
    first = (8 * (of[[4]] - of[[2]]) - (of[[5]] - of[[1]])) / (12 * step),
    second = (16 * (of[[4]] + of[[2]]) - (of[[5]] + of[[1]]) - 30 * of[[3]]) /
      (12 * step^2)
  )
}

add_cell <- function(cell, x, slopes, weight) {
  add <- function(old, new) if (is.null(old)) new else old + new
  if (is_sparse(x)) {
    x <- methods::as(x, "CsparseMatrix")
  }
  product <- if (is_sparse(x)) Matrix::crossprod else crossprod
  list(
    value = add(cell$value, sum(weight * slopes$value)),
    first = add(
      cell$first,
      as.numeric(product(x, weight * slopes$first))
    ),
    second = add(
      cell$second,
      as.matrix(product(x, x * (weight * slopes$second)))
    )
  )
}

# A draw's value, with the mean of what is left out, and the standard error of
# that. part_of(set): list(value, rest, weight).
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
