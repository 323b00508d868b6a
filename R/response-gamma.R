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
    skewness = "a value that is next to 0, or few rows, with %s do that",
    sql = list(log = gamma_sql)
  )
}

gamma_sql <- function(shape) {
  clipped <- function(x) {
    bquote(exp(ifelse(.(x) > 700, 700, ifelse(.(x) < -300, -300, .(x)))))
  }
  response_in_sql(
    steps = list(list(m = bquote(y * .(clipped(quote(-eta)))))),
    log_lik = bquote(weight * (.(shape) * (log(y) - eta - m + 1))),
    score = bquote(weight * (.(shape) * (m - 1))),
    curvature = bquote(weight * (.(shape) * m)),
    bound = list(
      # the third derivative falls in eta
      steps = list(list(at = quote(reach - eta))),
      third = bquote(weight * (.(shape) * y * .(clipped(quote(at)))))
    ),
    outside = function(has_weights) quote(y <= 0)
  )
}
