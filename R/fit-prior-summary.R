# prior_summary(): the priors that a fit had, in the units of its data.

#' The priors of a fit
#'
#' The priors as they were used: in numbers, after `autoscale`.
#'
#' @param object ([`tall_fit`][tall_fit]) The fit.
#' @param x (`tall_prior_summary`) What `prior_summary()` returns.
#' @param digits (whole number) Significant digits to print.
#' @param ... Unused: other arguments are refused.
#'
#' @return An object of class `tall_prior_summary`: a list of `table`, a data
#'   frame with a row for each variable (`variable`, `prior`, `location`,
#'   `scale`, and `df` or `shape` where a prior has it), `specs` (the priors as
#'   given to [tall_glm()]), `auxiliary` (names of parameters of the response,
#'   such as `sigma`), `hyperparameters` (names of those of a prior that learns
#'   its scales, such as [prior_hs()]; the `scale` of a coefficient is then what
#'   multiplies them) and `centred` (is the prior of the intercept that of the
#'   linear predictor at the covariates' means?). The `scale` of an exponential
#'   prior is its mean, that of a gamma prior one over its rate.
#' @section Conditions:
#' `tall_error_unsupported` for a model whose prior is not of this kind.
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt + hp, data = mtcars, seed = 1)
#' rstantools::prior_summary(fit)
#' @exportS3Method rstantools::prior_summary
prior_summary.tall_fit <- function(object, ...) {
  check_no_dots(...)
  check_is_of_now(object, "prior_summary")
  prior <- object$prior
  if (is.null(prior)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn prior_summary} knows the priors of generalised linear models, not
         that of {.fn {object$model_label}}.",
        i = "It is what the arguments of {.fn {object$model_label}} say."
      )
    )
  }
  mixture <- prior$mixture
  n_hyper <- length(mixture$names)
  own <- seq_len(length(prior$kind) - n_hyper)
  prior <- lapply(prior[c("kind", "location", "scale", "shape")], `[`, own)
  title <- prior_facts(prior, "title")
  is_flat <- title == "flat"
  is_exponential <- title == "exponential"
  table <- data.frame(
    variable = object$every_variable[own],
    prior = title,
    location = ifelse(is_flat | is_exponential, NA, prior$location),
    scale = ifelse(is_flat, NA, prior$scale)
  )
  is_gamma <- title == "gamma"
  if (any(prior$shape[!is_gamma] > 0)) {
    table$df <- ifelse(prior$shape > 0 & !is_gamma, prior$shape, NA)
  }
  if (any(is_gamma)) {
    table$shape <- ifelse(is_gamma, prior$shape, NA)
  }
  smooth <- object$blueprint$priors$prior_smooth
  of_smooths <- seq_along(title) %in% if (!is.null(smooth)) {
    which(object$blueprint$blocks$of > 0)
  }
  of_thresholds <- inherits(object, "tall_polr") &
    seq_along(title) > length(object$design_columns)
  counts <- object$blueprint$priors$prior_counts
  if (any(of_thresholds) && !is.null(counts)) {
    table$prior[of_thresholds] <- "dirichlet"
  }
  structure(
    list(
      table = table,
      of_thresholds = of_thresholds,
      of_smooths = of_smooths,
      smooth_scale = if (any(of_smooths)) smooth_scale(mixture),
      specs = object$blueprint$priors,
      auxiliary = object$every_variable[own][
        prior_facts(prior, "is_of_scales")
      ],
      hyperparameters = mixture$names,
      centred = !is.null(object$model$prior_functional)
    ),
    class = "tall_prior_summary"
  )
}

# The scale of the prior of blocks, which all share: the last block's.
smooth_scale <- function(mixture) {
  argument <- matrix(mixture$params$mixture_argument, 5)
  argument[2, ncol(argument)]
}

