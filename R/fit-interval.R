# predict(interval = ): intervals beside predictions, as predict.lm() has them.

check_interval <- function(interval, type, call = caller_env()) {
  known <- c("none", "confidence", "prediction")
  interval <- check_choice(interval, known, call = call)
  if (interval == "prediction" && type != "response") {
    abort_input(
      "{.code interval = \"prediction\"} is of responses: it needs
       {.code type = \"response\"}.",
      argument = "interval",
      value = interval,
      call = call
    )
  }
  interval
}

# Rows x 2: quantiles of the linear predictor or of the expected response.
mean_interval <- function(
  fit,
  level,
  newdata,
  type,
  draws,
  offset,
  cores,
  call = caller_env()
) {
  passes <- is_passed_over(fit, newdata)
  new <- if (!passes) prediction_rows(fit, newdata, offset, call)
  if (is.null(draws)) {
    n <- if (passes) n_passed_over(fit, newdata) else nrow(new$x)
    draws <- affordable_draws(fit, n, most = 1e7)
  }
  chosen <- choose_draws(fit, draws, resample = TRUE)
  make <- if (type == "link") {
    function(new) linear_draws(new, chosen$theta, cores)
  } else {
    function(new) mean_draws(fit, new, chosen$theta, cores)
  }
  f <- function(new) {
    out <- matrix(0, nrow(new$x), 2)
    each_block(nrow(new$x), nrow(chosen$theta), function(rows) {
      values <- make(rows_of(new, rows))
      out[rows, ] <<- column_quantiles(values, interval_probs(level))
    })
    list(lower = out[, 1], upper = out[, 2])
  }
  if (passes) {
    out <- gather_predictions(fit, newdata, f, offset, call = call)
    return(cbind(out$lower, out$upper))
  }
  out <- do.call(cbind, f(new))
  if (is.null(newdata)) stats::napredict(fit$na_action, out) else out
}

# The same of responses.
response_interval <- function(
  fit,
  level,
  newdata,
  type,
  draws,
  offset,
  cores
) {
  out <- predictive_interval.tall_glm(
    fit,
    level,
    newdata,
    draws,
    offset,
    cores = cores
  )
  is_own <- is.null(newdata) && !has_source(fit)
  if (is_own) stats::napredict(fit$na_action, out) else out
}
