# What glm(), rstanarm and lme4 have functions for, beside those that every fit
# has: either it means something for a posterior, or it is refused in words.

#' More of what `glm()` and rstanarm have
#'
#' @param object,x (`tall_regression`) The fit, from [tall_glm()] or another
#'   front end of a formula, which kept its data; `df.residual()` and lazy
#'   tables are for [tall_glm()].
#' @param type (string) `"prior"`: the weights that the fit was given.
#' @param draws,ndraws (whole number or `NULL`) As in
#'   [predict()][predict.tall_glm()].
#' @param data (data frame or `NULL`) The data of the fit, to be returned with
#'   the new columns; `NULL`: its model frame.
#' @param newdata (data frame, [source][tall_source] or `NULL`) Other data,
#'   which are brought to memory; of a lazy table of \pkg{dbplyr} see *Tables in
#'   a database*.
#' @param type.predict (string) `"link"` or `"response"`: the scale of
#'   `.fitted`.
#' @param type.residuals (string) The `type` of [residuals()][fitted-values].
#' @param se_fit (`TRUE` or `FALSE`) The column `.se.fit` as well?
#' @param re_formula,re.form,allow_new_levels,seed Of [tall_glmer()], as in
#'   [predict()][predict.tall_glm()].
#' @param ... Unused: other arguments are refused.
#'
#' @return `deviance()`: the sum of the squared deviance residuals, which are
#'   those at the posterior means of the expected responses. `df.residual()`:
#'   observations less coefficients. `na.action()`: the rows that are left out,
#'   as of [stats::lm()]: those that lack a value, have a weight of 0 or no
#'   trials. Of a fit that read its rows by passes another pass finds them.
#'   `weights()`: what each observation counts, trials among it, as
#'   [stats::glm()] has it: 1 where nothing was given.
#'   `augment()`: a tibble of the data with the columns `.fitted`, `.se.fit`
#'   (posterior standard deviation) and, without `newdata`, `.resid`; of classes
#'   `.fitted` is the most probable one, beside `.prob_` and `.se_` of each. The
#'   coefficients are `fixef()` and their posterior standard deviations `se()`,
#'   for the generics of \pkg{nlme} and \pkg{rstanarm}.
#' @section Tables in a database: With a lazy table as `newdata` no row leaves
#' the database: `augment()` returns the lazy table with the columns `.fitted`
#' and, if asked for, `.se.fit`, which `dplyr::filter()`, `dplyr::summarise()`,
#' `dplyr::compute()` and others take further. They are `NULL` where a covariate
#' is missing or has a new level. Linear predictors and their standard
#' deviations are those of the draws. For `type.predict = "response"`, `.fitted`
#' is the inverse link at the posterior mean \eqn{m}{m} of the linear predictor
#' and `.se.fit` its derivative there times the predictor's standard deviation
#' \eqn{s}{s}; the mean over the draws, which `predict(newdata = )` returns row
#' by row, is some \eqn{s^2 (g^{-1})''(m) / 2}{s^2 (g^-1)''(m) / 2} from it,
#' nothing to speak of where data are tall. Terms or links that SQL cannot say
#' are an error of class `tall_error_unsupported`; the links are identity, log,
#' logit, inverse, sqrt and cloglog.
#' @section What a posterior does not have: `logLik()`, `AIC()`, `BIC()` and
#' `extractAIC()` are of a maximum of the likelihood, which a posterior has not:
#' they are an error of class `tall_error_unsupported` that names
#' [loo()][loo-tall_glm] and [log_lik()][log-lik]. So are `ranef()` and
#' `VarCorr()` of models without group-level terms, and functions of vectors,
#' `mean()` and `quantile()` among them: [posterior::summarise_draws()] takes
#' these.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' deviance(fit)
#' df.residual(fit)
#' augment(fit, type.predict = "response")
#' @name fit-accessors
NULL

# ---- of a glm ----------------------------------------------------------------

#' @rdname fit-accessors
#' @importFrom stats deviance
#' @export
deviance.tall_regression <- function(
  object,
  draws = NULL,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  check_is_number(object, "deviance")
  check_has_data(object)
  # without the rows that na.exclude left out
  n_draw <- check_draws(object, draws, ndraws)
  groups <- group_request(object, seed = seed)
  asked <- ask_rows(object, groups = groups, needs = "responses")
  residual <- row_residuals(object, "deviance")
  sum(over_means(asked, n_draw, residual, pads = FALSE)^2)
}

#' @export
deviance.tall_fit <- function(object, ...) {
  abort_no_formula(object, "deviance")
}

