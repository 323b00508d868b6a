# Models: data, likelihood and prior behind an external pointer. One constructor
# for each member of src/models/registry.c.
#
# `cache` remembers what is expensive to find and depends on the model alone
# (its mode); it is an environment, so copies of the R object share it. `store`:
# where the core keeps rows for random access, a type of src/data/registry.c,
# and whether rows in it must stay as they are.
new_model <- function(
  name,
  params,
  variables,
  ...,
  traits = model_traits(),
  label,
  store = list(type = "dense", read_only = FALSE)
) {
  pointer <- .Call(ffi_model_create, name, params, store)
  if (is.integer(pointer) && status_name(pointer) == "unsupported") {
    stays <- if (store$read_only) "read-only " else ""
    abort_tall(
      "unsupported",
      "{.code {label}()} cannot keep its rows in a {stays}store of type
       {.val {store$type}}."
    )
  }
  wrap_model(
    pointer,
    name,
    variables,
    ...,
    storage = store$storage,
    traits = traits,
    label = label
  )
}

# What a door returned, a pointer or a status, as a model.
wrap_model <- function(pointer, name, variables, ..., traits, label) {
  if (is.integer(pointer)) {
    abort_status(pointer)
  }
  model <- structure(
    list(
      name = name,
      label = label,
      pointer = pointer,
      variables = variables,
      ...,
      start = traits$start,
      traits = traits,
      cache = new.env(parent = emptyenv())
    ),
    class = c(paste0("tall_model_", name), "tall_model")
  )
  info <- model_info(model)
  if (is.null(model$coordinates)) {
    model$coordinates <- variables
  }
  model$n_data <- info$n_data
  model$n_dim <- info$n_dim
  model$fingerprint <- info$fingerprint
  model
}

# Rows that the model is of, where alike ones count as one those that they are.
n_all_rows <- function(model) {
  model$n_all %||% model$n_data
}

# Flags and sizes that the core knows.
model_info <- function(model) {
  .Call(ffi_model_info, model$pointer)
}

# Are its variables, which draws are of, other numbers than its coordinates, the
# parameters that chains move? Names do not tell: they may be the same of both.
model_has_map <- function(model) {
  model_info(model)$has_map
}

# Variables (n_natural x K) at the columns of theta, parameters.
model_variables <- function(model, theta) {
  .Call(ffi_model_to_variables, model$pointer, as.double(theta))
}

model_is_alive <- function(model) {
  isTRUE(.Call(ffi_model_is_alive, model$pointer))
}

model_is_unloaded <- function(model) {
  is.na(.Call(ffi_model_is_alive, model$pointer))
}

# A model whose data are there.
check_model <- function(model, arg = "model", may_sweep = FALSE) {
  check_spec(model, "tall_model", "model_*()", arg = arg)
  if (!may_sweep) {
    check_not_swept(model, arg)
  }
  if (model_is_unloaded(model)) {
    abort_tall(
      "stale",
      c(
        "{.arg {arg}} has lost its compiled functions.",
        x = "Their library was unloaded, or loaded again.",
        i = "Make it again with {.code {model$label}()}."
      ),
      argument = arg
    )
  }
  if (!model_is_alive(model)) {
    abort_tall(
      "stale",
      c(
        "{.arg {arg}} has lost its data.",
        x = "A model cannot be saved: its data live outside R's memory.",
        i = "Make it again with {.code {model$label}()}."
      ),
      argument = arg
    )
  }
  invisible(model)
}

# Of effects that are sampled with them, parameters alone have no density that
# anything but sweeps could be made of.
check_not_swept <- function(model, arg = "model") {
  if (isTRUE(model$traits$is_swept)) {
    abort_swept(model, NULL, arg)
  }
}

# used: a constructor that was given, or NULL.
abort_swept <- function(model, used, arg) {
  abort_tall(
    "unsupported",
    c(
      if (is.null(used)) {
        "{.code {model$label}()} has no log posterior of its parameters alone:
         its effects are sampled with them, by {.fn kernel_gibbs}."
      } else {
        "{.code {model$label}()} is sampled by {.fn kernel_gibbs}, which draws
         its effects, and not with {.code {used}()}."
      },
      i = if (!is.null(used)) "Leave {.arg {arg}} out.",
      i = "{.fn model_groups} integrates the effects of one factor out, for
           anything else."
    ),
    argument = arg
  )
}

# For weights that are made of it.
check_has_hessian <- function(model) {
  if (!model_info(model)$has_curvature) {
    check_not_whitened(model)
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no Hessian, which these weights need.",
        x = why_no_hessian(model),
        i = "Use weights of type {.val gradient}."
      ),
      argument = "weights"
    )
  }
}

