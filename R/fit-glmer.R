# What fits of tall_glmer() have: coefficients of the population, effects of
# groups, their covariance.

#' Coefficients and group-level effects of a multilevel fit
#'
#' @param object,x (`tall_glmer`) The fit, from [tall_glmer()]; of
#'   `as.data.frame()`, what `VarCorr()` returns.
#' @param summary (`TRUE` or `FALSE`) Posterior means and standard deviations,
#'   or draws?
#' @param ndraws,draws (whole number or `NULL`) As many of the kept draws,
#'   evenly spaced, are looked at. With one grouping factor each takes a pass
#'   over the data; `NULL`: 200 for means and standard deviations, all that were
#'   kept for draws. Of several factors `NULL` is all sweeps after warmup for
#'   means and standard deviations.
#' @param groups (strings, list or `NULL`) Levels of the grouping factor whose
#'   effects are wanted; of several factors a list of levels by their names, or
#'   names of factors; `NULL`: all.
#' @param seed (whole number or `NULL`) Seed of draws of effects; `NULL`: the
#'   fit's. Of several factors draws are there.
#' @param sigma (number) Unused: it is in the generic.
#' @param ... Unused: other arguments are refused.
#'
#' @details Effects of one grouping factor are no parameters of the run. Given a
#' draw of the parameters their mean and covariance come from the quadrature,
#' and those of the posterior from the draws' by the laws of total expectation
#' and variance. Draws of effects are exact, given those of the parameters, and
#' need no quadrature: log densities of the responses are concave, so that
#' planes that touch that of a group's effects bound it, and draws under the
#' bound are rejected (Gilks & Wild, 1992).
#'
#' Effects of several factors are numbers of the chains. As much of them is
#' there as was kept: see `keep_effects` of [tall_glmer()].
#'
#' @return `fixef()`: posterior means of the coefficients, as in lme4.
#'   `ranef()`: with `summary = TRUE` a list with the names of the grouping
#'   factors, as in lme4: a data frame with a row for each group and a column
#'   for each effect, with the attribute `"sd"`, a data frame of the same shape;
#'   [plot()][plot.tall_glmer] draws it. With `summary = FALSE` an array draws x
#'   groups x effects, or of several factors a list of such arrays. `coef()`:
#'   the same list of coefficients, effects added. `VarCorr()`: a list with the
#'   names of the grouping factors: `sd` (posterior means and standard
#'   deviations), `cor` and `cov` (posterior means of the correlation and
#'   covariance matrix);
#'   and `residual__` where there is a residual standard deviation, as in brms
#'   (`sd` and `cov`). `as.data.frame()` of it has the columns of lme4's: `grp`,
#'   `var1`, `var2`, `vcov` and `sdcor`, posterior means.
#'   `ngrps()`: the numbers of groups, named. `nobs()`: the number of rows.
#' @section Conditions: `tall_error_stale` where a fit was read from a file that
#' did not keep its data; `tall_error_input` for groups that are none;
#' `tall_error_unsupported` where what is asked for of several factors' effects
#' was not kept.
#' @references
#' Gilks & Wild (1992). Adaptive rejection sampling for Gibbs sampling. *Applied
#' Statistics* 41, 337-348.
#' @examples
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' fixef(fit)
#' head(ranef(fit)$g)
#' VarCorr(fit)
#' ngrps(fit)
#' @name tall_glmer-methods
NULL

#' @importFrom nlme fixef
#' @export
nlme::fixef

#' @importFrom nlme ranef
#' @export
nlme::ranef

#' @importFrom nlme VarCorr
#' @export
nlme::VarCorr

#' @rdname tall_glmer-methods
#' @export
ngrps <- function(object, ...) {
  UseMethod("ngrps")
}

