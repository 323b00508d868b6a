# tall_nn(): the front end for networks. Standardises, trains a start for every
# chain by ADAM, samples.

# Settings found for a network, so that its user tunes nothing; all numbers
# stand here, once.
nn_settings <- list(
  batch = 256,             # rows of a minibatch, in training and after it
  epochs = 40,             # passes of the training
  min_train = 3000,        # its iterations, at least
  held_out = 1 / 5,        # of the rows, which sigma starts from
  learning_rate = 0.01,    # at first; divided by 11 in the end
  sigma = 0.1,             # the kernel's step at first, times the root of N
  steps = 25,              # leapfrog steps of a trajectory, at most ...
  work = 1.25e8,           # ... and as many as rows x parameters x steps allow
  rows_checked = 200       # on which predictions are summarised
)

#' Bayesian neural networks for tall data
#'
#' Regression and classification by a fully connected network: type a formula,
#' get predictions that know what they do not know.
#'
#' @param formula (formula) As in [stats::lm()], but without [offset()]; factors
#'   become indicator columns. A numeric response is taken as Gaussian, a
#'   logical one or a factor with two levels as Bernoulli, a factor with more
#'   levels, or strings, as categorical.
#' @param data (data frame or [source][tall_source]) The data: a data frame,
#'   paths of CSV or Parquet files, a [tall_stream()], a lazy table, or a list
#'   of such. See *Rows in a file*.
#' @param hidden (whole numbers, or `NULL`) Widths of the hidden layers.
#' @param activation,prior,prior_aux As in [model_network()]. The prior is that
#'   of the weights between standardised variables.
#' @param sigma (positive number or `"sampled"`) The standard deviation of the
#'   noise of a numeric response, in its own units.
#' @param subset,na.action As in [stats::lm()]; evaluated in `data`.
#' @param train_iter (whole number or `NULL`) Iterations of ADAM before the
#'   sampling, for each chain; `NULL`: 40 passes over the data, and at least
#'   3,000. 0: none.
#' @param storage (string) How the model keeps its inputs: `"double"` or, in
#'   half the memory, `"float"`; see [model_glm()].
#' @param keep_data (`TRUE` or `FALSE`) Keep the model frame in the fit, so that
#'   `predict()` without `newdata` works and the fit can be resumed after it was
#'   saved and read again? The 200 rows whose predictions `summary()` compares
#'   across chains stay in any case. With `store` it is the source that is kept.
#' @param store (string or `NULL`) The path of a new file for the inputs of more
#'   than 65,536 rows, which are then never all in memory: see *Rows in a file*.
#' @param ... The run: arguments of [sg_sample()] but `model` and `init`, with
#'   the same defaults except for these: `thin` keeps 100 draws of each chain.
#'   `kernel`: [kernel_hmc()] with all rows, its step adapted in warmup, and
#'   with 25 leapfrog steps while rows times parameters are below 5 million, as
#'   many as 125 million divided by them allow beyond; above 62.5 million, or
#'   with minibatches, [kernel_mala()], which is a single step. With another
#'   kernel that takes minibatches, [gradient_simple()] and 256 rows. In
#'   `monitor`, held-out data are data frames. Other arguments are refused.
#'
#' @details
#' Covariates, and a numeric response, are centred and divided by their standard
#' deviations; predictions and `sigma` come back in the units of the data.
#'
#' Every chain starts where ADAM took it from random weights of its own: the
#' posterior of a network has many modes, and chains in several of them say more
#' about what the data leave open than one. Weights of different chains cannot
#' be compared; predictions can. `summary()` therefore shows R-hat and effective
#' sample sizes of predictions.
#'
#' With the default kernel ADAM leaves a fifth of the rows out, other ones for
#' each chain, and a sampled `sigma` starts at its error on these. Where the
#' weights can fit every row, the density rises without end as `sigma` falls to
#' 0: there is hardly any mass there, but no chain comes out. And trajectories
#' are the default where there is time for them, because short steps do not get
#' to where the mass is in thousands of iterations. Of four splits of
#' \pkg{MASS}' `Boston` (400 rows, 13 covariates) intervals of 90 percent held
#' 64 to 83 percent of the other 106 responses with [kernel_mala()] from the end
#' of a training with all rows; with the defaults they hold 86 to 92.
#'
#' With many rows for the weights the noise is most of the intervals' width, and
#' single steps find that, too; but `sd_epistemic` is then no more than a lower
#' bound, as it is where chains were stopped short. Whether intervals hold what
#' they should is for held-out data to tell, by
#' `plot(fit, "calibration", newdata = held_out)`.
#'
#' Burn-in and gap of Bieringer et al. (2023, section 3) are `warmup` and
#' `thin`.
#'
#' @section Rows in a file: The rows of a source, its columns in the formula,
#' are brought to memory as a data frame, unless there is a `store`: then two
#' passes read them block by block, and no more than a block is in memory. The
#' first one finds levels, missing values, and of which kind the response is;
#' the second one writes the inputs to a file beside `store`, and once their
#' means and standard deviations are known, they are written to `store` in
#' standard units, which takes twice the space meanwhile. The model maps that
#' file, as that of a [tall_store()]. In memory are the response, 8 bytes a row,
#' and, during the training with the default kernel, the numbers of the rows
#' that it sees, 8 bytes a row. Draws are to the bit those that the same rows in
#' a data frame have, from any source; with `storage = "float"` a sampled
#' `sigma` starts elsewhere, from rounded inputs.
#'
#' Tables of a database are read by R, and need an order, as by
#' `dplyr::arrange()`. Where a factor has more than 1,000 levels, or `na.action`
#' is a function of the user's own, rows are brought to memory also with a
#' `store`; terms that depend on other rows than their own are refused there,
#' and constants of `poly()`, splines or `scale()` are those of a pilot, as in
#' [tall_glm()].
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_nn", "tall_fit")`, with
#'   `modes`, the [modes][find_mode()] the chains started from, and `scaling`.
#' @section Conditions: Those of [sg_sample()] and [model_network()];
#'   `tall_error_input` for a formula or data that cannot be used, or a file
#'   that is there already, `tall_error_unsupported` for an offset or
#'   group-level terms; `tall_error_source` for a source that fails, has no
#'   rows, or gives other rows in another pass; `tall_error_memory` where its
#'   rows do not fit in memory and there is no `store`; `tall_error_data` for a
#'   file that cannot be written.
#' @references
#' Bieringer, Kasieczka, Steffen & Trabs (2023). AdamMCMC: combining Metropolis
#' adjusted Langevin with momentum-based optimization. arXiv:2312.14027.
#' @seealso [predict.tall_nn()], [plot.tall_nn()], [summary.tall_nn()]
#' @examples
#' data <- data.frame(x = runif(200, -2, 2))
#' data$y <- sin(2 * data$x) + rnorm(200, sd = 0.1)
#' fit <- tall_nn(
#'   y ~ x,
#'   data,
#'   hidden = 10,
#'   train_iter = 500,
#'   iter = 200,
#'   chains = 2,
#'   seed = 1
#' )
#' fit
#' predict(fit, data.frame(x = c(0, 1, 5)))
#' @export
tall_nn <- function(
  formula,
  data,
  hidden = c(50, 50),
  activation = c("tanh", "relu", "softplus"),
  prior = prior_normal(0, 2, autoscale = TRUE),
  sigma = "sampled",
  prior_aux = prior_exponential(),
  subset = NULL,
  na.action = stats::na.omit,
  train_iter = NULL,
  storage = c("double", "float"),
  ...,
  keep_data = TRUE,
  store = NULL
) {
  # before the training, which takes its time; it shares the seed
  run <- front_run(
    ...,
    .front = tall_nn,
    .defaults = nn_run_defaults,
    .without = c(
      init = "Chains start where the training ends.",
      family = "The response decides: a factor, or a logical or text column, is
                classes, and numbers are Gaussian, 0 and 1 as well."
    )
  )
  check_given(formula)
  priors <- list(prior = as_prior(prior), prior_aux = as_prior(prior_aux))
  activation <- check_choice(activation, names(network_activations))
  check_flag(keep_data)
  check_new_store(store, sparse = FALSE)
  train_iter <- check_count(
    train_iter,
    min = 0,
    most = count_limits$integer,
    allow_null = TRUE
  )
  asked <- new_asked("tall_nn", match.call(), parent.frame(), environment())
  front <- new_front(
    "network",
    "tall_nn",
    asked,
    blueprint_network(
      hidden,
      activation,
      priors,
      sigma,
      check_choice(storage, names(storage_types)),
      "hidden"
    ),
    request_network(),
    keep_data,
    train_iter = train_iter,
    whitens = FALSE,
    in_place = FALSE,
    store = store
  )
  fit_regression(front, run)
}

