# Held-out data in the terms of a fit: models and matrices.

# A model of held-out data with the variables of the fit.
test_model <- function(fit, newdata) {
  check_given(newdata, arg = "newdata")
  if (is.data.frame(newdata)) {
    parts <- test_parts(fit, newdata, weighs = TRUE)
    rows <- rows_memory(
      parts$x,
      parts$y,
      parts$trials %||% parts$weights,
      parts$offset,
      parts$name
    )
    newdata <- build_model(blueprint_flat(fit$family, fit$sigma), rows)
  }
  check_model(newdata, arg = "newdata")
  if (!identical(newdata$variables, fit$variables)) {
    abort_input(
      c(
        "{.arg newdata} must have the variables of the fit.",
        x = "The fit has {quote_columns(fit$variables)}; the held-out data
             {quote_columns(newdata$variables)}."
      ),
      argument = "newdata",
      expected = fit$variables,
      value = newdata$variables
    )
  }
  if (newdata$n_data == 0) {
    abort_tall(
      "unsupported",
      c(
        "{.code {newdata$label}()} has no observations whose loss could be
         taken.",
        i = "Give a model of held-out observations, such as one of
             {.fn model_custom}."
      ),
      argument = "newdata"
    )
  }
  newdata
}

# Design matrix, response, trials and offset of held-out rows, as the fit's own
# were read; `source` is a fit of tall_glm() or what
# front_reader() gives, with the family. omit: leave
# rows with missing values out instead of refusing them. weighs: their weights
# in a Gaussian model, too, which are precisions.
test_parts <- function(source, newdata, omit = FALSE, weighs = FALSE) {
  check_given(newdata, arg = "newdata")
  if (is.null(source$terms) || !is.data.frame(newdata)) {
    expected <- if (is.null(source$terms)) {
      "a model of the held-out data"
    } else {
      "a data frame"
    }
    abort_expected(newdata, expected, arg = "newdata")
  }
  frame <- prediction_frame(source, source$terms, newdata)
  # of all rows: what follows leaves some out
  offset <- add_offsets(
    nrow(frame),
    stats::model.offset(frame),
    new_offset(source, newdata)
  )
  trials <- new_trials(source, newdata)
  weights <- if (weighs && has_precisions(source$family)) {
    new_weights(source, newdata)
  }
  if (omit) {
    complete <- stats::complete.cases(frame, offset)
    frame <- frame[complete, , drop = FALSE]
    attr(frame, "terms") <- source$terms
    offset <- offset[complete]
    trials <- if (length(trials) > 1) trials[complete] else trials
    weights <- if (length(weights) > 1) weights[complete] else weights
  }
  if (nrow(frame) == 0) {
    abort_expected(newdata, "at least one complete row", arg = "newdata")
  }
  if (!is.null(source$response_levels)) {
    frame[[1]] <- factor(frame[[1]], levels = source$response_levels)
  }
  name <- response_name(frame)
  check_covariates(frame)
  y <- frame_response(stats::model.response(frame, "any"), source$family, name)
  check_finite(y$values, arg = name)
  check_new_values(y, trials, source$family, name)
  x <- source_design(source, source$terms, frame)
  list(
    x = unname_rows(x),
    y = y$values,
    trials = if (!is.null(trials)) rep_len(as.double(trials), nrow(frame)),
    weights = if (!is.null(weights)) rep_len(weights, nrow(frame)),
    offset = offset,
    name = name
  )
}

unname_rows <- function(x) {
  rownames(x) <- NULL
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  x
}

# Held-out data frames of monitors, in the terms of a formula: models and
# matrices.
resolve_monitors <- function(monitor, source, sigma) {
  if (!is.list(monitor)) {
    return(monitor) # NULL, or refused later
  }
  lapply(monitor, function(one) {
    if (!inherits(one, "tall_monitor") || !is.data.frame(one$newdata)) {
      return(one)
    }
    is_rmse <- inherits(one, "tall_monitor_rmse")
    held_out <- held_out_parts(source, one$newdata, weighs = !is_rmse)
    if (is_rmse) {
      if (is_sparse(held_out$x)) {
        abort_sparse_monitor()
      }
      one$newdata <- held_out$x
      one$y <- held_out$y
      one$offset <- held_out$offset
    } else {
      rows <- rows_memory(
        held_out$x,
        held_out$y,
        held_out$trials %||% held_out$weights,
        held_out$offset
      )
      one$newdata <- build_model(blueprint_flat(source$family, sigma), rows)
    }
    one
  })
}

abort_sparse_monitor <- function() {
  abort_tall(
    "unsupported",
    c(
      "{.fn monitor_rmse} cannot watch a fit with a sparse design.",
      i = "{.fn monitor_log_loss} and {.fn monitor_log_lik} can."
    ),
    argument = "monitor"
  )
}

held_out_parts <- function(source, data, ..., read = test_parts) {
  tryCatch(
    read(source, data, omit = TRUE, ...),
    tall_error_input = function(e) {
      abort_input(
        c(
          "A monitor's held-out data do not fit the formula.",
          x = escape_cli(conditionMessage(e))
        ),
        argument = "monitor"
      )
    }
  )
}
