# K-fold cross-validation: kfold().

#' Cross-validation by folds
#'
#' Fits again without each of `K` folds of the rows, and takes the log density
#' of a fold under the fit that has not seen it: what [loo()][loo-tall_glm]
#' approximates, without importance weights, and for whole groups too.
#'
#' @param x (`tall_regression`) The fit, which kept its data.
#' @param K (whole number) Folds; of groups that are fewer, as many as these.
#' @param ... Unused: other arguments are refused.
#' @param folds (string, whole numbers or `NULL`) `"random"`: as many rows in
#'   each; `"stratified"`: so within each value of `group`; `"grouped"`: rows
#'   with the same `group` are in one fold; or the fold of each row of the fit,
#'   as [loo::kfold_split_random()] and its kin make them. `NULL`: `"grouped"`
#'   where there is a `group`, else `"random"`.
#' @param group (one-sided formula, string, vector or `NULL`) What folds are
#'   made by: a formula with one expression of columns of the data, such as `~
#'   hospital`, which may be no column of the model; the name of a column; or a
#'   value for each row.
#' @param save_fits (`TRUE` or `FALSE`) Keep the fits?
#' @param ndraws (whole number or `NULL`) Use that many draws of each fit,
#'   evenly spaced. `NULL`: all, of many rows 400 or more.
#' @param seed (whole number or `NULL`) Seed of the folds. `NULL`: one that is
#'   the same for all fits, so that those of the same data have the same folds.
#'   The fits again have the `seed` of the fit.
#' @param cores (whole number) Threads of each fit.
#' @param refresh (number) 0 is silent; otherwise a progress bar counts the
#'   folds, and others the rows of passes over a source.
#'
#' @details With \eqn{\theta^{(s)}_k} the \eqn{S} draws of the fit without fold
#' \eqn{k}, the fold of row \eqn{i},
#' \deqn{\mathrm{elpd}_i = \log \frac1S \sum_s p(y_i \mid
#' \theta^{(s)}_k)}{elpd_i = log mean_s p(y_i | theta_k^(s))}
#' (Vehtari, Gelman & Gabry, 2017, eq. 20), block by block of rows: rows x draws
#' are never in memory. `p_kfold` is what the log density under the fit to all
#' rows exceeds it by. Weights multiply log densities as in
#' [log_lik()][log-lik].
#'
#' Priors are those of the fit: where `autoscale` divided by the spread of a
#' column it does so by that of all rows, and the intercept's prior stays where
#' all rows have their mean, as do the scales of smooth terms, knots, and pieces
#' of hazards. (rstanarm and brms find them anew in each fold.) The kernel, and
#' a Gibbs posterior's share of each row, are those of the fit, too. These do
#' depend on the fold: the means at which [tall_polr()], [tall_multinom()] and
#' formulas of two parameters have their intercepts; of rows that are passed
#' over (see [tall_glm()]) the means of columns, knots and pieces; and of
#' [tall_glmer()] the scale of `prior_covariance` in Gaussian models.
#'
#' Rows of streams, files and large data frames are passed over. Rows of a fold
#' are known by their numbers, so that passes must have the rows in the same
#' order. All folds share the passes over a stream or file: one look, one pass
#' for each step of the search for the modes, one that draws rows for the
#' sampler, and one that takes the densities of all rows. So there are as many
#' passes as one fit makes, and one more, whatever `K` is; the draws are those
#' of a fit that reads its rows by itself. These passes come on top: one that
#' finds `group`, and one that numbers the rows where some were left out, have
#' weights or trials; another one where the sampler of a fold needs more rows
#' than were drawn; and one for each fold whose fit needs all its rows in
#' memory, as a look tells. The fits have their passes together as far as their
#' samples of rows (the pilots) are expected to take 1 GB (some 25 fits of ten
#' columns); of more and wider ones, some folds at a time. Rows of a data frame
#' are at hand: there each fold passes over them by itself, and the densities
#' are taken in one pass.
#'
#' Of a multilevel fit whose effects are integrated out a group takes the place
#' of a row, as in [loo()][loo-tall_glm]: it is left out whole. With several
#' grouping factors rows are left out, given the effects of their groups, which
#' are drawn anew for groups that are left out whole.
#'
#' brms makes a fold of each `group`; here they are spread over `K`.
#'
#' @return An object of class `c("kfold", "loo")`, which
#'   [loo::loo_compare()] takes: `estimates` and `pointwise` with `elpd_kfold`,
#'   `p_kfold` and `kfoldic`; `folds`, the fold of each row; with `save_fits =
#'   TRUE` also `fits`, a list of them.
#' @section Conditions: `tall_error_unsupported` for [tall_nn()], draws of the
#'   prior, [robust_draws()] and rows of a database that computes the sums;
#'   `tall_error_stale` if data are gone; `tall_error_input` for folds or groups
#'   that are not one for each row. Errors and warnings of a fit again name its
#'   fold.
#' @references Vehtari, Gelman & Gabry (2017). Practical Bayesian model
#' evaluation using leave-one-out cross-validation and WAIC. *Statistics and
#' Computing* 27, 1413-1432.
#' @seealso [reloo()] for a few rows only.
#' @examplesIf requireNamespace("loo", quietly = TRUE)
#' fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1)
#' kfold(fit, K = 4)
#'
#' # whole groups left out
#' kfold(fit, group = ~ cyl)
#' @name kfold-tall_glm
NULL

