# hypothesis(): statements about parameters, as brms writes them.

#' Hypotheses about parameters
#'
#' How much the posterior says for statements such as `"x > 0"` or `"a = 2 *
#' b"`, written as for brms.
#'
#' @param x ([`tall_fit`][tall_fit], or draws) The fit; or a data frame, matrix
#'   or object of \pkg{posterior} with a column for each parameter.
#' @param hypothesis (strings) The hypotheses, each of the form `left = right`,
#'   `left > right` or `left < right`; their names, where they have any, are
#'   shown in their place. Any function of \R may be in them.
#' @param class,group (strings) As in brms, a prefix of names: `class = "sd",
#'   group = "g"` finds `Intercept` as `sd_g__Intercept`. By default, and with
#'   `NULL`, names are those of `posterior::variables(x)`.
#' @param alpha (number between 0 and 1) Intervals have probability `1 - alpha`
#'   where the hypothesis is of equality, and `1 - 2 * alpha` where it is of one
#'   side.
#' @param robust (`TRUE` or `FALSE`) Medians and median absolute deviations, in
#'   place of means and standard deviations?
#' @param seed (whole number or `NULL`) As in brms; nothing is random here.
#' @param digits (whole number) Significant digits to print.
#' @param ... Handed on, or unused: other arguments are refused.
#'
#' @details Coefficients go by their names, of which `(Intercept)` may be
#' written `Intercept`, and `x` also `b_x`. Names with other characters, such as
#' `x:z`, `I(x^2)` or `b:(Intercept)`, are found as they are, or between
#' backquotes; of two that fit the longer one is meant. Other parameters are
#' there, too: `sigma`, `sd_g__Intercept`.
#'
#' With \eqn{\psi} the left side less the right side, the evidence ratio of
#' \eqn{\psi > 0} is the posterior odds, \eqn{P(\psi > 0) / P(\psi < 0)}. Where
#' all draws are on one side it is `Inf` or 0, and `print()` says that it is
#' above their number, or below one over it.
#'
#' The evidence ratio of \eqn{\psi = 0} is that of Savage and Dickey,
#' \deqn{p(\psi = 0 \mid y) / p(\psi = 0),}{p(psi = 0 | y) / p(psi = 0),}
#' the Bayes factor of the hypothesis against any other value (Dickey, 1971;
#' Wagenmakers et al., 2010). It is there where \eqn{\psi} is linear in
#' parameters with normal priors, so that the prior density is known; else it is
#' `NA`, and `print()` says why. A prior of the intercept is of the predictor at
#' the means of the covariates: a hypothesis about the intercept at 0 involves
#' the priors of the coefficients as well.
#'
#' The posterior density is that of a normal that is fitted to the draws near
#' the point: with kernel weights \eqn{w_i = \exp(-(\psi_i - 0)^2 / (2 h^2))}
#' and \eqn{m}, \eqn{v} the weighted mean and variance, the local likelihood
#' estimate of a log-quadratic density (Loader, 1996) is
#' \deqn{\bar w / \sqrt{2 \pi v} \; \exp(-m^2 / (2 v)).}{mean(w) / sqrt(2 pi v)
#' exp(-m^2 / (2 v)).}
#' Of a normal posterior it is exact for any bandwidth, of others its bias is of
#' order \eqn{h^4}. Here \eqn{h} is 1.5 posterior standard deviations times
#' \eqn{n^{-1/9}}, or a third of the distance to the point where that is more:
#' far from all draws the ratio rests on tails like those of a normal. The Monte
#' Carlo errors of the ratios, relative to them, are in the element `error`.
#'
#' A Bayes factor depends on the prior however many data there are: a wide prior
#' favours the point. Give a prior that you mean, not the default.
#'
#' @return A list of class `tall_hypothesis`: `hypothesis`, a data frame with
#'   columns `Hypothesis`, `Estimate`, `Est.Error`, `CI.Lower`, `CI.Upper`,
#'   `Evid.Ratio`, `Post.Prob` (the ratio over one plus the ratio) and `Star`
#'   (`"*"` where 0 is outside of the interval, or the probability above `1 -
#'   alpha`); `samples`, a data frame of the draws of each \eqn{\psi}, and
#'   `weights`, of draws of a decaying step size, else `NULL`; `error`;
#'   `reason`, why a ratio is `NA`; `alpha`, `class`. `plot()` needs
#'   \pkg{bayesplot}.
#' @section Conditions: `tall_error_input` for what is no hypothesis or names no
#'   parameter; `tall_error_unsupported` if the fit kept no draws.
#' @references
#' Dickey (1971). The weighted likelihood ratio, linear hypotheses on normal
#' location parameters. *Annals of Mathematical Statistics* 42, 204-223.
#'
#' Loader (1996). Local likelihood density estimation. *Annals of Statistics*
#' 24, 1602-1618.
#'
#' Wagenmakers, Lodewyckx, Kuriyal & Grasman (2010). Bayesian hypothesis testing
#' for psychologists: A tutorial on the Savage-Dickey method. *Cognitive
#' Psychology* 60, 158-189.
#' @examples
#' fit <- tall_glm(mpg ~ wt + hp, mtcars, prior = prior_normal(0, 5), seed = 1)
#' hypothesis(fit, c("wt < 0", heavy = "wt = 100 * hp", "exp(sigma) > 9"))
#' @export
hypothesis <- function(x, ...) {
  UseMethod("hypothesis")
}

