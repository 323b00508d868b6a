# Fits of tall_surv(): what their predictor says of times.

#' Predictions of times to an event
#'
#' Posterior means of risks, survival probabilities, quantiles and restricted
#' means of the time, of fits of [tall_surv()].
#'
#' @param object (`tall_surv`) The fit.
#' @param newdata (data frame, [source][tall_source] or `NULL`) Where to
#'   predict; `NULL`: the data of the fit, if it kept them. No times are needed.
#' @param type (string) With \eqn{u = e^\eta}{u = exp(eta)} as in [tall_surv()]:
#'   \describe{
#'   \item{`"link"`}{The linear predictor \eqn{\eta}{eta}.}
#'   \item{`"risk"`}{\eqn{u}: what multiplies the hazard, or the time.}
#'   \item{`"survival"`}{\eqn{S(t)}, the probability of no event up to `times`.}
#'   \item{`"cumhaz"`, `"hazard"`}{\eqn{H(t) = -\log S(t)}{H(t) =
#'     -log S(t)}, and its derivative.}
#'   \item{`"quantile"`, `"median"`}{The time by which the event has come with
#'     probability `p`; 1/2.}
#'   \item{`"rmst"`}{The mean of the time up to `times`, \eqn{\int_0^t S(s)
#'     ds}{the integral of S from 0 to t}.}
#'   }
#' @param times (numeric vector or `NULL`) Times above 0, which `"survival"`,
#'   `"cumhaz"`, `"hazard"` and `"rmst"` need.
#' @param p (numbers between 0 and 1) Of `"quantile"`.
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well?
#' @param interval (string) `"confidence"`: quantiles of the draws, too; with
#'   one time alone.
#' @inheritParams predict.tall_regression
#'
#' @details Each is computed for every draw and row, and averaged over the draws
#' in blocks. Restricted means are integrals by Gauss and Legendre's rule of 32
#' points in \eqn{\sqrt{s}}{sqrt(s)}, of hazards in pieces their closed form.
#' Beyond the last of its cuts a hazard in pieces stays as it is: quantiles
#' there are extrapolated.
#'
#' `survival::concordance(fit, newdata = NULL)` is that of the posterior mean of
#' the linear predictor, of rows that are censored on the right; of more than
#' 100,000 of them, of so many, evenly spaced.
#'
#' @return A numeric vector with a value for each row; of several times, or `p`,
#'   a matrix with a column for each. With `se.fit` a list of `fit` and
#'   `se.fit`; with an interval a matrix with the columns `fit`, `lwr` and
#'   `upr`.
#' @section Conditions: `tall_error_input` where times are missing or not above
#'   0; those of [predict.tall_glm()][predict.tall_regression].
#' @seealso [posterior_survfit()] for curves
#' @examplesIf requireNamespace("survival", quietly = TRUE)
#' d <- survival::lung
#' fit <- tall_surv(Surv(time, status == 2) ~ age + sex, d, seed = 1)
#' new <- data.frame(age = 60, sex = 1:2)
#' predict(fit, new, type = "survival", times = c(180, 360))
#' predict(fit, new, type = "median", interval = "confidence")
#' predict(fit, new, type = "rmst", times = 360, se.fit = TRUE)
#' @export
predict.tall_surv <- function(
  object,
  newdata = NULL,
  type = c(
    "link", "risk", "survival", "cumhaz", "hazard", "quantile", "median", "rmst"
  ),
  times = NULL,
  p = 0.5,
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  interval = c("none", "confidence"),
  level = 0.95,
  re_formula = re.form,
  allow_new_levels = FALSE,
  seed = NULL,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  if (inherits(object, "tall_gam") && identical(type, "terms")) {
    return(NextMethod())
  }
  type <- check_choice(type, surv_predictions)
  interval <- check_choice(interval, c("none", "confidence"))
  if (type == "link") {
    return(predict.tall_regression(
      object,
      newdata,
      "link",
      se.fit,
      draws,
      offset,
      ...,
      interval = interval,
      level = level,
      re_formula = re_formula,
      allow_new_levels = allow_new_levels,
      seed = seed,
      ndraws = ndraws,
      cores = cores,
      to = to,
      overwrite = overwrite
    ))
  }
  to <- check_to(to, overwrite)
  check_no_dots(..., .ignore = no_dpar)
  check_flag(se.fit)
  level <- check_prob(level)
  at <- check_prediction_at(type, times, p)
  if (interval != "none" && length(at) > 1) {
    abort_expected(at, "one number with an interval",
      arg = if (type == "quantile") "p" else "times")
  }
  n_draw <- check_draws(object, draws, ndraws)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(object, newdata, offset, groups = groups)
  n_draw <- n_draw %||% affordable_draws(object, asked$n)
  chosen <- choose_draws(object, n_draw, cores = check_cores(cores))
  made <- list(
    chosen = chosen,
    moments = function(rows) surv_moments(object, rows, chosen, type, at),
    is_class = FALSE,
    has_sd = se.fit
  )
  if (interval != "none") {
    made$many <- choose_draws(object, n_draw, resample = TRUE)
    made$draw <- function(fit, rows, draws) {
      surv_values(fit, rows, draws, type, at)
    }
    made$level <- level
  }
  if (is.null(to)) {
    predicted(asked, made, NULL)
  } else {
    write_predictions(asked, made, NULL, to)
  }
}

