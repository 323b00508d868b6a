# The engine "tallbayes" of parsnip's linear_reg(), logistic_reg(),
# poisson_reg(), proportional_hazards() and survival_reg(). Registered when
# parsnip is loaded.

#' An engine of parsnip
#'
#' With \pkg{parsnip} loaded, `"tallbayes"` is an engine of `linear_reg()`,
#' `logistic_reg()` and `poisson_reg()`, which fits by [tall_glm()], and of
#' `proportional_hazards()` and `survival_reg()`, which fits by [tall_surv()].
#' Arguments of `set_engine()` are those of the two: priors, `iter`, `seed`, ...
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
#' Of times to an event the mode is `"censored regression"`;
#' `proportional_hazards()` has a hazard in pieces, `survival_reg(dist = )` what
#' `basehaz` names. Write `survival::Surv()`, or attach \pkg{survival}. Types of
#' prediction are `"time"` (the median), `"survival"` and `"hazard"` (posterior
#' medians at `eval_time`, of 400 draws: see [posterior_survfit()]),
#' `"quantile"`, `"linear_pred"`, which rises with the time, as parsnip has it,
#' and `"raw"`.
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
  of_glm <- function(model, mode, family) {
    register_engine(model, mode, "tall_glm", list(family = family))
  }
  of_glm("linear_reg", "regression", quote(stats::gaussian))
  of_glm("poisson_reg", "regression", quote(stats::poisson))
  of_glm("logistic_reg", "classification", quote(stats::binomial))
  of_times <- function(model, ...) {
    register_engine(model, "censored regression", "tall_surv", list(...))
  }
  of_times("proportional_hazards", basehaz = "piecewise")
  of_times("survival_reg")
  parsnip::set_model_arg(
    model = "survival_reg",
    eng = "tallbayes",
    parsnip = "dist",
    original = "basehaz",
    func = list(pkg = "dials", fun = "surv_dist"),
    has_submodel = FALSE
  )
}

# fun: the front end that fits.
register_engine <- function(model, mode, fun, defaults) {
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
      func = c(pkg = "tallbayes", fun = fun),
      defaults = defaults
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
  if (mode == "censored regression") {
    return(parsnip_time_makers())
  }
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

parsnip_time_makers <- function() {
  curve <- function(type, name) {
    parsnip_maker(
      type = type,
      times = quote(pmax(eval_time, 1e-100)), # parsnip's may be 0
      standardise = FALSE,
      .fun = c(pkg = "tallbayes", fun = "posterior_survfit"),
      .post = parsnip_curves(name)
    )
  }
  list(
    raw = parsnip_maker(),
    time = parsnip_maker(type = "median", .post = parsnip_numbers),
    linear_pred = parsnip_maker(type = "link", .post = parsnip_rising),
    survival = curve("surv", ".pred_survival"),
    hazard = curve("haz", ".pred_hazard"),
    quantile = parsnip_maker(
      type = "quantile",
      p = quote(object$spec$quantile_levels),
      .post = parsnip_quantiles
    )
  )
}

parsnip_maker <- function(..., .post = NULL, .fun = c(fun = "predict")) {
  list(
    pre = NULL,
    post = .post,
    func = .fun,
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

# A predictor that rises with the time.
parsnip_rising <- function(result, object) {
  unname(if (is_hazard_model(object$fit)) -result else result)
}

# A table for each row.
parsnip_curves <- function(name) {
  force(name)
  function(result, object) {
    each <- split(as.data.frame(result), result$id)
    each <- lapply(unname(each), function(part) {
      time <- ifelse(part$time <= 1e-100, 0, part$time)
      out <- data.frame(.eval_time = time, part$median)
      names(out)[[2]] <- name
      as_tibble(out)
    })
    out <- data.frame(row.names = seq_along(each))
    out$.pred <- each
    as_tibble(out)
  }
}

parsnip_quantiles <- function(result, object) {
  quantiles <- hardhat_quantiles()
  quantiles(unname(as.matrix(result)), object$spec$quantile_levels)
}

# parsnip has it, and this package needs it nowhere else.
hardhat_quantiles <- function() {
  getExportedValue("hardhat", "quantile_pred")
}
