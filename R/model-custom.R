# model_custom(): a log likelihood and a prior written in R.
# src/ffi/custom-inside.h calls what custom_engine() makes of them; here are the
# checks, the words for what goes wrong, and where gradients come from.

#' A model of your own
#'
#' The posterior of parameters under a log likelihood and a prior that are
#' functions of R. Everything works on it that works on the models of the
#' package.
#'
#' @param log_lik (function) `log_lik(theta, batch)`: the log likelihood of each
#'   row of `batch`, a numeric vector. `theta` is a named list of arrays as in
#'   `init`, `batch` some rows of `data`, in its form.
#' @param log_prior (function) `log_prior(theta)`: the log density of the prior,
#'   one number, up to a constant, on the natural scale: Jacobians of
#'   `transform` are added by the package. `function(theta) 0` is flat.
#' @param data (data frame, matrix, vector or named list) The data. The first
#'   dimension of it, of each column or of each element of the list, is the
#'   observation.
#' @param init (named list of numeric arrays) A value of the parameters, on the
#'   natural scale: it gives their names and shapes, and is where the search for
#'   the mode starts.
#' @param grad_log_lik (function or `NULL`) `grad_log_lik(theta, batch)`: the
#'   derivatives of the log likelihood of each row in the natural parameters, an
#'   n x d matrix (columns in the order of `unlist(init)`), or a list as `init`
#'   whose arrays have the rows as an additional first dimension. `NULL`:
#'   automatic differentiation, see below.
#' @param grad_log_prior (function or `NULL`) `grad_log_prior(theta)`: the
#'   gradient of `log_prior`, a vector of d numbers or a list as `init`. `NULL`:
#'   as above.
#' @param transform (named list of strings, or `NULL`) The constrained
#'   parameters: `"positive"`, `"unit"` (between 0 and 1) or `"simplex"`
#'   (positive, of sum 1). All others are unconstrained.
#' @param check (flag) Compare gradients with finite differences once, and look
#'   at the log likelihood of every row at `init`.
#' @param autodiff (flag) Differentiate automatically what has no gradient, if
#'   the package \pkg{RTMB} (2.0 or later) is installed. Otherwise: central
#'   differences.
#'
#' @details What is sampled are unconstrained coordinates: \eqn{\log \sigma}{log
#' sigma} for `"positive"`, the logit for `"unit"`, and for `"simplex"` the
#' \eqn{K - 1} logits of the shares broken off a stick one after the other, as
#' in Stan; with the Jacobian in the prior. Draws are on the natural scale,
#' named as \pkg{posterior} does (`sigma`, `beta[1]`, `B[1,2]`); those of the
#' coordinates (`log_sigma`, `logit_p`, `stick_w[1]`) are kept beside them.
#'
#' Automatic differentiation records what `log_lik` does with its arguments on a
#' tape of \pkg{RTMB}, once for each size of minibatch (sizes are rounded up by
#' at most an eighth, with rows of weight 0); from then on no R code runs for a
#' gradient, which is usually faster than one written in R. The function is
#' called as ever for values. Copies of it, and of the functions of yours that
#' it calls, find \pkg{RTMB}'s versions of [dnorm()], [plogis()], [ifelse()],
#' [apply()] and others: \pkg{RTMB} need not be attached. What cannot be
#' recorded are `if` and `ifelse()` on parameters, and functions that \pkg{RTMB}
#' does not know, such as [digamma()].
#'
#' Tapes read numbers, logicals and factors: a parameter may be picked by them,
#' as in `theta$alpha[batch$group]`. A model that uses its data in another way
#' (strings; a column that is compared, as in `ifelse(batch$x > 0, ...)`) is
#' taped again for each minibatch, which costs about a millisecond; `print()`
#' says so. Often a column that is made beforehand avoids it. Gradients of
#' single rows, for [gradient_saga()] or weights by gradients, come from a tape
#' of one row.
#'
#' Central differences cost two calls of `log_lik` for each coordinate and
#' gradient. The Hessian, for up to 100 coordinates, is found by central
#' differences of the gradient: 2 d + 1 passes over the data.
#'
#' So that a minibatch comes from few places of memory, matrices are copied
#' once, row by row, and vectors of doubles, such as columns of a data frame,
#' side by side.
#'
#' R runs in one thread, so chains run one after another, or side by side on a
#' plan of the package \pkg{future}: see *Chains on workers* in [sg_sample()].
#' An error in one of the functions stops its chain and keeps the draws until
#' then; once it is mended, [sg_resume()] lets the chain go on. They must not
#' draw random numbers.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @seealso [predict()][predict.tall_fit] with a function of your own,
#'   [loo()][loo-tall_glm]; [model_native()] for models in C.
#' @section Conditions: `tall_error_input` if a function fails at `init`,
#' returns something of the wrong length or type, cannot be differentiated, or a
#' gradient disagrees with finite differences; if parts of `data` differ in
#' their first dimension, `init` has no names or a value outside the range of
#' its `transform`. `tall_warning_gradient` if gradients come from central
#' differences. Later a function that fails is a `tall_error_callback`, or in a
#' run a `tall_warning_callback` with the iteration and the place. A gradient
#' that is `NA` or `NaN` stops its chain with a `tall_warning_nonfinite` that
#' has such an error as its parent; Metropolis kernels reject proposals where a
#' density is, with a `tall_warning_callback`. `-Inf` is a density of zero.
#' @examples
#' y <- rnorm(500, 3, 2)
#' model <- model_custom(
#'   log_lik = function(theta, batch) {
#'     dnorm(batch$y, theta$mu, theta$sigma, log = TRUE)
#'   },
#'   log_prior = function(theta) {
#'     dnorm(theta$mu, 0, 10, log = TRUE) - theta$sigma
#'   },
#'   data = data.frame(y = y),
#'   init = list(mu = 0, sigma = 1),
#'   grad_log_lik = function(theta, batch) {
#'     z <- (batch$y - theta$mu) / theta$sigma
#'     list(mu = z / theta$sigma, sigma = (z^2 - 1) / theta$sigma)
#'   },
#'   grad_log_prior = function(theta) list(mu = -theta$mu / 100, sigma = -1),
#'   transform = list(sigma = "positive")
#' )
#' model
#' fit <- sg_sample(
#'   model,
#'   kernel_sgld(0.005),
#'   subsample = subsample_uniform(50),
#'   chains = 2,
#'   seed = 1
#' )
#' fit
#' @export
model_custom <- function(
  log_lik,
  log_prior,
  data,
  init,
  grad_log_lik = NULL,
  grad_log_prior = NULL,
  transform = NULL,
  check = TRUE,
  autodiff = TRUE
) {
  check_function(log_lik, c("theta", "batch"))
  check_function(log_prior, "theta")
  check_function(grad_log_lik, c("theta", "batch"), allow_null = TRUE)
  check_function(grad_log_prior, "theta", allow_null = TRUE)
  check <- check_flag(check)
  autodiff <- check_flag(autodiff)
  data <- custom_data(data)
  init <- check_custom_init(init)
  kind <- check_transform(transform, init)
  functions <- list(
    log_lik = log_lik,
    log_prior = log_prior,
    grad_log_lik = grad_log_lik,
    grad_log_prior = grad_log_prior
  )
  plan <- plan_custom(functions, data$value, data$n, init, kind, autodiff)
  model <- build_custom(
    functions,
    data,
    init,
    kind,
    plan,
    building = error_frame()
  )
  check_custom(model, check)
  warn_differences(model, autodiff)
  model$state$building <- NULL
  model
}

