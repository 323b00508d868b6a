# tall_multinom() and tall_polr(): regressions of a formula whose response is
# one of several classes.

#' Bayesian multinomial and ordinal regression for tall data
#'
#' `tall_multinom()` fits a regression of unordered classes (softmax),
#' `tall_polr()` one of ordered classes with a cumulative link, with nothing to
#' tune. With few rows draws are exact; with many they are of Langevin steps on
#' minibatches, whose bias is estimated and printed.
#'
#' @param formula (formula) As in [stats::glm()]. The response is a factor,
#'   text, `FALSE` and `TRUE`, or whole numbers 1, 2, ... of unordered classes,
#'   the first of which is the reference; of `tall_polr()` an [ordered()]
#'   factor, `FALSE` and `TRUE`, or whole numbers 1, 2, ...
#' @param data (data frame or [source][tall_source]) The data; the rows of a
#'   source are brought to memory, see *Rows that are alike*.
#' @param method (string) The distribution function of an ordinal regression:
#'   `"logistic"` or `"probit"`.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of the
#'   coefficients; `NULL`: flat. `stan_polr()`'s prior of \eqn{R^2} is not
#'   followed.
#' @param prior_intercept (`tall_prior` or `NULL`) The prior of the predictor of
#'   each class where all covariates are at their means.
#' @param prior_counts (positive number, one for each class, or `NULL`) The
#'   counts of the Dirichlet prior of the classes' probabilities where all
#'   covariates are at their means; `NULL`: flat thresholds.
#' @param weights,subset,na.action As in [stats::glm()]; weights are counts.
#' @param offset As in [stats::glm()], of `tall_polr()` only.
#' @param storage (string) As in [tall_glm()].
#' @param ... The run: arguments of [sg_sample()] but `model`.
#' @param keep_data (`TRUE` or `FALSE`) Keep the model frame in the fit, as
#'   [tall_glm()] does?
#' @param compress (`"exact"` or numbers by name) Columns of `data` that are
#'   rounded, see *Rounded columns* of [tall_glm()].
#'
#' @details See [model_classes()] for the models, their priors and sources.
#' Where no kernel is given the recipe takes Langevin steps with control
#' variates of order 2 ([gradient_cv()]): a row acts through more than one
#' predictor, which exact steps do not allow. Where the posterior is far from
#' normal, or rows are few, exact steps on all rows take their place, and their
#' time is told before they start. A Metropolis kernel that is given moves in
#' whitened coordinates, see [kernel_mala()].
#'
#' Coefficients of `tall_multinom()` are named `class:term`, against the class
#' that is the reference; thresholds of `tall_polr()` `1|2`, as by
#' [MASS::polr()], and are where \eqn{P(y \le k) = F(c_k - x^\top b)}{P(y <= k)
#' = F(c_k - x'b)}.
#'
#' @section Rows that are alike: Of more than 2,000 rows those with the same
#' covariates, response, weight and offset count as one, with their number as
#' its weight, where no more than a quarter of the rows differ: with factors and
#' whole numbers for covariates there are few combinations, and the design
#' matrix is made of these alone. A sample of 2,000 rows tells first whether to
#' look. The posterior is that of all rows, whose means and standard deviations
#' scale the priors; the line `Plan` of the printed fit says how many differ.
#' [nobs()], `fitted()`, [log_lik()][log-lik], [loo()][loo-tall_glm] and
#' `pp_check()` are of all rows. Where a `kernel` takes minibatches, or with
#' `lambda`, each row counts by itself: the user has said how many a step draws.
#' After it was read from a file such a fit goes on from the data that it kept
#' (`keep_data = TRUE`); a [model_classes()] of all rows is not its model.
#'
#' A source is read block by block, once, and of its rows the columns are kept
#' that the call needs: of alike rows one, and 4 bytes of each row that say
#' which it is like, as long as no more than a quarter of those read so far
#' differ. What looks at all rows after the fit makes them again. Where a
#' variable may depend on other rows (`scale(x)`, `poly(x, 2)`, a function of
#' the user's), or on what is no column, all rows are kept as they are.
#'
#' [tall_glm()] does the same with rows in memory where formulas are of two
#' parameters, or a parameter beside the mean is sampled, of counts and
#' proportions: there, too, a weight is a number of rows.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_multinom", "tall_classes",
#'   "tall_fit")` or `c("tall_polr", "tall_classes", "tall_fit")`.
#' @section Conditions: those of [sg_sample()] and [model_classes()];
#' `tall_error_input` for a response that has one class, a class that never
#' occurs or, of `tall_polr()`, an unordered factor.
#' @seealso [predict.tall_classes()], [model_classes()]
#' @examples
#' fit <- tall_multinom(Species ~ Sepal.Width, iris, iter = 500, seed = 1)
#' fit
#' predict(fit, data.frame(Sepal.Width = c(2.5, 4)), type = "probs")
#' @export
tall_multinom <- function(
  formula,
  data,
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5),
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  storage = c("double", "float"),
  ...,
  keep_data = TRUE,
  compress = "exact"
) {
  run <- front_run(
    ...,
    .front = tall_multinom,
    .without = c(
      offset = "Unordered classes have a predictor each.",
      family = "Unordered classes have one: multinomial, with the logit link."
    )
  )
  check_given(formula)
  check_flag(keep_data)
  check_beside_rounding(compress, c(lambda = !is.null(run$lambda)))
  priors <- list(
    prior = as_prior(prior),
    prior_intercept = as_prior(prior_intercept)
  )
  storage <- check_choice(storage, names(storage_types))
  asked <- new_asked(
    "tall_multinom",
    match.call(),
    parent.frame(),
    environment()
  )
  blueprint <- blueprint_classes("softmax", priors, storage)
  fit_regression(new_class_front(asked, blueprint, keep_data), run)
}

