# model_network(): fully connected networks, and what tall_nn() shares with it.

# As in enum tb_activation.
network_activations <- c(tanh = 0, relu = 1, softplus = 2)

# TB_LAYERS_MOST, less the layer of the outputs
network_most_hidden <- 31

#' Bayesian neural networks
#'
#' The posterior of the weights of a fully connected network, from a matrix of
#' inputs. [tall_nn()] builds one from a formula, standardises, trains and
#' samples.
#'
#' @param x (numeric matrix, n_data x n_input) The inputs, used as they are:
#'   bring them to a common scale before. `x` is copied once.
#' @param y (vector of n_data values) The response: any number (`"gaussian"`), 0
#'   or 1, or logical (`"bernoulli"`), a factor, or whole numbers from 1 to the
#'   number of classes (`"categorical"`).
#' @param layers (whole numbers, or `NULL`) Widths of the hidden layers, from
#'   the inputs on; `NULL`: none, a linear predictor.
#' @param activation (string) \eqn{\phi}{phi} of the hidden layers: `"tanh"`,
#'   `"relu"`, whose derivative at 0 is taken as 0, or `"softplus"`, \eqn{\log(1
#'   + e^z)}.
#' @param likelihood (string) `"gaussian"`, `"bernoulli"` or `"categorical"`.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of weights and
#'   biases; `NULL`: flat. With `autoscale = TRUE` the scale of a weight is
#'   divided by the root of the number of inputs to its layer, so that what the
#'   prior says of the function does not depend on the widths (Neal, 1996). A
#'   vector of scales has a value for each parameter.
#' @param sigma (positive number or `"sampled"`) The standard deviation of the
#'   noise of a `"gaussian"` response: known, or a parameter, sampled as its
#'   logarithm.
#' @param prior_aux (`tall_prior` or `NULL`) The prior of a sampled `sigma`:
#'   [prior_exponential()] or [prior_flat()]; `NULL`: flat.
#' @param storage (string) How inputs are kept: `"double"` or, in half the
#'   memory, `"float"`; see [model_glm()].
#'
#' @details With \eqn{a_0 = x_i}, \eqn{a_l = \phi(W_l a_{l-1} + b_l)}{a_l =
#'   phi(W_l a_(l-1) + b_l)} and \eqn{f = W_L a_{L-1} + b_L}{f = W_L a_(L-1) +
#'   b_L}, the response is normal around \eqn{f}, one with probability \eqn{1 /
#'   (1 + e^{-f})}, or of class \eqn{k} with probability \eqn{e^{f_k} / \sum_j
#'   e^{f_j}}{exp(f_k) / sum_j exp(f_j)} (an output for each class; the prior
#'   makes them identifiable).
#'
#' The parameters are called `layer1.weight[3,2]` (of the third unit, for the
#' second input) and `layer1.bias[3]`; `sigma` is the last variable where it is
#' sampled. Gradients come by backpropagation, a block of rows at a time,
#' through the BLAS R uses. [gradient_cv()] evaluates the network twice, at
#' \eqn{\theta} and at the reference; [gradient_saga()] stores n_data x n_dim
#' numbers. Weights of type `"gradient"` are the only ones of
#' [subsampling_weights()].
#'
#' The posterior of a network has many modes, and zero is a saddle point:
#' [find_mode()] starts at random weights, drawn with R's generator from
#' \eqn{N(0, 1 / n_{l-1})}{N(0, 1 / n_(l-1))} (twice that variance with
#' `"relu"`), and uses `"adam"` unless told otherwise. Where the weights can fit
#' every response, the density rises without end as a sampled `sigma` falls to
#' 0: a search then ends at a `sigma` far too small, and chains that start there
#' stay. Start them at the `sigma` of rows held out, as [tall_nn()] does, or
#' larger.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions: `tall_error_input` names the argument and value at
#'   fault: a layer of width 0, a response that does not fit the likelihood,
#'   missing or infinite values.
#' @references
#' Neal (1996). *Bayesian Learning for Neural Networks*. Springer.
#'
#' Bieringer, Kasieczka, Steffen & Trabs (2023). AdamMCMC: combining Metropolis
#' adjusted Langevin with momentum-based optimization. arXiv:2312.14027.
#' @seealso [tall_nn()]
#' @examples
#' x <- cbind(x = seq(-2, 2, length.out = 200))
#' y <- sin(2 * x[, 1]) + rnorm(200, sd = 0.1)
#' model <- model_network(x, y, layers = 10)
#' model
#' mode <- find_mode(model, max_iter = 500)
#' fit <- sg_sample(
#'   model,
#'   kernel_mala(1e-5, adapt = TRUE),
#'   iter = 200,
#'   chains = 1,
#'   init = mode$estimate,
#'   seed = 1
#' )
#' @export
model_network <- function(
  x,
  y,
  layers = c(50, 50),
  activation = c("tanh", "relu", "softplus"),
  likelihood = "gaussian",
  prior = prior_normal(0, 2, autoscale = TRUE),
  sigma = "sampled",
  prior_aux = prior_exponential(autoscale = TRUE),
  storage = c("double", "float")
) {
  check_matrix(x, most = most_of_data)
  prior <- as_prior(prior)
  prior_aux <- as_prior(prior_aux)
  likelihood <- check_choice(likelihood, network_responses())
  activation <- check_choice(activation, names(network_activations))
  response <- network_response(y, likelihood, "y")
  check_same_rows(x, y)
  priors <- list(prior = prior, prior_aux = prior_aux)
  blueprint <- blueprint_network(layers, activation, priors, sigma, storage)
  rows <- rows_memory(
    as_double_matrix(x),
    response$values,
    levels = response$levels,
    n_out = response$n_out,
    likelihood = likelihood
  )
  build_model(blueprint, rows)
}

