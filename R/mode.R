# The mode of the log posterior, and the checks that it is one.

#' Find the mode of a posterior
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param method (string) `"newton"` (Newton's method with step halving, for
#'   models with a Hessian), `"lbfgs"` ([stats::optim()]), `"adam"` or `"sgd"`
#'   (by minibatches, drawn with R's generator), or `"auto"`: Newton's method
#'   where the model can, `"adam"` for networks, else L-BFGS.
#' @param init (numeric vector of n_dim values, or `NULL`) Where to start, in
#'   the order of the parameters or with their names; `NULL` is the model's own
#'   start: zero for most, drawn with R's generator for [model_network()],
#'   [model_lda()], [model_bpmf()] and [model_pmf()].
#' @param max_iter (whole number) The most iterations; with `"adam"` and `"sgd"`
#'   their number.
#' @param batch_size (positive number) Rows in a minibatch of `"adam"` and
#'   `"sgd"`, drawn without replacement; a number below 1 is a fraction of the
#'   data.
#' @param learning_rate (positive number or `NULL`) \eqn{h_0} below.
#'   `NULL`: 0.01 for `"adam"`, 0.1 / n_data for `"sgd"`, whose gradient is
#'   summed over the data.
#' @param decay (positive number or `NULL`) \eqn{k_0} below; `NULL`: a constant
#'   rate.
#' @param beta (two numbers) ADAM's memories of the gradient and of its square.
#' @param cores (whole number) Threads to use.
#' @param refresh (number) 0 is silent; otherwise a progress bar appears when
#'   `"adam"` or `"sgd"` takes longer than two seconds.
#'
#' @details
#' Newton's method first runs on an evenly spaced tenth of the rows of a large
#' data set, which costs little and ends close to the mode of all rows.
#'
#' `"sgd"` makes the steps \eqn{\theta + h_k \hat g}{theta + h_k g} with
#' \eqn{\hat g}{g} the minibatch gradient of the log posterior (no factor one
#' half) and \eqn{h_k = h_0 / (1 + k / k_0)}{h_k = h_0 / (1 + k / k_0)}.
#' `"adam"` (Kingma & Ba, 2015) divides its running mean by the root of that of
#' its square. Neither ends at the mode exactly: `distance` says how far it is
#' in posterior standard deviations, \eqn{\sqrt{g^T \hat\Sigma g}}{sqrt(g' Sigma
#' g)} at the end. Control variates stay unbiased about any point.
#'
#' Runs that need a mode and are given none search for it as `find_mode(model)`
#' does, with random numbers of a fixed seed: that mode depends on the model
#' alone, not on `seed`, and R's generator stays as it is.
#'
#' Newton's method and L-BFGS (where there is a Hessian, by whose diagonal at
#' the start it scales) depend neither on the units of the columns nor on those
#' of a Gaussian response.
#'
#' Improper posteriors are refused. Under a flat prior, the classes of a
#' binomial regression may be separated, or the counts of a Poisson regression
#' all be 0 in some rows: the likelihood then rises without end, the linear
#' predictor grows past 30 (7.4 for probits, 3.4 for complementary log-logs,
#' where probabilities are as close to 0 or 1), the log posterior is no lower
#' 1e8 of Newton's steps ahead, and the error names the columns at fault. A
#' Hessian without a Cholesky factor means columns that depend on each other.
#'
#' A proper posterior need not have a mode. That of a hierarchical model whose
#' effects are parameters, with a scale that is one, too, rises without end as
#' the scale falls to 0 and takes the effects with it: the error says so. The
#' non-centred form has a mode: effects `mu + tau * z`, with `z` in place of the
#' effects as parameters, and a standard normal prior on `z`.
#'
#' Where the coefficients of a Gaussian model can fit every response, as with as
#' many columns as rows, the density rises without end as a sampled `sigma`
#' falls to 0. If the posterior is improper, too, the error says so; if it is
#' proper, it has no mode all the same, and runs start and scale at the most
#' probable `sigma` with the coefficients integrated out.
#'
#' With a Laplace prior of scale \eqn{s}, \eqn{|\theta_j|} is rounded to
#' \eqn{\sqrt{\theta_j^2 + \epsilon_j^2}}{sqrt(theta_j^2 + eps_j^2)},
#' \eqn{\epsilon_j} the standard deviation the likelihood alone gives; the
#' posterior that is sampled is not altered. The Hessian counts the prior as
#' \eqn{1 / (2 s^2)}.
#'
#' Under [prior_uniform()] Newton's method and L-BFGS find the mode within the
#' bounds; `"adam"` and `"sgd"` do not see them. The Hessian then counts a prior
#' of half-width \eqn{w} as \eqn{-3 / w^2}, that of its variance, and a
#' parameter at a bound with slope \eqn{g} as \eqn{-g^2}, that of the
#' exponential distribution away from there; `gradient_norm` is that of the
#' others.
#'
#' @return An object of class `tall_mode`: a list with
#'
#' * `estimate` (named numeric vector): the mode \eqn{\hat\theta}{theta-hat}, of
#'   `log_sigma` where `sigma` is a parameter;
#' * `log_posterior`, `gradient_norm` (numbers): there;
#' * `hessian` (matrix): the Hessian of the log posterior, negative definite;
#' * `passes` (number): passes over the data used;
#' * `iterations`, `converged`, `method`, and `at_bound`: names of parameters at
#'   a bound of their prior;
#' * `trace` (data frame): `iteration`, `passes`, `log_posterior`,
#'   `gradient_norm` along the search, for [plot()][plot.tall_mode()];
#' * `distance` (number): see below, for `"adam"` and `"sgd"`.
#'
#' [vcov()] gives the inverse of minus the Hessian, `coef()` the estimate.
#' @section Conditions:
#' `tall_error_improper` if the posterior of a regression is not proper or has
#' no finite mode; `tall_error_mode` if the log posterior of another model has
#' none, or its Hessian is not negative definite there;
#' `tall_error_unsupported` if the model cannot do `method`;
#' `tall_warning_mode` if the search did not converge.
#' @references
#' Kingma & Ba (2015). Adam: a method for stochastic optimization. *ICLR*.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(500))
#' y <- rbinom(500, 1, plogis(0.5 + x[, "age"]))
#' mode <- find_mode(model_glm(x, y, family = "bernoulli"))
#' mode
#' vcov(mode)
#' @export
find_mode <- function(
  model,
  method = c("auto", "newton", "lbfgs", "adam", "sgd"),
  init = NULL,
  max_iter = if (mode_is_stochastic(method)) 5000 else 100,
  batch_size = 500,
  learning_rate = NULL,
  decay = max_iter / 10,
  beta = c(0.9, 0.999),
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  check_model(model)
  check_not_whitened(model)
  method <- check_choice(method, c("auto", "newton", "lbfgs", "adam", "sgd"))
  method <- mode_method(model, method)
  init <- check_numeric_vector(init, size = model$n_dim, allow_null = TRUE)
  init <- match_names(init, model$coordinates)
  max_iter <- check_count(max_iter, most = count_limits$integer)
  cores <- check_cores(cores)
  refresh <- check_number(refresh, min = 0)
  has_curvature <- model_info(model)$has_curvature
  if (method == "newton" && !has_curvature) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no Hessian, which Newton's method needs.",
        i = "Use {.code method = \"lbfgs\"}."
      )
    )
  }
  settings <- if (mode_is_stochastic(method)) {
    stochastic_settings(model, method, batch_size, learning_rate, decay, beta)
  }
  search_mode(model, method, init, max_iter, cores, refresh, settings)
}

