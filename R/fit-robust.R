# Draws moved to the spread of a sandwich: what rows, or clusters of rows, say
# of the estimate's variance, in the place of what the model says.

#' Draws for rows that vary more than the model says, or in clusters
#'
#' Moves the draws of a fit about their mean so that they are as wide as the
#' means vary over samples of rows, or of clusters of rows, whatever the law of
#' these is: what sandwich estimators and robust standard errors are in other
#' packages.
#'
#' @param fit (`tall_glm` or `tall_surv`) The fit, of a model without sampled
#'   scales, which kept its data.
#' @param cluster (one-sided formula, vector or `NULL`) Which rows belong
#'   together: a formula with one expression of columns of the data, such as
#'   `~ hospital` or `~ interaction(hospital, year)`, which may be no column of
#'   the model; or a value for each row that the fit used, or for each row of
#'   its data, those left out for missing values among them. `NULL`: each row
#'   is by itself.
#' @param type (string) `"HC1"`: what few clusters or rows understate is made
#'   up for, see below; `"HC0"`: nothing is.
#' @param weights (string) What weights of the fit are: `"counts"`, of equal
#'   rows that are independent, or `"sampling"`, of a survey. Precisions, as
#'   those of Gaussian responses, are the same for both.
#' @param strata (one-sided formula, vector or `NULL`) As `cluster`, of a survey
#'   (`weights = "sampling"`) that drew rows, or clusters, in each stratum by
#'   itself. Each cluster lies in one stratum. `NULL`: there is one.
#' @param data (data frame or `NULL`) The data of the fit, where `cluster` or
#'   `strata` is a formula and they cannot be found; of a source it reads them.
#'
#' @details With \eqn{\bar\theta}{m} and \eqn{V} the mean and covariance of the
#' draws in the coefficients and the coordinates of other parameters
#' (`log_sigma` for `sigma`), \eqn{s_i} the gradient of row \eqn{i}'s log
#' likelihood at \eqn{\bar\theta}{m}, \eqn{H} minus the Hessian of the log
#' likelihood there and \eqn{P} that of the log prior, draws become
#' \deqn{\theta^* = \bar\theta + A (A^{-1} V_s A^{-\top})^{1/2} A^{-1} (\theta -
#' \bar\theta), \quad V_s = (H + P)^{-1} (c B + P) (H + P)^{-1},}{theta* = m + A
#' (A^-1 V_s A^-T)^(1/2) A^-1 (theta - m), V_s = (H + P)^-1 (c B + P) (H +
#' P)^-1,}
#' where \eqn{A A^\top = V}{A A' = V} and the root is symmetric. It is the same
#' for every such \eqn{A}, so that draws do not depend on the units of columns,
#' and their covariance is \eqn{V_s}. \deqn{B = \sum_g s_g s_g^\top - \frac1G s
#' s^\top}{B = sum_g s_g s_g' - s s' / G} is that of scores: \eqn{s_g} is the
#' sum of cluster \eqn{g} among \eqn{G}, a row where there are no clusters, and
#' \eqn{s} that of all, which under a flat prior is nearly 0.
#'
#' \eqn{V_s} is what the mean's error varies by where rows come in independent
#' clusters and the prior is what it says: that error is \eqn{(H + P)^{-1}
#' (s(\theta_0) - P (\theta_0 - \mu))}{(H + P)^-1 (s(theta0) - P (theta0 - mu))}
#' to first order, whose parts have variances \eqn{B} and \eqn{P P^{-1} P}{P
#' P^-1 P}, wherever \eqn{\mu}{mu}, where the prior lies. Where the model is
#' right \eqn{B} is \eqn{H} on average, and \eqn{V_s} the covariance of a normal
#' posterior. Without \eqn{P} beside \eqn{B} informative priors would take
#' spread away, and with \eqn{H^{-1}}{H^-1} for \eqn{(H + P)^{-1}}{(H + P)^-1}
#' columns that the rows say little of had none of their prior. Of
#' [prior_laplace()] \eqn{P} is one over its variance, of [prior_student()] its
#' curvature or, where that is negative, the precision of the normal prior with
#' the same slope; of parameters of responses the curvature in their
#' coordinates. With `lambda` of a Gibbs posterior scores count
#' \eqn{\lambda / N}{lambda / N}.
#'
#' \eqn{c} is 1 for `"HC0"`, what `sandwich::vcovCL(cadjust = FALSE, type =
#' "HC0")` and `sandwich::vcovHC(type = "HC0")` are under flat priors and
#' canonical links; of other links these take the expected Hessian. Of `"HC1"`
#' it is \eqn{G (n - 1) / ((G - 1) (n - k))}{G (n - 1) / ((G - 1) (n - k))},
#' with \eqn{n} rows and \eqn{k} the coefficients that the rows tell, the trace
#' of their block of \eqn{(H + P)^{-1} H}{(H + P)^-1 H}: that of Stata and of
#' `vcovCL(type = "HC1")`, and without clusters \eqn{n / (n - k)}. For sampling
#' weights it is \eqn{G / (G - 1)}, as in `survey::svyglm()` of a design with
#' these weights and clusters, without corrections for finite populations;
#' weights may have any sum. With strata \eqn{h} of \eqn{n_h} clusters, or rows,
#' \deqn{c B = \sum_h \frac{n_h}{n_h - 1} \Big(\sum_{g \in h} s_g s_g^\top -
#' \frac{1}{n_h} s_h s_h^\top\Big),}{c B = sum_h n_h / (n_h - 1) (sum_(g in h)
#' s_g s_g' - s_h s_h' / n_h),}
#' again that of `svyglm()`; of `"HC0"` without the factor.
#'
#' With `weights = "counts"` a row of weight \eqn{w} without a cluster adds
#' \eqn{w s s^\top}{w s s'}, as so many rows would; with `"sampling"`, or with
#' clusters, \eqn{w s} is the score of one. A row of several trials is one row.
#'
#' Robust intervals cover an estimand that may differ from a parameter: the
#' values nearest to the truth within the model. With few clusters they cover
#' less than they say, below 50 with a warning; the means, and so an estimate
#' that is biased, stay. Where clusters are of interest, or few, [tall_glmer()]
#' models them.
#'
#' @return The fit with moved draws, of the same class: `coef()`, `vcov()`,
#'   intervals, [predict()][predict.tall_glm()] and all else that draws say
#'   follow. The element `robust` says so: `type`, `weights`, `by`, `clusters`
#'   (how many, rows where there are none), `strata` (how many, where there are
#'   some), `ratio`, of each standard deviation to what it was, and
#'   `covariance`, \eqn{V_s} in the coordinates. The draws have that
#'   covariance whatever theirs was, so that a step size or minibatch
#'   no longer biases it: there is no `sd_bias`. They are none of a posterior:
#'   [sg_resume()], [loo()][loo-tall_glm], `waic()`, [log_lik()][log-lik],
#'   [ksd()], [fssd()], [bias_check()], [zero_variance()] and `log_posterior()`
#'   refuse them. [update()][update.tall_glm] makes a posterior again.
#' @section Conditions: `tall_error_unsupported` for fits of other functions,
#'   sampled scales (smooth terms, [prior_hs()], hazards in pieces), fits that
#'   are robust already, no more clusters than parameters, and draws that would
#'   leave bounds of [prior_uniform()]; `tall_error_input` for clusters or
#'   strata that are missing, or not one for each row, strata of one cluster,
#'   clusters in two strata, and strata where weights are counts;
#'   `tall_error_stale` if data are gone;
#'   `tall_warning_clusters` below 50 clusters.
#' @references
#' Huber (1967). The behavior of maximum likelihood estimates under nonstandard
#' conditions. *Proceedings of the Fifth Berkeley Symposium* 1, 221-233.
#'
#' Liang & Zeger (1986). Longitudinal data analysis using generalized linear
#' models. *Biometrika* 73, 13-22.
#'
#' Lumley (2004). Analysis of complex survey samples. *Journal of Statistical
#' Software* 9(8).
#'
#' Mueller (2013). Risk of Bayesian inference in misspecified models, and the
#' sandwich covariance matrix. *Econometrica* 81, 1805-1849.
#' @seealso [tall_glmer()]
#' @examples
#' clinic <- rep(1:60, each = 20)
#' dose <- rep(rnorm(60), each = 20)
#' d <- data.frame(clinic, dose)
#' d$y <- rpois(1200, exp(0.3 * dose + rep(rnorm(60, 0, 0.5), each = 20)))
#'
#' fit <- tall_glm(y ~ dose, data = d, family = poisson(), seed = 1)
#' robust <- robust_draws(fit, cluster = ~ clinic)
#' robust
#' robust$robust$ratio
#' @export
robust_draws <- function(
  fit,
  cluster = NULL,
  type = c("HC1", "HC0"),
  weights = c("counts", "sampling"),
  strata = NULL,
  data = NULL
) {
  check_robust(fit)
  type <- check_choice(type, c("HC1", "HC0"))
  weights <- check_choice(weights, c("counts", "sampling"))
  by <- cluster_source(fit, cluster, data)
  check_survey(strata, weights)
  strata <- cluster_source(fit, strata, data, arg = "strata")
  theta <- unname(fit_unconstrained(fit))
  share <- choose_rows(fit)$weights
  own <- stats::cov.wt(theta, share / sum(share))
  sums <- robust_sums(
    fit,
    own$center,
    by,
    counts = weights == "counts",
    strata = strata,
    corrects = type == "HC1"
  )
  check_clusters(fit, sums, by)
  wanted <- robust_covariance(fit, own$center, sums, type, weights)
  fit <- move_draws(fit, theta, own$center, turn_between(own$cov, wanted))
  fit$robust <- list(
    type = type,
    weights = weights,
    by = by$label,
    clusters = sums$n_unit,
    strata = sums$n_stratum,
    ratio = stats::setNames(sqrt(diag(wanted) / diag(own$cov)), fit$variables),
    covariance = structure(
      wanted,
      dimnames = list(fit$coordinates, fit$coordinates)
    )
  )
  seal_fit(fit)
}

