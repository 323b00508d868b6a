# emmeans: estimated marginal means, with the draws behind them.

#' Estimated marginal means
#'
#' Methods for the generics of \pkg{emmeans}, which its users do not call:
#' `emmeans()`, `emtrends()`, `contrast()`, `pairs()` and `ref_grid()` take fits
#' of [tall_glm()], [tall_gam()], [tall_glmer()], [tall_polr()] and
#' [tall_multinom()].
#'
#' @param object (`tall_glm`, `tall_gam`, `tall_glmer`, `tall_polr` or
#'   `tall_multinom`) The fit.
#' @param data (data frame or `NULL`) Given to `emmeans()`: the data of the fit,
#'   or rows of the same kind, from which \pkg{emmeans} takes means of
#'   covariates and levels of factors. A fit does not carry the data frame, only
#'   what the formula made of it. `NULL`: the model frame where all variables
#'   are there as they are, else what `data` of the call is now.
#' @param trms,xlev,grid As \pkg{emmeans} hands them on.
#' @param mode (string) Given to `emmeans()`, of classes what is averaged, as
#'   for [MASS::polr()] and [nnet::multinom()]. Of ordered classes `"latent"`,
#'   \eqn{x^\top b}{x'b} less the mean threshold, by default;
#'   `"linear.predictor"`, \eqn{c_k - x^\top b}{c_k - x'b} for each threshold,
#'   a factor `cut`; `"cum.prob"` and `"exc.prob"`, the probabilities of classes
#'   up to it, and above; `"prob"`, those of classes, which are a factor with
#'   the name of the response; `"mean.class"`, the mean of their numbers. Of
#'   unordered ones `"prob"`, by default, or `"latent"`, their predictors less
#'   the mean of all.
#' @param rescale (two numbers) With `mode = "latent"`: what the predictor is
#'   shifted and multiplied by.
#' @param ... Handed on.
#'
#' @details Tables show posterior medians and intervals of highest density, as
#' for any Bayesian fit: `emmeans::hpd.summary()` is called by `summary()`.
#' `coda::as.mcmc()` of the result has the draws. Fits of [tall_glmer()] are
#' taken at effects of 0: those of the population. Probabilities are computed
#' for each draw, not from its mean.
#'
#' @return What \pkg{emmeans} expects.
#' @section Conditions: `tall_error_stale` if the data frame is not to be found;
#'   `tall_error_unsupported` for a fit without a formula.
#' @examplesIf requireNamespace("emmeans", quietly = TRUE)
#' warp <- transform(warpbreaks, wide = breaks > 25)
#' fit <- tall_glm(wide ~ wool * tension, warp, binomial(), seed = 1)
#' means <- emmeans::emmeans(fit, ~ wool | tension, type = "response")
#' means
#' pairs(means)
#' @name emmeans-tall_glm
NULL

#' @rdname emmeans-tall_glm
#' @exportS3Method emmeans::recover_data
recover_data.tall_regression <- function(object, data = NULL, ...) {
  is_inflated <- identical(object$dpar$name, "zi")
  if (inherits(object, "tall_nn") || is_inflated) {
    return(recover_data.tall_fit(object))
  }
  check_has_formula(object, "recover_data")
  terms <- stats::delete.response(terms_of_mean(object))
  # constants of the formula's environment are no columns
  offset <- object$call$offset
  wanted <- c(all.vars(terms), all.vars(offset))
  variables <- intersect(wanted, union(object$columns, names(data)))
  data <- original_data(object, variables, data)
  if (is.null(offset)) {
    return(emmeans::recover_data(object$call, terms, NULL, data = data, ...))
  }
  # an offset that is an argument of the fit goes by the name it has in frames
  shift <- eval(offset, data, environment(object$formula))
  data[["(offset)"]] <- rep_len(shift, nrow(data))
  frame <- structure(data, terms = stats::terms(~1))
  emmeans::recover_data(
    object$call,
    terms,
    NULL,
    data = data,
    frame = frame,
    ...
  )
}

# Those of the mean, where another parameter has a formula, too.
terms_of_mean <- function(fit) {
  fit$dpar$terms$mu %||% stats::terms(fit)
}

# emmeans tells of errors here in a sentence of its own.
#' @exportS3Method emmeans::recover_data
recover_data.tall_fit <- function(object, ...) {
  paste(
    "emmeans takes fits of tall_glm(), tall_gam(), tall_glmer(), tall_polr()",
    "and tall_multinom(). Of others posterior_epred(fit, newdata) has draws",
    "of what is expected."
  )
}

#' @rdname emmeans-tall_glm
#' @exportS3Method emmeans::emm_basis
emm_basis.tall_regression <- function(object, trms, xlev, grid, ...) {
  frame <- stats::model.frame(
    trms,
    grid,
    na.action = stats::na.pass,
    xlev = xlev
  )
  contrasts <- object$contrasts %||% object$design$contrasts %||%
    object$dpar$contrasts$mu
  x <- stats::model.matrix(trms, frame, contrasts.arg = contrasts)
  x <- name_smooths(x, trms)
  names <- coefficient_variables(object)
  if (!is.null(object$dpar)) {
    names <- names[seq_len(object$width[[1]])]
  }
  draws <- plain_draws(object, names)
  attr(draws, "n.chains") <- posterior::nchains(object$draws)
  family <- object$family$object
  misc <- if (is.null(family)) {
    list()
  } else {
    emmeans::.std.link.labels(family, list())
  }
  emmeans_basis(x[, names, drop = FALSE], draws, misc)
}
