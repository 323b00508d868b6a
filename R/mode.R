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
#' * `estimate` (named numeric vector): the mode \eqn{\hat\theta}{theta-hat} in
#'   the parameters that chains move, under their names: of `log_sigma` where
#'   `sigma` is a variable, and of `centred_b:(Intercept)` of [model_classes()],
#'   the predictor where covariates are at their means;
#' * `variables` (named numeric vector): the same point in the variables that
#'   draws are of, under theirs: `sigma`, `b:(Intercept)`. Where a map between
#'   the two is linear, as of intercepts, it is the mode of the density of the
#'   variables as well;
#' * `log_posterior`, `gradient_norm` (numbers): there;
#' * `hessian` (matrix): the Hessian of the log posterior, negative definite;
#'   of a sparse design with more than 1,000 columns it is not made, and instead
#'   there is
#' * `scale` (named numeric vector): of each parameter the standard deviation
#'   given all others;
#' * `passes` (number): passes over the data used;
#' * `iterations`, `converged`, `method`, and `at_bound`: names of parameters at
#'   a bound of their prior;
#' * `trace` (data frame): `iteration`, `passes`, `log_posterior`,
#'   `gradient_norm` along the search, for [plot()][plot.tall_mode()];
#' * `distance` (number): see below, for `"adam"` and `"sgd"`.
#'
#' [vcov()] gives the inverse of minus the Hessian, `coef()` the estimate. Where
#' that of coefficients and parameters of the response together is not positive
#' definite, [vcov()] takes them apart, as runs do.
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
        x = why_no_hessian(model),
        i = "Use {.code method = \"lbfgs\"}."
      )
    )
  }
  settings <- if (mode_is_stochastic(method)) {
    stochastic_settings(model, method, batch_size, learning_rate, decay, beta)
  }
  options <- search_options(model, method, max_iter, settings)
  search_mode(model, options, init, cores, refresh)
}

# How a mode is searched for. settings: of a stochastic method, see
# stochastic_settings(). least_step: of Newton's method.
search_options <- function(
  model,
  method = mode_method(model),
  max_iter = if (mode_is_stochastic(method)) 5000 else 100,
  settings = if (mode_is_stochastic(method)) {
    stochastic_settings(model, method, decay = max_iter / 10)
  },
  least_step = newton_least_step
) {
  stopifnot(mode_is_stochastic(method) == !is.null(settings))
  options <- list(
    method = method,
    max_iter = max_iter,
    settings = settings,
    least_step = least_step
  )
  structure(options, class = "tall_search_options")
}

# find_mode() once its arguments are known to be good. stands_in: where there is
# no mode but a posterior, is a point to start and scale by welcome?
search_mode <- function(
  model,
  options = search_options(model),
  init = NULL,
  cores = 1,
  refresh = getOption("tallbayes.refresh", 1),
  stands_in = FALSE
) {
  method <- options$method
  max_iter <- options$max_iter
  has_curvature <- model_info(model)$has_curvature
  start <- if (is.null(init)) model_start(model) else as.double(init)
  search <- function() {
    switch(
      method,
      newton = seek_peak(
        mode_newton(model, start, options, cores),
        model,
        start,
        cores
      ),
      lbfgs = seek_peak(
        mode_lbfgs(model, start, max_iter, has_curvature, cores),
        model,
        start,
        cores
      ),
      mode_stochastic(model, start, options, cores, search_label(refresh))
    )
  }
  if (mode_is_stochastic(method) || !can_lose_sigma(model)) {
    mode <- search()
  } else {
    mode <- tryCatch(search(), tall_error_improper = identity)
    if (has_lost_sigma(mode, model, if (stands_in) Inf else max_iter)) {
      centre <- gaussian_centre(model, stands_in, cores)
      if (!is.null(centre)) {
        return(centre)
      }
    }
    if (inherits(mode, "error")) {
      rlang::cnd_signal(mode)
    }
  }
  if (!mode$converged) {
    warn_no_convergence(mode, method, max_iter)
  }
  mode
}

warn_no_convergence <- function(mode, method, max_iter) {
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
    )
  )
}