# ---- what it is for ----------------------------------------------------------

check_robust <- function(fit) {
  if (inherits(fit, "tall_hurdle")) {
    abort_tall(
      "unsupported",
      c(
        "{.fn robust_draws} is not for hurdle models, which are two fits.",
        i = "{.code robust_draws(fit$counts)} and {.code
             robust_draws(fit$zeros)} are of each."
      ),
      argument = "fit"
    )
  }
  check_spec(fit, "tall_fit", "tall_glm()")
  check_not_robust(fit, "robust_draws")
  why <- if (has_groups(fit)) {
    "effects of groups, which are integrated out or sampled"
  } else if (!inherits(fit, "tall_glm")) {
    "fits but of {.fn tall_glm} and {.fn tall_surv} with one predictor"
  } else if (has_pieces(fit$family)) {
    "hazards in pieces, whose scale is sampled"
  } else if (!is.null(fit$prior$mixture)) {
    "priors and smooth terms whose scales are sampled"
  } else if (isTRUE(fit$prior_PD)) {
    "draws from the prior, which no row has a part in"
  }
  if (!is.null(why)) {
    abort_tall(
      "unsupported",
      c(
        paste0("{.fn robust_draws} is not for ", why, "."),
        i = "It is for coefficients that rows tell, with priors such as
             {.fn prior_normal}, and parameters of responses."
      ),
      argument = "fit"
    )
  }
  check_has_draws(fit)
  check_has_all(fit)
  check_has_data(fit)
}

