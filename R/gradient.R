# Gradient estimators. One constructor for each member of
# src/gradients/registry.c.

#' Gradient estimators
#'
#' How the gradient of the log posterior is estimated from a minibatch. All are
#' unbiased, whatever the subsampling scheme.
#'
#' @param at (numeric vector of n_dim values, a [`tall_mode`][find_mode()], or
#'   `NULL`) The reference point \eqn{\hat\theta}{theta-hat} of the control
#'   variates; `NULL` finds the mode. For `gradient_saga()`: where its table is
#'   made; `NULL`: at the starting point of each chain, so that no mode is
#'   needed.
#'
#' @param order (1 or 2) How far the control variates of `gradient_cv()` go: to
#'   the gradients at the reference, or to their derivatives as well, see *Order
#'   2*.
#' @param memory_limit (positive number) The most bytes that the tables of
#'   `gradient_saga()` may take, all chains together. The default is 2 GiB.
#' @param refresh (whole number or `NULL`) Estimates from one move of the
#'   reference of `gradient_svrg()` to the next; `NULL`: n_data / size, so that
#'   the minibatches between two moves make one pass over the data.
#'
#' @details
#' With \eqn{g_0} the gradient of the log prior, \eqn{g_i} that of observation
#' \eqn{i}'s log likelihood, \eqn{S} the minibatch and \eqn{p_i} the selection
#' probabilities of [subsampling][subsample_uniform()],
#'
#' * `gradient_simple()`: \eqn{g_0(\theta) + \frac1n \sum_{i \in S} g_i(\theta)
#'   / p_i}{g_0(theta) + (1/n) sum_S g_i(theta)/p_i} (Welling & Teh, 2011;
#'   Putcha, Nemeth & Fearnhead, 2023, eq. 8).
#' * `gradient_cv()`: \eqn{g_0(\theta) + \sum_i g_i(\hat\theta) + \frac1n
#'   \sum_{i \in S} [g_i(\theta) - g_i(\hat\theta)] / p_i}{g_0(theta) + sum_i
#'   g_i(theta-hat) + (1/n) sum_S [g_i(theta) - g_i(theta-hat)]/p_i} (Baker,
#'   Fearnhead, Fox & Nemeth, 2019, section 3). In a generalised linear model
#'   one stored number for each row makes it as cheap as the simple estimate.
#' * `gradient_saga()`: \eqn{g_0(\theta) + A + \frac1n \sum_{i \in S}
#'   [g_i(\theta) - a_i] / p_i}{g_0(theta) + A + (1/n) sum_S [g_i(theta) - a_i]
#'   / p_i}, \eqn{A = \sum_i a_i}, after which \eqn{a_i \leftarrow
#'   g_i(\theta)}{a_i <- g_i(theta)} for the rows drawn (Defazio, Bach &
#'   Lacoste-Julien, 2014; Baker et al., 2019, section 2.3). A row that was
#'   drawn twice changes \eqn{A} once.
#' * `gradient_svrg()`: control variates whose reference moves to the current
#'   \eqn{\theta} every `refresh` estimates, at the cost of one pass over the
#'   data (Johnson & Zhang, 2013). There the estimate is the exact gradient.
#' * `gradient_full()`: the exact gradient, from all rows.
#'
#' The tables of `gradient_saga()` belong to a chain, are part of what a fit
#' saves, and hold one number for each row of a generalised linear model (two
#' with a sampled `sigma`), \eqn{n\_dim}{n_dim} numbers for each row of other
#' models. `gradient_svrg()` keeps two vectors: it computes the gradients at its
#' reference again, in the same visit of a row.
#'
#' Counts of passes over the data include those that make a table or move a
#' reference.
#'
#' @section Order 2:
#' With \eqn{\delta = \theta - \hat\theta}{delta = theta - theta-hat},
#' \eqn{H_i} the Hessian of observation \eqn{i}'s log likelihood at
#' \eqn{\hat\theta}{theta-hat}, \eqn{G = \sum_i g_i(\hat\theta)}{G = sum_i
#' g_i(theta-hat)} and \eqn{H = -\sum_i H_i}{H = -sum_i H_i},
#' \deqn{g_0(\theta) + G - H \delta + \frac1n \sum_{i \in S} \frac{g_i(\theta) -
#' g_i(\hat\theta) - H_i \delta}{p_i}.}{g_0(theta) + G - H delta + (1/n) sum_S
#' [g_i(theta) - g_i(theta-hat) - H_i delta] / p_i.}
#' Bardenet, Doucet & Holmes (2017, section 7.2) expand log likelihoods so. What
#' minibatches estimate is of the order of \eqn{\delta^2}{delta^2}: with tall
#' data the noise is smaller than that of order 1 by a factor of about
#' \eqn{N / d}{N/d}, minibatches of a few rows do, best with
#' `subsample_weighted(size, "cubic")`, and
#' `kernel_sgld(integrator = "leimkuhler-matthews")` takes long steps. A
#' minibatch of one row is unsafe: where the log likelihood grows faster than a
#' quadratic, one draw far out can throw the chain out.
#'
#' \eqn{G} and \eqn{H} are kept, from one pass over the rows of a generalised
#' linear model, of whose rows eight numbers are kept too; each estimate then
#' costs as much as one of order 1 and \eqn{O(d^2)}. Other models need no more
#' than their gradients: \eqn{H} takes about \eqn{2 d} passes of central
#' differences, and \eqn{H_i \delta} is a difference of two gradients, right to
#' some \eqn{10^{-6}}{10^-6} of itself, which makes an estimate three times as
#' expensive. Their log likelihoods must be smooth: those of networks of ReLU
#' units are not. Models with more than 4,000 parameters, and those whose
#' gradients are simulated ([model_lda()]), have order 1 only.
#'
#' [subsample_adaptive()] has sizes that bound the noise of order 1: with order
#' 2 they are valid, and larger than needed.
#'
#' @return A spec of class `tall_gradient` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if `at` is not as described or, once the model is known,
#' has the wrong length; `tall_error_unsupported` if a model has no control
#' variates of order 2, or if the tables of
#' `gradient_saga()` would take more memory than `memory_limit`.
#' @references Bardenet, Doucet & Holmes (2017). On Markov chain Monte Carlo
#' methods for tall data. *Journal of Machine Learning Research* 18(47).
#'
#' Baker, Fearnhead, Fox & Nemeth (2019). Control variates for
#' stochastic gradient MCMC. *Statistics and Computing* 29, 599-615.
#'
#' Defazio, Bach & Lacoste-Julien (2014). SAGA: a fast incremental gradient
#' method with support for non-strongly convex composite objectives.
#' *NeurIPS* 27.
#'
#' Johnson & Zhang (2013). Accelerating stochastic gradient descent using
#' predictive variance reduction. *NeurIPS* 26.
#'
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' gradient_cv()
#' gradient_cv(order = 2)
#' gradient_saga()
#' gradient_svrg(refresh = 100)
#' gradient_full()
#' @name gradients
NULL

