# Curves of survival, of rows or averaged over them.

#' Survival curves
#'
#' Posterior medians and intervals of survival curves, of new rows or averaged
#' over those of the fit.
#'
#' @param object (`tall_surv`) The fit.
#' @param newdata (data frame or `NULL`) The rows that curves are of, one for
#'   each; `NULL`: the fit's own, averaged.
#' @param type (string) `"surv"`: \eqn{S(t)}; `"cumhaz"`, `"haz"`: the
#'   cumulative hazard and the hazard; `"cdf"`: \eqn{1 - S(t)}.
#' @param times (numeric vector or `NULL`) Times above 0; `NULL`: 60, up to the
#'   largest in the data (of a source, of the rows of its pilot); of a hazard in
#'   pieces where these begin and end.
#' @param standardise (`TRUE` or `FALSE`) Average the survival probabilities
#'   over the rows, draw by draw? Hazards are then those of the average.
#' @param prob (number between 0 and 1) Of the intervals.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws; `NULL`:
#'   400.
#' @param observations (whole number) Of how many of the fit's rows, at most,
#'   the average is taken: evenly spaced ones.
#' @param re_formula,re.form,allow_new_levels,seed Of fits with frailties, as in
#'   [predict()][predict.tall_glm()].
#' @param return_matrix (`TRUE` or `FALSE`) The draws, instead of a summary?
#' @param x The curves.
#' @param ci (`TRUE` or `FALSE`) Draw the intervals?
#' @param km (`TRUE` or `FALSE`) Draw the Kaplan-Meier estimate of the rows that
#'   the average is over? It is there where the curve is an average of survival
#'   over the fit's own rows, and \pkg{survival} is installed.
#' @param n (whole number) Lines to print.
#' @param ... Unused: other arguments are refused.
#'
#' @return A data frame of class `tall_survfit`: `id`, which row of `newdata`
#'   (0: the average), `time`, `median`, `ci_lb` and `ci_ub`; or, with
#'   `return_matrix`, a list with a matrix of draws x rows for each time. Of
#'   `plot()` a ggplot.
#' @section Conditions: Those of [predict.tall_surv()].
#' @seealso [predict.tall_surv()] for restricted means and quantiles
#' @examplesIf requireNamespace("survival", quietly = TRUE)
#' d <- survival::lung
#' fit <- tall_surv(Surv(time, status == 2) ~ age + sex, d, seed = 1)
#' posterior_survfit(fit, data.frame(age = 60, sex = 1:2), times = c(180, 360))
#' plot(posterior_survfit(fit))
#' @export
posterior_survfit <- function(object, ...) {
  UseMethod("posterior_survfit")
}

#' @rdname posterior_survfit
#' @export
posterior_survfit.tall_surv <- function(
  object,
  newdata = NULL,
  type = c("surv", "cumhaz", "haz", "cdf"),
  times = NULL,
  standardise = is.null(newdata),
  prob = 0.95,
  draws = NULL,
  ...,
  observations = 1000,
  return_matrix = FALSE,
  re_formula = re.form,
  allow_new_levels = FALSE,
  seed = NULL,
  re.form = NULL,
  ndraws = NULL
) {
  type <- check_choice(type, c("surv", "cumhaz", "haz", "cdf"))
  check_flag(standardise)
  check_flag(return_matrix)
  prob <- check_prob(prob)
  observations <- check_count(observations)
  check_no_dots(..., .ignore = no_dpar)
  times <- if (is.null(times)) {
    curve_times(object, type)
  } else {
    check_times(times)
  }
  n_draw <- check_draws(object, draws, ndraws) %||%
    min(400, posterior::ndraws(object$draws))
  chosen <- choose_draws(object, n_draw, resample = TRUE)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  rows <- curve_rows(object, newdata, observations, groups)
  rows <- join_draws(object, rows, chosen, groups)
  value <- lapply(times, function(time) {
    curve_draws(object, rows, chosen, type, time, standardise)
  })
  if (return_matrix) {
    return(stats::setNames(value, format(times, trim = TRUE)))
  }
  summarise_curves(
    value,
    times,
    prob,
    id = if (standardise) 0 else seq_len(nrow(rows$x)),
    type = type,
    km = if (is.null(newdata) && standardise && type == "surv") {
      kaplan_meier(rows$y)
    }
  )
}

# Sixty, or where a hazard begins and ends to be what it is in a piece.
curve_times <- function(fit, type) {
  cuts <- fit$family$pieces$cuts
  if (type != "haz" || is.null(cuts)) {
    return(fit$horizon * seq_len(60) / 60)
  }
  cuts <- unique(cuts[cuts < fit$horizon])
  slight <- 1e-9 * fit$horizon
  sort(c(slight, cuts, cuts + slight, fit$horizon))
}

# Rows of new data, or some of the fit's own with their responses.
curve_rows <- function(fit, newdata, most, groups) {
  if (!is.null(newdata)) {
    return(asked_rows(ask_rows(fit, newdata, groups = groups)))
  }
  check_has_data(fit)
  n <- stats::nobs(fit)
  at <- unique(floor(seq(1, n, length.out = min(n, most))))
  if (has_source(fit)) {
    fit <- fit_of_rows(fit, at)
    at <- seq_along(at)
  }
  asked <- ask_rows(fit, groups = groups, needs = "responses")
  some_rows(asked_rows(asked), at)
}

