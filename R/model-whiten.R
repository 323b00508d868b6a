# Models in whitened coordinates.

# The model of a fit without a kernel is no model of the parameters any more.
check_not_whitened <- function(model) {
  if (model_is_whitened(model)) {
    abort_tall(
      "unsupported",
      c(
        "This model is in the whitened coordinates of the fit that it is from,
         not in its parameters.",
        i = "Make the model again with {.code {model$label}()}. The mode is the
             fit's: {.code fit$mode}."
      ),
      argument = "model"
    )
  }
  invisible(model)
}

# The model in phi = L'(theta - theta-hat); L L' = -Hessian, or its diagonal
# when there are very many parameters, hyperparameters aside.
whiten_model <- function(model, mode, in_place) {
  is_diagonal <- model$n_dim - n_hyper(model) > setting("most_whitened")
  chol <- if (!is_diagonal) {
    mode$chol
  } else if (!is.null(mode$scale)) {
    1 / unname(mode$scale)
  } else {
    sqrt(-diag(mode$hessian))
  }
  whitening <- list(
    center = as.double(mode$estimate),
    chol = chol,
    is_diagonal = is_diagonal
  )
  frame_model(model, whitening, in_place)
}

frame_model <- function(model, whitening, in_place = TRUE) {
  pointer <- .Call(
    ffi_model_whiten,
    model$pointer,
    whitening$center,
    as.double(whitening$chol),
    whitening$is_diagonal,
    in_place
  )
  if (is.integer(pointer)) {
    abort_status(pointer)
  }
  model$pointer <- pointer
  model$whitening <- whitening
  model$cache <- new.env(parent = emptyenv())
  model
}

# Points as parameters, and in the coordinates that chains of the model move in:
# each a column, n_dim x points.
to_sampler <- function(model, theta) {
  .Call(ffi_model_to_sampler, model$pointer, as.double(theta))
}

to_parameter <- function(model, phi) {
  .Call(ffi_model_to_parameter, model$pointer, as.double(phi))
}

model_is_whitened <- function(model) {
  !is.null(model$whitening)
}
