# Pictures of regressions with classes: calibration and confusion.

#' Plot a regression with classes
#'
#' @param x (`tall_classes`) The fit, from [tall_multinom()] or [tall_polr()].
#' @param type (string) `"calibration"`: how often a class of a predicted
#'   probability occurs, in tenths of the probability, all classes together or
#'   each in a panel. `"confusion"`: of the rows of each class, the share of
#'   which each class is the most probable one. Or any type of
#'   [plot.tall_fit()].
#' @param newdata (data frame or `NULL`) Held-out data, with responses; `NULL`:
#'   the data of the fit, on which a fit looks better than it is.
#' @param by_class (`TRUE` or `FALSE`) Calibration: a panel for each class?
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @return A ggplot object; its `data` are the shares.
#' @section Conditions: those of [predict.tall_classes()].
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' odd <- seq(1, 150, by = 2)
#' own <- iris[odd, ]
#' fit <- tall_multinom(Species ~ Sepal.Width, own, iter = 500, seed = 1)
#' plot(fit, "confusion", newdata = iris[-odd, ])
#' plot(fit, "calibration", newdata = iris[-odd, ])
#' @export
plot.tall_classes <- function(
  x,
  type = c(
    "calibration",
    "confusion",
    "trace",
    "dens",
    "intervals",
    "noise",
    "size",
    "monitor"
  ),
  newdata = NULL,
  by_class = FALSE,
  ...
) {
  own <- c("calibration", "confusion")
  type <- check_plot_type(type, c(own, own_plots))
  if (!type %in% own) {
    return(NextMethod())
  }
  check_no_dots(...)
  check_flag(by_class)
  rlang::check_installed("ggplot2", "to plot a fit")
  rows <- asked_rows(ask_rows(x, newdata, needs = "responses"))
  y <- rows$y
  draws <- choose_draws(x)
  probs <- predictor_moments(x, rows, draws, "response", FALSE)$fit
  used <- !is.na(y) & !is.na(probs[, 1])
  y <- y[used]
  probs <- probs[used, , drop = FALSE]
  where <- if (is.null(newdata)) "the data of the fit" else "new data"
  if (type == "confusion") {
    plot_confusion(confusion_table(x, probs, y), where)
  } else {
    plot_class_shares(probs, y, by_class, where)
  }
}

plot_class_shares <- function(probs, y, by_class, where) {
  event <- col(probs) == y
  if (!by_class) {
    return(plot_shares(calibration_table(probs, event), where))
  }
  classes <- colnames(probs)
  each <- lapply(seq_along(classes), function(k) {
    cbind(
      calibration_table(probs[, k], event[, k]),
      class = factor(classes[[k]], classes)
    )
  })
  plot_shares(do.call(rbind, each), where) +
    ggplot2::facet_wrap(ggplot2::vars(.data[["class"]]))
}

# Of each class that came, the share of each that is most probable.
confusion_table <- function(fit, probs, y) {
  levels <- fit$response_levels
  counts <- table(
    factor(levels[y], levels),
    factor(likely_class(fit, probs), levels)
  )
  out <- data.frame(
    observed = factor(rep(levels, length(levels)), levels),
    predicted = factor(rep(levels, each = length(levels)), levels),
    n = as.vector(counts)
  )
  total <- as.vector(rowSums(counts))[as.integer(out$observed)]
  out$share <- ifelse(total > 0, out$n / total, NA)
  out
}

plot_confusion <- function(table, where) {
  label <- ifelse(
    is.na(table$share),
    "",
    paste0(round(100 * table$share), "%")
  )
  ggplot2::ggplot(
    table,
    ggplot2::aes(.data[["predicted"]], .data[["observed"]])
  ) +
    ggplot2::geom_tile(ggplot2::aes(fill = .data[["share"]])) +
    ggplot2::geom_text(
      ggplot2::aes(
        label = label,
        colour = !is.na(.data[["share"]]) & .data[["share"]] > 0.6
      ),
      show.legend = FALSE
    ) +
    ggplot2::scale_fill_gradient(
      low = "white",
      high = "steelblue",
      limits = c(0, 1)
    ) +
    ggplot2::scale_colour_manual(
      values = c(`FALSE` = "black", `TRUE` = "white")
    ) +
    ggplot2::scale_y_discrete(limits = rev) +
    ggplot2::coord_equal() +
    ggplot2::labs(
      x = "most probable class",
      y = paste("class that came, on", where),
      fill = "share"
    )
}
