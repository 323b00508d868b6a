# Design and response of regressions of classes, from a model frame.

# list(x, response, weights, offset, contrasts) of a model frame.
class_parts <- function(frame, is_ordered) {
  check_covariates(frame)
  response <- stats::model.response(frame, "any")
  name <- response_name(frame)
  if (is.null(response)) {
    abort_no_response()
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
