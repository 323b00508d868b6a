# Effects of the levels of grouping factors, where they are numbers of the
# chains beside the parameters: what a segment leaves of them.

# Draws of them, iterations x chains x effects, of the chains that are alive;
# NULL where they were not kept.
effect_array <- function(segment, alive, names) {
  if (is.null(segment$buffers$effect)) {
    return(NULL)
  }
  shape <- c(segment$n_keep, length(segment$reports), length(names))
  kept <- vapply(segment$reports[alive], function(r) r$n_kept, 0)
  draws <- array(segment$buffers$effect, shape)
  draws <- draws[seq_len(min(kept)), alive, , drop = FALSE]
  dimnames(draws) <- list(NULL, NULL, names)
  draws
}

# From counts, means, sums of squared deviations and quantiles of each chain: NA
# before a sweep after warmup. R-hat (Gelman & Rubin 1992, Statistical Science
# 7:457) of whole chains, NA of one.
effect_summary <- function(reports, names) {
  n_effect <- length(names)
  part <- function(first) {
    vapply(
      reports,
      function(r) r$effects[first + seq_len(n_effect)],
      numeric(n_effect)
    )
  }
  n <- vapply(reports, function(r) r$effects[[1]], 0)
  means <- matrix(part(1), n_effect)
  squares <- matrix(part(1 + n_effect), n_effect)
  total <- sum(n)
  mean <- drop(means %*% n) / total
  within <- rowSums(squares)
  between <- drop((means - mean)^2 %*% n)
  m <- length(n)
  w <- rowMeans(squares / rep(n - 1, each = n_effect))
  b <- rowSums((means - rowMeans(means))^2) / (m - 1)
  rhat <- sqrt(1 - m / total + b / w)
  quantile <- function(first) {
    drop(matrix(part(1 + first * n_effect), n_effect) %*% n) / total
  }
  data.frame(
    variable = names,
    mean = mean,
    sd = sqrt((within + between) / (total - 1)),
    q5 = quantile(2),
    q95 = quantile(3),
    rhat = if (m > 1) rhat else NA_real_
  )
}
