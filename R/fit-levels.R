# Fits of tall_glmer() whose levels are columns (R/front-levels.R): what is seen
# of fit$engine, the fit of the columns, is a fit of several factors.

fit_of_levels <- function(engine, front, inner, rows) {
  blueprint <- front$blueprint
  blueprint$priors$prior_covariance <- inner$told$covariances
  fit <- unclass(engine)
  fit$blueprint <- blueprint
  fit$rows <- rows
  fit$formula <- front$asked$formula
  fit$call <- front$asked$written
  fit$bars <- front$request$bars
  fit$design <- levels_design(engine, fit$bars)
  fit$terms <- fit$design$fixed
  fit$factors <- lapply(
    named_factors(fit$bars$terms),
    factor_of_levels,
    engine = engine,
    rows = rows
  )
  fit$model_label <- "model_crossed"
  gone <- c(
    "mode", "start_chol", "passed", "xlevels", "contrasts", "sparse", "storage",
    "prior_PD", "sketch", "whitening", "stand_in"
  )
  fit[gone] <- list(NULL)
  class(fit) <- whole_class(front$class)
  seal_fit(see_engine(fit, engine))
}

# A grouping factor. Levels that no row has are left out: of two factors that
# cross there are columns of all pairs.
factor_of_levels <- function(bar, engine, rows) {
  effects <- effects_of_bar(bar)
  label <- levels_label(bar, effects[[1]])
  smooth <- terms_smooths(engine$terms)[[label]]
  names <- smooth$columns$name
  levels <- substring(names, nchar(label) + 2)
  size <- if (is.null(rows$frame)) {
    # of a slope's column that mean is none
    facts <- engine$rows$facts
    at <- match(names, engine$every_variable)
    round(unname(facts$mean)[at] * facts$n_row)
  } else {
    group <- group_factor(bar$group, rows$frame)
    as.double(table(factor(as.character(group), levels)))
  }
  if (is.null(rows$frame) && effects[[1]] != "(Intercept)" ||
    length(size) == 0) {
    size <- rep(NA_real_, length(levels))
  }
  keep <- !size %in% 0
  list(
    name = bar$name,
    levels = levels[keep],
    effects = effects,
    correlated = bar$correlated,
    sizes = size[keep]
  )
}

# How other rows are read, of factors that are columns of the data; `rows` are
# the terms of all variables.
levels_design <- function(engine, bars) {
  frame <- structure(list(), terms = engine$terms)
  fixed <- part_terms(bars$fixed, frame)
  names <- vapply(as.list(attr(fixed, "variables"))[-1], deparse1, "")
  of <- function(x) x[intersect(names(x), names)]
  effects <- lapply(named_factors(bars$terms), function(bar) {
    list(
      effects = stats::terms(bar$effects),
      zlevels = NULL,
      z_contrasts = NULL
    )
  })
  list(
    fixed = fixed,
    xlevels = of(engine$xlevels),
    contrasts = if (length(of(engine$contrasts)) > 0) of(engine$contrasts),
    effects = effects,
    rows = all_terms(bars, fixed)
  )
}

# Of the variables of all parts, with what `fixed` took from the data.
all_terms <- function(bars, fixed) {
  terms <- stats::terms(bars$frame)
  of <- function(terms) {
    vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
  }
  predvars <- as.list(attr(terms, "variables"))[-1]
  at <- match(of(fixed), of(terms))
  predvars[at] <- as.list(attr(fixed, "predvars"))[-1]
  attr(terms, "predvars") <- as.call(c(quote(list), predvars))
  attr(terms, ".Environment") <- environment(bars$fixed)
  terms
}

