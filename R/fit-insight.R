# insight and parameters: what a fit is, for packages that work on any model.

#' What insight and parameters ask
#'
#' Methods for the generics of \pkg{insight}, on which \pkg{parameters},
#' \pkg{marginaleffects}, \pkg{modelsummary} and others rest, and for
#' `parameters::model_parameters()`.
#'
#' @param x,model ([`tall_fit`][tall_fit]) The fit.
#' @param effects (string) `"fixed"`: coefficients; `"random"`: standard
#'   deviations and correlations of groups; `"all"`: both.
#' @param component (string) `"conditional"` (or `"location"`): those alone;
#'   `"all"`: parameters of the response, such as `sigma`, as well.
#' @param parameters (string vector or `NULL`) Regular expressions: parameters
#'   that match one of them. `NULL`: all.
#' @param flatten (`TRUE` or `FALSE`) A vector, not a list?
#' @param exponentiate (`TRUE` or `FALSE`) Of coefficients their exponentials?
#' @param data (data frame or `NULL`) As in [emmeans()][emmeans-tall_glm].
#' @param verbose (`TRUE` or `FALSE`) Handed on.
#' @param ... Handed on, or unused.
#'
#' @return `find_parameters()`: a list of names, or with `flatten` a vector.
#'   `get_parameters()`: a data frame with a row for each draw. `get_data()`:
#'   the variables of the formula. `model_info()`: a list, with `is_bayesian`.
#'   `get_priors()`: a data frame with a row for each parameter, as
#'   [prior_summary()][prior_summary.tall_fit] has them. `find_algorithm()`: a
#'   list.
#'   `model_parameters()`: a data frame with posterior medians, intervals,
#'   probabilities of direction, R-hat and effective sample sizes.
#' @section Conditions: `tall_error_stale` if the data frame is not to be found.
#' @examplesIf requireNamespace("parameters", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' parameters::model_parameters(fit, exponentiate = TRUE)
#' head(insight::get_parameters(fit))
#' @name insight-tall_fit
NULL

#' @rdname insight-tall_fit
#' @exportS3Method insight::find_parameters
find_parameters.tall_fit <- function(
  x,
  effects = "all",
  component = "all",
  flatten = FALSE,
  ...,
  parameters = NULL
) {
  own <- coefficient_variables(x)
  auxiliary <- intersect(response_parameters(x), auxiliary_variables(x))
  random <- setdiff(x$variables, c(own, auxiliary))
  is_of_rest <- component %in% components_of_rest
  parts <- list(
    conditional = if (effects %in% c("all", "fixed") && !is_of_rest) own,
    random = if (effects %in% c("all", "random") && !is_of_rest) random,
    auxiliary = if (component == "all" || is_of_rest) auxiliary
  )
  if (!is.null(parameters)) {
    is_wanted <- function(name) {
      any(vapply(parameters, grepl, TRUE, x = name, perl = TRUE))
    }
    parts <- lapply(parts, Filter, f = is_wanted)
  }
  parts <- parts[lengths(parts) > 0]
  if (flatten) as.character(unlist(parts)) else parts
}

components_of_rest <- c("auxiliary", "sigma", "distributional", "dispersion")

