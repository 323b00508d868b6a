# Priors of coefficients. A constructor returns an inert spec; prior_resolve()
# turns specs into one kind, location and scale for each coefficient, which is
# what the C core reads. Whoever needs to know something of a kind asks its
# entry here, by prior_facts(), and names none.
#
# A new prior of this family: src/priors/<name>.c and its line in registry.c and
# Makevars; an entry of `prior_kinds` and a constructor here; `_pkgdown.yml` has
# the constructors on one page already.

# An entry. Required:
#   code         (whole number) Its place in src/priors/registry.c.
#   title        (string) What heads it where it is printed.
#   precision    (function) `precision(scale, shape)`: one over its variance, 0
#                where there is none; of a Student prior its curvature at the
#                centre.
# Optional:
#   curvature    (function) `curvature(u, scale, shape)`: minus the second
#                derivative of its logarithm where it is not `precision`,
#                u = (value - location) / scale.
#   weight       (function) `weight(u, scale, shape)`: the precision of the
#                normal with the same slope, where that is not `precision`.
#   is_proper    (TRUE or FALSE) Does its density have an integral?
#   form         (string) What its logarithm is: "quadratic" (or constant),
#                everywhere; "smooth"; "kinked" at the location, with a
#                curvature that is missing from a Hessian; or "bounded", where
#                the prior ends at location -+ scale.
#   has_tails    (TRUE or FALSE) Is its logarithm not concave?
#   is_of_scales (TRUE or FALSE) Is it of a positive parameter, sampled on the
#                log scale?
#   said         (two strings) What users call location and scale.
#   mixture      (whole number) Of a normal prior whose scales are parameters
#                themselves, its place in src/priors/registry-mixtures.c; see
#                R/prior-mixture.R. `code` is then R's alone, from 100 on: the
#                core has a flat prior in the place of the coefficient's own.
prior_kind <- function(
  code,
  title,
  precision = function(scale, shape) 0 * scale,
  curvature = function(u, scale, shape) precision(scale, shape),
  weight = function(u, scale, shape) precision(scale, shape),
  is_proper = TRUE,
  form = "smooth",
  has_tails = FALSE,
  is_of_scales = FALSE,
  said = c("location", "scale"),
  mixture = NULL
) {
  list(
    code = code,
    title = title,
    precision = precision,
    curvature = curvature,
    weight = weight,
    is_proper = is_proper,
    form = rlang::arg_match0(form, prior_forms),
    has_tails = has_tails,
    is_of_scales = is_of_scales,
    said = said,
    mixture = mixture
  )
}

prior_forms <- c("quadratic", "smooth", "kinked", "bounded")

prior_kinds <- list(
  flat = prior_kind(0L, "flat", is_proper = FALSE, form = "quadratic"),
  normal = prior_kind(
    1L,
    "normal",
    precision = function(scale, shape) 1 / scale^2,
    form = "quadratic"
  ),
  laplace = prior_kind(
    2L,
    "Laplace",
    precision = function(scale, shape) 1 / (2 * scale^2),
    form = "kinked"
  ),
  log_flat = prior_kind(3L, "flat", is_proper = FALSE, is_of_scales = TRUE),
  exponential = prior_kind(4L, "exponential", is_of_scales = TRUE),
  # location: the middle; scale: half the width
  uniform = prior_kind(
    5L,
    "uniform",
    precision = function(scale, shape) 3 / scale^2,
    form = "bounded",
    said = c("lower", "upper")
  ),
  student = prior_kind(
    6L,
    "Student",
    precision = function(scale, shape) (shape + 1) / (shape * scale^2),
    curvature = function(u, scale, shape) {
      (shape + 1) * (shape - u^2) / ((shape + u^2)^2 * scale^2)
    },
    weight = function(u, scale, shape) {
      (shape + 1) / ((shape + u^2) * scale^2)
    },
    has_tails = TRUE
  ),
  # location: what the parameter is above; scale: one over the rate
  gamma = prior_kind(7L, "gamma", is_of_scales = TRUE),
  ridge = prior_kind(102L, "ridge", mixture = 2L),
  hs = prior_kind(103L, "regularised horseshoe", mixture = 3L),
  r2d2 = prior_kind(104L, "R2D2", mixture = 4L),
  # a scale of such a prior, as a coordinate
  hyper = prior_kind(200L, "hyperparameter")
)

