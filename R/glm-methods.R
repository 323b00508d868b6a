# What users of glm(), rstanarm, brms, posterior, bayesplot and coda type.

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
  interval_matrix(object, parm, level, " ", "parm", rlang::current_env())
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
  interval_matrix(
    object,
    variables,
    prob,
    "",
    "variables",
    rlang::current_env()
  )
}

# rstanarm's argument.
central_only <- list(
  test = function(x) identical(x, "central"),
  expected = "\"central\"",
  hint = "Other intervals can be had of the draws, `as.matrix(fit)`."
)

interval_matrix <- function(fit, variables, prob, space, arg, call) {
  probs <- interval_probs(prob)
  out <- fit_quantiles(fit, probs, call)
  colnames(out) <- percent(probs, space)
  if (is.null(variables)) {
    return(out)
  }
  check_variable_names(
    variables,
    rownames(out),
    may_number = TRUE,
    arg = arg,
    call = call
  )
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
#'   contribution to the deviance.
#' @param draws,ndraws (whole number or `NULL`) As in
#'   [predict()][predict.tall_glm()].
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @return `fitted()`: the posterior mean of the expected response of each
#'   observation, as `predict(object, type = "response")`. `residuals()`: a
#'   value for each observation. With `na.action = na.exclude` rows left out of
#'   the fit are `NA`. `sigma()`: the posterior mean of the residual standard
#'   deviation, of a row of weight 1 (1 outside Gaussian models).
#'   `model.frame()`, `model.matrix()`, `terms()`: what the formula made of the
#'   data.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data;
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
  response <- own_response(object)
  # without the rows that na.exclude left out
  whole <- object
  whole$na_action <- NULL
  mu <- stats::predict(whole, type = "response", draws = draws, ndraws = ndraws)
  weight <- response$trials %||% 1
  weight <- weight * (response$weight %||% 1)
  out <- response_residuals(object$family, type, response$y, mu, weight)
  stats::naresid(object$na_action, stats::setNames(out, names(mu)))
}

#' @rdname fitted-values
#' @importFrom stats sigma
#' @export
sigma.tall_glm <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  if (has_aux(object$family)) fit_sigma(object) else 1
}

#' @rdname fitted-values
#' @importFrom stats model.frame
#' @export
model.frame.tall_glm <- function(formula, ...) {
  check_no_dots(...)
  check_has_formula(formula, "model.frame")
  check_has_data(formula)
  formula$frame
}

#' @rdname fitted-values
#' @importFrom stats model.matrix
#' @export
model.matrix.tall_glm <- function(object, ...) {
  check_no_dots(...)
  check_has_data(object)
  if (is.null(object$terms)) {
    object$data$x
  } else {
    stats::model.matrix(
      object$terms,
      object$frame,
      contrasts.arg = object$contrasts
    )
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

check_has_formula <- function(fit, what, call = caller_env()) {
  if (is.null(fit$terms)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {what}} needs a formula; the fit was made from a matrix by
         {.fn tall_glm.fit}.",
        i = "Fit with {.fn tall_glm}; {.code model.matrix(fit)} has the matrix."
      ),
      call = call
    )
  }
}

# Conformable with the design: callers multiply by these, or invert them.
#' @rdname fit-methods
#' @export
coef.tall_glm <- function(object, ...) {
  coef.tall_fit(object, ...)[seq_len(object$n_coef)]
}

#' @rdname fit-methods
#' @export
vcov.tall_glm <- function(object, ...) {
  at <- seq_len(object$n_coef)
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
#' @return The new fit, or the call.
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
  }
  extras <- match.call(expand.dots = FALSE)$...
  known <- names(formals(eval(changed[[1]], parent.frame())))
  refuse_foreign(setdiff(names(extras), known), rlang::current_env())
  check_dots_known(extras, setdiff(known, "..."), rlang::current_env())
  for (name in names(extras)) {
    if (name %in% c("prior", "prior_intercept", "prior_aux")) {
      changed[name] <- extras[name] # NULL is a prior, too
    } else {
      # NULL takes the argument out of the call
      changed[[name]] <- extras[[name]]
    }
  }
  if (evaluate) eval(changed, parent.frame()) else changed
}

