# sg_tune(): step sizes and minibatch sizes by successive halving. An arm is one
# row of the grid: a plan as sg_sample() would make it, and the saved state of
# its chains, from which every rung goes on.

#' Tune step sizes and minibatch sizes
#'
#' Runs a kernel with many step sizes, and minibatch sizes, for a short while,
#' drops those whose draws are furthest from the posterior, and lets the others
#' go on with the time that is saved: MAMBA, successive halving by a Stein
#' discrepancy (Coullon, South & Nemeth, 2023).
#'
#' @inheritParams sg_sample
#' @param kernel (`tall_kernel`, or a function that returns one) What is tuned:
#'   a kernel whose arguments named in `grid` are replaced, or a function of
#'   them, such as `kernel_sgld` or `function(scale) kernel_sgbd(scale * sds)`.
#' @param grid (data frame, or named list of vectors) The arms. A data frame has
#'   a row for each; of a list all combinations are tried. The names are those
#'   of the kernel's arguments (`step_size`, `sigma`), and `size` for the rows
#'   of a minibatch.
#' @param metric (string) What arms are scored by: `"ksd"`, see [ksd()], or
#'   `"fssd"`, the biased estimate of [fssd()].
#' @param budget (positive number) What all arms together may spend on sampling,
#'   in units of `unit`. Scoring is not part of it. Where iterations differ in
#'   cost (SVRG, adaptive minibatches, seconds) it may be exceeded somewhat.
#' @param unit (string) `"gradients"`: evaluations of the gradient of **one
#'   row's** log likelihood, so that a minibatch of n rows costs n; the result
#'   is reproducible. `"seconds"`: elapsed time.
#' @param eta (number above 1) Of each rung one arm in `eta` goes on.
#' @param gradient,subsample,schedule As in [sg_sample()]; a column `size` of
#'   the grid replaces the size of `subsample`.
#' @param points (whole number) Draws that an arm is scored by in each rung,
#'   evenly spaced. Each costs a pass over the data for its exact gradient.
#' @param locations (whole number, or numeric matrix of J x n_dim) Test
#'   locations of `"fssd"`: so many, drawn from the normal fitted to the draws
#'   of each arm, or given. Given ones are blind to arms whose draws are all far
#'   from them.
#' @param c,beta The kernel of the discrepancy, see [ksd()].
#' @param covariance (`"mode"`, numeric matrix of n_dim x n_dim, or `NULL`) The
#'   coordinates the discrepancy compares draws in, see [ksd()]. `"mode"`: the
#'   inverse of the Hessian at the mode, so that distances are in posterior
#'   standard deviations (models of more than 1,000 parameters are left as they
#'   are). `NULL`: the parameters, as in the paper.
#' @param chains (whole number) Chains of each arm, scored together.
#'
#' @details With A arms there are \eqn{R = \max(1, \lfloor \log_\eta A
#' \rfloor)}{R = max(1, floor(log_eta(A)))} rungs. Each spends the R-th part of
#' the budget, in equal shares of its arms; then the \eqn{\lfloor A_r / \eta
#' \rfloor}{floor(A_r / eta)} best of its \eqn{A_r} arms, at least one, enter
#' the next, where each goes on from where it stopped. After the last rung the
#' best arm is chosen. An arm is scored by draws of the current rung only, so
#' that the way from the starting point counts less and less. All arms start at
#' the same points and use the same random numbers.
#'
#' Scores are distances from the posterior, of bias and of slow mixing together:
#' what is chosen is best for runs of about the length of the last rung. For
#' much longer runs, smaller steps are better. Leave `init` out, so that arms
#' start at a draw of the normal approximation: an arm that hardly moves from
#' the mode is close to the posterior as discrepancies see it. In the units of
#' the parameters (`covariance = NULL`) the score of a narrow posterior is the
#' norm of the average gradient at the draws, which falls with the number of
#' `points`; the paper scores all draws.
#'
#' An arm that stops (its state is no longer finite) is dropped, and reported.
#' Ctrl-C ends the race with the result of the last whole rung, in the first one
#' without.
#'
#' @inheritSection ksd What it is blind to
#' @return An object of class `tall_tune`, a list with
#' * `kernel`, `gradient`, `subsample`, `schedule`: the best arm, ready for
#'   [sg_sample()];
#' * `best`: its row of the grid;
#' * `rungs`: a data frame with a row for each rung and arm in it: `rung`,
#'   `arm`, the columns of the grid, and, since the start of the arm,
#'   `iterations` of each chain, `gradients` and `seconds`; `score`, `NA` for
#'   arms that stopped; `survived`: does it enter the next rung, or win?;
#'   `status`, `"ok"` or why it stopped;
#' * `arms`: a data frame with the last row of each arm, best first;
#' * `spent` (in units of `unit`), `scoring` (passes over the data), `seconds`
#'   (in all);
#' * `interrupted`: the rung that Ctrl-C cut off and that is left out, if any.
#'
#' `print()`, `summary()`, which shows all arms, and `plot()` work on it.
#' @section Conditions: `tall_error_input` for arguments that are not as
#' described: a grid of one arm or with unknown columns, a budget that does not
#' allow 20 iterations of each arm in the first rung. `tall_error_unsupported`
#' for a kernel that adapts its own step size and for parts that cannot work
#' together. `tall_error_nonfinite` if every arm stopped: it says where.
#' `tall_warning_interrupted` after Ctrl-C.
#' @references Coullon, South & Nemeth (2023). Efficient and generalizable
#' tuning strategies for stochastic gradient MCMC. *Statistics and Computing*
#' 33, 66.
#' @seealso [ksd()], [fssd()], [noise_tolerance()]
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' tuned <- sg_tune(
#'   model,
#'   kernel_sgbd(sigma = 1),
#'   grid = list(sigma = 10^seq(-3, 0, length.out = 9)),
#'   budget = 2e5,
#'   seed = 1
#' )
#' tuned
#' fit <- sg_sample(model, tuned$kernel, subsample = tuned$subsample, seed = 2)
#' @export
sg_tune <- function(
  model,
  kernel,
  grid,
  metric = c("ksd", "fssd"),
  budget,
  unit = c("gradients", "seconds"),
  eta = 3,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  points = 100,
  locations = 100,
  c = 1,
  beta = -0.5,
  covariance = "mode",
  chains = 1,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  refresh = getOption("tallbayes.refresh", 1)
) {
  started <- proc.time()[["elapsed"]]
  call <- rlang::current_env()
  check_model(model)
  grid <- check_grid(grid, kernel, call)
  metric <- check_choice(metric, c("ksd", "fssd"))
  budget <- check_number(budget, positive = TRUE)
  unit <- check_choice(unit, c("gradients", "seconds"))
  eta <- check_number(eta)
  if (eta <= 1) {
    abort_value(eta, 1, "be above 1", "eta", call)
  }
  points <- check_count(points, min = 2, most = count_limits$iter)
  control <- check_control(2, 0, 1, chains, cores, seed, "draws", refresh, call)
  parts <- list(gradient = gradient, subsample = subsample, schedule = schedule)
  arms <- make_arms(model, kernel, grid, parts, control, init, call)
  judge <- make_judge(
    metric, model, control, points, locations, c, beta, covariance, call
  )
  race <- run_race(arms, judge, control, budget, unit, eta, call)
  warn_race(race, call)
  new_tune(race, arms, grid, judge, list(
    budget = budget,
    unit = unit,
    eta = eta,
    n_data = model$n_data,
    seed = control$seed,
    seconds = proc.time()[["elapsed"]] - started
  ))
}