# A fact of the prior of each coordinate; `prior`: from prior_resolve(), NULL of
# a model whose prior is its own affair.
prior_facts <- function(prior, fact) {
  codes <- vapply(prior_kinds, function(kind) kind$code, 0L)
  known <- unname(sapply(prior_kinds, `[[`, fact))
  known[match(prior$kind, codes)]
}

# Of each coordinate; see prior_kind().
prior_has_form <- function(prior, form) {
  prior_facts(prior, "form") == form
}

# One over the variance of each coordinate's prior; 0 of those without.
prior_precision <- function(prior) {
  as.double(Map(
    function(precision, scale, shape) precision(scale, shape),
    prior_facts(prior, "precision"),
    prior$scale,
    prior$shape %||% rep(0, length(prior$scale))
  ))
}

# At `value`, a number for each coordinate: minus the second derivative of each
# prior's logarithm, where it has one, else one over its variance ("curvature");
# or the precision of the normal with the same slope ("weight"), which is not
# negative.
prior_precision_at <- function(prior, value, fact = c("curvature", "weight")) {
  as.double(Map(
    function(at, u, scale, shape) at(u, scale, shape),
    prior_facts(prior, match.arg(fact)),
    (value - prior$location) / prior$scale,
    prior$scale,
    prior$shape %||% rep(0, length(prior$scale))
  ))
}

