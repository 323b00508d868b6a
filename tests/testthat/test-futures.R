run_custom <- function(
  model,
  ...,
  chains = 3,
  iter = 40,
  init = rep(0.1, model$n_dim),
  gradient = gradient_saga()
) {
  sg_sample(
    model,
    kernel_sghmc(0.05, friction = 0.5),
    gradient,
    subsample_uniform(6),
    iter = iter,
    warmup = 5,
    chains = chains,
    init = init,
    seed = 5,
    refresh = 0,
    ...
  )
}

# What a run left, but for how long it took: when a chain that stopped was last
# seen well depends on that, too.
# Nor where chains were that wait to be mended: at the beginning of a slice, and
# slices are as long as time has it.
without_time <- function(fit) {
  fit$seal <- fit$seal[setdiff(names(fit$seal), "halted")]
  fit[setdiff(names(fit), c("model", "time", "cpu", "control", "halted"))]
}

test_that("a fit by workers is the fit of one session, monitors included", {
  local_workers()
  data <- logistic_data(600)
  model <- logistic_custom(data$x, data$y)
  held_out <- logistic_custom(data$x[1:20, ], data$y[1:20])
  monitor <- list(
    every = 10,
    held_out = monitor_log_lik(held_out),
    first = function(theta) theta[[1]],
    fails = function(theta) if (theta[[1]] < 0.3) stop("too small") else 1
  )
  run <- function(...) {
    run_custom(model, monitor = monitor, keep = c("draws", "gradients"))
  }
  expect_warning(by_workers <- run(), class = "tall_warning_monitor")
  future::plan("sequential")
  expect_warning(here <- run(), class = "tall_warning_monitor")
  expect_identical(without_time(by_workers), without_time(here))
  expect_identical(unique(here$monitor$chain), c(1, 2, 3))
})

test_that("the recipe's coordinates and a Gibbs posterior go to the workers", {
  local_workers()
  data <- logistic_data(2500)
  model <- logistic_custom(data$x, data$y)
  run <- function() {
    sg_sample(
      model,
      iter = 60,
      chains = 2,
      lambda = 2400,
      seed = 3,
      refresh = 0
    )
  }
  by_workers <- run()
  future::plan("sequential")
  here <- run()
  expect_true(here$is_whitened)
  expect_identical(unclass(by_workers$draws), unclass(here$draws))
  # each worker finds the reference of its control variates
  expect_identical(
    by_workers$preparation - here$preparation,
    c(mode = 0, weights = 0, reference = 1, recipe = 0)
  )
})

test_that("workers see the parent's transforms, forks as well as sessions", {
  skip_on_os("windows")
  local_workers("multicore")
  entry <- entry_custom_transforms()
  run <- function() {
    sg_sample(
      entry$model,
      kernel_sgld(0.001),
      gradient_cv(entry$model$start),
      subsample_uniform(5),
      iter = 30,
      thin = 2,
      chains = 2,
      init = entry$model$start,
      keep = c("none", "covariance"),
      seed = 1,
      refresh = 0
    )
  }
  by_workers <- run()
  future::plan("sequential")
  here <- run()
  expect_identical(by_workers$moments, here$moments)
})

test_that("functions find what they use of the workspace and of packages", {
  local_workers()
  workspace <- globalenv()
  workspace$tall_test_scale <- 3
  workspace$tall_test_helper <- function(x) x / tall_test_scale
  environment(workspace$tall_test_helper) <- workspace
  withr::defer(rm(tall_test_scale, tall_test_helper, envir = workspace))
  log_lik <- function(theta, batch) {
    stats::dnorm(tall_test_helper(batch), theta$a, log = TRUE)
  }
  gradient <- function(theta, batch) tall_test_helper(batch) - theta$a
  environment(log_lik) <- environment(gradient) <- workspace
  own <- 2
  model <- model_custom(
    log_lik,
    function(theta) -theta$a^2 / own,
    as.double(1:50),
    list(a = 1),
    gradient,
    function(theta) -2 * theta$a / own
  )
  by_workers <- run_custom(model, chains = 2)
  future::plan("sequential")
  here <- run_custom(model, chains = 2)
  expect_identical(unclass(by_workers$draws), unclass(here$draws))
})

