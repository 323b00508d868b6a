quick_ica <- function(data, ..., iter = 200, chains = 2, seed = 1) {
  tall_ica(
    data$x,
    init = "identity",
    iter = iter,
    chains = chains,
    seed = seed,
    refresh = 0,
    ...
  )
}

test_that("the unmixing matrix is found, with its uncertainty", {
  skip_on_cran()
  # sources of heavier tails than the model's: its posterior all the same
  withr::local_seed(6)
  n <- 6000
  data <- list(s = matrix(stats::rt(2 * n, 4), n))
  data$x <- data$s %*% rbind(c(1, 0.6), c(-0.4, 1))
  fit <- quick_ica(data, iter = 2000, chains = 4)
  expect_match(kernel_traits(fit$kernel)$text, "Barker")
  exact <- sg_sample(
    fit$model,
    kernel_mala(1e-4, adapt = TRUE),
    gradient_full(),
    iter = 2500,
    warmup = 500,
    chains = 4,
    cores = 2,
    seed = 2,
    refresh = 0
  )
  ours <- posterior::summarise_draws(fit$draws)
  theirs <- posterior::summarise_draws(exact$draws)
  expect_lt(max(ours$rhat), 1.02)
  error <- sqrt(1 / ours$ess_bulk + 1 / theirs$ess_bulk)
  expect_lt(max(abs(ours$mean - theirs$mean) / theirs$sd / error), 4)
  # Barker steps of 0.35 sds are 1.6 percent too wide, gradient noise adds some
  expect_lt(max(abs(ours$sd / theirs$sd - 1)), 0.03 + 3 * max(error))
  # every source is one of the true ones
  found <- abs(stats::cor(sources(fit, data$x)$mean, data$s))
  expect_gt(min(apply(found, 1, max)), 0.99)
  expect_setequal(apply(found, 1, which.max), 1:2)
})

test_that("mixing and sources are what they say, on the scale of the data", {
  data <- ica_data()
  data$x <- sweep(sweep(data$x, 2, c(10, 1, 0.1), "*"), 2, c(5, -2, 0), "+")
  colnames(data$x) <- c("a", "b", "c")
  fit <- quick_ica(data)
  s <- sources(fit, data$x)
  a <- mixing(fit)
  expect_identical(rownames(a$mean), c("a", "b", "c"))
  # x ~ center + A s, exactly if A and s were of one W
  again <- sweep(s$mean %*% t(a$mean), 2, colMeans(data$x), "+")
  expect_lt(
    max(abs(again - data$x) / rep(apply(data$x, 2, sd), each = 1500)),
    0.1
  )
  draws <- ica_draws(fit)
  x <- standard_columns(data$x, fit$scaling)[1:2, ]
  expect_equal(
    unname(cov(standard_columns(data$x, fit$scaling))),
    diag(3)
  )
  by_draw <- apply(draws, 1, function(w) x %*% t(matrix(w, 3)))
  expect_equal(as.double(s$mean[1:2, ]), rowMeans(by_draw))
  expect_equal(as.double(s$sd[1:2, ]), apply(by_draw, 1, sd))
  expect_identical(
    sources(fit, as.data.frame(data$x))$mean,
    sources(fit, data$x)$mean
  )
})

test_that("draws with swapped and reflected components are brought in line", {
  data <- ica_data()
  fit <- quick_ica(data, chains = 1, keep = c("draws", "gradients"))
  expect_identical(fit$aligned, 0L)
  mixed <- fit
  draws <- ica_draws(fit)
  gradients <- array(unclass(fit$gradients), dim(draws))
  turned <- function(a, at, order, sign) {
    for (i in at) {
      a[i, , ] <- sign * a[i, order, ]
    }
    a
  }
  mixed$draws[] <- turned(draws, 1:30, c(3, 1, 2), c(1, -1, -1))
  mixed$gradients[] <- turned(gradients, 1:30, c(3, 1, 2), c(1, -1, -1))
  again <- finish_fit(mixed)
  expect_identical(again$aligned, 30L)
  expect_equal(again$draws, fit$draws)
  expect_equal(again$gradients, fit$gradients)
})

