# The recipe for priors with hyperparameters: exact steps from a few rows by
# transitions on a surrogate of coefficients and hyperparameters, whose rows are
# known by their expansions (src/gradients/surrogate.h; ?proposals). What it
# cannot sample goes to plan_scaled(), which looks at all rows.

# list(plan, pace_seconds, why_not), as try_exact() has it: nothing is chosen by
# its seconds.
try_scales <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  n_coef <- model$n_dim - n_hyper(model)
  if (!model_info(model)$has_remainders) {
    return(list(why_not = no_remainders(model)))
  }
  if (n_coef > setting("most_whitened")) {
    return(list(why_not = "exact steps from a few rows are for fewer columns"))
  }
  if (length(mode$at_bound) > 0) {
    return(list(why_not = "the mode lies at the bound of a uniform prior"))
  }
  few <- wide_rows(model, mode, control, ledger)
  found <- find_scales(model, mode, control, ledger, few$rows, wide = few$wide)
  kernel <- sliced_kernel(NULL, found)
  plan <- scales_plan(model, mode, found, ledger, kernel)
  report <- exact_pilot(plan, control)
  if (is.null(report)) {
    return(list(why_not = "an exact step has no distribution to propose from"))
  }
  way <- if (has_few_scales(model)) {
    choose_way(model, mode, found, report, control, ledger)
  } else {
    list()
  }
  if (!is.null(way$proposal)) {
    kernel <- sliced_kernel(way$proposal, found)
    plan <- scales_plan(model, mode, found, ledger, kernel)
  }
  judge_scales(plan, report, control, way = way)
}

# S: the rows that no others tell of, given the hyperparameters at the mode:
# list(rows, wide), see awkward_rows(); NULL: there are none, or of many columns
# too many rows are such, which is for their expansions. Where they are more
# than a tenth, and than 30, as of few rows, those that not one event tells of.
wide_rows <- function(model, mode, control, ledger) {
  n_coef <- model$n_dim - n_hyper(model)
  own <- seq_len(n_coef)
  estimate <- unname(as.double(mode$estimate))
  given <- list(estimate = estimate[own], chol = unname(mode$chol)[own, own])
  held <- held_model(model, estimate[-own])
  # the rows alone, which nobody asks of their prior
  held$pointer <- model$base$pointer
  for (sd in c(setting("recipe")$awkward_sd, 1)) {
    awkward <- awkward_rows(held, given, control, ledger, sd)
    rows <- awkward$rows[awkward$which_wide]
    if (length(rows) <= max(model$n_data / 10, 30)) {
      break
    }
  }
  n <- length(rows)
  if (n > 0 && !is_most_of(n, held, n_coef)) {
    list(rows = rows, wide = awkward$wide)
  }
}

# Where the rows are expanded and how the surrogate is moved: chains on it, each
# about the mean of the one before, the first about the mode, which look at no
# row. awkward: row numbers of S; fixed: where the rows are expanded all the
# same; wide: the columns of those that are moved by slices along lines of their
# own, which `moves` gets (see surrogate_moves()), whatever else moves.
#
# at      all coordinates: the mean of the last chain
# moves   what the estimator has to know, see factors_set_surrogate(): `metric`,
#         L of L L^T = H + P, P the precisions of coefficients where their
#         scales are large (99 % quantiles in the chain): of z = L^T (beta - at)
#         the test takes the norm; `radius` and `phi`, of ||z|| in the chain
# beyond  share of the chain that is outside the radius
# init    the last chain
find_scales <- function(
  model,
  mode,
  control,
  ledger,
  awkward = NULL,
  fixed = NULL,
  wide = NULL
) {
  own <- seq_len(model$n_dim - n_hyper(model))
  at <- fixed %||% unname(mode$estimate)
  found <- list(
    at = at,
    awkward = awkward,
    moves = new_moves(unname(mode$chol)[own, own]),
    init = matrix(at)
  )
  proposal <- if (has_few_scales(model)) {
    integrated_proposal(model)
  } else {
    hyper_proposal(rounds = 2)
  }
  if (length(wide) > 0) {
    given <- chol2inv(t(found$moves$metric))
    found$moves <- with_lines(found$moves, given, wide)
  }
  for (n_step in scales_pilots(length(own))) {
    draws <-
      scales_draws(model, mode, found, proposal, n_step, control, ledger)
    found$at <- fixed %||% rowMeans(draws)
    before <- found$moves
    found$moves <- ball_of_scales(model, found$at, draws, control, ledger)
    if (length(wide) > 0) {
      spread <- stats::cov(t(draws[own, , drop = FALSE]))
      found$moves <- with_lines(found$moves, spread, wide, n_step, before)
    }
    found$init <- draws
  }
  found
}

