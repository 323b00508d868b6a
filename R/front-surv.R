# tall_surv(): times to an event.

#' Bayesian survival models for tall data
#'
#' Times to an event that may not be seen: models of the hazard, in pieces of
#' time or of a parametric form, or of the time itself, with [tall_glm()]'s ways
#' of drawing from the posterior, its sources of rows and its methods.
#'
#' @param formula (formula) `Surv(time, event) ~ x`, with the arguments of
#'   `survival::Surv()`, which need not be attached: `Surv(time, event)` for
#'   times that are censored on the right, `Surv(start, stop, event)` for rows
#'   that were seen from `start` on, `Surv(time, event, type = "left")`,
#'   `Surv(lower, upper, type = "interval2")`, or `Surv(time, time2, status,
#'   type = "interval")`. Events are `TRUE` and `FALSE`, or 1 and 0: rows are
#'   read block by block, and 1 and 2 are refused instead of being guessed. In
#'   memory the left side may also be a column that `survival::Surv()` made.
#' @param data (data frame, [source][tall_source] or matrix) As of
#'   [tall_glm()]; of a database the arguments of `Surv()` are columns.
#' @param basehaz (string) The law of the times, with \eqn{u = e^\eta}{u =
#'   exp(eta)}, \eqn{\eta = \beta_0 + x^T \beta}{eta = b_0 + x'b}, and a shape
#'   \eqn{k} or a standard deviation \eqn{\sigma}{sigma}:
#'   \describe{
#'   \item{`"piecewise"`}{Proportional hazards, with a baseline hazard that is
#'     constant in `pieces` of time: what is between Cox's model, which leaves
#'     it free, and the next ones. See *Hazards in pieces*.}
#'   \item{`"weibull"`}{Proportional hazards, with the cumulative hazard
#'     \eqn{H(t) = u (t/b)^k}{H(t) = u (t / b)^k}, \eqn{b} the `unit`.}
#'   \item{`"exp"`}{The same with \eqn{k = 1}: a constant hazard \eqn{u/b}{u /
#'     b}.}
#'   \item{`"weibull-aft"`, `"exp-aft"`}{The same laws as accelerated failure
#'     times, \eqn{S(t) = \exp(-(t/u)^k)}{S(t) = exp(-(t / u)^k)}.}
#'   \item{`"lognormal"`}{\eqn{\log t \sim N(\eta, \sigma^2)}{log t ~ N(eta,
#'     sigma^2)}.}
#'   \item{`"loglogistic"`}{\eqn{S(t) = 1/(1 + (t/u)^k)}{S(t) = 1 / (1 + (t /
#'     u)^k)}.}
#'   }
#'   Coefficients of the first three are log hazard ratios: a positive one is
#'   more events. Those of the others multiply times: a positive one is a longer
#'   life. Of Weibull laws the latter are the former divided by \eqn{-k}.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of the
#'   coefficients; `NULL`: flat.
#' @param prior_intercept (`tall_prior` or `NULL`) That of the linear predictor
#'   where all covariates are at their means; `NULL`: flat. It is wide, as in
#'   rstanarm: times have units.
#' @param prior_aux (`tall_prior` or `NULL`) The prior of `shape`, or of
#'   `sigma`; `NULL`: flat.
#' @param prior_covariance (`tall_prior`) The prior of the standard deviations
#'   and correlations of frailties, see [prior_lkj()].
#' @param prior_smooth (`tall_prior`) The prior of the standard deviations of
#'   smooth terms, see [prior_smooth], and of the log hazards in pieces.
#' @param pieces (whole number, increasing vector of times above 0, or `NULL`)
#'   Of a hazard in pieces: how many, or where one ends and the next begins.
#'   `NULL`: 25, fewer where a piece would have less than ten events, and more
#'   from 10,000 events on, in proportion to the fourth root of their number;
#'   200 at most.
#' @param unit (positive number or `NULL`) The unit of time \eqn{b} of
#'   proportional hazards, which the intercept refers to: it is the log of the
#'   cumulative hazard at \eqn{b}. `NULL`: of `"weibull"` the geometric mean of
#'   times (of a source those of its first rows), rounded to one digit, and 1 of
#'   `"exp"`. With a unit far from the times, the intercept and the shape go
#'   together along a curve, which chains are slow to follow.
#' @inheritParams tall_glm
#' @param weights,subset,na.action,offset As in [tall_glm()]; weights are counts
#'   of equal rows, and a row of weight 0 is left out.
#'
#' @details
#' A row that ends at \eqn{t} and was seen from \eqn{t_0} on has the likelihood
#' \eqn{f(t) / S(t_0)} where the event was seen, and \eqn{S(t) / S(t_0)} where
#' it was not; one that is censored on the left has \eqn{1 - S(t)}, and one
#' whose event lies between two times \eqn{S(t) - S(t')}. Times must be above 0:
#' a row that ends where it begins says nothing, and an event at 0 has no
#' density. Rows of time-varying covariates are `Surv(start, stop, event)`, one
#' for each stretch of time.
#'
#' With a hazard in pieces or a known shape (`"exp"`), and without frailties
#' that are integrated out, draws are exact, and steps look at few rows where
#' there are many; with a sampled shape a fit of few rows takes exact steps that
#' look at all of them, and one of many those of [kernel_sgld()] with
#' `gradient_cv(order = 2)`, whose bias is estimated; the line `Plan` says which
#' it was.
#'
#' A group-level term, `(1 | g)` or `(1 + x | g)`, is a normal frailty on the
#' scale of the predictor, integrated out as in [tall_glmer()], whose
#' [ranef()][tall_glmer-methods] and `VarCorr()` such fits have; of one factor,
#' and with a log-normal or log-logistic law where no row enters late.
#'
#' Smooth terms, `s(x)` and their kin, are those of [tall_gam()], whose methods
#' such fits have, too; a frailty beside them, or beside a hazard in pieces, is
#' a term of theirs, whose effects are coefficients: for up to some hundred
#' groups.
#'
#' Competing risks have no likelihood here: fit one model for each cause, with
#' other causes censored.
#'
#' @section Hazards in pieces:
#' With `basehaz = "piecewise"` the hazard of row \eqn{i} is
#' \deqn{h_i(t) = \exp(\alpha_k + \eta_i), \qquad t \in (c_{k-1}, c_k],}{h_i(t)
#' = exp(alpha_k + eta_i), t in (c_(k-1), c_k],} its likelihood (Friedman 1982)
#' \deqn{\delta_i (\alpha_{k(i)} + \eta_i) - e^{\eta_i} \sum_k \Delta_{ik}
#' e^{\alpha_k},}{d_i (alpha_k(i) + eta_i) - exp(eta_i) sum_k Delta_ik
#' exp(alpha_k),} \eqn{\Delta_{ik}}{Delta_ik} how long it is at risk in piece
#' \eqn{k}. The \eqn{\alpha_k}{alpha_k} are a random walk: their steps are
#' normal, with variances in proportion to the distance of the middles of the
#' pieces, and a standard deviation that is a parameter, `smooth_sd[basehaz]`,
#' with the prior `prior_smooth`. Over the events their mean is 0, so that the
#' intercept is the mean log hazard, and the standard deviation is that of the
#' log hazard around it before data are seen. Pieces end at quantiles of the
#' times of events (of a source, of its pilot's); after the last one the hazard
#' stays. Draws have the steps as `basehaz.1`, `basehaz.2`, ..., which `print()`
#' leaves out: [posterior_survfit()] and `predict(type = "hazard")` show what
#' they make. Rows are not split; sums over pieces and rows are made from those
#' by the pieces in which rows begin and end.
#'
#' Coefficients are those of Cox's model (`survival::coxph(ties = "breslow")`)
#' but for two things. A hazard that is constant within a piece leaves out what
#' it changes by there: a tenth of a standard deviation or less with the pieces
#' of the default, less with more `pieces`. And the prior of the walk smooths
#' the hazard where there are few events: 0.2 standard errors of 128 deaths
#' (`survival::veteran`), hardly anything of a thousand. Efron's way with ties,
#' the default of `coxph()`, differs from Breslow's where many share a time.
#' Times must be censored on the right, or rows begin late.
#'
#' @section Strata:
#' With a term `strata(g)`, as of `survival::strata()`, the hazards of strata
#' are not proportional: each has pieces of its own, at quantiles of its events,
#' and a random walk of its own, \deqn{h_i(t) = \exp(\alpha_{g(i), k} + \eta_i),
#' \qquad t \in (c_{g(i), k-1}, c_{g(i), k}].}{h_i(t) = exp(alpha_(g(i), k) +
#' eta_i), t in (c_(g(i), k-1), c_(g(i), k)].} All walks have the standard
#' deviation `smooth_sd[basehaz]`. To the design \eqn{g} is a factor: its
#' coefficients, `strata(g)b`, are the differences of mean log hazards from the
#' first stratum's, each over the events of its own, with the prior `prior`;
#' they are no hazard ratios. `x:strata(g)` beside it gives `x` an effect of its
#' own in each stratum; `g` itself must not be a term as well. Coefficients of
#' others are those of Cox's stratified model, but that the walks smooth strata
#' with few events: of four with 30 deaths each (`survival::veteran`) an effect
#' is 0.7 standard errors nearer to 0. Combinations of several variables are
#' `strata(a, b)`, by the alphabet. Together the strata have 200 pieces, or
#' fewer, where `pieces` does not say how many each has. Predictions are those
#' of the row's stratum, concordance is of pairs in the same one, and
#' [ph_check()] leaves the hazard of each free.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_surv", "tall_glm",
#'   "tall_fit")`, with `basehaz`, and `horizon`, the largest time.
#' @section Conditions: Those of [tall_glm()]. `tall_error_input` where no row
#'   has an event, a time is not above 0, or a row ends before its entry;
#'   `tall_error_unsupported` for events of several kinds, frailties of several
#'   factors, and with `basehaz = "piecewise"` times that are censored on the
#'   left or in intervals; with another one `strata()`.
#' @references
#' Friedman (1982). Piecewise exponential models for survival data with
#' covariates. *Annals of Statistics* 10, 101.
#'
#' Kalbfleisch & Prentice (2002). *The Statistical Analysis of Failure Time
#' Data*. Wiley.
#' @seealso [predict.tall_surv()], [posterior_survfit()]
#' @examplesIf requireNamespace("survival", quietly = TRUE)
#' d <- survival::lung
#' fit <- tall_surv(Surv(time, status == 2) ~ age + sex, d, seed = 1)
#' fit
#' plot(posterior_survfit(fit, type = "haz"))
#' summary(fit) # with hazard ratios
#' predict(fit, data.frame(age = 60, sex = 1:2), type = "median")
#' @export
tall_surv <- function(
  formula,
  data,
  basehaz = c(
    "piecewise", "weibull", "exp", "weibull-aft", "exp-aft", "lognormal",
    "loglogistic"
  ),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 20),
  prior_aux = prior_exponential(),
  prior_covariance = prior_lkj(),
  prior_smooth = prior_exponential(autoscale = TRUE),
  pieces = NULL,
  unit = NULL,
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  offset = NULL,
  storage = c("double", "float"),
  ...,
  prior_PD = FALSE,
  keep_data = TRUE,
  store = NULL
) {
  run <- front_run(..., .front = tall_surv)
  check_given(formula)
  check_no_splines(basehaz)
  basehaz <- check_choice(basehaz, c("piecewise", names(hazard_families)))
  in_pieces <- basehaz == "piecewise"
  pieces <- check_pieces(pieces)
  check_number(unit, positive = TRUE, allow_null = TRUE)
  check_glm_front(prior_PD, run, keep_data, store)
  storage <- check_choice(storage, names(storage_types))
  priors <- glm_priors(prior, prior_intercept, prior_aux)
  asked <- new_asked("tall_surv", match.call(), parent.frame(), environment())
  check_surv_formula(asked$formula, in_pieces)
  if (basehaz == "weibull") {
    unit <- unit %||% usual_unit(asked)
  }
  family <- if (in_pieces) {
    asked <- ask_right(asked)
    pieces_family(pieces)
  } else {
    hazard_families[[basehaz]](unit %||% 1)
  }
  is_frail <- frailty_is_out(asked$formula, in_pieces)
  has_smooths <- !is_frail && has_columns_of_scales(asked$formula)
  has_sds <- has_smooths || in_pieces
  check_idle(c(
    pieces = !is.null(pieces) && !in_pieces,
    prior_aux = !missing(prior_aux) && in_pieces,
    unit = !is.null(unit) && !basehaz %in% c("weibull", "exp"),
    prior_smooth = !missing(prior_smooth) && !has_sds,
    prior_covariance = !missing(prior_covariance) && !is_frail,
    lambda = !is.null(run$lambda) && is_frail,
    monitor = !is.null(run$monitor) && is_frail,
    prior_PD = prior_PD && is_frail,
    storage = storage != "double" && is_frail,
    store = !is.null(store) && is_frail
  ))
  if (has_smooths) {
    asked <- ask_smooths(asked, NULL)
  }
  if (has_sds) {
    priors$prior_smooth <- as_prior_smooth(prior_smooth)
  }
  front <- if (is_frail) {
    priors$prior_covariance <- as_covariance_prior(prior_covariance)
    front_frailty(asked, family, priors, keep_data)
  } else {
    new_front(
      "glm",
      c("tall_surv", if (has_smooths) "tall_gam", "tall_glm"),
      asked,
      blueprint_glm(family, priors, storage = storage),
      request_glm(family),
      keep_data,
      takes = c("weights", "offset"),
      prior_PD = prior_PD,
      store = store
    )
  }
  front$basehaz <- basehaz
  front$prior_smooth <- priors$prior_smooth
  front$told <- new.env(parent = emptyenv())
  class(front) <- c(
    "tall_front_surv",
    if (has_smooths) "tall_front_gam",
    class(front)
  )
  fit_regression(front, run)
}

