# tall_glm(): the front end for a formula and a data frame.

#' Bayesian generalised linear models for tall data
#'
#' Type a formula, get draws of the posterior, with nothing to tune. For most
#' regressions they are exact: independent draws from sums over the rows, or
#' chains whose steps look at a few rows. Elsewhere the bias is estimated; the
#' line `Plan` of a printed fit says which it was, and why.
#'
#' @param formula (formula) As in [stats::glm()]: factors, interactions and
#'   [offset()] are fine; group-level terms such as `(1 | g)` are refused. A
#'   list of two: see *Formulas of two parameters*. What brms' `bf()` makes of
#'   one formula is that formula, in all front ends. The left side may be `y |
#'   cens(status)` or `y | cens(status, y2)`: see *Censored numbers*.
#' @param data (data frame, [source][tall_source] or matrix) The data: a data
#'   frame, paths of CSV or Parquet files ([tall_csv()], [tall_parquet()]), a
#'   [tall_stream()], a [tall_store()], a matrix with names of its columns, a
#'   lazy table (`dplyr::tbl()`) whose rows stay in the database, or a list of
#'   such, one after the other.
#'   See *Rows that are passed over*.
#' @param family (family object, function or string) [gaussian()], [binomial()],
#'   [poisson()], with their canonical links; `binomial("probit")`,
#'   `binomial("cloglog")`, `Gamma("log")`; [neg_binomial_2()], [student()],
#'   [beta_regression()], [truncated_poisson()], [hurdle_poisson()],
#'   [zero_inflated_poisson()]. A
#'   binomial response is 0/1, logical, a factor with two levels,
#'   `cbind(successes, failures)`, or a proportion with the number of trials as
#'   `weights`, as in [stats::glm()]; their product, the number of successes,
#'   must be whole.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of the
#'   coefficients; `NULL`: flat.
#' @param prior_intercept (`tall_prior` or `NULL`) The prior of the intercept:
#'   of the linear predictor where all covariates are at their means, as in
#'   rstanarm; `NULL`: flat.
#'   The draws of `(Intercept)` are those of the formula's own intercept. With
#'   `autoscale` in a Gaussian model it is centred at the mean of the response,
#'   less its offset.
#' @param prior_aux (`tall_prior`, list or `NULL`) The prior of the parameter
#'   that some responses have beside their mean, such as `sigma` in a Gaussian
#'   model: [prior_exponential()], [prior_gamma()] or [prior_flat()]; `NULL`:
#'   flat. A list by name where there are two: `list(sigma =
#'   prior_exponential(), nu = prior_gamma(2, 0.1))`; one prior is that of
#'   `sigma`.
#' @param weights,subset,na.action,offset As in [stats::glm()]; evaluated in
#'   `data`. Weights are at least 0; a row of weight 0, or of no trials, is left
#'   out, as one with missing values. In Gaussian and Student models weights are
#'   precisions:
#'   row \eqn{i} has standard deviation \eqn{\sigma / \sqrt{w_i}}{sigma /
#'   sqrt(w_i)}, everywhere.
#' @param sigma (positive number or `NULL`) The residual standard deviation of
#'   a Gaussian model, or the scale of a Student one, if it is known; `NULL`:
#'   it is a parameter. Known parameters of others are arguments of their
#'   families.
#' @param storage (string) How the model keeps its rows: `"double"` or, in half
#'   the memory, `"float"`; see [model_glm()].
#' @param sparse (`TRUE`, `FALSE` or `NULL`) Keep the design without its zeros,
#'   as [model_glm()] keeps a sparse matrix? It is then made by
#'   [Matrix::sparse.model.matrix()], and takes memory and time in proportion to
#'   what is not zero: for factors of many levels. `NULL`: where at most a
#'   quarter of it is not zero.
#' @param prior_PD (`TRUE` or `FALSE`) Draw from the prior instead of the
#'   posterior, as in rstanarm? The data then say which columns there are, and
#'   on what scale. Independent draws; priors of coefficients must be normal, or
#'   have scales of their own.
#' @param keep_data (`TRUE` or `FALSE`) Keep in the fit what `predict()` without
#'   `newdata`, [sg_resume()] and others read rows from: the model frame, or the
#'   source where rows were passed over (how a stream is opened, the paths of
#'   files; a data frame itself, of which there is no copy before the fit is
#'   saved)? `fit$rows` has it, and prints what rows they are, where they lie
#'   and how much memory they take. With it go, for [tall_append()], the rows
#'   that a pass drew, or those that differ, up to 32 MB.
#' @param store (string or `NULL`) The path of a new file for data beyond
#'   memory: a run that needs all rows at once writes the design there block by
#'   block, as [tall_store()] does, instead of bringing it to memory. Other runs
#'   do not use it.
#' @param compress (`"exact"` or numbers by name) Columns of `data` that are
#'   rounded, and to multiples of what: `c(age = 1)`. See *Rounded columns*.
#' @param ... The run, as in [sg_sample()], where each is described:
#'   `iter = 2000` iterations of a chain, warmup included;
#'   `warmup = floor(iter / 2)`; `thin = 1`; `chains = 4`;
#'   `cores = getOption("mc.cores", 1)`; `seed = NULL`, from R's generator;
#'   `kernel = NULL`, where the recipe finds all settings (a Metropolis kernel
#'   moves in whitened coordinates, see [kernel_mala()]); `refresh = 1`; and
#'   `gradient`, `subsample`, `schedule`, `init`, `lambda`, `keep`, `variables`
#'   and `monitor`, where held-out data are data frames. Others are refused,
#'   those of rstanarm, brms and [stats::glm()] that have no place here with
#'   what does their work.
#'
#' @details Covariates are used as they are, whatever their scale: sampling is
#' in whitened coordinates. A Gaussian response with normal or flat priors is
#' drawn from independently, see *The recipe* of [sg_sample()]. The default
#' priors are rstanarm's: normal with standard deviation 2.5, divided by that of
#' the column, for coefficients; normal with standard deviation 2.5 for the
#' intercept at the means; in a Gaussian model both are multiplied by the
#' standard deviation of the response, and `sigma` is exponential with that as
#' its mean. With weights that is the response's
#' standard deviation at weight 1, see [prior_exponential()].
#'
#' @section Censored numbers:
#' Of Gaussian, [student()], Poisson and [neg_binomial_2()] responses, also of
#' [tall_gam()] and [tall_glmer()], the left side may be `y | cens(status)` or
#' `y | cens(status, y2)`, as in brms, where some numbers are known to lie
#' beyond limits no more. By its `status` a row says
#' * `"none"` (or 0, `FALSE`): the number is `y`;
#' * `"right"` (1, `TRUE`): it is `y` or above; a count is **above** `y`,
#'   \eqn{P(Y > y)}{P(Y > y)};
#' * `"left"` (-1): it is `y` or below, \eqn{P(Y \le y)}{P(Y <= y)};
#' * `"interval"` (2): it is between `y` and `y2`; a count is **above** `y`, and
#'   `y2` or below, \eqn{P(y < Y \le y_2)}{P(y < Y <= y2)}.
#'
#' So "5 or more" is a count of `y = 4` to the right, "0 to 3" one of `y = 3` to
#' the left, and "5 to 9" the interval of `y = 4` and `y2 = 9`; an interval has
#' `y` below `y2`. Predictions, and what `posterior_predict()` draws,
#' are of the number, seen or not; residuals take the limit for the number, with
#' a warning; `log_lik()` and `loo()` have the probabilities above.
#'
#' @section Formulas of two parameters:
#' `list(y ~ x, sigma ~ z)`, or brms' `bf(y ~ x, sigma ~ z)`, has a regression
#' of the second parameter, too: `sigma` of [gaussian()] and [student()],
#' `shape` of [neg_binomial_2()] and `Gamma("log")`, `phi` of
#' [beta_regression()], whose logarithm is linear, and `zi` of
#' [zero_inflated_poisson()], whose logit is: \deqn{\log\sigma_i =
#' z_i^\top \gamma.}{log sigma_i = z_i'c.} Gaussian, Student and negative
#' binomial responses may have `cens()` on the left as well. Its coefficients
#' are `sigma_(Intercept)`, `sigma_z`. Priors are those of the mean's
#' coefficients, on the scale of the link; with `autoscale` that of the
#' intercept of `sigma` is centred at the log standard deviation of the
#' response. A list by name has
#' one of each: `prior = list(mu = prior_normal(), sigma = prior_normal(0, 1))`.
#' Rows are brought to memory. Draws are exact where rows are few, with steps
#' that look at all of them; of many rows steps are those of [kernel_sgld()]
#' with `gradient_cv(order = 2)`. Predictions, `loo()` and others are those of
#' the whole law; [posterior-dpar] has the second parameter by itself.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_glm", "tall_fit")`; with
#'   formulas of two parameters `c("tall_dpar", "tall_regression", "tall_fit")`.
#' @section Conditions: `tall_error_source` for a source that fails, or gives
#' other rows in another pass; `tall_error_memory` where rows, or what is made
#' of them, do not fit in memory.
#' Those of [sg_sample()] and [model_glm()]; `tall_error_input` for a formula or
#' data that cannot be used, `tall_error_unsupported` for group-level terms.
#' @references
#' Cornish, Vanetti, Bouchard-Cote, Deligiannidis & Doucet (2019). Scalable
#' Metropolis-Hastings for exact Bayesian inference with large datasets. *ICML*.
#'
#' Jordan, Lee & Yang (2019). Communication-efficient distributed statistical
#' inference. *Journal of the American Statistical Association* 114, 668-681.
#' @seealso [summary.tall_fit()], [plot.tall_fit()], [predict.tall_glm()],
#'   [sg_resume()]; [robust_draws()] for rows in clusters and sampling weights
#' @examples
#' fit <- tall_glm(
#'   am ~ wt + factor(cyl),
#'   data = mtcars,
#'   family = binomial(),
#'   seed = 1
#' )
#' fit
#' summary(fit)
#' predict(fit, data.frame(wt = 3, cyl = 6), type = "response")
#'
#' # counts of which no more is known than that they are above 4
#' d <- data.frame(x = rnorm(200))
#' d$y <- rpois(200, exp(1 + 0.5 * d$x))
#' d$side <- ifelse(d$y > 4, "right", "none")
#' d$y <- pmin(d$y, 4)
#' coef(tall_glm(y | cens(side) ~ x, d, poisson(), iter = 500, seed = 1))
#' @export
tall_glm <- function(
  formula,
  data,
  family = stats::gaussian(),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5, autoscale = TRUE),
  prior_aux = prior_exponential(autoscale = TRUE),
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  offset = NULL,
  sigma = NULL,
  storage = c("double", "float"),
  ...,
  sparse = FALSE,
  prior_PD = FALSE,
  keep_data = TRUE,
  store = NULL,
  compress = "exact"
) {
  if (is_hurdle(family)) {
    return(fit_hurdle(hurdle_name(family), match.call(), parent.frame()))
  }
  run <- front_run(..., .front = tall_glm)
  check_given(formula)
  check_sparse(sparse)
  check_glm_front(prior_PD, run, keep_data, store, sparse)
  check_beside_rounding(
    compress,
    c(
      store = !is.null(store),
      prior_PD = prior_PD,
      lambda = !is.null(run$lambda)
    )
  )
  storage <- check_choice(storage, names(storage_types))
  if (has_dpar(formula, family)) {
    idle <- c(
      sigma = !is.null(sigma),
      sparse = isTRUE(sparse),
      prior_PD = prior_PD,
      monitor = !is.null(run$monitor),
      store = !is.null(store),
      compress = !identical(compress, "exact")
    )
    return(fit_dpar(
      environment(),
      match.call(),
      parent.frame(),
      run,
      idle,
      !missing(prior_aux)
    ))
  }
  priors <- glm_priors(prior, prior_intercept, prior_aux)
  family <- resolve_family(family)
  asked <- new_asked("tall_glm", match.call(), parent.frame(), environment())
  family <- censored_family(family, asked$formula)
  front <- new_front(
    "glm",
    "tall_glm",
    asked,
    blueprint_glm(family, priors, sigma, storage),
    request_glm(family, sparse),
    keep_data,
    takes = c("weights", "offset"),
    prior_PD = prior_PD,
    store = store
  )
  fit_regression(front, run)
}