# What "auto" stands for.
mode_method <- function(model, method = "auto") {
  if (method != "auto") {
    method
  } else if (!is.null(model$traits$mode_method)) {
    model$traits$mode_method
  } else if (model_info(model)$has_curvature) {
    "newton"
  } else {
    "lbfgs"
  }
}

mode_is_stochastic <- function(method) {
  method %in% c("adam", "sgd")
}

# Those of mode_stochastic(), checked; see find_mode().
stochastic_settings <- function(
  model,
  method,
  batch_size = 500,
  learning_rate = NULL,
  decay = NULL,
  beta = c(0.9, 0.999)
) {
  learning_rate <- check_number(
    learning_rate,
    positive = TRUE,
    allow_null = TRUE
  )
  list(
    batch_size = check_batch_size(batch_size, "batch_size"),
    learning_rate = learning_rate %||%
      if (method == "adam") 0.01 else 0.1 / model$n_data,
    decay = check_number(decay, positive = TRUE, allow_null = TRUE),
    beta = check_beta(beta)
  )
}

# ---- the object --------------------------------------------------------------

# A log posterior about a point, to second order. hessian: minus the Hessian,
# NULL where there is none.
new_expansion <- function(theta, log_posterior, gradient, hessian = NULL) {
  stopifnot(length(gradient) == length(theta))
  expansion <- list(
    theta = theta,
    log_posterior = log_posterior,
    gradient = gradient,
    hessian = hessian
  )
  structure(expansion, class = "tall_expansion")
}

# What a search did.
new_search <- function(method, passes, iterations, converged = TRUE) {
  stopifnot(rlang::is_string(method), rlang::is_bool(converged))
  search <- list(
    method = method,
    passes = passes,
    iterations = iterations,
    converged = converged
  )
  structure(search, class = "tall_search")
}

# about: the expansion at the mode. box: the bounds of its prior, see
# mode_box(). scale: where there is no Hessian, of each parameter the standard
# deviation given all others.
new_mode <- function(model, about, search, box = NULL, scale = NULL) {
  estimate <- about$theta
  gradient <- about$gradient
  minus_hessian <- about$hessian
  if (!is.null(minus_hessian)) {
    minus_hessian <- bounded_hessian(box, minus_hessian, estimate, gradient)
  }
  at_bound <- if (!is.null(box)) box_active(box, estimate, gradient)
  gradient <- box_rest(box, estimate, gradient)
  chol <- if (!is.null(minus_hessian)) lower_chol(minus_hessian, model)
  if (!is.null(minus_hessian)) {
    dimnames(minus_hessian) <- list(model$coordinates, model$coordinates)
  }
  structure(
    list(
      estimate = stats::setNames(estimate, model$coordinates),
      variables = mode_variables(model, estimate),
      log_posterior = about$log_posterior,
      gradient_norm = sqrt(sum(gradient^2)),
      hessian = if (!is.null(minus_hessian)) -minus_hessian,
      chol = chol,
      scale = if (!is.null(scale)) stats::setNames(scale, model$coordinates),
      passes = search$passes,
      iterations = search$iterations,
      converged = search$converged,
      method = search$method,
      at_bound = model$coordinates[at_bound],
      fingerprint = model$fingerprint
    ),
    class = "tall_mode"
  )
}

# The same point in the variables that draws are of.
mode_variables <- function(model, estimate) {
  stats::setNames(drop(model_variables(model, estimate)), model$variables)
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
  print_mapped(x)
  if (length(x$at_bound) > 0) {
    names <- quote_columns(x$at_bound)
    cat("  at a bound of the prior: ", names, "\n", sep = "")
  }
  invisible(x)
}

# Variables that are other numbers than the parameters.
print_mapped <- function(mode, most = 10) {
  value <- mode$variables
  own <- mode$estimate[names(value)]
  mapped <- value[is.na(own) | own != value]
  if (length(mapped) == 0) {
    return(invisible())
  }
  cat("  in the variables of draws:\n")
  print(cbind(value = utils::head(mapped, most)), digits = 4)
  if (length(mapped) > most) {
    cat("  ... with", length(mapped) - most, "more\n")
  }
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
  out <- joint_covariance(-object$hessian) %||% chol2inv(t(object$chol))
  dimnames(out) <- list(names(object$estimate), names(object$estimate))
  out
}
