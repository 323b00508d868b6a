test_that("Lipschitz constants follow their formulas, the prior's first", {
  model <- example_model()
  x <- example_matrix()
  constants <- lipschitz(model)
  expect_length(constants, 301)
  expect_identical(names(constants)[1:2], c("prior", ""))
  expect_equal(unname(constants[-1]), rowSums(x^2) / 4)
  expect_equal(constants[["prior"]], 1 / 2.5^2)

  w <- example_data()$w
  linear <- example_model("gaussian", sigma = 2, weights = w)
  expect_equal(unname(lipschitz(linear)[-1]), w * rowSums(x^2) / 4)

  laplace <- example_model(prior = prior_laplace(0, 1))
  expect_true(is.na(lipschitz(laplace)[["prior"]]))
  expect_false(is.nan(lipschitz(laplace)[["prior"]]))

  covariance <- matrix(c(2, 1, 1, 3), 2)
  normal <- model_gaussian(x[, 2:3], covariance, prior_covariance = diag(4, 2))
  largest <- max(eigen(solve(covariance))$values)
  expect_equal(unname(lipschitz(normal)), c(1 / 4, rep(largest, 300)))
})

test_that("the constant of a normal prior is the largest eigenvalue", {
  x <- cbind("(Intercept)" = 1, example_matrix()[, 2:3] + 4)
  y <- example_data()$y
  # the intercept's prior is on the predictor at the means of the covariates
  priors <- list(
    list(prior_normal(0, c(2.5, 0.5)), prior_normal(0, 0.7)),
    list(prior_normal(0, 2.5), prior_flat()),
    list(prior_flat(), prior_normal(0, 2))
  )
  for (prior in priors) {
    both <- list(prior = prior[[1]], prior_intercept = prior[[2]])
    blueprint <- blueprint_glm(resolve_family("bernoulli"), both)
    model <- build_model(blueprint, rows_memory(x, y))
    of <- function(prior, n) {
      if (prior$kind == "flat") numeric(n) else rep_len(1 / prior$scale^2, n)
    }
    precision <- diag(c(0, of(prior[[1]], 2))) +
      of(prior[[2]], 1) * tcrossprod(colMeans(x))
    largest <- function(root) {
      max(eigen(solve(root, t(solve(root, precision))), TRUE)$values)
    }
    expect_equal(lipschitz(model)[["prior"]], largest(diag(3)))
    mode <- find_mode(model)
    white <- whiten_model(model, mode, in_place = FALSE)
    expect_equal(lipschitz(white)[["prior"]], largest(mode$chol))
    scales <- sqrt(-diag(mode$hessian))
    white$pointer <- .Call(
      ffi_model_whiten,
      model$pointer,
      as.double(coef(mode)),
      scales,
      TRUE,
      FALSE
    )
    white$cache <- new.env(parent = emptyenv())
    expect_equal(lipschitz(white)[["prior"]], largest(diag(scales)))
  }
})

test_that("Lipschitz constants bound gradients' differences and are tight", {
  withr::local_seed(3)
  for (model in list(example_model(), example_model("gaussian", sigma = 2))) {
    constants <- lipschitz(model)[-1]
    ratio <- rep(0, 300)
    for (k in 1:30) {
      a <- stats::rnorm(3) / 10
      b <- a + stats::rnorm(3) / 1e3
      change <- row_gradients(model, a) - row_gradients(model, b)
      now <- sqrt(rowSums(change^2)) / sqrt(sum((a - b)^2)) / constants
      ratio <- pmax(ratio, now)
    }
    expect_true(all(ratio <= 1 + 1e-6))
    expect_gt(max(ratio), 0.9)
  }
})

