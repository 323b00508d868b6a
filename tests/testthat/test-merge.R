# Models of distinct rows with weights have the density, gradient and draws of
# those of all rows.

same_posterior <- function(model, merged) {
  withr::local_seed(1)
  points <- matrix(rnorm(3 * model$n_dim), model$n_dim) / 2
  expect_equal(
    model_evaluate(merged, points),
    model_evaluate(model, points),
    tolerance = 1e-10
  )
}

few_rows <- function(n = 400) {
  withr::local_seed(2)
  data.frame(
    y = rbinom(n, 1, 0.4),
    x = sample(0:2, n, replace = TRUE) / 2,
    g = factor(sample(letters[1:4], n, replace = TRUE)),
    id = seq_len(n)
  )
}

binary_model <- function(data = few_rows(), ...) {
  model_custom(
    function(theta, batch) {
      eta <- theta$a[batch$g] + theta$b * batch$x
      batch$y * eta - log1p(exp(eta))
    },
    function(theta) -sum(theta$a^2) / 2 - theta$b^2 / 2,
    data,
    list(a = numeric(4), b = 0),
    ...
  )
}

test_that("equal rows of a user's model are looked at once", {
  data <- few_rows()
  model <- binary_model(data)
  merged <- merge_rows(model)
  # the column that no function looks at does not tell rows apart
  expect_identical(merged$n_data, nrow(unique(data[c("y", "x", "g")])) + 0)
  same_posterior(model, merged)
  # squares of rows, by which weights are made, are those of all that are equal
  expect_equal(
    sum(row_log_lik(merged, merged$start)),
    sum(row_log_lik(model, model$start))
  )
})

test_that("so are those with gradients by hand, by differences, of matrices", {
  data <- few_rows()
  by_hand <- function(theta, batch) {
    r <- batch$y - plogis(theta$a[batch$g] + theta$b * batch$x)
    cbind(outer(as.integer(batch$g), 1:4, "==") * r, r * batch$x)
  }
  model <- binary_model(data, grad_log_lik = by_hand)
  same_posterior(model, merge_rows(model))
  expect_warning(
    model <- binary_model(data, autodiff = FALSE),
    class = "tall_warning_gradient"
  )
  same_posterior(model, merge_rows(model))
  model <- model_custom(
    function(theta, batch) {
      eta <- drop(batch$x %*% theta$b)
      # a comparison of data, which a tape cannot read
      ifelse(batch$y == 1, eta, 0) - log1p(exp(eta))
    },
    function(theta) -sum(theta$b^2) / 2,
    list(y = data$y, x = cbind(1, data$x)),
    list(b = numeric(2))
  )
  expect_identical(merge_rows(model)$n_data, 6)
  same_posterior(model, merge_rows(model))
})

test_that("a Gibbs posterior keeps its temperature", {
  model <- temper_model(binary_model(), 100)
  same_posterior(model, merge_rows(model))
})

test_that("rows are not merged where that saves little, or would be wrong", {
  data <- few_rows()
  data$x <- rnorm(nrow(data))
  expect_null(merge_rows(binary_model(data)))
  # what it makes of a row depends on the others
  model <- model_custom(
    function(theta, batch) -(batch$y - theta$m - mean(batch$y))^2,
    function(theta) 0,
    few_rows(),
    list(m = 0),
    check = FALSE
  )
  expect_null(merge_rows(model))
  x <- cbind(1, rep(0:1, 50))
  # of models whose rows are never merged
  expect_null(merge_rows(model_glm(x, rep(0:1, 50))))
})

test_that("equal rows of classes are one, with the sum of their weights", {
  data <- few_rows()
  x <- cbind("(Intercept)" = 1, x = data$x)
  class <- cut(data$id %% 7, c(-1, 2, 4, 7), labels = c("a", "b", "c"))
  weights <- 1 + data$id %% 3
  for (method in c("softmax", "logistic", "probit")) {
    columns <- if (method == "softmax") 1:2 else 2
    for (storage in c("double", "float")) {
      model <- model_classes(
        x[, columns, drop = FALSE],
        class,
        method,
        weights = weights,
        offset = if (method != "softmax") data$x / 2,
        storage = storage
      )
      merged <- merge_rows(model)
      expect_identical(merged$n_data, 9)
      same_posterior(model, merged)
    }
  }
})

test_that("more distinct rows than a quarter are left as they are", {
  withr::local_seed(3)
  x <- cbind("(Intercept)" = 1, x = rnorm(100))
  expect_null(merge_rows(model_classes(x, rep(c("a", "b"), 50))))
})
