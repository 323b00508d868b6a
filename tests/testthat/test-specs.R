# A member that has a table in C and a constructor needs nothing more.

test_that("members without methods have defaults", {
  scheme <- new_spec("subsample", "mine", rate = 3)
  traits <- subsample_traits(scheme)
  expect_identical(traits$largest(50), 50)
  expect_identical(traits$light, scheme)
  expect_silent(traits$warn(c(50, 50), 50))
  sized <- new_spec("subsample", "mine", size = 0.1)
  expect_identical(subsample_traits(sized)$largest(50), 5)
  # steps that change count by their size
  expect_true(schedule_traits(new_spec("schedule", "mine"))$is_weighted)
  expect_match(gradient_traits(new_spec("gradient", "mine"))$text, "mine")
  kernel <- kernel_traits(new_spec("kernel", "mine"))
  expect_identical(kernel$text, "mine")
  expect_identical(kernel$bias_order, NA_real_)
  expect_null(kernel$tolerance)
})

test_that("the table of a kernel says that it has a Metropolis step", {
  fit <- sg_sample(
    target_normal(c(1, 2)),
    kernel_hmc(0.1, steps = 3),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  # as new_spec() makes it
  class(fit$kernel) <- setdiff(class(fit$kernel), "tall_metropolis")
  expect_output(print(fit), "HMC \\(exact\\), acceptance")
})

test_that("steps that explore are counted as the schedule's table has them", {
  schedule <- schedule_cyclical(length = 7, exploration = 0.4)
  explores <- function(t) t %% 7 < 3
  for (from in c(0, 1, 6, 50)) {
    for (n in c(0, 1, 5, 40)) {
      t <- from + seq_len(n) - 1
      expect_equal(count_collected(schedule, from, n), sum(!explores(t)))
    }
  }
  expect_equal(count_collected(schedule_decay(), 3, 1e12), 1e12)
})