# The inputs of rows that are many go to a file where there is one for them; a
# source's are brought to memory otherwise.
#' @export
fit_of_front.tall_front_network <- function(front, run) {
  asked <- front$asked
  if (asked$has_data && !is.null(front$store) && !is_small_frame(asked$data)) {
    fit <- network_in_store(front, data_source(asked$data), run)
    if (!is.null(fit)) {
      return(fit)
    }
  }
  if (asked$has_data) {
    wanted <- wanted_columns(asked, front$takes)
    front$asked <- collect_asked(asked, nn_instead, wanted = wanted)
  }
  fit_in_memory(front, front_rows(front, run), run)
}

# Draws of networks are large: a hundred of each chain.
nn_run_defaults <- alist(thin = max(1, floor((iter - warmup) / 100)))

#' @export
front_reader.tall_front_network <- function(front, rows, read) {
  sigma <- front$blueprint$sigma
  c(NextMethod(), list(
    likelihood = read$likelihood,
    scaling = read$scaling,
    activation = front$blueprint$activation,
    sigma = if (is.numeric(sigma)) sigma
  ))
}

# Trained, and what runs where the user does not say.
#' @export
front_ready.tall_front_network <- function(front, model, read, reader, run) {
  own <- network_shape(model)
  family <- new_family(find_response(reader$likelihood))
  own <- c(reader, own, list(family = family))
  run$monitor <- resolve_monitors(run$monitor, as_reader(own, "tall_nn"))
  check_monitor(run$monitor, model)
  model <- front_model(model, run)
  held_out <- if (is.null(run$kernel)) read
  modes <- with_seed(
    run$control$seed,
    nn_train(model, front$train_iter, run$control, held_out)
  )
  members <- nn_members(model, run$kernel, run$gradient, run$subsample)
  run[names(members)] <- members
  starts <- vapply(modes, function(m) m$estimate, numeric(model$n_dim))
  # the training does not see the bounds of a prior
  run$init <- move_inside(matrix(starts, model$n_dim), model)
  new_ready(
    model,
    run,
    modes = modes,
    check_rows = nn_check_rows(read)
  )
}

