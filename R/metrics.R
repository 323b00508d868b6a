# How good draws and predictions are. The same along a run: R/monitor.R.

#' Kullback-Leibler divergence from a normal posterior
#'
#' For a posterior that is known to be normal: the divergence of the normal
#' distribution with the mean and covariance of the draws.
#'
#' @param draws (numeric matrix of draws x variables, draws object of
#'   \pkg{posterior}, or [`tall_fit`][tall_fit]) The draws.
#' @param mean (numeric vector) Mean \eqn{\mu} of the posterior. With names, in
#'   any order.
#' @param covariance (numeric matrix) Its covariance \eqn{\Sigma}.
#'
#' @details With \eqn{m} and \eqn{S} the mean and covariance of the draws in d
#' dimensions, \deqn{KL(N(m, S) \| N(\mu, \Sigma)) = \frac12
#' \left[\mathrm{tr}(\Sigma^{-1} S) + (m - \mu)^T \Sigma^{-1} (m - \mu) - d +
#' \log\frac{|\Sigma|}{|S|}\right].}{ KL(N(m, S) || N(mu, Sigma)) = 1/2
#' [tr(Sigma^-1 S) + (m - mu)' Sigma^-1 (m - mu) - d + log(|Sigma| / |S|)].} Of
#' n independent draws of the posterior it is about \eqn{d (d + 3) / (4 n)}.
#'
#' @return A number.
#' @section Conditions: `tall_error_input` if the shapes do not match, or if
#' there are not more draws than variables.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' model <- model_gaussian(matrix(rnorm(400), 200), covariance = diag(2))
#' fit <- sg_sample(model, kernel_sgld(0.001), seed = 1)
#' kl_gaussian(fit, model$posterior_mean, model$posterior_covariance)
#' @export
kl_gaussian <- function(draws, mean, covariance) {
  moments <- draws_moments(draws)
  d <- length(moments$mean)
  mean <- check_numeric_vector(mean, size = d)
  check_covariance(covariance, d)
  names <- names(moments$mean)
  mean <- mean[variable_order(names, names(mean), d)]
  known <- variable_order(names, colnames(covariance), d)
  root <- chol(unname(covariance[known, known, drop = FALSE]))
  # of few draws it is singular, whatever rounding makes of it
  own <- if (moments$n > d) {
    tryCatch(chol(unname(moments$covariance)), error = function(e) NULL)
  }
  if (is.null(own)) {
    abort_input(
      "{.arg draws} must be more than there are variables and vary in every
       direction: the covariance of {count_noun(moments$n, 'draw')} of
       {count_noun(d, 'variable')} is singular.",
      argument = "draws",
      value = moments$n
    )
  }
  shift <- backsolve(root, moments$mean - mean, transpose = TRUE)
  ratio <- backsolve(root, t(own), transpose = TRUE)
  log_ratio <- sum(log(diag(root))) - sum(log(diag(own)))
  (sum(ratio^2) + sum(shift^2) - d) / 2 + log_ratio
}

# list(n, mean, covariance) of draws on the natural scale.
draws_moments <- function(draws, arg = "draws", call = caller_env()) {
  check_given(draws, arg = arg, call = call)
  if (inherits(draws, "tall_fit")) {
    n <- if (is.null(draws$draws)) {
      sum(draws$chains$draws)
    } else {
      posterior::ndraws(draws$draws)
    }
    return(list(
      n = n,
      mean = coef.tall_fit(draws),
      covariance = vcov.tall_fit(draws)
    ))
  }
  points <- diagnostic_points(draws, arg, call)
  moments <- stats::cov.wt(points$draws, points$weights / sum(points$weights))
  list(n = nrow(points$draws), mean = moments$center, covariance = moments$cov)
}

# Where each of the d names `wanted` is among `given`; as they come where names
# are others or there are none.
variable_order <- function(wanted, given, d) {
  if (is.null(wanted) || is.null(given) || !setequal(wanted, given)) {
    return(seq_len(d))
  }
  match(wanted, given)
}

