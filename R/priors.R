# Priors of coefficients. A constructor returns an inert spec; prior_resolve()
# turns specs into one kind, location and scale for each coefficient, which is
# what the C core reads. A new prior of this family is one entry of
# `prior_kinds`, one constructor, and its density in src/models/prior.c.

# `code` as in enum tb_prior_kind (src/models/prior.h); `title` heads what is
# printed.
prior_kinds <- list(
  flat = list(code = 0L, title = "flat"),
  normal = list(code = 1L, title = "normal"),
  laplace = list(code = 2L, title = "Laplace"),
  # of a positive parameter, sampled on the log scale
  log_flat = list(code = 3L, title = "flat"),
  exponential = list(code = 4L, title = "exponential"),
  # location: the middle; scale: half the width
  uniform = list(code = 5L, title = "uniform")
)

#' Priors of coefficients
#'
#' Independent priors of the coefficients of a model, such as [model_glm()].
#'
#' @param location (numeric vector) The centre of the prior: one value for all
#'   coefficients, or one value for each.
#' @param scale (positive numeric vector) The scale of the prior, one value for
#'   all coefficients or one for each: the standard deviation of a normal prior,
#'   and the \eqn{s} in the Laplace density
#'   \eqn{\exp(-|\theta - \mu| / s) / (2 s)}{exp(-|theta - mu| / s) / (2 s)},
#'   whose standard deviation is \eqn{\sqrt{2} s}{sqrt(2) s}.
#' @param autoscale (`TRUE` or `FALSE`) Divide the scale of a coefficient by the
#'   standard deviation of its column, and multiply it by the standard deviation
#'   of the response in a Gaussian model, as rstanarm does? By default the scale
#'   is used as given. A constant column, such as the intercept's, counts as
#'   having standard deviation 1.
#'
#' @details `prior_exponential()` is for scales such as the residual standard
#' deviation of a Gaussian model.
#'
#' `prior_flat()` adds nothing to the log posterior. The posterior may then not
#' exist, for instance when a column separates the two classes of a logistic
#' regression; this is detected and reported, never sampled.
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
#' @param lower,upper (numeric vectors) The bounds, `lower` below `upper`: one
#'   value for all coefficients, or one for each.
#' @param rate (positive number) The rate of the exponential prior: one over its
#'   mean. With `autoscale = TRUE` it is divided by the standard deviation of
#'   the response.
#'
#' @template return-prior
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, or if there are
#' neither one value nor as many as there are coefficients;
#' `tall_warning_prior` from a run, see above.
#' @examples
#' prior_normal(0, 2.5)
#' prior_normal(0, c(10, 1, 1))
#' prior_laplace(scale = 0.5, autoscale = TRUE)
#' prior_uniform(-10, 10)
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
prior_flat <- function() {
  new_prior("flat", location = 0, scale = 1, autoscale = FALSE)
}

