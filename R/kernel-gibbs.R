# Sweeps of models that move their own chains: src/kernels/gibbs.c,
# src/models/crossed-sweep.c.

#' Sweeps of effects
#'
#' The kernel of [model_crossed()]: exact Metropolis-within-Gibbs sweeps, in
#' which coefficients, the effects of all levels, their standard deviations and
#' correlations, and the response's own parameters are drawn in turn, each given
#' all others. A sweep looks at each row a few times, however many levels there
#' are. Nothing is tuned by hand.
#'
#' @param keep_effects (string, list or `NULL`) What is kept of the effects of
#'   levels, which may be many: `"summary"`, means, standard deviations,
#'   quantiles and R-hat over all sweeps after warmup; `"draws"`, draws besides,
#'   as many as of the parameters; a list of levels by the names of their
#'   factors, such as `list(g = c("a", "b"))`: draws of their effects, summaries
#'   of all; or `"none"`. `NULL`: draws where they take 200 MB at most, else
#'   summaries.
#' @param joint (`TRUE`, `FALSE` or `NULL`) Of a Gaussian response and several
#'   factors: draw the effects of all of them jointly, too, after each sweep?
#'   `NULL`: where a pilot says that it pays.
#'
#' @details
#' With \eqn{\eta_i = x_i^\top \beta + \sum_k z_{ik}^\top u_{k, g_k(i)}}{eta_i =
#' x_i'beta + sum_k z_ik'u_k,g_k(i)} and \eqn{u_{kg} \sim N(0, \Sigma_k)}{u_kg ~
#' N(0, Sigma_k)}, a sweep draws
#'
#' * the effects of each level jointly, by an independence proposal: Student's t
#'   with 5 degrees of freedom about a mode that two steps of Newton's method
#'   find, with the curvature there. Where these steps begin is found in warmup
#'   and stays after it, so that a proposal does not depend on what it replaces.
#'   With a normal response the effects are drawn from their distribution, and
#'   none is refused;
#' * the coefficients likewise, by gradients of all rows and a Hessian of
#'   warmup's;
#' * standard deviations and correlations given the effects, by slices;
#' * these together with their effects, \eqn{u_{kg} = F_k v_{kg}}{u_kg = F_k
#'   v_kg} with \eqn{F_k F_k^\top = \Sigma_k}{F_k F_k' = Sigma_k} at given
#'   \eqn{v}{v}, without which they move only as far as the effects at hand
#'   allow (Yu & Meng, 2011): by slices where the response is normal, else by
#'   normal steps that warmup sizes;
#' * along lines on which no \eqn{\eta_i}{eta_i} changes, and which cost no look
#'   at the data: a coefficient against the effects of a factor, where its
#'   column is constant within levels or a multiple of that of a slope, and the
#'   effects of one factor against those of another, within each part of the
#'   levels that rows connect: each level with those nested in it, where one
#'   factor is nested in another, whose standard deviation moves so, too. They
#'   are what makes crossed effects mix (Papaspiliopoulos, Roberts & Zanella,
#'   2020);
#' * parameters of the response, by slices.
#'
#' Rows of a Gaussian response that are equal but for it and their weights are
#' one cell, with the sum of their weights and their weighted mean, which is all
#' that a sweep sees of them, if that leaves four fifths of the rows at most.
#' Where there are more `cores` than chains, those of
#' a chain look at its rows together, each at least at 8,192, and draw the
#' effects of its levels: the same draws to the last bit.
#'
#' No draw is needed for `q5` and `q95`: from sweep to sweep \eqn{n} after
#' warmup \eqn{q} moves by \eqn{c_n (p - [u \le q])}{c_n (p - [u <= q])},
#' \eqn{c_n} the standard deviation so far over \eqn{0.069 n}, a stochastic
#' approximation (Robbins & Monro, 1951; Tierney, 1983) whose error is about
#' that of the quantile of as many draws; that of all chains is the mean of
#' theirs.
#'
#' What mixes slowly all the same are factors whose rows connect their levels
#' poorly, such as workers who seldom change firms: 30 passes over the rows
#' foretell what a sweep leaves of where effects were, at most, whatever their
#' standard deviations are. Where that is 0.86 or more, 50 sweeps of a pilot
#' find standard deviations and the curvature of the rows, and 30 passes say
#' what a sweep leaves with these. Where that is still 0.86 or more, all effects
#' of a Gaussian response are drawn jointly after each sweep, with \eqn{C}{C}
#' the precisions of rows, \eqn{P}{P} that of the effects and
#' \eqn{\xi, \zeta}{xi, zeta} normal,
#' \deqn{u' = u + (Z^\top C Z + P)^{-1} [Z^\top (C (y - \eta) + C^{1/2} \xi)
#' - P u + P^{1/2} \zeta],}{u' = u + (Z'CZ + P)^-1 [Z'(C (y - eta) + C^(1/2) xi)
#' - P u + P^(1/2) zeta],}
#' by conjugate gradients, the first factor eliminated, until
#' \eqn{10^{-8}}{1e-8} of the right side is left (Papandreou & Yuille 2010;
#' Pandolfi, Papaspiliopoulos & Zanella 2024). Their number grows with the root
#' of that of the sweeps that one independent draw would take. Of other
#' responses a message tells before the run, from 0.9 on. Where sweeps take less
#' than a millisecond, a draw is made of several, up to four, unless `thin` is
#' given: `fit$recipe` has `sweeps`, and `mixing`, what a sweep leaves of where
#' effects were, at most. What takes more than 20 seconds or a gigabyte says so
#' before it starts: rows with their levels, what each chain has of its own, and
#' draws of effects.
#'
#' @return A spec of class `tall_kernel` for [sg_sample()]. A fit has `effects`,
#' a data frame with a row for each effect, its `variable` (`r_g[level,effect]`,
#' as in brms), `mean`, `sd`, the quantiles `q5` and `q95` and `rhat`, and,
#' where draws are kept, `effect_draws`, a [posterior::draws_array].
#' @section Conditions: `tall_error_input` if an argument is not as described;
#' when the run starts, `tall_error_unsupported` for another model, for a
#' `gradient`, `subsample`, `schedule` or `lambda`, or for `joint = TRUE` where
#' there are no joint draws.
#' @references
#' Pandolfi, Papaspiliopoulos & Zanella (2024). Conjugate gradient methods for
#' high-dimensional GLMMs. arXiv:2411.04729.
#'
#' Papandreou & Yuille (2010). Gaussian sampling by local perturbations.
#' *Advances in Neural Information Processing Systems* 23, 1858-1866.
#'
#' Papaspiliopoulos, Roberts & Zanella (2020). Scalable inference for crossed
#' random effects models. *Biometrika* 107, 25-40.
#'
#' Robbins & Monro (1951). A stochastic approximation method. *Annals of
#' Mathematical Statistics* 22, 400-407.
#'
#' Tierney (1983). A space-efficient recursive procedure for estimating a
#' quantile of an unknown distribution. *SIAM Journal on Scientific and
#' Statistical Computing* 4, 706-711.
#'
#' Yu & Meng (2011). To center or not to center: that is not the question.
#' *Journal of Computational and Graphical Statistics* 20, 531-570.
#' @examples
#' kernel_gibbs()
#' @export
kernel_gibbs <- function(keep_effects = NULL, joint = NULL) {
  if (is.list(keep_effects)) {
    check_kept_levels(keep_effects)
  } else if (!is.null(keep_effects)) {
    keep_effects <- check_choice(keep_effects, kept_effects)
  }
  if (!is.null(joint)) {
    check_flag(joint)
  }
  new_spec("kernel", "gibbs", keep_effects = keep_effects, joint = joint)
}

kept_effects <- c("summary", "draws", "none")

# Levels of some factors, by their names.
check_kept_levels <- function(levels) {
  is_fine <- length(levels) > 0 && rlang::is_named(levels) &&
    anyDuplicated(names(levels)) == 0 &&
    all(vapply(levels, function(x) is.atomic(x) && length(x) > 0, TRUE))
  if (!is_fine) {
    abort_expected(
      levels,
      "a list of levels by the names of grouping factors",
      arg = "keep_effects"
    )
  }
}

#' @export
compile_spec.tall_kernel_gibbs <- function(spec, context) {
  member("gibbs", list(joint = as.double(isTRUE(spec$args$joint))))
}

#' @export
kernel_traits.tall_kernel_gibbs <- function(kernel) {
  new_kernel_traits("sweeps of effects")
}

# Does it ask the model for sweeps?
kernel_sweeps <- function(kernel) {
  inherits(kernel, "tall_kernel_gibbs")
}
