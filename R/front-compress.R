# Columns that a user has rounded, so that rows become alike, and what that does
# to a posterior.

#' @section Rounded columns:
#' Rows that are alike count as one, and where few differ, a fit takes, after
#' the pass that counts them, as long as one of these few.
#' `compress = c(age = 1, income = 100)` rounds the columns `age` and `income`
#' of `data` to multiples of 1 and of 100 before all else, in a database by its
#' own `ROUND()`, so that more of
#' them are alike. The fit is that of the rounded rows. What this does is
#' measured and printed: with posterior covariance \eqn{V}{V} and log posteriors
#' \eqn{\pi}{pi} of the rows as they were and \eqn{\tilde\pi}{pi~} of the
#' rounded ones, one step of Newton's from the posterior mean
#' \eqn{\bar\theta}{theta-bar} moves it by
#' \deqn{\delta = V\, \nabla (\log\pi - \log\tilde\pi)(\bar\theta).}{d = V
#' grad(log pi - log pi~)(theta-bar).}
#' `fit$compressed` has the `steps` and, as `shift`, \eqn{\delta_k /
#' \sqrt{V_{kk}}}{d_k / sqrt(V_kk)} of each coordinate: one pass over the rows
#' as they were, which are in memory twice meanwhile where the fit's are.
#' Rounding to steps of \eqn{s} takes from a coefficient a share of some
#' \eqn{s^2 / (12 \mathrm{var}(x))}{s^2 / (12 var(x))}, as in Sheppard's
#' correction of variances; where that is many of
#' its standard deviations, take smaller steps: beyond some two of them, one
#' step of Newton's tells no more than that it is far. Where the rows as they
#' were have other columns, as by `factor(age)`, `shift` is `NULL`. Halves may
#' be rounded up by a database and to even numbers by R. Rows that
#' [dplyr::arrange()] orders must be in an order by columns that are not
#' rounded. Predictions for new rows round nothing.
#' @name tall_glm
#' @rdname tall_glm
NULL

# Steps by the names of columns; NULL: rows are as they are.
check_compress <- function(compress) {
  if (identical(compress, "exact")) {
    return(NULL)
  }
  names <- names(compress)
  ok <- is.numeric(compress) && length(compress) > 0 && !is.null(names) &&
    all(nzchar(names) & !duplicated(names)) &&
    all(is.finite(compress) & compress > 0)
  if (!ok) {
    abort_expected(
      compress,
      "\"exact\", or positive numbers with the names of columns"
    )
  }
  stats::setNames(as.double(compress), names)
}

# idle: by name, is an argument given that has no place with rounding?
check_beside_rounding <- function(compress, idle) {
  steps <- check_compress(compress)
  if (!is.null(steps) && any(idle)) {
    name <- names(idle)[idle][[1]]
    abort_tall(
      "unsupported",
      c(
        "{.arg compress} has no place with {.arg {name}}.",
        i = "What rounding does to the posterior would not be known."
      ),
      argument = "compress",
      value = compress
    )
  }
}

# The data of a call, rounded. exact: they as they are.
compress_asked <- function(asked, compress) {
  steps <- if (!is.null(compress)) check_compress(compress)
  if (is.null(steps)) {
    return(asked)
  }
  if (!asked$has_data) {
    abort_input(
      "{.arg compress} rounds columns of {.arg data}, which was not given.",
      argument = "compress",
      value = compress
    )
  }
  asked$steps <- steps
  asked$exact <- asked$data
  ask_of(asked, rounded_data(asked$data, steps))
}

# A front end that asks for the rows as they were. terms: how bases of splines
# and others are made, those of the rounded rows.
exact_front <- function(front, terms) {
  asked <- front$asked
  asked$formula <- asked$matched$formula <- terms
  front$asked <- ask_of(asked, asked$exact)
  front
}

# list(steps, shift) of a fit, NULL: nothing was rounded. gradients(theta):
# list(exact, rounded), of the first coordinates.
compressed_by <- function(front, fit, gradients) {
  steps <- front$asked$steps
  if (is.null(steps)) {
    return(NULL)
  }
  list(steps = steps, shift = rounding_shift(fit, gradients))
}

# NULL: it cannot be told, as of variables that were not kept, or where the rows
# as they were have other columns or levels.
rounding_shift <- function(fit, gradients) {
  tryCatch(
    {
      theta <- unname(fit_unconstrained(fit))
      share <- choose_rows(fit)$weights
      own <- stats::cov.wt(theta, share / sum(share))
      at <- gradients(own$center)
      if (is.null(at)) {
        return(NULL)
      }
      away <- at$exact - at$rounded
      moved <- drop(own$cov[, seq_along(away), drop = FALSE] %*% away)
      stats::setNames(moved / sqrt(diag(own$cov)), fit$coordinates)
    },
    tall_error_unsupported = function(e) NULL,
    tall_error_input = function(e) NULL,
    tall_error_source = function(e) NULL,
    tall_error_memory = function(e) NULL,
    # the fit is there
    interrupt = function(e) NULL
  )
}

# model: of the rounded rows; exact(): that of the rows as they were.
rounded_in_memory <- function(model, exact) {
  function(theta) {
    of <- exact()
    if (!identical(of$variables, model$variables)) {
      return(NULL)
    }
    slope <- function(model) model_evaluate(model, theta)$gradient[, 1]
    list(exact = slope(of), rounded = slope(model))
  }
}

# rows: rounded, that were passed over; sigma: of a normal response, if known.
rounded_in_passes <- function(front, rows, sigma, run) {
  is_normal <- find_response(rows$family)$is_quadratic
  slope_of <- if (is_normal) normal_slope else sums_slope
  function(theta) {
    slope <- function(rows) slope_of(rows, theta, sigma, run$control)
    passed <- rows_passes(unclass(rows), rows$in_sql)
    exact <- with_source(passed, data_source(front$asked$exact))
    # which is of other values
    exact["digest"] <- list(NULL)
    list(exact = slope(exact), rounded = slope(passed))
  }
}

sums_slope <- function(rows, theta, sigma, control) {
  n <- length(rows$design$columns)
  beside <- sum(is.na(known_values(rows$family, sigma)))
  sums_at(rows, theta[seq_len(n + beside)], control)$gradient
}

# That of log(sigma) but for a constant.
normal_slope <- function(rows, theta, sigma, control) {
  n <- length(rows$design$columns)
  found <- residuals_of(rows, theta[seq_len(n)], control)
  precision <- (if (is.null(sigma)) exp(theta[[n + 1]]) else sigma)^-2
  c(found$gradient, if (is.null(sigma)) found$rss) * precision
}
