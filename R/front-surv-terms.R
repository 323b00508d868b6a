# Terms that formulas of tall_surv() do not take, and what to write instead.
surv_terms <- c(
  strata = "Hazards of strata are in pieces: {.code basehaz =
            \"piecewise\"}. Beside a law, take the factor as a covariate, or fit
            one model for each.",
  cluster = "Rows of the same cluster count as independent here. Of a fit with
             a law, {.fn robust_draws} has them vary together.",
  frailty = "A normal frailty is {.code (1 | g)}.",
  tt = "Rows of a stretch of time each, {.code Surv(start, stop, event)}, have
        covariates that change."
)

check_surv_formula <- function(formula, in_pieces) {
  if (!inherits(formula, "formula")) {
    return(invisible()) # refused where frames are made
  }
  if (length(formula) < 3) {
    abort_no_response()
  }
  for (term in formula_terms(formula[[3]])) {
    name <- if (is.call(term)) deparse1(term[[1]]) else NA_character_
    name <- sub("^survival::", "", name)
    is_taken <- in_pieces && identical(name, "strata")
    if (name %in% names(surv_terms) && !is_taken) {
      abort_tall(
        "unsupported",
        c(
          "{.arg formula} must be without {.code {deparse1(term)}}.",
          i = surv_terms[[name]]
        ),
        argument = "formula",
        value = formula
      )
    }
  }
}
