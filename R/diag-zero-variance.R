# Zero-variance control variates: after a run, for free where gradients were
# kept.

#' Zero-variance control variates
#'
#' Takes Monte Carlo error out of posterior expectations after a run, by
#' regression on functions of the gradients whose posterior mean is known to be
#' zero.
#'
#' @param fit ([`tall_fit`][tall_fit]) The fit.
#' @param f (function) What to average: of the matrix of draws (draws x
#'   variables, on the natural scale), it returns a vector or matrix with a
#'   value or a row for each draw. `identity`: the variables themselves.
#' @param order (1 or 2) Degree of the polynomial.
#' @param gradient (string) `"kept"`: the gradients of a run with `keep =
#'   c("draws", "gradients")`, for free. `"full"`: exact ones, a pass over the
#'   data for each draw.
#' @param model (`tall_model` or `NULL`) The model for `"full"`, when the fit
#'   has lost its own.
#'
#' @details With \eqn{z = -\frac12 \nabla \log \pi(\theta)}{z = -1/2 grad log
#' pi(theta)} in the parameters as they were sampled (`log_sigma` for `sigma`),
#' these have mean zero under the posterior: \eqn{z_j} (order 1), and
#' \eqn{-\frac12 + \theta_j z_j}{-1/2 + theta_j z_j} and \eqn{\theta_j z_k +
#' \theta_k z_j}{theta_j z_k + theta_k z_j} (order 2). With \eqn{w} the vector
#' of them, draws of \eqn{f} become \deqn{\hat f = f + a^T w, \quad a
#' = -\mathrm{Var}(w)^{-1} \mathrm{Cov}(w, f),}{f-hat = f + a'w, a = -Var(w)^-1
#' Cov(w, f),} which is regression with an intercept. (Baker et al., 2019, print
#' \eqn{a} without its minus, and the quadratic terms without
#' \eqn{-\frac12}{-1/2}.) For a normal posterior and exact gradients order 1
#' leaves means without any error, and order 2 variances.
#'
#' With very many parameters no run has draws enough for all their gradients,
#' nor memory. What depends on few of them is served by theirs: keep draws and
#' gradients of these alone, with `variables` of [sg_sample()].
#'
#' Within the bounds of [prior_uniform()] a density need not vanish where it
#' ends, as means of zero ask for. There, \eqn{\theta_j}{theta_j} between
#' \eqn{m - w} and \eqn{m + w} stands for \eqn{m + w \,
#' \mathrm{artanh}((\theta_j - m) / w)}{m + w artanh((theta_j - m) / w)}, with
#' the gradient in that: a change of variables that leaves the middle as it is
#' and has no bounds. Bounds that are far from all draws change next to nothing.
#'
#' Below 10 draws for each column the covariance of the columns, scaled to unit
#' variance, is shrunk towards the identity by the formula of Ledoit & Wolf
#' (2004), and a message says so.
#'
#' It removes Monte Carlo error, not the bias of a step size or of gradient
#' noise: the means of \eqn{w} under the distribution that the chain samples
#' are not quite zero. With noisy gradients the reduction is smaller, as the
#' noise is
#' part of \eqn{z} (Baker et al., 2019, theorem 2); control variates
#' ([gradient_cv()]) keep most of it.
#'
#' @return A [posterior::draws_matrix] of the values of `f`, with the variables
#'   of the fit in order for `identity`. Its column means are the estimates.
#'   Attributes: `estimates`, a named vector (weighted when the draws are);
#'   `variance_ratio`, the variance of what is left over that of \eqn{f}, for
#'   each (`NA` where \eqn{f} is constant); `method`, `"least squares"` or
#'   `"Ledoit-Wolf"`.
#' @section Conditions: `tall_error_unsupported` if the fit kept no gradients,
#' or order 2 has too many columns; `tall_error_input` if `f` does not return a
#' value for each draw; `tall_error_stale` if the model is gone.
#' @references Baker, Fearnhead, Fox & Nemeth (2019). Control variates for
#' stochastic gradient MCMC. *Statistics and Computing* 29, 599-615.
#'
#' Mira, Solgi & Imparato (2013). Zero variance Markov chain Monte Carlo for
#' Bayesian estimators. *Statistics and Computing* 23, 653-662.
#'
#' Ledoit & Wolf (2004). A well-conditioned estimator for large-dimensional
#' covariance matrices. *Journal of Multivariate Analysis* 88, 365-411.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(
#'   model,
#'   kernel_sgld(0.001),
#'   subsample = subsample_uniform(100),
#'   keep = c("draws", "gradients"),
#'   iter = 1000,
#'   seed = 1
#' )
#' reduced <- zero_variance(fit)
#' attr(reduced, "estimates")
#' attr(reduced, "variance_ratio")
#'
#' odds <- zero_variance(fit, function(draws) exp(draws[, "age"]), order = 2)
#' attr(odds, "estimates")
#' @export
zero_variance <- function(
  fit,
  f = identity,
  order = c(1, 2),
  gradient = c("kept", "full"),
  model = NULL
) {
  check_spec(fit, "tall_fit", "sg_sample()")
  check_not_robust(fit, "zero_variance")
  order <- check_order(order)
  gradient <- check_choice(gradient, c("kept", "full"))
  points <- diagnostic_points(fit, arg = "fit", needs_all = gradient == "full")
  values <- function_values(f, draws_matrix(fit))
  slope <- if (gradient == "kept") {
    kept_gradients(fit, "`gradient = \"full\"`")
  } else {
    point_gradients(points, if (is.null(model)) NULL else model)$values
  }
  given <- if (gradient == "full") model
  bounds <- points_bounds(points, given)
  theta <- points$draws
  if (!is.null(bounds)) {
    slope <- unbound_gradients(slope, theta, bounds)
    theta <- unbound_points(theta, bounds, "fit")
  }
  columns <- stein_columns(theta, slope, order)
  reduced <- regress_out(values, columns, points$weights / sum(points$weights))
  if (reduced$method != "least squares") {
    cli::cli_inform(
      "{format_count(nrow(columns))} draws are few for
       {format_count(ncol(columns))} control variates: their covariance is
       shrunk (Ledoit-Wolf)."
    )
  }
  shape <- c(
    posterior::niterations(fit$draws),
    posterior::nchains(fit$draws),
    ncol(values)
  )
  out <- array(reduced$values, shape, list(NULL, NULL, colnames(values)))
  out <- posterior::as_draws_matrix(posterior::as_draws_array(out))
  attr(out, "estimates") <- reduced$estimates
  attr(out, "variance_ratio") <- reduced$variance_ratio
  attr(out, "method") <- reduced$method
  out
}