# find_mode() once its arguments are known to be good; `settings` are those of
# mode_stochastic(). stands_in: where there is no mode but a posterior, is a
# point to start and scale by welcome?
search_mode <- function(
  model,
  method = mode_method(model),
  init = NULL,
  max_iter = if (mode_is_stochastic(method)) 5000 else 100,
  cores = 1,
  refresh = getOption("tallbayes.refresh", 1),
  settings = stochastic_settings(model, method, decay = max_iter / 10),
  stands_in = FALSE,
  call = caller_env()
) {
  has_curvature <- model_info(model)$has_curvature
  start <- if (is.null(init)) model_start(model) else as.double(init)
  search <- function() {
    switch(
      method,
      newton = seek_peak(
        mode_newton(model, start, max_iter, cores, call),
        model,
        start,
        cores,
        call
      ),
      lbfgs = seek_peak(
        mode_lbfgs(model, start, max_iter, has_curvature, cores, call),
        model,
        start,
        cores,
        call
      ),
      mode_stochastic(
        model,
        start,
        method,
        max_iter,
        settings$batch_size,
        settings$learning_rate,
        settings$decay,
        settings$beta,
        cores,
        search_label(refresh),
        call
      )
    )
  }
  if (mode_is_stochastic(method) || !can_lose_sigma(model)) {
    mode <- search()
  } else {
    mode <- tryCatch(search(), tall_error_improper = identity)
    if (has_lost_sigma(mode, model, if (stands_in) Inf else max_iter)) {
      centre <- gaussian_centre(model, stands_in, cores, call)
      if (!is.null(centre)) {
        return(centre)
      }
    }
    if (inherits(mode, "error")) {
      rlang::cnd_signal(mode)
    }
  }
  if (!mode$converged) {
    warn_no_convergence(mode, method, max_iter, call)
  }
  mode
}

