# Metropolis-adjusted kernels: a proposal, accepted or rejected.

#' Metropolis-adjusted kernels
#'
#' A proposal that is accepted or rejected, so that the posterior (or the Gibbs
#' posterior, see `lambda` of [sg_sample()]) is sampled exactly; `ratio =
#' "minibatch"` and AdamMCMC as published are approximate. `kernel_mala()`
#' proposes by a Langevin step, `kernel_barker()` by Barker's, `kernel_hmc()` by
#' a Hamiltonian trajectory and `kernel_adam_mcmc()` by a step of ADAM.
#'
#' @param step_size (positive number or `NULL`) For `kernel_mala()` the variance
#'   \eqn{h} of the proposal's noise, with a drift of \eqn{h/2} times the
#'   gradient of the log posterior (summed, not averaged, over the data); for
#'   `kernel_hmc()` the step \eqn{\epsilon} of the leapfrog integrator. `NULL`:
#'   found by the run, see *Steps that are not given*.
#' @param sigma_direction (non-negative number) \eqn{\sigma_\nabla}: additional
#'   noise in the direction of \eqn{u} below, in units of \eqn{u}.
#' @param sigma (positive number or `NULL`; for `kernel_barker()` also a vector
#'   with one value for each coordinate) The standard deviation of the
#'   proposal's noise, the size of an increment. `NULL`: found by the run.
#' @param steps (whole number) Leapfrog steps of a trajectory, each a pass over
#'   the data.
#' @param jitter (number in \[0, 1)) Each trajectory has a step of its own,
#'   drawn between \eqn{(1 - jitter) \epsilon}{(1 - jitter) epsilon} and \eqn{(1
#'   + jitter) \epsilon}{(1 + jitter) epsilon}: one as long as a period of the
#'   motion would end where it began, every time (Neal, 2011, section 5.4). 0.2
#'   where the step is not given.
#' @param noise (string) `"normal"`: increments \eqn{N(0, \sigma^2)}, or
#'   `"bimodal"`: \eqn{N(\sigma, (0.1 \sigma)^2)}.
#' @param adapt (`TRUE` or `FALSE`) Tune the scale during warmup towards an
#'   acceptance rate of 0.574 (`kernel_hmc()`: 0.8), then freeze it?
#'   `kernel_adam_mcmc()` multiplies \eqn{\sigma^2} and \eqn{\gamma} by one
#'   factor. A step that is given is taken as it is unless `adapt` says
#'   otherwise; one that is not must be adapted.
#' @param ratio (string) `"full"`: accept by the log posterior of all rows,
#'   which is exact. `"minibatch"`: by that of the minibatch whose gradient made
#'   the proposal, which is **approximate** and says so wherever the fit is
#'   printed.
#' @param learning_rate (positive number or `NULL`) ADAM's \eqn{\gamma}: about
#'   the size of a step in each coordinate. `NULL`: a tenth of `sigma`.
#' @param beta (two numbers in \[0, 1)) ADAM's memories \eqn{\beta_1, \beta_2}
#'   of the gradient and of its square.
#' @param delta (positive number) Added to the root of the second momentum.
#' @param exact (`TRUE` or `FALSE`) `FALSE`: the paper's Algorithm 1, which is
#'   biased. `TRUE`: the chain of its Theorem 1, which is not.
#' @param momentum_sd (one or two positive numbers; with `exact = TRUE`)
#'   \eqn{s_1, s_2}: standard deviations of the momenta about the gradient of
#'   the mean loss and about its square; one number stands for both. Small ones
#'   stick.
#'
#' @details
#' With \eqn{g} the gradient of the log posterior, \eqn{\lambda} its inverse
#' temperature (the number of observations \eqn{N} for Bayes) and \eqn{u = -g /
#' \lambda}, which is the gradient of the mean loss with the prior's share:
#'
#' * MALA (Roberts & Tweedie, 1996): \eqn{\tau \sim N(\theta + \frac h2 g,
#'   \Sigma)}{tau ~ N(theta + (h/2) g, Sigma)}, \eqn{\Sigma = h I +
#'   \sigma_\nabla^2 u u^T} (Bieringer et al., 2023, section 4.1, whose drift
#'   \eqn{-\gamma u} is this one with \eqn{\gamma = \lambda h / 2}). The paper
#'   prints the noise as \eqn{\Sigma W}; the covariance must be \eqn{\Sigma}.
#'   Its determinant (eq. 4) and inverse (eq. 5) take time linear in the number
#'   of parameters.
#' * Barker (Livingstone & Zanella, 2022, Algorithms 1 and 2): \eqn{\tau_j =
#'   \theta_j + b w} with \eqn{b = 1} with probability \eqn{1 / (1 + \exp(-w
#'   g_j))}{1 / (1 + exp(-w g_j))}, else \eqn{-1}. With \eqn{z = \tau - \theta}
#'   the ratio is \eqn{\pi(\tau) / \pi(\theta) \prod_j [1 + \exp(-z_j
#'   g_j(\theta))] / [1 + \exp(z_j g_j(\tau))]}.
#' * HMC (Duane et al., 1987): momenta \eqn{N(0, I)}, `steps` leapfrog steps.
#' * AdamMCMC (Bieringer et al., 2023, Algorithm 1): with \eqn{d} the gradient
#'   of \eqn{-\frac1\lambda \log p_\lambda}{-(1/lambda) log p_lambda},
#'   \deqn{u(\theta, m) = \gamma \frac{\beta_1 m_1 + (1 - \beta_1) d}{1 -
#'   \beta_1^k} \Big/ \left( \sqrt{\frac{|\beta_2 m_2 + (1 - \beta_2) d^2|}{1 -
#'   \beta_2^k}} + \delta \right),} \eqn{\tau \sim N(\theta - u, \sigma^2 I +
#'   \sigma_\nabla^2 u u^T)} (eq. 7), judged from \eqn{\tau} with the same
#'   \eqn{m} and \eqn{k}.
#'   * `exact = FALSE`: \eqn{m = 0} at first, moved by eq. 6 on acceptance only;
#'     \eqn{k} counts those moves, because counting rejections would shrink
#'     \eqn{u}.
#'   * `exact = TRUE`: no bias correction (\eqn{1 - \beta^k} is 1), \eqn{m_l
#'     \sim N(d^l, s_l^2)} at first, and \eqn{m_l \sim N(\beta_l m_l + (1 -
#'     \beta_l) d^l, (1 - \beta_l^2) s_l^2)} after every iteration, accepted or
#'     not; the ratio has the factor \eqn{C}, \eqn{\log C = \sum_l [\|m_l -
#'     d(\theta)^l\|^2 - \|m_l - d(\tau)^l\|^2] / (2 s_l^2)}. (The last line of
#'     the paper's \eqn{C} lacks the power \eqn{l}; its theorem has one scale
#'     for both momenta.)
#'
#' \eqn{C = 1}, the practical algorithm, is not a small thing to leave out: on a
#' two-dimensional normal target with standard deviations 0.4188 and 0.5604 and
#' correlation 0.5 (\eqn{\lambda = 20}, \eqn{\gamma = 0.05}, \eqn{\sigma = 0.3},
#' \eqn{\sigma_\nabla = 1}, \eqn{\beta = (0.9, 0.99)}) it gives 0.403 and 0.540,
#' with \eqn{\gamma = 0.1} and \eqn{\beta_2 = 0.999} even 0.393 and 0.530; the
#' exact form (\eqn{s_1 = s_2 = 0.3}) gives 0.420 and 0.561. Standard errors are
#' 0.0021 at most.
#'
#' @section Minibatch gradients:
#' `kernel_mala()`, `kernel_barker()` and
#' `kernel_adam_mcmc(exact = FALSE)` also take [gradient_simple()] and
#' [gradient_cv()]. The proposal then uses a minibatch and the ratio all rows:
#' for the first two **exact**, because the minibatch is part of the state. A
#' minibatch is drawn with the state, the way back is judged by the one drawn at
#' the proposal, and both move together; their probabilities cancel. An
#' iteration costs one minibatch gradient and one pass for the loss alone. Noise
#' in the gradient lowers the acceptance rate. [gradient_saga()] and
#' [gradient_svrg()] have a memory that moves with the chain and are refused.
#'
#' @section Steps that are not given: With \eqn{A} minus the Hessian of the log
#' posterior at the mode, \eqn{a} its largest eigenvalue and \eqn{d} parameters,
#' a run starts from \eqn{h = 1.65^2 d^{-1/3} / a}{h = 1.65^2 d^(-1/3) / a}
#' (MALA, and \eqn{\sigma^2 = h} for AdamMCMC) or \eqn{\epsilon = d^{-1/4} /
#' \sqrt a}{epsilon = d^(-1/4) / sqrt(a)} (HMC); Barker's \eqn{\sigma_j} is
#' \eqn{1.65 d^{-1/6}}{1.65 d^(-1/6)} times \eqn{A_{jj}^{-1/2}}{A_jj^(-1/2)},
#' divided by the root of the largest eigenvalue of \eqn{A} with these scales.
#' Warmup adapts it. Where the model knows no Hessian, or has no mode, \eqn{a}
#' is that of differences of gradients at the mode or where the first chain
#' starts, some 20 passes over the data. The kernel of the fit has the start,
#' its `chains` and `step_sizes` what was found. One size for all coordinates is
#' slow where these have very different scales: a front end or a run without a
#' kernel, which whiten them, is better there.
#'
#' @section Kernels of front ends: [tall_glm()], [tall_multinom()],
#' [tall_polr()] and [tall_glmer()] run these kernels in coordinates \eqn{\phi =
#' L^T (\theta - \hat\theta)}{phi = L'(theta - theta-hat)} that are whitened at
#' the mode, see *The recipe* of [sg_sample()]; draws, gradients and `init` are
#' in the parameters all the same. A step that is given is one of \eqn{\phi},
#' in posterior standard deviations (`kernel_mala()`: variances). With one that
#' is not, an iteration after warmup is as many steps as the recipe makes for a
#' nearly independent draw, \eqn{\lceil 5 d^{1/3} \rceil}{5 d^(1/3)}, or a
#' trajectory; a `thin` comes on top. [sg_sample()], kernels without a
#' Metropolis step and `kernel_barker()` with one `sigma` for each parameter
#' stay in the parameters.
#'
#' @section Bounds:
#' Under [prior_uniform()], a proposal outside the bounds is rejected. The share
#' of such proposals, and the number of those whose log posterior is not finite,
#' are printed.
#'
#' @return A spec of class `tall_kernel` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if an argument is not as described; when the run starts,
#' `tall_error_unsupported` for an estimator or a model the kernel cannot use.
#' @references
#' Bieringer, Kasieczka, Steffen & Trabs (2023). AdamMCMC: combining Metropolis
#' adjusted Langevin with momentum-based optimization. *arXiv:2312.14027*.
#'
#' Duane, Kennedy, Pendleton & Roweth (1987). Hybrid Monte Carlo. *Physics
#' Letters B* 195, 216-222.
#'
#' Livingstone & Zanella (2022). The Barker proposal: combining robustness and
#' efficiency in gradient-based MCMC. *Journal of the Royal Statistical Society,
#' Series B* 84, 496-523.
#'
#' Roberts & Tweedie (1996). Exponential convergence of Langevin distributions
#' and their discrete approximations. *Bernoulli* 2, 341-363.
#' @seealso [kernel_sgld()] and [kernel_sgbd()], without a Metropolis step
#' @examples
#' kernel_mala()
#' kernel_mala(1e-3, sigma_direction = 0.5)
#' kernel_barker(0.05, adapt = TRUE)
#' kernel_hmc(0.05, steps = 10)
#' kernel_adam_mcmc(0.01, 0.05, 1, exact = TRUE, momentum_sd = c(1, 0.5))
#'
#' x <- cbind("(Intercept)" = 1, age = rnorm(200))
#' model <- model_glm(x, rbinom(200, 1, 0.5), prior = prior_uniform(-2, 2))
#' sg_sample(model, kernel_mala(), iter = 500, seed = 1)
#' sg_sample(model, kernel_barker(0.1, adapt = TRUE), iter = 500, seed = 1)
#' sg_sample(model, kernel_hmc(0.05, steps = 10), iter = 500, seed = 1)
#' @name metropolis
NULL

