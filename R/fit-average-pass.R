# The pass over the rows of averages, see R/fit-average.R: sums of an expansion
# around the posterior mean, or of each draw.
#
# A cell is a set of changed variables and a group of rows. Of each the pass
# keeps
#
#   weight  the sum of w_i
#   value   that of w_i a_i: a number, or one for each draw and class
#   first   that of w_i a_i' x_i: n_coef               (of an expansion)
#   second  that of w_i a_i'' x_i x_i^T: n_coef x n_coef
#
# and of each group some rows, drawn at random, for what an expansion leaves
# out, see R/fit-average-sample.R.

# list(groups, classes, n_row, is_expanded, estimate(estimand, g, class)).
# plan: of prediction_plan() and its kin.
average_rows <- function(request, plan) {
  fit <- request$fit
  n <- average_n(request)
  asked <- request$n_draw %||% posterior::ndraws(fit$draws)
  is_expanded <- expands(request, n * asked * length(plan$sets))
  n_draw <- request$n_draw
  if (!is_expanded) {
    n_draw <- n_draw %||% affordable_draws(fit, n * length(plan$sets))
  }
  draws <- choose_draws(fit, n_draw, resample = TRUE)
  pass <- if (is_expanded) {
    expansion_pass(request, plan, draws)
  } else {
    exact_pass(request, plan, draws)
  }
  n_row <- n_missing <- 0
  each_average_block(request, function(block) {
    n_row <<- n_row + nrow(block$data)
    n_missing <<- n_missing + block$n_missing
    if (nrow(block$data) > 0) {
      pass$add(block)
    }
  })
  c(
    pass$finish(),
    list(
      classes = predicted_names(fit, request$type),
      n_row = n_row,
      n_missing = n_missing,
      is_expanded = is_expanded
    )
  )
}

# How many rows, NA: nobody knows.
average_n <- function(request) {
  fit <- request$fit
  newdata <- request$newdata
  if (is.null(newdata)) {
    stats::nobs(fit)
  } else if (is.data.frame(newdata)) {
    nrow(newdata)
  } else {
    n_passed_over(fit, newdata)
  }
}

# Is the average expanded? size: numbers of an exact one.
expands <- function(request, size) {
  is_linear <- inherits(request$fit, "tall_glm")
  if (request$method == "expansion" && !is_linear) {
    abort_tall(
      "unsupported",
      c(
        "{.code method = \"expansion\"} is for predictors that are linear in the
         coefficients.",
        i = "{.code method = \"exact\"} with {.arg ndraws} takes fewer draws."
      ),
      argument = "method"
    )
  }
  is_large <- is.na(size) || size > setting("average_exact")
  is_linear && switch(
    request$method,
    exact = FALSE,
    expansion = TRUE,
    auto = is_large
  )
}

# f(list(data, weight, key, n_missing)) of blocks of the rows: their columns,
# weights, the values of `by`, and how many were left out for missing values.
each_average_block <- function(request, f) {
  fit <- request$fit
  newdata <- request$newdata
  needed <- average_columns(fit)
  take <- function(data) {
    own <- intersect(needed, names(data))
    is_whole <- stats::complete.cases(data[own]) | length(own) == 0
    n_missing <- sum(!is_whole)
    data <- data[is_whole, , drop = FALSE]
    weight <- row_weights(data, request$wts)
    key <- lapply(stats::setNames(nm = request$by), function(name) {
      column_of(data, name, "by")
    })
    f(list(data = data, weight = weight, key = key, n_missing = n_missing))
  }
  if (is_passed_over(fit, newdata)) {
    fit <- fit_with_columns(fit, request)
    each_newdata(fit, newdata = newdata, f = function(block) {
      if (nrow(block$data) > 0) {
        take(block$data)
      }
      TRUE
    })
    return(invisible())
  }
  data <- if (is.null(newdata)) {
    average_data(request)
  } else {
    as.data.frame(newdata)
  }
  if (nrow(data) > 0) {
    each_block(nrow(data), 1, size = setting("block_rows"), function(at) {
      take(data[at, , drop = FALSE])
    })
  }
}

