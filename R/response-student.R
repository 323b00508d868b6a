# Responses with outliers, of known degrees of freedom and a scale sigma that is
# known or sampled.
response_student <- function(df = NULL) {
  response_entry(
    name = "student",
    table = "student",
    links = c(identity = Inf),
    must = "be finite",
    draw = function(mu, aux, rows) {
      n_row <- length(mu) / length(aux)
      noise <- stats::rt(length(mu), df)
      mu + residual_sds(aux, rows$weight, n_row) * noise
    },
    family = function(link) student(df),
    aliases = "t",
    fixed = df,
    has_units = TRUE,
    is_concave = FALSE,
    skewness = "few rows for the columns do that"
  )
}