#' @rdname hypothesis
#' @export
hypothesis.tall_fit <- function(
  x,
  hypothesis,
  class = "b",
  group = "",
  alpha = 0.05,
  robust = FALSE,
  seed = NULL,
  ...
) {
  check_no_dots(..., .ignore = standard_scope)
  check_seed(seed)
  read_all <- hypotheses_of(hypothesis)
  check_string(group)
  class <- check_string(class, allow_null = TRUE) %||% ""
  draws <- draws_matrix(x)
  hypothesis_result(
    read_all(colnames(draws), variable_prefix(class, group)),
    c(list(draws = draws), fit_sample(x)),
    list(alpha = alpha, robust = robust, class = class),
    point_evidence(x)
  )
}

#' @rawNamespace S3method(brms::hypothesis, tall_fit)
NULL

#' @rdname hypothesis
#' @export
hypothesis.default <- function(
  x,
  hypothesis,
  alpha = 0.05,
  robust = FALSE,
  ...
) {
  if (inherits(x, "brmsfit")) {
    rlang::check_installed("brms")
    f <- getExportedValue("brms", "hypothesis")
    return(f(x, hypothesis, alpha = alpha, robust = robust, ...))
  }
  check_no_dots(...)
  read_all <- hypotheses_of(hypothesis)
  draws <- draws_columns(x)
  n <- nrow(draws)
  hypothesis_result(
    read_all(colnames(draws), ""),
    list(
      draws = draws,
      share = rep(1 / n, n),
      is_weighted = FALSE,
      n_chain = 1
    ),
    list(alpha = alpha, robust = robust, class = ""),
    function(psi, one) no_evidence("the priors of draws alone are not known")
  )
}

# brms' other scopes are of the levels of a factor.
standard_scope <- list(
  scope = list(
    test = function(x) identical(x, "standard"),
    expected = "\"standard\"",
    hint = "Levels of a factor have draws, `as.data.frame()` of which is taken."
  )
)

# Draws x variables of what is no fit.
draws_columns <- function(x) {
  if (posterior::is_draws(x)) {
    x <- posterior::as_draws_matrix(x)
    x <- unclass(x)[, posterior::variables(x), drop = FALSE]
  }
  is_table <- is.data.frame(x) || is.matrix(x)
  x <- if (is_table) as.matrix(x)
  if (!is.numeric(x) || is.null(colnames(x)) || nrow(x) == 0) {
    abort_expected(
      x,
      "a fit, or numbers of draws in columns with names",
      arg = "x"
    )
  }
  x
}

# What names of a hypothesis lack at their front.
variable_prefix <- function(class, group) {
  if (class %in% c("", "b")) {
    return("")
  }
  paste0(class, "_", if (nzchar(group)) paste0(group, "__"))
}

# ---- of the draws ------------------------------------------------------------

# read: list(label, sign, expression, of) of each. sample: draws, share, whose
# sum is 1, is_weighted, n_chain. evidence(psi, one): list(ratio, error, reason)
# of equality, see point_evidence().
hypothesis_result <- function(read, sample, how, evidence) {
  check_prob(how$alpha, arg = "alpha")
  check_flag(how$robust, arg = "robust")
  psi <- lapply(read, evaluate_hypothesis, sample$draws)
  found <- Map(function(one, psi) {
    weigh_hypothesis(one, psi, sample, how, evidence)
  }, read, psi)
  table <- do.call(rbind, lapply(found, `[[`, "row"))
  rownames(table) <- NULL
  ids <- paste0("H", seq_along(read))
  structure(
    list(
      hypothesis = table,
      samples = as.data.frame(psi, col.names = ids),
      weights = if (sample$is_weighted) sample$share,
      error = vapply(found, function(one) one$error, 0),
      reason = vapply(found, function(one) one$reason, ""),
      class = how$class,
      alpha = how$alpha
    ),
    class = "tall_hypothesis"
  )
}

