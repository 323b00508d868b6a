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
#' @details `prior_exponential()` is for scales such as the residual standard
#' deviation of a Gaussian model.
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
#' @param lower,upper (numeric vectors) The bounds, `lower` below `upper`: one
#'   value for all coefficients, or one for each, as `location`.
#' @param rate (positive number) The rate of the exponential prior: one over its
#'   mean. With `autoscale = TRUE` it is divided by the standard deviation of
#'   the response; in a Gaussian model with weights \eqn{w_i}, where `sigma` is
#'   the standard deviation of a row of weight 1, by \eqn{\sqrt{\sum w_i (y_i -
#'   \bar y_w)^2 / (N - 1)}}{sqrt(sum w_i (y_i - ybar_w)^2 / (N - 1))} about the
#'   weighted mean.
#'
#' @template return-prior
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, or if there are
#' neither one value nor as many as there are coefficients, or if their names
#' are not those of the coefficients; if a prior of rstanarm or brms is given,
#' with what to write instead;
#' `tall_warning_prior` from a run, see above.
#' @examples
#' prior_normal(0, 2.5)
#' prior_normal(0, c(10, 1, 1))
#' prior_normal(c(wt = -3, hp = 0), c(wt = 2, hp = 0.1))
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

new_prior <- function(
  kind,
  location,
  scale,
  autoscale,
  call = caller_env()
) {
  location <- check_numeric_vector(location, call = call)
  scale <- check_numeric_vector(scale, positive = TRUE, call = call)
  both <- align_names(list(location = location, scale = scale), call)
  structure(
    list(
      kind = kind,
      location = both$location,
      scale = both$scale,
      autoscale = check_flag(autoscale, call = call)
    ),
    class = c(paste0("tall_prior_", kind), "tall_prior")
  )
}

