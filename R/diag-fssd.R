# Finite set Stein discrepancy: what ksd.R measures over all pairs of draws,
# seen from a few locations.

#' Finite set Stein discrepancy
#'
#' Measures how far draws are from the posterior, by the gradients of its
#' logarithm, at a few test locations: its cost is linear in the draws, where
#' that of [ksd()] is quadratic.
#'
#' @inheritParams ksd
#' @param prefixes (whole numbers or `NULL`) Numbers of draws: the discrepancy
#'   of the first so many, for each, seen from the same locations. Draws of
#'   several chains are taken iteration by iteration. Locations that are drawn
#'   or optimised are those of all draws.
#' @param locations (whole number, or numeric matrix of J x n_dim) The number of
#'   test locations, which are then drawn from the normal distribution with the
#'   mean and the covariance of the draws; or the locations.
#' @param estimate (string) `"unbiased"`: an estimate of the **square** of the
#'   discrepancy, without bias for independent draws and locations that do not
#'   depend on them, which may be negative. `"biased"`: the root of the square
#'   with the terms of a draw with itself, as [ksd()] has them; never negative.
#' @param optimise (whole number) Steps of gradient ascent (by L-BFGS,
#'   [stats::optim()]) that move the locations to where the discrepancy is
#'   largest; 0: leave them where they are.
#' @param seed (whole number or `NULL`) Seed for drawing locations. `NULL` takes
#'   one from R's generator.
#'
#' @details With \eqn{b_k = \nabla \log \pi(\theta_k)}{b_k = grad log
#' pi(theta_k)}, a location \eqn{v}, \eqn{u = \theta_k - v}{u = theta_k - v},
#' \eqn{q = c^2 + \|u\|^2}{q = c^2 +
#' ||u||^2} and the inverse multiquadric kernel \eqn{q^\beta}{q^beta},
#' \deqn{\xi(\theta_k, v) = b_k q^\beta + 2 \beta q^{\beta - 1} u}{xi(theta_k,
#' v) = b_k q^beta + 2 beta q^(beta-1) u} has mean zero for draws of the
#' posterior (Jitkrittum et al., 2017, section 3). The square of the discrepancy
#' is the mean over locations and coordinates of \eqn{E[\xi_i(\theta,
#' v_j)]^2}{E[xi_i(theta, v_j)]^2}; with \eqn{S_j} the sum of \eqn{\xi(\theta_k,
#' v_j)}{xi(theta_k, v_j)} over the K draws it is estimated by \deqn{\frac{1}{d
#' J} \sum_j \frac{\|S_j\|^2}{K^2}, \qquad \frac{1}{d J} \sum_j
#' \frac{\|S_j\|^2 - \sum_k \|\xi(\theta_k, v_j)\|^2}{K (K - 1)},}{sum_j
#' ||S_j||^2 / (d J K^2) and sum_j (||S_j||^2 - sum_k ||xi(theta_k, v_j)||^2) /
#' (d J K (K - 1)),} biased and unbiased (their eq. 2).
#'
#' Optimised locations are where draws and posterior differ most, which shows
#' how they differ. On the draws that they were optimised for the discrepancy is
#' then too large; give the locations found on one half of the draws to a call
#' with the other. The paper optimises the power of a test, which is not the
#' same.
#'
#' Within the bounds of [prior_uniform()] it works as [ksd()] does, in
#' coordinates without bounds; `locations` are given and returned in the
#' parameters.
#'
#' As with [ksd()], the kernel compares distances with \eqn{c}: give
#' `covariance` for posteriors that are much narrower or wider. The cost is
#' \eqn{4 K J d} multiplications through BLAS, \eqn{10 K J d} for each step of
#' ascent; the memory beyond a few copies of the draws does not grow with \eqn{K
#' J}.
#'
#' @inheritSection ksd What it is blind to
#' @section Noisy gradients: Noise of gradient estimates, if independent of the
#' draws, does not bias `"unbiased"`; it adds the noise's variance over K to the
#' square of `"biased"`. Discrepancies from noisy gradients are labelled so.
#'
#' @return A number: the square for `"unbiased"`, the root for `"biased"`, with
#'   the attribute `gradient = "noisy"` if it is from noisy gradients; with
#'   `prefixes` a data frame of `draws`, `fssd` and `gradient` (`"exact"`,
#'   `"noisy"` or `"given"`). Optimised locations are its attribute `locations`,
#'   J x n_dim. Weights of the draws are used if there are any.
#' @section Conditions: `tall_error_input` for fewer than two draws, missing
#' values, or gradients or locations that do not match the draws;
#' `tall_error_unsupported` if the fit kept no gradients; `tall_error_stale` if
#' the model is gone.
#' @references
#' Jitkrittum, Xu, Szabo, Fukumizu & Gretton (2017). A linear-time kernel
#' goodness-of-fit test. *NeurIPS*.
#' @seealso [ksd()], [sg_tune()]
#' @examples
#' x <- matrix(rnorm(2000), 1000)
#' fssd(x, -x, seed = 1)
#' # too wide, and off centre
#' fssd(1.5 * x, -1.5 * x, seed = 1)
#' fssd(x + 0.5, -x - 0.5, seed = 1)
#' fssd(x, -x, prefixes = c(10, 100, 1000), seed = 1)
#'
#' # where the draws and the posterior differ most
#' half <- 1:500
#' wide <- 1.5 * x
#' train <- wide[half, ]
#' found <- fssd(train, -train, locations = 2, optimise = 50, seed = 1)
#' attr(found, "locations")
#' fssd(wide[-half, ], -wide[-half, ], locations = attr(found, "locations"))
#' @export
fssd <- function(
  draws,
  gradient = NULL,
  locations = 10,
  c = 1,
  beta = -0.5,
  estimate = c("unbiased", "biased"),
  optimise = 0,
  prefixes = NULL,
  covariance = NULL,
  max_draws = 2000,
  seed = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_given(draws)
  check_not_robust(draws, "fssd")
  max_draws <- check_max_draws(max_draws, prefixes)
  problem <- stein_problem(draws, gradient, c, beta, covariance, max_draws)
  diagonal <- check_choice(estimate, c("unbiased", "biased")) == "biased"
  optimise <- check_count(optimise, min = 0, most = count_limits$integer)
  prefixes <- check_prefixes(prefixes, ncol(problem$theta))
  seed <- check_seed(seed)
  cores <- check_cores(cores)
  places <- test_locations(locations, problem, seed)
  if (optimise > 0) {
    places <- ascend_locations(places, problem, diagonal, optimise, cores)
  }
  value <- if (is.null(prefixes)) {
    fssd_square(places, problem, diagonal, cores)$value
  } else {
    fssd_squares(places, problem, diagonal, prefixes, cores)
  }
  if (diagonal) {
    value <- sqrt(value)
  }
  value <- label_discrepancy(value, "fssd", prefixes, problem$label)
  if (optimise > 0) {
    if (!is.null(problem$root)) {
      places <- crossprod(problem$root, places)
    }
    attr(value, "locations") <- if (is.null(problem$bounds)) {
      t(places)
    } else {
      bound_points(t(places), problem$bounds)
    }
  }
  value
}

