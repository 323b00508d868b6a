# Priors of coefficients whose scales are parameters themselves: normal given
# these. src/priors/mixture-type.h has the laws; prior_kinds in R/prior.R says
# which kinds are of this family.

# What more is known of such a kind:
#   arguments  (function of the prior) The numbers of the core's member.
#   shape      (function of the prior) One more number of each coefficient.
#   shared     (strings) Names of the hyperparameters that coefficients share.
#   local      (string) What one of each coefficient is called, before its name.
#   free       (function) Coordinates (n_hyper x K) of natural hyperparameters.
#   start      (function of the prior and the number of coefficients) Natural
#              ones that shrink little: where all are shrunk to 0, small scales
#              hold them there.
#   lead       (strings) What coordinates are called: before the names of shared
#              ones, and of those of each coefficient.
#   shown      (strings) The arguments that are printed.
new_mixture <- function(
  arguments,
  shape = function(prior) 0,
  shared,
  local = NULL,
  free = log,
  start,
  lead = c("log_", "log_"),
  shown
) {
  list(
    arguments = arguments,
    shape = shape,
    shared = shared,
    local = local,
    free = free,
    start = start,
    lead = lead,
    shown = shown
  )
}

prior_mixtures <- list(
  ridge = new_mixture(
    # the third: 2 where the law of the standard deviation is exponential
    function(prior) c(prior$df, prior$scale, 1 + isTRUE(prior$is_exponential)),
    shared = "ridge_sd",
    start = function(prior, n) prior$scale,
    shown = c("df", "location", "scale")
  ),
  hs = new_mixture(
    function(prior) {
      c(
        prior$df,
        prior$global_df,
        prior$global_scale,
        prior$slab_df,
        prior$slab_scale
      )
    },
    shared = c("hs_global", "hs_slab"),
    local = "hs_local",
    start = function(prior, n) {
      wide <- prior$slab_scale / prior$global_scale
      c(prior$global_scale, prior$slab_scale, rep(wide, n))
    },
    shown = c("df", "global_df", "global_scale", "slab_df", "slab_scale")
  ),
  r2d2 = new_mixture(
    function(prior) c(prior$mean_R2, prior$prec_R2),
    shape = function(prior) prior$cons_D2,
    shared = "r2d2_R2",
    local = "r2d2_share",
    # shares are weights that add up to 1
    free = function(natural) {
      rbind(stats::qlogis(natural[1, ]), log(natural[-1, , drop = FALSE]))
    },
    start = function(prior, n) {
      cons <- rep_len(prior$cons_D2, n)
      c(0.99, unname(cons) / sum(cons))
    },
    lead = c("logit_", "log_"),
    shown = c("mean_R2", "prec_R2", "cons_D2")
  )
)

is_mixture_prior <- function(prior) {
  inherits(prior, "tall_prior") && !is.null(prior_kinds[[prior$kind]]$mixture)
}

