# Averages over all rows of what a fit predicts, as draws: predictions,
# comparisons of what a variable does, and slopes. R/fit-average-plan.R says
# what is averaged, R/fit-average-pass.R passes over the rows.

#' Averages of predictions, comparisons and slopes
#'
#' What a regression predicts on average over the rows of its data, or of
#' others: as they are, if a variable were another, and per unit of a variable;
#' as draws, without a matrix of rows times draws.
#'
#' @param fit ([`tall_fit`][tall_fit] of a regression) The fit, of [tall_glm()],
#'   [tall_gam()], [tall_glmer()], [tall_surv()], [tall_polr()],
#'   [tall_multinom()] or [tall_nn()] with a formula, in memory or from a
#'   [source][tall_source].
#' @param variables (named list, string vector or `NULL`) What is changed in
#'   every row. Of `average_predictions()` a list of values, `list(x =
#'   c(0, 1))`, of which all combinations are taken, or names of variables with
#'   levels; `NULL`: nothing. Of the others names of covariates, `NULL`: all of
#'   them; of comparisons also a list of how a number is changed, `list(x = 10)`
#'   from \eqn{x} to \eqn{x + 10}, `list(x = c(0, 1))` from the one value to
#'   the other, or of two levels. By default a number is changed by 1, levels
#'   are compared with the first, and `FALSE` with `TRUE`.
#' @param newdata (data frame, [source][tall_source] or `NULL`) The rows;
#'   `NULL`: those of the fit.
#' @param by (string vector, one-sided formula or `NULL`) Columns whose values
#'   make groups of rows, with an average each: 1,000 groups at most.
#' @param comparison (string) Of two averages \eqn{a} and \eqn{b}:
#'   `"difference"` \eqn{b - a}, `"ratio"` \eqn{b / a}, `"lnratio"` its log, or
#'   `"lnor"` \eqn{\log \frac{b}{1 - b} - \log \frac{a}{1 - a}}{log(b / (1 -
#'   b)) - log(a / (1 - a))}. They are of averages, what \pkg{marginaleffects}
#'   calls `"ratioavg"`, `"lnoravg"`; of differences that is the same.
#' @param wts (string or `NULL`) A column of weights of the rows; `NULL`: each
#'   row counts once, also in a fit with weights.
#' @param type (string or `NULL`) `"response"`: expected responses, of classes
#'   their probabilities; `"link"`: linear predictors. Of times to an event a
#'   `type` of [predict.tall_surv()]: `"survival"`, `"cumhaz"`, `"hazard"` or
#'   `"rmst"` at `times`, `"median"`, `"risk"` or `"link"`. Of
#'   [hurdles][tall_hurdle] a `type` of their `predict()`: `"response"`,
#'   `"zero"` or `"count"`. `NULL`: `"response"`, of times `"survival"`.
#' @param times (numbers or `NULL`) Of times to an event: when, a row of the
#'   table for each; what averages are then is the *standardised* survival
#'   probability, and what it is compared with.
#' @param dpar (string or `NULL`) Of [formulas of two parameters][tall_glm]:
#'   `"sigma"`, `"shape"`, `"phi"` or `"zi"`, which then stands in the place of
#'   the response, as in [posterior_epred()][posterior-dpar].
#' @param method (string) `"exact"`: each draw at each row; `"expansion"`: see
#'   *Details*; `"auto"`: the expansion where it can be and rows times draws are
#'   more than 20 million, for every change of variables, or nobody knows how
#'   many there are.
#' @param prob (number between 0 and 1) Of the intervals.
#' @param ndraws (whole number or `NULL`) Use that many draws, evenly spaced;
#'   `NULL`: all, but where rows times draws would be more than 50 million and
#'   there is no expansion as many as that allows, 400 at least.
#' @param re_formula (`NULL` or `NA`) Of fits with group-level effects: `NULL`,
#'   with them, `NA`, without.
#' @param x (`tall_average`) What these functions return.
#' @param digits (whole number) To print.
#' @param ... Unused: other arguments are refused.
#'
#' @details
#' An average \eqn{A(\theta) = \sum_i w_i a(\eta_i(\theta)) / \sum_i w_i} is
#' expanded around the posterior mean \eqn{\hat\theta}{theta^}: one pass sums
#' \deqn{s = \sum w_i a_i, \quad g = \sum w_i a_i' x_i, \quad H = \sum w_i a_i''
#' x_i x_i^T,}{s = sum w_i a_i, g = sum w_i a_i' x_i, H = sum w_i a_i'' x_i
#' x_i',} and of a draw \eqn{\theta = \hat\theta + \delta}{theta = theta^ + d}
#' \deqn{A(\theta) \approx (s + g^T \delta + \delta^T H \delta / 2) / \sum w_i +
#' \bar r(\theta),}{A(theta) = (s + g'd + d'Hd / 2) / sum w_i + r(theta),} where
#' \eqn{\bar r}{r} is the mean of what the expansion leaves out, \eqn{a(\eta_i +
#' t) - a_i - a_i' t - a_i'' t^2 / 2} with \eqn{t = x_i^T \delta}{t = x_i'd},
#' over some 200 rows drawn at random. Its standard error over these rows, in
#' posterior standard deviations of the average, is printed as the error of the
#' expansion. A draw costs \eqn{d^2}, whatever the number of rows.
#'
#' Where \eqn{a} is a function of several predictors, the sums are of all its
#' first and second derivatives, and \eqn{\theta} has the coefficients of each:
#' of [formulas of two parameters][tall_glm] and [hurdles][tall_hurdle] both,
#' of classes those of each, or the thresholds. Of times to an event
#' \eqn{\theta} has the log of the shape or of `sigma`; of proportional hazards
#' instead, in each stratum, the log of the cumulative hazard at `times` (of
#' `"rmst"` at 16 times up to it), or of the hazard, that a draw has. The
#' expansion is for fits of [tall_glm()], [tall_gam()], [tall_polr()],
#' [tall_multinom()] and [tall_surv()]. Group-level effects and frailties that
#' are integrated out, networks, and medians where the hazard is in pieces,
#' which have bends, take each draw at each row, of many rows with fewer draws.
#'
#' Of lazy tables, the fit's own or `newdata`, the database computes \eqn{s},
#' \eqn{g} and \eqn{H}, as [it does for fits][tall_source]: a query for each
#' change of variables hands back a row of sums for each group and combination
#' of levels, and those of a list of tables are added. R reads some 200 rows of
#' a group, for \eqn{\bar r}{r}. The database draws them by its own random
#' numbers, so two calls differ by the error that is printed. R reads all rows,
#' in one pass for all changes, and a message says why, where SQL cannot
#' express a term (bases other than those of [tall_gam()], functions of one's
#' own, dates), where the database and R do not agree on predictors, and where
#' predictors are missing or levels and weights are not allowed. It does so
#' without a message for `method = "exact"` and for [as_source()] with
#' `in_database = FALSE`, which is faster with SQLite, whose sums cost more than
#' rows that need not travel. Of smooth terms that are extrapolated, a warning
#' comes where the rows that R reads show it.
#'
#' Slopes are differences over a ten-thousandth of the variable's range, divided
#' by it, as in \pkg{marginaleffects}; of a variable that is a column of the
#' design and in no other term they are its coefficient times the slope in the
#' predictor, which one pass has for all of these. Of variables with levels
#' comparisons take their place. Rows with missing values are left out.
#'
#' @return A data frame of class `tall_average`: `variable` and `contrast` (of
#'   predictions the variables' values), `class` of responses with classes,
#'   `time` of times to an event, the columns `by`, the [posterior::rvar()]
#'   `draws`, and their `mean`, `sd`, `lower` and `upper`. `attr(x, "error")`
#'   has the error of the expansion of each.
#' @section Conditions: `tall_error_input` for variables that are not in the
#'   model, levels it does not know, more groups than 1,000, groups by what is
#'   changed, negative weights; `tall_error_stale` where the data of the fit
#'   cannot be found; `tall_error_unsupported` for an expansion of what has
#'   none.
#' @references Arel-Bundock, Greifer & Heiss (2024). How to interpret
#'   statistical models using marginaleffects for R and Python. *Journal of
#'   Statistical Software* 111(9).
#' @seealso [conditional_effects()] for curves
#' @examples
#' fit <- tall_glm(am ~ wt + factor(cyl), mtcars, binomial(), seed = 1)
#' average_slopes(fit, "wt")
#' average_comparisons(fit, list(wt = c(2, 3)), comparison = "lnor")
#' average_predictions(fit, by = "gear")
#' average_predictions(fit, list(cyl = c(4, 8)))
#' @export
average_predictions <- function(
  fit,
  variables = NULL,
  newdata = NULL,
  ...,
  by = NULL,
  wts = NULL,
  type = NULL,
  times = NULL,
  dpar = NULL,
  method = c("auto", "exact", "expansion"),
  prob = 0.95,
  ndraws = NULL,
  re_formula = NULL
) {
  check_no_dots(...)
  request <- average_request(fit, newdata, by, wts, re_formula)
  request <- ask_scale(request, type, times, dpar, method, ndraws)
  average_table(request, prediction_plan(fit, variables), prob, "predictions")
}

