# One of several classes, with a predictor each; the core counts them from 0.
response_categorical <- function() {
  response_entry(
    name = "categorical",
    table = "categorical",
    links = c(softmax = 30),
    must = "be a class",
    draw = function(mu, aux, rows) {
      n <- prod(dim(mu)[1:2])
      u <- stats::runif(n)
      flat <- matrix(mu, n)
      below <- numeric(n)
      class <- integer(n) + 1L
      for (k in seq_len(ncol(flat) - 1)) {
        below <- below + flat[, k]
        class <- class + (u > below)
      }
      class
    },
    separation = "separate{?s/} the classes",
    network = response_of_networks(
      suits = function(y) is.factor(y) && nlevels(y) != 2,
      read = read_classes,
      error = function(mean, y) mean(max.col(mean, "first") - 1 != y),
      error_words = "share of wrong classes"
    )
  )
}

read_classes <- function(y, arg) {
  if (is.character(y)) {
    y <- factor(y)
  }
  if (is.factor(y)) {
    levels <- levels(y)
    values <- as.integer(y)
    if (anyNA(values)) {
      bad <- which(is.na(values))[[1]]
      abort_value(y, bad, "not be missing", arg = arg)
    }
  } else {
    values <- check_numeric_vector(y, arg = arg)
    bad <- which(values < 1 | values != round(values))
    if (length(bad) > 0) {
      must <- "be a factor, or 1, 2, ... for likelihood \"categorical\""
      abort_value(values, bad[[1]], must, arg = arg)
    }
    levels <- as.character(seq_len(max(values)))
  }
  if (length(levels) < 2) {
    abort_input(
      "{.arg {arg}} must have at least two classes, not {length(levels)}.",
      argument = arg,
      expected = 2,
      value = length(levels)
    )
  }
  list(values = as.double(values) - 1, levels = levels, n_out = length(levels))
}
