# Fits of tall_glm() with formulas of two parameters: what is predicted is the
# mean, and with `dpar` the other one.

# Linear predictors, draws x rows x 2.
dpar_predictors <- function(fit, rows, theta) {
  width <- fit$width
  ends <- cumsum(width)
  out <- array(0, c(nrow(theta), nrow(rows$x), 2))
  for (k in 1:2) {
    at <- seq(ends[[k]] - width[[k]] + 1, ends[[k]])
    x <- rows$x[, at, drop = FALSE]
    out[, , k] <- tcrossprod(theta[, at, drop = FALSE], x)
  }
  if (any(rows$offset != 0) || anyNA(rows$offset)) {
    out[, , 1] <- out[, , 1] + rep(rows$offset, each = nrow(theta))
  }
  out
}

#' @export
response_law.tall_dpar <- function(fit, rows, draws) {
  response_mean(fit$family, dpar_predictors(fit, rows, draws$theta))
}

#' @export
predictor.tall_dpar <- function(fit, rows, draws, scale) {
  second <- identical(draws$dpar, fit$dpar$name)
  both <- if (scale == "link") {
    dpar_predictors(fit, rows, draws$theta)
  } else {
    response_law(fit, rows, draws)
  }
  if (second) second_of_two(both) else first_of_two(both)
}

#' @export
log_density.tall_dpar <- function(fit, rows, draws) {
  eta <- dpar_predictors(fit, rows, draws$theta)
  is_precision <- has_precisions(fit$family)
  weight <- if (is_precision) rows$weight
  out <- response_log_density(fit$family, eta, rows$y, weight, draws$aux)
  if (!is_precision && any(rows$weight != 1)) {
    out <- rep(rows$weight, each = nrow(eta)) * out
  }
  out
}

# The other parameter at the posterior mean of its coefficients.
#' @export
row_residuals.tall_dpar <- function(fit, type) {
  aux <- mean_aux(fit)
  at <- matrix(coef.tall_fit(fit)[seq_len(fit$n_coef)], 1)
  function(rows, mu) {
    law <- response_mean(fit$family, dpar_predictors(fit, rows, at))
    law[1, , 1] <- mu
    mean <- cbind(mu, law[1, , 2])
    y <- first_column(rows$y)
    weight <- rows$weight
    switch(
      type,
      response = y - mu,
      pearson = {
        variance <- drop(response_variance(fit$family, law, aux = aux))
        (y - mu) * sqrt(weight / variance)
      },
      deviance = {
        deviance <- response_deviance(fit$family, rows$y, mean, weight, aux)
        sign(y - mu) * sqrt(pmax(deviance, 0))
      }
    )
  }
}

# Of each row; of other responses 1, as everywhere.
#' @export
sigma.tall_dpar <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  if (object$dpar$name != "sigma") {
    return(1)
  }
  check_has_data(object)
  asked <- ask_rows(object)
  chosen <- choose_draws(object, affordable_draws(object, asked$n))
  chosen$dpar <- "sigma"
  over_rows(asked, chosen, function(rows) {
    list(value = predictor_moments(object, rows, chosen, "response", FALSE)$fit)
  })$value
}

#' Draws of a parameter that has a formula
#'
#' Of fits of [tall_glm()] with `list(y ~ x, sigma ~ z)`, what
#' [posterior_linpred()][posterior-predict] and its kin say of the second
#' parameter, by the argument `dpar`, as in brms. All other methods are of the
#' mean, or of responses, whose law has both.
#'
#' @inheritParams posterior-predict
#' @param object (`tall_dpar`) The fit.
#' @param dpar (string or `NULL`) `"sigma"`, `"shape"`, `"phi"` or `"zi"`,
#'   whichever has the formula: of its linear predictor, or of the parameter.
#'   `"mu"`, `NULL`: of the mean.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws.
#'
#' @return A matrix, draws x rows.
#' @seealso [predict.tall_regression()]
#' @examples
#' d <- data.frame(x = rnorm(300), z = rnorm(300))
#' d$y <- rnorm(300, d$x, exp(0.5 * d$z))
#' fit <- tall_glm(list(y ~ x, sigma ~ z), d, seed = 1)
#' fit
#' new <- data.frame(x = 0, z = c(-1, 1))
#' colMeans(posterior_epred(fit, new, dpar = "sigma"))
#' predict(fit, new, interval = "prediction", type = "response", seed = 1)
#' @name posterior-dpar
NULL

#' @rdname posterior-dpar
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_dpar <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  dpar = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  check_flag(transform)
  scale <- if (transform) "response" else "link"
  check_no_dots(..., .ignore = no_groups)
  dpar <- check_dpar(object, dpar)
  asked <- ask_rows(object, newdata, offset)
  n_draw <- check_draws(object, draws, ndraws)
  dpar_draws(asked, dpar, n_draw, scale, check_cores(cores), to)
}

#' @rdname posterior-dpar
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_dpar <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  dpar = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  check_no_dots(..., .ignore = no_groups)
  dpar <- check_dpar(object, dpar)
  asked <- ask_rows(object, newdata, offset)
  n_draw <- check_draws(object, draws, ndraws)
  dpar_draws(asked, dpar, n_draw, "response", check_cores(cores), to)
}

check_dpar <- function(fit, dpar) {
  check_choice(dpar %||% "mu", c("mu", fit$dpar$name), arg = "dpar")
}

dpar_draws <- function(asked, dpar, n_draw, scale, cores, to) {
  value <- function(fit, rows, draws) {
    draws$dpar <- dpar
    predictor(fit, rows, draws, scale)
  }
  if (!is.null(to)) {
    return(write_draws(asked, n_draw, cores, to, value))
  }
  all <- rows_and_draws(asked, n_draw, cores)
  out <- value(all$fit, all$rows, all$draws)
  dimnames(out) <- draw_names(all$rows)
  out
}

# Both formulas.
#' @export
formula.tall_dpar <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  dpar_formulas(x$dpar)
}

dpar_formulas <- function(dpar) {
  formulas <- dpar$formulas
  own <- formulas[[2]]
  formulas[[2]] <- stats::as.formula(
    call("~", as.name(dpar$name), own[[length(own)]]),
    environment(own)
  )
  formulas
}

# list(name, link), "identity; sigma: log" of both predictors.
shown_family <- function(fit) {
  family <- fit$family
  if (!is.null(fit$dpar)) {
    own <- if (fit$dpar$name == "zi") "logit" else "log"
    family$name <- family_name(family)
    family$link <- paste0(family$link, "; ", fit$dpar$name, ": ", own)
  }
  family
}

# One, or both; NULL: the fit has none.
formula_text <- function(fit) {
  shown <- if (is.null(fit$dpar)) {
    list(fit$formula)
  } else {
    dpar_formulas(fit$dpar)
  }
  if (!is.null(fit$formula)) {
    paste(vapply(shown, deparse1, ""), collapse = ", ")
  }
}