#' @rdname average_predictions
#' @export
average_comparisons <- function(
  fit,
  variables = NULL,
  newdata = NULL,
  ...,
  comparison = c("difference", "ratio", "lnratio", "lnor"),
  by = NULL,
  wts = NULL,
  type = NULL,
  times = NULL,
  dpar = NULL,
  method = c("auto", "exact", "expansion"),
  prob = 0.95,
  ndraws = NULL,
  re_formula = NULL
) {
  check_no_dots(...)
  comparison <- check_choice(comparison, names(average_comparers))
  request <- average_request(fit, newdata, by, wts, re_formula)
  request <- ask_scale(request, type, times, dpar, method, ndraws)
  plan <- comparison_plan(fit, variables, comparison)
  average_table(request, plan, prob, "comparisons")
}

#' @rdname average_predictions
#' @export
average_slopes <- function(
  fit,
  variables = NULL,
  newdata = NULL,
  ...,
  by = NULL,
  wts = NULL,
  type = NULL,
  times = NULL,
  dpar = NULL,
  method = c("auto", "exact", "expansion"),
  prob = 0.95,
  ndraws = NULL,
  re_formula = NULL
) {
  check_no_dots(...)
  request <- average_request(fit, newdata, by, wts, re_formula)
  request <- ask_scale(request, type, times, dpar, method, ndraws)
  plan <- slope_plan(fit, variables)
  withCallingHandlers(
    average_table(request, plan, prob, "slopes"),
    tall_warning_extrapolation = function(w) {
      # of the fit's own rows by half a ten-thousandth of their range
      if (is.null(newdata)) {
        invokeRestart("muffleWarning")
      }
    }
  )
}

