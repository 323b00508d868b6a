# Pointwise log likelihoods, and what is made of them.

#' Pointwise log likelihood
#'
#' Method for the generic of \pkg{rstantools}: as a matrix, or as a function of
#' rows and draws, which is what tall data need.
#'
#' @inheritParams posterior-predict
#' @param pointwise (`TRUE` or `FALSE`) Return a function instead of a matrix?
#'
#' @details The constants of the densities are included, so that models can be
#' compared. Observation weights multiply the log likelihood; trials are trials.
#' In Gaussian models they divide the variance, as in [stats::glm()].
#'
#' For a fit of [sg_sample()] it is the model's own log likelihood, constants as
#' the model has them, and `newdata` is a model of the same parameters made from
#' other data. Models of functions in R are called once for each draw and block
#' of rows.
#'
#' The function form has the arguments `data_i`, a matrix of row numbers with
#' one column, and `draws`, and carries both in full as attributes `data` and
#' `draws`: `loo::loo_subsample(f, data = attr(f, "data"), draws = attr(f,
#' "draws"))`.
#'
#' @return A matrix with a row for each draw and a column for each observation;
#'   with `pointwise = TRUE` a function.
#' @section Conditions:
#' Those of [posterior_epred()][posterior-predict].
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' dim(rstantools::log_lik(fit))
#'
#' f <- rstantools::log_lik(fit, pointwise = TRUE)
#' dim(f(attr(f, "data")[1:2, , drop = FALSE], attr(f, "draws")))
#' @name log-lik
NULL

#' @rdname log-lik
#' @exportS3Method rstantools::log_lik
log_lik.tall_glm <- function(
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
  if (!pointwise) {
    check_own_size(object, newdata, draws)
  }
  seen <- observed_rows(object, newdata, offset)
  chosen <- choose_draws(object, draws, resample = TRUE)
  if (pointwise) {
    return(log_lik_function(object, seen, chosen))
  }
  n <- nrow(seen$x)
  out <- matrix(0, nrow(chosen$theta), n)
  each_block(n, nrow(out), size = 2^20, function(rows) {
    out[, rows] <<- log_lik_block(
      object,
      observations_of(seen, rows),
      chosen$theta,
      chosen$sigma
    )
  })
  dimnames(out) <- draw_names(seen)
  out
}

log_lik_function <- function(fit, seen, chosen) {
  light <- fit[c("family", "n_coef")]
  loo_function(
    fit,
    nrow(seen$x),
    chosen,
    function(rows, theta, sigma) {
      log_lik_block(light, observations_of(seen, rows), theta, sigma)
    }
  )
}

# f(rows, theta, sigma) as a function of (data_i, draws). For its approximation
# loo asks for one row after the other at few draws: that is answered for all
# rows at the first call.
loo_function <- function(fit, n, chosen, f) {
  draws <- cbind(chosen$theta, chosen$sigma)
  coefficients <- seq_len(fit$n_coef)
  colnames(draws) <- c(
    fit$variables[coefficients],
    if (!is.null(chosen$sigma)) "sigma"
  )
  evaluate <- function(rows, draws) {
    sigma <- if (ncol(draws) > length(coefficients)) draws[, ncol(draws)]
    theta <- unname(draws[, coefficients, drop = FALSE])
    f(rows, theta, unname(sigma))
  }
  at <- NULL
  values <- NULL
  out <- function(data_i, draws) {
    n_draw <- dim(draws)[[1]]
    is_few <- n_draw == 1 || (n_draw <= 20 && n_draw * n <= 1e7)
    if (!is_few) {
      return(evaluate(data_i[, 1], draws))
    }
    if (!identical(at, draws)) {
      values <<- matrix(0, n_draw, n)
      each_block(n, n_draw, size = 2^20, function(rows) {
        values[, rows] <<- evaluate(rows, draws)
      })
      at <<- draws
    }
    values[, data_i[, 1], drop = n_draw == 1]
  }
  data <- matrix(seq_len(n), dimnames = list(NULL, "row"))
  structure(out, data = data, draws = draws)
}

# Draws x rows.
log_lik_block <- function(fit, seen, theta, sigma) {
  eta <- linear_draws(seen, theta)
  n_draw <- nrow(eta)
  each <- function(x) rep(x, each = n_draw)
  is_precision <- has_precisions(fit$family)
  out <- response_log_density(
    fit$family,
    eta,
    seen$y,
    if (is_precision) seen$weight else seen$trials,
    sigma
  )
  if (!is_precision && any(seen$weight != 1)) {
    out <- each(seen$weight) * out
  }
  out
}

