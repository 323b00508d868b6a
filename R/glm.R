# tall_glm(): the front end for a formula and a data frame.

#' Bayesian generalised linear models for tall data
#'
#' Fits a generalised linear model by stochastic-gradient MCMC, with nothing to
#' tune: type a formula, get a posterior.
#'
#' @param formula (formula) As in [stats::glm()]: factors, interactions and
#'   [offset()] are fine; group-level terms such as `(1 | g)` are refused.
#' @param data (data frame) The data.
#' @param family (family object, function or string) [gaussian()], [binomial()],
#'   [poisson()], with their canonical links; `binomial("probit")` and
#'   `binomial("cloglog")`. A binomial response is 0/1,
#'   logical, a factor with two levels, `cbind(successes, failures)`, or a
#'   proportion with the number of trials as `weights`, as in [stats::glm()];
#'   their product, the number of successes, must be whole.
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of the
#'   coefficients; `NULL`: flat.
#' @param prior_intercept (`tall_prior` or `NULL`) The prior of the intercept:
#'   of the linear predictor where all covariates are at their means, as in
#'   rstanarm; `NULL`: flat.
#'   The draws of `(Intercept)` are those of the formula's own intercept. With
#'   `autoscale` in a Gaussian model it is centred at the mean of the response,
#'   less its offset.
#' @param prior_aux (`tall_prior` or `NULL`) The prior of `sigma` in a Gaussian
#'   model: [prior_exponential()] or [prior_flat()]; `NULL`: flat.
#' @param weights,subset,na.action,offset As in [stats::glm()]; evaluated in
#'   `data`. Weights are at least 0; a row of weight 0, or of no trials, is left
#'   out, as one with missing values. In Gaussian models weights are precisions:
#'   row \eqn{i} has standard deviation \eqn{\sigma / \sqrt{w_i}}{sigma /
#'   sqrt(w_i)}, everywhere.
#' @param sigma (positive number or `NULL`) The residual standard deviation of a
#'   Gaussian model, if it is known; `NULL`: it is a parameter.
#' @param kernel,gradient,subsample,schedule As in [sg_sample()]. Without a
#'   kernel the recipe described there finds all settings.
#' @inheritParams sg_sample
#' @param monitor (list or `NULL`) What to watch while the chains run, see
#'   [monitors]; held-out data are data frames.
#' @param keep_data (`TRUE` or `FALSE`) Keep the model frame in the fit, so that
#'   `predict()` without `newdata` works and the fit can be resumed after it was
#'   saved and read again?
#' @param ... Unused: other arguments are refused, those of rstanarm, brms and
#'   [stats::glm()] that have no place here with what does their work.
#'
#' @details Covariates are used as they are, whatever their scale: sampling
#' takes place in whitened coordinates. The default priors are rstanarm's:
#' normal with standard deviation 2.5, divided by that of the column, for
#' coefficients; normal with standard deviation 2.5 for the intercept at the
#' means; in a Gaussian model both are multiplied by the standard deviation of
#' the response, and `sigma` is exponential with that as its mean. With weights
#' that is the response's standard deviation at weight 1, see
#' [prior_exponential()].
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_glm", "tall_fit")`.
#' @section Conditions:
#' Those of [sg_sample()] and [model_glm()]; `tall_error_input` for a formula or
#' data that cannot be used, `tall_error_unsupported` for group-level terms.
#' @seealso [summary.tall_fit()], [plot.tall_fit()], [predict.tall_glm()],
#'   [sg_resume()]
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
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  iter = 2000,
  warmup = floor(iter / 2),
  thin = 1,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  keep = "draws",
  monitor = NULL,
  keep_data = TRUE,
  refresh = getOption("tallbayes.refresh", 1),
  ...
) {
  check_no_foreign(..., .known = names(formals(tall_glm)))
  check_given(formula)
  check_flag(keep_data)
  call <- rlang::current_env()
  prior <- as_prior(prior)
  prior_intercept <- as_prior(prior_intercept)
  prior_aux <- as_prior(prior_aux)
  family <- resolve_family(family, call)
  made <- make_frame(
    match.call(),
    c("formula", "data", "weights", "subset", "na.action", "offset"),
    na.action,
    parent.frame(),
    call
  )
  frame <- made$frame
  parts <- frame_parts(frame, family, call)
  model <- build_glm(
    parts$x,
    parts$y,
    family,
    prior,
    prior_intercept,
    parts$weights,
    parts$offset,
    sigma,
    prior_aux,
    centers = TRUE,
    arg_y = response_name(frame),
    call = call
  )
  parts$x <- NULL
  source <- frame_source(
    made,
    formula,
    family,
    parts,
    if (!missing(data)) data
  )
  monitor <- resolve_monitors(monitor, source, sigma, call)
  fit <- rlang::inject(
    sample_model(model, !!!run_arguments(call), in_place = TRUE, call = call)
  )
  fit <- as_glm_fit(fit, sigma, prior, prior_intercept, prior_aux)
  fit$call <- match.call()
  source$family <- NULL
  fit[names(source)] <- source
  fit$na_action <- attr(frame, "na.action")
  fit$frame <- if (keep_data) frame
  seal_fit(fit)
}

