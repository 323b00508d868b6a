# Kernels with momentum or a preconditioner. One constructor for each of
# src/kernels/{sghmc,sgnht,baoab,psgld}.c.

#' Kernels with momentum, and preconditioned Langevin
#'
#' Dynamics with a momentum travel further between turns than those of
#' [kernel_sgld()]. `kernel_sghmc()` and `kernel_sgnht()` are the
#' stochastic-gradient forms of Hamiltonian Monte Carlo, `kernel_baoab()` is the
#' Langevin integrator with the least bias of averages over positions.
#' `kernel_psgld()` is Langevin dynamics in which every coordinate finds a scale
#' of its own.
#'
#' @param step_size (positive number or, except for `kernel_sgnht()`, a vector
#'   with one value for each coordinate) \eqn{\eta}{eta} or \eqn{h} below. The
#'   gradient is that of the log posterior, which is summed (not averaged) over
#'   the data.
#' @param friction (positive number) The momentum lost in a step: for
#'   `kernel_sghmc()` the share \eqn{a \le 1}{a <= 1}; for `kernel_baoab()` all
#'   but the factor \eqn{c = \exp(-}{c = exp(-}`friction`\eqn{)}{)}, `Inf` for
#'   \eqn{c = 0}.
#' @param leapfrog (count, or `NULL`) The steps of an iteration, each with a
#'   gradient of its own, after a fresh momentum; `NULL`: one step an iteration,
#'   and the momentum is never drawn afresh.
#' @param noise_estimate (string) `"none"`, or `"minibatch"`: take the estimated
#'   variance of the gradient noise out of the injected noise.
#' @param noise_smoothing (number in (0, 1\]) The weight of the newest minibatch
#'   in the running average of that variance.
#' @param diffusion (positive number) \eqn{a} below.
#' @param decay (number in \[0, 1)) \eqn{\alpha}{alpha} below.
#' @param epsilon (positive number) \eqn{\epsilon}{epsilon} below.
#'
#' @details
#' With \eqn{\hat g}{g} the estimated gradient of the log posterior,
#'
#' * `kernel_sghmc()` (Chen, Fox & Guestrin, 2014, eq. 15): \eqn{v \leftarrow
#'   (1 - a) v + \eta \hat g + N(0, 2 \eta (a - b))}{v <- (1 - a) v + eta g +
#'   N(0, 2 eta (a - b))}, \eqn{\theta \leftarrow \theta + v}{theta <- theta +
#'   v}, with \eqn{b = \eta \tau^2 / 2}{b = eta tau^2 / 2} (at most \eqn{a}),
#'   the share of gradient noise of variance \eqn{\tau^2}{tau^2}, or 0. With
#'   `leapfrog` the first gradient after a fresh momentum is halved: with the
#'   whole of it, as the paper's Algorithm 2 has it, the variances tend to
#'   \eqn{L / (L + 1)} of the true ones as step size and friction fall, \eqn{L}
#'   the number of steps. With \eqn{a = 1} the kernel is `kernel_sgld(2 *
#'   step_size)`.
#' * `kernel_sgnht()` (Ding et al., 2014, Algorithm 1): \eqn{v \leftarrow v -
#'   \xi v + \eta \hat g + N(0, 2 a \eta)}{v <- v - xi v + eta g + N(0, 2 a
#'   eta)}, \eqn{\theta \leftarrow \theta + v}{theta <- theta + v}, \eqn{\xi
#'   \leftarrow \xi + v^\top v / d - \eta}{xi <- xi + v'v / d - eta}. The
#'   thermostat \eqn{\xi}{xi} takes up gradient noise that has the same variance
#'   in every coordinate; it needs no estimate of it.
#' * `kernel_baoab()` (Leimkuhler & Matthews, 2013): half a kick \eqn{\sqrt h
#'   \hat g / 2}{sqrt(h) g / 2}, half a drift \eqn{\sqrt h p / 2}{sqrt(h) p /
#'   2}, \eqn{p \leftarrow c p + \sqrt{1 - c^2} \xi}{p <- c p + sqrt(1 - c^2)
#'   xi}, and the halves in reverse order. On a Gaussian with exact gradients
#'   its variance is exact for every stable \eqn{h}; with `friction = Inf` it is
#'   the Leimkuhler-Matthews integrator of [kernel_sgld()] with the same step
#'   size.
#' * `kernel_psgld()` (Li et al., 2016, Algorithm 1): \eqn{V \leftarrow \alpha
#'   V + (1 - \alpha) (\hat g / N)^2}{V <- alpha V + (1 - alpha) (g / N)^2},
#'   \eqn{G = 1 / (\epsilon + \sqrt V)}{G = 1 / (epsilon + sqrt(V))},
#'   \eqn{\theta \leftarrow \theta + \frac h2 G \hat g + N(0, h G)}{theta <-
#'   theta + (h/2) G g + N(0, h G)}. The paper's drift term \eqn{\Gamma}{Gamma}
#'   is left out, as in the paper's own experiments: a bias that does not vanish
#'   with the step size, small where \eqn{\alpha}{alpha} is near 1.
#'
#' @return A spec of class `tall_kernel` for [sg_sample()].
#' @section Conditions: `tall_error_input` if an argument is not as described;
#' when the run starts, `tall_error_unsupported` if a variance is needed and
#' minibatches have one row.
#' @references Chen, Fox & Guestrin (2014). Stochastic gradient Hamiltonian
#' Monte Carlo. *ICML*.
#'
#' Ding, Fang, Babbush, Chen, Skeel & Neven (2014). Bayesian sampling using
#' stochastic gradient thermostats. *NIPS*.
#'
#' Leimkuhler & Matthews (2013). Rational construction of stochastic numerical
#' methods for molecular sampling. *Applied Mathematics Research eXpress* 2013,
#' 34-56.
#'
#' Li, Chen, Carlson & Carin (2016). Preconditioned stochastic gradient Langevin
#' dynamics for deep neural networks. *AAAI*.
#' @seealso [kernel_sgld()], [kernel_sgbd()], [schedule_cyclical()]
#' @examples
#' kernel_sghmc(1e-5, friction = 0.1)
#' kernel_sghmc(1e-5, friction = 0.01, leapfrog = 5)
#' kernel_sgnht(1e-5)
#' kernel_baoab(1e-4, friction = 0.5)
#' kernel_psgld(1e-3)
#'
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' model <- model_glm(x, rbinom(1000, 1, plogis(x[, "age"])))
#' batches <- subsample_uniform(50)
#' sg_sample(model, kernel_sghmc(1e-4), subsample = batches, seed = 1)
#' sg_sample(model, kernel_sgnht(1e-5), subsample = batches, seed = 1)
#' sg_sample(model, kernel_baoab(1e-4), subsample = batches, seed = 1)
#' sg_sample(model, kernel_psgld(1e-3), subsample = batches, seed = 1)
#' @name kernels-momentum
NULL

