# Kernels: how a chain moves. One constructor for each member of
# src/kernels/registry.c.

#' Langevin kernels
#'
#' `kernel_sgld()` is stochastic gradient Langevin dynamics: a Langevin step
#' along an estimate of the gradient, without a Metropolis correction.
#' [kernel_mala()] is the same with one.
#'
#' @param step_size (positive number, or a vector with one value for each
#'   coordinate) The variance \eqn{h} of the injected noise; a
#'   drift of \eqn{h/2} times the gradient of the log posterior, which is summed
#'   (not averaged) over the data.
#' @param variant (string) `"vanilla"`; `"corrected"` or `"modified"`: take the
#'   estimated variance of the gradient noise out of the injected noise;
#'   `"extreme"`: inject no noise, which does **not** sample the posterior.
#' @param integrator (string) `"euler"` or `"leimkuhler-matthews"`, see below.
#' @param noise_smoothing (number in (0, 1\]) The weight \eqn{\beta} of the
#'   newest minibatch in the running average of the gradient noise's variance. A
#'   gradient from all rows has no noise: it is corrected for none, and the
#'   average goes on after it.
#'
#' @details
#' With \eqn{\hat g}{g} the estimated gradient of the log posterior and
#' \eqn{\xi}{xi} standard normal,
#'
#' * Euler (Welling & Teh, 2011, eq. 4): \eqn{\theta + \frac h2 \hat g + \sqrt h
#'   \xi_t}{theta + (h/2) g + sqrt(h) xi_t}. On a Gaussian with precision
#'   \eqn{\lambda} and exact gradients its variance is
#'   \eqn{1 / (\lambda (1 - h \lambda / 4))}.
#' * Leimkuhler-Matthews (2013, eq. 1.5): \eqn{\theta + \frac h2 \hat g +
#'   \frac{\sqrt h}2 (\xi_t + \xi_{t+1})}{theta + (h/2) g + (sqrt(h)/2) (xi_t +
#'   xi_{t+1})}. On that Gaussian its variance is exactly \eqn{1 / \lambda}.
#'
#' `"corrected"` (Mauri & Zanella, 2024, section 2.3) scales \eqn{\xi}{xi} by
#' \eqn{\sqrt{\max(0, 1 - h \tau^2 / 4)}}{sqrt(max(0, 1 - h tau^2 / 4))} in each
#' coordinate, \eqn{\tau^2}{tau^2} the variance of \eqn{\hat g}{g}: the average
#' of the variances within the minibatches, with the factor \eqn{N/\sqrt n} that
#' the paper's Algorithm 3 leaves out. The Leimkuhler-Matthews form divides by
#' \eqn{4 - h} instead of 4 where the coordinates are whitened. `"modified"`
#' (Vollmer, Zygalakis & Teh, 2016) scales \eqn{\xi}{xi} by \eqn{\max(0, 1 - h
#' \tau^2 / 8)}{max(0, 1 - h tau^2 / 8)}, so that the noise adds up to \eqn{h +
#' O(h^3)}.
#'
#' @return A spec of class `tall_kernel` for [sg_sample()].
#' @section Conditions: `tall_error_input` if an argument is not as described; a
#' step size of zero is refused, because the chain would not move. When the run
#' starts, `tall_error_unsupported` if a variant needs the variance of the
#' gradient noise and minibatches have one row.
#' @references
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#'
#' Leimkuhler & Matthews (2013). Rational construction of stochastic numerical
#' methods for molecular sampling. *Applied Mathematics Research eXpress* 2013,
#' 34-56.
#'
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @seealso [kernel_mala()] for kernels with a Metropolis step
#' @examples
#' kernel_sgld(1e-4)
#' kernel_sgld(1e-4, variant = "corrected", integrator = "leimkuhler-matthews")
#'
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' model <- model_glm(x, rbinom(1000, 1, plogis(x[, "age"])))
#' sg_sample(
#'   model,
#'   kernel_sgld(1e-4),
#'   gradient_cv(),
#'   subsample_uniform(50),
#'   seed = 1
#' )
#' @name kernels
NULL

