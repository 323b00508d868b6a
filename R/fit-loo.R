# Leave-one-out: cross-validation by the package loo, which gets log likelihoods
# of rows, and the probability integral transform.

# ---- leave-one-out probability integral transform ----------------------------

#' @exportS3Method rstantools::loo_pit
loo_pit.tall_fit <- function(object, ...) {
  abort_no_formula(object, "loo_pit")
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
#' [loo::loo_compare()] refuses fits whose rows are not the same, as where they
#' lack values in different columns, and says which differ; of rows in streams,
#' files and databases it says how many. Where as many rows have other responses
#' it is loo that warns. The best fit comes first; of subsamples loo (2.5.1)
#' writes what others fall short of it as positive numbers, of all observations
#' as negative ones.
#'
#' Where the fit read its rows by passes over a source, one pass makes the
#' approximation and another fetches the observations of the subsample.
#'
#' `waic()` of a subsample scales the mean of a simple random sample to all
#' observations; `"subsampling SE"` is what that may be off by. Compare models
#' by `loo()`: [loo::loo_compare()] does not take subsampled `waic()`.
#'
#' Where Pareto \eqn{k} are large, [reloo()] fits again without single
#' observations, and [kfold()][kfold-tall_glm] without folds of them.
#'
#' In a multilevel fit with one grouping factor a group takes the place of an
#' observation: all of its rows are left out together, and `print()` says so.
#' With several factors a row is left out, given the effects of its groups, as
#' in brms: draws of these are needed, see `keep_effects` of [tall_glmer()].
#'
#' @return What [loo::loo_subsample()] or [loo::loo()] return; for `waic()`,
#'   what [loo::waic()] returns, with a column `"subsampling SE"` of estimates
#'   where it subsampled.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data or
#' has lost its model; `tall_error_memory` if all observations are asked for and
#' rows x draws exceeds 5e7 numbers; `tall_error_unsupported` for `estimator =
#' "hh_pps"` of a fit that read its rows by passes.
#' @references Magnusson, Andersen, Jonasson & Vehtari (2020). Leave-one-out
#' cross-validation for Bayesian model comparison in large data. *AISTATS*.
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' loo::loo(fit)
#' @name loo-tall_glm
NULL

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo
loo.tall_fit <- function(
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
  check_not_robust(x, "loo")
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
  as_tall_loo(out, x, label)
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_subsample
loo_subsample.tall_fit <- function(
  x,
  ...,
  observations = 400,
  draws = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1),
  seed = NULL
) {
  check_loo_dots(..., .known = loo_arguments_of(TRUE))
  check_not_robust(x, "loo_subsample")
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
#' @exportS3Method loo::waic
waic.tall_fit <- function(
  x,
  ...,
  observations = 400,
  draws = NULL,
  ndraws = NULL,
  seed = NULL
) {
  label <- deparse1(substitute(x))
  check_loo_dots(..., .known = character())
  check_not_robust(x, "waic")
  check_has_data(x)
  draws <- check_draws(x, draws, ndraws)
  seed <- check_seed(seed)
  if (inherits(observations, "psis_loo_ss")) {
    observations <- loo::obs_idx(observations)
  }
  observations <- check_observations(observations, x$n_data)
  out <- if (is.null(observations)) {
    check_matrix_size(x, x$n_data, draws, NULL)
    loo::waic(log_lik_of(x, draws))
  } else {
    with_seed(seed %||% loo_seed, waic_some(x, observations, draws))
  }
  as_tall_loo(out, x, label)
}

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
check_loo_dots <- function(..., .known) {
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
      argument = "..."
    )
  }
  again <- intersect(given, c("reloo", "moment_match", "k_threshold"))
  if (length(again) > 0) {
    abort_input(
      c(
        "{.arg {again[[1]]}} has no place here.",
        i = "{.code reloo(fit, loo(fit))} fits again without the observations
             whose Pareto k is large."
      ),
      argument = again[[1]]
    )
  }
  if (length(.known) == 0) {
    check_no_dots(...)
  }
  check_known(given, .known, "argument", arg = "...")
}

# The generic is rstantools', which may not be there.
log_lik_of <- function(fit, draws, pointwise = FALSE) {
  f <- if (is.null(fit$groups) && inherits(fit, "tall_regression")) {
    log_lik.tall_regression
  } else {
    log_lik.tall_fit
  }
  f(fit, draws = draws, pointwise = pointwise)
}

