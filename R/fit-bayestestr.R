# bayestestR: what its verbs say of the draws of a fit.

#' What bayestestR asks
#'
#' Methods for the generics of \pkg{bayestestR}, called by its users:
#' `describe_posterior()`, `hdi()`, `eti()`, `ci()`, `p_direction()`, `rope()`,
#' `point_estimate()`, `bayesfactor_parameters()` and others take fits. Each is
#' that of a data frame of the draws.
#'
#' @param posteriors,posterior,model ([`tall_fit`][tall_fit]) The fit.
#' @param effects,component (strings) Which parameters, as in
#'   [insight][insight-tall_fit]; `component = "location"` is
#'   `"conditional"`.
#' @param parameters (string vector or `NULL`) Regular expressions: parameters
#'   that match one of them. `NULL`: all.
#' @param rope_range (two numbers or `"default"`) The region of practical
#'   equivalence. By default it is \pkg{bayestestR}'s for the response of the
#'   fit: \eqn{\pm}{+-} a tenth of the standard deviation of a response whose
#'   mean has no link, 0.01 of one that is a logarithm, \eqn{0.1 \pi /
#'   \sqrt{3}}{0.1 pi / sqrt(3)} with a logit, 0.1 with others.
#' @param test (string vector or `NULL`) As in \pkg{bayestestR}; `"bf"` is
#'   `bayesfactor_parameters()`.
#' @param diagnostic (string vector or `NULL`) Of `"ESS"` and `"Rhat"`.
#' @param priors (`TRUE` or `FALSE`) Show the priors, too?
#' @param prior (data frame or `NULL`) Draws of the prior, for
#'   \pkg{bayestestR}'s own estimate. `NULL`: the prior is known.
#' @param direction (string or number) `"two-sided"`; `">"`, `"right"` or 1;
#'   `"<"`, `"left"` or -1.
#' @param null (one or two numbers) The point, or the interval, that parameters
#'   are tested against.
#' @param verbose (`TRUE` or `FALSE`) Handed on.
#' @param ... Handed on.
#'
#' @details `bayesfactor_parameters()` is the ratio of Savage and Dickey as in
#' [hypothesis()], upside down: above 1 where the data are against the point. It
#' is there for parameters with normal priors, whose density is known, so that
#' no draws of the prior are made. With a `direction` both densities are divided
#' by the probability of that side; of an interval it is prior over posterior
#' odds, from the draws.
#'
#' Draws of a decaying step size are repeated in proportion to their weights. Of
#' networks, whose hidden units may change places, these verbs are refused.
#'
#' @return What the generics return of a data frame; `describe_posterior()` has
#'   effective sample sizes and R-hat as well. `bayesfactor_parameters()`: a
#'   data frame with columns `Parameter` and `log_BF`, of class
#'   `bayesfactor_parameters`.
#' @section Conditions: `tall_error_unsupported` for networks, and of
#'   `bayesfactor_parameters()` where a prior is not normal; `tall_error_input`
#'   for `parameters` that match none.
#' @examplesIf requireNamespace("bayestestR", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt + hp, mtcars, prior = prior_normal(0, 5), seed = 1)
#' bayestestR::describe_posterior(fit)
#' bayestestR::bayesfactor_parameters(fit, parameters = "hp")
#' @name bayestestR-tall_fit
NULL

# The draws that are described, a data frame.
described_draws <- function(fit, effects, component, parameters) {
  if (inherits(fit, "tall_nn")) {
    abort_tall(
      "unsupported",
      c(
        "Single weights of a network mean nothing: its hidden units may change
         places.",
        i = "{.fn posterior_epred} has draws of what it predicts."
      ),
      argument = "x"
    )
  }
  names <- find_parameters.tall_fit(
    fit,
    effects[[1]],
    component[[1]],
    flatten = TRUE,
    parameters = parameters
  )
  if (length(names) == 0) {
    abort_input(
      c(
        "{.arg parameters}, {.arg effects} and {.arg component} leave no
         parameter of the fit.",
        i = "It has {.val {fit$variables}}."
      ),
      argument = "parameters",
      value = parameters,
      expected = fit$variables
    )
  }
  as.data.frame(plain_draws(fit, names), optional = TRUE)
}

# A method that is that of the draws.
of_described <- function(name) {
  force(name)
  function(
    x,
    ...,
    effects = "fixed",
    component = "location",
    parameters = NULL
  ) {
    draws <- described_draws(x, effects, component, parameters)
    getExportedValue("bayestestR", name)(draws, ...)
  }
}

# The same, where the region depends on the response.
of_described_range <- function(name) {
  force(name)
  function(
    x,
    range = "default",
    ...,
    effects = "fixed",
    component = "location",
    parameters = NULL
  ) {
    draws <- described_draws(x, effects, component, parameters)
    range <- rope_of(x, range)
    getExportedValue("bayestestR", name)(draws, range = range, ...)
  }
}

