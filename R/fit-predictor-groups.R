# Predictors of fits of tall_glmer(): with the effects of known groups, of new
# ones, or of the population alone.

# What is asked of the effects of groups, a record: which of them are wanted, by
# grouping factor, may groups be new, the seed of their draws (NULL: the fit's).
# re_formula: NULL, all; NA or ~0, none; or a formula of some of the fit's
# group-level terms. Of models without groups nothing else than NULL and NA:
# NULL.
group_request <- function(
  fit,
  re_formula = NULL,
  allow_new_levels = FALSE,
  seed = NULL
) {
  check_flag(allow_new_levels)
  if (!has_groups(fit)) {
    check_no_groups(fit, re_formula)
    return(NULL)
  }
  structure(
    list(
      wanted = wanted_effects(fit, re_formula),
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

# Names of the effects that are wanted, by grouping factor.
wanted_effects <- function(fit, re_formula) {
  factors <- fit_factors(fit)
  if (is.null(re_formula)) {
    return(lapply(factors, `[[`, "effects"))
  }
  is_none <- (length(re_formula) == 1 && is.atomic(re_formula) &&
    is.na(re_formula)) ||
    (inherits(re_formula, "formula") &&
      identical(re_formula[[length(re_formula)]], 0))
  if (is_none) {
    return(list())
  }
  if (!inherits(re_formula, "formula")) {
    abort_expected(
      re_formula,
      "NULL (all effects of groups), NA (none) or a formula of some of the
       fit's group-level terms",
      arg = "re_formula"
    )
  }
  asked <- re_formula
  asked[[3]] <- re_formula[[length(re_formula)]]
  asked[[2]] <- quote(y)
  bars <- read_bars(asked)
  if (!identical(bars$fixed[[3]], 1)) {
    abort_input(
      "{.arg re_formula} must have group-level terms alone, such as
       {.code ~ (1 | {factors[[1]]$name})}.",
      argument = "re_formula",
      value = re_formula
    )
  }
  own <- fit_bars(fit)
  names <- vapply(bars$terms, `[[`, "", "name")
  check_known(names, names(own), "grouping factor", arg = "re_formula")
  stats::setNames(lapply(bars$terms, function(term) {
    effects_of_term(term, own[[term$name]], factors[[term$name]])
  }), names)
}

# All of a factor's, or its intercept.
effects_of_term <- function(term, own, factor) {
  asked <- stats::terms(term$effects)
  known <- stats::terms(own$effects)
  has_one <- attr(asked, "intercept") == 1
  labels <- attr(asked, "term.labels")
  is_same <- setequal(labels, attr(known, "term.labels")) &&
    attr(known, "intercept") == attr(asked, "intercept")
  if (is_same) {
    return(factor$effects)
  }
  if (length(labels) == 0 && has_one && "(Intercept)" %in% factor$effects) {
    return("(Intercept)")
  }
  shown <- paste0(deparse1(own$effects[[2]]), " | ", factor$name)
  abort_input(
    "{.arg re_formula} must have a group-level term as the fit has it,
     {.code ({shown})}, or its intercept, {.code (1 | {factor$name})}.",
    argument = "re_formula",
    value = deparse1(term$effects)
  )
}

# ---- rows --------------------------------------------------------------------

# list(x, offset) and, where effects are wanted, `factors`, for each list(z,
# label): rows x effects, and the group of each row (NA where something is
# missing).
#' @export
design_of.tall_glmer <- function(fit, newdata, groups) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata")
    return(own_matrices(fit))
  }
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata")
  }
  fixed <- stats::delete.response(fit$design$fixed)
  bars <- fit_bars(fit)[names(groups$wanted)]
  designs <- effect_designs(fit)[names(groups$wanted)]
  wanted <- c(
    all.vars(fixed),
    unlist(lapply(designs, function(design) all.vars(design$effects))),
    unlist(lapply(bars, function(bar) all.vars(bar$group)))
  )
  missing <- setdiff(intersect(wanted, fit$columns), names(newdata))
  if (length(missing) > 0) {
    abort_missing_columns(missing)
  }
  frame_of <- function(terms, levels) {
    source <- list(columns = fit$columns, xlevels = levels)
    prediction_frame(source, terms, newdata)
  }
  frame <- frame_of(fixed, fit$design$xlevels)
  x <- stats::model.matrix(fixed, frame, contrasts.arg = fit$design$contrasts)
  out <- list(x = x, offset = stats::model.offset(frame))
  out$factors <- lapply(stats::setNames(nm = names(bars)), function(name) {
    design <- designs[[name]]
    list(
      z = stats::model.matrix(
        design$effects,
        frame_of(design$effects, design$zlevels),
        contrasts.arg = design$z_contrasts
      ),
      label = new_labels(fit, bars[[name]]$group, newdata)
    )
  })
  out
}

