# Draws from priors that learn their scales, before there are data.

#' Draws from a prior that learns its scales
#'
#' Independent draws of the hyperparameters and coefficients of [prior_hs()],
#' [prior_ridge()] or [prior_r2d2()], to see what a prior says before the data
#' do.
#'
#' @param object (`tall_prior`) The prior. Its `autoscale` is left alone: the
#'   columns have standard deviation 1.
#' @param nsim (whole number) How many draws.
#' @param seed (whole number or `NULL`) Makes the draws reproducible; `NULL`:
#'   from R's generator.
#' @param n_coef (whole number) Coefficients.
#' @param ... Unused: other arguments are refused.
#'
#' @return A [posterior::draws_matrix()] with a row for each draw: coefficients
#'   `x1`, `x2`, ..., then hyperparameters as [prior_hs()] names them.
#' @section Conditions: `tall_error_input` if an argument is not as described.
#' @examples
#' draws <- simulate(prior_ridge(), 1000, seed = 1, n_coef = 2)
#' posterior::summarise_draws(draws)
#'
#' # Effective number of ten coefficients, of data with N = 1,000 rows and
#' # standard deviation 1, with a guess of two
#' prior <- prior_hs(global_scale = 2 / 8 / sqrt(1000), slab_scale = 1000)
#' draws <- simulate(prior, 4000, seed = 1, n_coef = 10)
#' local <- posterior::subset_draws(draws, "hs_local", regex = TRUE)
#' global <- as.vector(draws[, "hs_global"])
#' kappa <- 1 / (1 + 1000 * (global * local)^2)
#' summary(rowSums(1 - kappa))
#' @name simulate-priors
NULL

simulate_mixture <- function(object, nsim = 1, seed = NULL, n_coef = 1, ...) {
  check_no_dots(...)
  nsim <- check_count(nsim)
  n_coef <- check_count(n_coef, max = 10000)
  check_seed(seed)
  resolved <- prior_resolve(
    object,
    names = paste0("x", seq_len(n_coef)),
    column_sd = rep(1, n_coef),
    takes_mixture = TRUE
  )
  with_seed(seed, {
    out <- .Call(
      ffi_mixture_simulate,
      resolved$mixture$params,
      as.double(n_coef),
      as.double(nsim),
      as.double(sample.int(.Machine$integer.max, 1))
    )
  })
  out <- t(rbind(out$beta, out$natural))
  colnames(out) <- c(paste0("x", seq_len(n_coef)), resolved$mixture$names)
  posterior::as_draws_matrix(out)
}

#' @rdname simulate-priors
#' @export
simulate.tall_prior_hs <- simulate_mixture
#' @rdname simulate-priors
#' @export
simulate.tall_prior_ridge <- simulate_mixture
#' @rdname simulate-priors
#' @export
simulate.tall_prior_r2d2 <- simulate_mixture
