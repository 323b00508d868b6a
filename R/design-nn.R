# Inputs and responses of networks, from a model frame.

# Inputs and response of a model frame, standardised, with the scaling.
nn_parts <- function(frame) {
  check_covariates(frame)
  check_no_offset(stats::model.offset(frame))
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (is.null(response)) {
    abort_no_response()
  }
  if (is.character(response)) {
    response <- factor(response)
  }
  likelihood <- nn_likelihood(response, name)
  design <- design_matrix(attr(frame, "terms"), frame)
  raw <- nn_inputs(design$x)
  check_has_inputs(ncol(raw))
  found <- network_response(response, likelihood, name)
  scaling <- list(
    x_center = colMeans(raw),
    x_scale = .Call(ffi_column_sds, raw),
    y_center = 0,
    y_scale = 1
  )
  # a constant column says nothing, but predictions may be asked elsewhere
  scaling$x_scale[scaling$x_scale == 0] <- 1
  if (find_response(likelihood)$has_units) {
    scaling$y_center <- mean(found$values)
    scaling$y_scale <- response_sd(found$values)
    found$values <- in_units(found$values, scaling)
  }
  list(
    x = nn_standardise(raw, scaling),
    response = found,
    likelihood = likelihood,
    scaling = scaling,
    contrasts = design$contrasts
  )
}

check_has_inputs <- function(n) {
  if (n == 0) {
    abort_input(
      "{.arg formula} must have at least one covariate.",
      argument = "formula"
    )
  }
}

check_no_offset <- function(offset) {
  if (is.null(offset)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn tall_nn} takes no {.fn offset} in {.arg formula}.",
      i = "Subtract it from a numeric response, or make it a covariate."
    ),
    argument = "formula"
  )
}

# A design matrix without its intercept.
nn_inputs <- function(x) {
  x <- x[, colnames(x) != "(Intercept)", drop = FALSE]
  storage.mode(x) <- "double"
  x
}

nn_standardise <- function(x, scaling) {
  sweep(sweep(x, 2, scaling$x_center), 2, scaling$x_scale, "/")
}

in_units <- function(y, scaling) {
  (y - scaling$y_center) / scaling$y_scale
}

nn_likelihood <- function(response, name) {
  for (likelihood in network_responses()) {
    if (find_response(likelihood)$network$suits(response)) {
      return(likelihood)
    }
  }
  expected <- "a numeric or logical vector, a factor or strings"
  abort_expected(response, expected, arg = name)
}

# list(values, levels, n_out), as response_of_networks() has it.
network_response <- function(y, likelihood, arg) {
  check_given(y, arg = arg)
  find_response(likelihood)$network$read(y, arg)
}
