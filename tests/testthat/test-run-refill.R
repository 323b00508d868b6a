# Runs of kernel_smh() on rows drawn ahead. The law of a step is in
# tools/core-check/test-ahead.c.

# A posterior of few rows, so that many proposals are rejected. `moments` by
# quadrature.
ahead_problem <- function(n = 150, seed = 4, family = "bernoulli") {
  withr::local_seed(seed)
  x <- cbind(a = 1, b = rnorm(n))
  x[1:3, 2] <- c(5, -4, 6)
  eta <- drop(x %*% c(-1.2, 0.5))
  poisson <- family == "poisson"
  y <- as.double(if (poisson) rpois(n, exp(eta)) else rbinom(n, 1, plogis(eta)))
  offset <- rnorm(n, 0, 0.2)
  prior <- prior_normal(0, 1.5)
  of_rows <- function(rows) {
    model_glm(
      x[rows, , drop = FALSE],
      y[rows],
      family = family,
      prior = prior,
      offset = offset[rows]
    )
  }
  model <- of_rows(seq_len(n))
  mode <- find_mode(model)
  # a reference that is not the mode
  at <- unname(mode$estimate) + c(0.05, -0.03)
  list(
    model = model,
    of_rows = of_rows,
    at = at,
    chunk = chunk_model(x, n, y, NULL, offset, resolve_family(family)),
    chol = unname(mode$chol),
    mode = mode
  )
}

# One pass: list(model, gradient), as a plan's refill() makes them. n_draw: how
# many draws there are, about.
draw_ahead <- function(problem, n_draw, pass, radius = 12) {
  draw <- function(rate) {
    chunk_draw(problem$chunk, problem$at, problem$chol, 1, list(
      radius = radius,
      phi_bar = 2 * 3^1.5,
      rate = rate,
      scale = 1,
      seed = 11,
      pass = pass,
      first = 0
    ))
  }
  found <- draw(n_draw / draw(0)$total)
  places <- rep(seq_along(found$rows), found$count)
  u <- hash_uniforms(pass, "shuffle", 0, length(places))
  places <- places[order(u)]
  list(
    model = problem$of_rows(found$rows),
    gradient = gradient_ahead(problem$at, list(
      gradient = found$gradient,
      hessian = found$hessian,
      chol = problem$chol,
      radius = radius,
      total = found$total,
      always = which(found$count == 0),
      rows = places,
      psi = found$psi[places]
    ))
  )
}

# passes: how many draws each of them makes, the last of them over and over.
# NULL: the first is all there is.
ahead_segment <- function(
  problem,
  n_draw,
  iter = 1000,
  chains = 20,
  refills = TRUE,
  cores = 2,
  keep = "draws",
  saved = NULL,
  n_before = 0,
  first = 1,
  init = NULL,
  fails_at = Inf,
  ...
) {
  drawn <- draw_ahead(problem, n_draw, first, ...)
  plan <- new_plan(
    drawn$model,
    new_sampler(kernel_smh(), drawn$gradient),
    mode = problem$mode,
    refill = if (refills) {
      function(number, left) {
        if (number == fails_at) {
          abort_source("the connection is lost")
        }
        draw_ahead(problem, n_draw, number + first + 1, ...)
      }
    }
  )
  control <- test_control(iter, 0, chains = chains, keep = keep)
  control$cores <- cores
  plan$init <- plan_init(plan, init, control)
  from <- new_standing(saved, n_before)
  run_segment(plan, control, new_stretch(0, iter), from)
}

segment_draws <- function(segment, chains = 20) {
  array(segment$buffers$draw, c(segment$n_keep, chains, 2))
}

in_memory <- function(problem, iter = 1000, chains = 20) {
  plan <- new_plan(
    problem$model,
    new_sampler(kernel_smh(), gradient_cv(problem$at, order = 2)),
    mode = problem$mode
  )
  control <- test_control(iter, 0, chains = chains, keep = "draws")
  plan$init <- plan_init(plan, NULL, control)
  run_segment(plan, control, new_stretch(0, iter))
}