ratios <- c("full", "minibatch")

barker_noises <- c("normal", "bimodal")

#' @rdname metropolis
#' @export
kernel_mala <- function(
  step_size = NULL,
  sigma_direction = 0,
  adapt = is.null(step_size),
  ratio = c("full", "minibatch")
) {
  step_size <- check_number(step_size, positive = TRUE, allow_null = TRUE)
  new_metropolis(
    "mala",
    step_size = step_size,
    sigma_direction = check_number(sigma_direction, min = 0),
    adapt = check_adapt(adapt, step_size),
    ratio = check_choice(ratio, ratios)
  )
}

#' @rdname metropolis
#' @export
kernel_barker <- function(
  sigma = NULL,
  noise = c("normal", "bimodal"),
  adapt = is.null(sigma),
  ratio = c("full", "minibatch")
) {
  sigma <- check_numeric_vector(sigma, positive = TRUE, allow_null = TRUE)
  new_metropolis(
    "barker",
    sigma = sigma,
    noise = check_choice(noise, barker_noises),
    adapt = check_adapt(adapt, sigma),
    ratio = check_choice(ratio, ratios)
  )
}

#' @rdname metropolis
#' @export
kernel_hmc <- function(
  step_size = NULL,
  steps = 10,
  adapt = is.null(step_size),
  jitter = if (is.null(step_size)) 0.2 else 0
) {
  step_size <- check_number(step_size, positive = TRUE, allow_null = TRUE)
  jitter <- check_number(jitter, min = 0)
  if (jitter >= 1) {
    abort_expected(jitter, "a number of at least 0 and below 1")
  }
  new_metropolis(
    "hmc",
    step_size = step_size,
    # a step cannot be interrupted
    steps = check_count(steps, most = 1e6),
    adapt = check_adapt(adapt, step_size),
    jitter = if (jitter > 0) jitter
  )
}