# What was given and has nothing to say of this model. idle: by name.
check_idle <- function(idle) {
  if (any(idle)) {
    name <- names(idle)[idle][[1]]
    abort_input(
      c("{.arg {name}} has no place here.", i = idle_arguments[[name]]),
      argument = name
    )
  }
}

beside_frailty <- "It is not for formulas with a group-level term."

idle_arguments <- c(
  pieces = "They are of {.code basehaz = \"piecewise\"}.",
  prior_aux = "A hazard in pieces has no shape; {.arg prior_smooth} is of its
               steps.",
  unit = "Proportional hazards, {.val weibull} and {.val exp}, have a unit.",
  prior_smooth = "It is of smooth terms, such as {.code s(x)}.",
  prior_covariance = "It is of a group-level term, {.code (1 | g)}, without
                      smooth terms beside it.",
  lambda = beside_frailty,
  monitor = beside_frailty,
  prior_PD = beside_frailty,
  storage = beside_frailty,
  store = beside_frailty
)

# mgcv's, as tall_gam() takes them.
has_smooth_terms <- function(formula) {
  inherits(formula, "formula") && length(formula) == 3 && any(vapply(
    formula_terms(formula[[3]]),
    function(term) {
      !is.null(foreign_name(term, smooth_names, environment(formula)))
    },
    TRUE
  ))
}