# ---- observed responses ------------------------------------------------------

# Rows with their responses: x, offset, y, trials, count = y trials, and weight,
# of the log likelihood or, in Gaussian models, of the precision.
observed_rows <- function(fit, newdata, offset = NULL, call = caller_env()) {
  new <- prediction_rows(fit, newdata, offset, call)
  response <- if (is.null(newdata)) {
    own_response(fit, call)
  } else {
    new_response(fit, newdata, call)
  }
  n <- nrow(new$x)
  trials <- rep_len(response$trials %||% 1, n)
  list(
    x = new$x,
    offset = new$offset,
    y = response$y,
    trials = trials,
    count = response$y * trials,
    weight = rep_len(response$weight %||% 1, n)
  )
}

observations_of <- function(seen, rows) {
  out <- lapply(seen[c("offset", "y", "trials", "count", "weight")], `[`, rows)
  out$x <- seen$x[rows, , drop = FALSE]
  out
}

# list(y, trials, weight); y is a proportion where there are trials.
own_response <- function(fit, call = caller_env()) {
  check_has_data(fit, NULL, call)
  if (is.null(fit$terms)) {
    found <- frame_response(fit$data$y, fit$family, "y", call)
    weights <- fit$data$weights
  } else {
    found <- frame_response(
      stats::model.response(fit$frame, "any"),
      fit$family,
      response_name(fit$frame),
      call
    )
    weights <- unname(stats::model.weights(fit$frame))
  }
  split_weights(unname(found$values), unname(found$trials), weights, fit)
}

# Weights of proportions are trials, as in glm(); others are weights.
split_weights <- function(y, trials, weights, fit) {
  if (is.null(trials) && are_proportions(y, fit$family)) {
    list(y = y, trials = weights, weight = NULL)
  } else {
    list(y = y, trials = trials, weight = weights)
  }
}

are_proportions <- function(y, family) {
  find_response(family)$takes_proportions &&
    any(y > 0 & y < 1, na.rm = TRUE)
}

new_response <- function(fit, newdata, call) {
  if (is.null(fit$terms)) {
    abort_input(
      "{.arg newdata} must be {.code NULL} here: a matrix has no response.",
      argument = "newdata",
      call = call
    )
  }
  frame <- prediction_frame(fit, fit$terms, newdata, call)
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (!is.null(fit$response_levels)) {
    response <- as.character(response)
    check_levels(response, fit$response_levels, name, call)
    response <- factor(response, levels = fit$response_levels)
  }
  found <- frame_response(response, fit$family, name, call)
  trials <- found$trials
  if (is.null(trials)) {
    trials <- new_trials(fit, newdata, call)
  }
  check_new_values(found, trials, fit$family, name, call)
  list(
    y = found$values,
    trials = trials,
    weight = new_weights(fit, newdata, call)
  )
}

# As for the data of the fit; a missing response has a missing likelihood.
check_new_values <- function(found, trials, family, name, call) {
  values <- replace(found$values, is.na(found$values), 0)
  check_response(values, family, name, call)
  if (is.null(found$trials)) {
    check_successes(values, trials, family, name, call = call)
  }
}

new_weights <- function(fit, newdata, call) {
  expression <- fit$weight_source
  if (is.null(expression)) {
    return(NULL)
  }
  missing <- setdiff(
    intersect(all.vars(expression), fit$columns),
    names(newdata)
  )
  if (length(missing) > 0) {
    abort_missing_columns(missing, call)
  }
  found <- eval(expression, newdata, environment(fit$formula))
  found <- check_numeric_vector(
    found,
    size = c(1, nrow(newdata)),
    arg = "weights",
    call = call
  )
  check_row_weights(found, call = call)
  found
}

# ---- leave-one-out cross-validation ------------------------------------------

