# Draws are of variables, chains move parameters: what needs the one does not
# take the other, where covariates are far from 0. By hand, in R.

far_data <- function() {
  withr::local_seed(3)
  n <- 300
  x <- stats::rnorm(n) + 3
  list(x = x, k = factor(sample(c("a", "b", "c"), n, TRUE)))
}

far_design <- function(data = far_data()) {
  cbind("(Intercept)" = 1, x = data$x)
}

far_model <- function(data = far_data(), is_centred = FALSE) {
  x <- if (is_centred) data$x - mean(data$x) else data$x
  model_classes(
    cbind("(Intercept)" = 1, x = x),
    data$k,
    prior = prior_normal(0, 2.5)
  )
}

# Of each row, at b: coefficients of class b, then of class c.
far_rows <- function(b, data = far_data()) {
  eta <- cbind(0, far_design(data) %*% matrix(b, 2))
  eta[cbind(seq_along(data$x), as.integer(data$k))] - log(rowSums(exp(eta)))
}

# In the variables: the intercepts' prior is of predictors at the mean.
far_log_posterior <- function(b, data = far_data()) {
  slope <- b[c(2, 4)]
  at_mean <- b[c(1, 3)] + mean(data$x) * slope
  sum(far_rows(b, data)) +
    sum(stats::dnorm(c(slope, at_mean), 0, 2.5, log = TRUE))
}

far_fit <- function(model = far_model(), ...) {
  sg_sample(model, ..., seed = 1, refresh = 0)
}

test_that("log_lik() and loo() of classes are those of their draws", {
  fit <- far_fit(iter = 700)
  draws <- draws_matrix(fit)
  by_hand <- t(apply(draws, 1, far_rows))
  expect_close(log_lik(fit), by_hand)
  skip_if_not_installed("loo")
  found <- suppressWarnings(loo(fit))
  expected <- suppressWarnings(loo::loo(by_hand))
  # but for the effective draws that tails are smoothed by
  expect_equal(found$estimates, expected$estimates, tolerance = 1e-5)
})

test_that("discrepancies of classes do not depend on where columns are", {
  keep <- c("draws", "gradients")
  far <- far_fit(iter = 700, keep = keep)
  near <- far_fit(far_model(is_centred = TRUE), iter = 700, keep = keep)
  expect_close(fit_unconstrained(far), fit_unconstrained(near))
  for (gradient in list(NULL, "kept")) {
    expect_equal(ksd(far, gradient), ksd(near, gradient), tolerance = 1e-8)
    one <- fssd(far, gradient, seed = 1)
    expect_equal(one, fssd(near, gradient, seed = 1), tolerance = 1e-8)
  }
  expect_lt(ksd(far), 1)
})

test_that("zero_variance() of classes is of their posterior", {
  fit <- far_fit(iter = 1500, keep = c("draws", "gradients"))
  truth <- importance_moments(
    far_log_posterior,
    colMeans(draws_matrix(fit)),
    n = 20000
  )
  square <- truth$mean[[1]]^2 + truth$sd[[1]]^2
  f <- function(draws) draws[, 1]^2
  for (gradient in c("kept", "full")) {
    found <- zero_variance(fit, f, order = 2, gradient = gradient)
    # of 20,000 weighted draws, se 0.01
    expect_lt(abs(attr(found, "estimates")[[1]] - square), 0.03)
    expect_lt(attr(found, "variance_ratio")[[1]], 0.01)
  }
})

test_that("sg_tune() of classes takes the step of centred columns", {
  tune <- function(is_centred) {
    sg_tune(
      far_model(is_centred = is_centred),
      kernel_sgld(0.01),
      grid = list(step_size = 10^-(1:3)),
      budget = 1e6,
      points = 50,
      seed = 1,
      refresh = 0
    )$rungs
  }
  columns <- c("arm", "score", "survived")
  expect_equal(
    tune(FALSE)[1:2, columns],
    tune(TRUE)[1:2, columns],
    tolerance = 1e-6
  )
})

