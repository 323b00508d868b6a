# Positive responses, such as durations, with a shape that is known or sampled.
response_gamma <- function() {
  response_entry(
    name = "Gamma",
    table = "Gamma",
    links = c(log = 30),
    must = "be positive",
    draw = function(mu, aux, rows) {
      stats::rgamma(length(mu), shape = aux, scale = as.numeric(mu) / aux)
    },
    family = function(link) gamma_regression(),
    aliases = "gamma",
    advice = "A gamma response has no zeros: fit whether there is any by
              {.code binomial()}, and how much by a {.code Gamma(\"log\")} of
              the positive ones.",
    skewness = "a value that is next to 0, or few rows, with %s do that"
  )
}