row_weights <- function(data, name) {
  if (is.null(name)) {
    return(rep(1, nrow(data)))
  }
  weight <- column_of(data, name, "wts")
  check_numeric_vector(weight, size = nrow(data), arg = "wts")
  bad <- which(weight < 0)
  if (length(bad) > 0) {
    abort_value(weight, bad[[1]], "not be negative", arg = "wts")
  }
  as.double(weight)
}

# weights: sums of each group.
check_weight_sums <- function(weights) {
  if (any(weights == 0)) {
    abort_input(
      "{.arg wts} must not be 0 in all rows of a group.",
      argument = "wts",
      value = 0
    )
  }
}

# The fit, whose blocks have the columns that are asked for, too.
fit_with_columns <- function(fit, request) {
  newdata <- request$newdata
  source <- if (is.null(newdata)) fit$rows$source else as_source(newdata)
  for (arg in c("by", "wts")) {
    missing <- setdiff(request[[arg]], source_names(source))
    if (length(missing) > 0) {
      abort_missing_columns(missing, arg = arg)
    }
  }
  fit$columns <- union(fit$columns, c(request$by, request$wts))
  fit
}

column_of <- function(data, name, arg) {
  if (!name %in% names(data)) {
    abort_missing_columns(name, arg = arg)
  }
  data[[name]]
}

# Columns that predictors are made of.
average_columns <- function(fit) {
  grouping <- if (has_groups(fit)) all.vars(stats::formula(fit)[[3]])
  union(held_names(fit), intersect(grouping, fit$columns))
}

# The data frame that a fit was made of.
average_data <- function(request) {
  data_as_it_was(
    request$fit,
    c(average_columns(request$fit), request$by, request$wts),
    data = NULL,
    missing = function(names) {
      is_by <- names[[1]] %in% request$by
      abort_missing_columns(names[[1]], if (is_by) "by" else "wts")
    },
    hint = "Give {.arg newdata}, the rows that averages are over."
  )
}

# The rows of a block with variables changed: a function of the set, which
# makes those without a change once.
changed_rows <- function(request, data) {
  as_they_are <- NULL
  function(set) {
    if (length(setdiff(names(set), ".shift")) > 0) {
      data <- changed_block(data, set)
      return(prediction_rows(request$fit, data, groups = request$groups))
    }
    if (is.null(as_they_are)) {
      as_they_are <<-
        prediction_rows(request$fit, data, groups = request$groups)
    }
    out <- as_they_are
    out$offset <- out$offset + (set$.shift %||% 0)
    out
  }
}

# The block with variables changed.
changed_block <- function(data, set) {
  for (name in setdiff(names(set), ".shift")) {
    change <- set[[name]]
    old <- column_of(data, name, "newdata")
    data[[name]] <- if (is.list(change)) {
      old + change$add
    } else if (is.factor(old)) {
      factor(
        rep(as.character(change), nrow(data)),
        union(levels(old), as.character(change)),
        ordered = is.ordered(old)
      )
    } else {
      rep(change, nrow(data))
    }
  }
  data
}

# ---- groups ------------------------------------------------------------------

# Values of `by` by number, in the order in which they are met: $of(key, n), the
# number of each row; $table(), a data frame of them.
average_groups <- function(by) {
  seen <- character()
  values <- list()
  of <- function(key, n) {
    if (length(key) == 0) {
      seen <<- "all"
      return(rep(1L, n))
    }
    text <- do.call(paste, c(lapply(key, as.character), sep = "\r"))
    new <- which(!duplicated(text) & !text %in% seen)
    seen <<- c(seen, text[new])
    if (length(seen) > most_groups) {
      abort_input(
        "{.arg by} must have at most {format_count(most_groups)} groups.",
        argument = "by",
        value = by
      )
    }
    values[[length(values) + 1]] <<- lapply(key, function(x) {
      if (is.factor(x)) as.character(x[new]) else x[new]
    })
    match(text, seen)
  }
  table <- function() {
    if (length(by) == 0) {
      return(data.frame(row.names = seq_along(seen)))
    }
    out <- lapply(stats::setNames(nm = by), function(name) {
      do.call(c, lapply(values, `[[`, name))
    })
    as.data.frame(out, optional = TRUE, stringsAsFactors = FALSE)
  }
  # sorted, as a table is read
  order <- function() {
    own <- table()
    if (ncol(own) == 0) {
      return(seq_len(nrow(own)))
    }
    do.call(base::order, unname(own))
  }
  list(of = of, table = table, order = order)
}

