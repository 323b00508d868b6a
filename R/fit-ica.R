# Components of tall_ica()'s fits: their order, sources and mixing matrices.

# draws: S x K x K. For each draw and each row of the reference, the row of the
# draw that takes its place, negative where it changes sign.
component_order <- function(draws, inverse) {
  n <- dim(draws)[[1]]
  k <- dim(draws)[[2]]
  cosine <- array(0, c(n, k, k))
  for (row in seq_len(k)) {
    c_row <- matrix(draws[, row, ], n) %*% inverse
    cosine[, row, ] <- c_row / sqrt(rowSums(c_row^2))
  }
  order <- matrix(0, n, k)
  for (draw in seq_len(n)) {
    order[draw, ] <- match_components(matrix(cosine[draw, , ], k))
  }
  order
}

# The largest element of all decides first.
match_components <- function(cosine) {
  k <- nrow(cosine)
  size <- abs(cosine)
  best <- max.col(size, ties.method = "first")
  if (anyDuplicated(best) == 0) {
    place <- best
  } else {
    place <- integer(k)
    for (step in seq_len(k)) {
      at <- arrayInd(which.max(size), c(k, k))
      place[[at[[1]]]] <- at[[2]]
      size[at[[1]], ] <- -1
      size[, at[[2]]] <- -1
    }
  }
  out <- integer(k)
  out[place] <- seq_len(k) * ifelse(cosine[cbind(seq_len(k), place)] < 0, -1, 1)
  out
}

reorder_components <- function(draws, order) {
  n <- nrow(draws)
  k <- ncol(order)
  out <- draws
  for (row in seq_len(k)) {
    from <- abs(order[, row])
    for (column in seq_len(k)) {
      out[, row, column] <- sign(order[, row]) *
        draws[cbind(seq_len(n), from, column)]
    }
  }
  out
}

# ---- what the components are -------------------------------------------------

#' Sources and mixing matrix of independent components
#'
#' `sources()` are the independent components of observations, `mixing()` is the
#' matrix that makes observations of them.
#'
#' @param object (`tall_ica`) A fit of [tall_ica()].
#' @param newdata (numeric matrix or data frame with K columns) Observations, on
#'   the scale of the data of the fit.
#'
#' @details Sources are \eqn{s = W x} of the standardised observations, linear
#' in the draws: their posterior means and standard deviations follow from those
#' of \eqn{W} at a cost that does not depend on the number of draws. The mixing
#' matrix is \eqn{W^{-1}} of every draw, in the units of the data: \eqn{x
#' \approx}{x ~} `center` \eqn{+ A s}.
#'
#' @return A list of two matrices, `mean` and `sd`: n x K for `sources()`, K x K
#'   with a column for each source for `mixing()`.
#' @section Conditions: `tall_error_input` if `newdata` has other columns;
#' `tall_error_unsupported` for a fit without draws.
#' @examples
#' s <- matrix(rlogis(4000), ncol = 2)
#' x <- s %*% rbind(c(1, 0.5), c(-0.3, 1))
#' fit <- tall_ica(x, init = "identity", chains = 2, seed = 1)
#' head(sources(fit, x)$mean)
#' mixing(fit)
#' @export
sources <- function(object, newdata) {
  check_spec(object, "tall_ica", "tall_ica()")
  check_has_draws(object)
  check_given(newdata)
  if (is.data.frame(newdata)) {
    newdata <- as.matrix(newdata)
  }
  k <- nrow(object$reference)
  newdata <- check_matrix(newdata, n_col = k)
  x <- standard_columns(newdata, object$scaling)
  draws <- ica_draws(object)
  mean <- sd <- matrix(
    0,
    nrow(x),
    k,
    dimnames = list(rownames(x), paste0("s", seq_len(k)))
  )
  for (row in seq_len(k)) {
    w <- matrix(draws[, row, ], dim(draws)[[1]])
    mean[, row] <- x %*% colMeans(w)
    sd[, row] <- sqrt(rowSums((x %*% stats::cov(w)) * x))
  }
  list(mean = mean, sd = sd)
}

#' @rdname sources
#' @export
mixing <- function(object) {
  check_spec(object, "tall_ica", "tall_ica()")
  check_has_draws(object)
  draws <- ica_draws(object)
  k <- dim(draws)[[2]]
  inverse <- apply(draws, 1, function(w) {
    as.double(object$scaling$scale %*% solve(matrix(w, k)))
  })
  names <- list(object$scaling$names, paste0("s", seq_len(k)))
  list(
    mean = matrix(rowMeans(inverse), k, dimnames = names),
    sd = matrix(apply(inverse, 1, stats::sd), k, dimnames = names)
  )
}

# S x K x K
ica_draws <- function(fit) {
  draws <- posterior::subset_draws(fit$draws, variable = fit$variables)
  k <- nrow(fit$reference)
  array(unclass(draws), c(posterior::ndraws(draws), k, k))
}
