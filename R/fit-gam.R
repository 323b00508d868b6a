# What a fit of tall_gam() says of its smooth terms: standard deviations and
# effective degrees of freedom.

#' Smooth terms of a fit
#'
#' The standard deviations and effective degrees of freedom of the smooth terms
#' of a [tall_gam()], which `print()` and `summary()` show.
#'
#' @param fit (`tall_gam`) The fit, which kept draws of all parameters.
#' @param prob (number between 0 and 1) Of the intervals.
#' @param ndraws (whole number) How many draws, evenly spaced, the effective
#'   degrees of freedom are averaged over: each takes a factorisation of
#'   \eqn{O(d^3)}.
#'
#' @details Given the standard deviations \eqn{\sigma}{sigma} of all terms the
#' effective degrees of freedom of term \eqn{k} are
#' \deqn{\sum_{j \in k} [(H + P_\sigma)^{-1} H]_{jj},}{sum_(j in k)
#' [(H + P_sigma)^-1 H]_jj,} \eqn{H} minus the Hessian of the log likelihood at
#' `fit$mode`, scaled by \eqn{1 / \sigma_y^2}{1 / sigma_y^2} of the draw in a
#' Gaussian model, and \eqn{P_\sigma}{P_sigma} the precision of the prior: of a
#' Student prior that of the normal with the same slope at the draw, of a
#' Laplace or a uniform prior one over the variance. They lie between 0 and the
#' number of the term's columns.
#'
#' *Too small a basis?* As `mgcv::k.check()` has it, `k_index` compares
#' neighbours along the term's covariates: with \eqn{r} the Pearson residuals at
#' the posterior mean (of [tall_surv()] those of martingales), of up to 5,000
#' rows that the fit keeps,
#' \deqn{\frac{\mathrm{mean}[(r_i - r_j)^2] / 2}{\mathrm{var}(r)},}{mean[(r_i -
#' r_j)^2] / (2 var(r)),} the mean over neighbours \eqn{i, j}: along a curve the
#' next row, on a surface the three nearest of 1,000 rows. Residuals in which no
#' curve is left have 1, up to chance; `p_value` is the chance of one as small,
#' over all orders of the residuals, by its normal approximation (Cliff & Ord
#' 1981). (mgcv takes deviance residuals, which of binary responses are alike
#' where the model is right, too.) `is_small` is `TRUE` where a curve uses more
#' than 0.8 of its columns and the `p_value` is below 0.05, and where rows are
#' not kept, both being `NA`, where it uses more than 0.9; `print()` then says
#' so: fit again with a larger `k`.
#'
#' *In other terms?* `concurvity` is how much of the curve other terms have: the
#' share of the sum of squares of its columns that a regression on theirs
#' explains, `"estimate"` of `mgcv::concurvity()`, here of columns that are
#' weighted as in \eqn{H}. Near 1, the data cannot tell it from them: both are
#' known badly, their sum well. Effects of levels and `bs = "fs"`, which
#' their priors draw to 0, do not count. The front end warns where a term has
#' more than 0.95 in others.
#'
#' `sd` is the prior standard deviation of the penalised part of the curve, the
#' root of \eqn{\sum \sigma_k^2}{sum sigma_k^2} over its penalties.
#'
#' @return A data frame with a row for each curve: `smooth`, its name; `sd`,
#'   `sd_lower`, `sd_upper`, posterior mean and interval; `edf`, `edf_lower`,
#'   `edf_upper`; `size`, the number of its columns; `concurvity`, `k_index`,
#'   `p_value` and `is_small`, as above.
#' @section Conditions: `tall_error_unsupported` for a fit without smooth terms,
#'   or which has not kept the draws of all parameters.
#' @references
#' Cliff & Ord (1981). *Spatial Processes: Models & Applications*. Pion.
#'
#' Wood (2017). *Generalized Additive Models: An Introduction with R*. CRC.
#' @seealso [prior_smooth], [conditional_smooths()]
#' @examplesIf requireNamespace("mgcv", quietly = TRUE)
#' fit <- tall_gam(mpg ~ s(wt, k = 6) + s(hp, k = 6), mtcars, seed = 1)
#' smooth_table(fit)
#' @export
smooth_table <- function(fit, prob = 0.9, ndraws = 200) {
  check_gam(fit)
  probs <- interval_probs(check_prob(prob))
  layout <- gam_layout(fit)
  curves <- unique(layout$columns$smooth)
  sds <- curve_sds(fit, layout, curves)
  information <- likelihood_information(fit)
  edf <- curve_edf(fit, layout, curves, check_count(ndraws), information)
  sds <- summed_draws(sds, probs)
  edf <- summed_draws(edf, probs)
  size <- as.integer(table(factor(layout$columns$smooth, curves)))
  checks <- basis_checks(fit, layout, curves)
  shared <- curve_concurvity(
    fit,
    layout,
    curves,
    information$hessian
  )
  choice <- setting("gam")
  share <- edf[, 1] / size
  is_small <- ifelse(
    is.na(checks$p_value),
    share > choice$alone,
    share > choice$full & checks$p_value < choice$p_value
  )
  data.frame(
    smooth = curves,
    sd = sds[, 1],
    sd_lower = sds[, 2],
    sd_upper = sds[, 3],
    edf = edf[, 1],
    edf_lower = edf[, 2],
    edf_upper = edf[, 3],
    size = size,
    concurvity = shared,
    checks,
    is_small = is_small & is_wiggly(fit, layout, curves) & !is.na(sds[, 1]) &
      !is.na(edf[, 1])
  )
}

