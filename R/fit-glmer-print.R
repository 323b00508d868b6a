# How priors and estimates of multilevel fits are printed.

# ---- priors ------------------------------------------------------------------

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
  out$auxiliary <- setdiff(out$auxiliary, lambda)
  prior <- object$prior_specs$prior_covariance
  y <- if (!is.null(object$frame)) own_response(object)$y
  has_units <- find_response(object$family)$has_units
  found <- if (!is.null(y) || !has_units) {
    covariance_params(
      prior,
      object$groups$effects,
      y,
      has_units
    )
  }
  out$covariance <- list(
    name = object$groups$name,
    effects = object$groups$effects,
    eta = if (object$groups$correlated) prior$eta,
    kind = prior$sd$kind %||% "student",
    df = prior$sd$df %||% 3,
    # that of the data, which a fit without them does not know
    scale = found$sd_scale
  )
  out
}

# The block of print() for group-level effects.
print_covariance_prior <- function(prior) {
  if (is.null(prior)) {
    return(invisible())
  }
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
  cat(paste0("  sd(", prior$effects, ") ~ ", law, "\n"), sep = "")
  if (!is.null(prior$eta) && length(prior$effects) > 1) {
    cat("  correlations ~ lkj(eta = ", format(prior$eta), ")\n", sep = "")
  }
}

# ---- print -------------------------------------------------------------------

# The blocks in the order of brms: groups, coefficients, the response.
print_grouped_estimates <- function(fit, table, digits) {
  variables <- rownames(table)
  coefficients <- fit$variables[seq_len(fit$n_coef)]
  is_aux <- variables %in% response_aux(fit$family)
  is_coefficient <- variables %in% coefficients
  own <- !is_aux & !is_coefficient
  block <- function(title, rows, names = variables[rows]) {
    if (any(rows)) {
      cat(title, "\n", sep = "")
      part <- table[rows, , drop = FALSE]
      rownames(part) <- names
      print(part, digits = digits)
    }
  }
  block(
    paste0(
      "Group-level effects (", fit$groups$name, ", ",
      count_noun(length(fit$groups$levels), "group"), ")"
    ),
    own,
    group_labels(variables[own], fit$groups$name)
  )
  cat("\n")
  block("Coefficients", is_coefficient)
  if (any(is_aux)) {
    cat("\n")
    block("Response", is_aux)
  }
}

# sd_g__Intercept is sd(Intercept), cor_g__Intercept__x cor(Intercept, x)
group_labels <- function(variables, name) {
  kind <- sub("_.*", "", variables)
  rest <- substring(variables, nchar(kind) + nchar(name) + 4)
  paste0(kind, "(", sub("__", ", ", rest, fixed = TRUE), ")")
}
