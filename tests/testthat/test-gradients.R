test_that("estimators print what they are", {
  mode <- find_mode(example_model())
  expect_snapshot({
    gradient_simple()
    gradient_full()
    gradient_cv()
    gradient_cv(1:8)
    gradient_cv(mode)
  })
})

test_that("a point, a mode and NULL are the same reference", {
  model <- example_model()
  mode <- find_mode(model)
  by_default <- quick_fit(model, gradient = gradient_cv())
  expect_identical(
    quick_fit(model, gradient = gradient_cv(mode))$draws,
    by_default$draws
  )
  # the same point; only the starting points come from the mode
  expect_identical(
    quick_fit(model, gradient = gradient_cv(coef(mode)))$draws,
    by_default$draws
  )
  elsewhere <- quick_fit(model, gradient = gradient_cv(coef(mode) + 1))
  expect_false(identical(elsewhere$draws, by_default$draws))
})

test_that("reference points are refused in words", {
  expect_snapshot(gradient_cv("a"), error = TRUE, cnd_class = TRUE)
  expect_snapshot(gradient_cv(c(1, NA)), error = TRUE)
  model <- example_model()
  expect_snapshot(
    sg_sample(model, kernel_sgld(1), gradient_cv(1:2), refresh = 0),
    error = TRUE
  )
  other <- find_mode(model_glm(matrix(1, 10), rep(0:1, 5)))
  expect_snapshot(
    sg_sample(model, kernel_sgld(1), gradient_cv(other), refresh = 0),
    error = TRUE
  )
})
