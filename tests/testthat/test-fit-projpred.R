# What projpred asks of a reference model, without it, and with it where it is
# installed.

projected_data <- function(n = 150) {
  withr::local_seed(1)
  data <- data.frame(a = rnorm(n), b = rnorm(n), e = runif(n, 0.5, 2))
  data$y <- data$a + rnorm(n)
  data$won <- factor(ifelse(data$y > 0, "yes", "no"))
  data$k <- rpois(n, data$e * exp(data$a / 2))
  data$m <- rbinom(n, 4, plogis(data$a))
  data$w <- rep(1:2, length.out = n)
  data
}

projected_fit <- function(formula, data, ...) {
  tall_glm(formula, data, ..., iter = 300, chains = 2, seed = 1, refresh = 0)
}

test_that("a reference model has the fit's predictors, and its draws", {
  data <- projected_data()
  fit <- projected_fit(
    y ~ a + b,
    data,
    prior = prior_hs(global_scale = 0.1),
    offset = e
  )
  ref <- refmodel_arguments(fit)
  expect_identical(deparse(ref$formula), ".response ~ a + b")
  draws <- posterior::as_draws_matrix(fit$draws)
  own <- tcrossprod(cbind(1, data$a, data$b), draws[, 1:3]) + data$e
  expect_close(ref$ref_predfun(fit), unname(own), "predictors", 1e-12)
  some <- ref$ref_predfun(fit, ref$data[7:9, ])
  expect_close(some, unname(own[7:9, ]), "some", 1e-12)
  expect_identical(ref$dis, as.numeric(draws[, "sigma"]))
  parts <- ref$extract_model_data(fit, NULL)
  expect_identical(parts$y, data$y)
  expect_identical(parts$offset, data$e)
  expect_null(ref$extract_model_data(fit, data[1:3, ], extract_y = FALSE)$y)
})

test_that("responses are numbers, with trials as weights and whole offsets", {
  data <- projected_data()
  won <- projected_fit(won ~ a, data, family = binomial())
  parts <- refmodel_arguments(won)$extract_model_data(won, NULL)
  expect_identical(parts$y, as.numeric(data$won == "yes"))
  expect_identical(parts$weights, rep(1, nrow(data)))
  of_four <- projected_fit(cbind(m, 4 - m) ~ a, data, family = binomial())
  parts <- refmodel_arguments(of_four)$extract_model_data(of_four, NULL)
  expect_identical(parts$y, as.numeric(data$m))
  expect_identical(parts$weights, rep(4, nrow(data)))
  counts <- projected_fit(
    k ~ a + offset(log(e)),
    data,
    family = poisson(),
    weights = w
  )
  ref <- refmodel_arguments(counts)
  parts <- ref$extract_model_data(counts, data[4:6, ])
  expect_identical(parts$weights, as.numeric(data$w[4:6]))
  expect_identical(parts$offset, log(data$e[4:6]))
  given <- ref$extract_model_data(counts, data[4:6, ], wrhs = ~e, orhs = 1:3)
  expect_identical(given[-1], list(weights = data$e[4:6], offset = 1:3))
  expect_identical(deparse(ref$formula), ".response ~ a")
})

test_that("folds are refitted without their rows", {
  data <- projected_data()
  fit <- projected_fit(won ~ a, data, family = binomial())
  folds <- rep(1:3, length.out = nrow(data))
  refits <- refmodel_arguments(fit)$cvfun(folds)
  expect_length(refits, 3)
  by_hand <- projected_fit(won ~ a, data[folds != 2, ], family = binomial())
  expect_identical(refits[[2]]$draws, by_hand$draws)
})

test_that("what cannot be projected is told", {
  data <- projected_data()
  fit <- projected_fit(k ~ a, data, family = neg_binomial_2(size = 2))
  expect_error(refmodel_arguments(fit), class = "tall_error_unsupported")
  lost <- projected_fit(y ~ a, data)
  rm(data)
  expect_error(refmodel_arguments(lost), class = "tall_error_stale")
})

test_that("projpred selects the columns that matter", {
  skip_if_not_installed("projpred")
  data <- projected_data()
  fit <- projected_fit(won ~ a + b, data, family = binomial())
  ref <- suppressWarnings(projpred::get_refmodel(fit))
  found <- suppressWarnings(projpred::cv_varsel(
    ref,
    cv_method = "kfold",
    K = 2,
    method = "forward",
    nclusters = 2,
    nclusters_pred = 5,
    verbose = FALSE
  ))
  table <- summary(found)$selection %||% as.data.frame(summary(found))
  expect_identical(as.character(table[[2]])[[2]], "a")
})
