# As many replications as see a mean that is off by 0.5 posterior sds, and sds
# by 40 %, at this level, and of all problems together 0.3 and a fifth. All
# tests together raise a wrong alarm with probability 8e-5. bench/sbc.R has the
# same with 400 replications.
sbc_reps <- 60
sbc_level <- 5e-6

expect_calibrated <- function(scores) {
  p <- sbc_p_values(scores)
  for (test in names(p)) {
    expect(
      p[[test]] > sbc_level,
      paste0("ranks are not uniform: ", test, ", p = ", format(p[[test]]))
    )
  }
}

# So that the tests above are known to see what they are for. of: scores of
# draws that are spoiled.
expect_seen <- function(of, shift = 0.5, stretch = c(0.6, 1.6)) {
  spoiled <- function(spoil) sbc_p_values(of(spoil))
  expect_lt(spoiled(sbc_shift(shift))[["location"]], sbc_level)
  expect_lt(spoiled(sbc_shift(-shift))[["location"]], sbc_level)
  expect_lt(spoiled(sbc_stretch(stretch[[1]]))[["spread"]], sbc_level)
  expect_lt(spoiled(sbc_stretch(stretch[[2]]))[["spread"]], sbc_level)
}

# Runs of a problem, made once.
default_runs <- local({
  made <- list()
  function(name) {
    if (is.null(made[[name]])) {
      made[[name]] <<- sbc_runs(sbc_problems()[[name]], sbc_reps)
    }
    made[[name]]
  }
})

for (name in names(sbc_problems())) {
  test_that(paste("ranks under the default are uniform:", name), {
    skip_on_cran()
    runs <- default_runs(name)
    expect_calibrated(sbc_scores(runs))
    expect_seen(function(spoil) sbc_scores(runs, spoil))
  })
}

test_that("ranks under the default are uniform: all together", {
  skip_on_cran()
  together <- function(spoil = identity) {
    unlist(lapply(names(sbc_problems()), function(name) {
      sbc_scores(default_runs(name), spoil)
    }))
  }
  expect_calibrated(together())
  expect_seen(together, 0.3, c(0.8, 1.25))
})

# 1,000 rows are looked at in every step, of 5,000 a few are drawn.
aux_runs <- local({
  made <- list()
  function(n, name) {
    key <- paste(n, name)
    if (is.null(made[[key]])) {
      problem <- sbc_aux_problems(n)[[name]]
      made[[key]] <<- suppressWarnings(sbc_runs(problem, 25))
    }
    made[[key]]
  }
})

for (name in names(sbc_aux_problems(1))) {
  test_that(paste("ranks are uniform with a parameter beside:", name), {
    skip_on_cran()
    expect_calibrated(sbc_scores(aux_runs(1000, name)))
    many <- aux_runs(5000, name)
    kernels <- vapply(many, function(run) run$kernel, "")
    expect_gt(mean(kernels == "sgld"), 0.5)
    expect_calibrated(sbc_scores(many))
  })
}

test_that("ranks are uniform with a parameter beside: all together", {
  skip_on_cran()
  for (n in c(1000, 5000)) {
    together <- function(spoil = identity) {
      unlist(lapply(names(sbc_aux_problems(1)), function(name) {
        sbc_scores(aux_runs(n, name), spoil)
      }))
    }
    expect_calibrated(together())
    expect_seen(together, 0.3, c(0.8, 1.25))
  }
})

for (name in c("logistic", "poisson")) {
  test_that(paste("ranks are uniform where exact steps do not pay:", name), {
    skip_on_cran()
    local_way("order")
    runs <- sbc_runs(sbc_problems()[[name]], sbc_reps)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_identical(unique(kernels), "sgld")
    expect_calibrated(sbc_scores(runs))
  })
}

for (name in names(sbc_level_problems())) {
  test_that(paste("ranks are uniform with awkward rows as they are:", name), {
    skip_on_cran()
    runs <- sbc_runs(sbc_level_problems()[[name]], 60)
    kernels <- vapply(runs, function(run) run$kernel, "")
    expect_identical(unique(kernels), "smh")
    expect_calibrated(sbc_scores(runs))
    # of the level by itself, and so that this is known to see something
    level <- function(spoil = identity) {
      sbc_p_values(sbc_scores(runs, spoil)[3, ])
    }
    expect_gt(min(level()), sbc_level)
    expect_lt(level(sbc_shift(0.8))[["location"]], sbc_level)
    expect_lt(level(sbc_stretch(0.4))[["spread"]], sbc_level)
  })
}