#' @rdname fit-accessors
#' @importFrom stats df.residual
#' @export
df.residual.tall_glm <- function(object, ...) {
  check_no_dots(...)
  object$n_data - object$n_coef
}

#' @export
df.residual.tall_dpar <- df.residual.tall_glm

#' @export
df.residual.tall_fit <- function(object, ...) {
  abort_no_formula(object, "df.residual")
}

#' @rdname fit-accessors
#' @importFrom stats weights
#' @export
weights.tall_regression <- function(object, type = "prior", ...) {
  check_no_dots(...)
  check_choice(type, "prior")
  check_has_data(object)
  asked <- ask_rows(object, needs = "responses")
  over_rows(asked, NULL, function(rows) {
    list(value = rows$trials * rows$weight)
  })$value
}

#' @export
weights.tall_fit <- function(object, ...) {
  abort_no_formula(object, "weights")
}

# ---- rows that were left out -------------------------------------------------

#' @rdname fit-accessors
#' @importFrom stats na.action
#' @export
na.action.tall_fit <- function(object, ...) {
  check_no_dots(...)
  rows <- object$rows
  # rows of weight 0 are not counted by passes
  has_out <- isTRUE(object$n_missing > 0) || isTRUE(rows$has_weights)
  if (!is.null(object$na_action) || !is_passed_rows(rows) || !has_out) {
    return(object$na_action)
  }
  check_has_data(object)
  source_left_out(object)
}

# ---- of mixed models ---------------------------------------------------------

#' @export
fixef.tall_fit <- function(object, ...) {
  check_no_dots(...)
  stats::coef(object)
}

#' @export
ranef.tall_fit <- function(object, ...) {
  abort_no_groups(object, "ranef")
}

#' @export
ngrps.tall_fit <- function(object, ...) {
  abort_no_groups(object, "ngrps")
}

#' @export
VarCorr.tall_fit <- function(x, ...) {
  abort_no_groups(x, "VarCorr")
}

#' @exportS3Method rstanarm::se
se.tall_fit <- function(object, ...) {
  check_no_dots(...)
  at <- match(names(stats::coef(object)), object$variables)
  stats::setNames(fit_moments(object)$sd[at], object$variables[at])
}

abort_no_groups <- function(fit, f) {
  grouping <- Filter(is_grouping, terms_smooths(fit$terms))
  if (length(grouping) > 0) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {f}} is of fits of {.fn tall_glmer}; here
         {.code {names(grouping)[[1]]}} is a smooth term.",
        i = "{.code conditional_smooths(fit)} has its effects,
             {.code smooth_table(fit)} its standard deviation."
      )
    )
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn {f}} is for models with group-level terms; this one has none.",
      i = "{.fn tall_glmer} fits such models; {.code coef(fit)} has the
           coefficients of this one."
    )
  )
}

# ---- of a maximum of the likelihood ------------------------------------------

#' @importFrom stats logLik
#' @export
logLik.tall_fit <- function(object, ...) {
  abort_no_maximum(object, "logLik")
}

#' @importFrom stats AIC
#' @export
AIC.tall_fit <- function(object, ..., k = 2) {
  abort_no_maximum(object, "AIC")
}

#' @importFrom stats BIC
#' @export
BIC.tall_fit <- function(object, ...) {
  abort_no_maximum(object, "BIC")
}

#' @importFrom stats extractAIC
#' @export
extractAIC.tall_fit <- function(fit, scale, k = 2, ...) {
  abort_no_maximum(fit, "extractAIC")
}

abort_no_maximum <- function(fit, f) {
  abort_tall(
    "unsupported",
    c(
      "{.fn {f}} is of a maximum of the likelihood, and the fit is a
       posterior.",
      i = "{.code loo::loo(fit)} and {.code loo::waic(fit)} compare models;
           {.code rstantools::log_lik(fit)} has the log likelihood of each
           observation and draw."
    )
  )
}

# ---- refusals of the parent class --------------------------------------------

# stats' and bayesplot's defaults would answer something else, or fail oddly.

#' @export
sigma.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  value <- fit_sigma(object)
  if (is.na(value)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {object$model_label}()} has no residual standard deviation.",
        i = "{.code as.matrix(fit)} has the draws of all its variables."
      )
    )
  }
  value
}

#' @export
model.frame.tall_fit <- function(formula, ...) {
  abort_no_formula(formula, "model.frame")
}

#' @export
model.matrix.tall_fit <- function(object, ...) {
  abort_no_formula(object, "model.matrix")
}