# The fit's own responses; NULL where the model does not tell them from other
# data.
fit_response <- function(fit) {
  if (inherits(fit, "tall_regression")) own_response(fit)$y
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
  few = 1000) {
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
      arg = "observations")
    return(if (n_data > max(few, observations)) observations)
  }
  rows <- check_numeric_vector(observations, arg = "observations")
  bad <- which(rows < 1 | rows > n_data | rows != round(rows))
  if (length(bad) > 0) {
    abort_value(
      rows,
      bad[[1]],
      paste("be rows of the data, 1 to", format_count(n_data)),
      arg = "observations")
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
  # its rows are evaluated together
  if (is_plain && length(observations) > 1 && !is.null(ahead)) {
    ahead(observations)
  } else if (has_source(fit)) {
    ahead(known_observations(observations))
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

# Of a simple random sample of the observations, sums scaled to all of them. The
# standard error of the sample is that of a mean of n of N without replacement
# (Cochran 1977, Sampling Techniques, theorem 2.2). class "tall_waic_some".
waic_some <- function(fit, observations, draws) {
  n_all <- fit$n_data
  f <- log_lik_of(fit, draws, pointwise = TRUE)
  ahead <- attr(f, "ahead")
  if (length(observations) == 1) {
    observations <- order(stats::runif(n_all))[seq_len(observations)]
  }
  if (!is.null(ahead)) {
    ahead(observations)
  }
  data <- attr(f, "data")[observations, , drop = FALSE]
  out <- suppressWarnings(loo::waic(f(data, attr(f, "draws"))))
  n <- length(observations)
  spread <- apply(out$pointwise, 2, stats::sd)
  sampling <- n_all * spread * sqrt((1 - n / n_all) / n)
  out$estimates[, "Estimate"] <- n_all * colMeans(out$pointwise)
  out$estimates[, "SE"] <- sqrt(n_all) * spread
  out$estimates <- cbind(out$estimates, "subsampling SE" = sampling)
  attr(out, "sample") <- list(observations = observations, n_data = n_all)
  class(out) <- c("tall_waic_some", class(out))
  out
}

#' @export
print.tall_waic_some <- function(x, digits = 1, ...) {
  sample <- attr(x, "sample")
  unit <- attr(x, "rows")$unit %||% "observation"
  cat(
    "\nComputed from ", format_count(length(sample$observations)),
    " subsampled ", unit, "s of ", format_count(sample$n_data), ".\n\n",
    sep = ""
  )
  print(round(x$estimates, digits))
  many <- sum(x$pointwise[, "p_waic"] > 0.4)
  if (many > 0) {
    cat(
      "\n", format_count(many), " of these have p_waic above 0.4: loo() is",
      " better.\n",
      sep = ""
    )
  }
  invisible(x)
}

# Of groups it is a group that is left out.
#' @export
print.tall_loo <- function(x, ...) {
  rows <- attr(x, "rows")
  if (identical(rows$unit, "group")) {
    cat(
      "Of ", count_noun(rows$n_data, "group"), ", each left out whole, not of ",
      count_noun(rows$n_row, "observation"), ".\n",
      sep = ""
    )
  }
  NextMethod()
}

# Those of an earlier loo(); others would be fetched by a pass for each.
known_observations <- function(observations) {
  if (inherits(observations, "psis_loo_ss")) {
    return(loo::obs_idx(observations))
  }
  if (is.numeric(observations) && length(observations) > 1) {
    return(observations)
  }
  abort_tall(
    "unsupported",
    c(
      "{.code estimator = \"hh_pps\"} draws its observations row by row, and
       those of a source are passed over.",
      i = "Leave {.arg estimator} out, and give {.arg observations}, a number
           above 1."
    ),
    argument = "estimator")
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

# The result of loo() or waic() with what tells whether another is of the same
# rows: how many the fit has, in how many observations, how many were left out,
# and which, NULL where only another pass over a source could tell. label: what
# the fit is called; response: of its rows, where that is at hand.
as_tall_loo <- function(out, fit, label, response = NULL) {
  attr(out, "model_name") <- label
  response <- response %||% fit_response(fit)
  if (!is.null(response)) {
    attr(out, "yhash") <- rlang::hash(response)
  }
  n_missing <- fit$n_missing %||% 0
  left_out <- if (n_missing == 0 || is_quick_to_tell(fit)) {
    as.integer(stats::na.action(fit))
  }
  attr(out, "rows") <- list(
    unit = if (is.null(fit$groups)) "observation" else "group",
    n_data = fit$n_data,
    n_row = fit$n_rows %||% fit$n_data,
    n_missing = n_missing,
    left_out = if (length(left_out) <= most_left_out) left_out
  )
  class(out) <- c("tall_loo", class(out))
  out
}
