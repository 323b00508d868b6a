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
#' @param jitter (number in \[0, 1)) Each trajectory has a step of its own, drawn
#'   between \eqn{(1 - jitter) \epsilon}{(1 - jitter) epsilon} and \eqn{(1 +
#'   jitter) \epsilon}{(1 + jitter) epsilon}: one as long as a period of the
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
#' \eqn{\sigma_\nabla = 1}, \eqn{\beta = (0.9, 0.99)}) it gives 0.404 and 0.540,
#' with \eqn{\gamma = 0.1} and \eqn{\beta_2 = 0.999} even 0.394 and 0.530; the
#' exact form (\eqn{s_1 = s_2 = 0.3}) gives 0.420 and 0.562. Standard errors are
#' 0.0014 at most.
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
#' @section Steps that are not given:
#' With \eqn{A} minus the Hessian of the log posterior at the mode, \eqn{a} its
#' largest eigenvalue and \eqn{d} parameters, a run starts from \eqn{h = 1.65^2
#' d^{-1/3} / a}{h = 1.65^2 d^(-1/3) / a} (MALA, and \eqn{\sigma^2 = h} for
#' AdamMCMC) or \eqn{\epsilon = d^{-1/4} / \sqrt a}{epsilon = d^(-1/4) /
#' sqrt(a)} (HMC); Barker's \eqn{\sigma_j} is \eqn{1.65 d^{-1/6}}{1.65 d^(-1/6)} times
#' \eqn{A_{jj}^{-1/2}}{A_jj^(-1/2)}, divided by the root of the largest
#' eigenvalue of \eqn{A} with these scales. Warmup adapts it. Where the model
#' knows no Hessian, or has no mode, \eqn{a} is that of differences of gradients
#' at the mode or where the first chain starts, some 20 passes over the data.
#' The kernel of the fit has the start, its `chains` and `step_sizes` what was
#' found. One size for all coordinates is slow where these have very different scales:
#' `kernel_barker()`, or a run without a kernel, is better there.
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
check_adapt <- function(
  adapt,
  step,
  arg = caller_arg(step),
  call = caller_env()
) {
  check_flag(adapt, arg = "adapt", call = call)
  if (is.null(step) && !adapt) {
    abort_input(
      c(
        "{.arg {arg}} must be given with {.code adapt = FALSE}.",
        i = "Without both, warmup adapts a first guess."
      ),
      argument = arg,
      call = call
    )
  }
  adapt
}

