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
    separation = "mark{?s/} rows whose counts are all 0",
    sql = list(log = neg_binomial_sql)
  )
}

# With the size known a row is one of y + size trials, y of them successes,
# whose logit is eta - log(size).
neg_binomial_sql <- function(size) {
  u <- bquote((eta - .(log(size))))
  trials <- bquote((y + .(size)))
  response_in_sql(
    log_lik = bquote(y * .(u) - .(trials) * soft),
    steps = logistic_steps(u),
    bound = logistic_bound(u, size = trials),
    outside = function(has_weights) quote(y < 0 | floor(y) != y)
  )
}
