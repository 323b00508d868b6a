# Fits of hurdle models: what their two parts say together.

#' Fits of hurdle models
#'
#' What the two parts of a fit with [hurdle_poisson()] or `hurdle_negbinomial()`
#' say together. Parameters
#' of the zeros have names that begin with `hu_`, as in brms.
#'
#' @param object,x,fit (`tall_hurdle`) The fit.
#' @param newdata (data frame or `NULL`) Where to predict, with the response for
#'   `log_lik()`; `NULL`: the data of the fit, if it kept a data frame. Of other
#'   sources: a data frame of some rows.
#' @param type (string) Of `predict()`: `"response"`, the expected count
#'   \eqn{(1 - h) \mu / (1 - e^{-\mu})}{(1 - h) mu / (1 - exp(-mu))}; `"zero"`,
#'   \eqn{h}; `"count"`, the expected count above 0. Of `pp_check()`: a name of
#'   bayesplot's `ppc_` functions.
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well?
#' @param draws,ndraws (whole number or `NULL`) Use that many draws; `NULL`:
#'   all.
#' @param dpar (string) Of `posterior_linpred()`: `"mu"` or `"hu"`.
#' @param conf.int,conf.level,exponentiate As in [tidy()][tidy-tall_fit].
#' @param seed (whole number or `NULL`) Of drawn counts.
#' @param n (whole number) Of `pp_check()`: rows, at most.
#' @param ... Unused: other arguments are refused; of `loo()`, those of
#'   [loo::loo()].
#'
#' @details As the parts share no parameter, expected log predictive densities
#' add up: `loo()` has those of all rows, which needs rows x draws below 5e7;
#' with more, take the sum of `loo(fit$zeros)` and `loo(fit$counts)`, which
#' subsample.
#'
#' @return As of the same functions of [tall_glm()]. `tidy()` has a column
#'   `component`, `"cond"` or `"hu"`.
#' @section Conditions: `tall_error_stale` where the fit has no data frame and
#'   `newdata` is `NULL`.
#' @examples
#' d <- data.frame(x = rnorm(300))
#' d$y <- ifelse(runif(300) < 0.4, 0, 1 + rpois(300, exp(0.5 * d$x)))
#' fit <- tall_glm(list(y ~ x, hu ~ x), d, hurdle_poisson(), seed = 1)
#' summary(fit)
#' predict(fit, data.frame(x = c(-1, 1)), type = "zero")
#' @name tall_hurdle
#' @aliases predict.tall_hurdle
NULL

#' @export
print.tall_hurdle <- function(x, ...) {
  check_no_dots(...)
  cat("Hurdle model of counts: two fits without a parameter in common\n")
  cat("\n-- Counts above 0 (fit$counts) --\n")
  print(x$counts)
  cat("\n-- Is a count 0? (fit$zeros; parameters hu_...) --\n")
  print(x$zeros)
  invisible(x)
}

#' @rdname tall_hurdle
#' @export
summary.tall_hurdle <- function(object, ...) {
  check_no_dots(...)
  structure(
    list(counts = summary(object$counts), zeros = summary(object$zeros)),
    class = "tall_hurdle_summary"
  )
}

#' @export
print.tall_hurdle_summary <- function(x, ...) {
  check_no_dots(...)
  cat("-- Counts above 0 --\n")
  print(x$counts)
  cat("\n-- Is a count 0? --\n")
  print(x$zeros)
  invisible(x)
}

hu_names <- function(names) paste0("hu_", names)

#' @rdname tall_hurdle
#' @export
coef.tall_hurdle <- function(object, ...) {
  zeros <- stats::coef(object$zeros, ...)
  names(zeros) <- hu_names(names(zeros))
  c(stats::coef(object$counts, ...), zeros)
}

#' @rdname tall_hurdle
#' @export
vcov.tall_hurdle <- function(object, ...) {
  a <- stats::vcov(object$counts, ...)
  b <- stats::vcov(object$zeros, ...)
  out <- matrix(0, nrow(a) + nrow(b), nrow(a) + nrow(b))
  out[seq_len(nrow(a)), seq_len(nrow(a))] <- a
  at <- nrow(a) + seq_len(nrow(b))
  out[at, at] <- b
  names <- c(rownames(a), hu_names(rownames(b)))
  dimnames(out) <- list(names, names)
  out
}

