# Simulation-based calibration of groups' standard deviations and correlations,
# with what the recipe takes: exact steps where a standard deviation is near 0.
# bench/sbc.R has the same with 400 replications.

for (name in c("intercept, logistic", "intercept, poisson")) {
  test_that(paste("ranks are uniform:", name), {
    skip_on_cran()
    n_rep <- if (name == "intercept, logistic") 60 else 30
    problem <- sbc_group_problems(120)[[name]]
    runs <- sbc_runs(problem, n_rep, sbc_group_sample, sbc_group_draws)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_true("sgld" %in% kernels)
    p <- sbc_p_values(sbc_scores(runs), sbc_group_draws)
    expect_gt(min(p), 5e-6)
    # sds that are wrong by half are seen
    spoiled <- sbc_scores(runs, sbc_stretch(0.5))
    expect_lt(sbc_p_values(spoiled, sbc_group_draws)[["spread"]], 5e-6)
  })
}

# Few rows, so that the prior of standard deviations and correlation counts.
test_that("ranks are uniform: intercept and slope", {
  skip_on_cran()
  problem <- sbc_group_problems(24, 8)[["intercept and slope, logistic"]]
  runs <- sbc_runs(problem, 30, sbc_group_sample, sbc_group_draws)
  scores <- sbc_scores(runs)
  expect_gt(min(sbc_p_values(scores, sbc_group_draws)), 5e-6)
  # of each parameter, too: the correlation is the last
  each <- apply(scores, 1, sbc_p_values, n_draw = sbc_group_draws)
  expect_gt(min(each), 1e-5)
  spoiled <- sbc_scores(runs, sbc_stretch(0.5))
  expect_lt(sbc_p_values(spoiled, sbc_group_draws)[["spread"]], 5e-6)
})
