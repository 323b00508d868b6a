# Held-out data in the terms of a fit: rows with their responses, and models.

# Rows with their responses, as the fit's own were read: `fit` is one, or what
# becomes one (see as_reader()). omit: leave rows with missing values out
# instead of refusing them. weighs: with precisions, where weights are these.
test_rows <- function(fit, newdata, omit = FALSE, weighs = TRUE) {
  check_given(newdata, arg = "newdata")
  if (is.null(fit$terms) || !is.data.frame(newdata)) {
    expected <- if (is.null(fit$terms)) {
      "a model of the held-out data"
    } else {
      "a data frame"
    }
    abort_expected(newdata, expected, arg = "newdata")
  }
  frame <- prediction_frame(fit, fit$terms, newdata)
  if (omit) {
    given <- new_offset(fit, newdata)
    offset <- add_offsets(nrow(frame), stats::model.offset(frame), given)
    complete <- stats::complete.cases(frame, offset)
    newdata <- newdata[complete, , drop = FALSE]
    frame <- frame[complete, , drop = FALSE]
    attr(frame, "terms") <- fit$terms
  }
  if (nrow(frame) == 0) {
    expected <- "at least one complete row"
    abort_expected(newdata, expected, arg = "newdata")
  }
  check_covariates(frame)
  groups <- if (has_groups(fit)) {
    group_request(fit, allow_new_levels = TRUE)
  }
  weighs <- weighs && !has_class_response(fit) && has_precisions(fit$family)
  needs <- if (weighs) "responses" else "values"
  rows <- asked_rows(ask_rows(fit, newdata, groups = groups, needs = needs))
  rows$name <- response_name(frame)
  check_finite(rows$y, arg = rows$name)
  rows$x <- unname_rows(rows$x)
  rows
}

unname_rows <- function(x) {
  rownames(x) <- NULL
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  x
}

# What is known of a fit before it is there, for the functions that read rows.
as_reader <- function(source, class) {
  structure(source, class = c(class, "tall_regression", "tall_fit"))
}

# Precisions, or trials.
test_weights <- function(fit, rows) {
  if (has_precisions(fit$family)) rows$weight else rows$trials
}

# A model of held-out data with the variables of the fit.
test_model <- function(fit, newdata) {
  check_given(newdata, arg = "newdata")
  if (is.data.frame(newdata)) {
    newdata <- model_of_test(fit, test_rows(fit, newdata))
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

# Of a regression with one predictor.
model_of_test <- function(fit, rows) {
  own <- rows_memory(
    rows$x,
    rows$y,
    test_weights(fit, rows),
    rows$offset,
    rows$name
  )
  build_model(blueprint_flat(fit$family, fit$sigma), own)
}

# ---- monitors ----------------------------------------------------------------

# Held-out data frames of monitors, in the terms of a formula: models and
# matrices. reader: of as_reader().
resolve_monitors <- function(monitor, reader) {
  if (!is.list(monitor)) {
    return(monitor) # NULL, or refused later
  }
  lapply(monitor, function(one) {
    if (inherits(one, "tall_monitor") && is.data.frame(one$newdata)) {
      held_out_monitor(reader, one)
    } else {
      one
    }
  })
}

# A monitor whose `newdata` is a data frame, ready to run.
held_out_monitor <- function(reader, monitor) {
  UseMethod("held_out_monitor")
}

#' @export
held_out_monitor.tall_glm <- function(reader, monitor) {
  is_rmse <- inherits(monitor, "tall_monitor_rmse")
  if (is_rmse) {
    check_is_number(reader, "monitor_rmse")
    warn_of_limits(reader, "monitor_rmse()")
  }
  rows <- held_out_rows(reader, monitor$newdata, weighs = !is_rmse)
  if (!is_rmse) {
    monitor$newdata <- model_of_test(reader, rows)
    return(monitor)
  }
  if (is_sparse(rows$x)) {
    abort_sparse_monitor()
  }
  monitor$newdata <- rows$x
  monitor$y <- first_column(rows$y)
  monitor$offset <- rows$offset
  monitor
}

#' @export
held_out_monitor.tall_nn <- function(reader, monitor) {
  if (monitor$name == "rmse") {
    check_is_number(reader, "monitor_rmse")
  }
  structure(
    list(
      name = monitor$name,
      rows = held_out_rows(reader, monitor$newdata),
      range = monitor$range,
      network = light_fit(reader)
    ),
    class = c("tall_monitor_network", "tall_monitor")
  )
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

held_out_rows <- function(reader, data, weighs = TRUE) {
  tryCatch(
    test_rows(reader, data, omit = TRUE, weighs = weighs),
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
