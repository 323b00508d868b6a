data <- example_data()
x <- example_matrix(data)

# The mode under a flat prior is the maximum likelihood estimate.
glm_fit <- function(family, ...) {
  stats::glm.fit(x, ..., family = family, control = list(epsilon = 1e-14))
}

test_that("the mode under a flat prior is glm()'s, for every family", {
  cases <- list(
    bernoulli = list(y = data$y, family = binomial()),
    poisson = list(y = data$count, family = poisson()),
    gaussian = list(y = data$z, family = gaussian())
  )
  for (name in names(cases)) {
    case <- cases[[name]]
    for (method in c("newton", "lbfgs")) {
      model <- model_glm(
        x,
        case$y,
        name,
        prior = prior_flat(),
        sigma = if (name == "gaussian") 2
      )
      mode <- find_mode(model, method, max_iter = 1000)
      expected <- glm_fit(case$family, case$y)$coefficients
      tolerance <- if (method == "newton") 1e-5 else 1e-4
      expect_equal(coef(mode), expected, tolerance = tolerance, info = name)
      expect_true(mode$converged)
      expect_identical(mode$method, method)
    }
  }
})

test_that("offset and weights enter the mode as they do in glm()", {
  model <- model_glm(
    x,
    data$count,
    "poisson",
    prior = prior_flat(),
    weights = data$w,
    offset = log(data$exposure)
  )
  expected <- glm_fit(
    poisson(),
    data$count,
    weights = data$w,
    offset = log(data$exposure)
  )
  expect_equal(coef(find_mode(model)), expected$coefficients, tolerance = 1e-5)

  share <- data$y * 0.5 + 0.25
  model <- model_glm(
    x,
    share,
    "binomial",
    prior = prior_flat(),
    weights = 4 * data$w
  )
  expected <- suppressWarnings(
    glm_fit(binomial(), share, weights = 4 * data$w)
  )
  expect_equal(coef(find_mode(model)), expected$coefficients, tolerance = 1e-5)
})

test_that("with sigma unknown the mode is that of log sigma", {
  model <- model_glm(
    x,
    data$z,
    "gaussian",
    prior = prior_flat(),
    prior_aux = prior_flat()
  )
  mode <- find_mode(model)
  ols <- stats::lm.fit(x, data$z)
  expect_named(coef(mode), c("(Intercept)", "a", "b", "log_sigma"))
  expect_equal(coef(mode)[1:3], ols$coefficients, tolerance = 1e-7)
  # a prior flat in sigma: its density in log sigma is sigma
  expect_equal(
    exp(2 * coef(mode)[["log_sigma"]]),
    sum(ols$residuals^2) / (nrow(x) - 1),
    tolerance = 1e-6
  )
})

test_that("a normal prior makes it ridge regression", {
  model <- model_glm(x, data$z, "gaussian", prior_normal(1, 0.1), sigma = 2)
  precision <- crossprod(x) / 4 + diag(100, 3)
  expected <- solve(precision, crossprod(x, data$z) / 4 + 100)
  mode <- find_mode(model)
  expect_equal(unname(coef(mode)), drop(unname(expected)))
  expect_equal(unname(vcov(mode)), unname(solve(precision)))
  expect_equal(unname(mode$hessian), unname(-precision))
  expect_equal(mode$chol %*% t(mode$chol), unname(precision))
  expect_lt(mode$gradient_norm, 1e-6)
})

test_that("a Laplace prior is rounded at its kink, its curvature counts half", {
  scale <- 0.2
  model <- model_glm(x, data$y, prior = prior_laplace(0, scale))
  mode <- find_mode(model)
  p <- plogis(drop(x %*% coef(mode)))
  information <- crossprod(x, p * (1 - p) * x)
  expect_equal(
    unname(-mode$hessian),
    unname(information + diag(1 / (2 * scale^2), 3)),
    tolerance = 1e-6
  )
  # the gradient of the rounded density is zero; |t| / sqrt(t^2 + e^2) < 1
  score <- drop(crossprod(x, data$y - p))
  expect_true(all(abs(score) < 1 / scale))
  expect_identical(unname(sign(score)), unname(sign(coef(mode))))
})

