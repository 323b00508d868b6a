# Fits of tall_multinom() and tall_polr(): predictions, losses, what loo and
# bayesplot ask for.

#' Predictions of classes
#'
#' Of fits of [tall_multinom()] and [tall_polr()]: classes, probabilities,
#' predictors, and draws for the generics of \pkg{rstantools}.
#'
#' @param object,x,formula (`tall_classes`) The fit.
#' @param newdata (data frame or `NULL`) Where to predict; `NULL`: the data of
#'   the fit, if it kept them.
#' @param type (string) `"class"`: the most probable one; `"probs"`: posterior
#'   means of the probabilities, or `"response"`, the same; `"link"`: of the
#'   predictors (one of ordered
#'   classes; one for each class but the reference, of others).
#' @param se.fit (`TRUE` or `FALSE`) With `"probs"` or `"link"`: posterior
#'   standard deviations as well, in a list of `fit` and `se.fit`?
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param offset (vector or `NULL`) Added to the predictor, of `tall_polr()`.
#' @param transform (`TRUE` or `FALSE`) Probabilities instead of predictors?
#' @param seed (whole number or `NULL`) Seed of the responses.
#' @param pointwise (`TRUE` or `FALSE`) Return a function of rows and draws?
#' @param statistic (string) As of [log_loss()].
#' @param ... Unused: other arguments are refused.
#'
#' @return `predict()`: a factor, or a matrix with a row for each row of
#'   `newdata` and a column for each class or predictor. `posterior_epred()`: an
#'   array of draws x observations x classes, as brms has it;
#'   `posterior_linpred()`: draws x observations, of unordered classes x
#'   predictors as well. `posterior_predict()`: draws x observations, the
#'   numbers of the classes, with the attribute `levels`. `log_lik()`: draws x
#'   observations. `fitted()`: probabilities. `residuals()`: 1 less the
#'   probability of the class that came. `log_loss()`: a number, or one for each
#'   draw. `augment()`: a tibble of the data with `.fitted`, the most probable
#'   class, `.prob_` and each class, and `.resid` for the data of the fit.
#' @section Conditions: those of [predict.tall_glm()].
#' @examples
#' fit <- tall_multinom(Species ~ Sepal.Width, iris, iter = 500, seed = 1)
#' predict(fit, iris[c(1, 60, 120), ])
#' dim(rstantools::posterior_epred(fit, newdata = iris[1:5, ], draws = 10))
#' @name predict.tall_classes
NULL

#' @rdname predict.tall_classes
#' @export
predict.tall_classes <- function(
  object,
  newdata = NULL,
  type = c("class", "probs", "link", "response"),
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(..., .ignore = no_groups)
  type <- check_choice(type, c("class", "probs", "link", "response"))
  check_flag(se.fit)
  draws <- check_draws(object, draws, ndraws)
  new <- class_rows(object, newdata, offset)
  f <- if (type == "link") class_linear else class_probs
  found <- class_moments(object, new, f, draws)
  pad <- function(value) {
    if (is.null(newdata)) stats::napredict(object$na_action, value) else value
  }
  if (type != "class") {
    out <- list(fit = pad(found$mean), se.fit = pad(found$sd))
    return(if (se.fit) out else out$fit)
  }
  out <- likely_class(object, found$mean)
  if (is.null(newdata)) stats::naresid(object$na_action, out) else out
}

# The most probable class of each row; NA where probabilities are.
likely_class <- function(fit, probs) {
  best <- max.col(replace(probs, is.na(probs), -1), "first")
  best[is.na(probs[, 1])] <- NA
  levels <- fit$response_levels
  out <- factor(levels[best], levels, ordered = is_ordinal(fit))
  stats::setNames(out, rownames(probs))
}

is_ordinal <- function(fit) {
  class_methods[[fit$method]]$is_ordered
}

# list(x, offset) of new rows, or of the fit's own.
class_rows <- function(fit, newdata, offset = NULL) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    x <- source_design(fit, fit$terms, fit$frame)
    own <- stats::model.offset(fit$frame)
  } else {
    read <- frame_rows(fit, newdata)
    x <- read$x
    own <- add_offsets(nrow(x), read$offset, if (is.null(offset)) {
      new_offset(fit, newdata)
    })
  }
  given <- check_numeric_vector(
    offset,
    size = c(1, nrow(x)),
    allow_null = TRUE,
    arg = "offset"
  )
  list(
    x = x[, fit$design_columns, drop = FALSE],
    offset = add_offsets(nrow(x), own, given)
  )
}

