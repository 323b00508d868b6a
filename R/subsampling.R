# Subsampling schemes. One constructor for each member of
# src/subsampling/registry.c, and the weights that weighted ones use.

#' Subsampling schemes
#'
#' Which rows a minibatch holds.
#'
#' @param size (positive number) Rows in a minibatch; a number below 1 is a
#'   fraction of the data.
#' @param replace (`TRUE` or `FALSE`) Draw rows with replacement?
#' @param weights (string or positive numeric vector of n_data values) Weights
#'   that selection probabilities are proportional to: a `type` of
#'   [subsampling_weights()], found at the reference point of the gradient
#'   estimator, or numbers, which are normalised and otherwise used as they are.
#' @param always (`TRUE`, `FALSE` or whole numbers) Rows that are in every
#'   minibatch, on top of `size`: with `TRUE` those that would be in it more than
#'   once, on average; or the numbers of rows.
#' @param threshold (positive number) \eqn{V_0}: the noise, \eqn{E\|\hat g -
#'   g\|^2}{E||g-hat - g||^2}, that adaptive minibatches allow at most; from
#'   [noise_threshold()].
#' @param min_size,max_size (positive number) The least and the most rows in an
#'   adaptive minibatch; below 1 fractions of the data. `max_size = NULL`: all
#'   rows, which give the full gradient.
#'
#' @details
#' Weighted minibatches are drawn with replacement by the alias method (Walker,
#' 1977; Vose, 1991): O(N) once, O(1) for each row. The estimate stays unbiased
#' because a row that is drawn often counts less: \eqn{1 / (n p_i)}.
#'
#' With `always = TRUE` rows with \eqn{n p_i > 1}{n p_i > 1} are in each
#' minibatch, once and with multiplier 1, and the others are drawn with the
#' probabilities that are left: the certainty stratum of survey sampling. A few
#' rows that outweigh all others then bring no noise.
#'
#' `subsample_adaptive()` (Putcha, Nemeth & Fearnhead, 2023, section 5) draws,
#' with replacement, \deqn{n(\theta) = \left\lfloor \frac{1}{V_0} \|\theta -
#' \hat\theta\|^2 \sum_i \frac{L_i^2}{p_i} \right\rfloor + 1}{n(theta) =
#' floor((1/V_0) ||theta - theta-hat||^2 sum_i L_i^2 / p_i) + 1} rows, at least
#' `min_size`; where that reaches the number of rows, the full gradient is used.
#' \eqn{L_i} are the [Lipschitz constants][lipschitz()] and
#' \eqn{\hat\theta}{theta-hat} is the reference point of [gradient_cv()], the
#' estimator that it needs. The size depends on \eqn{\theta} alone, so that the
#' estimate stays unbiased. The sizes used are in the element `sizes` of a fit;
#' `plot(fit, "size")` draws them. With a corrected kernel take `min_size = 2`
#' or more: one row does not show its noise, and the correction then takes that
#' of larger minibatches, which is more.
#'
#' `subsample_optimal()` draws with the probabilities of least variance at the
#' current state, \eqn{p_i \propto \|a_i(\theta)\|}{p_i ~ ||a_i(theta)||}, where
#' \eqn{a_i} is what the estimator sums over the minibatch (\eqn{g_i(\theta)},
#' less its reference); uniformly where all \eqn{a_i} are 0 (section 4.1). Every
#' minibatch costs a pass over the data, and is counted as one: it is there to
#' study what fixed weights lose.
#'
#' @return A spec of class `tall_subsample` for [sg_sample()].
#' @section Conditions: `tall_error_input` if an argument is not as described,
#' or, once the model is known, if a minibatch without replacement is larger
#' than the data, or all rows would always be in it. `tall_error_unsupported` if adaptive minibatches are asked of
#' an estimator other than [gradient_cv()] or of a model without Lipschitz
#' constants. A `tall_warning_size` says when adaptive minibatches are nearly
#' always as large as they may be.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#'
#' Walker (1977). An efficient method for generating discrete random variables
#' with general distributions. *ACM TOMS* 3, 253-256.
#'
#' Vose (1991). A linear algorithm for generating random numbers with a given
#' distribution. *IEEE Transactions on Software Engineering* 17, 972-975.
#' @seealso [subsampling_weights()], [noise_threshold()], [pseudo_variance()]
#' @examples
#' subsample_uniform(100)
#' subsample_uniform(0.01, replace = FALSE)
#' subsample_weighted(100, weights = "hessian")
#' subsample_adaptive(threshold = 50, min_size = 10)
#' subsample_optimal(100)
#' @name subsampling
NULL