test_that("workers differentiate a model automatically as well", {
  skip_if_not_installed("RTMB", "2.0")
  local_workers()
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y, NULL, NULL)
  run <- function() {
    run_custom(
      model,
      chains = 2,
      gradient = gradient_cv(c(0.1, 0.1)),
      keep = c("draws", "gradients")
    )
  }
  by_workers <- run()
  future::plan("sequential")
  here <- run()
  expect_identical(unclass(by_workers$draws), unclass(here$draws))
  expect_identical(by_workers$gradients, here$gradients)
})

test_that("a run goes on from session to workers and back", {
  local_workers()
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y)
  path <- withr::local_tempfile()
  saveRDS(run_custom(model), path)
  by_workers <- sg_resume(readRDS(path), 15, model = model, refresh = 0)
  future::plan("sequential")
  last <- sg_resume(by_workers, 5, refresh = 0)
  expect_identical(
    unclass(last$draws),
    unclass(run_custom(model, iter = 60)$draws)
  )
})

test_that("an error in a worker stops its chain alone and is told as ever", {
  local_workers()
  data <- logistic_data()
  # helpers do not travel: their environment is a namespace's
  rows <- logistic_rows
  # fails where only one of the chains comes by
  fails <- function(theta, batch) {
    if (theta$beta[[2]] > 0.62) stop("out of {luck}")
    rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, fails, check = FALSE)
  run <- function() {
    found <- with_warnings(short_sgld(model, size = 20, seed = 6))
    list(fit = found$value, warning = found$warnings[[1]])
  }
  by_workers <- run()
  future::plan("sequential")
  here <- run()
  expect_identical(sum(here$fit$chains$status == "callback"), 1L)
  expect_identical(without_time(by_workers$fit), without_time(here$fit))
  w <- by_workers$warning
  expect_identical(conditionMessage(w), conditionMessage(here$warning))
  expect_identical(w$chain, here$warning$chain)
  expect_identical(w$iteration, here$warning$iteration)
  expect_s3_class(w$parent, "tall_error_callback")
  expect_identical(w$parent$theta, here$warning$parent$theta)
  # not mended, it stops again
  expect_warning(
    again <- sg_resume(by_workers$fit, 10, refresh = 0),
    class = "tall_warning_callback"
  )
  expect_identical(again$chains$status, here$fit$chains$status)
  # the model, and other runs of it, are well
  expect_identical(
    unclass(run_custom(model, iter = 10)$draws),
    unclass(sg_resume(run_custom(model, iter = 8), 2, refresh = 0)$draws)
  )
})

test_that("rejected proposals, gradients without numbers are told as ever", {
  local_workers()
  data <- logistic_data()
  rows <- logistic_rows
  undefined <- function(theta, batch) {
    if (theta$beta[[2]] > 0.62) batch$x + NA else rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, undefined, check = FALSE)
  bounded <- model_custom(
    function(theta, batch) {
      if (theta$beta[[2]] > 0.62) batch$y + NaN else 0 * batch$y
    },
    function(theta) -sum(theta$beta^2) / 2,
    data,
    list(beta = c(0, 0)),
    function(theta, batch) 0 * batch$x,
    function(theta) -theta$beta
  )
  run <- function() {
    found <- with_warnings(list(
      short_sgld(model, size = 20, seed = 6),
      sg_sample(
        bounded,
        kernel_mala(0.2),
        iter = 60,
        chains = 2,
        init = c(0, 0),
        seed = 1,
        refresh = 0
      )
    ))
    fits <- lapply(found$value, without_time)
    list(fits = fits, said = lapply(found$warnings, function(w) {
      list(class(w)[[1]], w$chain, w$iteration, w$parent$theta)
    }))
  }
  by_workers <- run()
  future::plan("sequential")
  here <- run()
  expect_identical(by_workers, here)
  expect_identical(
    vapply(here$said, function(w) w[[1]], ""),
    c("tall_warning_nonfinite", "tall_warning_callback")
  )
})

