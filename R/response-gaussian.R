# The p-quantile of sum_d w_d N(mu_di, sigma_d^2) for each column i: Newton's
# method kept inside a bracket.
mixture_quantiles <- function(mu, sigma, weights, p) {
  column <- function(x) drop(crossprod(x, weights))
  width <- stats::qnorm(1e-9) * max(sigma)
  low <- apply(mu, 2, min) + width
  high <- apply(mu, 2, max) - width
  mean <- column(mu)
  sd <- sqrt(column(mu^2 + sigma^2) - mean^2)
  at <- mean + stats::qnorm(p) * sd
  bad <- is.na(at)
  low[bad] <- high[bad] <- at[bad] <- 0
  mu[, bad] <- 0
  for (k in 1:100) {
    z <- (rep(at, each = nrow(mu)) - mu) / sigma
    beyond <- column(stats::pnorm(z)) - p
    low <- ifelse(beyond < 0, at, low)
    high <- ifelse(beyond > 0, at, high)
    step <- beyond / column(stats::dnorm(z) / sigma)
    next_at <- at - step
    outside <- !is.finite(next_at) | next_at <= low | next_at >= high
    next_at <- ifelse(outside & beyond != 0, (low + high) / 2, next_at)
    next_at <- ifelse(beyond == 0, at, next_at)
    moved <- max(abs(next_at - at)) / max(sigma)
    at <- next_at
    if (moved < 1e-9) {
      break
    }
  }
  at[bad] <- NA
  at
}

# Normal responses, with a standard deviation sigma that is known or sampled.
response_gaussian <- function() {
  response_entry(
    name = "gaussian",
    table = "gaussian",
    links = c(identity = Inf),
    must = "be finite",
    draw = function(mu, aux, rows) {
      n_row <- length(mu) / length(aux)
      mu + residual_sds(aux, rows$weight, n_row) * stats::rnorm(length(mu))
    },
    family = function(link) stats::gaussian(link),
    shows = NULL,
    has_units = TRUE,
    is_quadratic = TRUE,
    skewness = "few rows for the columns do that",
    sql = list(identity = response_in_sql()),
    network = response_of_networks(
      suits = function(y) is_plain_numeric(y) && is.null(dim(y)),
      read = function(y, arg) {
        values <- check_numeric_vector(y, most = most_of_data, arg = arg)
        list(values = unname(values), n_out = 1)
      },
      error = function(mean, y) sqrt(mean((y - mean)^2)),
      error_words = "root mean squared error",
      quantiles = mixture_quantiles,
      cdf = function(y, mu, aux) stats::pnorm((y - mu) / aux)
    )
  )
}

# Draws x rows: sigma is that of a row of weight 1. One for each draw where all
# rows have that.
residual_sds <- function(sigma, weight, n_row) {
  if (is.null(weight) || all(weight == 1)) {
    return(sigma)
  }
  rep(sigma, n_row) / rep(sqrt(weight), each = length(sigma))
}
