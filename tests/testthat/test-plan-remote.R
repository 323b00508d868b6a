# What passes over a source cost, where all rows tell otherwise than the look:
# each that is made serves, and the fit says how many there were.

# The last few rows are alone of their kind: a pilot may have none of them.
odd_data <- function(n_odd, first, n = 12000) {
  withr::with_seed(5, {
    data <- data.frame(z = stats::rnorm(n), x = stats::rnorm(n), odd = 0)
    data$y <- stats::rbinom(n, 1, stats::plogis(-1 + data$z))
    events <- which(data$y == 1)
    data$odd[events[first + 3 * seq_len(n_odd)]] <- 1
    data
  })
}

# A fit of a stream, and how often it was opened, but for names and types.
counted_fit <- function(data, formula = y ~ z + odd, ..., refresh = 0) {
  own <- counted_stream(data)
  source_names(own$source)
  source_head(own$source)
  head <- own$n()
  own <- counted_stream(data)
  fit <- tall_glm(
    formula,
    own$source,
    stats::binomial(),
    prior = prior_normal(0, 50),
    seed = 1,
    iter = 400,
    refresh = refresh,
    ...
  )
  list(fit = fit, n = own$n() - head)
}

# Passes of the source that the fit tells of: the look, the search for the mode,
# and those that draw rows; parts of one are rows that chains look at.
told_passes <- function(fit) {
  1 + fit$preparation[["mode"]] + floor(fit$preparation[["reference"]])
}

test_that("a draw too far from the mode is a pass of the search for it", {
  local_passes(1000, 512)
  # separated rows that the pilot has not met
  own <- counted_fit(odd_data(8, 200))
  expect_false(is.null(own$fit$rows$source))
  expect_gt(own$fit$preparation[["mode"]], 1)
  expect_identical(own$n, told_passes(own$fit))
  expect_match(
    passes_text(own$fit),
    format(own$fit$passes, digits = 3),
    fixed = TRUE
  )
})

test_that("no row is drawn where its point is not known", {
  local_passes(1000, 512)
  data <- odd_data(0, 0)
  # a search that ends `away` sds from the mode
  far <- function(away) {
    local_fault("remote_mode", function(...) {
      found <- before(...)
      step <- backsolve(t(found$chol), c(away, 0))
      found$theta <- found$theta + step
      found$distance <- 0
      found
    }, frame = parent.frame())
  }
  before <- get("remote_mode", asNamespace("tallbayes"))
  drawn <- 0
  take <- get("take_rows_ahead", asNamespace("tallbayes"))
  local_fault("take_rows_ahead", function(...) {
    drawn <<- drawn + 1
    take(...)
  })
  near <- counted_fit(data, y ~ z)
  expect_identical(c(near$n, drawn), c(3, 1))
  local({
    far(2)
    drawn <<- 0
    # refused, and drawn where it is then known to be
    two <- counted_fit(data, y ~ z)
    expect_identical(c(two$n, drawn), c(4, 2))
    expect_identical(two$fit$preparation[["mode"]], 2)
    expect_identical(two$n, told_passes(two$fit))
    expect_same_posterior(two$fit, near$fit)
  })
  local({
    far(8)
    drawn <<- 0
    # refused, sums alone, drawn
    eight <- counted_fit(data, y ~ z)
    expect_identical(c(eight$n, drawn), c(5, 2))
    expect_identical(eight$fit$preparation[["mode"]], 3)
    expect_identical(eight$n, told_passes(eight$fit))
    expect_same_posterior(eight$fit, near$fit)
  })
})

