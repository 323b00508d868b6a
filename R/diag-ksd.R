# Kernel Stein discrepancy, and what it shares with the other diagnostics that
# need gradients at the draws.

#' Kernel Stein discrepancy
#'
#' Measures how far draws are from the posterior by the gradients of its
#' logarithm alone: unlike R-hat and effective sample sizes it sees that a chain
#' has converged to a wrong distribution.
#'
#' @param draws (numeric matrix of K draws x n_dim, draws object of
#'   \pkg{posterior}, or [`tall_fit`][tall_fit]) The draws, of unconstrained
#'   parameters. Of a fit the parameters are taken as they were sampled:
#'   `log_sigma`, not `sigma`.
#' @param gradient (numeric matrix of K x n_dim, `tall_model`, `"kept"` or
#'   `NULL`) Gradients of the **log posterior** at the draws (not of its
#'   negative). A model: its exact gradients, one pass over the data for each of
#'   at most `max_draws` draws. `"kept"`: those that a run with `keep =
#'   c("draws", "gradients")` left, for free, but noisy unless it ran on full
#'   gradients. `NULL`: the model of the fit.
#' @param c (positive number) The scale of the kernel.
#' @param beta (number between -1 and 0, exclusive) Its exponent.
#' @param form (string) `"vector"` or `"coordinate"`, see Details.
#' @param prefixes (whole numbers or `NULL`) Numbers of draws: the discrepancy
#'   of the first so many, for each. Draws of several chains are taken iteration
#'   by iteration.
#' @param diagonal (`TRUE` or `FALSE`) Keep the terms that compare a draw with
#'   itself? See the section on noise.
#' @param max_draws (whole number of at least 2, or `Inf`) How many draws exact
#'   gradients are computed at, each with the arithmetic of a pass over the
#'   data: of more, evenly spaced ones are taken and a message says so.
#'   Gradients that are there already (a matrix, `"kept"`) are all used, as are
#'   the draws of `prefixes`.
#' @param covariance (numeric matrix of n_dim x n_dim, or `NULL`) Compare in the
#'   coordinates \eqn{L^{-1} \theta}{L^-1 theta}, where \eqn{L L^T} is this
#'   matrix.
#' @param cores (whole number) Threads. The result does not depend on it.
#'
#' @details With \eqn{b_k = \nabla \log \pi(\theta_k)}{b_k = grad log
#' pi(theta_k)}, \eqn{u = \theta_k - \theta_l}{u = theta_k - theta_l}, \eqn{q =
#' c^2 + \|u\|^2}{q = c^2 +
#' ||u||^2} and the inverse multiquadric kernel \eqn{q^\beta}{q^beta},
#' \deqn{k_j(k, l) = b_{kj} b_{lj} q^\beta + 2 \beta q^{\beta - 1} u_j (b_{lj} -
#' b_{kj}) - 2 \beta q^{\beta - 1} - 4 \beta (\beta - 1) q^{\beta - 2}
#' u_j^2,}{k_j(k, l) = b_kj b_lj q^beta + 2 beta q^(beta-1) u_j (b_lj - b_kj) -
#' 2 beta q^(beta-1) - 4 beta (beta-1) q^(beta-2) u_j^2,} whose mean over
#' independent draws of the posterior is zero for \eqn{k \neq l}{k != l}. The
#' vector form is \eqn{\sqrt{K^{-2} \sum_{k, l} \sum_j k_j(k, l)}}{sqrt(K^-2
#' sum_kl sum_j k_j(k, l))}; the coordinate form \eqn{\sum_j \sqrt{K^{-2}
#' \sum_{k, l} k_j(k, l)}}{sum_j sqrt(K^-2 sum_kl k_j(k, l))} is eq. 20 of
#' Putcha, Nemeth & Fearnhead (2023), whose program computes the vector form,
#' from gradients of the negative log posterior: its terms that are linear in
#' them have the wrong sign.
#'
#' The kernel compares distances with \eqn{c}. Posteriors of tall data are
#' narrow: with \eqn{c = 1} in the units of the parameters the discrepancy is
#' then little more than the norm of the average gradient. Give `covariance`,
#' for instance the inverse of the Hessian at the mode, to compare in standard
#' deviations. For K independent draws of a standard normal in d dimensions its
#' square is then about 2 d / K with \eqn{\beta = -1/2}.
#'
#' A density that is cut off at the bounds of [prior_uniform()] does not vanish
#' there, as the identity behind it asks for. For fits and models with such a
#' prior draws and gradients are taken in coordinates without bounds, \eqn{m + w
#' \, \mathrm{artanh}((\theta - m) / w)}{m + w artanh((theta - m) / w)} for
#' \eqn{\theta}{theta} between \eqn{m - w} and \eqn{m + w}, which leave the
#' middle as it is. Of draws and gradients that are both given as matrices
#' nothing is known: bring them to coordinates without bounds.
#'
#' The cost is \eqn{3 K^2 d} multiplications through BLAS, in blocks; the memory
#' beyond a few copies of the draws is constant.
#'
#' @section What it is blind to: Discrepancies see the posterior through its
#' gradients only: weights of modes that are far apart hardly matter to them, so
#' that draws of one mode out of two can score well. [ksd()] compares all pairs
#' and vanishes in the limit for the posterior alone (with \eqn{\beta > -1}), at
#' a cost quadratic in the draws; in many dimensions its value is mostly the
#' Monte Carlo error of the diagonal, so that small biases need many draws.
#' [fssd()] is linear in the draws and looks in a few locations only: a fault of
#' the draws where no location is near goes unseen, and locations drawn from
#' draws that are themselves wrong are where these draws are, not where they are
#' missing. Both mix bias with Monte Carlo error: a chain that moves slowly and
#' one that is biased can have the same discrepancy.
#'
#' @section Noisy gradients: An unbiased estimate \eqn{\hat g}{g-hat} adds
#' \eqn{c^{2 \beta} \, \mathrm{tr\,Cov}(\hat g) / K}{c^(2 beta) tr Cov(g-hat) /
#' K} to the square of the vector form, through the terms of a draw with itself;
#' and as later draws depend on the noise, the others are biased too. `diagonal
#' = FALSE` leaves out the former and divides by \eqn{K (K - 1)}, which makes
#' the square an unbiased estimate for independent draws, one that may be
#' negative: the result is then 0. Discrepancies from noisy gradients are
#' labelled so.
#'
#' @return A number, with the attribute `gradient = "noisy"` if it is from noisy
#'   gradients; with `prefixes` a data frame of `draws`, `ksd` and `gradient`
#'   (`"exact"`, `"noisy"` or `"given"`). Weights of the draws are used if there
#'   are any.
#' @section Conditions: `tall_error_input` for fewer than two draws, missing
#' values, draws beyond the bounds of the prior, or gradients that do not match
#' the draws; `tall_error_unsupported` if
#' the fit kept no gradients; `tall_error_stale` if the model is gone.
#' @references
#' Gorham & Mackey (2017). Measuring sample quality with kernels. *ICML*.
#'
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @seealso [fssd()], linear in the draws; [sg_tune()]
#' @examples
#' x <- matrix(rnorm(2000), 1000)
#' ksd(x, -x)
#' # too wide, and off centre
#' ksd(1.5 * x, -1.5 * x)
#' ksd(x + 0.5, -x - 0.5)
#' ksd(x, -x, prefixes = c(10, 100, 1000))
#'
#' model <- model_gaussian(matrix(rnorm(400), 200), covariance = diag(2))
#' fit <- sg_sample(model, kernel_sgld(0.005), iter = 500, seed = 1)
#' ksd(fit, covariance = model$posterior_covariance)
#' @export
ksd <- function(
  draws,
  gradient = NULL,
  c = 1,
  beta = -0.5,
  form = c("vector", "coordinate"),
  prefixes = NULL,
  diagonal = TRUE,
  max_draws = 2000,
  covariance = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_given(draws)
  check_not_robust(draws, "ksd")
  max_draws <- check_max_draws(max_draws, prefixes)
  problem <- stein_problem(draws, gradient, c, beta, covariance, max_draws)
  form <- check_choice(form, c("vector", "coordinate"))
  n <- ncol(problem$theta)
  prefixes <- check_prefixes(prefixes, n)
  check_flag(diagonal)
  cores <- check_cores(cores)
  square <- ksd_squares(
    by_iteration(problem),
    form,
    diagonal,
    if (is.null(prefixes)) n else prefixes,
    cores
  )
  value <- colSums(sqrt(pmax(square, 0)))
  label_discrepancy(value, "ksd", prefixes, problem$label)
}