test_that("averages without draws are those of aligned matrices", {
  data <- ica_data()
  draws <- quick_ica(data, chains = 4)
  reference <- draws$reference
  # every chain begins, and stays, at another of the matrices that are alike
  turned <- list(
    reference,
    -reference,
    reference[3:1, ],
    c(1, -1, -1) * reference[c(3, 1, 2), ]
  )
  run <- function(model, keep) {
    sg_sample(
      model,
      kernel_mala(1e-4),
      gradient_full(),
      iter = 60,
      warmup = 10,
      chains = 4,
      seed = 1,
      init = vapply(turned, as.double, numeric(9)),
      keep = keep,
      refresh = 0
    )
  }
  x <- standard_columns(data$x, draws$scaling)
  kept <- run(model_ica(x), "draws")
  kept$reference <- reference
  class(kept) <- class(draws)
  kept <- finish_fit(kept)
  expect_identical(kept$aligned, 150L)
  model <- build_ica(x, 1, reference)
  averaged <- run(model, c("none", "covariance"))
  expect_equal(coef(averaged), coef(kept))
  expect_equal(vcov(averaged), vcov(kept))
  # a model that does not align is another one
  expect_false(model$fingerprint == model_ica(x)$fingerprint)
  # competing rows: the rule of match_components()
  w <- rbind(c(0.9, 0.1, 0.3), c(-0.95, 0.2, 0.1), c(0, 0.2, 0.7))
  still <- sg_sample(
    build_ica(x, 1, diag(3)),
    kernel_mala(1e-300),
    gradient_full(),
    iter = 2,
    warmup = 1,
    chains = 1,
    init = as.double(w),
    keep = "none",
    seed = 1,
    refresh = 0
  )
  order <- component_order(array(w, c(1, 3, 3)), diag(3))
  aligned <- drop(reorder_components(array(w, c(1, 3, 3)), order))
  expect_equal(unname(coef(still)), as.double(aligned))
})

test_that("keep = \"none\" aligns, also when it goes on from a file", {
  data <- ica_data()
  draws <- quick_ica(data)
  fit <- quick_ica(data, keep = "none")
  expect_equal(coef(fit), coef(draws))
  expect_equal(
    sqrt(diag(vcov(draws))),
    summary(fit)$table$sd,
    ignore_attr = TRUE
  )
  aligns <- function(model) {
    around <- sg_sample(
      model,
      kernel_mala(1e-6),
      gradient_full(),
      iter = 2,
      warmup = 1,
      chains = 1,
      init = -as.double(fit$reference),
      keep = "none",
      seed = 1,
      refresh = 0
    )
    sum(coef(around) * fit$reference) > 0
  }
  # the run's model has coordinates of its own, one made again has not
  expect_true(aligns(rebuild_model(fit)))
  expect_false(aligns(rebuild_model(draws)))
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  longer <- sg_resume(readRDS(file), iter = 50, refresh = 0)
  expect_equal(coef(longer), coef(sg_resume(draws, iter = 50, refresh = 0)))
  other <- model_ica(standard_columns(data$x, fit$scaling))
  expect_error(
    sg_resume(fit, iter = 5, model = other, refresh = 0),
    class = "tall_error_input"
  )
})

test_that("competing components go to the largest, one place each", {
  cosine <- rbind(c(0.9, 0.1, 0.3), c(-0.95, 0.2, 0.1), c(0, 0.2, 0.7))
  expect_identical(match_components(cosine), c(-2, 1, 3))
})

test_that("components are matched by direction, not by length", {
  withr::local_seed(8)
  reference <- diag(3) + matrix(runif(9, -0.2, 0.2), 3)
  # a long row leans a little more towards the place of a short one than to its
  # own
  turned <- rbind(c(3, 2.75, 0), c(0.09, -0.01, 0), c(0, 0, -2)) %*% reference
  order <- component_order(array(turned, c(1, 3, 3)), solve(reference))
  expect_identical(drop(order), c(2, 1, -3))
})