most_groups <- 1000

# ---- exact -------------------------------------------------------------------

exact_pass <- function(request, plan, draws) {
  fit <- request$fit
  groups <- average_groups(request$by)
  sums <- list()
  weights <- numeric()
  n_draw <- nrow(draws$theta)
  add <- function(block) {
    of <- groups$of(block$key, nrow(block$data))
    for (g in unique(of)) {
      weights[g] <<- sum(c(weights[g], block$weight[of == g]), na.rm = TRUE)
    }
    rows_of <- changed_rows(request, block$data)
    for (s in seq_along(plan$sets)) {
      rows <- rows_of(plan$sets[[s]])
      rows <- join_draws(fit, rows, draws, request$groups)
      each_block(nrow(rows$x), n_draw, size = 2^18, function(at) {
        value <- predictor(fit, some_rows(rows, at), draws, request$type)
        # draws x rows x classes
        dim(value) <- c(n_draw, length(at), length(value) / n_draw / length(at))
        for (g in unique(of[at])) {
          own <- which(of[at] == g)
          weight <- block$weight[at][own]
          part <- apply(value[, own, , drop = FALSE], 3, function(of_class) {
            matrix(of_class, n_draw) %*% weight
          })
          key <- paste(s, g)
          sums[[key]] <<- (sums[[key]] %||% 0) + matrix(part, n_draw)
        }
      })
    }
  }
  finish <- function() {
    check_weight_sums(weights)
    at <- groups$order()
    estimate <- function(estimand, g, class) {
      average_of <- function(set) {
        sums[[paste(set, at[[g]])]][, class] / weights[[at[[g]]]]
      }
      list(value = compare_averages(estimand, average_of, draws$theta))
    }
    list(
      groups = groups$table()[at, , drop = FALSE],
      estimate = estimate
    )
  }
  list(add = add, finish = finish)
}

# average_of(set): draws.
compare_averages <- function(estimand, average_of, theta) {
  high <- average_of(estimand$high)
  if (is.null(estimand$low)) {
    return(high)
  }
  low <- average_of(estimand$low)
  value <- compare_draws(estimand$comparison, high, low) / estimand$unit
  value * coefficient_draws(estimand, theta)
}

# Draws of the coefficient that a comparison is multiplied by.
coefficient_draws <- function(estimand, theta) {
  if (is.null(estimand$times)) 1 else theta[, estimand$times]
}

# ---- expansion ---------------------------------------------------------------

expansion_pass <- function(request, plan, draws) {
  fit <- request$fit
  groups <- average_groups(request$by)
  centre <- colMeans(draws$theta)
  at_centre <- list(theta = t(centre), aux = NULL, cores = draws$cores)
  cells <- list()
  weights <- numeric()
  sample <- average_reservoir()
  add <- function(block) {
    n <- nrow(block$data)
    of <- groups$of(block$key, n)
    chosen <- sample$choose(of)
    for (g in unique(of)) {
      weights[g] <<- sum(c(weights[g], block$weight[of == g]), na.rm = TRUE)
    }
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
    check_weight_sums(weights)
    at <- groups$order()
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
      cell <- cells[[paste(set, g)]]
      kept <- sample$rows(set, g)
      t <- tcrossprod(away, kept$x)
      slopes <- lapply(kept$slopes, rep, each = nrow(away))
      exact <- predictor(fit, kept[c("x", "offset")], draws, request$type)
      list(
        value = (cell$value + drop(away %*% cell$first) +
          rowSums((away %*% cell$second) * away) / 2) / weights[[g]],
        rest = matrix(exact, nrow(away)) - slopes$value - slopes$first * t -
          slopes$second * t^2 / 2,
        weight = kept$weight / sum(kept$weight),
        share = kept$share
      )
    }
    list(
      groups = groups$table()[at, , drop = FALSE],
      estimate = function(estimand, g, class) {
        found <- expand_estimand(
          estimand,
          function(set) part_of(set, at[[g]])
        )
        times <- coefficient_draws(estimand, draws$theta)
        list(
          value = found$value * times,
          error = found$error * sqrt(mean(times^2))
        )
      }
    )
  }
  list(add = add, finish = finish)
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