# The rows of a data frame that are many, and those of a source, are passed
# over; where a run needs all of them, they are written to a file or brought to
# memory.
#' @export
fit_of_front.tall_front_glm <- function(front, run) {
  asked <- front$asked
  if (!asked$has_data || is_small_frame(asked$data)) {
    return(NextMethod())
  }
  source <- data_source(asked$data)
  passed <- fit_in_passes(front, source, run)
  fit <- passed$fit
  if (is.null(fit)) {
    passed <- with_bringing(passed, source)
    front$blueprint$family <- passed$family %||% front$blueprint$family
  }
  if (is.null(fit) && !is.null(front$store)) {
    fit <- fit_in_store(front, source, run, passed)
  }
  if (!is.null(fit)) {
    return(fit)
  }
  front$asked <- collect_asked(
    asked,
    before = passed$digest,
    wanted = wanted_columns(asked, front$takes)
  )
  fit_in_memory(front, front_rows(front, run), run, passed$start)
}

# passed: of fit_in_passes(); rows are brought where any can be had, in a pass.
with_bringing <- function(passed, source) {
  if (!inherits(source, "tall_source_frame")) {
    ledger <- new_ledger()
    spend(ledger, "recipe", 1)
    passed$start$spent <- ledger$passes + (passed$start$spent %||% 0)
  }
  passed
}

