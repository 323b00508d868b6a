# Predictors of fits of tall_multinom(), tall_polr() and tall_nn().

is_ordinal <- function(fit) {
  class_methods[[fit$method]]$is_ordered
}

# ---- classes -----------------------------------------------------------------

# Of ordered classes one predictor, of others one for each but the first.
#' @export
predicted_names.tall_classes <- function(fit, scale) {
  if (scale == "response") {
    fit$response_levels
  } else if (!is_ordinal(fit)) {
    fit$response_levels[-1]
  }
}

#' @export
predictor.tall_classes <- function(fit, rows, draws, scale) {
  eta <- class_predictors(fit, rows, draws$theta)
  is_one <- is_ordinal(fit)
  if (scale == "link") {
    return(if (is_one) matrix(eta, nrow(draws$theta)) else eta)
  }
  if (is_one) {
    cuts <- draws$theta[, -seq_len(ncol(rows$x)), drop = FALSE]
    ordered_probs(fit, matrix(eta, nrow(cuts)), cuts)
  } else {
    softmax_probs(eta)
  }
}

# draws x rows x predictors
class_predictors <- function(fit, rows, theta) {
  p <- ncol(rows$x)
  n_eta <- if (is_ordinal(fit)) 1 else length(fit$response_levels) - 1
  out <- array(0, c(nrow(theta), nrow(rows$x), n_eta))
  for (k in seq_len(n_eta)) {
    own <- theta[, (k - 1) * p + seq_len(p), drop = FALSE]
    out[, , k] <- tcrossprod(own, rows$x)
    out[, , k] <- out[, , k] + rep(rows$offset, each = nrow(theta))
  }
  out
}

# Probabilities, draws x rows x classes; the first class has the predictor 0.
softmax_probs <- function(eta) {
  n_eta <- dim(eta)[[3]]
  largest <- matrix(0, dim(eta)[[1]], dim(eta)[[2]])
  for (k in seq_len(n_eta)) {
    largest <- pmax(largest, eta[, , k])
  }
  out <- array(0, dim(eta) + c(0, 0, 1))
  out[, , 1] <- exp(-largest)
  total <- out[, , 1]
  for (k in seq_len(n_eta)) {
    out[, , k + 1] <- exp(eta[, , k] - largest)
    total <- total + out[, , k + 1]
  }
  out / as.vector(total)
}

# Differences are taken in the tail where they are small. eta: draws x rows;
# cuts: thresholds, draws x classes but one.
ordered_probs <- function(fit, eta, cuts) {
  n <- length(fit$response_levels)
  out <- array(0, c(dim(eta), n))
  cut <- function(k) {
    if (k == 0) -Inf else if (k == n) Inf else cuts[, k]
  }
  for (k in seq_len(n)) {
    out[, , k] <- class_between(fit, cut(k - 1) - eta, cut(k) - eta)
  }
  out
}

# The probability of what is between v and u.
class_between <- function(fit, v, u) {
  below <- if (fit$method == "probit") stats::pnorm else stats::plogis
  ifelse(v > 0, below(-v) - below(-u), below(u) - below(v))
}

#' @export
log_density.tall_classes <- function(fit, rows, draws) {
  mu <- predictor(fit, rows, draws, "response")
  n_draw <- dim(mu)[[1]]
  n <- length(rows$y)
  each <- function(x) rep(x, each = n_draw)
  at <- cbind(rep(seq_len(n_draw), n), each(seq_len(n)), each(rows$y))
  matrix(each(rows$weight) * log(mu[at]), n_draw)
}

# The most probable class of each row; NA where probabilities are.
likely_class <- function(fit, probs) {
  best <- max.col(replace(probs, is.na(probs), -1), "first")
  best[is.na(probs[, 1])] <- NA
  levels <- fit$response_levels
  out <- factor(levels[best], levels, ordered = inherits(fit, "tall_polr"))
  stats::setNames(out, rownames(probs))
}

# ---- networks ----------------------------------------------------------------

#' @export
predicted_names.tall_nn <- function(fit, scale) {
  if (has_class_response(fit)) fit$response_levels
}

# In the units of the response, or on the scale of its link.
#' @export
predictor.tall_nn <- function(fit, rows, draws, scale) {
  out <- network_outputs(fit, draws$theta, unname(rows$x))
  # gemm may turn a missing input into any kind of NaN
  out[, !stats::complete.cases(rows$x), ] <- NA
  if (!has_class_response(fit)) {
    dim(out) <- dim(out)[1:2]
    out <- fit$scaling$y_center + fit$scaling$y_scale * out
  }
  if (scale == "response") response_mean(fit$family, out) else out
}

# The core counts classes from 0.
#' @export
log_density.tall_nn <- function(fit, rows, draws) {
  if (has_class_response(fit)) {
    rows$y <- rows$y - 1
  }
  log_density.tall_regression(fit, rows, draws)
}