#' @rdname priors
#' @export
prior_uniform <- function(lower, upper) {
  lower <- check_numeric_vector(lower)
  upper <- check_numeric_vector(upper)
  if (length(lower) > 1 && length(upper) > 1) {
    check_same_rows(lower, upper)
  }
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

new_prior <- function(
  kind,
  location,
  scale,
  autoscale,
  call = caller_env()
) {
  location <- check_numeric_vector(location, call = call)
  scale <- check_numeric_vector(scale, positive = TRUE, call = call)
  if (length(location) > 1 && length(scale) > 1) {
    check_same_rows(location, scale, call = call)
  }
  structure(
    list(
      kind = kind,
      location = location,
      scale = scale,
      autoscale = check_flag(autoscale, call = call)
    ),
    class = c(paste0("tall_prior_", kind), "tall_prior")
  )
}

#' @export
print.tall_prior <- function(x, ...) {
  cat("<tall_prior> ", prior_kinds[[x$kind]]$title, "\n", sep = "")
  if (x$kind == "exponential") {
    note <- if (x$autoscale) {
      " (divided by the standard deviation of the response)"
    }
    cat("rate: ", format_number(x$rate), note, "\n", sep = "")
  } else if (x$kind == "uniform") {
    cat("lower: ", values_text(x$lower), "\n", sep = "")
    cat("upper: ", values_text(x$upper), "\n", sep = "")
  } else if (x$kind != "flat") {
    cat("location: ", values_text(x$location), "\n", sep = "")
    note <- if (x$autoscale) {
      " (divided by the standard deviation of the column)"
    }
    cat("scale:    ", values_text(x$scale), note, "\n", sep = "")
  }
  invisible(x)
}

# At most six values.
values_text <- function(x) {
  shown <- paste(vapply(utils::head(x, 6), format_number, ""), collapse = ", ")
  if (length(x) > 6) {
    shown <- paste0(shown, ", ... with ", length(x) - 6, " more")
  }
  shown
}

# Kind, location and scale of every coefficient, each of length n_dim. `prior`
# covers every column; `prior_intercept`, if not NULL, only a column named
# "(Intercept)", which `prior` then leaves alone.
#
# names          names of the columns, or NULL
# n_dim          number of columns
# column_sd      their standard deviations; used by autoscale = TRUE only, so a
#                function of no argument is welcome
# response_sd    that of the response in a Gaussian model, else 1
# response_mean  its mean, else 0: where an autoscaled intercept is centred
# aux            the prior of a sampled sigma, appended as one more coordinate
prior_resolve <- function(
  prior,
  prior_intercept = NULL,
  names = NULL,
  n_dim = length(names),
  column_sd = rep(1, n_dim),
  response_sd = 1,
  response_mean = 0,
  aux = NULL,
  call = caller_env()
) {
  check_spec(prior, "tall_prior", "prior_*()", call = call)
  check_coefficient_prior(prior, call)
  check_spec(
    prior_intercept,
    "tall_prior",
    "prior_*()",
    allow_null = TRUE,
    call = call
  )
  intercept <- if (is.null(prior_intercept)) {
    integer()
  } else {
    which(names == "(Intercept)")
  }
  others <- setdiff(seq_len(n_dim), intercept)
  out <- list(
    kind = integer(n_dim),
    location = numeric(n_dim),
    scale = rep(1, n_dim)
  )
  out <- prior_fill(out, prior, others, column_sd, response_sd, call)
  if (length(intercept) > 0) {
    check_coefficient_prior(prior_intercept, call)
    out <- prior_fill(
      out,
      prior_intercept,
      intercept,
      column_sd,
      response_sd,
      call
    )
    if (prior_intercept$autoscale) {
      out$location[intercept] <- out$location[intercept] + response_mean
    }
  }
  append_aux(out, aux, response_sd, call)
}

check_coefficient_prior <- function(
  prior,
  call,
  arg = caller_arg(prior)
) {
  if (inherits(prior, "tall_prior_exponential")) {
    abort_input(
      c(
        "{.arg {arg}} must be a prior of coefficients, not
         {.code prior_exponential()}.",
        i = "It is a prior of scales: give it as {.arg prior_aux}."
      ),
      argument = arg,
      value = prior,
      call = call
    )
  }
}

# The prior of log sigma, Jacobian included.
append_aux <- function(out, aux, response_sd, call) {
  if (is.null(aux)) {
    return(out)
  }
  kind <- if (aux$kind == "flat") "log_flat" else aux$kind
  if (!kind %in% c("log_flat", "exponential")) {
    abort_input(
      "{.arg prior_aux} must be {.code prior_exponential()} or
       {.code prior_flat()}, not {.code prior_{aux$kind}()}.",
      argument = "prior_aux",
      value = aux,
      call = call
    )
  }
  scale <- 1
  if (kind == "exponential") {
    scale <- (if (aux$autoscale) response_sd else 1) / aux$rate
  }
  list(
    kind = c(out$kind, prior_kinds[[kind]]$code),
    location = c(out$location, 0),
    scale = c(out$scale, scale)
  )
}

# Write the entries of `prior` at the columns `at`.
prior_fill <- function(
  out,
  prior,
  at,
  column_sd,
  response_sd,
  call,
  arg = caller_arg(prior)
) {
  n <- length(at)
  if (n == 0) {
    return(out)
  }
  out$kind[at] <- prior_kinds[[prior$kind]]$code
  for (field in c("location", "scale")) {
    check_size(
      prior[[field]],
      c(1, n),
      arg = paste0(arg, "$", field),
      call = call
    )
    out[[field]][at] <- prior[[field]]
  }
  if (prior$autoscale) {
    divisor <- if (is.function(column_sd)) column_sd()[at] else column_sd[at]
    divisor[divisor == 0] <- 1
    out$scale[at] <- out$scale[at] * response_sd / divisor
  }
  out
}
