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
    has_units = TRUE,
    is_quadratic = TRUE,
    skewness = "few rows for the columns do that",
    network = response_of_networks(
      suits = function(y) is_plain_numeric(y) && is.null(dim(y)),
      read = function(y, arg, call) {
        values <- check_numeric_vector(y, arg = arg, call = call)
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