test_that("a Laplace prior identifies dependent columns, whatever the search", {
  withr::local_seed(5)
  scale <- 2
  columns <- cbind(x, twice = 2 * x[, 2], none = 0)
  model <- model_glm(columns, data$y, prior = prior_laplace(0, scale))
  for (method in c("newton", "lbfgs", "adam", "sgd")) {
    mode <- suppressWarnings(
      find_mode(model, method, batch_size = 50, max_iter = 50)
    )
    p <- plogis(drop(columns %*% coef(mode)))
    information <- crossprod(columns, p * (1 - p) * columns)
    expect_close(
      -unname(mode$hessian),
      unname(information + diag(1 / (2 * scale^2), 5))
    )
  }
  # and at a point that is given
  weights <- subsampling_weights(model, at = numeric(5), type = "hessian")
  expect_true(all(weights > 0))
})

test_that("the mode says what it cost", {
  model <- example_model()
  mode <- find_mode(model)
  expect_gt(mode$passes, 2)
  expect_lt(mode$passes, 20)
  # the first stage uses a tenth of the rows, and few passes over all are left
  tall <- withr::with_seed(1, {
    x <- cbind(1, matrix(rnorm(60000 * 2), ncol = 2))
    model_glm(x, rbinom(60000, 1, plogis(x %*% c(1, -1, 0.5))))
  })
  tall_mode <- find_mode(tall)
  expect_true(tall_mode$converged)
  expect_false(tall_mode$passes == round(tall_mode$passes))
  expect_lt(tall_mode$passes, 5)
})

test_that("levels that some rows send far do not make a search long", {
  data <- withr::with_seed(1, {
    n <- 1e5
    x <- cbind("(Intercept)" = 1, x = rnorm(n), matrix(0, n, 4))
    first <- floor(seq(1, n, length.out = n / 10))
    for (k in 1:4) {
      others <- sample(setdiff(seq_len(n), first), 40 * k)
      x[c(others, first[3 * k + 1:3]), 2 + k] <- 1
    }
    list(x = x, y = rbinom(n, 1, plogis(-1 + 0.5 * x[, 2])), first = first)
  })
  # in the tenth that comes first they have no event
  is_rare <- rowSums(data$x[, 3:6]) > 0
  data$y[intersect(which(is_rare), data$first)] <- 0
  mode <- find_mode(model_glm(data$x, data$y, prior = prior_normal(0, 25)))
  expect_lt(mode$passes, 12)
  glm <- stats::glm.fit(data$x, data$y, family = stats::binomial())
  expect_equal(unname(coef(mode)), unname(glm$coefficients), tolerance = 0.01)
})

test_that("a start is respected and the mode does not depend on it", {
  model <- example_model()
  expect_equal(
    coef(find_mode(model, init = c(1, -1, 0.2))),
    coef(find_mode(model)),
    tolerance = 1e-5
  )
  at_mode <- find_mode(model, init = coef(find_mode(model)))
  expect_lte(at_mode$iterations, 2)
})

test_that("the default mode is found once for a model", {
  model <- example_model()
  first <- model_mode(model)
  expect_identical(model_mode(model), first)
  expect_identical(model$cache$mode, first)
})

test_that("modes print", {
  expect_snapshot(print(find_mode(example_model())), transform = scrub)
})

test_that("separation under a flat prior names the columns", {
  x <- cbind(x, split = data$y)
  model <- model_glm(x, data$y, prior = prior_flat())
  for (method in c("newton", "lbfgs")) {
    e <- expect_error(find_mode(model, method), class = "tall_error_improper")
    expect_true("split" %in% e$columns)
  }
  only <- model_glm(
    x,
    data$y,
    prior = prior_flat(),
    prior_intercept = prior_normal()
  )
  expect_snapshot(find_mode(only), error = TRUE, cnd_class = TRUE)
  # the call is the user's
  e <- expect_error(
    sg_sample(model, kernel_sgld(1e-3), refresh = 0),
    class = "tall_error_improper"
  )
  expect_identical(as.character(e$call[[1]]), "sg_sample")
  e <- expect_error(
    sg_sample(model, refresh = 0),
    class = "tall_error_improper"
  )
  expect_identical(as.character(e$call[[1]]), "sg_sample")
  # a proper prior is enough
  expect_true(find_mode(model_glm(x, data$y))$converged)
})