# Rows say which likelihood is theirs, how many outputs it takes, and, where
# they are in standard units, how these are scaled.
#' @export
build_model.tall_blueprint_network <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  x <- rows$x
  likelihood <- rows$likelihood
  activation <- blueprint$activation
  unit <- rows$scaling$y_scale %||% 1
  arg <- blueprint$arg_hidden
  layers <- check_layers(blueprint$hidden, arg)
  sigma <- check_sigma(blueprint$sigma)
  sigma <- if (!is.null(sigma)) sigma / unit
  store <- store_of(blueprint$storage, x)
  entry <- find_response(likelihood)
  family <- new_family(entry)
  facts <- response_facts(family)
  samples_aux <- length(facts$aux) > 0 && is.null(sigma)
  # files have a column of ones after the inputs
  widths <- c(ncol(x) - is_store(x), layers, rows$n_out)
  n_weight <- sum((widths[-length(widths)] + 1) * widths[-1])
  check_n_dim(n_weight, layers, arg = arg)
  names <- network_names(widths)
  response_sd <- if (entry$has_units) response_sd(rows$y) else 1
  resolved <- prior_resolve(
    blueprint$priors$prior,
    names = names,
    column_sd = sqrt(network_fan_in(widths))
  )
  if (samples_aux) {
    aux <- scale_aux(blueprint$priors$prior_aux, response_sd)
    resolved <- append_aux(resolved, list(aux))
  }
  new_model(
    "network",
    list(
      x = if (!is_store(x)) x,
      y = rows$y,
      widths = as.double(widths),
      activation = network_activations[[activation]],
      response = facts$place,
      aux = if (length(facts$aux) > 0) sigma %||% NA_real_,
      aux_unit = unit,
      prior_kind = as.double(resolved$kind),
      prior_location = resolved$location,
      prior_scale = resolved$scale,
      prior_shape = resolved$shape
    ),
    variables = c(names, if (samples_aux) facts$aux),
    coordinates = c(names, if (samples_aux) facts$coordinate),
    prior = resolved,
    widths = widths,
    activation = activation,
    likelihood = likelihood,
    family = family[c("name", "link")],
    response_levels = rows$levels,
    sigma = sigma,
    traits = model_traits(
      start = random_start(
        widths,
        activation,
        if (samples_aux) response_sd
      ),
      mode_method = "adam",
      n_aux = as.double(samples_aux)
    ),
    label = "model_network",
    store = store
  )
}

# With the autoscale of the exponential prior done: that of weights is another.
scale_aux <- function(prior_aux, response_sd) {
  if (isTRUE(prior_aux$autoscale)) {
    prior_aux$rate <- prior_aux$rate / response_sd
    prior_aux$autoscale <- FALSE
  }
  prior_aux
}