check_order <- function(order) {
  if (is_plain_numeric(order) && identical(as.double(order), c(1, 2))) {
    return(1)
  }
  check_count(order, min = 1, max = 2, arg = "order")
}

# A named matrix with a row for each draw.
function_values <- function(f, draws) {
  if (!is.function(f)) {
    abort_expected(f, "a function of the matrix of draws", arg = "f")
  }
  values <- call_user(f, "f", draws)
  n <- nrow(draws)
  if (!is_plain_numeric(values) || NROW(values) != n) {
    abort_input(
      "{.arg f} must return numbers with a value or a row for each of the
       {count_noun(n, 'draw')}, not {describe(values)}.",
      argument = "f",
      expected = n,
      value = values
    )
  }
  values <- as.matrix(values)
  check_finite(values, arg = "f(draws)")
  names <- colnames(values) %||% character(ncol(values))
  blank <- is.na(names) | names == ""
  names[blank] <- if (ncol(values) == 1) "f" else paste0("f", which(blank))
  colnames(values) <- make.unique(names)
  values
}

most_columns <- 5000

# Functions with posterior mean zero, draws x columns. Parameters are centred:
# theta_j z_k - mean_j z_k spans, with z, what theta_j z_k does, and is better
# conditioned.
stein_columns <- function(theta, gradient, order) {
  d <- ncol(theta)
  z <- -gradient / 2
  if (order == 1) {
    return(z)
  }
  n_column <- d + d * (d + 1) / 2
  if (n_column > most_columns) {
    abort_tall(
      "unsupported",
      c(
        "{.code order = 2} with {count_noun(d, 'parameter')} needs
         {format_count(n_column)} control variates; at most
         {format_count(most_columns)} are possible.",
        i = "Use {.code order = 1}."
      ),
      argument = "order"
    )
  }
  theta <- sweep(theta, 2, colMeans(theta))
  pair <- which(upper.tri(diag(d)), arr.ind = TRUE)
  j <- pair[, 1]
  k <- pair[, 2]
  cbind(
    z,
    theta * z - 0.5,
    theta[, j, drop = FALSE] * z[, k, drop = FALSE] +
      theta[, k, drop = FALSE] * z[, j, drop = FALSE]
  )
}

# values - columns b, b the regression coefficients (so a = -b); weights sum
# to 1.
regress_out <- function(values, columns, weights) {
  n <- nrow(columns)
  about_mean <- function(x) sweep(x, 2, colSums(x * weights))
  centred <- about_mean(columns)
  target <- about_mean(values)
  method <- if (n >= 10 * ncol(columns)) "least squares" else "Ledoit-Wolf"
  slope <- if (method == "least squares") {
    b <- stats::lm.wfit(centred, target, weights)$coefficients
    b <- matrix(b, ncol(columns))
    # columns that depend on others
    b[is.na(b)] <- 0
    b
  } else {
    scale <- sqrt(colSums(centred^2 * weights))
    scale[scale == 0] <- 1
    centred <- sweep(centred, 2, scale, "/")
    shrunk <- ledoit_wolf(centred, weights)
    solve(shrunk, crossprod(centred, target * weights)) / scale
  }
  out <- values - columns %*% slope
  spread <- function(x) colSums(about_mean(x)^2 * weights)
  before <- spread(values)
  list(
    values = out,
    estimates = colSums(out * weights),
    variance_ratio = ifelse(before > 0, spread(out) / before, NA),
    method = method
  )
}

# (1 - lambda) S + lambda mu I of centred columns, lambda estimated.
ledoit_wolf <- function(x, weights) {
  n_column <- ncol(x)
  s <- crossprod(x, x * weights)
  mu <- mean(diag(s))
  distance <- sum((s - diag(mu, n_column))^2)
  # sum_k w_k^2 || x_k x_k' - S ||^2
  size <- rowSums(x^2)
  error <- sum(weights^2 * (size^2 - 2 * rowSums((x %*% s) * x) + sum(s^2)))
  lambda <- if (distance > 0) min(1, error / distance) else 1
  # a matrix of fewer draws than columns is singular without it
  lambda <- max(lambda, sqrt(.Machine$double.eps))
  (1 - lambda) * s + diag(lambda * mu, n_column)
}