# ---- priors ------------------------------------------------------------------

#' The priors of a fit
#'
#' The priors as they were used: in numbers, after `autoscale`.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param x (`tall_prior_summary`) What `prior_summary()` returns.
#' @param digits (whole number) Significant digits to print.
#' @param ... Unused: other arguments are refused.
#'
#' @return An object of class `tall_prior_summary`: a list of `table`, a data
#'   frame with a row for each variable (`variable`, `prior`, `location`,
#'   `scale`), `specs` (the priors as given to [tall_glm()]) and `centred` (is
#'   the prior of the intercept that of the linear predictor at the covariates'
#'   means?). The `scale` of an exponential prior is its mean.
#' @section Conditions:
#' `tall_error_unsupported` for a model whose prior is not of this kind.
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt + hp, data = mtcars, seed = 1)
#' rstantools::prior_summary(fit)
#' @exportS3Method rstantools::prior_summary
prior_summary.tall_fit <- function(object, ...) {
  check_no_dots(...)
  prior <- object$prior
  if (is.null(prior)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn prior_summary} knows the priors of generalised linear models, not
         that of {.fn {object$model_label}}.",
        i = "It is what the arguments of {.fn {object$model_label}} say."
      )
    )
  }
  codes <- vapply(prior_kinds, function(kind) kind$code, 0L)
  kind <- prior_kinds[match(prior$kind, codes)]
  title <- vapply(kind, function(k) k$title, "")
  is_flat <- title == "flat"
  is_exponential <- title == "exponential"
  table <- data.frame(
    variable = object$variables,
    prior = unname(title),
    location = ifelse(is_flat | is_exponential, NA, prior$location),
    scale = ifelse(is_flat, NA, prior$scale)
  )
  structure(
    list(
      table = table,
      specs = object$prior_specs,
      centred = !is.null(object$model$prior_functional)
    ),
    class = "tall_prior_summary"
  )
}

#' @rdname prior_summary.tall_fit
#' @export
print.tall_prior_summary <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  table <- x$table
  is_intercept <- table$variable == "(Intercept)"
  is_aux <- table$prior == "exponential" |
    (table$variable == "sigma" & seq_along(table$variable) == nrow(table))
  cat("Priors\n------\n")
  if (any(is_intercept)) {
    where <- if (x$centred) " (of the predictor at the covariates' means)"
    cat("Intercept", where, "\n", sep = "")
    spec <- x$specs$prior_intercept %||% x$specs$prior
    print_prior(table[is_intercept, ], spec, digits)
  }
  if (any(!is_intercept & !is_aux)) {
    cat("Coefficients\n")
    print_prior(table[!is_intercept & !is_aux, ], x$specs$prior, digits)
  }
  if (any(is_aux)) {
    cat("Auxiliary (sigma)\n")
    print_prior(table[is_aux, ], x$specs$prior_aux, digits)
  }
  cat("------\n")
  invisible(x)
}

# The prior as given, and as it became.
print_prior <- function(rows, spec, digits) {
  adjusted <- isTRUE(spec$autoscale)
  if (adjusted) {
    cat("  Specified: ~ ", prior_text(spec, digits), "\n", sep = "")
  }
  used <- list(
    title = rows$prior[[1]],
    location = rows$location,
    scale = rows$scale,
    rate = 1 / rows$scale
  )
  lead <- if (adjusted) "  Adjusted:  ~ " else "  ~ "
  cat(lead, prior_text(used, digits), "\n", sep = "")
}

prior_text <- function(prior, digits) {
  title <- prior$title %||% prior_kinds[[prior$kind]]$title
  values <- function(x) {
    shown <- vapply(utils::head(x, 6), format, "", digits = digits)
    shown <- with_names(shown, x)
    shown <- paste0(
      paste(shown, collapse = ", "),
      if (length(x) > 6) paste0(", ... with ", length(x) - 6, " more")
    )
    if (length(x) > 1) paste0("[", shown, "]") else shown
  }
  switch(
    title,
    flat = "flat",
    exponential = paste0("exponential(rate = ", values(prior$rate), ")"),
    uniform = paste0(
      "uniform(lower = ",
      values(prior$location - prior$scale),
      ", upper = ",
      values(prior$location + prior$scale),
      ")"
    ),
    paste0(
      title,
      "(location = ",
      values(prior$location),
      ", scale = ",
      values(prior$scale),
      ")"
    )
  )
}

