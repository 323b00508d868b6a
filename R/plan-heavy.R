# Fixed priors with heavy tails beside those that learn their scales. Chains on
# a surrogate draw from a law in which such a prior is a normal one. Where it is
# narrow beside what rows say, the posterior has a spike and a wide foot, to
# which that law seldom leads and from which it seldom leads back: trajectories
# go through both.

# The plan of exact trajectories on all rows where draws of the surrogate's law
# would stay where they are too long; NULL: they would not, or trajectories take
# so long that a warning has to do.
plan_heavy <- function(model, mode, control, ledger) {
  if (!would_stick(model, mode)) {
    return(NULL)
  }
  if (heavy_seconds(model, control) > setting("recipe")$far_seconds) {
    warn_heavy(model, control)
    return(NULL)
  }
  plan <- plan_trajectories(model, NULL, mode, list(), control, ledger)
  plan$why <- paste("exact trajectories on all rows, since", why_heavy)
  plan
}

# The same of a Gaussian response, on `sums`, see sums_of_scaled(): no row is
# looked at, and there is always time.
plan_heavy_sums <- function(model, sums, mode, control, ledger) {
  if (!would_stick(model, mode)) {
    return(NULL)
  }
  plan <- plan_trajectories(sums$model, NULL, mode, list(), control, ledger)
  plan$stand_in <- plan$model
  plan$model <- model
  plan$recipe$size <- model$n_data
  on_sums <- "exact trajectories on sums over all rows, since"
  plan$why <- paste(on_sums, why_heavy)
  plan
}

# Of rows that are passed over, by sums at theta, hyperparameters at phi: they
# come to memory, or a warning has to do.
tell_heavy <- function(model, own, theta, phi, sums, control, ledger) {
  if (!any(is_fixed_student(own))) {
    return(invisible())
  }
  mode <- mode_of_tails(own, theta, phi, sums)
  if (!would_stick(own, mode, is_weight = TRUE)) {
    return(invisible())
  }
  if (heavy_seconds(model, control) <= setting("recipe")$far_seconds) {
    need_rows(why_heavy, ledger)
  }
  warn_heavy(model, control)
}

# The mode near theta where the log likelihood is quadratic, with the root of
# its Hessian and of the normal priors that have the slopes of the priors there:
# these lie below, so that no step goes down.
mode_of_tails <- function(own, theta, phi, sums) {
  held <- held_model(own, phi)
  covered <- own$mixture$at
  hessian <- sums$hessian
  diag(hessian)[covered] <- diag(hessian)[covered] +
    drop(precision_at(own$mixture, phi))
  at <- theta
  for (k in 1:50) {
    prior <- model_evaluate(held, at, "prior")$gradient[, 1]
    gradient <- sums$gradient - drop(sums$hessian %*% (at - theta)) + prior
    chol <- lower_chol(hessian + fixed_precision(own, at), held)
    step <- forwardsolve(chol, gradient)
    at <- at + drop(backsolve(t(chol), step))
    if (sqrt(sum(step^2)) < 1e-3) {
      break
    }
  }
  list(estimate = at, chol = chol)
}

why_heavy <- "a prior with heavy tails is narrow beside what rows say"

would_stick <- function(model, mode, ...) {
  length(bounded_coordinates(model)) == 0 &&
    stuck_share(model, mode, ...) > setting("recipe")$stuck_share
}

is_fixed_student <- function(model) {
  is_student <- model$prior$kind == prior_kinds$student$code
  is_student[model$mixture$at] <- FALSE
  is_student[seq_len(n_seen(model))]
}

heavy_seconds <- function(model, control) {
  trajectory_seconds(model, trajectory_settings$first_steps, 1, control)
}

warn_heavy <- function(model, control) {
  seconds <- format_seconds(heavy_seconds(model, control))
  warn_tall("prior", c(
    "Draws may stay too long where a prior has its spike.",
    x = "A Student prior is narrow beside what the rows say, and its tails are
         heavy: the posterior has a spike and a wide foot.",
    i = "Give a wider prior, or one without heavy tails. {.code kernel_hmc()}
         goes through both, and would take about {seconds} of one core."
  ))
}

# The part of the posterior that a chain of independent draws of that law would
# seldom leave, by quadrature along each coefficient, or centred intercept,
# under a fixed Student prior, all others where they are then expected: the most
# of any. is_weight: in mode$chol priors are normal ones of their slopes.
stuck_share <- function(model, mode, is_weight = FALSE) {
  own <- seq_len(n_seen(model))
  at <- which(is_fixed_student(model))
  if (length(at) == 0 || is.null(mode$chol)) {
    return(0)
  }
  of <- places_of_priors(model)[at, , drop = FALSE]
  chol <- unname(mode$chol)[own, own]
  bend <- 1 / colSums(forwardsolve(chol, t(of))^2)
  max(mapply(
    student_share,
    drop(of %*% unname(as.double(mode$estimate))[own]),
    bend,
    model$prior$location[at],
    model$prior$scale[at],
    model$prior$shape[at],
    is_weight
  ))
}

# The same where the log of p q is stationary at theta and bends by `bend`
# there, p of Student's law and q normal. The law has the normal p that has the
# slope of p there, as the core's (src/priors/student.c); is_weight: and so has
# `bend`.
student_share <- function(theta, bend, location, scale, df, is_weight = FALSE) {
  z <- (theta - location) / scale
  slope <- -(df + 1) * z / (df + z^2) / scale
  curvature <- (df + 1) * (df - z^2) / (df + z^2)^2 / scale^2
  precision <- (df + 1) / ((df + z^2) * scale^2)
  own <- if (is_weight) precision else curvature
  rows <- max(bend - own, 1e-6 * precision)
  # moves away from theta, on the scales of both
  grid <- seq(-1, 1, length.out = 801)
  s <- sort(unique(c(
    0,
    -slope / rows + 8 / sqrt(rows) * grid,
    location - theta + 30 * scale * grid^3
  )))
  far <- (theta + s - location) / scale
  log_prior <- -(df + 1) / 2 * log((df + far^2) / (df + z^2))
  target <- log_prior - slope * s - rows * s^2 / 2
  law <- -(rows + precision) * s^2 / 2
  stuck_of(s, target, law)
}

# The mass of a density where less than a twentieth of draws of another one are
# accepted; both logs, the same at one of the places s.
stuck_of <- function(s, target, law) {
  n <- length(s)
  width <- diff(c(s[[1]], (s[-1] + s[-n]) / 2, s[[n]]))
  mass_of <- function(x) {
    x <- width * exp(x - max(x))
    x / sum(x)
  }
  ratio <- pmin(pmax(target - law, -600), 600)
  order <- order(ratio)
  ratio <- ratio[order]
  law <- mass_of(law)[order]
  # E min(1, w(s') / w(s)) over s' of the law
  accepted <- cumsum(law * exp(ratio)) * exp(-ratio) + 1 - cumsum(law)
  sum(mass_of(target)[order][accepted < 1 / 20])
}
