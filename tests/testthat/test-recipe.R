test_that("tall data get Leimkuhler-Matthews, control variates and leverage", {
  local_way("minibatches")
  fit <- recipe_fit(tall_model())
  expect_s3_class(fit$kernel, "tall_kernel_sgld")
  expect_identical(fit$kernel$args$integrator, "leimkuhler-matthews")
  expect_identical(fit$kernel$args$variant, "corrected")
  expect_identical(fit$kernel$args$step_size, setting("recipe")$step_size)
  expect_s3_class(fit$gradient, "tall_gradient_cv")
  expect_s3_class(fit$subsample, "tall_subsample_weighted")
  expect_true(fit$is_whitened)
  expect_identical(fit$steps, setting("recipe")$steps)
  expect_gte(fit$recipe$size, setting("recipe")$min_size)
  expect_lt(fit$recipe$size, 20000 / 4)
  expect_gt(fit$recipe$drop, 0.4)
  expect_lt(fit$recipe$drop, 0.6)
})

test_that("few data get an exact kernel on all rows", {
  local_way("minibatches")
  fit <- recipe_fit(example_model(data = example_data(100)))
  expect_s3_class(fit$kernel, "tall_kernel_mala")
  expect_s3_class(fit$gradient, "tall_gradient_full")
  expect_true(fit$is_whitened)
  expect_true(all(fit$chains$acceptance > 0.3))
  expect_null(fit$bias)
})

test_that("the recipe leaves the user's model alone", {
  model <- tall_model()
  theta <- c(0.1, 0.2, -0.3, 0.001)
  before <- model_evaluate(model, theta)
  fit <- recipe_fit(model)
  expect_identical(model_evaluate(model, theta), before)
  expect_false(model_is_whitened(model))
  expect_identical(fit$variables, c("x1", "x2", "x3", "x4"))
})

test_that("the pilot enlarges minibatches until the noise is small", {
  local_way("minibatches")
  # a few rows that matter far more than the others, in one column
  model <- withr::with_seed(1, {
    n <- 20000
    x <- cbind(1, rnorm(n), rare = as.numeric(seq_len(n) <= 25))
    model_glm(
      x,
      rbinom(n, 1, plogis(-1 + 0.5 * x[, 2])),
      prior = prior_normal()
    )
  })
  fit <- suppressWarnings(recipe_fit(model))
  expect_lte(fit$recipe$noise_share, 1.1 * setting("recipe")$noise_share)

  local_settings(recipe = list(noise_share = 1e-3))
  strict <- suppressWarnings(recipe_fit(model))
  expect_gt(strict$recipe$size, fit$recipe$size)
  local_settings(recipe = list(noise_share = 1e-9))
  exact <- suppressWarnings(recipe_fit(model, iter = 20))
  expect_s3_class(exact$kernel, "tall_kernel_mala")
})

test_that("with very many parameters only scales are adjusted, and rightly", {
  local_way("minibatches")
  local_settings(most_whitened = 3)
  settings <- setting("recipe")
  model <- tall_model()
  fit <- recipe_fit(model, iter = 1200)
  expect_true(model_is_whitened(fit$model))
  expect_true(fit$model$whitening$is_diagonal)
  # two columns are correlated: the step size has to follow
  expect_lt(fit$recipe$step_size, 0.75 * settings$step_size)
  expect_gt(fit$steps, settings$steps)
  mode <- find_mode(model)
  sd <- sqrt(diag(vcov(mode)))
  expect_lt(max(abs(coef(fit) - coef(mode)) / sd), 0.2)
  expect_lt(max(abs(sqrt(diag(vcov(fit))) / sd - 1)), 0.15)
})

