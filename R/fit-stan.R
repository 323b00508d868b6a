# What rstanarm's fits have besides: priors, counts, coda's and bayesplot's
# formats.

# The prior as given, and as it became.
print_prior <- function(rows, spec, digits) {
  if (is_mixture_prior(spec)) {
    return(print_mixture_prior(rows, spec, digits))
  }
  used <- list(
    title = prior_kinds[[rows$prior[[1]]]]$title %||% rows$prior[[1]],
    location = rows$location,
    scale = rows$scale,
    rate = 1 / rows$scale,
    df = if (!anyNA(rows$df)) rows$df[1],
    shape = rows$shape[1]
  )
  used <- prior_text(used, digits)
  given <- if (isTRUE(spec$autoscale)) prior_text(spec, digits) else used
  if (given == used) {
    cat_field("  ~ ", used)
  } else {
    cat_field("  Specified: ~ ", given)
    cat_field("  Adjusted:  ~ ", used)
  }
}

# One whose scales are learnt, and what multiplies these.
print_mixture_prior <- function(rows, spec, digits) {
  shown <- prior_mixtures[[spec$kind]]$shown
  values <- vapply(spec[shown], prior_values, "", digits = digits)
  text <- paste0(shown, " = ", values, collapse = ", ")
  cat_field("  ~ ", paste0(prior_kinds[[spec$kind]]$title, "(", text, ")"))
  if (spec$autoscale) {
    cat_field("  Scales times ", prior_values(rows$scale, digits))
  }
}

prior_values <- function(x, digits) {
  shown <- vapply(utils::head(x, 6), format, "", digits = digits)
  shown <- with_names(shown, x)
  shown <- paste0(
    paste(shown, collapse = ", "),
    if (length(x) > 6) paste0(", ... with ", length(x) - 6, " more")
  )
  if (length(x) > 1) paste0("[", shown, "]") else shown
}

prior_text <- function(prior, digits) {
  title <- prior$title %||% prior_kinds[[prior$kind]]$title
  values <- function(x) prior_values(x, digits)
  switch(
    title,
    flat = "flat",
    exponential = paste0("exponential(rate = ", values(prior$rate), ")"),
    gamma = paste0(
      "gamma(shape = ",
      values(prior$shape),
      ", rate = ",
      values(prior$rate),
      ")",
      if (isTRUE(prior$location > 0)) paste(" above", values(prior$location))
    ),
    uniform = paste0(
      "uniform(lower = ",
      values(prior$location - prior$scale),
      ", upper = ",
      values(prior$location + prior$scale),
      ")"
    ),
    paste0(
      title,
      "(",
      if (!is.null(prior$df)) paste0("df = ", values(prior$df), ", "),
      "location = ",
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
#' # of kernels that evaluate it
#' mala <- update(fit, kernel = kernel_mala())
#' head(bayesplot::log_posterior(mala))
#' @name bayesplot-diagnostics
NULL

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::rhat
rhat.tall_fit <- function(object, pars = NULL, variables = pars, ...) {
  check_no_dots(...)
  each_variable(object, variables, posterior::rhat)
}

#' @rdname bayesplot-diagnostics
#' @exportS3Method bayesplot::neff_ratio
neff_ratio.tall_fit <- function(object, pars = NULL, variables = pars, ...) {
  check_no_dots(...)
  ess <- each_variable(object, variables, posterior::ess_bulk)
  ess / posterior::ndraws(object$draws)
}

# f of the iterations x chains of each variable.
each_variable <- function(fit, variables, f) {
  draws <- draws_array(fit)
  if (!is.null(fit[["weights"]])) {
    abort_tall(
      "unsupported",
      c(
        "Draws of a decaying step size carry weights: there is no R-hat or
         effective sample size of chains.",
        i = "{.code summary(fit)} has the effective sample size of the weights."
      )
    )
  }
  variables <- variables %||% fit$variables
  check_variable_names(variables, fit$variables)
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
  check_not_robust(object, "log_posterior")
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
      if (kernel_is_independent(object$kernel)) {
        "{.fn nuts_params} is for NUTS; the draws of this fit are independent."
      } else {
        "{.fn nuts_params} is for NUTS; {.code kernel_{object$kernel$name}()}
         has no such parameters."
      },
      i = "{.fn summary} shows the diagnostics of this run."
    )
  )
}
