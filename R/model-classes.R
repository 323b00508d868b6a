# model_classes(): regressions whose response is one of several classes, and
# what tall_multinom() and tall_polr() share with it.

#' Regressions with classes for a response
#'
#' The posterior of a multinomial (softmax) regression, or of an ordinal one
#' with a cumulative link. [tall_multinom()] and [tall_polr()] build them from a
#' formula.
#'
#' @param x (numeric matrix, n_data x p, or [tall_store()]) The design matrix.
#'   Of an ordinal regression it has no column of ones: thresholds are
#'   intercepts.
#' @param y (factor, or whole numbers 1, 2, ... of n_data values) The class of
#'   each row; an ordinal one's levels are in their order.
#' @param method (string) `"softmax"`: unordered classes; `"logistic"` or
#'   `"probit"`: ordered ones, with that distribution function.
#' @param prior (`tall_prior` or `NULL`) The prior of the coefficients; `NULL`:
#'   flat.
#' @param prior_intercept (`tall_prior` or `NULL`) Of unordered classes: the
#'   prior of each class's predictor where all covariates are at their means.
#' @param prior_counts (positive number, one for each class, or `NULL`) Of
#'   ordered classes: the counts of the Dirichlet prior of their probabilities
#'   where all covariates are at their means; `NULL`: flat thresholds.
#' @param weights (vector of n_data positive numbers or `NULL`) How often each
#'   row counts.
#' @param offset (vector of n_data numbers or `NULL`) Of ordered classes: added
#'   to the predictor.
#' @param storage (string) As in [model_glm()].
#'
#' @details Unordered: \eqn{P(y = k) \propto e^{\eta_k}}{P(y = k) ~ e^eta_k},
#' \eqn{\eta_k = x^\top b_k}{eta_k = x'b_k}, and 0 for the first class (Agresti,
#' 2013, chapter 8). Ordered: \eqn{P(y \le k) = F(c_k - x^\top b)}{P(y <= k) =
#' F(c_k - x'b)} (McCullagh, 1980); with counts \eqn{\alpha} the prior is
#' \deqn{\log p(c) = \sum_k \log f(c_k) + \sum_k (\alpha_k - 1) \log P_k + {\rm
#' const}}{log p(c) = sum_k log f(c_k) + sum_k (alpha_k - 1) log P_k + const} of
#' thresholds at the means, as in rstanarm's `stan_polr()`; its prior of
#' \eqn{R^2} is not followed.
#'
#' Draws are of intercepts and thresholds where all covariates are 0. Chains
#' move them where these are at their means, \eqn{b_{k0} + \bar x^\top
#' b_k}{b_k0 + mean(x)'b_k} and \eqn{c_1 - \bar x^\top b}{c_1 - mean(x)'b}, and
#' the logarithms of the differences of thresholds. These are the parameters of
#' `init`, [find_mode()] and `fit$unconstrained`: `centred_b:(Intercept)`,
#' `centred_a|b`, `log_diff_b|c`.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions: those of [model_glm()].
#' @references
#' Agresti (2013). *Categorical Data Analysis*, 3rd edition. Wiley.
#'
#' McCullagh (1980). Regression models for ordinal data. *Journal of the Royal
#' Statistical Society B* 42, 109-142.
#' @seealso [tall_multinom()], [tall_polr()]
#' @examples
#' x <- cbind("(Intercept)" = 1, as.matrix(iris[1:2]))
#' model <- model_classes(x, iris$Species)
#' fit <- sg_sample(model, iter = 500, seed = 1)
#' posterior::summarise_draws(fit)
#' @export
model_classes <- function(
  x,
  y,
  method = c("softmax", "logistic", "probit"),
  prior = prior_normal(0, 2.5, autoscale = TRUE),
  prior_intercept = prior_normal(0, 2.5),
  prior_counts = 1,
  weights = NULL,
  offset = NULL,
  storage = c("double", "float")
) {
  method <- check_choice(method, names(class_methods))
  check_given(x)
  check_given(y)
  x <- if (is_store(x)) check_store(x) else check_design(x)
  response <- read_classes(y, "y")
  priors <- list(
    prior = as_prior(prior),
    prior_intercept = as_prior(prior_intercept),
    prior_counts = prior_counts
  )
  storage <- check_choice(storage, names(storage_types))
  blueprint <- blueprint_classes(method, priors, storage)
  levels <- response$levels
  rows <- rows_memory(x, response$values, weights, offset, levels = levels)
  build_model(blueprint, rows)
}

