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
  m <- bquote(y * .(sql_exp(quote(-eta))))
  response_in_sql(
    log_lik = bquote(.(shape) * (log(y) - eta - m + 1)),
    steps = list(list(m = sql_step(m, slope = quote(-m)))),
    bound = list(
      # the third derivative falls in eta
      steps = list(list(at = quote(reach - eta))),
      third = bquote(.(shape) * y * .(sql_exp(quote(at))))
    ),
    outside = function(has_weights) quote(y <= 0)
  )
}