# A number, or a row for each prefix, with what the gradients were.
label_discrepancy <- function(value, name, prefixes, label) {
  if (is.null(prefixes)) {
    attr(value, "gradient") <- if (label == "noisy") "noisy"
    return(value)
  }
  table <- data.frame(draws = prefixes, value, gradient = label)
  names(table)[[2]] <- name
  table
}

# What a Stein discrepancy is made of, checked: weighted draws with the
# gradients of the log density there, and the kernel (c^2 + ||x - y||^2)^beta.
# theta, score: n_dim x n_draw, chain after chain, in the coordinates of
# `covariance`, whose root is R'R; `order` goes through them iteration by
# iteration. max_draws: where gradients
# are to be computed. bounds: as stein_bounds() has them, which are then taken
# away.
stein_problem <- function(
  draws,
  gradient,
  c,
  beta,
  covariance,
  max_draws = Inf,
  bounds = points_bounds(points, gradient)
) {
  points <- diagnostic_points(draws)
  n <- nrow(points$draws)
  if (n < 2) {
    abort_input(
      "{.arg draws} must have at least 2 draws, not {n}.",
      argument = "draws",
      expected = 2,
      value = n
    )
  }
  c <- check_number(c, positive = TRUE, arg = "c")
  beta <- check_number(beta, arg = "beta")
  if (beta <= -1 || beta >= 0) {
    abort_value(beta, 1, "lie between -1 and 0, exclusive", "beta")
  }
  if (is.null(gradient) || inherits(gradient, "tall_model")) {
    points <- thin_points(points, max_draws)
  }
  slope <- point_gradients(points, gradient)
  if (!is.null(bounds)) {
    slope$values <- unbound_gradients(slope$values, points$draws, bounds)
    points$draws <- unbound_points(points$draws, bounds)
  }
  problem <- list(
    theta = t(points$draws),
    score = t(slope$values),
    bounds = bounds,
    weights = points$weights,
    order = points$order,
    label = slope$label,
    c = c,
    beta = beta
  )
  if (!is.null(covariance)) {
    root <- covariance_root(covariance, ncol(points$draws))
    problem$root <- root
    problem$theta <- backsolve(root, problem$theta, transpose = TRUE)
    problem$score <- root %*% problem$score
  }
  structure(problem, class = "tall_stein_problem")
}