sghmc_noise_estimates <- c("none", "minibatch")

#' @rdname kernels-momentum
#' @export
kernel_sghmc <- function(
  step_size,
  friction = 0.1,
  leapfrog = NULL,
  noise_estimate = c("none", "minibatch"),
  noise_smoothing = 0.1
) {
  noise_estimate <- check_choice(noise_estimate, sghmc_noise_estimates)
  new_spec(
    "kernel",
    "sghmc",
    step_size = check_step_sizes(step_size),
    friction = check_number(friction, max = 1, positive = TRUE),
    leapfrog = check_count(leapfrog, most = 1e6, allow_null = TRUE),
    noise_estimate = noise_estimate,
    noise_smoothing = if (noise_estimate == "minibatch") {
      check_smoothing(noise_smoothing)
    }
  )
}

#' @rdname kernels-momentum
#' @export
kernel_sgnht <- function(step_size, diffusion = 0.01) {
  check_noisy_step(step_size, "step_size")
  new_spec(
    "kernel",
    "sgnht",
    step_size = check_number(step_size, positive = TRUE),
    diffusion = check_number(diffusion, positive = TRUE)
  )
}

#' @rdname kernels-momentum
#' @export
kernel_baoab <- function(step_size, friction = 1) {
  if (!identical(friction, Inf)) {
    check_number(friction, positive = TRUE)
  }
  new_spec(
    "kernel",
    "baoab",
    step_size = check_step_sizes(step_size),
    friction = friction
  )
}

#' @rdname kernels-momentum
#' @export
kernel_psgld <- function(step_size, decay = 0.99, epsilon = 1e-5) {
  decay <- check_number(decay, min = 0)
  if (decay >= 1) {
    abort_expected(decay, "a number at least 0 and below 1", arg = "decay")
  }
  new_spec(
    "kernel",
    "psgld",
    step_size = check_step_sizes(step_size),
    decay = decay,
    epsilon = check_number(epsilon, positive = TRUE)
  )
}

#' @export
compile_spec.tall_kernel_sghmc <- function(spec, context) {
  args <- spec$args
  args$step_size <- check_step_size(args$step_size, context)
  args$leapfrog <- args$leapfrog %||% 0
  args$noise_estimate <-
    match(args$noise_estimate, sghmc_noise_estimates) - 1
  member("sghmc", args)
}

#' @export
compile_spec.tall_kernel_baoab <- function(spec, context) {
  args <- spec$args
  args$step_size <- check_step_size(args$step_size, context)
  member("baoab", args)
}

#' @export
compile_spec.tall_kernel_psgld <- function(spec, context) {
  args <- spec$args
  args$step_size <- check_step_size(args$step_size, context)
  member("psgld", args)
}

# Beyond it the gradient's noise is more than the friction takes up.
#' @export
kernel_traits.tall_kernel_sghmc <- function(kernel) {
  args <- kernel$args
  estimate <- args$noise_estimate
  new_kernel_traits(
    if (estimate == "none") "SGHMC" else "SGHMC (noise estimated)",
    noise_option = list(
      given = paste0("noise_estimate = \"", estimate, "\""),
      instead = "noise_estimate = \"none\""
    ),
    tolerance = function(fit) {
      size <- sqrt(args$step_size)
      limit <- sqrt(2 * args$friction)
      list(sizes = size, limit = limit, tolerance = limit, quantile = 1)
    }
  )
}

#' @export
kernel_traits.tall_kernel_sgnht <- function(kernel) {
  new_kernel_traits("SGNHT")
}

#' @export
kernel_traits.tall_kernel_baoab <- function(kernel) {
  new_kernel_traits("BAOAB", bias_order = 2)
}

#' @export
kernel_traits.tall_kernel_psgld <- function(kernel) {
  new_kernel_traits("preconditioned SGLD")
}