# Means and bounds by column of what some draws may not have; NA where none has.
summed_draws <- function(x, probs) {
  bounds <- apply(x, 2, stats::quantile, probs, names = FALSE, na.rm = TRUE)
  means <- colMeans(x, na.rm = TRUE)
  cbind(ifelse(is.nan(means), NA, means), t(matrix(bounds, length(probs))))
}

# Effects of levels have as many columns as there are levels.
is_wiggly <- function(fit, layout, curves) {
  smooths <- terms_smooths(fit$terms)
  at <- match(curves, layout$columns$smooth)
  has_levels <- vapply(smooths, function(smooth) any(smooth$bs == "re"), TRUE)
  !unname(has_levels[layout$columns$variable[at]])
}

check_gam <- function(fit, arg = caller_arg(fit)) {
  check_spec(fit, "tall_fit", "tall_gam()", arg = arg)
  if (!inherits(fit, "tall_gam") || !has_smooths(fit)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg {arg}} has no smooth terms.",
        i = "They are those of {.fn tall_gam}, such as {.code s(x)}."
      ),
      argument = arg
    )
  }
  check_has_all(fit)
  invisible(fit)
}

# Which coefficients are of which smooth term.
gam_layout <- function(fit) {
  smooth_layout(fit$terms, fit$every_variable[seq_len(fit$n_coef)])
}

smooth_sd_names <- function(layout) {
  paste0("smooth_sd[", layout$blocks$scale, "]")
}

# Draws x curves; NA of those without a penalty.
curve_sds <- function(fit, layout, curves) {
  if (NROW(layout$blocks) == 0) {
    return(matrix(NA_real_, 1, length(curves)))
  }
  draws <- plain_draws(fit, smooth_sd_names(layout))
  square <- vapply(curves, FUN.VALUE = numeric(nrow(draws)), function(curve) {
    own <- layout$blocks$smooth == curve
    if (any(own)) rowSums(draws[, own, drop = FALSE]^2) else NA * draws[, 1]
  })
  sqrt(matrix(square, nrow(draws)))
}