#' Priors of coefficients
#'
#' Independent priors of the coefficients of a model, such as [model_glm()].
#'
#' @param location (numeric vector) The centre of the prior: one value for all
#'   coefficients, or one value for each, in the order of the columns or with
#'   their names.
#' @param scale (positive numeric vector) The scale of the prior, one value for
#'   all coefficients or one for each: the standard deviation of a normal prior,
#'   and the \eqn{s} in the Laplace density
#'   \eqn{\exp(-|\theta - \mu| / s) / (2 s)}{exp(-|theta - mu| / s) / (2 s)},
#'   whose standard deviation is \eqn{\sqrt{2} s}{sqrt(2) s}.
#' @param autoscale (`TRUE` or `FALSE`) Divide the scale of a coefficient by the
#'   standard deviation of its column, and multiply it by the standard deviation
#'   of the response in a Gaussian model, as rstanarm does? By default the scale
#'   is used as given. A constant column, such as the intercept's, counts as
#'   having standard deviation 1. An offset is first taken off the response.
#'
#' @details `prior_student()` is a Student t distribution, whose tails are the
#' heavier the smaller `df` is; with `df = 1` it is a Cauchy prior.
#'
#' `prior_exponential()` and `prior_gamma()` are for scales such as the residual
#' standard deviation of a Gaussian model, and for other positive parameters of
#' a response. Of one that is above a bound, as degrees of freedom are above 1,
#' the prior is cut off there.
#'
#' `prior_flat()` adds nothing to the log posterior. The posterior may then not
#' exist, for instance when a column separates the two classes of a logistic
#' regression; this is detected and reported, never sampled. `NULL` in place of
#' a prior is flat, too, as in rstanarm.
#'
#' A vector with names is matched with the coefficients by them, and must name
#' every coefficient: nothing is recycled from it. In one prior, a vector
#' without names beside one with names has the same order.
#'
#' The Laplace prior is not differentiable at its centre, where its gradient is
#' taken as zero. Kernels without a Metropolis step are accurate under it when
#' its scale is larger than the standard deviation that the data alone give, as
#' it is in tall data. Otherwise a run says so in a `tall_warning_prior`, if it
#' has had a mode and its Hessian to tell; without a kernel the recipe takes an
#' exact one.
#'
#' `prior_uniform()` is constant on a box and zero outside it. Its gradient does
#' not see the bounds, so it takes a Metropolis kernel such as [kernel_mala()],
#' which rejects proposals outside them; other kernels are refused, and without
#' a kernel the recipe takes an exact one. [find_mode()] looks for the mode
#' within the bounds. Those of the intercept of a [tall_glm()] are bounds of the
#' predictor at the mean of the covariates.
#'
#' @param df (positive number) Degrees of freedom.
#' @param lower,upper (numeric vectors) The bounds, `lower` below `upper`: one
#'   value for all coefficients, or one for each, as `location`.
#' @param shape (positive number) The shape of the gamma prior, whose mean is
#'   `shape / rate`; with 1 it is exponential.
#' @param rate (positive number) The rate of the gamma prior, or of the
#'   exponential prior: one over its mean. With `autoscale = TRUE` it is divided
#'   by the standard deviation of the response; in a Gaussian model with weights
#'   \eqn{w_i}, where `sigma` is the standard deviation of a row of weight 1, by
#'   \eqn{\sqrt{\sum w_i (y_i - \bar y_w)^2 / (N - 1)}}{sqrt(sum w_i (y_i -
#'   ybar_w)^2 / (N - 1))} about the weighted mean.
#'
#' @template return-prior
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, or if there are
#' neither one value nor as many as there are coefficients, or if their names
#' are not those of the coefficients; if a prior of rstanarm or brms is given,
#' with what to write instead;
#' `tall_warning_prior` from a run, see above.
#' @seealso [prior_hs()], [prior_ridge()] and [prior_r2d2()] for priors whose
#'   scales are learnt; `vignette("priors")` for the defaults, and what a prior
#'   says before the data do
#' @references
#' Gelman, Jakulin, Pittau & Su (2008). A weakly informative default prior
#' distribution for logistic and other regression models. *Annals of Applied
#' Statistics* 2, 1360-1383.
#'
#' Park & Casella (2008). The Bayesian lasso. *Journal of the American
#' Statistical Association* 103, 681-686.
#'
#' Simpson, Rue, Riebler, Martins & Sorbye (2017). Penalising model component
#' complexity: a principled, practical approach to constructing priors.
#' *Statistical Science* 32, 1-28.
#' @examples
#' prior_normal(0, 2.5)
#' prior_normal(0, c(10, 1, 1))
#' prior_normal(c(wt = -3, hp = 0), c(wt = 2, hp = 0.1))
#' prior_laplace(scale = 0.5, autoscale = TRUE)
#' prior_student(3, 0, 2.5)
#' prior_uniform(-10, 10)
#' prior_gamma(2, 0.1)
#' prior_exponential(autoscale = TRUE)
#' prior_flat()
#'
#' fit <- tall_glm(
#'   mpg ~ wt + hp,
#'   data = mtcars,
#'   prior = prior_normal(c(wt = -3, hp = 0), c(wt = 2, hp = 0.1)),
#'   prior_intercept = prior_flat(),
#'   seed = 1
#' )
#' coef(fit)
#' @name priors
NULL

#' @rdname priors
#' @export
prior_normal <- function(location = 0, scale = 2.5, autoscale = FALSE) {
  new_prior("normal", location, scale, autoscale)
}

#' @rdname priors
#' @export
prior_laplace <- function(location = 0, scale = 1, autoscale = FALSE) {
  new_prior("laplace", location, scale, autoscale)
}

#' @rdname priors
#' @export
prior_student <- function(
  df = 3,
  location = 0,
  scale = 2.5,
  autoscale = FALSE
) {
  prior <- new_prior("student", location, scale, autoscale)
  prior$df <- check_number(df, positive = TRUE)
  prior
}

#' @rdname priors
#' @export
prior_flat <- function() {
  new_prior("flat", location = 0, scale = 1, autoscale = FALSE)
}

#' @rdname priors
#' @export
prior_uniform <- function(lower, upper) {
  lower <- check_numeric_vector(lower)
  upper <- check_numeric_vector(upper)
  both <- align_names(list(lower = lower, upper = upper))
  lower <- both$lower
  upper <- both$upper
  bad <- which(!(lower < upper))
  if (length(bad) > 0) {
    at <- function(x) rep_len(x, max(length(lower), length(upper)))[[bad[[1]]]]
    abort_input(
      "{.arg lower} must be below {.arg upper}, not
       {format_number(at(lower))} against {format_number(at(upper))}.",
      argument = "lower",
      value = lower
    )
  }
  prior <- new_prior("uniform", (lower + upper) / 2, (upper - lower) / 2, FALSE)
  prior$lower <- lower
  prior$upper <- upper
  prior
}