#' Priors that learn their scales
#'
#' Priors of coefficients that are normal given scales of their own, which are
#' parameters of the model: a ridge whose penalty the data choose, the
#' regularised horseshoe and R2D2, which shrink most coefficients to nearly
#' nothing and leave the large ones alone.
#'
#' @param df (positive number) Degrees of freedom of the half Student t prior of
#'   the standard deviation (`prior_ridge()`; `Inf`: half normal), or of those
#'   of the local scales (`prior_hs()`).
#' @param location (numeric vector) What coefficients are shrunk to: one value
#'   for all, or one for each, as for [prior_normal()].
#' @param scale (positive number) The scale of the prior of the standard
#'   deviation.
#' @param global_df,global_scale (positive numbers) Degrees of freedom and scale
#'   of the half Student t prior of the global scale. Both as in
#'   `rstanarm::hs()`, where 0.01 is a small scale for large data: see
#'   *Details*.
#' @param slab_df,slab_scale (positive numbers) Degrees of freedom and scale of
#'   the Student t prior that large coefficients have.
#' @param mean_R2 (number between 0 and 1) The prior mean of \eqn{R^2}.
#' @param prec_R2 (positive number) Its prior precision: the sum of the two
#'   shapes of the beta prior.
#' @param cons_D2 (numeric vector, at least 0.05) Concentration of the Dirichlet
#'   prior of the coefficients' shares: one value for all, or one for each, by
#'   name or in the order of the columns. Small ones let few coefficients have
#'   nearly all.
#' @param autoscale (`TRUE` or `FALSE`) Divide the scale of a coefficient by the
#'   standard deviation of its column, and multiply it by the standard deviation
#'   of the response in a Gaussian model, as for other [priors]?
#'
#' @details With \eqn{m_j} the location (0 but for `prior_ridge()`) and
#' \eqn{s_j} the factor of `autoscale`, else 1, coefficient \eqn{j} is
#' \eqn{N(m_j, s_j^2 v_j)}, where
#'
#' * `prior_ridge()`: \eqn{v_j = \tau^2}{v_j = tau^2}, \eqn{\tau}{tau} half
#'   Student t with `df` degrees of freedom and scale `scale`. The draws of
#'   \eqn{\tau}{tau} are called `ridge_sd`.
#' * `prior_hs()` (Piironen & Vehtari, 2017): \eqn{1 / v_j = 1 / c^2 + 1 / (\tau
#'   \lambda_j)^2}{1 / v_j = 1 / c^2 + 1 / (tau lambda_j)^2}, \eqn{\tau}{tau}
#'   half Student t (`global_df`, `global_scale`), \eqn{\lambda_j}{lambda_j}
#'   half Student t (`df`, 1), \eqn{c^2} inverse gamma (`slab_df / 2`, `slab_df
#'   slab_scale^2 / 2`). Draws: `hs_global`, `hs_slab` (\eqn{c}) and
#'   `hs_local[x]`.
#' * `prior_r2d2()` (Zhang, Naughton, Bondell & Reich, 2022): \eqn{v_j =
#'   \phi_j R^2 / (1 - R^2)}{v_j = phi_j R^2 / (1 - R^2)}, \eqn{R^2} beta with
#'   that mean and precision, the shares \eqn{\phi}{phi} Dirichlet. Draws:
#'   `r2d2_R2` and `r2d2_share[x]`. With columns of standard deviation 1, which
#'   `autoscale` sees to, and independent, \eqn{R^2} is the part of the
#'   predictor's variance in the sum of it and that of the noise, 1 where a
#'   response has no scale; that of the coefficients' prior, not of the data's
#'   fit.
#'
#' A guess of \eqn{p_0} coefficients of \eqn{d} that are not nearly 0 gives
#' \eqn{\tau_0 = \frac{p_0}{d - p_0} \frac{\sigma}{\sqrt N}}{tau_0 = p_0 / (d -
#' p_0) sigma / sqrt(N)} for `global_scale` (Piironen & Vehtari, section 3;
#' \eqn{\sigma}{sigma} of the response, about 2 for a logistic regression with
#' as many events as others). With it, and `df` and `global_df` 1, the prior
#' mean of the effective number of coefficients, \eqn{\sum_j (1 -
#' \kappa_j)}{sum_j (1 - kappa_j)}, is \eqn{p_0} given \eqn{\tau = \tau_0}{tau =
#' tau_0}; [shrinkage()] has these factors after a fit, and
#' [simulate()][simulate-priors] draws from the prior before.
#'
#' Models with these priors are sampled exactly. Without a kernel, and by
#' [kernel_smh()], hyperparameters cost no data: no row sees them, and what
#' proposes is a chain on a surrogate of them and the coefficients in which rows
#' are known by their expansions; the test looks at a few rows, whatever the
#' hyperparameters are (see [proposals]). This is for responses whose rows have
#' bounds, and no parameter of their own that is sampled; without a kernel, for
#' others than Gaussian ones. Where there are few hyperparameters, and a pilot
#' on the surrogate says that it pays, they move with the coefficients
#' integrated out ([proposal_marginal()]).
#'
#' Without a kernel a Gaussian response takes sums over its rows. If all its
#' hyperparameters are standard deviations, of `prior_ridge()` or of blocks (see
#' [prior_smooth]), and no other prior has bounds, slices (Neal, 2003) move
#' them, and `sigma` where it is sampled, with the coefficients integrated out,
#' which are then drawn given them. So it is with the others of these priors
#' where there are fewer than ten rows a column, but that the hyperparameters of
#' one coefficient are drawn given it. Fixed Student and Laplace priors, as of
#' the intercept, are normal there given scales, which are drawn, too.
#'
#' For other responses and priors, and where a pilot says that too few exact
#' steps from a few rows are accepted, hyperparameters are drawn given the
#' coefficients before each step, by slices and other draws that need no tuning.
#' The steps look at all rows, or at sums over them. Three fifths are those of
#' [kernel_mala()]. The others propose new hyperparameters and coefficients
#' together, all coefficients given the hyperparameters, or another value of a
#' parameter of the response. The fit says how it was sampled.
#'
#' [kernel_mala()], [kernel_barker()] and [kernel_hmc()] are taken, too.
#' `find_mode()` finds the mode given hyperparameters that are likely there, as
#' there is none together with them. `prior` without `prior_intercept` is that
#' of the intercept of [model_glm()], too, where it is then shrunk as well.
#'
#' rstanarm multiplies the global scale by the residual `sigma` of a Gaussian
#' model, a parameter, and brms, whose `horseshoe()` has the same arguments in
#' another order, with other defaults, does so unless `autoscale = FALSE`; here
#' it is the standard deviation of the response, with `autoscale = TRUE` only.
#'
#' @template return-prior
#' @section Conditions:
#' `tall_error_input` if an argument is not as described;
#' `tall_error_unsupported` where a model or a way to run has no place for
#' hyperparameters, or for `prior_intercept`, of one coefficient.
#' @references
#' Piironen & Vehtari (2017). Sparsity information and regularization in the
#' horseshoe and other shrinkage priors. *Electronic Journal of Statistics* 11,
#' 5018-5051.
#'
#' Zhang, Naughton, Bondell & Reich (2022). Bayesian regression using a prior on
#' the model fit: the R2-D2 shrinkage prior. *Journal of the American
#' Statistical Association* 117, 862-874.
#'
#' Neal (2003). Slice sampling. *Annals of Statistics* 31, 705-767.
#'
#' Gelman (2006). Prior distributions for variance parameters in hierarchical
#' models. *Bayesian Analysis* 1, 515-534.
#' @seealso [priors] for those with fixed scales
#' @examples
#' prior_ridge()
#' prior_hs(global_scale = 0.1, autoscale = TRUE)
#' prior_r2d2(mean_R2 = 0.2, prec_R2 = 5)
#'
#' # what a prior says of ten coefficients before the data do
#' draws <- simulate(prior_hs(global_scale = 0.1), 1000, seed = 1, n_coef = 10)
#' posterior::summarise_draws(draws, "median", "mad")
#' @name prior_hs
NULL

