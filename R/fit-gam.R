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
#' number of the term's columns. A term that uses nearly
#' all of its columns may have too small a basis: `is_small` is `TRUE` where
#' they are within a tenth, and `print()` then says so; fit again with a larger
#' `k`.
#'
#' `sd` is the prior standard deviation of the penalised part of the curve, the
#' root of \eqn{\sum \sigma_k^2}{sum sigma_k^2} over its penalties.
#'
#' @return A data frame with a row for each curve: `smooth`, its name; `sd`,
#'   `sd_lower`, `sd_upper`, posterior mean and interval; `edf`, `edf_lower`,
#'   `edf_upper`; `size`, the number of its columns; `is_small`.
#' @section Conditions: `tall_error_unsupported` for a fit without smooth terms,
#'   or which has not kept the draws of all parameters.
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
  edf <- curve_edf(fit, layout, curves, check_count(ndraws))
  summed <- function(x) {
    bounds <- apply(x, 2, stats::quantile, probs, names = FALSE, na.rm = TRUE)
    cbind(colMeans(x), t(matrix(bounds, 2)))
  }
  sds <- summed(sds)
  edf <- summed(edf)
  size <- as.integer(table(factor(layout$columns$smooth, curves)))
  data.frame(
    smooth = curves,
    sd = sds[, 1],
    sd_lower = sds[, 2],
    sd_upper = sds[, 3],
    edf = edf[, 1],
    edf_lower = edf[, 2],
    edf_upper = edf[, 3],
    size = size,
    is_small = is_wiggly(fit, layout, curves) &
      !is.na(sds[, 1]) & !is.na(edf[, 1]) & edf[, 1] > 0.9 * size
  )
}

# Effects of levels have as many columns as there are levels.
is_wiggly <- function(fit, layout, curves) {
  smooths <- terms_smooths(fit$terms)
  at <- match(curves, layout$columns$smooth)
  bases <- vapply(smooths, function(smooth) smooth$bs, "")
  unname(bases[layout$columns$variable[at]]) != "re"
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

# Draws x curves, of n draws.
curve_edf <- function(fit, layout, curves, n) {
  own <- seq_len(fit$n_coef)
  information <- likelihood_information(fit)
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
  own <- seq_len(fit$n_coef)
  mixture <- fit$prior$mixture
  total <- -unname(mode$hessian)[own, own, drop = FALSE]
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

# A function of the coefficients, and of what prior_precision_at() is asked: the
# matrix of the priors that have no hyperparameters. The intercept's is on a
# functional of all coefficients.
own_priors <- function(fit) {
  own <- seq_len(fit$n_coef)
  parts <- c("kind", "location", "scale", "shape")
  prior <- lapply(compact(fit$prior[parts]), `[`, own)
  functional <- fit$model$prior_functional
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
  if (all || !has_smooths(fit)) {
    return(table)
  }
  table[!rownames(table) %in% gam_layout(fit)$columns$name, , drop = FALSE]
}

print_smooth_estimates <- function(fit, table, digits) {
  smooths <- fit$smooths %||% known_smooths(fit)
  print(table, digits = digits)
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
  print(shown, digits = digits)
  small <- smooths$smooth[smooths$is_small]
  if (length(small) > 0) {
    text <- paste0(
      "Nearly all columns of ",
      paste(small, collapse = ", "),
      " are used: a larger k may fit better."
    )
    cat(strwrap(text, getOption("width") + 1, exdent = 2), sep = "\n")
  }
}