# Of the fit's own rows.
own_matrices <- function(fit) {
  UseMethod("own_matrices")
}

#' @export
own_matrices.tall_glmer <- function(fit) {
  fit <- fit_of_rows(fit)
  found <- glmer_matrices(fit$rows$frame, fit$bars, fit$family)
  found$factors <- list(found[c("z", "label")])
  names(found$factors) <- fit$groups$name
  found[c("x", "offset", "factors")]
}

#' @export
own_matrices.tall_crossed <- function(fit) {
  fit <- fit_of_rows(fit)
  crossed_matrices(fit$rows$frame, fit$bars, fit$family)
}

# How the effects of each factor are read.
effect_designs <- function(fit) {
  if (is_crossed(fit)) {
    return(fit$design$effects)
  }
  stats::setNames(
    list(fit$design[c("effects", "zlevels", "z_contrasts")]),
    fit$groups$name
  )
}

new_labels <- function(fit, group, newdata) {
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
  look(group)
}

# ---- effects -----------------------------------------------------------------

# Of each factor draws of the effects that these rows want, `effects`, draws x
# groups x effects, and which of them is each row's, `group`.
#' @export
join_draws.tall_glmer <- function(fit, rows, draws, groups) {
  wanted <- groups$wanted
  rows$factors <- rows$factors[names(wanted)]
  for (k in seq_along(wanted)) {
    name <- names(wanted)[[k]]
    own <- rows$factors[[name]]
    joined <- join_factor(fit, name, own$label, draws, groups, k)
    at <- match(wanted[[k]], fit_factors(fit)[[name]]$effects)
    rows$factors[[name]] <- list(
      z = own$z[, at, drop = FALSE],
      effects = joined$effects[, , at, drop = FALSE],
      group = joined$group
    )
  }
  rows
}

# k: how many factors were joined before, and this one.
join_factor <- function(fit, name, label, draws, groups, k) {
  factor <- fit_factors(fit)[[name]]
  known <- match(label, factor$levels)
  # a missing label is no new group: what depends on it is missing, too
  is_new <- is.na(known) & !is.na(label)
  if (any(is_new) && !groups$allows_new) {
    abort_new_group(name, label[is_new][[1]])
  }
  levels <- sort(unique(known))
  names <- unique(label[is_new])
  q <- length(factor$effects)
  effects <- array(0, c(nrow(draws$theta), length(levels) + length(names), q))
  at <- seq_along(levels)
  if (length(levels) > 0) {
    effects[, at, ] <- level_effects(fit, name, levels, draws$rows, groups$seed)
  }
  if (length(names) > 0) {
    effects[, length(levels) + seq_along(names), ] <- with_seed(
      other_seed(groups$seed, k),
      new_effects(fit, name, draws$rows, length(names))
    )
  }
  group <- match(known, levels)
  group[is_new] <- length(levels) + match(label[is_new], names)
  list(effects = effects, group = group)
}

abort_new_group <- function(name, label) {
  abort_input(
    c(
      "{.arg newdata} must have groups of the fit: {.val {label}} of
       {.field {name}} is none.",
      i = "{.code allow_new_levels = TRUE} draws the effects of new groups,
           {.code re_formula = NA} leaves effects out."
    ),
    argument = "newdata",
    value = label
  )
}

# Of effects, that responses drawn with `seed` are not made of the same normals.
other_seed <- function(seed, k = 1) {
  (seed + k * 1000003) %% .Machine$integer.max
}

# draws$numbers: which of the draws that the rows were joined with these are,
# NULL: all of them; a fraction, where they are a mean, stands for the mean.
#' @export
predictor.tall_glmer <- function(fit, rows, draws, scale) {
  n_draw <- nrow(draws$theta)
  each <- function(x) rep(x, each = n_draw)
  eta <- unname(tcrossprod(draws$theta, rows$x)) + each(rows$offset)
  for (own in Filter(function(own) !is.null(own$effects), rows$factors)) {
    for (a in seq_len(ncol(own$z))) {
      u <- effects_at(own$effects, own$group, a, draws$numbers)
      eta <- eta + matrix(u, n_draw) * each(own$z[, a])
    }
  }
  if (scale == "response") response_mean(fit$family, eta) else eta
}

effects_at <- function(effects, group, a, numbers) {
  if (is.null(numbers)) {
    return(effects[, group, a])
  }
  if (all(numbers == floor(numbers))) {
    return(effects[numbers, group, a])
  }
  colMeans(matrix(effects[, , a], dim(effects)[[1]]))[group]
}
