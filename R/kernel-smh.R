# Scalable Metropolis-Hastings: src/kernels/smh.c, src/gradients/factorised.c.

#' Exact draws from a few rows
#'
#' A Metropolis-Hastings kernel for generalised linear models whose steps look
#' at a few rows, however many there are, and sample the posterior **exactly**:
#' there is no step size, no gradient noise and no bias. Nothing is tuned.
#'
#' @param share (number in \[0, 1\] or `NULL`) The share of proposals that stay
#'   near the chain. Where a tail of the posterior is heavier than a normal one,
#'   more of them bring chains in and out of it sooner. `NULL`: 0.1. Not with
#'   `proposal`, whose own settings say it.
#' @param proposal (`tall_proposal` or `NULL`) How it proposes, see [proposals].
#'   `NULL`: as below, by `share`.
#' @param awkward (vector of row numbers or `NULL`) Rows whose likelihood the
#'   proposals know as it is, not by its expansion: those that make a posterior
#'   far from normal, as all rows of a level that has few of them, or none of
#'   one outcome. At most
#'   `r format(setting("awkward_rows"), big.mark = ",")`: each proposal looks at
#'   them. `NULL` and `integer()`: none.
#'
#' @details
#' Scalable Metropolis-Hastings with expansions of second order (Cornish et al.,
#' 2019). At a reference \eqn{\hat\theta}{theta-hat}, with \eqn{\delta = \theta
#' - \hat\theta}{delta = theta - theta-hat}, \eqn{\eta_i} the linear predictor
#' of row \eqn{i}, \eqn{t_i = x_i^T \delta}{t_i = x_i' delta} and \eqn{U_i} its
#' negative log likelihood, let
#' \deqn{e_i(\theta) = U_i(\theta) - U_i(\hat\theta) - U_i'(\hat\eta_i) t_i -
#' \frac12 U_i''(\hat\eta_i) t_i^2.}{e_i(theta) = U_i(theta) - U_i(theta-hat) -
#' U_i'(eta_i) t_i - U_i''(eta_i) t_i^2 / 2.} All that is subtracted adds up to
#' one normal distribution \eqn{N(m, \Sigma)}{N(m, Sigma)}, from one pass over
#' the data.
#' A step proposes \deqn{\theta' = m + \alpha (\theta - m) + \sqrt{1 - \alpha^2}
#' \, \Sigma^{1/2} \xi, \quad \xi \sim N(0, I),}{theta' = m + alpha (theta - m)
#' + sqrt(1 - alpha^2) Sigma^(1/2) xi, xi ~ N(0, I),} with \eqn{\alpha = 0.9} in
#' a `share` of the steps and 0 in the others, and accepts it with probability
#' \deqn{\min(1, e^{-\Delta}) \prod_i \min(1, e^{-[e_i(\theta') -
#' e_i(\theta)]}).}{min(1, exp(-Delta)) prod_i min(1, exp(-[e_i(theta') -
#' e_i(theta)])).} Of the product, most rows need not be looked at: with
#' \eqn{\tilde x_i = L^{-1} x_i}{x~_i = L^-1 x_i}, \eqn{L L^T = \Sigma^{-1}}{L
#' L' = Sigma^-1}, \eqn{z = L^T \delta}{z = L' delta} and a bound \eqn{K_i} of
#' \eqn{|U_i'''|}, \deqn{|e_i(\theta)| \le \psi_i \|z\|^3, \quad \psi_i = K_i
#' \|\tilde x_i\|^3 / 6,}{|e_i(theta)| <= psi_i ||z||^3, psi_i = K_i ||x~_i||^3
#' / 6,} so a Poisson number of rows with mean \eqn{(\|z\|^3 + \|z'\|^3) \sum_i
#' \psi_i}{(||z||^3 + ||z'||^3) sum_i psi_i} is drawn with probabilities
#' proportional to \eqn{\psi_i}, each of which may reject. \eqn{\Delta} is what
#' is left of a prior that is not normal, and the rows that would be drawn more
#' often than not, which are looked at in every step.
#'
#' With `proposal` or `awkward` the steps are surrogate transitions (Liu, 2001):
#' what proposes is a chain on the expansions of all rows but the awkward ones,
#' which are as they are, with the prior as it is, and the test looks at the
#' other rows alone (see [proposals]).
#'
#' Under a prior with scales of its own, such as [prior_hs()], these are in the
#' surrogate, too, and cost no look at the data (see [proposals]; by default
#' [proposal_scales()], of which a `share` stays near). The reference is then
#' the mean of the surrogate's own chain: two runs on it, which look at no row
#' but the awkward ones, find that and the coordinates in which
#' \eqn{\|z\|}{||z||} is taken.
#'
#' Different from the paper: the bounds are those of rows that act through one
#' linear predictor, which are sharper; \eqn{K_i} holds in a ball about the
#' reference, of which there are several, and a step uses the smallest that
#' holds both its ends; a few rows are not thinned.
#'
#' Which ball a step uses depends on its two ends alike, and where they are
#' beyond the largest all rows are looked at: so draws are exact however much of
#' the posterior lies outside a ball, and what that costs is rows. Where rows
#' were drawn ahead of the steps, by a pass over a source, there is one ball, of
#' radius \eqn{\sqrt d + 7}{sqrt(d) + 7} (beyond which a normal posterior has
#' \eqn{e^{-24}}{e^-24} of its mass), under a prior with hyperparameters 1.25
#' times as far as the surrogate's chain went. Proposals beyond it are refused:
#' their share is `outside` in the fit's `chains`, and is printed where it is
#' not 0. Draws are then exactly those of the posterior within the ball.
#'
#' The rows of a step are about \eqn{d^3 / \sqrt N}{d^3 / sqrt(N)}, and one
#' minus the acceptance rate about \eqn{d^{3/2} / \sqrt N}{d^(3/2) / sqrt(N)}:
#' tall data make it fast. A chain that `init` starts many standard deviations
#' out may never leave: there the normal distribution says nothing. Where a few
#' rows make a posterior far from normal (a level with a handful of them, a
#' separated indicator), name them in `awkward`. Few data and many parameters
#' make it so in all directions; then it accepts little and looks at many rows,
#' and [kernel_mala()], or [gradient_cv()] with `order = 2` in a
#' [kernel_sgld()], is better.
#'
#' The fit's `chains` have the acceptance rate, and `rows_thinned` and
#' `rows_always`, the rows of a step that were drawn and those that are looked
#' at every time; an awkward row counts in `rows_always` and in the fit's
#' `passes` each time that the surrogate's chain looks at it, many times a step,
#' although that is no look at other data. Kept gradients (`keep = c("draws",
#' "gradients")`) are those of all rows, and cost a pass over the data each.
#'
#' For each row it keeps eight numbers, and about as much again for the tables
#' that rows are drawn from.
#'
#' @section What it runs with:
#' [model_glm()] with the responses whose third derivative has a bound: binomial
#' with all its links, Poisson, negative binomial, gamma, Student t and normal
#' ones, with the parameter beside the mean given (`size`, `shape`, `sigma`);
#' any prior, those with hyperparameters included; a Gibbs posterior (`lambda`
#' of [sg_sample()]). The reference is the mode, or `at` of `gradient_cv(at,
#' order = 2)`, the one estimator that it takes. It draws its own rows, so that
#' there is no `subsample`, and has no step size, so that there is no
#' `schedule`.
#'
#' @return A spec of class `tall_kernel` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if an argument is not as described, and when the run
#' starts if the model has no such rows. Then, `tall_error_unsupported` for a
#' model without such bounds, another estimator, a subsampling scheme or a
#' schedule;
#' `tall_error_improper` where the posterior has no mode; `tall_error_singular`
#' if it is improper at a reference that was given.
#' @references
#' Cornish, Vanetti, Bouchard-Cote, Deligiannidis & Doucet (2019). Scalable
#' Metropolis-Hastings for exact Bayesian inference with large datasets. *ICML*.
#'
#' Liu (2001). *Monte Carlo Strategies in Scientific Computing*, section 9.4.3.
#' Springer.
#' @seealso `vignette("exact-posteriors")` for what it costs, and where it
#'   fails; [kernel_mala()] for any model with a density
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(2000))
#' y <- rbinom(2000, 1, plogis(0.5 * x[, 2]))
#' model <- model_glm(x, y, family = "bernoulli", prior = prior_normal(0, 2.5))
#' fit <- sg_sample(model, kernel_smh(), iter = 2000, warmup = 100, seed = 1)
#' fit
#' fit$chains[c("acceptance", "rows_thinned", "rows_always")]
#'
#' # twelve rows of a level without an event are known as they are
#' x <- cbind(x, rare = rep(0:1, c(1988, 12)))
#' y[x[, 3] == 1] <- 0
#' model <- model_glm(x, y, family = "bernoulli", prior = prior_normal(0, 2.5))
#' steps <- proposal_mixture(proposal_slice(), proposal_hmc(), times = 3)
#' kernel <- kernel_smh(proposal = steps, awkward = 1989:2000)
#' sg_sample(model, kernel, iter = 2000, warmup = 100, seed = 1)
#' @export
kernel_smh <- function(share = NULL, proposal = NULL, awkward = NULL) {
  if (is.null(proposal)) {
    share <- check_number(share %||% 0.1, min = 0, max = 1, arg = "share")
  } else {
    check_proposal(proposal)
    if (!is.null(share)) {
      abort_share(share)
    }
  }
  new_spec(
    "kernel",
    "smh",
    share = share,
    proposal = proposal,
    awkward = check_awkward(awkward)
  )
}

