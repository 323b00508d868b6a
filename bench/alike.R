# Logistic random intercepts of groups that are all but alike: nearly all of a
# group's rows are 0, or 1, and the standard deviation of groups is large. Are
# default draws those of the posterior, and what does such a deviation cost?
#
#   Rscript bench/alike.R
#
# The truth is importance sampling, each group's integral a sum over 1,601 places.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

bench_start("alike", "Groups that are all but alike")

# n_flip of the rows differ from the others of their group
alike_data <- function(n_group, size, n_flip) {
  set.seed(3)
  n <- n_group * size
  data <- data.frame(g = rep(seq_len(n_group), each = size), x = rnorm(n))
  data$y <- rep(rbinom(n_group, 1, 0.4), each = size)
  flip <- seq(1, n, length.out = n_flip)
  data$y[flip] <- 1 - data$y[flip]
  data
}

places <- seq(-8, 8, length.out = 1601)
log_posterior <- function(theta, data, prior) {
  eta <- theta[[1]] + theta[[2]] * data$x
  rows <- plogis(
    (2 * data$y - 1) * outer(eta, exp(theta[[3]]) * places, "+"),
    log.p = TRUE
  )
  each <- sweep(rowsum(rows, data$g), 2, dnorm(places, log = TRUE), "+")
  most <- apply(each, 1, max)
  # the intercept's prior is of the rows at their means
  sum(most + log(rowSums(exp(each - most)) * (places[[2]] - places[[1]]))) +
    dnorm(theta[[1]] + theta[[2]] * mean(data$x), 0, 2.5, log = TRUE) +
    dnorm(theta[[2]], 0, prior$scale[[2]], log = TRUE) +
    dt(exp(theta[[3]]) / 2.5, 3, log = TRUE) + theta[[3]]
}

# list(mean, sd) of coefficients and the logarithm of the sd
truth_of <- function(draws, data, prior, n = 3000, df = 5) {
  set.seed(9)
  root <- chol(1.3 * cov(draws))
  step <- matrix(rnorm(3 * n), n) / sqrt(rchisq(n, df) / df)
  theta <- sweep(step %*% root, 2, apply(draws, 2, median), "+")
  weight <- apply(theta, 1, log_posterior, data, prior) +
    (df + 3) / 2 * log1p(rowSums(step^2) / df)
  weight <- exp(weight - max(weight))
  weight <- weight / sum(weight)
  mean <- colSums(weight * theta)
  list(
    mean = mean,
    sd = sqrt(colSums(weight * sweep(theta, 2, mean)^2)),
    ess = 1 / sum(weight^2)
  )
}

# with the default prior of slopes, 2.5 over the sd of their column
right <- function(n_group, size, n_flip) {
  data <- alike_data(n_group, size, n_flip)
  seconds <- cpu_seconds(
    fit <- tall_glmer(y ~ x + (1 | g), data, binomial(), seed = 1)
  )
  draws <- as.matrix(fit)
  draws[, 3] <- log(draws[, 3])
  truth <- truth_of(draws, data, fit$prior)
  off <- (colMeans(draws) - truth$mean) / truth$sd
  data.frame(
    groups = n_group,
    rows = size,
    unlike = n_flip,
    sd = fixed(exp(truth$mean[[3]]), 1),
    nodes = fit$nodes,
    `means, sds off` = paste(fixed(off, 3), collapse = ", "),
    `sds off` = paste(percent(apply(draws, 2, sd) / truth$sd - 1), collapse = ", "),
    `ess of the truth` = fixed(truth$ess, 0),
    `CPU s` = fixed(seconds, 1),
    check.names = FALSE
  )
}
say_table(rbind(right(60, 8, 30), right(60, 8, 8), right(30, 4, 8)))

cost <- function(sd) {
  set.seed(3)
  data <- data.frame(g = rep(1:2000, each = 5), x = rnorm(1e4))
  effect <- sd * rnorm(2000)
  data$y <- rbinom(1e4, 1, plogis(-1 + 0.5 * data$x + effect[data$g]))
  seconds <- cpu_seconds(
    fit <- tall_glmer(y ~ x + (1 | g), data, binomial(), seed = 1)
  )
  list(seconds = seconds, row = data.frame(
    sd = sd,
    found = fixed(mean(as.matrix(fit)[, 3]), 2),
    nodes = fit$nodes,
    passes = fixed(sum(unlist(fit$passes)), 0),
    check.names = FALSE
  ))
}
costs <- lapply(c(1, 3, 6, 12), cost)
table <- do.call(rbind, lapply(costs, `[[`, "row"))
table[["CPU, of that of sd 1"]] <- vapply(costs, function(run) {
  fixed(run$seconds / costs[[1]]$seconds, 1)
}, "")
say("\n2,000 groups of 5:\n")
say_table(table)
