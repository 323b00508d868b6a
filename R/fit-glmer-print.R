# How priors and estimates of multilevel fits are printed.

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
      print_table(part, digits)
    }
  }
  for (factor in fit_factors(fit)) {
    place <- covariance_start(fit, factor$name) + seq_len(n_covariance(factor))
    of_factor <- own & variables %in% fit$variables[place]
    block(
      paste0(
        "Group-level effects (", factor$name, ", ",
        count_noun(length(factor$levels), "group"), ")"
      ),
      of_factor,
      group_labels(variables[of_factor], factor$name)
    )
  }
  if (any(own)) {
    cat("\n")
  }
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
