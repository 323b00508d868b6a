# What predictions of a network need of its fit.

# What predictions need of a fit, and how rows of new data are read: elements of
# the fit, gathered before it is there for the monitors.
nn_source <- function(made, formula, model, parts, sigma, data) {
  terms <- attr(made$frame, "terms")
  list(
    formula = formula,
    terms = terms,
    xlevels = stats::.getXlevels(terms, made$frame),
    contrasts = parts$contrasts,
    response_levels = model$response_levels,
    columns = data_columns(terms, made$call, data, environment(formula)),
    widths = model$widths,
    activation = model$activation,
    likelihood = model$likelihood,
    scaling = parts$scaling,
    n_coef = length(model$variables) - model$traits$n_aux,
    sigma = if (is.numeric(sigma)) sigma
  )
}

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
