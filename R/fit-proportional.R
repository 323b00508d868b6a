# Are hazards proportional? Effects that change with time, of fits of
# tall_surv(): one pass over the rows.

#' Do effects on a hazard change with time?
#'
#' A check of proportional hazards: of each coefficient of a [tall_surv()] how
#' much it changes with the log of time, and what it is in each stretch of time.
#'
#' @param fit (`tall_surv`) A fit with proportional hazards, which kept its
#'   data.
#' @param pieces (whole number, or increasing vector of times) How many
#'   stretches of time are told apart, or where they are cut; by default as many
#'   as have 20 events each, 20 at most, cut at quantiles of the times of
#'   events.
#' @param prob (number between 0 and 1) Of the intervals.
#'
#' @details To the model is added, one at a time, the product of a column
#' \eqn{x_j} and \eqn{g(t)}, the log of time (its mean over the events of a
#' stretch), less its mean over all events. With \eqn{\mu_{ik}}{mu_ik} the
#' expected events of row \eqn{i} in stretch \eqn{k} at the posterior means,
#' \eqn{\delta_{ik}}{d_ik} those seen, and columns less their means
#' \eqn{\bar x_k}{xbar_k} over those at risk, weighted by \eqn{\mu}{mu},
#' \deqn{s_k = \sum_i (x_i - \bar x_k) (\delta_{ik} - \mu_{ik}), \quad C_k =
#' \sum_i \mu_{ik} (x_i - \bar x_k) (x_i - \bar x_k)^\top,}{s_k = sum_i (x_i -
#' xbar_k) (d_ik - mu_ik), C_k = sum_i mu_ik (x_i - xbar_k) (x_i - xbar_k)',}
#' its coefficient \eqn{\gamma_j}{gamma_j} has under a flat prior nearly a
#' normal posterior, from one Newton step with all other coefficients free,
#' \eqn{\sum_k g_k s_k}{sum_k g_k s_k} being its slope and \eqn{\sum_k g_k^2
#' C_k}{sum_k g_k^2 C_k}, \eqn{\sum_k g_k C_k}{sum_k g_k C_k} and \eqn{\sum_k
#' C_k}{sum_k C_k} the curvatures, the last with the precisions \eqn{P} of the
#' coefficients' priors: what `survival::cox.zph(transform = "log")` tests
#' (Grambsch & Therneau 1994). A stretch by itself says, with these priors,
#' whose slope is \eqn{p}, \eqn{\beta + (C_k + P)^{-1} (s_k + p)}{b + (C_k +
#' P)^-1 (s_k + p)} with covariance \eqn{(C_k + P)^{-1}}{(C_k + P)^-1}, which
#' `plot()` draws. It costs two passes over the rows, one of them for the times
#' of events.
#'
#' A change that is there is a reason for another model: a factor with a hazard
#' of its own in each level (a fit for each), rows that are split at some time
#' and have the column's product with it, or times that are accelerated,
#' `basehaz = "lognormal"`. In much data small changes are seen, too: their size
#' is what matters.
#'
#' @return A data frame of class `tall_ph` with a row for each column of the
#'   design but the intercept, and those of smooth terms: `term`; `change`,
#'   \eqn{\gamma_j}{gamma_j}, how much the log hazard ratio grows while time
#'   grows by the factor \eqn{e}; `sd`, `lower`, `upper`, of its posterior;
#'   `factor`, by how much the hazard ratio is multiplied from the first tenth
#'   of the events to the last. Changes that the rows do not tell are `NA`.
#'   `attr(, "stretches")` has a row for each term
#'   and stretch: `term`, `from`, `to`, `log_ratio`, `lower`, `upper`. Of
#'   `plot()` a ggplot.
#' @section Conditions: `tall_error_unsupported` for accelerated failure times,
#'   rows that are not censored on the right, frailties that are integrated out,
#'   a fit without such columns, and one whose events are all at one time;
#'   `tall_error_input` for `pieces` of which less than two have events.
#' @references
#' Grambsch & Therneau (1994). Proportional hazards tests and diagnostics based
#' on weighted residuals. *Biometrika* 81, 515.
#' @seealso [residuals.tall_surv()], [posterior_survfit()]
#' @examplesIf requireNamespace("survival", quietly = TRUE)
#' fit <- tall_surv(
#'   Surv(time, status) ~ trt + karno,
#'   survival::veteran,
#'   seed = 1
#' )
#' found <- ph_check(fit)
#' found
#' plot(found)
#' @export
ph_check <- function(fit, pieces = NULL, prob = 0.95) {
  check_ph(fit)
  pieces <- check_pieces(pieces)
  prob <- check_prob(prob)
  asked <- ask_rows(fit, needs = "responses")
  draws <- choose_draws(fit)
  mean_of <- function(x) drop(draws$weights %*% as.matrix(x))
  at <- list(
    theta = mean_of(draws$theta),
    aux = if (!is.null(draws$aux)) matrix(mean_of(draws$aux), 1)
  )
  # where the cuts are has to be known before the rows are summed
  events <- list()
  over_rows(asked, draws, function(rows) {
    check_right(rows$y, "ph_check")
    is_event <- rows$y[, 3] == 1
    weight <- rows$weight %||% rep(1, nrow(rows$y))
    events[[length(events) + 1]] <<- cbind(rows$y[, 1], weight)[is_event, ]
    list(value = numeric(nrow(rows$x)))
  })
  events <- do.call(rbind, lapply(events, matrix, ncol = 2))
  cuts <- ph_cuts(pieces, events)
  check_ph_cuts(cuts, events, pieces)
  sums <- NULL
  over_rows(asked, draws, function(rows) {
    own <- ph_sums_by_strata(fit, rows, at, cuts)
    sums <<- if (is.null(sums)) own else add_lists(sums, own)
    list(value = numeric(nrow(rows$x)))
  })
  new_ph(fit, sums, at$theta, cuts, events, prob)
}

