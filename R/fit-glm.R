# Intervals of any fit; fitted values and data of tall_glm()'s.

# ---- intervals ---------------------------------------------------------------

#' Posterior intervals
#'
#' Central intervals of the posterior draws.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param parm,pars,variables (names or numbers) Which variables; all by
#'   default.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param level,prob (number between 0 and 1) Probability of the intervals.
#' @param ... Unused: other arguments are refused.
#'
#' @return A matrix with a row for each variable and two columns, the quantiles.
#' @section Conditions:
#' `tall_error_unsupported` if the fit kept no draws; `tall_error_input` for an
#' unknown variable.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' confint(fit)
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' rstantools::posterior_interval(fit, prob = 0.5)
#' @name intervals
NULL

#' @rdname intervals
#' @importFrom stats confint
#' @export
confint.tall_fit <- function(object, parm = NULL, level = 0.95, ...) {
  check_no_dots(...)
  level <- check_prob(level)
  interval_matrix(object, parm, level, " ", "parm")
}

#' @rdname intervals
#' @exportS3Method rstantools::posterior_interval
posterior_interval.tall_fit <- function(
  object,
  prob = 0.9,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  ...
) {
  check_no_dots(..., .ignore = list(type = central_only))
  prob <- check_prob(prob)
  if (!is.null(regex_pars)) {
    variables <- select_variables(
      object$variables,
      variables,
      regex_pars,
      may_number = TRUE
    )
  }
  interval_matrix(object, variables, prob, "", "variables")
}

# rstanarm's argument.
central_only <- list(
  test = function(x) identical(x, "central"),
  expected = "\"central\"",
  hint = "Other intervals can be had of the draws, `as.matrix(fit)`."
)

interval_matrix <- function(fit, variables, prob, space, arg) {
  probs <- interval_probs(prob)
  out <- fit_quantiles(fit, probs)
  colnames(out) <- percent(probs, space)
  if (is.null(variables)) {
    return(out)
  }
  check_variable_names(variables, rownames(out), may_number = TRUE, arg = arg)
  out[variables, , drop = FALSE]
}

# ---- fitted values and the data ----------------------------------------------

#' Fitted values, residuals, and the data of a fit
#'
#' @param object,x,formula (`tall_glm`) The fit, from [tall_glm()], which kept
#'   its data (`keep_data = TRUE`).
#' @param type (string) `"response"`: the response (a proportion where there are
#'   trials) minus the fitted value; `"pearson"`: divided by the root of the
#'   variance function over the weight; `"deviance"`: the signed root of the
#'   contribution to the deviance. A parameter of the response is taken at its
#'   posterior mean, but for the dispersion of Gaussian and gamma ones, which is
#'   left out, as in [stats::residuals.glm()].
#' @param draws,ndraws (whole number or `NULL`) As in
#'   [predict()][predict.tall_glm()].
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @return `fitted()`: the posterior mean of the expected response of each
#'   observation, as `predict(object, type = "response")`. `residuals()`: a
#'   value for each observation. With `na.action = na.exclude` rows left out of
#'   the fit are `NA`. `sigma()`: the posterior mean of the residual standard
#'   deviation, of a row of weight 1; of Student responses that of their scale;
#'   1 where there is none.
#'   `model.frame()`, `model.matrix()`, `terms()`: what the formula made of the
#'   data.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data;
#' `tall_error_source` if its source has other rows than it had;
#' `tall_error_memory` if the frame of a source's rows has more than 5e7
#' numbers;
#' `tall_error_unsupported` for the frame or terms of a fit that had no formula.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' head(fitted(fit))
#' head(residuals(fit, type = "pearson"))
#' head(model.matrix(fit))
#' @name fitted-values
NULL

#' @rdname fitted-values
#' @importFrom stats fitted
#' @export
fitted.tall_glm <- function(object, draws = NULL, ..., ndraws = NULL) {
  check_no_dots(..., .ignore = no_groups)
  check_has_data(object)
  stats::predict(object, type = "response", draws = draws, ndraws = ndraws)
}

#' @rdname fitted-values
#' @importFrom stats residuals
#' @export
residuals.tall_glm <- function(
  object,
  type = c("response", "pearson", "deviance"),
  draws = NULL,
  ...,
  ndraws = NULL
) {
  type <- check_choice(type, c("response", "pearson", "deviance"))
  check_no_dots(..., .ignore = no_groups)
  if (has_source(object)) {
    return(remote_residuals(object, type, draws, ndraws))
  }
  response <- own_response(object)
  # without the rows that na.exclude left out
  whole <- object
  whole$na_action <- NULL
  mu <- stats::predict(whole, type = "response", draws = draws, ndraws = ndraws)
  weight <- response$trials %||% 1
  weight <- weight * (response$weight %||% 1)
  out <- response_residuals(
    object$family,
    type,
    response$y,
    mu,
    weight,
    mean_aux(object)
  )
  stats::naresid(object$na_action, stats::setNames(out, names(mu)))
}

# The same of rows that are passed over, in one pass.
remote_residuals <- function(fit, type, draws, ndraws) {
  draws <- check_draws(fit, draws, ndraws)
  is_linear <- fit$family$link == "identity"
  if (!is_linear && is.null(draws)) {
    draws <- affordable_draws(fit, fit$n_data)
  }
  chosen <- choose_draws(fit, draws)
  gather_predictions(fit, NULL, f = function(new) {
    mu <- if (is_linear) {
      link_moments(new, chosen, FALSE)$fit
    } else {
      response_moments(fit, new, chosen, FALSE, 1L)$fit
    }
    weight <- new$trials * (new$weight %||% 1)
    aux <- mean_aux(fit)
    list(value = response_residuals(fit$family, type, new$y, mu, weight, aux))
  })$value
}