# Is a frailty integrated out? Beside smooth terms, or pieces, it is columns.
frailty_is_out <- function(formula, in_pieces) {
  has_frailty(formula) && !in_pieces && !has_smooth_terms(formula)
}

has_columns_of_scales <- function(formula) {
  has_smooth_terms(formula) || has_frailty(formula)
}

# A group-level term on the right of the formula: the group's frailty.
has_frailty <- function(formula) {
  inherits(formula, "formula") && length(formula) == 3 &&
    !is.null(find_bar(formula[[3]]))
}

# Effects of groups are integrated out.
front_frailty <- function(asked, family, priors, keep_data) {
  bars <- read_bars(asked$formula)
  if (length(bars$terms) > 1) {
    abort_tall(
      "unsupported",
      "{.arg formula} must have one grouping factor, not
       {length(bars$terms)}: frailties of several are not available.",
      argument = "formula",
      value = asked$formula
    )
  }
  new_front(
    "groups",
    c("tall_surv", "tall_glmer"),
    asked,
    blueprint_groups(family, priors),
    request_groups(family, split_bars(bars)),
    keep_data,
    takes = c("weights", "offset"),
    in_place = FALSE
  )
}

# The response of a name of `basehaz`.
hazard_families <- list(
  weibull = function(unit) new_family(response_weibull(), aux = c(NA, unit)),
  exp = function(unit) new_family(response_weibull(), aux = c(1, unit)),
  `weibull-aft` = function(unit) new_family(response_weibull_aft()),
  `exp-aft` = function(unit) new_family(response_weibull_aft(), aux = 1),
  lognormal = function(unit) new_family(response_lognormal()),
  loglogistic = function(unit) new_family(response_loglogistic())
)