warn_no_convergence <- function(mode, method, max_iter, call) {
  n <- count_noun(mode$iterations, "iteration")
  ended <- mode$iterations < max_iter
  warn_tall(
    "mode",
    c(
      if (ended) {
        "The search for the mode ended after {n}: no step raised the log
         posterior, though its gradient is not zero."
      } else {
        "The search for the mode did not converge in {n}."
      },
      x = "The norm of the gradient is {format_number(mode$gradient_norm)}.",
      i = if (mode_is_stochastic(method)) {
        "Raise {.arg max_iter}, or change {.arg learning_rate}."
      } else if (ended) {
        "Give {.arg init}, bring the parameters to one scale, or check that the
         gradient is that of the density."
      } else {
        "Raise {.arg max_iter} of {.fn find_mode}, or give {.arg init}."
      }
    ),
    call = call
  )
}

# What "auto" stands for.
mode_method <- function(model, method = "auto") {
  if (method != "auto") {
    method
  } else if (!is.null(model$mode_method)) {
    model$mode_method
  } else if (model_info(model)$has_curvature) {
    "newton"
  } else {
    "lbfgs"
  }
}

mode_is_stochastic <- function(method) {
  method %in% c("adam", "sgd")
}

# Those of mode_stochastic(), checked.
stochastic_settings <- function(
  model,
  method,
  batch_size = 500,
  learning_rate = NULL,
  decay = NULL,
  beta = c(0.9, 0.999),
  call = caller_env()
) {
  learning_rate <- check_number(
    learning_rate,
    positive = TRUE,
    allow_null = TRUE,
    call = call
  )
  list(
    batch_size = check_batch_size(batch_size, "batch_size", call = call),
    learning_rate = learning_rate %||%
      if (method == "adam") 0.01 else 0.1 / model$n_data,
    decay = check_number(
      decay,
      positive = TRUE,
      allow_null = TRUE,
      call = call
    ),
    beta = check_beta(beta, call = call)
  )
}

check_beta <- function(beta, arg = caller_arg(beta), call = caller_env()) {
  force(arg) # before `beta` is a value
  beta <- check_numeric_vector(beta, size = 2, arg = arg, call = call)
  if (any(beta < 0 | beta >= 1)) {
    abort_expected(
      beta,
      "two numbers of at least 0 and below 1",
      arg = arg,
      call = call
    )
  }
  beta
}

# A model's own starting point may be random: then it is a function.
model_start <- function(model) {
  if (is.function(model$start)) {
    model$start()
  } else {
    model$start %||% numeric(model$n_dim)
  }
}

# The mode found with the defaults, remembered in the model. A search may draw
# its start and its minibatches: always the same ones, so that what is
# remembered depends on the model alone, and not on the run that was the first
# to ask.
model_mode <- function(
  model,
  cores = 1,
  refresh = getOption("tallbayes.refresh", 1),
  call = caller_env()
) {
  check_not_whitened(model, call)
  if (is.null(model$cache$mode)) {
    model$cache$mode <- with_seed(
      mode_seed,
      search_mode(
        model,
        cores = cores,
        refresh = refresh,
        stands_in = TRUE,
        call = call
      )
    )
  }
  model$cache$mode
}

mode_seed <- 1L

# theta and the Cholesky factor (lower) of -Hessian there, from whatever `at` is
mode_point <- function(model, at, needs_chol = TRUE, call = caller_env()) {
  if (needs_chol) {
    check_has_hessian(model, call) # before the search for a mode
  }
  if (is.null(at)) {
    at <- model_mode(model, call = call)
  }
  if (inherits(at, "tall_mode")) {
    check_mode(at, arg = "at", call = call)
    check_size(at$estimate, model$n_dim, arg = "at", call = call)
    theta <- as.double(at$estimate)
    chol <- if (needs_chol) at$chol %||% point_chol(model, theta, call)
    return(list(theta = theta, chol = chol))
  }
  theta <- check_numeric_vector(at, size = model$n_dim, arg = "at", call = call)
  theta <- match_names(theta, model$coordinates, arg = "at", call = call)
  theta <- as.double(theta)
  list(theta = theta, chol = if (needs_chol) point_chol(model, theta, call))
}

