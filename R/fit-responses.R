# Responses of rows, with their trials and weights: of the fit's own or of new
# ones, in the terms of the fit's formula; and trials and weights that responses
# are drawn for.

# list(y, trials, weight); y is a proportion where there are trials, a number
# from 1 of classes. NULL: 1 each. weighs: are weights of new rows wanted?
row_responses <- function(fit, newdata, weighs) {
  if (is.null(newdata)) {
    own_response(fit)
  } else {
    new_response(fit, newdata, weighs)
  }
}

own_response <- function(fit) {
  check_has_data(fit)
  if (has_source(fit)) {
    return(remote_response(fit))
  }
  if (is.null(fit$terms)) {
    found <- read_response(fit, fit$rows$y, "y")
    weights <- fit$rows$weights
  } else {
    frame <- all_frame(fit$rows)
    response <- stats::model.response(frame, "any")
    found <- read_response(fit, response, response_name(frame))
    weights <- unname(stats::model.weights(frame))
  }
  split_weights(unname(found$values), unname(found$trials), weights, fit)
}

new_response <- function(fit, newdata, weighs) {
  if (is.null(fit$terms)) {
    abort_input(
      "{.arg newdata} must be {.code NULL} here: a matrix has no response.",
      argument = "newdata"
    )
  }
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  frame <- prediction_frame(fit, fit$terms, newdata)
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (!is.null(fit$response_levels)) {
    response <- as.character(response)
    check_levels(response, fit$response_levels, name)
    response <- factor(response, levels = fit$response_levels)
  }
  found <- read_response(fit, response, name)
  trials <- found$trials
  if (is.null(trials)) {
    trials <- new_trials(fit, newdata)
  }
  if (!has_class_response(fit)) {
    check_new_values(found, trials, fit$family, name)
  }
  list(
    y = found$values,
    trials = trials,
    weight = if (weighs) new_weights(fit, newdata)
  )
}

# list(values, trials) of what a formula has on its left.
read_response <- function(fit, response, name) {
  UseMethod("read_response")
}

#' @export
read_response.tall_regression <- function(fit, response, name) {
  frame_response(response, fit$family, name)
}

#' @export
read_response.tall_classes <- function(fit, response, name) {
  values <- as.character(response)
  check_levels(values, fit$response_levels, name)
  list(values = match(values, fit$response_levels))
}

#' @export
read_response.tall_nn <- function(fit, response, name) {
  if (!is.null(fit$response_levels)) {
    response <- factor(as.character(response), fit$response_levels)
  }
  values <- network_response(response, fit$likelihood, name)$values
  # the core counts from 0
  list(values = if (has_class_response(fit)) values + 1 else values)
}

# For what has no meaning for them: `f` is the name of a function.
check_is_number <- function(fit, f, is_drawn = FALSE) {
  f <- if (grepl("(", f, fixed = TRUE)) f else paste0(f, "()")
  if (!is_drawn) {
    check_has_means(fit, f)
  }
  if (has_class_response(fit)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {f}} is for numeric and binary responses, not for classes.",
        i = "{.fn posterior_epred} has the probabilities of the classes, and
             {.fn log_loss} a loss."
      )
    )
  }
}

# What is seen of a time may be that it is later: there is nothing to compare a
# mean with, and there may be no mean. What counts above 0 have is in two parts.
check_has_means <- function(fit, f) {
  if (has_class_response(fit)) {
    return(invisible())
  }
  instead <- find_response(fit$family)$instead
  if (!is.null(instead)) {
    abort_tall(
      "unsupported",
      c("{.code {f}} is not for {what_has_no_mean(fit)}.", i = instead)
    )
  }
}

what_has_no_mean <- function(fit) {
  if (!is.null(find_response(fit$family)$quantile)) {
    "times to an event, which may be censored"
  } else {
    "one part of a hurdle model"
  }
}

# Of numbers that may be censored: `f` compares them with what is predicted.
warn_of_limits <- function(fit, f) {
  if (!has_class_response(fit) && has_limits(fit$family)) {
    warn_tall(
      "limits",
      "{.code {f}} takes the limit of a censored number for the number."
    )
  }
}

# Weights of proportions are trials, as in glm(); others are weights.
split_weights <- function(y, trials, weights, fit) {
  is_trials <- is.null(trials) && !has_class_response(fit) &&
    are_proportions(y, fit$family)
  if (is_trials) {
    list(y = y, trials = weights, weight = NULL)
  } else {
    list(y = y, trials = trials, weight = weights)
  }
}