test_that("a fit read from a file goes on with the data it kept", {
  withr::local_seed(9)
  data <- list(
    x = matrix(rlogis(900), ncol = 2) %*% rbind(c(1, 0.5), c(-0.3, 1))
  )
  fit <- quick_ica(data)
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  longer <- sg_resume(readRDS(file), iter = 50, refresh = 0)
  expect_identical(
    plain_draws(longer),
    plain_draws(sg_resume(fit, iter = 50, refresh = 0))
  )
  saveRDS(quick_ica(data, keep_data = FALSE), file)
  e <- expect_error(sg_resume(readRDS(file), 50), class = "tall_error_stale")
  expect_match(conditionMessage(e), "keep_data", fixed = TRUE)
})

test_that("resumed draws are aligned, too", {
  data <- ica_data()
  fit <- quick_ica(data)
  longer <- sg_resume(fit, iter = 100, refresh = 0)
  expect_s3_class(longer, "tall_ica")
  expect_identical(posterior::niterations(longer$draws), 200L)
  expect_identical(longer$aligned, 0L)
})

test_that("fastICA begins the search", {
  skip_if_not_installed("fastICA")
  data <- ica_data()
  withr::local_seed(3)
  start <- ica_start(scale(data$x), "fastICA")
  found <- abs(stats::cor(scale(data$x) %*% t(start), data$s))
  expect_gt(min(apply(found, 1, max)), 0.98)
  # the sources have the variance of the logistic law
  expect_equal(
    apply(scale(data$x) %*% t(start), 2, var),
    rep(pi^2 / 3, 3),
    tolerance = 0.01
  )
})

test_that("one column is its own component", {
  x <- ica_data()$x[, 1, drop = FALSE]
  fit <- tall_ica(x, iter = 100, chains = 1, seed = 1, refresh = 0)
  expect_identical(fit$aligned, 0L)
  s <- sources(fit, x)$mean
  expect_gt(abs(cor(s, x)), 0.999)
})

test_that("arguments are checked before the search for the mode", {
  x <- ica_data()$x
  # the search would stop where it begins
  nowhere <- matrix(1, 3, 3)
  expect_error(tall_ica(x, init = nowhere), "singular")
  for (wrong in list(
    list(iter = 0),
    list(thin = 1e6),
    list(seed = "a"),
    list(kernel = 1),
    list(gradient = 1),
    list(subsample = 1),
    list(refresh = -1),
    list(keep = "drows"),
    list(schedule = 1),
    list(monitor = 1),
    list(prior_sd = 0)
  )) {
    expect_error(
      rlang::inject(tall_ica(x, init = nowhere, !!!wrong)),
      paste0("`", names(wrong), "`"),
      class = "tall_error_input"
    )
  }
  expect_error(
    tall_ica(x, init = nowhere, lambda = 3),
    class = "tall_error_unsupported"
  )
  expect_error(
    tall_ica(x, init = nowhere, variables = "W[1,1]"),
    class = "tall_error_input"
  )
})

test_that("what cannot be unmixed is refused in words", {
  x <- ica_data()$x
  expect_snapshot(error = TRUE, {
    model_ica(x[1:2, ])
    model_ica(cbind(x, 1))
    model_ica(cbind(x, x[, 1] - 2 * x[, 3]))
    model_ica(x, prior_sd = 0)
    tall_ica(x, init = matrix(1, 3, 3))
    tall_ica(x, init = "pca")
    tall_ica(cbind(x, NA))
    tall_ica(x, itr = 10)
  })
  fit <- quick_ica(ica_data(), iter = 10, chains = 1)
  expect_error(sources(fit), "`newdata` must be given")
  model <- model_ica(x)
  expect_error(
    sg_sample(model, lambda = 10, refresh = 0),
    class = "tall_error_unsupported"
  )
  expect_error(
    sg_sample(
      model,
      kernel_mala(1e-4),
      init = rep(1, 9),
      iter = 10,
      refresh = 0
    ),
    class = "tall_error_nonfinite"
  )
})

test_that("a seed is all that is random, the start by fastICA included", {
  skip_if_not_installed("fastICA")
  x <- ica_data(500, 3)$x
  expect_seeded(function(seed) {
    fit <- tall_ica(x, iter = 40, chains = 1, seed = seed, refresh = 0)
    fit[c("draws", "reference")]
  })
})
