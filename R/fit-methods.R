# What one does with a fit.

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
#' It is `NA` for parameters that the recipe has warned of as far from normal,
#' and for Metropolis kernels: those that are not exact say so below the table,
#' where the acceptance rate of each chain stands, too.
#'
#' @return An object of class `tall_summary`: a list whose element `table` is a
#'   data frame with a row for each variable: `mean`, `sd`, quantiles,
#'   `mcse_mean`, `rhat`, `ess_bulk`, `ess_tail` (see
#'   [posterior::summarise_draws()]), `sd_bias`, `sd_bias_se`. With `keep =
#'   "none"` only means, standard deviations, `rhat` and bias.
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
      fit = object[setdiff(names(object), c("draws", "gradients", "saved"))],
      n_draws = if (!is.null(object$draws)) posterior::ndraws(object$draws)
    ),
    class = "tall_summary"
  )
}

check_probs <- function(probs, call = caller_env()) {
  probs <- check_numeric_vector(probs, call = call)
  bad <- which(probs < 0 | probs > 1)
  if (length(bad) > 0) {
    abort_value(probs, bad[[1]], "lie in [0, 1]", arg = "probs", call = call)
  }
  probs
}

# Of all variables that are given, or that match: NULL where neither names any.
select_variables <- function(
  known,
  variables,
  regex_pars = NULL,
  may_number = FALSE,
  arg = "variables",
  call = caller_env()
) {
  if (is.null(variables) && is.null(regex_pars)) {
    return(NULL)
  }
  if (!is.null(variables)) {
    check_variable_names(variables, known, may_number, arg = arg, call = call)
    if (is.numeric(variables)) {
      variables <- known[variables]
    }
  }
  union(variables, matching_variables(known, regex_pars, call))
}