# Moments by quadrature.
ahead_truth <- function(problem) {
  sd <- sqrt(diag(vcov(problem$mode)))
  axes <- lapply(1:2, function(j) {
    problem$mode$estimate[[j]] + sd[[j]] * seq(-9, 9, length.out = 301)
  })
  grid <- t(as.matrix(expand.grid(axes)))
  w <- model_evaluate(problem$model, grid)$log_density
  w <- exp(w - max(w))
  w <- w / sum(w)
  mean <- drop(grid %*% w)
  list(mean = unname(mean), sd = unname(sqrt(drop((grid - mean)^2 %*% w))))
}

expect_moments <- function(draws, truth, label) {
  for (j in 1:2) {
    expect_mean(colMeans(draws[, , j]), truth$mean[[j]], label)
    square <- (draws[, , j] - truth$mean[[j]])^2
    expect_mean(colMeans(square), truth$sd[[j]]^2, paste(label, "squares"))
  }
}

acceptance_of <- function(segment) {
  mean(vapply(segment$reports, function(r) r$n_accept / r$n_propose, 0))
}

test_that("posteriors from rows drawn ahead are those of quadrature", {
  skip_on_cran()
  for (family in c("bernoulli", "poisson")) {
    problem <- ahead_problem(family = family)
    truth <- ahead_truth(problem)
    memory <- in_memory(problem, iter = 3000, chains = 20)
    ahead <- ahead_segment(problem, 3e6, iter = 3000)
    expect_null(ahead$waiting_rows)
    expect_moments(segment_draws(memory), truth, paste(family, "in memory"))
    expect_moments(segment_draws(ahead), truth, paste(family, "ahead"))
    # acceptance is that of looser bounds' own choice of rows, of the same order
    expect_lt(abs(acceptance_of(ahead) - acceptance_of(memory)), 0.1)
    expect_lt(acceptance_of(ahead), 0.95)
  }
})

test_that("chains that run out of rows go on, and keep the law", {
  skip_on_cran()
  problem <- ahead_problem()
  truth <- ahead_truth(problem)
  # 30 draws for each chain, of which a step wants some
  ahead <- ahead_segment(problem, 20 * 60, iter = 2000)
  expect_null(ahead$waiting_rows)
  expect_true(all(vapply(ahead$reports, function(r) r$n_step, 0) == 2000))
  expect_moments(segment_draws(ahead), truth, "refilled")
  # rows that are killed are not looked at again: as many as were needed
  thinned <- vapply(ahead$reports, function(r) r$n_row - r$n_always, 0)
  expect_gt(min(thinned), 10 * 60)
})

test_that("draws depend on neither threads nor slices", {
  problem <- ahead_problem()
  run <- function(cores) {
    ahead_segment(problem, 20 * 100, iter = 300, cores = cores)
  }
  one <- run(1)
  expect_identical(run(2)$buffers, one$buffers)
  local_slices(7)
  expect_identical(run(1)$buffers, one$buffers)
})

test_that("a chain that waits has not begun its step", {
  problem <- ahead_problem()
  # with all the rows it could want, and with few of them but the same first
  # stretch: the same draws until it waits
  short <- ahead_segment(problem, 50, iter = 400, chains = 1, refills = FALSE)
  expect_identical(short$waiting_rows$chains, 1)
  expect_identical(short$reports[[1]]$status, 0)
  made <- short$reports[[1]]$n_step
  expect_gt(made, 3)
  expect_lt(made, 400)
  refilled <- ahead_segment(problem, 50, iter = 400, chains = 1)
  expect_identical(
    segment_draws(refilled, 1)[seq_len(made), , ],
    segment_draws(short, 1)[seq_len(made), , ]
  )
  # from its saved state, with the rows that the refill brought
  rest <- ahead_segment(
    problem,
    50,
    iter = 400 - made,
    chains = 1,
    first = 2,
    saved = list(short$reports[[1]]$saved),
    n_before = made
  )
  expect_identical(
    segment_draws(refilled, 1)[seq(made + 1, 400), , ],
    segment_draws(rest, 1)[, , ]
  )
})

