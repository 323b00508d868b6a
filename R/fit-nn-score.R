# How well networks predict: log likelihoods, losses, monitors.

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::log_lik
log_lik.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  pointwise = FALSE,
  ...,
  ndraws = NULL
) {
  check_flag(pointwise)
  check_no_dots(..., .ignore = no_groups)
  check_nn_unused(offset)
  draws <- check_draws(object, draws, ndraws)
  if (!pointwise) {
    check_own_size(object, newdata, draws)
  }
  y <- nn_observed(object, newdata)
  x <- nn_rows(object, newdata)
  chosen <- choose_draws(object, draws, resample = TRUE)
  if (pointwise) {
    light <- nn_network(object)
    f <- function(rows, theta, aux) {
      nn_log_lik(light, x[rows, , drop = FALSE], y[rows], theta, aux)
    }
    return(loo_function(object, nrow(x), chosen, f))
  }
  out <- nn_log_lik(object, x, y, chosen$theta, chosen$aux)
  dimnames(out) <- draw_names(list(x = x))
  out
}

# Draws x rows; aux is NULL where it is not sampled, or not there.
nn_log_lik <- function(fit, x, y, theta, aux) {
  response_log_density(
    nn_family(fit),
    nn_linear(fit, x, theta),
    y,
    aux = aux
  )
}

# Responses of the rows, as the core counts them (classes from 0 on).
nn_observed <- function(fit, newdata) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    frame <- fit$frame
  } else {
    if (!is.data.frame(newdata)) {
      abort_expected(newdata, "a data frame", arg = "newdata")
    }
    frame <- prediction_frame(fit, fit$terms, newdata)
  }
  nn_response_values(frame, fit)
}

nn_response_values <- function(frame, source) {
  name <- response_name(frame)
  response <- stats::model.response(frame, "any")
  levels <- source$response_levels
  if (!is.null(levels)) {
    check_levels(as.character(response), levels, name)
    response <- factor(as.character(response), levels)
  }
  network_response(response, source$likelihood, name)$values
}

# ---- losses ------------------------------------------------------------------

#' @rdname losses
#' @export
log_loss.tall_nn <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  ...
) {
  check_no_dots(...)
  check_given(newdata)
  if (!is.data.frame(newdata)) {
    return(NextMethod())
  }
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  test <- nn_test_rows(object, newdata)
  chosen <- choose_draws(object)
  sum <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(test$x))
  each_block(nrow(test$x), length(sum), size = 2^20, function(rows) {
    log_p <- nn_log_lik(
      object,
      test$x[rows, , drop = FALSE],
      test$y[rows],
      chosen$theta,
      chosen$aux
    )
    sum <<- sum + rowSums(log_p)
    average[rows] <<- drop(crossprod(exp(log_p), chosen$weights))
  })
  if (statistic == "draw") -sum / length(average) else -mean(log(average))
}

#' @rdname losses
#' @export
rmse.tall_nn <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  range = NULL,
  ...
) {
  check_no_dots(...)
  check_is_number(object, "rmse")
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  range <- check_range(range)
  test <- nn_test_rows(object, newdata)
  chosen <- choose_draws(object)
  square <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(test$x))
  each_block(nrow(test$x), length(square), size = 2^20, function(rows) {
    x <- test$x[rows, , drop = FALSE]
    mu <- clip(nn_means(object, x, chosen$theta), range)
    square <<- square + rowSums(sweep(mu, 2, test$y[rows])^2)
    average[rows] <<- drop(crossprod(mu, chosen$weights))
  })
  if (statistic == "draw") {
    sqrt(square / length(average))
  } else {
    sqrt(mean((average - test$y)^2))
  }
}

# Held-out rows: x as the network reads it, y in the units of the data. `source`
# is a fit, or what front_reader() gives; omit: leave rows with missing values
# out.
nn_test_rows <- function(source, newdata, omit = FALSE) {
  check_given(newdata, arg = "newdata")
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  frame <- prediction_frame(source, source$terms, newdata)
  if (omit) {
    complete <- stats::complete.cases(frame)
    frame <- frame[complete, , drop = FALSE]
    newdata <- newdata[complete, , drop = FALSE]
    attr(frame, "terms") <- source$terms
  }
  check_covariates(frame)
  list(x = nn_rows(source, newdata), y = nn_response_values(frame, source))
}

# Held-out data frames of monitors, standardised as the data.
resolve_nn_monitors <- function(monitor, source) {
  if (!is.list(monitor)) {
    return(monitor) # NULL, or refused later
  }
  lapply(monitor, function(one) {
    if (!inherits(one, "tall_monitor") || !is.data.frame(one$newdata)) {
      return(one)
    }
    if (one$name == "rmse") {
      check_is_number(source, "monitor_rmse")
    }
    test <- held_out_parts(source, one$newdata, read = nn_test_rows)
    structure(
      list(
        name = one$name,
        newdata = test$x,
        y = test$y,
        range = one$range,
        network = nn_network(source)
      ),
      class = c("tall_monitor_network", "tall_monitor")
    )
  })
}

# Resolved by the front end already.
#' @export
check_held_out.tall_monitor_network <- function(monitor, model, arg) {
}

#' @export
evaluate_monitor.tall_monitor_network <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  network <- monitor$network
  y <- monitor$y
  weights <- function(at) t(at[seq_len(network$n_coef)])
  if (monitor$name == "rmse") {
    mu <- nn_means(network, monitor$newdata, weights(parameter))
    mu <- clip(mu, monitor$range)
    state <- add_to_mean(state, drop(mu))
    error <- function(mu) sqrt(mean((mu - y)^2))
    return(list(draw = error(mu), ergodic = error(state$mean), state = state))
  }
  log_p <- function(at) {
    sigma <- if (has_aux(nn_family(network))) {
      network$sigma %||%
        (network$scaling$y_scale * exp(at[[network$n_coef + 1]]))
    }
    drop(nn_log_lik(network, monitor$newdata, y, weights(at), sigma))
  }
  here <- log_p(parameter)
  if (monitor$name == "log_loss") {
    state <- add_to_mean(state, exp(here))
    ergodic <- -mean(log(state$mean))
    return(list(draw = -mean(here), ergodic = ergodic, state = state))
  }
  state <- add_to_mean(state, parameter)
  list(draw = mean(here), ergodic = mean(log_p(state$mean)), state = state)
}

# ---- leave-one-out -----------------------------------------------------------

#' @export
fit_response.tall_nn <- function(fit) {
  nn_observed(fit, NULL)
}

# The mean of the weights is no network.
#' @export
loo_approximation.tall_nn <- function(fit) {
  list(loo_approximation = "lpd", loo_approximation_draws = 10)
}