# ---- counts, as posterior has them -------------------------------------------

#' @exportS3Method posterior::niterations
niterations.tall_fit <- function(x) {
  posterior::niterations(fit_draws(x))
}

#' @exportS3Method posterior::nchains
nchains.tall_fit <- function(x) {
  posterior::nchains(fit_draws(x))
}

#' @exportS3Method posterior::ndraws
ndraws.tall_fit <- function(x) {
  posterior::ndraws(fit_draws(x))
}

#' @exportS3Method posterior::nvariables
nvariables.tall_fit <- function(x, ...) {
  check_no_dots(...)
  length(x$variables)
}

#' @exportS3Method posterior::variables
variables.tall_fit <- function(x, ...) {
  check_no_dots(...)
  x$variables
}

#' @exportS3Method rstantools::nsamples
nsamples.tall_fit <- function(object, ...) {
  check_no_dots(...)
  posterior::ndraws(fit_draws(object))
}

# ---- coda and bayesplot ------------------------------------------------------

#' Draws for coda
#'
#' Methods for the generics of \pkg{coda}.
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param pars,variables (string vector or `NULL`) Which variables; `NULL`: all.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param combine_chains (`TRUE` or `FALSE`) One `mcmc` of all chains, one after
#'   the other, as in brms?
#' @param ... Unused: other arguments are refused.
#'
#' @return An `mcmc.list` with an element for each chain; its iterations are
#'   numbered as in the run, after warmup and thinning. With `combine_chains =
#'   TRUE` an `mcmc`, which does not know that there were chains.
#' @examplesIf requireNamespace("coda", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' summary(coda::as.mcmc.list(fit))
#' coda::HPDinterval(coda::as.mcmc(fit, combine_chains = TRUE))
#' @exportS3Method coda::as.mcmc.list
as.mcmc.list.tall_fit <- function(
  x,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  ...
) {
  check_no_dots(...)
  chosen <- select_variables(x$variables, variables, regex_pars)
  chosen <- chosen %||% x$variables
  draws <- draws_array(x, chosen)
  thin <- x$control$thin
  chains <- lapply(seq_len(dim(draws)[[2]]), function(chain) {
    values <- draws[, chain, ]
    dim(values) <- dim(draws)[c(1, 3)]
    colnames(values) <- chosen
    coda::mcmc(values, start = x$control$warmup + thin, thin = thin)
  })
  coda::mcmc.list(chains)
}

#' @rdname as.mcmc.list.tall_fit
#' @exportS3Method coda::as.mcmc
as.mcmc.tall_fit <- function(
  x,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  combine_chains = FALSE,
  ...
) {
  check_no_dots(...)
  check_flag(combine_chains)
  if (combine_chains) {
    coda::mcmc(
      as.matrix.tall_fit(x, variables = variables, regex_pars = regex_pars)
    )
  } else {
    as.mcmc.list.tall_fit(x, variables = variables, regex_pars = regex_pars)
  }
}

#' Pairs of variables
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param pars,variables (string vector or `NULL`) Which variables; `NULL`: the
#'   first six.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param ... Passed on to [bayesplot::mcmc_pairs()]; what it does not know is
#'   refused.
#'
#' @return What [bayesplot::mcmc_pairs()] returns.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' pairs(fit)
#' @importFrom graphics pairs
#' @export
pairs.tall_fit <- function(
  x,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  ...
) {
  rlang::check_installed("bayesplot", "to plot a fit")
  chosen <- select_variables(x$variables, variables, regex_pars)
  if (is.null(chosen)) {
    chosen <- utils::head(x$variables, 6)
  }
  draws <- draws_array(x, shown_variables(x, chosen, "pairs"))
  call_bayesplot(bayesplot::mcmc_pairs, "mcmc_pairs", list(draws), list(...))
}

