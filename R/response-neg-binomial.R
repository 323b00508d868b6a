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
  logit <- binomial_sql()$logit
  log_size <- log(size)
  # weight * rest, as those of a logit are
  with_trials <- function(expression) {
    bquote(weight * ((y + .(size)) * .(expression[[3]])))
  }
  far <- bquote(abs(eta - .(log_size)))
  bound <- logit$bound
  bound$steps[[1]] <- list(
    far = bquote(.(far) + reach),
    near = bquote(.(far) - reach)
  )
  bound$third <- with_trials(bound$third)
  response_in_sql(
    steps = list(
      list(z = bquote(exp(-ifelse(.(far) > 300, 300, .(far))))),
      list(p = bquote(ifelse(eta > .(log_size), 1, z) / (1 + z)))
    ),
    log_lik = bquote(
      weight * (
        y * (eta - .(log_size)) - (y + .(size)) * (
          ifelse(eta > .(log_size), eta - .(log_size), 0) + log(1 + z)
        )
      )
    ),
    score = bquote(weight * (y - (y + .(size)) * p)),
    curvature = with_trials(quote(weight * (z / ((1 + z) * (1 + z))))),
    bound = bound,
    outside = function(has_weights) quote(y < 0 | floor(y) != y)
  )
}