# list(value, slope): the square of the discrepancy seen from the locations,
# n_dim x J in the coordinates of the problem, and its derivatives with respect
# to them.
fssd_square <- function(places, problem, diagonal, cores, wants_slope = FALSE) {
  center <- rowMeans(problem$theta)
  parts <- fssd_sums(places, problem, center, diagonal, cores, wants_slope)
  n <- length(problem$weights)
  scale <- length(places) * prefix_pairs(problem$weights, diagonal)[[n]]
  list(
    value = fssd_total(parts, diagonal) / scale,
    slope = if (wants_slope) parts$slope / scale
  )
}

# The square of each prefix of the draws: what is summed over them is what is
# summed over a shorter prefix and over the draws since.
fssd_squares <- function(places, problem, diagonal, prefixes, cores) {
  center <- rowMeans(problem$theta)
  ends <- sort(unique(prefixes))
  starts <- c(0, ends[-length(ends)]) + 1
  sums <- list(sum = 0, square = 0)
  total <- numeric(length(ends))
  for (k in seq_along(ends)) {
    draws <- problem$order[starts[[k]]:ends[[k]]]
    piece <- problem
    piece$theta <- problem$theta[, draws, drop = FALSE]
    piece$score <- problem$score[, draws, drop = FALSE]
    piece$weights <- problem$weights[draws]
    parts <- fssd_sums(places, piece, center, diagonal, cores)
    sums <- Map(`+`, sums, parts[names(sums)])
    total[[k]] <- fssd_total(sums, diagonal)
  }
  pairs <- prefix_pairs(problem$weights[problem$order], diagonal)
  total[match(prefixes, ends)] / (length(places) * pairs[prefixes])
}