# Some proposals, NULL: kernel_smh()'s own, and slices of what `found` has lines
# for, whose tails the normal part of the surrogate does not know: from far out
# in one no draw of that part leads back. In a step of the plan all is proposed
# once, beside one or two lines twice, and slices, which cost next to nothing,
# are half as many again as lines, so that few are left out.
sliced_kernel <- function(proposal, found) {
  n_line <- NCOL(found$moves$lines %||% matrix(0, 0, 0))
  if (n_line > 0) {
    proposal <- proposal %||% hyper_proposal()
    is_mixture <- inherits(proposal, "tall_proposal_mixture")
    shares <- if (is_mixture) proposal$args$shares else 1
    n_slice <- ceiling(1.5 * n_line)
    # such chains are short enough for another round
    n_other <- if (n_line > 2) 1 else 2
    proposal <- do.call(proposal_mixture, c(
      list(proposal_slice(2)),
      proposal_members(proposal),
      list(
        shares = c(n_slice, n_other * shares),
        times = min(n_slice + n_other, 1000)
      )
    ))
  }
  kernel_smh(proposal = proposal, awkward = found$awkward)
}

# The plan of a kernel_smh() that was given: what its surrogate needs.
with_scales <- function(plan, control) {
  model <- plan$model
  kernel <- plan$kernel
  at <- plan$gradient$args$at
  mode <- if (inherits(at, "tall_mode")) {
    at
  } else {
    model_mode(model, control$cores, control$refresh)
  }
  spend_mode(plan$ledger, mode)
  fixed <- if (!is.null(at)) mode_point(model, at, needs_chol = FALSE)$theta
  awkward <- kernel$args$awkward
  if (length(awkward) > 0 && max(awkward) > model$n_data) {
    abort_awkward_rows(awkward, model$n_data)
  }
  found <- find_scales(model, mode, control, plan$ledger, awkward, fixed)
  scales_plan(model, mode, found, plan$ledger, kernel)
}

# Steps of the chains; of very many coefficients each takes long.
scales_pilots <- function(n_coef) {
  n_step <- setting("recipe")$scales_pilot
  ceiling(n_step * min(1, (300 / n_coef)^2 + 0.1))
}

ball_of_scales <- function(model, at, draws, control, ledger) {
  hessian <- likelihood_hessian(model, at, control$cores)
  spend(ledger, "recipe", 1)
  ball_of(model, at, draws, hessian)
}

# hessian: minus that of all but the priors that have hyperparameters.
ball_of <- function(model, at, draws, hessian) {
  own <- seq_len(n_seen(model))
  precision <- precision_at(model$mixture, draws[-own, , drop = FALSE])
  wide <- apply(precision, 1, stats::quantile, 0.01, names = FALSE)
  covered <- model$mixture$at
  diag(hessian)[covered] <- diag(hessian)[covered] + wide
  # away from its centre a prior with heavy tails may bend the other way
  chol <- tryCatch(
    lower_chol(hessian, model),
    tall_error_improper = function(cnd) {
      lower_chol(hessian + fixed_precision(model), model)
    }
  )
  norm <- reach_of(model, chol, draws[own, , drop = FALSE] - at[own])
  new_moves(
    metric = chol,
    radius = stats::quantile(norm, 0.9, names = FALSE),
    phi = 2 * mean(norm^3)
  )
}

# How far places are from where rows are expanded, as the factorised test has it
# (src/models/expansion.h): mostly ||L' delta||. delta: a column for each.
reach_of <- function(model, chol, delta) {
  own_reach(model, chol, delta) %||% sqrt(colSums(crossprod(chol, delta)^2))
}

# NULL: the model has none of its own.
own_reach <- function(model, chol, delta) {
  out <- .Call(ffi_model_reach, rows_pointer(model), chol, delta)
  if (is.integer(out)) abort_status(out) else out
}

