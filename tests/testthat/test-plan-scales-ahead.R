# Priors with hyperparameters where rows are passed over.

many_data <- function(n = 12000, seed = 2) {
  withr::with_seed(seed, {
    x <- matrix(stats::rnorm(n * 6), n)
    colnames(x) <- paste0("x", 1:6)
    data <- as.data.frame(x)
    data$y <- stats::rbinom(n, 1, stats::plogis(-1 + x[, 1] - 0.5 * x[, 2]))
    data$count <- stats::rpois(n, exp(0.3 * x[, 1]))
    data
  })
}

shrunk_call <- function(
  data,
  prior = prior_ridge(),
  formula = y ~ x1 + x2 + x3 + x4 + x5 + x6,
  family = stats::binomial(),
  iter = 1200,
  warmup = 200,
  seed = 1,
  ...
) {
  tall_glm(
    formula,
    data,
    family,
    prior = prior,
    iter = iter,
    warmup = warmup,
    seed = seed,
    refresh = 0,
    ...
  )
}

# Of two fits the logarithms of scales, whose tails are heavy.
expect_law_of_scales <- function(a, b) {
  of <- function(fit) {
    draws <- posterior::as_draws_array(fit)
    is_scale <- grepl("^(ridge_sd|hs_|r2d2_)", posterior::variables(draws))
    draws[, , is_scale] <- log(draws[, , is_scale])
    posterior::summarise_draws(draws, "mean", "sd", "mcse_mean", "mcse_sd")
  }
  a <- of(a)
  b <- of(b)
  expect_identical(a$variable, b$variable)
  z <- (a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  expect_lt(max(abs(z)), 4)
  z <- (a$sd - b$sd) / sqrt(a$mcse_sd^2 + b$mcse_sd^2)
  expect_lt(max(abs(z)), 4)
}

test_that("posteriors of learnt scales by passes are those in memory", {
  data <- many_data()
  priors <- list(
    prior_ridge(),
    prior_hs(global_scale = 0.01, autoscale = TRUE),
    prior_r2d2()
  )
  memory <- lapply(priors, function(prior) shrunk_call(data, prior))
  count <- shrunk_call(data, prior_hs(), count ~ x1 + x2 + x3,
    stats::poisson())
  expect_null(memory[[1]]$passed)
  local_passes(2000, 1024)
  for (k in seq_along(priors)) {
    fit <- shrunk_call(stream_of(data, c(700, 13)), priors[[k]], seed = 2)
    expect_false(is.null(fit$rows$source))
    expect_match(fit$plan, "whatever the hyperparameters")
    expect_lt(mean(fit$chains$rows_thinned), fit$n_data / 4)
    expect_law_of_scales(fit, memory[[k]])
    s <- posterior::summarise_draws(fit, "rhat", "ess_bulk")
    expect_lt(max(s$rhat), 1.01)
    expect_gt(min(s$ess_bulk), 1000)
  }
  of_count <- shrunk_call(stream_of(data, 999), prior_hs(),
    count ~ x1 + x2 + x3, stats::poisson(), seed = 3)
  expect_match(of_count$plan, "whatever the hyperparameters")
  expect_law_of_scales(of_count, count)
})

test_that("draws of learnt scales are the same from every source", {
  data <- many_data()
  local_passes(2000, 1024)
  of <- function(data, ...) shrunk_call(data, iter = 300, ...)
  fit <- of(data)
  expect_s3_class(fit$rows$source, "tall_source_frame")
  expect_identical(of(stream_of(data, c(999, 1)))$draws, fit$draws)
  expect_identical(of(data, cores = 2)$draws, fit$draws)
  skip_if_not_installed("nanoparquet")
  file <- withr::local_tempfile(fileext = ".parquet")
  nanoparquet::write_parquet(data, file)
  expect_identical(of(tall_parquet(file))$draws, fit$draws)
})

test_that("a database makes the same passes", {
  con <- local_sqlite()
  data <- many_data()
  memory <- shrunk_call(data)
  DBI::dbWriteTable(con, "many", data)
  local_passes(2000, 1024)
  fit <- shrunk_call(dplyr::tbl(con, "many"), seed = 4)
  expect_match(fit$plan, "whatever the hyperparameters")
  expect_false(is.null(fit$rows$in_sql))
  expect_law_of_scales(fit, memory)
})

test_that("passes are as many as the fit tells", {
  data <- many_data()
  local_passes(2000, 1024)
  own <- counted_stream(data)
  source_names(own$source)
  source_head(own$source)
  head <- own$n()
  own <- counted_stream(data)
  fit <- shrunk_call(own$source, iter = 60, warmup = 20)
  told <- fit$preparation
  expect_identical(told[["mode"]], fit$mode$passes)
  n <- 1 + told[["mode"]] + floor(told[["reference"]])
  expect_identical(own$n() - head, n)
  # the look, sums, sums at the surrogate's mean, draws
  expect_lte(own$n() - head, 4)
})

test_that("such a run goes on, also after it was saved", {
  data <- many_data()
  local_passes(2000, 1024)
  fit <- shrunk_call(data, iter = 260, warmup = 60)
  kept <- unserialize(serialize(fit, NULL))
  longer <- sg_resume(kept, iter = 800, refresh = 0)
  again <- sg_resume(fit, iter = 800, refresh = 0)
  expect_identical(longer$draws, again$draws)
  expect_identical(longer$draws[1:200, , ], fit$draws[1:200, , ])
  expect_law_of_scales(longer, shrunk_call(data, seed = 7))
  s <- posterior::summarise_draws(longer, "rhat")
  expect_lt(max(s$rhat), 1.02)
})

# ---- rows that no others tell of ---------------------------------------------

test_that("awkward rows are brought once, and are not drawn", {
  data <- do.call(levels_data, rare_levels)
  data <- withr::with_seed(4, {
    data$z <- stats::rnorm(nrow(data))
    data[sample(nrow(data)), ]
  })
  formula <- y ~ level + z
  memory <- shrunk_call(data, formula = formula, iter = 2200)
  local_passes(4000, 1024)
  fit <- shrunk_call(stream_of(data, 997), formula = formula, iter = 2200)
  expect_false(is.null(fit$rows$source))
  s <- fit$passed$found$surrogate
  # levels without events, or with few rows
  expect_gt(length(s$of$y), 0)
  expect_law_of_scales(fit, memory)
  model <- revive_remote(fit)
  found <- model$remote$found
  drawn <- draw_awkward(model, fit$control, new_ledger(), 1e5, found)
  key <- function(of) paste(of$x[, ncol(of$x)])
  expect_false(any(key(drawn) %in% key(s$of)))
  expect_gt(length(drawn$y), 1000)
})

test_that("rows that are tied are all there", {
  data <- do.call(levels_data, rare_levels)
  data <- withr::with_seed(1, data[sample(nrow(data)), ])
  formula <- y ~ level
  memory <- shrunk_call(data, formula = formula)
  local_passes(1000, 512)
  fit <- shrunk_call(stream_of(data, 700), formula = formula, seed = 2)
  expect_match(fit$plan, "alike ones count as one, 10 rows differ$")
  expect_law_of_scales(fit, memory)
  # levels without events move along lines of their own
  found <- posterior::summarise_draws(fit, "ess_bulk")
  expect_gt(min(found$ess_bulk), 1500)
  more <- sg_resume(unserialize(serialize(fit, NULL)), 100, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 1100L)
})

test_that("rows come to memory where passes do not serve such priors", {
  data <- many_data(4000)
  local_passes(1000, 512)
  local_settings(recipe = list(scales_acceptance = 1))
  expect_message(
    fit <- tall_glm(y ~ x1 + x2, stream_of(data, 700), stats::binomial(),
      prior = prior_ridge(), seed = 1, iter = 200, refresh = 1),
    "All rows are brought to memory: exact steps from a few"
  )
  expect_null(fit$rows$source)
})

test_that("rows that come to memory search on from where passes were", {
  data <- many_data(6000)
  memory <- shrunk_call(data, iter = 300)
  local_passes(3000, 512)
  judge <- get("judge_scales", asNamespace("tallbayes"))
  n_judged <- 0
  # all rows contradict what the look told
  local_fault("judge_scales", function(...) {
    n_judged <<- n_judged + 1
    if (n_judged == 2) list(why_not = "all rows differ") else judge(...)
  })
  own <- counted_stream(data)
  fit <- shrunk_call(own$source, iter = 300)
  expect_null(fit$rows$source)
  # the columns' names, the look, sums, sums anew, a draw, and all rows at once
  expect_lte(own$n(), 2 + 5)
  # steps from there, where a search from nothing takes many passes
  expect_lte(fit$mode$passes, 3)
  expect_gte(memory$mode$passes, 3 * fit$mode$passes)
  # hyperparameters are where the chains of passes had them
  expect_identical(fit$mode$given, memory$mode$given)
  expect_law_of_scales(fit, memory)
})