#' Diagnostics for bayesplot
#'
#' Methods for the generics of \pkg{bayesplot}, whose results its functions
#' `mcmc_rhat()`, `mcmc_neff()` and others draw. All of its `mcmc_*()` that take
#' draws take a fit. The convergence measures of \pkg{posterior}, such as
#' [posterior::rhat()] and [posterior::ess_bulk()], give a value for each
#' variable of a fit.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param pars,variables (string vector or `NULL`) Which variables; `NULL`: all.
#' @param ... Unused: other arguments are refused.
#'
#' @return `rhat()`: a named vector of R-hat. `neff_ratio()`: a named vector of
#'   bulk effective sample sizes over the number of draws; it can exceed 1. As
#'   in [summary()][summary.tall_fit], neither can see the bias of a
#'   stochastic-gradient chain. `log_posterior()`: a data frame of `Chain`,
#'   `Iteration` and `Value`, the log posterior density of the draws in the
#'   coordinates that were sampled, up to a constant.
#' @section Conditions: `tall_error_unsupported` from `log_posterior()` unless
#' the kernel was a Metropolis kernel such as [kernel_mala()], since others
#' never evaluate it; from `nuts_params()` always, since no kernel here is NUTS;
#' from `rhat()` and `neff_ratio()` if the draws carry weights, or the fit kept
#' none.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' bayesplot::rhat(fit)
#' bayesplot::mcmc_neff(bayesplot::neff_ratio(fit))
#' head(bayesplot::log_posterior(fit))
#' @name bayesplot-diagnostics
NULL

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::rhat
rhat.tall_fit <- function(object, pars = NULL, variables = pars, ...) {
  check_no_dots(...)
  each_variable(object, variables, posterior::rhat, rlang::current_env())
}

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::neff_ratio
neff_ratio.tall_fit <- function(object, pars = NULL, variables = pars, ...) {
  check_no_dots(...)
  ess <- each_variable(
    object,
    variables,
    posterior::ess_bulk,
    rlang::current_env()
  )
  ess / posterior::ndraws(object$draws)
}

# f of the iterations x chains of each variable.
each_variable <- function(fit, variables, f, call) {
  draws <- draws_array(fit, call = call)
  if (!is.null(fit[["weights"]])) {
    abort_tall(
      "unsupported",
      c(
        "Draws of a decaying step size carry weights: there is no R-hat or
         effective sample size of chains.",
        i = "{.code summary(fit)} has the effective sample size of the weights."
      ),
      call = call
    )
  }
  variables <- variables %||% fit$variables
  check_variable_names(variables, fit$variables, call = call)
  vapply(
    rlang::set_names(variables),
    function(name) as.double(f(array(draws[, , name], dim(draws)[1:2]))),
    0
  )
}

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::log_posterior
log_posterior.tall_fit <- function(object, ...) {
  check_no_dots(...)
  check_has_draws(object)
  value <- object$log_posterior
  if (is.null(value)) {
    abort_tall(
      "unsupported",
      c(
        "The log posterior of the draws is known for Metropolis kernels, not for
         {.code kernel_{object$kernel$name}()}, which never evaluates it.",
        i = "Run with {.fn kernel_mala} or {.fn kernel_barker}."
      )
    )
  }
  n <- dim(value)[[1]]
  chains <- dim(value)[[2]]
  data.frame(
    Chain = rep(seq_len(chains), each = n),
    Iteration = rep(seq_len(n), chains),
    Value = as.double(value)
  )
}

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::nuts_params
nuts_params.tall_fit <- function(object, ...) {
  check_no_dots(...)
  abort_tall(
    "unsupported",
    c(
      "{.fn nuts_params} is for NUTS; {.code kernel_{object$kernel$name}()} has
       no such parameters.",
      i = "{.fn summary} shows the diagnostics of this run."
    )
  )
}