# How the core knows them: places in v_head of src/models/classes.c.
class_methods <- list(
  softmax = list(place = 0, is_ordered = FALSE, link = "logit"),
  logistic = list(place = 1, is_ordered = TRUE, link = "logit"),
  probit = list(place = 2, is_ordered = TRUE, link = "probit")
)

# As CLASSES_MOST in src/models/classes-inside.h.
most_classes <- 1000

# The response of the rows is numbers from 0, of their `levels`.
#' @export
build_model.tall_blueprint_classes <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  priors <- blueprint$priors
  method <- blueprint$method
  facts <- class_methods[[method]]
  is_ordered <- facts$is_ordered
  x <- rows$x
  levels <- rows$levels
  n_class <- length(levels)
  check_class_count(levels, rows$y, is_ordered, rows$name)
  check_same_rows(x, rows$y, arg = "x", arg_y = rows$name)
  numbers <- function(value, arg, positive = FALSE) {
    check_numeric_vector(
      value,
      size = nrow(x),
      positive = positive,
      allow_null = TRUE,
      most = most_of_data,
      arg = arg
    )
  }
  weights <- numbers(rows$weights, "weights", positive = TRUE)
  offset <- numbers(rows$offset, "offset")
  check_class_design(x, is_ordered, offset)
  columns <- column_names(x)
  intercept <- which(columns == "(Intercept)")
  resolved <- prior_resolve(
    priors$prior,
    if (!is_ordered) priors$prior_intercept,
    names = columns,
    n_dim = ncol(x),
    column_sd = function() rows$facts$sd %||% column_sds(x)
  )
  mean <- rows$facts$mean %||% if (is_store(x)) x$mean else design_means(x)
  center <- unname(mean)
  # without an intercept predictors at the means are no parameters
  center <- if (is_ordered || length(intercept) == 1) center else 0 * center
  center[intercept] <- 0
  names <- class_variables(columns, levels, is_ordered)
  cuts <- if (is_ordered) ncol(x) + seq_len(n_class - 1)
  spread <- class_priors(resolved, n_class, is_ordered)
  counts <- if (is_ordered) check_prior_counts(priors$prior_counts, levels)
  new_model(
    "classes",
    compact(list(
      x = if (!is_store(x)) as_double_matrix(unname(x)),
      class = as.double(rows$y),
      n_class = as.double(n_class),
      head = facts$place,
      intercept = if (length(intercept) == 1) as.double(intercept - 1),
      center = as.double(center),
      weights = weights,
      offset = offset,
      count = counts,
      prior_kind = as.double(spread$kind),
      prior_location = spread$location,
      prior_scale = spread$scale,
      prior_shape = spread$shape
    )),
    variables = names$variables,
    coordinates = names$coordinates,
    variable_of = names$of,
    n_coef = ncol(x),
    columns = columns,
    center = as.double(center),
    method = method,
    response_levels = levels,
    prior = spread,
    thresholds = cuts,
    # which have a prior of their own
    proper_coordinates = if (!is.null(counts)) cuts,
    traits = model_traits(
      start = class_start(ncol(x), rows, n_class, is_ordered),
      has_classes = TRUE,
      has_several = TRUE
    ),
    label = "model_classes",
    store = store_of(blueprint$storage, x)
  )
}