test_that("chains that end without rows are told, with their draws", {
  problem <- ahead_problem()
  segment <- ahead_segment(problem, 20 * 60, iter = 500, refills = FALSE)
  expect_gt(length(segment$waiting_rows$chains), 0)
  expect_warning(
    warn_waiting(segment$waiting_rows),
    class = "tall_warning_exhausted"
  )
  made <- vapply(segment$reports, function(r) r$n_kept, 0)
  draws <- segment_draws(segment)
  for (chain in 1:20) {
    expect_true(all(is.finite(draws[seq_len(made[[chain]]), chain, ])))
  }
  # a pass that fails costs no draws
  broken <- ahead_segment(problem, 20 * 60, iter = 500, fails_at = 2)
  expect_s3_class(broken$waiting_rows$reason, "tall_error_source")
  expect_warning(
    warn_waiting(broken$waiting_rows),
    "another pass over the data failed",
    class = "tall_warning_exhausted"
  )
  more <- vapply(broken$reports, function(r) r$n_kept, 0)
  expect_true(all(more > made))
  # a stretch that no step fits in ends, too
  tiny <- ahead_segment(problem, 20, iter = 2000)
  expect_identical(tiny$waiting_rows$reason, "stretch")
})

test_that("places beyond the radius are refused, and counted", {
  problem <- ahead_problem()
  at <- matrix(problem$at, 2, 20)
  segment <- ahead_segment(problem, 1e6, iter = 1500, init = at, radius = 1.7)
  outside <- vapply(segment$reports, function(r) r$n_outside, 0)
  expect_gt(min(outside), 50)
  draws <- segment_draws(segment)
  z <- apply(draws, c(1, 2), function(theta) {
    sqrt(sum((t(problem$chol) %*% (theta - problem$at))^2))
  })
  expect_lt(max(z), 1.7 + 1e-9)
  expect_error(
    ahead_segment(problem, 1e4, init = at + 3, radius = 1.7),
    class = "tall_error_nonfinite"
  )
})

test_that("what needs rows that are not there is refused", {
  problem <- ahead_problem()
  expect_error(
    ahead_segment(problem, 1e4, keep = c("draws", "gradients")),
    class = "tall_error_unsupported"
  )
  drawn <- draw_ahead(problem, 1000, 1)
  sampler <- new_sampler(kernel_mala(0.1), drawn$gradient)
  plan <- new_plan(drawn$model, sampler)
  control <- test_control(10, 0, chains = 1, keep = "draws")
  plan$init <- matrix(problem$at, 2)
  expect_error(
    run_segment(plan, control, new_stretch(0, 10)),
    class = "tall_error_unsupported"
  )
  drawn$gradient$ahead$rows[[3]] <- 1e6
  plan$kernel <- kernel_smh()
  plan$gradient <- drawn$gradient
  expect_error(
    run_segment(plan, control, new_stretch(0, 10)),
    class = "tall_error_argument"
  )
})

test_that("monitors see every chain at the same iteration", {
  problem <- ahead_problem()
  n_draw <- 3 * 40
  drawn <- draw_ahead(problem, n_draw, 1)
  plan <- new_plan(
    drawn$model,
    new_sampler(kernel_smh(), drawn$gradient),
    mode = problem$mode,
    refill = function(number, left) {
      # all chains together make so many steps
      expect_lte(left, 3 * 200)
      draw_ahead(problem, n_draw, number + 2)
    }
  )
  control <- test_control(200, 0, chains = 3, keep = "draws")
  control$monitor <- check_monitor(
    list(every = 25, first = function(theta) theta[[1]]),
    drawn$model
  )
  plan$init <- plan_init(plan, NULL, control)
  segment <- run_segment(plan, control, new_stretch(0, 200))
  table <- segment$monitor$table
  draws <- segment_draws(segment, 3)
  for (chain in 1:3) {
    seen <- table[table$chain == chain, ]
    expect_equal(seen$value, draws[seen$iteration, chain, 1])
  }
  expect_identical(nrow(table), 3L * 8L)
})
