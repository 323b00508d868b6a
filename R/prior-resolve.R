# Priors of a model's coefficients, coordinate by coordinate.

# Never zero: it divides.
response_sd <- function(y) {
  sd <- if (length(y) > 1) stats::sd(y) else 0
  if (sd > 0) sd else 1
}

# Kind, location and scale of every coefficient, each of length n_dim, and shape
# where one has any, its degrees of freedom. `prior`
# covers every column; `prior_intercept`, if not NULL, only a column named
# "(Intercept)", which `prior` then leaves alone.
#
# names          names of the columns, or NULL
# n_dim          number of columns
# column_sd      their standard deviations; used by autoscale = TRUE only, so a
#                function of no argument is welcome
# units          list(mean, sd) of the response in a Gaussian model, NULL: 0 and
#                1; an autoscaled intercept is centred at the mean
# takes_mixture  can the model have a prior with hyperparameters? Then `mixture`
#                is what the core takes of it, see resolve_mixture().
# smooth         the columns of blocks with a scale each, which `prior` leaves
#                alone, see resolve_blocks(); NULL: there are none
prior_resolve <- function(
  prior,
  prior_intercept = NULL,
  names = NULL,
  n_dim = length(names),
  column_sd = rep(1, n_dim),
  units = NULL,
  takes_mixture = FALSE,
  smooth = NULL
) {
  unit <- units$sd %||% 1
  check_spec(prior, "tall_prior", "prior_*()")
  check_coefficient_prior(prior)
  if (!takes_mixture) {
    check_no_mixture(prior)
  }
  check_spec(prior_intercept, "tall_prior", "prior_*()", allow_null = TRUE)
  intercept <- if (is.null(prior_intercept)) {
    integer()
  } else {
    which(names == "(Intercept)")
  }
  others <- setdiff(seq_len(n_dim), c(intercept, unlist(smooth$at)))
  out <- list(
    kind = integer(n_dim),
    location = numeric(n_dim),
    scale = rep(1, n_dim)
  )
  out <- prior_fill(out, prior, others, column_sd, unit, names)
  if (length(intercept) > 0) {
    check_coefficient_prior(prior_intercept)
    check_no_mixture(prior_intercept, one = TRUE)
    out <- prior_fill(
      out,
      prior_intercept,
      intercept,
      column_sd,
      unit,
      names
    )
    if (prior_intercept$autoscale) {
      out$location[intercept] <- out$location[intercept] +
        (units$mean %||% 0)
    }
  }
  if (is_mixture_prior(prior) && length(others) > 0) {
    out$mixture <- resolve_mixture(prior, out, others, names)
  }
  if (is.null(smooth)) out else resolve_blocks(out, smooth, unit, names)
}

# With those of the sampled parameters of the response, such as sigma, as more
# coordinates.
#
# aux    a prior of each
# sd     what autoscale divides by: of a sigma response_sd at weight 1
# lower  what each is above
append_aux <- function(resolved, aux, sd = 1, lower = numeric(length(aux))) {
  for (k in seq_along(aux)) {
    resolved <- append_one_aux(resolved, aux[[k]], sd, lower[[k]])
  }
  resolved
}

# The prior of each sampled parameter of a response: `prior_aux` is that of the
# first one, or a list by name; others are the entry's own.
aux_priors <- function(prior_aux, family, sampled) {
  names <- response_aux(family)
  own <- find_response(family)$aux_priors
  if (inherits(prior_aux, "tall_prior")) {
    given <- stats::setNames(list(prior_aux), names[[1]])
  } else {
    given <- prior_aux
    check_known(names(given), names, "parameter", "prior_aux")
  }
  lapply(stats::setNames(nm = sampled), function(name) {
    given[[name]] %||%
      if (is.null(own[[name]])) {
        prior_exponential(autoscale = TRUE)
      } else {
        prior_gamma(own[[name]][["shape"]], own[[name]][["rate"]])
      }
  })
}

check_coefficient_prior <- function(prior, arg = caller_arg(prior)) {
  if (prior_kinds[[prior$kind]]$is_of_scales) {
    abort_input(
      c(
        "{.arg {arg}} must be a prior of coefficients, not
         {.code prior_{prior$kind}()}.",
        i = "It is a prior of scales: give it as {.arg prior_aux}."
      ),
      argument = arg,
      value = prior
    )
  }
}

# The prior of its logarithm, Jacobian included.
append_one_aux <- function(out, aux, aux_sd, lower) {
  # flat on the scale itself
  kind <- if (aux$kind == "flat") "log_flat" else aux$kind
  if (!prior_kinds[[kind]]$is_of_scales) {
    abort_input(
      "{.arg prior_aux} must be {.code prior_exponential()},
       {.code prior_gamma()} or {.code prior_flat()}, not
       {.code prior_{aux$kind}()}.",
      argument = "prior_aux",
      value = aux
    )
  }
  scale <- 1
  if (kind == "exponential") {
    scale <- (if (aux$autoscale) aux_sd else 1) / aux$rate
  } else if (kind == "gamma") {
    scale <- 1 / aux$rate
    out$shape <- out$shape %||% numeric(length(out$kind))
  }
  out$kind <- c(out$kind, prior_kinds[[kind]]$code)
  out$location <- c(out$location, if (kind == "gamma") lower else 0)
  out$scale <- c(out$scale, scale)
  if (!is.null(out$shape)) {
    out$shape <- c(out$shape, aux$shape %||% 0)
  }
  out
}

# Write the entries of `prior` at the columns `at`, of all that have `names`.
prior_fill <- function(
  out,
  prior,
  at,
  column_sd,
  response_sd,
  names,
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
  fields <- c("location", "scale")
  given <- prior
  prior <- own_of_coefficients(prior)
  for (k in 1:2) {
    field <- fields[[k]]
    # as the user called it
    said <- paste0(arg, "$", prior_kinds[[given$kind]]$said[[k]])
    value <- match_names(
      prior[[field]],
      names[at],
      "coefficient",
      hint,
      arg = said
    )
    check_size(value, c(1, n), arg = said)
    out[[field]][at] <- value
  }
  if (!is.null(prior$df)) {
    out$shape <- out$shape %||% numeric(length(out$kind))
    out$shape[at] <- prior$df
  }
  if (prior$autoscale) {
    divisor <- if (is.function(column_sd)) column_sd()[at] else column_sd[at]
    divisor[divisor == 0] <- 1
    out$scale[at] <- out$scale[at] * response_sd / divisor
  }
  out
}
