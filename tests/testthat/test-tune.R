tune_model <- function(n = 1000, seed = 1) {
  withr::with_seed(seed, {
    x <- cbind("(Intercept)" = 1, age = stats::rnorm(n))
    y <- stats::rbinom(n, 1, stats::plogis(0.5 + x[, "age"]))
    model_glm(x, y, family = "bernoulli")
  })
}

sigmas <- 10^seq(-3, 0, length.out = 9)

race <- function(..., model = tune_model(), budget = 2e5, seed = 1) {
  sg_tune(model, ..., budget = budget, seed = seed, refresh = 0)
}

test_that("successive halving keeps the best third, rung by rung", {
  tuned <- race(kernel_sgbd(1), list(sigma = sigmas))
  rungs <- tuned$rungs
  expect_identical(as.integer(table(rungs$rung)), c(9L, 3L))
  for (rung in 1:2) {
    here <- rungs[rungs$rung == rung, ]
    n_keep <- if (rung == 1) 3 else 1
    expect_identical(sum(here$survived), as.integer(n_keep))
    expect_true(
      max(here$score[here$survived]) <= min(here$score[!here$survived])
    )
  }
  survivors <- rungs$arm[rungs$rung == 1 & rungs$survived]
  expect_setequal(rungs$arm[rungs$rung == 2], survivors)
  best <- rungs[rungs$rung == 2 & rungs$survived, ]
  expect_identical(tuned$best$sigma, best$sigma)
  expect_identical(tuned$kernel$args$sigma, best$sigma)
  expect_identical(tuned$arms$arm[[1]], best$arm)
  expect_identical(sort(tuned$arms$arm), 1:9)
  expect_equal(tuned$scoring, 100 * 12)
})

test_that("the budget is spent in equal shares, and not exceeded", {
  budget <- 3e5
  grid <- list(step_size = c(1e-3, 3e-3, 1e-2, 3e-2), size = c(10, 40, 160))
  tuned <- race(kernel_sgld, grid, budget = budget, eta = 2)
  rungs <- tuned$rungs
  n_rung <- floor(log2(12))
  expect_equal(max(rungs$rung), n_rung)
  expect_lte(tuned$spent, budget)
  expect_gt(tuned$spent, 0.95 * budget)
  expect_equal(tuned$spent, sum(tuned$arms$gradients))
  first <- rungs[rungs$rung == 1, ]
  # a share less what does not make a whole iteration
  share <- budget / n_rung / 12
  expect_true(all(first$gradients <= share))
  expect_true(all(first$gradients > share - 3 * first$size))
  second <- rungs[rungs$rung == 2, ]
  more <- second$gradients - first$gradients[match(second$arm, first$arm)]
  expect_true(all(abs(more - budget / n_rung / 6) < 3 * second$size))
  # the start costs a minibatch
  expect_equal(first$gradients, (first$iterations + 1) * first$size)
  expect_lte(tuned$scoring, 100 * nrow(rungs))
  expect_identical(tuned$subsample$args$size, tuned$best$size)
})

