# Summaries of fits: tables of estimates and how well chains agree on them.

#' Summarise a fit
#'
#' @param object,x ([`tall_fit`][tall_fit], or its summary) The fit.
#' @param probs (numeric vector) Quantiles to show.
#' @param pars,variables (string vector or `NULL`) Which variables; `NULL`: all.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param digits (whole number) Significant digits to print.
#' @param n (whole number, `Inf` or `NULL`) How many variables to print, `sigma`
#'   always among them. `NULL`: those that were named, else 30 of a summary and
#'   10 of a fit.
#' @param ... Unused: other arguments are refused.
#'
#' @details R-hat and the effective sample sizes say whether the chains agree
#' and how many independent draws they are worth. They cannot see the bias of a
#' chain that converged to the wrong distribution, as a stochastic-gradient
#' chain with too large a step does. `sd_bias` can: it is the estimated relative
#' bias of the posterior standard deviation, from the identity
#' \eqn{E[(\theta_j - E\theta_j) g_j] = -1}{E[(theta_j - E theta_j) g_j] = -1},
#' which holds under the exact posterior and is off by the relative bias of the
#' variance under another; the gradients that drove the chain are reused. The
#' gradient is turned towards \eqn{\theta_j}: with \eqn{\hat\Sigma}{S} from the
#' Hessian at the mode it is \eqn{E[(\theta_j - E\theta_j) (\hat\Sigma g)_j]
#' = -\hat\Sigma_{jj}}{E[(theta_j - E theta_j) (S g)_j] = -S_jj} that is used. A
#' run in the model's own coordinates that needed no mode takes the Hessian of
#' 10,000 rows where its first chain starts. Where there is none (models without
#' second derivatives, or such runs with more than 100 parameters) the bias of
#' single parameters that are strongly correlated is overstated.
#'
#' Where an R-hat exceeds 1.05, or a bulk effective sample size is below 100 for
#' each chain, the last line that is printed says so. `print()` of a fit looks
#' at 50 variables at most, evenly spaced. With a decaying schedule R-hat
#' compares the weighted means and variances of halves of the chains (halves by
#' weight), with `keep = "none"` those of whole chains, as Gelman & Rubin (1992)
#' do. Chains of a Metropolis kernel of which less than one proposal in a
#' hundred is accepted are told instead: they hardly move, however long they
#' run.
#'
#' A chain that has not yet been everywhere has too little spread, a negative
#' `sd_bias`: it needs more or larger steps, not smaller ones. But so has one
#' whose kernel takes more for gradient noise than there is, or whose
#' thermostat cools some coordinates for the noise of others: where R-hat and
#' the effective draws do not explain what is missing, the line below the table
#' says that it is the kernel's own. Where draws are too few for the estimate,
#' it says so.
#'
#' `sd_bias_se` is the standard error of `sd_bias`, from block means. The
#' estimate is first-order in the step size and does not see bias of the mean.
#' Chains of Langevin steps in whitened coordinates are compared with what the
#' same noise does on a normal posterior, where the bias is known to be nil
#' (control variates for the estimate, which makes its standard error a fraction
#' of what it would be; each chain is centred at its own mean, which takes half
#' of one over its effective draws off). It is `NA` for parameters that the
#' recipe has warned of as far from normal, and for variables that are functions
#' of several parameters, such as the intercepts of [tall_multinom()], which
#' chains move at the means of the covariates.
#'
#' @section What exact means: Where the kernel leaves the posterior itself
#' invariant, `sd_bias` is 0 in the table, and is not printed:
#' [kernel_smh()], which the recipe of [sg_sample()] takes where it can,
#' [kernel_mala()], [kernel_barker()], [kernel_hmc()], and draws from sums.
#' Neither a step size nor minibatches bias means, standard deviations and
#' quantiles. What is left is chance, which `mcse_mean` measures, and whether
#' the chains have been everywhere, which R-hat and the effective sample sizes
#' tell; independent draws have. A Metropolis kernel that is not exact says so
#' below the table, where the acceptance rates of the chains stand where they
#' differ.
#'
#' Effects of groups are integrated out by quadrature ([tall_glmer()],
#' [model_groups()]) unless the response is Gaussian, and such kernels are exact
#' but for that. `fit$quadrature` has the number of `nodes` in each dimension
#' and the `error`, in posterior standard deviations: the mean of no function of
#' the parameters is further from its mean under a quadrature by `compared`
#' nodes, 1.6 times as many at least. It is the coefficient of variation of the
#' ratio of the two densities at up to 100 of the draws, with its sampling error
#' added; of more than 1,000 groups a thousand stand for all; where there are no
#' more nodes fewer are compared, whose error is the larger one. It is `NA`
#' where no draws of all parameters were kept. `sd_bias` is then the most that
#' this leaves to the standard deviation of the variable.
#'
#' @return An object of class `tall_summary`: a list whose element `table` is a
#'   data frame with a row for each variable: `mean`, `sd`, quantiles,
#'   `mcse_mean`, `rhat`, `ess_bulk`, `ess_tail` (see
#'   [posterior::summarise_draws()]), `sd_bias`, `sd_bias_se`. With `keep =
#'   "none"` only means, standard deviations, `rhat` and bias.
#'   `as.data.frame()` has this table; `as.matrix()` its numbers, a row for each
#'   variable, which two indices choose from: `summary(fit)[, "mean"]`.
#' @seealso `vignette("reading-the-output")`, `vignette("summary")`
#' @references
#' Gelman & Rubin (1992). Inference from iterative simulation using multiple
#' sequences. *Statistical Science* 7, 457-472.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' summary(fit)
#' @export
summary.tall_fit <- function(
  object,
  probs = c(0.05, 0.5, 0.95),
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  digits = 3,
  ...
) {
  check_no_dots(...)
  probs <- check_probs(probs)
  digits <- check_digits(digits)
  chosen <- select_variables(object$variables, variables, regex_pars)
  structure(
    list(
      table = summary_table(object, probs, chosen %||% object$variables),
      digits = digits,
      is_chosen = !is.null(chosen),
      fit = object[setdiff(names(object), as_long_as_draws)],
      n_draws = if (!is.null(object$draws)) posterior::ndraws(object$draws)
    ),
    class = "tall_summary"
  )
}

