# Binary responses, and proportions of trials. The links' numbers: 1e-13 from 0
# or 1 is a logit of 30 and a probit of 7.4; a complementary log-log of -30 or
# 3.4, the nearer of the two.
binomial_links <- c(logit = 30, probit = 7.4, cloglog = 3.4)

response_bernoulli <- function() {
  response_entry(
    name = "bernoulli",
    table = "binomial",
    links = binomial_links,
    must = "be 0 or 1",
    draw = binomial_draw,
    size = 1,
    family = function(link) stats::binomial(link),
    has_trials = TRUE,
    separation = "separate{?s/} the outcomes",
    sql = binomial_sql(),
    network = response_of_networks(
      suits = function(y) is.logical(y) || (is.factor(y) && nlevels(y) == 2),
      read = read_binary,
      error = function(mean, y) mean((mean > 0.5) != (y == 1)),
      error_words = "share of wrong classes"
    )
  )
}

response_binomial <- function() {
  response_entry(
    name = "binomial",
    table = "binomial",
    links = binomial_links,
    must = "lie in [0, 1]",
    draw = binomial_draw,
    family = function(link) stats::binomial(link),
    has_trials = TRUE,
    takes_proportions = TRUE,
    separation = "separate{?s/} the outcomes",
    sql = binomial_sql()
  )
}

binomial_sql <- function() {
  list(logit = response_in_sql(
    log_lik = quote(y * eta - soft),
    steps = logistic_steps(quote(eta)),
    bound = logistic_bound(quote(eta)),
    outside = function(has_weights) {
      if (has_weights) {
        quote(y < 0 | y > 1)
      } else {
        quote(y != 0 & y != 1)
      }
    }
  ))
}

binomial_draw <- function(mu, aux, rows) {
  n <- length(mu)
  if (is.null(rows$trials) || all(rows$trials == 1)) {
    (stats::runif(n) < mu) + 0L
  } else {
    n_draw <- n / length(rows$trials)
    stats::rbinom(n, rep(rows$trials, each = n_draw), mu)
  }
}

read_binary <- function(y, arg) {
  levels <- if (is.factor(y)) levels(y)
  if (is.factor(y) && length(levels) != 2) {
    abort_input(
      c(
        "{.arg {arg}} must have two levels for likelihood \"bernoulli\", not
         {length(levels)}.",
        i = "More classes: {.code likelihood = \"categorical\"}."
      ),
      argument = arg,
      expected = 2,
      value = length(levels)
    )
  }
  values <- if (is.factor(y)) as.integer(y) - 1L else y
  if (is.logical(values)) {
    values <- as.double(values)
  }
  values <- check_numeric_vector(values, arg = arg)
  bad <- which(values != 0 & values != 1)
  if (length(bad) > 0) {
    must <- "be 0 or 1 for likelihood \"bernoulli\""
    abort_value(values, bad[[1]], must, arg = arg)
  }
  list(values = unname(values), levels = levels, n_out = 1)
}
