# The engine "tallbayes" of parsnip's linear_reg(), logistic_reg() and
# poisson_reg(). Registered when parsnip is loaded.

#' An engine of parsnip
#'
#' With \pkg{parsnip} loaded, `"tallbayes"` is an engine of `linear_reg()`,
#' `logistic_reg()` and `poisson_reg()`, which fits by [tall_glm()]. Arguments
#' of `set_engine()` are those of [tall_glm()]: priors, `iter`, `seed`, ...
#'
#' @details Types of prediction are `"numeric"` (posterior means of expected
#' responses), `"class"`, `"prob"`, `"conf_int"` (of expected responses or
#' probabilities), `"pred_int"` (of responses), `"linear_pred"` and `"raw"`
#' (that of [predict()][predict.tall_glm()]); `level` and `std_error = TRUE` as
#' parsnip has them (the latter of `"conf_int"`). Variables are taken as the
#' formula has them, factors too; the event of a logistic regression is the
#' second level, as in [stats::glm()].
#' `penalty` and `mixture` have no place: a prior does that work.
#'
#' @examplesIf requireNamespace("parsnip", quietly = TRUE)
#' spec <- parsnip::set_engine(parsnip::linear_reg(), "tallbayes", seed = 1)
#' fit <- parsnip::fit(spec, mpg ~ wt + factor(cyl), data = mtcars)
#' new <- data.frame(wt = 3, cyl = 6)
#' predict(fit, new)
#' predict(fit, new, type = "pred_int", level = 0.9)
#' @name parsnip-engine
#' @aliases linear_reg-tallbayes
NULL

register_parsnip <- function(...) {
  register_engine("linear_reg", "regression", quote(stats::gaussian))
  register_engine("poisson_reg", "regression", quote(stats::poisson))
  register_engine("logistic_reg", "classification", quote(stats::binomial))
}

register_engine <- function(model, mode, family) {
  engine <- "tallbayes"
  if (engine %in% parsnip::show_engines(model)$engine) {
    return(invisible()) # of the same package, loaded before
  }
  parsnip::set_model_engine(model, mode, engine)
  parsnip::set_dependency(model, engine, "tallbayes", mode)
  parsnip::set_fit(
    model = model,
    eng = engine,
    mode = mode,
    value = list(
      interface = "formula",
      protect = c("formula", "data", "weights"),
      func = c(pkg = "tallbayes", fun = "tall_glm"),
      defaults = list(family = family)
    )
  )
  parsnip::set_encoding(
    model = model,
    eng = engine,
    mode = mode,
    options = list(
      predictor_indicators = "none",
      compute_intercept = FALSE,
      remove_intercept = FALSE,
      allow_sparse_x = FALSE
    )
  )
  makers <- parsnip_makers(mode)
  for (type in names(makers)) {
    parsnip::set_pred(
      model = model,
      eng = engine,
      mode = mode,
      type = type,
      value = makers[[type]]
    )
  }
}

# What predict() is called with, and what becomes of its result, by type.
parsnip_makers <- function(mode) {
  is_class <- mode == "classification"
  mean <- parsnip_maker(type = "response")
  common <- list(
    raw = parsnip_maker(),
    linear_pred = parsnip_maker(type = "link", .post = parsnip_numbers),
    conf_int = parsnip_maker(
      type = "response",
      interval = "confidence",
      level = quote(level),
      se.fit = quote(std_error),
      .post = if (is_class) parsnip_class_interval else parsnip_interval
    ),
    pred_int = parsnip_maker(
      type = "response",
      interval = "prediction",
      level = quote(level),
      .post = if (is_class) parsnip_class_interval else parsnip_interval
    )
  )
  own <- if (is_class) {
    list(
      class = parsnip_maker(type = "response", .post = parsnip_classes),
      prob = parsnip_maker(type = "response", .post = parsnip_probabilities)
    )
  } else {
    list(numeric = parsnip_maker(type = "response", .post = parsnip_numbers))
  }
  c(own, common)
}

parsnip_maker <- function(..., .post = NULL) {
  list(
    pre = NULL,
    post = .post,
    func = c(fun = "predict"),
    args = list(
      object = quote(object$fit),
      newdata = quote(new_data),
      ...
    )
  )
}

parsnip_numbers <- function(result, object) {
  unname(result)
}

parsnip_classes <- function(result, object) {
  unname(object$lvl[1 + (result >= 0.5)])
}

parsnip_probabilities <- function(result, object) {
  out <- data.frame(1 - result, result)
  names(out) <- object$lvl
  as_tibble(out)
}

parsnip_interval <- function(result, object) {
  parts <- interval_parts(result)
  out <- data.frame(
    .pred_lower = unname(parts$fit[, "lwr"]),
    .pred_upper = unname(parts$fit[, "upr"])
  )
  out$.std_error <- unname(parts$se.fit)
  as_tibble(out)
}

# Of the second level, and what that means for the first.
parsnip_class_interval <- function(result, object) {
  parts <- interval_parts(result)
  bounds <- unname(parts$fit[, c("lwr", "upr"), drop = FALSE])
  out <- data.frame(1 - bounds[, 2], 1 - bounds[, 1], bounds)
  names(out) <- paste0(
    c(".pred_lower_", ".pred_upper_"),
    rep(object$lvl, each = 2)
  )
  out$.std_error <- unname(parts$se.fit)
  as_tibble(out)
}

# list(fit, se.fit), whether standard errors were asked for or not.
interval_parts <- function(result) {
  if (is.list(result)) result else list(fit = result)
}
