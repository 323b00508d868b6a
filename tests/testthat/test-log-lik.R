skip_if_not_installed("rstantools")

direct_log_lik <- function(case) {
  mu <- direct_mean(case$fit)
  y <- rep(case$y, each = nrow(mu))
  out <- case$density(y, mu, direct_sigma(case$fit))
  no_names(rep(case$weight %||% 1, each = nrow(mu)) * matrix(out, nrow(mu)))
}

test_that("log likelihoods are those of R's densities", {
  for (name in names(method_cases())) {
    case <- method_cases()[[name]]
    expected <- direct_log_lik(case)
    found <- rstantools::log_lik(case$fit)
    expect_close(no_names(found), expected, name, tolerance = 1e-9)

    f <- rstantools::log_lik(case$fit, pointwise = TRUE)
    rows <- c(2, 5, 60)
    by_rows <- f(attr(f, "data")[rows, , drop = FALSE], attr(f, "draws"))
    expect_close(by_rows, expected[, rows], name, tolerance = 1e-9)
    # at one draw it answers for all rows at once
    for (draw in 1:2) {
      at <- attr(f, "draws")[draw, , drop = FALSE]
      one <- f(attr(f, "data")[7, , drop = FALSE], at)
      expect_close(one, expected[draw, 7], name, tolerance = 1e-9)
    }
  }
})

test_that("the log density of predictors leaves them as they are", {
  # as a call's own value, which nobody else has
  predictors <- list(rbind(c(-3, 0.5), c(0, 40)) + 0)
  expected <- stats::dbinom(1, 1, stats::plogis(predictors[[1]]), log = TRUE)
  found <- .Call(
    ffi_response_evaluate,
    1L,
    0L,
    predictors[[1]],
    2L,
    c(1, 1),
    NULL,
    NULL,
    FALSE
  )
  expect_equal(found, as.numeric(expected))
  expect_identical(predictors[[1]], rbind(c(-3, 0.5), c(0, 40)))
})

test_that("they agree with the model that was sampled", {
  # up to terms without parameters
  for (name in c(
    "bernoulli",
    "weighted",
    "cbind",
    "poisson",
    "gaussian",
    "known"
  )) {
    fit <- method_cases()[[name]]$fit
    model <- rebuild_model(fit)
    draws <- as.matrix(fit)[1:5, , drop = FALSE]
    if (model$traits$n_aux > 0) {
      draws[, "sigma"] <- log(draws[, "sigma"])
    }
    core <- apply(draws, 1, function(theta) {
      model_evaluate(model, theta, "likelihood")$log_density
    })
    own <- rowSums(rstantools::log_lik(fit))[1:5]
    expect_close(core - core[[1]], own - own[[1]], name, tolerance = 1e-8)
  }
})

test_that("new rows bring their responses and weights", {
  for (name in setdiff(names(method_cases()), "poisson")) {
    fit <- method_cases()[[name]]$fit
    data <- eval(fit$call$data, environment(fit$formula))
    again <- rstantools::log_lik(fit, data, ndraws = 10)
    own <- rstantools::log_lik(fit, ndraws = 10)
    expect_close(no_names(again), no_names(own), name)
  }
})

test_that("a factor response keeps its levels", {
  data <- example_data(50)
  data$f <- factor(ifelse(data$y == 1, "yes", "no"))
  fit <- quick_glm(f ~ a, data, iter = 100)
  plain <- quick_glm(y ~ a, data, iter = 100)
  expect_identical(rstantools::log_lik(fit), rstantools::log_lik(plain))
  yes <- data[data$f == "yes", ]
  expect_close(
    no_names(rstantools::log_lik(fit, yes)),
    no_names(rstantools::log_lik(plain, yes))
  )
  yes$f <- "maybe"
  expect_snapshot(rstantools::log_lik(fit, yes), error = TRUE)
})

test_that("loo of small data is loo::loo()", {
  skip_if_not_installed("loo")
  for (name in c("weighted", "gaussian")) {
    case <- method_cases()[[name]]
    values <- direct_log_lik(case)
    chain <- rep(1:4, each = 100)
    r_eff <- loo::relative_eff(exp(values), chain_id = chain)
    expected <- suppressWarnings(loo::loo(values, r_eff = r_eff))
    found <- suppressWarnings(loo::loo(case$fit))
    expect_close(found$estimates, expected$estimates, name, tolerance = 1e-8)
    expect_identical(attr(found, "model_name"), "case$fit")
    waic <- suppressWarnings(loo::waic(case$fit))
    expected <- suppressWarnings(loo::waic(values))
    expect_close(waic$estimates, expected$estimates, name, tolerance = 1e-8)
  }
})

test_that("loo of tall data estimates it from a subsample", {
  skip_if_not_installed("loo")
  data <- example_data(3000)
  fit <- quick_glm(y ~ a + b, data)
  exact <- loo::loo(fit, observations = NULL, draws = 1000)
  expect_s3_class(exact, "psis_loo")
  some <- loo::loo(fit, draws = 1000, seed = 1)
  expect_s3_class(some, "psis_loo_ss")
  expect_identical(nrow(some$pointwise), 400L)
  error <- some$estimates["elpd_loo", "Estimate"] -
    exact$estimates["elpd_loo", "Estimate"]
  expect_lt(abs(error), 5 * some$estimates["elpd_loo", "subsampling SE"] + 0.1)
  set.seed(3)
  before <- .Random.seed
  expect_identical(
    loo::loo(fit, draws = 1000, seed = 1)$pointwise,
    some$pointwise
  )
  expect_identical(.Random.seed, before)

  smaller <- quick_glm(y ~ a, data)
  same <- loo::loo(smaller, observations = some, draws = 1000)
  expect_s3_class(loo::loo_compare(some, same), "compare.loo")
  rows <- loo::loo(fit, observations = c(5, 10, 15), draws = 100)
  expect_identical(rows$pointwise[, "idx"], c(5, 10, 15))
})

