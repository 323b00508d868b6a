# What fits of tall_glmer() have of their own rows: fitted values, residuals,
# the data and the formula; and how their estimates are printed.

#' Fitted values, residuals, and the data of a multilevel fit
#'
#' @param object,x,formula (`tall_glmer`) The fit, from [tall_glmer()], which
#'   kept its data (`keep_data = TRUE`).
#' @param type (string) `"response"`, `"pearson"` or `"deviance"`, as in
#'   [residuals()][fitted-values] of [tall_glm()]; `"prior"` of `weights()`.
#' @param re_formula,re.form (`NULL`, or `NA` or `~0`) With the effects of
#'   groups, or those of the population alone; two names for one argument.
#' @param draws,ndraws (whole number or `NULL`) As many draws, evenly spaced;
#'   `NULL`: 200. Two names for one argument.
#' @param seed (whole number or `NULL`) Seed of the draws of effects; `NULL`:
#'   the fit's.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param data,newdata (data frame or `NULL`) The data of the fit, to be
#'   returned with the new columns, `NULL`: its model frame; or others.
#' @param type.predict (string) `"link"` or `"response"`: the scale of
#'   `.fitted`.
#' @param type.residuals (string) The `type` of the column `.resid`.
#' @param se_fit (`TRUE` or `FALSE`) The column `.se.fit` as well?
#' @param allow_new_levels (`TRUE` or `FALSE`) May groups of `newdata` be new?
#'   See [predict()][predict.tall_glmer()].
#' @param ... Unused: other arguments are refused.
#'
#' @return `fitted()`: the posterior mean of the expected response of each
#'   observation, its group's effects among it. `residuals()`: a value for each
#'   observation, about these. With `na.action = na.exclude` rows left out of
#'   the fit are `NA`. `deviance()`: the sum of squares of the deviance
#'   residuals. `predictive_error()`: responses less draws of them, draws x
#'   rows. `sigma()`: the posterior mean of the residual standard
#'   deviation; 1 where there is none, as in lme4. `weights()`: what each
#'   observation counts, trials among it. `augment()`: a tibble of the data with
#'   the columns `.fitted`, `.se.fit` (posterior standard deviation) and,
#'   without `newdata`, `.resid`. `model.frame()`: all variables of the formula;
#'   `model.matrix()`, `terms()`: of the coefficients, without what is before
#'   the bar. `formula()`: with the group-level term. `vcov()`: posterior
#'   covariance of the coefficients.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data.
#' @examples
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' head(fitted(fit))
#' head(residuals(fit, "pearson"))
#' update(fit, . ~ . - x, iter = 500)
#' @name tall_glmer-rows
NULL

#' @rdname tall_glmer-rows
#' @export
fitted.tall_glmer <- function(
  object,
  re_formula = re.form,
  draws = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  check_has_data(object)
  stats::predict(
    object,
    type = "response",
    re_formula = re_formula,
    ndraws = ndraws,
    seed = seed
  )
}

#' @rdname tall_glmer-rows
#' @export
residuals.tall_glmer <- function(
  object,
  type = c("response", "pearson", "deviance"),
  re_formula = re.form,
  draws = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  type <- check_choice(type, c("response", "pearson", "deviance"))
  check_no_dots(...)
  response <- own_response(object)
  whole <- object
  # without the rows that na.exclude left out
  whole$na_action <- NULL
  mu <- stats::fitted(
    whole,
    re_formula = re_formula,
    ndraws = ndraws,
    seed = seed
  )
  known <- known_values(object$family, object$sigma)
  at <- is.na(known)
  known[at] <- coef.tall_fit(object)[names(known)[at]]
  out <- response_residuals(
    object$family,
    type,
    response$y,
    mu,
    (response$trials %||% 1) * (response$weight %||% 1),
    if (length(known) > 0) unname(known)
  )
  stats::naresid(object$na_action, stats::setNames(out, names(mu)))
}