# What a summary does without.
as_long_as_draws <- c("draws", "effect_draws", "gradients", "saved")

check_probs <- function(probs) {
  probs <- check_numeric_vector(probs)
  bad <- which(probs < 0 | probs > 1)
  if (length(bad) > 0) {
    abort_value(probs, bad[[1]], "lie in [0, 1]", arg = "probs")
  }
  probs
}

summary_table <- function(fit, probs, variables = fit$variables) {
  if (!is.null(fit$draws) && !identical(variables, fit$variables)) {
    fit$draws <- draws_of(fit, variables)
    fit$variables <- variables
  }
  table <- if (is.null(fit$draws)) {
    moment_table(fit)
  } else if (!is.null(fit[["weights"]])) {
    weighted_table(fit, probs)
  } else if (posterior::niterations(fit$draws) < 4) {
    short_table(fit, probs)
  } else {
    as.data.frame(posterior::summarise_draws(
      fit$draws,
      mean = mean,
      sd = stats::sd,
      quantiles = function(x) posterior::quantile2(x, probs = probs),
      mcse_mean = posterior::mcse_mean,
      rhat = posterior::rhat,
      ess_bulk = posterior::ess_bulk,
      ess_tail = posterior::ess_tail
    ))
  }
  table <- table[match(variables, table$variable), , drop = FALSE]
  rownames(table) <- NULL
  # plain numbers, without posterior's printing
  table[-1] <- lapply(table[-1], as.double)
  bias <- fit$bias
  at <- match(table$variable, bias$variable)
  # exact kernels have none
  none <- if (kernel_is_exact(fit$kernel)) 0 else NA_real_
  table$sd_bias <- if (is.null(bias)) none else bias$sd_bias[at]
  table$sd_bias_se <- if (is.null(bias)) none else bias$sd_bias_se[at]
  if (kernel_is_exact(fit$kernel) && !is.null(fit$quadrature)) {
    table$sd_bias <- quadrature_bias(fit, table$variable)
    table$sd_bias_se <- NA_real_
  }
  table
}

# As much as a quadrature may have biased sds, of themselves.
quadrature_bias <- function(fit, variables) {
  if (is.null(fit$draws)) {
    return(NA_real_)
  }
  draws <- draws_matrix(fit)[, variables, drop = FALSE]
  kurtosis <- apply(draws, 2, function(x) {
    z <- (x - mean(x))^2
    mean(z^2) / mean(z)^2
  })
  unname(fit$quadrature$error * sqrt(pmax(kurtosis - 1, 0)) / 2)
}

# Chains kept no draws.
moment_table <- function(fit) {
  total <- Reduce(merge_moments, alive_moments(fit))
  data.frame(
    variable = fit$variables,
    mean = total$mean,
    sd = sqrt(total$square / (total$n - 1)),
    rhat = moment_rhat(fit) %||% NA_real_
  )
}

moment_covariance <- function(fit) {
  total <- Reduce(merge_moments, alive_moments(fit))
  if (is.null(total$product)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept neither draws nor their covariance.",
        i = "Run again with {.code keep = c(\"none\", \"covariance\")}."
      )
    )
  }
  total$product / (total$n - 1)
}

short_table <- function(fit, probs) {
  draws <- posterior::as_draws_matrix(fit$draws)
  data.frame(
    variable = fit$variables,
    mean = colMeans(draws),
    sd = apply(draws, 2, stats::sd)
  )
}

# Decaying step sizes: averages weighted by them.
weighted_table <- function(fit, probs) {
  draws <- draws_matrix(fit)
  w <- as.numeric(fit[["weights"]])
  w <- w / sum(w)
  mean <- colSums(draws * w)
  quantiles <- apply(draws, 2, weighted_quantile, w = w, probs = probs)
  quantiles <- matrix(quantiles, length(probs))
  rownames(quantiles) <- paste0("q", 100 * probs)
  data.frame(
    variable = fit$variables,
    mean = mean,
    sd = sqrt(colSums(sweep(draws, 2, mean)^2 * w)),
    t(quantiles),
    rhat = weighted_rhat(fit),
    ess_weights = 1 / sum(w^2)
  )
}

weighted_quantile <- function(x, w, probs) {
  at <- order(x)
  stats::approx(cumsum(w[at]) - w[at] / 2, x[at], probs, rule = 2)$y
}

# list(mean, sd) of every variable.
fit_moments <- function(fit) {
  table <- if (is.null(fit$draws)) {
    moment_table(fit)
  } else if (!is.null(fit[["weights"]])) {
    weighted_table(fit, 0.5)
  } else {
    short_table(fit, numeric())
  }
  table[c("mean", "sd")]
}
