# The recipe's exact draws where a posterior is far from normal in a few
# directions: levels with a handful of rows, or none of one outcome. Their rows
# are kept as they are in a surrogate, on which a chain proposes, and the
# expansions of the others are about its mean (src/gradients/surrogate.h).

# list(plan, seconds, pace_seconds, why_not), as try_exact() has it, which found
# why_not.
# is_tied: the rows stand for many, however few they are.
try_surrogate <- function(model, mode, control, ledger, is_tied = FALSE) {
  s <- setting("recipe")
  if (!model_info(model)$has_remainders || is.null(mode$chol) ||
    (model$n_data <= s$small_data && !is_tied) ||
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
    return(list(
      why_not = "an exact step has no normal distribution to propose from"
    ))
  }
  verdict <- judge_surrogate(plan, report, length(found$awkward), control)
  if (!is.null(verdict$why_not)) {
    verdict$is_tried <- TRUE
    verdict$why_not <- told_cap(verdict$why_not, found)
  }
  verdict
}

# Where there are more awkward rows than the cap it says so.
told_cap <- function(why_not, found) {
  n <- length(found$awkward)
  paste0(
    why_not,
    ", also with ",
    count_noun(n, "awkward row"),
    " known as they are",
    if (found$n_left > 0) {
      paste0(", of ", format_count(n + found$n_left))
    }
  )
}

# Where the expansions are, S, and how chains on the surrogate move: two chains
# of it, each about the mean of the one before, the first about the mode. They
# look at no rows but S.
find_surrogate <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  at <- as.double(mode$estimate)
  awkward <- awkward_rows(model, mode, control, ledger)
  n <- length(awkward$rows)
  if (n == 0 || is_most_of(n, model, model$n_dim)) {
    return(NULL)
  }
  found <- list(
    at = at,
    awkward = awkward$rows,
    n_left = awkward$n_left,
    moves = surrogate_moves(chol2inv(t(mode$chol)), awkward$wide)
  )
  for (n_step in s$awkward_pilot) {
    draws <- surrogate_draws(model, mode, found, n_step, control, ledger)
    found$at <- rowMeans(draws)
    found$moves <- surrogate_moves(
      stats::cov(t(draws)),
      awkward$wide,
      n_step,
      found$moves
    )
    found$init <- draws
  }
  found
}

# Of many columns, where every tenth row is one of S, it is not a few rows that
# make the posterior what it is, and the pilot would be dear.
is_most_of <- function(n, model, n_dim) {
  model$n_data > setting("recipe")$small_data &&
    n > model$n_data / 10 && n * n_dim > 2e4
}

# So many rows of S pay.
most_awkward_of <- function(n_dim) {
  s <- setting("recipe")
  min(s$most_awkward, max(200, floor(s$awkward_size / n_dim)))
}

# S: the rows whose predictor the posterior does not know better than ten events
# would tell, and those that exact steps would look at always; as many as pay,
# the largest psi first. sd: of ten events, as above; wide: the former, as they
# differ;
# n_left: how many did not pay. which_wide: which of `rows` are the former.
awkward_rows <- function(
  model,
  mode,
  control,
  ledger,
  sd = setting("recipe")$awkward_sd
) {
  d <- model$n_dim
  draw <- list(
    radius = remote_radius(d),
    phi_bar = 2 * (d + 1)^1.5,
    rate = 0,
    scale = likelihood_scale(model),
    seed = 1,
    pass = 0,
    first = 0,
    wide = sd
  )
  at <- as.double(mode$estimate)
  spend(ledger, "recipe", 1)
  seen <- chunk_draw(model$pointer, at, mode$chol, control$cores, draw)
  most <- most_awkward_of(d)
  psi <- ifelse(is.finite(seen$psi), seen$psi, Inf)
  own <- utils::head(order(psi, decreasing = TRUE), most)
  own <- sort(own)
  is_wide <- seen$norm[own] >= sd
  wide <- columns_of(
    model,
    mode,
    seen$rows[own[is_wide]],
    seen$norm[own[is_wide]]
  )
  list(
    rows = seen$rows[own],
    wide = wide,
    which_wide = which(is_wide),
    n_left = length(psi) - length(own)
  )
}

