# Rows of a model frame that are alike count as one in the model of a fit: the
# same density, priors and draws, and rows wherever a user asks for them.

class_kinds <- function(n = 4000, seed = 3) {
  withr::with_seed(seed, {
    data <- data.frame(
      a = factor(sample(c("u", "v", "w"), n, TRUE, c(0.6, 0.3, 0.1))),
      b = sample(c("no", "yes"), n, TRUE),
      k = sample(6L, n, TRUE),
      on = sample(c(TRUE, FALSE), n, TRUE),
      w = sample(0:2, n, TRUE),
      z = stats::rnorm(n)
    )
    eta <- 0.5 * (data$a == "v") - 0.2 * data$k + 0.4 * data$on
    y <- cut(eta + stats::rlogis(n), c(-Inf, -1.5, 0, 1, Inf), labels = FALSE)
    data$y <- ordered(y)
    data$count <- stats::rnbinom(n, size = 2, mu = exp(eta / 2)) *
      stats::rbinom(n, 1, 0.8)
    data$share <- round(stats::plogis(eta + stats::rnorm(n)), 1)
    data$share <- pmin(pmax(data$share, 0.1), 0.9)
    data$k[c(7, n - 1)] <- NA
    data
  })
}

# The same call with alike rows counted once, and with all rows.
both_ways <- function(call, env = parent.frame()) {
  run <- function() suppressMessages(suppressWarnings(eval(call, env)))
  list(alike = run(), all = local({
    local_settings(ties = list(least = 1e9))
    run()
  }))
}

# So few rows are many.
local_few_rows <- function(rows = 100, env = parent.frame()) {
  local_settings(
    ties = list(least = rows),
    recipe = list(small_data = rows),
    .frame = env
  )
}

test_that("kinds of rows are those of the frame's columns", {
  local_settings(ties = list(least = 100))
  data <- class_kinds(3000)[c("a", "b", "k", "on", "y")]
  data$m <- cbind(data$k, data$on)
  data$d <- as.Date("2020-01-01") + data$k
  found <- frame_kinds(data)
  key <- do.call(paste, lapply(data[c("a", "b", "k", "on", "y")], format))
  expect_identical(found$first, as.double(which(!duplicated(key))))
  expect_identical(found$count, as.double(table(key)[unique(key)]))
  # too few rows, too many kinds, or a type that is not known
  expect_null(frame_kinds(data[1:100, ]))
  expect_null(frame_kinds(transform(data, z = stats::rnorm(3000))))
  # some are alike, and too few
  data$id <- rep_len(1:1500, 3000)
  expect_null(frame_kinds(data))
  expect_length(frame_kinds(data, asks = FALSE)$count, sum(!duplicated(data)))
  expect_null(frame_kinds(transform(data["a"], i = complex(3000))))
})

test_that("moments are those of all rows", {
  withr::local_seed(1)
  x <- cbind(1, stats::rnorm(40, 100), rep(c(0, 0, 0, 2), 10), 1 / 3)
  count <- as.double(sample(9, 40, TRUE))
  every <- x[rep(1:40, count), ]
  for (own in list(x, as_columns(Matrix::Matrix(x, sparse = TRUE)))) {
    found <- counted_moments(own, count)
    expect_equal(found$mean, colMeans(every), tolerance = 1e-14)
    expect_equal(found$sd, apply(every, 2, stats::sd), tolerance = 1e-12)
  }
  expect_identical(counted_moments(x, count)$sd[c(1, 4)], c(0, 0))
})

test_that("densities and priors are those of all rows", {
  data <- class_kinds()
  short <- quote(list(iter = 4, warmup = 2, chains = 1, seed = 1, refresh = 0))
  calls <- alist(
    tall_polr(y ~ a + poly(k, 2) + on, data[!is.na(data$k), ],
      subset = z < 1),
    tall_polr(y ~ a * on + offset(k / 9), data, "probit", weights = w),
    tall_polr(y ~ k, data, offset = log(k), prior_counts = 2,
      storage = "float"),
    tall_multinom(y ~ b + k, data, weights = w, subset = k > 1),
    tall_glm(list(count ~ a, zi ~ k), data, zero_inflated_poisson()),
    tall_glm(list(count ~ a + k, shape ~ on), data, neg_binomial_2(),
      weights = w),
    tall_glm(list(share ~ a, phi ~ b), data, beta_regression()),
    tall_glm(count ~ a + offset(k / 9), data, neg_binomial_2()),
    tall_glm(share ~ a * k, data, beta_regression(), sparse = TRUE)
  )
  for (call in calls) {
    call <- as.call(c(as.list(call), eval(short)))
    fits <- both_ways(call)
    text <- deparse1(call)
    expect_identical(fits$alike$n_data, fits$all$n_data)
    expect_lt(fits$alike$n_differ, fits$all$n_data / 4)
    expect_null(fits$all$n_differ)
    expect_equal(fits$alike$prior, fits$all$prior, info = text)
    models <- lapply(fits, function(fit) {
      fit$model <- NULL
      fit_model(fit)
    })
    expect_equal(models$alike$center, models$all$center, info = text)
    expect_equal(models$alike$start, models$all$start, info = text)
    withr::local_seed(1)
    theta <- matrix(stats::rnorm(3 * models$all$n_dim) / 3, ncol = 3)
    value <- lapply(models, model_evaluate, theta)
    tolerance <- if (identical(call$storage, "float")) 1e-6 else 1e-10
    expect_equal(value$alike$log_density, value$all$log_density,
      tolerance = tolerance, info = text)
    expect_equal(value$alike$gradient, value$all$gradient,
      tolerance = 100 * tolerance, info = text)
  }
})