#' @rdname tall_glmer-rows
#' @export
deviance.tall_glmer <- function(object, draws = NULL, ..., ndraws = draws) {
  check_no_dots(...)
  object$na_action <- NULL
  sum(stats::residuals(object, type = "deviance", ndraws = ndraws)^2)
}

#' @rdname tall_glmer-rows
#' @export
sigma.tall_glmer <- sigma.tall_glm

#' @rdname tall_glmer-rows
#' @export
weights.tall_glmer <- weights.tall_glm

#' @rdname tall_glmer-rows
#' @export
model.frame.tall_glmer <- function(formula, ...) {
  check_no_dots(...)
  check_has_data(formula)
  formula$frame
}

#' @rdname tall_glmer-rows
#' @export
model.matrix.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  check_has_data(object)
  out <- glmer_rows(object, NULL, NULL, FALSE)$x
  attr(out, "assign") <- attr(out, "contrasts") <- NULL
  out
}

#' @rdname tall_glmer-rows
#' @export
terms.tall_glmer <- function(x, ...) {
  check_no_dots(...)
  x$terms
}

#' @rdname tall_glmer-rows
#' @export
formula.tall_glmer <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  x$formula
}

#' @rdname tall_glmer-rows
#' @export
family.tall_glmer <- family.tall_glm

#' @rdname tall_glmer-rows
#' @export
vcov.tall_glmer <- vcov.tall_glm

#' @rdname update.tall_glm
#' @export
update.tall_glmer <- update.tall_glm

#' @exportS3Method rstanarm::se
se.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  at <- seq_len(object$n_coef)
  stats::setNames(fit_moments(object)$sd[at], object$variables[at])
}

# ---- predictive checks -------------------------------------------------------

#' @rdname tall_glmer-rows
#' @exportS3Method rstantools::predictive_error
predictive_error.tall_glmer <- function(
  object,
  re_formula = re.form,
  draws = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  yrep <- posterior_predict.tall_glmer(
    object,
    re_formula = re_formula,
    ndraws = ndraws,
    seed = seed
  )
  rep(glmer_counts(object), each = nrow(yrep)) - yrep
}

#' @rdname tall_glmer-rows
#' @exportS3Method rstantools::predictive_interval
predictive_interval.tall_glmer <- function(
  object,
  prob = 0.9,
  draws = NULL,
  seed = NULL,
  ...,
  ndraws = draws
) {
  prob <- check_prob(prob)
  yrep <- posterior_predict.tall_glmer(
    object,
    ...,
    ndraws = ndraws,
    seed = seed
  )
  probs <- interval_probs(prob)
  out <- column_quantiles(yrep, probs)
  dimnames(out) <- list(colnames(yrep), percent(probs, ""))
  out
}

# Responses on the scale of posterior_predict().
glmer_counts <- function(fit) {
  response <- own_response(fit)
  response$y * (response$trials %||% 1)
}

#' @rdname pp_check.tall_glm
#' @exportS3Method bayesplot::pp_check
pp_check.tall_glmer <- function(object, type = NULL, ...) {
  check_has_data(object)
  if (is.character(type) && any(grepl("loo", type))) {
    abort_tall(
      "unsupported",
      "Leave-one-out cross-validation of a multilevel fit is by group: see
       {.code loo::loo(fit)}.",
      argument = "type",
      value = type
    )
  }
  pp_check.tall_glm(object, type, ...)
}

#' @export
has_few_values.tall_glmer <- function(fit) {
  has_trials(fit$family) && all(own_response(fit)$trials %||% 1 == 1)
}

#' @export
replicated_responses.tall_glmer <- function(fit, rows, draws) {
  response <- own_response(fit)
  n <- length(response$y)
  trials <- prediction_trials(fit, NULL, NULL, n)[rows]
  new <- glmer_prepare(
    fit, NULL, NULL, FALSE, draws, NULL, NULL, is_matrix = TRUE,
    only = rows
  )
  mu <- response_mean(fit$family, glmer_eta(new, seq_along(rows)))
  yrep <- find_response(fit$family)$draw(
    mu,
    glmer_aux(fit, new$draws),
    list(weight = prediction_weights(fit, NULL, NULL, n)[rows], trials = trials)
  )
  list(
    y = response$y[rows] * (trials %||% 1),
    yrep = matrix(yrep, nrow(mu))
  )
}