matching_variables <- function(known, regex_pars, call) {
  if (is.null(regex_pars)) {
    return(NULL)
  }
  if (!is.character(regex_pars) || anyNA(regex_pars)) {
    expected <- "regular expressions (strings) or NULL"
    abort_expected(regex_pars, expected, arg = "regex_pars", call = call)
  }
  found <- lapply(regex_pars, function(pattern) {
    tryCatch(
      grep(pattern, known, value = TRUE),
      error = function(e) {
        expected <- "regular expressions"
        abort_expected(pattern, expected, arg = "regex_pars", call = call)
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
      value = regex_pars,
      call = call
    )
  }
  unique(unlist(found))
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
  table$sd_bias <- if (is.null(bias)) NA_real_ else bias$sd_bias[at]
  table$sd_bias_se <- if (is.null(bias)) NA_real_ else bias$sd_bias_se[at]
  table
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

# As of draws, chains that stopped are left out.
alive_moments <- function(fit) {
  fit$moments[which_alive(fit$chains$status)]
}

moment_covariance <- function(fit, call = caller_env()) {
  total <- Reduce(merge_moments, alive_moments(fit))
  if (is.null(total$product)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept neither draws nor their covariance.",
        i = "Run again with {.code keep = c(\"none\", \"covariance\")}."
      ),
      call = call
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

#' @rdname summary.tall_fit
#' @export
print.tall_summary <- function(x, digits = x$digits %||% 3, n = NULL, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  n <- check_shown(n, if (isTRUE(x$is_chosen)) Inf else 30)
  print_header(x$fit, x$n_draws)
  table <- x$table
  rownames(table) <- table$variable
  table$variable <- NULL
  ess <- intersect(c("ess_bulk", "ess_tail", "ess_weights"), names(table))
  table[ess] <- round(table[ess])
  if (all(is.na(table$sd_bias))) {
    table$sd_bias <- table$sd_bias_se <- NULL
  } else {
    has_none <- is.na(table$sd_bias)
    table$sd_bias <- bias_text(table$sd_bias, table$sd_bias_se, label = "")
    table$sd_bias[has_none] <- ""
    table$sd_bias_se <- NULL
  }
  at <- first_rows(rownames(table), n, auxiliary_variables(x$fit))
  shown <- table[at, , drop = FALSE]
  numbers <- vapply(shown, is.numeric, TRUE)
  shown[numbers] <- lapply(shown[numbers], signif, digits = digits + 1)
  print(shown, digits = digits)
  print_more(nrow(table) - length(at))
  print_footer(x$fit, agreement = x$table)
  print_agreement_note(x$table, n_alive(x$fit), x$fit)
  invisible(x)
}

#' @rdname summary.tall_fit
#' @export
print.tall_fit <- function(
  x,
  digits = 3,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  n = NULL,
  ...
) {
  check_no_dots(...)
  digits <- check_digits(digits)
  chosen <- select_variables(x$variables, variables, regex_pars)
  n <- check_shown(n, if (is.null(chosen)) 10 else Inf)
  n_draws <- if (!is.null(x$draws)) posterior::ndraws(x$draws)
  print_header(x, n_draws)
  table <- data.frame(fit_moments(x), row.names = x$variables)
  if (!is.null(chosen)) {
    table <- table[chosen, , drop = FALSE]
  }
  at <- first_rows(rownames(table), n, auxiliary_variables(x))
  print(signif(table[at, , drop = FALSE], digits + 1), digits = digits)
  print_more(nrow(table) - length(at))
  agreement <- agreement_table(x)
  print_footer(x, brief = TRUE, agreement)
  print_agreement_note(agreement, n_alive(x), x)
  invisible(x)
}

# How many variables to print; NULL: as many as is usual.
check_shown <- function(n, usual, call = caller_env()) {
  if (is.null(n)) {
    return(usual)
  }
  if (identical(n, Inf)) n else check_count(n, arg = "n", call = call)
}

# The first n, but auxiliary ones, which come last, are not cut off.
first_rows <- function(variables, n, auxiliary) {
  if (length(variables) <= n) {
    return(seq_along(variables))
  }
  last <- utils::head(which(variables %in% auxiliary), n)
  c(utils::head(setdiff(seq_along(variables), last), n - length(last)), last)
}

print_more <- function(n) {
  if (n > 0) {
    cat(
      "# ... with ", count_noun(n, "more variable"), " (n = Inf shows all)\n",
      sep = ""
    )
  }
}

print_header <- function(fit, n_draws) {
  if (!is.null(fit$formula)) {
    cat("Formula: ", deparse1(fit$formula), "\n", sep = "")
  }
  if (!is.null(fit$family)) {
    cat("Family:  ", fit$family$name, " (", fit$family$link, ")\n", sep = "")
  }
  if (fit$n_data > 0) {
    cat("Data:    ", count_noun(fit$n_data, "observation"), "\n", sep = "")
  } else {
    cat("Target:  ", density_text(fit$model), "\n", sep = "")
  }
  if (!is.null(fit$lambda)) {
    cat(
      "Target:  Gibbs posterior, lambda = ",
      format_number(fit$lambda),
      " (Bayes: ",
      format_count(fit$n_data),
      ")\n",
      sep = ""
    )
  }
  cat("Draws:   ")
  if (is.null(n_draws)) {
    cat("none kept\n")
  } else {
    # with none that ran to its end, all are kept
    alive <- sum(fit$chains$status == "ok")
    kept <- if (alive > 0) alive else nrow(fit$chains)
    cat(
      format_count(n_draws),
      " from ",
      count_noun(kept, "chain"),
      "\n",
      sep = ""
    )
  }
  cat("Sampler: ", sampler_text(fit), "\n\n", sep = "")
}

# What ran, in one line.
sampler_text <- function(fit) {
  rows <- if (gradient_is_full(fit$gradient) || length(fit$sizes) == 0) {
    NULL
  } else {
    mean(fit$sizes, na.rm = TRUE)
  }
  varies <- !is.null(rows) && min(fit$sizes) < max(fit$sizes)
  paste0(
    kernel_text(fit$kernel, fit),
    metropolis_text(fit),
    ", ",
    gradient_text(fit$gradient),
    if (!is.null(rows)) {
      paste0(
        ", minibatches of ",
        if (varies) "on average ",
        count_noun(round(rows), "row")
      )
    },
    if (fit$is_whitened) ", whitened"
  )
}

print_footer <- function(fit, brief = FALSE, agreement = NULL) {
  cat("\n")
  cat(
    "Time: ",
    format(sum(fit$time), digits = 2),
    " s (preparation ",
    format(fit$time[["preparation"]], digits = 2),
    " s); ",
    format(fit$passes, digits = 3),
    if (fit$n_data > 0) " passes over the data" else " gradients",
    "; seed ",
    format(fit$seed, scientific = FALSE),
    ".\n",
    sep = ""
  )
  stopped <- fit$chains$status != "ok"
  if (any(stopped)) {
    cat(
      sum(stopped),
      " of ",
      length(stopped),
      " chains stopped early",
      if (!all(stopped)) " and are left out",
      ".\n",
      sep = ""
    )
  }
  print_metropolis_note(fit)
  print_bias_note(fit, brief, agreement)
  print_noise_note(fit)
}

# What gradient noise does to the kernel, and kernels that sample something
# else.
print_noise_note <- function(fit) {
  if (kernel_is_extreme(fit$kernel)) {
    cat("Warning: the extreme variant does not sample the posterior.\n")
    return(invisible())
  }
  if (!is.null(fit$noise) && fit$noise$looks > 0) {
    beyond <- mean(fit$noise$beyond / fit$noise$looks)
    if (beyond > 0.01) {
      cat("Warning: ", noise_advice(beyond, fit$gradient), "\n", sep = "")
    }
  }
}

# On what R-hat cannot see. Too much spread is the step size's doing; too little
# is that of a chain which has not been everywhere yet, and which a smaller step
# would make worse, or of a kernel that samples a law too narrow.
print_bias_note <- function(fit, brief, agreement = NULL) {
  bias <- fit$bias
  cat(bias_left_out(bias))
  bias <- bias[is.finite(bias$sd_bias) & is.finite(bias$sd_bias_se), ]
  if (NROW(bias) == 0) {
    return(invisible())
  }
  at <- match(bias$variable, agreement$variable)
  is_short <- is_short_run(bias$sd_bias, agreement, at, n_alive(fit))
  cat(
    bias_note(
      bias$sd_bias,
      bias$sd_bias_se,
      bias$variable,
      is_short,
      noise_remedies(fit$gradient)
    ),
    sep = "\n"
  )
  if (!brief) {
    cat(
      "sd_bias: relative bias of sd (standard error), see ?summary.tall_fit.\n"
    )
  }
}

# A line on the variables of which the next one does not speak.
bias_left_out <- function(bias) {
  left <- bias$variable[is.na(bias$sd_bias)]
  if (length(left) == 0) {
    return(NULL)
  }
  shown <- utils::head(left, 3)
  if (length(left) > 4) {
    shown <- c(shown, paste(length(left) - 3, "more"))
  } else {
    shown <- left
  }
  paste0(
    "The bias of the posterior sd is not estimated for ",
    cli::format_inline("{shown}"),
    ": far from normal, see ?sg_sample.\n"
  )
}

# What matters, and what can be told: 5 percent and three standard errors, and a
# standard error of a quarter. is_short: is the run too short for the spread to
# be seen, where that is known? remedies: as noise_remedies() has them.
bias_note <- function(
  value,
  se,
  variable,
  is_short = NA,
  remedies = noise_remedies(NULL)
) {
  told <- abs(value) > 0.05 & abs(value) > 3 * se
  is_short <- rep_len(is_short, length(value))
  line <- function(text, at) {
    paste0(text, bias_text(value[[at]], se[[at]]), " for ", variable[[at]], ".")
  }
  wide <- narrow <- NULL
  most <- which(told & value > 0)
  if (length(most) > 0) {
    most <- most[[which.max(value[most])]]
    wide <- c(
      line("Warning: the posterior sds are biased, by up to ", most),
      "  A smaller step size or larger minibatches lessen it."
    )
  }
  least <- which(told & value < 0)
  if (length(least) > 0) {
    least <- least[[which.min(value[least])]]
    narrow <- c(
      line("Warning: draws have less spread than the posterior, by ", least),
      narrow_reason(is_short[[least]], remedies)
    )
  }
  if (length(wide) > 0 || length(narrow) > 0) {
    # the larger one first: neither hides the other
    is_wider <- length(narrow) == 0 ||
      (length(wide) > 0 && value[[most]] >= -value[[least]])
    return(if (is_wider) c(wide, narrow) else c(narrow, wide))
  }
  clear <- which(se <= 0.25)
  if (length(clear) == 0) {
    return("The run is too short to tell the bias of the posterior sds.")
  }
  at <- clear[[which.max(abs(value[clear]))]]
  paste0(
    "Estimated bias of the posterior sds: at most ",
    bias_text(value[[at]], se[[at]]),
    " for ",
    variable[[at]],
    "."
  )
}

# Why draws have too little spread, and what to do.
narrow_reason <- function(is_short, remedies) {
  if (is.na(is_short)) {
    c(
      "  Run longer first; what then stays is the kernel's own:",
      paste0("  take ", remedies, ".")
    )
  } else if (is_short) {
    "  The run is too short for its step size: run longer or take larger steps."
  } else {
    c(
      "  It is the kernel's own, and running longer does not mend it:",
      paste0("  take ", remedies, ".")
    )
  }
}

# "+2.6% (se 1.1)"
bias_text <- function(value, se, label = "se ") {
  paste0(percent_text(value, "+"), "% (", label, percent_text(se), ")")
}

# Numbers beyond a thousand percent say no more than that.
percent_text <- function(x, flag = "") {
  text <- formatC(100 * x, digits = 1, format = "f", flag = flag)
  ifelse(
    is.finite(x) & abs(x) > 10,
    paste0(">", substr(flag, 1, 1), "1000"),
    text
  )
}

# ---- estimates ---------------------------------------------------------------

#' Methods for fits
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param ... Unused: other arguments are refused.
#'
#' @return `coef()`: posterior means, a named vector. `vcov()`: the posterior
#'   covariance matrix of the draws. For a fit of [tall_glm()] both are those of
#'   the coefficients, one for each column of `model.matrix()`, as in
#'   [stats::glm()] and rstanarm; `sigma` is elsewhere: see
#'   [sigma()][fitted-values], [confint()] and the draws. `nobs()`: the number
#'   of observations.
#'   `formula()` and `family()`: those of [tall_glm()] or [tall_nn()].
#' @section Conditions:
#' `tall_error_unsupported` where a fit was not made from a formula: then there
#' are no `fitted()`, `residuals()`, `formula()`, `family()` or `update()`.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' coef(fit)
#' vcov(fit)
#' nobs(fit)
#' @name fit-methods
NULL

#' @rdname fit-methods
#' @importFrom stats coef
#' @export
coef.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  stats::setNames(fit_moments(object)$mean, object$variables)
}

#' @rdname fit-methods
#' @importFrom stats vcov
#' @export
vcov.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  if (is.null(object$draws) && length(object$moments) > 0) {
    return(moment_covariance(object))
  }
  draws <- draws_matrix(object)
  if (!is.null(object[["weights"]])) {
    w <- as.numeric(object[["weights"]])
    return(stats::cov.wt(draws, w / sum(w))$cov)
  }
  stats::cov(draws)
}

#' @rdname fit-methods
#' @importFrom stats nobs
#' @export
nobs.tall_fit <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  object$n_data
}

# Arguments that functions of stats and car hand on, whatever their value.
any_flag <- list(
  test = function(x) is.logical(x) && length(x) == 1 && !is.na(x),
  expected = "TRUE or FALSE"
)
none_aliased <- list(complete = any_flag)
any_fallback <- list(use.fallback = any_flag)
# as.formula() asks for one; a formula has its own
any_environment <- list(
  env = list(test = is.environment, expected = "an environment")
)

# What only fits from a formula have: stats' defaults would give NULL, or an
# error about something else.
#' @rdname fit-methods
#' @export
fitted.tall_fit <- function(object, ...) {
  abort_no_formula(object, "fitted")
}

#' @rdname fit-methods
#' @export
residuals.tall_fit <- function(object, ...) {
  abort_no_formula(object, "residuals")
}

#' @rdname fit-methods
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @export
formula.tall_fit <- function(x, ...) {
  abort_no_formula(x, "formula")
}

#' @rdname fit-methods
#' @export
family.tall_fit <- function(object, ...) {
  abort_no_formula(object, "family")
}

#' @rdname fit-methods
#' @importFrom stats update
#' @export
update.tall_fit <- function(object, ...) {
  abort_no_formula(object, "update")
}

abort_no_formula <- function(fit, f, call = caller_env()) {
  abort_tall(
    "unsupported",
    c(
      "{.fn {f}} is for fits of {.fn tall_glm} and {.fn tall_nn}, not for one of
       {.code {fit$model_label}()}.",
      i = "{.code as.matrix(fit)} has the draws, and
           {.code predict(fit, newdata, fun)} gives what a function makes of
           them."
    ),
    call = call
  )
}

# Draws x variables, a plain matrix.
draws_matrix <- function(fit, call = caller_env()) {
  check_has_draws(fit, call)
  draws <- unclass(fit$draws)[, , fit$variables, drop = FALSE]
  matrix(
    draws,
    ncol = length(fit$variables),
    dimnames = list(NULL, fit$variables)
  )
}

check_has_draws <- function(fit, call) {
  if (is.null(fit$draws)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept no draws.",
        i = "Run again with {.code keep = \"draws\"}."
      ),
      call = call
    )
  }
}

