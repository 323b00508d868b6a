# Counts of which none is 0.
response_truncated_poisson <- function() {
  response_entry(
    name = "truncated_poisson",
    table = "truncated_poisson",
    links = c(log = 30),
    must = "be a count above 0",
    draw = function(mu, aux, rows) {
      rate <- rate_of_truncated(mu)
      none <- exp(-rate)
      drawn <- stats::qpois(
        none + stats::runif(length(rate)) * (1 - none),
        rate
      )
      # what rounding may leave at 0
      array(pmax(drawn, 1), dim(mu) %||% length(mu))
    },
    family = function(link) truncated_poisson(),
    advice = "Counts that may be 0 are those of {.fn stats::poisson}.",
    separation = "mark{?s/} rows whose counts are all 1"
  )
}