# Two numbers with exact = TRUE, NULL without.
check_momentum_sd <- function(momentum_sd, exact, call = caller_env()) {
  if (!exact) {
    if (!is.null(momentum_sd)) {
      abort_input(
        c(
          "{.arg momentum_sd} must be left out with {.code exact = FALSE}, whose
           momenta have no noise.",
          i = "Or give {.code exact = TRUE}."
        ),
        argument = "momentum_sd",
        value = momentum_sd,
        call = call
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
      arg = "momentum_sd",
      call = call
    )
  }
  check_numeric_vector(
    momentum_sd,
    size = 1:2,
    positive = TRUE,
    arg = "momentum_sd",
    call = call
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

# ---- steps that are not given ------------------------------------------------

# Those that a kernel has as arguments, but not as numbers.
lacking_steps <- function(kernel) {
  steps <- c("step_size", "sigma", "learning_rate")
  Filter(
    function(name) is.null(kernel$args[[name]]),
    intersect(steps, names(kernel$args))
  )
}

lacks_step <- function(kernel) {
  inherits(kernel, "tall_metropolis") && length(lacking_steps(kernel)) > 0
}

# With the steps that suit a posterior of such scales: `common`, the smallest
# posterior sd of a direction, or `each`, of the coordinates.
fill_steps <- function(kernel, n_dim, common = 1, each = common) {
  args <- kernel$args
  langevin <- recipe_settings$mala_step
  start <- switch(
    kernel$name,
    mala = list(step_size = langevin * n_dim^(-1 / 3) * common^2),
    hmc = list(step_size = n_dim^(-1 / 4) * common),
    barker = list(sigma = sqrt(langevin) * n_dim^(-1 / 6) * each),
    adam_mcmc = {
      sigma <- args$sigma %||% (sqrt(langevin) * n_dim^(-1 / 6) * common)
      list(sigma = sigma, learning_rate = sigma / 10)
    }
  )
  for (name in names(start)) {
    kernel$args[[name]] <- args[[name]] %||% start[[name]]
  }
  kernel
}

# The kernel of a run whose chains have starting points. at_mode: do they come
# from the mode? Then it is known. What is remembered of the model is looked at
# only where it would be found here, since draws depend on the arguments alone.
settle_kernel <- function(plan, at_mode, control, call) {
  if (!lacks_step(plan$kernel)) {
    return(plan$kernel)
  }
  model <- plan$model
  d <- model$n_dim
  at_mode <- at_mode && is.null(model$draw)
  given <- plan$gradient$args$at
  mode <- if (inherits(given, "tall_mode")) {
    given
  } else if (at_mode || model_info(model)$has_curvature) {
    # from an `init`, chains can do without one
    tryCatch(
      plan_mode(plan, control, call),
      tall_error = function(cnd) if (at_mode) rlang::cnd_signal(cnd)
    )
  }
  if (is.null(mode$hessian)) {
    theta <- mode$estimate %||% plan$init[, 1]
    curvature <- curvature_at(plan, as.double(theta), call)
    return(fill_steps(plan$kernel, d, 1 / sqrt(curvature)))
  }
  precision <- -unname(mode$hessian)
  scale <- 1 / sqrt(diag(precision))
  scaled <- scale * precision * rep(scale, each = d)
  largest <- function(a) largest_eigenvalue(function(v) drop(a %*% v), d)
  fill_steps(
    plan$kernel,
    d,
    common = 1 / sqrt(largest(precision)),
    each = scale / sqrt(largest(scaled))
  )
}

# The largest curvature of the log posterior at a point, from gradients.
curvature_at <- function(plan, theta, call) {
  model <- plan$model
  n_iter <- 20
  spend(plan$ledger, "recipe", 1 + n_iter)
  gradient_at <- function(theta) {
    drop(model_evaluate(model, theta, needs_finite = FALSE)$gradient)
  }
  here <- gradient_at(theta)
  h <- 1e-5 * (1 + max(abs(theta)))
  apart <- function(v) (here - gradient_at(theta + h * v)) / h
  value <- largest_eigenvalue(apart, model$n_dim, n_iter)
  if (!is.finite(value) || value <= 0) {
    name <- lacking_steps(plan$kernel)[[1]]
    abort_input(
      c(
        "{.arg {name}} must be given: the gradients where the chains start do
         not show the scale of the posterior.",
        i = "Or give an {.arg init} closer to the mode."
      ),
      argument = name,
      call = call
    )
  }
  value
}

# Of a symmetric matrix, by power iteration on what it does to a vector.
largest_eigenvalue <- function(times, n_dim, n_iter = 30) {
  v <- start_direction(n_dim)
  value <- 0
  for (k in seq_len(n_iter)) {
    w <- times(v)
    value <- sqrt(sum(w^2))
    if (!is.finite(value) || value == 0) {
      break
    }
    v <- w / value
  }
  value
}

#' @export
compile_spec.tall_metropolis <- function(
  spec,
  context,
  call = caller_env()
) {
  args <- spec$args
  if (!is.null(args$sigma)) {
    args$sigma <- check_step_size(args$sigma, context, call, arg = "sigma")
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
  kernel_is_metropolis(kernel) &&
    !kernel_uses_loss(kernel) &&
    !isFALSE(kernel$args$exact)
}

# Is the log posterior of its draws known?
kernel_has_density <- function(kernel) {
  kernel_is_metropolis(kernel) && !kernel_uses_loss(kernel)
}

# ---- what runs with what -----------------------------------------------------

check_has_density <- function(kernel, model, call) {
  if (!model_info(model)$has_density) {
    abort_tall(
      "unsupported",
      c(
        "{.fn kernel_{kernel$name}} needs the log posterior, which
         {.code {model$label}()} does not give.",
        i = "Use a kernel without a Metropolis step, such as
             {.fn kernel_sgld}."
      ),
      call = call
    )
  }
}

# Bounds are seen by a Metropolis step alone.
check_kernel_bounds <- function(kernel, model, call) {
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
    ),
    call = call
  )
}

check_schedule <- function(kernel, schedule, call) {
  if (schedule_is_constant(schedule) || kernel_info(kernel)$takes_schedule) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn kernel_{kernel$name}} takes no schedule but {.fn schedule_constant}:
       an exact kernel needs no decay.",
      i = "Leave {.arg schedule} out."
    ),
    call = call
  )
}

