# Do the intervals of the default run hold what they should, of rows that it has
# not seen?

# Friedman (1991): noise of sd 1, five covariates.
friedman <- function(n, seed) {
  withr::with_seed(seed, {
    x <- matrix(stats::runif(n * 5), n)
    colnames(x) <- paste0("x", 1:5)
    f <- 10 * sin(pi * x[, 1] * x[, 2]) + 20 * (x[, 3] - 0.5)^2 +
      10 * x[, 4] + 5 * x[, 5]
    data.frame(x, y = f + stats::rnorm(n))
  })
}

test_that("networks with more weights than rows are calibrated", {
  # weights that can fit every row take sigma to 0: starts must not be there
  found <- lapply(1:3, function(seed) {
    fit <- suppressWarnings(tall_nn(
      y ~ .,
      friedman(80, seed),
      hidden = 20,
      iter = 400,
      chains = 2,
      seed = seed,
      refresh = 0
    ))
    held_out <- friedman(300, 100 + seed)
    p <- predict(fit, held_out)
    c(
      cover = mean(held_out$y > p$lower & held_out$y < p$upper),
      error = sqrt(mean((held_out$y - p$mean)^2)),
      sigma = stats::sigma(fit)
    )
  })
  found <- do.call(rbind, found)
  # 900 responses, but intervals of only three fits
  expect_gt(mean(found[, "cover"]), 0.84)
  expect_lt(mean(found[, "cover"]), 0.96)
  expect_true(all(found[, "sigma"] > 0.5 & found[, "sigma"] < 1.5))
  # the sd of the response is 5
  expect_true(all(found[, "error"] < 2.5))
})

test_that("trajectories are as long as there is time for", {
  chosen <- function(n_data, n_dim, ...) {
    nn_kernel(list(n_data = n_data, n_dim = n_dim), ...)
  }
  small <- chosen(400, 3301)
  expect_s3_class(small, "tall_kernel_hmc")
  expect_identical(small$args$steps, 25)
  expect_identical(chosen(4000, 3100)$args$steps, 10)
  expect_s3_class(chosen(1e5, 3100), "tall_kernel_mala")
  expect_s3_class(chosen(400, 3301, TRUE), "tall_kernel_mala")
  fit <- tall_nn(
    y ~ .,
    friedman(40, 1),
    hidden = 3,
    subsample = subsample_uniform(10),
    gradient = gradient_simple(),
    train_iter = 20,
    iter = 20,
    chains = 1,
    refresh = 0
  )
  expect_s3_class(fit$kernel, "tall_kernel_mala")
})

test_that("sigma starts from rows that its chain was not trained on", {
  run <- function(...) {
    tall_nn(
      y ~ .,
      friedman(60, 2),
      hidden = 20,
      train_iter = 1500,
      iter = 4,
      chains = 2,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  start <- function(fit) {
    vapply(fit$modes, function(m) exp(m$estimate[["log_sigma"]]), 0)
  }
  own <- start(run())
  # of a response with unit variance
  expect_true(all(own > 0.2 & own < 1))
  expect_false(own[[1]] == own[[2]])
  # an explicit kernel starts at the mode itself
  expect_lt(max(start(run(kernel = kernel_mala(1e-8)))), 0.1)
  # too few rows to hold any out; a known sigma
  few <- tall_nn(y ~ x1, friedman(4, 1), hidden = 2, iter = 4, refresh = 0)
  expect_length(few$modes, 4)
  expect_named(run(sigma = 1)$modes[[1]]$estimate)
})