#' @rdname kfold-tall_glm
#' @exportS3Method loo::kfold
kfold.tall_fit <- function(
  x,
  K = 10,
  ...,
  folds = NULL,
  group = NULL,
  save_fits = FALSE,
  ndraws = NULL,
  seed = NULL,
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  label <- deparse1(substitute(x))
  check_no_dots(...)
  check_flag(save_fits)
  ndraws <- check_draws(x, NULL, ndraws)
  seed <- check_seed(seed) %||% loo_seed
  cores <- check_cores(cores)
  refresh <- check_number(refresh, min = 0)
  cross <- cross_fits(x, cores)
  folds <- make_folds(x, K, folds, group, seed)
  ndraws <- ndraws %||% affordable_draws(x, x$n_data)
  names <- paste("fold", seq_len(folds$K))
  bar <- progress_bar("Folds", folds$K, refresh > 0)
  found <- cross(
    new_crossing(folds$of, names, ndraws, TRUE, save_fits, refresh),
    bar
  )
  bar$done()
  out <- new_kfold(found$elpd, found$lpd, folds)
  if (save_fits) {
    out$fits <- found$fits
  }
  as_tall_loo(out, x, label, found$response)
}

new_kfold <- function(elpd, lpd, folds) {
  pointwise <- cbind(
    elpd_kfold = elpd,
    p_kfold = lpd - elpd,
    kfoldic = -2 * elpd
  )
  structure(
    list(
      estimates = sums_of_pointwise(pointwise),
      pointwise = pointwise,
      folds = folds$of
    ),
    class = c("kfold", "loo"),
    K = folds$K,
    fold_kind = folds$kind,
    group = folds$by
  )
}

# With the standard errors of sums of independent observations.
sums_of_pointwise <- function(pointwise) {
  n <- nrow(pointwise)
  cbind(
    Estimate = colSums(pointwise),
    SE = sqrt(n * apply(pointwise, 2, stats::var))
  )
}

# Both parts of a row that is above 0.
#' @rdname kfold-tall_glm
#' @exportS3Method loo::kfold
kfold.tall_hurdle <- function(x, K = 10, ..., seed = NULL) {
  abort_tall(
    "unsupported",
    c(
      "{.fn kfold} is of one fit, and a hurdle model is two.",
      i = "With {.code folds} of all rows, {.code kfold(fit$zeros, folds =
           folds)} and {.code kfold(fit$counts, folds = folds[y > 0])} add up."
    ),
    argument = "x"
  )
}