test_that("find_mode() has the mode in the variables, under their names", {
  model <- far_model()
  found <- find_mode(model)
  by_hand <- stats::optim(
    numeric(4),
    far_log_posterior,
    method = "BFGS",
    control = list(fnscale = -1, reltol = 1e-14, maxit = 500)
  )
  expect_named(found$variables, model$variables)
  expect_equal(unname(found$variables), by_hand$par, tolerance = 1e-4)
  expect_equal(
    far_log_posterior(found$variables) - far_log_posterior(numeric(4)),
    found$log_posterior - model_evaluate(model, numeric(4))$log_density,
    tolerance = 1e-10
  )
  moves <- c("centred_b:(Intercept)", "b:x", "centred_c:(Intercept)", "c:x")
  expect_named(found$estimate, moves)
  expect_equal(found$estimate[c(2, 4)], found$variables[c(2, 4)])
  printed <- capture.output(print(found))
  expect_match(printed, "^centred_b:\\(Intercept\\) ", all = FALSE)
  expect_match(printed, "^b:\\(Intercept\\) ", all = FALSE)
})

test_that("find_mode() has variables of other models", {
  x <- cbind("(Intercept)" = 1, x = 1:40)
  y <- sin(1:40)
  normal <- find_mode(model_glm(x, y, family = "gaussian"))
  expect_equal(
    normal$variables,
    c(normal$estimate[1:2], sigma = exp(normal$estimate[["log_sigma"]]))
  )
  logistic <- find_mode(model_glm(x, as.double(y > 0), family = "bernoulli"))
  expect_identical(logistic$variables, logistic$estimate)
  expect_no_match(capture.output(print(logistic)), "variables")
})

test_that("a threshold at the mean is not that at 0, of two classes either", {
  data <- far_data()
  y <- as.double(data$k == "a")
  x <- cbind(x = data$x)
  model <- model_classes(
    x,
    y + 1,
    "logistic",
    prior = NULL,
    prior_counts = NULL
  )
  expect_identical(model$variables, c("x", "1|2"))
  expect_identical(model$coordinates, c("x", "centred_1|2"))
  expect_true(model_has_map(model))
  # P(y = 2) = F(b x - c)
  known <- stats::coef(stats::glm(y ~ x, family = stats::binomial()))
  expect_equal(
    unname(find_mode(model)$variables),
    unname(c(known[[2]], -known[[1]])),
    tolerance = 1e-5
  )
  fit <- far_fit(model, iter = 200)
  by_hand <- t(apply(draws_matrix(fit), 1, function(b) {
    stats::plogis((2 * y - 1) * (b[[1]] * data$x - b[[2]]), log.p = TRUE)
  }))
  expect_close(log_lik(fit), by_hand)
})

test_that("a model says whether it has a map, whatever names are", {
  x <- cbind("(Intercept)" = 1, x = 1:20)
  y <- rep(0:1, 10)
  has_map <- function(model) model_has_map(model)
  expect_false(has_map(model_glm(x, y, family = "bernoulli")))
  expect_false(has_map(model_glm(x, y, family = "gaussian", sigma = 1)))
  expect_true(has_map(model_glm(x, y, family = "gaussian")))
  expect_true(has_map(model_classes(x, y + 1)))
  expect_false(has_map(model_classes(x[, 2, drop = FALSE], y + 1)))
  expect_false(has_map(model_classes(x[, 1, drop = FALSE], y + 1)))
  z <- x
  z[, 2] <- rep(c(-1, 1, 1, -1), 5)
  expect_false(has_map(model_classes(z, y + 1)))
  own <- z[, 2, drop = FALSE]
  expect_true(has_map(model_classes(own, rep(1:4, 5), "probit")))
  data <- matrix(sin(1:40), 20)
  expect_false(has_map(model_ica(data)))
  expect_true(has_map(build_ica(data, 1, diag(2))))
  custom <- function(...) {
    model_custom(
      function(theta, batch) stats::dnorm(batch, theta$m, log = TRUE),
      function(theta) 0,
      data = y,
      init = list(m = 1),
      ...
    )
  }
  expect_false(has_map(custom()))
  expect_true(has_map(custom(transform = list(m = "positive"))))
  # whitened ones have that of the model inside
  wide <- model_classes(x, y + 1)
  expect_true(has_map(whiten_model(wide, find_mode(wide), in_place = FALSE)))
})

test_that("a native model's map counts where its names are the same", {
  skip_without_compiler()
  data <- withr::with_seed(1, cbind(1, matrix(stats::rnorm(80) + 3, 40)))
  y <- data[, 2] + cos(1:40)
  init <- c(a = 0, b = 0, c = 0, s = 0)
  model <- model_native(
    native_example("robust"),
    data = list(x = data, y = y),
    init = init,
    constants = list(df = 4, prior_sd = 2, prior_scale = 1),
    variables = names(init)
  )
  fit <- far_fit(model, kernel_mala(0.001), iter = 100, init = init)
  expect_close(fit$unconstrained[, , "s"], log(unclass(fit$draws)[, , "s"]))
  by_hand <- t(apply(draws_matrix(fit), 1, function(v) {
    stats::dt((y - data %*% v[1:3]) / v[[4]], 4, log = TRUE) - log(v[[4]])
  }))
  expect_close(log_lik(fit), by_hand)
})

