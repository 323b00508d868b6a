# What fits of regressions have of their formula and their own rows: fitted
# values, residuals, frames, the call again.

#' Fitted values, residuals, and the data of a fit
#'
#' @param object,x,formula (`tall_regression`) The fit, from [tall_glm()],
#'   [tall_glmer()], [tall_polr()], [tall_multinom()] or [tall_nn()], which kept
#'   its data (`keep_data = TRUE`).
#' @param type (string) `"response"`: the response (a proportion where there are
#'   trials) minus the fitted value; of classes 1 less the probability of the
#'   class that came, and no other type; `"pearson"`: divided by the root of the
#'   variance function over the weight; `"deviance"`: the signed root of the
#'   contribution to the deviance. A parameter of the response is taken at its
#'   posterior mean, but for the dispersion of Gaussian and gamma ones, which is
#'   left out, as in [stats::residuals.glm()].
#' @param draws,ndraws (whole number or `NULL`) As in
#'   [predict()][predict.tall_glm()].
#' @param re_formula,re.form,seed Of [tall_glmer()], as in
#'   [predict()][predict.tall_glm()].
#' @param ... Unused: other arguments are refused.
#'
#' @return `fitted()`: the posterior mean of the expected response of each
#'   observation, as `predict(object, type = "response")`. `residuals()`: a
#'   value for each observation. With `na.action = na.exclude` rows left out of
#'   the fit are `NA`. `sigma()`: the posterior mean of the residual standard
#'   deviation, of a row of weight 1; of Student responses that of their scale;
#'   where it has a formula, of each row; 1 where there is none.
#'   `model.frame()`, `model.matrix()`, `terms()`: what the formula made of the
#'   data; of [tall_glmer()] the last two are of the coefficients, without what
#'   is before the bar.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data;
#' `tall_error_source` if its source has other rows than it had;
#' `tall_error_memory` if the frame of a source's rows has more than 5e7
#' numbers;
#' `tall_error_unsupported` for the frame or terms of a fit that had no formula.
#' `tall_warning_limits` for residuals of numbers that are censored, where the
#' limit is taken for the number; those of type `"deviance"` are proper.
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
fitted.tall_regression <- function(
  object,
  draws = NULL,
  seed = NULL,
  ...,
  re_formula = re.form,
  re.form = NULL,
  ndraws = NULL
) {
  check_no_dots(..., .ignore = no_dpar)
  check_has_means(object, "fitted()")
  check_has_data(object)
  groups <- group_request(object, re_formula, seed = seed)
  asked <- ask_rows(object, groups = groups)
  over_means(asked, check_draws(object, draws, ndraws), function(rows, mu) mu)
}

# What f(rows, mu) makes of the expected responses of the fit's own rows, and of
# these. n_draw: NULL: as many as usual.
over_means <- function(asked, n_draw, f, pads = TRUE) {
  fit <- asked$fit
  n_draw <- n_draw %||% usual_draws(fit, asked$n, "response")
  chosen <- choose_draws(fit, n_draw)
  over_rows(asked, chosen, pads = pads, f = function(rows) {
    mu <- predictor_moments(fit, rows, chosen, "response", FALSE)$fit
    list(value = f(rows, mu))
  })$value
}

residual_types <- c("response", "pearson", "deviance")

#' @rdname fitted-values
#' @importFrom stats residuals
#' @export
residuals.tall_regression <- function(
  object,
  type = c("response", "pearson", "deviance"),
  draws = NULL,
  seed = NULL,
  ...,
  re_formula = re.form,
  re.form = NULL,
  ndraws = NULL
) {
  type <- check_choice(type, residual_types)
  check_no_dots(..., .ignore = no_dpar)
  if (type != "response") {
    check_is_number(object, "residuals")
  }
  if (type != "deviance") {
    warn_of_limits(object, "residuals()")
  }
  check_has_data(object)
  groups <- group_request(object, re_formula, seed = seed)
  asked <- ask_rows(object, groups = groups, needs = "responses")
  n_draw <- check_draws(object, draws, ndraws)
  over_means(asked, n_draw, row_residuals(object, type))
}

# f(rows, mu)
row_residuals <- function(fit, type) {
  UseMethod("row_residuals")
}

#' @export
row_residuals.tall_regression <- function(fit, type) {
  if (has_class_response(fit)) {
    return(function(rows, mu) 1 - mu[cbind(seq_along(rows$y), rows$y)])
  }
  aux <- mean_aux(fit)
  function(rows, mu) {
    weight <- rows$trials * rows$weight
    response_residuals(fit$family, type, rows$y, mu, weight, aux)
  }
}

#' @rdname fitted-values
#' @importFrom stats sigma
#' @export
sigma.tall_regression <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  has_units <- !has_class_response(object) &&
    find_response(object$family)$has_units
  if (has_units) fit_sigma(object) else 1
}

