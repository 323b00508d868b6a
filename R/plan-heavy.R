# Fixed priors with heavy tails beside those that learn their scales. Chains on
# a surrogate draw from a law in which such a prior is a normal one. Where it is
# narrow beside what rows say, the posterior has a spike and a wide foot, to
# which that law seldom leads and from which it seldom leads back: trajectories
# go through both.

# The plan of exact trajectories where draws of the surrogate's law would stay
# where they are too long; NULL: they would not, or that takes too long.
plan_heavy <- function(model, mode, control, ledger) {
  s <- trajectory_settings
  is_held <- held_share(model, mode) > setting("recipe")$held_share
  if (!is_held || length(bounded_coordinates(model)) > 0 ||
    trajectory_seconds(model, s$first_steps, 1, control) > s$merged_seconds) {
    return(NULL)
  }
  plan <- plan_trajectories(model, NULL, mode, list(), control, ledger)
  plan$why <- paste(
    "exact trajectories on all rows, since a prior with heavy tails is narrow",
    "beside what these say"
  )
  plan
}

# The part of the posterior that a chain of independent draws of that law would
# seldom leave, by quadrature along each coefficient under a fixed Student
# prior, all others where they are then expected: the most of any.
held_share <- function(model, mode) {
  own <- seq_len(n_seen(model))
  is_student <- model$prior$kind[own] == prior_kinds$student$code
  at <- setdiff(own[is_student], model$mixture$at)
  if (length(at) == 0 || is.null(mode$chol)) {
    return(0)
  }
  chol <- unname(mode$chol)[own, own]
  bend <- 1 / diag(chol2inv(t(chol)))[at]
  theta <- unname(as.double(mode$estimate))[at]
  prior <- model$prior
  max(mapply(
    student_share,
    theta,
    bend,
    prior$location[at],
    prior$scale[at],
    prior$shape[at]
  ))
}

# The same where the log of p q is stationary at theta and bends by `bend`
# there, p of Student's law and q normal. The law has the normal p that has the
# slope of p there, as the core's (src/priors/student.c).
student_share <- function(theta, bend, location, scale, df) {
  z <- (theta - location) / scale
  slope <- -(df + 1) * z / (df + z^2) / scale
  curvature <- (df + 1) * (df - z^2) / (df + z^2)^2 / scale^2
  precision <- (df + 1) / ((df + z^2) * scale^2)
  rows <- max(bend - curvature, 1e-6 * precision)
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
  held_of(s, target, law)
}

# The mass of a density where less than a twentieth of draws of another one are
# accepted; both logs, the same at one of the places s.
held_of <- function(s, target, law) {
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
