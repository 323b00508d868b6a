# The recipe's exact draws where a posterior is far from normal in a few
# directions: levels with a handful of rows, or none of one outcome. Their rows
# are kept as they are in a surrogate, on which a chain proposes, and the
# expansions of the others are about its mean (spec section 16).

# list(plan, seconds, why_not), as try_exact() has it, which found why_not.
try_surrogate <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  if (!model_info(model)$has_remainders || is.null(mode$chol) ||
    model$n_data <= s$small_data ||
    model$n_dim > s$awkward_dim) {
    return(list(why_not = "exact steps are for fewer parameters"))
  }
  found <- tryCatch(
    find_surrogate(model, mode, control, ledger),
    tall_error_singular = function(cnd) NULL,
    tall_error_nonfinite = function(cnd) NULL
  )
  if (is.null(found)) {
    return(list(why_not = "no rows of its own make it far from normal"))
  }
  plan <- surrogate_plan(model, mode, found, ledger)
  report <- exact_pilot(plan, control)
  if (is.null(report)) {
    return(list(why_not = "an exact step has no normal law to propose from"))
  }
  judge_surrogate(plan, report, found, control)
}

# Where the expansions are, S, and how chains on the surrogate move: two chains
# of it, each about the mean of the one before, the first about the mode. They
# look at no rows but S.
find_surrogate <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  at <- as.double(mode$estimate)
  awkward <- awkward_rows(model, mode, control, ledger)
  if (length(awkward$rows) == 0) {
    return(NULL)
  }
  found <- list(
    at = at,
    awkward = awkward$rows,
    moves = surrogate_moves(chol2inv(t(mode$chol)), awkward$rare)
  )
  for (n_step in s$awkward_pilot) {
    draws <- surrogate_draws(model, mode, found, n_step, control, ledger)
    found$at <- rowMeans(draws)
    found$moves <- surrogate_moves(
      stats::cov(t(draws)),
      awkward$rare,
      n_step,
      found$moves
    )
    found$init <- draws
  }
  found
}

# S: the rows whose predictor the posterior does not know better than ten events
# would tell, and those that exact steps would look at always; as many as pay,
# the largest psi first. rare: coordinates that no other rows tell of.
awkward_rows <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  d <- model$n_dim
  draw <- list(
    radius = remote_radius(d),
    phi_bar = 2 * (d + 1)^1.5,
    rate = 0,
    scale = likelihood_scale(model),
    seed = 1,
    pass = 0,
    first = 0,
    wide = s$awkward_sd
  )
  at <- as.double(mode$estimate)
  spend(ledger, "recipe", 1)
  seen <- chunk_draw(model$pointer, at, mode$chol, control$cores, draw)
  most <- min(s$most_awkward, max(200, floor(s$awkward_size / d)))
  psi <- ifelse(is.finite(seen$psi), seen$psi, Inf)
  rows <- seen$rows[utils::head(order(psi, decreasing = TRUE), most)]
  list(
    rows = sort(rows),
    rare = if (length(rows) > 0) rare_coordinates(model, mode, seen, rows)
  )
}

# Those whose curvature is that of the prior and of these rows alone.
rare_coordinates <- function(model, mode, seen, rows) {
  all <- likelihood_scale(model) * diag(seen$hessian)
  prior <- rowSums(mode$chol^2) - all
  n <- length(rows) / model$n_data
  of_rows <- (diag(proper_hessian(model, mode$estimate, rows)) - prior) * n
  which(all - of_rows <= 1e-6 * all + 1e-9 * abs(prior))
}

# How a chain on the surrogate moves: `lines`, a direction for each rare
# coordinate, sliced one at a time; `free`, the others, all at once; `metric`, L
# of coordinates in which it is about round. n_step: the draws that the
# covariance is of, where it is an estimate; where those are few, the moves
# before do for the others.
surrogate_moves <- function(covariance, rare, n_step = Inf, before = NULL) {
  d <- ncol(covariance)
  if (n_step < 5 * d) {
    return(before)
  }
  # an estimate from few draws is too narrow somewhere
  covariance <- covariance * (1 + 2 * d / n_step)
  metric <- t(chol(chol2inv(chol(covariance))))
  lines <- if (length(rare) > 0) {
    diag(sqrt(diag(covariance)), d)[, rare, drop = FALSE]
  }
  others <- setdiff(seq_len(d), rare)
  free <- if (length(rare) > 0 && length(others) > 0) {
    precision <- tcrossprod(metric)[others, others, drop = FALSE]
    free <- matrix(0, d, length(others))
    # R^-1 with R^T R = precision
    free[others, ] <- backsolve(chol(precision), diag(length(others)))
    free
  }
  list(metric = metric, lines = lines, free = free)
}

