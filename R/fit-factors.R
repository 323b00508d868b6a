# Grouping factors of fits of tall_glmer().

has_groups <- function(fit) {
  !is.null(fit$groups) || is_crossed(fit)
}

# Has it several grouping factors?
is_crossed <- function(fit) {
  !is.null(fit$factors)
}

# The grouping factors by name, each list(name, levels, effects, correlated,
# sizes), and their terms of the formula, of read_bars().
fit_factors <- function(fit) {
  if (is_crossed(fit)) {
    return(fit$factors)
  }
  stats::setNames(list(fit$groups), fit$groups$name)
}

fit_bars <- function(fit) {
  if (is_crossed(fit)) {
    return(named_factors(fit$bars$terms))
  }
  term <- fit$bars[c("effects", "group", "name", "correlated")]
  stats::setNames(list(term), term$name)
}

# How many variables there are before those of the covariance of a factor.
covariance_start <- function(fit, name) {
  factors <- fit_factors(fit)
  before <- factors[seq_len(match(name, names(factors)) - 1)]
  fit$n_coef + sum(vapply(before, n_covariance, 0))
}

n_covariance <- function(factor) {
  q <- length(factor$effects)
  if (factor$correlated) q * (q + 1) / 2 else q
}
