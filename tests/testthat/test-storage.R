# Rows in single precision.

# Standard deviations at the mode.
mode_sds <- function(model) {
  sqrt(diag(chol2inv(t(find_mode(model)$chol))))
}

expect_same_sds <- function(make) {
  double <- mode_sds(make("double"))
  float <- mode_sds(make("float"))
  expect_lt(max(abs(float / double - 1)), 1e-4)
}

test_that("standard deviations are those in double precision: sepsis", {
  data <- full_data("sepsis")
  x <- stats::model.matrix(~ . - hospital_outcome_1alive_0dead, data)
  y <- data$hospital_outcome_1alive_0dead
  expect_same_sds(function(storage) model_glm(x, y, storage = storage))
})

test_that("standard deviations are those in double precision: CASP", {
  data <- full_data("casp")
  x <- stats::model.matrix(RMSD ~ ., data)
  y <- data$RMSD
  expect_same_sds(function(storage) {
    model_glm(x, y, "gaussian", prior = NULL, storage = storage)
  })
  expect_same_sds(function(storage) {
    model_glm(x, y > mean(y), storage = storage)
  })
})

sample_rows <- function(n = 5000) {
  withr::local_seed(1)
  x <- cbind("(Intercept)" = 1, a = stats::rnorm(n), b = stats::rexp(n))
  y <- stats::rbinom(n, 1, stats::plogis(x %*% c(-1, 1, 0.5)))
  list(x = x, y = y)
}

test_that("a model is of the rounded rows, in half the memory", {
  rows <- sample_rows()
  double <- model_glm(rows$x, rows$y)
  float <- model_glm(rows$x, rows$y, storage = "float")
  rounded <- model_glm(as_single(rows$x), rows$y)
  expect_identical(float$fingerprint, rounded$fingerprint)
  expect_false(identical(float$fingerprint, double$fingerprint))
  theta <- c(-1, 1, 0.5)
  expect_close(
    model_evaluate(float, theta)$gradient,
    model_evaluate(rounded, theta)$gradient
  )
  saved <- model_info(double)$memory - model_info(float)$memory
  expect_identical(saved, 4 * length(rows$x))
})

test_that("whitened rows are rounded, and sums are of those", {
  rows <- sample_rows(500)
  model <- model_glm(rows$x, rows$y, storage = "float")
  mode <- find_mode(model)
  white <- whiten_model(model, mode, in_place = FALSE)
  expect_true(model_is_whitened(white))
  phi <- c(0.3, -1, 2)
  direct <- model_evaluate(white, phi, "likelihood")
  by_rows <- rowSums(vapply(seq_len(500), function(i) {
    model_evaluate(white, phi, "likelihood", index = i)$gradient
  }, phi))
  expect_close(direct$gradient, by_rows)
  expected <- model_evaluate(
    model,
    mode$estimate + backsolve(t(mode$chol), phi),
    "likelihood"
  )
  expect_close(
    direct$gradient,
    forwardsolve(mode$chol, expected$gradient),
    tolerance = 1e-6
  )
  # at the mode the Hessian is -1
  rise <- model_evaluate(white, diag(1e-3, 3))$gradient -
    model_evaluate(white, diag(-1e-3, 3))$gradient
  expect_close(rise / 2e-3, -diag(3), tolerance = 1e-5)
})

test_that("every model with rows takes them in single precision", {
  rows <- sample_rows(300)
  x <- rows$x[, -1]
  for (make in list(
    function(...) model_gaussian(x, diag(2), ...),
    function(...) model_ica(x, ...),
    function(...) model_network(x, x[, 1], layers = 3, ...)
  )) {
    double <- make()
    float <- make(storage = "float")
    expect_identical(make(storage = "double")$fingerprint, double$fingerprint)
    expect_false(identical(float$fingerprint, double$fingerprint))
    expect_lt(model_info(float)$memory, model_info(double)$memory)
    theta <- seq(0.1, 1, length.out = double$n_dim)
    expect_close(
      model_evaluate(float, theta)$gradient,
      model_evaluate(double, theta)$gradient,
      tolerance = 1e-5
    )
  }
})

test_that("fits with rows in single precision go on from a file", {
  rows <- sample_rows()
  data <- data.frame(y = rows$y, rows$x[, -1])
  again <- function(fit) {
    path <- withr::local_tempfile()
    saveRDS(fit, path)
    sg_resume(readRDS(path), 20)
  }
  fit <- tall_glm(
    y ~ a + b,
    data,
    binomial(),
    storage = "float",
    iter = 100,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$storage, "float")
  expect_identical(plain_draws(again(fit)), plain_draws(sg_resume(fit, 20)))
  matrices <- tall_glm.fit(
    rows$x,
    rows$y,
    binomial(),
    storage = "float",
    iter = 100,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(plain_draws(matrices), plain_draws(fit))
  expect_identical(plain_draws(again(matrices)), plain_draws(again(fit)))
  ica <- tall_ica(
    rows$x[, -1],
    init = "identity",
    storage = "float",
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(plain_draws(again(ica)), plain_draws(sg_resume(ica, 20)))
  nn <- tall_nn(
    y ~ a,
    data[1:50, ],
    hidden = 2,
    storage = "float",
    train_iter = 10,
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(nn$storage, "float")
  expect_identical(plain_draws(again(nn)), plain_draws(sg_resume(nn, 20)))
})

test_that("what single precision cannot keep is refused", {
  rows <- sample_rows(20)
  expect_error(
    model_glm(rows$x, rows$y, storage = "half"),
    "one of \"double\" or \"float\"",
    class = "tall_error_input"
  )
  rows$x[7, 2] <- -4e38
  said <- expect_error(
    model_glm(rows$x, rows$y, storage = "float"),
    class = "tall_error_input"
  )
  expect_match(conditionMessage(said), "row 7, column 2 (`a`)", fixed = TRUE)
  expect_no_error(model_glm(rows$x, rows$y))
})
