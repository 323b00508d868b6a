# tall_glm(sparse = TRUE) fits what tall_glm() fits, and what is made of its
# draws is the same.

sparse_data <- function(n = 600) {
  withr::local_seed(1)
  data <- data.frame(
    z = stats::rnorm(n),
    g = factor(sample(letters, n, TRUE), letters),
    h = sample(c("u", "v", "w"), n, TRUE),
    o = stats::rnorm(n) / 5
  )
  data$y <- stats::rbinom(n, 1, stats::plogis(data$z))
  data$number <- data$z + stats::rnorm(n)
  data
}

# Two fits of the same draws, so that what is made of them can be compared.
sparse_fits <- function(formula, data, family, ...) {
  fit <- function(sparse) {
    tall_glm(
      formula,
      data,
      family,
      iter = 60,
      seed = 1,
      refresh = 0,
      sparse = sparse,
      ...
    )
  }
  out <- suppressWarnings(list(dense = fit(FALSE), sparse = fit(TRUE)))
  out$sparse$draws <- out$dense$draws
  out
}

# f of both, which must agree.
expect_same <- function(fits, f) {
  expect_equal(f(fits$sparse), f(fits$dense), tolerance = 1e-9)
}

data <- sparse_data()
fits <- sparse_fits(y ~ z * h + g + offset(o), data, stats::binomial())

test_that("the design is that of model.matrix(), and sparse", {
  x <- stats::model.matrix(fits$sparse)
  dense <- stats::model.matrix(fits$dense)
  expect_true(is_sparse(x))
  expect_identical(dimnames(x), dimnames(dense))
  expect_equal(as.matrix(x), dense, ignore_attr = TRUE)
  expect_identical(fits$sparse$contrasts, fits$dense$contrasts)
  expect_identical(fits$sparse$variables, fits$dense$variables)
})

test_that("priors are those of the dense design", {
  made <- lapply(fits, function(fit) rebuild_model(fit)$prior)
  expect_equal(made$sparse, made$dense, tolerance = 1e-12)
  made <- lapply(fits, function(fit) rebuild_model(fit)$prior_functional)
  expect_equal(made$sparse, made$dense, tolerance = 1e-12)
})

test_that("predictions are those of the dense design", {
  skip_if_not_installed("rstantools")
  new <- data[5:40, ]
  new$g[3] <- NA
  new$z[7] <- NA
  new$h[9] <- NA
  for (rows in list(NULL, new)) {
    for (type in c("link", "response")) {
      expect_same(fits, function(fit) {
        stats::predict(fit, rows, type = type, se.fit = TRUE)
      })
    }
    expect_same(fits, function(fit) {
      rstantools::posterior_epred(fit, rows, draws = 20)
    })
    expect_same(fits, function(fit) {
      rstantools::posterior_linpred(fit, newdata = rows, draws = 20)
    })
    expect_same(fits, function(fit) {
      suppressWarnings(
        rstantools::posterior_predict(fit, rows, draws = 20, seed = 1)
      )
    })
  }
  expect_true(all(is.na(stats::predict(fits$sparse, new)[c(3, 7, 9)])))
  expect_same(fits, stats::fitted)
  expect_same(fits, stats::residuals)
  expect_same(fits, rstantools::bayes_R2)
  expect_same(fits, function(fit) {
    rstantools::predictive_interval(fit, seed = 1)
  })
})

test_that("log likelihoods and loo are those of the dense design", {
  skip_if_not_installed("loo")
  skip_if_not_installed("rstantools")
  expect_same(fits, function(fit) rstantools::log_lik(fit, draws = 30))
  expect_same(fits, function(fit) rstantools::log_lik(fit, data[1:9, ]))
  expect_same(fits, function(fit) suppressWarnings(loo::loo(fit))$estimates)
})

test_that("a Gaussian response, too", {
  fits <- sparse_fits(number ~ z + g, data, stats::gaussian())
  expect_same(fits, function(fit) stats::predict(fit, se.fit = TRUE))
  expect_same(fits, function(fit) stats::predict(fit, data[1:3, ]))
  expect_same(fits, function(fit) fit$blueprint$priors)
})

test_that("NULL looks whether the design is mostly zeros", {
  run <- function(formula) {
    tall_glm(
      formula,
      data,
      stats::binomial(),
      iter = 4,
      chains = 1,
      seed = 1,
      refresh = 0,
      sparse = NULL
    )
  }
  expect_true(suppressWarnings(run(y ~ z + g))$sparse)
  expect_false(suppressWarnings(run(y ~ z + h))$sparse)
  expect_snapshot(tall_glm(y ~ z, data, sparse = "yes"), error = TRUE)
})

test_that("a sparse fit goes on, also after it was saved", {
  run <- function(fit) unclass(sg_resume(fit, iter = 6, refresh = 0)$draws)
  fit <- tall_glm(
    y ~ z + g,
    data,
    stats::binomial(),
    iter = 20,
    chains = 2,
    seed = 1,
    refresh = 0,
    sparse = TRUE
  )
  again <- unserialize(serialize(fit, NULL))
  expect_identical(run(again), run(fit))
  watched <- tall_glm(
    y ~ z + g,
    data,
    stats::binomial(),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0,
    sparse = TRUE,
    monitor = list(loss = monitor_log_loss(data[1:50, ]), every = 5)
  )
  expect_true(all(is.finite(watched$monitor$value)))
  expect_error(
    tall_glm(
      y ~ z + g,
      data,
      stats::binomial(),
      sparse = TRUE,
      monitor = list(error = monitor_rmse(data[1:50, ]), every = 5)
    ),
    class = "tall_error_unsupported"
  )
})

test_that("tall_glm.fit() takes a sparse matrix, and so does newdata", {
  x <- Matrix::sparse.model.matrix(~ z + g, data)
  designs <- list(dense = as.matrix(x), sparse = x)
  weights <- rep(0:2, length.out = nrow(data))
  fits <- lapply(designs, function(x) {
    tall_glm.fit(
      x,
      data$y,
      stats::binomial(),
      weights = weights,
      iter = 20,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  })
  fits$sparse$draws <- fits$dense$draws
  expect_same(fits, stats::predict)
  for (new in designs) {
    expect_same(fits, function(fit) {
      unname(stats::predict(fit, new[1:9, ], type = "response"))
    })
  }
  nameless <- x[, 1:3]
  dimnames(nameless) <- list(NULL, NULL)
  expect_error(
    stats::predict(fits$sparse, nameless),
    class = "tall_error_input"
  )
  bad <- x
  bad@x[[4]] <- Inf
  expect_error(tall_glm.fit(bad, data$y), class = "tall_error_input")
})