#' @rdname fitted-values
#' @importFrom stats sigma
#' @export
sigma.tall_glm <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  if (find_response(object$family)$has_units) fit_sigma(object) else 1
}

#' @rdname fitted-values
#' @importFrom stats model.frame
#' @export
model.frame.tall_glm <- function(formula, ...) {
  check_no_dots(...)
  check_has_formula(formula, "model.frame")
  check_has_data(formula)
  fit_of_rows(formula)$frame
}

#' @rdname fitted-values
#' @importFrom stats model.matrix
#' @export
model.matrix.tall_glm <- function(object, ...) {
  check_no_dots(...)
  check_has_data(object)
  if (is.null(object$terms)) {
    rows_in_memory(object$data$x)
  } else {
    own_rows(object)$x
  }
}

#' @rdname fitted-values
#' @importFrom stats terms
#' @export
terms.tall_glm <- function(x, ...) {
  check_no_dots(...)
  check_has_formula(x, "terms")
  x$terms
}

check_has_formula <- function(fit, what) {
  if (is.null(fit$terms)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {what}} needs a formula; the fit was made from a matrix by
         {.fn tall_glm.fit}.",
        i = "Fit with {.fn tall_glm}; {.code model.matrix(fit)} has the matrix."
      )
    )
  }
}

# Conformable with the design: callers multiply by these, or invert them.
#' @rdname fit-methods
#' @export
coef.tall_glm <- function(object, ...) {
  coef.tall_fit(object, ...)[coefficient_variables(object)]
}

#' @rdname fit-methods
#' @export
vcov.tall_glm <- function(object, ...) {
  at <- coefficient_variables(object)
  vcov.tall_fit(object, ...)[at, at, drop = FALSE]
}

#' @rdname fit-methods
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @importFrom stats formula
#' @export
formula.tall_glm <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  check_has_formula(x, "formula")
  # with `.` written out
  stats::formula(x$terms)
}

#' @rdname fit-methods
#' @importFrom stats family
#' @export
family.tall_glm <- function(object, ...) {
  check_no_dots(...)
  if (is.null(object$family$object)) {
    abort_tall(
      "unsupported",
      "A {object$family$name} response has no {.cls family}."
    )
  }
  object$family$object
}

# NULL is a flat prior.
null_priors <- c("prior", "prior_intercept", "prior_aux", "prior_covariance")

#' Fit again with other arguments
#'
#' Evaluates the call that made the fit again, changed as told.
#'
#' @param object (`tall_glm`) The fit, from [tall_glm()].
#' @param formula. (formula) Changes to the formula, as in
#'   [stats::update.formula()].
#' @param ... Other arguments of [tall_glm()] to add, change, or (`NULL`) reset;
#'   a prior of `NULL` is flat.
#' @param evaluate (`TRUE` or `FALSE`) Evaluate the call, or only return it?
#'
#' @details Variables of the call are looked for where `update()` is called, and
#' then where the formula was written: a fit that a function made of its own
#' variables can be fitted again outside of it.
#'
#' @return The new fit, or the call.
#' @section Conditions: `tall_error_stale` where the data of the call are found
#'   nowhere; those of [tall_glm()].
#' @seealso [sg_resume()] to add iterations without starting again.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' update(fit, . ~ . + hp, iter = 1000)
#' @importFrom stats update
#' @export
update.tall_glm <- function(object, formula., ..., evaluate = TRUE) {
  check_flag(evaluate)
  changed <- object$call
  if (!missing(formula.)) {
    changed$formula <- stats::update(formula(object), formula.)
  } else if (!rlang::is_formula(changed$formula)) {
    # a variable's name, perhaps one of another function
    changed$formula <- formula(object)
  }
  extras <- match.call(expand.dots = FALSE)$...
  front <- eval(changed[[1]], parent.frame())
  known <- union(names(formals(front)), run_argument_names())
  refuse_foreign(setdiff(names(extras), known))
  check_dots_known(extras, setdiff(known, "..."))
  for (name in names(extras)) {
    if (name %in% null_priors) {
      changed[name] <- extras[name] # NULL is a prior, too
    } else {
      # NULL takes the argument out of the call
      changed[[name]] <- extras[[name]]
    }
  }
  if (!evaluate) {
    return(changed)
  }
  where <- call_home(object, changed, parent.frame())
  eval(changed, where)
}

# Where a fit's call means what it did: here, or with variables of the function
# that the fit was made in, which the formula remembers.
call_home <- function(fit, changed, here) {
  home <- environment(stats::formula(fit))
  names <- setdiff(all.vars(changed), c(fit$columns, "."))
  found <- list()
  for (name in names) {
    if (is.null(variable_at(name, here))) {
      found[[name]] <- variable_at(name, home)
    }
  }
  data <- changed$data
  is_lost <- is.name(data) && is.null(found[[as.character(data)]]) &&
    is.null(variable_at(as.character(data), here))
  if (is_lost) {
    abort_tall(
      "stale",
      c(
        "The fit's call has {.code data = {deparse1(data)}}, which is not
         here.",
        i = "Give {.arg data} to {.fn update}."
      ),
      argument = "data"
    )
  }
  if (length(found) == 0) here else list2env(found, parent = here)
}
