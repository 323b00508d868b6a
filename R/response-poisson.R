# Counts.
response_poisson <- function() {
  response_entry(
    name = "poisson",
    table = "poisson",
    links = c(log = 30),
    must = "be a count",
    draw = function(mu, aux, rows) stats::rpois(length(mu), mu),
    family = function(link) stats::poisson(link),
    separation = "mark{?s/} rows whose counts are all 0",
    sql = list(log = poisson_sql())
  )
}

poisson_sql <- function() {
  response_in_sql(
    log_lik = quote(y * eta - mu),
    steps = list(list(mu = sql_step(sql_exp(quote(eta)), slope = quote(mu)))),
    bound = list(
      steps = list(
        list(at = quote(eta + reach)),
        list(s = sql_exp(quote(at)))
      ),
      third = quote(s)
    ),
    outside = function(has_weights) quote(y < 0 | floor(y) != y)
  )
}