# Of the fit what follows from that of the columns, now or when it has gone on.
#' @export
see_engine.tall_crossed <- function(fit, engine) {
  known <- engine$every_variable
  n_coef <- engine$n_coef
  bars <- fit$bars$terms
  labels <- lapply(bars, function(bar) {
    vapply(effects_of_bar(bar), levels_label, "", bar = bar)
  })
  layout <- smooth_layout(engine$terms, known)
  fixed <- setdiff(seq_len(n_coef), layout$columns$at)
  scales <- match(paste0("smooth_sd[", unlist(labels), "1]"), known)
  aux <- setdiff(
    seq_along(known)[-seq_len(n_coef)],
    match(smooth_sd_names(layout), known)
  )
  names <- lapply(fit$factors, function(f) group_names(f$effects, f))
  every <- function(what) unlist(lapply(unname(names), `[[`, what))
  variables <- c(known[fixed], every("variables"), known[aux])
  fit$variables <- fit$every_variable <- variables
  fit$coordinates <- c(
    engine$coordinates[fixed],
    every("coordinates"),
    engine$coordinates[aux]
  )
  fit["variable_of"] <- list(NULL)
  fit$model <- list(
    label = fit$model_label,
    prior_functional = engine$model$prior_functional
  )
  fit$n_coef <- length(fixed)
  prior <- compact(engine$prior[c("kind", "location", "scale", "shape")])
  own <- c(fixed, n_coef + seq_along(aux))
  fit$prior <- insert_lambda(
    lapply(prior, `[`, own),
    length(fixed),
    length(scales),
    "exponential"
  )
  from <- c(
    "control", "progress", "preparation", "saved", "chains", "passes", "sizes",
    "time", "cpu", "stopped", "moments", "bias_blocks"
  )
  from <- intersect(from, names(engine))
  fit[from] <- engine[from]
  at <- c(fixed, scales, aux)
  fit["draws"] <- list(pick_draws(engine$draws, at, variables))
  if (!is.null(engine$unconstrained)) {
    fit$unconstrained <- unname(engine$unconstrained[, , at, drop = FALSE])
  }
  # level after level
  columns <- unlist(Map(function(factor, label) {
    outer(label, factor$levels, paste, sep = ".")
  }, fit$factors, labels))
  fit["effect_draws"] <- list(pick_draws(
    engine$draws,
    match(columns, known),
    effect_names(list(groups = fit$factors))
  ))
  fit["effects"] <- list(effects_of_draws(fit$effect_draws))
  if (has_source(fit)) {
    # rows that fit$rows has, see resume_engine()
    engine["rows"] <- list(NULL)
  }
  fit$engine <- engine
  fit
}

# NULL: there are none, of a run that was interrupted early.
pick_draws <- function(draws, at, names) {
  if (is.null(draws)) {
    return(NULL)
  }
  out <- unclass(draws)[, , at, drop = FALSE]
  dimnames(out)[[3]] <- names
  posterior::as_draws_array(out)
}

# As effect_summary() has it.
effects_of_draws <- function(draws) {
  if (is.null(draws)) {
    return(NULL)
  }
  draws <- unclass(draws)
  n <- dim(draws)[[1]]
  reports <- lapply(seq_len(dim(draws)[[2]]), function(chain) {
    own <- matrix(draws[, chain, ], n)
    mean <- colMeans(own)
    square <- colSums((own - rep(mean, each = n))^2)
    low <- apply(own, 2, stats::quantile, 0.05, names = FALSE)
    high <- apply(own, 2, stats::quantile, 0.95, names = FALSE)
    list(effects = c(n, mean, square, low, high))
  })
  effect_summary(reports, dimnames(draws)[[3]])
}

# ---- names -------------------------------------------------------------------

# What smooth_formula() calls the effects: of an intercept, or a covariate.
levels_label <- function(bar, effect) {
  of <- c(all.vars(bar$group), setdiff(effect, "(Intercept)"))
  paste0("s(", paste(of, collapse = ","), ")")
}

effects_of_bar <- function(bar) {
  terms <- stats::terms(bar$effects)
  has_one <- attr(terms, "intercept") > 0
  c(if (has_one) "(Intercept)", attr(terms, "term.labels"))
}
