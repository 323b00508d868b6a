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
#'   standard deviations (models of more than 1,001 parameters are left as they
#'   are). `NULL`: the parameters, as in the paper.
#' @param chains (whole number) Chains of each arm, scored together.
#'
#' @details With A arms there are \eqn{R = \max(1, \lfloor \log_\eta A
#' \rfloor)}{R = max(1, floor(log_eta(A)))} rungs. Each spends the R-th part of
#' the budget, in equal shares of its arms; then the \eqn{\lfloor A_r / \eta
#' \rfloor}{floor(A_r / eta)} best of its \eqn{A_r} arms, at least one, enter
#' the next, where each goes on from where it stopped. After the last rung the
#' best arm is chosen. With fewer than \eqn{\eta^2}{eta^2} arms there is one
#' rung alone, each arm is scored once, and `print()` says so. An arm is scored
#' by draws of the current rung only, so that the way from the starting point
#' counts less and less. All arms start at
#' the same points and use the same random numbers.
#'
#' Scores are distances from the posterior, of bias and of slow mixing together:
#' what is chosen is best for runs of about the length of the last rung. For
#' much longer runs, smaller steps are better. Leave `init` out: an arm that
#' hardly moves from the mode, or from any typical point, is close to the
#' posterior as discrepancies see it, while one that has to walk in every
#' direction shows how slow it is. In the units of
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
#' * `kernel`, `gradient`, `subsample`, `schedule`: the best arm;
#'   `sg_sample(model, tuned)` takes all of them;
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
#' fit <- sg_sample(model, tuned, seed = 2)
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
  check_model(model)
  grid <- check_grid(grid, kernel)
  metric <- check_choice(metric, c("ksd", "fssd"))
  budget <- check_number(budget, positive = TRUE)
  unit <- check_choice(unit, c("gradients", "seconds"))
  eta <- check_number(eta)
  if (eta <= 1) {
    abort_value(eta, 1, "be above 1", "eta")
  }
  points <- check_count(points, min = 2, most = count_limits$iter)
  control <- check_control(2, 0, 1, chains, cores, seed, "draws", refresh)
  sampler <- check_sampler(NULL, gradient, subsample, schedule)
  arms <- make_arms(model, kernel, grid, sampler, control, init)
  judge <- make_judge(
    metric, model, control, points, locations, c, beta, covariance
  )
  race <- run_race(arms, judge, control, budget, unit, eta)
  warn_race(race)
  new_tune(race, arms, grid, judge, list(
    budget = budget,
    unit = unit,
    eta = eta,
    n_data = model$n_data,
    seed = control$seed,
    seconds = proc.time()[["elapsed"]] - started
  ))
}

warn_race <- function(race) {
  if (is.null(race$interrupted)) {
    return(invisible())
  }
  warn_tall(
    "interrupted",
    "The race was interrupted in rung {race$interrupted}: its result is that of
     rung {race$interrupted - 1}."
  )
}

# ---- arms --------------------------------------------------------------------

