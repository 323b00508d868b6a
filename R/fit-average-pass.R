# What passes over rows have in common, see R/fit-average.R: blocks of the rows,
# as they are and with variables changed, and groups of them; and the pass that
# sums what each draw says.

# Of rows and draws, draws x rows, or draws x rows x parts.
average_values <- function(request, rows, draws) {
  fit <- request$fit
  if (is.null(request$at)) {
    draws$dpar <- request$dpar
    return(predictor(fit, rows, draws, request$type))
  }
  of_times <- lapply(request$at, function(at) {
    surv_values(fit, rows, draws, request$type, at)
  })
  array(unlist(of_times), c(dim(of_times[[1]]), length(of_times)))
}

# f(list(data, weight, key, n_missing)) of blocks of the rows: their columns,
# weights, the values of `by`, and how many were left out for missing values.
each_average_block <- function(request, f) {
  fit <- fit_of_all_rows(request$fit)
  newdata <- request$newdata
  needed <- average_columns(request$fit)
  n_coef <- sum(vapply(average_fits(request$fit), `[[`, 0, "n_coef"))
  left <- 0
  take <- function(data) {
    # blocks, and the designs made of them: R would let them grow with the data
    left <<- left + 8 * nrow(data) * (4 * ncol(data) + 10 * n_coef)
    if (left > 4 * gc_bytes) {
      left <<- 0
      gc(full = FALSE)
    }
    own <- intersect(needed, names(data))
    is_whole <- stats::complete.cases(data[own]) | length(own) == 0
    n_missing <- sum(!is_whole)
    if (n_missing > 0) {
      data <- data[is_whole, , drop = FALSE]
    }
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
  source <- average_source(fit, request$newdata)
  for (arg in c("by", "wts")) {
    missing <- setdiff(request[[arg]], source_names(source))
    if (length(missing) > 0) {
      abort_missing_columns(missing, arg = arg)
    }
  }
  fit$columns <- union(fit$columns, c(request$by, request$wts))
  fit
}

# Where the rows are passed over.
average_source <- function(fit, newdata) {
  if (is.null(newdata)) fit$rows$source else data_source(newdata, "newdata")
}

column_of <- function(data, name, arg) {
  if (!name %in% names(data)) {
    abort_missing_columns(name, arg = arg)
  }
  data[[name]]
}

# Columns that predictors are made of.
average_columns <- function(fit) {
  unique(unlist(lapply(average_fits(fit), function(fit) {
    grouping <- if (has_groups(fit)) all.vars(stats::formula(fit)[[3]])
    union(held_names(fit), intersect(grouping, fit$columns))
  })))
}

# The data frame that a fit was made of.
average_data <- function(request) {
  missing <- function(names) {
    is_by <- names[[1]] %in% request$by
    abort_missing_columns(names[[1]], if (is_by) "by" else "wts")
  }
  if (is_hurdle_fit(request$fit)) {
    data <- hurdle_data(request$fit, NULL)
    unknown <- setdiff(c(request$by, request$wts), names(data))
    if (length(unknown) > 0) missing(unknown)
    return(data)
  }
  data_as_it_was(
    request$fit,
    c(average_columns(request$fit), request$by, request$wts),
    data = NULL,
    missing = missing,
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
      return(average_design(request$fit, data, request$groups))
    }
    if (is.null(as_they_are)) {
      as_they_are <<-
        average_design(request$fit, data, request$groups)
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

# Values of `by` by number, in the order in which they are met: $of(block), the
# number of each row; $weights(), the sum of each, which is not 0; $table(), a
# data frame of them; $order(), how they are sorted.
average_groups <- function(by) {
  seen <- character()
  values <- list()
  sums <- numeric()
  of <- function(block) {
    out <- number(block$key, nrow(block$data))
    for (g in unique(out)) {
      sums[g] <<- sum(c(sums[g], block$weight[out == g]), na.rm = TRUE)
    }
    out
  }
  number <- function(key, n) {
    if (length(key) == 0) {
      seen <<- "all"
      return(rep(1L, n))
    }
    text <- key_text(key)
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
  weights <- function() {
    check_weight_sums(sums)
    sums
  }
  list(of = of, weights = weights, table = table, order = order)
}

most_groups <- 1000

# key: list of the values of `by`.
key_text <- function(key) {
  do.call(paste, c(unname(lapply(key, as.character)), sep = "\r"))
}

# ---- exact -------------------------------------------------------------------

exact_pass <- function(request, plan, draws) {
  fit <- request$fit
  groups <- average_groups(request$by)
  sums <- list()
  n_draw <- nrow(draws$theta)
  add <- function(block) {
    of <- groups$of(block)
    rows_of <- changed_rows(request, block$data)
    for (s in seq_along(plan$sets)) {
      rows <- rows_of(plan$sets[[s]])
      rows <- join_draws(fit, rows, draws, request$groups)
      each_block(nrow(rows$x), n_draw, size = 2^18, function(at) {
        value <- average_values(request, some_rows(rows, at), draws)
        # draws x rows x parts
        dim(value) <- c(n_draw, length(at), length(value) / n_draw / length(at))
        for (g in unique(of[at])) {
          own <- which(of[at] == g)
          weight <- block$weight[at][own]
          part <- apply(value[, own, , drop = FALSE], 3, function(of_part) {
            matrix(of_part, n_draw) %*% weight
          })
          key <- paste(s, g)
          sums[[key]] <<- (sums[[key]] %||% 0) + matrix(part, n_draw)
        }
      })
    }
  }
  finish <- function() {
    weights <- groups$weights()
    at <- groups$order()
    estimate <- function(estimand, g, k) {
      average_of <- function(set) {
        sums[[paste(set, at[[g]])]][, k] / weights[[at[[g]]]]
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
