# Predictions along one covariate, others held.

#' Effects of covariates, others held
#'
#' The expected response along a covariate, or two, where all others are held at
#' their means or first levels, as `brms::conditional_effects()` has it.
#'
#' @param x ([`tall_fit`][tall_fit] of a regression, or a `tall_conditional`)
#'   The fit, of [tall_glm()], [tall_gam()], [tall_glmer()] or [tall_nn()],
#'   whose response is a number; of `plot()` and `print()` what these functions
#'   return. Other objects go to methods of \pkg{brms}, where it is installed.
#' @param effects (string vector or `NULL`) Covariates, or pairs `"x:f"`, whose
#'   second one has a line for each level, or for its mean and a standard
#'   deviation less and more. `NULL`: all covariates but grouping factors, and
#'   pairs that have a smooth term.
#' @param conditions (named list, data frame of one row, or `NULL`) Where other
#'   covariates are held instead.
#' @param prob (number between 0 and 1) Of the bands, at each point.
#' @param method (string) `"posterior_epred"`: the expected response;
#'   `"posterior_linpred"`: the linear predictor.
#' @param resolution (whole number) Points along a covariate.
#' @param ndraws (whole number or `NULL`) As in
#'   [posterior_smooths()]. `NULL`: 1,000 at most.
#' @param ... Unused: other arguments are refused.
#'
#' @details Effects of groups are 0, as in brms: those of [tall_glmer()] always,
#' those of `s(g, bs = "re")`, `(1 | g)` and `bs = "fs"` of [tall_gam()] unless
#' the effect is of their own factor.
#'
#' @return A named list of data frames of class `tall_conditional`, as
#'   [conditional_smooths()] returns it: `estimate__` is the posterior mean.
#'   `plot()` returns a ggplot, of several effects a named list of them, which
#'   prints as pictures.
#' @section Conditions: `tall_error_input` for an effect or a condition that is
#'   no covariate; `tall_error_stale` where the data of the fit cannot be found;
#'   `tall_error_unsupported` for responses of classes.
#' @seealso [plot.tall_gam()] for smooth terms by themselves
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' fit <- tall_glm(am ~ wt + factor(cyl), mtcars, binomial(), seed = 1)
#' effects <- conditional_effects(fit, "wt", conditions = list(cyl = 8))
#' head(effects$wt)
#' plot(effects)
#' @export
conditional_effects <- function(x, ...) {
  UseMethod("conditional_effects")
}

#' @rdname conditional_effects
#' @export
conditional_effects.default <- function(x, ...) {
  hand_on("brms", "conditional_effects")
}