test_that("models without Lipschitz constants name the alternative", {
  expect_snapshot(
    lipschitz(example_model("poisson")),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(lipschitz(example_model("gaussian")), error = TRUE)
  expect_snapshot(lipschitz(1), error = TRUE)
  expect_snapshot(
    noise_threshold(example_model("poisson"), kernel_sgld(1e-3), 10),
    error = TRUE
  )
  expect_snapshot(
    quick_fit(example_model("poisson"), subsample = subsample_adaptive(1)),
    error = TRUE
  )
})

test_that("weights of every type are there for a normal mean", {
  x <- matrix(stats::rnorm(40), 20)
  model <- model_gaussian(x, matrix(c(2, 1, 1, 3), 2))
  even <- rep(1 / 20, 20)
  # all rows have the same Hessian
  for (type in c("hessian", "leverage", "lipschitz", "uniform")) {
    expect_equal(subsampling_weights(model, type = type), even)
  }
  norm <- sqrt(rowSums(row_gradients(model, model$posterior_mean)^2))
  expect_equal(
    subsampling_weights(model, type = "gradient", defensive = 0),
    norm / sum(norm)
  )
})

# ---- pseudo-variance ---------------------------------------------------------

test_that("exact pseudo-variances are those of the enumerated minibatches", {
  models <- enumeration_models()
  labels <- c(
    "bernoulli",
    "poisson",
    "sigma",
    "gaussian",
    "network",
    "lda, even"
  )
  for (label in labels) {
    model <- models[[label]]
    at <- point_at(model)
    points <- rbind(point_away(model), rep_len(c(0.1, 0.2), model$n_dim), at)
    uneven <- seq_len(5)^2
    schemes <- list(
      "one row" = subsample_uniform(1),
      "with replacement" = subsample_uniform(2),
      "without replacement" = subsample_uniform(3, replace = FALSE),
      "weighted" = subsample_weighted(2, uneven)
    )
    all <- enumerations(5)
    for (gradient in list(gradient_simple(), gradient_cv(at))) {
      for (drawn in names(schemes)) {
        expected <- apply(points, 1, function(theta) {
          found <- enumerate(model, gradient, all[[drawn]], theta)
          g <- to_sampler_gradient(model, full_gradient(model, theta))
          sum(sweep(found$gradient, 2, g)^2 * all[[drawn]]$probability)
        })
        actual <- pseudo_variance(model, points, gradient, schemes[[drawn]])
        expect_close(actual, expected, paste(label, drawn))
        one <- pseudo_variance(model, points[2, ], gradient, schemes[[drawn]])
        expect_identical(one, actual[[2]])
      }
    }
    saga <- pseudo_variance(model, points, gradient_saga(at), schemes$weighted)
    expect_identical(
      saga,
      pseudo_variance(model, points, gradient_cv(at), schemes$weighted)
    )
    expect_identical(
      pseudo_variance(model, points, gradient_full()),
      numeric(3)
    )
  }
})

test_that("Monte Carlo agrees with the formulas", {
  skip_on_cran()
  model <- example_model()
  mode <- find_mode(model)
  theta <- rbind(coef(mode) + 0.3, coef(mode) - c(1, 0, 0.2))
  schemes <- list(
    subsample_uniform(30),
    subsample_uniform(200, replace = FALSE),
    subsample_uniform(300, replace = FALSE),
    subsample_weighted(30, "leverage"),
    subsample_optimal(30),
    subsample_adaptive(5e3, "gradient", min_size = 5)
  )
  for (scheme in schemes) {
    for (gradient in list(
      gradient_simple(),
      gradient_cv(mode),
      gradient_svrg()
    )) {
      if (scheme$name == "adaptive" && gradient$name == "simple") {
        next
      }
      exact <- pseudo_variance(model, theta, gradient, scheme)
      blocks <- vapply(1:20, function(seed) {
        pseudo_variance(
          model,
          theta,
          gradient,
          scheme,
          "monte_carlo",
          200,
          seed
        )
      }, exact)
      for (k in 1:2) {
        if (exact[[k]] < 1e-12) {
          expect_lt(max(blocks[k, ]), 1e-12)
        } else {
          expect_mean(
            blocks[k, ],
            exact[[k]],
            paste(scheme$name, gradient$name)
          )
        }
      }
    }
  }
})

test_that("names of theta that there are not are told as those of theta", {
  model <- example_model()
  theta <- stats::setNames(
    numeric(model$n_dim),
    paste0("no_", seq_len(model$n_dim))
  )
  expect_error(
    pseudo_variance(model, theta, gradient_simple(), subsample_uniform(5)),
    "`theta`",
    class = "tall_error_input"
  )
})

test_that("what wins: weights at small n, no replacement as n goes to N", {
  model <- example_model()
  theta <- coef(find_mode(model)) + 0.2
  variance <- function(scheme, gradient = gradient_cv()) {
    pseudo_variance(model, theta, gradient, scheme)
  }
  small <- c(
    optimal = variance(subsample_optimal(5)),
    weighted = variance(subsample_weighted(5)),
    without = variance(subsample_uniform(5, replace = FALSE)),
    with = variance(subsample_uniform(5))
  )
  expect_identical(order(small), 1:4)
  # the paper has this the other way round
  expect_lt(
    variance(subsample_uniform(297, replace = FALSE)),
    variance(subsample_optimal(297)) / 10
  )
  expect_identical(variance(subsample_uniform(300, replace = FALSE)), 0)
  # proportional to 1/n with replacement
  expect_equal(
    variance(subsample_weighted(50)),
    variance(subsample_weighted(5)) / 10
  )
  expect_lt(
    variance(subsample_uniform(5)),
    variance(subsample_uniform(5), gradient_simple())
  )
  at_mode <- pseudo_variance(
    model,
    coef(find_mode(model)),
    gradient_cv(),
    subsample_weighted(5)
  )
  expect_lt(at_mode, 1e-20)
})

test_that("an estimator of another hand is used as it is", {
  model <- example_model()
  theta <- coef(find_mode(model)) + 0.2
  scheme <- subsample_uniform(20)
  other <- new_spec("gradient", "other", at = theta)
  registerS3method(
    "compile_spec",
    "tall_gradient_other",
    function(spec, context) list(name = "simple", params = list()),
    envir = asNamespace("tallbayes")
  )
  measured <- function(gradient, ...) {
    pseudo_variance(model, theta, gradient, scheme, ...)
  }
  # control variates about theta itself would have none
  expect_identical(
    measured(other, method = "monte_carlo", seed = 1),
    measured(gradient_simple(), method = "monte_carlo", seed = 1)
  )
  expect_snapshot(measured(other), error = TRUE, cnd_class = TRUE)
  for (gradient in list(gradient_saga(at = theta), gradient_cv(theta))) {
    expect_lt(measured(gradient), 1e-20)
    expect_lt(measured(gradient, method = "monte_carlo", seed = 1), 1e-20)
  }
})

test_that("pseudo_variance() refuses in words", {
  model <- example_model()
  expect_snapshot(pseudo_variance(model, 1:2), error = TRUE)
  expect_snapshot(pseudo_variance(model, diag(2)), error = TRUE)
  expect_snapshot(pseudo_variance(model, 1:3), error = TRUE)
  expect_snapshot(
    pseudo_variance(model, 1:3, "cv", subsample_uniform(3)),
    error = TRUE
  )
  expect_snapshot(
    pseudo_variance(model, 1:3, gradient_simple(), subsample_adaptive(1)),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(
    pseudo_variance(model, 1:3, gradient_cv(), subsample_weighted(3, 1:2)),
    error = TRUE
  )
})

# ---- adaptive sizes ----------------------------------------------------------

adaptive_run <- function(model, scheme, ..., at = NULL, iter = 400) {
  sg_sample(
    model,
    kernel_sgld(2e-3),
    gradient_cv(at),
    scheme,
    iter = iter,
    warmup = 0,
    chains = 2,
    seed = 1,
    refresh = 0,
    ...
  )
}

test_that("adaptive sizes follow their formula, and passes are counted", {
  model <- example_model()
  at <- coef(find_mode(model)) + c(0.1, 0, 0)
  weights <- seq_len(300)
  p <- weights / sum(weights)
  size_at <- function(draws, bound, least, most) {
    distance <- rowSums(sweep(draws, 2, at)^2)
    pmin(pmax(floor(bound * distance) + 1, least), most)
  }
  for (case in list(
    list(weights = weights, sum = sum(lipschitz(model)[-1]^2 / p)),
    list(weights = "uniform", sum = 300 * sum(lipschitz(model)[-1]^2))
  )) {
    scheme <- subsample_adaptive(case$sum / 60, case$weights, 3, 200)
    init <- at + 0.1
    fit <- adaptive_run(model, scheme, at = at, init = init)
    for (chain in 1:2) {
      draws <- plain_draws(fit)[, chain, ]
      expected <- size_at(draws, 60, 3, 200)
      expect_identical(fit$sizes[, chain, 1], unname(expected))
      first <- size_at(matrix(init, 1), 60, 3, 200)
      expect_equal(fit$chains$passes[[chain]] * 300, sum(expected) + first)
    }
    expect_gt(length(unique(fit$sizes)), 5)
  }
})

test_that("adaptive sizes that reach all rows give the full gradient", {
  model <- example_model()
  mode <- find_mode(model)
  init <- coef(mode) + 0.5
  expect_warning(
    fit <- adaptive_run(
      model,
      subsample_adaptive(1e-9),
      init = init,
      keep = c("draws", "gradients")
    ),
    class = "tall_warning_size"
  )
  expect_true(all(fit$sizes == 300))
  full <- sg_sample(
    model,
    kernel_sgld(2e-3),
    gradient_full(),
    iter = 400,
    warmup = 0,
    chains = 2,
    seed = 1,
    init = init,
    refresh = 0
  )
  expect_equal(plain_draws(fit), plain_draws(full), tolerance = 1e-8)
  expect_equal(fit$chains$passes, rep(401, 2))
  # a cap below all rows is a minibatch like any other
  expect_warning(
    capped <- adaptive_run(
      model,
      subsample_adaptive(1e-9, max_size = 0.5),
      init = init
    ),
    class = "tall_warning_size"
  )
  expect_true(all(capped$sizes == 150))
  expect_false(isTRUE(all.equal(plain_draws(capped), plain_draws(full))))
})

test_that("adaptive runs resume and do not depend on threads", {
  kernel <- conformance_kernels()[["sgld, vanilla euler"]]
  kernel$gradient <- gradient_cv()
  kernel$subsample <- subsample_adaptive(50)
  law_cores(kernel)
  law_resume(kernel)
})

# ---- corrected kernels -------------------------------------------------------

# Variance of the draws over that of Euler's scheme with exact gradients, 1 /
# (lambda (1 - h lambda / 4)), for a linear regression with one skewed
# covariate, whose rows have unequal curvature; and its standard error.
euler_ratio <- function(variant, gradient, subsample) {
  set.seed(1)
  x <- matrix(exp(rnorm(200)), ncol = 1)
  y <- rnorm(200, x)
  model <- model_glm(x, y, "gaussian", sigma = 1, prior = prior_flat())
  lambda <- sum(x^2)
  h <- 0.4 / lambda
  fit <- sg_sample(
    model,
    kernel_sgld(h, variant),
    gradient,
    subsample,
    iter = 101000,
    warmup = 1000,
    chains = 4,
    seed = 1,
    refresh = 0
  )
  exact <- 1 / (lambda * (1 - h * lambda / 4))
  square <- plain_draws(fit)[, , 1] - sum(x * y) / lambda
  square <- square^2 / exact
  blocks <- colMeans(matrix(square, 2000))
  list(
    ratio = mean(square),
    se = stats::sd(blocks) / sqrt(length(blocks)),
    fit = fit
  )
}

test_that("corrected SGLD has Euler's variance under adaptive sizes", {
  skip_on_cran()
  # sizes between 2 and some 25, the noise of all alike
  scheme <- subsample_adaptive(1950, "uniform", min_size = 2)
  corrected <- euler_ratio("corrected", gradient_cv(), scheme)
  expect_lt(abs(corrected$ratio - 1), 4 * corrected$se)
  vanilla <- euler_ratio("vanilla", gradient_cv(), scheme)
  expect_gt(vanilla$ratio, 1 + 8 * vanilla$se)
  expect_gt(diff(range(corrected$fit$sizes)), 20)
})

test_that("corrected SGLD has Euler's variance under SVRG", {
  skip_on_cran()
  gradient <- gradient_svrg(refresh = 5)
  scheme <- subsample_uniform(5)
  corrected <- euler_ratio("corrected", gradient, scheme)
  expect_lt(abs(corrected$ratio - 1), 4 * corrected$se)
  vanilla <- euler_ratio("vanilla", gradient, scheme)
  expect_gt(vanilla$ratio, 1 + 8 * vanilla$se)
})

test_that("noise_threshold() is the recipe", {
  model <- example_model()
  mode <- find_mode(model)
  for (weights in list("uniform", "hessian", seq_len(300))) {
    p <- if (is.numeric(weights)) {
      weights / sum(weights)
    } else {
      subsampling_weights(model, mode, weights)
    }
    scheme <- if (identical(weights, "uniform")) {
      subsample_uniform(20)
    } else {
      subsample_weighted(20, weights)
    }
    fit <- sg_sample(
      model,
      kernel_sgld(2e-3),
      gradient_cv(mode),
      scheme,
      iter = 200,
      chains = 3,
      seed = 9,
      refresh = 0
    )
    q <- vapply(1:3, function(chain) {
      centred <- sweep(plain_draws(fit)[, chain, ], 2, coef(mode))
      stats::quantile(rowSums(centred^2), 0.95)
    }, 0)
    expected <- max(q) * sum(lipschitz(model)[-1]^2 / p) / 20
    actual <- noise_threshold(
      model,
      kernel_sgld(2e-3),
      20,
      weights,
      chains = 3,
      iter = 200,
      seed = 9,
      refresh = 0
    )
    expect_equal(actual, expected)
  }
  # the constants cancel: n = size at the quantile
  bound <- lipschitz_sum(lipschitz(model)[-1], p) / actual
  expect_equal(bound * max(q), 20)
})

test_that("adaptive schemes print, and refuse in words", {
  expect_snapshot({
    subsample_adaptive(3)
    subsample_adaptive(3, "uniform", 10, 0.1)
    subsample_optimal(0.1)
  })
  expect_snapshot(subsample_adaptive(), error = TRUE)
  expect_snapshot(subsample_adaptive(0), error = TRUE, cnd_class = TRUE)
  expect_snapshot(subsample_adaptive(-1), error = TRUE)
  expect_snapshot(subsample_adaptive(1, c(1, 0)), error = TRUE)
  expect_snapshot(subsample_adaptive(1, c(1, NA)), error = TRUE)
  expect_snapshot(subsample_adaptive(1, min_size = 0), error = TRUE)
  expect_snapshot(subsample_adaptive(1, max_size = "a"), error = TRUE)
  expect_snapshot(subsample_optimal(-1), error = TRUE)
  model <- example_model()
  expect_snapshot(
    adaptive_run(model, subsample_adaptive(1, min_size = 50, max_size = 20)),
    error = TRUE
  )
  expect_snapshot(
    adaptive_run(model, subsample_adaptive(1, 1:3)),
    error = TRUE
  )
  expect_snapshot(
    quick_fit(
      model,
      gradient = gradient_saga(),
      subsample = subsample_adaptive(1)
    ),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(fit <- adaptive_run(model, subsample_adaptive(1e-3)))
})

test_that("plot(fit, \"size\") draws the sizes of every chain", {
  skip_if_not_installed("ggplot2")
  fit <- adaptive_run(example_model(), subsample_adaptive(500))
  p <- plot(fit, "size")
  expect_s3_class(p, "ggplot")
  expect_identical(p$data$size, as.numeric(fit$sizes))
  expect_identical(levels(p$data$chain), c("1", "2"))
})

# ---- optimal weights ---------------------------------------------------------

test_that("optimal weights follow the estimator, and count their passes", {
  model <- example_model()
  mode <- find_mode(model)
  run <- function(gradient) {
    sg_sample(
      model,
      kernel_sgld(2e-3),
      gradient,
      subsample_optimal(10),
      iter = 200,
      warmup = 0,
      chains = 1,
      seed = 1,
      refresh = 0
    )
  }
  for (gradient in list(gradient_simple(), gradient_cv(), gradient_saga())) {
    fit <- run(gradient)
    table <- if (gradient$name == "saga") 1 else 0
    expect_equal(fit$chains$passes, 201 * (1 + 10 / 300) + table)
    expect_true(all(fit$sizes == 10))
  }
  # at the reference all terms are 0: uniform, and exact
  still <- estimate_once(
    model,
    gradient_cv(mode),
    subsample_optimal(3),
    coef(mode)
  )
  g <- full_gradient(model, coef(mode))
  expect_close(drop(still$gradient), g, "at the reference")
})
