# Pictures of networks: calibration and predictive intervals.

#' Plot a network
#'
#' @param x (`tall_nn`) The fit, from [tall_nn()].
#' @param type (string) `"calibration"`: how often responses lie in the central
#'   predictive intervals, against their probability; for classes, how often an
#'   event of a predicted probability happens. `"prediction"`: mean, epistemic
#'   and total intervals against the one numeric covariate of the formula. Or
#'   any type of [plot.tall_fit()].
#' @param newdata (data frame or `NULL`) Calibration: held-out data, with
#'   responses. Prediction: where to draw the curves. `NULL`: the data of the
#'   fit, for curves an even grid over them and a little beyond.
#' @param prob (number between 0 and 1) Probability of the intervals of
#'   `"prediction"`.
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @return A ggplot object.
#' @section Conditions:
#' `tall_error_unsupported` for `"prediction"` with several covariates.
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' data <- data.frame(x = runif(200, -2, 2))
#' data$y <- sin(2 * data$x) + rnorm(200, sd = 0.1)
#' fit <- tall_nn(y ~ x, data, hidden = 5, train_iter = 300, iter = 100)
#' plot(fit, "prediction")
#' plot(fit, "calibration")
#' @export
plot.tall_nn <- function(
  x,
  type = c(
    "calibration",
    "prediction",
    "trace",
    "dens",
    "intervals",
    "noise",
    "size",
    "monitor"
  ),
  newdata = NULL,
  prob = 0.9,
  ...
) {
  own <- c("calibration", "prediction")
  type <- check_plot_type(type, c(own, own_plots))
  if (!type %in% own) {
    return(NextMethod())
  }
  check_no_dots(...)
  prob <- check_prob(prob)
  rlang::check_installed("ggplot2", "to plot a fit")
  if (type == "calibration") {
    plot_calibration(x, newdata)
  } else {
    plot_prediction(x, newdata, prob)
  }
}

plot_calibration <- function(fit, newdata) {
  has_intervals <- !is.null(nn_traits(fit)$cdf)
  table <- if (has_intervals) {
    interval_calibration(fit, newdata)
  } else {
    class_calibration(fit, newdata)
  }
  where <- if (is.null(newdata)) "the training data" else "new data"
  if (!has_intervals) {
    return(plot_shares(table, where))
  }
  calibration_base(table) +
    ggplot2::geom_line(colour = "steelblue", linewidth = 1) +
    ggplot2::labs(
      x = "probability of the predictive interval",
      y = paste("share of responses inside, on", where)
    )
}

calibration_base <- function(table) {
  ggplot2::ggplot(
    table,
    ggplot2::aes(.data[["nominal"]], .data[["observed"]])
  ) +
    ggplot2::geom_abline(slope = 1, linetype = "dashed", colour = "grey50") +
    ggplot2::coord_equal(xlim = c(0, 1), ylim = c(0, 1))
}

# Of a calibration_table().
plot_shares <- function(table, where) {
  calibration_base(table) +
    ggplot2::geom_pointrange(
      ggplot2::aes(ymin = .data[["low"]], ymax = .data[["high"]]),
      colour = "steelblue"
    ) +
    ggplot2::labs(
      x = "predicted probability",
      y = paste("share of events, on", where)
    )
}

# The predictive distribution function at the response is uniform if all is
# well.
interval_calibration <- function(fit, newdata) {
  rows <- asked_rows(ask_rows(fit, newdata, needs = "responses"))
  draws <- choose_draws(fit)
  u <- numeric(length(rows$y))
  each_block(length(u), nrow(draws$theta), size = 2^20, function(at) {
    mu <- predictor(fit, some_rows(rows, at), draws, "response")
    each <- rep(rows$y[at], each = nrow(mu))
    below <- nn_traits(fit)$cdf(each, mu, draws$aux)
    u[at] <<- drop(crossprod(below, draws$weights))
  })
  nominal <- seq(0, 1, by = 0.02)
  away <- 2 * abs(u - 0.5)
  data.frame(
    nominal = nominal,
    observed = vapply(nominal, function(p) mean(away <= p, na.rm = TRUE), 0)
  )
}

