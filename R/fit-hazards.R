# Which coefficients of tall_surv() multiply hazards, or times, and by what.

# With exponentials of the coefficients, as survival's summaries have them.
#' @rdname summary.tall_fit
#' @export
summary.tall_surv <- function(object, ...) {
  out <- NextMethod()
  out$ratios <- surv_ratios(object)
  out
}

# list(what, table): posterior medians and 90% intervals of what coefficients
# multiply, hazards or times. NULL: there are none but levels, or no draws.
surv_ratios <- function(fit) {
  names <- intersect(hazard_terms(fit), fit$variables)
  if (is.null(fit$draws) || length(names) == 0) {
    return(NULL)
  }
  ratios <- exp(plain_draws(fit, names))
  bounds <- column_quantiles(ratios, c(0.5, 0.05, 0.95))
  table <- data.frame(
    bounds,
    row.names = names
  )
  colnames(table) <- c("ratio", "q5", "q95")
  list(
    what = if (is_hazard_model(fit)) "Hazard ratios" else "Ratios of times",
    table = table
  )
}

# Columns but those of hazards' levels: the intercept, and those of strata.
hazard_columns <- function(fit) {
  names <- fit$every_variable[seq_len(fit$n_coef)]
  is_level <- names == "(Intercept)"
  if (has_strata(fit$family)) {
    is_level <- is_level | fit$family$pieces$stratum > 0
  }
  which(!is_level)
}

# Their names, without those of smooth terms.
hazard_terms <- function(fit) {
  smooth <- if (has_smooths(fit)) gam_layout(fit)$columns$name
  names <- fit$every_variable[seq_len(fit$n_coef)]
  setdiff(names[hazard_columns(fit)], smooth)
}