point_chol <- function(model, theta, call) {
  lower_chol(proper_hessian(model, theta, call = call), model, call)
}

# For weights by it.
check_has_hessian <- function(model, call) {
  if (!model_info(model)$has_curvature) {
    check_not_whitened(model, call)
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no Hessian, which these weights need.",
        i = "Use weights of type {.val gradient}."
      ),
      argument = "weights",
      call = call
    )
  }
}

# Log posterior, gradient and minus Hessian at theta. Where the model says that
# a value is not finite, there is an error, or a log posterior of NaN where
# `needs_finite` is FALSE.
curvature <- function(
  model,
  theta,
  index = NULL,
  round = NULL,
  cores = 1,
  needs_finite = TRUE,
  call = caller_env()
) {
  weight <- if (is.null(index)) 1 else model$n_data / length(index)
  weight <- weight * likelihood_scale(model)
  out <- .Call(
    ffi_model_curvature,
    model$pointer,
    as.double(theta),
    if (!is.null(index)) as.double(index),
    as.double(weight),
    if (!is.null(round)) as.double(round),
    as.integer(cores)
  )
  if (!needs_finite && status_name(out$status) == "nonfinite") {
    out$log_posterior <- NaN
  } else {
    abort_status(out$status, call = call)
  }
  out
}

# Passes over the rows for one Hessian.
curvature_passes <- function(model) {
  model$curvature_passes %||% 1
}

# Minus the Hessian of the log posterior at theta, where a Laplace prior, which
# has no curvature of its own, counts as 1 / (2 s^2): it is what identifies
# columns that depend on each other.
proper_hessian <- function(
  model,
  theta,
  index = NULL,
  cores = 1,
  call = caller_env()
) {
  hessian <- curvature(model, theta, index, cores = cores, call = call)$hessian
  laplace <- which(model$prior$kind == prior_kinds$laplace$code)
  at <- cbind(laplace, laplace)
  hessian[at] <- hessian[at] + 1 / (2 * model$prior$scale[laplace]^2)
  hessian
}

# With log sigma apart from the coefficients: at the mode their cross terms are
# twice the prior's gradient, next to nothing, and away from it minus the full
# Hessian need not be positive definite.
split_sigma <- function(hessian, model) {
  if (isTRUE(model$samples_aux)) {
    d <- model$n_dim
    hessian[d, -d] <- hessian[-d, d] <- 0
  }
  hessian
}

# Lower Cholesky factor of minus the Hessian, or an error that names the
# columns that depend on each other, if there are columns. Scaled to unit
# diagonal first: what is singular must not depend on units.
lower_chol <- function(hessian, model, call = caller_env()) {
  hessian <- split_sigma(hessian, model)
  scale <- sqrt(pmax(diag(hessian), 0))
  if (all(is.finite(hessian)) && all(scale > 0)) {
    correlation <- hessian / outer(scale, scale)
    root <- suppressWarnings(chol(correlation, pivot = TRUE, tol = 1e-13))
    rank <- attr(root, "rank")
    if (rank == nrow(hessian)) {
      return(t(chol(correlation)) * scale)
    }
    dependent <- attr(root, "pivot")[-seq_len(rank)]
  } else {
    dependent <- which(!(scale > 0))
  }
  if (!has_columns(model)) {
    abort_no_curvature(hessian, model, call)
  }
  names <- quote_columns(model$coordinates[dependent])
  # proper priors may count for nothing beside the likelihood
  kind <- model$prior$kind[dependent]
  is_proper <- !is.null(kind) && all(!kind %in% flat_kinds())
  abort_tall(
    "improper",
    if (is_proper) {
      c(
        "The columns depend on each other too closely to compute with.",
        x = "{names} {cli::qty(length(dependent))}{?is a/are} linear
             combination{?/s} of the other columns to six digits or more, as is,
             beside an intercept, a column of values far from zero for their
             spread.",
        i = "{cli::qty(length(dependent))}Centre {?it/them}, for instance with
             {.fn scale}, drop {?it/them}, or give a narrower prior."
      )
    } else {
      c(
        "The posterior is not proper: the columns depend on each other.",
        x = "{names} {cli::qty(length(dependent))}{?is a/are} linear
             combination{?/s} of the other columns, or zero everywhere.",
        i = "{cli::qty(length(dependent))}Drop {?it/them}, or give a proper
             prior such as {.code prior_normal()}."
      )
    },
    columns = model$variables[dependent],
    call = call
  )
}