# The model of arguments that have been checked. A worker makes it again from
# what custom_parts() takes out of it, with NULL for `building`: nobody is
# building it there, so that failures of its functions are no input errors.
# data: list(value, n, weights), the last of rows that stand for several, see
# model-merge.R, or NULL.
build_custom <- function(
  functions,
  data,
  init,
  kind,
  plan,
  hash = custom_hash(data$value, init, kind, functions),
  building = NULL
) {
  state <- new.env(parent = emptyenv())
  state$failed <- FALSE
  state$building <- building
  state$errors <- list()
  state$undefined <- list()
  engine <- custom_engine(functions, init, state)
  tapes <- autodiff_engine(
    functions,
    data$value,
    data$n,
    init,
    kind,
    plan,
    state
  )
  engine[names(tapes)] <- tapes
  free <- unconstrain(init, kind)
  pointer <- .Call(
    ffi_model_custom,
    c(
      engine,
      list(
        state = state,
        data = data$value,
        init = init,
        n_data = as.double(data$n),
        kind = as.double(match(kind, custom_kinds) - 1),
        n_free = as.double(lengths(free)),
        hash = hash,
        weights = data$weights,
        n_byte = as.double(utils::object.size(data$value))
      )
    )
  )
  wrap_model(
    pointer,
    "custom",
    variables = custom_names(init),
    coordinates = custom_coordinates(init, kind),
    variable_of = custom_variable_of(init, kind),
    init = init,
    kind = kind,
    functions = functions,
    plan = plan,
    state = state,
    traits = model_traits(
      start = unlist(free, use.names = FALSE),
      mode_method = "lbfgs",
      curvature_passes = 2 * length(unlist(free)) + 1,
      is_users = TRUE,
      runs_r = TRUE
    ),
    label = "model_custom"
  )
}