# Rows of a data frame that are looked at one and all. What is no source at all
# is refused where model frames are made.
is_small_frame <- function(data) {
  if (is.data.frame(data)) {
    nrow(data) <= setting("look")$rows
  } else {
    !is_source_like(data)
  }
}

#' @export
front_reader.tall_front_glm <- function(front, rows, read) {
  c(NextMethod(), list(sparse = read$sparse), row_sources(
    front$blueprint$family,
    read$y,
    counts = if (!is.null(read$trials)) front$asked$formula[[2]],
    weights = rows$call$weights,
    offset = rows$call$offset
  ))
}

#' @export
front_ready.tall_front_glm <- function(front, model, read, reader, run) {
  known <- front$blueprint[c("family", "sigma")]
  reader <- as_reader(c(reader, known), "tall_glm")
  run$monitor <- resolve_monitors(run$monitor, reader)
  model <- front_model(model, run)
  if (front$prior_PD) {
    model <- from_prior_alone(model)
  }
  new_ready(model, run)
}

#' @export
front_parts.tall_front_glm <- function(front, ready, read, fit) {
  list(
    n_coef = ready$model$n_coef,
    sigma = front$blueprint$sigma,
    storage = ready$model$storage,
    prior_PD = front$prior_PD
  )
}

# Arguments that tall_glm() and its kin have alike.
check_glm_front <- function(prior_PD, run, keep_data, store, sparse = FALSE) {
  check_flag(prior_PD)
  check_prior_run(prior_PD, run)
  check_flag(keep_data)
  check_new_store(store, sparse)
}