# lme4 and brms have generics of that name, too: whichever is attached last
# takes fits of all of them.
#' @export
ngrps.default <- function(object, ...) {
  classes <- if (isS4(object)) methods::is(object) else class(object)
  for (package in intersect(c("lme4", "brms"), loadedNamespaces())) {
    space <- asNamespace(package)
    for (class in classes) {
      method <- utils::getS3method("ngrps", class, TRUE, space)
      if (!is.null(method)) {
        return(method(object, ...))
      }
    }
  }
  abort_tall(
    "unsupported",
    "{.fn ngrps} knows fits of {.fn tall_glmer}, lme4 and brms, not
     {describe(object)}."
  )
}

#' @rdname tall_glmer-methods
#' @rawNamespace S3method(lme4::ngrps, tall_fit)
#' S3method(lme4::ngrps, tall_glmer)
#' S3method(brms::ngrps, tall_fit)
#' S3method(brms::ngrps, tall_glmer)
#' @export
ngrps.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  lengths(lapply(fit_factors(object), `[[`, "levels"))
}

#' @rdname tall_glmer-methods
#' @export
fixef.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  at <- seq_len(object$n_coef)
  stats::setNames(fit_moments(object)$mean[at], object$variables[at])
}

#' @exportS3Method rstanarm::se
se.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  at <- seq_len(object$n_coef)
  stats::setNames(fit_moments(object)$sd[at], object$variables[at])
}

#' @rdname tall_glmer-methods
#' @export
ranef.tall_glmer <- function(
  object,
  summary = TRUE,
  groups = NULL,
  draws = NULL,
  seed = NULL,
  ...,
  ndraws = NULL
) {
  check_no_dots(...)
  check_flag(summary)
  levels <- object$groups$levels
  at <- check_group_levels(groups, levels)
  n_draw <- check_draws(object, draws, ndraws)
  if (!summary) {
    rows <- choose_rows(object, n_draw, resample = TRUE)$rows
    return(effect_draws(object, at, rows, check_seed(seed) %||% object$seed))
  }
  moments <- effect_moments(object, n_draw)
  frame <- function(x) {
    data.frame(
      t(x)[at, , drop = FALSE],
      row.names = levels[at],
      check.names = FALSE
    )
  }
  out <- frame(moments$mean)
  attr(out, "sd") <- frame(moments$sd)
  structure(
    stats::setNames(list(out), object$groups$name),
    class = "tall_ranef"
  )
}

# The parameters of kept draws, n_dim x n_draw, in the model's coordinates.
# rows: which draws, as choose_draws() has them.
groups_theta <- function(fit, rows) {
  theta <- fit_unconstrained(fit)
  if (!is.null(rows)) {
    theta <- theta[rows, , drop = FALSE]
  }
  unname(t(theta))
}

# Lambda of a factor in each draw: draws x q x q.
covariance_factors <- function(fit, draws, name) {
  factor <- fit_factors(fit)[[name]]
  p <- covariance_start(fit, name)
  q <- length(factor$effects)
  n <- nrow(draws)
  sd <- unname(unclass(draws)[, p + seq_len(q), drop = FALSE])
  cor <- array(rep(diag(q), each = n), c(n, q, q))
  l <- p + q
  for (a in seq_len(q)[-1]) {
    for (b in seq_len(a - 1)) {
      if (factor$correlated) {
        l <- l + 1
        cor[, a, b] <- cor[, b, a] <- draws[, l]
      }
    }
  }
  # Cholesky's algorithm, for all draws at once
  root <- array(0, c(n, q, q))
  for (a in seq_len(q)) {
    for (b in seq_len(a)) {
      rest <- cor[, a, b]
      for (k in seq_len(b - 1)) {
        rest <- rest - root[, a, k] * root[, b, k]
      }
      root[, a, b] <- if (a == b) {
        sqrt(pmax(rest, 1e-300))
      } else {
        rest / root[, b, b]
      }
    }
  }
  root * as.vector(sd)
}