#' @rdname tall_hurdle
#' @importFrom stats nobs
#' @export
nobs.tall_hurdle <- function(object, ...) {
  check_no_dots(...)
  stats::nobs(object$zeros)
}

#' @export
formula.tall_hurdle <- function(x, ...) {
  x$formula
}

#' @export
family.tall_hurdle <- function(object, ...) {
  check_no_dots(...)
  object$family
}

#' @rdname tall_hurdle
#' @method as_draws tall_hurdle
#' @export
as_draws.tall_hurdle <- function(x, ...) {
  zeros <- posterior::as_draws_array(x$zeros$draws)
  posterior::variables(zeros) <- hu_names(posterior::variables(zeros))
  posterior::bind_draws(
    posterior::as_draws_array(x$counts$draws),
    zeros,
    along = "variable"
  )
}

#' @export
as.matrix.tall_hurdle <- function(x, ...) {
  check_no_dots(...)
  unclass(posterior::as_draws_matrix(as_draws.tall_hurdle(x)))
}

#' @rdname tall_hurdle
#' @method tidy tall_hurdle
#' @export
tidy.tall_hurdle <- function(
  x,
  conf.int = FALSE,
  conf.level = 0.95,
  exponentiate = FALSE,
  ...
) {
  parts <- lapply(x[c("counts", "zeros")], function(fit) {
    tidy(
      fit,
      conf.int = conf.int,
      conf.level = conf.level,
      exponentiate = exponentiate,
      ...
    )
  })
  parts$counts$component <- "cond"
  parts$zeros$component <- "hu"
  rbind(parts$counts, parts$zeros)
}

# ---- predictions -------------------------------------------------------------

# Rows of the fit that count, as a data frame.
hurdle_data <- function(fit, newdata) {
  if (!is.null(newdata)) {
    if (!is.data.frame(newdata)) {
      abort_expected(newdata, "a data frame", arg = "newdata")
    }
    return(newdata)
  }
  data <- fit$data
  if (!is.data.frame(data)) {
    abort_tall(
      "stale",
      c(
        "The fit has no data frame.",
        i = "Give {.arg newdata}: a data frame with the rows that are wanted."
      ),
      argument = "newdata"
    )
  }
  used <- unique(c(fit$counts$columns, fit$zeros$columns))
  keep <- stats::complete.cases(data[intersect(used, names(data))])
  if (!is.null(fit$subset)) {
    home <- environment(fit$counts$formula)
    keep <- keep & eval(fit$subset, data, home) %in% TRUE
  }
  data[keep, , drop = FALSE]
}

hurdle_response <- function(fit, data) {
  formula <- fit$counts$formula
  as.numeric(eval(formula[[2]], data, environment(formula)))
}

# Expected counts above 0, draws x rows.
mean_above <- function(fit, data, draws) {
  if (is.null(find_response(fit$counts$family)$instead)) {
    return(posterior_epred.tall_regression(fit$counts, data, draws))
  }
  eta <- posterior_linpred.tall_regression(fit$counts, FALSE, data, draws)
  size <- choose_draws(fit$counts, draws, resample = TRUE)$aux
  counts_above(fit$counts$family, eta, size)
}

# The same of predictors, draws x rows; aux: of draws.
counts_above <- function(family, eta, aux) {
  if (is.null(find_response(family)$instead)) {
    return(response_mean(family, eta))
  }
  rate <- exp(eta)
  size <- as.numeric(aux)
  rate / -expm1(-size * log1p(rate / size))
}

# Draws of all chains, or as many as asked for.
hurdle_draws <- function(fit, draws, ndraws) {
  check_draws(fit$counts, draws, ndraws)
}

#' @rdname tall_hurdle
#' @export
predict.tall_hurdle <- function(
  object,
  newdata = NULL,
  type = c("response", "zero", "count"),
  se.fit = FALSE,
  draws = NULL,
  ...,
  ndraws = NULL
) {
  type <- check_choice(type, c("response", "zero", "count"))
  check_flag(se.fit)
  check_no_dots(...)
  data <- hurdle_data(object, newdata)
  n_draw <- hurdle_draws(object, draws, ndraws) %||%
    affordable_draws(object$counts, nrow(data))
  n_kept <- n_draw %||% posterior::ndraws(object$counts$draws)
  fit <- sd <- numeric(nrow(data))
  each_block(nrow(data), n_kept, size = 2^20, function(at) {
    value <- hurdle_value(object, data[at, , drop = FALSE], n_draw, type)
    fit[at] <<- colMeans(value)
    sd[at] <<- apply(value, 2, stats::sd)
  })
  names(fit) <- names(sd) <- rownames(data)
  if (se.fit) list(fit = fit, se.fit = sd) else fit
}

