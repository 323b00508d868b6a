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

# Of hurdle_negbinomial() alone: what the core calls the mean is the rate of the
# counts before those that are 0 were left out.
response_truncated_neg_binomial <- function() {
  response_entry(
    name = "truncated_neg_binomial",
    table = "truncated_neg_binomial",
    links = c(log = 30),
    must = "be a count above 0",
    draw = function(mu, aux, rows) {
      size <- as.numeric(aux)
      none <- (1 + mu / size)^-size
      u <- none + stats::runif(length(mu)) * (1 - none)
      # what rounding may leave at 0
      drawn <- pmax(stats::qnbinom(u, size = size, mu = mu), 1)
      array(drawn, dim(mu) %||% length(mu))
    },
    instead = "{.fn predict} of the hurdle model has expected counts: those of
               its part are rates of counts that may be 0.",
    is_inner = TRUE,
    is_concave = FALSE,
    separation = "mark{?s/} rows whose counts are all 1"
  )
}
