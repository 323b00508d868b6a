# Pictures of predicted probabilities: are they those with which events come,
# and do they tell events apart?

#' Calibration and ROC curves of binomial fits
#'
#' `calibration_curve()` compares predicted probabilities with the shares of
#' events that came; `roc_curve()` says how well they tell events from others.
#' Both take one pass over the rows, wherever these lie.
#'
#' @param fit (`tall_regression`) A fit with a binomial response, of
#'   [tall_glm()], [tall_gam()] or [tall_glmer()].
#' @param newdata (data frame, [source][tall_source] or `NULL`) Held-out rows
#'   with their responses; `NULL`: those of the fit, which flatter it.
#' @param bins (whole number) Groups of rows of the calibration curve, each of
#'   about the same weight, in the order of their predictions.
#' @param prob (number between 0 and 1) Of intervals.
#' @param ndraws (whole number or `NULL`) Use that many draws, evenly spaced.
#'   `NULL`: all, of many rows 400 or more.
#' @param re_formula,allow_new_levels Of [tall_glmer()], as in
#'   [predict()][predict.tall_glm()].
#' @param seed (whole number or `NULL`) Of effects of new groups.
#' @param ... Unused: other arguments are refused.
#' @param x (`tall_calibration` or `tall_roc`) What these functions returned.
#' @param digits (whole number) Significant digits.
#'
#' @details A row's prediction is the posterior mean of its probability. Weights
#' and trials count as so many rows. Rows are counted in 3,600 bins of the
#' predicted log odds from -18 to 18, which nothing depends on but: the groups,
#' whose borders are those of bins; the recalibration, to which rows of a bin
#' are alike; and of more than 100,000 rows the points of the ROC curve and the
#' area under it, which is then off by `auc_error` at most, pairs of an event
#' and another row in the same bin counting a half. Intervals are of 200 draws
#' at most, each with the predictions, the Brier score (Brier, 1950) and the
#' area of its own; those of the observed shares are Jeffreys'.
#'
#' The area under the ROC curve is the probability that an event was predicted
#' to be more probable than a row without one (Hanley & McNeil, 1982). `slope`
#' and `intercept` are those of a logistic regression of the outcomes on the
#' predicted log odds, 1 and 0 if all is well, the intercept with the slope
#' fixed at 1 (Cox, 1958): a slope below 1 says that predictions are too
#' extreme.
#'
#' @return `calibration_curve()`: a data frame of class `tall_calibration` with
#'   a row for each group: `n`, the weight of its rows, `predicted`, the mean
#'   prediction, with `predicted_lower` and `predicted_upper` over the draws,
#'   `observed`, the share of events, with `lower` and `upper`.
#'   `roc_curve()`: a data frame of class `tall_roc` with a row for each
#'   `threshold`: `sensitivity` and `specificity` of saying "event" where the
#'   prediction is at or above it. Both have the attributes `brier`, `auc`
#'   (vectors of the `estimate`, and `lower` and `upper` of single draws),
#'   `auc_error`, `slope`,
#'   `intercept`, `n_row` and `n_missing`, rows without a prediction or
#'   response. `plot()` needs \pkg{ggplot2}.
#' @section Conditions: `tall_error_unsupported` for other responses: `plot(fit,
#'   "calibration")` is of classes and networks; `tall_error_input` where all
#'   rows, or none, are events; `tall_error_stale` if data are gone.
#' @references
#' Brier (1950). Verification of forecasts expressed in terms of probability.
#' *Monthly Weather Review* 78, 1-3.
#'
#' Cox (1958). Two further applications of a model for binary regression.
#' *Biometrika* 45, 562-565.
#'
#' Hanley & McNeil (1982). The meaning and use of the area under a receiver
#' operating characteristic (ROC) curve. *Radiology* 143, 29-36.
#' @seealso [loo_predictive_metric()] for rows that are predicted without
#'   themselves.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' calibration_curve(fit, bins = 4)
#' roc_curve(fit)
#' @export
calibration_curve <- function(
  fit,
  newdata = NULL,
  bins = 10,
  prob = 0.95,
  ndraws = NULL,
  re_formula = NULL,
  allow_new_levels = FALSE,
  seed = NULL,
  ...
) {
  check_no_dots(...)
  bins <- check_count(bins, max = logit_bins)
  prob <- check_prob(prob)
  groups <- probability_groups(fit, re_formula, allow_new_levels, seed)
  found <- probability_sums(fit, newdata, ndraws, groups)
  table <- calibration_groups(found, bins, prob)
  new_curve(table, "tall_calibration", found, prob)
}

