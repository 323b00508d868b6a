# tall_gam(): smooth terms whose standard deviations are parameters. A smooth is
# a variable of the model frame (R/design-smooth.R), so that all else is as
# tall_glm() has it; what is added are the blocks of its columns.

#' Bayesian additive models for tall data
#'
#' Smooth functions of covariates beside ordinary terms, as in `mgcv::gam()`,
#' with the posterior of the smoothing parameters, and nothing to tune. Draws
#' are exact: steps look at a few rows, those of a Gaussian response at sums
#' over them, and at all rows where another parameter of the response is
#' sampled.
#'
#' @param formula (formula) As in mgcv: ordinary terms, and smooth ones:
#'   * `s(x)`, `s(x, k = 20, bs = "cr")`: a curve; `k` is the size of its basis,
#'     `bs` one of mgcv's bases ([mgcv::smooth.terms()]); `x` may be a date or a
#'     time, in days and seconds;
#'   * `s(x, by = f)`: a curve for each level of a factor `f`, whose own effect
#'     stands beside it, or with a number `z` a coefficient `f(x) z`;
#'   * `s(x, z)`: a surface with one scale for all directions; `t2(x, z)`: one
#'     of variables in units of their own;
#'   * `s(g, bs = "re")` or `(1 | g)`: effects of the levels of `g`, few of
#'     them; `s(x, f, bs = "fs")`: a curve for each level, alike in wiggliness.
#'
#'   `te()` and `ti()` are refused with `t2()` as advice, as brms does; `gp()`
#'   and `mo()` have no place here.
#' @param data (data frame, [source][tall_source] or matrix) The data, as of
#'   [tall_glm()]; how the rows of sources are read is said below.
#' @param prior_smooth (`tall_prior`) The [prior][prior_smooth] of the standard
#'   deviation of each smooth term, on the scale of the linear predictor.
#' @param knots (named list or `NULL`) Knots by variable, as in `mgcv::gam()`:
#'   numeric vectors, or dates. `NULL`: of quantiles of the data and their ends.
#'   At the first and the last a cyclic curve begins anew: `s(hour, bs = "cc")`
#'   with `knots = list(hour = c(0, 24))`.
#' @inheritParams tall_glm
#'
#' @details Smooth term \eqn{k} of a row is
#' \deqn{f_k(x_i) = b_{ik}^\top \gamma_k + z_{ik}^\top u_k, \qquad
#' u_k \sim N(0, \sigma_k^2 I), \qquad \sigma_k \sim p,}{f_k(x_i) =
#' b_ik' gamma_k + z_ik' u_k, u_k ~ N(0, sigma_k^2 I), sigma_k ~ p,}
#' \eqn{b}{b} the columns that mgcv's penalty leaves free, such as a straight
#' line, whose coefficients have `prior`, and \eqn{z}{z} those that it is about,
#' as [mgcv::smooth2random()] has them. Curves are centred: their mean over the
#' rows is 0. Columns are scaled such that \eqn{\sigma_k}{sigma_k} is the
#' standard deviation of the penalised part of the curve, the root of its mean
#' variance over the rows, before the data are seen; of `bs = "re"` it is that
#' of the effects. The prior of the intercept is that of the predictor where
#' covariates are at their means, and effects of levels 0, as in rstanarm.
#' A number is a level in `(1 | g)`, as in lme4, and in `s(g, bs = "re")` the
#' covariate of a slope, as in mgcv. A term with several penalties, as `t2()`,
#' has a \eqn{\sigma}{sigma} for each, and so has each level of a factor `by`.
#' Draws of the \eqn{\sigma_k}{sigma_k} are called `smooth_sd[s(x)1]`, as in
#' rstanarm; those of coefficients `s(x).1`, `s(x).2`, ...
#'
#' With \eqn{\beta} all coefficients, \eqn{P_\sigma}{P_sigma} the precision of
#' their prior given the \eqn{\sigma_k}{sigma_k}, and \eqn{H} minus the Hessian
#' of the log likelihood at the mode, \eqn{\beta} given the
#' \eqn{\sigma_k}{sigma_k} is nearly normal with precision \eqn{H +
#' P_\sigma}{H + P_sigma}, so that \eqn{\beta}{beta} can be integrated out.
#' Where there are few \eqn{\sigma_k}{sigma_k}, a step draws them so and then
#' \eqn{\beta}{beta} given them; where there are many, or where a pilot says
#' that it moves as well, the two are drawn in turn ([proposals]). That costs
#' the same however many rows there are, and a few of them test what is
#' proposed: draws are exact. See [prior_hs()] for what is done where this does
#' not suit a posterior, and where a parameter of the response is sampled: of a
#' Gaussian one sums over the rows are enough.
#'
#' The *effective degrees of freedom* of a smooth term are its columns' part of
#' \eqn{\mathrm{tr}[(H + P_\sigma)^{-1} H]}{tr[(H + P_sigma)^{-1} H]},
#' averaged over the posterior of \eqn{\sigma}{sigma}; those of `mgcv::gam()`
#' are at its estimate of the smoothing parameters. See [smooth_table()].
#'
#' More than 65,536 rows, and those of a source, are passed over as by
#' [tall_glm()], which tells how: they are read block by block, the columns of
#' the bases made meanwhile, and a few thousand rows are kept. Of rows in memory
#' a basis is made of rows from all over, of others of the look's pilot and the
#' ends of all rows; with `knots`, and a basis that is of them alone, it is the
#' same whatever the source, and so are the draws. Curves of one variable are
#' tables of piecewise cubics, which a database computes, too; where a basis is
#' none (`t2()`, a surface), or has so many pieces that no query takes them, the
#' rows of a database are streamed, and a message says so. What brings rows to
#' memory in [tall_glm()] does so here, or with `store` the design to a file.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_gam", "tall_glm",
#'   "tall_regression", "tall_fit")`.
#' @section Conditions: Those of [tall_glm()]; `tall_error_unsupported` for
#'   terms that are refused; an error of class `rlib_error_package_not_found`
#'   where \pkg{mgcv}, a recommended package of R, is not installed;
#'   `tall_warning_concurvity` where the data cannot tell a smooth term from
#'   others, as in `x + s(x)`, see [smooth_table()];
#'   `tall_warning_smooth` where \pkg{mgcv} changes a term, such as a `k` that
#'   is too small for its basis.
#' @references
#' Wood (2017). *Generalized Additive Models: An Introduction with R*. CRC.
#'
#' Wood (2011). Fast stable restricted maximum likelihood and marginal
#' likelihood estimation of semiparametric generalized linear models. *Journal
#' of the Royal Statistical Society B* 73, 3-36.
#' @seealso [smooth_table()], [posterior_smooths()], [conditional_effects()],
#'   [plot.tall_gam()], [predict.tall_gam()]; `vignette("smooth-terms")`
#' @examplesIf requireNamespace("mgcv", quietly = TRUE)
#' fit <- tall_gam(
#'   mpg ~ s(wt, k = 6) + factor(cyl),
#'   data = mtcars,
#'   seed = 1
#' )
#' fit
#' smooth_table(fit)
#' predict(fit, data.frame(wt = 3, cyl = 6))
#' @export
tall_gam <- function(
  formula,
  data,
  family = stats::gaussian(),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5, autoscale = TRUE),
  prior_smooth = prior_exponential(autoscale = TRUE),
  prior_aux = prior_exponential(autoscale = TRUE),
  knots = NULL,
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  offset = NULL,
  sigma = NULL,
  storage = c("double", "float"),
  ...,
  prior_PD = FALSE,
  keep_data = TRUE,
  store = NULL
) {
  if (is_hurdle(family)) {
    return(fit_hurdle(hurdle_name(family), match.call(), parent.frame()))
  }
  run <- front_run(..., .front = tall_gam)
  check_given(formula)
  check_glm_front(prior_PD, run, keep_data, store)
  storage <- check_choice(storage, names(storage_types))
  priors <- glm_priors(prior, prior_intercept, prior_aux)
  of_smooths <- if (!missing(prior_smooth)) "prior_smooth"
  prior_smooth <- as_prior_smooth(prior_smooth)
  family <- resolve_family(family)
  asked <- new_asked("tall_gam", match.call(), parent.frame(), environment())
  family <- censored_family(family, asked$formula)
  asked <- ask_smooths(asked, knots)
  if (length(formula_smooths(asked$formula)) > 0) {
    priors$prior_smooth <- prior_smooth
  } else if (!is.null(of_smooths)) {
    abort_input(
      c(
        "{.arg prior_smooth} is of smooth terms, and the formula has none.",
        i = "Leave it out, or write {.code s(x)}."
      ),
      argument = "prior_smooth"
    )
  }
  front <- new_front(
    "glm",
    c("tall_gam", "tall_glm"),
    asked,
    blueprint_glm(family, priors, sigma, storage),
    request_glm(family),
    keep_data,
    takes = c("weights", "offset"),
    prior_PD = prior_PD,
    store = store
  )
  front$told <- new.env(parent = emptyenv())
  class(front) <- c("tall_front_gam", class(front))
  fit_regression(front, run)
}