test_that("a chain that cannot start is told by its number", {
  local_workers()
  data <- logistic_data()
  rows <- logistic_rows
  run <- function(grad_log_lik) {
    model <- logistic_custom(data$x, data$y, grad_log_lik, check = FALSE)
    sg_sample(
      model,
      kernel_sgld(0.01),
      gradient_simple(),
      subsample_uniform(6),
      chains = 2,
      init = matrix(c(0, 0, 0, 5), 2),
      refresh = 0
    )
  }
  error <- expect_error(
    run(function(theta, batch) {
      if (theta$beta[[2]] == 5) stop("no luck")
      rows(theta, batch)
    }),
    "no luck",
    class = "tall_error_callback"
  )
  error <- expect_error(
    run(function(theta, batch) {
      rows(theta, batch) / (theta$beta[[2]] != 5)
    }),
    class = "tall_error_nonfinite"
  )
  expect_identical(error$chain, 2)
  expect_identical(deparse(error$call[[1]]), "sg_sample")
})

test_that("an interrupt in a worker stops all, and the run can go on", {
  local_workers()
  data <- logistic_data()
  rows <- logistic_rows
  path <- withr::local_tempfile()
  count <- 0
  is_second <- FALSE
  stops <- function(theta, batch) {
    count <<- count + 1
    is_second <<- is_second || theta$beta[[1]] == 0.7
    if (file.exists(path)) {
      Sys.sleep(0.001) # so that no chain is done before it hears of it
      if (is_second && count == 400) rlang::interrupt() # what Ctrl-C does
    }
    rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, stops, check = FALSE)
  monitor <- list(every = 10, first = function(theta) theta[[1]])
  run <- function() {
    count <<- 0
    init <- matrix(c(0.1, 0.1, 0.7, 0.1), 2)
    run_custom(
      model,
      chains = 2,
      iter = 1000,
      init = init,
      gradient = gradient_simple(),
      monitor = monitor
    )
  }
  file.create(path)
  expect_warning(part <- run(), class = "tall_warning_interrupted")
  unlink(path)
  expect_true(all(part$chains$status == "ok"))
  expect_lt(nrow(part$draws), 400)
  expect_gt(nrow(part$draws), 0)
  rest <- sg_resume(part, refresh = 0)
  future::plan("sequential")
  whole <- run()
  expect_identical(unclass(rest$draws), unclass(whole$draws))
  expect_identical(rest$monitor, whole$monitor)
})

test_that("a worker that dies is an error of its own class", {
  local_workers("multisession")
  data <- logistic_data()
  rows <- logistic_rows
  here <- Sys.getpid()
  dies <- function(theta, batch) {
    if (Sys.getpid() != here) tools::pskill(Sys.getpid(), tools::SIGKILL)
    rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, dies, check = FALSE)
  error <- expect_error(
    run_custom(model, chains = 2),
    class = "tall_error_worker"
  )
  expect_identical(error$chain, 1L)
})

test_that("cores without a plan says what to do", {
  skip_if_not_installed("future")
  future::plan("sequential")
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y)
  expect_snapshot(fit <- run_custom(model, chains = 2, cores = 2))
  expect_no_message(run_custom(model, chains = 2))
  expect_no_message(run_custom(model, chains = 1, cores = 2))
  built_in <- model_glm(data$x, data$y)
  expect_no_message(run_custom(built_in, chains = 2, cores = 2))
})

test_that("a monitor that cannot be sent keeps the chains here", {
  local_workers()
  data <- logistic_data()
  x <- data$x
  colnames(x) <- c("beta[1]", "beta[2]")
  model <- logistic_custom(data$x, data$y)
  monitor <- list(every = 10, held_out = monitor_log_lik(model_glm(x, data$y)))
  expect_snapshot(fit <- run_custom(model, chains = 2, monitor = monitor))
  expect_gt(nrow(fit$monitor), 0)
})
