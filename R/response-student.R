# Responses with outliers, of degrees of freedom and a scale sigma that are
# known or sampled.
response_student <- function() {
  response_entry(
    name = "student",
    table = "student",
    links = c(identity = Inf),
    must = "be finite",
    draw = function(mu, aux, rows) {
      aux <- matrix(aux, ncol = 2)
      n_row <- length(mu) / nrow(aux)
      noise <- stats::rt(length(mu), aux[, 2])
      mu + residual_sds(aux[, 1], rows$weight, n_row) * noise
    },
    family = function(link) student(),
    aliases = "t",
    aux_priors = list(nu = c(shape = 2, rate = 0.1)),
    aux_start = c(nu = 5),
    shows = NULL,
    has_units = TRUE,
    is_concave = FALSE,
    skewness = "few rows for the columns do that"
  )
}