check_survey <- function(strata, weights) {
  if (!is.null(strata) && weights != "sampling") {
    abort_input(
      "{.arg strata} are of a survey: {.code weights = \"sampling\"}.",
      argument = "strata",
      value = strata
    )
  }
}

few_clusters <- 50

check_clusters <- function(fit, sums, by) {
  n <- sums$n_unit
  d <- length(fit$coordinates)
  what <- if (is.null(by$values)) "row" else "cluster"
  # one mean is of each stratum
  n_free <- n - (sums$n_stratum %||% 1)
  within <- if (!is.null(sums$n_stratum)) {
    paste(" in", count_noun(sums$n_stratum, "stratum", "strata"))
  }
  if (n_free < d) {
    abort_tall(
      "unsupported",
      c(
        "{.fn robust_draws} needs more {what}s than parameters.",
        x = "There are {count_noun(n, what)}{within} and
             {count_noun(d, 'parameter')}:
             in some directions nothing would be seen to vary.",
        i = "{.fn tall_glmer} models few clusters."
      ),
      argument = "cluster",
      value = n,
      expected = d + 1
    )
  }
  if (!is.null(by$values) && n_free + 1 < few_clusters) {
    warn_tall(
      "clusters",
      c(
        "Intervals from {count_noun(n, 'cluster')}{within} cover less than they
         say.",
        i = "{.fn tall_glmer} models few clusters."
      )
    )
  }
}

# ---- the law -----------------------------------------------------------------

# V_s. theta: where the sums were taken.
robust_covariance <- function(fit, theta, sums, type, weights) {
  # of a Gibbs posterior
  share <- (fit$lambda %||% fit$n_data) / fit$n_data
  prior <- robust_prior(fit, theta)
  hessian <- share * sums$hessian
  total <- hessian + prior
  inverse <- if (isTRUE(all(diag(total) > 0))) joint_covariance(total)
  if (is.null(inverse)) {
    abort_tall(
      "unsupported",
      c(
        "The log posterior is not curved at its mean as it is at a maximum.",
        i = "The posterior is far from normal; its draws are as good as they
             were."
      ),
      argument = "fit"
    )
  }
  told <- sum((inverse * hessian)[seq_len(fit$n_coef), ])
  factor <- finite_factor(sums, told, type, weights)
  inverse %*% (factor * share^2 * sums$meat + prior) %*% inverse
}