# ---- draws formats of posterior ----------------------------------------------

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
#' posterior::as_draws_df(fit)
#' @name draws-formats
NULL

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws
as_draws.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  chosen_draws(x, variable, regex)
}

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws_array
as_draws_array.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  chosen_draws(x, variable, regex)
}

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_matrix(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws_df
as_draws_df.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_df(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws_list
as_draws_list.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_list(chosen_draws(x, variable, regex))
}

#' @rdname draws-formats
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.tall_fit <- function(x, variable = NULL, regex = FALSE, ...) {
  check_no_dots(...)
  posterior::as_draws_rvars(chosen_draws(x, variable, regex))
}

# As brms names them.
chosen_draws <- function(fit, variable, regex, call = caller_env()) {
  draws <- fit_draws(fit, call)
  check_flag(regex, call = call)
  chosen <- if (regex) {
    matching_variables(fit$variables, variable, call)
  } else {
    select_variables(fit$variables, variable, arg = "variable", call = call)
  }
  if (is.null(chosen)) draws else draws_of(fit, chosen)
}

# Draws of some variables, with their weights.
draws_of <- function(fit, variables) {
  weight <- intersect(".log_weight", dimnames(fit$draws)[[3]])
  posterior::subset_draws(fit$draws, variable = c(variables, weight))
}

fit_draws <- function(fit, call = caller_env()) {
  check_has_draws(fit, call)
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
draws_array <- function(
  fit,
  variables = fit$variables,
  call = caller_env()
) {
  draws <- unclass(fit_draws(fit, call))[, , variables, drop = FALSE]
  array(draws, dim(draws), list(
    iteration = NULL,
    chain = paste0("chain:", seq_len(dim(draws)[[2]])),
    variable = dimnames(draws)[[3]]
  ))
}

# ---- pictures ----------------------------------------------------------------

#' Plot a fit
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param type (string) `"trace"`, `"dens"` (densities by chain), `"intervals"`
#'   (50 and 90 percent intervals), `"noise"` (gradient noise against what the
#'   kernel tolerates, see [noise_tolerance()]), `"size"` (rows of the minibatch
#'   at each draw) or `"monitor"` (see [monitors]). Or any other that
#'   \pkg{bayesplot} draws: the name of a function `bayesplot::mcmc_*()` without
#'   its prefix, such as `"areas"`, `"hist"`, `"acf"`, `"pairs"`, `"rhat"`.
#' @param variables,pars (string vector or `NULL`) Which variables; `NULL`: the
#'   first eight, or as many as the type can show.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param ... Passed on to the function of \pkg{bayesplot}; what it does not
#'   know is refused.
#'
#' @return A ggplot object, or what the function of \pkg{bayesplot} returns.
#' @section Conditions:
#' `tall_error_input` for an unknown type, variable or argument;
#' `tall_error_unsupported` for the diagnostics of NUTS.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' plot(fit)
#' plot(fit, "intervals")
#' plot(fit, "areas", pars = "wt", prob = 0.5)
#' @export
plot.tall_fit <- function(
  x,
  type = c("trace", "dens", "intervals", "noise", "size", "monitor"),
  variables = pars,
  ...,
  pars = NULL,
  regex_pars = NULL
) {
  type <- check_plot_type(type)
  own <- list(noise = plot_noise, size = plot_size, monitor = plot_monitor)
  if (type %in% names(own)) {
    check_no_dots(...)
    return(own[[type]](x))
  }
  rlang::check_installed("bayesplot", "to plot a fit")
  f <- mcmc_function(type)
  if (grepl("^nuts_", type)) {
    nuts_params.tall_fit(x)
  }
  chosen <- select_variables(x$variables, variables, regex_pars)
  diagnostic <- sub("_hist$", "", type)
  if (diagnostic %in% c("rhat", "neff")) {
    of <- if (diagnostic == "rhat") rhat.tall_fit else neff_ratio.tall_fit
    first <- of(x, variables = chosen)
  } else {
    first <- draws_array(x, shown_variables(x, chosen, type))
  }
  call_bayesplot(f, paste0("mcmc_", type), list(first), list(...))
}

# Those of a fit's own; `dens` are the densities of all chains.
own_plots <- c("trace", "dens", "intervals", "noise", "size", "monitor")

# One of a method's own types, an argument left at its default being the first,
# or what bayesplot draws of draws.
check_plot_type <- function(
  type,
  own = own_plots,
  call = caller_env()
) {
  if (length(type) > 1 && identical(type, own)) {
    return(own[[1]])
  }
  check_string(type, arg = "type", call = call)
  known <- unique(c(own, own_plots, bayesplot_types("mcmc")))
  type <- sub("^mcmc_", "", type)
  check_known(type, known, "type", arg = "type", call = call)
  type
}

# Names of its functions without their prefix.
bayesplot_types <- function(prefix) {
  if (!requireNamespace("bayesplot", quietly = TRUE)) {
    return(character())
  }
  start <- paste0("^", prefix, "_")
  found <- grep(start, getNamespaceExports("bayesplot"), value = TRUE)
  sort(sub(start, "", found[!grepl("_data$", found)]))
}

mcmc_function <- function(type) {
  if (type == "dens") {
    type <- "dens_overlay"
  }
  getExportedValue("bayesplot", paste0("mcmc_", type))
}

# How many variables a plot shows unasked, and how many it needs.
shown_variables <- function(fit, chosen, type, call = caller_env()) {
  most <- switch(type, pairs = 6, scatter = , hex = 2, 8)
  least <- if (most < 8) 2 else 1
  if (is.null(chosen)) {
    chosen <- utils::head(fit$variables, most)
    if (length(fit$variables) > most) {
      cli::cli_inform(
        "Showing the first {most} of {length(fit$variables)} variables; choose
         with {.arg variables}."
      )
    }
  }
  exact <- type %in% c("scatter", "hex")
  if (length(chosen) < least || (exact && length(chosen) != least)) {
    many <- if (exact) "two" else "at least two"
    expected <- paste("names of", many, "variables")
    abort_expected(chosen, expected, arg = "variables", call = call)
  }
  chosen
}

# f(first, ..., more), a function of bayesplot. It only warns of arguments that
# it does not know.
call_bayesplot <- function(f, name, first, more, call = caller_env()) {
  # rstanarm's name for the type
  refuse_foreign(intersect(names(more), "plotfun"), call)
  if (length(more) > 0 && (is.null(names(more)) || any(names(more) == ""))) {
    abort_input(
      "Arguments in {.arg ...} must have names.",
      argument = "...",
      call = call
    )
  }
  has_default <- vapply(
    formals(f),
    function(x) !is.symbol(x) || nzchar(as.character(x)),
    TRUE
  )
  needed <- names(formals(f))[!has_default][-seq_along(first)]
  # by their position or their name
  needed <- setdiff(needed, c(names(more), names(first), "...", "pit"))
  if (length(needed) > 0) {
    abort_input(
      "{.arg {needed[[1]]}} must be given for {.fn bayesplot::{name}}.",
      argument = needed[[1]],
      call = call
    )
  }
  unknown <- "arguments were unrecognized and ignored: "
  if (!"..." %in% names(formals(f))) {
    check_dots_known(more, names(formals(f)), call)
  }
  withCallingHandlers(
    do.call(f, c(first, more)),
    warning = function(w) {
      said <- conditionMessage(w)
      if (grepl(unknown, said, fixed = TRUE)) {
        extra <- strsplit(sub(paste0(".*", unknown), "", said), ", ")[[1]]
        abort_input(
          "The argument{cli::qty(length(extra))}{?s} {.arg {extra}} {?is/are}
           not used by {.fn bayesplot::{name}}.",
          argument = extra,
          call = call
        )
      }
    }
  )
}
