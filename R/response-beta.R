# Proportions that are no shares of trials, with a precision that is known or
# sampled.
response_beta <- function() {
  response_entry(
    name = "beta",
    table = "beta",
    links = c(logit = 30),
    must = "be above 0 and below 1",
    draw = function(mu, aux, rows) {
      # of as many values as mu has
      phi <- aux + 0 * as.numeric(mu)
      mu <- as.numeric(mu)
      stats::rbeta(length(mu), mu * phi, (1 - mu) * phi)
    },
    family = function(link) beta_regression(),
    aliases = c("Beta", "beta_family"),
    advice = "A beta response is never 0 or 1. Shares of trials are for
              {.code binomial()}; else move all values inward, as
              {.code (y * (n - 1) + 0.5) / n} does with n rows, or fit whether
              a value is at the end apart.",
    is_concave = FALSE,
    skewness = "values that are next to 0 or 1, or few rows, with %s do that"
  )
}
