# model_crossed(): regressions with several grouping factors, whose effects are
# sampled. src/models/crossed.c.

#' Multilevel regressions with several grouping factors
#'
#' The posterior of a generalised linear model with group-level effects of one
#' or more grouping factors, crossed, nested or both: coefficients, the standard
#' deviations and correlations of the effects of each factor, and the effects
#' themselves, of which there may be hundreds of thousands.
#'
#' @param x (numeric matrix, n_row x n_coef) The covariates.
#' @param y (vector of n_row values) The response, as in [model_glm()].
#' @param groups (named list) The grouping factors, at most 8, by name: each the
#'   group of each row (a factor or a vector of n_row values; unused levels are
#'   dropped), or a list of that as `group`, `z`, the covariates whose
#'   coefficients differ between its levels (numeric matrix, n_row x q, at most
#'   3 columns; left out: an intercept), and `correlated` (`TRUE` or `FALSE`:
#'   are the effects of a level correlated?).
#' @param family (string or family object) As in [model_glm()]: any response but
#'   those that are not log-concave, `student()` and `beta_regression()`.
#' @param prior,prior_intercept,prior_aux,weights,offset,sigma As in
#'   [model_glm()].
#' @param prior_covariance ([prior_lkj()], a prior of standard deviations,
#'   `NULL`, or a named list of these) The prior of the effects' standard
#'   deviations and correlations, of all factors or of each by its name; `NULL`:
#'   flat.
#'
#' @details Parameters are the coefficients, then for each factor the logarithms
#' of the standard deviations of its effects (`log_sd_g__x`) and Fisher's z
#' (atanh) of their canonical partial correlations row by row
#' (`atanh_g__x__z`; with two effects of their correlation), and the logarithm
#' of the response's parameter. Effects are none of them: they are kept by
#' [kernel_gibbs()], which is the one kernel of such a model. With one factor
#' [model_groups()] integrates them out, and other kernels sample it.
#'
#' The model keeps the rows in memory once, sorted by the first factor: put the
#' one with the most levels first.
#'
#' @return A `tall_model` for [sg_sample()].
#' @section Conditions: those of [model_glm()]; `tall_error_input` for a factor
#' with one level, with as many levels as rows where a normal response has a
#' sampled `sigma`, or that is the same as another, and for columns of `z` that
#' are linearly dependent; `tall_error_unsupported` for more than three effects
#' or eight factors, or a response that is not log-concave.
#' @references
#' Papaspiliopoulos, Roberts & Zanella (2020). Scalable inference for crossed
#' random effects models. *Biometrika* 107, 25-40.
#' @examples
#' n <- 2000
#' s <- sample(100, n, replace = TRUE)
#' d <- sample(40, n, replace = TRUE)
#' x <- cbind("(Intercept)" = 1, x = rnorm(n))
#' y <- rbinom(n, 1, plogis(x[, "x"] + rnorm(100)[s] + 0.5 * rnorm(40)[d]))
#' model <- model_crossed(x, y, list(s = s, d = d))
#' fit <- sg_sample(model, iter = 300, warmup = 100, chains = 2, seed = 1)
#' fit
#' head(fit$effects)
#' @export
model_crossed <- function(
  x,
  y,
  groups,
  family = "bernoulli",
  prior = prior_normal(0, 2.5),
  prior_intercept,
  prior_aux = prior_exponential(autoscale = TRUE),
  prior_covariance = prior_lkj(),
  weights = NULL,
  offset = NULL,
  sigma = NULL
) {
  check_given(x)
  x <- check_design(x)
  check_given(y)
  check_given(groups)
  priors <- list(
    prior = as_prior(prior),
    prior_intercept = if (!missing(prior_intercept)) as_prior(prior_intercept),
    prior_aux = as_prior(prior_aux),
    prior_covariance = as_covariance_priors(prior_covariance)
  )
  rows <- rows_memory(
    as_double_matrix(as.matrix(x)),
    y,
    weights,
    offset,
    factors = read_factors(groups, x)
  )
  blueprint <- blueprint_crossed(
    resolve_family(family),
    priors,
    sigma,
    centers = FALSE
  )
  build_model(blueprint, rows)
}