test_that("posteriors are those of all rows", {
  data <- class_kinds()
  for (seed in 1:2) {
    fits <- both_ways(quote(tall_polr(y ~ a + k, data, seed = seed)))
    expect_same_posterior(fits$alike, fits$all)
    expect_match(fits$alike$plan, "; alike ones count as one, [0-9]+ rows dif")
  }
  # minibatches of more rows that differ
  data <- class_kinds(20000)
  fits <- both_ways(quote(tall_polr(y ~ a + b + k + on, data, seed = 1)))
  expect_same_posterior(fits$alike, fits$all)
  spent <- function(fit) sum(fit$preparation)
  expect_lt(spent(fits$alike), spent(fits$all) / 4)
})

test_that("what follows a fit is of rows", {
  data <- class_kinds(500)
  local_few_rows()
  call <- quote(tall_polr(y ~ a + k, data, iter = 240, seed = 1))
  fits <- both_ways(call)
  # the draws of the one with the rows of the other
  other <- fits$all
  other[c("draws", "unconstrained")] <- fits$alike[c("draws", "unconstrained")]
  n <- nrow(data) - 2
  expect_equal(nobs(fits$alike), n)
  own <- log_lik(fits$alike, draws = 50)
  expect_identical(dim(own), c(50L, as.integer(n)))
  expect_equal(own, log_lik(other, draws = 50))
  expect_equal(fitted(fits$alike), fitted(other))
  expect_identical(nrow(predict(fits$alike, type = "probs")), as.integer(n))
  skip_if_not_installed("loo")
  expect_equal(
    loo::loo(fits$alike)$estimates,
    loo::loo(other)$estimates,
    tolerance = 0.01
  )
  again <- suppressMessages(loo::kfold(fits$alike, K = 2))
  expect_equal(
    again$estimates[1, 1],
    loo::loo(fits$alike)$estimates[1, 1],
    tolerance = 0.01
  )
})

test_that("fits of alike rows go on", {
  data <- class_kinds()
  run <- function(iter) {
    tall_multinom(y ~ a + k, data, iter = iter, warmup = 100, seed = 1,
      refresh = 0)
  }
  fit <- run(200)
  more <- sg_resume(fit, 100, refresh = 0)
  expect_identical(more$draws, run(300)$draws)
  expect_identical(more$n_data, fit$n_data)
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  back <- readRDS(file)
  # however rows would be tied now
  local_settings(ties = list(least = 1e9))
  expect_identical(sg_resume(back, 100, refresh = 0)$draws, more$draws)
  expect_equal(more$passes / fit$passes, 1.5, tolerance = 0.5)
})

test_that("rows are as they are where no others would do", {
  data <- class_kinds()
  of <- function(...) {
    tall_polr(y ~ a + k, data, iter = 20, seed = 1, refresh = 0, ...)
  }
  # drawn as the user said, or of another power
  expect_null(suppressWarnings(of(kernel = kernel_sgld(1e-5)))$n_differ)
  part <- subsample_uniform(300)
  langevin <- kernel_mala()
  own <- of(kernel = langevin, gradient = gradient_cv(), subsample = part)
  expect_null(own$n_differ)
  expect_null(of(lambda = 1000)$n_differ)
  # all of them
  expect_false(is.null(of(kernel = langevin)$n_differ))
  # precisions are no counts
  data$half <- round(data$z)
  normal <- tall_glm(list(half ~ a, sigma ~ on), data, iter = 20, seed = 1,
    refresh = 0)
  expect_null(normal$n_differ)
  # where none are alike the draws are those that they were
  fits <- both_ways(quote(tall_polr(y ~ z, data, iter = 100, seed = 1)))
  expect_identical(fits$alike$draws, fits$all$draws)
})