sgld_variants <- c("vanilla", "corrected", "extreme", "modified")

sgld_integrators <- c("euler", "leimkuhler-matthews")

#' @rdname kernels
#' @export
kernel_sgld <- function(
  step_size,
  variant = c("vanilla", "corrected", "extreme", "modified"),
  integrator = c("euler", "leimkuhler-matthews"),
  noise_smoothing = 0.1
) {
  step_size <- check_step_sizes(step_size)
  variant <- check_choice(variant, sgld_variants)
  integrator <- check_choice(integrator, sgld_integrators)
  if (integrator != "euler" && variant %in% c("extreme", "modified")) {
    abort_tall(
      "unsupported",
      c(
        "There is no {.val {variant}} variant of the Leimkuhler-Matthews
         integrator.",
        i = "Use {.val vanilla} or {.val corrected}, or the Euler integrator."
      )
    )
  }
  new_spec(
    "kernel",
    "sgld",
    step_size = step_size,
    variant = variant,
    integrator = integrator,
    noise_smoothing = if (variant %in% c("corrected", "modified")) {
      check_smoothing(noise_smoothing)
    }
  )
}

# A positive number, or one for each coordinate.
check_step_sizes <- function(step_size) {
  check_noisy_step(step_size, "step_size")
  if (length(step_size) > 1) {
    check_numeric_vector(step_size, positive = TRUE)
  } else {
    check_number(step_size, positive = TRUE)
  }
}

# Without a Metropolis step no first guess can be put right by warmup: the bias
# follows the step, and acceptance rates that would tell there are none.
check_noisy_step <- function(step, arg) {
  if (!missing(step) && !is.null(step)) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg {arg}} must be given: it has no default, since the bias of a kernel
       without a Metropolis step depends on it.",
      i = "{.code sg_sample(model)} without a {.arg kernel} finds all settings;
           {.fn sg_tune} compares step sizes for this one."
    ),
    argument = arg
  )
}