# list(sum, square, slope): S, D and the slope of src/diagnostics/fssd.h.
fssd_sums <- function(
  places,
  problem,
  center,
  diagonal,
  cores,
  wants_slope = FALSE
) {
  .Call(
    ffi_fssd,
    problem$theta - center,
    problem$score,
    problem$weights,
    places - center,
    problem$c,
    problem$beta,
    diagonal,
    wants_slope,
    as.integer(cores)
  )
}

fssd_total <- function(sums, diagonal) {
  sum(sums$sum^2) - if (diagonal) 0 else sum(sums$square)
}

# n_dim x J, in the coordinates of the problem.
test_locations <- function(locations, problem, seed) {
  n_dim <- nrow(problem$theta)
  if (is.matrix(locations)) {
    check_matrix(locations, n_col = n_dim, arg = "locations")
    locations <- unname(locations)
    storage.mode(locations) <- "double"
    if (!is.null(problem$bounds)) {
      locations <- unbound_points(locations, problem$bounds, "locations")
    }
    places <- t(locations)
    return(
      if (is.null(problem$root)) {
        places
      } else {
        backsolve(problem$root, places, transpose = TRUE)
      }
    )
  }
  n <- check_count(locations, most = 1e6, arg = "locations")
  normal_locations(n, problem, seed)
}

# Draws of the normal with the draws' mean and covariance: sums of centred draws
# with normal coefficients, which needs no factor of a covariance that may be
# singular.
normal_locations <- function(n, problem, seed) {
  share <- problem$weights / sum(problem$weights)
  center <- drop(problem$theta %*% share)
  normals <- core_normals(seed, n, length(share))
  center + (problem$theta - center) %*% (sqrt(share) * normals)
}

# n_each x n standard normals of a seed, or of R's generator.
core_normals <- function(seed, n, n_each) {
  seed <- core_seed(list(seed = seed %||% sample.int(.Machine$integer.max, 1)))
  vapply(
    seq_len(n) - 1L,
    function(k) .Call(ffi_rng_norm, seed, k, stream_init, n_each),
    numeric(n_each)
  )
}

# Locations moved to where the square is largest.
ascend_locations <- function(places, problem, diagonal, n_step, cores) {
  shape <- dim(places)
  seen <- list(at = NULL)
  # optim() asks for the value and the slope at a point one after the other
  look <- function(at) {
    if (!identical(seen$at, at)) {
      here <- fssd_square(
        matrix(at, shape[[1]]),
        problem,
        diagonal,
        cores,
        TRUE
      )
      seen <<- c(list(at = at), here)
    }
    seen
  }
  best <- stats::optim(
    as.double(places),
    function(at) look(at)$value,
    function(at) as.double(look(at)$slope),
    method = "L-BFGS-B",
    control = list(fnscale = -1, maxit = n_step)
  )
  matrix(best$par, shape[[1]])
}