# With the formula that smooth_formula() makes of the user's, which the fit
# shows.
ask_smooths <- function(asked, knots) {
  if (!inherits(asked$formula, "formula")) {
    return(asked) # refused where frames are made
  }
  formula <- smooth_formula(asked$formula, knots)
  asked$shown <- asked$formula
  asked$formula <- formula
  asked$matched$formula <- formula
  asked
}

#' @export
fit_of_front.tall_front_gam <- function(front, run) {
  fit <- NextMethod()
  tell_concurvity(fit)
  fit
}

# Which columns of the design are blocks, and what pictures need of the data.
#' @export
settle_front.tall_front_gam <- function(front, terms, columns) {
  layout <- smooth_layout(terms, columns)
  # passes that are given up have settled it before
  if (is.null(front$told$lines)) {
    tell_lines_in_smooths(terms)
    front$told$lines <- TRUE
  }
  if (NROW(layout$blocks) > 0) {
    of <- integer(length(columns))
    of[layout$columns$at] <- layout$columns$block
    front$blueprint$blocks <- list(of = of, names = layout$blocks$scale)
  } else {
    front$blueprint$priors["prior_smooth"] <- NULL
  }
  front$sketch <- sketch_of(front, terms)
  front
}

# What pictures need of the data as they were given, of a source the pilot's;
# NULL: there is none.
sketch_of <- function(front, terms) {
  asked <- front$asked
  data <- if (asked$has_data) asked$data
  is_pilot <- !is.null(data) && !is.data.frame(data)
  if (is_pilot) {
    data <- front$pilot$data
    if (is.null(data)) {
      return(NULL)
    }
  }
  home <- environment(asked$formula)
  given <- c("offset", "weights")
  names <- unlist(lapply(as.list(asked$matched)[given], all.vars))
  names <- union(all.vars(terms), names)
  columns <- if (is.null(data)) mget(names, home, inherits = TRUE) else data
  rows <- tryCatch(
    if (!is_pilot) eval(asked$matched$subset, data, home),
    error = function(e) NULL
  )
  sketch <- new_sketch(
    as.list(columns)[intersect(names, names(columns))],
    rows,
    names_as_levels(terms),
    n = setting("gam")$rows,
    counts = if (is_pilot) front$pilot$counts
  )
  if (!front$keep_data) {
    sketch["some"] <- list(NULL)
  }
  sketch
}

# Bars as they were written; `terms` have what smooth_formula() made of them.
#' @export
front_reader.tall_front_gam <- function(front, rows, read) {
  reader <- NextMethod()
  reader$formula <- front$asked$shown
  reader
}

#' @export
front_parts.tall_front_gam <- function(front, ready, read, fit) {
  c(NextMethod(), list(sketch = front$sketch))
}