#' Bias in standard deviations
#'
#' Errors of posterior means and variances against known ones.
#'
#' @inheritParams kl_gaussian
#' @param mean,sd (numeric vectors) The exact posterior means and standard
#'   deviations.
#' @param divisor (string) What errors of the variance are divided by: the
#'   variance, or the `"sd"` as in the paper, which makes the result depend on
#'   the unit of the variable.
#'
#' @details \eqn{|\bar\theta_j - E \theta_j| / \mathrm{sd}_j}{|mean_j - E
#' theta_j| / sd_j} and \eqn{|\hat v_j - \mathrm{sd}_j^2| /
#' \mathrm{sd}_j^2}{|v_j - sd_j^2| / sd_j^2} (Mauri & Zanella, 2024, eq. 40,
#' where the latter is divided by \eqn{\mathrm{sd}_j}{sd_j}).
#'
#' @return A data frame of `variable`, `mean` and `variance`.
#' @section Conditions:
#' `tall_error_input` if the lengths do not match.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' draws <- cbind(a = rnorm(1000), b = rnorm(1000, 1, 2))
#' standardised_bias(draws, mean = c(0, 1), sd = c(1, 2))
#' @export
standardised_bias <- function(draws, mean, sd, divisor = c("variance", "sd")) {
  moments <- draws_moments(draws)
  d <- length(moments$mean)
  mean <- check_numeric_vector(mean, size = d)
  sd <- check_numeric_vector(sd, size = d, positive = TRUE)
  divisor <- check_choice(divisor, c("variance", "sd"))
  names <- names(moments$mean)
  mean <- unname(mean[variable_order(names, names(mean), d)])
  sd <- unname(sd[variable_order(names, names(sd), d)])
  error <- abs(unname(diag(moments$covariance)) - sd^2)
  data.frame(
    variable = names %||% paste0("x", seq_len(d)),
    mean = abs(unname(moments$mean) - mean) / sd,
    variance = error / if (divisor == "variance") sd^2 else sd
  )
}

#' Losses of predictions
#'
#' Log-loss and root mean squared error of held-out data, of single draws or of
#' averages over them.
#'
#' @param object For predictions of your own: a numeric vector, or a matrix with
#'   a row for each draw and a column for each held-out observation; for
#'   `log_loss()` probabilities that the response is 1. Or a
#'   [`tall_fit`][tall_fit].
#' @param y (numeric vector) The held-out responses; for `log_loss()` 0 or 1.
#'   Not with a fit.
#' @param newdata (`tall_model` or data frame) For a fit: the held-out data, a
#'   model made from them with the same columns, or for [tall_glm()] and
#'   [tall_nn()] a data frame with the response. `rmse()` takes the data frame
#'   only.
#' @param statistic (string) `"ergodic"`: one value, of predictions averaged
#'   over the draws. `"draw"`: a value for each draw.
#' @param range (two numbers or `NULL`) The range that predictions are clipped
#'   to.
#' @param ... Unused.
#'
#' @details With \eqn{T} the held-out observations and \eqn{p_i} the probability
#' that the model gives to what was observed, \eqn{p_i = \hat p_i^{y_i} (1 -
#' \hat p_i)^{1 - y_i}}{p_i = phat_i^y_i (1 - phat_i)^(1 - y_i)} for a response
#' of 0 or 1, log-loss is \eqn{-\frac{1}{|T|} \sum_{i \in T} \log p_i}{-mean_i
#' log p_i}, ergodic with the averages of the \eqn{p_i} (Mauri & Zanella, 2024,
#' eq. 41, where the minus must stand before both of its terms). Root mean
#' squared errors clip the predictions of each draw, then average them (eqs. 42
#' and 43).
#'
#' Along a run, [monitor_log_loss()] and [monitor_rmse()] do the same.
#'
#' @return A number, or for `statistic = "draw"` one for each draw, chain after
#'   chain. Infinite where something impossible was observed.
#' @section Conditions:
#' `tall_error_input` if shapes do not match, probabilities leave \[0, 1\] or
#' the held-out data do not fit the model.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' log_loss(c(0.9, 0.2, 0.6), y = c(1, 0, 1))
#' rmse(rbind(c(1.2, 6), c(1.4, 4)), y = c(1, 5), range = c(1, 5))
#'
#' test <- 1:10
#' train <- mtcars[-test, ]
#' fit <- tall_glm(am ~ wt, data = train, family = binomial(), seed = 1)
#' log_loss(fit, newdata = mtcars[test, ])
#' @name losses
NULL