# Thresholds at the shares of the classes; zeros else.
class_start <- function(n_coef, rows, n_class, is_ordered) {
  if (!is_ordered) {
    return(numeric(n_coef * (n_class - 1)))
  }
  n_row <- if (is.null(rows$count)) {
    tabulate(rows$y + 1, n_class)
  } else {
    as.vector(rowsum(rows$count, rows$y))
  }
  share <- (n_row + 1) / (sum(n_row) + n_class)
  cut <- stats::qlogis(cumsum(share)[-n_class])
  c(numeric(n_coef), cut[[1]], log(diff(cut)))
}

# The same of each class; thresholds have a prior of their own.
class_priors <- function(resolved, n_class, is_ordered) {
  if (is_ordered) {
    n <- n_class - 1
    flat <- list(
      kind = rep(prior_kinds$flat$code, n),
      location = numeric(n),
      scale = rep(1, n),
      shape = if (!is.null(resolved$shape)) numeric(n)
    )
    return(compact(lapply(
      stats::setNames(nm = names(flat)),
      function(name) c(resolved[[name]], flat[[name]])
    )))
  }
  lapply(compact(resolved), rep, n_class - 1)
}

# Chains move intercepts, or the first threshold, at the means of covariates:
# `centred_` of these is another number than the variable, which is at 0, and
# which no coordinate alone determines.
class_variables <- function(columns, levels, is_ordered) {
  if (!is_ordered) {
    variables <- paste0(rep(levels[-1], each = length(columns)), ":", columns)
    has_covariates <- length(columns) > 1
    moves <- rep(columns == "(Intercept)" & has_covariates, length(levels) - 1)
    return(list(
      variables = variables,
      coordinates = paste0(ifelse(moves, "centred_", ""), variables),
      of = ifelse(moves, NA_integer_, seq_along(variables))
    ))
  }
  n <- length(levels)
  cuts <- paste0(levels[-n], "|", levels[-1])
  list(
    variables = c(columns, cuts),
    coordinates = c(
      columns,
      paste0("centred_", cuts[[1]]),
      paste0("log_diff_", cuts[-1])[n > 2]
    ),
    of = c(seq_along(columns), rep(NA_integer_, n - 1))
  )
}

check_class_count <- function(levels, values, is_ordered, arg) {
  n <- length(levels)
  if (n > most_classes) {
    abort_input(
      "{.arg {arg}} must have at most {format_count(most_classes)} classes, not
       {format_count(n)}.",
      argument = arg,
      expected = most_classes,
      value = n
    )
  }
  never <- which(tabulate(values + 1, n) == 0)
  if (length(never) > 0) {
    # of numbers the levels are all up to the largest
    are_numbers <- identical(levels, as.character(seq_len(n)))
    as_factor <- if (is_ordered) "ordered" else "factor"
    abort_input(
      c(
        "{.arg {arg}} has no row of class {quote_all(levels[never])}.",
        x = if (are_numbers) {
          "A numeric {.arg {arg}} has the numbers of classes, here 1 to {n}."
        },
        i = "{.code {as_factor}({arg})} has those that occur only, in their
             order."
      ),
      argument = arg,
      value = levels[never]
    )
  }
}

check_class_design <- function(x, is_ordered, offset) {
  if (is_ordered && "(Intercept)" %in% colnames(x)) {
    abort_input(
      "{.arg x} must have no column {.val (Intercept)}: thresholds are
       intercepts.",
      argument = "x"
    )
  }
  if (!is_ordered && !is.null(offset)) {
    abort_input(
      "{.arg offset} has no place with unordered classes, which have a predictor
       each.",
      argument = "offset"
    )
  }
}

check_prior_counts <- function(counts, levels) {
  n <- length(levels)
  counts <- check_numeric_vector(
    counts,
    size = c(1, n),
    positive = TRUE,
    allow_null = TRUE,
    arg = "prior_counts"
  )
  if (!is.null(counts)) rep_len(as.double(counts), n)
}