test_that("what is wrong is told of the rows that the user has", {
  data <- class_kinds()
  data$k[[3333]] <- 1e300
  message_of <- function(call) {
    fit <- rlang::expr(tryCatch(!!call, tall_error = conditionMessage))
    texts <- both_ways(fit)
    expect_identical(texts$alike, texts$all)
    texts$all
  }
  expect_match(message_of(quote(tall_polr(y ~ a + k, data))), "3,?33[0-9]")
  data$y <- as.integer(data$y)
  data$y[[3333]] <- 2.5
  expect_match(message_of(quote(tall_multinom(y ~ a, data))), "3,?33[0-9]")
})

# ---- of a source -------------------------------------------------------------

test_that("rows of a source are read once for each kind", {
  data <- class_kinds(5000)
  data$y[[11]] <- NA
  calls <- alist(
    tall_polr(y ~ a + k + b, data),
    tall_polr(y ~ a + offset(log(k)), data, weights = w,
      subset = !is.na(k) & k < 6, na.action = na.exclude),
    tall_multinom(factor(y) ~ I(k > 3) + b, data, weights = w)
  )
  run <- list(iter = 60, seed = 1, refresh = 0)
  for (call in calls) {
    call <- as.call(c(as.list(call), run))
    text <- deparse1(call)
    memory <- eval(call)
    call[[3]] <- quote(stream_of(data, c(999, 1, 400)))
    fit <- eval(call)
    expect_lt(nrow(fit$rows$frame), 500)
    expect_length(fit$rows$index, nobs(memory))
    expect_identical(fit$draws, memory$draws, info = text)
    expect_equal(fit$n_missing, memory$n_missing, info = text)
    # what looks at rows makes all of them
    expect_equal(fit$na_action, memory$na_action, ignore_attr = FALSE)
    expect_equal(fitted(fit), fitted(memory), info = text)
    expect_equal(predict(fit, type = "class"), predict(memory, type = "class"))
    expect_equal(model.frame(fit), model.frame(memory), ignore_attr = TRUE)
    expect_identical(
      row.names(model.frame(fit)),
      row.names(model.frame(memory))
    )
    expect_equal(log_lik(fit, draws = 3), log_lik(memory, draws = 3))
    expect_output(print(fit$rows), format_count(nobs(memory)))
    file <- withr::local_tempfile()
    saveRDS(fit, file)
    expect_identical(
      sg_resume(readRDS(file), 20, refresh = 0)$draws,
      sg_resume(memory, 20, refresh = 0)$draws
    )
  }
  again <- refitter(fit)$refit(1:100)
  expect_equal(again$n_data, nobs(fit) - 100)
  expect_null(again$rows$index)
  expect_null(eval(as.call(c(as.list(call), keep_data = FALSE)))$rows$index)
})

test_that("rows of a source are all kept where they must be", {
  data <- class_kinds(5000)
  run <- list(iter = 20, seed = 1, refresh = 0)
  k <- data$k
  calls <- alist(
    tall_polr(y ~ a + z, data),
    tall_polr(y ~ a + scale(w), data),
    tall_multinom(y ~ a, data[1:500, ]),
    tall_polr(y ~ a, data, subset = k < 6),
    tall_multinom(y ~ a, data, kernel = kernel_sgld(1e-5))
  )
  for (call in calls) {
    call <- as.call(c(as.list(call), run))
    memory <- suppressWarnings(eval(call))
    call[[3]] <- bquote(stream_of(.(call[[3]]), 700))
    fit <- suppressWarnings(eval(call))
    expect_identical(fit$draws, memory$draws, info = deparse1(call))
    expect_equal(fitted(fit), fitted(memory))
  }
  # what is wrong is said of the rows as they are
  data$k[[3333]] <- 1e300
  expect_error(
    tall_polr(y ~ k, stream_of(data, 700), seed = 1, refresh = 0),
    "3,?33[0-9]"
  )
  data <- class_kinds(20000)
  local_settings(memory = 6e5)
  expect_error(
    tall_polr(y ~ a + z, stream_of(data, 700), seed = 1),
    "more than 120 kB",
    class = "tall_error_memory"
  )
  # kinds take no more
  fit <- tall_polr(y ~ a + on, stream_of(data, 700), iter = 20, seed = 1,
    refresh = 0)
  expect_length(fit$rows$index, 20000)
})

test_that("what depends on a row alone is known", {
  names <- c("x", "y", "g")
  is_alone <- function(expression) is_by_row(expression, names, environment())
  expect_true(is_alone(quote(factor(g, levels = c("a", "b")))))
  expect_true(is_alone(quote(I(log(x)^2 > 1:1))))
  expect_false(is_alone(quote(x - mean(x))))
  expect_false(is_alone(quote(z)))
  expect_false(is_alone(quote(c(x, y))))
  expect_false(is_alone(quote(stats::poly(x, 2))))
  expect_false(is_alone(quote(rnorm(10))))
  log <- function(x) rank(x)
  expect_false(is_alone(quote(log(x))))
})