warn_race <- function(race, call) {
  if (is.null(race$interrupted)) {
    return(invisible())
  }
  warn_tall(
    "interrupted",
    "The race was interrupted in rung {race$interrupted}: its result is that of
     rung {race$interrupted - 1}.",
    call = call
  )
}

# ---- arms --------------------------------------------------------------------

# A data frame with a row for each arm.
check_grid <- function(grid, kernel, call) {
  check_given(kernel, arg = "kernel", call = call)
  check_given(grid, arg = "grid", call = call)
  if (!is.function(kernel)) {
    check_spec(kernel, "tall_kernel", "kernel_*()", arg = "kernel", call = call)
  }
  if (!is.list(grid) || is.null(names(grid)) || !all(nzchar(names(grid)))) {
    abort_expected(
      grid,
      "a data frame or a named list",
      arg = "grid",
      call = call
    )
  }
  known <- names(
    formals(if (is.function(kernel)) kernel else constructor(kernel))
  )
  if (!"..." %in% known) {
    check_known(
      names(grid),
      c(known, "size"),
      "column",
      arg = "grid",
      call = call
    )
  }
  if (!is.data.frame(grid)) {
    grid <- expand.grid(grid, KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
  }
  if (nrow(grid) < 2) {
    n <- count_noun(nrow(grid), "arm")
    abort_input(
      "{.arg grid} must have at least 2 arms, not {n}: there is nothing to choose.",
      argument = "grid",
      expected = 2,
      value = grid,
      call = call
    )
  }
  rownames(grid) <- NULL
  as.data.frame(grid)
}

# The function that made a spec.
constructor <- function(spec) {
  get(
    constructor_name(spec),
    envir = asNamespace("tallbayes"),
    mode = "function"
  )
}

constructor_name <- function(spec) {
  family <- sub("^tall_", "", class(spec)[[2]])
  paste0(family, "_", gsub("-", "_", spec$name))
}

# The kernel of an arm. Arguments that a variant has no use for are NULL in a
# spec: another variant then takes their defaults.
arm_kernel <- function(kernel, args, call) {
  if (is.function(kernel)) {
    made <- rlang::inject(call_user(kernel, "kernel", call, !!!args))
    return(
      check_spec(made, "tall_kernel", "kernel_*()", arg = "kernel", call = call)
    )
  }
  own <- Filter(Negate(is.null), kernel$args)
  if (lacks_step(kernel)) {
    own$adapt <- NULL # what the grid gives is not adapted
  }
  args <- utils::modifyList(own, args)
  eval(
    rlang::call2(constructor_name(kernel), !!!args),
    asNamespace("tallbayes")
  )
}

check_tunable <- function(kernel, call) {
  if (isTRUE(kernel$args$adapt) || isTRUE(kernel$args$adaptive)) {
    option <- intersect(c("adapt", "adaptive"), names(kernel$args))
    abort_tall(
      "unsupported",
      c(
        "{.code {constructor_name(kernel)}()} with {.code {option} = TRUE} sets
         its own step size: there is nothing to tune.",
        i = "Leave that out, or sample with it as it is."
      ),
      call = call
    )
  }
}

# The scheme with another number of rows.
arm_subsample <- function(subsample, size, model, kernel, gradient, call) {
  if (is.null(size)) {
    return(subsample)
  }
  if (kernel_is_metropolis(kernel)) {
    gradient <- metropolis_gradient(kernel, gradient, subsample, call)
  }
  if (gradient_is_full(gradient)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg grid} has a column {.code size}, but full gradients use all rows.",
        i = "Leave the column out."
      ),
      call = call
    )
  }
  subsample <- subsample %||% default_subsample(model)
  if (!"size" %in% names(subsample$args)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg grid} has a column {.code size}, but
         {.code {constructor_name(subsample)}()} has no fixed size.",
        i = "Leave the column out, or use {.fn subsample_uniform} or
             {.fn subsample_weighted}."
      ),
      call = call
    )
  }
  subsample$args$size <- check_batch_size(size, arg = "size", call = call)
  subsample
}

