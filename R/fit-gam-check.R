# Whether a smooth term has columns enough, and whether other terms have what it
# has: the residuals of a sample of rows, and sums that the mode has.

# ---- columns enough? ---------------------------------------------------------

# By curve of a smooth_table(), data frame(k_index, p_value), NA where it cannot
# be told: effects of levels, rows that are not kept, draws of the prior.
# layout: of gam_layout().
basis_checks <- function(fit, layout, curves) {
  none <- data.frame(k_index = NA_real_, p_value = NA_real_)
  out <- none[rep(1, length(curves)), ]
  rownames(out) <- NULL
  some <- fit$sketch$some
  if (NROW(some) < 20 || is.null(fit$draws) || isTRUE(fit$prior_PD)) {
    return(out)
  }
  left <- tryCatch(sample_residuals(fit, some), tall_error = function(e) NULL)
  if (is.null(left)) {
    return(out)
  }
  records <- terms_smooths(fit$terms)
  for (k in seq_along(curves)) {
    at <- match(curves[[k]], layout$columns$smooth)
    record <- records[[layout$columns$variable[[at]]]]
    if (length(record$numbers) > 0) {
      values <- sample_values(record, some, environment(fit$formula))
      own <- rows_of_curve(record, values, layout$columns, curves[[k]])
      out[k, ] <- neighbour_test(
        left[own],
        lapply(values[record$numbers], `[`, own),
        joint_codes(record, lapply(values, `[`, own))
      )
    }
  }
  out
}

# Those of Pearson at the posterior mean of the predictor: where the model is
# right they have mean 0 anywhere, unlike the deviance residuals of a binary
# response, which mgcv takes.
sample_residuals <- function(fit, data) {
  rows <- known_rows(fit, data)
  draws <- choose_draws(fit, NULL)
  if (inherits(fit, "tall_surv")) {
    is_right <- all(rows$y[, 3] %in% c(0, 1))
    return(if (is_right) rows$y[, 3] - row_hazards(fit, rows, draws))
  }
  eta <- predictor_moments(fit, rows, draws, "link", FALSE)$fit
  mu <- drop(response_mean(fit$family, matrix(eta, 1)))
  out <- row_residuals(fit, "pearson")(rows, mu)
  if (all(is.finite(out))) out
}

# Of the fit's own data, which may lie beyond knots that were given.
known_rows <- function(fit, data) {
  suppressWarnings(
    test_rows(fit, data),
    classes = "tall_warning_extrapolation"
  )
}

# Numbers and codes of levels, by their text.
sample_values <- function(record, data, home) {
  texts <- unique(c(record$term, record$by))
  smooth_inputs(record, lapply(stats::setNames(nm = texts), function(text) {
    rep_len(eval(str2lang(text), data, home), nrow(data))
  }))
}

# Those whose predictor has the curve: of the levels of its own columns, and
# where what it is multiplied by is not 0.
rows_of_curve <- function(record, values, columns, curve) {
  names <- columns$name[columns$smooth == curve]
  levels <- record$columns$level[record$columns$name %in% names]
  own <- all(levels == 0) | joint_codes(record, values) %in% levels
  for (name in record$multiplier) {
    own <- own & values[[name]] != 0
  }
  which(rep_len(own, length(values[[1]])))
}

# c(k_index, p_value) of residuals whose neighbours are along `x`, a list of
# numbers, within the same code: Geary's ratio, half the mean square of
# differences between neighbours over the variance, which is 1 on average where
# any order of the residuals is as likely as any other, and the chance of one as
# small, from its exact variance over all orders (Cliff & Ord 1981).
neighbour_test <- function(left, x, code) {
  n <- length(left)
  pairs <- neighbours(x, rep_len(code, n))
  left <- left - mean(left)
  square <- sum(left^2)
  n_used <- if (length(x) == 1) n else min(n, most_on_surface)
  if (n < 20 || nrow(pairs) < n_used / 2 || square == 0) {
    return(c(NA_real_, NA_real_))
  }
  gaps <- (left[pairs[, 1]] - left[pairs[, 2]])^2
  index <- mean(gaps) / 2 / (square / (n - 1))
  # as sums over ordered pairs of weights 1
  w <- 2 * nrow(pairs)
  s1 <- 2 * w
  s2 <- 4 * sum(tabulate(pairs, n)^2)
  k <- n * sum(left^4) / square^2
  variance <- ((n - 1) * s1 * (n^2 - 3 * n + 3 - (n - 1) * k) -
    (n - 1) * s2 * (n^2 + 3 * n - 6 - (n^2 - n + 2) * k) / 4 +
    w^2 * (n^2 - 3 - (n - 1)^2 * k)) / (n * (n - 2) * (n - 3) * w^2)
  c(index, stats::pnorm((index - 1) / sqrt(max(variance, 1e-300))))
}

