# How chains went, and the estimated bias of their standard deviations.

chain_table <- function(fit, segment, status, kept) {
  reports <- segment$reports
  field <- function(name) vapply(reports, function(r) r[[name]], 0)
  before <- fit$chains
  proposed <- field("n_propose")
  table <- data.frame(
    chain = seq_along(reports),
    status = vapply(status, status_name, ""),
    draws = kept + if (is.null(before)) 0 else before$draws,
    acceptance = ifelse(proposed > 0, field("n_accept") / proposed, NA),
    # without rows: evaluations of the gradient
    passes = if (fit$n_data > 0) {
      field("n_row") / fit$n_data
    } else {
      field("n_full")
    },
    step_size = field("step_size"),
    escaped = field("n_escape"),
    outside = ifelse(proposed > 0, field("n_outside") / proposed, NA),
    nonfinite = field("n_nonfinite")
  )
  n_before <- fit$progress$warmup_done + fit$progress$sampled
  rows <- factorised_rows(fit, reports, n_before + field("n_step"))
  if (is.null(rows)) table else cbind(table, rows)
}

# How many blocks the bias estimate takes its standard error from.
bias_blocks <- 20

# ---- bias of the standard deviations (src/run/bias.c) -----------------------

# What is kept of each chain, NULL of one that has nothing: by blocks the number
# of terms, `count`, and the means `gradient` of g_j and `product` of (theta_j -
# mean_j) g_j (blocks x n_dim), with the chain's `mean` over all its segments.
add_bias <- function(fit, reports) {
  d <- length(fit$coordinates)
  lapply(seq_along(reports), function(chain) {
    kept <- if (length(fit$bias_blocks) > 0) fit$bias_blocks[[chain]]
    parts <- lapply(bias_parts(reports[[chain]]), bias_part, d)
    Reduce(merge_bias, parts, kept)
  })
}

# The bias sums of a report: of one stretch, of several (see merge_reports()),
# or of none.
bias_parts <- function(report) {
  if (is.double(report$bias)) {
    list(list(sums = report$bias, origin = report$bias_origin))
  } else {
    report$bias
  }
}

# One stretch, centred at its own mean.
bias_part <- function(part, d) {
  sums <- matrix(part$sums, 1 + 3 * d)
  sums <- sums[, sums[1, ] > 0, drop = FALSE]
  count <- sums[1, ]
  if (length(count) == 0) {
    return(NULL)
  }
  away <- rowSums(sums[1 + seq_len(d), , drop = FALSE]) / sum(count)
  gradient <- sums[1 + d + seq_len(d), , drop = FALSE]
  product <- sums[1 + 2 * d + seq_len(d), , drop = FALSE]
  list(
    count = count,
    mean = part$origin + away,
    gradient = t(gradient) / count,
    product = t(product - away * gradient) / count
  )
}

# Two stretches of a chain, centred at the mean of both, and in as many blocks
# as one has, of about as many terms: short ones would depend on each other.
merge_bias <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(a %||% b)
  }
  share <- sum(b$count) / (sum(a$count) + sum(b$count))
  mean <- a$mean + share * (b$mean - a$mean)
  about <- function(x) {
    x$product - x$gradient * rep(mean - x$mean, each = nrow(x$gradient))
  }
  count <- c(a$count, b$count)
  block <- ceiling(bias_blocks * cumsum(count) / sum(count) - 1e-9)
  total <- as.double(rowsum(count, block))
  mean_of <- function(x) unname(rowsum(x * count, block)) / total
  list(
    count = total,
    mean = mean,
    gradient = mean_of(rbind(a$gradient, b$gradient)),
    product = mean_of(rbind(about(a), about(b)))
  )
}

# list(value, se) of the relative bias of each variance; NULL: no terms.
bias_terms <- function(blocks) {
  blocks <- Filter(function(b) length(b$count) > 0, blocks)
  if (length(blocks) == 0) {
    return(NULL)
  }
  count <- unlist(lapply(blocks, function(b) b$count))
  product <- do.call(rbind, lapply(blocks, function(b) b$product))
  share <- count / sum(count)
  mean <- colSums(product * share)
  residual <- sweep(product, 2, mean)
  list(
    value = -mean - 1,
    se = sqrt(colSums(residual^2 * share) / max(1, length(count) - 1))
  )
}

# The same of a chain that no fit was made of.
report_bias <- function(report, n_dim) {
  parts <- lapply(bias_parts(report), bias_part, n_dim)
  bias_terms(list(Reduce(merge_bias, parts)))
}

# Under the posterior E[(theta_j - mean) g_j] = -1. With step-size bias and
# gradient noise it is -(1 + b), b the relative bias of the variance, to first
# order; the sd's is sqrt(1 + b) - 1. Blind to bias of the mean, and of no use
# where the recipe found the posterior far from normal: a few draws from where
# it falls steeply would make up the expectation.
bias_table <- function(fit) {
  terms <- bias_terms(fit$bias_blocks)
  if (is.null(terms)) {
    return(NULL)
  }
  ratio <- sqrt(pmax(1 + terms$value, 0))
  se <- terms$se
  # shares of a simplex, and intercepts away from the means that chains move
  # them at, have no coordinates of their own
  at <- fit$variable_of %||% seq_along(ratio)
  table <- data.frame(
    variable = fit$every_variable[at],
    sd_bias = ratio - 1,
    sd_bias_se = se / (2 * pmax(ratio, 0.5))
  )
  table[table$variable %in% fit$recipe$far, c("sd_bias", "sd_bias_se")] <- NA
  table <- table[!is.na(at), ]
  if (nrow(table) > 0) table
}
