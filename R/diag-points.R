# Gradients of the log posterior at draws, kept or computed again.

# list(values, label): gradients of the log posterior at the points, one in each
# row.
point_gradients <- function(points, gradient) {
  fit <- points$fit
  if (is.null(gradient)) {
    if (is.null(fit)) {
      abort_input(
        "{.arg gradient} must be given: {.arg draws} alone do not tell the
         posterior.",
        argument = "gradient"
      )
    }
    gradient <- fit_model(fit)
  }
  if (inherits(gradient, "tall_model")) {
    check_model(gradient, arg = "gradient")
    check_coordinates(points$draws, gradient)
    gradient <- temper_model(gradient, fit$lambda)
    values <- model_gradients(gradient, points$draws, needs_finite = FALSE)
    check_finite(values, arg = "gradient")
    return(list(values = values, label = "exact"))
  }
  if (is.character(gradient)) {
    check_choice(gradient, "kept", arg = "gradient")
    if (is.null(fit)) {
      abort_expected(
        gradient,
        "a matrix or a model when `draws` is not a fit",
        arg = "gradient"
      )
    }
    label <- if (gradient_is_full(fit$gradient)) "exact" else "noisy"
    values <- kept_gradients(fit, "`gradient = NULL`")
    return(list(values = values, label = label))
  }
  check_matrix(
    gradient,
    n_row = nrow(points$draws),
    n_col = ncol(points$draws),
    arg = "gradient"
  )
  storage.mode(gradient) <- "double"
  list(values = gradient, label = "given")
}

# otherwise: the argument that asks for exact ones
kept_gradients <- function(fit, otherwise) {
  if (is.null(fit$gradients)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept no gradients.",
        i = "Run again with {.code keep = c(\"draws\", \"gradients\")}.",
        i = "Or use exact ones ({otherwise}), at the cost of a pass over the
             data for each draw."
      ),
      argument = "gradient"
    )
  }
  matrix(fit$gradients, ncol = length(recorded(fit$coordinates, fit$control)))
}

# The draws are in the parameters that the model is sampled in.
check_coordinates <- function(theta, model) {
  given <- colnames(theta)
  is_natural <- !is.null(given) &&
    identical(given, model$variables) &&
    !identical(model$variables, model$coordinates) &&
    model_has_map(model)
  if (ncol(theta) != model$n_dim || is_natural) {
    wanted <- quote_columns(utils::head(model$coordinates, 5))
    abort_input(
      c(
        "{.arg draws} must be of the {count_noun(model$n_dim, 'parameter')} that
         the model is sampled in, not of
         {count_noun(ncol(theta), 'variable')}.",
        i = if (is_natural) {
          "They are {wanted}. A fit can be given instead."
        }
      ),
      argument = "draws",
      expected = model$coordinates,
      value = given
    )
  }
}

# Exact gradients with respect to the parameters at the rows of theta.
model_gradients <- function(model, theta, needs_finite = TRUE) {
  position <- to_sampler(model, t(theta))
  gradient <- model_evaluate(
    model,
    position,
    density = FALSE,
    needs_finite = needs_finite
  )$gradient
  if (model_is_whitened(model)) {
    chol <- model$whitening$chol
    gradient <- if (model$whitening$is_diagonal) {
      chol * gradient
    } else {
      chol %*% gradient
    }
  }
  t(gradient)
}
