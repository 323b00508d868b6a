# What databases compute of a response.

# What a database computes of a row: R expressions in eta, y and weight, and in
# those of the steps before, that dbplyr translates. Databases may refuse to
# round to 0 or to infinity: exponents are clipped.
#   steps       list of lists of expressions by name, one after the other.
#   log_lik, score, curvature  up to constants; their sign is the core's.
#   bound       list(steps, third): the bound on the third derivative within
#               `reach` of eta; NULL: there is none.
#   outside     (function) `outside(has_weights)`: is y no response?
response_in_sql <- function(
  steps = list(),
  log_lik = NULL,
  score = NULL,
  curvature = NULL,
  bound = NULL,
  outside = NULL
) {
  list(
    steps = steps,
    log_lik = log_lik,
    score = score,
    curvature = curvature,
    bound = bound,
    outside = outside
  )
}