#' @exportS3Method bayestestR::hdi
hdi.tall_fit <- of_described("hdi")

#' @exportS3Method bayestestR::eti
eti.tall_fit <- of_described("eti")

#' @exportS3Method bayestestR::spi
spi.tall_fit <- of_described("spi")

#' @exportS3Method bayestestR::bci
bci.tall_fit <- of_described("bci")

#' @exportS3Method bayestestR::ci
ci.tall_fit <- of_described("ci")

#' @exportS3Method bayestestR::p_direction
p_direction.tall_fit <- of_described("p_direction")

#' @exportS3Method bayestestR::p_map
p_map.tall_fit <- of_described("p_map")

#' @exportS3Method bayestestR::map_estimate
map_estimate.tall_fit <- of_described("map_estimate")

#' @exportS3Method bayestestR::point_estimate
point_estimate.tall_fit <- of_described("point_estimate")

#' @exportS3Method bayestestR::estimate_density
estimate_density.tall_fit <- of_described("estimate_density")

#' @exportS3Method bayestestR::rope
rope.tall_fit <- of_described_range("rope")

#' @exportS3Method bayestestR::p_rope
p_rope.tall_fit <- of_described_range("p_rope")

#' @exportS3Method bayestestR::equivalence_test
equivalence_test.tall_fit <- of_described_range("equivalence_test")

#' @exportS3Method bayestestR::p_significance
p_significance.tall_fit <- function(
  x,
  threshold = "default",
  ...,
  effects = "fixed",
  component = "location",
  parameters = NULL
) {
  draws <- described_draws(x, effects, component, parameters)
  threshold <- rope_of(x, threshold)
  bayestestR::p_significance(draws, threshold = max(threshold), ...)
}

# ---- the region --------------------------------------------------------------

#' @exportS3Method bayestestR::rope_range
rope_range.tall_fit <- function(x, ...) {
  rope_of(x, "default")
}

rope_of <- function(fit, range) {
  if (identical(range, "default")) {
    return(c(-1, 1) * negligible_value(fit))
  }
  range <- check_numeric_vector(range, arg = "range")
  if (length(range) == 1) abs(range) * c(-1, 1) else check_size_two(range)
}

check_size_two <- function(range) {
  if (length(range) != 2) {
    abort_expected(range, "\"default\" or two numbers", arg = "range")
  }
  sort(range)
}

negligible_value <- function(fit) {
  link <- fit$family$object$link %||% "none"
  if (inherits(fit, "tall_classes")) {
    link <- class_methods[[fit$method]]$link
  } else if (!inherits(fit, "tall_regression") || inherits(fit, "tall_surv")) {
    link <- "none"
  }
  if (link == "logit") {
    return(0.1 * pi / sqrt(3))
  }
  if (link != "identity") {
    return(if (link == "log" && has_linear_response(fit)) 0.01 else 0.1)
  }
  response <- if (!is.null(fit$terms)) stats::formula(fit)[[2]]
  is_log <- is.call(response) && grepl("^log", deparse1(response[[1]]))
  if (is_log) 0.01 else 0.1 * stats::sd(own_response(fit)$y)
}

has_linear_response <- function(fit) {
  fit$family$object$family %in% c("gaussian", "student")
}

# ---- all at once -------------------------------------------------------------

#' @rdname bayestestR-tall_fit
#' @exportS3Method bayestestR::describe_posterior
describe_posterior.tall_fit <- function(
  posteriors,
  test = c("p_direction", "rope"),
  rope_range = "default",
  diagnostic = c("ESS", "Rhat"),
  priors = FALSE,
  ...,
  effects = "fixed",
  component = "location",
  parameters = NULL
) {
  check_flag(priors)
  draws <- described_draws(posteriors, effects, component, parameters)
  is_factor <- tolower(test) %in% c("bf", "bayesfactor", "bayes_factor")
  others <- test[!is_factor]
  uses_range <- any(grepl("rope|equi|^ps$|p_sig|^all$", tolower(others)))
  out <- bayestestR::describe_posterior(
    draws,
    test = if (length(others) > 0) others,
    rope_range = if (uses_range) rope_of(posteriors, rope_range) else c(-1, 1),
    ...
  )
  known <- attributes(out)[c("ci_method", "class")]
  if (any(is_factor)) {
    out$log_BF <- bayesfactor_parameters.tall_fit(
      posteriors,
      effects = effects,
      component = component,
      parameters = parameters
    )$log_BF[match(out$Parameter, names(draws))]
  }
  out <- cbind(out, described_quality(posteriors, out$Parameter, diagnostic))
  if (priors) {
    table <- describe_prior.tall_fit(posteriors)
    table <- table[match(out$Parameter, table$Parameter), -1]
    out <- cbind(out, table)
  }
  rownames(out) <- NULL
  attributes(out)[names(known)] <- known
  out
}