#' @rdname metropolis
#' @export
kernel_adam_mcmc <- function(
  learning_rate = NULL,
  sigma = NULL,
  sigma_direction = 0,
  beta = c(0.9, 0.999),
  delta = 1e-8,
  exact = FALSE,
  momentum_sd = NULL,
  adapt = is.null(sigma),
  ratio = c("full", "minibatch")
) {
  exact <- check_flag(exact)
  ratio <- check_choice(ratio, ratios)
  if (exact && ratio != "full") {
    abort_tall(
      "unsupported",
      c(
        "An exact AdamMCMC cannot have {.code ratio = \"minibatch\"}.",
        i = "Use {.code ratio = \"full\"}, or {.code exact = FALSE}."
      )
    )
  }
  sigma <- check_number(sigma, positive = TRUE, allow_null = TRUE)
  new_metropolis(
    "adam_mcmc",
    learning_rate = check_number(
      learning_rate,
      positive = TRUE,
      allow_null = TRUE
    ),
    sigma = sigma,
    sigma_direction = check_number(sigma_direction, min = 0),
    beta = check_beta(beta),
    delta = check_number(delta, positive = TRUE),
    exact = exact,
    momentum_sd = check_momentum_sd(momentum_sd, exact),
    adapt = check_adapt(adapt, sigma),
    ratio = ratio
  )
}

