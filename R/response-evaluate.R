# What the core makes of predictors, means and parameters of a response.

# All of these take predictors or means as vectors or, with draws, as matrices
# draws x rows, those of classes with a third dimension.

# Complete log densities, draws x rows. eta: draws x rows (x classes); y and
# weight (trials or precisions, NULL: 1 each) of rows; aux: of draws, natural,
# see aux_matrix().
response_log_density <- function(family, eta, y, weight = NULL, aux = NULL) {
  facts <- response_facts(family)
  aux <- aux_matrix(family, aux, nrow(eta))
  # a missing response has a missing density
  is_missing <- !stats::complete.cases(y)
  y <- as_double_values(y)
  y <- if (is.matrix(y)) {
    # what takes their place is left out below
    y[is_missing, ] <- rep(y[which(!is_missing)[1], ], each = sum(is_missing))
    y
  } else {
    replace(y, is_missing, 0)
  }
  in_r <- find_response(family)$log_density
  out <- if (!is.null(in_r)) {
    in_r(eta, y, weight, aux)
  } else {
    matrix(.Call(
      ffi_response_evaluate,
      facts$place,
      0L,
      eta,
      nrow(eta),
      y,
      if (!is.null(weight)) as.double(weight),
      aux,
      FALSE
    ), nrow(eta))
  }
  out[, is_missing] <- NA
  out
}

# Derivatives of log densities of rows at one point, rows x what there is of
# each: "score" and "curvature" (minus the second derivative) in the predictor;
# "aux_score", "cross" and "aux_curvature" (of each pair, k (k - 1) / 2 + l of k
# and l <= k) in the coordinates of all auxiliary parameters, aux. weight: as in
# response_log_density().
response_derivative <- function(
  family,
  what,
  eta,
  y,
  weight = NULL,
  aux = numeric()
) {
  known <- c("score", "curvature", "aux_score", "cross", "aux_curvature")
  has_aux <- length(aux) > 0
  out <- .Call(
    ffi_response_evaluate,
    response_facts(family)$place,
    match(what, known),
    as.double(eta),
    1L,
    as_double_values(y),
    if (!is.null(weight)) as.double(weight),
    if (has_aux) as.double(aux),
    has_aux
  )
  matrix(out, length(eta))
}

# Their inverse link, in the shape of eta.
response_mean <- function(family, eta) {
  facts <- response_facts(family)
  n_predictor <- if (facts$n_predictor == 1) 1 else dim(eta)[[length(dim(eta))]]
  .Call(ffi_response_mean, facts$place, eta, n_predictor)
}

# Variances of responses with these means, draws x rows (x predictors): of
# precision `weight`, or of the proportion among `weight` trials. aux: see
# aux_matrix().
response_variance <- function(family, mean, weight = NULL, aux = NULL) {
  place <- response_facts(family)$place
  n_draw <- NROW(mean)
  shape <- dim(mean)
  n_row <- if (length(shape) == 3) shape[[2]] else length(mean) / n_draw
  out <- .Call(
    ffi_response_variance,
    place,
    mean,
    n_draw,
    if (!is.null(weight)) rep_len(as.double(weight), n_row),
    aux_matrix(family, aux, n_draw)
  )
  dim(out) <- if (length(shape) == 3) shape[1:2] else shape
  out
}

# Contributions of rows to the deviance. aux: of one draw.
response_deviance <- function(family, y, mean, weight = NULL, aux = NULL) {
  .Call(
    ffi_response_deviance,
    response_facts(family)$place,
    as_double_values(y),
    as.double(mean),
    if (!is.null(weight)) rep_len(as.double(weight), NROW(y)),
    aux_matrix(family, aux, 1)
  )
}

# |y - mean| in units of what is expected, or as the root of the deviance, with
# the sign of y - mean. aux: one value of each auxiliary parameter, which is
# left out where it is a dispersion, as in stats::glm().
response_residuals <- function(
  family,
  type,
  y,
  mean,
  weight = NULL,
  aux = NULL
) {
  weight <- weight %||% 1
  aux <- if (!response_facts(family)$is_dispersion) aux
  switch(
    type,
    response = first_column(y) - mean,
    pearson = {
      of_draw <- matrix(mean, 1)
      variance <- drop(response_variance(family, of_draw, aux = aux))
      (first_column(y) - mean) * sqrt(weight / variance)
    },
    deviance = {
      deviance <- response_deviance(family, y, mean, weight, aux)
      sign(first_column(y) - mean) * sqrt(pmax(deviance, 0))
    }
  )
}