# What all three are asked for: which rows and groups.
average_request <- function(fit, newdata, by, wts, re_formula) {
  check_average_fit(fit)
  if (inherits(by, "formula")) {
    by <- all.vars(by)
  }
  if (!is.null(by) && !(is.character(by) && !anyNA(by))) {
    abort_expected(by, "names of columns, or a one-sided formula")
  }
  check_string(wts, allow_null = TRUE)
  is_rows <- is.null(newdata) || is.data.frame(newdata) ||
    is_passed_over(fit_of_all_rows(fit), newdata)
  if (!is_rows) {
    abort_expected(newdata, "a data frame, a source or NULL")
  }
  list(
    fit = fit,
    newdata = newdata,
    by = by,
    wts = wts,
    groups = average_group_request(fit, re_formula)
  )
}

# The request, with what is averaged of a row, and how: type; at, the times, 0:
# of none, NULL: a response; dpar; method; n_draw.
ask_scale <- function(request, type, times, dpar, method, ndraws) {
  fit <- request$fit
  is_surv <- inherits(fit, "tall_surv")
  types <- averaged_types(fit)
  request$type <- check_choice(type %||% types[[1]], types, arg = "type")
  request$at <- average_times(request$type, times, is_surv)
  request$dpar <- average_dpar(fit, dpar)
  request$method <- check_choice(method, c("auto", "exact", "expansion"))
  request$n_draw <- check_draws(drawn_fit(fit), NULL, ndraws)
  request
}

# The first is the usual one.
averaged_types <- function(fit) {
  if (inherits(fit, "tall_surv")) {
    c("survival", "rmst", "cumhaz", "hazard", "median", "risk", "link")
  } else if (is_hurdle_fit(fit)) {
    c("response", "zero", "count")
  } else {
    c("response", "link")
  }
}

average_times <- function(type, times, is_surv) {
  if (is_surv && type != "link") {
    return(check_prediction_at(type, times, 0.5))
  }
  if (!is.null(times)) {
    abort_expected(
      times,
      "NULL",
      if (is_surv) {
        "Linear predictors are of no time."
      } else {
        "They are of fits of tall_surv()."
      }
    )
  }
}