surv_predictions <- c(
  "link", "risk", "survival", "cumhaz", "hazard", "quantile", "median", "rmst"
)

# Times, or probabilities, that a prediction is of; 0: it needs none.
check_prediction_at <- function(type, times, p) {
  if (type %in% c("risk", "median", "quantile")) {
    if (!is.null(times)) {
      abort_expected(
        times,
        "NULL",
        paste0("Predictions of type \"", type, "\" are of no time."),
        arg = "times"
      )
    }
    p <- check_numeric_vector(p)
    bad <- which(p <= 0 | p >= 1)
    if (length(bad) > 0) {
      abort_value(p, bad[[1]], "be between 0 and 1", arg = "p")
    }
    return(switch(type, risk = 0, median = 0.5, quantile = p))
  }
  if (is.null(times)) {
    abort_input(
      "{.arg times} must be given for {.code type = \"{type}\"}.",
      argument = "times",
      value = times
    )
  }
  check_times(times)
}

check_times <- function(times) {
  check_numeric_vector(
    times,
    positive = TRUE,
    most = most_of_data,
    arg = "times"
  )
}

# list(fit, se.fit): over draws, of each row, a column for each of `at`.
surv_moments <- function(fit, rows, draws, type, at) {
  n <- nrow(rows$x)
  names <- if (length(at) > 1) format(at, trim = TRUE)
  mean <- sd <- matrix(0, n, length(at), dimnames = list(NULL, names))
  n_draw <- nrow(draws$theta)
  each_block(n, n_draw, size = 2^18, function(here) {
    some <- some_rows(rows, here)
    for (k in seq_along(at)) {
      value <- surv_values(fit, some, draws, type, at[[k]])
      centre <- drop(crossprod(value, draws$weights))
      square <- (value - rep(centre, each = n_draw))^2
      mean[here, k] <<- centre
      sd[here, k] <<- sqrt(drop(crossprod(square, draws$weights)))
    }
  })
  out <- list(fit = mean, se.fit = sd)
  if (length(at) > 1) out else lapply(out, drop_column)
}

# Draws x rows, at one time or probability.
surv_values <- function(fit, rows, draws, type, at) {
  over_strata(fit, rows, draws, function(fit, rows, draws) {
    row_surv_values(fit, rows, draws, type, at)
  })
}

row_surv_values <- function(fit, rows, draws, type, at) {
  eta <- predictor(fit, rows, draws, "link")
  predicted_times(fit$family, eta, draws$aux, type, at)
}

# eta: draws x rows; aux: of draws.
predicted_times <- function(family, eta, aux, type, at) {
  switch(
    type,
    risk = exp(eta),
    survival = exp(log_survival(family, eta, at, aux)),
    cumhaz = -log_survival(family, eta, at, aux),
    hazard = exp(
      time_density(family, eta, at, 1, aux) -
        log_survival(family, eta, at, aux)
    ),
    rmst = restricted_mean(family, eta, at, aux),
    quantile = ,
    median = {
      aux <- aux_matrix(family, aux, nrow(eta))
      find_response(family)$quantile(at, exp(eta), aux)
    }
  )
}

# What a row says that ends at `time`, with an event (status 1) or without.
time_density <- function(family, eta, time, status, aux) {
  y <- matrix(c(time, 0, status), ncol(eta), 3, byrow = TRUE)
  response_log_density(family, eta, y, aux = aux)
}

log_survival <- function(family, eta, time, aux) {
  time_density(family, eta, time, 0, aux)
}

restricted_mean <- function(family, eta, time, aux) {
  own <- find_response(family)$restricted_mean
  if (!is.null(own)) {
    return(own(eta, time, aux))
  }
  rule <- legendre_rule(32)
  out <- 0 * eta
  for (k in seq_along(rule$at)) {
    share <- rule$at[[k]]^2
    value <- exp(log_survival(family, eta, share * time, aux))
    out <- out + rule$weight[[k]] * 2 * rule$at[[k]] * value
  }
  time * out
}

# Nodes and weights on [0, 1]: eigenvalues of the Jacobi matrix (Golub & Welsch
# 1969, Mathematics of Computation 23:221).
legendre_rule <- function(n) {
  k <- seq_len(n - 1)
  jacobi <- matrix(0, n, n)
  jacobi[cbind(k, k + 1)] <- jacobi[cbind(k + 1, k)] <- k / sqrt(4 * k^2 - 1)
  found <- eigen(jacobi, symmetric = TRUE)
  list(at = (found$values + 1) / 2, weight = found$vectors[1, ]^2)
}

# ---- residuals ---------------------------------------------------------------