# Draws x curves, of n draws. information: of likelihood_information().
curve_edf <- function(fit, layout, curves, n, information) {
  own <- seq_len(n_seen_of(fit))
  prior <- own_priors(fit)
  mixture <- fit$prior$mixture
  draws <- plain_draws(fit)
  at <- unique(round(seq(1, nrow(draws), length.out = min(n, nrow(draws)))))
  draws <- draws[at, , drop = FALSE]
  precision <- if (!is.null(mixture)) {
    mixture_precision(mixture, t(draws[, mixture$names, drop = FALSE]))
  }
  factor <- if (is.na(information$sigma)) {
    rep(1, length(at))
  } else {
    (information$sigma / draws[, "sigma"])^2
  }
  of <- match(layout$columns$smooth, curves)
  none <- rep(NA_real_, length(curves))
  out <- vapply(seq_along(at), FUN.VALUE = none, function(k) {
    h <- factor[[k]] * information$hessian
    p <- prior(draws[k, own], "weight")
    if (!is.null(mixture)) {
      covered <- cbind(mixture$at, mixture$at)
      p[covered] <- p[covered] + precision[, k]
    }
    # diag((H + P)^-1 H) = 1 - diag((H + P)^-1 P)
    inverse <- tryCatch(chol2inv(chol(h + p)), error = function(e) NULL)
    if (is.null(inverse)) {
      return(none)
    }
    free <- 1 - rowSums(inverse * p)
    as.double(rowsum(free[layout$columns$at], of))
  })
  matrix(t(matrix(out, length(curves))), ncol = length(curves))
}

# list(hessian, sigma): minus the Hessian of the log likelihood at the mode,
# coefficients alone, and sigma there; NA where it is not sampled, or not a
# Gaussian's.
likelihood_information <- function(fit) {
  mode <- fit$mode %||% model_mode(fit_model(fit), fit$control$cores, 0)
  own <- seq_len(n_seen_of(fit))
  mixture <- fit$prior$mixture
  total <- off_bounds(fit, mode)[own, own, drop = FALSE]
  if (!is.null(mixture)) {
    free <- unname(mode$estimate[mixture$coordinates])
    covered <- cbind(mixture$at, mixture$at)
    total[covered] <- total[covered] - drop(precision_at(mixture, free))
  }
  at_mode <- own_priors(fit)(unname(mode$estimate)[own], "curvature")
  is_gaussian <- identical(fit$family$name, "gaussian") &&
    "sigma" %in% fit$variables
  list(
    hessian = total - at_mode,
    sigma = if (is_gaussian) exp(mode$estimate[["log_sigma"]]) else NA
  )
}

# How many coefficients rows see, the steps of a hazard in pieces among them.
n_seen_of <- function(fit) {
  fit$n_coef + length(fit$family$pieces$names)
}

# Minus a mode's Hessian, without what a bound of a prior that it is at adds,
# the square of a slope. Where rows are gone the slope is, too.
off_bounds <- function(fit, mode) {
  hessian <- -unname(mode$hessian)
  model <- if (length(mode$at_bound) > 0) {
    tryCatch(fit_model(fit), tall_error = function(cnd) NULL)
  }
  if (is.null(model)) {
    return(hessian)
  }
  theta <- unname(mode$estimate)
  gradient <- unname(grad_log_prob(model, theta))
  box <- mode_box(model)
  none <- 0 * hessian
  bounded <- bounded_hessian(box, none, theta, gradient)
  # where it leans against no bound
  free <- bounded_hessian(box, none, theta, 0 * gradient)
  hessian - (bounded - free)
}

# A function of the coefficients, and of what prior_precision_at() is asked: the
# matrix of the priors that have no hyperparameters. The intercept's is on a
# functional of all coefficients.
own_priors <- function(fit) {
  own <- seq_len(n_seen_of(fit))
  parts <- c("kind", "location", "scale", "shape")
  prior <- lapply(compact(fit$prior[parts]), `[`, own)
  functional <- functional_of(fit)
  at <- functional$at + 1
  v <- functional$weights[own]
  # what a kinked prior adds to a Hessian it adds to a coordinate of its own
  is_kinked <- any(prior_has_form(prior, "kinked")[at])
  function(beta, fact) {
    value <- replace(beta, at, sum(v * beta))
    precision <- prior_precision_at(prior, value, fact)
    out <- diag(precision, length(own))
    if (!is.null(functional) && !(is_kinked && fact == "curvature")) {
      out[at, at] <- 0
      out <- out + precision[[at]] * tcrossprod(v)
    }
    out
  }
}