#' @rdname tall_glm
#'
#' @param x (numeric matrix, n_data x n_dim) The design matrix, used as it is; a
#'   column named `(Intercept)` is the intercept.
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
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  iter = 2000,
  warmup = floor(iter / 2),
  thin = 1,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  keep = "draws",
  monitor = NULL,
  keep_data = TRUE,
  refresh = getOption("tallbayes.refresh", 1),
  ...
) {
  check_no_foreign(..., .known = names(formals(tall_glm.fit)))
  check_flag(keep_data)
  call <- rlang::current_env()
  prior <- as_prior(prior)
  prior_intercept <- as_prior(prior_intercept)
  prior_aux <- as_prior(prior_aux)
  family <- resolve_family(family, call)
  check_matrix(x)
  check_given(y)
  weights <- check_numeric_vector(weights, size = nrow(x), allow_null = TRUE)
  check_row_weights(weights)
  data <- list(x = x, y = y, weights = weights, offset = offset)
  if (NROW(y) == nrow(x)) {
    data <- weighted_rows(data, call)
  }
  response <- frame_response(data$y, family, "y", call)
  check_same_rows(data$x, data$y, arg = "x", arg_y = "y", call = call)
  if (is.null(response$trials)) {
    check_successes(response$values, data$weights, family, "y", call = call)
  }
  model <- matrix_model(
    data,
    response,
    family,
    prior,
    prior_intercept,
    prior_aux,
    sigma,
    call
  )
  fit <- rlang::inject(
    sample_model(model, !!!run_arguments(call), in_place = TRUE, call = call)
  )
  fit <- as_glm_fit(fit, sigma, prior, prior_intercept, prior_aux)
  fit$call <- match.call()
  fit$response_levels <- response$levels
  fit$has_names <- !is.null(colnames(x))
  fit <- remember_sources(
    fit,
    response$values,
    counts = if (!is.null(response$trials)) quote(trials),
    weights = if (!is.null(weights)) quote(weights),
    offset = if (!is.null(offset)) quote(offset)
  )
  fit$data <- if (keep_data) data
  seal_fit(fit)
}

# Of tall_glm.fit()'s data: rows of weight 0 or without trials do not count.
weighted_rows <- function(data, call) {
  out <- weightless_rows(data$y, data$weights, call)
  if (length(out) == 0) {
    return(data)
  }
  n <- nrow(data$x)
  check_numeric_vector(
    data$offset,
    size = n,
    allow_null = TRUE,
    arg = "offset",
    call = call
  )
  keep <- seq_len(n)[-out]
  list(
    x = data$x[keep, , drop = FALSE],
    y = if (is.matrix(data$y)) data$y[keep, ] else data$y[keep],
    weights = data$weights[keep],
    offset = data$offset[keep]
  )
}

# Rows of weight 0, and of cbind(successes, failures) without trials: as
# stats::glm() does, they are left out. An error if no others are there.
weightless_rows <- function(response, weights, call) {
  out <- which(weights == 0)
  if (!is.null(weights) && length(out) == length(weights)) {
    abort_all_zero(call)
  }
  if (is.matrix(response) && ncol(response) == 2 && is.numeric(response)) {
    none <- unname(which(response[, 1] == 0 & response[, 2] == 0))
    every <- sort(union(out, none))
    # where no row is left, the response is at fault, and refused as such
    if (length(every) < nrow(response)) {
      out <- every
    }
  }
  out
}