# The chain's proposals: slices of the rare coordinates, and trajectories of the
# others; so many steps for a proposal that each is moved now and then.
surrogate_proposal <- function(moves, n_dim) {
  n_line <- NCOL(moves$lines %||% matrix(0, 0, 0))
  step <- 0.9 * n_dim^(-1 / 4)
  hmc <- proposal_hmc(step, ceiling(pi / 2 / step))
  if (n_line == 0) {
    return(proposal_mixture(
      hmc,
      proposal_independent(),
      shares = c(2, 1),
      times = 3
    ))
  }
  n_hmc <- max(2, n_line / 6)
  proposal_mixture(
    proposal_slice(2),
    hmc,
    shares = c(n_line, n_hmc),
    times = ceiling(1.5 * (n_line + n_hmc))
  )
}

surrogate_plan <- function(model, mode, found, ledger) {
  kernel <- kernel_smh(
    proposal = surrogate_proposal(found$moves, model$n_dim),
    awkward = found$awkward
  )
  gradient <- gradient_cv(at = found$at, order = 2)
  gradient$surrogate <- found$moves
  plan <- new_plan(
    model,
    new_sampler(kernel, gradient),
    mode = mode,
    ledger = ledger
  )
  plan$start_draws <- found$init
  plan
}

# Draws of the surrogate, parameters x n_step, after a fifth as many that are
# thrown away: no test, and no rows but S.
surrogate_draws <- function(model, mode, found, n_step, control, ledger) {
  plan <- surrogate_plan(model, mode, found, ledger)
  plan$gradient$surrogate$untested <- 1
  pilot <- pilot_control(control, 1)
  pilot$keep <- "draws"
  plan$init <- matrix(found$at, model$n_dim, 1)
  segment <- run_segment(plan, pilot, new_stretch(n_step / 5, n_step))
  spend(ledger, "recipe", segment$reports[[1]]$n_row / model$n_data)
  abort_status(segment$reports[[1]]$status)
  t(matrix(segment$buffers$draw, n_step))
}

judge_surrogate <- function(plan, report, found, control) {
  s <- setting("recipe")
  model <- plan$model
  n_data <- model$n_data
  acceptance <- report$n_accept / report$n_propose
  # the surrogate's own are in the cache
  own <- report$n_always
  rows <- (report$n_row - own - report$n_full * n_data) / report$n_propose
  own <- own / report$n_propose
  if (acceptance < s$awkward_acceptance) {
    why_not <- "exact steps would be accepted with probability"
    return(list(why_not = paste(why_not, short(acceptance))))
  }
  if (rows > s$full_share * n_data) {
    why_not <- "an exact step would look at"
    return(list(why_not = paste(why_not, count_noun(round(rows), "row"))))
  }
  steps <- exact_steps(acceptance)
  n_step <- control$warmup + (control$iter - control$warmup) * steps
  own_seconds <- own * 1e-9 * (30 + 2 * model$n_dim)
  verdict <- list(
    steps = steps,
    rows = rows,
    acceptance = acceptance,
    seconds = control$chains * n_step *
      (exact_seconds(model$n_dim, rows) + own_seconds)
  )
  plan$steps <- steps
  plan$recipe <- list(
    size = rows,
    acceptance = acceptance,
    kappa = laplace_kappa(model, plan$mode),
    n_awkward = length(found$awkward)
  )
  plan$why <- paste0(
    "exact steps: ",
    count_noun(length(found$awkward), "row"),
    " that make the posterior far from normal are known as they are; in a",
    " pilot they looked at ",
    short(rows),
    " others each, and ",
    share_text(acceptance),
    " were accepted"
  )
  verdict$plan <- plan
  verdict
}