#' @export
terms.tall_fit <- function(x, ...) {
  abort_no_formula(x, "terms")
}

#' @exportS3Method bayesplot::pp_check
pp_check.tall_fit <- function(object, ...) {
  abort_no_formula(object, "pp_check")
}

#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_fit <- function(object, ...) {
  abort_no_formula(object, "posterior_predict")
}

#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_fit <- function(object, ...) {
  abort_no_formula(object, "posterior_epred")
}

#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_fit <- function(object, ...) {
  abort_no_formula(object, "posterior_linpred")
}

#' @exportS3Method rstantools::predictive_error
predictive_error.tall_fit <- function(object, ...) {
  abort_no_formula(object, "predictive_error")
}

#' @exportS3Method rstantools::predictive_interval
predictive_interval.tall_fit <- function(object, ...) {
  abort_no_formula(object, "predictive_interval")
}

#' @exportS3Method rstantools::bayes_R2
bayes_R2.tall_fit <- function(object, ...) {
  abort_no_formula(object, "bayes_R2")
}

# ---- posterior's functions of vectors ----------------------------------------

# Of a fit, its convergence measures are those of each variable. They are found
# when they are called: the package may be another version by then.
per_variable <- function(name) {
  force(name)
  function(x, ...) {
    check_no_dots(...)
    f <- getExportedValue("posterior", name)
    each_variable(x, NULL, f)
  }
}

per_variable_quantile <- function(name) {
  force(name)
  function(x, probs = c(0.05, 0.95), names = TRUE, ...) {
    check_no_dots(...)
    probs <- check_probs(probs)
    check_flag(names)
    f <- getExportedValue("posterior", name)
    columns <- lapply(probs, function(p) {
      each_variable(x, NULL, function(draws) f(draws, probs = p))
    })
    if (length(probs) == 1) {
      return(columns[[1]])
    }
    out <- do.call(cbind, columns)
    colnames(out) <- if (names) paste0("q", 100 * probs)
    out
  }
}

#' @rawNamespace S3method(posterior::rhat, tall_fit, rhat_of_fit)
rhat_of_fit <- per_variable("rhat")

#' @exportS3Method posterior::rhat_basic
rhat_basic.tall_fit <- per_variable("rhat_basic")

#' @exportS3Method posterior::ess_basic
ess_basic.tall_fit <- per_variable("ess_basic")

#' @exportS3Method posterior::ess_bulk
ess_bulk.tall_fit <- per_variable("ess_bulk")

#' @exportS3Method posterior::ess_tail
ess_tail.tall_fit <- per_variable("ess_tail")

#' @exportS3Method posterior::ess_mean
ess_mean.tall_fit <- per_variable("ess_mean")

#' @exportS3Method posterior::ess_sd
ess_sd.tall_fit <- per_variable("ess_sd")

#' @exportS3Method posterior::ess_quantile
ess_quantile.tall_fit <- per_variable_quantile("ess_quantile")

#' @exportS3Method posterior::mcse_mean
mcse_mean.tall_fit <- per_variable("mcse_mean")

#' @exportS3Method posterior::mcse_sd
mcse_sd.tall_fit <- per_variable("mcse_sd")

#' @exportS3Method posterior::mcse_quantile
mcse_quantile.tall_fit <- per_variable_quantile("mcse_quantile")

# Others would take the list that a fit is for a vector.
refuse_vector <- function(name) {
  force(name)
  function(x, ...) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} is of a vector, and a fit has {count_noun(
         length(x$variables), 'variable')}.",
        i = "{.code posterior::summarise_draws(fit, {name})} takes it of each;
             {.code coef(fit)} has the means."
      )
    )
  }
}

#' @export
mean.tall_fit <- refuse_vector("mean")

#' @importFrom stats median
#' @export
median.tall_fit <- refuse_vector("median")

#' @importFrom stats quantile
#' @export
quantile.tall_fit <- refuse_vector("quantile")

#' @exportS3Method posterior::quantile2
quantile2.tall_fit <- refuse_vector("quantile2")

sd_of_fit <- refuse_vector("sd")

mad_of_fit <- refuse_vector("mad")

var_of_fit <- refuse_vector("var")

#' @rawNamespace S3method(posterior::variance, tall_fit, var_of_fit)
NULL

#' @exportS3Method posterior::entropy
entropy.tall_fit <- refuse_vector("entropy")

#' @exportS3Method posterior::dissent
dissent.tall_fit <- refuse_vector("dissent")

#' @exportS3Method posterior::modal_category
modal_category.tall_fit <- refuse_vector("modal_category")