# Effects of several factors as numbers of the chains. priors: as of
# blueprint_groups(), prior_covariance for all factors or a list of them by
# name.
blueprint_crossed <- function(family, priors, sigma = NULL, centers = TRUE) {
  new_blueprint(
    "crossed",
    family = family,
    priors = priors,
    sigma = sigma,
    centers = centers
  )
}

# A list of list(name, group, z, correlated).
read_factors <- function(groups, x) {
  is_list <- is.list(groups) && !is.data.frame(groups) && length(groups) > 0
  if (!is_list || !rlang::is_named(groups)) {
    abort_expected(groups, "a named list of grouping factors", arg = "groups")
  }
  if (anyDuplicated(names(groups)) > 0) {
    twice <- names(groups)[duplicated(names(groups))][[1]]
    abort_input(
      "{.arg groups} must have different names, but {.val {twice}} comes
       twice.",
      argument = "groups",
      value = twice
    )
  }
  check_n_factors(length(groups), "groups")
  factors <- lapply(names(groups), function(name) {
    read_factor(groups[[name]], name, x)
  })
  check_factors_differ(factors)
  factors
}

read_factor <- function(given, name, x) {
  arg <- paste0("groups$", name)
  if (!is.list(given)) {
    given <- list(group = given)
  }
  check_known(
    names(given),
    c("group", "z", "correlated"),
    "element",
    arg = arg
  )
  if (is.null(given$group)) {
    abort_input(
      "{.arg {arg}} must have an element {.field group}.",
      argument = arg,
      value = names(given)
    )
  }
  group <- as_group(given$group, paste0(arg, "$group"))
  check_same_rows(x, group, arg = "x", arg_y = paste0(arg, "$group"))
  if (nlevels(group) < 2) {
    abort_input(
      "{.arg {arg}} must have at least two levels, but all rows are of
       {.val {levels(group)}}: there is nothing that could vary.",
      argument = arg,
      expected = 2,
      value = nlevels(group)
    )
  }
  list(
    name = name,
    group = group,
    z = if (!is.null(given$z)) read_slopes(given$z, x, paste0(arg, "$z")),
    correlated = check_flag(
      given$correlated %||% TRUE,
      arg = paste0(arg, "$correlated")
    )
  )
}

read_slopes <- function(z, x, arg) {
  z <- as_double_matrix(as.matrix(check_design(z, arg = arg)))
  check_same_rows(x, z, arg = "x", arg_y = arg)
  if (is.null(colnames(z))) {
    colnames(z) <- paste0("z", seq_len(ncol(z)))
  }
  check_effects(colnames(z), "those of a level are drawn jointly")
  # of columns in one unit
  scale <- sqrt(colSums(z^2))
  is_lost <- scale == 0 | qr(t(t(z) / pmax(scale, 1e-300)))$rank < ncol(z)
  if (any(is_lost)) {
    abort_input(
      c(
        "{.arg {arg}} must have linearly independent columns, and those of
         {.val {colnames(z)}} are not.",
        i = "A slope of a constant is an intercept."
      ),
      argument = arg,
      value = colnames(z)
    )
  }
  z
}

