# The family of counts with a hurdle: it has no tables of its own, but those of
# its two parts.

#' Counts with a hurdle
#'
#' `tall_glm(family = hurdle_poisson())`, or `hurdle_negbinomial()`: whether a
#' count is 0, and how large it is where it is not, each by a regression of its
#' own, as in brms.
#'
#' @details
#' With the probability \eqn{h} of a 0, and the rate \eqn{\mu}{mu},
#' \deqn{P(y = 0) = h, \quad P(y = k) = (1 - h) \frac{\mu^k e^{-\mu} / k!}{1 -
#' e^{-\mu}}, \quad k > 0,}{P(y = 0) = h, P(y = k) = (1 - h) mu^k exp(-mu) /
#' k! / (1 - exp(-mu)), k > 0,} \eqn{\log\mu = x^T\beta}{log mu = x'b} and
#' \eqn{\mathrm{logit}\, h = z^T\gamma}{logit h = z'c}: `hu` of brms, the
#' probability of **not** taking the hurdle. The likelihood is a product, so
#' that the posterior is that of a [binomial()] model of `y == 0` in all rows
#' times that of a [truncated_poisson()] model of the others, whose draws are
#' independent. Both are fits of [tall_glm()] (or of [tall_gam()] or
#' [tall_glmer()], by which the model was asked for), with whatever their
#' recipes do; all that is done with fits can be done with each, `fit$zeros` and
#' `fit$counts`.
#'
#' With `hurdle_negbinomial()` counts above 0 are negative binomial ones, of
#' rate \eqn{\mu}{mu} and size \eqn{k} (`reciprocal_dispersion`, as in
#' [neg_binomial_2()]), given that they are not 0: the denominator is \eqn{1 -
#' (1 + \mu/k)^{-k}}{1 - (1 + mu / k)^(-k)}. Their part has no expected
#' responses of its own: ask the hurdle model for them.
#'
#' Of 659,404 rows and 60 coefficients a Poisson fit takes 2.4 s of one
#' processor (`bench/hurdle.R`).
#'
#' The formula is a list, `list(y ~ x, hu ~ z)`, or brms' `bf(y ~ x, hu ~ z)`;
#' with one formula `hu` is the same for all rows. Priors are those of both;
#' other arguments, too, but that the fit of zeros runs with another seed, and
#' that the argument `offset` is of the rate alone: one of zeros is written in
#' their formula.
#'
#' @return `hurdle_poisson()`, `hurdle_negbinomial()`: families. The fit: an
#'   object of class `tall_hurdle`, a list of `counts`, `zeros`, `formula` and
#'   `call`.
#' @section Conditions: `tall_error_input` for responses that are no counts, or
#'   all 0; `tall_error_unsupported` for predictors of other parameters.
#' @references
#' Mullahy (1986). Specification and testing of some modified count data models.
#' *Journal of Econometrics* 33, 341.
#' @seealso [predict.tall_hurdle()]
#' @examples
#' d <- data.frame(x = rnorm(300), z = rnorm(300))
#' d$y <- ifelse(runif(300) < plogis(d$z), 0, 1 + rpois(300, exp(0.5 * d$x)))
#' fit <- tall_glm(list(y ~ x, hu ~ z), d, hurdle_poisson(), seed = 1)
#' fit
#' predict(fit, data.frame(x = 0, z = c(-1, 1)), type = "response")
#'
#' # counts above 0 that vary more
#' varied <- tall_glm(y ~ x, d, hurdle_negbinomial(), seed = 1)
#' coef(varied)
#' @export
hurdle_poisson <- function() {
  new_hurdle_family("hurdle_poisson")
}

#' @rdname hurdle_poisson
#' @export
hurdle_negbinomial <- function() {
  new_hurdle_family("hurdle_negbinomial")
}

new_hurdle_family <- function(name) {
  structure(
    list(family = name, link = "log", link_hu = "logit"),
    class = c("tall_hurdle_family", "family")
  )
}

#' @export
print.tall_hurdle_family <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_family> ", x$family, " (", x$link, ", hu: logit)\n", sep = "")
  invisible(x)
}

# By name what counts above 0 have.
hurdle_counts_of <- list(
  hurdle_poisson = function() truncated_poisson(),
  hurdle_negbinomial = function() {
    inner_family(response_truncated_neg_binomial())
  }
)

# The name of ours, or of brms' that is called the same; NULL: it has no hurdle.
hurdle_name <- function(family) {
  if (is.function(family)) {
    of <- list(
      hurdle_poisson = hurdle_poisson,
      hurdle_negbinomial = hurdle_negbinomial
    )
    found <- vapply(of, identical, TRUE, family)
    return(if (any(found)) names(of)[found])
  }
  name <- if (is.list(family)) family$family else family
  if (rlang::is_string(name) && name %in% names(hurdle_counts_of)) name
}

is_hurdle <- function(family) {
  !is.null(hurdle_name(family))
}