# What the network's outputs need of the model.
network_shape <- function(model) {
  list(
    widths = model$widths,
    n_coef = length(model$variables) - model$traits$n_aux
  )
}

#' @export
front_parts.tall_front_network <- function(front, ready, read, fit) {
  model <- ready$model
  trained <- add_training(fit, ready$modes)
  cost <- unclass(trained)[c("modes", "preparation", "passes")]
  c(network_shape(model), cost, list(
    storage = model$storage,
    check_rows = ready$check_rows
  ))
}

# ---- what runs ---------------------------------------------------------------

# A mode for each chain, from random weights of its own. parts: the rows, where
# a sampled sigma is to be that of rows held out of the training, other ones for
# each chain. The mode's own is too small, next to nothing where the weights can
# fit every row, and no chain comes out of there.
nn_train <- function(model, train_iter, control, parts = NULL) {
  s <- nn_settings
  train_iter <- train_iter %||% default_train_iter(model, s)
  n_out <- floor(s$held_out * model$n_data)
  holds_out <- !is.null(parts) && model$traits$n_aux > 0 && n_out > 0
  lapply(seq_len(control$chains), function(chain) {
    start <- model_start(model)
    if (train_iter == 0) {
      return(list(estimate = start, passes = 0))
    }
    label <- if (control$refresh > 0) {
      paste0("Training chain ", chain, " of ", control$chains)
    }
    out <- if (holds_out) sample.int(model$n_data, n_out)
    mode <- train_mode(
      model,
      start,
      train_iter,
      s,
      control$cores,
      label,
      rows = if (holds_out) seq_len(model$n_data)[-out]
    )
    if (holds_out) set_sigma(mode, model, parts, out) else mode
  })
}