test_that("loo says what it lacks", {
  skip_if_not_installed("loo")
  fit <- quick_glm(iter = 100, keep_data = FALSE)
  expect_snapshot(loo::loo(fit), error = TRUE, cnd_class = TRUE)
  fit <- method_cases()$bernoulli$fit
  expect_snapshot(loo::loo(fit, observations = 0), error = TRUE)
  expect_snapshot(loo::loo(fit, observations = c(1, 61)), error = TRUE)
  expect_snapshot(loo::loo(fit, draws = 401), error = TRUE)
  fit$n_data <- 2e5
  expect_error(loo::loo(fit, observations = NULL), class = "tall_error_memory")
})

test_that("responses and weights of new rows are missed in words", {
  fit <- method_cases()$known$fit
  expect_snapshot(rstantools::log_lik(fit, data.frame(a = 1)), error = TRUE)
  expect_snapshot(
    rstantools::log_lik(fit, data.frame(a = 1, z = 1)),
    error = TRUE
  )
  x <- example_matrix()
  fit <- tall_glm.fit(
    x,
    example_data()$y,
    "bernoulli",
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_snapshot(rstantools::log_lik(fit, x), error = TRUE)
})

test_that("log likelihoods with weights are those that are sampled", {
  withr::local_seed(5)
  data <- data.frame(x = rnorm(40), w = runif(40, 0.2, 3))
  data$y <- 1 + data$x + rnorm(40) / sqrt(data$w)
  fit <- tall_glm(
    y ~ x,
    data,
    weights = w,
    prior = prior_flat(),
    prior_intercept = prior_flat(),
    prior_aux = prior_flat(),
    iter = 100,
    seed = 1,
    refresh = 0
  )
  # up to a constant the log posterior of the draws, on the scale of log sigma
  total <- rowSums(rstantools::log_lik(fit))
  target <- as.double(fit$log_posterior) - log(draws_matrix(fit)[, "sigma"])
  expect_lt(diff(range(total - target)), 1e-8 * diff(range(total)))
})

test_that("fits of the same data take the same rows, unless told", {
  skip_if_not_installed("loo")
  data <- example_data(3000)
  fit <- quick_glm(y ~ a + b, data, iter = 400, chains = 2)
  smaller <- quick_glm(y ~ b, data, iter = 400, chains = 2)
  withr::local_seed(1)
  one <- suppressWarnings(loo::loo(fit))
  stats::runif(3)
  two <- suppressWarnings(loo::loo(smaller))
  expect_identical(loo::obs_idx(one), loo::obs_idx(two))
  expect_no_warning(compared <- loo::loo_compare(one, two))
  # paired: far below that of either
  expect_lt(compared[2, "subsampling_se_diff"], one$estimates["elpd_loo", "SE"])
  other <- suppressWarnings(loo::loo(fit, seed = 2))
  expect_false(identical(loo::obs_idx(one), loo::obs_idx(other)))
  some <- suppressWarnings(loo::loo_subsample(smaller, observations = 400))
  expect_identical(loo::obs_idx(some), loo::obs_idx(one))
  # models of other kinds, too
  model <- model_glm(cbind(1, data$a), data$y)
  plain <- suppressWarnings(loo::loo(quick_fit(model, iter = 100)))
  expect_identical(loo::obs_idx(plain), loo::obs_idx(one))
  expect_identical(runif(1), withr::with_seed(1, runif(4))[[4]])
})

test_that("loo() takes one fit, and named arguments that loo knows", {
  skip_if_not_installed("loo")
  fit <- quick_glm(iter = 100, chains = 1)
  expect_snapshot(loo::loo(fit, fit), error = TRUE, cnd_class = TRUE)
  for (f in list(loo::loo, loo::loo_subsample, loo::waic)) {
    expect_error(f(fit, fit), "loo_compare", class = "tall_error_input")
    expect_error(f(fit, k = 2), class = "tall_error_input")
  }
  kept <- suppressWarnings(loo::loo(fit, save_psis = TRUE))
  expect_s3_class(kept$psis_object, "psis")
  # as many as there are
  expect_s3_class(suppressWarnings(loo::loo_subsample(fit)), "psis_loo")
})

test_that("responses of new data are those of the family", {
  skip_if_not_installed("rstantools")
  data <- example_data(60)
  counts <- quick_glm(count ~ a, data, poisson(), iter = 40, chains = 1)
  new <- transform(data[1:3, ], count = c(1, 2.5, 3))
  expect_error(
    rstantools::log_lik(counts, newdata = new),
    "value 2 is 2.5",
    class = "tall_error_input"
  )
  new$count[[2]] <- NA
  expect_identical(
    unname(is.na(rstantools::log_lik(counts, newdata = new)[1, ])),
    c(FALSE, TRUE, FALSE)
  )
  expect_error(
    log_loss(counts, transform(data[1:3, ], count = 0.5)),
    class = "tall_error_input"
  )
  data$share <- rep(c(0.25, 0.5, 0.75), 20)
  data$n <- 4
  shares <- here_glm(share ~ a, family = binomial(), weights = n, iter = 40)
  new <- transform(data[1:3, ], share = c(0.25, 0.3, 0.5))
  expect_error(
    rstantools::log_lik(shares, newdata = new),
    "0.3 x 4 = 1.2",
    class = "tall_error_input"
  )
})
