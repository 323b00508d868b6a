# predict(), and what every method that predicts shares: which draws, which
# rows, and how much may be asked for at once.

#' Predictions
#'
#' Posterior means of the linear predictor or of the expected response.
#'
#' @param object (`tall_glm`) The fit, from [tall_glm()].
#' @param newdata (data frame, [source][tall_source] or `NULL`) Where to
#'   predict; `NULL`: the data of the fit, if it kept them. A source, such as a
#'   [tall_stream()], a lazy table of \pkg{dbplyr} or a matrix with the names of
#'   columns, is read block by block. A matrix with the columns of `x` for a fit
#'   of [tall_glm.fit()].
#' @param type (string) `"link"`: the linear predictor; `"response"`: its
#'   inverse link, averaged over the posterior draws (a probability for binomial
#'   responses).
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well?
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all, for `type = "response"` as
#'   far as rows x draws stays below 5e7, and 400 at the least: so many also
#'   where only a pass can tell how many rows there are.
#' @param offset (numeric vector or `NULL`) Offset of the new rows, when the
#'   fit's was given as an argument rather than in the formula. `NULL`: that
#'   argument, evaluated in `newdata`; that of the fit's own rows is known.
#' @param interval (string) Intervals as well, as of [stats::predict.lm()]?
#'   `"confidence"`: of the linear predictor or the expected response;
#'   `"prediction"`: of responses, from R's generator, as
#'   [predictive_interval()][posterior-predict] (with `type = "response"`).
#' @param level (number between 0 and 1) Their probability.
#' @param cores (whole number) Threads. The results do not depend on it.
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @details Means and standard deviations of the linear predictor follow from
#' those of the draws, at the cost of a row for each row of `newdata`. Those of
#' the response take rows x draws evaluations, in blocks: the memory they need
#' does not grow with rows x draws.
#'
#' Where the fit read its rows by passes over a source, so do `predict()`,
#' [fitted()][fitted-values], [residuals()][fitted-values] and their kin, which
#' hold a block of rows and their own result. What makes a matrix with a column
#' for each row, or the model frame, brings the rows to memory, and is refused
#' where that takes more than 5e7 numbers. Rows of a lazy table are streamed in
#' the order in which the database hands them out, which is one where
#' `dplyr::arrange()` says so; [augment()][fit-accessors] makes predictions of
#' such a table in the database and leaves them there.
#'
#' @return A numeric vector with a value for each row, `NA` where a covariate is
#'   missing, without names if the rows are those of a source; with `se.fit =
#'   TRUE` a list of `fit` and `se.fit`. With intervals a matrix with the
#'   columns `fit`, `lwr` and `upr` in its place. Without `newdata` and with
#'   `na.action = na.exclude`, rows left out of the fit are `NA`.
#' @section Conditions:
#' `tall_error_input` if a covariate is missing in `newdata` or has a new level;
#' `tall_error_stale` if there are no data; `tall_error_source` if the fit's
#' source has other rows than it had.
#' @seealso [posterior_epred()][posterior-predict] for the draws themselves.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' predict(fit, data.frame(wt = c(2, 3)), type = "response", se.fit = TRUE)
#' @importFrom stats predict
#' @export
predict.tall_glm <- function(
  object,
  newdata = NULL,
  type = c("link", "response"),
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  interval = c("none", "confidence", "prediction"),
  level = 0.95,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  type <- check_choice(type, c("link", "response"))
  check_flag(se.fit)
  interval <- check_interval(interval, type, object$family)
  level <- check_prob(level)
  check_no_dots(..., .ignore = no_groups)
  cores <- check_cores(cores)
  draws <- check_draws(object, draws, ndraws)
  is_response <- type == "response" && object$family$link != "identity"
  passes <- is_passed_over(object, newdata)
  new <- if (!passes) prediction_rows(object, newdata, offset)
  if (is_response && is.null(draws)) {
    n <- if (passes) n_passed_over(object, newdata) else nrow(new$x)
    draws <- affordable_draws(object, n)
  }
  chosen <- choose_draws(object, draws)
  moments <- function(new) {
    if (is_response) {
      response_moments(object, new, chosen, se.fit, cores)
    } else {
      link_moments(new, chosen, se.fit)
    }
  }
  out <- if (passes) {
    gather_predictions(object, newdata, moments, offset)
  } else {
    lapply(moments(new), function(value) {
      names(value) <- rownames(new$x)
      if (is.null(newdata)) stats::napredict(object$na_action, value) else value
    })
  }
  if (interval != "none") {
    bounds <- switch(
      interval,
      confidence = mean_interval,
      prediction = response_interval
    )(object, level, newdata, type, draws, offset, cores)
    out$fit <- with_bounds(out$fit, bounds)
  }
  if (se.fit) out else out$fit
}