# The estimator of a Metropolis kernel, or the reason why there is none.
metropolis_gradient <- function(kernel, gradient, subsample, call) {
  if (is.null(gradient)) {
    gradient <- if (kernel_uses_loss(kernel)) gradient_cv() else gradient_full()
  }
  name <- paste0("kernel_", kernel$name)
  if (gradient_is_full(gradient)) {
    check_has_minibatch(kernel, name, call)
  } else {
    check_minibatch_gradient(kernel, name, gradient, subsample, call)
  }
  gradient
}

check_has_minibatch <- function(kernel, name, call) {
  if (kernel_uses_loss(kernel)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {name}(ratio = \"minibatch\")} needs minibatches, which
         {.fn gradient_full} has none of.",
        i = "Use {.code ratio = \"full\"}, or {.fn gradient_cv}."
      ),
      call = call
    )
  }
}

check_minibatch_gradient <- function(kernel, name, gradient, subsample, call) {
  given <- paste0("gradient_", gradient$name)
  if (kernel_info(kernel)$needs_full_gradient) {
    reason <- if (isTRUE(kernel$args$exact)) {
      "{.code {name}(exact = TRUE)} needs the exact gradient, which the law of
       its momenta is centred at"
    } else {
      "{.fn {name}} needs the exact gradient in every step of a trajectory"
    }
    abort_tall(
      "unsupported",
      c(
        paste0(reason, "; {.fn {given}} does not give it."),
        i = "Use {.fn gradient_full}; {.fn kernel_mala} and {.fn kernel_barker}
             are exact with minibatch gradients, too."
      ),
      call = call
    )
  }
  if (gradient_info(gradient)$has_memory) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} cannot use {.fn {given}}, whose estimate depends on where
         the chain has been.",
        i = "Use {.fn gradient_full}, {.fn gradient_simple} or
             {.fn gradient_cv}."
      ),
      call = call
    )
  }
  if (kernel_uses_loss(kernel) && !is.null(subsample) &&
    subsample_info(subsample)$looks_at_state) {
    abort_tall(
      "unsupported",
      c(
        "{.code {name}(ratio = \"minibatch\")} compares two points on one
         minibatch, and {.code subsample_{subsample$name}()} draws others at
         each.",
        i = "Use {.fn subsample_uniform} or {.fn subsample_weighted}."
      ),
      call = call
    )
  }
}

# ---- texts -------------------------------------------------------------------

#' @export
kernel_text.tall_kernel_mala <- function(kernel, fit) {
  "MALA"
}

#' @export
kernel_text.tall_kernel_barker <- function(kernel, fit) {
  "Barker"
}

#' @export
kernel_text.tall_kernel_hmc <- function(kernel, fit) {
  "HMC"
}

#' @export
kernel_text.tall_kernel_adam_mcmc <- function(kernel, fit) {
  "AdamMCMC"
}

# What follows the name of a kernel with a Metropolis step.
metropolis_text <- function(fit) {
  if (!kernel_is_metropolis(fit$kernel)) {
    return("")
  }
  acceptance <- mean(fit$chains$acceptance, na.rm = TRUE)
  paste0(
    if (kernel_is_exact(fit$kernel)) " (exact)" else " (approximate)",
    ", acceptance ",
    format(acceptance, digits = 2)
  )
}

# What became of the proposals, and whether the law is the posterior's.
print_metropolis_note <- function(fit) {
  if (!kernel_is_metropolis(fit$kernel)) {
    return(invisible())
  }
  chains <- fit$chains
  rates <- formatC(chains$acceptance, digits = 2, format = "f")
  more <- length(rates) > 10
  cat(
    "Acceptance by chain: ",
    paste(utils::head(rates, 10), collapse = ", "),
    if (more) paste(", ... with", length(rates) - 10, "more"),
    ".\n",
    sep = ""
  )
  outside <- mean(chains$outside)
  if (!is.na(outside) && outside > 0) {
    cat(
      format(100 * outside, digits = 2),
      "% of the proposals were outside the bounds of the prior.\n",
      sep = ""
    )
  }
  nonfinite <- sum(chains$nonfinite)
  if (nonfinite > 0) {
    cat(
      count_noun(nonfinite, "proposal"),
      " had no finite log posterior and ",
      if (nonfinite == 1) "was" else "were",
      " rejected.\n",
      sep = ""
    )
  }
  print_stuck_note(fit)
  if (!kernel_is_exact(fit$kernel)) {
    cat("Approximate: ", approximate_reason(fit$kernel), ".\n", sep = "")
  }
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