# A proposal says itself how near it stays.
abort_share <- function(share) {
  abort_input(
    c(
      "{.arg share} and {.arg proposal} cannot be given together: {.arg share}
       is of the proposals that {.fn kernel_smh} has of its own.",
      i = "Leave {.arg share} out, and give {.fn proposal_mixture} its
           {.arg shares}."
    ),
    argument = "share",
    expected = NULL,
    value = share
  )
}

# Row numbers, in order.
check_awkward <- function(awkward) {
  if (length(awkward) == 0 && (is.null(awkward) || is.numeric(awkward))) {
    return(NULL)
  }
  check_numeric_vector(awkward)
  is_row <- awkward >= 1 & awkward == round(awkward)
  if (!all(is_row)) {
    abort_expected(
      awkward[!is_row][[1]],
      "row numbers, from 1 on",
      arg = "awkward"
    )
  }
  awkward <- sort(unique(as.double(awkward)))
  most <- setting("awkward_rows")
  if (length(awkward) > most) {
    abort_input(
      c(
        "{.arg awkward} has {format_count(length(awkward))} rows, more than the
         {format_count(most)} that each proposal can look at.",
        i = "Give those that matter most: rows of the rarest levels."
      ),
      argument = "awkward",
      expected = most,
      value = length(awkward)
    )
  }
  awkward
}

