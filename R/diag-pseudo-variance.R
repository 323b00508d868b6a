# How noisy estimators of the gradient are: at draws of pilot chains, and at
# given points.

#' A noise threshold for adaptive minibatches
#'
#' Finds \eqn{V_0} for [subsample_adaptive()] from pilot chains with minibatches
#' of a fixed size.
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`; it must have [Lipschitz constants][lipschitz()].
#' @param kernel (`tall_kernel`) How the pilot chains move: the kernel of the
#'   run to come.
#' @param size (positive number) Rows in a minibatch of the pilot; below 1 a
#'   fraction of the data.
#' @param weights (string or positive numeric vector) As in
#'   [subsample_adaptive()].
#' @param chains (whole number) Pilot chains.
#' @param at (numeric vector of n_dim values, a [`tall_mode`][find_mode()], or
#'   `NULL`) The reference point \eqn{\hat\theta}{theta-hat}; `NULL` finds the
#'   mode.
#' @param probability (number between 0 and 1) Which quantile of the squared
#'   distance from \eqn{\hat\theta}{theta-hat}.
#' @param ... Further arguments of [sg_sample()]: `iter`, `warmup`, `seed` and
#'   so on.
#'
#' @details The recipe of Putcha, Nemeth & Fearnhead (2023, section 5): for each
#' chain the 95th percentile \eqn{q} of \eqn{\|\theta -
#' \hat\theta\|^2}{||theta - theta-hat||^2} goes into \eqn{V = (q / n) \sum_i
#' L_i^2 / p_i}{V = (q/n) sum_i L_i^2 / p_i}; \eqn{V_0} is the largest. With the
#' same weights, the size that [subsample_adaptive()] then takes at \eqn{\theta}
#' is about \eqn{n \|\theta - \hat\theta\|^2 / q}{n ||theta - theta-hat||^2 /
#' q}.
#'
#' @return A positive number.
#' @section Conditions:
#' `tall_error_unsupported` if the model has no Lipschitz constants;
#' `tall_error_input` for arguments that are not as described.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' x <- cbind(1, rnorm(500))
#' model <- model_glm(x, rbinom(500, 1, 0.5), family = "bernoulli")
#' kernel <- kernel_sgld(1e-3)
#' threshold <- noise_threshold(model, kernel, 10, chains = 2, seed = 1)
#' fit <- sg_sample(
#'   model,
#'   kernel,
#'   gradient_cv(),
#'   subsample_adaptive(threshold),
#'   iter = 500,
#'   seed = 1
#' )
#' range(fit$sizes)
#' @export
noise_threshold <- function(
  model,
  kernel,
  size,
  weights = "hessian",
  chains = 4,
  at = NULL,
  probability = 0.95,
  ...
) {
  check_model(model)
  check_not_whitened(model)
  check_spec(kernel, "tall_kernel", "kernel_*()")
  size <- check_batch_size(size)
  weights <- check_weights(weights)
  chains <- check_count(chains, most = count_limits$chains)
  probability <- check_number(probability, min = 0, max = 1)
  constants <- model_lipschitz(
    model,
    hint = "Use {.fn subsample_weighted}, which needs none."
  )
  if (is.null(at)) {
    refresh <- list(...)$refresh %||% getOption("tallbayes.refresh", 1)
    at <- model_mode(model, refresh = check_number(refresh, min = 0))
  }
  gradient <- gradient_cv(at)
  spec <- if (identical(weights, "uniform")) {
    subsample_uniform(size)
  } else {
    subsample_weighted(size, weights)
  }
  fit <- sg_sample(model, kernel, gradient, spec, chains = chains, ...)
  check_has_draws(fit)
  theta <- mode_point(model, gradient$args$at, needs_chol = FALSE)$theta
  distance <- squared_distance(fit, theta)
  largest <- max(apply(distance, 2, stats::quantile, probs = probability))
  context <- run_context(
    new_plan(model, new_sampler(kernel, gradient, spec)),
    list(chains = chains, cores = 1, refresh = 0)
  )
  p <- selection_probabilities(spec, context)
  largest * lipschitz_sum(constants, p) / batch_rows(size, model$n_data)
}

# ||theta - at||^2 of every draw, iterations x chains; parameters as sampled.
squared_distance <- function(fit, at) {
  shape <- dim(fit$draws)[1:2]
  draws <- array(fit_unconstrained(fit), c(shape, length(at)))
  centred <- sweep(draws, 3, at)
  apply(centred^2, 1:2, sum)
}

#' Pseudo-variance of a gradient estimate
#'
#' The noise of a minibatch gradient, \eqn{V(\hat g) = E \|\hat g - g\|^2 = tr\,
#' Cov(\hat g)}{V = E ||g-hat - g||^2 = tr Cov(g-hat)}, at given points.
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param theta (numeric vector of n_dim values, or a matrix with n_dim columns)
#'   The points, a row each, in the parameters (`log_sigma` for `sigma`).
#' @param gradient (`tall_gradient`) The estimator, see [gradients].
#' @param subsample (`tall_subsample` or `NULL`) How minibatches are drawn, see
#'   [subsampling]; `NULL` with [gradient_full()] only.
#' @param method (string) `"exact"`: the formulas below, one pass over the data
#'   for each point; `"monte_carlo"`: the mean over replicated minibatches.
#' @param replicates (whole number) How many of them.
#' @param seed (whole number or `NULL`) Seed of the minibatches; `NULL` takes
#'   one from R's generator.
#' @param cores (whole number) Threads to use.
#'
#' @details With \eqn{a_i = g_i(\theta)} for [gradient_simple()], \eqn{a_i =
#' g_i(\theta) - g_i(\hat\theta)}{a_i = g_i(theta) - g_i(theta-hat)} for the
#' others (Putcha, Nemeth & Fearnhead, 2023, section 3 and 4), less \eqn{H_i
#' (\theta - \hat\theta)}{H_i (theta - theta-hat)} too with `order = 2`,
#'
#' * with replacement: \eqn{V = \frac1n [\sum_i \|a_i\|^2 / p_i - \|\sum_i
#'   a_i\|^2]}{V = (1/n) [sum_i ||a_i||^2 / p_i - ||sum_i a_i||^2]};
#' * uniform without replacement: \eqn{V = \frac{N^2}{n} (1 - \frac nN)
#'   \frac{1}{N-1} \sum_i \|a_i - \bar a\|^2}{V = (N^2/n) (1 - n/N) 1/(N-1)
#'   sum_i
#'   ||a_i - mean a||^2}.
#'
#' The second goes to 0 as \eqn{n \to N}{n -> N}, the first does not: near a
#' full batch it is sampling *without* replacement that wins, whatever the
#' weights (section 5.3.1 of the paper has it the other way round).
#'
#' The reference \eqn{\hat\theta}{theta-hat} is `at`, or the mode where it is
#' `NULL`. For [gradient_saga()] and [gradient_svrg()] the result holds when the
#' table was made, or the reference last moved, there. Other estimators are
#' measured as they are, by `"monte_carlo"` only.
#'
#' @return A numeric vector, one number for each row of `theta`; 0 for
#'   [gradient_full()].
#' @section Conditions:
#' `tall_error_input` for arguments that are not as described;
#' `tall_error_unsupported` if the parts cannot work together.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' x <- cbind(1, rnorm(500))
#' model <- model_glm(x, rbinom(500, 1, plogis(x[, 2])), family = "bernoulli")
#' theta <- coef(find_mode(model)) + 0.1
#' pseudo_variance(model, theta, gradient_simple(), subsample_uniform(50))
#' pseudo_variance(model, theta, gradient_cv(), subsample_uniform(50))
#' pseudo_variance(model, theta, gradient_cv(), subsample_weighted(50))
#' @export
pseudo_variance <- function(
  model,
  theta,
  gradient = gradient_cv(),
  subsample = NULL,
  method = c("exact", "monte_carlo"),
  replicates = 1000,
  seed = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_model(model)
  check_not_whitened(model)
  theta <- check_points(theta, model)
  check_spec(gradient, "tall_gradient", "gradient_*()")
  check_spec(subsample, "tall_subsample", "subsample_*()", allow_null = TRUE)
  method <- check_choice(method, c("exact", "monte_carlo"))
  replicates <- check_count(replicates, most = count_limits$iter)
  seed <- check_seed(seed)
  cores <- check_cores(cores)
  if (gradient_is_full(gradient)) {
    return(numeric(nrow(theta)))
  }
  if (is.null(subsample)) {
    abort_input(
      "{.arg subsample} must be given: {.code gradient_{gradient$name}()} needs
       a minibatch.",
      argument = "subsample"
    )
  }
  # with a table or a reference that was just made
  if (inherits(gradient, c("tall_gradient_saga", "tall_gradient_svrg"))) {
    gradient <- gradient_cv(gradient$args$at)
  }
  if (method == "exact") {
    check_exact_variance(gradient)
    variance_exact(model, theta, gradient, subsample, cores)
  } else {
    variance_monte_carlo(
      model,
      theta,
      gradient,
      subsample,
      replicates,
      seed %||% sample.int(.Machine$integer.max, 1),
      cores
    )
  }
}

# A matrix with n_dim columns.
check_points <- function(theta, model, arg = caller_arg(theta)) {
  force(arg) # before `theta` is assigned
  check_given(theta, arg = arg)
  if (is.matrix(theta)) {
    check_matrix(theta, n_col = model$n_dim, arg = arg)
    at <- stats::setNames(seq_len(ncol(theta)), colnames(theta))
    at <- match_names(at, model$coordinates, arg = arg)
    return(theta[, at, drop = FALSE])
  }
  theta <- check_numeric_vector(theta, size = model$n_dim, arg = arg)
  theta <- match_names(theta, model$coordinates, arg = arg)
  matrix(theta, 1)
}

check_exact_variance <- function(gradient) {
  if (!inherits(gradient, c("tall_gradient_simple", "tall_gradient_cv"))) {
    abort_tall(
      "unsupported",
      c(
        "There is no formula for {.code gradient_{gradient$name}()}.",
        i = "Use {.code method = \"monte_carlo\"}."
      ),
      argument = "gradient"
    )
  }
}

variance_exact <- function(model, theta, gradient, subsample, cores) {
  plan <- new_plan(model, new_sampler(NULL, gradient, subsample))
  context <- run_context(
    plan,
    list(
      chains = 1,
      cores = cores,
      refresh = getOption("tallbayes.refresh", 1)
    )
  )
  scheme <- compile_spec(subsample, context)
  n_data <- model$n_data
  if (gradient_order(gradient) == 2) {
    check_has_order(model)
  }
  at <- if (inherits(gradient, "tall_gradient_cv")) {
    context$reference(gradient)
  }
  if (model_info(model)$is_even) {
    # as chains do: see tb_chain_gradient() in src/gradients/gradient.h
    theta <- abs(theta)
    at <- if (!is.null(at)) abs(at)
  }
  p <- selection_probabilities(subsample, context)
  sums <- .Call(
    ffi_model_spread,
    model$pointer,
    as.double(t(theta)),
    at,
    max(1, gradient_order(gradient)),
    p
  )
  abort_status(sums$status)
  square <- sums$square
  weighted <- if (is.null(p)) n_data * square else sums$weighted
  total <- sums$total
  n <- scheme$params$size
  variance <- switch(
    subsample$name,
    uniform = if (subsample$args$replace) {
      (weighted - total) / n
    } else {
      n_data^2 / n * (1 - n / n_data) / max(1, n_data - 1) *
        (square - total / n_data)
    },
    weighted = (weighted - total) / n,
    optimal = (sums$norm^2 - total) / n,
    adaptive = {
      n <- adaptive_sizes(scheme$params, theta)
      ifelse(n == n_data, 0, (weighted - total) / n)
    },
    abort_tall(
      "unsupported",
      c(
        "There is no formula for {.code subsample_{subsample$name}()}.",
        i = "Use {.code method = \"monte_carlo\"}."
      )
    )
  )
  pmax(variance, 0)
}

# n(theta) of the rows of theta
adaptive_sizes <- function(params, theta) {
  distance <- rowSums(sweep(theta, 2, params$at)^2)
  size <- floor(params$rate * distance) + 1
  pmin(pmax(size, params$min_size), params$max_size)
}

# Chains that stand still, one at each point: their gradients are replicates.
variance_monte_carlo <- function(
  model,
  theta,
  gradient,
  subsample,
  replicates,
  seed,
  cores
) {
  kernel <- kernel_sgld(1)
  kernel$args$step_size <- 0
  plan <- new_plan(model, new_sampler(kernel, gradient, subsample))
  plan$init <- to_sampler(model, t(theta))
  n_point <- nrow(theta)
  control <- list(
    iter = replicates,
    warmup = 0,
    thin = 1,
    chains = as.double(n_point),
    cores = cores,
    seed = seed,
    keep = c("draws", "gradients"),
    refresh = 0
  )
  segment <- run_segment(plan, control, new_stretch(0, replicates))
  found <- array(
    segment$buffers$gradient,
    c(replicates, n_point, model$n_dim)
  )
  truth <- model_evaluate(model, t(theta))$gradient
  vapply(
    seq_len(n_point),
    function(k) {
      error <- sweep(matrix(found[, k, ], replicates), 2, truth[, k])
      mean(rowSums(error^2))
    },
    0
  )
}