#' @rdname subsampling
#' @export
subsample_uniform <- function(size, replace = TRUE) {
  new_spec(
    "subsample",
    "uniform",
    size = check_batch_size(size),
    replace = check_flag(replace)
  )
}

#' @rdname subsampling
#' @export
subsample_weighted <- function(size, weights = "hessian", always = FALSE) {
  weights <- check_weights(weights)
  always <- check_always(always)
  new_spec(
    "subsample",
    "weighted",
    size = check_batch_size(size),
    weights = weights,
    always = if (!isFALSE(always)) always
  )
}

# A flag, or row numbers in their order.
check_always <- function(
  always,
  arg = caller_arg(always),
  call = caller_env()
) {
  force(arg) # before `always` is assigned
  if (is.logical(always)) {
    return(check_flag(always, arg = arg, call = call))
  }
  always <- check_numeric_vector(always, arg = arg, call = call)
  bad <- which(always < 1 | always != round(always) | duplicated(always))
  if (length(bad) > 0) {
    abort_input(
      "{.arg {arg}} must be TRUE, FALSE or the numbers of rows, each once, not
       {format_number(always[[bad[[1]]]])}.",
      argument = arg,
      value = always,
      call = call
    )
  }
  sort(always)
}

#' @rdname subsampling
#' @export
subsample_adaptive <- function(
  threshold,
  weights = "hessian",
  min_size = 1,
  max_size = NULL
) {
  threshold <- check_number(threshold, positive = TRUE)
  weights <- check_weights(weights)
  min_size <- check_batch_size(min_size)
  if (!is.null(max_size)) {
    max_size <- check_batch_size(max_size)
  }
  new_spec(
    "subsample",
    "adaptive",
    threshold = threshold,
    weights = weights,
    min_size = min_size,
    max_size = max_size
  )
}

#' @rdname subsampling
#' @export
subsample_optimal <- function(size) {
  new_spec("subsample", "optimal", size = check_batch_size(size))
}

# A type of weights, or positive numbers.
check_weights <- function(
  weights,
  arg = caller_arg(weights),
  call = caller_env()
) {
  if (is.character(weights)) {
    check_choice(weights, weight_types, arg = arg, call = call)
  } else {
    check_numeric_vector(weights, positive = TRUE, arg = arg, call = call)
  }
}

# A given minibatch every time; for enumeration in tests.
subsample_fixed <- function(index, multiplier, finite = 1, always = NULL) {
  new_spec(
    "subsample",
    "fixed",
    index = index,
    multiplier = multiplier,
    finite = finite,
    always = always
  )
}

check_batch_size <- function(
  size,
  arg = caller_arg(size),
  call = caller_env()
) {
  force(arg) # names the promise, so before `size` is assigned
  size <- check_number(size, positive = TRUE, arg = arg, call = call)
  if (size > count_limits$integer) {
    expected <- paste("at most", format_count(count_limits$integer), "rows")
    abort_expected(size, expected, arg = arg, call = call)
  }
  if (size >= 1 && size != round(size)) {
    abort_expected(
      size,
      "a whole number, or a fraction of the data below 1",
      arg = arg,
      call = call
    )
  }
  size
}

# Rows for a size that may be a fraction.
batch_rows <- function(size, n_data) {
  if (size < 1) max(1, floor(size * n_data)) else size
}

#' @export
compile_spec.tall_subsample_uniform <- function(
  spec,
  context,
  call = caller_env()
) {
  size <- batch_rows(spec$args$size, context$n_data)
  if (!spec$args$replace && size > context$n_data) {
    abort_input(
      c(
        "{.arg size} must be at most the number of rows,
         {format_count(context$n_data)}, when drawing without replacement,
         not {format_count(size)}.",
        i = "Use {.fn gradient_full} for all rows, or {.code replace = TRUE}."
      ),
      argument = "size",
      expected = context$n_data,
      value = size,
      call = call
    )
  }
  member("uniform", list(size = size, replace = spec$args$replace))
}

#' @export
compile_spec.tall_subsample_weighted <- function(
  spec,
  context,
  call = caller_env()
) {
  size <- batch_rows(spec$args$size, context$n_data)
  weights <- spec$args$weights
  if (is.character(weights)) {
    weights <- context$weights(weights, call)
  } else {
    check_size(weights, context$n_data, arg = "weights", call = call)
  }
  params <- list(size = size, weights = weights)
  always <- always_rows(spec, weights, size, call)
  if (length(always) > 0) {
    params$weights[always] <- 0
    params$always <- as.double(always)
  }
  member("weighted", params)
}

