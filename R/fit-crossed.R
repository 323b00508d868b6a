# What fits of tall_glmer() with several grouping factors have of their own:
# effects are numbers of the chains, as many of which are there as were kept.

# Draws of effects of levels of a factor, draws x levels x effects. rows: as
# choose_draws() has them; seed: of other members of the family.
#' @export
level_effects.tall_crossed <- function(fit, name, levels, rows, seed) {
  factor <- fit$factors[[name]]
  check_has_effect_draws(fit)
  q <- length(factor$effects)
  place <- level_places(fit$factors, name, levels)
  if (is.list(fit$kernel$args$keep_effects)) {
    place <- match(place, kept_places(fit$kernel, fit$factors))
    check_levels_kept(place, name, factor$levels[levels], q)
  }
  own <- fit$effect_draws
  shape <- dim(own)
  n <- shape[[1]] * shape[[2]]
  rows <- rows %||% seq_len(n)
  out <- vapply(
    place,
    function(at) .subset(own, (at - 1) * n + rows),
    numeric(length(rows))
  )
  out <- array(out, c(length(rows), q, length(levels)))
  dimnames(out) <- list(NULL, factor$effects, factor$levels[levels])
  aperm(out, c(1, 3, 2))
}

check_levels_kept <- function(place, name, levels, q) {
  if (anyNA(place)) {
    level <- rep(levels, each = q)[is.na(place)][[1]]
    abort_tall(
      "unsupported",
      c(
        "The fit kept no draws of the effects of {.val {level}} of
         {.field {name}}.",
        i = "{.arg keep_effects} says of which levels draws are kept;
             {.code fit$effects} has means and quantiles of all."
      ),
      argument = "keep_effects",
      value = level
    )
  }
}

check_has_effect_draws <- function(fit) {
  if (!is.null(fit$effect_draws)) {
    return(invisible())
  }
  bytes <- 8 * sum(vapply(fit$factors, n_effects, 0)) *
    posterior::ndraws(fit_draws(fit))
  abort_tall(
    "unsupported",
    c(
      "The fit kept no draws of the effects of groups, of which this is made.",
      i = "Fit with {.code keep_effects = \"draws\"} to keep them: they take
           {format_bytes(bytes)}. {.code re_formula = NA} leaves effects out,
           where a function has that."
    ),
    argument = "keep_effects",
    value = fit$kernel$args$keep_effects
  )
}

#' @export
level_moments.tall_crossed <- function(fit, name, n_draw) {
  if (!is.null(n_draw)) {
    draws <- level_effects(
      fit,
      name,
      seq_along(fit$factors[[name]]$levels),
      choose_rows(fit, n_draw)$rows
    )
    return(list(
      mean = t(colMeans(draws)),
      sd = t(apply(draws, 2:3, stats::sd))
    ))
  }
  if (is.null(fit$effects)) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept nothing of the effects of groups.",
        i = "Fit with {.code keep_effects = \"summary\"}, or {.val draws}, to
             keep their means and standard deviations, or draws."
      ),
      argument = "keep_effects",
      value = fit$kernel$args$keep_effects
    )
  }
  factor <- fit$factors[[name]]
  q <- length(factor$effects)
  at <- effect_start(fit$factors, name) + seq_len(n_effects(factor))
  shape <- function(x) matrix(x[at], q, dimnames = list(factor$effects, NULL))
  list(mean = shape(fit$effects$mean), sd = shape(fit$effects$sd))
}

#' @rdname tall_glmer-methods
#' @export
ranef.tall_crossed <- function(
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
  check_seed(seed)
  n_draw <- check_draws(object, draws, ndraws)
  chosen <- check_factor_levels(groups, object$factors)
  if (!summary) {
    rows <- choose_rows(object, n_draw, resample = TRUE)$rows
    return(Map(
      function(name, at) level_effects(object, name, at, rows),
      names(chosen),
      chosen
    ))
  }
  out <- Map(
    function(name, at) {
      moments <- level_moments(object, name, n_draw)
      frame <- function(x) {
        data.frame(
          t(x)[at, , drop = FALSE],
          row.names = object$factors[[name]]$levels[at],
          check.names = FALSE
        )
      }
      mean <- frame(moments$mean)
      attr(mean, "sd") <- frame(moments$sd)
      mean
    },
    names(chosen),
    chosen
  )
  structure(out, class = "tall_ranef")
}

# Each row is an observation, given the effects of its groups.
#' @rdname log-lik
#' @exportS3Method rstantools::log_lik
log_lik.tall_crossed <- function(object, ...) {
  log_lik.tall_regression(object, ...)
}

#' @rdname losses
#' @export
log_loss.tall_crossed <- function(object, ...) {
  log_loss.tall_regression(object, ...)
}