#' @rdname gradients
#' @export
gradient_simple <- function() {
  new_spec("gradient", "simple")
}

#' @rdname gradients
#' @export
gradient_cv <- function(at = NULL, order = 1) {
  at <- check_reference(at)
  order <- check_cv_order(order)
  new_spec("gradient", "cv", at = at, order = if (order > 1) order)
}

#' @rdname gradients
#' @export
gradient_saga <- function(
  at = NULL,
  memory_limit = getOption("tallbayes.memory_limit", 2^31)
) {
  at <- check_reference(at)
  memory_limit <- check_number(memory_limit, positive = TRUE)
  new_spec("gradient", "saga", at = at, memory_limit = memory_limit)
}

#' @rdname gradients
#' @export
gradient_svrg <- function(refresh = NULL) {
  new_spec(
    "gradient",
    "svrg",
    refresh = check_count(refresh, allow_null = TRUE)
  )
}

#' @rdname gradients
#' @export
gradient_full <- function() {
  new_spec("gradient", "full")
}

# How a chain moves on the surrogate of exact steps: class tall_moves, what the
# estimator has to know of it (factors_set_surrogate() in
# src/gradients/factors.c). Users' proposals say it themselves; see
# surrogate_moves() and find_scales().
#
#   metric       lower L of coordinates L' theta in which it is about round
#   lines        directions of slices, as columns; NULL: there are none
#   held         functionals that draws under hyperparameters hold, as columns
#   free         directions of all that a block moves, as columns; NULL: all
#   radius, phi  of ||z||, z in these coordinates, what shells begin with; NULL:
#                from the number of parameters
new_moves <- function(
  metric,
  lines = NULL,
  held = NULL,
  free = NULL,
  radius = NULL,
  phi = NULL
) {
  moves <- list(
    metric = metric,
    lines = lines,
    held = held,
    free = free,
    radius = radius,
    phi = phi
  )
  structure(compact(moves), class = "tall_moves")
}

