# What an average is of, as a function of few linear predictors of a row, which
# R/fit-average-expansion.R expands.
#
# A record, of which the expansion knows no more than this; NULL: there is none,
# and each draw is taken at each row.
#
#   theta    function(draws): what predictors are linear in, draws x
#            coordinates: coefficients, logs of parameters of the response, or
#            what a draw says of a time
#   columns  of each predictor, which coordinates its design multiplies
#   blocks   function(rows): of each predictor list(x, offset)
#   parts    of each number that is averaged, a class or a time, list(of,
#            slopes, pairs): which predictors it is a function of; its slopes in
#            them, slopes(list of predictors), see
#            R/fit-average-differences.R; and of which pairs of these second
#            derivatives are
#
# A parameter that is the same in all rows is a predictor with a design of ones.

expansion_of <- function(fit, request) {
  UseMethod("expansion_of")
}

#' @export
expansion_of.tall_regression <- function(fit, request) {
  NULL
}

# f(predictors): a number for each row.
expanded_part <- function(of, f) {
  list(
    of = of,
    slopes = function(eta) difference_slopes(f, eta),
    pairs = predictor_pairs(length(of))
  )
}

linear_part <- function(of) {
  list(of = of, slopes = linear_slopes, pairs = matrix(1, 1, 2))
}

row_block <- function(x, offset = 0) {
  if (is_sparse(x)) {
    x <- methods::as(x, "CsparseMatrix")
  }
  list(x = x, offset = offset)
}

# Those of so many parameters.
constant_blocks <- function(rows, n) {
  rep(list(row_block(matrix(1, nrow(rows$x), 1))), n)
}

# ---- one predictor -----------------------------------------------------------

#' @export
expansion_of.tall_glm <- function(fit, request) {
  part <- if (request$type == "link") {
    linear_part(1)
  } else {
    expanded_part(1, function(eta) {
      as.numeric(response_mean(fit$family, eta[[1]]))
    })
  }
  list(
    theta = function(draws) draws$theta,
    columns = list(seq_len(fit$n_coef)),
    blocks = function(rows) list(row_block(rows$x, rows$offset)),
    parts = list(part)
  )
}

# ---- two formulas ------------------------------------------------------------

# Means of counts with zeros of their own hang on both.
#' @export
expansion_of.tall_dpar <- function(fit, request) {
  which <- if (identical(request$dpar, fit$dpar$name)) 2 else 1
  of <- if (which == 1 && fit$dpar$name == "zi") 1:2 else which
  part <- if (request$type == "link") {
    linear_part(which)
  } else {
    expanded_part(of, function(eta) {
      both <- array(0, c(1, length(eta[[1]]), 2))
      both[, , of] <- unlist(eta)
      response_mean(fit$family, both)[1, , which]
    })
  }
  first <- seq_len(fit$width[[1]])
  second <- setdiff(seq_len(fit$n_coef), first)
  list(
    theta = function(draws) draws$theta,
    columns = list(first, second),
    blocks = function(rows) {
      list(
        row_block(rows$x[, first, drop = FALSE], rows$offset),
        row_block(rows$x[, second, drop = FALSE])
      )
    },
    parts = list(part)
  )
}

# ---- classes -----------------------------------------------------------------

#' @export
expansion_of.tall_classes <- function(fit, request) {
  if (is_ordinal(fit)) {
    ordered_expansion(fit, request$type)
  } else {
    softmax_expansion(fit, request$type)
  }
}

# The predictor, and each threshold.
ordered_expansion <- function(fit, type) {
  n <- length(fit$response_levels)
  p <- length(fit$design_columns)
  # thresholds come after the predictor
  part_of <- function(k) {
    cuts <- setdiff(c(k - 1, k), c(0, n))
    expanded_part(c(1, 1 + cuts), function(eta) {
      lower <- if (k == 1) -Inf else eta[[2]]
      upper <- if (k == n) Inf else eta[[length(eta)]]
      class_between(fit, lower - eta[[1]], upper - eta[[1]])
    })
  }
  list(
    theta = function(draws) draws$theta,
    columns = c(list(seq_len(p)), as.list(p + seq_len(n - 1))),
    blocks = function(rows) {
      c(list(row_block(rows$x, rows$offset)), constant_blocks(rows, n - 1))
    },
    parts = if (type == "link") {
      list(linear_part(1))
    } else {
      lapply(seq_len(n), part_of)
    }
  )
}

# A predictor for each class but the first.
softmax_expansion <- function(fit, type) {
  n <- length(fit$response_levels)
  p <- length(fit$design_columns)
  list(
    theta = function(draws) draws$theta,
    columns = lapply(seq_len(n - 1), function(k) (k - 1) * p + seq_len(p)),
    blocks = function(rows) {
      rep(list(row_block(rows$x, rows$offset)), n - 1)
    },
    parts = if (type == "link") {
      lapply(seq_len(n - 1), linear_part)
    } else {
      lapply(seq_len(n), function(k) {
        expanded_part(seq_len(n - 1), function(eta) {
          shape <- c(1, length(eta[[1]]), n - 1)
          softmax_probs(array(unlist(eta), shape))[1, , k]
        })
      })
    }
  )
}

# ---- parameters of the response ----------------------------------------------

# Logs of those that are sampled, draws x parameters.
log_aux_draws <- function(fit, draws) {
  at <- which(is.na(known_aux(fit)))
  aux <- matrix(draws$aux %||% numeric(), nrow(draws$theta))
  log(aux[, at, drop = FALSE])
}

# As one draw has them, a row. log_aux: predictors that are the same in all
# rows.
aux_at <- function(fit, log_aux) {
  out <- unname(known_aux(fit))
  out[is.na(out)] <- exp(vapply(log_aux, `[[`, 0, 1))
  if (length(out) > 0) matrix(out, 1)
}