described_quality <- function(fit, names, diagnostic) {
  if (is.null(diagnostic) || !is.null(fit[["weights"]])) {
    return(data.frame(row.names = seq_along(names)))
  }
  if ("all" %in% diagnostic) {
    diagnostic <- c("ESS", "Rhat", "MCSE")
  }
  found <- posterior::summarise_draws(
    draws_of(fit, unique(names)),
    Rhat = posterior::rhat,
    ESS = posterior::ess_bulk,
    MCSE = posterior::mcse_mean
  )
  found <- found[match(names, found$variable), ]
  kept <- intersect(c("Rhat", "ESS", "MCSE"), diagnostic)
  as.data.frame(lapply(found[kept], as.double))
}

#' @rdname bayestestR-tall_fit
#' @exportS3Method bayestestR::describe_prior
describe_prior.tall_fit <- function(model, parameters = NULL, ...) {
  out <- get_priors.tall_fit(model)
  names(out)[-1] <- paste0("Prior_", names(out)[-1])
  if (!is.null(parameters)) {
    out <- out[out$Parameter %in% matching_variables(
      out$Parameter, parameters
    ), ]
  }
  out
}

# ---- Bayes factors -----------------------------------------------------------

#' @rdname bayestestR-tall_fit
#' @exportS3Method bayestestR::bayesfactor_parameters
bayesfactor_parameters.tall_fit <- function(
  posterior,
  prior = NULL,
  direction = "two-sided",
  null = 0,
  verbose = TRUE,
  ...,
  effects = "fixed",
  component = "location",
  parameters = NULL
) {
  draws <- described_draws(posterior, effects, component, parameters)
  if (!is.null(prior)) {
    return(bayestestR::bayesfactor_parameters(
      draws, prior, direction, null, verbose, ...
    ))
  }
  side <- test_direction(direction)
  null <- check_numeric_vector(null)
  if (!length(null) %in% 1:2 || any(is.na(null))) {
    abort_expected(null, "one or two numbers", arg = "null")
  }
  test <- list(side = side, null = sort(null))
  of <- normal_priors(posterior)
  sample <- fit_sample(posterior)
  all <- draws_matrix(posterior)
  log_bf <- vapply(names(draws), function(name) {
    normal <- of(stats::setNames(0:1, c("(constant)", name)))
    if (is.character(normal)) {
      abort_not_normal(name, normal)
    }
    log_against(all[, name], normal, sample, test)
  }, 0)
  structure(
    data.frame(Parameter = names(draws), log_BF = unname(log_bf)),
    hypothesis = null,
    direction = side,
    class = c(
      "bayesfactor_parameters", "see_bayesfactor_parameters", "data.frame"
    )
  )
}

test_direction <- function(direction) {
  known <- c(
    "two-sided" = 0, twosided = 0, "0" = 0, "=" = 0, "<" = -1, left = -1,
    "-1" = -1, ">" = 1, right = 1, "1" = 1
  )
  if (length(direction) != 1 || !direction %in% names(known)) {
    abort_expected(
      direction, "\"two-sided\", \"<\" or \">\"",
      arg = "direction"
    )
  }
  known[[as.character(direction)]]
}

abort_not_normal <- function(name, reason) {
  abort_tall(
    "unsupported",
    c(
      "{.fn bayesfactor_parameters} knows no prior density of {.field {name}}:
       {escape_cli(reason)}.",
      i = "{.arg parameters} chooses those with normal priors, and {.arg prior}
           takes draws of a prior."
    ),
    argument = "posterior"
  )
}

# The logarithm of the Bayes factor against a point, or an interval. normal:
# c(mean, sd) of the prior.
log_against <- function(value, normal, sample, test) {
  share_of <- function(is_in) sum(sample$share[is_in])
  mass <- function(from, to) {
    diff(stats::pnorm(c(from, to), normal[[1]], normal[[2]]))
  }
  null <- test$null
  low <- null[[1]]
  high <- null[[length(null)]]
  if (length(null) == 2) {
    inside <- c(mass(low, high), share_of(value >= low & value <= high))
    beside <- switch(
      as.character(test$side),
      "0" = 1 - inside,
      "-1" = c(mass(-Inf, low), share_of(value < low)),
      "1" = c(mass(high, Inf), share_of(value > high))
    )
    odds <- log(beside) - log(inside)
    return(odds[[2]] - odds[[1]])
  }
  after <- local_density(value, null, sample)$log
  before <- stats::dnorm(null, normal[[1]], normal[[2]], log = TRUE)
  side <- switch(
    as.character(test$side),
    "0" = c(1, 1),
    "-1" = c(mass(-Inf, null), share_of(value < null)),
    "1" = c(mass(null, Inf), share_of(value > null))
  )
  (before - log(side[[1]])) - (after - log(side[[2]]))
}
