# The prior of the covariance of groups' effects: standard deviations and
# correlations. src/models/groups-prior.c has the density.

#' The prior of group-level standard deviations and correlations
#'
#' What `prior_covariance` of [tall_glmer()] takes: independent priors of the
#' standard deviations of the effects, and an LKJ prior of their correlations.
#'
#' @param eta (positive number) The shape of the LKJ prior of the correlation
#'   matrix (Lewandowski, Kurowicka & Joe, 2009): 1 is flat over correlation
#'   matrices, larger values favour small correlations.
#' @param sd (`tall_prior` or `NULL`) The prior of each standard deviation, cut
#'   off below 0: [prior_student()], [prior_normal()], both with location 0,
#'   [prior_exponential()] or [prior_flat()]. A vector of scales has one for
#'   each effect of a group, in the order of the formula or with their names.
#'   `NULL`: a half Student t with 3 degrees of freedom and scale 2.5 or, in
#'   models with an identity link, the median absolute deviation of the response
#'   where that is larger, as in brms.
#'
#' @return An object of class `tall_prior_lkj`, an inert description.
#' @section Conditions: `tall_error_input` if an argument is not as described.
#' @references
#' Lewandowski, Kurowicka & Joe (2009). Generating random correlation matrices
#' based on vines and extended onion method. *Journal of Multivariate Analysis*
#' 100, 1989-2001.
#' @seealso [priors] for those of coefficients, `vignette("priors")`
#' @examples
#' prior_lkj()
#' prior_lkj(2, sd = prior_exponential(1))
#' @export
prior_lkj <- function(eta = 1, sd = NULL) {
  eta <- check_number(eta, positive = TRUE)
  if (!is.null(sd)) {
    sd <- check_sd_prior(as_prior(sd))
  }
  structure(list(eta = eta, sd = sd), class = "tall_prior_lkj")
}

# As in enum groups_sd_kind.
sd_kinds <- c(flat = 0, normal = 1, student = 2, exponential = 3)

check_sd_prior <- function(sd, arg = "sd") {
  if (!sd$kind %in% names(sd_kinds)) {
    abort_input(
      "{.arg {arg}} must be {.fn prior_student}, {.fn prior_normal},
       {.fn prior_exponential} or {.fn prior_flat}, not
       {.fn prior_{sd$kind}}.",
      argument = arg,
      value = sd
    )
  }
  if (sd$kind != "flat" && any(sd$location != 0)) {
    abort_input(
      "{.arg {arg}} must have location 0: it is cut off there.",
      argument = arg,
      value = sd
    )
  }
  sd
}

# What prior_covariance was given; a prior of coefficients is that of the
# standard deviations.
as_covariance_prior <- function(prior) {
  if (is.null(prior)) {
    return(prior_lkj(sd = prior_flat()))
  }
  if (inherits(prior, "tall_prior")) {
    prior <- structure(
      list(eta = 1, sd = check_sd_prior(prior, "prior_covariance")),
      class = "tall_prior_lkj"
    )
  }
  if (!inherits(prior, "tall_prior_lkj")) {
    check_foreign_prior(prior, "prior_covariance")
    abort_expected(
      prior,
      "prior_lkj() or a prior of standard deviations",
      arg = "prior_covariance"
    )
  }
  prior
}

# Of several grouping factors: one for all, or a list of them by name.
as_covariance_priors <- function(priors) {
  if (is.list(priors) && !is.object(priors)) {
    if (length(priors) == 0 || !rlang::is_named(priors)) {
      abort_expected(
        priors,
        "a prior, or a list of priors by the names of grouping factors",
        arg = "prior_covariance"
      )
    }
    return(lapply(priors, as_covariance_prior))
  }
  as_covariance_prior(priors)
}

# The core's parameters. names: of the effects; y: the response, or what is
# known of it, list(mad, sd); identity: has the model an identity link?
covariance_params <- function(prior, names, y, has_units) {
  y <- first_column(y)
  sd <- prior$sd
  if (is.null(sd)) {
    wide <- if (has_units) response_mad(y) else 0
    sd <- prior_student(3, 0, max(2.5, wide))
  }
  scale <- 1
  if (sd$kind == "exponential") {
    divisor <- if (sd$autoscale && has_units) spread_of(y) else 1
    scale <- divisor / sd$rate
  } else if (sd$kind != "flat") {
    unit <- if (sd$autoscale && has_units) spread_of(y) else 1
    scale <- sd_scales(sd, names) * unit
  }
  list(
    lkj = prior$eta,
    sd_kind = sd_kinds[[sd$kind]],
    sd_df = sd$df %||% 3,
    sd_scale = rep_len(as.double(scale), length(names))
  )
}

response_mad <- function(y) {
  if (is.list(y)) y$mad else stats::mad(y, na.rm = TRUE)
}

spread_of <- function(y) {
  if (is.list(y)) y$sd else response_sd(y)
}

# The scale of a prior of standard deviations for each of the effects.
sd_scales <- function(sd, names) {
  arg <- "prior_covariance$sd$scale"
  scale <- match_names(sd$scale, names, "effect", arg = arg)
  check_size(scale, unique(c(1, length(names))), arg = arg)
  rep_len(scale, length(names))
}

#' @export
print.tall_prior_lkj <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_prior> standard deviations and correlations of groups\n")
  cat("eta: ", format_number(x$eta), "\n", sep = "")
  cat("sd:  ", if (is.null(x$sd)) {
    "half Student t, 3 degrees of freedom"
  } else {
    paste("half", prior_kinds[[x$sd$kind]]$title)
  }, "\n", sep = "")
  invisible(x)
}