# Codes of priors that are not proper.
flat_kinds <- function() {
  c(prior_kinds$flat$code, prior_kinds$log_flat$code)
}

quote_columns <- function(names) {
  shown <- paste0("`", utils::head(names, 5), "`")
  if (length(names) > 5) {
    shown <- c(shown, paste(length(names) - 5, "more"))
  }
  cli::ansi_collapse(shown, last = " and ")
}

# ---- Newton ------------------------------------------------------------------

mode_newton <- function(model, start, max_iter, cores, call = caller_env()) {
  laplace <- which(model$prior$kind == prior_kinds$laplace$code)
  passes <- 0
  iterations <- 0
  round <- NULL
  trace <- NULL
  subsample <- newton_rows(model)
  stages <- c(if (!is.null(subsample)) "rows", "all")
  box <- mode_box(model)
  start <- box_inside(box, start)
  state <- list(theta = start)
  for (stage in stages) {
    index <- if (stage == "rows") subsample
    share <- if (stage == "rows") length(index) / model$n_data else 1
    each <- share * curvature_passes(model)
    if (length(laplace) > 0) {
      round <- laplace_rounding(model, state$theta, laplace, index, cores, call)
      passes <- passes + share
    }
    state <- newton_stage(
      model,
      state$theta,
      index,
      round,
      max_iter,
      cores,
      call,
      box
    )
    steps <- state$steps
    trace <- rbind(
      trace,
      data.frame(
        iteration = iterations + seq_len(nrow(steps)),
        passes = passes + each * steps[, 1],
        # a subsample's log posterior is of another function: its curve ends
        log_posterior = if (stage == "all") steps[, 2] else NA_real_,
        gradient_norm = steps[, 3]
      )
    )
    passes <- passes + each * state$n_evaluation
    iterations <- iterations + state$iterations
    if (stage == "rows" && !state$converged) {
      # too few rows for a mode of their own: let all rows decide
      state$theta <- if (all(is.finite(state$theta))) state$theta else start
    }
  }
  if (length(laplace) > 0) {
    hessian <- proper_hessian(model, state$theta, cores = cores, call = call)
    passes <- passes + 1
  } else {
    hessian <- state$hessian
  }
  mode <- new_mode(
    model,
    estimate = state$theta,
    log_posterior = state$log_posterior,
    gradient = state$gradient,
    minus_hessian = hessian,
    passes = passes,
    iterations = iterations,
    converged = state$converged,
    method = "newton",
    box = box,
    call = call
  )
  mode$trace <- trace
  mode
}

# An evenly spaced tenth of the rows, when that is still plenty.
newton_rows <- function(model) {
  n <- floor(model$n_data / 10)
  if (n < max(5000, 50 * model$n_dim)) {
    return(NULL)
  }
  floor(seq(1, model$n_data, length.out = n))
}

# epsilon_j: the sd that the likelihood alone gives, kept finite by the prior.
laplace_rounding <- function(model, theta, laplace, index, cores, call) {
  hessian <- proper_hessian(model, theta, index, cores, call)
  sd <- sqrt(diag(chol2inv(t(lower_chol(hessian, model, call)))))
  round <- numeric(model$n_dim)
  round[laplace] <- sd[laplace]
  round
}