# As it was written: `terms` have s() in place of bars.
#' @importFrom stats formula
#' @export
formula.tall_gam <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  check_has_formula(x, "formula")
  if (has_smooths(x)) x$formula else NextMethod()
}

# What is settled of smooth terms fills screens, so that it is not printed.
#' @rdname fitted-values
#' @importFrom stats terms
#' @export
terms.tall_gam <- function(x, ...) {
  terms <- NextMethod()
  if (has_smooths(x)) {
    class(terms) <- c("tall_terms", class(terms))
  }
  terms
}

#' @export
print.tall_terms <- function(x, ...) {
  check_no_dots(...)
  shown <- x
  predvars <- as.list(attr(x, "predvars"))
  attr(shown, "predvars") <- as.call(lapply(predvars, function(expression) {
    if (!is.null(settled_smooth(expression))) {
      expression$smooth <- quote(`...`)
    }
    expression
  }))
  class(shown) <- setdiff(class(x), "tall_terms")
  print(shown)
  invisible(x)
}

# ---- print and summary -------------------------------------------------------

#' @rdname summary.tall_fit
#' @export
summary.tall_gam <- function(object, ...) {
  out <- NextMethod()
  out$fit$smooths <- known_smooths(object)
  out
}

# NULL where a fit has none, or not what they take.
known_smooths <- function(fit) {
  has_them <- !is.null(fit$draws) && has_smooths(fit) &&
    all(fit$every_variable %in% fit$variables)
  if (has_them) smooth_table(fit)
}

# A summary's fit has no class.
has_smooths <- function(fit) {
  length(terms_smooths(fit$terms)) > 0
}

# A table of variables without the coefficients of bases, which say nothing one
# by one; all: were they asked for?
without_bases <- function(fit, table, all = FALSE) {
  if (all) {
    return(table)
  }
  bases <- c(
    if (has_smooths(fit)) gam_layout(fit)$columns$name,
    fit$family$pieces$names
  )
  table[!rownames(table) %in% bases, , drop = FALSE]
}

print_smooth_estimates <- function(fit, table, digits) {
  smooths <- fit$smooths %||% known_smooths(fit)
  print_table(table, digits)
  if (is.null(smooths)) {
    return(invisible())
  }
  cat("\nSmooth terms\n")
  shown <- data.frame(
    sd = signif(smooths$sd, digits),
    `5%` = signif(smooths$sd_lower, digits),
    `95%` = signif(smooths$sd_upper, digits),
    edf = signif(smooths$edf, digits),
    columns = smooths$size,
    row.names = smooths$smooth,
    check.names = FALSE
  )
  print_table(shown, digits)
  small <- smooths[smooths$is_small, ]
  for (k in seq_len(nrow(small))) {
    cat(strwrap(
      small_text(small[k, ]),
      getOption("width") + 1,
      exdent = 2
    ), sep = "\n")
  }
}

small_text <- function(smooth) {
  paste0(
    smooth$smooth, " uses ", signif(smooth$edf, 3), " of its ",
    count_noun(smooth$size, "column"),
    if (!is.na(smooth$p_value)) {
      p <- max(0.001, signif(smooth$p_value, 1))
      paste0(
        ", and residuals beside each other are alike (k-index ",
        signif(smooth$k_index, 2), ", p ",
        if (smooth$p_value < 0.001) "< 0.001" else paste("=", p), ")"
      )
    },
    ": fit it again with a larger k."
  )
}
