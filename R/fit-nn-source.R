# What predictions of a network need of its fit.

# What the network's outputs need.
nn_network <- function(source) {
  source[c(
    "widths",
    "activation",
    "likelihood",
    "scaling",
    "n_coef",
    "sigma"
  )]
}

# Standardised inputs of new rows, or of the fit's own.
nn_rows <- function(fit, newdata) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    x <- stats::model.matrix(
      fit$terms,
      fit$frame,
      contrasts.arg = fit$contrasts
    )
  } else {
    x <- frame_rows(fit, newdata)$x
  }
  nn_standardise(nn_inputs(x), fit$scaling)
}