# Rows of a surface that are compared, as each is with all others.
most_on_surface <- 1000

# Pairs of rows, m x 2: those next to each other along one number, in no order
# of the data where they are tied; of several numbers the three nearest of each
# among some of the rows, in units of their standard deviations.
neighbours <- function(x, code) {
  n <- length(code)
  scattered <- (seq_len(n) * (sqrt(5) - 1) / 2) %% 1
  if (length(x) == 1) {
    order <- order(code, x[[1]], scattered)
    pairs <- cbind(order[-n], order[-1])
    return(pairs[code[pairs[, 1]] == code[pairs[, 2]], , drop = FALSE])
  }
  some <- order(scattered)[seq_len(min(n, most_on_surface))]
  units <- vapply(x, function(x) scale(x[some])[, 1], double(length(some)))
  distance <- as.matrix(stats::dist(units))
  distance[outer(code[some], code[some], `!=`)] <- Inf
  diag(distance) <- Inf
  from <- seq_along(some)
  pairs <- do.call(rbind, lapply(1:3, function(k) {
    to <- max.col(-distance, "first")
    near <- cbind(from, to)
    is_there <- is.finite(distance[near])
    distance[near] <<- Inf
    near[is_there, , drop = FALSE]
  }))
  pairs <- cbind(pmin(pairs[, 1], pairs[, 2]), pmax(pairs[, 1], pairs[, 2]))
  pairs <- unique(pairs)
  cbind(some[pairs[, 1]], some[pairs[, 2]])
}

# ---- in other terms? ---------------------------------------------------------

# c(estimate, worst): how much of the columns `own` those of `others` have, as
# mgcv::concurvity() measures it: the share of their sum of squares, and of that
# combination which has most. products: of columns, X'WX.
shared_part <- function(products, own, others) {
  if (length(own) == 0 || length(others) == 0) {
    return(c(estimate = 0, worst = 0))
  }
  root <- independent_root(products[others, others, drop = FALSE])
  cross <- products[others, own, drop = FALSE][root$at, , drop = FALSE]
  inside <- crossprod(backsolve(root$r, cross, transpose = TRUE))
  whole <- products[own, own, drop = FALSE]
  of <- independent_root(whole)
  half <- backsolve(
    of$r,
    inside[of$at, of$at, drop = FALSE],
    transpose = TRUE
  )
  ratio <- backsolve(of$r, t(half), transpose = TRUE)
  worst <- eigen((ratio + t(ratio)) / 2, TRUE, only.values = TRUE)$values[[1]]
  total <- sum(diag(whole))
  c(
    estimate = if (total > 0) min(1, sum(diag(inside)) / total) else 0,
    worst = min(1, max(0, worst))
  )
}

# list(r, at): the Cholesky factor of those columns that do not follow from
# others.
independent_root <- function(products, tolerance = 1e-9) {
  unit <- sqrt(pmax(diag(products), 1e-300))
  r <- suppressWarnings(
    chol(products / outer(unit, unit), pivot = TRUE, tol = tolerance)
  )
  own <- seq_len(max(1, attr(r, "rank")))
  at <- attr(r, "pivot")[own]
  r <- matrix(r[own, own], length(own))
  list(r = r * rep(unit[at], each = length(own)), at = at)
}

# Products of columns less their means, where there is an intercept.
centred_products <- function(products, intercept) {
  if (is.na(intercept)) {
    return(products)
  }
  v <- products[, intercept]
  products - tcrossprod(v) / v[[intercept]]
}

# Columns of effects of levels, and of curves that are alike, are drawn to 0 by
# their prior: others may well have what they have.
pooled_columns <- function(terms, layout) {
  is_pooled <- vapply(terms_smooths(terms), is_pooled_smooth, TRUE)
  layout$columns$at[is_pooled[layout$columns$variable]]
}

# By curve, how much of it other terms have, NA of those that are pooled.
# products: of all coefficients.
curve_concurvity <- function(fit, layout, curves, products) {
  names <- fit$every_variable[seq_len(fit$n_coef)]
  intercept <- match("(Intercept)", names)
  products <- centred_products(products, intercept)
  pooled <- pooled_columns(fit$terms, layout)
  known <- setdiff(seq_along(names), c(intercept, pooled))
  vapply(curves, FUN.VALUE = 1, USE.NAMES = FALSE, function(curve) {
    own <- layout$columns$at[layout$columns$smooth == curve]
    if (any(own %in% pooled)) {
      return(NA_real_)
    }
    shared_part(products, own, setdiff(known, own))[["estimate"]]
  })
}