# The model in its own coordinates; that of a fit is whitened.
plain_model <- function(fit) {
  key <- paste0("groups_", fit$fingerprint)
  found <- fit_cache[[key]]
  if (!is.null(found) && model_is_alive(found)) {
    return(found)
  }
  fit$rows <- fit$grouped %||% fit$rows
  model <- rebuild_model(fit)
  if (is.null(model)) {
    abort_tall(
      "stale",
      c(
        "The fit did not keep its data, of which effects are made.",
        i = "Fit with {.code keep_data = TRUE} to keep them."
      )
    )
  }
  check_same_coordinates(fit, model)
  rm(list = ls(fit_cache), envir = fit_cache)
  fit_cache[[key]] <- model
  model
}

# Several effects had other coordinates once, and names do not tell all of them;
# a file may have other rows by now.
check_same_coordinates <- function(fit, model) {
  may_differ <- length(fit$groups$effects) > 1 || !is.null(fit$rows$file)
  if (may_differ && !identical(model$fingerprint, fit$fingerprint)) {
    abort_tall(
      "stale",
      c(
        "The effects of the groups cannot be made of the draws of this fit.",
        x = "It is of an earlier version of tallbayes, whose parameters were
             others, or its data have changed.",
        i = "Fit again. Coefficients, standard deviations and correlations are
             as they were."
      )
    )
  }
}

# The last model that was made again.
fit_cache <- new.env(parent = emptyenv())

# As many draws as moments of effects are taken over unasked: each takes a pass.
usual_effects <- 200

# list(mean, sd): q x groups
effect_moments <- function(fit, n_draw) {
  available <- posterior::ndraws(fit_draws(fit))
  rows <- choose_rows(fit, n_draw %||% min(usual_effects, available))$rows
  model <- plain_model(fit)
  out <- .Call(
    ffi_groups_moments,
    model$pointer,
    groups_theta(fit, rows),
    getOption("mc.cores", 1L)
  )
  if (is.integer(out)) {
    abort_status(out)
  }
  q <- length(fit$groups$effects)
  diagonal <- (seq_len(q) - 1) * q + seq_len(q)
  variance <- out$square[diagonal, , drop = FALSE] - out$mean^2
  names <- list(fit$groups$effects, NULL)
  list(
    mean = matrix(out$mean, q, dimnames = names),
    sd = matrix(sqrt(pmax(variance, 0)), q, dimnames = names)
  )
}

# Effects of groups `at` in the draws `rows` (NULL: all), draws x groups x
# effects
effect_draws <- function(fit, at, rows, seed) {
  theta <- groups_theta(fit, rows)
  model <- plain_model(fit)
  q <- length(fit$groups$effects)
  out <- .Call(
    ffi_groups_draws,
    model$pointer,
    theta,
    as.double(at),
    as.double(seed),
    getOption("mc.cores", 1L)
  )
  if (is.integer(out)) {
    abort_status(out)
  }
  dim(out) <- c(q, length(at), ncol(theta))
  dimnames(out) <- list(fit$groups$effects, fit$groups$levels[at], NULL)
  aperm(out, c(3, 2, 1))
}

# Those of some levels of a factor, by their numbers.
level_effects <- function(fit, name, levels, rows, seed) {
  UseMethod("level_effects")
}

#' @export
level_effects.tall_glmer <- function(fit, name, levels, rows, seed) {
  effect_draws(fit, levels, rows, seed)
}

# Of new groups of a factor, from the population's distribution.
new_effects <- function(fit, name, rows, n_group) {
  q <- length(fit_factors(fit)[[name]]$effects)
  draws <- draws_matrix(fit)
  if (!is.null(rows)) {
    draws <- draws[rows, , drop = FALSE]
  }
  factors <- covariance_factors(fit, draws, name)
  shape <- c(nrow(draws), n_group, q)
  v <- array(stats::rnorm(prod(shape)), shape)
  u <- array(0, dim(v))
  for (a in seq_len(q)) {
    for (b in seq_len(a)) {
      u[, , a] <- u[, , a] + factors[, a, b] * v[, , b]
    }
  }
  u
}

