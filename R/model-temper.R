# Gibbs posteriors: a likelihood to the power lambda.

# The model of a Gibbs posterior: its likelihood to the power lambda / N, in all
# that asks model_evaluate(), curvature() or likelihood_scale().
temper_model <- function(model, lambda) {
  if (is.null(lambda) || lambda == model$n_data) {
    return(model)
  }
  model["lambda"] <- lambda
  model$cache <- new.env(parent = emptyenv())
  temper_truth(model)
}

check_lambda <- function(lambda, model) {
  check_number(lambda, positive = TRUE, allow_null = TRUE, arg = "lambda")
  if (!is.null(lambda) && model$n_data == 0) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no observations whose loss {.arg lambda}
         could multiply.",
        i = "Leave {.arg lambda} out, or write the model for {.fn model_custom}
             with a {.arg log_lik}."
      )
    )
  }
  is_tempered <- !is.null(lambda) && lambda != model$n_data
  if (is_tempered && model$traits$has_data_free) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has a part of its likelihood that needs no
         data: {.arg lambda} does not reach it.",
        i = "Leave {.arg lambda} out."
      )
    )
  }
  lambda
}

likelihood_scale <- function(model) {
  if (is.null(model$lambda)) 1 else model$lambda / model$n_data
}

# What a model says of its exact posterior.
temper_truth <- function(model) {
  UseMethod("temper_truth")
}

#' @export
temper_truth.default <- function(model) {
  model
}

#' @export
temper_truth.tall_model_gaussian <- function(model) {
  names <- names(model$posterior_mean)
  before <- model$prior_precision
  pull <- drop(before %*% model$prior_mean)
  precision <- solve(model$posterior_covariance)
  data_pull <- drop(precision %*% model$posterior_mean) - pull
  scale <- likelihood_scale(model)
  after <- solve(scale * (precision - before) + before)
  model$posterior_mean <- stats::setNames(
    drop(after %*% (scale * data_pull + pull)),
    names
  )
  dimnames(after) <- list(names, names)
  model$posterior_covariance <- after
  model
}