test_that("parts without a kernel are refused in words", {
  model <- tall_model()
  expect_snapshot(
    sg_sample(model, gradient = gradient_cv()),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(
    sg_sample(
      model,
      subsample = subsample_uniform(10),
      schedule = schedule_decay()
    ),
    error = TRUE
  )
})

test_that("a model without a recipe is refused in words", {
  model <- model_density("normal")
  expect_snapshot(sg_sample(model), error = TRUE, cnd_class = TRUE)
})

test_that("what needs a model of the parameters refuses that of a fit", {
  local_way("minibatches")
  fit <- recipe_fit(tall_model(), iter = 20)
  expect_true(model_is_whitened(fit$model))
  expect_snapshot(error = TRUE, {
    sg_sample(fit$model)
    sg_sample(fit$model, kernel_sgld(1e-3))
    find_mode(fit$model)
    subsampling_weights(fit$model)
  })
  framed <- sg_sample(
    model_gaussian(matrix(sin(1:9000), 3000) + 1:3, diag(3)),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_snapshot(sg_sample(framed$model), error = TRUE)
  expect_snapshot(
    sg_sample(
      framed$model,
      kernel_sgld(1e-3),
      gradient_simple(),
      subsample_weighted(5)
    ),
    error = TRUE
  )
  kernel <- kernel_sgld(1e-3)
  scheme <- subsample_uniform(10)
  for (model in list(fit$model, framed$model)) {
    theta <- numeric(model$n_dim)
    asks <- list(
      function() find_mode(model, "lbfgs"),
      function() find_mode(model, "adam"),
      function() subsampling_weights(model, theta, "gradient"),
      function() noise_threshold(model, kernel, 10, iter = 10),
      function() pseudo_variance(model, theta, gradient_simple(), scheme),
      function() sg_tune(model, kernel, list(step_size = 1:2), budget = 1e5)
    )
    for (ask in asks) {
      expect_error(ask(), "whitened", class = "tall_error_unsupported")
    }
  }
})

test_that("a model that cannot rewrite its rows is whitened by a frame", {
  skip_on_cran()
  withr::local_seed(5)
  n <- 8000
  x <- cbind(rnorm(n, 1, 2), rnorm(n, -1, 50))
  covariance <- rbind(c(4, 30), c(30, 2500))
  model <- model_gaussian(x, covariance)
  fit <- sg_sample(model, chains = 8, seed = 1, refresh = 0)
  expect_identical(fit$kernel$args$variant, "vanilla")
  expect_identical(fit$subsample$name, "weighted")
  # control variates have no noise here: the integrator is exact
  expect_posterior(
    fit,
    model$posterior_mean,
    model$posterior_covariance,
    "framed"
  )
  whole <- sg_resume(fit, iter = 10, refresh = 0)
  again <- sg_resume(
    unserialize(serialize(fit, NULL)),
    iter = 10,
    model = model_gaussian(x, covariance),
    refresh = 0
  )
  expect_same_outcome(again, whole)
})

test_that("rows that must stay as they are are whitened by a frame", {
  data <- example_data(500)
  make <- function() model_glm(example_matrix(data), data$y)
  rewritten <- make()
  kept <- made_in("dense", TRUE, make)
  expect_true(model_info(rewritten)$has_whiten)
  expect_false(model_info(kept)$has_whiten)
  expect_identical(kept$fingerprint, rewritten$fingerprint)
  mode <- find_mode(rewritten)
  at <- cbind(rep(0, rewritten$n_dim), seq(-0.5, 0.5, len = rewritten$n_dim))
  for (in_place in c(FALSE, TRUE)) {
    framed <- whiten_model(kept, mode, in_place = in_place)
    expect_true(model_info(framed)$is_framed)
    expect_false(model_info(kept)$is_framed)
    white <- whiten_model(rewritten, mode, in_place = FALSE)
    asked <- lapply(list(framed, white), function(model) {
      .Call(ffi_model_gradient, model$pointer, at, NULL, 1, 3L)
    })
    expect_equal(asked[[1]], asked[[2]], tolerance = 1e-10)
  }
})

test_that("a separated indicator under a wide prior is noticed and named", {
  local_way("minibatches")
  data <- example_data(2500)
  data$rare <- as.numeric(seq_len(2500) %in% head(which(data$y == 0), 30))
  x <- cbind(example_matrix(data), rare = data$rare)
  model <- model_glm(x, data$y, prior = prior_normal(0, 50))
  warnings <- list()
  withCallingHandlers(
    sg_sample(model, iter = 20, chains = 1, seed = 1, refresh = 0),
    warning = function(w) {
      warnings[[length(warnings) + 1]] <<- w
      invokeRestart("muffleWarning")
    }
  )
  classes <- vapply(warnings, function(w) class(w)[[1]], "")
  expect_true("tall_warning_recipe" %in% classes)
  w <- warnings[[which(classes == "tall_warning_recipe")]]
  expect_identical(w$columns, "rare")
  expect_match(conditionMessage(w), "`rare`", fixed = TRUE)
  expect_match(conditionMessage(w), "narrower prior")
  expect_identical(as.character(w$call[[1]]), "sg_sample")
})

test_that("the warning reads well", {
  model <- example_model(data = example_data(2000))
  white <- whiten_model(model, find_mode(model), in_place = FALSE)
  local_settings(recipe = list(max_ratio = 0.01))
  shape <- check_normal(white, find_mode(model), new_ledger(), 1L)
  expect_snapshot(
    {
      warn_far(white, shape, exact = FALSE, c(3, 1000000))
      warn_far(white, shape, exact = TRUE, NULL)
      warn_thrown(c(TRUE, FALSE, TRUE), exact = FALSE, "`remedy()`", 90)
      warn_thrown(TRUE, exact = TRUE, "`remedy()`", 30)
    },
    transform = scrub,
    cnd_class = TRUE
  )
})

test_that("an outcome that never occurs with an indicator is sampled", {
  local_way("minibatches")
  # the indicator's coefficient by quadrature; the baseline's is known so well
  # that its mode given the other will do
  exact <- function(n, n_events, n_exposed, cumulant, prior) {
    at <- function(b, c, share = n_exposed / (n + n_exposed)) {
      a <- c - share * b
      n_events * a - n * cumulant(a) - n_exposed * cumulant(a + b) -
        0.5 * (c / prior$scale[[1]])^2 - 0.5 * (b / prior$scale[[2]])^2
    }
    b <- seq(-6 * prior$scale[[2]], 4, length.out = 4000)
    log_p <- vapply(b, function(b) {
      range <- c(-8, 2) + n_exposed / (n + n_exposed) * b
      stats::optimize(function(c) at(b, c), range, maximum = TRUE)$objective
    }, 0)
    p <- exp(log_p - max(log_p))
    p <- p / sum(p)
    mean <- sum(p * b)
    c(mean = mean, sd = sqrt(sum(p * (b - mean)^2)))
  }
  cases <- list(
    list(
      family = binomial(),
      n = 10000,
      n_events = 3000,
      n_exposed = 300,
      cumulant = function(eta) log1p(exp(eta))
    ),
    list(
      family = poisson(),
      n = 20000,
      n_events = 400,
      n_exposed = 1000,
      cumulant = exp
    )
  )
  for (case in cases) {
    y <- rep(c(1, 0), c(case$n_events, case$n - case$n_events))
    data <- data.frame(
      y = c(y, rep(0, case$n_exposed)),
      x = rep(0:1, c(case$n, case$n_exposed))
    )
    w <- expect_warning(
      fit <- quick_glm(
        y ~ x,
        data,
        family = case$family,
        prior = prior_normal(0, 20),
        iter = 1200
      ),
      class = "tall_warning_recipe"
    )
    expect_identical(w$columns, "x")
    expect_identical(fit$chains$status, rep("ok", nrow(fit$chains)))
    expect_identical(fit$recipe$far, "x")
    expect_identical(is.na(fit$bias$sd_bias), c(FALSE, TRUE))
    expected <- exact(
      case$n,
      case$n_events,
      case$n_exposed,
      case$cumulant,
      fit$prior
    )
    table <- posterior::summarise_draws(fit$draws)
    error <- table$sd[[2]] / sqrt(table$ess_bulk[[2]])
    off <- abs(table$mean[[2]] - expected[["mean"]])
    expect_lt(off, 4 * error + 0.05 * expected[["sd"]])
    expect_lt(abs(table$sd[[2]] / expected[["sd"]] - 1), 0.12)
  }
})

test_that("runs of a skewed posterior are not thrown out, however long", {
  local_way("minibatches")
  # a step of one sd loses 1.1 of log density; Langevin steps were thrown out
  # after some 10,000
  data <- data.frame(
    y = rep(c(1, 0), c(6000, 17000)),
    x = rep(0:1, c(20000, 3000))
  )
  fit <- suppressWarnings(
    quick_glm(y ~ x, data, iter = 300, seed = 2),
    classes = "tall_warning_recipe"
  )
  expect_lt(fit$recipe$drop, 1.2)
  expect_s3_class(fit$kernel, "tall_kernel_sgbd")
  expect_match(fit$plan, "which nothing throws out")
  expect_identical(fit$chains$status, rep("ok", 4))
})

test_that("chains that are thrown out are sampled again by what cannot be", {
  local_way("minibatches")
  local_settings(recipe = list(escape = function(d) 0.1))
  model <- tall_model()
  w <- expect_warning(
    fit <- recipe_fit(model, keep = c("draws", "gradients")),
    "2 of 2 chains of Langevin steps were thrown out",
    class = "tall_warning_recipe"
  )
  expect_identical(as.character(w$call[[1]]), "sg_sample")
  # what an exact run would cost, in numbers
  exact <- "all rows in every step: about [0-9.]+ [a-z]+ of one core"
  expect_match(gsub("\\s+", " ", conditionMessage(w)), exact)
  expect_identical(fit$chains$status, c("ok", "ok"))
  expect_s3_class(fit$kernel, "tall_kernel_sgbd")
  expect_true(all(is.na(fit$bias$sd_bias)))
  # what they are then is the run of that plan, and can go on
  mode <- find_mode(model)
  expect_lt(max(abs(coef(fit) - coef(mode)) / sqrt(diag(vcov(mode)))), 0.4)
  longer <- sg_resume(fit, iter = 50, refresh = 0)
  whole <- suppressWarnings(recipe_fit(model, iter = 250, warmup = 100))
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
})

test_that("one bad row is seen, and does not spoil the posterior in silence", {
  local_way("minibatches")
  skip_on_cran()
  cases <- list(list(value = 999, rows = 1), list(value = 9999, rows = 1:100))
  for (case in cases) {
    model <- outlier_model(case$value, case$rows)
    exact <- grid_posterior(model)
    w <- expect_warning(
      fit <- sg_sample(model, iter = 1500, seed = 1, refresh = 0),
      "Look at rows? 1",
      class = "tall_warning_recipe"
    )
    expect_equal(w$rows, case$rows)
    expect_identical(fit$sizes[[1]], 32 + length(case$rows))
    slope <- posterior::extract_variable_matrix(fit$draws, "x")
    error <- exact$sd / sqrt(posterior::ess_bulk(slope))
    expect_lt(abs(mean(slope) - exact$mean), 4 * error + 0.05 * exact$sd)
    expect_lt(abs(stats::sd(slope) / exact$sd - 1), 0.05 + 0.05)
    # was 0.046 where 0.0045 is right
    expect_lt(mean(slope > 0), exact$above + 0.012)
  }
})

test_that("a row in all columns is said to matter to no parameter alone", {
  local_way("minibatches")
  # 999 in every column, against the outcome: the wall is across their sum
  data <- withr::with_seed(11, {
    x <- cbind(1, matrix(rnorm(4000 * 4), 4000))
    colnames(x) <- c("i", "a", "b", "c", "d")
    eta <- drop(x %*% c(0.2, 0.3, -0.2, 0.1, 0))
    list(x = x, y = rbinom(4000, 1, plogis(eta)))
  })
  data$x[1, -1] <- 999
  data$y[[1]] <- 0
  model <- model_glm(data$x, data$y, prior = prior_normal(0, 2.5))
  warned <- NULL
  fit <- withCallingHandlers(
    sg_sample(model, iter = 100, seed = 1, refresh = 0),
    tall_warning_recipe = function(w) {
      warned <<- conditionMessage(w)
      invokeRestart("muffleWarning")
    }
  )
  expect_match(warned, "a combination of its parameters")
  expect_match(warned, "row 1 ")
  # whose bias is estimated, then, as ever
  expect_no_match(warned, "not estimated|never occurs")
  expect_false(anyNA(summary(fit)$table$sd_bias))
})

test_that("ranks are uniform where an outlier is a wall (SBC)", {
  local_way("minibatches")
  skip_on_cran()
  # ranks of the true slope among 15 draws, oriented to the side of the outlier
  n <- 3000
  ranks <- vapply(seq_len(60), function(k) {
    set <- withr::with_seed(k, {
      theta <- stats::rnorm(2, 0, 0.04)
      x <- c(999, stats::rnorm(n - 1))
      list(
        x = x,
        theta = theta,
        y = stats::rbinom(n, 1, stats::plogis(theta[[1]] + theta[[2]] * x))
      )
    })
    model <- model_glm(cbind(1, set$x), set$y, prior = prior_normal(0, 0.04))
    fit <- suppressWarnings(
      sg_sample(
        model,
        iter = 200,
        warmup = 50,
        thin = 10,
        chains = 1,
        seed = k,
        refresh = 0
      )
    )
    side <- 2 * set$y[[1]] - 1
    sum(side * as.numeric(fit$draws[, , 2]) < side * set$theta[[2]])
  }, 0)
  counts <- tabulate(ranks + 1, 16)
  expect_gt(stats::chisq.test(colSums(matrix(counts, 4)))$p.value, 1e-3)
  # before, the draws beyond the wall left the lowest ranks empty
  z <- (mean(ranks) - 7.5) / sqrt((16^2 - 1) / 12 / length(ranks))
  expect_lt(abs(z), 3.5)
})

test_that("minibatches depend on the model alone, also where tails are heavy", {
  local_way("minibatches")
  model <- withr::with_seed(3, {
    x <- stats::rt(20000, 2)
    model_glm(
      cbind(1, x),
      stats::rbinom(20000, 1, stats::plogis(0.3 * x)),
      prior = prior_normal(0, 1)
    )
  })
  exact <- grid_posterior(model)
  fit <- sg_sample(model, seed = 1, refresh = 0)
  others <- vapply(2:3, FUN.VALUE = 0, function(seed) {
    sg_sample(model, iter = 20, seed = seed, refresh = 0)$recipe$size
  })
  size <- fit$recipe$size
  expect_identical(others, c(size, size))
  expect_lt(size, 64)
  slope <- as.numeric(posterior::extract_variable(fit$draws, "x"))
  expect_lt(abs(mean(slope) - exact$mean) / exact$sd, 0.08)
  expect_lt(abs(stats::sd(slope) / exact$sd - 1), 0.06)
})

test_that("the third derivatives' bound tells how far from normal a model is", {
  model <- tall_model(4000)
  mode <- find_mode(model)
  white <- whiten_model(model, mode, in_place = FALSE)
  bound <- sum(cubic_weights(white, new_ledger(), 1L))
  u <- withr::with_seed(1, matrix(stats::rnorm(4 * 50), 4))
  u <- sweep(u, 2, sqrt(colSums(u^2)), "/")
  lost <- density_lost(white, u, 1:3)
  away <- abs(sweep(lost, 2, (1:3)^2 / 2))
  for (r in 1:3) {
    expect_lt(max(away[, r]), bound * r^3 / 6)
    expect_gt(max(away[, r]), bound * r^3 / 600)
  }
  # where it is small nothing has to be evaluated
  expect_length(check_normal(white, mode, new_ledger(), 1L)$far, 0)
})

test_that("small data far from normal are sampled exactly, without a word", {
  local_way("minibatches")
  data <- example_data(500)
  data$rare <- as.numeric(seq_len(500) %in% head(which(data$y == 0), 30))
  expect_no_warning(
    fit <- quick_glm(y ~ rare, data, family = binomial(), iter = 400)
  )
  expect_s3_class(fit$kernel, "tall_kernel_mala")
  expect_null(fit$recipe$far)
})

test_that("a healthy posterior does not warn", {
  expect_silent(recipe_fit(tall_model(), iter = 20))
})

test_that("a Laplace prior that dominates gets the exact kernel", {
  local_way("minibatches")
  model <- withr::with_seed(1, {
    x <- cbind(rnorm(4000), rnorm(4000))
    model_glm(
      x,
      rbinom(4000, 1, plogis(0.1 * x[, 1])),
      prior = prior_laplace(0, 0.01)
    )
  })
  expect_silent(fit <- recipe_fit(model, iter = 20))
  expect_gt(fit$recipe$kappa, 1)
  expect_s3_class(fit$kernel, "tall_kernel_mala")
})

test_that("a narrow Laplace prior is told of where a kernel does not accept", {
  # sd 0.1 without the prior of `a`, which is independent of the other
  x <- cbind(a = rep(c(1, -1), 50), b = rep(1, 100))
  y <- 0.3 * x[, "a"] + sin(1:100)
  model <- function(scale) {
    prior <- prior_laplace(0, c(scale, 10))
    model_glm(x, y, "gaussian", prior = prior, sigma = 1)
  }
  narrow <- model(0.05)
  expect_equal(
    laplace_ratios(narrow, find_mode(narrow)),
    c(`1` = 2, `2` = 0.01)
  )
  run <- function(model, kernel, ...) {
    sg_sample(model, kernel, ..., iter = 40, chains = 1, seed = 1, refresh = 0)
  }
  kernel <- kernel_sgld(1e-3)
  expect_snapshot(fit <- run(narrow, kernel))
  warning <- expect_warning(run(narrow, kernel), class = "tall_warning_prior")
  expect_identical(warning$columns, "a")
  expect_equal(warning$ratio, 2)
  silent <- model_glm(
    cbind(x, zero = 0),
    y,
    "gaussian",
    prior_laplace(0, 1),
    sigma = 1
  )
  expect_warning(run(silent, kernel), "data alone say nothing of the parameter")
  expect_silent(run(model(0.11), kernel))
  expect_silent(run(narrow, kernel_mala(1e-3)))
  expect_silent(run(narrow, NULL))
  # nobody has looked for a mode
  fresh <- model(0.05)
  expect_silent(run(fresh, kernel, gradient_full(), init = c(0, 0)))
  warning <- expect_warning(
    tall_glm(
      y ~ 0 + a,
      data.frame(a = x[, "a"], y = y),
      gaussian(),
      prior = prior_laplace(0, 0.01),
      kernel = kernel,
      iter = 40,
      chains = 1,
      seed = 1,
      refresh = 0
    ),
    class = "tall_warning_prior"
  )
})
