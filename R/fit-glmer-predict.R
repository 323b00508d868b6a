# Predictions of fits of tall_glmer(): of rows of known groups, of new ones, or
# of the population.

#' Predictions of a multilevel fit
#'
#' @param object (`tall_glmer`) The fit, from [tall_glmer()].
#' @param newdata (data frame or `NULL`) Where to predict; `NULL`: the data of
#'   the fit, if it kept them.
#' @param type (string) `"link"`: the linear predictor; `"response"`: its
#'   inverse link.
#' @param transform (`TRUE` or `FALSE`) The inverse link?
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well?
#' @param re_formula,re.form (`NULL`, or `NA` or `~0`) `NULL`: with the effects
#'   of groups; `NA`: those of the population alone, effects 0. Two names for
#'   one argument.
#' @param allow_new_levels (`TRUE` or `FALSE`) May groups be new? Their effects
#'   are drawn from the population's law, one for each draw and group.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all for the methods that return
#'   draws, 200 for `predict()`, 400 for `bayes_R2()`.
#' @param offset (numeric vector or `NULL`) Offset of the rows of `newdata`,
#'   where the fit's was given as an argument; `NULL`: that argument, evaluated
#'   in `newdata`.
#' @param trials (positive whole numbers or `NULL`) Trials of each row of a
#'   binomial response with several; `NULL`: what the formula or the weights of
#'   proportions say in `newdata`, 1 each without them.
#' @param weights (positive numbers or `NULL`) Weights of the rows of `newdata`,
#'   for Gaussian responses, whose weights are precisions; `NULL`: the argument
#'   of the fit, evaluated in `newdata`.
#' @param seed (whole number or `NULL`) Seed of effects and responses; `NULL`:
#'   the fit's.
#' @param interval,level (string, number between 0 and 1) As in
#'   [predict.tall_glm()], of 1,000 draws unless `ndraws` says otherwise.
#' @param ... Unused: other arguments are refused.
#'
#' @return `predict()`: a number for each row, with `se.fit = TRUE` a list of
#'   `fit` and `se.fit`; with intervals a matrix with the columns `fit`, `lwr`
#'   and `upr` in its place. `posterior_linpred()`, `posterior_epred()`
#'   (expected responses) and `posterior_predict()` (responses; counts of
#'   successes where there are trials): matrices draws x rows. `bayes_R2()`: the
#'   share of variance explained, effects of groups among it, for each of 400
#'   draws or `ndraws`; see [bayes_R2.tall_glm()].
#' @section Conditions: `tall_error_input` for a new group without
#' `allow_new_levels`, a missing column or a new level of a covariate;
#' `tall_error_stale` if there are no data; `tall_error_memory` if rows x draws
#' exceeds 5e7 numbers.
#' @examples
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' predict(fit, data.frame(x = 0, g = 1:3), type = "response")
#' predict(fit, data.frame(x = 0, g = 1), re_formula = NA)
#' @export
predict.tall_glmer <- function(
  object,
  newdata = NULL,
  type = c("link", "response"),
  se.fit = FALSE,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  interval = c("none", "confidence", "prediction"),
  level = 0.95,
  re.form = NULL,
  ndraws = draws
) {
  type <- check_choice(type, c("link", "response"))
  interval <- check_interval(interval, type, object$family)
  level <- check_prob(level)
  check_flag(se.fit)
  check_no_dots(...)
  rows <- glmer_prepare(
    object, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    usual = if (interval == "none") 200 else 1000
  )
  found <- glmer_moments(object, rows, type == "response")
  pad <- function(x) {
    if (is.null(newdata)) stats::napredict(object$na_action, x) else x
  }
  out <- list(fit = pad(found$mean), se.fit = pad(found$sd))
  if (interval != "none") {
    sizes <- if (interval == "prediction") {
      glmer_sizes(object, newdata, NULL, NULL, nrow(rows$x))
    }
    bounds <- glmer_interval(object, rows, level, interval, type, sizes, seed)
    out$fit <- with_bounds(out$fit, pad(bounds))
  }
  if (se.fit) out else out$fit
}

# Means and sds over the draws, block by block.
glmer_moments <- function(fit, rows, is_mean) {
  n <- nrow(rows$x)
  mean <- sd <- stats::setNames(numeric(n), rownames(rows$x))
  n_draw <- nrow(rows$beta)
  each_block(n, n_draw, function(at) {
    value <- glmer_eta(rows, at)
    if (is_mean) {
      value <- response_mean(fit$family, value)
    }
    centre <- colMeans(value)
    mean[at] <<- centre
    square <- colSums((value - rep(centre, each = n_draw))^2)
    sd[at] <<- sqrt(square / (n_draw - 1))
  })
  list(mean = mean, sd = sd)
}

#' @rdname predict.tall_glmer
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_glmer <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  check_flag(transform)
  check_no_dots(...)
  glmer_draws(
    object, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    is_mean = transform
  )$value
}

