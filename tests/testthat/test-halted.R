# A regression whose gradient fails where beta[1] is one of where$bad.
fragile <- function(where, data = logistic_data(), fail = stop) {
  rows <- logistic_rows
  logistic_custom(
    data$x,
    data$y,
    function(theta, batch) {
      if (any(abs(where$bad - theta$beta[[1]]) < 1e-12)) {
        return(fail("no luck"))
      }
      rows(theta, batch)
    },
    check = FALSE
  )
}

sound <- function() fragile(list(bad = numeric()))

run_with <- function(model, ..., kernel = kernel_sgld(0.01), keep = "draws") {
  sg_sample(
    model,
    kernel,
    iter = 240,
    warmup = 40,
    chains = 3,
    init = c(0.1, 0),
    seed = 1,
    keep = keep,
    refresh = 0,
    ...
  )
}

run_plain <- function(model) {
  run_with(
    model,
    gradient = gradient_simple(),
    subsample = subsample_uniform(6)
  )
}

# Where the draws of a fit have these numbers in these chains.
points_of <- function(fit, draw, chain) {
  as.matrix(plain_draws(fit)[, , 1])[cbind(draw, chain)]
}

fails <- function(expr, class = "tall_warning_callback") {
  found <- with_warnings(expr)
  expect_length(found$warnings, 1)
  expect_s3_class(found$warnings[[1]], class)
  said <- conditionMessage(found$warnings[[1]])
  expect_match(said, "sg_resume(fit)", fixed = TRUE)
  found$value
}

# Not the bias estimate, whose sums begin anew where a chain goes on.
expect_as_if_whole <- function(fit, whole, info = NULL) {
  expect_same_outcome(fit, whole)
  counts <- setdiff(names(whole$chains), "step_size")
  expect_identical(fit$chains[counts], whole$chains[counts], info = info)
  expect_equal(fit$chains$step_size, whole$chains$step_size)
  expect_identical(fit$monitor, whole$monitor, info = info)
  expect_equal(fit$monitor_state, whole$monitor_state, info = info)
  expect_equal(fit$noise, whole$noise, info = info)
  expect_equal(fit$moments, whole$moments, info = info)
  expect_identical(fit$progress, whole$progress, info = info)
  expect_null(fit$halted)
  expect_length(fit$stopped, 0)
}

test_that("a chain that an error stopped goes on as if nothing had been", {
  data <- logistic_data()
  watch <- list(
    every = 15,
    log_lik = monitor_log_lik(logistic_custom(data$x, data$y)),
    first = function(theta) theta[[1]]
  )
  runs <- list(
    sgld = function(model, ...) {
      run_with(
        model,
        gradient = gradient_cv(at = c(0.5, 0)),
        subsample = subsample_uniform(6),
        monitor = watch,
        ...
      )
    },
    mala = function(model, ...) {
      run_with(model, kernel = kernel_mala(0.1, adapt = TRUE), ...)
    },
    saga = function(model, ...) {
      run_with(
        model,
        kernel = kernel_sghmc(0.01),
        gradient = gradient_saga(at = c(0.5, 0)),
        subsample = subsample_uniform(6),
        ...
      )
    },
    cycles = function(model, ...) {
      run_with(
        model,
        gradient = gradient_simple(),
        subsample = subsample_uniform(6),
        schedule = schedule_cyclical(60),
        thin = 7,
        ...
      )
    }
  )
  for (name in names(runs)) {
    run <- runs[[name]]
    whole <- run(sound(), keep = c("draws", "gradients"))
    n <- nrow(plain_draws(whole))
    # one chain; two; all of them, one at its first draw
    places <- list(
      list(draw = ceiling(n / 2), chain = 2),
      list(draw = c(2, n - 1), chain = c(1, 3)),
      list(draw = c(1, ceiling(n / 3), n - 1), chain = 3:1)
    )
    for (place in places) {
      where <- new.env()
      where$bad <- points_of(whole, place$draw, place$chain)
      part <- fails(run(fragile(where), keep = c("draws", "gradients")))
      expect_setequal(which(part$chains$status == "callback"), place$chain)
      # what the function finds is mended
      where$bad <- numeric()
      expect_as_if_whole(sg_resume(part, refresh = 0), whole)
    }
  }
  # averages, and the iterations that are added
  whole <- runs$sgld(sound(), keep = c("none", "covariance"))
  draws <- runs$sgld(sound())
  where <- new.env()
  where$bad <- points_of(draws, 77, 1)
  part <- fails(runs$sgld(fragile(where), keep = c("none", "covariance")))
  where$bad <- numeric()
  expect_as_if_whole(
    sg_resume(part, 30, refresh = 0),
    sg_resume(whole, 30, refresh = 0)
  )
})