# The mode with sigma as the rows `out` have it, which it was not trained on.
set_sigma <- function(mode, model, parts, out) {
  d <- model$n_dim
  f <- outputs_at(model, t(mode$estimate[-d]), parts$x, out)
  rms <- sqrt(mean((parts$y[out] - f)^2))
  if (rms > 0) {
    mode$estimate[[d]] <- log(rms)
    mode$variables <- mode_variables(model, unname(mode$estimate))
    mode$log_posterior <- model_evaluate(model, mode$estimate)$log_density
    mode$passes <- mode$passes + 1
  }
  mode
}

# The outputs of some rows; those of a file come in parts.
outputs_at <- function(model, weights, x, rows) {
  size <- if (is_store(x)) network_part(model) else length(rows)
  parts <- lapply(seq(0, length(rows) - 1, by = size), function(first) {
    at <- rows[seq.int(first + 1, min(first + size, length(rows)))]
    drop(network_outputs(model, weights, unname(network_inputs(x, at))))
  })
  unlist(parts)
}

# What the training found, and what it cost.
add_training <- function(fit, modes) {
  fit$modes <- modes
  passes <- sum(vapply(modes, function(m) m$passes, 0))
  fit$preparation[["mode"]] <- fit$preparation[["mode"]] + passes
  fit$passes <- fit$passes + passes
  fit
}

# Exact. ADAM leaves a chain far from where the posterior's mass is, and it
# takes trajectories to get there: as long ones as the time for a draw allows.
# Beyond, a trajectory of one step, whose proposals are twice as wide as those
# of kernel_adam_mcmc() at the same acceptance rate. Steps are a tenth of
# N^(-1/2) at first; warmup finds the scale. minibatches: does the user ask for
# them?
nn_kernel <- function(model, minibatches = FALSE) {
  s <- nn_settings
  step <- s$sigma / sqrt(model$n_data)
  steps <- min(s$steps, floor(s$work / (model$n_data * model$n_dim)))
  if (minibatches || steps < 2) {
    kernel_mala(step^2, adapt = TRUE)
  } else {
    kernel_hmc(step, steps, adapt = TRUE)
  }
}

nn_members <- function(model, kernel, gradient, subsample) {
  if (is.null(kernel)) {
    minibatches <- !is.null(subsample) ||
      (!is.null(gradient) && !gradient_is_full(gradient))
    kernel <- nn_kernel(model, minibatches)
  }
  if (is.null(gradient) && !kernel_is_metropolis(kernel)) {
    gradient <- gradient_simple()
  }
  needs_rows <- !is.null(gradient) && !gradient_is_full(gradient)
  if (is.null(subsample) && needs_rows) {
    subsample <- subsample_uniform(min(nn_settings$batch, model$n_data))
  }
  list(kernel = kernel, gradient = gradient, subsample = subsample)
}

# The rows on which chains are compared, standardised.
nn_check_rows <- function(parts) {
  n <- nrow(parts$x)
  rows <- unique(round(seq(1, n, length.out = nn_settings$rows_checked)))
  list(
    x = network_inputs(parts$x, rows),
    y = parts$y[rows]
  )
}

#' @export
finish_fit.tall_nn <- function(fit) {
  fit["checked"] <- list(nn_checked(fit))
  fit
}