newton_stage <- function(
  model,
  theta,
  index,
  round,
  max_iter,
  cores,
  call,
  box = mode_box(model)
) {
  look <- function(theta) {
    curvature(model, theta, index, round, cores, needs_finite = FALSE, call)
  }
  here <- look(theta)
  n_evaluation <- 1
  steps <- NULL
  decrement <- Inf
  converged <- FALSE
  for (iteration in seq_len(max_iter)) {
    if (!is.finite(here$log_posterior)) {
      abort_no_mode(model, theta, call)
    }
    steps <- rbind(
      steps,
      c(n_evaluation, here$log_posterior, sqrt(sum(here$gradient^2)))
    )
    step <- newton_step(model, theta, here, is.null(index), box, call)
    if (is.null(step)) {
      break
    }
    previous <- decrement
    decrement <- sum(step * here$gradient)
    # quadratic convergence, or nothing left to gain in double precision
    done <- decrement < 1e-10 && (decrement < 0.05 * previous ||
      decrement < 1e-20 * (1 + abs(here$log_posterior)))
    if (is.null(index)) {
      check_separation(
        model,
        theta,
        step,
        here,
        previous,
        decrement,
        is_last = done,
        call
      )
    }
    if (done) {
      converged <- TRUE
      break
    }
    scale <- 1
    repeat {
      there <- look(theta + scale * step)
      n_evaluation <- n_evaluation + 1
      rise <- there$log_posterior - here$log_posterior
      tolerance <- 1e-12 * (1 + abs(here$log_posterior))
      if (is.finite(rise) && rise >= -tolerance) {
        break
      }
      scale <- scale / 2
      if (scale < 1e-10) {
        break
      }
    }
    if (scale < 1e-10) {
      converged <- decrement < 1e-6
      break
    }
    theta <- theta + scale * step
    here <- there
  }
  list(
    theta = theta,
    log_posterior = here$log_posterior,
    gradient = here$gradient,
    hessian = here$hessian,
    converged = converged,
    iterations = iteration,
    n_evaluation = n_evaluation,
    steps = steps
  )
}

# NULL: none to be had, because a subsample is singular where all rows are not.
newton_step <- function(model, theta, here, is_last, box, call) {
  if (!is.null(box)) {
    here$hessian <- split_sigma(damped_sigma(here, model), model)
    step <- box_step(box, theta, here)
    if (!is.null(step) || !is_last) {
      return(step)
    }
  }
  root <- tryCatch(
    lower_chol(damped_sigma(here, model), model, call),
    tall_error = identity
  )
  if (is.matrix(root)) {
    return(drop(backsolve(t(root), forwardsolve(root, here$gradient))))
  }
  if (is_last) {
    # rows that are separated leave the Hessian, and columns with them
    if (can_separate(model) && has_large_predictor(model, theta)) {
      abort_separation(model, numeric(model$n_dim), here, call)
    }
    rlang::cnd_signal(root)
  }
}

# Minus the Hessian for a step. Where sigma is far too large the curvature in
# log sigma is next to nothing, and a full step would be thousands long: with
# the slope added the step is below 1, and the same where the slope is 0.
damped_sigma <- function(here, model) {
  hessian <- here$hessian
  if (isTRUE(model$samples_aux)) {
    d <- model$n_dim
    hessian[d, d] <- hessian[d, d] + max(0, -here$gradient[[d]])
  }
  hessian
}

has_flat_prior <- function(model) {
  any(model$prior$kind == prior_kinds$flat$code)
}

# May the likelihood rise without end? A Gaussian one has its maximum, whatever
# the predictor.
can_separate <- function(model) {
  inherits(model, "tall_model_glm") &&
    !is.null(find_response(model$family)$separation) &&
    has_flat_prior(model)
}

# A likelihood without a maximum rises for ever along the steps of Newton's
# method, whose decrement falls by a constant factor (1/e) where it should fall
# quadratically. Neither that nor a large linear predictor is proof: a row far
# out has one wherever the maximum is. Far ahead along the step the log
# posterior is lower if there is a maximum.
#
# is_last: there is nothing left to climb in double precision, so that a slow
# decrement is proof.
check_separation <- function(
  model,
  theta,
  step,
  here,
  previous,
  decrement,
  is_last,
  call
) {
  slow <- is.finite(previous) && decrement > 0.1 * previous
  if (!slow || !can_separate(model) || !has_large_predictor(model, theta)) {
    return(invisible())
  }
  if (!is_last) {
    ahead <- model_evaluate(
      model,
      theta + 1e8 * step,
      needs_finite = FALSE,
      call = call
    )$log_density
    tolerance <- 1e-12 * (1 + abs(here$log_posterior))
    if (!isTRUE(ahead >= here$log_posterior - tolerance)) {
      return(invisible())
    }
  }
  abort_separation(model, step, here, call)
}

# share: of what is large.
has_large_predictor <- function(model, theta, share = 1) {
  largest <- .Call(ffi_model_largest_predictor, model$pointer, theta)
  limit <- find_response(model$family)$links[[model$family$link]]
  is.finite(largest) && largest > share * limit
}

