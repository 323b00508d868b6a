# Draws of a fit: matrices, and the formats of posterior and of base R.

# Draws x variables, a plain matrix.
draws_matrix <- function(fit) {
  check_has_draws(fit)
  draws <- unclass(fit$draws)[, , fit$variables, drop = FALSE]
  matrix(
    draws,
    ncol = length(fit$variables),
    dimnames = list(NULL, fit$variables)
  )
}

check_has_draws <- function(fit) {
  if (is.null(fit$draws)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept no draws.",
        i = "Run again with {.code keep = \"draws\"}."
      )
    )
  }
}

#' Draws of a fit
#'
#' The draws in the formats of \pkg{posterior} and of base R, all of them or
#' those of some variables.
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param variable (string vector or `NULL`) Which variables, as in brms;
#'   `NULL`: all.
#' @param regex (`TRUE` or `FALSE`) Is `variable` regular expressions?
#' @param pars,variables (string vector or `NULL`) Which variables, as in
#'   rstanarm; `NULL`: all.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param row.names,optional,stringsAsFactors As in [base::as.data.frame()]; the
#'   latter two change nothing here.
#' @param ... Unused: other arguments are refused.
#'
#' @return Those of `as_draws_*()`: objects of \pkg{posterior}, with the weights
#'   of draws of a decaying step size. `as.matrix()`: a matrix with a row for
#'   each draw, chain after chain, and a column for each variable;
#'   `as.data.frame()`: the same as a data frame. `as.array()`: iterations x
#'   chains x variables.
#' @section Conditions: `tall_error_unsupported` if the fit kept no draws;
#'   `tall_error_input` for an unknown variable.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' head(as.matrix(fit, pars = "wt"))
#' as_draws_df(fit)
#' summarise_draws(as_draws_array(fit, variable = "wt"))
#' dim(as_draws_matrix(fit))
#' as_draws_rvars(fit)
#' str(as_draws_list(fit), max.level = 1)
#' identical(as_draws(fit), as_draws_array(fit))
#' @name draws-formats
NULL

#' @rdname draws-formats
#' @export
as_draws.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  chosen_draws(x, variable, regex)
}

#' @rdname draws-formats
#' @export
as_draws_array.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  chosen_draws(x, variable, regex)
}

#' @rdname draws-formats
#' @export
as_draws_matrix.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_matrix(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @export
as_draws_df.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_df(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @export
as_draws_list.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_list(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @export
as_draws_rvars.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_rvars(chosen_draws(x, variable, regex))
}

# As brms names them.
chosen_draws <- function(fit, variable, regex) {
  draws <- fit_draws(fit)
  check_flag(regex)
  chosen <- if (regex) {
    matching_variables(fit$variables, variable)
  } else {
    select_variables(fit$variables, variable, arg = "variable")
  }
  if (is.null(chosen)) draws else draws_of(fit, chosen)
}

# Draws of some variables, with their weights.
draws_of <- function(fit, variables) {
  weight <- intersect(".log_weight", dimnames(fit$draws)[[3]])
  posterior::subset_draws(fit$draws, variable = c(variables, weight))
}

fit_draws <- function(fit) {
  check_has_draws(fit)
  fit$draws
}

#' @rdname draws-formats
#' @export
as.array.tall_fit <- function(
  x,
  pars = NULL,
  regex_pars = NULL,
  variables = pars,
  ...
) {
  check_no_dots(...)
  chosen <- select_variables(x$variables, variables, regex_pars)
  draws_array(x, chosen %||% x$variables)
}

#' @rdname draws-formats
#' @export
as.matrix.tall_fit <- function(
  x,
  pars = NULL,
  regex_pars = NULL,
  variables = pars,
  ...
) {
  check_no_dots(...)
  chosen <- select_variables(x$variables, variables, regex_pars)
  draws <- draws_matrix(x)
  if (is.null(chosen)) draws else draws[, chosen, drop = FALSE]
}

#' @rdname draws-formats
#' @export
as.data.frame.tall_fit <- function(
  x,
  row.names = NULL,
  optional = FALSE,
  pars = NULL,
  regex_pars = NULL,
  variables = pars,
  ...,
  stringsAsFactors = FALSE
) {
  check_no_dots(...)
  chosen <- select_variables(x$variables, variables, regex_pars)
  draws <- draws_matrix(x)
  if (!is.null(chosen)) {
    draws <- draws[, chosen, drop = FALSE]
  }
  as.data.frame(draws, row.names = row.names, optional = optional)
}

# A plain array with the names that bayesplot reads.
draws_array <- function(fit, variables = fit$variables) {
  draws <- unclass(fit_draws(fit))[, , variables, drop = FALSE]
  array(draws, dim(draws), list(
    iteration = NULL,
    chain = paste0("chain:", seq_len(dim(draws)[[2]])),
    variable = dimnames(draws)[[3]]
  ))
}

# Of all variables that are given, or that match: NULL where neither names any.
select_variables <- function(
  known,
  variables,
  regex_pars = NULL,
  may_number = FALSE,
  arg = "variables"
) {
  if (is.null(variables) && is.null(regex_pars)) {
    return(NULL)
  }
  if (!is.null(variables)) {
    check_variable_names(variables, known, may_number, arg = arg)
    if (is.numeric(variables)) {
      variables <- known[variables]
    }
  }
  union(variables, matching_variables(known, regex_pars))
}

matching_variables <- function(known, regex_pars) {
  if (is.null(regex_pars)) {
    return(NULL)
  }
  if (!is.character(regex_pars) || anyNA(regex_pars)) {
    expected <- "regular expressions (strings) or NULL"
    abort_expected(regex_pars, expected, arg = "regex_pars")
  }
  found <- lapply(regex_pars, function(pattern) {
    tryCatch(
      grep(pattern, known, value = TRUE),
      error = function(e) {
        expected <- "regular expressions"
        abort_expected(pattern, expected, arg = "regex_pars")
      },
      warning = function(w) character() # an error follows it
    )
  })
  none <- which(lengths(found) == 0)
  if (length(none) > 0) {
    abort_input(
      c(
        "{.arg regex_pars} must match a variable;
         {.val {regex_pars[[none[[1]]]]}} matches none.",
        i = "The fit has {.val {known}}."
      ),
      argument = "regex_pars",
      expected = known,
      value = regex_pars
    )
  }
  unique(unlist(found))
}