#' @rdname priors
#' @export
prior_exponential <- function(rate = 1, autoscale = FALSE) {
  structure(
    list(
      kind = "exponential",
      rate = check_number(rate, positive = TRUE),
      autoscale = check_flag(autoscale)
    ),
    class = c("tall_prior_exponential", "tall_prior")
  )
}

#' @rdname priors
#' @export
prior_gamma <- function(shape, rate) {
  structure(
    list(
      kind = "gamma",
      shape = check_number(shape, positive = TRUE),
      rate = check_number(rate, positive = TRUE),
      autoscale = FALSE
    ),
    class = c("tall_prior_gamma", "tall_prior")
  )
}

new_prior <- function(kind, location, scale, autoscale) {
  location <- check_numeric_vector(location)
  scale <- check_numeric_vector(scale, positive = TRUE)
  both <- align_names(list(location = location, scale = scale))
  structure(
    list(
      kind = kind,
      location = both$location,
      scale = both$scale,
      autoscale = check_flag(autoscale)
    ),
    class = c(paste0("tall_prior_", kind), "tall_prior")
  )
}

# Two vectors of a prior with the same names in the same order, where either has
# names; a single value without a name stays as it is.
align_names <- function(both) {
  args <- names(both)
  for (arg in args) {
    check_all_named(both[[arg]], arg = arg)
  }
  n <- lengths(both)
  named <- !vapply(both, function(x) is.null(names(x)), TRUE)
  if (all(n > 1) || (any(named & n == 1) && max(n) > 1)) {
    check_same_rows(both[[1]], both[[2]], arg = args[[1]], arg_y = args[[2]])
  }
  if (all(named)) {
    first <- names(both[[1]])
    second <- match_names(both[[2]], first, "coefficient", arg = args[[2]])
    both[[2]] <- stats::setNames(second, first)
  } else if (any(named) && all(n > 1)) {
    names(both[[which(!named)]]) <- names(both[[which(named)]])
  }
  both
}

#' @export
print.tall_prior <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_prior> ", prior_kinds[[x$kind]]$title, "\n", sep = "")
  if (x$kind == "exponential") {
    note <- if (x$autoscale) {
      " (divided by the standard deviation of the response)"
    }
    cat("rate: ", format_number(x$rate), note, "\n", sep = "")
  } else if (x$kind == "gamma") {
    cat("shape: ", format_number(x$shape), "\n", sep = "")
    cat("rate:  ", format_number(x$rate), "\n", sep = "")
  } else if (x$kind == "uniform") {
    cat("lower: ", values_text(x$lower), "\n", sep = "")
    cat("upper: ", values_text(x$upper), "\n", sep = "")
  } else if (x$kind != "flat") {
    if (!is.null(x$df)) {
      cat("df:       ", format_number(x$df), "\n", sep = "")
    }
    cat("location: ", values_text(x$location), "\n", sep = "")
    note <- if (x$autoscale) {
      " (divided by the standard deviation of the column)"
    }
    cat("scale:    ", values_text(x$scale), note, "\n", sep = "")
  }
  invisible(x)
}

#' @export
check_whole.tall_prior <- function(x, arg) {
  parts <- unclass(x)
  kind <- if (is.list(parts)) parts$kind
  is_named <- rlang::is_string(kind) &&
    identical(class(x), c(paste0("tall_prior_", kind), "tall_prior")) &&
    kind %in% names(prior_kinds)
  if (!is_named) {
    abort_corrupt(paste0("`", arg, "`"), "kind")
  }
  make <- constructor_of("prior", kind)
  if (is.null(make)) {
    return(invisible())
  }
  given <- intersect(names(formals(make)), names(parts))
  again <- unclass(make_again(make, compact(parts[given]), arg))
  for (name in union(names(parts), names(again))) {
    if (!identical(parts[[name]], again[[name]])) {
      abort_corrupt(paste0("`", arg, "`"), name)
    }
  }
}
