# Losses of predictions on held-out data.

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
    abort_value(y, bad[[1]], "be 0 or 1", "y")
  }
  bad <- which(p < 0 | p > 1)
  if (length(bad) > 0) {
    shown <- if (is.matrix(object)) p else drop(p)
    abort_value(
      shown,
      bad[[1]],
      "lie in [0, 1]",
      "object"
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
    log_p <- row_log_lik(held_out, theta[, at])
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
log_loss.tall_regression <- function(
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
  rows <- test_rows(object, newdata)
  chosen <- choose_draws(object)
  if (has_groups(object)) {
    groups <- group_request(object, allow_new_levels = TRUE)
    rows <- join_draws(object, rows, chosen, groups)
  }
  sum <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(rows$x))
  each_density(object, rows, chosen, function(at, log_p) {
    sum <<- sum + rowSums(log_p)
    average[at] <<- drop(crossprod(exp(log_p), chosen$weights))
  })
  if (statistic == "draw") -sum / length(average) else -mean(log(average))
}

# The likelihood of a group is that of its rows together.
#' @rdname losses
#' @export
log_loss.tall_glmer <- function(object, ...) {
  log_loss.tall_fit(object, ...)
}

#' @rdname losses
#' @export
rmse.tall_regression <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  range = NULL,
  ...
) {
  check_no_dots(...)
  check_is_number(object, "rmse")
  warn_of_limits(object, "rmse()")
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  range <- check_range(range)
  rows <- test_rows(object, newdata, weighs = FALSE)
  groups <- group_request(object, allow_new_levels = TRUE)
  chosen <- choose_draws(object)
  rows <- join_draws(object, rows, chosen, groups)
  square <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(rows$x))
  y <- first_column(rows$y)
  each_block(nrow(rows$x), length(square), size = 2^20, function(at) {
    mu <- predictor(object, some_rows(rows, at), chosen, "response")
    mu <- clip(mu, range)
    square <<- square + rowSums((mu - rep(y[at], each = nrow(mu)))^2)
    average[at] <<- drop(crossprod(mu, chosen$weights))
  })
  if (statistic == "draw") {
    sqrt(square / length(average))
  } else {
    sqrt(mean((average - y)^2))
  }
}

# draws x observations
check_predictions <- function(object) {
  check_given(object, arg = "object")
  if (is.matrix(object)) {
    return(check_matrix(object, arg = "object"))
  }
  matrix(check_numeric_vector(object, arg = "object"), 1)
}

check_range <- function(range) {
  range <- check_numeric_vector(
    range,
    size = 2,
    allow_null = TRUE,
    arg = "range")
  if (!is.null(range) && range[[1]] >= range[[2]]) {
    abort_input(
      "{.arg range} must be two increasing numbers, not
       {format_number(range[[1]])} and {format_number(range[[2]])}.",
      argument = "range",
      value = range)
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