# Draws of all variables, draws x variables, and their weights.
class_draws <- function(fit, draws = NULL, resample = FALSE) {
  check_has_all(fit)
  all <- draws_matrix(fit)
  chosen <- choose_rows(fit, draws, resample)
  if (!is.null(chosen$rows)) {
    all <- all[chosen$rows, , drop = FALSE]
  }
  list(theta = unname(all), weights = chosen$weights / sum(chosen$weights))
}

# Predictors: draws x rows x 1, or one for each class but the first.
class_linear <- function(fit, new, theta) {
  p <- ncol(new$x)
  n_eta <- if (is_ordinal(fit)) 1 else length(fit$response_levels) - 1
  out <- array(0, c(nrow(theta), nrow(new$x), n_eta))
  for (k in seq_len(n_eta)) {
    own <- theta[, (k - 1) * p + seq_len(p), drop = FALSE]
    out[, , k] <- tcrossprod(own, new$x)
    out[, , k] <- out[, , k] + rep(new$offset, each = nrow(theta))
  }
  out
}

# Probabilities: draws x rows x classes.
class_probs <- function(fit, new, theta) {
  eta <- class_linear(fit, new, theta)
  if (is_ordinal(fit)) {
    return(ordered_probs(fit, eta[, , 1], theta, ncol(new$x), dim(eta)))
  }
  n_eta <- dim(eta)[[3]]
  largest <- matrix(0, dim(eta)[[1]], dim(eta)[[2]])
  for (k in seq_len(n_eta)) {
    largest <- pmax(largest, eta[, , k])
  }
  out <- array(0, dim(eta) + c(0, 0, 1))
  out[, , 1] <- exp(-largest)
  total <- out[, , 1]
  for (k in seq_len(n_eta)) {
    out[, , k + 1] <- exp(eta[, , k] - largest)
    total <- total + out[, , k + 1]
  }
  out / as.vector(total)
}

# Differences are taken in the tail where they are small.
ordered_probs <- function(fit, eta, theta, p, shape) {
  n <- length(fit$response_levels)
  below <- if (fit$method == "probit") stats::pnorm else stats::plogis
  out <- array(0, c(shape[1:2], n))
  cut <- function(k) {
    if (k == 0) -Inf else if (k == n) Inf else theta[, p + k]
  }
  for (k in seq_len(n)) {
    u <- cut(k) - eta
    v <- cut(k - 1) - eta
    upper <- v > 0
    value <- below(u) - below(v)
    flipped <- below(-v) - below(-u)
    out[, , k] <- ifelse(upper, flipped, value)
  }
  out
}

# list(mean, sd), rows x classes or predictors, over the draws.
class_moments <- function(fit, new, f, draws) {
  chosen <- class_draws(fit, draws)
  names <- if (identical(f, class_probs)) {
    fit$response_levels
  } else if (!is_ordinal(fit)) {
    fit$response_levels[-1]
  } else {
    "eta"
  }
  n <- nrow(new$x)
  mean <- matrix(
    0,
    n,
    length(names),
    dimnames = list(rownames(new$x), names)
  )
  sd <- mean
  n_each <- nrow(chosen$theta) * length(names)
  each_block(n, n_each, size = 2^20, function(rows) {
    value <- f(fit, class_rows_at(new, rows), chosen$theta)
    value <- matrix(value, nrow(chosen$theta))
    centre <- drop(crossprod(value, chosen$weights))
    square <- crossprod(sweep(value, 2, centre)^2, chosen$weights)
    mean[rows, ] <<- centre
    sd[rows, ] <<- sqrt(drop(square))
  })
  list(mean = mean, sd = sd)
}

class_rows_at <- function(new, rows) {
  list(x = new$x[rows, , drop = FALSE], offset = new$offset[rows])
}

# ---- draws -------------------------------------------------------------------

class_array <- function(fit, newdata, draws, offset, f) {
  size <- length(fit$response_levels)
  n_draw <- draws %||% posterior::ndraws(fit$draws)
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    check_matrix_size(fit, fit$n_data * size, n_draw, newdata)
  }
  new <- class_rows(fit, newdata, offset)
  out <- f(fit, new, class_draws(fit, draws, resample = TRUE)$theta)
  names <- draw_names(new)
  if (identical(f, class_probs)) {
    dimnames(out) <- c(names, list(fit$response_levels))
  } else if (is_ordinal(fit)) {
    out <- matrix(out, dim(out)[[1]], dimnames = names)
  } else {
    dimnames(out) <- c(names, list(fit$response_levels[-1]))
  }
  out
}

