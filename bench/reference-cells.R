# The posterior of a logistic regression whose rows repeat, by long exact Markov
# chains on the sum over cells. Read by references-awkward.R.
#
# In turn: Hamiltonian Monte Carlo, whitened at the mode, on the coefficients of
# all columns but rare ones; a slice (Neal, 2003) for each rare column, whose few
# cells make it cheap. Rare: an indicator of fewer than 60 rows, or of fewer than 5
# with either outcome.

# list(x: cells x columns, count, event)
cells_of <- function(case) {
  names <- all.vars(case$formula)
  key <- do.call(paste, c(case$data[names[-1]], sep = "\r"))
  group <- match(key, unique(key))
  list(
    x = stats::model.matrix(
      case$formula, case$data[!duplicated(group), names],
      xlev = lapply(Filter(is.character, case$data[names]), function(v) sort(unique(v)))
    ),
    count = as.numeric(tabulate(group)),
    event = drop(rowsum(case$data[[names[[1]]]], group))
  )
}

cells_reference <- function(case, iter = 12000, chains = 2, warmup = 500) {
  compile_c("cells.c")
  cells <- cells_of(case)
  prior <- default_scales(cells$x, cells$count)
  target <- cells_target(cells, prior)
  d <- ncol(cells$x)
  rare <- rare_columns(cells)
  cat(
    nrow(cells$x), "cells,", d, "columns; rare:",
    colnames(cells$x)[rare], "\n"
  )
  mode <- cells_mode(target, d)
  draws <- lapply(seq_len(chains), function(chain) {
    set.seed(chain)
    cells_chain(target, mode, rare, iter + warmup)[-seq_len(warmup), ]
  })
  draws <- posterior::as_draws_array(aperm(
    array(unlist(draws), c(iter, d, chains)), c(1, 3, 2)
  ))
  summary <- posterior::summarise_draws(
    draws, "mean", "sd",
    ~ quantile(.x, c(0.05, 0.5, 0.95), names = FALSE) |> stats::setNames(c("a", "b", "c")),
    "mcse_mean", "mcse_sd", "rhat", "ess_mean"
  )
  least <- which.min(summary$ess_mean)
  cat(
    "worst R-hat", fixed(max(summary$rhat), 4),
    "least ESS", fixed(summary$ess_mean[[least]], 0), "of", colnames(cells$x)[[least]], "\n"
  )
  numbers <- as.matrix(as.data.frame(summary[2:8]))
  numbers[, 6:7] <- numbers[, 6:7] / numbers[, 2]
  reference_table(colnames(cells$x), numbers)
}

rare_columns <- function(cells) {
  is_indicator <- apply(cells$x, 2, function(v) all(v %in% c(0, 1)))
  rows <- colSums((cells$x != 0) * cells$count)
  events <- colSums((cells$x != 0) * cells$event)
  rare <- is_indicator & (rows < 60 | pmin(events, rows - events) < 5)
  which(rare & colnames(cells$x) != "(Intercept)")
}

cells_target <- function(cells, prior) {
  x <- cells$x
  entries <- which(t(x) != 0, arr.ind = TRUE)
  start <- as.integer(c(0, cumsum(rowSums(x != 0))))
  column <- as.integer(entries[, 1] - 1)
  value <- t(x)[entries]
  at <- c(1, prior$at)
  precision <- c(0, 1 / prior$slope^2)
  list(
    cells = cells,
    prior_hessian = outer(at, at) / prior$intercept^2 + diag(precision),
    log_prior = function(theta) {
      -sum(at * theta)^2 / (2 * prior$intercept^2) - sum(precision * theta^2) / 2
    },
    of = function(theta) {
      out <- .Call("cells_gradient", start, column, value, cells$count, cells$event, theta)
      centre <- sum(at * theta) / prior$intercept^2
      out$value <- out$value - centre * sum(at * theta) / 2 - sum(precision * theta^2) / 2
      out$gradient <- out$gradient - centre * at - precision * theta
      out
    },
    # rows of each column
    rows = lapply(seq_len(ncol(x)), function(j) which(x[, j] != 0))
  )
}

cells_hessian <- function(target, theta) {
  p <- plogis(target$of(theta)$eta)
  x <- target$cells$x
  crossprod(x, x * (target$cells$count * p * (1 - p))) + target$prior_hessian
}

cells_mode <- function(target, d) {
  theta <- numeric(d)
  for (k in 1:100) {
    at <- target$of(theta)
    step <- solve(cells_hessian(target, theta), at$gradient, tol = 1e-30)
    scale <- 1
    while (target$of(theta + scale * step)$value < at$value) scale <- scale / 2
    theta <- theta + scale * step
    if (sum(step * at$gradient) < 1e-8) break
  }
  theta
}

cells_chain <- function(target, mode, rare, iter, step = 0.45) {
  d <- length(mode)
  common <- setdiff(seq_len(d), rare)
  # theta = mode + L^-T z
  root <- chol(cells_hessian(target, mode)[common, common])
  out <- matrix(0, iter, d)
  theta <- mode
  accepted <- 0
  for (i in seq_len(iter)) {
    for (j in rare) theta <- slice_column(target, theta, j)
    at <- target$of(theta)
    proposal <- theta
    momentum <- rnorm(length(common))
    energy <- at$value - sum(momentum^2) / 2
    eps <- step * runif(1, 0.7, 1)
    gradient <- function(at) backsolve(root, at$gradient[common], transpose = TRUE)
    momentum <- momentum + eps / 2 * gradient(at)
    for (k in seq_len(n_leap <- sample(3:5, 1))) {
      proposal[common] <- proposal[common] + backsolve(root, eps * momentum)
      at <- target$of(proposal)
      momentum <- momentum + (if (k < n_leap) eps else eps / 2) * gradient(at)
    }
    if (log(runif(1)) < at$value - sum(momentum^2) / 2 - energy) {
      theta <- proposal
      accepted <- accepted + 1
    }
    out[i, ] <- theta
  }
  cat("HMC accepted", fixed(accepted / iter, 3), "\n")
  out
}

# One coefficient given all others: stepping out and shrinkage, by its own cells.
slice_column <- function(target, theta, j) {
  rows <- target$rows[[j]]
  x <- target$cells$x[rows, , drop = FALSE]
  others <- drop(x[, -j, drop = FALSE] %*% theta[-j])
  count <- target$cells$count[rows]
  event <- target$cells$event[rows]
  column <- x[, j]
  q <- target$prior_hessian
  linear <- sum(q[j, -j] * theta[-j])
  f <- function(b) {
    eta <- others + column * b
    sum(event * plogis(eta, log.p = TRUE) + (count - event) * plogis(-eta, log.p = TRUE)) -
      q[j, j] * b^2 / 2 - linear * b
  }
  width <- 2 / sqrt(q[j, j])
  height <- f(theta[[j]]) - rexp(1)
  lower <- theta[[j]] - runif(1) * width
  upper <- lower + width
  while (f(lower) > height) lower <- lower - width
  while (f(upper) > height) upper <- upper + width
  repeat {
    b <- runif(1, lower, upper)
    if (f(b) > height) break
    if (b < theta[[j]]) lower <- b else upper <- b
  }
  theta[j] <- b
  theta
}