# The estimator of exact steps that a recipe makes. moves: of new_moves(), NULL:
# as the proposals say; ahead: see gradient_ahead(), NULL: the model has all
# rows.
gradient_expanded <- function(at, moves = NULL, ahead = NULL) {
  spec <- gradient_cv(at, order = 2)
  spec$surrogate <- moves
  spec$ahead <- ahead
  spec
}

# The same for chains that stay on the surrogate: no other rows are looked at.
without_test <- function(spec) {
  spec$surrogate$untested <- 1
  spec
}

# The estimator of kernel_smh() on a model that holds nothing but rows that a
# pass over all of them has drawn (src/gradients/drawn.c). at: theta_1 of the
# pass. ahead: list of
#   gradient, hessian  sums of the likelihood over all rows at theta_1, as
#                      chunk_sums() gives them, without the likelihood's scale
#   chol, radius       lower L and R of the pass that drew the rows
#   total              sum of psi over all rows that are thinned
#   always             numbers of the rows, in the model, to be looked at always
#   rows, psi          of each draw, in the order of use: its row in the model
#                      and that row's psi; chain c of n uses the c-th n-th of
#                      them
gradient_ahead <- function(at, ahead) {
  gradient_expanded(at, ahead = ahead)
}

# A mode, a point, or NULL.
check_reference <- function(at) {
  if (inherits(at, "tall_mode")) {
    check_mode(at, arg = "at")
  } else {
    check_numeric_vector(at, allow_null = TRUE, arg = "at")
  }
}

#' @export
compile_spec.tall_gradient_cv <- function(spec, context) {
  if (gradient_order(spec) == 2) {
    return(compile_order(spec, context))
  }
  member("cv", list(at = context$to_sampler(context$reference(spec))))
}

#' @export
compile_spec.tall_gradient_saga <- function(spec, context) {
  check_table_size(spec, context)
  at <- spec$args$at
  if (!is.null(at)) {
    at <- context$to_sampler(context$reference(spec))
  }
  member("saga", list(at = at))
}

check_table_size <- function(spec, context) {
  n_scalar <- model_info(context$model)$n_scalar
  has_scalar <- n_scalar > 0
  per_row <- if (has_scalar) n_scalar else context$n_dim
  bytes <- 8 * context$n_data * per_row * context$chains
  limit <- spec$args$memory_limit
  if (bytes <= limit) {
    return(invisible())
  }
  needed <- format_bytes(bytes)
  allowed <- format_bytes(limit)
  abort_tall(
    "unsupported",
    c(
      "{.fn gradient_saga} needs {needed} for its tables, more than the limit of
       {allowed}.",
      x = "It stores {count_noun(per_row, 'number')} for each of
           {count_noun(context$n_data, 'row')}, in {count_noun(context$chains,
           'chain')}.",
      i = "Use {.fn gradient_svrg} or {.fn gradient_cv}, which store no table,
           or raise {.arg memory_limit}."
    ),
    bytes = bytes,
    limit = limit
  )
}

# What its table in src/gradients/ says: see `enum tb_estimator_flag`.
gradient_info <- function(gradient) {
  .Call(ffi_gradient_info, gradient$name)
}

gradient_is_full <- function(gradient) {
  inherits(gradient, "tall_gradient_full")
}

# What summaries say of an estimator: text, how they name it; remedies, what
# lessens its noise.
gradient_traits <- function(gradient) {
  UseMethod("gradient_traits")
}

new_gradient_traits <- function(
  text,
  remedies = "a smaller step or larger minibatches"
) {
  structure(
    list(text = text, remedies = remedies),
    class = "tall_gradient_traits"
  )
}

#' @export
gradient_traits.default <- function(gradient) {
  new_gradient_traits(paste(gradient$name, "gradients"))
}

#' @export
gradient_traits.tall_gradient_simple <- function(gradient) {
  new_gradient_traits(
    "plain gradients",
    "a smaller step, larger minibatches or control variates"
  )
}

#' @export
gradient_traits.tall_gradient_cv <- function(gradient) {
  of_order <- if (gradient_order(gradient) == 2) " of order 2"
  new_gradient_traits(paste0("control variates", of_order))
}

#' @export
gradient_traits.tall_gradient_saga <- function(gradient) {
  new_gradient_traits("SAGA")
}

#' @export
gradient_traits.tall_gradient_svrg <- function(gradient) {
  new_gradient_traits("SVRG")
}
