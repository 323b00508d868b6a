# What averages over rows are of, see R/fit-average.R.

# What is averaged: `sets`, each a named list of what variables are changed to
# (a value, or list(add), what is added to the column) and, named ".shift", what
# is added to predictors; and `estimands`, each list(labels, high, low, unit,
# comparison, times): the numbers of two sets, low NULL: one alone; what their
# comparison is divided by; and the coefficient that it is multiplied by, NULL:
# none.

prediction_plan <- function(fit, variables) {
  known <- average_covariates(fit, "average_predictions")
  if (is.null(variables)) {
    return(list(
      sets = list(list()),
      estimands = list(list(labels = NULL, high = 1))
    ))
  }
  ends <- average_ends(fit)
  if (is.character(variables)) {
    variables <- stats::setNames(lapply(variables, function(name) {
      check_known(name, known, "covariate", "variables")
      values <- known_values_of(ends[[name]])
      if (is.null(values)) {
        abort_input(
          "{.arg variables} must have values of {.field {name}}, a number:
           {.code list({name} = ...)}.",
          argument = "variables",
          value = name
        )
      }
      values
    }), variables)
  }
  check_variable_list(variables, known)
  grid <- expand.grid(
    lapply(variables, function(value) {
      if (is.factor(value)) as.character(value) else value
    }),
    KEEP.OUT.ATTRS = FALSE,
    stringsAsFactors = FALSE
  )
  sets <- lapply(seq_len(nrow(grid)), function(k) {
    Map(
      function(value, name) typed_value(value, ends[[name]], name),
      as.list(grid[k, , drop = FALSE]),
      names(grid)
    )
  })
  estimands <- lapply(seq_along(sets), function(k) {
    list(labels = as.list(grid[k, , drop = FALSE]), high = k)
  })
  list(sets = sets, estimands = estimands)
}

comparison_plan <- function(fit, variables, comparison) {
  known <- average_covariates(fit, "average_comparisons")
  variables <- variables %||% check_has_covariates(known)
  if (is.character(variables)) {
    variables <- stats::setNames(vector("list", length(variables)), variables)
  }
  check_variable_list(variables, known, allow_null = TRUE)
  ends <- average_ends(fit)
  steps <- unlist(unname(Map(function(change, name) {
    variable_steps(name, change, ends[[name]])
  }, variables, names(variables))), recursive = FALSE)
  plan_of_steps(steps, comparison)
}

slope_plan <- function(fit, variables) {
  known <- average_covariates(fit, "average_slopes")
  variables <- variables %||% check_has_covariates(known)
  if (!is.character(variables) || length(variables) == 0) {
    abort_expected(variables, "names of covariates")
  }
  check_known(variables, known, "covariate", "variables")
  ends <- average_ends(fit)
  is_number <- function(name) is.null(known_values_of(ends[[name]]))
  steps <- unlist(lapply(variables, function(name) {
    if (!is_number(name)) {
      return(variable_steps(name, NULL, ends[[name]]))
    }
    list(slope_step(fit, name, ends[[name]]))
  }), recursive = FALSE)
  plan_of_steps(steps, "difference")
}

# Of a variable that is a column, and in no other term, the slope is its
# coefficient times that of the response in the predictor: one pass has them
# all.
slope_step <- function(fit, name, ends) {
  check_is_column(ends, name)
  step <- list(variable = name, contrast = paste0("d/d", name))
  if (is_own_column(fit, name)) {
    step$low <- list(.shift = -1e-3)
    step$high <- list(.shift = 1e-3)
    step$unit <- 2e-3
    step$times <- match(name, fit$every_variable)
    return(step)
  }
  width <- 1e-4 * diff(as.numeric(ends))
  width <- if (width > 0) width else 1e-4
  step$low <- stats::setNames(list(list(add = -width / 2)), name)
  step$high <- stats::setNames(list(list(add = width / 2)), name)
  step$unit <- width
  step
}