#' @rdname calibration_curve
#' @export
roc_curve <- function(
  fit,
  newdata = NULL,
  prob = 0.95,
  ndraws = NULL,
  re_formula = NULL,
  allow_new_levels = FALSE,
  seed = NULL,
  ...
) {
  check_no_dots(...)
  prob <- check_prob(prob)
  groups <- probability_groups(fit, re_formula, allow_new_levels, seed)
  found <- probability_sums(fit, newdata, ndraws, groups)
  new_curve(roc_points(found), "tall_roc", found, prob)
}

probability_groups <- function(fit, re_formula, allow_new_levels, seed) {
  check_is_binomial(fit)
  group_request(fit, re_formula, allow_new_levels, seed)
}

probability_sums <- function(fit, newdata, ndraws, groups) {
  n_draw <- check_draws(fit, NULL, ndraws)
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
  }
  asked <- ask_rows(fit, newdata, groups = groups, needs = "responses")
  n_draw <- n_draw %||% affordable_draws(fit, asked$n)
  found <- probability_pass(asked, n_draw)
  check_two_outcomes(found)
  found
}

check_is_binomial <- function(fit) {
  if (!inherits(fit, "tall_hurdle")) {
    check_spec(fit, "tall_fit", "tall_glm()")
  }
  name <- fit$family$name
  is_one <- inherits(fit, "tall_regression") && !has_class_response(fit) &&
    !inherits(fit, "tall_nn") &&
    isTRUE(name %in% c("bernoulli", "binomial"))
  if (!is_one) {
    abort_tall(
      "unsupported",
      c(
        "Curves of predicted probabilities are of fits with a binomial
         response.",
        i = if (inherits(fit, c("tall_classes", "tall_nn"))) {
          "{.code plot(fit, \"calibration\")} is of this one."
        } else {
          "{.fn pp_check} compares other responses with predictions."
        }
      ),
      argument = "fit"
    )
  }
}

check_two_outcomes <- function(found) {
  if (found$n_row == 0) {
    abort_input("{.arg newdata} must have rows.", argument = "newdata")
  }
  events <- sum(found$bin$events)
  if (events <= 0 || events >= sum(found$bin$n)) {
    abort_input(
      c(
        "Rows must be events and others, not all the same.",
        x = "{format_number(events)} of {format_number(sum(found$bin$n))} are
             events."
      ),
      argument = "newdata"
    )
  }
}

# ---- tables ------------------------------------------------------------------

# Borders of groups lie between bins.
calibration_groups <- function(found, bins, prob) {
  bin <- found$bin
  middle <- cumsum(bin$n) - bin$n / 2
  group <- pmin(ceiling(middle / sum(bin$n) * bins), bins)
  used <- bin$n > 0
  sums <- rowsum(bin[used, ], group[used])
  of_draw <- rowsum(found$of_draw[used, , drop = FALSE], group[used])
  share <- column_quantiles(t(of_draw / sums$n), interval_probs(prob))
  tail <- interval_probs(prob)
  observed <- sums$events / sums$n
  quantile_of <- function(p) {
    stats::qbeta(p, sums$events + 0.5, sums$n - sums$events + 0.5)
  }
  data.frame(
    n = sums$n,
    predicted = sums$p / sums$n,
    predicted_lower = share[, 1],
    predicted_upper = share[, 2],
    observed = observed,
    lower = pmin(observed, quantile_of(tail[[1]])),
    upper = pmax(observed, quantile_of(tail[[2]]))
  )
}

# From the highest threshold, above all predictions.
roc_points <- function(found) {
  own <- found$exact %||% transform_bins(found$bin)
  own <- own[rev(seq_len(nrow(own))), ]
  others <- own$n - own$events
  data.frame(
    threshold = c(Inf, own$score),
    sensitivity = c(0, cumsum(own$events) / sum(own$events)),
    specificity = c(1, 1 - cumsum(others) / sum(others))
  )
}

# Bins with rows; score: the least log odds in it.
transform_bins <- function(bin) {
  at <- which(bin$n > 0)
  lower <- (at - 1) * 2 * logit_end / logit_bins - logit_end
  cbind(bin[at, ], score = stats::plogis(lower))
}

new_curve <- function(table, class, found, prob) {
  exact <- found$exact
  is_exact <- !is.null(exact)
  auc <- if (is_exact) of_ranks(exact$events, exact$n)$auc else found$auc$mean
  again <- recalibration(found$bin)
  structure(
    table,
    class = c(class, "data.frame"),
    brier = with_interval(found$brier$mean, found$brier$draws, prob),
    auc = with_interval(auc, found$auc$draws, prob),
    auc_error = if (is_exact) 0 else found$auc_error,
    slope = again$slope,
    intercept = again$intercept,
    n_row = found$n_row,
    n_missing = found$n_missing,
    prob = prob
  )
}

with_interval <- function(estimate, draws, prob) {
  bounds <- stats::quantile(draws, interval_probs(prob), names = FALSE)
  c(estimate = estimate, lower = bounds[[1]], upper = bounds[[2]])
}