#' @export
compile_spec.tall_kernel_smh <- function(spec, context) {
  proposal <- spec$args$proposal
  model <- context$model # NULL where only the kernel is asked for
  n_coef <- context$n_dim - n_hyper(model)
  if (is.null(proposal) && !has_hyper(model)) {
    return(member("smh", list(share = spec$args$share)))
  }
  proposal <- proposal %||% hyper_proposal(spec$args$share)
  member("smh", compile_proposal(proposal, n_coef))
}

# What the estimator has to know of a kernel's surrogate: which rows, from 0,
# whether the prior is in it, and how it is moved (see new_moves(); NULL: as the
# proposals say).
surrogate_params <- function(kernel, moves, n_data, n_dim) {
  if (!inherits(kernel, "tall_kernel_smh")) {
    return(NULL)
  }
  rows <- kernel$args$awkward
  if (is.null(rows) && is.null(kernel$args$proposal) && is.null(moves)) {
    return(NULL)
  }
  if (length(rows) > 0 && max(rows) > n_data) {
    abort_awkward_rows(rows, n_data)
  }
  if (is.null(moves$lines) && is.null(moves$free) &&
    !is.null(kernel$args$proposal)) {
    moves$lines <- proposal_lines(kernel$args$proposal, n_dim)
  }
  own <- list(awkward = if (length(rows) > 0) rows - 1, whole_prior = 1)
  c(own, unclass(moves))
}

abort_awkward_rows <- function(rows, n_data) {
  abort_expected(
    max(rows),
    paste("row numbers up to", format_count(n_data)),
    arg = "awkward"
  )
}

#' @export
kernel_traits.tall_kernel_smh <- function(kernel) {
  new_kernel_traits("scalable Metropolis-Hastings")
}

# Does it take the factorised test of an estimator (src/gradients/test.h)?
kernel_is_factorised <- function(kernel) {
  !is.null(kernel) && kernel_info(kernel)$is_factorised
}

# Rows of a step, by chain: those that were drawn, those looked at every time.
# n_step: steps of each chain so far.
factorised_rows <- function(fit, reports, n_step) {
  if (!kernel_is_factorised(fit$kernel)) {
    return(NULL)
  }
  field <- function(name) vapply(reports, function(r) r[[name]], 0)
  always <- field("n_always")
  # a full pass over rows of which alike ones count as one
  n_full <- fit$recipe$n_differ %||% fit$n_data
  thinned <- field("n_row") - field("n_full") * n_full - always
  data.frame(
    rows_thinned = thinned / pmax(1, n_step),
    rows_always = always / pmax(1, n_step)
  )
}

print_factorised_note <- function(fit) {
  chains <- fit$chains
  if (is.null(chains$rows_thinned)) {
    return(invisible())
  }
  n_awkward <- fit$recipe$n_awkward %||% length(fit$kernel$args$awkward)
  cat(
    "Rows in a step: ",
    format(mean(chains$rows_thinned), digits = 2),
    " drawn by their bounds, ",
    always_text(mean(chains$rows_always), n_awkward),
    ", of ",
    format_count(fit$n_data),
    ".\n",
    sep = ""
  )
}

# "0 in every step"; "20 awkward rows, looked at 28 times": a chain on the
# surrogate does that many times a step.
always_text <- function(rows, n_awkward) {
  if (n_awkward == 0) {
    return(paste(format(rows, digits = 2), "in every step"))
  }
  times <- rows / n_awkward
  times <- if (times < 10) format(times, digits = 2) else round(times)
  times <- paste("looked at", times, if (times == 1) "time" else "times")
  paste0(count_noun(n_awkward, "awkward row"), ", ", times)
}