is_own_column <- function(fit, name) {
  if (!inherits(fit, "tall_glm") || inherits(fit, "tall_dpar")) {
    return(FALSE)
  }
  labels <- attr(fit$terms, "term.labels")
  has_it <- vapply(labels, function(label) {
    name %in% all.vars(str2lang(label))
  }, NA)
  variables <- as.list(attr(fit$terms, "variables"))[-1]
  offset <- unlist(lapply(
    c(list(fit$offset_source), variables[attr(fit$terms, "offset")]),
    all.vars
  ))
  identical(labels[has_it], name) && !name %in% offset &&
    name %in% fit$every_variable[seq_len(fit$n_coef)]
}

# Every set once. steps: list(variable, contrast, high, low, unit) with what
# variables are changed to.
plan_of_steps <- function(steps, comparison) {
  sets <- unlist(
    lapply(steps, function(step) list(step$low, step$high)),
    recursive = FALSE
  )
  key <- vapply(sets, deparse1, "")
  first <- match(key, unique(key))
  estimands <- lapply(seq_along(steps), function(k) {
    step <- steps[[k]]
    list(
      labels = list(variable = step$variable, contrast = step$contrast),
      low = first[[2 * k - 1]],
      high = first[[2 * k]],
      unit = step$unit %||% 1,
      comparison = comparison,
      times = step$times
    )
  })
  list(sets = sets[!duplicated(key)], estimands = estimands)
}

average_covariates <- function(fit, f) {
  unique(unlist(lapply(average_fits(fit), covariates_of, f)))
}

check_has_covariates <- function(known) {
  if (length(known) == 0) {
    abort_input(
      "{.arg fit} has no covariate whose effect could be averaged.",
      argument = "fit"
    )
  }
  known
}

# The comparisons of a variable. change: what the user says, NULL: the usual
# ones.
variable_steps <- function(name, change, ends) {
  check_is_column(ends, name)
  levels <- known_values_of(ends)
  to <- function(value) {
    stats::setNames(list(typed_value(value, ends, name)), name)
  }
  pair <- function(low, high, label) {
    list(variable = name, contrast = label, low = low, high = high)
  }
  if (!is.null(levels)) {
    levels <- if (is.null(change)) levels else change
    if (length(levels) < 2) {
      abort_expected(change, "two levels or more", arg = "variables")
    }
    shown <- as.character(levels)
    return(lapply(seq_along(levels)[-1], function(k) {
      pair(to(levels[[1]]), to(levels[[k]]), paste(shown[[k]], "-", shown[[1]]))
    }))
  }
  change <- change %||% 1
  if (is_time(change)) {
    check_size(change, 2, arg = "variables")
  } else {
    check_numeric_vector(change, size = 1:2, arg = "variables")
  }
  if (length(change) == 2) {
    shown <- if (is_time(change)) format(change) else format_number(change)
    label <- paste(shown[[2]], "-", shown[[1]])
    return(list(pair(to(change[[1]]), to(change[[2]]), label)))
  }
  moved <- stats::setNames(list(list(add = change)), name)
  sign <- if (change >= 0) "+"
  list(pair(list(), moved, paste0(sign, format_number(change))))
}

# Levels of a factor or of text, FALSE and TRUE; NULL: a number.
known_values_of <- function(ends) {
  if (is.factor(ends)) {
    levels(ends)
  } else if (is.logical(ends)) {
    c(FALSE, TRUE)
  } else if (is.character(ends)) {
    ends
  }
}

# A value as a column has it. ends: NULL: a matrix, or what else is no column of
# values.
typed_value <- function(value, ends, name) {
  check_is_column(ends, name)
  levels <- known_values_of(ends)
  if (!is.null(levels)) {
    check_known(as.character(value), as.character(levels), "level", "variables")
    return(if (is.logical(ends)) as.logical(value) else as.character(value))
  }
  if (!inherits(value, class(ends)) && !is.numeric(value)) {
    abort_expected(
      value,
      if (is_time(ends)) paste("of class", class(ends)[[1]]) else "a number",
      paste0("`", name, "` is."),
      arg = "variables"
    )
  }
  value
}