test_that("the model made again, a file, and errors that come again", {
  run <- function(model, ...) {
    run_with(
      model,
      gradient = gradient_simple(),
      subsample = subsample_uniform(6),
      ...
    )
  }
  whole <- run(sound())
  where <- list(bad = points_of(whole, c(50, 120), c(2, 2)))
  part <- fails(run(fragile(where)))
  # not mended: it fails where it did
  again <- fails(sg_resume(part, refresh = 0))
  expect_identical(again$chains, part$chains)
  expect_identical(again$stopped, part$stopped)
  expect_identical(plain_draws(again), plain_draws(part))
  # mended in part: it fails at the next place
  file <- withr::local_tempfile()
  saveRDS(again, file)
  half <- fragile(list(bad = where$bad[[2]]))
  again <- fails(sg_resume(readRDS(file), model = half, refresh = 0))
  expect_identical(nrow(again$stopped$chain2), 119L)
  expect_identical(
    unname(again$stopped$chain2[, 1]),
    unname(plain_draws(whole)[1:119, 2, 1])
  )
  fit <- sg_resume(again, model = sound(), refresh = 0)
  expect_as_if_whole(fit, whole)
  expect_identical(fit$fingerprint, whole$fingerprint)
  expect_error(
    sg_resume(fit, refresh = 0),
    "made all",
    class = "tall_error_input"
  )
  # after a run that had gone on before
  late <- list(bad = points_of(sg_resume(whole, 40, refresh = 0), 215, 3))
  first <- run(fragile(late))
  second <- fails(sg_resume(first, 40, refresh = 0))
  expect_identical(dim(second$draws), c(240L, 2L, 2L))
  expect_as_if_whole(
    sg_resume(second, model = sound(), refresh = 0),
    sg_resume(whole, 40, refresh = 0)
  )
})

test_that("so does a chain that a value which is no number stopped", {
  whole <- run_plain(sound())
  where <- list(bad = points_of(whole, 20, 1))
  part <- fails(
    run_plain(fragile(where, fail = function(x) matrix(NaN, 6, 2))),
    "tall_warning_nonfinite"
  )
  fit <- sg_resume(part, model = sound(), refresh = 0)
  expect_as_if_whole(fit, whole)
})

test_that("an interrupt leaves chains where they are, to go on from there", {
  whole <- run_plain(sound())
  where <- new.env()
  where$bad <- points_of(whole, 90, 3)
  part <- fails(run_plain(fragile(where)))
  count <- 0
  stops <- logistic_custom(
    logistic_data()$x,
    logistic_data()$y,
    function(theta, batch) {
      count <<- count + 1
      if (count == 40) rlang::interrupt()
      logistic_rows(theta, batch)
    },
    check = FALSE
  )
  count <- 0
  expect_warning(
    again <- sg_resume(part, model = stops, refresh = 0),
    class = "tall_warning_interrupted"
  )
  expect_identical(again$chains$status, c("ok", "ok", "callback"))
  expect_as_if_whole(sg_resume(again, refresh = 0), whole)
})

test_that("chains of workers go on, too", {
  local_workers()
  run <- function(model) {
    run_with(
      model,
      gradient = gradient_simple(),
      subsample = subsample_uniform(6),
      monitor = list(every = 20, first = function(theta) theta[[1]])
    )
  }
  whole <- run(sound())
  part <- fails(run(fragile(list(bad = points_of(whole, c(30, 60), 1:2)))))
  expect_identical(which(part$chains$status == "callback"), 1:2)
  expect_as_if_whole(sg_resume(part, model = sound(), refresh = 0), whole)
})

test_that("what cannot go on is refused in words", {
  data <- logistic_data()
  run <- function(model, step_size = 0.01) {
    run_with(
      model,
      gradient = gradient_simple(),
      subsample = subsample_uniform(6),
      kernel = kernel_sgld(step_size)
    )
  }
  whole <- run(sound())
  part <- fails(run(fragile(list(bad = points_of(whole, 20, 1)))))
  fewer <- lapply(data, function(x) if (is.matrix(x)) x[-1, ] else x[-1])
  wider <- logistic_data(d = 3)
  other <- model_glm(data$x, data$y)
  far <- suppressWarnings(run(logistic_custom(data$x, data$y), 100))
  expect_snapshot(error = TRUE, {
    sg_resume(part, model = fragile(list(bad = 99), fewer))
    sg_resume(part, model = fragile(list(bad = 99), wider))
    sg_resume(part, model = other)
    sg_resume(far)
  })
  # where no chain was stopped, the model is the same one
  expect_error(
    sg_resume(whole, 5, model = fragile(list(bad = 99), wider)),
    class = "tall_error_input"
  )
})