#' Barker kernels
#'
#' `kernel_sgbd()` is stochastic gradient Barker dynamics: every coordinate
#' moves by a random increment whose sign, not whose size, depends on the
#' gradient, so that no gradient can throw the chain out.
#'
#' @param sigma (positive number, or a vector with one value for each
#'   coordinate) The size of an increment.
#' @param variant (string) `"vanilla"`; `"corrected"`: undo what gradient noise
#'   does to the probability of the sign; `"extreme"`: always along the
#'   gradient, which does **not** sample the posterior.
#' @param noise (string) `"bimodal"`: increments \eqn{N(\sigma, (0.1
#'   \sigma)^2)}, or `"normal"`: \eqn{N(0, \sigma^2)}.
#' @param noise_smoothing (number in (0, 1\]) The weight of the newest minibatch
#'   in the running average of the gradient noise's variance, see
#'   [kernel_sgld()].
#' @param constant (positive number) \eqn{K} below.
#' @param adaptive (`TRUE` or `FALSE`) Set the size of each coordinate's
#'   increments during warmup to \eqn{K / (q \tau_j)}{K / (q tau_j)}, at most
#'   `sigma`, then freeze it? \eqn{q} is the 0.99 quantile of an increment over
#'   its size, so that 99 percent of proposals stay within the noise tolerance.
#'   The sizes found are the element `step_sizes` of the fit, chains x
#'   coordinates, and in [noise_tolerance()]. The correction takes the noise of
#'   coordinates as independent: where it is correlated, steps near the
#'   tolerance leave standard deviations that are too small, by a quarter in
#'   `vignette("barker-dynamics")`, which the fit's summary says.
#'
#' @details In coordinate \eqn{j}, with the increment \eqn{w} and the gradient
#' estimate \eqn{\hat g_j}{g_j} (Mauri & Zanella, 2024, Algorithms 1 to 6):
#' \eqn{\theta_j + b w}, with \eqn{b = 1} with probability
#'
#' * vanilla: \eqn{p = 1 / (1 + \exp(-w \hat g_j))}{p = 1 / (1 + exp(-w g_j))};
#' * corrected: the same with \eqn{\hat g_j}{g_j} times \eqn{K / \sqrt{K^2 -
#'   \tau_j^2 w^2}}{K / sqrt(K^2 - tau_j^2 w^2)} where \eqn{|w| < K /
#'   \tau_j}{|w| < K / tau_j}, else by the sign of \eqn{w \hat g_j}{w g_j};
#' * extreme: by that sign. As \eqn{\sigma}{sigma} falls the variance of a
#'   coordinate tends to \eqn{\sigma \tau_j / (4 \phi(0))}{sigma tau_j / (4
#'   phi(0))} times the posterior's: right where the noise is just at the
#'   tolerance, \eqn{4 \phi(0) / \sigma}{4 phi(0) / sigma}, and zero without
#'   noise.
#'
#' \eqn{\tau_j}{tau_j} is the standard deviation of \eqn{\hat g_j}{g_j} with its
#' factor \eqn{N / \sqrt n}, which Algorithms 3 and 6 of the paper leave out;
#' its average is over variances, where the authors' program averages standard
#' deviations. The correction is only approximately unbiased below the
#' tolerance: near it the variance is up to 6.6 percent too large with \eqn{K
#' = 1.702} (best over all \eqn{w}), less with \eqn{K = 4 \phi(0) = 1.596}
#' (exact slope at zero).
#'
#' A schedule multiplies \eqn{\sigma^2}, as it does the step size of
#' [kernel_sgld()].
#'
#' @return A spec of class `tall_kernel` for [sg_sample()].
#' @section Conditions: `tall_error_input` if an argument is not as described;
#' when the run starts, `tall_error_unsupported` if a variance is needed and
#' minibatches have one row.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @seealso [noise_tolerance()]
#' @examples
#' kernel_sgbd(1e-3)
#' kernel_sgbd(c(1e-2, 1e-3), variant = "corrected", noise = "normal")
#'
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' model <- model_glm(x, rbinom(1000, 1, plogis(x[, "age"])))
#' batches <- subsample_uniform(50)
#' sg_sample(model, kernel_sgbd(0.02), subsample = batches, seed = 1)
#' @export
kernel_sgbd <- function(
  sigma,
  variant = c("vanilla", "corrected", "extreme"),
  noise = c("bimodal", "normal"),
  noise_smoothing = 0.1,
  constant = 1.702,
  adaptive = FALSE
) {
  check_noisy_step(sigma, "sigma")
  sigma <- check_numeric_vector(sigma, positive = TRUE)
  variant <- check_choice(variant, sgbd_variants)
  adaptive <- check_flag(adaptive)
  uses_noise <- variant == "corrected" || adaptive
  new_spec(
    "kernel",
    "sgbd",
    sigma = sigma,
    variant = variant,
    noise = check_choice(noise, sgbd_noises),
    noise_smoothing = if (uses_noise) check_smoothing(noise_smoothing),
    constant = check_number(constant, positive = TRUE),
    adaptive = adaptive
  )
}

sgbd_variants <- c("vanilla", "corrected", "extreme")

sgbd_noises <- c("bimodal", "normal")

check_smoothing <- function(noise_smoothing, arg = "noise_smoothing") {
  check_number(noise_smoothing, max = 1, positive = TRUE, arg = arg)
}

# One step size, or one for each coordinate; also other sizes of steps.
check_step_size <- function(step_size, context, arg = "step_size") {
  # of directions that whitening made there are no names
  known <- if (!context$is_whitened) context$model$coordinates
  step_size <- match_names(step_size, known, arg = arg)
  check_size(step_size, c(1, context$n_dim), arg = arg)
}