#' Residuals of times to an event
#'
#' @param object (`tall_surv`) The fit, which kept its data.
#' @param type (string) `"coxsnell"`: \eqn{H(t) - H(t_0)} of a row that ends at
#'   \eqn{t} and entered at \eqn{t_0}, the posterior mean of its cumulative
#'   hazard: censored draws of a unit exponential law where the model is right;
#'   `"martingale"`: the event, 1 or 0, less that; `"deviance"`: the signed
#'   root of the deviance of that, \eqn{m} with the event \eqn{\delta}{delta},
#'   \eqn{\mathrm{sign}(m) \sqrt{-2 [m + \delta \log(\delta -
#'   m)]}}{sign(m) sqrt(-2 [m + delta log(delta - m)])}.
#' @inheritParams fitted-values
#'
#' @return A number for each row.
#' @section Conditions: `tall_error_unsupported` for rows that are censored on
#'   the left or in an interval.
#' @references Therneau, Grambsch & Fleming (1990). Martingale-based residuals
#'   for survival models. *Biometrika* 77, 147.
#' @examplesIf requireNamespace("survival", quietly = TRUE)
#' d <- survival::lung
#' fit <- tall_surv(Surv(time, status == 2) ~ age + sex, d, seed = 1)
#' head(residuals(fit))
#' @importFrom stats residuals
#' @export
residuals.tall_surv <- function(
  object,
  type = c("martingale", "deviance", "coxsnell"),
  draws = NULL,
  ...,
  ndraws = NULL
) {
  type <- check_choice(type, c("martingale", "deviance", "coxsnell"))
  check_no_dots(..., .ignore = no_dpar)
  check_has_data(object)
  asked <- ask_rows(
    object,
    groups = group_request(object),
    needs = "responses"
  )
  n_draw <- check_draws(object, draws, ndraws)
  n_draw <- n_draw %||% affordable_draws(object, asked$n)
  chosen <- choose_draws(object, n_draw)
  over_rows(asked, chosen, pads = TRUE, f = function(rows) {
    check_right(rows$y, "residuals")
    hazard <- row_hazards(object, rows, chosen)
    event <- rows$y[, 3]
    left <- event - hazard
    list(value = switch(
      type,
      coxsnell = hazard,
      martingale = left,
      deviance = sign(left) *
        sqrt(-2 * (left + ifelse(event == 1, log(hazard), 0)))
    ))
  })$value
}

# H(t) - H(t0) of each row, averaged over draws.
row_hazards <- function(fit, rows, draws) {
  out <- numeric(nrow(rows$x))
  each_block(nrow(rows$x), nrow(draws$theta), size = 2^18, function(at) {
    some <- some_rows(rows, at)
    some$y[, 3] <- 0
    value <- over_strata(fit, some, draws, function(fit, rows, draws) {
      eta <- predictor(fit, rows, draws, "link")
      -response_log_density(fit$family, eta, rows$y, aux = draws$aux)
    })
    out[at] <<- drop(crossprod(value, draws$weights))
  })
  out
}

# y: (time, other, status)
check_right <- function(y, f) {
  if (any(!y[, 3] %in% c(0, 1, NA))) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {f}} is for rows that are censored on the right.",
        i = "Rows of this fit are censored on the left, or in intervals."
      )
    )
  }
}

# ---- concordance -------------------------------------------------------------

#' @exportS3Method survival::concordance
concordance.tall_surv <- function(object, ..., newdata = NULL) {
  check_no_dots(...)
  most <- 1e5
  n <- if (is.null(newdata)) stats::nobs(object) else NROW(newdata)
  if (n > most) {
    at <- floor(seq(1, n, length.out = most))
    if (!is.null(newdata)) {
      newdata <- newdata[at, , drop = FALSE]
    } else if (has_source(object)) {
      object <- fit_of_rows(object, at)
    }
  }
  groups <- group_request(object, allow_new_levels = TRUE)
  asked <- ask_rows(object, newdata, groups = groups, needs = "responses")
  rows <- asked_rows(asked)
  if (nrow(rows$x) > most) {
    rows <- some_rows(rows, at)
  }
  check_right(rows$y, "concordance")
  chosen <- choose_draws(object)
  rows <- join_draws(object, rows, chosen, groups)
  eta <- predictor_moments(object, rows, chosen, "link", FALSE)$fit
  seen <- surv_object(rows$y)
  weights <- rows$weight
  if (has_strata(object$family)) {
    # pairs of the same one: others have other hazards
    stratum <- row_strata(object$family$pieces, rows$x)
    # survival knows it by this name alone
    strata <- survival::strata
    return(survival::concordance(
      seen ~ eta + strata(stratum),
      weights = weights,
      reverse = TRUE
    ))
  }
  survival::concordance(
    seen ~ eta,
    weights = weights,
    reverse = is_hazard_model(object)
  )
}

# Do large predictors mean more events?
is_hazard_model <- function(fit) {
  "unit" %in% response_aux(fit$family)
}

# What survival::Surv() makes of rows that are censored on the right.
surv_object <- function(y) {
  if (any(y[, 2] > 0)) {
    survival::Surv(y[, 2], y[, 1], y[, 3])
  } else {
    survival::Surv(y[, 1], y[, 3])
  }
}
