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
    steps = list(list(
      mu = quote(exp(ifelse(eta > 700, 700, ifelse(eta < -300, -300, eta))))
    )),
    log_lik = quote(weight * (y * eta - mu)),
    score = quote(weight * (y - mu)),
    curvature = quote(weight * mu),
    bound = list(
      steps = list(
        list(at = quote(eta + reach)),
        list(s = quote(exp(ifelse(at > 700, 700, ifelse(at < -300, -300, at)))))
      ),
      third = quote(weight * s)
    ),
    outside = function(has_weights) quote(y < 0 | floor(y) != y)
  )
}
