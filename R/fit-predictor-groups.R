# Predictors of fits of tall_glmer(): with the effects of known groups, of new
# ones, or of the population alone.

# What is asked of the effects of groups, a record: are they wanted, may groups
# be new, the seed of their draws (NULL: the fit's). re_formula: NULL, or NA or
# ~0 without. Of models without groups nothing else than NULL and NA: NULL.
group_request <- function(
  fit,
  re_formula = NULL,
  allow_new_levels = FALSE,
  seed = NULL
) {
  check_flag(allow_new_levels)
  if (is.null(fit$groups)) {
    check_no_groups(fit, re_formula)
    return(NULL)
  }
  structure(
    list(
      is_wanted = wants_groups(re_formula),
      allows_new = allow_new_levels,
      seed = check_seed(seed) %||% fit$seed
    ),
    class = "tall_group_request"
  )
}

check_no_groups <- function(fit, re_formula) {
  grouping <- Filter(is_grouping, terms_smooths(fit$terms))
  if (length(grouping) > 0 && !is.null(re_formula)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg re_formula} cannot leave out {.code {names(grouping)[[1]]}}: it
         is a smooth term, and predictions are of all of these.",
        i = "{.code predict(fit, newdata, type = \"terms\")} has each term by
             itself."
      ),
      argument = "re_formula",
      value = re_formula
    )
  }
  none <- no_groups$re_formula
  if (!none$test(re_formula)) {
    abort_expected(re_formula, none$expected, none$hint, arg = "re_formula")
  }
}

wants_groups <- function(re_formula) {
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

# ---- rows --------------------------------------------------------------------

# list(x, offset) and, where effects are wanted, z, rows x effects, and label,
# the group of each row (NA where something is missing).
#' @export
design_of.tall_glmer <- function(fit, newdata, groups) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    return(glmer_matrices(fit$rows$frame, fit$bars, fit$family))
  }
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  design <- fit$design
  fixed <- stats::delete.response(design$fixed)
  is_wanted <- isTRUE(groups$is_wanted)
  wanted <- c(
    all.vars(fixed),
    if (is_wanted) c(all.vars(design$effects), all.vars(fit$bars$group))
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
  out <- list(x = x, offset = stats::model.offset(frame))
  if (is_wanted) {
    out$z <- stats::model.matrix(
      design$effects,
      frame_of(design$effects, design$zlevels),
      contrasts.arg = design$z_contrasts
    )
    out$label <- new_labels(fit, newdata)
  }
  out
}

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

# ---- effects -----------------------------------------------------------------

# Draws of the effects that these rows want, `effects`, draws x groups x
# effects, and which of them is each row's, `group`.
#' @export
join_draws.tall_glmer <- function(fit, rows, draws, groups) {
  if (!isTRUE(groups$is_wanted)) {
    rows$z <- NULL
    return(rows)
  }
  known <- match(rows$label, fit$groups$levels)
  # a missing label is no new group: what depends on it is missing, too
  is_new <- is.na(known) & !is.na(rows$label)
  if (any(is_new) && !groups$allows_new) {
    abort_new_group(fit, rows$label[is_new][[1]])
  }
  n_draw <- nrow(draws$theta)
  levels <- sort(unique(known))
  names <- unique(rows$label[is_new])
  q <- length(fit$groups$effects)
  effects <- array(0, c(n_draw, length(levels) + length(names), q))
  at <- seq_along(levels)
  if (length(levels) > 0) {
    effects[, at, ] <- effect_draws(fit, levels, draws$rows, groups$seed)
  }
  if (length(names) > 0) {
    effects[, length(levels) + seq_along(names), ] <- with_seed(
      other_seed(groups$seed),
      new_effects(fit, draws$rows, length(names))
    )
  }
  rows$effects <- effects
  rows$group <- match(known, levels)
  rows$group[is_new] <- length(levels) + match(rows$label[is_new], names)
  rows
}

abort_new_group <- function(fit, label) {
  abort_input(
    c(
      "{.arg newdata} must have groups of the fit: {.val {label}} of
       {.field {fit$groups$name}} is none.",
      i = "{.code allow_new_levels = TRUE} draws the effects of new groups,
           {.code re_formula = NA} leaves effects out."
    ),
    argument = "newdata",
    value = label
  )
}

# Of effects, that responses drawn with `seed` are not made of the same normals.
other_seed <- function(seed) {
  (seed + 1000003) %% .Machine$integer.max
}

#' @export
predictor.tall_glmer <- function(fit, rows, draws, scale) {
  n_draw <- nrow(draws$theta)
  each <- function(x) rep(x, each = n_draw)
  eta <- unname(tcrossprod(draws$theta, rows$x)) + each(rows$offset)
  if (!is.null(rows$effects)) {
    for (a in seq_len(ncol(rows$z))) {
      u <- matrix(rows$effects[, rows$group, a], n_draw)
      eta <- eta + u * each(rows$z[, a])
    }
  }
  if (scale == "response") response_mean(fit$family, eta) else eta
}