#' @export
build_model.tall_blueprint_crossed <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  factors <- rows$factors
  family <- blueprint$family
  check_grouped_family(family, "drawn given")
  factor_names <- vapply(factors, `[[`, "", "name")
  names <- lapply(factors, function(f) group_names(effect_names_of(f), f))
  variables <- unlist(lapply(names, `[[`, "variables"))
  read <- read_regression(blueprint, rows, function(columns, aux) {
    check_names_differ(c(columns, variables, aux))
  })
  check_factor_rows(factors, family, read)
  entry <- find_response(family)
  facts <- read$facts
  is_sampled <- read$is_sampled
  x <- read$rows$x
  columns <- effect_table(x, factors)
  n_aux <- sum(is_sampled)
  n_lambda <- length(variables)
  functional <- if (blueprint$centers) center_functional(x, n_aux)
  if (!is.null(functional)) {
    functional$weights <-
      append(functional$weights, numeric(n_lambda), ncol(x))
  }
  own <- insert_lambda(read$prior, ncol(x), n_lambda, "flat")
  of <- ncol(x) + seq_len(n_lambda)
  of[unlist(lapply(names, function(n) is_partial(n)))] <- NA_integer_
  new_model(
    "crossed",
    c(
      factor_params(factors, blueprint$priors$prior_covariance, read, entry),
      list(
        x = columns$x,
        n_column = as.double(ncol(columns$x)),
        n_coef = as.double(ncol(x)),
        z = as.double(columns$at - 1),
        y = read$rows$y,
        weights = read$rows$weights,
        offset = read$rows$offset,
        response = facts$place,
        aux = if (length(is_sampled) > 0) unname(read$known_aux),
        prior_kind = as.double(own$kind),
        prior_location = own$location,
        prior_scale = own$scale,
        prior_shape = own$shape,
        prior_at = functional$at,
        prior_functional = functional$weights
      )
    ),
    variables = c(read$coefficients, variables, facts$aux[is_sampled]),
    coordinates = c(
      read$coefficients,
      unlist(lapply(names, `[[`, "coordinates")),
      facts$coordinate[is_sampled]
    ),
    variable_of = c(
      seq_len(ncol(x)),
      of,
      ncol(x) + n_lambda + seq_len(n_aux)
    ),
    n_coef = ncol(x),
    n_lambda = n_lambda,
    n_rows = nrow(x),
    groups = lapply(stats::setNames(factors, factor_names), function(f) {
      list(
        name = f$name,
        levels = levels(f$group),
        effects = effect_names_of(f),
        correlated = f$correlated,
        sizes = as.double(tabulate(f$group, nlevels(f$group)))
      )
    }),
    family = family,
    prior = insert_lambda(read$prior, ncol(x), n_lambda, "exponential"),
    prior_functional = functional,
    sigma = read$sigma,
    traits = model_traits(
      draw = crossed_start(x, factors, names, read$units, n_aux),
      n_aux = n_aux,
      is_swept = TRUE
    ),
    label = "model_crossed"
  )
}

# Of a factor's parameters: the partial correlations that are no correlations.
is_partial <- function(names) {
  n_cor <- length(names$variables) - length(names$effects)
  c(rep(FALSE, length(names$effects)), rep(n_cor > 1, n_cor))
}

# Effects as well as rows: sigma and the standard deviation of the effects
# cannot be told apart.
check_factor_rows <- function(factors, family, read) {
  is_sampled <- family$name == "gaussian" && any(read$is_sampled)
  for (factor in factors) {
    n <- nlevels(factor$group)
    if (is_sampled && n == length(factor$group)) {
      abort_input(
        "Grouping factor {.val {factor$name}} must have fewer levels than rows,
         but each of its {format_count(n)} levels has one: its standard
         deviation and {.field sigma} cannot be told apart.",
        argument = "groups",
        value = n
      )
    }
  }
}

# list(x, at): columns of the coefficients, then those of effects that are none
# of these; and which is that of each effect, factor after factor.
effect_table <- function(x, factors) {
  x <- unname(x)
  at <- integer()
  for (factor in factors) {
    z <- factor$z %||% matrix(1, nrow(x), 1)
    for (j in seq_len(ncol(z))) {
      is_same <- vapply(
        seq_len(ncol(x)),
        function(k) identical(x[, k], z[, j]),
        TRUE
      )
      if (!any(is_same)) {
        x <- cbind(x, z[, j])
        is_same <- c(is_same, TRUE)
      }
      at <- c(at, which(is_same)[[1]])
    }
  }
  list(x = x, at = at)
}

factor_params <- function(factors, prior, read, entry) {
  q <- lengths(lapply(factors, effect_names_of))
  covariances <- lapply(factors, function(factor) {
    covariance_params(
      covariance_prior_of(prior, factor$name, factors),
      effect_names_of(factor),
      read$rows$y,
      entry$has_units
    )
  })
  each <- function(name) as.double(unlist(lapply(covariances, `[[`, name)))
  list(
    n_level = vapply(factors, function(f) as.double(nlevels(f$group)), 0),
    n_effect = as.double(q),
    correlated = vapply(factors, function(f) as.double(f$correlated), 0),
    level = unlist(lapply(factors, function(f) as.integer(f$group))),
    lkj = each("lkj"),
    sd_kind = each("sd_kind"),
    sd_df = each("sd_df"),
    sd_scale = each("sd_scale")
  )
}

