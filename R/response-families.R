# Families of responses that stats does not have.

#' Responses that stats has no family for
#'
#' Families for `tall_glm(family = )` and [model_glm()] beside
#' [stats::gaussian()], [stats::binomial()] and [stats::poisson()].
#'
#' @param size,shape,sigma,phi (positive number or `NULL`) The parameter of the
#'   response beside its mean, where it is known; `NULL`: it is sampled, see
#'   below.
#' @param df (positive number or `NULL`) Degrees of freedom: the fewer, the
#'   heavier the tails; `NULL`: they are sampled as `nu`, see below.
#'
#' @details
#' \describe{
#'   \item{`neg_binomial_2()`}{Counts that vary more than Poisson ones, log
#'     link, with variance \eqn{\mu + \mu^2 / \kappa}{mu + mu^2 / kappa}; the
#'     size \eqn{\kappa}{kappa} is sampled as `reciprocal_dispersion`. Weights
#'     are counts.}
#'   \item{`gamma_regression()`, `Gamma("log")`}{Positive numbers such as
#'     durations, log link, with variance \eqn{\mu^2 / a}{mu^2 / a}; \eqn{a} is
#'     sampled as `shape`. Weights are counts.}
#'   \item{`student()`}{Numbers with outliers, identity link: a scale `sigma`
#'     times a Student t of `df` degrees of freedom, which are sampled as `nu`
#'     where they are not given. Weights are precisions.}
#'   \item{`beta_regression()`}{Proportions that are no shares of trials, logit
#'     link, with variance \eqn{\mu (1 - \mu) / (1 + \phi)}{mu (1 - mu) / (1 +
#'     phi)}; the precision is sampled as `phi`. Weights are counts.}
#'   \item{`truncated_poisson()`}{Counts of which none is 0, such as lengths of
#'     stay: Poisson ones of rate \eqn{\lambda = e^\eta}{lambda = e^eta} given
#'     that they are positive, with mean
#'     \eqn{\lambda / (1 - e^{-\lambda})}{lambda / (1 - e^-lambda)}, which is
#'     what predictions are of. Weights are counts. Counts that may be 0 for
#'     reasons of their own have [hurdle_poisson()].}
#' }
#'
#' The names of the parameters are those of rstanarm and brms. Each is sampled
#' as its logarithm, `nu` as that of `nu - 1`, and reported on its own scale, as
#' the last variable; its prior is `prior_aux`, which is [prior_exponential()]
#' with mean 1, or for `sigma`, which has the units of the response, with the
#' standard deviation of the response as mean. With a mean of 1 it holds back a
#' shape, a precision or a size that is not far below half the number of rows:
#' there give a smaller rate, such as `prior_exponential(0.001)`. brms takes
#' gamma(0.01, 0.01) priors for most of them instead: `prior_gamma(0.01, 0.01)`.
#'
#' The prior of `nu` is `prior_gamma(2, 0.1)` above 1, as in brms, and another
#' one is given by name: `prior_aux = list(sigma = prior_exponential(), nu =
#' prior_gamma(2, 0.5))`. Data without outliers tell of `nu` no more than that
#' it is not small; its posterior is then close to its prior and far from
#' normal, which a run finds out: it takes exact steps that look at all rows.
#'
#' A weight that is a count \eqn{w} makes a row \eqn{w} equal rows: it
#' multiplies the log likelihood. One that is a precision divides
#' \eqn{\sigma^2}{sigma^2}, as it does in Gaussian models.
#'
#' Families of other packages that mean the same are understood:
#' `rstanarm::neg_binomial_2()`, `MASS::negative.binomial()`, whose `theta` is
#' a known size, `brms::negbinomial()`, `brms::Beta()`. So are the names
#' `"neg_binomial_2"`, `"Gamma"` and `"beta"`. An exponential response is
#' `gamma_regression(shape = 1)`.
#'
#' Where the parameter is known, but for `beta_regression()`, a fit is exact and
#' looks at a few rows in every step, see [kernel_smh()]; where it is sampled,
#' rows bend in two directions and steps are those of [kernel_sgld()] with
#' `gradient_cv(order = 2)`. Neither `student()` nor `beta_regression()` is
#' log-concave: with few rows a posterior may have several modes, of which one
#' is found.
#'
#' @return An object of class `family` that [tall_glm()] and [model_glm()] know.
#' @section Conditions: `tall_error_input` if a parameter is not positive.
#' @references
#' Lawless (1987). Negative binomial and mixed Poisson regression. *Canadian
#' Journal of Statistics* 15, 209.
#'
#' Lange, Little & Taylor (1989). Robust statistical modeling using the t
#' distribution. *Journal of the American Statistical Association* 84, 881.
#'
#' Ferrari & Cribari-Neto (2004). Beta regression for modelling rates and
#' proportions. *Journal of Applied Statistics* 31, 799.
#'
#' Cohen (1960). Estimating the parameter in a conditional Poisson distribution.
#' *Biometrics* 16, 203.
#' @examples
#' # days absent from school vary more than Poisson counts
#' days <- data.frame(
#'   days = c(2, 11, 14, 5, 5, 13, 20, 22, 6, 6, 15, 7, 14, 6, 32, 53),
#'   slow = rep(0:1, 8)
#' )
#' fit <- tall_glm(days ~ slow, days, family = neg_binomial_2(), seed = 1)
#' fit
#'
#' # an outlier that a Gaussian response would follow
#' x <- 1:30 / 10
#' y <- c(sin(x[-30]), 8)
#' coef(tall_glm(y ~ x, family = student(df = 4), seed = 1))
#'
#' # positive responses, and proportions
#' d <- data.frame(x, time = rgamma(30, 5, 5 / exp(x)), share = plogis(x - 1))
#' coef(tall_glm(time ~ x, d, family = gamma_regression(), seed = 1))
#' d$share <- d$share + runif(30, -0.05, 0.05)
#' coef(tall_glm(share ~ x, d, family = beta_regression(), seed = 1))
#'
#' # nights in hospital, of those who stayed
#' stays <- data.frame(nights = c(1, 1, 2, 1, 3, 2, 4, 3, 5, 8), age = 2:11)
#' coef(tall_glm(nights ~ age, stays, truncated_poisson(), seed = 1))
#' @name response-families
NULL

