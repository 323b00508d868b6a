# What averages over rows are of, see R/fit-average.R.

# What is averaged: `sets`, each a named list of what variables are changed to
# (a value, or a function of the column) and, named ".shift", what is added to
# predictors; and `estimands`, each list(labels, high, low, unit, comparison,
# times): the numbers of two sets, low NULL: one alone; what their comparison is
# divided by; and the coefficient that it is multiplied by, NULL: none.

prediction_plan <- function(fit, variables) {
  if (is.null(variables)) {
    return(list(
      sets = list(list()),
      estimands = list(list(labels = NULL, high = 1))
    ))
  }
  sketch <- average_sketch(fit)
  if (is.character(variables)) {
    variables <- stats::setNames(lapply(variables, function(name) {
      check_known(name, covariates_of(fit), "covariate", "variables")
      values <- known_values_of(sketch$ends[[name]])
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
  check_variable_list(variables, fit)
  grid <- expand.grid(
    lapply(variables, function(value) {
      if (is.factor(value)) as.character(value) else value
    }),
    KEEP.OUT.ATTRS = FALSE,
    stringsAsFactors = FALSE
  )
  sets <- lapply(seq_len(nrow(grid)), function(k) {
    Map(
      function(value, name) typed_value(value, sketch$ends[[name]], name),
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
  variables <- variables %||% covariates_of(fit)
  if (is.character(variables)) {
    variables <- stats::setNames(vector("list", length(variables)), variables)
  }
  check_variable_list(variables, fit, allow_null = TRUE)
  sketch <- average_sketch(fit)
  steps <- unlist(unname(Map(function(change, name) {
    variable_steps(name, change, sketch$ends[[name]])
  }, variables, names(variables))), recursive = FALSE)
  plan_of_steps(steps, comparison)
}

slope_plan <- function(fit, variables) {
  known <- covariates_of(fit)
  ends <- average_sketch(fit)$ends
  is_number <- function(name) is.null(known_values_of(ends[[name]]))
  if (is.null(variables)) {
    variables <- known
  } else {
    if (!is.character(variables)) {
      abort_expected(variables, "names of covariates")
    }
    check_known(variables, known, "covariate", "variables")
  }
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
  step$low <- stats::setNames(list(function(x) x - width / 2), name)
  step$high <- stats::setNames(list(function(x) x + width / 2), name)
  step$unit <- width
  step
}

is_own_column <- function(fit, name) {
  if (!inherits(fit, "tall_glm")) {
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
  key <- vapply(sets, function(set) paste(deparse_set(set), collapse = ""), "")
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

deparse_set <- function(set) {
  unlist(Map(function(change, name) {
    own <- if (is.function(change)) {
      c(deparse(body(change)), unlist(as.list(environment(change))))
    } else {
      as.character(change)
    }
    c(name, own)
  }, set, names(set)))
}

# The comparisons of a variable. change: what the user says, NULL: the usual
# ones.
variable_steps <- function(name, change, ends) {
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
  check_numeric_vector(change, size = 1:2, arg = "variables")
  if (length(change) == 2) {
    shown <- format_number(change)
    label <- paste(shown[[2]], "-", shown[[1]])
    return(list(pair(to(change[[1]]), to(change[[2]]), label)))
  }
  moved <- stats::setNames(list(function(x) x + change), name)
  list(pair(list(), moved, paste0("+", format_number(change))))
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

# A value as a column has it.
typed_value <- function(value, ends, name) {
  levels <- known_values_of(ends)
  if (!is.null(levels)) {
    check_known(as.character(value), as.character(levels), "level", "variables")
  } else if (!is.numeric(value) && !is_time(value)) {
    abort_expected(
      value,
      "a number",
      paste0("`", name, "` is one."),
      arg = "variables"
    )
  }
  if (is.factor(ends)) as.character(value) else value
}

check_variable_list <- function(variables, fit, allow_null = FALSE) {
  is_list <- is.list(variables) && length(variables) > 0 &&
    !is.null(names(variables))
  if (!is_list || !allow_null && any(lengths(variables) == 0)) {
    abort_expected(variables, "a named list of values", arg = "variables")
  }
  check_known(names(variables), covariates_of(fit), "covariate", "variables")
}

# The sketch of a fit's data; of a source that left none that of its first rows,
# with all levels.
average_sketch <- function(fit) {
  if (!has_source(fit) || !is.null(fit[["sketch"]])) {
    return(fit_sketch(fit))
  }
  tryCatch(fit_sketch(fit), tall_error_stale = function(e) {
    head <- as.list(source_head(fit$rows$source))
    factors <- names_as_levels(fit$terms)
    sketch <- new_sketch(head[covariates_of(fit)], factors = factors)
    for (name in names(sketch$ends)) {
      levels <- fit$xlevels[[name]] %||%
        fit$xlevels[[paste0("factor(", name, ")")]]
      if (!is.null(levels)) {
        sketch$ends[[name]] <- factor(levels, levels)
      }
    }
    sketch
  })
}

# How two averages, draws each, are compared; and the derivative by each, of
# which the error follows.
average_comparers <- list(
  difference = list(
    value = function(high, low) high - low,
    slope = function(high, low) list(high = 1, low = -1)
  ),
  ratio = list(
    value = function(high, low) high / low,
    slope = function(high, low) list(high = 1 / low, low = -high / low^2)
  ),
  lnratio = list(
    value = function(high, low) log(high / low),
    slope = function(high, low) list(high = 1 / high, low = -1 / low)
  ),
  lnor = list(
    value = function(high, low) stats::qlogis(high) - stats::qlogis(low),
    slope = function(high, low) {
      list(high = 1 / (high * (1 - high)), low = -1 / (low * (1 - low)))
    }
  )
)
