# sg_tune()'s race by successive halving.

# Least iterations of each arm in the first rung, and those that measure its
# cost.
tune_least <- 20

tune_probe <- 4

# list(rungs, best, scored, interrupted): the table, the number of the best arm,
# the passes of scoring, and the rung that an interrupt cut off, NULL: none.
run_race <- function(arms, judge, control, budget, unit, eta) {
  n_rung <- max(1, floor(log(length(arms), eta) + 1e-9))
  sizes <- rung_sizes(length(arms), n_rung, eta)
  bar <- progress_bar("Tuning", sum(sizes), control$refresh > 0)
  arms <- lapply(arms, probe_arm, control)
  check_budget(arms, control, budget, unit, n_rung)
  rungs <- list()
  scored <- 0
  interrupted <- NULL
  for (rung in seq_len(n_rung)) {
    share <- budget / n_rung / length(arms)
    # the probe is part of the first rung
    before <- if (rung == 1) 0 else vapply(arms, arm_cost, 0, unit)
    is_whole <- tryCatch(
      {
        arms <- Map(function(arm, from) {
          arm <- spend_share(arm, from + share, unit, judge, control)
          bar$add()
          score_arm(arm, judge)
        }, arms, before)
        TRUE
      },
      interrupt = function(condition) FALSE
    )
    if (!is_whole && rung == 1) {
      rlang::interrupt() # nothing to choose by
    }
    if (!is_whole) {
      interrupted <- rung
      break
    }
    scored <- scored + sum(vapply(arms, function(arm) arm$scored, 0))
    n_keep <- if (rung < n_rung) sizes[[rung + 1]] else 1
    arms <- rank_arms(arms, n_keep)
    rungs[[rung]] <- rung_table(arms, rung)
    check_survivors(arms, rung)
    arms <- Filter(function(arm) arm$survived, arms)
    if (length(arms) == 1) {
      break
    }
  }
  bar$done()
  rungs <- do.call(rbind, rungs)
  list(
    rungs = rungs,
    best = arms[[1]]$index,
    scored = scored,
    interrupted = interrupted
  )
}

# Arms in each rung, when none of them stops.
rung_sizes <- function(n_arm, n_rung, eta) {
  Reduce(
    function(n, rung) max(1, floor(n / eta)),
    seq_len(n_rung - 1),
    n_arm,
    accumulate = TRUE
  )
}

arm_cost <- function(arm, unit) {
  arm[[unit]]
}

# The start, which may cost a pass, then a few iterations, which tell the cost
# of the others.
probe_arm <- function(arm, control) {
  advance_arm(advance_arm(arm, 1, control, 1), tune_probe, control, 1)
}

check_budget <- function(arms, control, budget, unit, n_rung) {
  alive <- Filter(function(arm) arm$status == "ok", arms)
  if (length(alive) == 0) {
    return(invisible())
  }
  rate <- vapply(alive, function(arm) arm$rate[[unit]], 0)
  # a clock is too rough for the dearest of a few iterations
  rate <- if (unit == "gradients") max(rate) else stats::median(rate)
  # the probe, its start, and what is rounded off
  least <- rate * (tune_least + tune_probe + 3) * length(arms) * n_rung
  if (budget < least) {
    shown <- format(
      signif(1.005 * least, 3),
      scientific = FALSE,
      big.mark = ","
    )
    given <- format_number(budget)
    what <- if (unit == "gradients") "gradient evaluations" else "seconds"
    abort_input(
      c(
        "{.arg budget} must be at least {shown} {what} for this grid, not
         {given}.",
        i = "So much allows {tune_least} iterations of each arm in the first of
             {count_noun(n_rung, 'rung')}."
      ),
      argument = "budget",
      expected = least,
      value = budget
    )
  }
}

# Go on until the arm has cost `limit` in all. Costs are foreseen from those of
# the last stretch, at most ten times as far as the arm has come: iterations may
# differ.
spend_share <- function(arm, limit, unit, judge, control) {
  arm["draws"] <- list(NULL)
  for (stretch in 1:12) {
    if (arm$status != "ok") {
      return(arm)
    }
    n <- floor((limit - arm_cost(arm, unit)) / arm$rate[[unit]])
    n <- min(n, 10 * arm$iterations)
    if (stretch == 1) {
      n <- max(n, tune_least)
    }
    if (n < 1) {
      break
    }
    arm <- advance_arm(arm, n, control, judge$points)
  }
  arm$draws <- spread_draws(arm$draws, judge$points / control$chains)
  arm
}