#' @rdname prior_hs
#' @export
prior_ridge <- function(df = 3, location = 0, scale = 2.5, autoscale = FALSE) {
  new_mixture_prior(
    "ridge",
    df = check_df(df),
    location = check_all_named(check_numeric_vector(location)),
    scale = check_number(scale, positive = TRUE),
    autoscale = check_flag(autoscale)
  )
}

#' @rdname prior_hs
#' @export
prior_hs <- function(
  df = 1,
  global_df = 1,
  global_scale = 0.01,
  slab_df = 4,
  slab_scale = 2.5,
  autoscale = FALSE
) {
  new_mixture_prior(
    "hs",
    df = check_number(df, positive = TRUE),
    global_df = check_number(global_df, positive = TRUE),
    global_scale = check_number(global_scale, positive = TRUE),
    slab_df = check_number(slab_df, positive = TRUE),
    slab_scale = check_number(slab_scale, positive = TRUE),
    autoscale = check_flag(autoscale)
  )
}

#' @rdname prior_hs
#' @export
prior_r2d2 <- function(
  mean_R2 = 0.5, # nolint: object_name_linter.
  prec_R2 = 2, # nolint: object_name_linter.
  cons_D2 = 0.5, # nolint: object_name_linter.
  autoscale = TRUE
) {
  check_number(mean_R2, min = 0, max = 1)
  if (!(mean_R2 > 0 && mean_R2 < 1)) {
    abort_expected(mean_R2, "a number between 0 and 1, not one of them")
  }
  cons_D2 <- check_all_named(check_numeric_vector(cons_D2)) # nolint
  if (any(cons_D2 < 0.05)) {
    abort_expected(cons_D2, "a vector of numbers of at least 0.05")
  }
  new_mixture_prior(
    "r2d2",
    mean_R2 = as.double(mean_R2),
    prec_R2 = check_number(prec_R2, positive = TRUE),
    cons_D2 = cons_D2,
    autoscale = check_flag(autoscale)
  )
}

new_mixture_prior <- function(kind, ...) {
  structure(
    list(kind = kind, ...),
    class = c(paste0("tall_prior_", kind), "tall_prior")
  )
}

# Inf is welcome: half normal.
check_df <- function(df, arg = caller_arg(df)) {
  if (identical(df, Inf)) {
    return(Inf)
  }
  check_number(df, positive = TRUE, arg = arg)
}

print_mixture <- function(x, ...) {
  check_no_dots(...)
  shown <- prior_mixtures[[x$kind]]$shown
  cat("<tall_prior> ", prior_kinds[[x$kind]]$title, "\n", sep = "")
  for (name in shown) {
    cat(
      format(paste0(name, ":"), width = max(nchar(shown)) + 1),
      " ",
      if (identical(x[[name]], Inf)) "Inf" else values_text(x[[name]]),
      "\n",
      sep = ""
    )
  }
  if (x$autoscale) {
    cat("(scales divided by the standard deviation of the column)\n")
  }
  invisible(x)
}