#' Posterior predictive checks
#'
#' Method for the generic of \pkg{bayesplot}: compares the response with draws
#' of it.
#'
#' @param object (`tall_glm` or `tall_nn`) The fit, from [tall_glm()] or
#'   [tall_nn()], which kept its data.
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
#'   know is refused. `group`, `x`, … with a value for each observation are cut to
#'   those shown; `group` and `x` may be the name of a variable of the formula.
#'
#' @details For the types of leave-one-out cross-validation,
#' `"loo_pit_overlay"`, `"loo_pit_qq"`, `"loo_intervals"`, `"loo_ribbon"`, the importance weights are
#' made by [loo::psis()] from the log likelihood of the observations shown.
#'
#' @return A ggplot object.
#' @section Conditions: `tall_error_stale` if the fit did not keep its data;
#' `tall_error_input` for an unknown type.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' bayesplot::pp_check(fit, seed = 1)
#' bayesplot::pp_check(fit, "stat", stat = "sd", seed = 1)
#' @exportS3Method bayesplot::pp_check
pp_check.tall_glm <- function(
  object,
  type = NULL,
  draws = NULL,
  observations = 10000,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  rlang::check_installed("bayesplot", "to plot a fit")
  check_has_data(object)
  draws <- check_draws(object, draws, ndraws)
  observations <- check_count(observations)
  seed <- check_seed(seed)
  if (is.null(type)) {
    type <- if (has_few_values(object)) "bars" else "dens_overlay"
  }
  plot <- ppc_function(type)
  type <- sub("^ppc_", "", type)
  given <- check_ppc_values(object, list(...))
  if (is.null(draws)) {
    many <- grepl("^stat|^bars|intervals|ribbon|rootogram|avg|loo", type)
    draws <- min(if (many) 400 else 50, posterior::ndraws(object$draws))
  }
  n <- object$n_data
  with_seed(seed, {
    rows <- seq_len(n)
    if (n > observations) {
      rows <- sort(sample.int(n, observations))
    }
    shown <- replicated_responses(object, rows, draws)
  })
  more <- lapply(given, function(value) {
    if (is.atomic(value) && length(value) == n) value[rows] else value
  })
  name <- paste0("ppc_", type)
  first <- list(shown$y, shown$yrep)
  if (grepl("^loo_", type)) {
    weights <- loo_arguments(object, plot, rows, draws, more)
    more[names(weights)] <- weights
  }
  call_bayesplot(plot, name, first, more)
}

# `group` and `x` of some types, a value for each observation or the name of a
# variable.
check_ppc_values <- function(fit, given, call = caller_env()) {
  for (name in intersect(c("group", "x"), names(given))) {
    value <- given[[name]]
    frame <- fit$frame
    if (rlang::is_string(value) && fit$n_data > 1 && !is.null(frame)) {
      check_known(value, names(frame), "variable", arg = name, call = call)
      given[[name]] <- frame[[value]]
    } else if (length(value) != fit$n_data) {
      expected <- paste0(
        "a value for each of the ",
        count_noun(fit$n_data, "observation"),
        " or the name of a variable"
      )
      abort_expected(value, expected, arg = name, call = call)
    }
  }
  given
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

# Responses that are 0 or 1, or the numbers of classes?
has_few_values <- function(fit) {
  UseMethod("has_few_values")
}

#' @export
has_few_values.tall_glm <- function(fit) {
  has_trials(fit$family) && all(own_response(fit)$trials %||% 1 == 1)
}

# Responses of some of the fit's own rows, y, and as many from each draw, yrep.
replicated_responses <- function(fit, rows, draws) {
  UseMethod("replicated_responses")
}

#' @export
replicated_responses.tall_glm <- function(fit, rows, draws) {
  seen <- observations_of(observed_rows(fit, NULL), rows)
  chosen <- choose_draws(fit, draws, resample = TRUE)
  list(y = seen$count, yrep = response_draws(fit, seen, chosen, cores = 1L))
}

# The function bayesplot::ppc_<type>.
ppc_function <- function(type, call = caller_env()) {
  check_string(type, arg = "type", call = call)
  type <- sub("^ppc_", "", type)
  check_known(type, bayesplot_types("ppc"), "type", arg = "type", call = call)
  getExportedValue("bayesplot", paste0("ppc_", type))
}