# The rows of every minibatch, by number.
always_rows <- function(spec, weights, size, call) {
  always <- spec$args$always
  if (isTRUE(always)) {
    always <- certain_rows(weights, size)
    check_some_drawn(always, length(weights), size, call)
  } else if (!is.numeric(always)) {
    return(integer())
  }
  if (length(always) > 0 && max(always) > length(weights)) {
    abort_input(
      "{.arg always} must be at most the number of rows,
       {format_count(length(weights))}, not {format_count(max(always))}.",
      argument = "always",
      expected = length(weights),
      value = always,
      call = call
    )
  }
  check_some_drawn(always, length(weights), size, call)
  always
}

# Rows that n draws with these weights would hold more than once on average;
# without them, others may be.
certain_rows <- function(weights, n) {
  rest <- sum(weights)
  certain <- integer()
  repeat {
    more <- setdiff(which(n * weights > rest), certain)
    if (length(more) == 0) {
      return(sort(certain))
    }
    certain <- c(certain, more)
    rest <- if (length(certain) < length(weights)) sum(weights[-certain]) else 0
  }
}

check_some_drawn <- function(certain, n_data, size, call) {
  if (length(certain) < n_data) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg always} must leave some of the {format_count(n_data)} rows to be
       drawn, {format_count(size)} of them a minibatch.",
      i = "Use {.fn gradient_full} for all rows, or {.code always = FALSE}."
    ),
    argument = "always",
    value = size,
    call = call
  )
}

#' @export
compile_spec.tall_subsample_optimal <- function(
  spec,
  context,
  call = caller_env()
) {
  member("optimal", list(size = batch_rows(spec$args$size, context$n_data)))
}

#' @export
compile_spec.tall_subsample_adaptive <- function(
  spec,
  context,
  call = caller_env()
) {
  if (!inherits(context$gradient, "tall_gradient_cv")) {
    abort_tall(
      "unsupported",
      c(
        "{.fn subsample_adaptive} bounds the noise of {.fn gradient_cv} about
         its reference point, not that of
         {.code gradient_{context$gradient$name}()}.",
        i = "Use {.fn gradient_cv}, or {.fn subsample_weighted} with a fixed
             size."
      ),
      call = call
    )
  }
  rows <- adaptive_range(spec, context$n_data, call)
  probability <- selection_probabilities(spec, context, call)
  constants <- model_lipschitz(
    context$model,
    hint = "Use {.fn subsample_weighted} with a fixed size.",
    call = call
  )
  context$spend("weights", 1)
  member("adaptive", list(
    at = context$to_sampler(context$estimator_reference(call)),
    rate = likelihood_scale(context$model)^2 *
      lipschitz_sum(constants, probability) / spec$args$threshold,
    min_size = rows[[1]],
    max_size = rows[[2]],
    weights = probability
  ))
}

# The least and the most rows.
adaptive_range <- function(spec, n_data, call = caller_env()) {
  least <- batch_rows(spec$args$min_size, n_data)
  most <- if (is.null(spec$args$max_size)) {
    n_data
  } else {
    min(n_data, batch_rows(spec$args$max_size, n_data))
  }
  if (least > most) {
    abort_input(
      "{.arg min_size} must be at most {format_count(most)} rows, not
       {format_count(least)}.",
      argument = "min_size",
      expected = most,
      value = least,
      call = call
    )
  }
  c(least, most)
}

# What its table in src/subsampling/ says: see `enum tb_scheme_flag`.
subsample_info <- function(subsample) {
  .Call(ffi_subsample_info, subsample$name)
}

# The most rows a minibatch can have.
subsample_largest <- function(spec, n_data) {
  UseMethod("subsample_largest")
}

#' @export
subsample_largest.default <- function(spec, n_data) {
  size <- spec$args$size
  if (is.null(size)) n_data else batch_rows(size, n_data)
}

#' @export
subsample_largest.tall_subsample_adaptive <- function(spec, n_data) {
  adaptive_range(spec, n_data)[[2]]
}

#' @export
subsample_largest.tall_subsample_fixed <- function(spec, n_data) {
  length(spec$args$index)
}

# A scheme as fits keep it: without N numbers that can be found again.
light_subsample <- function(subsample) {
  UseMethod("light_subsample")
}

#' @export
light_subsample.default <- function(subsample) {
  subsample
}

# A recipe's weights are found again when they are needed; those of a user are
# kept, because nothing else has them.
#' @export
light_subsample.tall_subsample_weighted <- function(subsample) {
  if (!is.null(attr(subsample, "type"))) {
    subsample$args$weights <- attr(subsample, "type")
  }
  subsample
}