# The linear predictor is linear: its moments are those of theta.
link_moments <- function(new, chosen, se.fit) {
  centre <- colSums(chosen$theta * chosen$weights)
  if (is_sparse(new$x)) {
    return(sparse_link_moments(new, chosen, centre, se.fit))
  }
  out <- list(fit = drop(new$x %*% centre) + new$offset)
  if (se.fit) {
    root <- sqrt(chosen$weights) * sweep(chosen$theta, 2, centre)
    covariance <- crossprod(root)
    out$se.fit <- sqrt(pmax(rowSums((new$x %*% covariance) * new$x), 0))
  }
  out
}

# Draw by draw: a product with the covariance would have no zeros.
sparse_link_moments <- function(new, chosen, centre, se.fit) {
  out <- list(fit = drop(linear_draws(new, t(centre))))
  if (se.fit) {
    root <- sqrt(chosen$weights) * sweep(chosen$theta, 2, centre)
    n <- nrow(new$x)
    out$se.fit <- numeric(n)
    each_block(n, nrow(root), size = 2^18, function(rows) {
      part <- list(x = design_rows(new$x, rows), offset = 0)
      out$se.fit[rows] <<- sqrt(colSums(linear_draws(part, root)^2))
    })
  }
  out
}

# Blocks small enough to stay in the cache.
response_moments <- function(fit, new, chosen, se.fit, cores) {
  n <- nrow(new$x)
  mean <- sd <- numeric(n)
  each_block(n, nrow(chosen$theta), size = 2^18, function(rows) {
    value <- mean_draws(fit, rows_of(new, rows), chosen$theta, cores)
    mean[rows] <<- drop(crossprod(value, chosen$weights))
    if (se.fit) {
      # sd / mean is far above the root of the machine's precision
      square <- drop(crossprod(value^2, chosen$weights))
      sd[rows] <<- sqrt(pmax(square - mean[rows]^2, 0))
    }
  })
  if (se.fit) list(fit = mean, se.fit = sd) else list(fit = mean)
}

# f(rows) for blocks of rows that make about `size` numbers with n_draw draws.
each_block <- function(n, n_draw, f, size = 2^22) {
  block <- max(1, floor(size / n_draw))
  for (start in (seq_len(ceiling(n / block)) - 1) * block) {
    f(seq(start + 1, min(n, start + block)))
  }
}

rows_of <- function(new, rows) {
  list(x = design_rows(new$x, rows), offset = new$offset[rows])
}

# Linear predictors, draws x rows.
linear_draws <- function(new, theta, cores = 1L) {
  link_draws(new, theta, NULL, cores)
}

# Their inverse link, taken while they are in the cache.
mean_draws <- function(fit, new, theta, cores) {
  link_draws(new, theta, response_facts(fit$family)$place, cores)
}

# place: of the response in the core, NULL for the predictors themselves.
link_draws <- function(new, theta, place, cores) {
  x <- new$x
  if (!is_sparse(x)) {
    storage.mode(x) <- "double"
  }
  offset <- if (anyNA(new$offset) || any(new$offset != 0)) {
    as.double(new$offset)
  }
  .Call(ffi_link_product, theta, x, offset, place, as.integer(cores))
}

# ---- which draws -------------------------------------------------------------

# The number of draws asked for, as `draws` or as `ndraws`; NULL: all.
check_draws <- function(fit, draws, ndraws = NULL) {
  check_has_draws(fit)
  arg <- "draws"
  if (!is.null(ndraws)) {
    if (!is.null(draws)) {
      abort_input(
        "{.arg draws} and {.arg ndraws} are the same argument: give one.",
        argument = "ndraws",
        value = ndraws
      )
    }
    draws <- ndraws
    arg <- "ndraws"
  }
  available <- posterior::ndraws(fit$draws)
  check_count(draws, max = available, allow_null = TRUE, arg = arg)
}