#' @rdname tall_glmer-methods
#' @export
coef.tall_glmer <- function(object, ndraws = NULL, ...) {
  check_no_dots(..., .ignore = none_aliased)
  n_draw <- check_draws(object, ndraws)
  fixed <- fixef.tall_glmer(object)
  lapply(fit_factors(object), function(factor) {
    effects <- t(level_moments(object, factor$name, n_draw)$mean)
    names <- union(names(fixed), colnames(effects))
    out <- matrix(0, nrow(effects), length(names), dimnames = list(NULL, names))
    out[, names(fixed)] <- rep(fixed, each = nrow(out))
    out[, colnames(effects)] <- out[, colnames(effects)] + effects
    data.frame(out, row.names = factor$levels, check.names = FALSE)
  })
}

# Means and standard deviations of the effects of a factor: list(mean, sd), q x
# levels.
level_moments <- function(fit, name, n_draw) {
  UseMethod("level_moments")
}

#' @export
level_moments.tall_glmer <- function(fit, name, n_draw) {
  effect_moments(fit, n_draw)
}

#' @rdname tall_glmer-methods
#' @export
VarCorr.tall_glmer <- function(x, sigma = 1, ...) {
  check_no_dots(...)
  check_has_all(x)
  draws <- draws_matrix(x)
  out <- lapply(fit_factors(x), function(factor) {
    covariance_table(x, draws, factor)
  })
  if ("sigma" %in% colnames(draws)) {
    sigma <- unclass(draws)[, "sigma", drop = FALSE]
    out$residual__ <- list(
      sd = estimate_table(sigma),
      cov = matrix(mean(sigma^2), dimnames = list("sigma", "sigma"))
    )
  }
  structure(out, class = "tall_VarCorr")
}

covariance_table <- function(fit, draws, factor) {
  q <- length(factor$effects)
  root <- covariance_factors(fit, draws, factor$name)
  at <- covariance_start(fit, factor$name) + seq_len(q)
  sd <- draws[, at, drop = FALSE]
  names <- list(factor$effects, factor$effects)
  cov <- cor <- matrix(0, q, q, dimnames = names)
  for (a in seq_len(q)) {
    for (b in seq_len(q)) {
      product <- rowSums(matrix(root[, a, ] * root[, b, ], nrow(draws)))
      cov[a, b] <- mean(product)
      cor[a, b] <- mean(product / (sd[, a] * sd[, b]))
    }
  }
  own <- estimate_table(unclass(sd))
  rownames(own) <- factor$effects
  list(sd = own, cor = if (factor$correlated && q > 1) cor, cov = cov)
}

estimate_table <- function(v) {
  data.frame(Estimate = colMeans(v), Est.Error = apply(v, 2, stats::sd))
}

#' @export
print.tall_VarCorr <- function(x, digits = 3, ...) {
  check_no_dots(...)
  for (name in names(x)) {
    cat(if (name == "residual__") "Residual" else paste0("~", name), "\n",
      sep = ""
    )
    print(x[[name]]$sd, digits = digits)
    if (!is.null(x[[name]]$cor)) {
      cat("correlations\n")
      print(x[[name]]$cor, digits = digits)
    }
  }
  invisible(x)
}

# The columns of lme4's, of posterior means.
#' @rdname tall_glmer-methods
#' @param row.names,optional Unused: the generic has them.
#' @export
as.data.frame.tall_VarCorr <- function(
  x,
  row.names = NULL,
  optional = FALSE,
  ...
) {
  check_no_dots(...)
  rows <- lapply(names(x), function(name) {
    one <- x[[name]]
    effects <- colnames(one$cov)
    is_residual <- name == "residual__"
    # pairs, column by column of the lower triangle
    pairs <- if (!is.null(one$cor)) which(lower.tri(one$cor), arr.ind = TRUE)
    data.frame(
      grp = if (is_residual) "Residual" else name,
      var1 = c(if (is_residual) NA else effects, effects[pairs[, "col"]]),
      var2 = c(rep(NA, length(effects)), effects[pairs[, "row"]]),
      vcov = c(diag(one$cov), one$cov[pairs]),
      sdcor = c(one$sd$Estimate, one$cor[pairs])
    )
  })
  out <- do.call(rbind, rows)
  rownames(out) <- NULL
  out
}