# The matrix that takes draws of covariance `from` to those of covariance `to`:
# a (a^-1 to a^-T)^(1/2) a^-1 with a a' = from, the same for every such a.
turn_between <- function(from, to) {
  scale <- sqrt(diag(from))
  root <- tryCatch(
    t(chol(from / outer(scale, scale))),
    error = function(e) NULL
  )
  if (is.null(root) || min(diag(root)) < 1e-6) {
    abort_tall(
      "unsupported",
      c(
        "{.fn robust_draws} needs draws whose covariance is not singular.",
        i = "Make more draws than parameters, of chains that move."
      ),
      argument = "fit"
    )
  }
  half <- forwardsolve(root, to / outer(scale, scale))
  middle <- forwardsolve(root, t(half))
  parts <- eigen((middle + t(middle)) / 2, symmetric = TRUE)
  middle <- parts$vectors %*% (sqrt(pmax(parts$values, 0)) * t(parts$vectors))
  turn <- root %*% t(backsolve(t(root), t(middle)))
  scale * turn / rep(scale, each = length(scale))
}

# What B is multiplied by. told: how many coefficients the rows tell.
finite_factor <- function(sums, told, type, weights) {
  # of strata each has its own in their sum
  if (type == "HC0" || !is.null(sums$n_stratum)) {
    return(1)
  }
  factor <- sums$n_unit / (sums$n_unit - 1)
  if (weights == "sampling") {
    return(factor)
  }
  factor * (sums$n_row - 1) / max(1, sums$n_row - told)
}

# Minus the second derivatives of the log prior in the coordinates.
robust_prior <- function(fit, theta) {
  own <- seq_len(fit$n_coef)
  of <- own_priors(fit)
  beta <- of(theta[own], "curvature")
  if (isTRUE(any(diag(beta) < 0))) {
    beta <- of(theta[own], "weight")
  }
  out <- matrix(0, length(theta), length(theta))
  out[own, own] <- beta
  aux <- seq_along(theta)[-own]
  out[cbind(aux, aux)] <- scale_prior_bend(fit$prior, aux, exp(theta[aux]))
  out
}

# The same of parameters that are `over` what bounds them: flat in the
# logarithm of that; exponential; or gamma, whose (shape - 1) log(bound + over)
# is bent where there is a bound.
scale_prior_bend <- function(prior, at, over) {
  is_flat <- prior$kind[at] == prior_kinds$log_flat$code
  is_gamma <- prior$kind[at] == prior_kinds$gamma$code
  bound <- prior$location[at]
  shape <- prior$shape[at] %||% rep(1, length(at))
  bend <- over / prior$scale[at]
  bent <- (shape - 1) * bound * over / (bound + over)^2
  ifelse(is_flat, 0, bend - ifelse(is_gamma, bent, 0))
}

# ---- draws -------------------------------------------------------------------

move_draws <- function(fit, theta, mean, turn) {
  centred <- theta - rep(mean, each = nrow(theta))
  moved <- centred %*% t(turn) + rep(mean, each = nrow(theta))
  if (!is.null(fit$unconstrained)) {
    fit$unconstrained[] <- moved
  }
  aux <- seq_along(mean)[-seq_len(fit$n_coef)]
  if (length(aux) > 0) {
    sampled <- is.na(known_values(fit$family, fit$sigma))
    lower <- response_facts(fit$family)$lower[sampled]
    moved[, aux] <- rep(lower, each = nrow(moved)) + exp(moved[, aux])
  }
  check_in_bounds(fit, moved)
  fit$draws[, , fit$variables] <- moved
  # of the posterior's draws
  fit[c("bias", "gradients", "log_posterior")] <- list(NULL)
  fit
}

# Of coefficients alone; an intercept's are of the predictor.
check_in_bounds <- function(fit, draws) {
  bounded <- prior_has_form(fit$prior, "bounded")
  if (!any(bounded)) {
    return(invisible())
  }
  functional <- functional_of(fit)
  if (!is.null(functional)) {
    weights <- functional$weights
    at <- functional$at + 1
    draws[, at] <- draws[, seq_along(weights), drop = FALSE] %*% weights
  }
  away <- abs(t(draws) - fit$prior$location) > fit$prior$scale
  bad <- fit$variables[bounded & rowSums(away) > 0]
  if (length(bad) > 0) {
    abort_tall(
      "unsupported",
      c(
        "Robust draws of {.field {bad}} would leave the bounds of
         {.fn prior_uniform}.",
        i = "Take wider bounds, or a prior without any."
      ),
      argument = "fit"
    )
  }
}
