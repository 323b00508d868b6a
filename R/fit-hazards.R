# Which coefficients of tall_surv() multiply hazards, or times, and by what.

# With exponentials of the coefficients, as survival's summaries have them.
#' @rdname summary.tall_fit
#' @export
summary.tall_surv <- function(object, ...) {
  out <- NextMethod()
  out$ratios <- surv_ratios(object, out$table)
  out
}

# list(what, table): quantiles of what coefficients multiply, hazards or times:
# the exponentials of those in the summary's table. NULL: there are none but of
# levels.
surv_ratios <- function(fit, table) {
  at <- which(table$variable %in% hazard_terms(fit))
  probs <- grep("^q[0-9.]+$", names(table), value = TRUE)
  if (length(at) == 0 || length(probs) == 0) {
    return(NULL)
  }
  list(
    what = if (is_hazard_model(fit)) "Hazard ratios" else "Ratios of times",
    table = data.frame(exp(table[at, probs]), row.names = table$variable[at])
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