# x_i of some rows, as columns, each that differs once, up to its sign: a row's
# gradient is in its direction. norm: ||L^-1 x_i||
columns_of <- function(model, mode, rows, norm) {
  at <- as.double(mode$estimate)
  of <- vapply(rows, function(i) {
    g <- model_evaluate(model, at, "likelihood", index = i)$gradient[, 1]
    g / g[[which.max(abs(g))]]
  }, numeric(model$n_dim))
  of <- matrix(of, model$n_dim)
  # but for rounding
  keep <- !duplicated(signif(of, 12), MARGIN = 2) &
    colSums(!is.finite(of)) == 0
  of <- of[, keep, drop = FALSE]
  size <- sqrt(colSums(forwardsolve(mode$chol, of)^2))
  of * rep(norm[keep] / size, each = model$n_dim)
}

# How a chain on the surrogate moves. The predictors of some wide rows, of which
# the others follow, are moved one at a time by slices along `lines`, while
# those of the others of them stay as they are; then all else, along `free`,
# while all of them stay, which are `held`. metric: L of coordinates in which it
# is about round.
# n_step: the draws that the covariance is of, where it is an estimate; where
# those are few, the moves before do for the others.
surrogate_moves <- function(covariance, wide, n_step = Inf, before = NULL) {
  d <- ncol(covariance)
  if (n_step < 5 * d) {
    return(before)
  }
  # an estimate from few draws is too narrow somewhere
  covariance <- covariance * (1 + 2 * d / n_step)
  metric <- t(chol(chol2inv(chol(covariance))))
  moves <- new_moves(metric)
  if (NCOL(wide) == 0) {
    return(moves)
  }
  # x~ = L^-1 x: those with the largest part that others do not tell of, first
  white <- forwardsolve(metric, wide)
  found <- qr(white, LAPACK = TRUE)
  part <- abs(diag(as.matrix(qr.R(found))))
  n <- sum(part >= setting("recipe")$awkward_sd)
  if (n == 0) {
    return(moves)
  }
  own <- found$pivot[seq_len(n)]
  moves$lines <- wide_lines(metric, wide[, own, drop = FALSE])
  if (n > 2 && 4 * n <= d) {
    moves$held <- wide[, own, drop = FALSE]
  }
  if (n < d) {
    others <- qr.Q(qr(white[, own, drop = FALSE]), complete = TRUE)
    moves$free <- backsolve(t(metric), others[, -seq_len(n), drop = FALSE])
  }
  # all that there is has to be moved: lines of whole numbers may be one line
  if (rcond(crossprod(metric, cbind(moves$lines, moves$free))) < 1e-6) {
    moves$lines <- wide_lines(metric, wide[, own, drop = FALSE], whole = FALSE)
  }
  moves
}

# `moves` with the lines of surrogate_moves(), and what draws of all else hold;
# before: moves that have those of a chain before, if any.
with_lines <- function(moves, covariance, wide, n_step = Inf, before = NULL) {
  before <- before[intersect(c("lines", "held"), names(before))]
  found <- surrogate_moves(covariance, wide, n_step, before)
  moves$lines <- found$lines
  moves$held <- found$held
  moves
}

# Directions, each of which moves the predictor of one column of `wide` by its
# standard deviation given the others of them, and all else to where it is then
# expected. One of whole numbers that does nearly as well moves few rows: that
# of a level and the baseline, in a table of factors.
wide_lines <- function(metric, wide, whole = TRUE) {
  white <- forwardsolve(metric, wide)
  # (C' Sigma C)^-1
  inverse <- chol2inv(chol(crossprod(white)))
  dual <- backsolve(t(metric), white %*% inverse)
  vapply(seq_len(ncol(wide)), function(k) {
    u <- dual[, k]
    sd <- 1 / sqrt(inverse[k, k])
    near <- round(u / max(abs(u)))
    moved <- sum(near * wide[, k])
    cost <- sum(crossprod(metric, near)^2) / moved^2 # of 1 in the predictor
    if (whole && is.finite(cost) && cost <= 2 / sd^2) {
      return(near * sd / moved)
    }
    u * sd
  }, numeric(nrow(wide)))
}