#' @export
compile_spec.tall_kernel_sgld <- function(spec, context) {
  args <- spec$args
  args$step_size <- check_step_size(args$step_size, context)
  member(
    "sgld",
    list(
      step_size = args$step_size,
      variant = match(args$variant, sgld_variants) - 1,
      integrator = match(args$integrator, sgld_integrators) - 1,
      noise_smoothing = args$noise_smoothing,
      precision = if (context$is_whitened) 1 else 0
    )
  )
}

#' @export
compile_spec.tall_kernel_sgbd <- function(spec, context) {
  args <- spec$args
  args$sigma <- check_step_size(args$sigma, context, arg = "sigma")
  args$variant <- match(args$variant, sgbd_variants) - 1
  args$noise <- match(args$noise, sgbd_noises) - 1
  member("sgbd", args)
}

# What a kernel asks of the rest of a run, as its table in src/kernels/ says:
# see `enum tb_kernel_flag`. Options count, sizes do not.
kernel_info <- function(kernel) {
  if (kernel_is_independent(kernel)) {
    return(independent_info)
  }
  if (lacks_step(kernel)) {
    kernel <- fill_steps(kernel, 1)
  }
  n_dim <- max(1, lengths(kernel$args))
  compiled <- compile_spec(kernel, list(n_dim = n_dim, is_whitened = FALSE))
  .Call(ffi_kernel_info, compiled, n_dim)
}

kernel_is_independent <- function(kernel) {
  inherits(kernel, "tall_kernel_independent")
}

# As kernel_info() has them: nothing moves.
independent_info <- list(
  is_metropolis = FALSE,
  uses_variance = FALSE,
  takes_schedule = FALSE,
  uses_loss = FALSE,
  needs_full_gradient = FALSE,
  has_tolerance = FALSE,
  is_factorised = FALSE,
  has_companion = FALSE,
  sweeps = FALSE
)

# Kernels that leave out the noise do not sample the posterior.
kernel_is_extreme <- function(kernel) {
  identical(kernel$args$variant, "extreme")
}

#' @export
kernel_traits.tall_kernel_sgld <- function(kernel) {
  args <- kernel$args
  is_euler <- args$integrator == "euler"
  new_kernel_traits(
    variant_text(if (is_euler) "SGLD" else "Leimkuhler-Matthews", kernel),
    bias_order = if (is_euler) 1 else 2,
    noise_option = variant_option(kernel),
    tolerance = function(fit) {
      size <- sqrt(args$step_size)
      list(sizes = size, limit = 2, tolerance = 2, quantile = 1)
    }
  )
}

#' @export
kernel_traits.tall_kernel_sgbd <- function(kernel) {
  args <- kernel$args
  is_adaptive <- isTRUE(args$adaptive)
  new_kernel_traits(
    variant_text("Barker dynamics", kernel),
    noise_option = if (is_adaptive) {
      list(given = "adaptive = TRUE", instead = "adaptive = FALSE")
    } else {
      variant_option(kernel)
    },
    tolerance = function(fit) {
      list(
        # as the last state of the chains has it
        sizes = if (is_adaptive) {
          unname(colMeans(fit$step_sizes))
        } else {
          args$sigma
        },
        limit = args$constant,
        tolerance = 4 * stats::dnorm(0),
        quantile = if (args$noise == "bimodal") {
          1 + 0.1 * stats::qnorm(0.99)
        } else {
          stats::qnorm(0.995)
        }
      )
    }
  )
}

variant_option <- function(kernel) {
  list(
    given = paste0("variant = \"", kernel$args$variant, "\""),
    instead = "variant = \"vanilla\""
  )
}

variant_text <- function(name, kernel) {
  variant <- kernel$args$variant
  if (variant == "vanilla") name else paste0(name, " (", variant, ")")
}
