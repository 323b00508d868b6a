# Times to an event with a hazard that is constant in pieces of time: of
# tall_surv(). What rows must be is what they must of an exponential law, whose
# tables the core has; log hazards of the pieces take the place of auxiliary
# parameters, draws x K.

# pieces: see R/design-pieces.R; NULL: not settled yet.
response_piecewise <- function(pieces = NULL) {
  entry <- survival_entry("piecewise", table = "weibull", function(p, mu, aux) {
    pieces_quantile(pieces, p, mu, aux)
  })
  entry$log_density <- function(eta, y, weight, aux) {
    pieces_log_density(pieces, eta, y, weight, aux)
  }
  entry$restricted_mean <- function(eta, time, aux) {
    pieces_restricted_mean(pieces, eta, time, aux)
  }
  entry
}

# list(rate, total): hazards and their integrals to the beginning of each piece,
# draws x K, of rows with eta = 0.
pieces_rates <- function(pieces, alpha) {
  # of one draw it may be a vector
  rate <- exp(matrix(alpha, ncol = length(pieces$cuts) + 1))
  width <- diff(c(0, pieces$cuts))
  total <- 0 * rate
  for (k in seq_along(width)) {
    total[, k + 1] <- total[, k] + width[[k]] * rate[, k]
  }
  list(rate = rate, total = total)
}

# Integrals of these hazards up to each time, draws x times.
pieces_hazard <- function(pieces, rates, time) {
  at <- piece_of(pieces$cuts, time)
  since <- time - c(0, pieces$cuts)[at]
  n <- nrow(rates$rate)
  rates$total[, at, drop = FALSE] +
    rates$rate[, at, drop = FALSE] * rep(since, each = n)
}

# y: rows (time, entry, status); alpha: draws x K, NULL: 0
pieces_log_density <- function(pieces, eta, y, weight, alpha) {
  n <- nrow(eta)
  alpha <- matrix(alpha %||% 0, n, length(pieces$cuts) + 1)
  rates <- pieces_rates(pieces, alpha)
  # mostly many rows end at one time, as those of a curve do
  exposure <- function(time) {
    once <- unique(time)
    value <- pieces_hazard(pieces, rates, once)
    if (length(once) == 1) {
      matrix(value, n, length(time))
    } else {
      value[, match(time, once), drop = FALSE]
    }
  }
  hazard <- exposure(y[, 1])
  if (any(y[, 2] > 0)) {
    hazard <- hazard - exposure(y[, 2])
  }
  is_event <- y[, 3] == 1
  out <- -exp(eta) * hazard
  if (any(is_event)) {
    at <- piece_of(pieces$cuts, y[is_event, 1])
    out[, is_event] <- out[, is_event] + eta[, is_event] +
      alpha[, at, drop = FALSE]
  }
  if (is.null(weight)) out else out * rep(weight, each = n)
}

# When the cumulative hazard of a row with e^eta = mu is -log(1 - p).
pieces_quantile <- function(pieces, p, mu, alpha) {
  mu <- as.matrix(mu)
  rates <- pieces_rates(pieces, alpha)
  begin <- c(0, pieces$cuts)
  goal <- -log1p(-p) / mu
  out <- mu
  for (i in seq_len(nrow(mu))) {
    at <- findInterval(goal[i, ], rates$total[i, ])
    left <- goal[i, ] - rates$total[i, at]
    out[i, ] <- begin[at] + left / rates$rate[i, at]
  }
  out
}

# Of S from 0 to a time: of each piece e^-H (1 - e^-(h w)) / h.
pieces_restricted_mean <- function(pieces, eta, time, alpha) {
  rates <- pieces_rates(pieces, alpha)
  begin <- c(0, pieces$cuts)
  begin <- begin[begin < time]
  width <- diff(c(begin, time))
  mu <- exp(eta)
  out <- 0 * eta
  for (k in seq_along(begin)) {
    rate <- mu * rates$rate[, k]
    inside <- -expm1(-rate * width[[k]]) / rate
    out <- out + exp(-mu * rates$total[, k]) * inside
  }
  out
}

# ---- pieces ------------------------------------------------------------------

has_pieces <- function(family) {
  !is.null(family$pieces)
}

# Which piece each time is in: (lower, upper].
piece_of <- function(cuts, time) {
  findInterval(time, cuts, left.open = TRUE) + 1L
}

# What the core takes of them.
core_pieces <- function(family) {
  if (has_pieces(family)) {
    strata <- if (has_strata(family)) c("n_cut", "stratum")
    family$pieces[c("cuts", "basis", strata)]
  }
}

# Log hazards of draws, draws x K, less what predictors say. draws: a matrix
# with names of its columns.
log_hazards <- function(pieces, draws) {
  steps <- draws[, pieces$names, drop = FALSE]
  unname(tcrossprod(steps, pieces$basis))
}

# ---- families of one stratum -------------------------------------------------

has_strata <- function(family) {
  !is.null(family$pieces$n_cut)
}

# How many pieces there are, of all strata.
n_pieces <- function(pieces) {
  length(pieces$cuts) + max(1, length(pieces$n_cut))
}

# That of the rows of one stratum: its pieces are as of rows without strata.
stratum_family <- function(family, s) {
  pieces <- family$pieces
  n <- pieces$n_cut
  first <- sum(n[seq_len(s - 1)])
  family$pieces <- list(cuts = pieces$cuts[first + seq_len(n[[s]])])
  family
}

# Which of all pieces are its own.
stratum_pieces <- function(pieces, s) {
  before <- sum(pieces$n_cut[seq_len(s - 1)] + 1)
  before + seq_len(pieces$n_cut[[s]] + 1)
}

# The number of the stratum of each row of a design; of a row whose stratum is
# missing 1.
row_strata <- function(pieces, x) {
  at <- which(pieces$stratum > 0)
  own <- as.matrix(x[, at, drop = FALSE])
  of <- drop(own %*% pieces$stratum[at]) + 1
  replace(of, is.na(of), 1)
}

# How many pieces there are, and of how many strata.
pieces_text <- function(family) {
  strata <- family$pieces$strata
  paste0(
    count_noun(n_pieces(family$pieces), "piece"),
    if (!is.null(strata)) paste(" of", format_count(length(strata)), "strata")
  )
}