check_ph <- function(fit) {
  check_spec(fit, "tall_surv", "tall_surv()")
  check_has_data(fit)
  why <- if (!is_hazard_model(fit)) {
    "accelerated failure times, whose hazards are not proportional"
  } else if (inherits(fit, "tall_glmer")) {
    "frailties that are integrated out"
  }
  if (!is.null(why)) {
    abort_no_ph(
      "{.fn ph_check} is not for {why}.",
      "Fit with {.code basehaz = \"piecewise\"}."
    )
  }
  if (length(hazard_terms(fit)) == 0) {
    abort_no_ph(
      "{.fn ph_check} is of columns beside the intercept and smooth terms, of
       which the fit has none.",
      "A term {.code x} beside or in place of {.code s(x)} has one."
    )
  }
}

abort_no_ph <- function(message, hint, frame = parent.frame()) {
  abort_tall(
    "unsupported",
    c(message, i = hint),
    argument = "fit",
    .envir = frame
  )
}

# A change is seen between stretches that have events.
check_ph_cuts <- function(cuts, events, pieces) {
  if (length(unique(piece_of(cuts, events[, 1]))) > 1) {
    return(invisible())
  }
  if (!is.null(pieces) && !is_count_of_pieces(pieces)) {
    range <- format_number(range(events[, 1]))
    abort_input(
      c(
        "{.arg pieces} must tell apart the times of events.",
        x = "These are between {range[[1]]} and {range[[2]]}, all in one
             stretch."
      ),
      argument = "pieces",
      value = pieces
    )
  }
  abort_no_ph(
    "{.fn ph_check} needs events at two times or more, of which this fit has
     one.",
    "Whether an effect changes cannot be seen at one time."
  )
}

# events: of time and weight.
ph_cuts <- function(pieces, events) {
  if (!is.null(pieces) && !is_count_of_pieces(pieces)) {
    return(pieces)
  }
  n <- pieces %||% max(2, min(20, floor(sum(events[, 2]) / 20)))
  usual_cuts(events[, 1], events[, 2], n)
}

# A list of ph_sums() of each stratum; of rows without any of one.
ph_sums_by_strata <- function(fit, rows, at, cuts) {
  if (!has_strata(fit$family)) {
    return(list(ph_sums(fit, rows, at, cuts)))
  }
  of <- row_strata(fit$family$pieces, rows$x)
  lapply(seq_along(fit$family$pieces$strata), function(s) {
    own <- fit_of_stratum(fit, at, s)
    ph_sums(own$fit, some_rows(rows, which(of == s)), own$draws, cuts)
  })
}

add_lists <- function(a, b) {
  Map(function(a, b) Map(`+`, a, b), a, b)
}