average_dpar <- function(fit, dpar) {
  if (!is.null(dpar) && !inherits(fit, "tall_dpar")) {
    abort_expected(dpar, "NULL", if (inherits(fit, "tall_hurdle")) {
      "Of a hurdle's parts `type` is \"zero\" or \"count\"."
    } else {
      "The fit has one predictor."
    })
  }
  if (!is.null(dpar)) check_choice(dpar, c("mu", fit$dpar$name))
}

check_average_fit <- function(fit) {
  for (part in average_fits(fit)) {
    check_spec(part, "tall_regression", "tall_glm()", arg = "fit")
  }
}

# ---- the table ---------------------------------------------------------------

# what: is averaged, for print().
average_table <- function(request, plan, prob, what) {
  prob <- check_prob(prob)
  check_by_is_kept(request$by, plan)
  found <- average_rows(request, plan)
  groups <- found$groups
  parts_of_row <- found$parts
  parts <- list()
  values <- errors <- list()
  for (estimand in plan$estimands) {
    for (g in seq_len(nrow(groups))) {
      for (k in seq_len(max(1, nrow(parts_of_row)))) {
        own <- found$estimate(estimand, g, k)
        values[[length(values) + 1]] <- own$value
        errors[[length(errors) + 1]] <- own$error
        parts[[length(parts) + 1]] <- c(
          estimand$labels,
          as.list(parts_of_row[k, , drop = FALSE]),
          as.list(groups[g, , drop = FALSE])
        )
      }
    }
  }
  value <- do.call(cbind, values)
  if (is.null(value)) {
    abort_input("{.arg newdata} must have rows.", argument = "newdata")
  }
  bounds <- column_quantiles(value, interval_probs(prob))
  labels <- lapply(stats::setNames(nm = names(parts[[1]])), function(name) {
    do.call(c, unname(lapply(parts, `[[`, name)))
  })
  sd <- apply(value, 2, stats::sd)
  labels$draws <- posterior::rvar(unname(value))
  out <- structure(
    labels,
    class = "data.frame",
    row.names = seq_len(ncol(value))
  )
  out$mean <- unname(colMeans(value))
  out$sd <- sd
  out$lower <- bounds[, 1]
  out$upper <- bounds[, 2]
  structure(
    out,
    class = c("tall_average", "data.frame"),
    error = if (found$is_expanded) relative_errors(unlist(errors), sd),
    what = what,
    prob = prob,
    n_row = found$n_row,
    n_missing = found$n_missing
  )
}

# In posterior sds; what every draw and row has the same is without.
relative_errors <- function(error, sd) {
  ifelse(error == 0, 0, error / sd)
}

# Columns of the table have one meaning each.
check_by_is_kept <- function(by, plan) {
  own <- c(
    names(plan$estimands[[1]]$labels),
    c("class", "time", "draws", "mean", "sd", "lower", "upper")
  )
  taken <- intersect(by, own)
  if (length(taken) > 0) {
    abort_input(
      c(
        "{.arg by} must not be {.val {taken}}, which the table has of its own.",
        i = "Groups are by variables that are not changed; give others another
             name."
      ),
      argument = "by",
      value = taken
    )
  }
}

#' @rdname average_predictions
#' @export
print.tall_average <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_count(digits)
  error <- attr(x, "error")
  n_missing <- attr(x, "n_missing")
  n_draw <- if (nrow(x) > 0) posterior::ndraws(x$draws) else 0
  cat(
    "<tall_average> Average ",
    attr(x, "what"),
    " over ",
    count_noun(attr(x, "n_row"), "row"),
    if (n_missing > 0) {
      paste0(" (", format_count(n_missing), " left out for missing values)")
    },
    ", ",
    count_noun(n_draw, "draw"),
    ", ",
    format_number(100 * attr(x, "prob")),
    "% intervals\n\n",
    sep = ""
  )
  shown <- as.data.frame(x)
  shown$draws <- NULL
  print(shown, digits = digits, row.names = FALSE)
  cat(
    if (is.null(error)) {
      "\nEach draw at each row.\n"
    } else {
      paste0(
        "\nBy an expansion, with an error of ",
        if (all(is.finite(error))) {
          paste(format_number(signif(max(error), 2)), "posterior sds")
        } else {
          "unknown size, for want of draws,"
        },
        " a draw at most.\n"
      )
    }
  )
  invisible(x)
}

#' @export
as.data.frame.tall_average <- function(x, ...) {
  attributes(x)[c("error", "what", "prob", "n_row", "n_missing")] <- NULL
  class(x) <- "data.frame"
  x
}
