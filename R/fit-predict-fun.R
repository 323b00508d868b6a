# Predictions and log likelihoods of fits of any model: by a function of the
# user's, by the model's own.

#' Predictions of your own model
#'
#' What a function of the parameters makes of new data, over the posterior:
#' means, standard deviations and intervals, or the draws.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit, from [sg_sample()].
#' @param newdata (data frame, matrix, vector, named list, or `NULL`) Where to
#'   predict, in the form of the `data` of [model_custom()]: its first dimension
#'   is the observation. What `fun` does not use may be missing. `NULL`: the
#'   data of the model.
#' @param fun (function) `fun(theta, newdata)`: a number for each row of
#'   `newdata`. `theta` is what [model_custom()]'s `log_lik` takes, a named list
#'   of arrays; for other models the named vector of the variables. `newdata`
#'   comes in blocks of rows: a number may depend on its own row only.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all, as far as rows x draws
#'   stays below 5e7, and 400 at the least.
#' @param summary (`TRUE` or `FALSE`) A table, or the draws?
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @details Draws of a run with decaying step sizes carry weights; here they are
#' repeated in proportion to them.
#'
#' @return A data frame with a row for each row of `newdata` and the columns
#'   `mean`, `sd`, `lower` and `upper`, the latter two the bounds of the central
#'   interval; with `summary = FALSE` a matrix with a row for each draw and a
#'   column for each row of `newdata`. `NA` where `fun` returns it.
#' @section Conditions: `tall_error_input` if `fun` does not return a number for
#' each row or `newdata` is not as described; `tall_error_callback` if it fails,
#' with the error as parent; `tall_error_stale` if `newdata` is `NULL` and the
#' fit has lost its model; `tall_error_memory` if `summary = FALSE` and rows x
#' draws exceeds 5e7 numbers unasked.
#' @seealso [log_lik()][log-lik], [loo()][loo-tall_glm]
#' @examples
#' x <- rnorm(500)
#' model <- model_custom(
#'   log_lik = function(theta, batch) {
#'     dnorm(batch$y, theta$b[1] + theta$b[2] * batch$x, 1, log = TRUE)
#'   },
#'   log_prior = function(theta) -sum(theta$b^2) / 200,
#'   data = data.frame(x = x, y = 1 + 2 * x + rnorm(500)),
#'   init = list(b = c(0, 0)),
#'   grad_log_lik = function(theta, batch) {
#'     (batch$y - theta$b[1] - theta$b[2] * batch$x) * cbind(1, batch$x)
#'   },
#'   grad_log_prior = function(theta) -theta$b / 100
#' )
#' fit <- sg_sample(model, chains = 2, seed = 1)
#' line <- function(theta, newdata) theta$b[1] + theta$b[2] * newdata$x
#' predict(fit, data.frame(x = c(-1, 0, 1)), line)
#' @export
predict.tall_fit <- function(
  object,
  newdata = NULL,
  fun,
  prob = 0.9,
  draws = NULL,
  summary = TRUE,
  ...,
  ndraws = NULL
) {
  if (inherits(object, regression_fronts)) {
    # saved by an earlier version
    again <- match.call()
    again[[1]] <- quote(stats::predict)
    again$object <- as_of_now(object)
    return(eval(again, parent.frame()))
  }
  check_no_dots(..., .ignore = no_groups)
  check_function(fun, c("theta", "newdata"))
  prob <- check_prob(prob)
  check_flag(summary)
  draws <- check_draws(object, draws, ndraws)
  new <- prediction_batches(object, newdata)
  if (summary && is.null(draws)) {
    draws <- affordable_draws(object, new$n)
  }
  if (!summary) {
    check_matrix_size(object, new$n, draws, newdata)
  }
  theta <- natural_draws(object, draws)
  evaluate <- function(rows) {
    batch <- new$take(rows)
    out <- vapply(theta, predict_draw, numeric(length(rows)), batch, fun)
    t(matrix(out, length(rows)))
  }
  if (!summary) {
    out <- evaluate(seq_len(new$n))
    dimnames(out) <- list(NULL, new$names)
    return(out)
  }
  blocks <- list()
  each_block(new$n, length(theta), function(rows) {
    value <- evaluate(rows)
    mean <- colMeans(value)
    bounds <- column_quantiles(value, interval_probs(prob))
    blocks[[length(blocks) + 1]] <<- data.frame(
      mean = mean,
      sd = sqrt(colSums(sweep(value, 2, mean)^2) / (nrow(value) - 1)),
      lower = bounds[, 1],
      upper = bounds[, 2]
    )
  })
  out <- do.call(rbind, blocks)
  rownames(out) <- new$names
  out
}

