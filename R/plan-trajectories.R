# The recipe's plan for a posterior that is far from normal where all rows can
# be looked at in every step: Hamiltonian trajectories, exact, in coordinates
# that a pilot finds. The Hessian at the mode does not tell them: of a
# hierarchical model whose effects are standard normal times a scale, the mode
# is far from the mass, and a step that is right at the one is not at the
# other.

trajectory_settings <- list(
  # the pilot: trajectories of its rounds, after half as many that adapt the
  # step; of each round the second half counts
  chains = 4,
  rounds = c(100, 100, 200, 400),
  more = 3,            # times that its last round is made again
  agree = 1.05,        # where R-hat is larger
  first_steps = 8,     # leapfrog steps, before a step is known
  most_steps = 100,
  least_steps = 4,
  length = pi / 2,     # of a trajectory: a quarter of a period
  shrink = 20,         # draws that a covariance without correlations counts for
  # trajectories between draws
  more_times = 1.5,    # of what a pilot finds,
  least_times = 4,
  most_times = 10,
  seconds = 20,        # as long as the run takes no more
  merged_seconds = 60  # of classes, whose minibatches would do
)

# Is nothing known of the model but gradients and densities? Minibatches of
# equally likely rows may not see what makes it far from normal.
is_blind <- function(model) {
  !model_info(model)$has_weights && !model$traits$is_far_from_normal
}

# The plan of a model that is far from normal, in its own coordinates; NULL
# where minibatches are the better way. recipe: what is known of it.
try_trajectories <- function(model, mode, recipe, control, ledger) {
  s <- trajectory_settings
  if (is.null(mode$chol) || length(bounded_coordinates(model)) > 0) {
    return(NULL)
  }
  merged <- merge_rows(model)
  if (!is_blind(model)) {
    distinct <- merged %||% if (!is.null(model$n_all)) model
    is_quick <- !is.null(distinct) &&
      trajectory_seconds(distinct, s$first_steps, 1, control) <=
        s$merged_seconds
    if (!is_quick) {
      return(NULL)
    }
  }
  if (!is.null(merged)) {
    spend(ledger, "recipe", 3)
  }
  plan_trajectories(model, merged, mode, recipe, control, ledger)
}

# merged: the model of distinct rows, or NULL.
plan_trajectories <- function(model, merged, mode, recipe, control, ledger) {
  s <- trajectory_settings
  moved <- merged %||% model
  tell_trajectories(moved, model, control)
  found <- trajectory_pilot(moved, mode, control)
  # of a model on sums there are none
  spend(ledger, "recipe", found$rows / max(1, model$n_data))
  framed <- frame_model(moved, found$frame, FALSE)
  # a pilot knows little of how draws follow each other
  more <- max(s$more_times * found$times, s$least_times)
  times <- s$seconds / trajectory_seconds(moved, found$steps, 1, control)
  recipe$size <- model$n_data
  plan <- new_plan(
    if (is.null(merged)) framed else model,
    new_sampler(
      kernel_hmc(found$step_size, found$steps, adapt = TRUE, jitter = 0.2),
      gradient_full()
    ),
    mode = mode,
    steps = max(1, floor(min(more, times, s$most_times))),
    recipe = recipe,
    ledger = ledger
  )
  plan$why <- paste0(
    "exact trajectories on all rows of a posterior far from normal",
    if (!is.null(merged)) {
      paste0(", ", format_count(merged$n_data), " of them distinct")
    }
  )
  if (!is.null(merged)) {
    plan$stand_in <- framed
  }
  plan
}

# Of a run with so many leapfrog steps in a trajectory, and trajectories between
# draws.
trajectory_seconds <- function(model, steps, times, control) {
  n_draw <- control$iter - control$warmup
  n <- control$chains * (control$warmup + n_draw * times)
  n * steps * pass_seconds(model)
}

# Of the pilot, where no round is made again.
pilot_passes <- function() {
  s <- trajectory_settings
  n <- s$chains * 1.5 * s$rounds
  sum(n * c(1, 4, 1, 1)[seq_along(n)]) * s$first_steps
}

# Before anything of it starts.
tell_trajectories <- function(moved, model, control, most = 30) {
  s <- trajectory_settings
  pass <- measured_pass(moved)
  n_run <- control$chains * control$iter * s$first_steps
  seconds <- pass * (n_run + pilot_passes())
  if (seconds > most) {
    # of sums over the rows there are none
    has_rows <- model$n_data > 0
    looks <- if (has_rows) {
      n <- format_count(model$n_data)
      paste0(", and each step looks at all ", n, " rows")
    }
    cli::cli_inform(c(
      i = "This will take about {format_seconds(seconds)} of one core: the
           posterior is far from normal{looks %||% ''}.",
      i = if (has_rows) {
        "Covariates of few values are faster, since equal rows are looked at
         once; so is a smaller {.arg iter}."
      } else {
        "A smaller {.arg iter} is faster."
      }
    ))
  }
  invisible(seconds)
}

