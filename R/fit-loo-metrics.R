# What predictions that leave their row out are worth: R-squared and losses, by
# the importance weights of loo().

#' R-squared and losses of predictions that leave their row out
#'
#' `loo_R2()` is [bayes_R2()][bayes_R2.tall_glm] that pays for fitting: each row
#' is predicted by the fit without it. `loo_predictive_metric()` is how far such
#' predictions are from the responses.
#'
#' @param object,x (`tall_regression`) The fit, which kept its data.
#' @param metric (string) `"mae"`, `"mse"`, `"rmse"`: the mean absolute and mean
#'   squared error, and its root; `"acc"`, of responses that are 0 or 1, or
#'   classes: the share of rows whose class is the most probable one;
#'   `"balanced_acc"`: the mean of these shares over the classes.
#' @param observations (whole number, integer vector or `NULL`) As in
#'   [loo()][loo-tall_glm]: rows to subsample, or which; `NULL`, or at most
#'   1,000 rows: all.
#' @param ndraws (whole number or `NULL`) Use that many draws, evenly spaced.
#'   `NULL`: all.
#' @param seed (whole number or `NULL`) Seed of the subsample and, of
#'   `loo_R2()`, of the weights of the Bayesian bootstrap.
#' @param cores (whole number) As in [loo::psis()].
#' @param ... Unused: other arguments are refused.
#'
#' @details The prediction of row \eqn{i} is \eqn{\hat\mu_i = \sum_s w_{is}
#' \mu_i(\theta^{(s)})}{m_i = sum_s w_is mu_i(theta^(s))} with the Pareto
#' smoothed weights of [loo()][loo-tall_glm] (Vehtari, Gelman & Gabry, 2017);
#' these are made for some rows at a time. Rows count alike, whatever their
#' weight; with trials they are proportions.
#'
#' With \eqn{e_i = y_i - \hat\mu_i}{e_i = y_i - m_i}, R-squared is
#' \deqn{1 - \frac{V(e)}{V(y)}}{1 - V(e) / V(y)}
#' where \eqn{V} is the variance over the rows with weights from a Dirichlet
#' distribution, as many of these as draws: a Bayesian bootstrap of the rows, as
#' in rstanarm and brms, bounded below by -1. Of a subsample its spread is that
#' of so few rows.
#'
#' @return `loo_R2()`: a numeric vector, a value for each draw.
#'   `loo_predictive_metric()`: a list of `estimate` and its standard error
#'   `se`, as \pkg{loo} (2.6) has it; of `"balanced_acc"` with the number of
#'   rows of each class.
#' @section Conditions: `tall_error_unsupported` where effects of one grouping
#'   factor are integrated out, so that [loo()][loo-tall_glm] is of groups, and
#'   for what is no number; `tall_error_input` for `"acc"` of numbers;
#'   `tall_error_stale` if data are gone.
#' @references Gelman, Goodrich, Gabry & Vehtari (2019). R-squared for Bayesian
#' regression models. *The American Statistician* 73, 307-309.
#'
#' Vehtari, Gelman & Gabry (2017). Practical Bayesian model evaluation using
#' leave-one-out cross-validation and WAIC. *Statistics and Computing* 27,
#' 1413-1432.
#' @examplesIf rlang::is_installed(c("rstantools", "loo"))
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' summary(loo_R2(fit, seed = 1))
#' loo_predictive_metric(fit, metric = "rmse")
#' @name loo-metrics
NULL

#' @rdname loo-metrics
#' @exportS3Method rstantools::loo_R2
loo_R2.tall_regression <- function(
  object,
  observations = 400,
  ndraws = NULL,
  seed = NULL,
  ...,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(...)
  check_is_number(object, "loo_R2")
  found <- loo_predictions(object, "loo_R2", observations, ndraws, seed, cores)
  n_draw <- ndraws %||% posterior::ndraws(object$draws)
  with_seed(
    check_seed(seed),
    bootstrap_r2(found$y, found$y - found$mean, n_draw)
  )
}

#' @exportS3Method rstantools::loo_R2
loo_R2.tall_fit <- function(object, ...) {
  abort_no_formula(object, "loo_R2")
}

#' @rdname loo-metrics
#' @export
loo_predictive_metric <- function(x, ...) {
  UseMethod("loo_predictive_metric")
}

# What newer versions of loo have methods for.
#' @export
loo_predictive_metric.default <- function(x, ...) {
  known <- rlang::is_installed("loo") &&
    "loo_predictive_metric" %in% getNamespaceExports("loo")
  if (!known) {
    abort_expected(x, "a fit of `tall_glm()` or another front end")
  }
  getExportedValue("loo", "loo_predictive_metric")(x, ...)
}

#' @export
loo_predictive_metric.tall_fit <- function(x, ...) {
  abort_no_formula(x, "loo_predictive_metric")
}