make_arms <- function(model, kernel, grid, parts, control, init, call) {
  check_members(NULL, parts$gradient, parts$subsample, parts$schedule, call)
  init <- check_init(init, model, control$chains, call)
  arms <- lapply(seq_len(nrow(grid)), function(k) {
    row <- lapply(grid, function(column) column[[k]])
    made <- arm_kernel(kernel, row[names(row) != "size"], call)
    check_tunable(made, call)
    plan <- plan_explicit(
      model,
      made,
      parts$gradient,
      arm_subsample(
        parts$subsample,
        row$size,
        model,
        made,
        parts$gradient,
        call
      ),
      parts$schedule,
      control,
      call
    )
    list(
      index = k,
      label = row_text(grid, k),
      kernel = plan$kernel,
      subsample = plan$subsample,
      plan = plan,
      saved = NULL,
      iterations = 0,
      gradients = 0,
      seconds = 0,
      status = "ok"
    )
  })
  start <- plan_init(arms[[1]]$plan, init, control, call)
  lapply(share_weights(arms, control, call), function(arm) {
    arm$plan$init <- start
    arm
  })
}

# Weights are found once for all arms and rungs, not at the start of each
# stretch.
share_weights <- function(arms, control, call) {
  plan <- arms[[1]]$plan
  type <- plan$subsample$args$weights
  if (!is.character(type) || type == "uniform") {
    return(arms)
  }
  weights <- run_context(plan, control)$weights(type, call)
  lapply(arms, function(arm) {
    arm$plan$subsample$args$weights <- weights
    arm
  })
}