# list(row, error, reason).
weigh_hypothesis <- function(one, psi, sample, how, evidence) {
  is_point <- one$sign == "="
  tail <- if (is_point) how$alpha / 2 else how$alpha
  ends <- share_quantiles(psi, sample, c(tail, 1 - tail))
  centre <- share_moments(psi, sample, how$robust)
  said <- if (is_point) {
    evidence(psi, one)
  } else {
    side_evidence(if (one$sign == ">") psi else -psi, sample)
  }
  ratio <- said$ratio
  prob <- if (identical(ratio, Inf)) 1 else ratio / (1 + ratio)
  is_told <- if (is_point) {
    ends[[1]] > 0 || ends[[2]] < 0
  } else {
    prob > 1 - how$alpha
  }
  list(
    row = data.frame(
      Hypothesis = one$label,
      Estimate = centre[[1]],
      Est.Error = centre[[2]],
      CI.Lower = ends[[1]],
      CI.Upper = ends[[2]],
      Evid.Ratio = ratio,
      Post.Prob = prob,
      Star = if (is_told) "*" else ""
    ),
    error = said$error,
    reason = said$reason
  )
}

# The odds of psi > 0.
side_evidence <- function(psi, sample) {
  above <- sum(sample$share[psi > 0])
  below <- sum(sample$share[psi < 0])
  se <- mc_error(as.double(psi > 0), sample)
  list(
    ratio = above / below,
    error = if (above * below > 0) se / (above * below) else NA_real_,
    reason = ""
  )
}

# ---- printing ----------------------------------------------------------------

#' @rdname hypothesis
#' @export
print.tall_hypothesis <- function(x, digits = 2, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  table <- x$hypothesis
  is_number <- vapply(table, is.numeric, TRUE)
  # each by itself: ratios differ by powers of ten
  table[is_number] <- lapply(table[is_number], function(column) {
    vapply(column, format, "", digits = digits)
  })
  cat("Hypotheses:\n")
  print(table)
  cat("---\n")
  n <- nrow(x$samples)
  side <- which(x$hypothesis$Evid.Ratio %in% c(0, Inf) & is.na(x$error))
  for (at in side) {
    is_all <- x$hypothesis$Evid.Ratio[[at]] > 0
    cat(
      x$hypothesis$Hypothesis[[at]], ": ",
      if (is_all) "all " else "none of ", format_count(n),
      " draws ", if (is_all) "are" else "is", " on that side: the ratio is ",
      if (is_all) "above " else "below 1 / ", format_count(n), ".\n",
      sep = ""
    )
  }
  loose <- which(x$error > 0.25)
  if (length(loose) > 0) {
    cat(
      "More draws would tell the ratio of ",
      paste(x$hypothesis$Hypothesis[loose], collapse = ", "),
      " better: its Monte Carlo error is ",
      paste0(signif(100 * x$error[loose], 2), "%", collapse = ", "), ".\n",
      sep = ""
    )
  }
  for (reason in unique(x$reason[nzchar(x$reason)])) {
    own <- x$hypothesis$Hypothesis[x$reason == reason]
    cat(
      "No ratio of ", paste(own, collapse = ", "), ": ", reason, ".\n",
      sep = ""
    )
  }
  cat(
    "Intervals have probability ", percent(1 - 2 * x$alpha, ""),
    " for one side, ", percent(1 - x$alpha, ""), " for equality;\n",
    "*: 0 is outside of it, or the probability above ",
    percent(1 - x$alpha, ""), ".\n",
    sep = ""
  )
  invisible(x)
}

#' @rdname hypothesis
#' @export
plot.tall_hypothesis <- function(x, ...) {
  rlang::check_installed("bayesplot", "to plot hypotheses")
  check_no_dots(...)
  draws <- as.matrix(x$samples)
  colnames(draws) <- make.unique(x$hypothesis$Hypothesis)
  if (!is.null(x$weights)) {
    n <- nrow(draws)
    at <- findInterval((seq_len(n) - 0.5) / n, cumsum(x$weights)) + 1
    draws <- draws[pmin(at, n), , drop = FALSE]
  }
  bayesplot::mcmc_dens(draws)
}