# p_i of a scheme with weights, 0 for a row of every minibatch; NULL: uniform.
selection_probabilities <- function(spec, context, call) {
  weights <- spec$args$weights
  if (identical(weights, "uniform") || is.null(weights)) {
    return(NULL)
  }
  if (is.character(weights)) {
    weights <- context$weights(weights, call)
  } else {
    check_size(weights, context$n_data, arg = "weights", call = call)
  }
  if (inherits(spec, "tall_subsample_weighted")) {
    size <- batch_rows(spec$args$size, context$n_data)
    weights[always_rows(spec, weights, size, call)] <- 0
  }
  weights / sum(weights)
}

# sum_i L_i^2 / p_i
lipschitz_sum <- function(constants, probability) {
  if (is.null(probability)) {
    length(constants) * sum(constants^2)
  } else {
    sum(constants^2 / probability)
  }
}

# What the sizes of a segment's minibatches say.
warn_sizes <- function(subsample, sizes, n_data, call) {
  UseMethod("warn_sizes")
}

#' @export
warn_sizes.default <- function(subsample, sizes, n_data, call) {
  invisible()
}

# Adaptive ones that do not adapt.
#' @export
warn_sizes.tall_subsample_adaptive <- function(subsample, sizes, n_data, call) {
  sizes <- sizes[!is.na(sizes)]
  most <- subsample_largest(subsample, n_data)
  share <- mean(sizes >= most)
  if (length(sizes) == 0 || share < 0.9) {
    return(invisible())
  }
  shown <- paste0(format(100 * share, digits = 3), "%")
  warn_tall(
    "size",
    c(
      "{shown} of the adaptive minibatches have the most rows they may,
       {format_count(most)}.",
      i = "Raise {.arg threshold}, now
           {format_number(subsample$args$threshold)}, or use
           {.fn gradient_full}."
    ),
    share = share,
    call = call
  )
}

# As in `enum tb_weight_type`; "uniform" needs no model.
weight_types <- c(
  "leverage",
  "robust",
  "hessian",
  "gradient",
  "lipschitz",
  "uniform"
)
# they need the Hessian's Cholesky factor
chol_types <- c("leverage", "robust", "hessian")
weight_codes <- c(
  gradient = 0L,
  hessian = 1L,
  lipschitz = 2L,
  leverage = 3L,
  robust = 4L,
  cubic = 5L
)

#' Weights for preferential subsampling
#'
#' Selection probabilities that make the estimated gradient less noisy, computed
#' once at a point near the mode.
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param at (`tall_mode`, numeric vector of n_dim values, or `NULL`) The point
#'   \eqn{\hat\theta}{theta-hat}; `NULL` finds the mode.
#' @param type (string) See below.
#' @param defensive (number in \[0, 1)) The share \eqn{\lambda}{lambda} of
#'   uniform weights mixed in: \eqn{(1 - \lambda) p_i + \lambda / N}{(1 -
#'   lambda) p_i + lambda / N}. It keeps every probability positive; a row with
#'   probability zero would bias the estimate.
#' @param cores (whole number) Threads to use.
#'
#' @details
#' With \eqn{H_i} the Hessian of observation \eqn{i}'s log likelihood at
#' \eqn{\hat\theta}{theta-hat}, \eqn{\hat\Sigma}{Sigma} the inverse of minus the
#' Hessian of the log posterior, \eqn{w_i} the curvature (\eqn{H_i = - w_i x_i
#' x_i^T} in a generalised linear model),
#'
#' * `"leverage"`: \eqn{w_i x_i^T \hat\Sigma x_i}{w_i x_i' Sigma x_i}: least
#'   noise after whitening.
#' * `"robust"`: the same with the largest \eqn{w_i} while the row's linear
#'   predictor is within 4 posterior standard deviations of the mode's,
#'   \eqn{\hat\eta_i \pm 4 \sqrt{x_i^T \hat\Sigma x_i}}{eta_i -+ 4 sqrt(x_i'
#'   Sigma x_i)}: an outlier can weigh next to nothing at the mode and more than
#'   all other rows a standard deviation away. For [model_glm()] and
#'   [model_gaussian()].
#' * `"hessian"`: \eqn{\sqrt{tr(H_i \hat\Sigma H_i^T)}}{sqrt(tr(H_i Sigma
#'   H_i'))}: least noise of the control-variate gradient in the parameters
#'   (Putcha, Nemeth & Fearnhead, 2023, section 4.2).
#' * `"gradient"`: \eqn{\|g_i(\hat\theta)\|}{||g_i(theta-hat)||}: least noise of
#'   the simple gradient.
#' * `"lipschitz"`: the Lipschitz constants \eqn{L_i}.
#' * `"uniform"`.
#'
#' Leverage and Hessian weights of a generalised linear model take one
#' triangular solve of the rows, \eqn{O(N d^2)}; the paper's formula costs
#' \eqn{O(N d^3)}.
#'
#' @return A numeric vector of n_data positive weights that sum to 1.
#' @section Conditions:
#' `tall_error_unsupported` if the model cannot provide the type;
#' `tall_error_input` for arguments that are not as described.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' x <- cbind(1, rnorm(200))
#' model <- model_glm(x, rbinom(200, 1, 0.5), family = "bernoulli")
#' summary(subsampling_weights(model, type = "leverage"))
#' @export
subsampling_weights <- function(
  model,
  at = NULL,
  type = c(
    "leverage",
    "robust",
    "hessian",
    "gradient",
    "lipschitz",
    "uniform"
  ),
  defensive = 0.01,
  cores = getOption("mc.cores", 1L)
) {
  check_model(model)
  check_not_whitened(model)
  type <- check_choice(type, weight_types)
  defensive <- check_number(defensive, min = 0, max = 1)
  cores <- check_cores(cores)
  find_weights(model, at, type, defensive, cores)
}