# Seconds of a density with its gradient, on this machine.
measured_pass <- function(model) {
  start <- model$start %||% numeric(model$n_dim)
  if (is.function(start)) {
    return(pass_seconds(model))
  }
  look <- function() model_evaluate(model, start, needs_finite = FALSE)
  look() # which makes tapes
  # of quick ones several, as the clock has steps of its own
  before <- proc.time()
  used <- 0
  n <- 0
  while (used < 0.02 && n < 200) {
    look()
    n <- n + 1
    used <- sum((proc.time() - before)[1:2])
  }
  max(used / n, pass_seconds(model) / 10)
}

# list(frame, step_size, steps, times, rows): coordinates in which the draws of
# the last round have unit covariance, the leapfrog steps of a trajectory, and
# the trajectories from one nearly independent draw to the next; rows that were
# looked at. The same whatever the run's seed is.
trajectory_pilot <- function(model, mode, control) {
  s <- trajectory_settings
  pilot <- pilot_control(control, 1)
  pilot$chains <- s$chains
  pilot$thin <- 1
  pilot$keep <- "draws"
  state <- list(
    frame = list(
      center = as.double(mode$estimate),
      chol = mode$chol,
      is_diagonal = FALSE
    ),
    step_size = model$n_dim^(-1 / 4),
    steps = s$first_steps,
    theta = NULL,
    times = 1,
    rows = 0
  )
  rounds <- c(s$rounds, rep(utils::tail(s$rounds, 1), s$more))
  for (k in seq_along(rounds)) {
    state <- pilot_round(model, mode, state, rounds[[k]], pilot)
    if (k >= length(s$rounds) && isTRUE(state$rhat <= s$agree)) {
      break
    }
  }
  state
}

# The state after n trajectories from where the chains stand, which are the
# posterior's own once they have come from the mode to its mass.
pilot_round <- function(model, mode, state, n, control) {
  s <- trajectory_settings
  d <- model$n_dim
  framed <- frame_model(model, state$frame, FALSE)
  plan <- new_plan(
    framed,
    new_sampler(
      kernel_hmc(state$step_size, state$steps, adapt = TRUE, jitter = 0.2),
      gradient_full()
    ),
    mode = mode
  )
  plan$init <- if (is.null(state$theta)) {
    plan_init(plan, NULL, control)
  } else {
    to_sampler(framed, state$theta)
  }
  segment <- run_segment(plan, control, new_stretch(n / 2, n))
  rows <- sum(vapply(segment$reports, function(r) r$n_row, 0))
  state$rows <- state$rows + rows
  buffers <- segment$buffers
  draws <- array(
    buffers$unconstrained %||% buffers$draw,
    c(segment$n_keep, s$chains, d)
  )
  if (!all(is.finite(draws))) {
    # chains that a function of the model stopped: the run will say so
    return(utils::modifyList(state, list(theta = NULL, rhat = NA)))
  }
  kept <- draws[-seq_len(n / 2), , , drop = FALSE]
  agreement <- vapply(seq_len(d), function(j) {
    x <- kept[, , j]
    # of draws that alternate it is bounded, which is no matter here
    ess <- suppressWarnings(posterior::ess_bulk(x))
    c(rhat = posterior::rhat(x), ess = ess)
  }, c(rhat = 0, ess = 0))
  step_size <- stats::median(
    vapply(segment$reports, function(r) r$step_size, 0)
  )
  steps <- ceiling(s$length / step_size)
  list(
    frame = frame_of_draws(matrix(kept, ncol = d), state$frame),
    step_size = min(1, step_size),
    steps = min(s$most_steps, max(s$least_steps, steps)),
    theta = t(matrix(draws[n, , ], s$chains, d)),
    rhat = max(agreement["rhat", ]),
    times = length(kept) / d / max(1, min(agreement["ess", ])),
    rows = state$rows
  )
}

# Coordinates in which these draws have about unit covariance; those before
# where they have none.
frame_of_draws <- function(draws, before) {
  n <- nrow(draws)
  share <- n / (n + trajectory_settings$shrink)
  covariance <- stats::cov(draws)
  alone <- diag(diag(covariance), ncol(draws))
  covariance <- share * covariance + (1 - share) * alone
  root <- tryCatch(
    t(chol(chol2inv(chol(covariance)))),
    error = function(e) NULL
  )
  if (is.null(root) || !all(is.finite(root))) {
    return(before)
  }
  list(center = colMeans(draws), chol = root, is_diagonal = FALSE)
}
