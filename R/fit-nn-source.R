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