#' @export
print.tall_prior_ridge <- print_mixture
#' @export
print.tall_prior_hs <- print_mixture
#' @export
print.tall_prior_r2d2 <- print_mixture

# ---- in a model --------------------------------------------------------------

# A model that has no place for hyperparameters; one: for one coefficient there
# is nothing to learn a scale from.
check_no_mixture <- function(prior, one = FALSE, arg = caller_arg(prior)) {
  if (!is_mixture_prior(prior)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      if (one) {
        "{.arg {arg}} cannot be {.code prior_{prior$kind}()}, which learns its
         scale from several coefficients."
      } else {
        "{.code prior_{prior$kind}()} needs a model with hyperparameters, such
         as {.fn model_glm} and {.fn tall_glm}."
      },
      i = "Use {.fn prior_normal} or {.fn prior_student}."
    ),
    argument = arg,
    value = prior
  )
}

# What prior_fill() takes of a prior: its location and the factor s_j.
own_of_coefficients <- function(prior) {
  if (!is_mixture_prior(prior)) {
    return(prior)
  }
  list(
    kind = prior$kind,
    location = prior$location %||% 0,
    scale = 1,
    autoscale = prior$autoscale
  )
}

# The hyperparameters of the coefficients `at`: their names, and what the core
# takes, one block. resolved: of prior_resolve(), with location and scale there.
resolve_mixture <- function(prior, resolved, at, names = NULL) {
  entry <- prior_mixtures[[prior$kind]]
  n <- length(at)
  shape <- entry$shape(prior)
  shape <- match_names(shape, names[at], "coefficient", arg = "prior$cons_D2")
  check_size(shape, c(1, n), arg = "prior$cons_D2")
  own <- if (is.null(names)) paste0("x", at) else names[at]
  local <- if (!is.null(entry$local)) paste0(entry$local, "[", own, "]")
  n_local <- length(local)
  shared <- prior$called %||% entry$shared
  list(
    kind = prior$kind,
    given = prior$given %||% paste0("prior_", prior$kind, "()"),
    parts = list(list(kind = prior$kind, n = length(entry$shared) + n_local)),
    at = at,
    names = c(shared, local),
    coordinates = c(
      paste0(entry$lead[[1]], shared),
      paste0(rep(entry$lead[[2]], length(local)), local)
    ),
    start = drop(entry$free(cbind(entry$start(prior, n)))),
    params = mixture_params(
      prior,
      at,
      resolved$location[at],
      resolved$scale[at],
      rep_len(unname(shape), n)
    )
  )
}

# The core's parameters: see tb_mixtures_create().
mixture_params <- function(prior, at, location, scale, shape) {
  argument <- numeric(5)
  given <- prior_mixtures[[prior$kind]]$arguments(prior)
  argument[seq_along(given)] <- given
  list(
    mixture_kind = as.double(prior_kinds[[prior$kind]]$mixture),
    mixture_size = as.double(length(at)),
    mixture_argument = argument,
    mixture_at = as.double(at - 1),
    mixture_location = as.double(location),
    mixture_scale = as.double(scale),
    mixture_shape = as.double(shape)
  )
}

# The hyperparameters as further coordinates, the last.
append_hyper <- function(resolved) {
  n <- length(resolved$mixture$names)
  if (n == 0) {
    return(resolved)
  }
  resolved$kind <- c(resolved$kind, rep(prior_kinds$hyper$code, n))
  resolved$location <- c(resolved$location, numeric(n))
  resolved$scale <- c(resolved$scale, rep(1, n))
  if (!is.null(resolved$shape)) {
    resolved$shape <- c(resolved$shape, numeric(n))
  }
  resolved
}

# Codes of the first n coordinates as the core knows them: of coefficients under
# a mixture, the core's own prior is flat.
core_kinds <- function(prior, n = length(prior$kind)) {
  kind <- prior$kind[seq_len(n)]
  as.double(ifelse(kind < 100, kind, prior_kinds$flat$code))
}

# Precisions (n_coef x K) of the coefficients given natural hyperparameters
# (n_hyper x K).
mixture_precision <- function(mixture, natural) {
  precision_at(mixture, free_hyper(mixture, natural))
}

# Coordinates (n_hyper x K) of natural hyperparameters, block after block.
free_hyper <- function(mixture, natural) {
  last <- 0
  out <- lapply(mixture$parts, function(part) {
    at <- last + seq_len(part$n)
    last <<- last + part$n
    prior_mixtures[[part$kind]]$free(natural[at, , drop = FALSE])
  })
  do.call(rbind, out)
}

# The same at coordinates.
precision_at <- function(mixture, phi) {
  n_coef <- as.double(max(mixture$at))
  .Call(ffi_mixture_precision, mixture$params, n_coef, as.double(phi))
}
