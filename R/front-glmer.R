# tall_glmer(): the front end for formulas with group-level terms.

#' Bayesian multilevel models for tall data
#'
#' Fits a generalised linear model whose coefficients differ between groups,
#' with nothing to tune. With one grouping factor the effects of each group are
#' integrated out, so that a group is one datum: a step looks at a few groups,
#' however many there are. The effects of several factors, crossed or nested,
#' are sampled: of many levels by sweeps over all rows, of few from sums over
#' the rows or a few of them, wherever they lie.
#'
#' @param formula (formula) As in [tall_glm()], with group-level terms by lme4's
#'   conventions: `(1 | g)`, `(1 + x | g)`, or `(1 + x || g)` for effects that
#'   are not correlated; at most three effects of each of up to eight grouping
#'   factors. Crossed factors have terms of their own, `(1 | a) + (1 | b)`; a
#'   factor may be an interaction, `a:b`, and `(1 | a/b)`, `b` nested in `a`, is
#'   `(1 | a) + (1 | a:b)`.
#' @param data (data frame, or a [source][tall_source]) The data. Those of a
#'   source are brought to memory, but with `store`, see *Rows in a file*, and
#'   for several grouping factors of few levels, see *Few levels*.
#' @param family (family object, function or string) As in [tall_glm()]:
#'   [gaussian()], [binomial()] with its links, [poisson()], [neg_binomial_2()],
#'   `Gamma("log")`.
#' @param prior,prior_intercept,prior_aux,weights,subset,na.action,offset,sigma
#'   As in [tall_glm()].
#' @param prior_covariance ([prior_lkj()], a prior of standard deviations,
#'   `NULL`, or of several grouping factors a named list of these) The prior of
#'   the standard deviations and correlations of the effects; `NULL`: flat. The
#'   default is that of brms.
#' @param ... The run: arguments of [sg_sample()] but `model`, with the same
#'   defaults. `lambda` and `monitor` are refused.
#' @param keep_data (`TRUE` or `FALSE`) Keep the model frame in the fit? Methods
#'   that look at the effects of one factor's groups need it, or the fit in the
#'   session that made it.
#' @param keep_effects (`"summary"`, `"draws"`, `"none"`, a list or `NULL`) What
#'   is kept of the effects of several grouping factors, see [kernel_gibbs()];
#'   `NULL`: draws where they take 200 MB at most, else means, standard
#'   deviations and quantiles. Predictions with effects need draws.
#' @param store (string or `NULL`) With one grouping factor the path of a new
#'   file for data beyond memory, see *Rows in a file*.
#'
#' @details With linear predictor \eqn{x_i^\top \beta + z_i^\top u_{g(i)}}{x_i'
#' beta + z_i' u_g(i)} and \eqn{u_g \sim N(0, \Sigma)}{u_g ~ N(0, Sigma)}, the
#' effects \eqn{u_g} are integrated out by adaptive Gauss-Hermite quadrature;
#' see [model_groups()]. The number of nodes is the first of 9, 15, 25, 41 in
#' each dimension whose gradient is within 0.02 of the next one's, in posterior
#' standard deviations; where groups are all but alike and their standard
#' deviation large, 101, 201 or 401 equal steps for a single effect. Gaussian
#' responses are exact.
#'
#' Draws are those of the coefficients, the standard deviations `sd_g__x`, the
#' correlations `cor_g__Intercept__x`, as brms calls them, and of the response's
#' parameter. Effects of groups come afterwards, see
#' [ranef()][tall_glmer-methods].
#'
#' Of several grouping factors, \eqn{\sum_k z_{ik}^\top u_{k, g_k(i)}}{sum_k
#' z_ik' u_k,g_k(i)}, effects do not factorise over groups. They are sampled
#' beside the parameters by exact sweeps, [kernel_gibbs()] with
#' [model_crossed()], with moves that keep crossed and nested effects from
#' sticking; `thin` aside, up to four sweeps a draw where these take little
#' time. Factors whose rows connect their levels poorly, as workers who seldom
#' change firms, would be slow: passes over the rows foretell it, with standard
#' deviations of a pilot where these matter, and all effects of a Gaussian
#' response are then drawn jointly; of others a message says it before the run,
#' with the sweeps that one independent draw of some effects takes.
#' `fit$recipe$mixing` is what a sweep leaves of where it started, at most. Rows
#' of a Gaussian response that are equal but for it and their weights are one, a
#' cell, to the sweeps, where many are;
#' `fit$recipe$cells` counts them. Beyond one a chain, `cores` share the rows
#' and levels of a sweep, and draws do not depend on them. The datum is a row
#' then: [nobs()] counts rows, `log_lik()` and `loo()` are of rows given the
#' effects of their groups, where with one factor they are of groups.
#'
#' @section Rows in a file: With `store` the rows of one grouping factor are
#' never all in memory. Three passes read them block by block, from any source
#' or a data frame: a look that finds levels and a pilot, as in [tall_glm()];
#' one that counts the rows of each group; and one that writes them to the file,
#' 8 bytes a number, those of a group after each other. The model maps the file,
#' whose pages the system keeps in memory as far as there is room. The Gaussian
#' rows of a group become the triangular factor of its design and response, a
#' row more than there are columns at most; with two or three effects, rows of a
#' group with the same covariates, offset and response become one, with their
#' number as weight. Memory grows with the number of groups, not with that of
#' rows: 1.6 million rows of 5,000 groups took 127 MB, 0.4 million 126; with two
#' or three effects also with the rows of the largest group. Beside the file its
#' folder has, meanwhile, 8 bytes for each row of a Gaussian response, and where
#' rows become one a second file. Draws are those of the same rows in
#' memory and the same `seed`, but for rounding where a response has units, as a
#' Gaussian one, whose spread is summed in another order; and but for a factor
#' that a function makes, such as `factor(g)`, whose groups may come in another
#' order.
#'
#' Predictions, [fitted()][fitted-values] and others that look at rows pass over
#' the source; effects of groups and [sg_resume()] read the file, which must
#' stay where it is, also for a fit that was saved. `kfold()` brings the rows to
#' memory where they are few. Up to 65,536 rows are fitted in memory, without a
#' file. Terms that depend on other rows than their own are refused, and of
#' streams, files and tables the pilot gives the constants of `poly()` and
#' others (see [tall_glm()]). The rows of several grouping factors cannot go to
#' a file, since sweeps look at all of them for each draw.
#'
#' @section Few levels: Several grouping factors that have few levels in all, up
#' to about a thousand, of more than 65,536 rows or those of a source, are
#' columns, each with a coefficient, as [tall_gam()] has them. Rows are then
#' passed over as by [tall_glm()], wherever they lie, and never all in memory. A
#' Gaussian response takes two passes, another one a look, a search for the mode
#' and a pass that draws rows; steps look at sums, or at a few rows, and draws
#' are exact: 3 million binary responses of 20 and 6 groups took 6 processor
#' seconds (`bench/crossed.R`).
#' Where steps look at so many rows that a pass would have to draw a fourth of
#' all, the columns are brought to memory, if they take a gigabyte at most.
#' Effects are draws, as those of sweeps, which have the same posterior. That is
#' done where it takes less time than sweeps, by count, and each grouping factor
#' is a column of the data or two with a `:` between; effects are those of an
#' intercept and of columns of numbers, not correlated (`||`); their standard
#' deviations have proper priors, the default's scale being that of some 65,536
#' rows where the response is Gaussian; and there is no `kernel`, no `init`, and
#' the parameter of a response other than a Gaussian one is known. All else is
#' swept, for which the rows of a source are brought to memory, and a message
#' says why: also of few levels correlated slopes, as in `(1 + x | g)`, and
#' [neg_binomial_2()] and `Gamma("log")` with a sampled parameter. `kernel =
#' kernel_gibbs()` asks for sweeps.
#'
#' @section The recipe: With one grouping factor of up to 50 groups, or where
#' the posterior of a parameter is far from normal, as that of a standard
#' deviation near 0 is, all groups are looked at in every step
#' ([kernel_mala()]), and draws are exact but for the quadrature, where the
#' response is not Gaussian: `print()` tells
#' the nodes and the error that they leave, `fit$quadrature` has them (*What
#' exact means* of [summary()][summary.tall_fit()]).
#' Otherwise Leimkuhler-Matthews dynamics take control variates of order 2, as
#' in [sg_sample()], with groups in the place of rows, drawn by their leverages
#' to the power of 3/2. `print()` says which it was, and why. A Metropolis
#' kernel that is given moves in whitened coordinates, see [kernel_mala()], with
#' the same nodes.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_glmer", "tall_fit")`,
#'   before which of several grouping factors `"tall_crossed"` stands.
#' @section Conditions: `tall_error_input` for a formula or data that cannot be
#' used: one group, every group with one row and a Gaussian response, as many
#' groups as rows, effects of covariates that do not vary within any group, a
#' grouping factor twice, or two that part the rows alike;
#' `tall_error_unsupported` for more than three effects, and for responses that
#' are not log-concave; `tall_error_data` for a file that cannot be written or
#' read, `tall_error_corrupt` for one that was altered;
#' `tall_error_memory` for rows that do not fit in memory,
#' with what they take; `tall_error_source` for a source that gives other rows
#' or groups in a later pass. `tall_warning_nodes` where even the most
#' nodes leave an error of the quadrature. Those of [sg_sample()].
#' @references
#' Pinheiro & Bates (1995). Approximations to the log-likelihood function in the
#' nonlinear mixed-effects model. *Journal of Computational and Graphical
#' Statistics* 4, 12-35.
#'
#' Papaspiliopoulos, Roberts & Zanella (2020). Scalable inference for crossed
#' random effects models. *Biometrika* 107, 25-40.
#' @seealso [tall_glmer-methods], [predict.tall_glmer()], [prior_lkj()]
#' @examples
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' fit
#' head(ranef(fit)$g)
#'
#' # students who rate teachers
#' d$teacher <- sample(20, 600, replace = TRUE)
#' eta <- 0.3 * rnorm(60)[d$g] + 0.3 * rnorm(20)[d$teacher]
#' d$rating <- rpois(600, exp(eta))
#' both <- tall_glmer(
#'   rating ~ x + (1 | g) + (1 | teacher),
#'   data = d,
#'   family = poisson(),
#'   iter = 500,
#'   seed = 1
#' )
#' VarCorr(both)
#'
#' # rows by group in a file
#' many <- d[sample(600, 7e4, TRUE), ]
#' many$score <- many$x + rnorm(60)[many$g] + rnorm(7e4)
#' file <- tempfile(fileext = ".tall")
#' stored <- tall_glmer(
#'   score ~ x + (1 | g),
#'   data = many,
#'   store = file,
#'   iter = 500,
#'   seed = 1
#' )
#' file.size(file)
#' @export
tall_glmer <- function(
  formula,
  data,
  family = stats::gaussian(),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5, autoscale = TRUE),
  prior_aux = prior_exponential(autoscale = TRUE),
  prior_covariance = prior_lkj(),
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  offset = NULL,
  sigma = NULL,
  ...,
  keep_data = TRUE,
  keep_effects = NULL,
  store = NULL
) {
  if (is_hurdle(family)) {
    zeros <- quote(tallbayes::tall_glm)
    name <- hurdle_name(family)
    return(fit_hurdle(name, match.call(), parent.frame(), zeros))
  }
  run <- front_run(
    ...,
    .front = tall_glmer,
    .without = c(
      lambda = "The likelihood of groups has no power of its own.",
      monitor = "Effects of groups are no parameters that could be watched."
    )
  )
  check_given(formula)
  check_flag(keep_data)
  check_new_store(store, FALSE)
  formula <- with_limits(one_formula(formula), "cens")
  family <- censored_family(resolve_family(family), formula)
  bars <- read_bars(formula)
  is_several <- length(bars$terms) > 1
  priors <- list(
    prior = as_prior(prior),
    prior_intercept = as_prior(prior_intercept),
    prior_aux = as_prior(prior_aux),
    prior_covariance = if (is_several) {
      as_covariance_priors(prior_covariance)
    } else {
      as_covariance_prior(prior_covariance)
    }
  )
  asked <- new_asked("tall_glmer", match.call(), parent.frame(), environment())
  takes <- c("weights", "offset")
  if (is_several) {
    check_no_store(store)
    check_grouped_family(family, "drawn given")
    check_no_limits(family)
    is_free <- is.null(run$kernel) &&
      (is.null(keep_effects) || identical(keep_effects, "draws"))
    run$kernel <- kernel_of_effects(run$kernel, keep_effects)
    front <- new_front(
      "crossed",
      c("tall_crossed", "tall_glmer"),
      asked,
      blueprint_crossed(family, priors, sigma),
      request_crossed(family, bars, sigma),
      keep_data,
      takes = takes,
      whitens = FALSE,
      in_columns = is_free
    )
    return(fit_regression(front, run))
  }
  check_grouped_family(family)
  check_keeps_no_effects(keep_effects)
  front <- new_front(
    "groups",
    "tall_glmer",
    asked,
    blueprint_groups(family, priors, sigma),
    request_groups(family, split_bars(bars), sigma),
    keep_data,
    takes = takes,
    in_place = FALSE,
    store = store
  )
  fit_regression(front, run)
}

