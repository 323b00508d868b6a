# Fits of tall_multinom() and tall_polr(): what they have of their own rows, and
# what loo and bayesplot ask for.

#' @rdname predict.tall_classes
#' @importFrom stats fitted
#' @export
fitted.tall_classes <- function(object, draws = NULL, ..., ndraws = NULL) {
  check_no_dots(..., .ignore = no_groups)
  predict.tall_classes(object, type = "probs", draws = draws, ndraws = ndraws)
}

#' @rdname predict.tall_classes
#' @importFrom stats residuals
#' @export
residuals.tall_classes <- function(object, draws = NULL, ..., ndraws = NULL) {
  check_no_dots(..., .ignore = no_groups)
  whole <- object
  whole$na_action <- NULL
  mu <- fitted.tall_classes(whole, draws = draws, ndraws = ndraws)
  y <- class_observed(object)
  out <- stats::setNames(1 - mu[cbind(seq_along(y), y)], rownames(mu))
  stats::naresid(object$na_action, out)
}

#' @rdname predict.tall_classes
#' @importFrom stats formula
#' @export
formula.tall_classes <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  stats::formula(x$terms)
}

#' @rdname predict.tall_classes
#' @importFrom stats terms
#' @export
terms.tall_classes <- function(x, ...) {
  check_no_dots(...)
  x$terms
}

#' @rdname predict.tall_classes
#' @importFrom stats model.frame
#' @export
model.frame.tall_classes <- function(formula, ...) {
  check_no_dots(...)
  check_has_data(formula)
  formula$frame
}

#' @rdname predict.tall_classes
#' @importFrom stats model.matrix
#' @export
model.matrix.tall_classes <- function(object, ...) {
  check_no_dots(...)
  class_rows(object, NULL)$x
}

#' @rdname predict.tall_classes
#' @importFrom stats family
#' @export
family.tall_classes <- function(object, ...) {
  check_no_dots(...)
  abort_tall(
    "unsupported",
    c(
      "A response of classes has no {.cls family}.",
      i = "{.code fit$response_levels} has its classes."
    )
  )
}

#' @rdname update.tall_glm
#' @export
update.tall_classes <- function(object, ...) {
  update.tall_glm(object, ...)
}

#' @export
has_few_values.tall_classes <- function(fit) {
  TRUE
}

#' @export
replicated_responses.tall_classes <- function(fit, rows, draws) {
  new <- class_rows_at(class_rows(fit, NULL), rows)
  theta <- class_draws(fit, draws, resample = TRUE)$theta
  list(
    y = class_observed(fit)[rows],
    yrep = class_responses(class_probs(fit, new, theta))
  )
}

#' @rdname pp_check.tall_glm
#' @exportS3Method bayesplot::pp_check
pp_check.tall_classes <- function(object, ...) {
  pp_check.tall_glm(object, ...)
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo
loo.tall_classes <- function(x, ...) {
  out <- loo.tall_glm(x, ...)
  attr(out, "model_name") <- deparse1(substitute(x))
  out
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_subsample
loo_subsample.tall_classes <- function(x, ...) {
  loo_subsample.tall_glm(x, ...)
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::waic
waic.tall_classes <- function(x, ...) {
  out <- waic.tall_glm(x, ...)
  attr(out, "model_name") <- deparse1(substitute(x))
  out
}

#' @export
fit_response.tall_classes <- function(fit) {
  class_observed(fit)
}