# Of the outcomes on the predicted log odds, bin by bin; NA where predictions
# tell all events apart.
recalibration <- function(bin) {
  bin <- bin[bin$n > 0, ]
  logit <- bin$logit / bin$n
  fitted <- function(x, offset) {
    own <- suppressWarnings(stats::glm.fit(
      x,
      bin$events / bin$n,
      bin$n,
      offset = offset,
      family = stats::quasibinomial()
    ))
    if (own$converged && !own$boundary) own$coefficients else NA * x[1, ]
  }
  one <- matrix(1, nrow(bin))
  both <- if (nrow(bin) > 1) fitted(cbind(one, logit), NULL) else c(NA, NA)
  list(slope = both[[2]], intercept = fitted(one, logit)[[1]])
}

# ---- print and plot ----------------------------------------------------------

#' @rdname calibration_curve
#' @export
print.tall_calibration <- function(x, digits = 3, ...) {
  check_no_dots(...)
  print_curve(x, "tall_calibration", check_count(digits))
  print(plain_curve(x), digits = digits, row.names = FALSE)
  invisible(x)
}

#' @rdname calibration_curve
#' @export
print.tall_roc <- function(x, digits = 3, ...) {
  check_no_dots(...)
  print_curve(x, "tall_roc", check_count(digits))
  n <- nrow(x)
  at <- unique(round(seq(1, n, length.out = min(n, 10))))
  print(plain_curve(x)[at, ], digits = digits, row.names = FALSE)
  if (n > length(at)) {
    cat("... with", count_noun(n - length(at), "other threshold"), "between\n")
  }
  invisible(x)
}

print_curve <- function(x, name, digits) {
  own <- attributes(x)
  one <- function(v) format_number(signif(v, digits))
  with_draws <- function(v) {
    paste0(one(v[[1]]), " (draws: ", one(v[[2]]), " to ", one(v[[3]]), ")")
  }
  cat(
    "<", name, "> ", count_noun(own$n_row, "row"),
    if (own$n_missing > 0) {
      paste0(" (", format_count(own$n_missing), " left out)")
    },
    ", ", format_number(100 * own$prob), "% intervals\n",
    "Brier score: ", with_draws(own$brier), "\n",
    "Area under the ROC curve: ", with_draws(own$auc),
    if (own$auc_error > 0) paste0(", exact to ", one(own$auc_error)), "\n",
    "Recalibration: slope ", one(own$slope), ", intercept ",
    one(own$intercept), "\n\n",
    sep = ""
  )
}

plain_curve <- function(x) {
  own <- setdiff(names(attributes(x)), c("names", "row.names", "class"))
  attributes(x)[own] <- NULL
  class(x) <- "data.frame"
  x
}

#' @export
as.data.frame.tall_calibration <- function(x, ...) {
  plain_curve(x)
}

#' @export
as.data.frame.tall_roc <- function(x, ...) {
  plain_curve(x)
}

#' @rdname calibration_curve
#' @export
plot.tall_calibration <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot a curve")
  most <- max(x$upper, x$predicted_upper)
  ggplot2::ggplot(
    plain_curve(x),
    ggplot2::aes(.data[["predicted"]], .data[["observed"]])
  ) +
    ggplot2::geom_abline(slope = 1, linetype = "dashed", colour = "grey50") +
    ggplot2::geom_segment(
      ggplot2::aes(
        x = .data[["predicted_lower"]],
        xend = .data[["predicted_upper"]],
        yend = .data[["observed"]]
      ),
      colour = "steelblue"
    ) +
    ggplot2::geom_pointrange(
      ggplot2::aes(ymin = .data[["lower"]], ymax = .data[["upper"]]),
      colour = "steelblue"
    ) +
    ggplot2::coord_equal(xlim = c(0, most), ylim = c(0, most)) +
    ggplot2::labs(x = "predicted probability", y = "share of events")
}

#' @rdname calibration_curve
#' @export
plot.tall_roc <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot a curve")
  table <- plain_curve(x)
  table$other <- 1 - table$specificity
  auc <- formatC(attr(x, "auc")[["estimate"]], digits = 3, format = "g")
  ggplot2::ggplot(
    table,
    ggplot2::aes(.data[["other"]], .data[["sensitivity"]])
  ) +
    ggplot2::geom_abline(slope = 1, linetype = "dashed", colour = "grey50") +
    ggplot2::geom_path(colour = "steelblue") +
    ggplot2::coord_equal(xlim = c(0, 1), ylim = c(0, 1)) +
    ggplot2::labs(
      x = "1 - specificity",
      y = "sensitivity",
      subtitle = paste("area under the curve", auc)
    )
}
