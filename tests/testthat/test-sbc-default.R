# As many replications as see a mean that is off by 0.3 posterior sds, and sds
# by a fifth, at this level. All tests together raise a wrong alarm with
# probability 7e-5.
sbc_reps <- 200
sbc_level <- 5e-6

expect_calibrated <- function(runs) {
  p <- sbc_p_values(sbc_scores(runs))
  for (test in names(p)) {
    expect(
      p[[test]] > sbc_level,
      paste0("ranks are not uniform: ", test, ", p = ", format(p[[test]]))
    )
  }
}

# So that the tests above are known to see what they are for.
expect_seen <- function(runs) {
  spoiled <- function(spoil) sbc_p_values(sbc_scores(runs, spoil))
  expect_lt(spoiled(sbc_shift(0.3))[["location"]], sbc_level)
  expect_lt(spoiled(sbc_shift(-0.3))[["location"]], sbc_level)
  expect_lt(spoiled(sbc_stretch(0.8))[["spread"]], sbc_level)
  expect_lt(spoiled(sbc_stretch(1.25))[["spread"]], sbc_level)
}

for (name in names(sbc_problems())) {
  test_that(paste("ranks under the default are uniform:", name), {
    skip_on_cran()
    runs <- sbc_runs(sbc_problems()[[name]], sbc_reps)
    expect_calibrated(runs)
    expect_seen(runs)
  })
}

# 1,000 rows are looked at in every step, of 5,000 a few are drawn.
for (name in names(sbc_aux_problems(1))) {
  test_that(paste("ranks are uniform with a parameter beside:", name), {
    skip_on_cran()
    few <- sbc_runs(sbc_aux_problems(1000)[[name]], 60)
    expect_calibrated(few)
    many <- suppressWarnings(sbc_runs(sbc_aux_problems(5000)[[name]], 60))
    kernels <- vapply(many, function(run) run$kernel, "")
    expect_gt(mean(kernels == "sgld"), 0.5)
    expect_calibrated(many)
  })
}

for (name in c("logistic", "poisson")) {
  test_that(paste("ranks are uniform where exact steps do not pay:", name), {
    skip_on_cran()
    local_way("order")
    runs <- sbc_runs(sbc_problems()[[name]], sbc_reps)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_identical(unique(kernels), "sgld")
    expect_calibrated(runs)
  })
}

for (name in names(sbc_level_problems())) {
  test_that(paste("ranks are uniform with awkward rows as they are:", name), {
    skip_on_cran()
    runs <- sbc_runs(sbc_level_problems()[[name]], 60)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_identical(unique(kernels), "smh")
    expect_calibrated(runs)
    # of the level by itself, and so that this is known to see something
    level <- function(spoil = identity) {
      sbc_p_values(sbc_scores(runs, spoil)[3, ])
    }
    expect_gt(min(level()), sbc_level)
    expect_lt(level(sbc_shift(0.8))[["location"]], sbc_level)
    expect_lt(level(sbc_stretch(0.4))[["spread"]], sbc_level)
  })
}
