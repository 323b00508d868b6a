# Tables of a fit for programs: the generics of broom.

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

#' Tidy tables of a fit
#'
#' Methods for the generics of \pkg{generics}, which \pkg{broom} uses.
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param effects (string vector) `"fixed"`: the coefficients; `"auxiliary"`:
#'   `sigma`.
#' @param conf.int (`TRUE` or `FALSE`) Posterior intervals as well?
#' @param conf.level (number between 0 and 1) Their probability.
#' @param exponentiate (`TRUE` or `FALSE`) Exponentiate estimates and intervals
#'   of coefficients (odds ratios, rate ratios)? The standard error is then
#'   multiplied by the estimate.
#' @param ... Unused: other arguments are refused, but for what
#'   \pkg{modelsummary} hands on: `vcov`, which must be `NULL`, and `vcov_type`,
#'   `coef_rename` and `gof_map`, which it deals with itself.
#'
#' @return `tidy()`: a tibble with a row for each variable: `term`, `estimate`
#'   (posterior mean), `std.error` (posterior standard deviation), with
#'   `conf.int = TRUE` also `conf.low` and `conf.high` (quantiles).
#'
#'   `glance()`: a tibble of one row: `algorithm`, `pss` (posterior sample
#'   size), `nobs`, `sigma` (posterior mean, or as given; `NA` where there is
#'   none), the largest `rhat`, the smallest `ess_bulk` and `ess_tail`,
#'   `sd_bias` (the estimated bias of a posterior standard deviation that is
#'   largest in size, see [summary.tall_fit()]; 0 where draws are exact, or what
#'   a quadrature leaves at most),
#'   `passes` over the data and `seconds`. What needs draws is `NA` for a fit
#'   that kept none. For [tall_nn()] `rhat` and `ess_bulk` are those of
#'   predictions, as in its summary: weights are not identified.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' tidy(fit, conf.int = TRUE)
#' glance(fit)
#' @name tidy-tall_fit
NULL

#' @rdname tidy-tall_fit
#' @method tidy tall_fit
#' @export
tidy.tall_fit <- function(
  x,
  effects = "fixed",
  conf.int = FALSE,
  conf.level = 0.95,
  exponentiate = FALSE,
  ...
) {
  check_known(effects, c("fixed", "auxiliary"), "effect")
  check_flag(conf.int)
  check_flag(exponentiate)
  conf.level <- check_prob(conf.level)
  check_no_dots(..., .ignore = from_modelsummary)
  moments <- fit_moments(x)
  auxiliary <- x$variables %in% auxiliary_variables(x)
  keep <- (!auxiliary & "fixed" %in% effects) |
    (auxiliary & "auxiliary" %in% effects)
  out <- data.frame(
    term = x$variables,
    estimate = moments$mean,
    std.error = moments$sd
  )
  if (conf.int) {
    interval <- fit_quantiles(x, interval_probs(conf.level))
    out$conf.low <- unname(interval[, 1])
    out$conf.high <- unname(interval[, 2])
  }
  if (exponentiate) {
    at <- !auxiliary
    out$estimate[at] <- exp(out$estimate[at])
    out$std.error[at] <- out$std.error[at] * out$estimate[at]
    if (conf.int) {
      out$conf.low[at] <- exp(out$conf.low[at])
      out$conf.high[at] <- exp(out$conf.high[at])
    }
  }
  as_tibble(out[keep, , drop = FALSE])
}

#' @rdname tidy-tall_fit
#' @method glance tall_fit
#' @export
glance.tall_fit <- function(x, ...) {
  check_no_dots(..., .ignore = from_modelsummary)
  table <- x$checked %||% summary_table(x, 0.5)
  worst <- function(column, f) {
    values <- as.double(table[[column]])
    values <- values[is.finite(values)]
    if (length(values) > 0) f(values) else NA_real_
  }
  as_tibble(data.frame(
    algorithm = paste0(
      x$kernel$name,
      if (kernel_is_exact(x$kernel)) {
        if (is.null(x$quadrature)) " (exact)" else " (exact but for quadrature)"
      }
    ),
    pss = if (is.null(x$draws)) NA_integer_ else posterior::ndraws(x$draws),
    nobs = stats::nobs(x),
    sigma = fit_sigma(x),
    rhat = worst("rhat", max),
    ess_bulk = worst("ess_bulk", min),
    ess_tail = worst("ess_tail", min),
    sd_bias = worst("sd_bias", function(b) b[[which.max(abs(b))]]),
    passes = x$passes,
    seconds = sum(x$time)
  ))
}

# What modelsummary hands to every tidy() and glance().
from_modelsummary <- list(
  vcov = list(
    test = function(x) is.null(x) || isFALSE(x),
    expected = "NULL",
    hint = "Standard errors are posterior standard deviations."
  ),
  # which it deals with itself
  vcov_type = list(test = function(x) TRUE),
  coef_rename = list(test = function(x) TRUE),
  gof_map = list(test = function(x) TRUE)
)

# posterior has loaded tibble.
as_tibble <- function(x) {
  rownames(x) <- NULL
  class(x) <- c("tbl_df", "tbl", "data.frame")
  x
}

# ---- estimates ---------------------------------------------------------------

# Coefficients come first; with `variables`, not all may be there.
coefficient_variables <- function(fit) {
  n_coef <- fit$n_coef %||% fit$model$n_coef
  if (is.null(n_coef)) {
    fit$variables
  } else {
    intersect(fit$every_variable[seq_len(n_coef)], fit$variables)
  }
}

auxiliary_variables <- function(fit) {
  setdiff(fit$variables, coefficient_variables(fit))
}

# Variables x probs.
fit_quantiles <- function(fit, probs) {
  draws <- draws_matrix(fit)
  out <- if (is.null(fit[["weights"]])) {
    apply(draws, 2, stats::quantile, probs = probs, names = FALSE)
  } else {
    w <- as.numeric(fit[["weights"]])
    apply(draws, 2, weighted_quantile, w = w / sum(w), probs = probs)
  }
  out <- t(matrix(out, length(probs)))
  rownames(out) <- fit$variables
  out
}

# Residual standard deviation; NA outside Gaussian models.
fit_sigma <- function(fit) {
  known <- fit$sigma %||% fit$model$sigma %||% family_sigma(fit$family)
  if (!is.null(known)) {
    known
  } else if ("sigma" %in% auxiliary_variables(fit)) {
    coef.tall_fit(fit)[["sigma"]]
  } else {
    NA_real_
  }
}

# As given to the family, student(sigma = 2); NULL: it is not.
family_sigma <- function(family) {
  known <- if (!is.null(family)) known_values(family)
  value <- known[names(known) == "sigma"]
  if (length(value) == 1 && !is.na(value)) unname(value)
}