# A unit of time that is close to the data's times, a round number: where log t
# is near 0 a hazard's level and its shape are known apart. Of rows at hand, a
# source's first ones.
usual_unit <- function(asked) {
  found <- tryCatch(
    {
      data <- if (!asked$has_data) {
        list()
      } else if (is.data.frame(asked$data)) {
        asked$data
      } else {
        source_head(data_source(asked$data))
      }
      y <- eval(asked$formula[[2]], data, environment(asked$formula))
      time <- limits_response(y, "y")[, 1]
      signif(exp(mean(log(time[which(time > 0)]))), 1)
    },
    error = function(e) NULL
  )
  # what is wrong with the rows is told where they are read
  if (length(found) == 1 && is.finite(found) && found > 0) found else 1
}

# Hazards of no law but pieces.
check_no_splines <- function(basehaz) {
  name <- if (rlang::is_string(basehaz)) basehaz else ""
  instead <- c(
    bs = "a spline",
    ms = "a spline",
    cox = "Cox's partial likelihood",
    pw = "that name"
  )
  if (name %in% names(instead)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg basehaz} must not be {.val {name}}: there is no hazard of
         {instead[[name]]}.",
        i = "With {.code basehaz = \"piecewise\"} it is constant in pieces, as
             many as the data bear."
      ),
      argument = "basehaz",
      value = basehaz
    )
  }
}