#' @rdname tall_multinom
#' @examples
#' cars <- transform(mtcars, gears = ordered(gear))
#' tall_polr(gears ~ wt, cars, iter = 500, seed = 1)
#' @export
tall_polr <- function(
  formula,
  data,
  method = c("logistic", "probit"),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_counts = 1,
  weights = NULL,
  subset = NULL,
  na.action = stats::na.omit,
  offset = NULL,
  storage = c("double", "float"),
  ...,
  keep_data = TRUE,
  compress = "exact"
) {
  run <- front_run(
    ...,
    .front = tall_polr,
    .without = c(family = "{.arg method} says which link ordered classes have.")
  )
  check_given(formula)
  check_flag(keep_data)
  check_beside_rounding(compress, c(lambda = !is.null(run$lambda)))
  method <- check_choice(method, c("logistic", "probit"))
  priors <- list(prior = as_prior(prior), prior_counts = prior_counts)
  storage <- check_choice(storage, names(storage_types))
  asked <- new_asked("tall_polr", match.call(), parent.frame(), environment())
  blueprint <- blueprint_classes(method, priors, storage)
  fit_regression(new_class_front(asked, blueprint, keep_data), run)
}

# Either of them.
new_class_front <- function(asked, blueprint, keep_data) {
  is_ordered <- class_methods[[blueprint$method]]$is_ordered
  new_front(
    "classes",
    c(asked$name, "tall_classes"),
    asked,
    blueprint,
    request_classes(is_ordered),
    keep_data,
    takes = c("weights", if (is_ordered) "offset")
  )
}

#' @export
front_rows.tall_front_classes <- function(front, run) {
  tell <- function(rows, n) tell_in_memory(rows, n, run)
  rows <- frame_of_source(front, classes_instead, tell)
  if (is.null(rows)) {
    front$asked <- collect_classes(front$asked, run)
    rows <- front_frame(front)
  }
  rows
}

#' @export
front_reader.tall_front_classes <- function(front, rows, read) {
  c(NextMethod(), compact(list(offset_source = rows$call$offset)))
}

#' @export
front_ready.tall_front_classes <- function(front, model, read, reader, run) {
  model <- front_model(model, run)
  if (!is.null(run$monitor)) {
    check_monitor(run$monitor, model)
  }
  tell_class_cost(model, run)
  new_ready(model, run)
}

#' @export
front_parts.tall_front_classes <- function(front, ready, read, fit) {
  list(
    design_columns = read$columns,
    method = front$blueprint$method,
    n_coef = length(ready$model$variables),
    storage = ready$model$storage
  )
}

# All rows of a source, and how much memory they take.
collect_classes <- function(asked, run) {
  was_frame <- is.data.frame(asked$data)
  asked <- collect_asked(asked, classes_instead)
  rows <- asked$data
  if (is.data.frame(rows) && !was_frame) {
    tell_in_memory(rows, nrow(rows), run)
  }
  asked
}

classes_instead <- c(
  i = "{.fn tall_store} writes a design matrix to a file, from which
       {.fn model_classes} maps its rows.",
  i = "Or select the columns that {.arg formula} needs before."
)

# n: rows that these are, alike ones once.
tell_in_memory <- function(rows, n, run) {
  if (run$control$refresh == 0) {
    return(invisible())
  }
  bytes <- size_of(rows) + if (n > nrow(rows)) 4 * n else 0
  cli::cli_inform(c(
    i = "{format_count(n)} {cli::qty(n)}row{?s} of {.arg data} {?is/are} now in
         memory: {format_bytes(bytes)}."
  ))
}

# Where no kernel is given the mode takes passes for a Hessian of all
# coefficients: what the call may take, before it starts. Whole calls took 7 ns
# for each row and entry.
tell_class_cost <- function(model, run, most = 60) {
  seconds <- 7e-9 * model$n_data * model$n_dim^2
  if (!is.null(run$kernel) || run$control$refresh == 0 || seconds <= most) {
    return(invisible())
  }
  cli::cli_inform(c(
    i = "This may take {format_seconds(seconds)} of one core:
         {format_count(model$n_dim)} parameters have a Hessian of
         {format_count(model$n_dim^2)} entries, to which each of
         {format_count(model$n_data)} rows adds in every pass.",
    i = "Fewer columns or classes are faster."
  ))
}