#' @rdname prior_summary.tall_fit
#' @export
print.tall_prior_summary <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  table <- x$table
  is_intercept <- grepl("^(.*[:_])?\\(Intercept\\)$", table$variable)
  is_aux <- table$variable %in% x$auxiliary
  is_coef <- !is_intercept & !is_aux & !x$of_thresholds & !x$of_smooths
  cat("Priors\n------\n")
  if (any(is_intercept)) {
    where <- if (x$centred) " (of the predictor at the covariates' means)"
    cat("Intercept", where, "\n", sep = "")
    spec <- x$specs$prior_intercept %||% x$specs$prior
    print_prior(table[is_intercept, ], spec, digits)
  }
  if (any(is_coef)) {
    cat("Coefficients\n")
    print_prior(table[is_coef, ], x$specs$prior, digits)
  }
  if (any(x$of_smooths)) {
    cat("Smooth terms (standard deviations of curves, above 0)\n")
    used <- data.frame(
      prior = x$specs$prior_smooth$kind,
      location = 0,
      scale = x$smooth_scale
    )
    used$df <- x$specs$prior_smooth$df
    print_prior(used, x$specs$prior_smooth, digits)
  }
  if (any(x$of_thresholds)) {
    cat("Classes' probabilities (at the covariates' means)\n  ~ ")
    counts <- x$specs$prior_counts
    shown <- paste(format(counts, digits = digits), collapse = ", ")
    text <- if (length(counts) > 1) paste0("[", shown, "]") else shown
    cat(if (is.null(counts)) {
      "flat thresholds"
    } else {
      paste0("dirichlet(counts = ", text, ")")
    }, "\n", sep = "")
  }
  for (at in which(is_aux)) {
    name <- table$variable[[at]]
    spec <- x$specs$prior_aux
    if (!inherits(spec, "tall_prior")) {
      spec <- spec[[name]]
    } else if (name != x$auxiliary[[1]]) {
      spec <- NULL
    }
    cat("Auxiliary (", name, ")\n", sep = "")
    print_prior(table[at, ], spec, digits)
  }
  lapply(x$covariance, print_covariance_prior)
  cat("------\n")
  invisible(x)
}

#' @exportS3Method rstantools::prior_summary
prior_summary.tall_dpar <- function(object, ...) {
  check_no_dots(...)
  out <- prior_summary.tall_fit(object)
  out$specs$prior <- out$specs$prior[[1]]
  out$specs$prior_intercept <- out$specs$prior_intercept[[1]]
  out
}

#' @exportS3Method rstantools::prior_summary
prior_summary.tall_glmer <- function(object, ...) {
  check_no_dots(...)
  out <- prior_summary.tall_fit(object)
  lambda <- setdiff(
    object$variables[-seq_len(object$n_coef)],
    response_aux(object$family)
  )
  keep <- !out$table$variable %in% lambda
  out$table <- out$table[keep, ]
  out$of_thresholds <- out$of_thresholds[keep]
  out$of_smooths <- out$of_smooths[keep]
  out$auxiliary <- setdiff(out$auxiliary, lambda)
  y <- if (has_data(object)) own_response(object)$y
  factors <- fit_factors(object)
  priors <- object$blueprint$priors$prior_covariance
  out$covariance <- lapply(unname(factors), function(factor) {
    prior <- if (length(factors) == 1) {
      priors
    } else {
      covariance_prior_of(priors, factor$name, factors)
    }
    summarise_covariance(prior, factor, y, find_response(object$family))
  })
  out
}

# y: the response, NULL where the fit does not have it.
summarise_covariance <- function(prior, factor, y, entry) {
  found <- if (!is.null(y) || !entry$has_units) {
    covariance_params(prior, factor$effects, y, entry$has_units)
  }
  list(
    name = factor$name,
    effects = factor$effects,
    eta = if (factor$correlated) prior$eta,
    kind = prior$sd$kind %||% "student",
    df = prior$sd$df %||% 3,
    # that of the data, which a fit without them does not know
    scale = found$sd_scale
  )
}

# The block of print() for group-level effects.
print_covariance_prior <- function(prior) {
  cat("Group-level effects (", prior$name, ")\n", sep = "")
  scale <- if (is.null(prior$scale)) "that of the data" else prior$scale
  scale <- if (is.numeric(scale)) format(scale, digits = 3) else scale
  law <- switch(
    prior$kind,
    flat = "flat",
    student = paste0(
      "half Student t(df = ", format(prior$df), ", scale = ", scale, ")"
    ),
    normal = paste0("half normal(scale = ", scale, ")"),
    exponential = paste0("exponential(scale = ", scale, ")")
  )
  effects <- sub("^\\(Intercept\\)$", "Intercept", prior$effects)
  # of each effect its own, or one for all
  Map(cat_field, paste0("  sd(", effects, ") ~ "), law)
  if (!is.null(prior$eta) && length(prior$effects) > 1) {
    cat("  correlations ~ lkj(eta = ", format(prior$eta), ")\n", sep = "")
  }
}
