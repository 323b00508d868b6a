# The mode of a posterior whose rows are only passed over (see ?tall_glm):
# Newton's method, whose steps a pilot corrects for the curvature that changes
# on the way, in the spirit of Jordan, Lee & Yang (2019, JASA 114).
#
# With sums G, H over all rows at theta_0 and a pilot of weighted rows, of which
# they are G_p, H_p, the next point is the mode of
#
#   log p(theta) + sum_p v_i l_i(theta) + (G - G_p)' delta
#     - delta' (H - H_p) delta / 2,   delta = theta - theta_0

remote_settings <- list(
  far = 2,         # sds between corrected and plain steps: look again
  error = 0.25,    # of that distance, how far the mode is from there
  most = 12        # passes
)

# list(model, theta, sums, chol, distance, passes, log_posterior): the model of
# the pilot's rows under the prior of all rows; a point near the mode, and how
# far from it in sds it is thought to be; the lower Cholesky factor of minus the
# Hessian one pass before. NULL: there is none that passes find. start: where to
# begin, NULL: at the pilot's mode. trail: an environment that has `theta`,
# where the search is, and `passes`, however it ends.
remote_mode <- function(
  blueprint,
  rows,
  pilot,
  control,
  start = NULL,
  trail = new.env()
) {
  s <- remote_settings
  start <- start %||%
    pilot_mode(build_model(blueprint, pilot), control)$estimate
  theta <- as.double(start)
  model <- NULL
  before <- NULL
  for (pass in seq_len(s$most)) {
    sums <- sums_met(rows, theta, control, pass)
    trail$passes <- pass
    if (is.null(model)) {
      pilot$facts <- sums$facts
      model <- build_model(blueprint, pilot)
    }
    check_same_facts(before$sums, sums, rows)
    here <- posterior_at(model, theta, sums)
    if (!is.null(before) && here$log_posterior <
      before$here$log_posterior - 1e-9 * abs(here$log_posterior)) {
      theta <- (before$theta + theta) / 2
      next
    }
    chol <- lower_chol(here$hessian, model)
    plain <- theta + drop(
      backsolve(t(chol), forwardsolve(chol, here$gradient))
    )
    to <- corrected_point(model, theta, sums, here, plain, control)
    apart <- sqrt(sum(crossprod(chol, to - plain)^2))
    if (apart <= s$far) {
      return(list(
        model = model,
        theta = to,
        sums = sums,
        chol = chol,
        distance = s$error * apart,
        passes = pass,
        facts = sums$facts,
        n_missing = sums$n_missing
      ))
    }
    before <- list(theta = theta, here = here, sums = sums)
    theta <- trail$theta <- to
  }
  NULL
}

# Of a pilot's own model.
pilot_mode <- function(model, control) {
  search_mode(model, cores = control$cores, refresh = 0)
}

# Log posterior, gradient and minus Hessian of all rows at theta, from their
# sums and the model's prior.
posterior_at <- function(model, theta, sums) {
  prior <- prior_curvature(model, theta)
  list(
    log_posterior = sums$log_lik + prior$log_posterior,
    gradient = sums$gradient + prior$gradient,
    hessian = sums$hessian + prior$hessian
  )
}

# Newton's step from where sums are: list(theta, chol, here).
newton_from <- function(found, sums, model) {
  here <- posterior_at(model, found$theta, sums)
  chol <- lower_chol(here$hessian, model)
  step <- drop(backsolve(t(chol), forwardsolve(chol, here$gradient)))
  list(theta = found$theta + step, chol = chol, here = here)
}

# away: sds of that step, of which a quarter is thought to be left.
moved_on <- function(found, to, away) {
  found$theta <- to$theta
  found$chol <- to$chol
  found$distance <- away * remote_settings$error
  found
}

# The same of the prior alone; one without curvature counts by its variance.
prior_curvature <- function(model, theta) {
  out <- model_evaluate(model, theta, "prior")
  of <- diag(model$n_dim)
  functional <- model$prior_functional
  if (!is.null(functional)) {
    of[functional$at + 1, ] <- functional$weights
  }
  list(
    log_posterior = out$log_density[[1]],
    gradient = out$gradient[, 1],
    hessian = crossprod(of, prior_precision(model$prior) * of)
  )
}

# The mode of the corrected pilot, by Newton's method with step halving; the
# plain step where it has none.
corrected_point <- function(model, theta, sums, here, plain, control) {
  look <- function(at) {
    curvature(model, at, cores = control$cores, needs_finite = FALSE)
  }
  there <- look(theta)
  more <- here$gradient - there$gradient
  bend <- here$hessian - there$hessian
  corrected <- function(at) {
    out <- look(at)
    delta <- at - theta
    bent <- drop(bend %*% delta)
    list(
      value = out$log_posterior + sum((more - bent / 2) * delta),
      gradient = out$gradient + more - bent,
      hessian = out$hessian + bend
    )
  }
  at <- theta
  now <- corrected(at)
  for (iteration in 1:50) {
    root <- tryCatch(
      t(chol(now$hessian)),
      error = function(e) NULL
    )
    if (is.null(root)) {
      return(plain)
    }
    step <- drop(backsolve(t(root), forwardsolve(root, now$gradient)))
    decrement <- sum(step * now$gradient)
    if (!is.finite(decrement)) {
      return(plain)
    }
    if (decrement < 1e-10) {
      return(at)
    }
    scale <- 1
    repeat {
      found <- corrected(at + scale * step)
      if (is.finite(found$value) && found$value >= now$value - 1e-12) {
        break
      }
      scale <- scale / 2
      if (scale < 1e-8) {
        return(at)
      }
    }
    at <- at + scale * step
    now <- found
  }
  at
}

# A source that hands out other rows than it did.
check_same_facts <- function(before, now, rows) {
  # what has been added or taken away is the same but for rounding
  is_exact <- is.null(rows$in_sql) && !isTRUE(rows$is_merged)
  if (is.null(before) || same_facts(before$facts, now$facts, is_exact)) {
    return(invisible())
  }
  abort_other_facts(before$facts$n_row, now$facts$n_row)
}

# n: rows then and now.
abort_other_facts <- function(n_before, n_now) {
  abort_tall(
    "source",
    c(
      "{.arg data} gave other rows than it did in the pass before.",
      x = "{count_noun(n_before, 'row')} then, {count_noun(n_now, 'row')} now,
           or other values in them.",
      i = "Every pass must see the same rows in the same order."
    ),
    argument = "data"
  )
}