# Which columns: those that the step moves the predictor by, or about which the
# data have ceased to say anything.
abort_separation <- function(model, step, here, call) {
  flat <- which(model$prior$kind == prior_kinds$flat$code)
  # in units of the predictor, whatever those of the columns
  unit <- sqrt(diag(curvature(model, model_start(model), call = call)$hessian))
  moves <- (abs(step) * unit)[flat]
  sd <- unit / sqrt(pmax(diag(here$hessian), .Machine$double.xmin))
  at <- flat[moves > 0.1 * max(moves) | sd[flat] > 1e3 * stats::median(sd)]
  if (length(at) == 0) {
    at <- flat[[which.max(sd[flat])]]
  }
  names <- quote_columns(model$variables[at])
  does <- find_response(model$family)$separation
  abort_tall(
    "improper",
    c(
      "The posterior is not proper: the likelihood rises without end.",
      x = paste0(
        "{names} {cli::qty(length(at))}",
        does,
        ", and the prior is flat."
      ),
      i = "Give a proper prior such as {.code prior_normal()}."
    ),
    columns = model$variables[at],
    call = call
  )
}

abort_no_mode <- function(model, theta, call) {
  abort_tall(
    "improper",
    c(
      "The log posterior is not finite at the starting point.",
      i = if (has_columns(model)) {
        "Give {.arg init}, or check the scale of the columns."
      } else {
        "Give an {.arg init} where it is."
      }
    ),
    parent = last_undefined(model),
    call = call
  )
}

# ---- L-BFGS ------------------------------------------------------------------

mode_lbfgs <- function(
  model,
  start,
  max_iter,
  has_curvature,
  cores,
  call = caller_env()
) {
  passes <- 0
  memory <- list(theta = NULL)
  trace <- list()
  box <- mode_box(model)
  evaluate <- function(theta) {
    if (!identical(theta, memory$theta)) {
      passes <<- passes + 1
      found <- model_evaluate(model, theta, needs_finite = FALSE, call = call)
      check_search(found, length(trace) == 0, model, theta, call)
      memory <<- c(list(theta = theta), found)
      trace[[length(trace) + 1]] <<- data.frame(
        iteration = length(trace) + 1,
        passes = passes,
        log_posterior = memory$log_density,
        gradient_norm = sqrt(sum(memory$gradient^2))
      )
    }
    memory
  }
  unit <- rep(1, length(start))
  if (has_curvature) {
    # what a step is must not depend on the units of the columns
    at_start <- curvature(
      model,
      box_inside(box, start),
      cores = cores,
      needs_finite = FALSE,
      call = call
    )
    curved <- diag(at_start$hessian)
    known <- is.finite(curved) & curved > 0
    unit[known] <- 1 / sqrt(curved[known])
    passes <- curvature_passes(model)
  }
  fit <- lbfgs_maximise(evaluate, start, box, max_iter, unit)
  final <- evaluate(fit$par)
  if (can_separate(model) && has_large_predictor(model, fit$par, share = 1 / 3)) {
    # Newton's method, from the start, knows a likelihood that rises without end
    newton_stage(model, start, NULL, NULL, max_iter, cores, call)
  }
  mode <- new_mode(
    model,
    estimate = fit$par,
    log_posterior = final$log_density,
    gradient = drop(final$gradient),
    minus_hessian = if (has_curvature) {
      proper_hessian(model, fit$par, cores = cores, call = call)
    },
    passes = passes + if (has_curvature) curvature_passes(model) else 0,
    iterations = unname(fit$counts[[1]]),
    converged = fit$convergence == 0,
    method = "lbfgs",
    box = box,
    call = call
  )
  if (!is.null(mode$chol)) {
    # a line search may fail at the last digits: what a Newton step would gain
    rest <- box_rest(box, fit$par, drop(final$gradient))
    decrement <- forwardsolve(mode$chol, rest)
    gain <- sum(decrement^2) / 2
    # nor is a small change of a density of thousands the end
    mode$converged <- gain < 1e-8 || (mode$converged && gain < 1e-4)
  }
  mode$trace <- do.call(rbind, trace)
  if (is.null(mode$chol)) {
    # the same where there is no Hessian: what is left of the gradient is
    # rounding
    most <- max(mode$trace$gradient_norm)
    mode$converged <- mode$converged || mode$gradient_norm < 1e-10 * most
  }
  mode
}

