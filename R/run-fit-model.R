# The model of a fit: still alive, or made again from data it kept.

fit_model <- function(fit) {
  if (!is.null(fit$engine)) {
    # that is of columns, and their coefficients are no parameters of the fit
    abort_swept(fit$model, NULL, "model")
  }
  if (inherits(fit$model, "tall_model") && model_is_alive(fit$model)) {
    check_whole(fit$model, "fit$model")
    check_fits_model(fit, fit$model, "model")
    return(restore_nodes(fit, fit$model))
  }
  rebuilt <- rebuild_model(fit)
  if (is.null(rebuilt)) {
    abort_tall(
      "stale",
      c(
        "The fit has lost its model, as it does in a file.",
        i = if (inherits(fit, keep_data_classes)) {
          "A fit that was made with {.code keep_data = TRUE} can go on."
        } else {
          "Make the model again with {.code {fit$model_label}()} and give it
           as {.arg model}."
        }
      ),
      argument = "model"
    )
  }
  check_fits_model(fit, rebuilt, "data")
  rebuilt
}

# A model is the one of the fit, and not of data that took their place.
check_fits_model <- function(fit, model, component) {
  if (!identical(model$fingerprint, fit$fingerprint)) {
    abort_corrupt("`fit`", component)
  }
}

# What the intercept's prior is of: list(at, weights), NULL where that is a
# coefficient like others.
functional_of <- function(fit) {
  out <- fit$model$prior_functional
  is_whole <- is.null(out) ||
    is.list(out) && is.numeric(out$at) && is.numeric(out$weights)
  if (!is_whole) {
    abort_corrupt("`fit`", "model")
  }
  out
}

# Fits whose front end has the argument keep_data.
keep_data_classes <- c(
  "tall_glm",
  "tall_glmer",
  "tall_nn",
  "tall_ica",
  "tall_factorize",
  "tall_classes",
  "tall_dpar"
)

# Fits of front ends whose rows have a response and a design.
regression_fronts <- c(
  "tall_glm",
  "tall_glmer",
  "tall_nn",
  "tall_classes",
  "tall_dpar"
)

# All classes of a fit of a front end. class: those of its own.
whole_class <- function(class) {
  is_regression <- any(class %in% regression_fronts)
  c(class, if (is_regression) "tall_regression", "tall_fit")
}

# A fit that an earlier version saved, with the classes, the blueprint and the
# rows that it would have now.
as_of_now <- function(fit) {
  own <- setdiff(class(fit), c("tall_regression", "tall_fit"))
  class(fit) <- whole_class(own)
  if (is.null(fit$blueprint)) {
    parts <- c("family", "sigma", "storage")
    kind <- if (inherits(fit, "tall_glmer")) "groups" else "earlier"
    fit$blueprint <- structure(
      c(unclass(fit)[parts], list(priors = fit$prior_specs, centers = TRUE)),
      class = c(paste0("tall_blueprint_", kind), "tall_blueprint")
    )
  }
  if (is.null(fit$rows) && inherits(fit, "tall_regression")) {
    fit["rows"] <- list(rows_of_then(fit))
    fit[c("frame", "data")] <- NULL
  }
  fit
}

# NULL: it kept none, or passed over them.
rows_of_then <- function(fit) {
  if (!is.null(fit$frame)) {
    request <- if (inherits(fit, "tall_glmer")) {
      request_groups(fit$family, fit$bars, fit$sigma)
    }
    rows_to_keep(rows_frame(list(frame = fit$frame), request), keeps = TRUE)
  } else if (!is.null(fit$data)) {
    rows_matrix(fit$data, fit$family)
  }
}

# NULL where the fit did not keep its data.
rebuild_model <- function(fit) {
  UseMethod("rebuild_model")
}

# Regressions have a blueprint; of others methods know.
#' @export
rebuild_model.default <- function(fit) {
  if (is.null(fit$blueprint)) {
    return(NULL)
  }
  if (is_remote_fit(fit)) {
    return(rebuild_passed(fit))
  }
  if (!has_values(fit$rows)) {
    return(NULL)
  }
  if (!is.null(fit$n_differ)) {
    alike <- alike_rows(fit$rows, asks = FALSE)
    return(build_alike(fit$blueprint, alike))
  }
  restore_nodes(fit, build_model(fit$blueprint, fit$rows))
}

# fit$data: of others than regressions.
has_data <- function(fit) {
  has_values(fit$rows) || !is.null(fit$data)
}

# arg: what can be given instead of the data, or NULL.
check_has_data <- function(fit, arg = NULL) {
  if (has_data(fit)) {
    return(invisible())
  }
  if (!inherits(fit, regression_fronts)) {
    return(invisible(fit_model(fit)))
  }
  abort_tall(
    "stale",
    c(
      if (is.null(arg)) {
        "The fit did not keep its data."
      } else {
        "The fit did not keep its data: {.arg {arg}} is needed."
      },
      i = "Fit with {.code keep_data = TRUE} to keep them."
    ),
    argument = arg
  )
}

# For what is of a posterior alone: robust_draws() moved the draws of the fit.
check_not_robust <- function(fit, f) {
  if (inherits(fit, "tall_fit") && !is.null(fit$robust)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {f}} is of the draws of a posterior, and those of the fit are
         robust: {.fn robust_draws} has moved them.",
        i = "Give it the fit that {.fn robust_draws} was given."
      ),
      argument = "fit"
    )
  }
}

# ---- rows that are passed over ----------------------------------------------

# The model of a fit whose rows were passed over: from sums of a Gaussian
# response, else with all rows, in memory. NULL: the fit kept no source.
rebuild_passed <- function(fit) {
  if (!is.null(fit$rows$products)) {
    model <- revive_remote(fit)
    parts <- sums_parts(model, fit$control$cores)
    model <- sums_model(model, parts$sums, parts$fit)
  } else if (has_values(fit$rows)) {
    check_rebuilt_size(fit)
    model <- build_model(fit$blueprint, fit$rows)
  } else {
    return(NULL)
  }
  model$fingerprint <- fit$fingerprint
  model
}

check_rebuilt_size <- function(fit) {
  size <- 8 * fit$n_data * (fit$n_coef + length(fit$columns) + 2)
  if (size <= setting("rebuilt_bytes")) {
    return(invisible())
  }
  shown <- format(structure(size, class = "object_size"), units = "auto")
  abort_tall(
    "unsupported",
    c(
      "Gradients at the draws need the rows of the fit in memory, and they take
       {shown}.",
      i = "Write the design matrix to a file for {.fn tall_store}, make the
           model of it by {.fn model_glm} and give that as {.arg model} or
           {.arg gradient}."
    ),
    argument = "model",
    value = size,
    expected = setting("rebuilt_bytes")
  )
}