# The chain's proposals: slices along the lines, and draws of all else from its
# normal law, which awkward rows that are not wide seldom refuse; trajectories
# where nothing is wide. So many steps for a proposal that all is moved now and
# then; more where a few lines hold one another, such as a level and its slope.
surrogate_proposal <- function(moves, n_dim) {
  n_line <- NCOL(moves$lines %||% matrix(0, 0, 0))
  if (n_line == 0) {
    step <- 0.9 * n_dim^(-1 / 4)
    return(proposal_mixture(
      proposal_hmc(step, ceiling(pi / 2 / step)),
      proposal_independent(),
      shares = c(2, 1),
      times = 3
    ))
  }
  shares <- c(3 * n_line, 3, 1)
  often <- if (n_line %in% 2:4) 3 else 1
  proposal_mixture(
    proposal_slice(2),
    proposal_block(0),
    proposal_block(0.8),
    shares = shares,
    times = often * sum(shares)
  )
}

# found: at, awkward, moves, init, as find_surrogate() has them; ahead: of rows
# drawn ahead, NULL: the model has all.
surrogate_plan <- function(model, mode, found, ledger) {
  kernel <- kernel_smh(
    proposal = surrogate_proposal(found$moves, model$n_dim),
    awkward = found$awkward
  )
  plan_of_moves(model, mode, kernel, found, ledger)
}

plan_of_moves <- function(model, mode, kernel, found, ledger) {
  gradient <- gradient_expanded(found$at, found$moves, found$ahead)
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
  plan$init <- matrix(found$at, model$n_dim, 1)
  run_on_surrogate(plan, n_step, control)$draw
}

# list(draw, unconstrained), parameters and coordinates x n_step.
run_on_surrogate <- function(plan, n_step, control) {
  plan$gradient <- without_test(plan$gradient)
  pilot <- pilot_control(control, 1)
  pilot$keep <- "draws"
  stretch <- new_stretch(ceiling(n_step / 5), n_step)
  segment <- run_segment(plan, pilot, stretch)
  report <- segment$reports[[1]]
  spend(plan$ledger, "recipe", report$n_row / plan$model$n_data)
  abort_status(report$status)
  buffers <- segment$buffers[c("draw", "unconstrained")]
  lapply(compact(buffers), function(draws) t(matrix(draws, n_step)))
}

# share: of what is asked of such steps, as much is enough.
judge_surrogate <- function(plan, report, n_awkward, control, share = 1) {
  s <- setting("recipe")
  model <- plan$model
  n_data <- model$n_data
  acceptance <- report$n_accept / report$n_propose
  # the surrogate's own are in the cache
  own <- report$n_always
  rows <- (report$n_row - own - report$n_full * n_data) / report$n_propose
  own <- own / report$n_propose
  if (acceptance < share * s$awkward_acceptance) {
    why_not <- "exact steps would be accepted with probability"
    return(list(why_not = paste(why_not, short(acceptance))))
  }
  if (share * rows > s$full_share * n_data) {
    why_not <- "an exact step would look at"
    return(list(why_not = paste(why_not, count_noun(round(rows), "row"))))
  }
  # none stays near where it was by the proposal
  steps <- exact_steps(acceptance, share = 0, least = s$awkward_correlation)
  n_step <- control$warmup + (control$iter - control$warmup) * steps
  own_seconds <- own * 1e-9 * (30 + 2 * model$n_dim)
  verdict <- list(
    steps = steps,
    rows = rows,
    acceptance = acceptance,
    seconds = control$chains * n_step *
      (exact_seconds(model$n_dim, rows) + own_seconds),
    pace_seconds = control$chains * n_step * report$pace
  )
  plan$steps <- steps
  plan$recipe <- list(
    size = rows,
    acceptance = acceptance,
    kappa = laplace_kappa(model, plan$mode),
    n_awkward = n_awkward
  )
  plan$why <- paste0(
    "exact steps: ",
    count_noun(n_awkward, "row"),
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
