# predict(interval = ): intervals beside predictions, as predict.lm() has them.

# Where the link is the identity, both types are of responses.
check_interval <- function(interval, type, family) {
  known <- c("none", "confidence", "prediction")
  interval <- check_choice(interval, known)
  is_scale <- type == "response" || family$link == "identity"
  if (interval == "prediction" && !is_scale) {
    abort_input(
      c(
        "{.code interval = \"prediction\"} is of responses: it needs
         {.code type = \"response\"}.",
        i = "Of the linear predictor there is
             {.code interval = \"confidence\"}."
      ),
      argument = "interval",
      value = interval
    )
  }
  interval
}

# Rows x 2: quantiles of the linear predictor or of the expected response.
mean_interval <- function(fit, level, newdata, type, draws, offset, cores) {
  passes <- is_passed_over(fit, newdata)
  new <- if (!passes) prediction_rows(fit, newdata, offset)
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
    out <- gather_predictions(fit, newdata, f, offset)
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

# Rows x 2, of rows that glmer_prepare() made. sizes: list(weight, trials) of
# responses.
glmer_interval <- function(fit, rows, level, interval, type, sizes, seed) {
  n <- nrow(rows$x)
  seed <- if (is.null(seed)) fit$seed else seed
  out <- matrix(0, n, 2)
  is_new <- interval == "prediction"
  aux <- if (is_new) glmer_aux(fit, rows$draws)
  draw <- find_response(fit$family)$draw
  with_seed(seed, each_block(n, nrow(rows$beta), function(at) {
    value <- glmer_eta(rows, at)
    if (is_new || type == "response") {
      value <- response_mean(fit$family, value)
    }
    if (is_new) {
      shape <- dim(value)
      value <- draw(value, aux, lapply(sizes, function(x) x[at]))
      dim(value) <- shape
    }
    out[at, ] <<- column_quantiles(value, interval_probs(level))
  }))
  out
}

# What responses of n rows need beside their means.
glmer_sizes <- function(fit, newdata, weights, trials, n) {
  list(
    weight = prediction_weights(fit, newdata, weights, n),
    trials = prediction_trials(fit, newdata, trials, n)
  )
}

with_bounds <- function(fit, bounds) {
  cbind(fit = fit, lwr = bounds[, 1], upr = bounds[, 2])
}
