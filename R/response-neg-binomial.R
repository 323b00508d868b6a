# Counts that vary more than Poisson ones, with a size that is known or sampled.
response_neg_binomial_2 <- function() {
  response_entry(
    name = "neg_binomial_2",
    table = "neg_binomial_2",
    links = c(log = 30),
    must = "be a count",
    draw = function(mu, aux, rows) {
      stats::rnbinom(length(mu), size = aux, mu = mu)
    },
    family = function(link) neg_binomial_2(),
    aliases = c("negbinomial", "nbinom2", "Negative Binomial"),
    separation = "mark{?s/} rows whose counts are all 0"
  )
}