# Two vectors of a prior with the same names in the same order, where either has
# names; a single value without a name stays as it is.
align_names <- function(both, call = caller_env()) {
  args <- names(both)
  for (arg in args) {
    check_all_named(both[[arg]], arg = arg, call = call)
  }
  n <- lengths(both)
  named <- !vapply(both, function(x) is.null(names(x)), TRUE)
  if (all(n > 1) || (any(named & n == 1) && max(n) > 1)) {
    check_same_rows(
      both[[1]],
      both[[2]],
      arg = args[[1]],
      arg_y = args[[2]],
      call = call
    )
  }
  if (all(named)) {
    first <- names(both[[1]])
    second <- match_names(
      both[[2]],
      first,
      "coefficient",
      arg = args[[2]],
      call = call
    )
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
  shown <- vapply(utils::head(x, 6), format_number, "")
  shown <- paste(with_names(shown, x), collapse = ", ")
  if (length(x) > 6) {
    shown <- paste0(shown, ", ... with ", length(x) - 6, " more")
  }
  shown
}

# "hp = 0": texts of the first values of x with their names, where it has any.
with_names <- function(text, x) {
  names <- names(x)[seq_along(text)]
  if (is.null(names)) unname(text) else paste(names, "=", text)
}

# What users gave as a prior: NULL is flat. `call` is the environment of the
# function that has the argument `arg`; what they typed there may be a prior of
# rstanarm's or brms' that no function here makes.
as_prior <- function(prior, arg = caller_arg(prior), call = caller_env()) {
  typed <- eval(call("substitute", as.name(arg)), call)
  prior <- tryCatch(prior, error = function(e) {
    check_foreign_prior(typed, arg, call, parent = e)
    rlang::cnd_signal(e)
  })
  if (is.null(prior)) {
    return(prior_flat())
  }
  if (!inherits(prior, "tall_prior")) {
    check_foreign_prior(prior, arg, call)
  }
  check_spec(
    prior,
    "tall_prior",
    "prior_*()",
    allow_null = TRUE,
    arg = arg,
    call = call
  )
}

# rstanarm's and brms' names of densities, and ours; "": there is none.
prior_twins <- c(
  normal = "prior_normal",
  laplace = "prior_laplace",
  double_exponential = "prior_laplace",
  exponential = "prior_exponential",
  uniform = "prior_uniform",
  flat = "prior_flat",
  t = "",
  student_t = "",
  cauchy = "",
  lasso = "",
  hs = "",
  hs_plus = "",
  horseshoe = "",
  R2D2 = "",
  R2 = "",
  product_normal = "",
  decov = "",
  lkj = "",
  gamma = "",
  inv_gamma = "",
  lognormal = "",
  dirichlet = ""
)

# An error that names our twin, if x is a prior of another package: what
# rstanarm::normal() or brms::prior() return, a string as brms takes it, or an
# expression that could not be evaluated.
check_foreign_prior <- function(x, arg, call, parent = NULL) {
  found <- if (inherits(x, "brmsprior")) {
    brms_twins(x)
  } else if (is.list(x) && rlang::is_string(x$dist)) {
    list(rstanarm_twin(x))
  } else if (rlang::is_string(x)) {
    list(tryCatch(call_twin(str2lang(x)), error = function(e) NULL))
  } else if (is.call(x) || is.symbol(x)) {
    list(call_twin(x))
  }
  found <- Filter(Negate(is.null), found)
  if (length(found) == 0) {
    return(invisible())
  }
  seen <- vapply(found, function(one) one$seen, "")
  ours <- vapply(found, function(one) one$ours, "")
  hints <- ifelse(
    ours == "",
    paste0(
      "There is no `",
      seen,
      "` here: there are `prior_normal()`, `prior_laplace()`, ",
      "`prior_uniform()` and `prior_flat()`, and `model_custom()` takes any."
    ),
    paste0("For `", seen, "` write `", ours, "`.")
  )
  abort_input(
    c(
      "{.arg {arg}} must be made by {.code prior_*()} of tallbayes or
       {.code NULL}, not as in rstanarm or brms.",
      stats::setNames(escape_cli(hints), rep("i", length(hints)))
    ),
    argument = arg,
    expected = "made by `prior_*()` or NULL",
    value = x,
    parent = parent,
    call = call
  )
}

# list(seen, ours): what was given, and what to write for it, or "". NULL for
# what is no prior.
call_twin <- function(x) {
  if (is.symbol(x)) {
    x <- as.call(list(x))
  }
  head <- if (is.call(x)) x[[1]]
  if (rlang::is_call(head, c("::", ":::"))) {
    head <- head[[3]]
  }
  name <- if (is.symbol(head)) as.character(head) else ""
  if (name %in% c("prior", "prior_string", "set_prior") && length(x) > 1) {
    inner <- x[[2]]
    inner <- if (rlang::is_string(inner)) str2lang(inner) else inner
    return(call_twin(inner))
  }
  if (!name %in% names(prior_twins)) {
    return(NULL)
  }
  x[[1]] <- as.name(name)
  seen <- deparse1(x)
  ours <- prior_twins[[name]]
  if (ours != "") {
    x[[1]] <- as.name(ours)
    # brms calls them so
    known <- c(mu = "location", sigma = "scale")
    is_known <- names(x) %in% names(known)
    names(x)[is_known] <- known[names(x)[is_known]]
    ours <- deparse1(x)
  }
  list(seen = seen, ours = ours)
}

rstanarm_twin <- function(x) {
  name <- x$dist
  arguments <- if (name == "exponential") {
    list(rate = 1 / (x$scale %||% 1))
  } else {
    list(x$location %||% 0, x$scale %||% 2.5)
  }
  # the constructors that were called, not what rstanarm makes of them
  if (name == "t" && identical(as.double(x$df), 1)) {
    name <- "cauchy"
  } else if (name == "t") {
    name <- "student_t"
    arguments <- c(list(x$df), arguments)
  }
  if (isTRUE(x$autoscale)) {
    arguments$autoscale <- TRUE
  }
  twin <- call_twin(as.call(c(as.name(name), arguments)))
  twin %||% list(seen = name, ours = "")
}

# A row for each prior, of which the class says what it is a prior of.
brms_twins <- function(x) {
  argument <- c(b = "prior", Intercept = "prior_intercept", sigma = "prior_aux")
  class <- x$class %||% rep("b", nrow(x))
  lapply(seq_len(nrow(x)), function(k) {
    text <- x$prior[[k]]
    twin <- if (text == "") {
      list(seen = "(flat)", ours = "prior_flat()")
    } else {
      tryCatch(call_twin(str2lang(text)), error = function(e) NULL)
    }
    twin <- twin %||% list(seen = text, ours = "")
    if (twin$ours != "" && class[[k]] %in% names(argument)) {
      twin$ours <- paste(argument[[class[[k]]]], "=", twin$ours)
    }
    twin
  })
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
# aux_sd         what its autoscale divides by: response_sd at weight 1
prior_resolve <- function(
  prior,
  prior_intercept = NULL,
  names = NULL,
  n_dim = length(names),
  column_sd = rep(1, n_dim),
  response_sd = 1,
  response_mean = 0,
  aux = NULL,
  aux_sd = response_sd,
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
  out <- prior_fill(out, prior, others, column_sd, response_sd, names, call)
  if (length(intercept) > 0) {
    check_coefficient_prior(prior_intercept, call)
    out <- prior_fill(
      out,
      prior_intercept,
      intercept,
      column_sd,
      response_sd,
      names,
      call
    )
    if (prior_intercept$autoscale) {
      out$location[intercept] <- out$location[intercept] + response_mean
    }
  }
  append_aux(out, aux, aux_sd, call)
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
append_aux <- function(out, aux, aux_sd, call) {
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
    scale <- (if (aux$autoscale) aux_sd else 1) / aux$rate
  }
  list(
    kind = c(out$kind, prior_kinds[[kind]]$code),
    location = c(out$location, 0),
    scale = c(out$scale, scale)
  )
}

# Write the entries of `prior` at the columns `at`, of all that have `names`.
prior_fill <- function(
  out,
  prior,
  at,
  column_sd,
  response_sd,
  names,
  call,
  arg = caller_arg(prior)
) {
  n <- length(at)
  if (n == 0) {
    return(out)
  }
  out$kind[at] <- prior_kinds[[prior$kind]]$code
  hint <- if (arg == "prior" && !"(Intercept)" %in% names[at]) {
    paste0(
      "The coefficients are ",
      escape_cli(quote_columns(names[at])),
      if ("(Intercept)" %in% names) {
        "; the prior of the intercept is {.arg prior_intercept}"
      },
      "."
    )
  }
  is_uniform <- prior$kind == "uniform"
  for (field in c("location", "scale")) {
    # as the user called it
    said <- if (!is_uniform) {
      field
    } else if (field == "location") {
      "lower"
    } else {
      "upper"
    }
    said <- paste0(arg, "$", said)
    value <- match_names(
      prior[[field]],
      names[at],
      "coefficient",
      hint,
      arg = said,
      call = call
    )
    check_size(value, c(1, n), arg = said, call = call)
    out[[field]][at] <- value
  }
  if (prior$autoscale) {
    divisor <- if (is.function(column_sd)) column_sd()[at] else column_sd[at]
    divisor[divisor == 0] <- 1
    out$scale[at] <- out$scale[at] * response_sd / divisor
  }
  out
}