# Of a ball that holds places of a chain and, it may be assumed, all others: the
# largest of a few normal numbers has a longer tail than a norm of many.
ball_radius <- function(model, chol, delta) {
  own <- own_reach(model, chol, delta)
  if (is.null(own)) {
    return(1.25 * max(reach_of(model, chol, delta)))
  }
  max(1.25 * max(own), max(own) + 2)
}

# The precision of the priors that have no hyperparameters, of what rows see: at
# their centres, or at theta of the normal ones that have their slopes there.
fixed_precision <- function(model, theta = NULL) {
  own <- seq_len(n_seen(model))
  prior <- lapply(
    compact(model$prior[c("kind", "location", "scale", "shape")]),
    `[`,
    own
  )
  precision <- prior_precision(prior[setdiff(names(prior), "location")])
  precision[model$mixture$at] <- 0
  of <- places_of_priors(model)
  if (!is.null(theta)) {
    z <- (drop(of %*% theta) - prior$location) / prior$scale
    at <- prior$kind == prior_kinds$student$code
    df <- prior$shape[at]
    precision[at] <- precision[at] * df / (df + z[at]^2)
  }
  crossprod(of, precision * of)
}

# Minus the Hessian of all but the priors that have hyperparameters, of the
# coordinates that rows see.
likelihood_hessian <- function(model, at, cores) {
  n_coef <- model$n_dim - n_hyper(model)
  phi <- at[-seq_len(n_coef)]
  held <- held_model(model, phi)
  hessian <- proper_hessian(held, at[seq_len(n_coef)], cores = cores)
  covered <- model$mixture$at
  diag(hessian)[covered] <- diag(hessian)[covered] -
    drop(precision_at(model$mixture, phi))
  hessian
}

scales_plan <- function(model, mode, found, ledger, kernel) {
  plan_of_moves(model, mode, kernel, found, ledger)
}

# Draws of the surrogate, parameters x n_step, after a fifth as many that are
# thrown away: no test, and no rows but S.
scales_draws <- function(
  model,
  mode,
  found,
  proposal,
  n_step,
  control,
  ledger
) {
  kernel <- sliced_kernel(proposal, found)
  plan <- scales_plan(model, mode, found, ledger, kernel)
  plan$init <- found$init[, ncol(found$init), drop = FALSE]
  run_on_surrogate(plan, n_step, control)$unconstrained
}

# ---- how hyperparameters are moved -------------------------------------------

# So few that each can be moved with the coefficients integrated out, which
# costs some factorisations. Those of one coefficient seldom need it.
has_few_scales <- function(model) {
  s <- setting("recipe")
  is_shared <- model$mixture$params$mixture_kind == prior_kinds$ridge$mixture
  n_hyper(model) <= if (all(is_shared)) s$few_scales else s$few_locals
}

# Each hyperparameter about once, and a share that stays near.
integrated_proposal <- function(model) {
  proposal_mixture(
    proposal_marginal(rounds = n_hyper(model)),
    proposal_scales(1, 0.9),
    shares = c(0.9, 0.1)
  )
}

# list(proposal, stay, every_stay, seconds, slower, is_integrated): in turn with
# the coefficients, or with these integrated out, or now one and now the other:
# what moves most for its time, by chains on the surrogate. proposal NULL:
# kernel_smh()'s own. stay: correlation of the worst coordinate from step to
# step; every_stay: of each way. seconds: of a step, by count. slower: its time
# over that of one in turn.
choose_way <- function(model, mode, found, report, control, ledger) {
  n_hyper <- n_hyper(model)
  ways <- list(
    in_turn = hyper_proposal(),
    integrated = integrated_proposal(model),
    both = proposal_mixture(
      proposal_scales(1),
      proposal_marginal(rounds = n_hyper),
      proposal_scales(1, 0.9),
      shares = c(0.6, 0.3, 0.1)
    )
  )
  n_step <- setting("recipe")$scales_trial
  # known where a pilot of the same rows has told
  stay <- model$cache$stay %||% stay_of_ways(lapply(ways, function(proposal) {
    scales_draws(model, mode, found, proposal, n_step, control, ledger)
  }))
  acceptance <- report$n_accept / report$n_propose
  correlation <- 1 - acceptance * (1 - stay)
  seconds <- vapply(ways, scales_seconds, 0, model, found$awkward) +
    exact_seconds(model$n_dim - n_hyper, rows_of_step(model, report))
  best <- which.max((1 - correlation) / (1 + correlation) / seconds)
  list(
    proposal = if (best > 1) ways[[best]],
    stay = stay[[best]],
    every_stay = stay,
    seconds = seconds[[best]],
    slower = seconds[[best]] / seconds[[1]],
    is_integrated = best > 1
  )
}