glm_priors <- function(prior,
                       prior_intercept,
                       prior_aux,
                       frame = caller_env()) {
  list(
    prior = as_prior(prior, frame = frame),
    prior_intercept = as_prior(prior_intercept, frame = frame),
    prior_aux = as_aux_prior(prior_aux, frame = frame)
  )
}

check_prior_run <- function(prior_PD, run) {
  given <- c("kernel", "lambda")[c(!is.null(run$kernel), !is.null(run$lambda))]
  if (prior_PD && length(given) > 0) {
    abort_input(
      "{.arg {given[[1]]}} has no place with {.code prior_PD = TRUE}: draws from
       the prior are independent.",
      argument = given[[1]]
    )
  }
}

check_sparse <- function(sparse) {
  if (!is.null(sparse) && !rlang::is_bool(sparse)) {
    abort_expected(sparse, "TRUE, FALSE or NULL", arg = "sparse")
  }
}

#' @rdname tall_glm
#'
#' @param x (numeric matrix, n_data x n_dim, a sparse one of \pkg{Matrix}, or
#'   [tall_store()]) The design matrix, used as it is; a column named
#'   `(Intercept)` is the intercept. Of a store the fit keeps the file's path.
#' @param y (vector of n_data values, or matrix of two columns) The response, as
#'   in a formula.
#'
#' @details `tall_glm.fit()` takes a design matrix instead of a formula, as
#' rstanarm's `stan_glm.fit()` does. Its fits have the same methods, with a
#' matrix as `newdata`.
#'
#' @examples
#'
#' x <- cbind("(Intercept)" = 1, wt = mtcars$wt)
#' fit <- tall_glm.fit(x, mtcars$am, family = binomial(), seed = 1)
#' predict(fit, x[1:3, ], type = "response")
#' @export
tall_glm.fit <- function(
  x,
  y,
  family = stats::gaussian(),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5, autoscale = TRUE),
  prior_aux = prior_exponential(autoscale = TRUE),
  weights = NULL,
  offset = NULL,
  sigma = NULL,
  storage = c("double", "float"),
  ...,
  keep_data = TRUE
) {
  run <- front_run(..., .front = tall_glm.fit)
  check_flag(keep_data)
  priors <- glm_priors(prior, prior_intercept, prior_aux)
  family <- resolve_family(family)
  check_given(x)
  x <- if (is_store(x)) check_store(x) else check_design(x)
  check_given(y)
  weights <- check_numeric_vector(weights, size = nrow(x), allow_null = TRUE)
  check_row_weights(weights)
  data <- list(x = x, y = y, weights = weights, offset = offset)
  if (NROW(y) == nrow(x)) {
    data <- weighted_rows(data)
  }
  asked <- new_asked(
    "tall_glm.fit",
    match.call(),
    parent.frame(),
    environment()
  )
  front <- new_front(
    "matrix",
    "tall_glm",
    asked,
    blueprint_glm(
      family,
      priors,
      sigma,
      check_choice(storage, names(storage_types))
    ),
    request_glm(family),
    keep_data,
    data = data
  )
  fit_regression(front, run)
}