# The same of rows that are censored on the right, block by block.
ask_right <- function(asked) {
  formula <- with_limits(asked$formula, "right")
  asked$formula <- formula
  asked$matched$formula <- formula
  asked
}

# The hazard's pieces, when the times are known, and their steps as a block.
#' @export
settle_response.tall_front_surv <- function(
  front,
  y,
  weight,
  columns,
  frame
) {
  blueprint <- front$blueprint
  if (!has_pieces(blueprint$family)) {
    return(front)
  }
  check_right(y, "tall_surv(basehaz = \"piecewise\")")
  check_some_event(y)
  # others are refused where the model is made
  is_time <- y[, 1] > 0 & is.finite(y[, 1])
  if (!any(is_time & y[, 3] == 1)) {
    return(front)
  }
  strata <- rows_by_strata(frame, columns)
  strata$of <- strata$of[is_time]
  blueprint$family <- settle_pieces(
    blueprint$family,
    y[is_time, , drop = FALSE],
    weight[is_time],
    strata
  )
  n_column <- length(columns)
  of <- blueprint$blocks$of %||% integer(n_column)
  names <- setdiff(blueprint$blocks$names, pieces_block)
  n_step <- length(blueprint$family$pieces$names)
  blueprint$blocks <- list(
    of = c(of[seq_len(n_column)], rep(length(names) + 1L, n_step)),
    names = c(names, pieces_block)
  )
  blueprint$priors$prior_smooth <- front$prior_smooth
  front$blueprint <- blueprint
  front
}

#' @export
front_reader.tall_front_surv <- function(front, rows, read) {
  check_some_event(read$y)
  # up to where curves are drawn
  front$told$horizon <- max(read$y[, 1])
  NextMethod()
}

# Without one the hazard is 0. y: of all rows, or of a pilot that has rows of
# every outcome.
check_some_event <- function(y) {
  if (all(y[, 3] == 0)) {
    abort_input(
      c(
        "{.arg data} must have at least one event: all rows are censored.",
        i = "The likelihood rises as the hazard goes to 0."
      ),
      argument = "formula",
      value = 0
    )
  }
}

#' @export
front_parts.tall_front_surv <- function(front, ready, read, fit) {
  c(NextMethod(), list(basehaz = front$basehaz, horizon = front$told$horizon))
}