test_that("arms go on where they stopped, scored by draws of their rung", {
  model <- tune_model()
  start <- coef(find_mode(model))
  tuned <- race(
    kernel_sgbd(1),
    list(sigma = sigmas),
    model = model,
    init = start
  )
  rungs <- tuned$rungs[tuned$rungs$arm == tuned$arms$arm[[1]], ]
  fit <- sg_sample(
    model,
    tuned$kernel,
    init = start,
    iter = rungs$iterations[[2]],
    warmup = 0,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  theta <- as.matrix(fit)
  covariance <- solve(-find_mode(model)$hessian)
  score <- function(at) {
    ksd(theta[at, ], model, covariance = covariance)
  }
  # drawn every thin-th of the second rung, then 100 of them
  n <- diff(rungs$iterations)
  at <- seq(floor(n / 100), n, floor(n / 100))
  wanted <- seq(at[[1]], max(at), length.out = 100)
  near <- vapply(wanted, function(t) which.min(abs(at - t)), 0L)
  expect_close(rungs$score[[2]], score(rungs$iterations[[1]] + at[near]))
})

test_that("arms start away from the mode in every principal direction", {
  model <- tune_model()
  plan <- list(model = model, mode = NULL)
  control <- list(chains = 3, cores = 1, seed = 1, refresh = 0)
  start <- tune_start(plan, NULL, control)
  mode <- find_mode(model)
  axes <- eigen(vcov(mode), TRUE)
  z <- crossprod(axes$vectors, start - coef(mode)) / sqrt(axes$values)
  expect_equal(abs(z), matrix(3, model$n_dim, 3), ignore_attr = TRUE)
  # chains start on different sides
  expect_gt(nrow(unique(t(sign(z)))), 1)
  # what is given stays
  given <- matrix(1, model$n_dim, 3)
  expect_equal(tune_start(plan, given, control), given)
})

test_that("draws of several stretches are spread evenly", {
  theta <- array(c(1:50, 60, 70, 80, 90, 100), c(55, 2, 1))
  draws <- list(at = theta[, 1, 1], theta = theta, weights = theta)
  spread <- spread_draws(draws, 10)
  expect_identical(spread$at, c(1, 12, 23, 34, 45, 60, 70, 80, 90, 100))
  expect_identical(spread$theta[, 2, 1], spread$at)
  expect_identical(spread_draws(draws, 1000)$at, draws$at)
})

test_that("the same seed gives the same table, whatever the cores", {
  of <- function(...) {
    tuned <- race(kernel_sgbd(1), list(sigma = sigmas, size = c(16, 64)), ...)
    tuned$rungs[names(tuned$rungs) != "seconds"]
  }
  for (metric in c("ksd", "fssd")) {
    first <- of(metric)
    expect_identical(of(metric, cores = 2), first)
    expect_false(identical(of(metric, seed = 2)$score, first$score))
  }
  set.seed(3)
  drawn <- of(seed = NULL)
  set.seed(3)
  expect_identical(of(seed = NULL), drawn)
})

test_that("a seed is all that is random where minibatches find the mode", {
  data <- example_data(60)
  expect_seeded(function(seed) {
    tuned <- race(
      kernel_sgld(1),
      list(step_size = 10^(-6:-4)),
      model = model_network(example_matrix(data)[, -1], data$z, layers = 2),
      budget = 2e4,
      seed = seed
    )
    tuned$rungs[names(tuned$rungs) != "seconds"]
  })
})

test_that("the winner samples better than a grid's ends, by both metrics", {
  model <- tune_model()
  truth <- find_mode(model)
  error <- function(kernel) {
    fit <- sg_sample(model, kernel, iter = 3000, seed = 5, refresh = 0)
    theta <- as.matrix(fit)
    sds <- sqrt(diag(vcov(truth)))
    max(
      abs(colMeans(theta) - truth$estimate) / sds,
      abs(apply(theta, 2, stats::sd) / sds - 1)
    )
  }
  for (metric in c("ksd", "fssd")) {
    tuned <- race(kernel_sgbd(1), list(sigma = sigmas), metric, model = model)
    expect_gt(tuned$best$sigma, 0.005)
    expect_lt(tuned$best$sigma, 0.2)
    best <- error(tuned$kernel)
    expect_lt(best, 0.5 * error(kernel_sgbd(sigmas[[1]])))
    expect_lt(best, 0.5 * error(kernel_sgbd(sigmas[[9]])))
  }
})

test_that("any estimator, scheme and schedule can be tuned", {
  model <- tune_model(400)
  grid <- list(step_size = c(1e-3, 1e-2, 1e-1))
  parts <- list(
    list(gradient = gradient_simple(), subsample = subsample_uniform(20)),
    list(gradient = gradient_saga(), subsample = subsample_uniform(20, FALSE)),
    list(gradient = gradient_svrg(), subsample = subsample_weighted(20)),
    list(subsample = subsample_adaptive(500, min_size = 5)),
    list(gradient = gradient_full()),
    list(schedule = schedule_decay(1, 10, 0.3))
  )
  for (part in parts) {
    tuned <- do.call(
      race,
      c(list(kernel_sgld, grid, model = model, budget = 3e5), part)
    )
    expect_true(all(tuned$rungs$status == "ok"))
    expect_true(all(is.finite(tuned$rungs$score)))
    # costs of SVRG and of adaptive minibatches can only be foreseen roughly
    expect_lt(abs(tuned$spent / 3e5 - 1), 0.25)
    fit <- sg_sample(
      model,
      tuned$kernel,
      tuned$gradient,
      tuned$subsample,
      tuned$schedule,
      iter = 50,
      chains = 1,
      refresh = 0
    )
    expect_identical(fit$chains$status, "ok")
  }
  exact <- race(kernel_mala(1), grid, model = model, budget = 3e5, chains = 2)
  expect_true(all(exact$rungs$status == "ok"))
  # a string, not the weights it stands for
  tuned <- race(kernel_sgld, grid, model = model)
  expect_identical(tuned$subsample$args$weights, "hessian")
})

test_that("models whose draws differ from coordinates are scored in these", {
  data <- withr::with_seed(7, {
    x <- cbind("(Intercept)" = 1, a = stats::rnorm(200))
    list(x = x, y = drop(x %*% c(1, 2)) + stats::rnorm(200))
  })
  model <- model_glm(data$x, data$y, family = "gaussian")
  tuned <- race(kernel_sgld, list(step_size = c(1e-6, 1e-3)), model = model)
  expect_identical(tuned$best$step_size, 1e-3)
  # 100 nearly independent draws of three parameters: sqrt(2 d / 100) = 0.24
  expect_lt(tuned$arms$score[[1]], 0.6)
})

test_that("a density without data costs one evaluation an iteration", {
  model <- model_density("normal", gradient_noise = "normal", noise_scale = 1)
  tuned <- race(
    kernel_sgbd(1),
    list(sigma = c(0.05, 0.5)),
    model = model,
    budget = 2e4
  )
  expect_equal(tuned$spent, 2e4, tolerance = 0.01)
  expect_identical(tuned$rungs$iterations, tuned$rungs$gradients)
})

test_that("arms that stop are dropped and reported", {
  model <- model_gaussian(matrix(withr::with_seed(1, rnorm(400)), 200), diag(2))
  grid <- list(step_size = c(1e-3, 1e5, 1e6, 3e-3))
  tuned <- race(kernel_sgld, grid, model = model)
  expect_identical(
    tuned$rungs$status[order(tuned$rungs$arm)],
    c("ok", "nonfinite", "nonfinite", "ok")
  )
  expect_identical(is.na(tuned$rungs$score), tuned$rungs$status != "ok")
  expect_snapshot(
    error = TRUE,
    transform = scrub,
    race(kernel_sgld, list(step_size = c(1e5, 1e6)), model = model)
  )
  condition <- tryCatch(
    race(kernel_sgld, list(step_size = c(1e5, 1e6)), model = model),
    tall_error_nonfinite = identity
  )
  expect_gt(condition$iteration, 1)
  expect_identical(condition$coordinate, "x1")
})

test_that("a budget in seconds is about kept", {
  tuned <- race(
    kernel_sgbd(1),
    list(sigma = c(0.01, 0.1, 1)),
    budget = 0.3,
    unit = "seconds"
  )
  expect_identical(tuned$unit, "seconds")
  expect_equal(tuned$spent, sum(tuned$arms$seconds))
  expect_true(all(tuned$rungs$iterations > tune_least))
})

test_that("step sizes of single coordinates can be tuned by a function", {
  model <- tune_model()
  sds <- sqrt(diag(vcov(find_mode(model))))
  tuned <- race(
    function(scale) kernel_sgbd(scale * sds),
    list(scale = c(0.01, 0.3)),
    model = model
  )
  expect_close(tuned$kernel$args$sigma, tuned$best$scale * sds)
  # or as they are, in a column of vectors
  listed <- race(
    kernel_sgbd(1),
    list(sigma = list(0.01 * sds, 0.3 * sds)),
    model = model
  )
  expect_close(listed$arms$score, tuned$arms$score)
})

test_that("variants can be tuned", {
  tuned <- race(
    kernel_sgbd(0.05),
    list(variant = c("vanilla", "corrected"), size = c(10, 100))
  )
  expect_identical(tuned$kernel$args$variant, tuned$best$variant)
})

test_that("it prints, summarises and plots", {
  local_wide()
  tuned <- race(kernel_sgbd(1), list(sigma = sigmas[1:6], size = c(16, 64)))
  expect_snapshot(tuned, transform = scrub)
  expect_snapshot(summary(tuned), transform = scrub)
  # of rungs where most arms stopped, the iterations of the best
  table <- data.frame(rung = 1, status = c("nonfinite", "nonfinite", "ok"))
  other <- tuned
  other$rungs <- cbind(table, iterations = c(6, 7, 200), score = c(NA, NA, 3))
  expect_output(print(other), "1 +3 +2 +200 +3 +3")
  skip_if_not_installed("ggplot2")
  picture <- plot(tuned)
  expect_s3_class(picture, "ggplot")
  built <- ggplot2::ggplot_build(picture)
  expect_identical(nrow(built$data[[2]]), nrow(tuned$rungs))
})

test_that("bad input is named", {
  model <- tune_model(100)
  kernel <- kernel_sgld(1e-3)
  grid <- list(step_size = c(1e-3, 1e-2))
  tune <- function(kernel, grid, ..., budget = 1e5) {
    sg_tune(model, kernel, grid, ..., budget = budget, seed = 1, refresh = 0)
  }
  expect_snapshot(error = TRUE, tune(kernel, list(step_size = 1)))
  expect_snapshot(error = TRUE, tune(kernel, list(stepsize = 1:2)))
  expect_snapshot(error = TRUE, tune(kernel, c(1, 2)))
  expect_snapshot(error = TRUE, tune(kernel, list(step_size = c(1, -1))))
  expect_snapshot(error = TRUE, tune("sgld", grid))
  expect_snapshot(error = TRUE, tune(function(step_size) step_size, grid))
  expect_snapshot(
    error = TRUE,
    transform = scrub,
    tune(kernel, grid, budget = 1000)
  )
  expect_snapshot(error = TRUE, tune(kernel, grid, budget = -1))
  expect_snapshot(error = TRUE, sg_tune(model, kernel, grid))
  expect_snapshot(error = TRUE, tune(kernel, grid, "mmd"))
  expect_snapshot(error = TRUE, tune(kernel, grid, eta = 1))
  expect_snapshot(error = TRUE, tune(kernel, grid, covariance = diag(3)))
  expect_snapshot(error = TRUE, tune(kernel_mala(1, adapt = TRUE), grid))
  expect_snapshot(error = TRUE, tune(kernel_mala(1), c(grid, list(size = 10))))
  adaptive <- subsample_adaptive(10)
  expect_snapshot(
    error = TRUE,
    tune(kernel, c(grid, list(size = 10)), subsample = adaptive)
  )
})

test_that("minibatches of Metropolis kernels are tuned where there are some", {
  grid <- list(step_size = c(1e-3, 1e-2), size = c(20, 80))
  for (gradient in list(gradient_simple(), gradient_cv())) {
    tuned <- race(kernel_mala, grid, gradient = gradient)
    expect_identical(tuned$subsample$args$size, tuned$best$size)
    first <- tuned$rungs[tuned$rungs$rung == 1, ]
    # gradients of minibatches, densities of all rows
    expect_true(all(first$gradients > first$iterations * first$size))
  }
  losses <- race(
    function(learning_rate) {
      kernel_adam_mcmc(learning_rate, sigma = 0.01, ratio = "minibatch")
    },
    list(learning_rate = c(1e-3, 1e-2), size = c(20, 80))
  )
  expect_identical(losses$subsample$args$size, losses$best$size)
  expect_error(race(kernel_mala, grid), class = "tall_error_unsupported")
})

test_that("an interrupt ends the race with the rungs that are whole", {
  data <- logistic_data(300)
  count <- 0
  at <- Inf
  stops <- function(theta, batch) {
    count <<- count + 1
    if (count == at) rlang::interrupt() # what Ctrl-C does
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, stops)
  run <- function() {
    count <<- 0
    sg_tune(
      model,
      kernel_sgld,
      list(step_size = 10^seq(-5, -2, length.out = 9)),
      budget = 3e4,
      gradient = gradient_simple(),
      subsample = subsample_uniform(10),
      points = 10,
      init = c(0.5, 0),
      covariance = NULL,
      seed = 1,
      refresh = 0
    )
  }
  whole <- run()
  total <- count
  at <- round(0.8 * total)
  expect_warning(part <- run(), class = "tall_warning_interrupted")
  expect_identical(part$interrupted, 2L)
  first <- whole$rungs[whole$rungs$rung == 1, names(whole$rungs) != "seconds"]
  expect_identical(part$rungs[names(part$rungs) != "seconds"], first)
  best <- first$step_size[[1]]
  expect_identical(part$best$step_size, best)
  expect_identical(part$kernel$args$step_size, best)
  expect_output(print(part), "interrupted in rung 2")
  expect_output(print(summary(part)), "interrupted in rung 2")
  at <- round(0.2 * total)
  expect_identical(
    tryCatch(run(), interrupt = function(e) "stopped"),
    "stopped"
  )
})