# Sweeps look at all rows again and again.
check_no_store <- function(store) {
  if (!is.null(store)) {
    abort_input(
      c(
        "{.arg store} is for one grouping factor, whose rows lie by group.",
        i = "The rows of several are swept in memory; of factors with few levels
             in all they are passed over, see {.help tall_glmer}."
      ),
      argument = "store",
      value = store
    )
  }
}

# By group in a file, or in memory.
#' @export
fit_of_front.tall_front_groups <- function(front, run) {
  fit_in_groups(front, run) %||%
    fit_in_memory(front, front_rows(front, run), run)
}

# Sweeps read one number a row.
check_no_limits <- function(family) {
  if (has_limits(family)) {
    abort_tall(
      "unsupported",
      "{.code cens()} is for one grouping factor, not for several.",
      argument = "formula"
    )
  }
}

# Where there are few levels they are columns, and rows are passed over.
#' @export
fit_of_front.tall_front_crossed <- function(front, run) {
  passed <- fit_levels(front, run)
  if (!is.null(passed$fit)) {
    return(passed$fit)
  }
  front$asked <- collect_asked(
    front$asked,
    swept_instead,
    before = passed$digest,
    wanted = wanted_columns(front$asked, front$takes)
  )
  rows <- front_rows(front, run)
  fit_in_memory(front, rows, run, passed$start["spent"])
}

