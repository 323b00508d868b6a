# Exact steps with awkward rows: levels with few rows or without events.

rare_model <- function() {
  data <- do.call(levels_data, rare_levels)
  x <- stats::model.matrix(~level, data)
  model_glm(x, data$y, family = "bernoulli", prior = prior_normal(0, 10))
}

rare_fit <- function(..., model = rare_model()) {
  sg_sample(model, ..., refresh = 0)
}

test_that("levels without events are exact, with their rows as they are", {
  skip_on_cran()
  exact <- intercept_by_grid(rare_levels$n, rare_levels$events, 10)
  expect_no_warning(fit <- rare_fit(iter = 3000, warmup = 500, seed = 2))
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_match(fit$plan, "^exact steps: 169 rows that make the posterior far")
  expect_identical(fit$recipe$n_awkward, 169L)
  # the baseline's, and those of the two rare levels
  expect_identical(fit$kernel$args$awkward, as.double(c(1:120, 9621:9669)))
  expect_true(all(summary(fit)$table$sd_bias == 0))
  expect_intercept_by_grid(fit, exact)
})

test_that("such a run depends on seed and model alone, and goes on", {
  model <- rare_model()
  fit <- rare_fit(iter = 60, warmup = 20, seed = 3, model = model)
  expect_same_outcome(
    rare_fit(iter = 60, warmup = 20, seed = 3, model = model, cores = 2),
    fit
  )
  longer <- sg_resume(
    unserialize(serialize(fit, NULL)),
    iter = 40,
    model = rare_model(),
    refresh = 0
  )
  whole <- rare_fit(iter = 100, warmup = 20, seed = 3, model = model)
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
})

test_that("awkward rows are those of rare cells, and as many as pay", {
  model <- rare_model()
  mode <- find_mode(model)
  control <- list(cores = 1L)
  found <- awkward_rows(model, mode, control, new_ledger())
  expect_identical(found$rows, as.double(c(1:120, 9621:9669)))
  # the baseline's, which are all alike, and those of the levels
  rare <- model.matrix(~factor(1:6))[c(1, 5, 6), ]
  expect_equal(abs(found$wide), unname(t(rare)), ignore_attr = TRUE)
  # each line moves the rows of one of them alone
  moves <- surrogate_moves(vcov(mode), found$wide)
  moved <- model.matrix(~factor(1:6)) %*% moves$lines != 0
  expect_identical(unname(colSums(moved)), c(1, 1, 1))
  expect_identical(sort(unname(which(rowSums(moved) > 0))), c(1L, 5L, 6L))
  # and what is free none of theirs
  expect_lt(max(abs(crossprod(moves$free, t(rare)))), 1e-8)
  local_settings(recipe = list(awkward_size = 0, most_awkward = 130))
  some <- awkward_rows(model, mode, control, new_ledger())
  expect_identical(length(some$rows), 130L)
  expect_true(all(some$rows %in% found$rows))
})

test_that("a model without such rows goes where it went", {
  model <- tall_model(3000)
  mode <- find_mode(model)
  control <- list(cores = 1L, chains = 1, warmup = 10, iter = 20, seed = 1)
  local_settings(recipe = list(awkward_sd = Inf))
  tried <- try_surrogate(model, mode, control, new_ledger())
  expect_null(tried$plan)
  expect_match(tried$why_not, "no rows of its own")
})

test_that("more awkward rows than the cap are told in numbers", {
  model <- rare_model()
  mode <- find_mode(model)
  control <- list(
    cores = 1L,
    chains = 1,
    warmup = 10,
    iter = 20,
    seed = 1,
    refresh = 0
  )
  local_settings(recipe = list(
    awkward_size = 0,
    most_awkward = 130,
    awkward_acceptance = 1.1
  ))
  tried <- try_surrogate(model, mode, control, new_ledger())
  expect_null(tried$plan)
  expect_match(
    tried$why_not,
    "probability 0[.][0-9]+, also with 130 awkward rows .* as they are, of 169"
  )
  expect_identical(
    why_not_exact(list(why_not = "its tails"), tried),
    tried$why_not
  )
  tails <- list(why_not = "its tails")
  none <- list(why_not = "no rows of its own make it far from normal")
  expect_identical(why_not_exact(tails, none), "its tails")
  slow <- list(plan = list(), pace_seconds = 3000)
  expect_match(
    why_not_exact(list(why_not = "its tails"), slow),
    "awkward rows would take about 50 min"
  )
})

test_that("coefficients that separated rows tie to one another are moved", {
  n <- 6000
  data <- withr::with_seed(17, {
    age <- sample(15:45, n, TRUE)
    g <- factor(c(rep("c", 9), sample(c("a", "b"), n - 9, TRUE)))
    y <- stats::rbinom(n, 1, stats::plogis(-2 + 0.03 * age + 0.4 * (g == "b")))
    data.frame(y, age, g)
  })
  is_rare <- data$g == "c"
  data$y[is_rare] <- as.numeric(data$age[is_rare] > 30)
  fit <- tall_glm(y ~ age * g, data, binomial(), seed = 2, refresh = 0)
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_length(fit$kernel$args$awkward, 9)
  # slices of coordinates alone have 10 effective draws
  expect_gt(min(posterior::summarise_draws(fit$draws)$ess_bulk), 400)
})

test_that("lines of whole numbers are left where they would be one line", {
  # two rows of one level that a covariate tells apart
  wide <- cbind(c(3, 0, 1), c(-3, 0, 1))
  metric <- diag(c(5, 5, 0.01))
  moves <- surrogate_moves(chol2inv(t(metric)), wide)
  all <- crossprod(moves$metric, cbind(moves$lines, moves$free))
  expect_identical(ncol(moves$lines), 2L)
  expect_identical(dim(all), c(3L, 3L))
  expect_gt(rcond(all), 1e-6)
  whole <- wide_lines(metric, wide)
  expect_identical(qr(whole)$rank, 1L)
})

test_that("the time that is said is that of the pilot's steps", {
  # the largest stretch counts: what is made once is in the first
  first <- pace_of(0.5, 1, NULL)
  expect_identical(first, list(seconds = 0.5, steps = 1))
  second <- pace_of(0.2, 100, first)
  expect_identical(second, list(seconds = 0.002, steps = 100))
  expect_identical(pace_of(0.4, 10, second), second)
  control <- check_control(2000, 1000, 1, 4, 1, 1, "draws", 0)
  model <- rare_model()
  mode <- find_mode(model)
  tried <- try_surrogate(model, mode, control, new_ledger())
  report <- list(
    n_accept = 300, n_propose = 400, n_row = 800, n_full = 0, n_always = 400,
    pace = 0.01
  )
  judged <- judge_surrogate(tried$plan, report, 10, control)
  expect_equal(judged$pace_seconds, 4 * (1000 + 1000 * judged$steps) * 0.01)
  # of its own pilot, which took some time but no second a step
  expect_gt(tried$pace_seconds, 0)
  expect_lt(tried$pace_seconds, 4 * (1000 + 1000 * tried$steps))
  said <- paste(
    capture_messages(tell_seconds(judged$pace_seconds, control)),
    collapse = ""
  )
  expect_match(said, format_seconds(judged$pace_seconds), fixed = TRUE)
})
