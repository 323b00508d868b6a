# Counts.
response_poisson <- function() {
  response_entry(
    name = "poisson",
    table = "poisson",
    links = c(log = 30),
    must = "be a count",
    draw = function(mu, aux, rows) stats::rpois(length(mu), mu),
    family = function(link) stats::poisson(link),
    separation = "mark{?s/} rows whose counts are all 0"
  )
}