#' Leave-one-out cross-validation
#'
#' Methods for the generics of \pkg{loo}. With tall data the expected log
#' predictive density is estimated from a random subsample of observations
#' (Magnusson, Andersen, Jonasson & Vehtari, 2020): its cost does not grow with
#' rows x draws.
#'
#' @param x (`tall_glm`, `tall_nn` or [`tall_fit`][tall_fit]) The fit, from
#'   [tall_glm()] or [tall_nn()], which kept its data, or from [sg_sample()].
#' @param observations (whole number, integer vector, result of an earlier
#'   `loo()`, or `NULL`) How many observations to subsample, or which, or those
#'   of another fit to compare with. `NULL`, or data of at most 1,000 rows: all
#'   of them.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param cores (whole number) As in [loo::loo()].
#' @param seed (whole number or `NULL`) Seed of the subsample. `NULL`: one that
#'   is the same for all fits, so that those of the same data take the same rows
#'   and [loo::loo_compare()] can pair them.
#' @param ... Named arguments, passed on to [loo::loo_subsample()], or to
#'   [loo::loo()] where all observations are used: others are refused. Fits are
#'   compared by [loo::loo_compare()], not here.
#'
#' @details The log likelihood at the posterior mean serves as the approximation
#' for the observations that are not in the subsample (`loo_approximation =
#' "plpd"`), with the difference estimator; pass others through `...`. The mean
#' of a network's weights is no network: for [tall_nn()] it is the log
#' predictive density over 10 draws (`"lpd"`) that serves.
#'
#' @return What [loo::loo_subsample()] or [loo::loo()] return; for `waic()`,
#'   what [loo::waic()] returns.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data or
#' has lost its model; `tall_error_memory` if all observations are asked for and
#' rows x draws exceeds 5e7 numbers.
#' @references Magnusson, Andersen, Jonasson & Vehtari (2020). Leave-one-out
#' cross-validation for Bayesian model comparison in large data. *AISTATS*.
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' loo::loo(fit)
#' @name loo-tall_glm
NULL

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo
loo.tall_glm <- function(
  x,
  ...,
  observations = 400,
  draws = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1),
  seed = NULL
) {
  label <- deparse1(substitute(x))
  is_subsample <- !is.null(check_observations(observations, x$n_data))
  check_loo_dots(..., .known = loo_arguments_of(is_subsample))
  check_has_data(x)
  draws <- check_draws(x, draws, ndraws)
  seed <- check_seed(seed)
  cores <- check_cores(cores)
  observations <- check_observations(observations, x$n_data)
  out <- if (is.null(observations)) {
    check_matrix_size(x, x$n_data, draws, NULL)
    loo_all(x, draws, cores, ...)
  } else {
    with_seed(
      seed %||% loo_seed,
      loo_some(x, observations, draws, cores, ...)
    )
  }
  attr(out, "model_name") <- label
  response <- fit_response(x)
  if (!is.null(response)) {
    attr(out, "yhash") <- rlang::hash(response)
  }
  out
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo
loo.tall_nn <- loo.tall_glm

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo
loo.tall_fit <- loo.tall_glm

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_subsample
loo_subsample.tall_glm <- function(
  x,
  ...,
  observations = 400,
  draws = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1),
  seed = NULL
) {
  check_loo_dots(..., .known = loo_arguments_of(TRUE))
  check_has_data(x)
  draws <- check_draws(x, draws, ndraws)
  seed <- check_seed(seed)
  cores <- check_cores(cores)
  if (missing(observations)) {
    observations <- min(observations, x$n_data)
  }
  observations <- check_observations(observations, x$n_data, few = 0)
  with_seed(seed %||% loo_seed, loo_some(x, observations, draws, cores, ...))
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_subsample
loo_subsample.tall_nn <- loo_subsample.tall_glm

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_subsample
loo_subsample.tall_fit <- loo_subsample.tall_glm

#' @rdname loo-tall_glm
#' @exportS3Method loo::waic
waic.tall_glm <- function(x, ..., draws = NULL, ndraws = NULL) {
  check_loo_dots(..., .known = character())
  check_has_data(x)
  draws <- check_draws(x, draws, ndraws)
  check_matrix_size(x, x$n_data, draws, NULL)
  loo::waic(log_lik_of(x, draws))
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::waic
waic.tall_nn <- waic.tall_glm

#' @rdname loo-tall_glm
#' @exportS3Method loo::waic
waic.tall_fit <- waic.tall_glm

# The rows of a subsample, unless told: what makes them the same of all fits to
# the same data.
loo_seed <- 1

# What loo's functions use of what comes with `...`, beside what is set here.
loo_arguments_of <- function(is_subsample) {
  c(
    "save_psis",
    if (is_subsample) {
      c(
        "log_p",
        "log_g",
        "loo_approximation",
        "loo_approximation_draws",
        "estimator",
        "llgrad",
        "llhess"
      )
    } else {
      "is_method"
    }
  )
}

# As for rstanarm, where loo(fit1, fit2) once compared.
check_loo_dots <- function(..., .known, .call = caller_env()) {
  given <- dots_names(...)
  if (length(given) == 0) {
    return(invisible())
  }
  if (any(given == "")) {
    abort_input(
      c(
        "An argument without a name is not used here: one fit at a time.",
        i = "Compare fits by
             {.code loo::loo_compare(loo::loo(fit1), loo::loo(fit2))}."
      ),
      argument = "...",
      call = .call
    )
  }
  if (length(.known) == 0) {
    check_no_dots(..., .call = .call)
  }
  check_known(given, .known, "argument", arg = "...", call = .call)
}

# The generic is rstantools', which may not be there.
log_lik_of <- function(fit, draws, pointwise = FALSE) {
  f <- if (inherits(fit, "tall_nn")) {
    log_lik.tall_nn
  } else if (inherits(fit, "tall_glm")) {
    log_lik.tall_glm
  } else {
    log_lik.tall_fit
  }
  f(fit, draws = draws, pointwise = pointwise)
}

# The fit's own responses; NULL where the model does not tell them from other
# data.
fit_response <- function(fit) {
  UseMethod("fit_response")
}

#' @export
fit_response.tall_fit <- function(fit) {
  NULL
}

#' @export
fit_response.tall_glm <- function(fit) {
  own_response(fit)$y
}

# How loo_subsample() approximates the observations it leaves out.
loo_approximation <- function(fit) {
  UseMethod("loo_approximation")
}

#' @export
loo_approximation.tall_fit <- function(fit) {
  list(loo_approximation = "plpd")
}

# NULL: all rows.
check_observations <- function(
  observations,
  n_data,
  few = 1000,
  call = caller_env()
) {
  if (inherits(observations, "psis_loo_ss")) {
    return(observations)
  }
  if (is.null(observations)) {
    return(NULL)
  }
  if (length(observations) == 1) {
    observations <- check_count(
      observations,
      max = if (few == 0) n_data else Inf,
      arg = "observations",
      call = call
    )
    return(if (n_data > max(few, observations)) observations)
  }
  rows <- check_numeric_vector(observations, arg = "observations", call = call)
  bad <- which(rows < 1 | rows > n_data | rows != round(rows))
  if (length(bad) > 0) {
    abort_value(
      rows,
      bad[[1]],
      paste("be rows of the data, 1 to", format_count(n_data)),
      arg = "observations",
      call = call
    )
  }
  as.integer(rows)
}

loo_all <- function(fit, draws, cores, ...) {
  values <- log_lik_of(fit, draws)
  r_eff <- if (is.null(draws) && is.null(fit[["weights"]])) {
    shape <- dim(fit$draws)
    chain <- rep(seq_len(shape[[2]]), each = shape[[1]])
    loo::relative_eff(exp(values), chain_id = chain)
  } else {
    rep(relative_efficiency(fit, nrow(values)), ncol(values))
  }
  loo::loo(values, r_eff = r_eff, cores = cores, ...)
}

loo_some <- function(fit, observations, draws, cores, ...) {
  f <- log_lik_of(fit, draws, pointwise = TRUE)
  ahead <- attr(f, "ahead")
  # a sample that does not depend on the model
  is_plain <- is.numeric(observations) &&
    !identical(list(...)$estimator, "hh_pps")
  # loo takes one number for a count
  is_drawn <- is_plain && length(observations) == 1 && observations > 1
  if (is_drawn) {
    # the one that loo would draw, before anything else asks for random numbers
    observations <- order(stats::runif(fit$n_data))[seq_len(observations)]
  }
  if (is_plain && length(observations) > 1 && !is.null(ahead)) {
    # its rows are evaluated together
    ahead(observations)
  }
  arguments <- list(
    f,
    data = attr(f, "data"),
    draws = attr(f, "draws"),
    observations = observations,
    r_eff = rep(relative_efficiency(fit, nrow(attr(f, "draws"))), fit$n_data),
    cores = cores
  )
  defaults <- loo_approximation(fit)
  given <- list(...)
  run <- function() {
    do.call(
      loo::loo_subsample,
      c(arguments, defaults[setdiff(names(defaults), names(given))], given)
    )
  }
  if (!is_drawn) {
    return(run())
  }
  # of a given sample, loo says what it takes it for
  withCallingHandlers(run(), message = function(m) {
    if (grepl("sampling with replacement assumed", conditionMessage(m))) {
      invokeRestart("muffleMessage")
    }
  })
}

# Effective draws over draws, the mean over variables (for a network, over
# predictions): thinned draws are nearer to independent.
relative_efficiency <- function(fit, n_used) {
  ess <- fit$checked$ess_bulk
  if (is.null(ess)) {
    ess <- apply(draws_array(fit), 3, posterior::ess_mean)
  }
  ess <- mean(ess[is.finite(ess)])
  if (is.finite(ess)) min(1, ess / n_used) else 1
}