#' @rdname fitted-values
#' @importFrom stats model.frame
#' @export
model.frame.tall_regression <- function(formula, ...) {
  check_no_dots(...)
  check_has_formula(formula, "model.frame")
  check_has_data(formula)
  all_frame(fit_of_rows(formula)$rows)
}

#' @rdname fitted-values
#' @importFrom stats model.matrix
#' @export
model.matrix.tall_regression <- function(object, ...) {
  check_no_dots(...)
  check_has_data(object)
  model_design(object)
}

# The design of a fit's own rows, as the formula makes it.
model_design <- function(fit) {
  UseMethod("model_design")
}

#' @export
model_design.tall_regression <- function(fit) {
  design_of(fit, NULL, NULL)$x
}

#' @export
model_design.tall_glmer <- function(fit) {
  out <- design_of(fit, NULL, NULL)$x
  attr(out, "assign") <- attr(out, "contrasts") <- NULL
  out
}

# Networks standardise it.
#' @export
model_design.tall_nn <- function(fit) {
  own_design(fit)$x
}

#' @rdname fitted-values
#' @importFrom stats terms
#' @export
terms.tall_regression <- function(x, ...) {
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
coef.tall_regression <- function(object, ...) {
  coef.tall_fit(object, ...)[coefficient_variables(object)]
}

#' @rdname fit-methods
#' @export
vcov.tall_regression <- function(object, ...) {
  at <- coefficient_variables(object)
  vcov.tall_fit(object, ...)[at, at, drop = FALSE]
}

#' @rdname fit-methods
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @importFrom stats formula
#' @export
formula.tall_regression <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  check_has_formula(x, "formula")
  # with `.` written out, but for group-level terms
  if (is.null(x$bars)) stats::formula(x$terms) else x$formula
}

#' @rdname fit-methods
#' @importFrom stats family
#' @export
family.tall_regression <- function(object, ...) {
  check_no_dots(...)
  if (has_class_response(object)) {
    abort_tall(
      "unsupported",
      c(
        "A response of classes has no {.cls family}.",
        i = "{.code fit$response_levels} has its classes."
      )
    )
  }
  family <- object$family
  found <- family$object %||%
    new_family(find_response(family), family$link)$object
  if (is.null(found)) {
    abort_tall(
      "unsupported",
      "A {family_name(family)} response has no {.cls family}."
    )
  }
  found
}

# ---- the call again ----------------------------------------------------------

# NULL is a flat prior.
null_priors <- c("prior", "prior_intercept", "prior_aux", "prior_covariance")

#' Fit again with other arguments
#'
#' Evaluates the call that made the fit again, changed as told.
#'
#' @param object (`tall_regression`) The fit, from [tall_glm()] or another
#'   front end of a formula.
#' @param formula. (formula) Changes to the formula, as in
#'   [stats::update.formula()].
#' @param ... Other arguments of the front end to add, change, or (`NULL`)
#'   reset; a prior of `NULL` is flat.
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
#' @aliases update.tall_glm
#' @importFrom stats update
#' @export
update.tall_regression <- function(object, formula., ..., evaluate = TRUE) {
  check_flag(evaluate)
  changed <- object$call
  if (!missing(formula.)) {
    changed$formula <- changed_formula(object, formula.)
  } else if (!rlang::is_formula(changed$formula)) {
    # a variable's name, perhaps one of another function
    changed$formula <- formula(object)
  }
  extras <- match.call(expand.dots = FALSE)$...
  check_call_has_rows(object, extras)
  front <- eval(changed[[1]], parent.frame())
  known <- union(names(formals(front)), run_argument_names())
  refuse_foreign(setdiff(names(extras), known))
  check_dots_known(extras, setdiff(known, "..."))
  for (name in names(extras)) {
    if (name %in% null_priors) {
      changed[name] <- extras[name] # NULL is a prior, too
    } else if (!is.null(extras[[name]]) || name %in% names(changed)) {
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

# The call of a fit to which rows were appended is of the first ones.
check_call_has_rows <- function(fit, extras) {
  if (!is.null(fit$batches) && !"data" %in% names(extras)) {
    abort_tall(
      "stale",
      c(
        "The fit's call is of the rows that it had at first, and
         {.code fit$batches} says what has come and gone since.",
        i = "Give {.arg data}, all rows, to {.fn update}."
      ),
      argument = "data"
    )
  }
}

# Of several formulas the first, that of the mean.
changed_formula <- function(fit, change) {
  now <- formula(fit)
  if (!is.null(fit$dpar)) {
    now[[1]] <- stats::update(now[[1]], change)
    return(now)
  }
  stats::update(now, change)
}

# Where a fit's call means what it did: here, or with variables of the function
# that the fit was made in, which the formula remembers.
call_home <- function(fit, changed, here) {
  home <- environment(fit$formula %||% stats::formula(fit))
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