#' @rdname predict.tall_classes
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_classes <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(..., .ignore = no_groups)
  draws <- check_draws(object, draws, ndraws)
  class_array(object, newdata, draws, offset, class_probs)
}

#' @rdname predict.tall_classes
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_classes <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL
) {
  check_flag(transform)
  check_no_dots(..., .ignore = no_groups)
  draws <- check_draws(object, draws, ndraws)
  f <- if (transform) class_probs else class_linear
  class_array(object, newdata, draws, offset, f)
}

#' @rdname predict.tall_classes
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_classes <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(..., .ignore = no_groups)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  mu <- class_array(object, newdata, draws, offset, class_probs)
  out <- with_seed(seed, class_responses(mu))
  dimnames(out) <- dimnames(mu)[1:2]
  attr(out, "levels") <- object$response_levels
  out
}

# Classes from 1, draws x rows.
class_responses <- function(mu) {
  out <- find_response("categorical")$draw(mu, NULL, list())
  out <- matrix(out, dim(mu)[[1]])
  out[is.na(mu[, , 1])] <- NA
  out
}

# Classes of rows, from 1.
class_observed <- function(fit, newdata = NULL) {
  frame <- if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    fit$frame
  } else {
    if (!is.data.frame(newdata)) {
      abort_expected(newdata, "a data frame", arg = "newdata")
    }
    prediction_frame(fit, fit$terms, newdata)
  }
  values <- as.character(stats::model.response(frame, "any"))
  check_levels(values, fit$response_levels, response_name(frame))
  match(values, fit$response_levels)
}

#' @rdname predict.tall_classes
#' @exportS3Method rstantools::log_lik
log_lik.tall_classes <- function(
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
  draws <- check_draws(object, draws, ndraws)
  y <- class_observed(object, newdata)
  weights <- if (is.null(newdata)) stats::model.weights(object$frame)
  weights <- weights %||% rep(1, length(y))
  new <- class_rows(object, newdata, offset)
  chosen <- class_draws(object, draws, resample = TRUE)
  light <- object[c("method", "response_levels")]
  f <- function(rows, theta, aux) {
    new <- class_rows_at(new, rows)
    class_log_lik(light, new, y[rows], weights[rows], theta)
  }
  if (pointwise) {
    return(loo_function(object, length(y), chosen, f))
  }
  if (is.null(newdata)) {
    check_matrix_size(object, length(y), nrow(chosen$theta), newdata)
  }
  out <- matrix(
    0,
    nrow(chosen$theta),
    length(y),
    dimnames = draw_names(new)
  )
  n_each <- nrow(out) * length(light$response_levels)
  each_block(length(y), n_each, size = 2^20, function(rows) {
    out[, rows] <<- f(rows, chosen$theta, NULL)
  })
  out
}

class_log_lik <- function(fit, new, y, weights, theta) {
  mu <- class_probs(fit, new, theta)
  n_draw <- nrow(theta)
  at <- cbind(
    rep(seq_len(n_draw), length(y)),
    rep(seq_along(y), each = n_draw),
    rep(y, each = n_draw)
  )
  matrix(rep(weights, each = n_draw) * log(mu[at]), n_draw)
}

#' @rdname predict.tall_classes
#' @export
log_loss.tall_classes <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  ...
) {
  check_no_dots(...)
  check_given(newdata)
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  y <- class_observed(object, newdata)
  new <- class_rows(object, newdata)
  chosen <- class_draws(object)
  sum <- numeric(nrow(chosen$theta))
  average <- numeric(length(y))
  n_each <- length(sum) * length(object$response_levels)
  each_block(length(y), n_each, size = 2^20, function(rows) {
    log_p <- class_log_lik(
      object,
      class_rows_at(new, rows),
      y[rows],
      rep(1, length(rows)),
      chosen$theta
    )
    sum <<- sum + rowSums(log_p)
    average[rows] <<- drop(crossprod(exp(log_p), chosen$weights))
  })
  if (statistic == "draw") -sum / length(average) else -mean(log(average))
}