# The arguments of build_custom(), to be sent elsewhere.
custom_parts <- function(model) {
  spec <- .Call(ffi_custom_spec, model$pointer)
  list(
    functions = model$functions,
    data = list(value = spec$data, n = spec$n_data, weights = spec$weights),
    init = spec$init,
    kind = model$kind,
    plan = model$plan,
    hash = spec$hash
  )
}

custom_kinds <- c("real", "positive", "unit", "simplex")

# ---- arguments ---------------------------------------------------------------

# A function that takes these arguments by position.
check_function <- function(x, takes, allow_null = FALSE, arg = caller_arg(x)) {
  check_given(x, arg = arg)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  expected <- paste0("a function of ", paste(takes, collapse = " and "))
  if (!is.function(x)) {
    abort_expected(x, paste0(expected, or_null(allow_null)), arg = arg)
  }
  known <- names(formals(args(x)))
  if (!is.null(known) && !"..." %in% known && length(known) < length(takes)) {
    abort_expected(
      x,
      expected,
      seen = paste("a function of", count_noun(length(known), "argument")),
      arg = arg
    )
  }
  invisible(x)
}

# list(value, n): the data as batches are cut from them, and the observations.
custom_data <- function(data, arg = "data") {
  check_given(data, arg = arg)
  if (is.data.frame(data)) {
    data <- as.data.frame(data)
    names <- names(data)
    value <- structure(
      lapply(names, function(name) {
        custom_part(data[[name]], paste0(arg, "$", name))
      }),
      names = names,
      class = "data.frame",
      row.names = .set_row_names(nrow(data))
    )
    n <- nrow(data)
  } else if (is.list(data) && !is.object(data)) {
    names <- names(data)
    if (length(data) == 0 || is.null(names) || any(names == "")) {
      abort_input(
        "{.arg {arg}} must have a name for each element of the list.",
        argument = arg
      )
    }
    value <- lapply(stats::setNames(names, names), function(name) {
      custom_part(data[[name]], paste0(arg, "$", name))
    })
    sizes <- vapply(data, NROW, 0)
    n <- sizes[[1]]
    other <- which(sizes != n)
    if (length(other) > 0) {
      at <- other[[1]]
      abort_input(
        c(
          "The parts of {.arg {arg}} must have the same first dimension, the
           observations.",
          x = "{.code {names[[1]]}} has {rows_text(data[[1]])},
               {.code {names[[at]]}} has {rows_text(data[[at]])}."
        ),
        argument = arg,
        expected = n,
        value = sizes[[at]]
      )
    }
  } else {
    value <- custom_part(data, arg)
    n <- NROW(data)
  }
  if (n == 0) {
    abort_expected(data, "at least one observation", seen = "none", arg = arg)
  }
  list(value = value, n = n)
}

