# Draws of smooth terms: at rows, along grids, and of derivatives.

#' Draws of a smooth term
#'
#' What one smooth term adds to the linear predictor, as
#' `brms::posterior_smooths()` has it.
#'
#' @param object,x (`tall_gam`) The fit. Other objects go to methods of
#'   \pkg{brms}, where it is installed.
#' @param smooth (string) The term, as the fit calls it, `"s(x)"`, or as it was
#'   written, `"s(x, k = 10)"`. With `by = f` it is called `"s(x):f"`, for a
#'   factor `f`, too: each row has the curve of its level.
#' @param newdata (data frame or `NULL`) Rows; the term's own variables are
#'   enough. `NULL`: the fit's own rows, if it kept them.
#' @param ndraws,draws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param smooths (string vector or `NULL`) Which terms; `NULL`: all.
#' @param prob (number between 0 and 1) Of the bands, at each point.
#' @param resolution (whole number) Points along each variable: of surfaces the
#'   root of 20 times as many.
#' @param derivative (`TRUE` or `FALSE`) The derivative of curves in their
#'   variable instead? By central differences of the basis. Surfaces and
#'   effects of levels have none here.
#' @param ... Unused: other arguments are refused.
#'
#' @details Term \eqn{k} in draw \eqn{d} is \eqn{f_k^{(d)}(x) = b_k(x)^\top
#' \beta^{(d)}}{f_k(x) = b_k(x)' beta}, \eqn{b_k} its columns, penalised and
#' others; with a factor `by` the curve of the row's level; with a number `by =
#' z` it is \eqn{f(x) z}, and in `conditional_smooths()` \eqn{f(x)}.
#'
#' @return `posterior_smooths()`: a matrix, draws x rows.
#'   `conditional_smooths()`: a named list of data frames of class
#'   `tall_conditional`, one for each term, with the variables along a grid,
#'   `estimate__` (posterior mean), `se__` (standard deviation), `lower__` and
#'   `upper__`; `effect1__` (and `effect2__`) repeat what is on the axes, as in
#'   brms. `plot()` draws them.
#' @section Conditions: `tall_error_input` for a term that the fit does not
#'   have, or variables that `newdata` lacks; `tall_error_stale` without
#'   `newdata` where the fit did not keep its rows; `tall_error_unsupported` for
#'   a fit without smooth terms, or which has not kept the draws of all
#'   parameters.
#' @examplesIf requireNamespace("mgcv", quietly = TRUE)
#' fit <- tall_gam(mpg ~ s(wt, k = 6) + s(hp, k = 6), mtcars, seed = 1)
#' dim(posterior_smooths(fit, "s(wt)", data.frame(wt = c(2, 3, 4))))
#' head(conditional_smooths(fit)[["s(hp)"]])
#' @export
posterior_smooths <- function(object, ...) {
  UseMethod("posterior_smooths")
}

#' @rdname posterior_smooths
#' @export
posterior_smooths.default <- function(object, ...) {
  if (inherits(object, "tall_fit")) {
    check_gam(object)
  }
  hand_on("brms", "posterior_smooths")
}

#' @rdname posterior_smooths
#' @rawNamespace S3method(brms::posterior_smooths, tall_gam)
#' @export
posterior_smooths.tall_gam <- function(
  object,
  smooth,
  newdata = NULL,
  ndraws = draws,
  draws = NULL,
  ...
) {
  check_no_dots(...)
  check_gam(object)
  check_given(smooth)
  record <- find_smooth(object, smooth)
  n_draw <- check_draws(object, NULL, ndraws)
  theta <- smooth_theta(object, record, n_draw)
  if (is.null(newdata)) {
    asked <- in_memory(ask_rows(object), nrow(theta))
    x <- asked_rows(asked)$x
    values <- as.matrix(x[, record$columns$name, drop = FALSE])
  } else {
    values <- smooth_values(record, smooth_data(object, record, newdata))
  }
  out <- tcrossprod(theta, unname(values))
  dimnames(out) <- list(NULL, rownames(values))
  out
}

# The record of a term, by its label or as it was written.
find_smooth <- function(fit, smooth, arg = caller_arg(smooth)) {
  check_string(smooth, arg = arg)
  smooths <- terms_smooths(fit$terms)
  written <- written_smooths(fit)
  squeeze <- function(x) gsub("[[:space:]]", "", x)
  at <- match(squeeze(smooth), squeeze(names(smooths)))
  if (is.na(at)) {
    at <- match(squeeze(smooth), squeeze(written))
  }
  if (is.na(at)) {
    check_known(smooth, names(smooths), "smooth term", arg = arg)
  }
  smooths[[at]]
}

# The calls of the terms, in their order.
written_smooths <- function(fit) {
  variables <- as.list(attr(fit$terms, "variables"))[-1]
  settled <- lapply(as.list(attr(fit$terms, "predvars"))[-1], settled_smooth)
  is_smooth <- !vapply(settled, is.null, TRUE)
  vapply(variables[is_smooth], deparse1, "")
}

# Draws x columns of the term. n: how many, NULL: all.
smooth_theta <- function(fit, record, n = NULL) {
  at <- match(record$columns$name, fit$every_variable)
  choose_draws(fit, n, resample = TRUE)$theta[, at, drop = FALSE]
}