new_metropolis <- function(name, ...) {
  spec <- new_spec("kernel", name, ...)
  class(spec) <- append(class(spec), "tall_metropolis", after = 2)
  spec
}

# A step that the run finds is where adaptation starts.
check_adapt <- function(adapt, step, arg = caller_arg(step)) {
  check_flag(adapt, arg = "adapt")
  if (is.null(step) && !adapt) {
    abort_input(
      c(
        "{.arg {arg}} must be given with {.code adapt = FALSE}.",
        i = "Without both, warmup adapts a first guess."
      ),
      argument = arg
    )
  }
  adapt
}

# Two numbers with exact = TRUE, NULL without.
check_momentum_sd <- function(momentum_sd, exact) {
  if (!exact) {
    if (!is.null(momentum_sd)) {
      abort_input(
        c(
          "{.arg momentum_sd} must be left out with {.code exact = FALSE}, whose
           momenta have no noise.",
          i = "Or give {.code exact = TRUE}."
        ),
        argument = "momentum_sd",
        value = momentum_sd
      )
    }
    return(NULL)
  }
  if (is.null(momentum_sd)) {
    abort_expected(
      momentum_sd,
      "one or two positive numbers with `exact = TRUE`",
      hint = paste(
        "A start is the posterior's spread of the gradient of the mean loss,",
        "and of its square."
      ),
      arg = "momentum_sd"
    )
  }
  check_numeric_vector(
    momentum_sd,
    size = 1:2,
    positive = TRUE,
    arg = "momentum_sd"
  )
  rep_len(unname(momentum_sd), 2)
}

#' @export
print.tall_metropolis <- function(x, ...) {
  NextMethod()
  for (name in lacking_steps(x)) {
    cat("  ", name, ": found by the run\n", sep = "")
  }
  invisible(x)
}

#' @export
compile_spec.tall_metropolis <- function(spec, context) {
  args <- spec$args
  if (!is.null(args$sigma)) {
    args$sigma <- check_step_size(args$sigma, context, arg = "sigma")
  }
  if (!is.null(args$ratio)) {
    args$ratio <- match(args$ratio, ratios) - 1
  }
  if (!is.null(args$noise)) {
    args$noise <- match(args$noise, barker_noises) - 1
  }
  member(spec$name, args)
}

