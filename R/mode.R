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
#'   [model_lda()], [model_bpmf()] and [model_pmf()]. Of hyperparameters those
#'   that are held at first.
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
#' Where L-BFGS comes to no end, as along the ridge that a hierarchical model's
#' scale makes with its effects, Newton's steps finish the search if the model
#' has a Hessian: at most a fifth of `max_iter`.
#'
#' A proper posterior need not have a mode. That of a hierarchical model whose
#' effects are parameters, with a scale that is one, too, rises without end as
#' the scale falls to 0 and takes the effects with it: the error says so. (With
#' [prior_hs()] and others of its kind the mode is that given hyperparameters
#' which the coefficients make likely: those at the mode given the
#' hyperparameters that `init` has, or that shrink little. `given` has their
#' names, and the other arguments are those of each search.) The
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
#'   of a sparse design with more than 1,001 columns it is not made, and instead
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
#' `tall_error_nonfinite` if the log posterior, or its gradient in a
#' `coordinate` that the error names, is not finite where the search ends;
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
  has_curvature <- model_info(searched_model(model))$has_curvature
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
  if (has_hyper(model)) {
    find <- function(held, init, is_near) {
      options$is_near <- is_near
      search_mode(held, options, init, cores, refresh, stands_in)
    }
    return(scaled_mode(model, find, init, options$is_near))
  }
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

# ---- where a mode is wanted --------------------------------------------------

# The mode found with the defaults, remembered in the model. A search may draw
# its start and its minibatches: always the same ones, so that what is
# remembered depends on the model alone, and not on the run that was the first
# to ask.
model_mode <- function(
  model,
  cores = 1,
  refresh = getOption("tallbayes.refresh", 1),
  least_step = newton_least_step
) {
  check_not_whitened(model)
  if (is.null(model$cache$mode)) {
    model$cache$mode <- with_seed(
      mode_seed,
      search_mode(
        model,
        search_options(model, least_step = least_step),
        cores = cores,
        refresh = refresh,
        stands_in = TRUE
      )
    )
  }
  model$cache$mode
}

mode_seed <- 1L

# Remembers the mode near theta, where passes found it: what is left of a search
# is to look whether it is there. Where theta is of other columns, or nothing is
# found from it, the model is as it was.
start_mode <- function(model, theta, cores) {
  if (length(theta) != model$n_dim || !all(is.finite(theta)) ||
    !(mode_method(model) == "newton" || has_hyper(model))) {
    return(invisible())
  }
  options <- search_options(model, is_near = TRUE)
  model$cache$mode <- tryCatch(
    search_mode(model, options, theta, cores, refresh = 0),
    tall_error = function(cnd) NULL
  )
  invisible()
}

# theta and the Cholesky factor (lower) of -Hessian there, from whatever `at` is
mode_point <- function(model, at, needs_chol = TRUE) {
  if (needs_chol) {
    check_has_hessian(model) # before the search for a mode
  }
  if (is.null(at)) {
    at <- model_mode(model)
  }
  if (inherits(at, "tall_mode")) {
    check_mode(at, arg = "at")
    check_size(at$estimate, model$n_dim, arg = "at")
    theta <- as.double(at$estimate)
    chol <- if (needs_chol) at$chol %||% point_chol(model, theta)
    return(list(theta = theta, chol = chol))
  }
  theta <- check_numeric_vector(at, size = model$n_dim, arg = "at")
  theta <- match_names(theta, model$coordinates, arg = "at")
  theta <- as.double(theta)
  list(theta = theta, chol = if (needs_chol) point_chol(model, theta))
}

point_chol <- function(model, theta) {
  lower_chol(proper_hessian(model, theta), model)
}