# The variables of a term, by their text, in new data.
smooth_data <- function(fit, record, data) {
  if (!is.data.frame(data)) {
    abort_expected(data, "a data frame", arg = "newdata")
  }
  texts <- unique(c(record$term, record$by))
  needed <- intersect(all.vars(str2expression(texts)), fit$columns)
  missing <- setdiff(needed, names(data))
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  lapply(stats::setNames(nm = texts), function(text) {
    value <- eval(str2lang(text), data, environment(fit$formula))
    rep_len(value, nrow(data))
  })
}

# ---- grids -------------------------------------------------------------------

# "curve", "surface" or "levels": what is on the axes of a term.
smooth_shape <- function(record) {
  switch(
    as.character(min(2, length(record$range))),
    "0" = "levels",
    "1" = "curve",
    "surface"
  )
}

# Rows along a term: its variables by their text. A number `by` is 1; of more
# than two numeric variables others are at the middle of their range.
smooth_grid_of <- function(record, resolution) {
  numeric <- names(record$range)
  n <- if (length(numeric) > 1) ceiling(sqrt(20 * resolution)) else resolution
  axes <- lapply(seq_along(numeric), function(k) {
    ends <- record$range[[k]]
    if (k <= 2) seq(ends[[1]], ends[[2]], length.out = n) else mean(ends)
  })
  names(axes) <- numeric
  levels <- lapply(record$levels, function(x) {
    factor(if (isTRUE(record$has_base)) x[-1] else x, x)
  })
  grid <- expand.grid(c(axes, levels), KEEP.OUT.ATTRS = FALSE)
  others <- setdiff(c(record$term, record$by), names(grid))
  grid[others] <- 1
  grid
}

#' @rdname posterior_smooths
#' @export
conditional_smooths <- function(x, ...) {
  UseMethod("conditional_smooths")
}

#' @rdname posterior_smooths
#' @export
conditional_smooths.default <- function(x, ...) {
  if (inherits(x, "tall_fit")) {
    check_gam(x)
  }
  hand_on("brms", "conditional_smooths")
}

#' @rdname posterior_smooths
#' @rawNamespace S3method(brms::conditional_smooths, tall_gam)
#' @export
conditional_smooths.tall_gam <- function(
  x,
  smooths = NULL,
  prob = 0.95,
  resolution = 100,
  ndraws = NULL,
  derivative = FALSE,
  ...
) {
  check_no_dots(...)
  check_gam(x)
  check_prob(prob)
  check_flag(derivative)
  resolution <- check_count(resolution)
  n_draw <- check_draws(x, NULL, ndraws)
  records <- chosen_smooths(x, smooths)
  if (derivative) {
    records <- curves_alone(records, is.null(smooths))
  }
  tables <- lapply(records, function(record) {
    smooth_band(x, record, prob, resolution, n_draw, derivative)
  })
  new_conditional(tables, if (derivative) "derivative" else "smooth")
}

chosen_smooths <- function(fit, smooths) {
  if (is.null(smooths)) {
    return(terms_smooths(fit$terms))
  }
  if (!is.character(smooths) || anyNA(smooths)) {
    abort_expected(smooths, "strings or NULL")
  }
  found <- lapply(smooths, find_smooth, fit = fit, arg = "smooths")
  stats::setNames(found, vapply(found, `[[`, "", "label"))
}

curves_alone <- function(records, is_any) {
  is_curve <- vapply(records, smooth_shape, "") == "curve"
  if (!any(is_curve) || !(is_any || all(is_curve))) {
    abort_input(
      "{.code derivative = TRUE} is of curves in one variable, not of
       {.val {names(records)[!is_curve]}}.",
      argument = "derivative"
    )
  }
  records[is_curve]
}

# The values of a term's columns along a grid, or their derivatives.
grid_values <- function(record, grid, derivative) {
  if (!derivative) {
    return(smooth_values(record, grid))
  }
  name <- names(record$range)
  ends <- record$range[[1]]
  step <- diff(ends) * 1e-4
  up <- down <- grid
  up[[name]] <- pmin(grid[[name]] + step, ends[[2]])
  down[[name]] <- pmax(grid[[name]] - step, ends[[1]])
  gap <- up[[name]] - down[[name]]
  (smooth_values(record, up) - smooth_values(record, down)) / gap
}

smooth_band <- function(fit, record, prob, resolution, n_draw, derivative) {
  grid <- smooth_grid_of(record, resolution)
  theta <- smooth_theta(fit, record, n_draw)
  value <- tcrossprod(theta, grid_values(record, grid, derivative))
  axes <- c(names(record$range), names(record$levels))
  band_table(
    grid[axes],
    value,
    prob,
    shape = smooth_shape(record),
    label = record$label
  )
}

# A table along `grid`, a data frame whose first columns are the axes, of draws
# x rows.
band_table <- function(grid, value, prob, ...) {
  bounds <- column_quantiles(value, interval_probs(prob))
  centre <- colMeans(value)
  out <- grid
  for (k in seq_len(min(2, ncol(grid)))) {
    out[[paste0("effect", k, "__")]] <- grid[[k]]
  }
  out$estimate__ <- centre
  out$se__ <- sqrt(pmax(colMeans(value^2) - centre^2, 0))
  out$lower__ <- bounds[, 1]
  out$upper__ <- bounds[, 2]
  structure(out, axes = names(grid), ...)
}

new_conditional <- function(tables, what) {
  structure(tables, what = what, class = c("tall_conditional", "list"))
}