#' @rdname loo-metrics
#' @export
loo_predictive_metric.tall_regression <- function(
  x,
  metric = c("mae", "rmse", "mse", "acc", "balanced_acc"),
  observations = 400,
  ndraws = NULL,
  seed = NULL,
  ...,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(...)
  metric <- check_choice(metric, c("mae", "rmse", "mse", "acc", "balanced_acc"))
  is_share <- metric %in% c("acc", "balanced_acc")
  if (!is_share) {
    check_is_number(x, "loo_predictive_metric")
  }
  name <- "loo_predictive_metric"
  found <- loo_predictions(x, name, observations, ndraws, seed, cores)
  if (!is_share) {
    return(mean_error(found$y - found$mean, metric))
  }
  class <- found$y
  guess <- if (is.matrix(found$mean)) {
    max.col(found$mean, "first")
  } else {
    check_is_binary(class)
    as.numeric(found$mean > 0.5)
  }
  if (metric == "acc") {
    share_of_all(guess == class)
  } else {
    share_of_classes(guess == class, class)
  }
}

check_is_binary <- function(y) {
  if (!all(y %in% c(0, 1))) {
    abort_input(
      "{.arg metric} must be {.val mae}, {.val mse} or {.val rmse}: responses
       are not 0 or 1.",
      argument = "metric"
    )
  }
}

# ---- predictions -------------------------------------------------------------

# list(y, mean) of rows, each predicted without itself; of classes `mean` is a
# matrix with a column for each. name: of the function that asks.
loo_predictions <- function(fit, name, observations, ndraws, seed, cores) {
  rlang::check_installed("loo", "for the importance weights")
  check_not_robust(fit, name)
  check_has_data(fit)
  if (!is.null(fit$groups)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} is of rows, and leave-one-out is of whole groups where
         their effects are integrated out.",
        i = "{.fn loo} compares such fits."
      ),
      argument = "x"
    )
  }
  ndraws <- check_draws(fit, NULL, ndraws)
  cores <- check_cores(cores)
  seed <- check_seed(seed) %||% loo_seed
  at <- check_observations(observations, fit$n_data)
  if (length(at) == 1 && at > 1) {
    at <- with_seed(seed, order(stats::runif(fit$n_data)))[seq_len(at)]
  }
  chosen <- choose_draws(fit, ndraws, resample = TRUE)
  rows <- rows_of_loo(fit, at, chosen)
  r_eff <- relative_efficiency(fit, nrow(chosen$theta))
  size <- length(predicted_names(fit, "response"))
  out <- matrix(0, nrow(rows$x), max(1, size))
  each_block(nrow(out), nrow(chosen$theta) * ncol(out), function(at) {
    out[at, ] <<- loo_means(fit, some_rows(rows, at), chosen, r_eff, cores)
  }, size = 2^20)
  list(y = first_column(rows$y), mean = if (size > 1) out else out[, 1])
}

# Rows `at`, NULL: all, with their responses.
rows_of_loo <- function(fit, at, chosen) {
  groups <- if (has_groups(fit)) group_request(fit)
  if (has_source(fit)) {
    fit <- fit_of_rows(fit, at)
    at <- NULL
  }
  asked <- ask_rows(fit, groups = groups, needs = "responses")
  rows <- asked_rows(asked, chosen)
  if (is.null(at)) rows else some_rows(rows, at)
}

# Rows x classes.
loo_means <- function(fit, rows, chosen, r_eff, cores) {
  value <- log_density(fit, rows, chosen)
  r_eff <- rep(r_eff, ncol(value))
  psis <- suppressWarnings(loo::psis(-value, r_eff = r_eff, cores = cores))
  weight <- stats::weights(psis, log = FALSE)
  mu <- predictor(fit, rows, chosen, "response")
  if (length(dim(mu)) < 3) {
    return(colSums(weight * mu))
  }
  apply(mu, 3, function(one) colSums(weight * one))
}

# ---- what they are worth -----------------------------------------------------

# Weights that are exponential, over their sum, have a Dirichlet distribution.
bootstrap_r2 <- function(y, error, n_draw) {
  sums <- 0
  # squares about values near the means do not cancel
  y <- y - mean(y)
  error <- error - mean(error)
  moments <- cbind(1, y, y^2, error, error^2)
  each_block(length(y), n_draw, size = 2^20, function(at) {
    weight <- matrix(stats::rexp(n_draw * length(at)), n_draw)
    sums <<- sums + weight %*% moments[at, , drop = FALSE]
  })
  mean <- sums / sums[, 1]
  variance <- mean[, c(3, 5)] - mean[, c(2, 4)]^2
  pmax(1 - variance[, 2] / variance[, 1], -1)
}

mean_error <- function(error, metric) {
  n <- length(error)
  loss <- if (metric == "mae") abs(error) else error^2
  estimate <- mean(loss)
  se <- stats::sd(loss) / sqrt(n)
  if (metric == "rmse") {
    # the delta method
    return(list(estimate = sqrt(estimate), se = se / (2 * sqrt(estimate))))
  }
  list(estimate = estimate, se = se)
}

share_of_all <- function(right) {
  share <- mean(right)
  list(estimate = share, se = sqrt(share * (1 - share) / length(right)))
}

share_of_classes <- function(right, class) {
  n <- tapply(right, class, length)
  share <- tapply(right, class, mean)
  list(
    estimate = mean(share),
    se = sqrt(sum(share * (1 - share) / n)) / length(n),
    n = c(n)
  )
}
