# The posterior of a logistic regression on one factor, by quadrature. Read by
# references-awkward.R.
#
# The predictor of level g is a + b_g, b of the baseline 0; b_g ~ N(0, s_g), and
# a + sum_g w_g b_g ~ N(0, s_0), w the levels' shares of rows. Given a the
# likelihood is a product over levels, and the intercept's prior becomes one by
#   exp(-u^2 / (2 s_0^2)) = E exp(i t u),  t ~ N(0, 1 / s_0).
# So all moments are sums over a grid of a (trapezoids), nodes of Gauss-Hermite in
# t, and products over levels of
#   F_g^k(a, t) = integral of b^k exp(i t w_g b) L_g(a + b) N(b; 0, s_g) db.

# Nodes and weights of Gauss-Legendre on (-1, 1), and of Gauss-Hermite for a
# standard normal (Golub & Welsch, 1969).
gauss <- function(off, total) {
  n <- length(off) + 1
  k <- seq_along(off)
  jacobi <- matrix(0, n, n)
  jacobi[cbind(k, k + 1)] <- jacobi[cbind(k + 1, k)] <- off
  e <- eigen(jacobi, symmetric = TRUE)
  list(node = e$values, weight = total * e$vectors[1, ]^2)
}
legendre <- function(n) gauss((1:(n - 1)) / sqrt(4 * (1:(n - 1))^2 - 1), 2)
hermite <- function(n) gauss(sqrt(1:(n - 1)), 1)

# Where functions that decrease cross 0, elementwise.
crossing <- function(f, lower, upper) {
  for (k in 1:70) {
    middle <- (lower + upper) / 2
    above <- f(middle) > 0
    lower[above] <- middle[above]
    upper[!above] <- middle[!above]
  }
  (lower + upper) / 2
}

# Nodes b of a level and their weights, length(a) x nodes, where `y` of `n` are 1.
# The log density is concave; panels lie between the places where it is 0.02, 0.1,
# ... below its maximum, on both sides.
level_nodes <- function(a, y, n, s, rule = legendre(16)) {
  log_density <- function(b) {
    y * plogis(a + b, log.p = TRUE) + (n - y) * plogis(-a - b, log.p = TRUE) -
      b^2 / (2 * s^2)
  }
  reach <- 40 * s + abs(a) + 50
  mode <- crossing(function(b) y - n * plogis(a + b) - b / s^2, -reach, reach)
  top <- log_density(mode)
  drops <- c(0.02, 0.1, 0.5, 1, 2, 4, 7, 11, 16, 22, 29, 37)
  left <- sapply(rev(drops), function(drop) {
    crossing(function(b) top - log_density(b) - drop, mode - reach, mode)
  })
  right <- sapply(drops, function(drop) {
    crossing(function(b) drop - top + log_density(b), mode, mode + reach)
  })
  ends <- cbind(left, mode, right)
  half <- (ends[, -1] - ends[, -ncol(ends)]) / 2
  centre <- ends[, -ncol(ends)] + half
  each <- rep(seq_len(ncol(half)), each = length(rule$node))
  b <- centre[, each] + half[, each] * rep(rule$node, ncol(half))[col(half[, each])]
  log_weight <- log(half[, each]) + log(rule$weight)[
    (col(half[, each]) - 1) %% length(rule$node) + 1
  ] + log_density(b) - log(s)
  list(b = b, log_weight = log_weight)
}

# case: list(formula = y ~ factor, data)
factor_reference <- function(case, step = 0.1, n_t = 14, range = c(-30, 0)) {
  y <- case$data[[1]]
  level <- factor(case$data[[2]])
  n <- tabulate(level, nlevels(level))
  events <- drop(rowsum(y, level))
  share <- n / sum(n)
  # 2.5 over the standard deviation of a column of zeros and ones
  s <- 2.5 / sqrt(share * (1 - share) * sum(n) / (sum(n) - 1))
  rule <- hermite(n_t)
  t <- rule$node / 2.5
  a <- seq(range[[1]], range[[2]], by = step)

  # log of the product over levels, a x t, and the ratios F^k / F^0
  log_product <- outer(
    events[[1]] * plogis(a, log.p = TRUE) +
      (n[[1]] - events[[1]]) * plogis(-a, log.p = TRUE),
    log(rule$weight) + 0i, "+"
  ) + 1i * outer(a, t)
  parts <- lapply(seq_along(n)[-1], function(g) {
    nodes <- level_nodes(a, events[[g]], n[[g]], s[[g]])
    top <- apply(nodes$log_weight, 1, max)
    w <- exp(nodes$log_weight - top)
    f <- lapply(0:2, function(k) {
      sapply(t, function(t) rowSums(w * nodes$b^k * exp(1i * t * share[[g]] * nodes$b)))
    })
    list(b = nodes$b, w = w, top = top, f = f)
  })
  for (part in parts) {
    log_product <- log_product + log(part$f[[1]]) + part$top
  }
  product <- exp(log_product - max(Re(log_product)))
  of_a <- Re(rowSums(product))
  total <- sum(of_a)
  stopifnot(of_a[c(1, length(a))] < 1e-12 * max(of_a))

  at <- c(0.05, 0.5, 0.95)
  quantiles_of <- function(value, weight) {
    order <- order(value)
    below <- (cumsum(weight[order]) - weight[order] / 2) / sum(weight)
    approx(below, value[order], at, ties = "ordered")$y
  }
  row_of <- function(first, second, quantiles) {
    c(first, sqrt(second - first^2), quantiles, 0, 0)
  }
  # a finer grid of a for its quantiles
  fine <- spline(a, log(pmax(of_a, 1e-300)), 20 * length(a))
  rows <- list(row_of(
    sum(a * of_a) / total,
    sum(a^2 * of_a) / total,
    quantiles_of(fine$x, exp(fine$y))
  ))
  for (k in seq_along(parts)) {
    part <- parts[[k]]
    moment <- function(k) Re(sum(product * part$f[[k + 1]] / part$f[[1]])) / total
    others <- product / part$f[[1]]
    weight <- part$w * Re(sapply(seq_len(ncol(part$b)), function(j) {
      rowSums(others * exp(1i * outer(share[[k + 1]] * part$b[, j], t)))
    }))
    rows <- c(rows, list(row_of(
      moment(1), moment(2), quantiles_of(c(part$b), c(weight))
    )))
  }
  reference_table(
    c("(Intercept)", paste0(names(case$data)[[2]], levels(level)[-1])),
    do.call(rbind, rows)
  )
}

# columns: mean, sd, three quantiles, standard errors of mean and sd over sd
reference_table <- function(parameter, numbers) {
  colnames(numbers) <- c(
    "mean", "sd", "q5", "q50", "q95", "error_mean", "error_sd"
  )
  data.frame(parameter = parameter, numbers)
}