# What the fits of both front ends have.
as_glm_fit <- function(fit, sigma, prior, prior_intercept, prior_aux) {
  fit$n_coef <- fit$model$n_coef
  fit["sigma"] <- list(sigma)
  fit$prior_specs <- list(
    prior = prior,
    prior_intercept = prior_intercept,
    prior_aux = prior_aux
  )
  class(fit) <- c("tall_glm", "tall_fit")
  fit
}

matrix_model <- function(
  data,
  response,
  family,
  prior,
  prior_intercept,
  prior_aux,
  sigma,
  call
) {
  weights <- data$weights
  if (!is.null(response$trials)) {
    weights <- response$trials * (weights %||% 1)
  }
  build_glm(
    data$x,
    response$values,
    family,
    prior,
    prior_intercept,
    weights,
    data$offset,
    sigma,
    prior_aux,
    centers = TRUE,
    call = call
  )
}

# na.omit() and its kin copy a frame also where nothing is missing.
spare_copy <- function(na.action) {
  is_known <- any(vapply(
    list("na.omit", "na.exclude", "na.fail"),
    function(name) {
      identical(na.action, name) ||
        identical(na.action, getExportedValue("stats", name))
    },
    TRUE
  ))
  if (!is_known) {
    return(na.action)
  }
  act <- match.fun(na.action)
  function(object, ...) if (anyNA(object)) act(object, ...) else object
}

# Which variables came from the data: new data must have them. Others, such as
# the knots of a spline, are found where the formula was written.
data_columns <- function(terms, frame_call, data, env) {
  used <- unique(c(
    all.vars(terms),
    all.vars(frame_call$weights),
    all.vars(frame_call$offset)
  ))
  if (!is.null(data)) {
    return(intersect(used, names(data)))
  }
  is_column <- vapply(used, function(name) NROW(get0(name, env)) > 1, TRUE)
  used[is_column]
}

# How rows of new data are read as those of a model frame were. Lists with these
# elements, fits among them, go to prediction_frame(), test_parts() and new_*().
frame_source <- function(made, formula, family, parts, data) {
  terms <- attr(made$frame, "terms")
  source <- list(
    family = family,
    formula = formula,
    terms = terms,
    xlevels = stats::.getXlevels(terms, made$frame),
    contrasts = parts$contrasts,
    response_levels = parts$levels,
    columns = data_columns(terms, made$call, data, environment(formula))
  )
  remember_sources(
    source,
    parts$y,
    counts = if (!is.null(parts$trials)) formula[[2]],
    weights = made$call$weights,
    offset = made$call$offset
  )
}

# Where trials, weights and offsets of new rows are to be found. The weights of
# proportions are trials, as in glm().
remember_sources <- function(fit, y, counts, weights, offset) {
  is_trials <- is.null(counts) && are_proportions(y, fit$family)
  fit$trial_source <- if (is_trials) weights else counts
  fit$weight_source <- if (!is_trials) weights
  fit$offset_source <- offset
  fit
}

# The model frame of a front end, from its matched call: list(frame, call), the
# call that made it. wanted: the arguments model.frame() gets; `call` is the
# front end's environment.
make_frame <- function(matched, wanted, na.action, caller, call) {
  formula <- call$formula
  if (!inherits(formula, "formula")) {
    abort_expected(formula, "a formula", arg = "formula", call = call)
  }
  check_no_bars(formula, call)
  has_data <- "data" %in% names(matched)
  if (has_data && !is.data.frame(call$data)) {
    abort_expected(call$data, "a data frame", arg = "data", call = call)
  }
  if (!has_data && "." %in% all.vars(formula)) {
    abort_input(
      "{.arg data} must be given: {.arg formula} has a {.code .}, which stands
       for its columns.",
      argument = "data",
      call = call
    )
  }
  frame_call <- matched[c(1, match(wanted, names(matched), 0))]
  frame_call$na.action <- spare_copy(na.action)
  frame_call$drop.unused.levels <- TRUE
  frame_call[[1]] <- quote(stats::model.frame)
  frame <- tryCatch(
    eval(frame_call, caller),
    error = function(e) abort_frame(e, formula, frame_call, caller, call)
  )
  if (nrow(frame) == 0) {
    abort_input(
      "{.arg data} must have at least one complete row, not 0.",
      argument = "data",
      value = 0,
      call = call
    )
  }
  frame <- drop_weightless(frame, na.action, call)
  list(frame = frame, call = frame_call)
}