kernel_is_metropolis <- function(kernel) {
  kernel_info(kernel)$is_metropolis
}

# Does it accept by the log posterior of minibatches?
kernel_uses_loss <- function(kernel) {
  kernel_info(kernel)$uses_loss
}

# Is the posterior exactly invariant, with the estimators the kernel may use?
kernel_is_exact <- function(kernel) {
  kernel_is_independent(kernel) ||
    kernel_is_metropolis(kernel) &&
      !kernel_uses_loss(kernel) &&
      !isFALSE(kernel$args$exact)
}

# Is the log posterior of its draws known?
kernel_has_density <- function(kernel) {
  if (kernel_is_independent(kernel)) {
    return(TRUE)
  }
  info <- kernel_info(kernel)
  info$is_metropolis && !info$uses_loss && !info$is_factorised && !info$sweeps
}

# ---- what runs with what -----------------------------------------------------

check_has_density <- function(kernel, model) {
  if (!model_info(model)$has_density) {
    abort_tall(
      "unsupported",
      c(
        "{.fn kernel_{kernel$name}} needs the log posterior, which
         {.code {model$label}()} does not give.",
        i = "Use a kernel without a Metropolis step, such as
             {.fn kernel_sgld}."
      )
    )
  }
}

# Bounds are seen by a Metropolis step alone.
check_kernel_bounds <- function(kernel, model) {
  at <- bounded_coordinates(model)
  if (length(at) == 0 || is.null(kernel) || kernel_is_metropolis(kernel)) {
    return(invisible())
  }
  name <- paste0("kernel_", kernel$name)
  abort_tall(
    "unsupported",
    c(
      "{.fn {name}} cannot sample under {.fn prior_uniform}: without a
       Metropolis step nothing keeps a chain within the bounds.",
      i = "Use {.fn kernel_mala} or {.fn kernel_barker}, or a prior without
           bounds such as {.fn prior_normal}."
    )
  )
}

check_schedule <- function(kernel, schedule) {
  if (schedule_is_constant(schedule) || kernel_info(kernel)$takes_schedule) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn kernel_{kernel$name}} takes no schedule but {.fn schedule_constant}:
       an exact kernel needs no decay.",
      i = "Leave {.arg schedule} out."
    )
  )
}

# ---- texts and steps ---------------------------------------------------------

# Where few proposals are refused in many dimensions (Roberts & Rosenthal 1998,
# JRSS B 60:255): MALA's step is h = 1.65^2 d^(-1/3) variances, then adapted.
langevin_step <- 1.65^2

#' @export
kernel_traits.tall_kernel_mala <- function(kernel) {
  new_kernel_traits("MALA", usual_steps = function(n_dim, common, each) {
    list(step_size = langevin_step * n_dim^(-1 / 3) * common^2)
  })
}

#' @export
kernel_traits.tall_kernel_barker <- function(kernel) {
  new_kernel_traits("Barker", usual_steps = function(n_dim, common, each) {
    list(sigma = sqrt(langevin_step) * n_dim^(-1 / 6) * each)
  })
}

#' @export
kernel_traits.tall_kernel_hmc <- function(kernel) {
  new_kernel_traits("HMC", usual_steps = function(n_dim, common, each) {
    list(step_size = n_dim^(-1 / 4) * common)
  })
}

#' @export
kernel_traits.tall_kernel_adam_mcmc <- function(kernel) {
  new_kernel_traits("AdamMCMC", usual_steps = function(n_dim, common, each) {
    sigma <- kernel$args$sigma %||%
      (sqrt(langevin_step) * n_dim^(-1 / 6) * common)
    list(sigma = sigma, learning_rate = sigma / 10)
  })
}

# What follows the name of a kernel with a Metropolis step. exactness: what is
# said of one that is exact.
metropolis_text <- function(fit, exactness) {
  if (!kernel_is_metropolis(fit$kernel)) {
    return("")
  }
  acceptance <- mean(fit$chains$acceptance, na.rm = TRUE)
  paste0(
    " (",
    if (kernel_is_exact(fit$kernel)) exactness else "approximate",
    "), acceptance ",
    rate_text(acceptance)
  )
}

approximate_reason <- function(kernel) {
  if (kernel_uses_loss(kernel)) {
    "proposals were accepted by the loss of minibatches"
  } else {
    paste0(
      "AdamMCMC as published does not leave the posterior invariant;\n",
      "  `exact = TRUE` does"
    )
  }
}