# The draws of a problem in the order in which they were made, so that the first
# ones are a prefix of the run.
by_iteration <- function(problem) {
  order <- problem$order
  problem$theta <- problem$theta[, order, drop = FALSE]
  problem$score <- problem$score[, order, drop = FALSE]
  problem$weights <- problem$weights[order]
  problem$order <- seq_along(order)
  problem
}

# Squares of the discrepancy: a row for each coordinate, or one; a column for
# each prefix of the draws.
ksd_squares <- function(
  problem,
  form = "vector",
  diagonal = TRUE,
  prefixes = ncol(problem$theta),
  cores = 1
) {
  theta <- problem$theta
  weights <- problem$weights
  parts <- .Call(
    ffi_ksd,
    theta - rowMeans(theta),
    problem$score,
    weights,
    problem$c,
    problem$beta,
    form == "coordinate",
    as.integer(cores)
  )
  added <- if (diagonal) parts$diagonal + parts$below else parts$below
  added <- matrix(added, ncol = ncol(theta))
  total <- apply(added, 1, cumsum)
  total <- t(matrix(total, ncol(theta)))[, prefixes, drop = FALSE]
  sweep(total, 2, prefix_pairs(weights, diagonal)[prefixes], "/")
}

# For each prefix of the draws, the weight of their pairs.
prefix_pairs <- function(weights, diagonal) {
  cumsum(weights)^2 - if (diagonal) 0 else cumsum(weights^2)
}

check_prefixes <- function(prefixes, n) {
  if (is.null(prefixes)) {
    return(NULL)
  }
  prefixes <- check_numeric_vector(prefixes)
  bad <- which(prefixes != round(prefixes) | prefixes < 2 | prefixes > n)
  if (length(bad) > 0) {
    abort_value(
      prefixes,
      bad[[1]],
      paste("be whole numbers between 2 and", format_count(n)),
      arg = "prefixes"
    )
  }
  unname(prefixes)
}

# Prefixes take all draws.
check_max_draws <- function(
  max_draws,
  prefixes = NULL,
  arg = caller_arg(max_draws)
) {
  if (!identical(max_draws, Inf)) {
    max_draws <- check_count(max_draws, min = 2, arg = arg)
  }
  if (is.null(prefixes)) max_draws else Inf
}

# Evenly spaced, in the order of iterations; the last one is among them.
thin_points <- function(points, max_draws) {
  n <- nrow(points$draws)
  if (n <= max_draws) {
    return(points)
  }
  cli::cli_inform(
    c(
      i = "Exact gradients at {format_count(max_draws)} of the {format_count(n)}
           draws, evenly spaced; {.code max_draws = Inf} takes all."
    ),
    class = "tall_message_thinned"
  )
  kept <- points$order[ceiling(seq_len(max_draws) * (n / max_draws))]
  points$draws <- points$draws[kept, , drop = FALSE]
  points$weights <- points$weights[kept]
  points$order <- seq_len(max_draws)
  points
}

# Upper triangular R, R'R = covariance.
covariance_root <- function(covariance, n_dim, arg = "covariance") {
  check_covariance(covariance, n_dim, arg = arg)
  chol(unname(covariance))
}