# ---- priors ------------------------------------------------------------------

#' @exportS3Method rstantools::prior_summary
prior_summary.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  out <- prior_summary.tall_fit(object)
  lambda <- setdiff(
    object$variables[-seq_len(object$n_coef)],
    response_aux(object$family)
  )
  keep <- !out$table$variable %in% lambda
  out$table <- out$table[keep, ]
  out$of_thresholds <- out$of_thresholds[keep]
  out$auxiliary <- setdiff(out$auxiliary, lambda)
  prior <- object$prior_specs$prior_covariance
  y <- if (!is.null(object$frame)) own_response(object)$y
  has_units <- find_response(object$family)$has_units
  found <- if (!is.null(y) || !has_units) {
    covariance_params(prior, object$groups$effects, y, has_units)
  }
  out$covariance <- list(
    name = object$groups$name,
    effects = object$groups$effects,
    eta = if (object$groups$correlated) prior$eta,
    kind = prior$sd$kind %||% "student",
    df = prior$sd$df %||% 3,
    # that of the data, which a fit without them does not know
    scale = found$sd_scale
  )
  out
}

# The block of print() for group-level effects.
print_covariance_prior <- function(prior) {
  if (is.null(prior)) {
    return(invisible())
  }
  cat("Group-level effects (", prior$name, ")\n", sep = "")
  scale <- if (is.null(prior$scale)) "that of the data" else prior$scale
  scale <- if (is.numeric(scale)) format(scale, digits = 3) else scale
  law <- switch(
    prior$kind,
    flat = "flat",
    student = paste0(
      "half Student t(df = ", format(prior$df), ", scale = ", scale, ")"
    ),
    normal = paste0("half normal(scale = ", scale, ")"),
    exponential = paste0("exponential(scale = ", scale, ")")
  )
  cat(paste0("  sd(", prior$effects, ") ~ ", law, "\n"), sep = "")
  if (!is.null(prior$eta) && length(prior$effects) > 1) {
    cat("  correlations ~ lkj(eta = ", format(prior$eta), ")\n", sep = "")
  }
}

# ---- print -------------------------------------------------------------------

# The blocks in the order of brms: groups, coefficients, the response.
print_grouped_estimates <- function(fit, table, digits) {
  variables <- rownames(table)
  coefficients <- fit$variables[seq_len(fit$n_coef)]
  is_aux <- variables %in% response_aux(fit$family)
  is_coefficient <- variables %in% coefficients
  own <- !is_aux & !is_coefficient
  block <- function(title, rows, names = variables[rows]) {
    if (any(rows)) {
      cat(title, "\n", sep = "")
      part <- table[rows, , drop = FALSE]
      rownames(part) <- names
      print(part, digits = digits)
    }
  }
  block(
    paste0(
      "Group-level effects (", fit$groups$name, ", ",
      count_noun(length(fit$groups$levels), "group"), ")"
    ),
    own,
    group_labels(variables[own], fit$groups$name)
  )
  cat("\n")
  block("Coefficients", is_coefficient)
  if (any(is_aux)) {
    cat("\n")
    block("Response", is_aux)
  }
}

# sd_g__Intercept is sd(Intercept), cor_g__Intercept__x cor(Intercept, x)
group_labels <- function(variables, name) {
  kind <- sub("_.*", "", variables)
  rest <- substring(variables, nchar(kind) + nchar(name) + 4)
  paste0(kind, "(", sub("__", ", ", rest, fixed = TRUE), ")")
}

#' @export
fit_response.tall_glmer <- function(fit) {
  own_response(fit)$y
}