hurdle_value <- function(fit, data, draws, type) {
  switch(
    type,
    zero = posterior_epred.tall_regression(fit$zeros, data, draws),
    count = mean_above(fit, data, draws),
    response = {
      h <- posterior_epred.tall_regression(fit$zeros, data, draws)
      (1 - h) * mean_above(fit, data, draws)
    }
  )
}

#' @rdname tall_hurdle
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_hurdle <- function(
  object,
  newdata = NULL,
  draws = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  data <- hurdle_data(object, newdata)
  n_draw <- hurdle_draws(object, draws, ndraws)
  check_matrix_size(object$counts, nrow(data), n_draw, newdata)
  hurdle_value(object, data, n_draw, "response")
}

#' @rdname tall_hurdle
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_hurdle <- function(
  object,
  newdata = NULL,
  dpar = c("mu", "hu"),
  draws = NULL,
  ...,
  ndraws = NULL
) {
  dpar <- check_choice(dpar, c("mu", "hu"))
  check_no_dots(...)
  data <- hurdle_data(object, newdata)
  part <- if (dpar == "mu") object$counts else object$zeros
  posterior_linpred.tall_regression(
    part,
    newdata = data,
    draws = hurdle_draws(object, draws, ndraws)
  )
}

#' @rdname tall_hurdle
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_hurdle <- function(
  object,
  newdata = NULL,
  draws = NULL,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  seed <- check_seed(seed)
  data <- hurdle_data(object, newdata)
  n_draw <- hurdle_draws(object, draws, ndraws)
  check_matrix_size(object$counts, nrow(data), n_draw, newdata)
  with_seed(seed, {
    drawn <- posterior_predict.tall_regression(
      object$counts,
      data,
      n_draw
    )
    h <- posterior_epred.tall_regression(object$zeros, data, n_draw)
    drawn[stats::runif(length(h)) < h] <- 0
    drawn
  })
}

#' @rdname tall_hurdle
#' @exportS3Method rstantools::log_lik
log_lik.tall_hurdle <- function(
  object,
  newdata = NULL,
  draws = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  data <- hurdle_data(object, newdata)
  n_draw <- hurdle_draws(object, draws, ndraws)
  check_matrix_size(object$counts, nrow(data), n_draw, newdata)
  out <- log_lik.tall_regression(object$zeros, data, n_draw)
  y <- hurdle_response(object, data)
  above <- which(y > 0)
  if (length(above) > 0) {
    out[, above] <- out[, above] + log_lik.tall_regression(
      object$counts,
      data[above, , drop = FALSE],
      n_draw
    )
  }
  out
}

#' @rdname tall_hurdle
#' @exportS3Method loo::loo
loo.tall_hurdle <- function(x, ...) {
  values <- log_lik.tall_hurdle(x)
  loo::loo(values, r_eff = rep(1, ncol(values)), ...)
}

#' @rdname tall_hurdle
#' @exportS3Method loo::waic
waic.tall_hurdle <- function(x, ...) {
  check_no_dots(...)
  loo::waic(log_lik.tall_hurdle(x))
}

#' @rdname tall_hurdle
#' @exportS3Method bayesplot::pp_check
pp_check.tall_hurdle <- function(
  object,
  type = "rootogram",
  draws = 100,
  seed = NULL,
  n = 10000,
  ...
) {
  rlang::check_installed("bayesplot", "to plot a fit")
  n <- check_count(n)
  plot <- ppc_function(type)
  data <- hurdle_data(object, NULL)
  at <- unique(floor(seq(1, nrow(data), length.out = min(n, nrow(data)))))
  data <- data[at, , drop = FALSE]
  y <- hurdle_response(object, data)
  drawn <- posterior_predict.tall_hurdle(object, data, draws, seed)
  plot(y, unname(drawn), ...)
}