# As for the data of the fit; a missing response has a missing likelihood.
check_new_values <- function(found, trials, family, name) {
  values <- found$values
  if (is.matrix(values)) {
    values <- select_rows(values, stats::complete.cases(values))
  } else {
    values <- replace(values, is.na(values), 0)
  }
  if (NROW(values) > 0) {
    check_response(values, family, name)
  }
  if (is.null(found$trials)) {
    check_successes(values, trials, family, name)
  }
}

new_weights <- function(fit, newdata) {
  expression <- fit$weight_source
  if (is.null(expression)) {
    return(NULL)
  }
  missing <- setdiff(
    intersect(all.vars(expression), fit$columns),
    names(newdata)
  )
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  found <- eval(expression, newdata, environment(fit$formula))
  found <- check_numeric_vector(
    found,
    size = c(1, nrow(newdata)),
    arg = "weights"
  )
  check_row_weights(found)
  found
}

# ---- what responses are drawn for --------------------------------------------

# Of networks, which have neither.
check_sizes_taken <- function(fit, offset, trials, weights) {
  if (!inherits(fit, "tall_nn")) {
    return(invisible())
  }
  given <- list(offset = offset, trials = trials, weights = weights)
  for (name in names(given)) {
    if (!is.null(given[[name]])) {
      hint <- paste0("`tall_nn()` takes no ", name, ".")
      abort_expected(given[[name]], "NULL", hint, arg = name)
    }
  }
}

# Weights of new rows where these are precisions: given, of the fit's own data,
# or from newdata. NULL: 1 for each, or no such model.
prediction_weights <- function(fit, newdata, weights, n) {
  is_precision <- !has_class_response(fit) && has_precisions(fit$family)
  if (!is_precision) {
    if (!is.null(weights)) {
      of_trials <- !has_class_response(fit) && has_trials(fit$family)
      abort_input(
        c(
          "{.arg weights} is for responses whose weights are precisions, not for
           {.val {response_kind(fit)}}.",
          i = if (of_trials) "Trials are {.arg trials}."
        ),
        argument = "weights",
        value = weights
      )
    }
    return(NULL)
  }
  if (is.null(weights)) {
    weights <- if (is.null(newdata)) {
      own_response(fit)$weight
    } else {
      found <- eval_source(fit, fit$weight_source, newdata)
      check_source(
        found,
        fit$weight_source,
        newdata,
        "weights",
        hint = "Give {.code weights = 1} for responses with standard deviation
                {.field sigma}."
      )
    }
  }
  weights <- check_numeric_vector(
    weights,
    size = c(1, n),
    positive = TRUE,
    allow_null = TRUE,
    most = most_of_data,
    arg = "weights"
  )
  if (is.null(weights)) NULL else rep_len(unname(weights), n)
}

# Trials of new rows: given, of the fit's own data, or from newdata. NULL: the
# response has none.
prediction_trials <- function(fit, newdata, trials, n) {
  if (has_class_response(fit) || !has_trials(fit$family)) {
    if (!is.null(trials)) {
      abort_input(
        "{.arg trials} is for binomial models, not for
         {.val {response_kind(fit)}}.",
        argument = "trials",
        value = trials
      )
    }
    return(NULL)
  }
  if (!is.null(trials)) {
    trials <- check_numeric_vector(
      trials,
      size = c(1, n),
      positive = TRUE,
      arg = "trials"
    )
  } else if (is.null(newdata)) {
    trials <- own_response(fit)$trials
  } else {
    trials <- new_trials(fit, newdata)
  }
  if (is.null(trials)) {
    trials <- 1
  }
  bad <- which(trials != round(trials))
  if (length(bad) > 0) {
    abort_value(trials, bad[[1]], "be whole", arg = "trials")
  }
  rep_len(unname(trials), n)
}

response_kind <- function(fit) {
  if (has_class_response(fit)) "categorical" else family_name(fit$family)
}

# NULL: one each.
new_trials <- function(fit, newdata) {
  found <- eval_source(fit, fit$trial_source, newdata)
  if (is.matrix(found) && ncol(found) == 2) {
    found <- rowSums(found)
  }
  check_source(found, fit$trial_source, newdata, "trials")
}

split_own <- function(fit, own) {
  weights <- own$weights
  if (!is.null(own$trials)) {
    weights <- if (!is.null(fit$rows$request$weights)) weights / own$trials
  }
  # the core counts classes from 0
  y <- if (has_class_response(fit)) own$y + 1 else own$y
  split_weights(y, own$trials, weights, fit)
}

# list(y, trials, weight) of all of the fit's own rows: a pass.
remote_response <- function(fit) {
  sizes <- function(block) split_own(fit, block$own)
  found <- gather_rows(fit, sizes, pads = FALSE)
  list(y = found$y, trials = found$trials, weight = found$weight)
}
