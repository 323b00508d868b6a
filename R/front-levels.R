# tall_glmer() of several grouping factors that have few levels in all: each
# level is a column, whose coefficient is normal with a standard deviation that
# is a parameter, as tall_gam() has it. So rows are passed over wherever they
# lie, and a step looks at sums over them or at a few. The fit of these columns,
# fit$engine, is what goes on; what methods see of it is a fit of several
# factors like any other (R/fit-levels.R), whose effects are draws.

# Where that is to be had: list(fit, digest, start), as fit_in_passes() has it;
# fit NULL: rows are brought to memory, and swept.
fit_levels <- function(front, run) {
  asked <- front$asked
  if (!asked$has_data || is_small_frame(asked$data) ||
    !suits_levels(front, run)) {
    return(list())
  }
  run["kernel"] <- list(NULL)
  inner <- front_of_levels(front, run)
  source <- data_source(asked$data)
  passed <- fit_in_passes(inner, source, run)
  rows <- passed$fit$rows
  if (is.null(passed$fit)) {
    passed <- with_bringing(passed, source)
    if (suits_memory(passed, inner)) {
      front$asked <- collect_asked(
        asked,
        before = passed$digest,
        wanted = wanted_columns(asked, front$takes)
      )
      inner$asked <- ask_of(inner$asked, front$asked$data)
      passed$fit <-
        fit_in_memory(inner, front_rows(inner, run), run, passed$start)
      rows <- rows_to_keep(front_rows(front, run), front$keep_data)
    }
  }
  if (!is.null(passed$fit)) {
    passed$fit <- fit_of_levels(passed$fit, front, inner, rows)
  }
  passed
}

# Where a pilot of passes said that exact steps suit but for many rows, which a
# pass would have to draw, all rows at hand serve, if they take no more memory
# than that.
suits_memory <- function(passed, inner) {
  told <- inner$told
  identical(passed$why, too_many_rows) && !is.null(told$covariances) &&
    8 * told$n_row * told$n_column <= setting("levels")$bytes
}

# ---- what suits --------------------------------------------------------------

# Do the arguments have a place where levels are columns?
suits_levels <- function(front, run) {
  given <- c("gradient", "subsample", "init", "lambda", "variables")
  is_given <- !vapply(run[given], is.null, TRUE)
  front$in_columns && !any(is_given) && identical(run$control$keep, "draws") &&
    all(vapply(front$request$bars$terms, bar_has_columns, TRUE)) &&
    has_proper_sds(front$blueprint$priors$prior_covariance) &&
    !has_many_levels(front) && requireNamespace("mgcv", quietly = TRUE)
}

# Of a factor, or of two that cross: an intercept, and columns of numbers whose
# effects are not correlated.
bar_has_columns <- function(bar) {
  group <- bar$group
  is_pair <- is.call(group) && identical(group[[1]], quote(`:`))
  of <- if (is_pair) as.list(group)[-1] else list(group)
  effects <- stats::terms(bar$effects)
  slopes <- lapply(attr(effects, "term.labels"), str2lang)
  n <- length(slopes) + attr(effects, "intercept")
  all(vapply(c(of, slopes), is.symbol, TRUE)) && n > 0 &&
    (n == 1 || !bar$correlated)
}

# priors: of as_covariance_priors()
has_proper_sds <- function(priors) {
  priors <- if (is.object(priors)) list(priors) else priors
  !any(vapply(priors, function(x) identical(x$sd$kind, "flat"), TRUE))
}

# As a sample of a data frame's rows tells: a source is looked at first.
has_many_levels <- function(front) {
  data <- front$asked$data
  if (!is.data.frame(data)) {
    return(FALSE)
  }
  n <- min(nrow(data), setting("look")$rows)
  rows <- round(seq(1, nrow(data), length.out = n))
  n <- vapply(front$request$bars$terms, FUN.VALUE = 0, function(bar) {
    of <- intersect(all.vars(bar$group), names(data))
    each <- lapply(data[of], function(x) x[rows])
    length(unique(do.call(paste, unname(each))))
  })
  sum(n) > setting("levels")$most
}

# Seconds of a look and pilots, of chains on the columns, and of the passes that
# make their sums, by count. columns: with `scales` standard deviations.
levels_seconds <- function(n_row, columns, scales, control) {
  s <- setting("levels")
  steps <- control$chains * steps_of_chain(s$steps, control)
  of_draw <- s$cube * columns^3 + s$square * columns^2
  s$start + steps * (scales + 1) * of_draw +
    s$passes * s$product * n_row * columns^2
}

# Of sweeps over the rows.
swept_seconds <- function(n_row, n_fixed, n_factor, family, control) {
  rows <- list(n_rows = n_row, n_coef = n_fixed, family = family)
  rows$groups <- seq_len(n_factor)
  steps <- sweeps_of_draw(rows, control)
  control$chains * control$iter * steps * sweep_seconds(rows)
}

# ---- the columns -------------------------------------------------------------