# What optim() returns, for the log density and gradient that evaluate() gives,
# within the box if there is one. unit: of each coordinate, about its sd.
lbfgs_maximise <- function(evaluate, start, box, max_iter, unit) {
  control <- list(maxit = max_iter, factr = 10, pgtol = 0, parscale = unit)
  if (is.null(box)) {
    return(stats::optim(
      start,
      fn = function(theta) -evaluate(theta)$log_density,
      gr = function(theta) -drop(evaluate(theta)$gradient),
      method = "L-BFGS-B",
      control = control
    ))
  }
  fit <- stats::optim(
    box_from(box, box_inside(box, start)),
    fn = function(u) -evaluate(box_to(box, u))$log_density,
    gr = function(u) {
      -box_gradient(box, drop(evaluate(box_to(box, u))$gradient))
    },
    method = "L-BFGS-B",
    lower = box$lower,
    upper = box$upper,
    control = control
  )
  fit$par <- box_to(box, fit$par)
  fit
}

# A line search cannot step back from a value that is not finite.
check_search <- function(found, is_first, model, theta, call) {
  if (is.finite(found$log_density) && all_finite(found$gradient)) {
    return(invisible())
  }
  if (is_first) {
    abort_no_mode(model, theta, call)
  }
  abort_tall(
    "nonfinite",
    c(
      "The search for the mode came to a point where the log posterior or its
       gradient is not finite.",
      i = "Give {.arg init} closer to the mode, or use
           {.code find_mode(method = \"adam\")}."
    ),
    status = "nonfinite",
    parent = last_undefined(model),
    call = call
  )
}

# ---- the object --------------------------------------------------------------

new_mode <- function(
  model,
  estimate,
  log_posterior,
  gradient,
  minus_hessian,
  passes,
  iterations,
  converged,
  method,
  box = NULL,
  call
) {
  if (!is.null(minus_hessian)) {
    minus_hessian <- bounded_hessian(box, minus_hessian, estimate, gradient)
  }
  at_bound <- if (!is.null(box)) box_active(box, estimate, gradient)
  gradient <- box_rest(box, estimate, gradient)
  chol <- if (!is.null(minus_hessian)) lower_chol(minus_hessian, model, call)
  if (!is.null(minus_hessian)) {
    dimnames(minus_hessian) <- list(model$coordinates, model$coordinates)
  }
  structure(
    list(
      estimate = stats::setNames(estimate, model$coordinates),
      log_posterior = log_posterior,
      gradient_norm = sqrt(sum(gradient^2)),
      hessian = if (!is.null(minus_hessian)) -minus_hessian,
      chol = chol,
      passes = passes,
      iterations = iterations,
      converged = converged,
      method = method,
      at_bound = model$coordinates[at_bound],
      fingerprint = model$fingerprint
    ),
    class = "tall_mode"
  )
}

#' @export
print.tall_mode <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_mode> by ", x$method, sep = "")
  cat(
    if (x$converged) ", " else ", NOT converged, ",
    count_noun(x$iterations, "iteration"),
    ", ",
    format(x$passes, digits = 3),
    " passes over the data\n",
    sep = ""
  )
  cat(
    "  log posterior ",
    format_number(x$log_posterior),
    ", gradient norm ",
    format(x$gradient_norm, digits = 2),
    if (!is.null(x$distance)) {
      paste0(
        " (",
        format(x$distance, digits = 2),
        " posterior sd from the mode)"
      )
    },
    "\n",
    sep = ""
  )
  shown <- utils::head(x$estimate, 10)
  table <- rbind(
    estimate = shown,
    sd = if (!is.null(x$chol)) utils::head(sqrt(diag(vcov(x))), 10)
  )
  print(t(table), digits = 4)
  more <- length(x$estimate) - length(shown)
  if (more > 0) {
    cat("  ... with", more, "more\n")
  }
  if (length(x$at_bound) > 0) {
    names <- quote_columns(x$at_bound)
    cat("  at a bound of the prior: ", names, "\n", sep = "")
  }
  invisible(x)
}

#' @export
coef.tall_mode <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  object$estimate
}

#' @importFrom stats vcov
#' @export
vcov.tall_mode <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  if (is.null(object$chol)) {
    abort_tall(
      "unsupported",
      c(
        "This mode was found without a Hessian.",
        i = "Find it by {.code find_mode(model, \"newton\")}, or sample: the
             draws have a covariance."
      )
    )
  }
  out <- chol2inv(t(object$chol))
  dimnames(out) <- list(names(object$estimate), names(object$estimate))
  out
}
