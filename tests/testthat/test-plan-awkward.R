# Awkward rows of data that are passed over.

# A table of levels, some rare, and a number.
awkward_data <- function() {
  data <- do.call(levels_data, rare_levels)
  withr::with_seed(4, {
    data$z <- stats::rnorm(nrow(data))
    data[sample(nrow(data)), ]
  })
}

awkward_call <- function(data, ...) {
  tall_glm(
    y ~ level + z,
    data,
    binomial(),
    prior = prior_normal(0, 10),
    prior_intercept = NULL,
    refresh = 0,
    ...
  )
}

# Of so few rows all that do not fit are passed over.
local_large <- function(env = parent.frame()) {
  local_passes(4000, 1024, env)
  local_settings(rebuilt_bytes = 1e4, .frame = env)
}

# Those of draws of each other, by their Monte Carlo errors.
expect_same_law <- function(a, b) {
  of <- function(fit) {
    posterior::summarise_draws(fit, "mean", "sd", "mcse_mean", "mcse_sd")
  }
  a <- of(a$draws)
  b <- of(b$draws)
  z <- (a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2)
  expect_lt(max(abs(z)), 4)
  z <- (a$sd - b$sd) / sqrt(a$mcse_sd^2 + b$mcse_sd^2)
  expect_lt(max(abs(z)), 4)
}

test_that("draws of rows that are passed over are exact, from any source", {
  skip_on_cran()
  data <- awkward_data()
  at_hand <- awkward_call(data, iter = 1400, warmup = 200, seed = 2)
  expect_null(at_hand$passed)
  local_large()
  fit <- awkward_call(data, iter = 1400, warmup = 200, seed = 5)
  expect_match(fit$plan, "^exact steps: 169 rows that make the posterior far")
  expect_length(fit$passed$found$surrogate$of$y, 169)
  expect_true(all(summary(fit)$table$sd_bias == 0))
  expect_lt(mean(fit$chains$rows_thinned), fit$n_data / 4)
  expect_same_law(fit, at_hand)
  summary <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_lt(max(summary$rhat), 1.01)
  expect_gt(min(summary$ess_bulk), 1000)
  stream <- stream_of(data, c(700, 13))
  again <- awkward_call(stream, iter = 1400, warmup = 200, seed = 5, cores = 2)
  expect_identical(again$draws, fit$draws)
  con <- local_sqlite()
  DBI::dbWriteTable(con, "rare", as_sqlite(data))
  in_sql <-
    awkward_call(dplyr::tbl(con, "rare"), iter = 1400, warmup = 200, seed = 7)
  expect_length(in_sql$passed$found$surrogate$of$y, 169)
  expect_same_law(in_sql, at_hand)
})

test_that("Parquet files and shards hand out the same draws", {
  skip_if_not_installed("nanoparquet")
  local_large()
  data <- awkward_data()
  fit <- awkward_call(data, iter = 60, warmup = 20, seed = 3)
  file <- withr::local_tempfile(fileext = ".parquet")
  nanoparquet::write_parquet(data, file)
  parquet <- awkward_call(tall_parquet(file), iter = 60, warmup = 20, seed = 3)
  expect_equal(parquet$draws, fit$draws)
  half <- seq_len(nrow(data)) <= 5000
  shards <- tall_stream(list(
    stream_of(data[half, ], 900)$open,
    stream_of(data[!half, ], 900)$open
  ))
  of_shards <- awkward_call(shards, iter = 60, warmup = 20, seed = 3)
  # sums are added in another order
  expect_length(of_shards$passed$found$surrogate$of$y, 169)
  expect_identical(
    sort(of_shards$passed$found$surrogate$of$x[, 7]),
    sort(fit$passed$found$surrogate$of$x[, 7])
  )
})

test_that("awkward rows are in neither the bounds' sum nor the draws", {
  local_large()
  data <- awkward_data()
  fit <- awkward_call(data, iter = 30, warmup = 10, seed = 3)
  model <- revive_remote(fit)
  found <- model$remote$found
  s <- found$surrogate
  control <- fit$control
  # so many draws of each that no row is missed
  drawn <- draw_awkward(model, control, new_ledger(), 1e5, found)
  is_rare <- function(x, y) {
    # the baseline, and two levels
    rowSums(x[, 2:6]) == 0 | x[, 5] == 1 | x[, 6] == 1
  }
  expect_true(all(is_rare(s$of$x)))
  expect_false(any(is_rare(drawn$x)))
  # of all rows, by a model of them
  x <- stats::model.matrix(~ level + z, data)
  whole <- model_glm(x, data$y, family = "bernoulli")
  seen <- chunk_draw(whole$pointer, found$theta, found$chol, 1, list(
    radius = drawn$draw$radius,
    phi_bar = Inf,
    rate = 0,
    scale = 1,
    seed = 1,
    pass = 0,
    first = 0
  ))
  others <- seen$rows[!is_rare(x[seen$rows, ])]
  psi <- seen$psi[match(others, seen$rows)]
  thinned <- psi * drawn$draw$phi_bar <= 1
  expect_equal(drawn$total, sum(psi[thinned]))
  # G and H are those of all rows: what S takes out is its remainders alone
  expect_equal(drawn$sums$hessian, seen$hessian)
})

test_that("such a run goes on from what was kept", {
  local_large()
  data <- awkward_data()
  fit <- awkward_call(data, iter = 60, warmup = 20, seed = 3)
  kept <- unserialize(serialize(fit, NULL))
  longer <- sg_resume(kept, iter = 400, refresh = 0)
  again <- sg_resume(fit, iter = 400, refresh = 0)
  expect_identical(longer$draws, again$draws)
  expect_identical(dim(longer$draws)[[1]], 440L)
  expect_identical(
    longer$passed$found$surrogate$of,
    fit$passed$found$surrogate$of
  )
  # the chains stand where they stood
  expect_identical(longer$draws[1:40, , ], fit$draws[1:40, , ])
  summary <- posterior::summarise_draws(longer$draws, "rhat")
  expect_lt(max(summary$rhat), 1.05)
})

test_that("chains whose rows are used up get others", {
  local_large()
  fit <- awkward_call(awkward_data(), iter = 200, warmup = 20, seed = 3)
  local_fault("drawn_share", 0.05)
  poor <- awkward_call(awkward_data(), iter = 200, warmup = 20, seed = 3)
  expect_gt(poor$passed$pass, fit$passed$pass)
  expect_same_law(poor, fit)
})

test_that("the cut lies between two bounds, and takes no more than pay", {
  expect_identical(below_all(4, c(3, 1)), sqrt(12))
  expect_identical(below_all(4, c(4, 4, 1)), 2)
  expect_identical(below_all(4, numeric()), 2)
  taken <- list(
    x = matrix(1:5000, 5000, 1),
    y = as.double(1:5000),
    psi = as.double(5000:1)
  )
  local_settings(recipe = list(awkward_size = 0, most_awkward = 300))
  kept <- keep_awkward(taken, 2.5, list(n_dim = 1))
  expect_identical(kept$of$y, as.double(1:400))
  expect_gt(kept$cut, 4600)
  expect_lt(kept$cut, 4601)
})