#' @rdname conditional_effects
#' @rawNamespace S3method(brms::conditional_effects, tall_regression)
#' @export
conditional_effects.tall_regression <- function(
  x,
  effects = NULL,
  conditions = NULL,
  prob = 0.95,
  method = c("posterior_epred", "posterior_linpred"),
  resolution = 100,
  ndraws = NULL,
  ...
) {
  check_no_dots(...)
  check_is_number(x, "conditional_effects")
  check_prob(prob)
  known <- c("posterior_epred", "posterior_linpred")
  method <- check_choice(method, known)
  resolution <- check_count(resolution)
  n_draw <- check_draws(x, NULL, ndraws)
  n_draw <- n_draw %||% min(1000, posterior::ndraws(x$draws))
  sketch <- fit_sketch(x)
  effects <- effects %||% default_effects(x)
  held <- held_values(sketch, held_names(x), conditions)
  scale <- if (method == "posterior_epred") "response" else "link"
  tables <- lapply(stats::setNames(nm = effects), function(effect) {
    axes <- effect_axes(effect, sketch, covariates_of(x), resolution)
    grid <- expand.grid(axes, KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
    value <- values_at(x, grid, held, n_draw, scale)
    is_number <- is_measured(axes[[1]])
    band_table(
      grid,
      value,
      prob,
      shape = if (is_number) "curve" else "levels",
      label = effect
    )
  })
  new_conditional(tables, if (scale == "link") "predictor" else "response")
}

default_effects <- function(fit) {
  records <- if (is.null(fit$bars)) terms_smooths(fit$terms)
  vars <- function(texts) all.vars(str2expression(texts))
  groups <- unlist(lapply(Filter(is_grouping, records), function(record) {
    vars(names(record$levels))
  }))
  pairs <- lapply(records, function(record) {
    own <- intersect(vars(c(record$term, record$by)), fit$columns)
    is_pair <- length(own) == 2 && !is_grouping(record)
    if (is_pair) paste(own, collapse = ":")
  })
  unique(c(setdiff(covariates_of(fit), groups), unlist(pairs)))
}

# The values of other covariates.
held_values <- function(sketch, covariates, conditions) {
  held <- sketch$centre[covariates]
  if (is.null(conditions)) {
    return(held)
  }
  is_list <- is.list(conditions) && !is.null(names(conditions)) &&
    all(lengths(conditions) == 1)
  if (!is_list) {
    abort_expected(
      conditions,
      "a named list of single values, or a data frame of one row"
    )
  }
  check_known(names(conditions), covariates, "covariate", "conditions")
  for (name in names(conditions)) {
    value <- conditions[[name]]
    ends <- sketch$ends[[name]]
    if (is.factor(ends)) {
      check_known(as.character(value), levels(ends), "level", "conditions")
      value <- ends[match(as.character(value), levels(ends))]
    }
    held[[name]] <- value
  }
  held
}

# A list of one or two vectors by name.
effect_axes <- function(effect, sketch, covariates, resolution) {
  check_string(effect, arg = "effects")
  names <- strsplit(effect, ":", fixed = TRUE)[[1]]
  check_known(names, covariates, "covariate", "effects")
  if (length(names) > 2 || anyDuplicated(names)) {
    abort_expected(
      effect,
      "a covariate, or two of them with a colon between",
      arg = "effects"
    )
  }
  axes <- sketch$ends[names]
  if (is_measured(axes[[1]])) {
    axes[[1]] <- even_values(axes[[1]], resolution)
  }
  if (length(axes) == 2 && is_measured(axes[[2]])) {
    at <- sketch$centre[[names[[2]]]]
    some <- sketch$some[[names[[2]]]] %||% sketch$ends[[names[[2]]]]
    x <- as.double(unclass(at)) +
      c(-1, 0, 1) * stats::sd(as.double(unclass(some)))
    axes[[2]] <- if (is_time(at)) as_they_were(x, at[0]) else signif(x, 3)
  }
  axes
}

# Draws x rows of a grid.
values_at <- function(fit, grid, held, n_draw, scale) {
  new <- grid
  for (name in setdiff(names(held), names(grid))) {
    new[[name]] <- rep(held[[name]], nrow(grid))
  }
  groups <- group_request(fit, if (has_groups(fit)) NA)
  asked <- ask_rows(fit, new, groups = groups)
  draws <- choose_draws(fit, n_draw, resample = TRUE)
  rows <- without_groups(fit, asked_rows(asked, draws), names(grid))
  predictor(fit, rows, draws, scale)
}

# Rows without the effects of groups that are not along the grid.
without_groups <- function(fit, rows, axes) {
  if (!inherits(fit, "tall_gam")) {
    return(rows)
  }
  for (record in Filter(is_grouping, terms_smooths(fit$terms))) {
    own <- all.vars(str2expression(names(record$levels)))
    if (!any(own %in% axes)) {
      rows$x[, record$columns$name] <- 0
    }
  }
  rows
}

#' @rdname conditional_effects
#' @export
print.tall_conditional <- function(x, ...) {
  check_no_dots(...)
  what <- attr(x, "what")
  cat("<tall_conditional> ", switch(
    what,
    smooth = "smooth terms, on the scale of the linear predictor",
    derivative = "derivatives of smooth terms",
    predictor = "the linear predictor",
    response = "the expected response"
  ), "\n", sep = "")
  for (name in names(x)) {
    cat(name, ": ", count_noun(nrow(x[[name]]), "point"), "\n", sep = "")
  }
  cat("plot() draws them; each is a data frame.\n")
  invisible(x)
}
