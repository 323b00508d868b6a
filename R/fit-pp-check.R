# Posterior predictive checks.

#' Posterior predictive checks
#'
#' Method for the generic of \pkg{bayesplot}: compares the response with draws
#' of it.
#'
#' @param object (`tall_regression`) The fit, from [tall_glm()] or another front
#'   end of a formula, which kept its data.
#' @param type (string) What [bayesplot::pp_check()] draws: the name of a
#'   function `bayesplot::ppc_*()` without its prefix, such as `"dens_overlay"`,
#'   `"stat"`, `"bars"`, `"error_binned"`. `NULL`: `"bars"` for responses 0 and
#'   1 and for classes, which are counted from 1, else `"dens_overlay"`.
#' @param draws,ndraws (whole number or `NULL`) Draws to compare with: two names
#'   for one argument. `NULL`: 50, and 400 for `"stat"` and its kin, `"bars"`
#'   and `"intervals"`.
#' @param observations (whole number) The most observations to show: a random
#'   subset of larger data.
#' @param seed (whole number or `NULL`) Seed of the responses and of the subset.
#' @param ... Passed on to the function of \pkg{bayesplot}; what it does not
#'   know is refused. `group`, `x`, ... with a value for each observation are
#'   cut to those shown; `group` and `x` may be the name of a variable of the
#'   formula.
#'
#' @details For the types of leave-one-out cross-validation,
#' `"loo_pit_overlay"`, `"loo_pit_qq"`, `"loo_intervals"`, `"loo_ribbon"`, the
#' importance weights are made by [loo::psis()] from the log likelihood of the
#' observations shown.
#'
#' @return A ggplot object. Where it shows a subset of the observations its
#' caption says how many of how many.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data;
#' `tall_error_input` for an unknown type.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' bayesplot::pp_check(fit, seed = 1)
#' bayesplot::pp_check(fit, "stat", stat = "sd", seed = 1)
#' @aliases pp_check.tall_glm
#' @exportS3Method bayesplot::pp_check
pp_check.tall_regression <- function(
  object,
  type = NULL,
  draws = NULL,
  observations = 10000,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  refuse_foreign(
    intersect(dots_names(...), c("nreps", "nsamples")),
    foreign_to_methods
  )
  rlang::check_installed("bayesplot", "to plot a fit")
  check_has_means(object, "pp_check()")
  warn_of_limits(object, "pp_check()")
  check_has_data(object)
  draws <- check_draws(object, draws, ndraws)
  observations <- check_count(observations)
  seed <- check_seed(seed)
  if (is.null(type)) {
    type <- if (has_few_values(object)) "bars" else "dens_overlay"
  }
  check_loo_plot(object, type)
  plot <- ppc_function(type)
  type <- sub("^ppc_", "", type)
  given <- check_ppc_values(object, list(...))
  if (is.null(draws)) {
    many <- grepl("^stat|^bars|intervals|ribbon|rootogram|avg|loo", type)
    draws <- min(if (many) 400 else 50, posterior::ndraws(object$draws))
  }
  n <- stats::nobs(object)
  with_seed(seed, {
    rows <- seq_len(n)
    if (n > observations) {
      rows <- sort(sample.int(n, observations))
    }
    chosen <- rows
    if (has_source(object)) {
      object <- fit_of_rows(object, rows)
      rows <- seq_along(rows)
    }
    shown <- replicated_responses(object, rows, draws)
  })
  more <- Map(
    function(value, name) {
      if (is_variable(value, name, n)) {
        all_frame(object$rows)[[value]][rows]
      } else if (is.atomic(value) && length(value) == n) {
        value[chosen]
      } else {
        value
      }
    },
    given,
    names(given) %||% rep("", length(given))
  )
  name <- paste0("ppc_", type)
  first <- list(shown$y, shown$yrep)
  if (grepl("^loo_", type)) {
    weights <- loo_arguments(object, plot, rows, draws, more)
    more[names(weights)] <- weights
  }
  picture <- call_bayesplot(plot, name, first, more)
  tell_shown(picture, length(chosen), n)
}

# The picture, with what part of the data it shows.
tell_shown <- function(picture, n_shown, n) {
  if (n_shown == n || !inherits(picture, "ggplot")) {
    return(picture)
  }
  shown <- paste0(
    format_count(n_shown), " of ", count_noun(n, "observation"), " shown"
  )
  picture + ggplot2::labs(caption = shown)
}

# `group` and `x` of some types, a value for each observation or the name of a
# variable.
check_ppc_values <- function(fit, given) {
  for (name in intersect(c("group", "x"), names(given))) {
    value <- given[[name]]
    known <- frame_names(fit)
    if (is_variable(value, name, stats::nobs(fit)) && !is.null(known)) {
      check_known(value, known, "variable", arg = name)
    } else if (length(value) != stats::nobs(fit)) {
      expected <- paste0(
        "a value for each of the ",
        count_noun(stats::nobs(fit), "observation"),
        " or the name of a variable"
      )
      abort_expected(value, expected, arg = name)
    }
  }
  given
}