# Of each stretch: `score`, columns x K, and `second`, columns x columns x K;
# also `log_time`, the sum of log times of its events, and `event`, how many.
# The last column is of ones.
ph_sums <- function(fit, rows, at, cuts) {
  n <- nrow(rows$x)
  x <- cbind(as.matrix(rows$x), 1)
  d <- ncol(x)
  n_piece <- length(cuts) + 1
  weight <- rows$weight %||% rep(1, n)
  hazard_at <- function(time) {
    y <- cbind(time, 0, 0)
    zero <- matrix(0, 1, length(time))
    -drop(response_log_density(fit$family, zero, y, aux = at$aux))
  }
  mass <- weight * exp(drop(rows$x %*% at$theta) + rows$offset)
  end <- hazard_at(rows$y[, 1])
  entry <- numeric(n)
  is_late <- rows$y[, 2] > 0
  if (any(is_late)) {
    entry[is_late] <- hazard_at(rows$y[is_late, 2])
  }
  edge <- c(0, hazard_at(cuts), Inf)
  event <- weight * (rows$y[, 3] == 1)
  own <- piece_of(cuts, rows$y[, 1])
  out <- list(
    score = matrix(0, d, n_piece),
    second = array(0, c(d, d, n_piece)),
    log_time = numeric(n_piece),
    event = numeric(n_piece)
  )
  for (k in seq_len(n_piece)) {
    here <- which(end > edge[[k]] & entry < edge[[k + 1]])
    stay <- pmin(end[here], edge[[k + 1]]) - pmax(entry[here], edge[[k]])
    expected <- mass[here] * stay
    part <- x[here, , drop = FALSE]
    seen <- event[here] * (own[here] == k)
    out$score[, k] <- crossprod(part, seen - expected)
    out$second[, , k] <- crossprod(part, expected * part)
    out$log_time[[k]] <- sum(seen * log(rows$y[here, 1]))
    out$event[[k]] <- sum(seen)
  }
  out
}

new_ph <- function(fit, sums, theta, cuts, events, prob) {
  names <- fit$every_variable[seq_len(fit$n_coef)]
  keep <- hazard_columns(fit)
  event <- Reduce(`+`, lapply(sums, `[[`, "event"))
  used <- which(event > 0)
  parts <- lapply(used, function(k) {
    own <- lapply(sums, centred_part, k = k, keep = keep)
    Reduce(function(a, b) Map(`+`, a, b), own)
  })
  log_time <- Reduce(`+`, lapply(sums, `[[`, "log_time"))[used] / event[used]
  g <- log_time - sum(event[used] * log_time) / sum(event)
  sum_of <- function(what, by = rep(1, length(g))) {
    Reduce(`+`, Map(function(part, w) w * part[[what]], parts, by))
  }
  prior <- ph_prior(fit, keep, theta[keep])
  inverse <- joint_covariance(sum_of("second") + prior$precision)
  if (is.null(inverse)) {
    abort_no_ph(
      "{.fn ph_check} cannot tell the columns apart: over the rows at risk they
       depend on each other.",
      "Drop some of them, or give proper priors."
    )
  }
  cross <- sum_of("second", g)
  slope <- sum_of("score") + prior$slope
  change <- sum_of("score", g) - drop(cross %*% inverse %*% slope)
  alone <- diag(sum_of("second", g^2))
  bend <- alone - rowSums((cross %*% inverse) * cross)
  bend[!(bend > 1e-10 * alone)] <- NA
  change <- change / bend
  sd <- 1 / sqrt(bend)
  z <- stats::qnorm(interval_probs(prob)[[2]])
  ends <- log(weighted_quantiles(events, c(0.1, 0.9)))
  table <- data.frame(
    term = names[keep],
    change = change,
    sd = sd,
    lower = change - z * sd,
    upper = change + z * sd,
    factor = exp(change * diff(ends))
  )
  stretches <- ph_stretches(parts, prior, theta[keep], names[keep], z)
  last <- max(events[, 1])
  edges <- cbind(from = c(0, cuts), to = c(cuts, max(last, cuts)))
  edges <- edges[used, , drop = FALSE]
  stretches <- cbind(
    stretches["term"],
    edges[stretches$k, , drop = FALSE],
    stretches[c("log_ratio", "lower", "upper")]
  )
  is_shown <- function(term) term %in% hazard_terms(fit)
  shown <- is_shown(table$term)
  structure(
    table[shown, ],
    row.names = seq_len(sum(shown)),
    class = c("tall_ph", "data.frame"),
    stretches = stretches[is_shown(stretches$term), ],
    coefficients = stats::setNames(theta[keep], names[keep])[shown],
    prob = prob
  )
}

