# Responses with two predictors a row: of a mean, and of another parameter, by
# the name that formulas call it. Entries draw from predictors' values mu, draws
# x rows x 2: E(y), and that parameter.

# What a formula may predict beside the mean, by the name of a response that
# users ask for: its name there, and the entry that has both predictors, which
# is the same where the response has both always.
second_predictors <- list(
  gaussian = list(name = "sigma", entry = "gaussian_sigma"),
  student = list(name = "sigma", entry = "student_sigma"),
  censored_gaussian = list(name = "sigma", entry = "censored_gaussian_sigma"),
  neg_binomial_2 = list(name = "shape", entry = "neg_binomial_2_shape"),
  censored_student = list(name = "sigma", entry = "censored_student_sigma"),
  censored_neg_binomial_2 = list(
    name = "shape",
    entry = "censored_neg_binomial_2_shape"
  ),
  Gamma = list(name = "shape", entry = "Gamma_shape"),
  beta = list(name = "phi", entry = "beta_phi"),
  zero_inflated_poisson = list(name = "zi", entry = "zero_inflated_poisson"),
  zero_inflated_negbinomial = list(
    name = "zi",
    entry = "zero_inflated_negbinomial"
  )
)

# base: the entry without; parameter: of second_predictors.
predicted_entry <- function(base, parameter, ...) {
  response_entry(
    name = paste0(base$name, "_", parameter),
    table = paste0(base$table, "_", parameter),
    links = base$links,
    must = base$must,
    draw = function(mu, aux, rows) {
      mean <- first_of_two(mu)
      second <- as.numeric(second_of_two(mu))
      draw_predicted(base, mean, second, aux, rows$weight)
    },
    wrong = base$wrong,
    shows = base$shows,
    is_inner = TRUE,
    advice = base$advice,
    aux_priors = base$aux_priors,
    aux_start = base$aux_start,
    has_units = base$has_units,
    is_concave = FALSE,
    separation = base$separation,
    skewness = base$skewness
  )
}

# As many draws of one row as there are numbers: its parameters are then those
# of draws. aux: of what else there is, of draws; weights: of rows.
draw_predicted <- function(base, mean, second, aux, weight) {
  n_draw <- nrow(mean)
  if (!is.null(aux)) {
    second <- cbind(second, rep(as.numeric(aux), length.out = length(second)))
  }
  if (!is.null(weight) && base$has_units) {
    # precisions: what a row's scale is, is its own
    scale <- sqrt(rep(weight, each = n_draw))
    second <- if (is.matrix(second)) {
      cbind(second[, 1] / scale, second[, 2])
    } else {
      second / scale
    }
  }
  out <- base$draw(matrix(as.numeric(mean)), second, list())
  array(out, dim(mean))
}

first_of_two <- function(mu) {
  n <- dim(mu)
  matrix(mu[, , 1], n[[1]], n[[2]])
}

second_of_two <- function(mu) {
  n <- dim(mu)
  matrix(mu[, , 2], n[[1]], n[[2]])
}

response_gaussian_sigma <- function() {
  predicted_entry(response_gaussian(), "sigma")
}

response_student_sigma <- function() {
  predicted_entry(response_student(), "sigma")
}

response_censored_gaussian_sigma <- function() {
  predicted_entry(response_censored_gaussian(), "sigma")
}

response_censored_student_sigma <- function() {
  predicted_entry(response_censored_student(), "sigma")
}

response_neg_binomial_2_shape <- function() {
  predicted_entry(response_neg_binomial_2(), "shape")
}

response_censored_neg_binomial_2_shape <- function() {
  predicted_entry(response_censored_neg_binomial_2(), "shape")
}

response_gamma_shape <- function() {
  predicted_entry(response_gamma(), "shape")
}

response_beta_phi <- function() {
  predicted_entry(response_beta(), "phi")
}

# ---- counts with more zeros than their law has -------------------------------