# (1 | g) would be read as a logical column.
check_no_bars <- function(formula, call) {
  bar <- find_bar(formula[[length(formula)]])
  if (is.null(bar)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.arg formula} has the term {.code ({deparse1(bar)})}: group-level terms
       are not fitted here.",
      i = "Make the groups a factor, or write the model for
           {.fn model_custom}. A logical \"or\" is {.code I(a | b)}."
    ),
    argument = "formula",
    value = formula,
    call = call
  )
}

# The first `|` that is not inside a function such as I(), or NULL.
find_bar <- function(term) {
  name <- if (is.call(term)) as.character(term[[1]])[[1]] else ""
  if (name %in% c("|", "||")) {
    return(term)
  }
  if (name %in% c("+", "-", "*", "/", ":", "^", "%in%", "(")) {
    found <- lapply(as.list(term)[-1], find_bar)
    return(Find(Negate(is.null), found))
  }
  NULL
}

# A row of weight 0 or without trials does not count: it is left out as one with
# missing values.
drop_weightless <- function(frame, na.action, call) {
  weights <- stats::model.weights(frame)
  check_numeric_vector(weights, allow_null = TRUE, call = call)
  check_row_weights(weights, row.names(frame), call)
  response <- stats::model.response(frame, "any")
  out <- weightless_rows(response, weights, call)
  if (length(out) == 0) {
    return(frame)
  }
  before <- attr(frame, "na.action")
  # as row numbers of the data
  row <- seq_len(nrow(frame) + length(before))
  row <- if (is.null(before)) row else row[-as.integer(before)]
  left_out <- c(
    before,
    stats::setNames(row[out], attr(frame, "row.names")[out])
  )
  excludes <- inherits(before, "exclude") ||
    identical(na.action, stats::na.exclude) ||
    identical(na.action, "na.exclude")
  terms <- attr(frame, "terms")
  frame <- frame[-out, , drop = FALSE]
  attr(frame, "terms") <- terms
  attr(frame, "na.action") <- structure(
    left_out[order(left_out)],
    class = if (excludes) "exclude" else "omit"
  )
  frame
}

# rows: their names, where some were left out.
check_row_weights <- function(weights, rows = NULL, call = caller_env()) {
  bad <- which(weights < 0)
  if (length(bad) > 0) {
    first <- bad[[1]]
    abort_value(
      weights,
      first,
      "be at least 0",
      arg = "weights",
      call = call,
      where = if (is.null(rows)) {
        value_place(weights, first)
      } else {
        paste("row", rows[[first]])
      }
    )
  }
}

abort_all_zero <- function(call) {
  abort_input(
    "{.arg weights} must be positive for at least one row: all are 0.",
    argument = "weights",
    value = 0,
    call = call
  )
}

# What model.frame() could not do, in the words of tall_glm()'s arguments.
abort_frame <- function(error, formula, frame_call, caller, call) {
  said <- conditionMessage(error)
  quoted <- regmatches(said, regexec("'\\((weights|offset)\\)'", said))[[1]]
  if (length(quoted) == 2) {
    arg <- quoted[[2]]
    given <- try(
      eval(frame_call[[arg]], eval(frame_call$data, caller), caller),
      silent = TRUE
    )
    abort_input(
      "{.arg {arg}} must be a numeric vector with a value for each row of
       {.arg data}, not {describe(given)}.",
      argument = arg,
      parent = error,
      call = call
    )
  }
  abort_input(
    "{.arg formula} and {.arg data} do not make a model frame.",
    argument = "formula",
    value = formula,
    parent = error,
    call = call
  )
}

# What the formula calls the response.
response_name <- function(frame) {
  deparse1(attr(attr(frame, "terms"), "variables")[[2]])
}