# All levels together.
class_calibration <- function(fit, newdata) {
  rows <- asked_rows(ask_rows(fit, newdata, needs = "responses"))
  p <- predictor_moments(fit, rows, choose_draws(fit), "response", FALSE)$fit
  event <- if (has_class_response(fit)) col(p) == rows$y else rows$y == 1
  calibration_table(p, event)
}

# In tenths of the predicted probability, with the 95 % interval of a share that
# has Jeffreys' prior. p, event: of the same shape.
calibration_table <- function(p, event) {
  bin <- cut(as.numeric(p), seq(0, 1, by = 0.1), include.lowest = TRUE)
  mean_of <- function(x) as.numeric(tapply(as.numeric(x), bin, mean))
  n <- as.numeric(table(bin))
  observed <- mean_of(event)
  came <- observed * n
  out <- data.frame(
    nominal = mean_of(p),
    observed = observed,
    low = pmin(observed, stats::qbeta(0.025, came + 0.5, n - came + 0.5)),
    high = pmax(observed, stats::qbeta(0.975, came + 0.5, n - came + 0.5))
  )
  out[n > 0, ]
}

plot_prediction <- function(fit, newdata, prob) {
  name <- all.vars(stats::delete.response(fit$terms))
  name <- intersect(name, fit$columns)
  is_one <- length(name) == 1 &&
    !has_class_response(fit) &&
    !name %in% names(fit$xlevels)
  if (!is_one) {
    abort_tall(
      "unsupported",
      c(
        "{.code type = \"prediction\"} needs one numeric covariate and one
         output; the formula has {length(name)} covariate{?s}.",
        i = "{.code predict(fit, newdata)} has the numbers to draw."
      )
    )
  }
  check_has_data(fit)
  seen <- nn_seen(fit, name)
  if (is.null(newdata)) {
    range <- range(seen$x)
    range <- range + c(-0.1, 0.1) * diff(range)
    newdata <- data.frame(seq(range[[1]], range[[2]], length.out = 300))
    names(newdata) <- name
  }
  table <- predict.tall_nn(fit, newdata, prob = prob)
  table$x <- newdata[[name]]
  z <- stats::qnorm(interval_probs(prob)[[2]])
  table$inner_low <- table$mean - z * table$sd_epistemic
  table$inner_high <- table$mean + z * table$sd_epistemic
  band <- function(low, high, fill) {
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data[[low]], ymax = .data[[high]]),
      fill = fill
    )
  }
  has_total <- !is.null(nn_traits(fit)$quantiles)
  ggplot2::ggplot(table, ggplot2::aes(x = .data[["x"]])) +
    (if (has_total) band("lower", "upper", "#d6e4f0")) +
    (if (has_total) {
      band("inner_low", "inner_high", "#8fb8d8")
    } else {
      band("lower", "upper", "#8fb8d8")
    }) +
    ggplot2::geom_point(
      ggplot2::aes(y = .data[["y"]]),
      data = seen,
      size = 0.6,
      alpha = 0.5
    ) +
    ggplot2::geom_line(ggplot2::aes(y = .data[["mean"]]), colour = "#1f4e79") +
    ggplot2::labs(
      x = name,
      y = deparse1(attr(fit$terms, "variables")[[2]]),
      subtitle = paste0(
        percent(prob),
        " intervals",
        if (has_total) ": epistemic (dark), total (light)"
      )
    )
}

# At most 1,000 of the data, evenly spaced.
nn_seen <- function(fit, name) {
  rows <- unique(round(seq(1, stats::nobs(fit), length.out = 1000)))
  if (has_source(fit)) {
    fit <- fit_of_rows(fit, rows)
    rows <- seq_along(rows)
  }
  x <- if (name %in% names(fit$rows$frame)) {
    fit$rows$frame[[name]]
  } else {
    # a transformed covariate: as the data had it, where they are still found
    eval(as.name(name), eval(fit$call$data, environment(fit$formula)))
  }
  y <- own_response(fit)$y
  data.frame(x = as.numeric(x)[rows], y = y[rows])
}