#' Counts with more zeros than their law has
#'
#' `tall_glm(family = zero_inflated_poisson())`, or
#' `zero_inflated_negbinomial()`: counts some of which are 0 whatever their rate
#' is, each by a regression of its own, as in brms.
#'
#' @details
#' With probability \eqn{\pi}{pi} a row is 0, and else a count of rate
#' \eqn{\mu}{mu}, so that
#' \deqn{P(y = 0) = \pi + (1 - \pi) f(0), \quad P(y = k) = (1 - \pi) f(k), \quad
#' k > 0,}{P(y = 0) = pi + (1 - pi) f(0), P(y = k) = (1 - pi) f(k), k > 0,}
#' \eqn{\log\mu = x^T\beta}{log mu = x'b} and \eqn{\mathrm{logit}\, \pi =
#' z^T\gamma}{logit pi = z'c}, \eqn{f} being the Poisson law, or the negative
#' binomial one of [neg_binomial_2()], whose size is sampled as
#' `reciprocal_dispersion`. Expected responses are \eqn{(1 - \pi)\mu}{(1 - pi)
#' mu}; `posterior_epred(fit, dpar = "zi")` has the \eqn{\pi}{pi}.
#'
#' The formula is a list, `list(y ~ x, zi ~ z)`, or brms' `bf(y ~ x, zi ~ z)`;
#' with one formula `zi` is the same for all rows. Coefficients of `zi` are
#' called `zi_(Intercept)`, `zi_z`. See *Formulas of two parameters* in
#' [tall_glm()] for priors and for how draws are made. Where only whether there
#' is a count at all is a question of its own, [hurdle_poisson()] has an easier
#' posterior.
#'
#' @return An object of class `family`.
#' @references
#' Lambert (1992). Zero-inflated Poisson regression, with an application to
#' defects in manufacturing. *Technometrics* 34, 1.
#' @seealso [posterior-dpar]
#' @examples
#' d <- data.frame(x = rnorm(300), z = rnorm(300))
#' d$y <- rpois(300, exp(1 + 0.5 * d$x)) * (runif(300) > plogis(d$z - 1))
#' fit <- tall_glm(list(y ~ x, zi ~ z), d, zero_inflated_poisson(), seed = 1)
#' fit
#' predict(fit, data.frame(x = 0, z = c(-1, 1)), type = "response")
#'
#' # counts that vary more
#' coef(tall_glm(y ~ x, d, zero_inflated_negbinomial(), iter = 500, seed = 1))
#' @export
zero_inflated_poisson <- function() {
  new_zero_inflated("zero_inflated_poisson", function(mu) mu)
}

#' @rdname zero_inflated_poisson
#' @export
zero_inflated_negbinomial <- function() {
  new_zero_inflated("zero_inflated_negbinomial", function(mu) mu + mu^2)
}

# variance: of counts with no more zeros than their law has.
new_zero_inflated <- function(name, variance) {
  new_tall_family(name, "log", variance, aux = NA_real_)
}

# quantile(p, mean, aux): of counts of that law. A draw takes one uniform
# number, so that those of a row do not depend on what rows are drawn with it.
zero_inflated_entry <- function(name, quantile, family) {
  response_entry(
    name = name,
    table = name,
    links = c(log = 30),
    must = "be a count",
    draw = function(mu, aux, rows) {
      share <- second_of_two(mu)
      mean <- first_of_two(mu) / (1 - share)
      p <- (stats::runif(length(mean)) - share) / (1 - share)
      array(quantile(pmax(p, 0), as.numeric(mean), aux), dim(mean))
    },
    family = family,
    is_concave = FALSE,
    separation = "mark{?s/} rows whose counts are all 0"
  )
}

response_zero_inflated_poisson <- function() {
  zero_inflated_entry(
    "zero_inflated_poisson",
    function(p, mean, aux) stats::qpois(p, mean),
    function(link) zero_inflated_poisson()
  )
}

response_zero_inflated_negbinomial <- function() {
  zero_inflated_entry(
    "zero_inflated_negbinomial",
    function(p, mean, aux) stats::qnbinom(p, size = aux, mu = mean),
    function(link) zero_inflated_negbinomial()
  )
}

# The name of ours, or of brms' that is called the same; NULL: another family.
zero_inflated_name <- function(family) {
  if (is.function(family)) {
    of <- list(
      zero_inflated_poisson = zero_inflated_poisson,
      zero_inflated_negbinomial = zero_inflated_negbinomial
    )
    found <- vapply(of, identical, TRUE, family)
    if (any(found)) {
      return(names(of)[found])
    }
    family <- tryCatch(family(), error = function(e) NULL)
  }
  name <- if (is.list(family)) family$family else family
  known <- c("zero_inflated_poisson", "zero_inflated_negbinomial")
  if (rlang::is_string(name) && name %in% known) name
}