# As C takes rows from it: without names of rows, which batches would have to
# copy, and with the observation as the last dimension, so that a row is one
# stretch of memory.
custom_part <- function(x, arg) {
  ok <- is.atomic(x) && typeof(x) %in% c(
    "double",
    "integer",
    "logical",
    "character"
  )
  if (!ok) {
    abort_expected(x, "numbers, logicals, strings or a factor", arg = arg)
  }
  k <- length(dim(x))
  if (k == 0) {
    names(x) <- NULL
    return(x)
  }
  out <- .Call(ffi_batch_turn, x)
  names <- unname(dimnames(x))[-1]
  if (length(names) > 0 && !all(vapply(names, is.null, TRUE))) {
    dimnames(out) <- c(names, list(NULL))
  }
  out
}

check_custom_init <- function(init) {
  check_given(init, arg = "init")
  if (!is.list(init) || is.object(init) || length(init) == 0) {
    abort_expected(
      init,
      "a named list of numeric arrays, one for each parameter",
      arg = "init"
    )
  }
  names <- names(init)
  if (is.null(names) || anyNA(names) || any(names == "")) {
    abort_input(
      c(
        "{.arg init} must have a name for each parameter.",
        i = "For instance {.code list(beta = numeric(3), sigma = 1)}."
      ),
      argument = "init"
    )
  }
  if (anyDuplicated(names)) {
    abort_input(
      "{.arg init} has {.code {names[duplicated(names)][[1]]}} twice.",
      argument = "init"
    )
  }
  for (name in names) {
    value <- init[[name]]
    arg <- paste0("init$", name)
    if (!is_plain_numeric(value)) {
      abort_expected(value, "a numeric array", arg = arg)
    }
    check_size(value, arg = arg)
    check_finite(value, arg = arg)
    storage.mode(init[[name]]) <- "double"
  }
  init
}

# The kind of each parameter, in the order of init.
check_transform <- function(transform, init) {
  kind <- stats::setNames(rep("real", length(init)), names(init))
  if (is.null(transform)) {
    return(kind)
  }
  given <- names(transform)
  is_list <- is.character(transform) ||
    (is.list(transform) && !is.object(transform))
  is_named <- !is.null(given) && all(given != "")
  if (!is_list || (length(transform) > 0 && !is_named)) {
    abort_expected(
      transform,
      "a named list such as list(sigma = \"positive\")",
      arg = "transform"
    )
  }
  check_known(given, names(init), "parameter", arg = "transform")
  for (name in given) {
    arg <- paste0("transform$", name)
    kind[[name]] <-
      check_choice(transform[[name]], custom_kinds[-1], arg = arg)
    check_in_range(init[[name]], kind[[name]], paste0("init$", name))
  }
  kind
}

check_in_range <- function(value, kind, arg) {
  if (kind == "simplex") {
    ok <- length(value) > 1 && all(value > 0) && abs(sum(value) - 1) < 1e-8
    if (!ok) {
      abort_expected(
        value,
        "two or more positive numbers of sum 1 for the transform \"simplex\"",
        seen = values_text(value),
        arg = arg
      )
    }
    return(invisible())
  }
  bad <- which(value <= 0 | (kind == "unit" & value >= 1))
  if (length(bad) > 0) {
    must <- if (kind == "unit") "lie between 0 and 1" else "be positive"
    must <- paste0(must, " for the transform \"", kind, "\"")
    abort_value(value, bad[[1]], must, arg = arg)
  }
}

# ---- what is printed ---------------------------------------------------------

#' @export
print.tall_model_custom <- function(x, ...) {
  check_no_dots(...)
  NextMethod()
  constrained <- x$kind[x$kind != "real"]
  if (length(constrained) > 0) {
    cat(
      "  ",
      paste(names(constrained), unname(constrained), collapse = ", "),
      "\n",
      sep = ""
    )
  }
  cat("  gradients: ", custom_gradient_text(x), "\n", sep = "")
  invisible(x)
}

custom_gradient_text <- function(model) {
  switch(
    model$plan$log_lik,
    "function" = "grad_log_lik()",
    tape = "automatic differentiation",
    retape = paste0(
      "automatic differentiation, taped again for each minibatch (",
      model$plan$constants,
      ")"
    ),
    differences = "central differences"
  )
}