#' @export
front_rows.tall_front_matrix <- function(front, run) {
  rows_matrix(front$data, front$blueprint$family)
}

#' @export
front_reader.tall_front_matrix <- function(front, rows, read) {
  row_sources(
    front$blueprint$family,
    read$y,
    counts = if (!is.null(read$trials)) quote(trials),
    weights = if (!is.null(rows$weights)) quote(weights),
    offset = if (!is.null(rows$offset)) quote(offset)
  )
}

#' @export
front_parts.tall_front_matrix <- function(front, ready, read, fit) {
  list(
    n_coef = ready$model$n_coef,
    sigma = front$blueprint$sigma,
    storage = ready$model$storage,
    response_levels = read$levels,
    has_names = !is.null(colnames(front$data$x))
  )
}

# Of tall_glm.fit()'s data: rows of weight 0 or without trials do not count.
weighted_rows <- function(data) {
  out <- weightless_rows(data$y, data$weights)
  if (length(out) == 0) {
    return(data)
  }
  n <- nrow(data$x)
  if (is_store(data$x)) {
    abort_input(
      c(
        "{.arg weights} must be positive, and trials be there, in every row:
         rows of a file cannot be left out.",
        x = "Row {out[[1]]} does not count.",
        i = "Write a file without such rows."
      ),
      argument = "weights",
      value = out
    )
  }
  check_numeric_vector(data$offset, size = n, allow_null = TRUE, arg = "offset")
  keep <- seq_len(n)[-out]
  list(
    x = data$x[keep, , drop = FALSE],
    y = if (is.matrix(data$y)) data$y[keep, ] else data$y[keep],
    weights = data$weights[keep],
    offset = data$offset[keep]
  )
}

#' @export
independent_law.tall_glm <- function(fit, model) {
  if (isTRUE(fit$prior_PD)) {
    plan_prior(model, fit$control)$sums
  } else {
    NextMethod()
  }
}