# priors: of as_covariance_priors(). Of a list those that it does not name have
# the usual one.
covariance_prior_of <- function(priors, name, factors) {
  if (is.object(priors)) {
    return(priors)
  }
  known <- vapply(factors, `[[`, "", "name")
  check_known(names(priors), known, "factor", arg = "prior_covariance")
  priors[[name]] %||% prior_lkj()
}

# Starting points: effects that differ by half a unit, within a factor of two or
# so. Coefficients and effects follow from the first sweep.
crossed_start <- function(x, factors, names, units, n_aux) {
  size <- 0.5 * (units$sd %||% 1)
  lambda <- unlist(lapply(seq_along(factors), function(k) {
    most <- apply(abs(factors[[k]]$z %||% matrix(1)), 2, max)
    n_cor <- length(names[[k]]$variables) - length(most)
    c(log(size / most), numeric(n_cor))
  }))
  start <- c(
    numeric(ncol(x)),
    lambda,
    if (n_aux > 0) log(units$aux_sd %||% 1)
  )
  spread <- c(numeric(ncol(x)), rep(0.3, length(lambda)), rep(0.1, n_aux))
  function(normals) start + spread * normals(length(start))
}

# Names of all effects as the core has them, level after level.
effect_names <- function(model) {
  unlist(lapply(unname(model$groups), function(factor) {
    effects <- gsub("(Intercept)", "Intercept", factor$effects, fixed = TRUE)
    paste0(
      "r_", factor$name, "[",
      rep(factor$levels, each = length(effects)),
      ",", effects, "]"
    )
  }))
}

# Of a factor, effects of all its levels.
n_effects <- function(factor) {
  as.double(length(factor$levels)) * length(factor$effects)
}

# Effects before those of a factor, of all levels of those before it.
effect_start <- function(factors, name) {
  before <- factors[seq_len(match(name, names(factors)) - 1)]
  sum(vapply(before, n_effects, 0))
}

# Numbers of the effects of some levels of a factor among all effects, level
# after level.
level_places <- function(factors, name, levels) {
  q <- length(factors[[name]]$effects)
  effect_start(factors, name) + rep((levels - 1) * q, each = q) +
    rep(seq_len(q), length(levels))
}

# Numbers of the levels of each factor that is wanted, by its name.
check_factor_levels <- function(groups, factors, arg = "groups") {
  every <- lapply(factors, function(factor) seq_along(factor$levels))
  if (is.null(groups)) {
    return(every)
  }
  if (is.character(groups)) {
    check_known(groups, names(factors), "grouping factor", arg = arg)
    return(every[groups])
  }
  if (!is.list(groups) || !rlang::is_named(groups)) {
    abort_expected(
      groups,
      "names of grouping factors, or a list of levels by these names",
      arg = arg
    )
  }
  check_known(names(groups), names(factors), "grouping factor", arg = arg)
  Map(
    function(given, factor) check_group_levels(given, factor$levels, arg),
    groups,
    factors[names(groups)]
  )
}

check_group_levels <- function(groups, levels, arg = "groups") {
  if (is.null(groups)) {
    return(seq_along(levels))
  }
  at <- match(as.character(groups), levels)
  if (anyNA(at)) {
    bad <- groups[is.na(at)][[1]]
    abort_input(
      "{.arg {arg}} must be levels of the grouping factor, which
       {.val {as.character(bad)}} is not.",
      argument = arg,
      value = bad
    )
  }
  at
}

# Numbers among all effects of those whose draws are kept: NULL, of none.
# factors: the model's, or a fit's.
kept_places <- function(kernel, factors) {
  keep <- kernel$args$keep_effects
  if (is.list(keep)) {
    chosen <- check_factor_levels(keep, factors, "keep_effects")
    places <- Map(
      function(name, at) level_places(factors, name, at),
      names(chosen),
      chosen
    )
    sort(unique(unlist(places, use.names = FALSE)))
  } else if (identical(keep, "draws")) {
    seq_len(sum(vapply(factors, n_effects, 0)))
  }
}