test_that("columns too close to dependent to compute with are told apart", {
  frame <- transform(data, stamp = 1e8 + a, near = a, far = 1e5 + a)
  run <- function(formula, ...) {
    tall_glm(formula, frame, binomial(), ..., iter = 400, seed = 1, refresh = 0)
  }
  expect_snapshot(run(y ~ stamp), error = TRUE)
  expect_error(run(y ~ stamp, prior = prior_flat()), "not proper")
  # what is advised, and one that is far off but can be computed
  centred <- run(y ~ scale(stamp, scale = FALSE))
  near <- run(y ~ near)
  expect_equal(coef(centred)[[2]], coef(near)[[2]], tolerance = 0.02)
  expect_equal(coef(run(y ~ far))[[2]], coef(near)[[2]], tolerance = 0.02)
})

test_that("columns that depend on each other are named under a flat prior", {
  x <- cbind(x, sum = x[, "a"] + x[, "b"])
  model <- model_glm(x, data$y, prior = prior_flat())
  e <- expect_error(find_mode(model), class = "tall_error_improper")
  expect_length(e$columns, 1)
  expect_true(e$columns %in% c("a", "b", "sum"))
  zero <- cbind(x[, 1:3], zero = 0)
  model <- model_glm(zero, data$y, prior = prior_flat())
  expect_snapshot(find_mode(model), error = TRUE)
  many <- cbind(x[, 1:3], matrix(0, nrow(x), 7))
  model <- model_glm(many, data$y, prior = prior_flat())
  expect_error(find_mode(model), "and 2 more are linear combinations")
  twice <- cbind(x[, 1:3], constant = 2)
  model <- model_glm(twice, data$y, prior = prior_flat())
  expect_error(find_mode(model), class = "tall_error_improper")
})

test_that("their units do not matter", {
  scaled <- x %*% diag(c(1, 1e-6, 1e6))
  model <- model_glm(scaled, data$y, prior = prior_flat())
  expect_equal(
    unname(coef(find_mode(model))) * c(1, 1e-6, 1e6),
    unname(glm_fit(binomial(), data$y)$coefficients),
    tolerance = 1e-6
  )
})

test_that("one constant column is an intercept, and fine", {
  model <- model_glm(x, data$y, prior = prior_flat())
  expect_true(find_mode(model)$converged)
  model <- model_glm(x[, 1, drop = FALSE], data$y, prior = prior_flat())
  expect_equal(
    unname(coef(find_mode(model))),
    qlogis(mean(data$y)),
    tolerance = 1e-5
  )
})

test_that("a normal prior makes dependent columns fine", {
  x <- cbind(x, again = x[, "a"])
  mode <- find_mode(model_glm(x, data$y))
  expect_true(mode$converged)
  expect_equal(mode$estimate[["a"]], mode$estimate[["again"]], tolerance = 1e-6)
})

test_that("a search that does not converge warns in words", {
  model <- example_model()
  expect_snapshot(
    invisible(find_mode(model, max_iter = 1)),
    transform = scrub,
    cnd_class = TRUE
  )
})

test_that("bad arguments are refused in words", {
  model <- example_model()
  expect_snapshot(find_mode(), error = TRUE)
  expect_snapshot(find_mode(x), error = TRUE, cnd_class = TRUE)
  expect_snapshot(find_mode(model, "newtn"), error = TRUE)
  expect_snapshot(find_mode(model, init = 1:2), error = TRUE)
  expect_snapshot(find_mode(model, init = c(1, NA, 1)), error = TRUE)
  expect_snapshot(find_mode(model, max_iter = 0), error = TRUE)
  expect_snapshot(find_mode(model, cores = 0), error = TRUE)
})

test_that("a start without a finite density is refused in words", {
  expect_snapshot(
    find_mode(example_model("poisson"), init = c(1000, 0, 0)),
    error = TRUE,
    cnd_class = TRUE
  )
})

test_that("a search that cannot go on does not ask for more iterations", {
  # whose gradient is that of another density
  wrong <- model_custom(
    log_lik = function(theta, batch) -(batch$y - theta$mu)^2 / 2,
    log_prior = function(theta) 0,
    data = list(y = as.numeric(1:10)),
    init = list(mu = 0),
    grad_log_lik = function(theta, batch) list(mu = batch$y + 3 - theta$mu),
    grad_log_prior = function(theta) list(mu = 0),
    check = FALSE
  )
  expect_warning(find_mode(wrong, init = 5.5), "no step raised")
})