# fun at one draw: a number for each row, or why not.
predict_draw <- function(theta, batch, fun) {
  value <- withCallingHandlers(
    fun(theta, batch),
    error = function(e) {
      reason <- escape_cli(conditionMessage(e))
      place <- escape_cli(theta_text(as.list(theta)))
      abort_tall(
        "callback",
        c(
          paste0("{.fn fun} failed: ", reason, "."),
          x = paste0("It was called at ", place, ".")
        ),
        status = "callback",
        argument = "fun",
        theta = theta,
        reason = conditionMessage(e),
        parent = e
      )
    }
  )
  n <- n_rows_of(batch)
  if (!(is.numeric(value) || is.logical(value)) || length(value) != n) {
    abort_input(
      c(
        "{.fn fun} must return a number for each row of {.arg newdata}:
         {count_noun(n, 'number')}, not {describe(value)}.",
        x = paste0(
          "It was called at ",
          escape_cli(theta_text(as.list(theta))),
          "."
        )
      ),
      argument = "fun",
      expected = n,
      value = value
    )
  }
  as.double(value)
}

# Draws on the natural scale as a user's functions take them: a list of one for
# each.
natural_draws <- function(fit, draws) {
  all <- draws_matrix(fit)
  rows <- choose_rows(fit, draws, resample = TRUE)$rows
  init <- fit$model$init
  is_custom <- inherits(fit$model, "tall_model_custom")
  if (is_custom) {
    check_has_all(fit)
  }
  part <- if (is_custom) factor(rep(seq_along(init), lengths(init)))
  lapply(if (is.null(rows)) seq_len(nrow(all)) else rows, function(k) {
    if (!is_custom) {
      return(all[k, ])
    }
    Map(
      function(values, like) {
        attributes(values) <- attributes(like)
        values
      },
      stats::setNames(split(unname(all[k, ]), part), names(init)),
      init
    )
  })
}

# list(n, names, take(rows)): new rows, or those of the model.
prediction_batches <- function(fit, newdata) {
  own <- is.null(newdata)
  if (own) {
    if (!inherits(fit$model, "tall_model_custom")) {
      abort_input(
        "{.arg newdata} must be given: {.code {fit$model_label}()} does not hand
         out its data.",
        argument = "newdata"
      )
    }
    data <- custom_parts(fit_model(fit))$data
    names <- NULL
  } else {
    data <- custom_data(newdata, arg = "newdata")
    names <- if (is.data.frame(newdata) || is.matrix(newdata)) {
      rownames(newdata)
    } else if (!is.list(newdata)) {
      names(newdata)
    }
  }
  list(
    n = data$n,
    names = names %||% as.character(seq_len(data$n)),
    take = function(rows) {
      .Call(ffi_batch_rows, data$value, as.double(data$n), as.double(rows))
    }
  )
}

# ---- log likelihoods ---------------------------------------------------------