# n more iterations of each chain. Adds at least n_point draws, in all, if there
# are as many.
advance_arm <- function(arm, n, control, n_point) {
  if (arm$status != "ok") {
    return(arm)
  }
  each <- ceiling(n_point / control$chains)
  control$thin <- max(1, floor(n / each))
  control$refresh <- 0
  segment <- run_segment(
    arm$plan,
    control,
    new_stretch(0, n),
    new_standing(arm$saved),
    noise_every = 0
  )
  if (segment$interrupted) {
    rlang::interrupt()
  }
  reports <- segment$reports
  # since the start; a density without data has one "row"
  rows <- sum(vapply(reports, function(r) r$n_row, 0))
  gradients <- max(rows, (arm$iterations + n) * length(reports))
  arm$rate <- list(
    gradients = (gradients - arm$gradients) / n,
    # the clock may not have moved
    seconds = max(segment$seconds, 1e-6) / n
  )
  arm$gradients <- gradients
  arm$seconds <- arm$seconds + segment$seconds
  arm$saved <- lapply(reports, function(r) r$saved)
  arm <- note_status(arm, reports)
  at <- arm$iterations + control$thin * seq_len(segment$n_keep)
  arm$iterations <- arm$iterations + min(
    vapply(reports, function(r) r$n_step, 0)
  )
  arm$draws <- add_segment_draws(arm$draws, segment, arm$plan$model, at)
  arm
}

# Why, where and when the first chain stopped.
note_status <- function(arm, reports) {
  status <- vapply(reports, function(r) r$status, 0)
  chain <- which(status != 0)
  if (length(chain) == 0) {
    return(arm)
  }
  report <- reports[[chain[[1]]]]
  arm$status <- status_name(report$status)
  arm$place <- report_place(report, arm$plan$model)
  arm$stopped_at <- arm$iterations + report$n_step + 1
  arm
}

# list(at, theta, weights): iterations, and arrays of iterations x chains x
# variables, as sampled.
add_segment_draws <- function(before, segment, model, at) {
  buffers <- segment$buffers
  shape <- function(x, k) {
    array(x, c(segment$n_keep, length(segment$reports), k))
  }
  list(
    at = c(before$at, at),
    theta = bind_arrays(
      before$theta,
      # both are kept where they differ
      shape(buffers$unconstrained %||% buffers$draw, model$n_dim)
    ),
    weights = bind_arrays(before$weights, shape(buffers$weight %||% 1, 1))
  )
}

# n of the iterations, evenly spaced.
spread_draws <- function(draws, n) {
  wanted <- seq(draws$at[[1]], max(draws$at), length.out = ceiling(n))
  kept <- unique(vapply(wanted, function(t) which.min(abs(draws$at - t)), 0L))
  list(
    at = draws$at[kept],
    theta = draws$theta[kept, , , drop = FALSE],
    weights = draws$weights[kept, , , drop = FALSE]
  )
}

score_arm <- function(arm, judge) {
  arm$score <- NA_real_
  arm$scored <- 0
  if (arm$status == "ok") {
    theta <- matrix(arm$draws$theta, ncol = dim(arm$draws$theta)[[3]])
    arm$scored <- nrow(theta)
    arm$score <- judge$score(theta, as.double(arm$draws$weights))
    if (!is.finite(arm$score)) {
      arm$score <- NA_real_
      arm$status <- "nonfinite"
      arm$place <- new_place("gradient", NA_real_)
      arm$stopped_at <- arm$iterations
    }
  }
  arm
}

# Best first; ties, and arms that stopped, in the order of the grid.
rank_arms <- function(arms, n_keep) {
  score <- vapply(arms, function(arm) arm$score, 0)
  arms <- arms[order(score)]
  Map(function(arm, rank) {
    arm$survived <- rank <= n_keep && arm$status == "ok"
    arm
  }, arms, seq_along(arms))
}