# "sigma = 0.001, size = 100"
row_text <- function(grid, k) {
  values <- vapply(grid, function(column) arg_text(column[[k]]), "")
  paste(names(grid), "=", values, collapse = ", ")
}

# ---- judging -----------------------------------------------------------------

# list(score, metric, points): score(theta, weights) of draws x n_dim.
make_judge <- function(
  metric,
  model,
  control,
  points,
  locations,
  c,
  beta,
  covariance,
  call
) {
  if (identical(covariance, "mode")) {
    mode <- model_mode(model, control$cores, control$refresh, call)
    covariance <- if (!is.null(mode$chol)) chol2inv(t(mode$chol))
  }
  # of two points, so that what is wrong is said before anything runs
  bounds <- stein_bounds(model)
  problem_at <- function(theta, gradients) {
    stein_problem(
      theta,
      gradients,
      c,
      beta,
      covariance,
      call,
      bounds = bounds
    )
  }
  origin <- matrix(0, 2, model$n_dim)
  inside <- if (is.null(bounds)) origin else bound_points(origin, bounds)
  frame <- problem_at(inside, origin)
  places <- if (is.matrix(locations)) {
    test_locations(locations, frame, control$seed, call)
  } else {
    check_count(locations, most = 1e6, arg = "locations", call = call)
  }
  score <- function(theta, weights) {
    gradients <- model_gradients(model, theta, needs_finite = FALSE)
    if (!all_finite(gradients)) {
      return(NA_real_)
    }
    problem <- problem_at(theta, gradients)
    problem$weights <- weights
    judge_problem(metric, problem, places, control)
  }
  list(score = score, metric = metric, points = points)
}

judge_problem <- function(metric, problem, places, control) {
  if (metric == "fssd") {
    if (!is.matrix(places)) {
      # fitted to the arm: from far away draws seem symmetric about fixed ones
      places <- normal_locations(places, problem, control$seed)
    }
    return(sqrt(fssd_square(places, problem, TRUE, control$cores)$value))
  }
  square <- ksd_squares(
    problem$theta,
    problem$score,
    problem$weights,
    problem$c,
    problem$beta,
    "vector",
    TRUE,
    ncol(problem$theta),
    control$cores
  )
  sqrt(max(drop(square), 0))
}

# ---- running -----------------------------------------------------------------