#' @rdname predict.tall_glmer
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_glmer <- function(
  object,
  newdata = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  glmer_draws(
    object, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    is_mean = TRUE
  )$value
}

#' @rdname predict.tall_glmer
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_glmer <- function(
  object,
  newdata = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  new <- glmer_draws(
    object, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    is_mean = TRUE
  )
  n <- ncol(new$value)
  rows <- glmer_sizes(object, newdata, weights, trials, n)
  seed <- if (is.null(seed)) object$seed else check_seed(seed)
  aux <- glmer_aux(object, new$draws)
  draw <- find_response(object$family)$draw
  out <- with_seed(seed, draw(new$value, aux, rows))
  matrix(out, nrow(new$value), dimnames = dimnames(new$value))
}

#' @rdname predict.tall_glmer
#' @exportS3Method rstantools::bayes_R2
bayes_R2.tall_glmer <- function(
  object,
  newdata = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  re.form = NULL,
  ndraws = draws
) {
  check_no_dots(...)
  rows <- glmer_prepare(
    object, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    usual = 400
  )
  n <- nrow(rows$x)
  n_draw <- nrow(rows$beta)
  aux <- glmer_aux(object, rows$draws)
  trials <- prediction_trials(object, newdata, NULL, n)
  weight <- if (is.null(trials)) {
    prediction_weights(object, newdata, weights, n)
  }
  residual <- numeric(n_draw)
  spread <- mean_spread(n, n_draw, function(at) {
    found <- r2_moments(
      object$family,
      response_mean(object$family, glmer_eta(rows, at)),
      trials[at],
      weight[at],
      aux
    )
    residual <<- residual + rowSums(found$variance)
    found$mean
  })
  explained <- spread$square / (spread$n - 1)
  explained / (explained + residual / spread$n)
}

# The response's parameter in each draw, or as it is known; NULL: there is none.
glmer_aux <- function(fit, draws) {
  known <- known_values(fit$family, fit$sigma)
  if (length(known) == 0) {
    return(NULL)
  }
  aux <- names(known)
  if (all(aux %in% colnames(draws))) {
    return(unname(draws[, aux]))
  }
  rep(known[[1]], nrow(draws))
}

# list(value: of the linear predictor or its inverse link, draws x rows; draws:
# of the parameters).
glmer_draws <- function(
  fit,
  newdata,
  re_formula,
  allow_new_levels,
  ndraws,
  offset,
  seed,
  is_mean
) {
  rows <- glmer_prepare(
    fit, newdata, re_formula, allow_new_levels, ndraws, offset, seed,
    is_matrix = TRUE
  )
  value <- glmer_eta(rows, seq_len(nrow(rows$x)))
  if (is_mean) {
    value <- response_mean(fit$family, value)
  }
  dimnames(value) <- list(NULL, rownames(rows$x))
  list(value = value, draws = rows$draws)
}

# The rows, as glmer_rows() has them, with draws of what their predictors are
# made of. usual: draws, unless others are asked for. is_matrix: is one number
# for each row and draw wanted? only: of these rows; NULL: all.
glmer_prepare <- function(
  fit,
  newdata,
  re_formula,
  allow_new_levels,
  ndraws,
  offset,
  seed,
  usual = Inf,
  is_matrix = FALSE,
  only = NULL
) {
  check_flag(allow_new_levels)
  with_groups <- check_re_formula(re_formula)
  rows <- glmer_rows(fit, newdata, offset, with_groups)
  rows$offset <- rep_len(rows$offset, nrow(rows$x))
  if (!is.null(only)) {
    rows$x <- rows$x[only, , drop = FALSE]
    rows$z <- rows$z[only, , drop = FALSE]
    of <- intersect(c("label", "offset"), names(rows))
    rows[of] <- lapply(rows[of], function(v) v[only])
  }
  at <- glmer_theta(fit, ndraws, usual)
  if (is_matrix) {
    check_matrix_of(nrow(rows$x), nrow(at$draws))
  }
  rows$draws <- at$draws
  rows$beta <- unname(at$draws[, seq_len(fit$n_coef), drop = FALSE])
  if (with_groups) {
    found <- effects_of_rows(fit, rows, at, allow_new_levels, seed)
    rows[names(found)] <- found
  }
  rows
}

# The linear predictor of some rows, draws x rows.
glmer_eta <- function(rows, at) {
  n_draw <- nrow(rows$beta)
  eta <- unname(tcrossprod(rows$beta, rows$x[at, , drop = FALSE])) +
    rep(rows$offset[at], each = n_draw)
  if (!is.null(rows$effects)) {
    for (a in seq_len(ncol(rows$z))) {
      u <- matrix(rows$effects[, rows$of[at], a], n_draw)
      eta <- eta + u * rep(rows$z[at, a], each = n_draw)
    }
  }
  eta
}

