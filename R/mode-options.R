# How a mode is searched for: by which method, how long, with what settings.

# settings: of a stochastic method, see stochastic_settings(). least_step: of
# Newton's method. is_near: it starts near the mode.
search_options <- function(
  model,
  method = mode_method(model),
  max_iter = if (mode_is_stochastic(method)) 5000 else 100,
  settings = if (mode_is_stochastic(method)) {
    stochastic_settings(model, method, decay = max_iter / 10)
  },
  least_step = newton_least_step,
  is_near = FALSE
) {
  stopifnot(mode_is_stochastic(method) == !is.null(settings))
  options <- list(
    method = method,
    max_iter = max_iter,
    settings = settings,
    least_step = least_step,
    is_near = is_near
  )
  structure(options, class = "tall_search_options")
}

# What a search is of: of hyperparameters there is no mode, see scaled_mode().
searched_model <- function(model) {
  if (has_hyper(model)) held_model(model, model$mixture$start) else model
}

# What "auto" stands for.
mode_method <- function(model, method = "auto") {
  model <- searched_model(model)
  if (method != "auto") {
    method
  } else if (!is.null(model$traits$mode_method)) {
    model$traits$mode_method
  } else if (model_info(model)$has_curvature) {
    "newton"
  } else {
    "lbfgs"
  }
}

mode_is_stochastic <- function(method) {
  method %in% c("adam", "sgd")
}

# Those of mode_stochastic(), checked; see find_mode().
stochastic_settings <- function(
  model,
  method,
  batch_size = 500,
  learning_rate = NULL,
  decay = NULL,
  beta = c(0.9, 0.999)
) {
  learning_rate <- check_number(
    learning_rate,
    positive = TRUE,
    allow_null = TRUE
  )
  list(
    batch_size = check_batch_size(batch_size, "batch_size"),
    learning_rate = learning_rate %||%
      if (method == "adam") 0.01 else 0.1 / model$n_data,
    decay = check_number(decay, positive = TRUE, allow_null = TRUE),
    beta = check_beta(beta)
  )
}