front_of_levels <- function(front, run) {
  asked <- front$asked
  asked$formula <- levels_formula(front$request$bars)
  asked$matched$formula <- asked$formula
  blueprint <- front$blueprint
  own <- c("prior", "prior_intercept", "prior_aux")
  inner <- new_front(
    "glm",
    c("tall_gam", "tall_glm"),
    ask_smooths(asked, NULL),
    blueprint_glm(
      blueprint$family,
      c(blueprint$priors[own], list(prior_smooth = prior_exponential())),
      blueprint$sigma
    ),
    request_glm(blueprint$family),
    front$keep_data,
    takes = front$takes
  )
  inner$told <- new.env(parent = emptyenv())
  inner$told$lines <- TRUE
  inner$bars <- front$request$bars
  inner$covariances <- blueprint$priors$prior_covariance
  inner$control <- run$control
  class(inner) <- c("tall_front_levels", "tall_front_gam", class(inner))
  inner
}

# Group-level terms as tall_gam() takes them.
levels_formula <- function(bars) {
  out <- bars$fixed
  for (bar in bars$terms) {
    term <- call("||", bar$effects[[2]], bar$group)
    out[[3]] <- call("+", out[[3]], call("(", term))
  }
  out
}

# When a look has found the levels: do columns pay, and what priors have their
# standard deviations?
#' @export
settle_front.tall_front_levels <- function(front, terms, columns) {
  front <- NextMethod()
  layout <- smooth_layout(terms, columns)
  front$sketch <- NULL
  if (is.null(front$told$covariances)) {
    front <- settle_levels(front, terms, columns, layout)
  }
  front$blueprint$priors$prior_smooth <- scale_priors(
    front$bars,
    front$told$covariances,
    layout$blocks
  )
  front
}

# Once, from a look's pilot.
settle_levels <- function(front, terms, columns, layout) {
  family <- front$blueprint$family
  check_levels_numeric(front$bars, terms)
  check_pilot_levels(front)
  n_row <- sum(front$pilot$counts)
  n_fixed <- length(columns) - nrow(layout$columns)
  n_scale <- nrow(layout$blocks)
  swept <- swept_seconds(
    n_row,
    n_fixed,
    length(front$bars$terms),
    family,
    front$control
  )
  of_columns <- levels_seconds(n_row, length(columns), n_scale, front$control)
  if (of_columns > swept) {
    need_rows("effects of so many levels are drawn by sweeps over them")
  }
  y <- pilot_response(front)
  front$told$covariances <- settled_covariances(
    front$bars,
    front$covariances,
    y,
    family
  )
  front$told$n_row <- n_row
  front$told$n_column <- length(columns)
  front
}

# A covariate of slopes that is no number is one of groups to tall_gam().
check_levels_numeric <- function(bars, terms) {
  smooths <- terms_smooths(terms)
  for (bar in bars$terms) {
    for (name in attr(stats::terms(bar$effects), "term.labels")) {
      smooth <- smooths[[levels_label(bar, name)]]
      if (name %in% names(smooth$levels)) {
        need_rows(paste(
          name,
          "is a factor, and effects of its levels are correlated"
        ))
      }
    }
  }
}

# What is refused of a sample may be fine of all rows, which then are asked.
check_pilot_levels <- function(front) {
  bars <- front$bars
  family <- front$blueprint$family
  tryCatch(
    {
      frame <- stats::model.frame(
        bars$frame,
        front$pilot$data,
        na.action = stats::na.omit,
        drop.unused.levels = TRUE
      )
      sides <- crossed_sides(frame, bars, family)
      check_crossed(sides, family, front$blueprint$sigma)
    },
    tall_error = function(cnd) {
      need_rows("a sample of them does not tell the grouping factors apart")
    }
  )
}

# list(y, weight): some of the responses, NULL where they have no units.
pilot_response <- function(front) {
  if (!find_response(front$blueprint$family)$has_units) {
    return(NULL)
  }
  formula <- front$asked$formula
  list(
    y = eval(formula[[2]], front$pilot$data, environment(formula)),
    weight = front$pilot$counts
  )
}

# priors: as given; with the default's scale, which that of the response makes.
settled_covariances <- function(bars, priors, y, family) {
  factors <- bars$terms
  names <- vapply(factors, `[[`, "", "name")
  lapply(stats::setNames(nm = names), function(name) {
    prior <- covariance_prior_of(priors, name, factors)
    if (is.null(prior$sd)) {
      wide <- if (is.null(y)) 0 else weighted_mad(y$y, y$weight)
      prior$sd <- prior_student(3, 0, max(2.5, wide))
    }
    prior
  })
}

weighted_mad <- function(x, weight) {
  middle <- function(x) {
    at <- order(x)
    share <- cumsum(weight[at]) / sum(weight)
    x[at][[which(share >= 0.5)[[1]]]]
  }
  1.4826 * middle(abs(x - middle(x)))
}

# A prior of the standard deviation of each block of columns, by its name.
scale_priors <- function(bars, covariances, blocks) {
  out <- list()
  for (bar in bars$terms) {
    effects <- effects_of_bar(bar)
    prior <- covariances[[bar$name]]$sd
    # exponential ones have a rate, the same for all
    scale <- if (!is.null(prior$scale)) sd_scales(prior, effects)
    for (k in seq_along(effects)) {
      own <- blocks$smooth == levels_label(bar, effects[[k]])
      prior$scale <- scale[k]
      out[[blocks$scale[own]]] <- prior
    }
  }
  out
}