# Design matrix, response, weights and offset of a model frame.
frame_parts <- function(frame, family, call) {
  check_covariates(frame, call)
  terms <- attr(frame, "terms")
  response <- stats::model.response(frame, "any")
  if (is.null(response)) {
    abort_input(
      "{.arg formula} must have a response on its left-hand side.",
      argument = "formula",
      call = call
    )
  }
  y <- frame_response(response, family, response_name(frame), call)
  if (is.null(y$trials)) {
    check_successes(
      y$values,
      stats::model.weights(frame),
      family,
      response_name(frame),
      row.names(frame),
      call
    )
  }
  design <- design_matrix(terms, frame)
  if (ncol(design$x) == 0) {
    abort_input(
      "{.arg formula} must have at least one term or an intercept.",
      argument = "formula",
      call = call
    )
  }
  list(
    x = design$x,
    y = y$values,
    levels = y$levels,
    trials = y$trials,
    weights = frame_weights(frame, y$trials),
    offset = stats::model.offset(frame),
    contrasts = design$contrasts
  )
}

# model.matrix() by blocks of rows: its row names and its copies are then those
# of a block. What depends on all rows (levels, bases of poly() or splines) is
# in the frame already, except the levels of character columns.
design_matrix <- function(terms, frame, size = 2^20) {
  is_text <- vapply(frame, is.character, TRUE)
  frame[is_text] <- lapply(frame[is_text], factor)
  n <- nrow(frame)
  # most columns of a design are single columns of the frame
  n_block <- max(1, floor(size / max(1, length(frame))))
  block_at <- function(first) {
    rows <- seq(first, min(n, first + n_block - 1))
    block <- frame[rows, , drop = FALSE]
    # without them model.matrix() would evaluate the formula anew
    attr(block, "terms") <- terms
    stats::model.matrix(terms, block)
  }
  block <- block_at(1)
  contrasts <- attr(block, "contrasts")
  x <- matrix(0, n, ncol(block), dimnames = list(NULL, colnames(block)))
  x[seq_len(nrow(block)), ] <- block
  for (first in seq_len(ceiling(n / n_block) - 1) * n_block + 1) {
    block <- block_at(first)
    x[seq(first, length.out = nrow(block)), ] <- block
  }
  list(x = x, contrasts = contrasts)
}

# Factors vary and nothing is missing: after model.matrix() one could no longer
# name the variable.
check_covariates <- function(frame, call) {
  response <- attr(attr(frame, "terms"), "response")
  own <- names(frame) %in% c("(weights)", "(offset)")
  for (k in setdiff(seq_along(frame)[!own], response)) {
    column <- frame[[k]]
    name <- names(frame)[[k]]
    if (is.character(column)) {
      column <- factor(column)
    }
    is_plain <- is_plain_numeric(column)
    if (if (is_plain) !all_finite(column) else anyNA(column)) {
      bad <- if (is_plain) {
        first_nonfinite(column)
      } else {
        which(is.na(column))[[1]]
      }
      # rows as `data` numbers them: some may have been left out
      row <- attr(frame, "row.names")[[(bad - 1) %% nrow(frame) + 1]]
      abort_value(
        column,
        bad,
        if (is_plain) "be finite" else "not be missing",
        arg = name,
        call = call,
        where = paste("row", if (is.numeric(row)) format_count(row) else row)
      )
    }
    if (is.factor(column) && nlevels(column) < 2) {
      abort_input(
        "{.arg {name}} must have at least two levels, not
         {nlevels(column)} ({.val {levels(column)}}).",
        argument = name,
        expected = 2,
        value = nlevels(column),
        call = call
      )
    }
  }
}

# list(values, levels, trials), as stats::glm: a factor or logical is 0 at its
# first level; cbind(successes, failures) is a proportion of trials.
frame_response <- function(response, family, name, call) {
  takes_trials <- has_trials(family)
  levels <- NULL
  if (is.matrix(response)) {
    return(counts_response(response, takes_trials, name, call))
  }
  if (takes_trials && is.factor(response)) {
    levels <- levels(response)
    if (length(levels) != 2) {
      abort_input(
        "{.arg {name}} must have two levels, not {length(levels)}.",
        argument = name,
        expected = 2,
        value = length(levels),
        call = call
      )
    }
    response <- as.double(response == levels[[2]])
  }
  if (!is.numeric(response) && !is.logical(response)) {
    expected <- paste0(
      "numeric",
      if (takes_trials) ", logical or a factor with two levels"
    )
    hint <- if (is.character(response)) {
      "Make it a factor with `factor()`."
    }
    abort_expected(response, expected, hint, arg = name, call = call)
  }
  list(values = as.double(response), levels = levels, trials = NULL)
}