is_variable <- function(value, name, n) {
  name %in% c("group", "x") && rlang::is_string(value) && n > 1
}

# The variables of the model frame; NULL without one.
frame_names <- function(fit) {
  if (!has_source(fit)) {
    return(names(fit$rows$frame))
  }
  request <- fit$rows$request
  argument <- request$offsets[[length(request$offsets)]]
  c(
    vapply(as.list(attr(fit$terms, "variables"))[-1], deparse1, ""),
    if (!is.null(request$weights)) "(weights)",
    if (!is.null(argument)) "(offset)"
  )
}

# What the types of leave-one-out cross-validation need, of the observations and
# draws that are shown.
loo_arguments <- function(fit, plot, rows, draws, more) {
  wanted <- intersect(c("lw", "psis_object"), names(formals(plot)))
  if (any(c(wanted, "pit") %in% names(more))) {
    return(NULL)
  }
  rlang::check_installed("loo", "to check by leave-one-out cross-validation")
  f <- log_lik_of(fit, draws, pointwise = TRUE)
  data <- attr(f, "data")[rows, , drop = FALSE]
  psis <- psis_of(fit, f(data, attr(f, "draws")))
  found <- list(lw = stats::weights(psis), psis_object = psis)
  found[wanted]
}

# Importance weights that leave out one observation after the other; log_lik:
# draws x observations.
psis_of <- function(fit, log_lik, cores = 1L) {
  r_eff <- rep(relative_efficiency(fit, nrow(log_lik)), ncol(log_lik))
  loo::psis(-log_lik, r_eff = r_eff, cores = cores)
}

# Of groups it is a group that is left out.
check_loo_plot <- function(fit, type) {
  if (is.character(type) && any(grepl("loo", type)) && !is.null(fit$groups)) {
    abort_tall(
      "unsupported",
      "Leave-one-out cross-validation of a multilevel fit is by group: see
       {.code loo::loo(fit)}.",
      argument = "type",
      value = type
    )
  }
}

# Responses that are 0 or 1, or the numbers of classes?
has_few_values <- function(fit) {
  if (has_class_response(fit)) {
    return(TRUE)
  }
  if (!has_trials(fit$family)) {
    return(FALSE)
  }
  # they are not looked for where rows are passed over and have none
  is_none <- has_source(fit) && is.null(fit$trial_source)
  is_none || all(own_response(fit)$trials %||% 1 == 1)
}

# Responses of some of the fit's own rows, y, and as many from each draw, yrep.
replicated_responses <- function(fit, at, n_draw) {
  chosen <- choose_draws(fit, n_draw, resample = TRUE)
  asked <- ask_rows(fit, groups = group_request(fit), needs = "responses")
  rows <- some_rows(asked_rows(asked), at)
  rows <- join_draws(fit, rows, chosen, asked$groups)
  list(y = rows$count, yrep = response_draws(fit, rows, chosen))
}

# The function bayesplot::ppc_<type>.
ppc_function <- function(type) {
  check_string(type, arg = "type")
  type <- sub("^ppc_", "", type)
  check_known(type, bayesplot_types("ppc"), "type", arg = "type")
  getExportedValue("bayesplot", paste0("ppc_", type))
}

#' Leave-one-out probability integral transform
#'
#' Method for the generic of \pkg{rstantools}: for each observation the
#' probability that the predictive distribution given all others has below it,
#' which is uniform if the model is right.
#'
#' @inheritParams posterior-predict
#' @param object (`tall_glm` or `tall_nn`) The fit, from [tall_glm()] or
#'   [tall_nn()], which kept its data.
#' @param ... Unused: other arguments are refused.
#'
#' @details The importance weights are those of [loo::psis()], the responses
#' those of [posterior_predict()][posterior-predict]. With tall data, look at
#' some of the observations: `bayesplot::pp_check(fit, "loo_pit_overlay")`.
#'
#' @return A numeric vector with a value for each observation.
#' @section Conditions: `tall_error_memory` if rows x draws exceeds 5e7 numbers;
#' `tall_error_stale` if the fit did not keep its data.
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' summary(rstantools::loo_pit(fit, seed = 1))
#' @exportS3Method rstantools::loo_pit
loo_pit.tall_regression <- function(
  object,
  draws = NULL,
  seed = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(...)
  rlang::check_installed("loo", "for the importance weights")
  check_not_robust(object, "loo_pit")
  check_has_data(object)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  cores <- check_cores(cores)
  if (!is.null(object$groups)) {
    abort_no_formula(object, "loo_pit")
  }
  check_is_number(object, "loo_pit")
  object <- in_memory(ask_rows(object), draws)$fit
  rows <- seq_len(object$n_data)
  wanted <- draws %||% posterior::ndraws(object$draws)
  shown <- with_seed(seed, replicated_responses(object, rows, wanted))
  psis <- psis_of(object, log_lik_of(object, wanted), cores)
  rstantools::loo_pit(
    object = shown$yrep,
    y = shown$y,
    lw = stats::weights(psis)
  )
}