#' @rdname response-families
#' @export
neg_binomial_2 <- function(size = NULL) {
  size <- check_known_aux(size)
  new_tall_family(
    "neg_binomial_2",
    "log",
    function(mu) mu + mu^2 / (size %||% 1),
    aux = size
  )
}

#' @rdname response-families
#' @export
gamma_regression <- function(shape = NULL) {
  shape <- check_known_aux(shape)
  new_tall_family("Gamma", "log", function(mu) mu^2, aux = shape)
}

#' @rdname response-families
#' @export
student <- function(df = NULL, sigma = NULL) {
  new_tall_family(
    "student",
    "identity",
    function(mu) rep(1, length(mu)),
    aux = c(
      check_known_aux(sigma) %||% NA_real_,
      check_known_aux(df) %||% NA_real_
    )
  )
}

#' @rdname response-families
#' @export
beta_regression <- function(phi = NULL) {
  phi <- check_known_aux(phi)
  new_tall_family(
    "beta",
    "logit",
    function(mu) mu * (1 - mu) / (1 + (phi %||% 1)),
    aux = phi
  )
}

#' @rdname response-families
#' @export
truncated_poisson <- function() {
  out <- new_tall_family(
    "truncated_poisson",
    "log",
    function(mu) mu * (1 + rate_of_truncated(mu) - mu),
    aux = NA_real_
  )
  # the mean is not what the link says of the rate
  out$linkfun <- function(mu) log(rate_of_truncated(mu))
  out$linkinv <- function(eta) exp(eta) / -expm1(-exp(eta))
  out$mu.eta <- function(eta) {
    mean <- exp(eta) / -expm1(-exp(eta))
    mean * (1 + exp(eta) - mean)
  }
  out
}

# What a Poisson count has for a mean, where that of the positive ones is given:
# m = mu / (1 - e^-mu) by Newton's method, from above.
rate_of_truncated <- function(mean) {
  mu <- pmin(mean, 2 * (mean - 1))
  open <- which(mean - 1 > 1e-8)
  for (k in seq_len(50)) {
    at <- mu[open]
    short <- at / expm1(at)
    m <- at + short
    # the variance of a positive one
    bend <- m * ifelse(at < 1e-4, at / 2, 1 - short)
    step <- (m - mean[open]) * at / bend
    mu[open] <- at - step
    if (all(abs(step) <= 1e-13 * at)) {
      break
    }
  }
  pmax(mu, 0)
}

check_known_aux <- function(x, arg = caller_arg(x)) {
  check_number(x, positive = TRUE, allow_null = TRUE, arg = arg)
}

# variance: as a function of the mean, the unknown parameter 1. aux: known
# values of all auxiliary parameters, NA of those that are sampled.
new_tall_family <- function(name, link, variance, aux) {
  of_link <- stats::make.link(link)
  out <- list(
    family = name,
    link = link,
    linkfun = of_link$linkfun,
    linkinv = of_link$linkinv,
    mu.eta = of_link$mu.eta,
    valideta = of_link$valideta,
    variance = variance
  )
  out$aux <- if (!all(is.na(aux))) aux
  structure(out, class = c("tall_family", "family"))
}

check_not_quasi <- function(family) {
  name <- if (inherits(family, "family")) family$family else family
  if (!rlang::is_string(name) || !startsWith(name, "quasi")) {
    return(invisible())
  }
  hint <- switch(
    name,
    quasipoisson = "For counts that vary more than Poisson ones there is
                    {.fn neg_binomial_2}.",
    quasibinomial = "For proportions that are no shares of trials there is
                     {.fn beta_regression}; trials that vary more than binomial
                     ones can be written with {.fn model_custom}.",
    "There are {.fn neg_binomial_2}, {.code Gamma(\"log\")}, {.fn student} and
     {.fn beta_regression}; others can be written with {.fn model_custom}."
  )
  abort_input(
    c(
      "{.arg family} must be a distribution: {.val {name}} has no likelihood,
       and so no posterior.",
      i = hint
    ),
    argument = "family",
    value = name
  )
}

# glm() takes the family before the data.
check_not_data <- function(family) {
  if (!is.data.frame(family)) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg family} must be a response, not {describe(family)}.",
      i = "{.arg data} comes before {.arg family}, or is named."
    ),
    argument = "family",
    value = family
  )
}