# All draws where that costs less than a second, 400 where it costs more. n_row:
# NA of rows that were not counted.
affordable_draws <- function(fit, n_row, most = large_matrix, least = 400) {
  available <- posterior::ndraws(fit$draws)
  wanted <- max(least, if (is.na(n_row)) 0 else floor(most / max(1, n_row)))
  if (wanted < available) wanted
}

# Evenly spaced draws: list(theta, aux, weights). Draws of a decaying schedule
# carry weights; with resample = TRUE they are repeated instead, in proportion.
choose_draws <- function(fit, draws = NULL, resample = FALSE) {
  check_has_all(fit)
  all <- draws_matrix(fit)
  chosen <- choose_rows(fit, draws, resample)
  if (!is.null(chosen$rows)) {
    all <- all[chosen$rows, , drop = FALSE]
  }
  coefficients <- seq_len(fit$n_coef)
  list(
    theta = unname(all[, coefficients, drop = FALSE]),
    aux = aux_draws(fit, all),
    weights = chosen$weights / sum(chosen$weights),
    rows = chosen$rows
  )
}

# list(rows, weights): which of all draws, NULL for all.
choose_rows <- function(fit, draws = NULL, resample = FALSE) {
  n <- posterior::ndraws(fit$draws)
  weights <- if (!is.null(fit[["weights"]])) as.numeric(fit[["weights"]])
  if (resample && !is.null(weights)) {
    wanted <- if (is.null(draws)) n else draws
    at <- (seq_len(wanted) - 0.5) / wanted
    rows <- pmin(n, findInterval(at, cumsum(weights) / sum(weights)) + 1)
    weights <- NULL
  } else if (is.null(draws)) {
    rows <- NULL
  } else {
    rows <- floor((seq_len(draws) - 0.5) * n / draws) + 1
    weights <- weights[rows]
  }
  if (is.null(weights)) {
    weights <- rep(1, if (is.null(rows)) n else length(rows))
  }
  list(rows = rows, weights = weights)
}

# Those of the response's auxiliary parameters: a vector of one, a matrix of
# several; NULL without any.
aux_draws <- function(fit, draws) {
  known <- known_values(fit$family, fit$sigma)
  if (length(known) == 0) {
    return(NULL)
  }
  out <- matrix(rep(unname(known), each = nrow(draws)), nrow(draws))
  at <- which(is.na(known))
  out[, at] <- draws[, fit$n_coef + seq_along(at)]
  if (ncol(out) == 1) out[, 1] else out
}

# Their posterior means, or their known values; NULL without any.
mean_aux <- function(fit) {
  known <- known_values(fit$family, fit$sigma)
  at <- which(is.na(known))
  known[at] <- coef.tall_fit(fit)[fit$n_coef + seq_along(at)]
  if (length(known) > 0) unname(known)
}

# Their names. Networks have a family of another make.
aux_of_fit <- function(fit) {
  response_aux(if (inherits(fit, "tall_nn")) nn_family(fit) else fit$family)
}

# The most numbers that are made, or evaluated, unasked.
large_matrix <- 5e7

# Matrices that nobody asked for are refused; those of newdata are asked for.
check_matrix_size <- function(fit, n_row, draws, newdata) {
  n_draw <- if (is.null(draws)) posterior::ndraws(fit$draws) else draws
  if (!is.null(newdata) || n_row * n_draw <= large_matrix) {
    return(invisible())
  }
  fits <- floor(large_matrix / n_row)
  size <- structure(8 * n_row * n_draw, class = "object_size")
  abort_tall(
    "memory",
    c(
      "{count_noun(n_row, 'row')} x {count_noun(n_draw, 'draw')} are
       {format_count(n_row * n_draw)} numbers
       ({format(size, units = 'auto')}).",
      i = if (fits >= 1) {
        "Give {.arg newdata}, or at most {.code draws = {fits}}."
      } else {
        "Give {.arg newdata}."
      }
    ),
    argument = "draws",
    value = n_row * n_draw,
    expected = large_matrix
  )
}