test_that("rows that come to memory have the mode that passes found", {
  local_passes(1000, 512)
  data <- odd_data(0, 0)
  # all rows contradict what the look told
  judge <- get("judge_exact", asNamespace("tallbayes"))
  n_judged <- 0
  local_fault("judge_exact", function(...) {
    n_judged <<- n_judged + 1
    if (n_judged == 2) list(why_not = "all rows tell otherwise") else judge(...)
  })
  start <- NULL
  begin <- get("start_mode", asNamespace("tallbayes"))
  local_fault("start_mode", function(model, theta, cores) {
    start <<- theta
    # not to where a part of the rows has its mode
    local_fault("newton_rows", function(model) seq(1, 12000, by = 10))
    begin(model, theta, cores)
    # from there it is one step, and a look whether it was the last
    expect_lte(model$cache$mode$iterations, 2)
    expect_lte(model$cache$mode$passes, 2)
  })
  expect_message(
    own <- counted_fit(data, y ~ z, refresh = 1),
    "All rows are brought to memory: all rows tell otherwise"
  )
  fit <- own$fit
  expect_null(fit$rows$source)
  # the look, sums, a draw, and all rows at once
  expect_identical(own$n, 4)
  expect_length(start, 2)
  expect_equal(start, unname(fit$mode$estimate), tolerance = 1e-3)
  # 2 of the passes found the mode, which is looked at again
  told <- fit$preparation
  expect_gte(told[["mode"]], 1 + fit$mode$passes)
  expect_gte(told[["reference"]], 1)
  expect_gte(told[["recipe"]], 2)
  expect_equal(fit$passes, sum(fit$chains$passes) + sum(told))
  glm <- stats::glm(y ~ z, stats::binomial(), data)
  expect_equal(fit$mode$estimate, stats::coef(glm), tolerance = 1e-3)
  # or go to a file, by the look that there was
  n_judged <- 0
  file <- withr::local_tempfile(fileext = ".tall")
  stored <- counted_fit(data, y ~ z, store = file)
  expect_true(file.exists(file))
  expect_identical(stored$n, 4)
  expect_identical(stored$fit$preparation, told)
})

test_that("what a look decided stays where all rows tell a little otherwise", {
  local_passes(1000, 512)
  report <- list(n_accept = 150, n_propose = 1000, n_row = 10, n_full = 0)
  model <- list(n_data = 1e5, n_dim = 3)
  judge <- function(share) {
    judge_exact(model, report, new_control_of(), function() 1, share = share)
  }
  new_control_of <- function() {
    check_control(1000, 500, 1, 4, 1, 1, "draws", 0)
  }
  expect_match(judge(1)$why_not, "accepted with probability 0.15")
  expect_null(judge(settled_share)$why_not)
  report$n_accept <- 100
  expect_match(judge(settled_share)$why_not, "0.1")
  # tails tell of another posterior
  report$n_accept <- 900
  heavy <- judge_exact(model, report, new_control_of(), function() 0.4,
    share = settled_share)
  expect_match(heavy$why_not, "tails")
})

test_that("a pilot takes of the run's rows before it asks for a pass", {
  n_pass <- 0
  made <- NULL
  plan_of <- function(order) list(model = "m", gradient = order)
  plan <- list(refill = function(number, left) {
    n_pass <<- n_pass + 1
    "pass"
  })
  parts <- list(pilot = 1:2, run = 3:9)
  pilot <- pilot_of_drawn(plan, parts, plan_of)
  expect_identical(pilot$rest(), 3:9)
  expect_identical(pilot$refill(0, 5)$gradient, 3:4)
  expect_identical(pilot$refill(1, 5)$gradient, 5:8)
  expect_identical(pilot$rest(), 9L)
  expect_identical(pilot$refill(2, 5)$gradient, 9L)
  expect_identical(n_pass, 0)
  expect_identical(pilot$refill(3, 5), "pass")
  expect_identical(n_pass, 1)
})

test_that("passes after the first draw more where chains use more", {
  expect_identical(refill_steps(0, 100), 100)
  expect_identical(refill_steps(3, 100), 800)
  # rows that are drawn again and again are one row in memory
  local_settings(chunk_rows = 100, recipe = list(full_share = 0))
  rows <- structure(list(), class = "tall_rows")
  model <- list(n_data = 1e4, remote = list(rows = rows))
  few <- most_steps(model, list(psi = 0.01), 10)
  many <- most_steps(model, list(psi = 0.01, times = 40), 10)
  expect_identical(few, 800)
  expect_gt(many, 20000)
  expect_lte(many * drawn_share * 10 * 0.01, 4000)
  expect_identical(
    times_drawn(list(count = c(0, 40, 40, 1))),
    27
  )
})

test_that("proposals beyond where rows are bounded are told of", {
  local_passes(1000, 512)
  data <- odd_data(0, 0)
  print_of <- function(fit) paste(utils::capture.output(fit), collapse = " ")
  local({
    # far less than the posterior has
    local_fault("remote_radius", function(n_dim) sqrt(n_dim) + 2.2)
    fit <- counted_fit(data, y ~ z)$fit
    expect_gt(mean(fit$chains$outside), 0)
    expect_match(print_of(fit), "% of the proposals were outside the ball in")
  })
  fit <- counted_fit(data, y ~ z)$fit
  expect_identical(sum(fit$chains$outside), 0)
  expect_no_match(print_of(fit), "outside the ball")
})