#' @rdname losses
#' @export
log_loss <- function(object, ...) {
  UseMethod("log_loss")
}

#' @rdname losses
#' @export
log_loss.default <- function(object, y, statistic = c("ergodic", "draw"), ...) {
  check_no_dots(...)
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  p <- check_predictions(object)
  y <- check_numeric_vector(y, size = ncol(p))
  bad <- which(y != 0 & y != 1)
  if (length(bad) > 0) {
    abort_value(y, bad[[1]], "be 0 or 1", "y", rlang::current_env())
  }
  bad <- which(p < 0 | p > 1)
  if (length(bad) > 0) {
    shown <- if (is.matrix(object)) p else drop(p)
    abort_value(
      shown,
      bad[[1]],
      "lie in [0, 1]",
      "object",
      rlang::current_env()
    )
  }
  one <- rep(y == 1, each = nrow(p))
  observed <- ifelse(one, p, 1 - p)
  dim(observed) <- dim(p)
  if (statistic == "draw") {
    return(-rowMeans(log(observed)))
  }
  -mean(log(colMeans(observed)))
}

#' @rdname losses
#' @export
log_loss.tall_fit <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  ...
) {
  check_no_dots(...)
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  points <- diagnostic_points(object, arg = "object")
  held_out <- test_model(object, newdata)
  weights <- points$weights / sum(points$weights)
  theta <- t(points$draws)
  n_row <- held_out$n_data
  # blocks of draws: memory does not grow with rows x draws
  block <- max(1, floor(2^22 / n_row))
  loss <- numeric(ncol(theta))
  average <- numeric(n_row)
  for (start in seq(1, ncol(theta), by = block)) {
    at <- start:min(ncol(theta), start + block - 1)
    log_p <- row_log_lik(held_out, theta[, at], call = rlang::current_env())
    loss[at] <- -colMeans(log_p)
    average <- average + drop(exp(log_p) %*% weights[at])
  }
  if (statistic == "draw") loss else -mean(log(average))
}

#' @rdname losses
#' @export
rmse <- function(object, ...) {
  UseMethod("rmse")
}

#' @rdname losses
#' @export
rmse.default <- function(
  object,
  y,
  statistic = c("ergodic", "draw"),
  range = NULL,
  ...
) {
  check_no_dots(...)
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  prediction <- check_predictions(object)
  y <- check_numeric_vector(y, size = ncol(prediction))
  prediction <- clip(prediction, check_range(range))
  if (statistic == "draw") {
    error <- sweep(prediction, 2, y)
    return(sqrt(rowMeans(error^2)))
  }
  sqrt(mean((colMeans(prediction) - y)^2))
}

#' @rdname losses
#' @export
rmse.tall_glm <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  range = NULL,
  ...
) {
  check_no_dots(...)
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  range <- check_range(range)
  parts <- test_parts(object, newdata, rlang::current_env())
  theta <- draws_matrix(object)[, seq_len(object$n_coef), drop = FALSE]
  weights <- rep(1, nrow(theta))
  if (!is.null(object$weights)) {
    weights <- as.double(object$weights)
  }
  weights <- weights / sum(weights)
  n_row <- nrow(parts$x)
  block <- max(1, floor(2^22 / n_row))
  loss <- numeric(nrow(theta))
  average <- numeric(n_row)
  for (start in seq(1, nrow(theta), by = block)) {
    at <- start:min(nrow(theta), start + block - 1)
    eta <- tcrossprod(parts$x, theta[at, , drop = FALSE]) + parts$offset
    value <- clip(response_mean(object$family, eta), range)
    loss[at] <- sqrt(colMeans((value - parts$y)^2))
    average <- average + drop(value %*% weights[at])
  }
  if (statistic == "draw") loss else sqrt(mean((average - parts$y)^2))
}