check_layers <- function(layers, arg) {
  if (is.null(layers)) {
    return(NULL)
  }
  layers <- check_numeric_vector(layers, arg = arg)
  bad <- which(layers < 1 | layers != round(layers))
  if (length(bad) > 0) {
    must <- "be a whole number of units, at least 1, for each layer"
    abort_value(layers, bad[[1]], must, arg = arg)
  }
  if (length(layers) > network_most_hidden) {
    abort_input(
      "{.arg {arg}} must have at most {network_most_hidden} layers, not
       {length(layers)}.",
      argument = arg,
      expected = network_most_hidden,
      value = layers
    )
  }
  unname(layers)
}

# NULL where it is sampled.
check_sigma <- function(sigma) {
  if (identical(sigma, "sampled")) {
    return(NULL)
  }
  if (!is_number(sigma) || !is.finite(sigma) || sigma <= 0) {
    abort_expected(sigma, "a positive number or \"sampled\"", arg = "sigma")
  }
  as.double(sigma)
}

# ---- parameters --------------------------------------------------------------

# As they stand in theta: layer by layer the matrix (weights, bias), a column
# after the other.
network_names <- function(widths) {
  unlist(lapply(seq_len(length(widths) - 1), function(l) {
    unit <- seq_len(widths[[l + 1]])
    input <- seq_len(widths[[l]])
    c(
      paste0(
        "layer", l, ".weight[", unit, ",",
        rep(input, each = length(unit)), "]"
      ),
      paste0("layer", l, ".bias[", unit, "]")
    )
  }))
}

# A number for each parameter: inputs to its layer; 1 for biases.
network_fan_in <- function(widths) {
  unlist(lapply(seq_len(length(widths) - 1), function(l) {
    n_unit <- widths[[l + 1]]
    c(rep(widths[[l]], widths[[l]] * n_unit), rep(1, n_unit))
  }))
}

# draw_weights() later, which holds on to no rows.
random_start <- function(widths, activation, response_sd) {
  force(widths)
  force(activation)
  force(response_sd)
  function() draw_weights(widths, activation, response_sd)
}

# Random weights and zero biases; log sigma at that of the response.
draw_weights <- function(widths, activation, response_sd) {
  gain <- if (activation == "relu") sqrt(2) else 1
  theta <- unlist(lapply(seq_len(length(widths) - 1), function(l) {
    n_unit <- widths[[l + 1]]
    sd <- gain / sqrt(widths[[l]])
    c(stats::rnorm(widths[[l]] * n_unit, sd = sd), numeric(n_unit))
  }))
  c(theta, if (!is.null(response_sd)) log(response_sd))
}

# Inputs of some rows of a model's, which may lie in a file.
network_inputs <- function(x, rows) {
  columns <- seq_len(ncol(x) - is_store(x))
  x[rows, columns, drop = FALSE]
}

# Rows of which the outputs are, to the bit, those that they have among others:
# whole blocks of the core's, about `most`.
network_part <- function(fit, most = 2^16) {
  block <- .Call(
    ffi_network_block,
    as.double(fit$widths),
    network_activations[[fit$activation]]
  )
  block * max(1, floor(most / block))
}

# Outputs at the rows of x: draws x rows x outputs. theta: draws x parameters.
network_outputs <- function(fit, theta, x) {
  .Call(
    ffi_network_map,
    as.double(fit$widths),
    network_activations[[fit$activation]],
    t(theta),
    x
  )
}

#' @export
print.tall_model_network <- function(x, ...) {
  check_no_dots(...)
  NextMethod()
  cat(
    "  layers ",
    widths_text(x$widths),
    ", ",
    x$activation,
    sigma_text(x),
    "\n",
    sep = ""
  )
  invisible(x)
}

widths_text <- function(widths) {
  paste(format_count(widths), collapse = "-")
}

sigma_text <- function(x) {
  if (!has_aux(x$family)) {
    ""
  } else if (is.null(x$sigma)) {
    ", sigma sampled"
  } else {
    paste0(", sigma ", format_number(x$sigma))
  }
}