# Least iterations of each arm in the first rung, and those that measure its
# cost.
tune_least <- 20
tune_probe <- 4

# list(rungs, best, scored, interrupted): the table, the number of the best arm,
# the passes of scoring, and the rung that an interrupt cut off, NULL: none.
run_race <- function(arms, judge, control, budget, unit, eta, call) {
  n_rung <- max(1, floor(log(length(arms), eta) + 1e-9))
  sizes <- rung_sizes(length(arms), n_rung, eta)
  bar <- race_bar(control, sum(sizes), environment())
  arms <- lapply(arms, probe_arm, control, call)
  check_budget(arms, control, budget, unit, n_rung, call)
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
          arm <- spend_share(arm, from + share, unit, judge, control, call)
          bar$step()
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
    check_survivors(arms, rung, call)
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

race_bar <- function(control, total, frame) {
  if (control$refresh == 0) {
    return(list(step = function() NULL, done = function() NULL))
  }
  bar <- cli::cli_progress_bar("Tuning", total = total, .envir = frame)
  list(
    step = function() cli::cli_progress_update(1, id = bar),
    done = function() cli::cli_progress_done(id = bar)
  )
}

arm_cost <- function(arm, unit) {
  arm[[unit]]
}

# The start, which may cost a pass, then a few iterations, which tell the cost
# of the others.
probe_arm <- function(arm, control, call) {
  advance_arm(
    advance_arm(arm, 1, control, 1, call),
    tune_probe,
    control,
    1,
    call
  )
}

check_budget <- function(arms, control, budget, unit, n_rung, call) {
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
        "{.arg budget} must be at least {shown} {what} for this grid, not {given}.",
        i = "So much allows {tune_least} iterations of each arm in the first of
             {count_noun(n_rung, 'rung')}."
      ),
      argument = "budget",
      expected = least,
      value = budget,
      call = call
    )
  }
}

# Go on until the arm has cost `limit` in all. Costs are foreseen from those of
# the last stretch, at most ten times as far as the arm has come: iterations may
# differ.
spend_share <- function(arm, limit, unit, judge, control, call) {
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
    arm <- advance_arm(arm, n, control, judge$points, call)
  }
  arm$draws <- spread_draws(arm$draws, judge$points / control$chains)
  arm
}