# Of models that could have one; NULL: of others.
why_no_hessian <- function(model) {
  info <- model_info(model)
  if (!info$has_curvature && info$has_diagonal) {
    paste(
      "It is not made of a sparse design with more than",
      format_count(setting("most_whitened")),
      "columns."
    )
  }
}

# Models of which no minibatch can be drawn.
model_has_rows <- function(model) {
  model$n_data > 0
}

# Does it add noise to the gradients that drive a chain?
model_is_noisy <- function(model) {
  model$traits$is_noisy
}

# Log density (K) and gradient (n_dim x K) at the columns of theta. Without
# `density`, which costs a third of it, the former is not that of the
# likelihood. Where the model says that a value is not finite, there is an
# error, or NaN for all values of that point where `needs_finite` is FALSE.
model_evaluate <- function(
  model,
  theta,
  parts = c("posterior", "likelihood", "prior"),
  index = NULL,
  weight = 1,
  density = TRUE,
  needs_finite = TRUE
) {
  check_not_swept(model)
  code <- c(likelihood = 1L, prior = 2L, posterior = 3L)[[match.arg(parts)]]
  weight <- weight * likelihood_scale(model)
  out <- .Call(
    ffi_model_gradient,
    model$pointer,
    as.double(theta),
    if (!is.null(index)) as.double(index),
    as.double(weight),
    code + if (density) 0L else 4L
  )
  pass_interrupt(out$status)
  if (needs_finite || status_name(out$status) != "nonfinite") {
    abort_status(out$status)
  }
  out[c("log_density", "gradient")]
}

# log p(y_i | theta) of the rows (NULL: all), length(rows) x K, at the columns
# of theta, sampler coordinates.
row_log_lik <- function(model, theta, rows = NULL) {
  out <- .Call(
    ffi_model_log_lik,
    model$pointer,
    as.double(theta),
    if (!is.null(rows)) as.double(rows)
  )
  if (is.integer(out)) {
    abort_status(out)
  }
  out
}

#' @export
print.tall_model <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_model> ", x$label, "()", sep = "")
  if (!is.null(x$family)) {
    cat(": ", x$family$name, " (", x$family$link, ")", sep = "")
  }
  if (!is.null(x$title)) {
    cat(": ", x$title, sep = "")
  }
  cat("\n")
  cat(
    "  ",
    count_noun(x$n_data, "observation"),
    ", ",
    count_noun(x$n_dim, "parameter"),
    "\n",
    sep = ""
  )
  if (model_is_unloaded(x)) {
    cat("  its compiled functions are lost (unloaded)\n")
  } else if (!model_is_alive(x)) {
    cat("  its data are lost (read back from a file)\n")
  } else {
    bytes <- structure(model_info(x)$memory, class = "object_size")
    cat("  ", format(bytes, units = "auto"), " of data\n", sep = "")
  }
  invisible(x)
}

#' @importFrom stats nobs
#' @export
nobs.tall_model <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  object$n_data
}

# What R remembers of a model that is alive is what the core knows of it.
#' @export
check_whole.tall_model <- function(x, arg) {
  model <- x
  # one that is not is told as what it is, see check_model()
  if (!model_is_alive(model)) {
    return(invisible())
  }
  info <- model_info(model)
  prior <- model$prior
  is_prior <- function(name) {
    is.numeric(prior[[name]]) && length(prior[[name]]) == info$n_dim
  }
  is_whole <- list(
    # of rows that are passed over the model has but some
    n_data = identical(model$n_data, info$n_data) || !is.null(model$remote),
    n_dim = identical(model$n_dim, info$n_dim),
    label = rlang::is_string(model$label),
    variables = is.character(model$variables) &&
      length(model$variables) == info$n_natural,
    coordinates = is.character(model$coordinates) &&
      length(model$coordinates) == info$n_dim,
    lambda = is.null(model$lambda) ||
      (is_number(model$lambda) && isTRUE(model$lambda > 0)),
    family = is.null(model$family) || is_family_record(model$family),
    cache = is.environment(model$cache),
    traits = are_traits(model$traits, info$n_dim),
    prior = is.null(prior) || is.list(prior) && (is.null(prior$kind) ||
      all(vapply(c("kind", "location", "scale"), is_prior, TRUE)))
  )
  bad <- names(is_whole)[!unlist(is_whole)]
  if (length(bad) > 0) {
    abort_corrupt(paste0("`", arg, "`"), bad)
  }
}

is_family_record <- function(x) {
  is.list(x) && rlang::is_string(x$name) && rlang::is_string(x$link)
}