# Draws x rows, or with standardise draws x 1, at a time.
curve_draws <- function(fit, rows, draws, type, time, standardise) {
  if (!standardise) {
    known <- c(surv = "survival", cumhaz = "cumhaz", haz = "hazard")
    if (type == "cdf") {
      return(1 - surv_values(fit, rows, draws, "survival", time))
    }
    return(surv_values(fit, rows, draws, known[[type]], time))
  }
  survival <- surv_values(fit, rows, draws, "survival", time)
  weight <- rows$weight %||% rep(1, ncol(survival))
  mean_of <- function(x) x %*% (weight / sum(weight))
  average <- mean_of(survival)
  switch(
    type,
    surv = average,
    cdf = 1 - average,
    cumhaz = -log(average),
    haz = {
      hazard <- surv_values(fit, rows, draws, "hazard", time)
      mean_of(survival * hazard) / average
    }
  )
}

summarise_curves <- function(value, times, prob, id, type, km) {
  probs <- c(0.5, interval_probs(prob))
  parts <- Map(function(draws, time) {
    bounds <- column_quantiles(draws, probs)
    data.frame(
      id = id,
      time = time,
      median = bounds[, 1],
      ci_lb = bounds[, 2],
      ci_ub = bounds[, 3]
    )
  }, value, times)
  out <- do.call(rbind, parts)
  out <- out[order(out$id, out$time), ]
  rownames(out) <- NULL
  structure(
    out,
    class = c("tall_survfit", "data.frame"),
    type = type,
    prob = prob,
    km = km
  )
}

# The estimate of rows by themselves, as a data frame of steps; NULL: rows are
# not censored on the right alone, or survival is not installed.
kaplan_meier <- function(y) {
  is_right <- all(y[, 3] %in% c(0, 1))
  if (!is_right || !requireNamespace("survival", quietly = TRUE)) {
    return(NULL)
  }
  found <- survival::survfit(surv_object(y) ~ 1)
  data.frame(time = c(0, found$time), surv = c(1, found$surv))
}

curve_labels <- c(
  surv = "Probability of no event",
  cdf = "Probability of an event",
  cumhaz = "Cumulative hazard",
  haz = "Hazard"
)

#' @rdname posterior_survfit
#' @export
plot.tall_survfit <- function(x, ci = TRUE, km = TRUE, ...) {
  check_flag(ci)
  check_flag(km)
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot curves")
  type <- attr(x, "type")
  several <- length(unique(x$id)) > 1
  shown <- as.data.frame(x)
  shown$id <- factor(shown$id)
  if (type %in% c("surv", "cdf", "cumhaz")) {
    shown <- rbind(start_of_curves(shown, type == "surv"), shown)
  }
  aes <- ggplot2::aes
  p <- ggplot2::ggplot(shown, aes(x = .data[["time"]]))
  if (ci) {
    p <- p + ggplot2::geom_ribbon(
      aes(
        ymin = .data[["ci_lb"]],
        ymax = .data[["ci_ub"]],
        fill = if (several) .data[["id"]]
      ),
      alpha = 0.25
    )
  }
  p <- p + ggplot2::geom_line(aes(
    y = .data[["median"]],
    colour = if (several) .data[["id"]]
  ))
  steps <- if (km) attr(x, "km")
  if (!is.null(steps)) {
    p <- p + ggplot2::geom_step(
      aes(y = .data[["surv"]]),
      data = steps[steps$time <= max(x$time), ],
      linetype = "dashed"
    )
  }
  p + ggplot2::labs(
    x = "Time",
    y = curve_labels[[type]],
    colour = "Row",
    fill = "Row",
    caption = if (!is.null(steps)) "Dashed: Kaplan-Meier"
  )
}

# At time 0, whose value is known.
start_of_curves <- function(shown, is_survival) {
  first <- shown[!duplicated(shown$id), ]
  first$time <- 0
  first[c("median", "ci_lb", "ci_ub")] <- if (is_survival) 1 else 0
  first
}

#' @rdname posterior_survfit
#' @export
print.tall_survfit <- function(x, n = 10, ...) {
  check_no_dots(...)
  n <- check_count(n)
  who <- if (all(x$id == 0)) {
    "an average over rows"
  } else {
    count_noun(length(unique(x$id)), "row")
  }
  cat(
    "<tall_survfit> ",
    curve_labels[[attr(x, "type")]],
    " of ",
    who,
    ", ",
    format_number(100 * attr(x, "prob")),
    "% intervals\n",
    sep = ""
  )
  print(utils::head(as.data.frame(x), n), digits = 3, row.names = FALSE)
  print_more(nrow(x) - n, "row")
  invisible(x)
}

#' @export
as.data.frame.tall_survfit <- function(x, ...) {
  attributes(x)[c("type", "prob", "km")] <- NULL
  class(x) <- "data.frame"
  x
}
