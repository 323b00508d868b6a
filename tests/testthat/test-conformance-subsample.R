model <- subsample_model()
schemes <- conformance_subsamples(model)

test_that("every registered subsampling scheme has an entry", {
  expect_covered("subsample", unique(vapply(schemes, function(e) e$name, "")))
})

for (label in names(schemes)) {
  entry <- schemes[[label]]
  says <- function(law) paste0(label, ": ", law)
  if (entry$name == "fixed") {
    test_that("fixed: the minibatch is the given one, every time", {
      drawn <- draw_batches(model, entry$spec, 4)
      expect_identical(drawn$index, matrix(entry$spec$args$index, 3, 4))
      multiplier <- matrix(entry$spec$args$multiplier, 3, 4)
      expect_identical(drawn$multiplier, multiplier)
    })
    next
  }

  test_that(says("rows are in range and as many as asked for"), {
    law_indices(entry, model)
  })

  test_that(says("a row counts 1 / (n p_i)"), {
    law_multipliers(entry, model)
  })

  test_that(says("rows are drawn with their probabilities"), {
    law_frequencies(entry, model)
  })

  test_that(says("multipliers total the number of rows in expectation"), {
    law_total(entry, model)
  })
}

test_that("the rows visited do not depend on the kernel", {
  sizes <- function(kernel) {
    fit <- sg_sample(
      model,
      kernel_still(kernel),
      gradient_simple(),
      subsample_uniform(3),
      iter = 20,
      warmup = 0,
      chains = 2,
      seed = 3,
      init = c(0.1, 0.2, 0.3),
      keep = c("draws", "gradients"),
      refresh = 0
    )
    fit$gradients
  }
  expect_identical(
    sizes(kernel_sgld(1)),
    sizes(kernel_sgld(1, integrator = "leimkuhler-matthews"))
  )
})

test_that("a minibatch without replacement cannot exceed the data", {
  expect_error(
    draw_batches(model, subsample_uniform(9, replace = FALSE), 1),
    class = "tall_error_input"
  )
})
