# Formulas that other packages wrap: brms' bf(), and lists of formulas for
# several parameters of a response.

# The one formula that is meant, and anything else as it is.
one_formula <- function(formula) {
  of_brms <- inherits(formula, c("brmsformula", "mvbrmsformula"))
  is_list <- is.list(formula) && length(formula) > 0 &&
    all(vapply(formula, inherits, TRUE, "formula"))
  if (!of_brms && !is_list) {
    return(formula)
  }
  if (inherits(formula, "mvbrmsformula")) {
    abort_formulas(
      formula,
      "{.arg formula} must have one response, and this is of several.",
      "Fit one model for each."
    )
  }
  if (of_brms) {
    check_plain_brms(formula)
    return(formula$formula)
  }
  if (length(formula) > 1) {
    abort_own_predictors(formula, own_parameters(formula[-1]))
  }
  formula[[1]]
}

# What bf() may hold beside a formula.
check_plain_brms <- function(formula) {
  if (isTRUE(attr(formula$formula, "nl"))) {
    abort_formulas(
      formula,
      "{.arg formula} must be linear in the coefficients.",
      "Others are for {.fn model_custom}."
    )
  }
  own <- c(names(formula$pforms), names(formula$pfix))
  if (length(own) > 0) {
    abort_own_predictors(formula, own)
  }
}

# Formulas by the parameters that they are of, the first of "mu": of brms'
# bf(), a formula, or a list of such.
formulas_by_parameter <- function(formula) {
  if (inherits(formula, "brmsformula")) {
    check_brms_parts(formula)
    parts <- c(list(formula$formula), formula$pforms)
    names(parts) <- c("mu", names(formula$pforms))
    return(parts)
  }
  if (inherits(formula, "formula")) {
    return(list(mu = formula))
  }
  is_list <- is.list(formula) && length(formula) > 0 &&
    all(vapply(formula, inherits, TRUE, "formula"))
  if (!is_list) {
    abort_expected(
      formula,
      "a formula, or a list of formulas",
      arg = "formula"
    )
  }
  stats::setNames(formula, c("mu", own_parameters(formula[-1])))
}

check_brms_parts <- function(formula) {
  if (isTRUE(attr(formula$formula, "nl")) || length(formula$pfix) > 0) {
    check_plain_brms(formula)
  }
}

# The parameters of formulas, by their names or what is on their left.
own_parameters <- function(formulas) {
  given <- names(formulas) %||% rep("", length(formulas))
  left <- vapply(formulas, FUN.VALUE = "", function(one) {
    if (length(one) == 3) deparse1(one[[2]]) else ""
  })
  ifelse(nzchar(given), given, left)
}

# base: the family that was asked for, NULL: of a front end that takes one
# formula.
abort_own_predictors <- function(formula, names, base = NULL) {
  names <- names[nzchar(names)]
  shown <- if (length(names) > 0) {
    paste0("`", names, "`", collapse = ", ")
  } else {
    "other parameters"
  }
  own <- if (!is.null(base)) second_predictors[[base$name]]$name
  hint <- if (any(c("hu", "zi") %in% names)) {
    paste(
      "`hurdle_poisson()` has `hu`, `zero_inflated_poisson()` has `zi`, the",
      "probability of a 0, in `tall_glm()`."
    )
  } else if (!is.null(own)) {
    paste0("This family has a formula of `", own, "` beside it.")
  } else {
    paste(
      "`tall_glm()` takes `sigma ~ z` of gaussian() and student(), `shape ~ z`",
      "of neg_binomial_2() and Gamma(\"log\"), `phi ~ z` of",
      "beta_regression(). Left out, they are the same for all rows."
    )
  }
  abort_formulas(
    formula,
    paste0(
      "{.arg formula} must be one formula, that of the mean, and this has ",
      "predictors of ", escape_cli(shown), ", too."
    ),
    escape_cli(hint)
  )
}

abort_formulas <- function(formula, message, hint) {
  abort_tall(
    "unsupported",
    c(message, i = hint),
    argument = "formula",
    value = formula
  )
}
