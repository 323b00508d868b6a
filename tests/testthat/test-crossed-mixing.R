# What is foretold and told of sweeps of several grouping factors:
# R/plan-mixing.R, R/plan-sweeps-cost.R.

# Workers of firms who seldom change these, and `other`, which they all share.
moving_rows <- function(sd = 1) {
  withr::with_seed(1, {
    n <- 3000
    worker <- rep(1:300, each = 10)
    firm <- (worker - 1) %/% 20 + 1
    moves <- stats::runif(n) < 0.02
    firm[moves] <- firm[moves] %% 15 + 1
    eta <- sd * (stats::rnorm(300)[worker] + stats::rnorm(15)[firm])
    data.frame(
      worker,
      firm,
      half = worker %/% 20,
      other = sample(15, n, TRUE),
      x = stats::rnorm(n),
      y = eta + stats::rnorm(n),
      good = stats::rbinom(n, 1, stats::plogis(eta))
    )
  })
}

moving_model <- function(data, factors, family = "gaussian") {
  y <- if (family == "gaussian") data$y else data$good
  x <- cbind("(Intercept)" = rep(1, nrow(data)))
  model_crossed(x, y, as.list(data[factors]), family)
}

# Two factors, the precisions of rows, and those of the priors of both.
rate_of <- function(one, other, weight = 1, prior = c(1, 1)) {
  n <- stats::xtabs(weight ~ one + other, data.frame(weight, one, other))
  n <- matrix(n, nrow(n))
  a <- t(n / sqrt(rowSums(n) + prior[[1]])) / sqrt(colSums(n) + prior[[2]])
  svd(a)$d[[2]]^2
}

test_that("mixing is foretold by how factors are connected", {
  data <- moving_rows()
  pairs <- function(factors) factor_pairs(moving_model(data, factors))
  poor <- pairs(c("worker", "firm"))
  exact <- rate_of(data$worker, data$firm)
  expect_equal(poor$rate, exact, tolerance = 0.02)
  expect_gt(exact, 0.8)
  good <- pairs(c("worker", "other"))
  exact <- rate_of(data$worker, data$other)
  expect_equal(good$rate, exact, tolerance = 0.02)
  expect_lt(exact, 0.3)
  # parts that shifts draw
  nested <- pairs(c("worker", "half"))
  expect_identical(nested$parts, 16)
  expect_lt(nested$rate, 0.02)
})

test_that("mixing is foretold where effects are", {
  # the power method is nearly there after so many passes
  local_settings(sweeps = list(passes = 200))
  withr::local_seed(1)
  data <- moving_rows()
  factors <- c("worker", "firm")
  effects <- stats::rnorm(315)
  sd <- c(4, 0.5)
  theta <- c(0.3, log(sd))
  found <- factor_pairs(
    moving_model(data, factors),
    list(theta = c(theta, log(0.8)), effects = effects)
  )
  # beyond T / (T + 1) of T rows of a worker
  exact <- rate_of(data$worker, data$firm, 0.8^-2, sd^-2)
  expect_gt(exact, 0.93)
  expect_equal(found$rate, exact, tolerance = 0.02)
  found <- factor_pairs(
    moving_model(data, factors, "bernoulli"),
    list(theta = theta, effects = effects)
  )
  p <- stats::plogis(0.3 + effects[data$worker] + effects[300 + data$firm])
  exact <- rate_of(data$worker, data$firm, p * (1 - p), sd^-2)
  expect_equal(found$rate, exact, tolerance = 0.02)
})

test_that("a short chain says where effects are", {
  control <- list(
    iter = 100,
    warmup = 50,
    thin = 1,
    chains = 2,
    cores = 1,
    seed = 1,
    refresh = 0
  )
  largest <- function(...) {
    ledger <- new_ledger()
    model <- moving_model(...)
    pairs <- foretold_pairs(model, control, ledger)
    list(
      rate = largest_rate(pairs),
      most = factor_pairs(model, worth = 0)$rate,
      passes = ledger$passes[["recipe"]]
    )
  }
  factors <- c("worker", "firm")
  far <- largest(moving_rows(4), factors)
  near <- largest(moving_rows(0.2), factors)
  expect_equal(far$rate, {
    data <- moving_rows(4)
    rate_of(data$worker, data$firm, 1, c(1, 1) / 16)
  }, tolerance = 0.02)
  expect_lt(far$rate, far$most)
  expect_lt(near$rate, 0.5)
  expect_gt(near$passes, 0)
  # none where levels are connected well, whatever their effects are
  good <- largest(moving_rows(4), c("worker", "other"))
  expect_identical(good$passes, 0)
  expect_identical(good$rate, good$most)
})

quick_moving <- function(formula, ...) {
  tall_glmer(
    formula,
    moving_rows(),
    ...,
    iter = 40,
    chains = 2,
    seed = 1,
    refresh = 0
  )
}

test_that("what mixes poorly is told", {
  formula <- y ~ x + (1 | worker) + (1 | firm)
  expect_no_message(quick_moving(formula))
  local_settings(sweeps = list(poor = 0.8, joint = 1))
  expect_message(
    fit <- quick_moving(formula),
    "connect the levels of worker and firm poorly"
  )
  data <- moving_rows()
  exact <- rate_of(data$worker, data$firm)
  expect_equal(fit$recipe$mixing, exact, tolerance = 0.03)
  # a pilot that takes long, too
  local_settings(sweeps = list(told = 1e-6))
  said <- testthat::capture_messages(quick_moving(formula))
  expect_match(said, "A pilot of 50 sweeps takes about", all = FALSE)
})

test_that("much memory is told before sweeps", {
  formula <- good ~ x + (1 | worker) + (1 | firm)
  run <- function(...) quick_moving(formula, stats::binomial(), ...)
  fit <- run()
  expect_no_message(run())
  local_settings(sweeps = list(bytes = 1000), memory = 2e9)
  expect_message(again <- run(), "Sweeps take .* besides the data")
  expect_message(again <- run(), "memory has 2 GB")
  expect_identical(again$draws, fit$draws)
  # a chain has predictors of all rows, effects and their moments; draws are
  # those of 20 iterations of 2 chains
  chain <- .Call(ffi_crossed_chain_size, fit$model$pointer)
  expect_gt(chain, 8 * (3000 + 6 * 315))
  expect_lt(chain, 8 * (3000 + 20 * 315) + 1e6)
  expect_identical(draws_bytes(315, fit$control), 8 * 315 * 2 * 20)
})