# n more iterations of each chain. Adds at least n_point draws, in all, if there
# are as many.
advance_arm <- function(arm, n, control, n_point, call) {
  if (arm$status != "ok") {
    return(arm)
  }
  each <- ceiling(n_point / control$chains)
  control$thin <- max(1, floor(n / each))
  control$refresh <- 0
  segment <- run_segment(
    arm$plan,
    control,
    n_warmup = 0,
    n_sampling = n,
    saved = arm$saved,
    noise_every = 0,
    call = call
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
  arm[c("coordinate", "value")] <- report_place(report, arm$plan$model)
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
      arm$coordinate <- "gradient"
      arm$value <- NA_real_
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

rung_table <- function(arms, rung) {
  field <- function(name, type) vapply(arms, function(arm) arm[[name]], type)
  data.frame(
    rung = rung,
    arm = field("index", 0L),
    iterations = field("iterations", 0),
    gradients = field("gradients", 0),
    seconds = field("seconds", 0),
    score = field("score", 0),
    survived = field("survived", TRUE),
    status = field("status", "")
  )
}

check_survivors <- function(arms, rung, call) {
  if (any(vapply(arms, function(arm) arm$survived, TRUE))) {
    return(invisible())
  }
  shown <- utils::head(
    arms[order(vapply(arms, function(arm) arm$index, 0L))],
    5
  )
  where <- vapply(shown, function(arm) escape_cli(stop_text(arm)), "")
  more <- length(arms) - length(shown)
  abort_tall(
    "nonfinite",
    c(
      "Every arm stopped in rung {rung}.",
      stats::setNames(where, rep("x", length(where))),
      if (more > 0) c(x = "... and {more} more."),
      i = "Try smaller step sizes, or give {.arg init} closer to the mode."
    ),
    status = "nonfinite",
    iteration = shown[[1]]$stopped_at,
    coordinate = shown[[1]]$coordinate,
    value = shown[[1]]$value,
    call = call
  )
}

# "sigma = 3: `age` became Inf at iteration 12"
stop_text <- function(arm) {
  because <- status_entry(arm$status, arm$coordinate, arm$value)$because
  paste0(
    arm$label,
    ": ",
    sub("[.]$", "", because),
    " at iteration ",
    format_count(arm$stopped_at)
  )
}

# ---- result ------------------------------------------------------------------

new_tune <- function(race, arms, grid, judge, about) {
  best <- arms[[race$best]]
  at <- match("arm", names(race$rungs))
  rungs <- cbind(
    race$rungs[seq_len(at)],
    grid[race$rungs$arm, , drop = FALSE],
    race$rungs[-seq_len(at)]
  )
  rownames(rungs) <- NULL
  # the last row of each arm; later rungs, then better scores, first
  last <- rungs[!duplicated(rungs$arm, fromLast = TRUE), ]
  last <- last[order(-last$rung, last$score), ]
  rownames(last) <- NULL
  structure(
    c(
      list(
        kernel = best$kernel,
        gradient = best$plan$gradient,
        subsample = best$subsample,
        schedule = best$plan$schedule,
        best = grid[race$best, , drop = FALSE],
        rungs = rungs,
        arms = last,
        tuned = names(grid),
        metric = judge$metric,
        spent = sum(last[[about$unit]]),
        scoring = race$scored,
        interrupted = race$interrupted
      ),
      about
    ),
    class = "tall_tune"
  )
}

#' @export
print.tall_tune <- function(x, ...) {
  check_no_dots(...)
  top <- x$arms[1, ]
  n_rung <- max(x$rungs$rung)
  cat(
    "<tall_tune> ", count_noun(nrow(x$arms), "arm"), " in ",
    count_noun(n_rung, "rung"), ", scored by ", toupper(x$metric), "\n",
    sep = ""
  )
  cat(
    "Best: ", row_text(x$best, 1), " (", toupper(x$metric), " ",
    format(top$score, digits = 3), " in rung ", top$rung, ")\n\n",
    sep = ""
  )
  shown <- lapply(split(x$rungs, x$rungs$rung), function(rung) {
    data.frame(
      rung = rung$rung[[1]],
      arms = nrow(rung),
      stopped = sum(rung$status != "ok"),
      # of the best arm; those that stopped made few
      iterations = rung$iterations[order(rung$score)][[1]],
      best = min(rung$score, na.rm = TRUE),
      median = stats::median(rung$score, na.rm = TRUE)
    )
  })
  print(do.call(rbind, shown), row.names = FALSE, digits = 3)
  cat("\n", paste0(tune_notes(x), "\n"), sep = "")
  invisible(x)
}

# Lines below the tables.
tune_notes <- function(x) {
  spent <- if (x$unit == "gradients") {
    passes <- paste0(
      " (", format(x$spent / x$n_data, digits = 3), " passes over the data)"
    )
    paste0(
      format_count(x$spent), " gradient evaluations", if (x$n_data > 0) passes
    )
  } else {
    paste(format(x$spent, digits = 3), "seconds")
  }
  c(
    paste0(
      "Sampling took ",
      spent,
      ", scoring ",
      format_count(x$scoring),
      " passes."
    ),
    if (!is.null(x$interrupted)) {
      paste0(
        "The race was interrupted in rung ",
        x$interrupted,
        ", which is left out."
      )
    },
    edge_notes(x)
  )
}

# The best of a grid may lie beyond it.
edge_notes <- function(x) {
  unlist(lapply(setdiff(x$tuned, "size"), function(name) {
    values <- x$arms[[name]]
    best <- x$best[[name]]
    if (!is.numeric(values) || length(unique(values)) < 2) {
      return(NULL)
    }
    which <- if (best == max(values)) {
      "largest"
    } else if (best == min(values)) {
      "smallest"
    }
    if (!is.null(which)) {
      paste0("The best ", name, " is the ", which, " of the grid: extend it.")
    }
  }))
}

#' @export
summary.tall_tune <- function(object, ...) {
  check_no_dots(...)
  class(object) <- c("summary.tall_tune", class(object))
  object
}

#' @export
print.summary.tall_tune <- function(x, ...) {
  check_no_dots(...)
  cat(
    "Arms by ", toupper(x$metric), ", those that came furthest first\n\n",
    sep = ""
  )
  columns <- c("rung", x$tuned, "iterations", "gradients", "score", "status")
  shown <- x$arms[columns]
  for (name in x$tuned) {
    if (is.list(shown[[name]])) {
      shown[[name]] <- vapply(shown[[name]], arg_text, "")
    }
  }
  print(utils::head(shown, 30), row.names = FALSE, digits = 3)
  if (nrow(shown) > 30) {
    cat("# ... with ", nrow(shown) - 30, " more\n", sep = "")
  }
  cat("\n", paste0(tune_notes(x), "\n"), sep = "")
  invisible(x)
}

#' Plot a tuning race
#'
#' The scores of all arms against what was tuned, rung by rung; arms that went
#' on are filled.
#'
#' @param x (`tall_tune`) What [sg_tune()] returned.
#' @param ... Not used.
#' @return A `ggplot` object. Arms that stopped have no score and are left out.
#' @examples
#' model <- model_gaussian(matrix(rnorm(2000), 1000), covariance = diag(2))
#' grid <- list(step_size = 10^seq(-6, -3, length.out = 7), size = c(10, 100))
#' tuned <- sg_tune(model, kernel_sgld, grid, budget = 2e5, seed = 1)
#' plot(tuned)
#' @export
plot.tall_tune <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot a tuning race")
  table <- x$rungs[is.finite(x$rungs$score), ]
  # arms on their way out would flatten the others
  limit <- 1000 * min(table$score[table$score > 0])
  is_far <- table$score > limit
  table$score <- pmin(table$score, limit)
  table$rung <- factor(paste("rung", table$rung))
  is_axis <- vapply(table[x$tuned], is.numeric, TRUE) & x$tuned != "size"
  axis <- c(x$tuned[is_axis], "arm")[[1]]
  panels <- setdiff(x$tuned, axis)
  table$panel <- if (length(panels) > 0) {
    vapply(seq_len(nrow(table)), function(k) row_text(table[panels], k), "")
  } else {
    ""
  }
  table$panel <- factor(table$panel, unique(table$panel[order(table$arm)]))
  picture <- ggplot2::ggplot(
    table,
    ggplot2::aes(
      x = .data[[axis]],
      y = .data[["score"]],
      colour = .data[["rung"]]
    )
  ) +
    ggplot2::geom_line() +
    ggplot2::geom_point(ggplot2::aes(shape = .data[["survived"]]), size = 2.5) +
    ggplot2::scale_shape_manual(
      values = c(`TRUE` = 16, `FALSE` = 1),
      labels = c(`TRUE` = "goes on, or wins", `FALSE` = "dropped")
    ) +
    ggplot2::scale_y_log10() +
    ggplot2::labs(
      y = toupper(x$metric),
      colour = NULL,
      shape = NULL,
      caption = if (any(is_far)) {
        paste(
          count_noun(sum(is_far), "score"),
          "above",
          format_number(signif(limit, 2)),
          "drawn there"
        )
      }
    )
  if (axis != "arm" && all(table[[axis]] > 0)) {
    picture <- picture + ggplot2::scale_x_log10()
  }
  if (length(panels) > 0) {
    picture <- picture + ggplot2::facet_wrap("panel")
  }
  picture
}