# Effects of one factor are integrated out, and made of draws afterwards.
check_keeps_no_effects <- function(keep_effects) {
  if (!is.null(keep_effects)) {
    abort_input(
      c(
        "{.arg keep_effects} is for several grouping factors, whose effects are
         sampled.",
        i = "Those of one are integrated out: {.fn ranef} makes them of the
             draws."
      ),
      argument = "keep_effects",
      value = keep_effects
    )
  }
}

# What to do where rows do not fit in memory.
groups_instead <- list(
  tall_glmer = c(
    i = "Give the path of a new file as {.arg store}: passes write the rows
         there, 8 bytes a number, those of a group after each other, and memory
         holds a block of them."
  ),
  tall_surv = c(
    i = "Frailties of up to some hundred groups are columns beside a hazard in
         pieces, {.code basehaz = \"piecewise\"}: rows are then passed over."
  )
)

swept_instead <- c(
  i = "Several grouping factors are swept, which takes all rows in memory, about
       five times these bytes; factors with up to a thousand levels in all are
       not, see {.help tall_glmer}.",
  i = "With one grouping factor the rows go to a file, {.arg store}."
)

# The frame has the variables of all parts of the formula.
#' @export
front_rows.tall_front_groups <- function(front, run) {
  wanted <- wanted_columns(front$asked, front$takes)
  instead <- groups_instead[[front$asked$name]] %||% passes_instead
  asked <- collect_asked(front$asked, instead, wanted = wanted)
  asked$formula <- asked$matched$formula <- front$request$bars$frame
  front$asked <- asked
  front_frame(front)
}

#' @export
front_rows.tall_front_crossed <- front_rows.tall_front_groups

#' @export
front_reader.tall_front_groups <- function(front, rows, read) {
  formula <- front$asked$formula
  reader <- list(
    formula = formula,
    family = front$blueprint$family,
    bars = front$request$bars,
    terms = read$terms,
    columns = rows$columns,
    response_levels = read$levels
  )
  c(reader, row_sources(
    front$blueprint$family,
    read$y,
    counts = if (!is.null(read$trials)) formula[[2]],
    weights = rows$call$weights,
    offset = rows$call$offset
  ))
}

#' @export
front_reader.tall_front_crossed <- front_reader.tall_front_groups

#' @export
front_parts.tall_front_groups <- function(front, ready, read, fit) {
  model <- ready$model
  list(
    sigma = front$blueprint$sigma,
    design = read$design,
    n_coef = model$n_coef,
    n_rows = model$n_rows,
    groups = model$groups,
    # in each dimension
    nodes = fit$quadrature$nodes %||% 3
  )
}

#' @export
front_parts.tall_front_crossed <- function(front, ready, read, fit) {
  list(
    sigma = front$blueprint$sigma,
    design = read$design,
    n_coef = ready$model$n_coef,
    factors = ready$model$groups
  )
}