# Proportions are of whole numbers of trials and of successes, up to the
# rounding that stats::glm() lets pass. rows: their names, where some were left
# out.
check_successes <- function(
  y,
  trials,
  family,
  name,
  rows = NULL,
  call = caller_env()
) {
  # the usual case, without memory
  is_binary <- !find_response(family)$takes_proportions ||
    (is.double(y) && first_outside(y, family, size = 1) == 0)
  # what is no proportion is refused elsewhere
  if (is_binary || !are_proportions(y, family) || any(y < 0 | y > 1)) {
    return(invisible())
  }
  n <- rep_len(trials %||% 1, length(y))
  is_whole <- function(x) abs(x - round(x)) <= 1e-3
  bad <- which(!(is_whole(n) & is_whole(n * y)))
  if (length(bad) == 0) {
    return(invisible())
  }
  at <- bad[[1]]
  place <- paste("row", if (is.null(rows)) format_count(at) else rows[[at]])
  abort_input(
    c(
      if (is.null(trials)) {
        "{.arg {name}} must be 0 or 1 where there are no trials, but {place} is
         {format_number(y[[at]])}."
      } else if (is_whole(n[[at]])) {
        "{.arg {name}} times the trials in {.arg weights} must be whole numbers
         of successes, but {place} has {format_number(y[[at]])} x
         {format_number(n[[at]])} = {format_number(y[[at]] * n[[at]])}."
      } else {
        "{.arg weights} are trials where {.arg {name}} is a proportion, and must
         be whole, but {place} has {format_number(n[[at]])}."
      },
      i = "Give the number of trials as {.arg weights}, or the counts as
           {.code cbind(successes, failures)}. A share of something else than
           trials is for {.fn model_custom}."
    ),
    argument = if (is_whole(n[[at]])) name else "weights",
    value = y[[at]],
    index = at,
    call = call
  )
}

# cbind(successes, failures)
counts_response <- function(response, takes_trials, name, call) {
  if (!takes_trials || ncol(response) != 2 || !is.numeric(response)) {
    abort_expected(
      response,
      if (takes_trials) {
        "a vector or cbind(successes, failures)"
      } else {
        "a numeric vector"
      },
      arg = name,
      call = call
    )
  }
  storage.mode(response) <- "double"
  check_finite(response, arg = name, call = call)
  bad <- which(response < 0 | response != round(response))
  if (length(bad) > 0) {
    abort_value(response, bad[[1]], "be a count", arg = name, call = call)
  }
  trials <- rowSums(response)
  if (any(trials == 0)) {
    abort_value(
      trials,
      which(trials == 0)[[1]],
      "have at least one trial in each row",
      arg = name,
      call = call
    )
  }
  list(values = response[, 1] / trials, levels = NULL, trials = trials)
}

# Weights of the likelihood: those given times the trials.
frame_weights <- function(frame, trials) {
  weights <- stats::model.weights(frame)
  if (is.null(trials)) {
    weights
  } else if (is.null(weights)) {
    trials
  } else {
    weights * trials
  }
}

#' @export
rebuild_model.tall_glm <- function(fit) {
  if (!has_data(fit)) {
    return(NULL)
  }
  if (is.null(fit$terms)) {
    return(matrix_model(
      fit$data,
      frame_response(fit$data$y, fit$family, "y", caller_env()),
      fit$family,
      fit$prior_specs$prior,
      fit$prior_specs$prior_intercept,
      fit$prior_specs$prior_aux,
      fit$sigma,
      caller_env()
    ))
  }
  parts <- frame_parts(fit$frame, fit$family, caller_env())
  build_glm(
    parts$x,
    parts$y,
    fit$family,
    fit$prior_specs$prior,
    fit$prior_specs$prior_intercept,
    parts$weights,
    parts$offset,
    fit$sigma,
    fit$prior_specs$prior_aux,
    centers = TRUE
  )
}