# A data frame with a row for each arm.
check_grid <- function(grid, kernel) {
  check_given(kernel, arg = "kernel")
  check_given(grid, arg = "grid")
  if (!is.function(kernel)) {
    check_spec(kernel, "tall_kernel", "kernel_*()", arg = "kernel")
  }
  if (!is.list(grid) || is.null(names(grid)) || !all(nzchar(names(grid)))) {
    abort_expected(grid, "a data frame or a named list", arg = "grid")
  }
  known <- names(
    formals(if (is.function(kernel)) kernel else constructor(kernel))
  )
  if (!"..." %in% known) {
    check_known(names(grid), c(known, "size"), "column", arg = "grid")
  }
  if (!is.data.frame(grid)) {
    grid <- expand.grid(grid, KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
  }
  if (nrow(grid) < 2) {
    n <- count_noun(nrow(grid), "arm")
    abort_input(
      "{.arg grid} must have at least 2 arms, not {n}: there is nothing to
       choose.",
      argument = "grid",
      expected = 2,
      value = grid
    )
  }
  rownames(grid) <- NULL
  as.data.frame(grid)
}

# The kernel of an arm. Arguments that a variant has no use for are NULL in a
# spec: another variant then takes their defaults.
arm_kernel <- function(kernel, args) {
  if (is.function(kernel)) {
    made <- rlang::inject(call_user(kernel, "kernel", !!!args))
    return(check_spec(made, "tall_kernel", "kernel_*()", arg = "kernel"))
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

check_tunable <- function(kernel) {
  if (isTRUE(kernel$args$adapt) || isTRUE(kernel$args$adaptive)) {
    option <- intersect(c("adapt", "adaptive"), names(kernel$args))
    abort_tall(
      "unsupported",
      c(
        "{.code {constructor_name(kernel)}()} with {.code {option} = TRUE} sets
         its own step size: there is nothing to tune.",
        i = "Leave that out, or sample with it as it is."
      )
    )
  }
}

# The sampler of an arm: with its kernel, and where the grid has a size, with
# minibatches of so many rows.
arm_sampler <- function(sampler, kernel, size, model) {
  sampler$kernel <- kernel
  if (is.null(size)) {
    return(sampler)
  }
  gradient <- sampler$gradient
  if (kernel_is_metropolis(kernel)) {
    gradient <- metropolis_gradient(kernel, gradient, sampler$subsample)
  }
  if (gradient_is_full(gradient)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg grid} has a column {.code size}, but full gradients use all
         rows.",
        i = "Leave the column out."
      )
    )
  }
  subsample <- sampler$subsample %||% default_subsample(model)
  if (!"size" %in% names(subsample$args)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg grid} has a column {.code size}, but
         {.code {constructor_name(subsample)}()} has no fixed size.",
        i = "Leave the column out, or use {.fn subsample_uniform} or
             {.fn subsample_weighted}."
      )
    )
  }
  subsample$args$size <- check_batch_size(size, arg = "size")
  sampler$subsample <- subsample
  sampler
}

make_arms <- function(model, kernel, grid, sampler, control, init) {
  init <- check_init(init, model, control$chains)
  arms <- lapply(seq_len(nrow(grid)), function(k) {
    row <- lapply(grid, function(column) column[[k]])
    made <- arm_kernel(kernel, row[names(row) != "size"])
    check_tunable(made)
    own <- arm_sampler(sampler, made, row$size, model)
    plan <- plan_explicit(model, own, control)
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
  start <- tune_start(arms[[1]]$plan, init, control)
  lapply(share_weights(arms, control), function(arm) {
    arm$plan$init <- start
    arm
  })
}

# Where the arms start: in each principal direction of the posterior a few
# standard deviations from the mode, on the side of a draw of the normal
# approximation. From a typical point an arm that hardly moves is as close to
# the posterior as discrepancies see; here every direction has to be walked.
tune_distance <- 3

tune_start <- function(plan, init, control) {
  model <- plan$model
  start <- plan_init(plan, init, control)
  has_own <- !is.null(init) || !is.null(model$traits$draw)
  if (has_own || model_is_whitened(model)) {
    return(start)
  }
  mode <- plan_mode(plan, control)
  if (is.null(mode$chol)) {
    return(start)
  }
  center <- as.double(mode$estimate)
  axes <- eigen(chol2inv(t(mode$chol)), TRUE)
  side <- sign(crossprod(axes$vectors, start - center))
  out <- axes$vectors %*% (tune_distance * sqrt(axes$values) * side)
  move_inside(center + out, model, reflect = TRUE)
}

# Weights are found once for all arms and rungs, not at the start of each
# stretch.
share_weights <- function(arms, control) {
  plan <- arms[[1]]$plan
  type <- plan$subsample$args$weights
  if (!is.character(type) || type == "uniform") {
    return(arms)
  }
  weights <- run_context(plan, control)$weights(type)
  lapply(arms, function(arm) {
    arm$plan$subsample$args$weights <- weights
    arm
  })
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
  covariance
) {
  if (identical(covariance, "mode")) {
    mode <- model_mode(model, control$cores, control$refresh)
    covariance <- if (!is.null(mode$chol)) chol2inv(t(mode$chol))
  }
  # of two points, so that what is wrong is said before anything runs
  bounds <- stein_bounds(model)
  problem_at <- function(theta, gradients) {
    stein_problem(theta, gradients, c, beta, covariance, bounds = bounds)
  }
  origin <- matrix(0, 2, model$n_dim)
  inside <- if (is.null(bounds)) origin else bound_points(origin, bounds)
  frame <- problem_at(inside, origin)
  places <- if (is.matrix(locations)) {
    test_locations(locations, frame, control$seed)
  } else {
    check_count(locations, most = 1e6, arg = "locations")
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
  square <- ksd_squares(problem, cores = control$cores)
  sqrt(max(drop(square), 0))
}