# The largest correlation of successive draws of each chain, parameters x steps,
# all of one law. A short chain that stays in a part of it moves fast there:
# where all together are far wider than it is, its moves are small beside them.
stay_of_ways <- function(chains) {
  spread <- function(x) rowSums((x - rowMeans(x))^2) / ncol(x)
  all <- spread(do.call(cbind, chains))
  vapply(chains, function(draws) {
    n <- ncol(draws)
    own <- spread(draws)
    centred <- draws - rowMeans(draws)
    lag <- rowSums(centred[, -1] * centred[, -n]) / rowSums(centred^2)
    # of what does not move
    lag[!is.finite(lag)] <- 1
    # and not by chance, which does as much to few draws
    is_part <- all > 2 * own
    lag[is_part] <- 1 - ((1 - lag) * own / all)[is_part]
    min(max(lag, 0), 1 - 1 / n)
  }, 0)
}

# Seconds of a proposal, by count: factors, draws of scales, and looks at
# awkward rows.
scales_seconds <- function(proposal, model, awkward = NULL) {
  n_coef <- model$n_dim - n_hyper(model)
  n_covered <- length(model$mixture$at)
  # those that no hyperparameter is of are eliminated once, where they are not
  # few
  n_left <- if (8 * (n_coef - n_covered) < n_coef) n_coef else n_covered
  factor <- function(n) 5e-11 * min(n, n_left)^3 + 3e-9 * n^2
  look <- length(awkward) * 1e-9 * (30 + 2 * n_coef)
  draw <- 3e-7 * n_hyper(model)
  # of a slice: the rest once, the block at some six places
  size <- mean(model$mixture$params$mixture_size)
  slice <- factor(n_coef) + 6 * (1e-7 + factor(size))
  each <- vapply(proposal_members(proposal), function(member) {
    rounds <- member$args$rounds
    if (member$name == "marginal") {
      rounds * slice + factor(n_coef) + look
    } else {
      rounds * (factor(n_coef) + draw + look) + draw
    }
  }, 0)
  is_mixture <- inherits(proposal, "tall_proposal_mixture")
  sum(each * if (is_mixture) proposal$args$shares else 1)
}

rows_of_step <- function(model, report) {
  rows <- report$n_row - report$n_full * model$n_data - report$n_always
  rows / report$n_propose
}

# share: of the acceptance that is asked of such steps, as much is enough. way:
# of choose_way(), empty: in turn, as the pilot.
judge_scales <- function(
  plan,
  report,
  control,
  share = 1,
  way = list()
) {
  s <- setting("recipe")
  model <- plan$model
  acceptance <- report$n_accept / report$n_propose
  rows <- rows_of_step(model, report)
  if (acceptance < share * s$scales_acceptance) {
    why_not <- "exact steps from a few would be accepted with probability"
    return(list(why_not = paste(why_not, short(acceptance))))
  }
  n_step <- function(steps) {
    control$warmup + (control$iter - control$warmup) * steps
  }
  steps <- exact_steps(acceptance)
  if (!is.null(way$stay)) {
    least <- s$scales_correlation
    if (control$chains * n_step(steps) * way$seconds > s$dear_seconds) {
      # fewer draws' worth are enough where steps are dear
      least <- s$dear_correlation
      steps <- exact_steps(acceptance, least = least)
    }
    # hyperparameters may move less than coefficients
    steps <- max(steps, exact_steps(acceptance, 1, way$stay / 0.9, least))
  }
  plan$steps <- steps
  plan$recipe <- list(size = rows, acceptance = acceptance)
  plan$why <- paste0(
    "exact steps: in a pilot they looked at ",
    short(rows),
    " rows each, whatever the hyperparameters, and ",
    short(100 * acceptance),
    "% were accepted",
    if (isTRUE(way$is_integrated)) {
      "; hyperparameters move with the coefficients integrated out"
    }
  )
  list(
    plan = plan,
    way = way,
    rows = rows,
    acceptance = acceptance,
    pace_seconds = control$chains * n_step(steps) * report$pace *
      way$slower %||% 1
  )
}