# subsampling_weights() once its arguments are known to be good.
find_weights <- function(
  model,
  at,
  type,
  defensive = 0.01,
  cores = 1,
  call = caller_env()
) {
  if (type == "uniform") {
    return(rep(1 / model$n_data, model$n_data))
  }
  point <- mode_point(model, at, needs_chol = type %in% chol_types, call)
  weights <- model_weights(
    model,
    type,
    point$theta,
    point$chol,
    cores,
    call
  )
  mix_weights(weights, type, defensive)
}

# Probabilities, a share of them uniform. Robust weights can be of any size, and a
# share of their mean would drown what all rows but a few are to each other: there
# it is that of the others' mean.
mix_weights <- function(weights, type, defensive = 0.01) {
  if (type == "robust") {
    heavy <- heavy_rows(weights)
    mean <- mean(if (length(heavy) > 0) weights[-heavy] else weights)
    weights <- (1 - defensive) * weights + defensive * mean
    return(weights / sum(weights))
  }
  weights <- weights / sum(weights)
  (1 - defensive) * weights + defensive / length(weights)
}

# Rows whose curvature can be so large a part of the posterior's that a minibatch
# is smaller with them always in it: the noise of the others calls for 2.5 rows a
# unit of their robust weights, see recipe_settings.
heavy_rows <- function(weights) {
  heavy <- which(weights > 1 / recipe_settings$rows_per_dim)
  if (length(heavy) < length(weights)) heavy else integer()
}

# The types of weights that a model has which has no Lipschitz constants.
weights_left <- function(model) {
  if (model_info(model)$has_curvature) {
    "{.val leverage} or {.val hessian}"
  } else {
    "{.val gradient}"
  }
}

# Unnormalised, from the core.
model_weights <- function(
  model,
  type,
  theta,
  chol,
  cores,
  call = caller_env(),
  hint = paste0("Use weights of type ", weights_left(model), ".")
) {
  out <- .Call(
    ffi_model_weights,
    model$pointer,
    weight_codes[[type]],
    theta,
    chol,
    cores
  )
  if (is.integer(out)) {
    if (type == "lipschitz" && status_name(out) == "unsupported") {
      family <- if (!is.null(model$family)) {
        paste0(
          " of family \"",
          model$family$name,
          "\"",
          if (isTRUE(model$samples_aux)) {
            paste0(" with a sampled `", response_aux(model$family), "`")
          }
        )
      }
      abort_tall(
        "unsupported",
        c(
          "{.code {model$label}()}{family} has no global Lipschitz constants.",
          i = hint
        ),
        call = call
      )
    }
    if (type %in% chol_types) {
      check_has_hessian(model, call)
    }
    if (status_name(out) == "unsupported") {
      abort_tall(
        "unsupported",
        c(
          "{.code {model$label}()} has no weights of type {.val {type}}: how much
           the curvature of a row can change is not known.",
          i = hint
        ),
        argument = "type",
        call = call
      )
    }
    abort_status(out, call = call)
  }
  # in units of the posterior's curvature, which a Gibbs posterior scales
  if (type == "robust") likelihood_scale(model) * out else out
}