check_matrix_of <- function(n_row, n_draw) {
  if (n_row * n_draw > 5e7) {
    abort_tall(
      "memory",
      c(
        "{format_count(n_row)} rows x {format_count(n_draw)} draws are more than
         5e7 numbers.",
        i = "Give {.arg newdata} of fewer rows, or a smaller {.arg ndraws}."
      )
    )
  }
}

check_re_formula <- function(re_formula) {
  if (is.null(re_formula)) {
    return(TRUE)
  }
  is_none <- (length(re_formula) == 1 && is.atomic(re_formula) &&
    is.na(re_formula)) ||
    (inherits(re_formula, "formula") && identical(re_formula[[2]], 0))
  if (!is_none) {
    abort_tall(
      "unsupported",
      "{.arg re_formula} must be {.code NULL}, with all effects of groups, or
       {.code NA}, with none.",
      argument = "re_formula",
      value = re_formula
    )
  }
  FALSE
}

# list(x, z, label, offset)
glmer_rows <- function(fit, newdata, offset, with_groups) {
  if (is.null(newdata)) {
    if (is.null(fit$frame)) {
      abort_tall(
        "stale",
        c(
          "The fit did not keep its data: {.arg newdata} is needed.",
          i = "Fit with {.code keep_data = TRUE} to keep them."
        ),
        argument = "newdata"
      )
    }
    return(glmer_matrices(fit$frame, fit$bars, fit$family))
  }
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  new_glmer_rows(fit, newdata, offset, with_groups)
}

new_glmer_rows <- function(fit, newdata, offset, with_groups) {
  design <- fit$design
  fixed <- stats::delete.response(design$fixed)
  wanted <- c(
    all.vars(fixed),
    if (with_groups) c(all.vars(design$effects), all.vars(fit$bars$group))
  )
  missing <- setdiff(intersect(wanted, fit$columns), names(newdata))
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  frame_of <- function(terms, levels) {
    source <- list(columns = fit$columns, xlevels = levels)
    prediction_frame(source, terms, newdata)
  }
  frame <- frame_of(fixed, design$xlevels)
  x <- stats::model.matrix(fixed, frame, contrasts.arg = design$contrasts)
  offset <- check_numeric_vector(
    offset,
    size = c(1, nrow(x)),
    allow_null = TRUE,
    most = most_of_data,
    arg = "offset"
  )
  own <- offset %||% new_offset(fit, newdata) %||% 0
  out <- list(x = x, offset = (stats::model.offset(frame) %||% 0) + own)
  if (with_groups) {
    z_frame <- frame_of(design$effects, design$zlevels)
    out$z <- stats::model.matrix(
      design$effects,
      z_frame,
      contrasts.arg = design$z_contrasts
    )
    out$label <- new_labels(fit, newdata)
  }
  out
}

# Labels of the groups of new rows; NA where something is missing.
new_labels <- function(fit, newdata) {
  look <- function(group) {
    group <- strip_parens(group)
    if (is.call(group) && identical(group[[1]], as.name(":"))) {
      left <- look(group[[2]])
      right <- look(group[[3]])
      return(ifelse(is.na(left) | is.na(right), NA, paste0(left, ":", right)))
    }
    value <- eval(group, newdata, environment(fit$formula))
    as.character(rep_len(value, nrow(newdata)))
  }
  look(fit$bars$group)
}

# list(effects: draws x groups x effects, of: the group of each row)
effects_of_rows <- function(fit, rows, at, allow_new_levels, seed) {
  known <- match(rows$label, fit$groups$levels)
  is_new <- is.na(known)
  if (any(is_new) && !allow_new_levels) {
    bad <- rows$label[is_new][[1]]
    abort_input(
      c(
        "{.arg newdata} must have groups of the fit: {.val {bad}} of
         {.field {fit$groups$name}} is none.",
        i = "{.code allow_new_levels = TRUE} draws the effects of new groups,
             {.code re_formula = NA} leaves effects out."
      ),
      argument = "newdata",
      value = bad
    )
  }
  n_draw <- nrow(at$draws)
  seed <- if (is.null(seed)) fit$seed else check_seed(seed)
  levels <- sort(unique(known[!is_new]))
  names <- unique(rows$label[is_new])
  q <- length(fit$groups$effects)
  effects <- array(0, c(n_draw, length(levels) + length(names), q))
  if (length(levels) > 0) {
    effects[, seq_along(levels), ] <-
      effect_draws(fit, levels, n_draw, seed)
  }
  if (length(names) > 0) {
    effects[, length(levels) + seq_along(names), ] <-
      with_seed(other_seed(seed), new_effects(fit, at$draws, length(names)))
  }
  of <- match(known, levels)
  of[is_new] <- length(levels) + match(rows$label[is_new], names)
  list(effects = effects, of = of)
}

# Of effects, that responses drawn with `seed` are not made of the same normals.
other_seed <- function(seed) {
  (seed + 1000003) %% .Machine$integer.max
}

# draws x groups x effects, from the population's law
new_effects <- function(fit, draws, n_group) {
  q <- length(fit$groups$effects)
  factors <- covariance_factors(fit, draws)
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
