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
#'   source are brought to memory.
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
  keep_data = TRUE
) {
  run <- front_run(
    ...,
    .front = tall_multinom,
    .without = c(offset = "Unordered classes have a predictor each.")
  )
  check_given(formula)
  check_flag(keep_data)
  settings <- list(
    method = "softmax",
    specs = list(
      prior = as_prior(prior),
      prior_intercept = as_prior(prior_intercept)
    ),
    storage = check_choice(storage, names(storage_types)),
    na.action = na.action,
    keep_data = keep_data
  )
  fit_classes(settings, formula, data, match.call(), parent.frame(), run)
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
  keep_data = TRUE
) {
  run <- front_run(..., .front = tall_polr)
  check_given(formula)
  check_flag(keep_data)
  settings <- list(
    method = check_choice(method, c("logistic", "probit")),
    specs = list(prior = as_prior(prior), prior_counts = prior_counts),
    storage = check_choice(storage, names(storage_types)),
    na.action = na.action,
    keep_data = keep_data
  )
  fit_classes(settings, formula, data, match.call(), parent.frame(), run)
}

# matched: the front end's call; `data` is not read where that has none.
fit_classes <- function(settings, formula, data, matched, caller, run) {
  is_ordered <- class_methods[[settings$method]]$is_ordered
  front <- if (is_ordered) "tall_polr" else "tall_multinom"
  written <- written_call(matched, front, caller)
  has_data <- "data" %in% names(matched)
  if (has_data && !is.data.frame(data) && is_source_like(data)) {
    data <- class_rows_of(data_source(data), run)
    matched$data <- data
  }
  wanted <- c("formula", "data", "weights", "subset", "na.action")
  made <- make_frame(
    matched,
    formula,
    data,
    c(wanted, if (is_ordered) "offset"),
    settings$na.action,
    caller
  )
  parts <- class_parts(made$frame, is_ordered)
  model <- class_model(parts, settings, response_name(made$frame))
  model <- front_model(model, run)
  if (!is.null(run$monitor)) {
    check_monitor(run$monitor, model)
  }
  tell_class_cost(model, run)
  fit <- front_sample(model, run, in_place = TRUE, whitens = TRUE)
  terms <- attr(made$frame, "terms")
  own <- list(
    formula = formula,
    terms = terms,
    xlevels = stats::.getXlevels(terms, made$frame),
    contrasts = parts$contrasts,
    columns = data_columns(
      terms,
      made$call,
      if (has_data) data,
      environment(formula)
    ),
    design_columns = colnames(parts$x),
    offset_source = made$call$offset,
    method = settings$method,
    response_levels = parts$response$levels,
    n_coef = length(model$variables),
    storage = model$storage,
    prior_specs = settings$specs,
    frame = if (settings$keep_data) made$frame
  )
  front_fit(fit, c(front, "tall_classes"), written, c(own, left_out(made)))
}

# All rows of a source, and how much memory they take.
class_rows_of <- function(source, run) {
  rows <- collect_source(source, c(
    i = "{.fn tall_store} writes a design matrix to a file, from which
         {.fn model_classes} maps its rows.",
    i = "Or select the columns that {.arg formula} needs before."
  ))
  if (run$control$refresh > 0) {
    bytes <- as.double(utils::object.size(rows))
    cli::cli_inform(c(
      i = "{format_count(nrow(rows))} {cli::qty(nrow(rows))}row{?s} of
           {.arg data} {?is/are} now in memory: {format_bytes(bytes)}."
    ))
  }
  rows
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

class_model <- function(parts, settings, arg_y) {
  build_classes(
    parts$x,
    parts$response,
    settings$method,
    settings$specs,
    parts$weights,
    parts$offset,
    settings$storage,
    arg_y = arg_y
  )
}

# list(x, response, weights, offset, contrasts) of a model frame.
class_parts <- function(frame, is_ordered) {
  check_covariates(frame)
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (is.null(response)) {
    abort_input(
      "{.arg formula} must have a response on its left-hand side.",
      argument = "formula"
    )
  }
  offset <- stats::model.offset(frame)
  if (!is_ordered && !is.null(offset)) {
    abort_tall(
      "unsupported",
      "Unordered classes have a predictor each: {.fn offset} in {.arg formula}
       has no place.",
      argument = "formula"
    )
  }
  check_class_response(response, name, is_ordered)
  design <- design_matrix(attr(frame, "terms"), frame)
  list(
    x = without_intercept(design$x, is_ordered),
    response = read_classes(droplevels_of(response), name),
    weights = unname(stats::model.weights(frame)),
    offset = unname(offset),
    contrasts = design$contrasts
  )
}

# Levels that no row has are no classes.
droplevels_of <- function(response) {
  if (is.logical(response)) {
    return(factor(response))
  }
  if (is.factor(response)) droplevels(response) else response
}

# Thresholds are intercepts.
without_intercept <- function(x, is_ordered) {
  if (!is_ordered) {
    return(x)
  }
  keep <- colnames(x) != "(Intercept)"
  if (!any(keep)) {
    abort_input(
      "{.arg formula} must have at least one covariate.",
      argument = "formula"
    )
  }
  x[, keep, drop = FALSE]
}

check_class_response <- function(response, name, is_ordered) {
  if (is.matrix(response)) {
    abort_expected(response, "a vector", arg = name)
  }
  if (is.numeric(response)) {
    bad <- which(response < 1 | response != round(response))
    if (length(bad) > 0) {
      must <- "be a factor, or numbers 1, 2, ... of classes"
      abort_value(response, bad[[1]], must, arg = name)
    }
  }
  if (!is_ordered) {
    return(invisible())
  }
  if (is.factor(response) && !is.ordered(response) || is.character(response)) {
    abort_input(
      c(
        "{.arg {name}} must be an ordered factor, not {describe(response)}.",
        i = "{.code ordered({name}, levels = )} says in which order the classes
             are; {.fn tall_multinom} is for classes without one."
      ),
      argument = name,
      value = response
    )
  }
}

#' @export
rebuild_model.tall_classes <- function(fit) {
  if (!has_data(fit)) {
    return(NULL)
  }
  is_ordered <- class_methods[[fit$method]]$is_ordered
  parts <- class_parts(fit$frame, is_ordered)
  settings <- list(
    method = fit$method,
    specs = fit$prior_specs,
    storage = fit$storage
  )
  class_model(parts, settings, response_name(fit$frame))
}
