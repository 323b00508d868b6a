# Derivatives of functions of a few predictors, for averages by an expansion,
# see R/fit-average-expansion.R.
#
# Slopes of rows are list(value, first, second): a number for each row; rows x
# predictors; rows x pairs of predictors, those of predictor_pairs().

# Which second derivatives there are of so many predictors, pairs x 2.
predictor_pairs <- function(n) {
  pairs <- which(upper.tri(diag(n), diag = TRUE), arr.ind = TRUE)
  matrix(pairs, ncol = 2)
}

# With this step the error of five points is some 1e-9 of a function that bends
# within a unit of its predictor, and that of the four corners of a mixed
# derivative some 1e-5.
difference_step <- 0.01

# f(eta): a number for each row, of a list of predictors.
difference_slopes <- function(f, eta) {
  step <- difference_step
  at <- function(j, by) {
    for (k in seq_along(j)) {
      eta[[j[[k]]]] <- eta[[j[[k]]]] + by[[k]] * step
    }
    f(eta)
  }
  value <- f(eta)
  own <- lapply(seq_along(eta), function(j) {
    five_points(lapply(-2:2, function(by) {
      if (by == 0) value else at(j, by)
    }))
  })
  pairs <- predictor_pairs(length(eta))
  second <- lapply(seq_len(nrow(pairs)), function(p) {
    j <- pairs[p, ]
    if (j[[1]] == j[[2]]) {
      return(own[[j[[1]]]]$second)
    }
    corners <- at(j, c(1, 1)) - at(j, c(1, -1)) - at(j, c(-1, 1)) +
      at(j, c(-1, -1))
    corners / (4 * step^2)
  })
  list(
    value = value,
    first = do.call(cbind, lapply(own, `[[`, "first")),
    second = do.call(cbind, second)
  )
}

# Central differences of values at five points.
five_points <- function(of) {
  step <- difference_step
  list(
    value = of[[3]],
    first = (8 * (of[[4]] - of[[2]]) - (of[[5]] - of[[1]])) / (12 * step),
    second = (16 * (of[[4]] + of[[2]]) - (of[[5]] + of[[1]]) - 30 * of[[3]]) /
      (12 * step^2)
  )
}

# Of the first predictor alone.
linear_slopes <- function(eta) {
  n <- length(eta[[1]])
  list(value = eta[[1]], first = matrix(1, n, 1), second = matrix(0, n, 1))
}

# Of sum_q weight_q g(eta_1 + eta_q), q = 2, 3, ..., of which most pairs have no
# second derivative: see sum_pairs().
sum_slopes <- function(g, weight, eta) {
  n <- length(eta[[1]])
  n_more <- length(weight)
  value <- numeric(n)
  first <- second <- matrix(0, n, n_more)
  for (q in seq_len(n_more)) {
    u <- eta[[1]] + eta[[q + 1]]
    own <- five_points(lapply(-2:2, function(by) g(u + by * difference_step)))
    value <- value + weight[[q]] * own$value
    first[, q] <- weight[[q]] * own$first
    second[, q] <- weight[[q]] * own$second
  }
  list(
    value = value,
    first = cbind(rowSums(first), first),
    second = cbind(rowSums(second), second, second)
  )
}

sum_pairs <- function(n_more) {
  q <- 1 + seq_len(n_more)
  unname(rbind(c(1, 1), cbind(1, q), cbind(q, q)))
}