# The level of a stretch, of each stratum, is free: columns less their means.
centred_part <- function(sums, k, keep) {
  second <- sums$second[, , k]
  one <- nrow(second)
  # nobody is at risk
  mean <- if (second[one, one] > 0) second[keep, one] / second[one, one] else 0
  list(
    score = sums$score[keep, k] - mean * sums$score[one, k],
    second = second[keep, keep, drop = FALSE] - outer(
      rep_len(mean, length(keep)),
      second[one, keep]
    )
  )
}

# list(precision, slope) of normal priors of these coefficients, theta; of a
# smooth term's columns at their posterior means: those of the others change
# little.
ph_prior <- function(fit, keep, theta) {
  precision <- own_priors(fit)(
    unname(fit_moments(fit)$mean)[seq_len(n_seen_of(fit))],
    "weight"
  )
  mixture <- fit$prior$mixture
  if (!is.null(mixture)) {
    scales <- fit_moments(fit)$mean[match(mixture$names, fit$variables)]
    at <- cbind(mixture$at, mixture$at)
    precision[at] <- precision[at] +
      drop(mixture_precision(mixture, as.matrix(unname(scales))))
  }
  precision <- precision[keep, keep, drop = FALSE]
  away <- theta - fit$prior$location[keep]
  list(precision = precision, slope = -drop(precision %*% away))
}

weighted_quantiles <- function(events, probs) {
  at <- order(events[, 1])
  share <- cumsum(events[at, 2]) / sum(events[, 2])
  events[at, 1][findInterval(probs, share) + 1]
}

# Log hazard ratios of each stretch by itself; NA where it does not tell them.
ph_stretches <- function(parts, prior, theta, names, z) {
  rows <- lapply(seq_along(parts), function(k) {
    part <- parts[[k]]
    inverse <- joint_covariance(part$second + prior$precision)
    if (is.null(inverse)) {
      inverse <- matrix(NA_real_, length(theta), length(theta))
    }
    at <- theta + drop(inverse %*% (part$score + prior$slope))
    sd <- sqrt(diag(inverse))
    data.frame(
      term = names,
      k = k,
      log_ratio = at,
      lower = at - z * sd,
      upper = at + z * sd
    )
  })
  do.call(rbind, rows)
}

#' @rdname ph_check
#' @param x (`tall_ph`) What it found.
#' @param digits (whole number) Significant digits.
#' @param ... Unused: other arguments are refused.
#' @export
print.tall_ph <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  cat(
    "<tall_ph> Change of log hazard ratios with the log of time, ",
    format_number(100 * attr(x, "prob")),
    "% intervals\n\n",
    sep = ""
  )
  table <- as.data.frame(x)
  rownames(table) <- table$term
  table$term <- NULL
  print_table(signif(table, digits), digits)
  cat("\nfactor: of the hazard ratio from the first tenth of events to the",
    "last.\n")
  invisible(x)
}

#' @export
as.data.frame.tall_ph <- function(x, ...) {
  attributes(x)[c("stretches", "coefficients", "prob")] <- NULL
  class(x) <- "data.frame"
  x
}

#' @rdname ph_check
#' @export
plot.tall_ph <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot changes of effects")
  shown <- attr(x, "stretches")
  shown <- shown[!is.na(shown$log_ratio), ]
  shown$term <- factor(shown$term, x$term)
  shown$middle <- (shown$from + shown$to) / 2
  constant <- data.frame(
    term = factor(x$term, x$term),
    at = unname(attr(x, "coefficients"))
  )
  aes <- ggplot2::aes
  ggplot2::ggplot(shown, aes(x = .data[["middle"]])) +
    ggplot2::geom_hline(
      aes(yintercept = .data[["at"]]),
      data = constant,
      linetype = "dashed"
    ) +
    ggplot2::geom_linerange(
      aes(ymin = .data[["lower"]], ymax = .data[["upper"]]),
      colour = "grey60"
    ) +
    ggplot2::geom_segment(aes(
      x = .data[["from"]],
      xend = .data[["to"]],
      y = .data[["log_ratio"]],
      yend = .data[["log_ratio"]]
    )) +
    ggplot2::facet_wrap(ggplot2::vars(.data[["term"]]), scales = "free_y") +
    ggplot2::scale_x_continuous(n.breaks = 4) +
    ggplot2::labs(
      x = "Time",
      y = "Log hazard ratio",
      caption = "Dashed: the coefficient of the fit"
    )
}
