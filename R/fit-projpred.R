# projpred: a fit as the reference model that is projected on smaller ones.

#' Projection predictive variable selection
#'
#' A fit as the reference model of \pkg{projpred}: `projpred::varsel(fit)`,
#' `cv_varsel(fit)` and `project(fit)` find the smallest set of columns that
#' predicts as the fit does (Piironen, Paasiniemi & Vehtari, 2020). The fit to
#' project is one with all columns and a prior that shrinks, such as
#' [prior_hs()].
#'
#' @param object (fit of [tall_glm()]) With a binomial, Poisson or Gaussian
#'   response.
#' @param data (data frame or `NULL`) The rows that were fitted. `NULL`: those
#'   that the fit's call names.
#' @param ... Handed on to `projpred::init_refmodel()`.
#'
#' @details \pkg{projpred} holds the linear predictor of all rows and draws,
#' several times: 1,000 draws of 10,000 rows take 80 MB each. Where there are
#' more rows, fit all, and project with a random sample of them as `data`, of
#' fewer draws (`iter`). Cross-validation refits with [update()] without a fold;
#' its folds are rows of `data`.
#'
#' @return An object of class `refmodel`.
#' @section Conditions: `tall_error_unsupported` for another response;
#'   `tall_error_stale` if the data frame is not to be found.
#' @references
#' Piironen, Paasiniemi & Vehtari (2020). Projective inference in
#' high-dimensional problems: prediction and feature selection. *Electronic
#' Journal of Statistics* 14, 2155-2197.
#' @seealso [shrinkage()] for how much of each coefficient the prior leaves
#' @examplesIf requireNamespace("projpred", quietly = TRUE)
#' fit <- tall_glm(
#'   mpg ~ wt + hp + qsec,
#'   data = mtcars,
#'   prior = prior_hs(global_scale = 0.2, autoscale = TRUE),
#'   iter = 1000,
#'   seed = 1
#' )
#' selection <- projpred::varsel(fit, method = "forward", nclusters = 5)
#' summary(selection)
#' @name projpred-tall_glm
#' @aliases get_refmodel.tall_glm
#' @exportS3Method projpred::get_refmodel
get_refmodel.tall_glm <- function(object, data = NULL, ...) {
  if (!requireNamespace("projpred", quietly = TRUE)) {
    abort_tall(
      "unsupported",
      "A reference model is one of {.pkg projpred}, which is not installed."
    )
  }
  arguments <- refmodel_arguments(object, data)
  arguments$cvrefbuilder <- function(cvfit) {
    rows <- arguments$data[-cvfit$omitted, , drop = FALSE]
    get_refmodel.tall_glm(cvfit, rows, ...)
  }
  init <- getExportedValue("projpred", "init_refmodel")
  do.call(init, c(arguments, list(...)))
}

# The column that the numbers of the response are in.
refmodel_response <- ".response"

# What projpred asks of any reference model.
refmodel_arguments <- function(fit, data = NULL) {
  family <- stats::family(fit)
  if (has_limits(fit$family)) {
    abort_tall(
      "unsupported",
      "{.pkg projpred} takes no censored numbers."
    )
  }
  if (!family$family %in% c("binomial", "poisson", "gaussian")) {
    abort_tall(
      "unsupported",
      c(
        "Projections are of binomial, Poisson and Gaussian responses, not of
         {.val {family$family}}.",
        i = "{.fn shrinkage} needs no projection."
      )
    )
  }
  data <- data %||% used_rows(fit, written_data(fit))
  if (is.null(data)) {
    abort_tall(
      "stale",
      c(
        "The data frame of the fit is not here.",
        i = "Give it as {.arg data}."
      ),
      argument = "data"
    )
  }
  data <- as.data.frame(data)
  data[[refmodel_response]] <- refmodel_parts(fit, data)$y
  terms <- stats::terms(stats::formula(fit), data = data)
  labels <- attr(terms, "term.labels")
  list(
    object = fit,
    data = data,
    # offsets come with the rows
    formula = stats::reformulate(
      if (length(labels) > 0) labels else "1",
      refmodel_response,
      env = environment(stats::formula(fit))
    ),
    family = family,
    ref_predfun = function(fit, newdata = NULL) {
      refmodel_predictor(fit, newdata %||% data)
    },
    extract_model_data = function(
      object,
      newdata,
      wrhs = NULL,
      orhs = NULL,
      extract_y = TRUE
    ) {
      rows <- newdata %||% data
      parts <- refmodel_parts(object, rows, extract_y)
      parts$weights <- refmodel_column(wrhs, rows) %||% parts$weights
      parts$offset <- refmodel_column(orhs, rows) %||% parts$offset
      parts
    },
    dis = refmodel_dispersion(fit, family),
    cvfun = function(folds) {
      lapply(seq_len(max(folds)), function(fold) {
        rows <- data[folds != fold, , drop = FALSE]
        stats::update(fit, data = rows, subset = NULL, refresh = 0)
      })
    }
  )
}

# An argument of the fit's call where it is a variable of the rows; NULL: none.
refmodel_of_call <- function(fit, name, rows) {
  eval(fit$call[[name]], rows, environment(stats::formula(fit)))
}

refmodel_column <- function(given, rows) {
  if (!rlang::is_formula(given)) {
    return(given)
  }
  eval(rlang::f_rhs(given), rows, environment(given))
}

# Response as numbers of successes or as it is, weights with the trials, offset.
refmodel_parts <- function(fit, rows, has_y = TRUE) {
  terms <- stats::terms(stats::formula(fit), data = rows)
  if (!has_y) {
    terms <- stats::delete.response(terms)
  }
  frame <- stats::model.frame(terms, rows)
  y <- if (has_y) stats::model.response(frame)
  weights <- refmodel_of_call(fit, "weights", rows) %||% rep(1, nrow(rows))
  if (is.matrix(y)) {
    weights <- weights * rowSums(y)
    y <- y[, 1]
  } else if (is.factor(y)) {
    y <- as.numeric(y != levels(y)[[1]])
  }
  offset <- (stats::model.offset(frame) %||% 0) +
    (refmodel_of_call(fit, "offset", rows) %||% 0)
  list(
    y = if (has_y) as.numeric(y),
    weights = as.numeric(weights),
    offset = rep_len(as.numeric(offset), nrow(rows))
  )
}

# Rows x draws, with offsets.
refmodel_predictor <- function(fit, rows) {
  offset <- refmodel_of_call(fit, "offset", rows)
  unname(t(rstantools::posterior_linpred(fit, newdata = rows, offset = offset)))
}

refmodel_dispersion <- function(fit, family) {
  if (family$family != "gaussian") {
    return(NULL)
  }
  if ("sigma" %in% fit$variables) {
    return(as.numeric(plain_draws(fit, "sigma")))
  }
  rep(stats::sigma(fit), nrow(plain_draws(fit)))
}