# Gaussian rows in other units: of the response, of a column.
unit_scales <- 10^c(-6, -3, -1, 0, 1, 2, 4, 6)

test_that("a Gaussian mode is that of lm(), whatever the units", {
  rows <- withr::with_seed(2, {
    x <- stats::rnorm(434)
    list(x = x, y = 5 + x + stats::rnorm(434))
  })
  ols <- stats::lm(y ~ x, rows)
  rss <- sum(stats::residuals(ols)^2)
  for (s in unit_scales) {
    for (unit in list(c(s, 1), c(1, s))) {
      x <- cbind(1, unit[[2]] * rows$x)
      y <- unit[[1]] * rows$y
      known <- c(coef(ols) * unit[[1]] / c(1, unit[[2]]))
      sampled <- model_glm(
        x,
        y,
        "gaussian",
        prior_flat(),
        prior_aux = prior_flat()
      )
      fixed <- model_glm(x, y, "gaussian", prior_flat(), sigma = 2 * unit[[1]])
      for (method in c("newton", "lbfgs")) {
        found <- find_mode(sampled, method)
        expect_true(found$converged)
        ratio <- unname(coef(found)[1:2] / known)
        expect_equal(ratio, c(1, 1), tolerance = 1e-5)
        # sigma^(1 - N) exp(-RSS / 2 sigma^2) of log sigma
        sigma <- exp(coef(found)[[3]]) / unit[[1]]
        expect_equal(sigma, sqrt(rss / 433), tolerance = 1e-5)
        found <- coef(find_mode(fixed, method))
        expect_equal(unname(found / known), c(1, 1), tolerance = 1e-5)
      }
    }
  }
})

test_that("other modes do not depend on the units of columns either", {
  rows <- withr::with_seed(4, {
    x <- stats::rnorm(300)
    list(
      x = x,
      bernoulli = stats::rbinom(300, 1, stats::plogis(1 + x)),
      poisson = stats::rpois(300, exp(1 + x))
    )
  })
  for (family in c("bernoulli", "poisson")) {
    y <- rows[[family]]
    oracle <- if (family == "poisson") stats::poisson() else stats::binomial()
    known <- stats::glm(y ~ rows$x, oracle, control = list(epsilon = 1e-14))
    for (s in unit_scales) {
      model <- model_glm(cbind(1, s * rows$x), y, family, prior = prior_flat())
      for (method in c("newton", "lbfgs")) {
        found <- find_mode(model, method)
        expect_true(found$converged)
        ratio <- unname(coef(found) / (coef(known) / c(1, s)))
        expect_equal(ratio, c(1, 1), tolerance = 1e-5)
      }
    }
  }
})

test_that("textbook regressions in raw units have their posterior", {
  ols <- summary(stats::lm(mpg ~ wt, mtcars))$coefficients
  first <- NULL
  for (s in c(1e-6, 1, 10, 100, 1e6)) {
    fit <- tall_glm(
      I(mpg * s) ~ wt,
      mtcars,
      prior = prior_flat(),
      seed = 1,
      refresh = 0
    )
    draws <- as.matrix(fit) / s
    expect_lt(max(abs(colMeans(draws)[1:2] - ols[, 1]) / ols[, 2]), 0.2)
    first <- first %||% draws
    expect_equal(draws, first, tolerance = 1e-8)
    by_column <- tall_glm(
      mpg ~ I(wt * s),
      mtcars,
      prior = prior_flat(),
      seed = 1,
      refresh = 0
    )
    scaled <- sweep(as.matrix(by_column), 2, c(1, s, 1), "*")
    expect_equal(scaled, first, tolerance = 1e-8, ignore_attr = TRUE)
  }
  x <- cbind(1, wt = mtcars$wt)
  model <- model_glm(x, 100 * mtcars$mpg, "gaussian", prior_flat())
  fit <- sg_sample(model, seed = 1, refresh = 0)
  means <- colMeans(as.matrix(fit))[1:2] / 100
  expect_lt(max(abs(means - ols[, 1]) / ols[, 2]), 0.2)
})

test_that("a fit as good as exact has a mode", {
  rows <- withr::with_seed(5, {
    x <- stats::rnorm(100)
    list(x = x, y = 1e7 * x + stats::rnorm(100))
  })
  rss <- sum(stats::residuals(stats::lm(y ~ x, rows))^2)
  found <- find_mode(model_glm(
    cbind(1, rows$x),
    rows$y,
    "gaussian",
    prior_flat(),
    prior_aux = prior_flat()
  ))
  expect_identical(found$method, "newton")
  expect_equal(exp(coef(found)[[3]]), sqrt(rss / 99), tolerance = 1e-6)
})