#' @rdname log-lik
#' @exportS3Method rstantools::log_lik
log_lik.tall_fit <- function(
  object,
  newdata = NULL,
  draws = NULL,
  pointwise = FALSE,
  ...,
  ndraws = NULL
) {
  check_flag(pointwise)
  check_no_dots(..., .ignore = no_groups)
  draws <- check_draws(object, draws, ndraws)
  model <- if (is.null(newdata)) {
    fit_model(object)
  } else {
    test_model(object, newdata)
  }
  if (!model_info(model)$has_log_lik || model$n_data == 0) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no log likelihood for each observation.",
        i = "Write the model for {.fn model_custom} with a {.arg log_lik}, which
             has; {.code as.matrix(fit)} has the draws."
      )
    )
  }
  if (!pointwise) {
    check_matrix_size(object, model$n_data, draws, newdata)
  }
  theta <- fit_unconstrained(object)
  rows <- choose_rows(object, draws, resample = TRUE)$rows
  if (!is.null(rows)) {
    theta <- theta[rows, , drop = FALSE]
  }
  if (pointwise) {
    return(model_log_lik_function(model, theta))
  }
  out <- matrix(0, nrow(theta), model$n_data)
  each_block(model$n_data, nrow(theta), size = 2^20, function(rows) {
    out[, rows] <<- model_log_lik(model, theta, rows)
  })
  dimnames(out) <- list(NULL, as.character(seq_len(model$n_data)))
  out
}

# Draws x rows; theta: draws x coordinates.
model_log_lik <- function(model, theta, rows) {
  at <- to_sampler(model, t(theta))
  t(row_log_lik(model, at, rows))
}

# As loo_function(), which see; `ahead` evaluates rows that will be asked for,
# one after the other, at all draws.
model_log_lik_function <- function(model, theta) {
  known <- NULL
  values <- NULL
  f <- loo_function(
    list(variables = colnames(theta)),
    model$n_data,
    list(theta = theta),
    function(rows, draws) model_log_lik(model, draws$theta, rows)
  )
  out <- function(data_i, draws) {
    column <- match(data_i[, 1], known)
    if (anyNA(column) || !identical(draws, theta)) {
      return(f(data_i, draws))
    }
    values[, column, drop = FALSE]
  }
  ahead <- function(rows) {
    if (length(rows) * nrow(theta) <= setting("large_matrix")) {
      values <<- model_log_lik(model, theta, rows)
      known <<- rows
    }
  }
  structure(
    out,
    data = attr(f, "data"),
    draws = attr(f, "draws"),
    ahead = ahead
  )
}

# f(rows, draws), log densities of n rows at draws of choose_draws(), as a
# function of (data_i, draws), the latter a matrix. For its approximation loo
# asks for one row after the other at few draws: that is answered for all rows
# at the first call, by `every(draws)` where rows are far.
loo_function <- function(fit, n, chosen, f, every = NULL) {
  # rows that were joined with effects of groups have a value for each draw
  is_joined <- inherits(fit, "tall_crossed")
  n_draw <- nrow(chosen$theta)
  matrix_of <- cbind(
    chosen$theta,
    chosen$aux,
    if (is_joined) seq_len(n_draw)
  )
  coefficients <- seq_len(ncol(chosen$theta))
  colnames(matrix_of) <- c(
    fit$variables[coefficients],
    if (!is.null(chosen$aux)) names(known_aux(fit)),
    if (is_joined) ".draw"
  )
  record_of <- function(draws) {
    if (is_joined) {
      chosen$numbers <- draws[, ncol(draws)]
      draws <- draws[, -ncol(draws), drop = FALSE]
    }
    chosen$theta <- unname(draws[, coefficients, drop = FALSE])
    chosen$aux <- if (ncol(draws) > length(coefficients)) {
      unname(draws[, -coefficients])
    }
    chosen
  }
  whole <- function(draws) {
    out <- matrix(0, nrow(draws$theta), n)
    each_block(n, nrow(out), size = 2^20, function(rows) {
      out[, rows] <<- f(rows, draws)
    })
    out
  }
  at <- NULL
  values <- NULL
  out <- function(data_i, draws) {
    n_draw <- dim(draws)[[1]]
    is_few <- n_draw == 1 || (n_draw <= 20 && n_draw * n <= 1e7)
    if (!is_few) {
      return(f(data_i[, 1], record_of(draws)))
    }
    if (!identical(at, draws)) {
      values <<- (every %||% whole)(record_of(draws))
      at <<- draws
    }
    values[, data_i[, 1], drop = n_draw == 1]
  }
  data <- matrix(seq_len(n), dimnames = list(NULL, "row"))
  structure(out, data = data, draws = matrix_of)
}
