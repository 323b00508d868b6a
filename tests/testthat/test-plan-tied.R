# Rows that are passed over and tied, whose posterior is far from normal: exact
# steps on what differs, with awkward rows among it.

rare_call <- function(data, ...) {
  tall_glm(
    y ~ level,
    data,
    binomial(),
    prior = prior_normal(0, 10),
    prior_intercept = NULL,
    refresh = 0,
    ...
  )
}

rare_data <- function() {
  data <- do.call(levels_data, rare_levels)
  withr::with_seed(1, data[sample(nrow(data)), ])
}

test_that("levels without events are exact, from any source", {
  skip_on_cran()
  local_passes(1000, 512)
  data <- rare_data()
  exact <- intercept_by_grid(rare_levels$n, rare_levels$events, 10, TRUE)
  fit <- rare_call(data, iter = 3000, warmup = 500, seed = 2)
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_match(fit$plan, "alike ones count as one, 10 rows differ$")
  expect_equal(nobs(fit), nrow(data))
  expect_true(all(summary(fit)$table$sd_bias == 0))
  expect_lt(mean(fit$chains$rows_thinned), fit$n_data / 4)
  expect_intercept_by_grid(fit, exact)
  # no row is brought to memory for it
  again <- rare_call(
    stream_of(data, c(700, 13)),
    iter = 3000,
    warmup = 500,
    seed = 2
  )
  expect_identical(again$draws, fit$draws)
  con <- local_sqlite()
  DBI::dbWriteTable(con, "rare", as_sqlite(data))
  in_sql <-
    rare_call(dplyr::tbl(con, "rare"), iter = 3000, warmup = 500, seed = 3)
  expect_match(in_sql$plan, "10 rows differ$")
  expect_intercept_by_grid(in_sql, exact)
})

test_that("such a run goes on as if it had not stopped", {
  local_passes(1000, 512)
  data <- rare_data()
  fit <- rare_call(data, iter = 60, warmup = 20, seed = 3)
  longer <- sg_resume(unserialize(serialize(fit, NULL)), iter = 40, refresh = 0)
  whole <- rare_call(data, iter = 100, warmup = 20, seed = 3)
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
  twice <- rare_call(data, iter = 60, warmup = 20, seed = 3, cores = 2)
  expect_identical(twice$draws, fit$draws)
})