# Those beside the mean: sigma, shape, ...
response_parameters <- function(fit) {
  if (is.null(fit$family)) {
    auxiliary_variables(fit)
  } else {
    response_aux(fit$family)
  }
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::get_parameters
get_parameters.tall_fit <- function(
  x,
  effects = "fixed",
  component = "conditional",
  ...,
  parameters = NULL
) {
  names <- find_parameters.tall_fit(
    x,
    effects,
    component,
    flatten = TRUE,
    parameters = parameters
  )
  as.data.frame(plain_draws(x, names), optional = TRUE)
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::find_formula
find_formula.tall_glmer <- function(x, ...) {
  random <- lapply(unname(fit_bars(x)), function(bar) {
    random <- call("~", call("|", bar$effects[[2]], bar$group))
    stats::as.formula(random, environment(stats::formula(x)))
  })
  out <- list(
    conditional = x$bars$fixed,
    random = if (length(random) == 1) random[[1]] else random
  )
  structure(out, class = c("insight_formula", "list"))
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::get_data
get_data.tall_fit <- function(x, data = NULL, ...) {
  variables <- intersect(all.vars(stats::formula(x)), x$columns)
  original_data(x, variables, data)
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::model_info
model_info.tall_fit <- function(x, verbose = TRUE, ...) {
  out <- NextMethod()
  if (!is.null(out)) {
    out$is_bayesian <- TRUE
  }
  out
}

# Of classes, as of MASS::polr() and nnet::multinom(): those of binomial
# responses, and what they are beside.
#' @rdname insight-tall_fit
#' @exportS3Method insight::model_info
model_info.tall_classes <- function(x, ...) {
  link <- class_methods[[x$method]]$link
  binary <- stats::glm(c(0, 1, 0, 1) ~ 1, stats::binomial(link))
  out <- insight::model_info(binary)
  is_ordered <- is_ordinal(x)
  out$is_ordinal <- out$is_cumulative <- is_ordered
  out$is_multinomial <- !is_ordered
  out$is_bernoulli <- FALSE
  out$is_bayesian <- TRUE
  out$n_obs <- stats::nobs(x)
  out
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::get_priors
get_priors.tall_fit <- function(x, ...) {
  # of standard deviations of groups it has other words
  summary <- if (inherits(x, "tall_glmer")) {
    prior_summary.tall_glmer(x)
  } else {
    prior_summary.tall_fit(x)
  }
  table <- summary$table
  out <- data.frame(
    Parameter = table$variable,
    Distribution = table$prior,
    Location = table$location,
    Scale = table$scale
  )
  out$df <- table$df
  out$shape <- table$shape
  out
}

#' @rdname insight-tall_fit
#' @exportS3Method insight::find_algorithm
find_algorithm.tall_fit <- function(x, ...) {
  list(
    algorithm = "sampling",
    chains = posterior::nchains(x$draws),
    iterations = x$control$iter,
    warmup = x$control$warmup
  )
}

#' @rdname insight-tall_fit
#' @exportS3Method parameters::model_parameters
model_parameters.tall_fit <- function(
  model,
  effects = "fixed",
  component = "conditional",
  exponentiate = FALSE,
  verbose = TRUE,
  ...
) {
  check_flag(exponentiate)
  names <- find_parameters.tall_fit(model, effects, component, flatten = TRUE)
  if (length(names) == 0) {
    abort_tall(
      "unsupported",
      c(
        "The fit has no parameters for {.code effects = \"{effects}\"} and
         {.code component = \"{component}\"}.",
        i = "It has {.val {model$variables}}."
      ),
      argument = "effects"
    )
  }
  draws <- plain_draws(model, names)
  table_of <- function(draws) {
    draws <- posterior::as_draws_matrix(draws)
    parameters::model_parameters(draws, verbose = verbose, ...)
  }
  out <- table_of(draws)
  if (exponentiate) {
    own <- intersect(names, coefficient_variables(model))
    draws[, own] <- exp(draws[, own])
    # what is said of the sign stays
    kept <- out[intersect(names(out), c("pd", "p", "ROPE_Percentage"))]
    out <- table_of(draws)
    out[names(kept)] <- kept
  }
  at <- match(out$Parameter, names)
  quality <- posterior::summarise_draws(
    draws_of(model, names),
    posterior::rhat,
    posterior::ess_bulk
  )
  quality <- quality[match(names, quality$variable), ]
  out$Rhat <- as.double(quality[[2]])[at]
  out$ESS <- as.double(quality[[3]])[at]
  attr(out, "exponentiate") <- exponentiate
  out
}