check_is_column <- function(ends, name) {
  if (is.null(ends)) {
    abort_input(
      "{.arg variables} must be columns of values, which {.field {name}} is
       not.",
      argument = "variables",
      value = name
    )
  }
}

check_variable_list <- function(variables, known, allow_null = FALSE) {
  is_list <- is.list(variables) && length(variables) > 0 &&
    !is.null(names(variables)) && !anyDuplicated(names(variables))
  if (!is_list) {
    abort_expected(
      variables,
      "a list of values, with a name for each variable",
      arg = "variables"
    )
  }
  check_known(names(variables), known, "covariate", "variables")
  empty <- lengths(variables) == 0
  if (!allow_null && any(empty)) {
    name <- names(variables)[empty][[1]]
    abort_input(
      "{.arg variables} must have values of {.field {name}}.",
      argument = "variables",
      value = variables[[name]]
    )
  }
}

# Of each covariate its least and largest value, or its levels: of the sketch
# that a fit has, of some of its data, or of a source's first rows with all
# levels.
average_ends <- function(fit) {
  # zeros of a hurdle model know all rows
  ends <- lapply(rev(unname(average_fits(fit))), average_fit_ends)
  ends <- do.call(c, ends)
  ends[!duplicated(names(ends))]
}

average_fit_ends <- function(fit) {
  if (!is.null(fit[["sketch"]])) {
    return(fit$sketch$ends)
  }
  names <- covariates_of(fit)
  data <- tryCatch(original_data(fit, names), tall_error_stale = function(e) {
    if (!has_source(fit)) {
      rlang::cnd_signal(e)
    }
    as.list(source_head(fit$rows$source))[names]
  })
  factors <- names_as_levels(fit$terms)
  lapply(stats::setNames(nm = names), function(name) {
    levels <- fit$xlevels[[name]] %||%
      fit$xlevels[[paste0("factor(", name, ")")]]
    x <- data[[name]]
    if (!is.null(levels)) {
      factor(levels, levels)
    } else if (is.null(dim(x))) {
      if (is_measured(x)) {
        x <- x[even_rows(length(x), min(length(x), 1e5))]
      }
      ends_of(if (name %in% factors) as.factor(x) else x)
    }
  })
}

# How two averages, draws each, are compared; the derivative by each, of which
# the error follows; and between which limits they must be.
average_comparers <- list(
  difference = list(
    value = function(high, low) high - low,
    slope = function(high, low) list(high = 1, low = -1),
    within = c(-Inf, Inf)
  ),
  ratio = list(
    value = function(high, low) high / low,
    slope = function(high, low) list(high = 1 / low, low = -high / low^2),
    within = c(-Inf, Inf)
  ),
  lnratio = list(
    value = function(high, low) log(high / low),
    slope = function(high, low) list(high = 1 / high, low = -1 / low),
    within = c(0, Inf)
  ),
  lnor = list(
    value = function(high, low) stats::qlogis(high) - stats::qlogis(low),
    slope = function(high, low) {
      list(high = 1 / (high * (1 - high)), low = -1 / (low * (1 - low)))
    },
    within = c(0, 1)
  )
)

compare_draws <- function(comparison, high, low) {
  comparer <- average_comparers[[comparison]]
  within <- comparer$within
  both <- c(high, low)
  if (any(both < within[[1]] | both > within[[2]])) {
    words <- if (within[[2]] == 1) "between 0 and 1" else "above 0"
    ends <- format_number(range(both))
    abort_input(
      c(
        "{.code comparison = \"{comparison}\"} is of averages {words}.",
        x = "Draws of these are between {ends[[1]]} and {ends[[2]]}."
      ),
      argument = "comparison",
      value = comparison
    )
  }
  comparer$value(high, low)
}
