# Bayesian R-squared.

#' Bayesian R-squared
#'
#' The share of variance that the model explains, for each posterior draw: the
#' variance of the expected responses over that plus the residual variance
#' (Gelman, Goodrich, Gabry & Vehtari, 2019).
#'
#' @inheritParams posterior-predict
#'
#' @details The residual variance is \eqn{\sigma^2} in Gaussian models, with
#' weights the mean of \eqn{\sigma^2 / w_i}, the mean of \eqn{\mu_i} in Poisson
#' ones, that of the variance of the response in others ([response-families]).
#' Binomial responses are counts of successes here, as in rstanarm: of
#' \eqn{n_i} trials (1 without) and probability \eqn{\mu_i} the expected
#' response is \eqn{n_i \mu_i} and the residual variance the mean of \eqn{n_i
#' \mu_i (1 - \mu_i)}, so that a difference in trials is variance explained.
#' Works through blocks of rows; without `draws` it thins as
#' [predict()][predict.tall_glm()] does.
#'
#' @return A numeric vector with a value for each draw.
#' @section Conditions:
#' Those of [posterior_epred()][posterior-predict].
#' @references
#' Gelman, Goodrich, Gabry & Vehtari (2019). R-squared for Bayesian regression
#' models. *The American Statistician* 73.
#' @examplesIf requireNamespace("rstantools", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' summary(rstantools::bayes_R2(fit))
#' @aliases bayes_R2.tall_glm
#' @exportS3Method rstantools::bayes_R2
bayes_R2.tall_regression <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  weights = NULL,
  re_formula = re.form,
  allow_new_levels = FALSE,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_dpar)
  check_is_number(object, "bayes_R2")
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  asked <- ask_rows(
    object,
    newdata,
    offset,
    weights = weights,
    groups = groups,
    needs = "sizes"
  )
  n_draw <- check_draws(object, draws, ndraws)
  n_draw <- n_draw %||% affordable_draws(object, asked$n)
  cores <- check_cores(cores)
  chosen <- choose_draws(object, n_draw, resample = TRUE, cores = cores)
  n_draw <- nrow(chosen$theta)
  residual <- numeric(n_draw)
  spread <- no_spread(n_draw)
  over_rows(asked, chosen, pads = FALSE, f = function(rows) {
    look <- function(at) {
      found <- r2_moments(object, some_rows(rows, at), chosen)
      residual <<- residual + rowSums(found$variance)
      found$mean
    }
    spread <<- mean_spread(nrow(rows$x), n_draw, look, spread)
    NULL
  })
  explained <- spread$square / (spread$n - 1)
  explained / (explained + residual / spread$n)
}

# list(mean, variance) of the responses of these rows, draws x rows. Where there
# are trials those are counts. Precisions are `weight`.
r2_moments <- function(fit, rows, draws) {
  mu <- response_law(fit, rows, draws)
  if (is.null(rows$trials)) {
    variance <- response_variance(fit$family, mu, rows$weight, draws$aux)
    check_finite_variance(variance)
    mean <- if (length(dim(mu)) == 3) first_of_two(mu) else mu
    return(list(mean = mean, variance = variance))
  }
  each <- rep(rows$trials, each = nrow(mu))
  variance <- response_variance(fit$family, mu, rows$trials, draws$aux)
  variance <- variance * each^2
  check_finite_variance(variance)
  list(mean = mu * each, variance = variance)
}

# Rows with missing values have none.
check_finite_variance <- function(variance) {
  if (!any(variance == Inf, na.rm = TRUE)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "There is no R-squared of these responses: their variance is not finite.",
      i = "{.code predictive_interval(fit)} says how far they are from their
           means."
    )
  )
}

no_spread <- function(n_draw) {
  list(n = 0, mean = numeric(n_draw), square = numeric(n_draw))
}

# Mean of f(rows) over n rows more than those of `sums`, and the sum of squares
# about it, for each draw: block by block about the block's mean, without
# cancellation.
mean_spread <- function(n, n_draw, f, sums = no_spread(n_draw)) {
  each_block(n, n_draw, size = 2^20, function(rows) {
    mu <- f(rows)
    centre <- rowMeans(mu)
    block <- list(
      n = length(rows),
      mean = centre,
      square = rowSums((mu - centre)^2)
    )
    sums <<- if (sums$n == 0) block else merge_moments(sums, block)
  })
  sums
}
