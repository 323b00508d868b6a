# Simulation-based calibration of groups' standard deviations and correlations,
# with what the recipe takes: exact steps where a standard deviation is near 0.

sbc_group_sample <- function(model, seed, iter, warmup) {
  suppressWarnings(
    sg_sample(
      model,
      iter = iter + 100,
      warmup = warmup + 100,
      chains = 1,
      seed = seed,
      refresh = 0
    )
  )
}

for (name in c("intercept, logistic", "intercept, poisson")) {
  test_that(paste("ranks are uniform:", name), {
    skip_on_cran()
    n_rep <- if (name == "intercept, logistic") 60 else 30
    runs <- sbc_runs(sbc_group_problems()[[name]], n_rep, sbc_group_sample)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_true("sgld" %in% kernels)
    p <- sbc_p_values(sbc_scores(runs))
    expect_gt(min(p), 5e-6)
    # sds that are wrong by half are seen
    spoiled <- sbc_p_values(sbc_scores(runs, sbc_stretch(0.5)))
    expect_lt(spoiled[["spread"]], 5e-6)
  })
}

test_that("ranks are uniform: intercept and slope", {
  skip_on_cran()
  problem <- sbc_group_problems(100, 10)[["intercept and slope, logistic"]]
  runs <- sbc_runs(problem, 20, sbc_group_sample)
  p <- sbc_p_values(sbc_scores(runs))
  expect_gt(min(p), 5e-6)
})