# draws x observations
check_predictions <- function(object, call = caller_env()) {
  check_given(object, arg = "object", call = call)
  if (is.matrix(object)) {
    return(check_matrix(object, arg = "object", call = call))
  }
  matrix(check_numeric_vector(object, arg = "object", call = call), 1)
}

check_range <- function(range, call = caller_env()) {
  range <- check_numeric_vector(
    range,
    size = 2,
    allow_null = TRUE,
    arg = "range",
    call = call
  )
  if (!is.null(range) && range[[1]] >= range[[2]]) {
    abort_input(
      "{.arg range} must be two increasing numbers, not
       {format_number(range[[1]])} and {format_number(range[[2]])}.",
      argument = "range",
      value = range,
      call = call
    )
  }
  range
}

clip <- function(x, range) {
  if (is.null(range)) {
    return(x)
  }
  x[x < range[[1]]] <- range[[1]]
  x[x > range[[2]]] <- range[[2]]
  x
}

# A model of held-out data with the variables of the fit.
test_model <- function(fit, newdata, call = caller_env()) {
  check_given(newdata, arg = "newdata", call = call)
  if (is.data.frame(newdata)) {
    parts <- test_parts(fit, newdata, call, weighs = TRUE)
    newdata <- build_glm(
      parts$x,
      parts$y,
      fit$family,
      prior_flat(),
      NULL,
      parts$trials %||% parts$weights,
      parts$offset,
      fit$sigma,
      prior_flat(),
      arg_y = parts$name,
      call = call
    )
  }
  check_model(newdata, arg = "newdata", call = call)
  if (!identical(newdata$variables, fit$variables)) {
    abort_input(
      c(
        "{.arg newdata} must have the variables of the fit.",
        x = "The fit has {quote_columns(fit$variables)}; the held-out data
             {quote_columns(newdata$variables)}."
      ),
      argument = "newdata",
      expected = fit$variables,
      value = newdata$variables,
      call = call
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
      argument = "newdata",
      call = call
    )
  }
  newdata
}

# Design matrix, response, trials and offset of held-out rows, as the fit's own
# were read; `source` is a fit of tall_glm() or a frame_source(). omit: leave
# rows with missing values out instead of refusing them. weighs: their weights
# in a Gaussian model, too, which are precisions.
test_parts <- function(source, newdata, call, omit = FALSE, weighs = FALSE) {
  check_given(newdata, arg = "newdata", call = call)
  if (is.null(source$terms) || !is.data.frame(newdata)) {
    expected <- if (is.null(source$terms)) {
      "a model of the held-out data"
    } else {
      "a data frame"
    }
    abort_expected(newdata, expected, arg = "newdata", call = call)
  }
  frame <- prediction_frame(source, source$terms, newdata, call)
  # of all rows: what follows leaves some out
  offset <- add_offsets(
    nrow(frame),
    stats::model.offset(frame),
    new_offset(source, newdata, call)
  )
  trials <- new_trials(source, newdata, call)
  weights <- if (weighs && has_precisions(source$family)) {
    new_weights(source, newdata, call)
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
    abort_expected(
      newdata,
      "at least one complete row",
      arg = "newdata",
      call = call
    )
  }
  if (!is.null(source$response_levels)) {
    frame[[1]] <- factor(frame[[1]], levels = source$response_levels)
  }
  name <- response_name(frame)
  check_covariates(frame, call)
  y <- frame_response(
    stats::model.response(frame, "any"),
    source$family,
    name,
    call
  )
  check_finite(y$values, arg = name, call = call)
  check_new_values(y, trials, source$family, name, call)
  x <- stats::model.matrix(
    source$terms,
    frame,
    contrasts.arg = source$contrasts
  )
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