test_that("starting points and references by names of variables are refused", {
  model <- far_model()
  at <- coef(far_fit(model, iter = 50))
  refused <- function(expr) expect_error(expr, class = "tall_error_input")
  refused(find_mode(model, init = at))
  refused(far_fit(model, kernel_sgld(0.1), gradient_full(), init = at))
  refused(pseudo_variance(model, at, gradient_simple(), subsample_uniform(9)))
  refused(ksd(draws_matrix(far_fit(model, iter = 50)), model))
})

test_that("pseudo_variance() of classes is that of their gradients", {
  data <- far_data()
  theta <- fit_unconstrained(far_fit(iter = 50))[1:2, ]
  found <- pseudo_variance(
    far_model(),
    theta,
    gradient_simple(),
    subsample_uniform(10, replace = TRUE)
  )
  z <- cbind(1, data$x - mean(data$x))
  by_hand <- apply(theta, 1, function(b) {
    e <- exp(cbind(0, z %*% matrix(b, 2)))
    r <- diag(3)[as.integer(data$k), -1] - (e / rowSums(e))[, -1]
    g <- cbind(r[, 1] * z, r[, 2] * z)
    (nrow(g) * sum(g^2) - sum(colSums(g)^2)) / 10
  })
  expect_close(found, by_hand)
})

test_that("bias is of variables that are functions of one parameter", {
  fit <- far_fit(far_model(), kernel_sgld(0.002), gradient_full(), iter = 400)
  expect_identical(fit$bias$variable, c("b:x", "c:x"))
  g <- rep(1:20, each = 4)
  x <- cbind("(Intercept)" = 1, x = sin(1:80))
  model <- model_groups(x, cos(1:80) + g / 20, g, x, family = "gaussian")
  lambda <- 3:5
  expect_identical(
    model$coordinates[lambda],
    c(
      "log_sd_group__Intercept",
      "log_sd_group__x",
      "atanh_group__Intercept__x"
    )
  )
  # of standardised effects: only the last is, but for its unit, as written
  expect_identical(model$variable_of, c(1:2, NA, 4L, NA, 6L))
})

test_that("draws of some variables keep their parameters", {
  run <- function(...) {
    far_fit(far_model(), kernel_sgld(0.002), gradient_full(), iter = 60, ...)
  }
  all <- run()
  some <- run(variables = "b:(Intercept)")
  expect_identical(
    some$unconstrained[, , 1],
    all$unconstrained[, , "centred_b:(Intercept)"]
  )
})

test_that("runs that go on keep the parameters of all draws", {
  run <- function(iter) {
    far_fit(
      far_model(),
      kernel_sgld(0.002),
      gradient_full(),
      iter = iter,
      warmup = 20
    )
  }
  expect_identical(
    sg_resume(run(40), 20, refresh = 0)$unconstrained,
    run(60)$unconstrained
  )
})

# As a version left it that took names for the map.
old_fit <- function(fit) {
  fit$coordinates <- fit$variables
  fit$has_map <- NULL
  fit$unconstrained <- NULL
  seal_fit(fit)
}

test_that("fits that did not keep the parameters are refused, but for draws", {
  model <- far_model()
  fit <- old_fit(far_fit(model, kernel_sgld(0.002), gradient_full(), iter = 60))
  stale <- function(expr) expect_error(expr, class = "tall_error_stale")
  stale(log_lik(fit))
  stale(ksd(fit))
  stale(sg_resume(fit, 10, refresh = 0))
  expect_output(print(fit))
  expect_identical(nrow(as.matrix(fit)), 120L)
  expect_snapshot(error = TRUE, ksd(fit))
  # a file of it has no model
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(fit, file)
  stale(sg_resume(readRDS(file), 10, model = model, refresh = 0))
  stale(ksd(readRDS(file), model))
  # names of others did tell
  x <- cbind("(Intercept)" = 1, x = 1:20)
  plain <- far_fit(
    model_glm(x, rep(0:1, 10), family = "bernoulli"),
    kernel_sgld(0.001),
    gradient_full(),
    iter = 60
  )
  plain$has_map <- NULL
  expect_no_error(ksd(seal_fit(plain)))
})