test_that("a row far out is no separation", {
  # the predictor is far beyond 30 where the maximum is
  for (seed in c(76, 77, 81)) {
    x <- withr::with_seed(seed, cbind(1, stats::rt(200, 1)))
    x[1, 2] <- 1e5
    y <- withr::with_seed(seed, stats::rbinom(200, 1, stats::plogis(x[, 2])))
    known <- suppressWarnings(
      stats::glm(y ~ x - 1, stats::binomial(), epsilon = 1e-14, maxit = 100)
    )
    found <- find_mode(model_glm(x, y, prior = prior_flat()))
    expect_gt(max(abs(x %*% coef(found))), 1e3)
    expect_equal(unname(coef(found)), unname(coef(known)), tolerance = 1e-6)
  }
})

test_that("separation is found in any unit, and named for what it is", {
  x <- withr::with_seed(6, cbind(1, z = stats::rnorm(200)))
  g <- rep(c(1, 0, 0, 0), 50)
  binary <- withr::with_seed(7, stats::rbinom(200, 1, 0.5))
  counts <- withr::with_seed(8, stats::rpois(200, 3))
  for (s in c(1e-6, 1, 1e6)) {
    with_g <- cbind(x, g = s * g)
    y <- replace(binary, g == 1, 1)
    model <- model_glm(with_g, y, prior = prior_flat())
    e <- expect_error(find_mode(model), class = "tall_error_improper")
    expect_identical(e$columns, "g")
    expect_match(conditionMessage(e), "`g` separates the outcomes")
    y <- counts * (1 - g)
    model <- model_glm(with_g, y, "poisson", prior = prior_flat())
    e <- expect_error(find_mode(model), class = "tall_error_improper")
    expect_identical(e$columns, "g")
    expect_match(conditionMessage(e), "`g` marks rows whose counts are all 0")
  }
  # where no row is another
  model <- model_glm(
    cbind(x = g, h = 1),
    0 * g,
    "poisson",
    prior = prior_flat()
  )
  e <- expect_error(find_mode(model), class = "tall_error_improper")
  expect_no_match(conditionMessage(e), "others")
})

test_that("L-BFGS ends at the mode of a ridge by Newton's steps", {
  withr::local_seed(1)
  g <- rep(1:6, each = 200)
  data <- data.frame(y = rnorm(length(g), 0.2 * g, 0.5), g = factor(g))
  # effects as scale times z: along the ridge z falls as the scale rises
  model <- model_custom(
    function(theta, batch) {
      dnorm(batch$y, theta$m + theta$s * theta$z[batch$g], 0.5, log = TRUE)
    },
    function(theta) {
      dnorm(theta$m, 0, 2, log = TRUE) + dnorm(theta$s, 0, 2, log = TRUE) +
        sum(dnorm(theta$z, log = TRUE))
    },
    data,
    list(m = 0, s = 1, z = numeric(6)),
    transform = list(s = "positive")
  )
  mode <- expect_no_warning(find_mode(model))
  expect_true(mode$converged)
  at <- as.double(mode$estimate)
  step <- forwardsolve(mode$chol, model_evaluate(model, at)$gradient)
  expect_lt(sum(step^2) / 2, 1e-8)
})

test_that("Newton's steps go uphill where a prior bends more than rows", {
  data <- withr::with_seed(2, data.frame(f = rep(0:1, 150)))
  data$y <- 3 * data$f + withr::with_seed(3, stats::rnorm(300))
  x <- cbind("(Intercept)" = 1, f = data$f)
  for (scale in c(0.03, 0.1, 0.3)) {
    model <- model_glm(
      x,
      data$y,
      "gaussian",
      prior = prior_student(3, 0, scale),
      prior_intercept = prior_normal(0, 100)
    )
    mode <- find_mode(model)
    expect_true(mode$converged)
    # a mode: no slope, and minus the Hessian positive definite
    at <- as.double(mode$estimate)
    step <- forwardsolve(mode$chol, model_evaluate(model, at)$gradient)
    expect_lt(sum(step^2) / 2, 1e-8)
  }
})
