columns <- c("(Intercept)", "age", "sex")

test_that("priors print in two to four lines", {
  expect_snapshot({
    prior_normal()
    prior_normal(0, c(10, 1, 1))
    prior_laplace(1, 0.5, autoscale = TRUE)
    prior_normal(0, 1:8)
    prior_flat()
  })
})

test_that("one value serves every coefficient", {
  out <- prior_resolve(prior_normal(1, 2), names = columns)
  expect_identical(out$kind, c(1L, 1L, 1L))
  expect_identical(out$location, c(1, 1, 1))
  expect_identical(out$scale, c(2, 2, 2))
})

test_that("columns need no names", {
  out <- prior_resolve(prior_laplace(0, 1:2), n_dim = 2)
  expect_identical(out$kind, c(2L, 2L))
  expect_identical(out$scale, c(1, 2))
})

test_that("prior_intercept takes its column from prior, wherever it is", {
  names <- c("age", "(Intercept)", "sex")
  out <- prior_resolve(prior_laplace(0, 1:2), prior_normal(5, 10), names)
  expect_identical(out$kind, c(2L, 1L, 2L))
  expect_identical(out$location, c(0, 5, 0))
  expect_identical(out$scale, c(1, 10, 2))

  out <- prior_resolve(prior_flat(), prior_normal(), c("a", "b"))
  expect_identical(out$kind, c(0L, 0L))
})

test_that("autoscale divides by the sd of the column, and only then", {
  sds <- c(0, 2, 4)
  out <- prior_resolve(prior_normal(), names = columns, column_sd = sds)
  expect_identical(out$scale, c(2.5, 2.5, 2.5))

  prior <- prior_normal(0, 2.5, autoscale = TRUE)
  out <- prior_resolve(prior, names = columns, column_sd = sds)
  expect_identical(out$scale, 2.5 / c(1, 2, 4))

  out <- prior_resolve(
    prior,
    names = columns,
    column_sd = function() sds,
    units = list(sd = 3)
  )
  expect_identical(out$scale, 2.5 * 3 / c(1, 2, 4))
})

test_that("the standard deviations are computed only if they are needed", {
  unwanted <- function() stop("not needed")
  out <- prior_resolve(prior_normal(), names = columns, column_sd = unwanted)
  expect_identical(out$scale, c(2.5, 2.5, 2.5))
  expect_error(
    prior_resolve(
      prior_normal(autoscale = TRUE),
      names = columns,
      column_sd = unwanted
    ),
    "not needed"
  )
})

test_that("a prior is refused in words", {
  expect_snapshot(prior_normal(scale = 0), error = TRUE, cnd_class = TRUE)
  expect_snapshot(prior_normal(scale = c(1, -1)), error = TRUE)
  expect_snapshot(prior_laplace(location = NA), error = TRUE)
  expect_snapshot(prior_laplace(location = "a"), error = TRUE)
  expect_snapshot(prior_normal(1:3, 1:2), error = TRUE)
  expect_snapshot(prior_normal(autoscale = "yes"), error = TRUE)
})

test_that("a prior that does not fit is refused in words", {
  model <- function(prior, prior_intercept = NULL) {
    prior_resolve(prior, prior_intercept, columns)
  }
  expect_snapshot(model(prior_normal(0, 1:2)), error = TRUE)
  expect_snapshot(model(prior_normal(0, 1:3), prior_flat()), error = TRUE)
  expect_snapshot(model(prior_flat(), prior_normal(0, 1:2)), error = TRUE)
  expect_snapshot(model("normal"), error = TRUE)
  expect_snapshot(model(prior_normal), error = TRUE)
  expect_snapshot(model(prior_flat(), 1), error = TRUE)
})

test_that("names of a prior say which coefficient is meant", {
  out <- prior_resolve(
    prior_normal(c(sex = 3, "(Intercept)" = 1, age = 2), c(30, 10, 20)),
    names = columns
  )
  expect_identical(out$location, c(1, 2, 3))
  expect_identical(out$scale, c(10, 20, 30))
  out <- prior_resolve(
    prior_laplace(c(sex = 3, age = 2), c(age = 20, sex = 30)),
    prior_normal(c("(Intercept)" = 1), 5),
    columns
  )
  expect_identical(out$location, c(1, 2, 3))
  expect_identical(out$scale, c(5, 20, 30))
  out <- prior_resolve(
    prior_uniform(c(sex = -3, age = -2), c(age = 2, sex = 5)),
    prior_flat(),
    columns
  )
  expect_identical((out$location - out$scale)[2:3], c(-2, -3))
  expect_identical((out$location + out$scale)[2:3], c(2, 5))
  prior <- prior_uniform(c(sex = -3, age = -2), 4)
  out <- prior_resolve(prior, prior_flat(), columns)
  expect_identical((out$location - out$scale)[2:3], c(-2, -3))
  expect_snapshot(prior_normal(c(wt = -3, hp = 0), c(2, 0.1)))
})

test_that("names of a prior reach the models", {
  prior <- prior_normal(c(hp = 0, wt = -3), c(hp = 0.1, wt = 2))
  fit <- tall_glm(mpg ~ wt + hp, mtcars, prior = prior, seed = 1, refresh = 0)
  expect_identical(fit$prior$location[2:3], c(-3, 0))
  expect_identical(fit$prior$scale[2:3], c(2, 0.1))
  x <- cbind(a = 1:6, b = c(1, 3, 2, 5, 4, 4))
  y <- c(1, 0, 1, 0, 1, 1)
  model <- model_glm(x, y, prior = prior_normal(c(b = 1, a = 2), 3))
  expect_identical(model$prior$location, c(2, 1))
  # columns without names are x1, x2, ...
  model <- model_glm(unname(x), y, prior = prior_normal(0, c(x2 = 1, x1 = 2)))
  expect_identical(model$prior$scale, c(2, 1))
  prior <- prior_normal(
    c("layer1.bias[1]" = 3, "layer1.weight[1,1]" = 1, "layer1.weight[1,2]" = 2)
  )
  model <- model_network(x, y, NULL, likelihood = "bernoulli", prior = prior)
  expect_identical(model$prior$location, c(1, 2, 3))
  model <- model_gaussian(x, diag(2), prior_mean = c(b = 2, a = 1))
  expect_identical(model$prior_mean, c(1, 2))
})

test_that("names that do not fit are refused, and nothing is recycled", {
  resolve <- function(prior) prior_resolve(prior, prior_flat(), columns)
  expect_snapshot(resolve(prior_normal(c(age = 1, six = 2))), error = TRUE)
  expect_snapshot(
    resolve(prior_normal(c("(Intercept)" = 0, age = 1, sex = 2))),
    error = TRUE
  )
  expect_snapshot(resolve(prior_normal(c(age = 1))), error = TRUE)
  expect_snapshot(resolve(prior_normal(0, c(age = 1))), error = TRUE)
  expect_snapshot(prior_normal(c(age = 1, 2)), error = TRUE)
  expect_snapshot(prior_normal(c(age = 1, age = 2)), error = TRUE)
  expect_snapshot(prior_normal(c(age = 1), c(1, 2)), error = TRUE)
  expect_snapshot(prior_uniform(c(age = 1), c(b = 3)), error = TRUE)
  expect_snapshot(resolve(prior_uniform(c(age = 1), 3)), error = TRUE)
})

test_that("vectors of a run are matched by name", {
  x <- cbind(a = 1:6, b = c(1, 3, 2, 5, 4, 4))
  model <- model_glm(x, c(1, 0, 1, 0, 1, 1))
  mode <- find_mode(model)
  by_name <- find_mode(model, init = c(b = 9, a = 2))
  expect_identical(by_name, find_mode(model, init = c(2, 9)))
  run <- function(step = 1e-3, init = c(1, 2), at = coef(mode)) {
    fit <- sg_sample(
      model,
      kernel_sgld(step),
      gradient_cv(at),
      iter = 20,
      chains = 1,
      init = init,
      seed = 1,
      refresh = 0
    )
    as.matrix(fit)
  }
  expect_identical(run(init = c(b = 2, a = 1)), run())
  start <- matrix(c(2, 1), 2, dimnames = list(c("b", "a")))
  expect_identical(run(init = start), run())
  expect_identical(run(at = rev(coef(mode))), run())
  expect_identical(run(c(b = 1e-4, a = 1e-3)), run(c(1e-3, 1e-4)))
  wrong <- c(b = 1, c = 2)
  for (given in list(list(wrong), list(init = wrong), list(at = wrong))) {
    expect_error(do.call(run, given), "unknown", class = "tall_error_input")
  }
  variance <- function(theta) {
    pseudo_variance(model, theta, gradient_simple(), subsample_uniform(2))
  }
  expect_identical(variance(c(b = 2, a = 1)), variance(c(1, 2)))
})

test_that("NULL is flat", {
  flat <- prior_flat()
  x <- cbind("(Intercept)" = 1, a = c(-1, 3, 2, 5, 4, 4))
  y <- c(1, 0, 1, 0, 1, 1)
  kinds <- function(...) model_glm(x, y, "gaussian", ...)$prior$kind
  normal <- prior_normal()
  expect_identical(kinds(NULL), kinds(flat))
  expect_identical(kinds(normal, NULL), kinds(normal, flat))
  expect_identical(
    kinds(normal, prior_aux = NULL),
    kinds(normal, prior_aux = flat)
  )
  # not given, it is that of the other columns
  expect_identical(kinds(normal)[1:2], c(1L, 1L))
  frame <- data.frame(a = x[, 2], y = y)
  run <- function(f, ...) f(..., iter = 20, seed = 1, refresh = 0)
  expect_same <- function(f, ...) {
    of <- function(prior) {
      suppressWarnings(run(f, ..., prior, prior, prior))$prior$kind
    }
    expect_identical(of(NULL), of(flat))
    expect_identical(of(NULL)[1:2], c(0L, 0L))
  }
  expect_same(tall_glm, y ~ a, frame, gaussian())
  expect_same(tall_glm.fit, x, y, gaussian())
  network <- function(prior) {
    model_network(x, y, 2, prior = prior, prior_aux = prior)$prior$kind
  }
  expect_identical(network(NULL), network(flat))
  fit <- tall_nn(
    y ~ a,
    frame,
    2,
    prior = normal,
    prior_aux = NULL,
    train_iter = 10,
    iter = 10,
    chains = 1,
    kernel = kernel_sgld(1e-5),
    seed = 1,
    refresh = 0
  )
  expect_identical(utils::tail(fit$prior$kind, 1), 3L)
})

test_that("priors of rstanarm and brms are told what they are here", {
  model <- function(...) model_glm(cbind(1, 1:4), c(1, 0, 1, 0), ...)
  stan <- function(dist, location, scale, autoscale = FALSE, df = NA) {
    list(
      dist = dist,
      df = df,
      location = location,
      scale = scale,
      autoscale = autoscale
    )
  }
  expect_snapshot(model(prior = stan("normal", 0, 2.5)), error = TRUE)
  expect_snapshot(model(prior = stan("normal", 0, NULL, TRUE)), error = TRUE)
  # what student_t() and cauchy() return
  expect_error(
    model(prior = stan("t", 0, 1, df = 3)),
    "`student_t(3, 0, 1)`",
    fixed = TRUE
  )
  expect_error(
    model(prior = stan("t", 0, 1, df = 1)),
    "`cauchy(0, 1)`",
    fixed = TRUE
  )
  expect_snapshot(model(prior_aux = stan("exponential", NA, 0.5)), error = TRUE)
  brms <- structure(
    data.frame(
      prior = c("normal(0, 1)", "student_t(3, 0, 2)", ""),
      class = c("b", "Intercept", "sigma"),
      coef = ""
    ),
    class = c("brmsprior", "data.frame")
  )
  expect_snapshot(model(prior = brms), error = TRUE)
  # neither package is there
  expect_snapshot(model(prior = normal(0, 1)), error = TRUE)
  expect_snapshot(model(prior = set_prior("normal(0, 1)")), error = TRUE)
  expect_snapshot(model(prior = "normal(0, 1)"), error = TRUE)
  expect_snapshot(
    tall_glm(am ~ wt, mtcars, prior_intercept = cauchy(0, 5)),
    error = TRUE
  )
  # another mistake stays what it is
  expect_error(model(prior = stop("mine")), "mine")
})

test_that("kinds of priors have the places of the core's registry", {
  codes <- vapply(prior_kinds, function(kind) kind$code, 0L)
  codes <- codes[codes < 100] # others are of test-prior-mixture.R
  expect_setequal(codes, seq_along(registered("prior")) - 1L)
  known <- registered("prior")[codes + 1]
  of_scales <- "^log_(exponential|gamma)$"
  expect_identical(sub(of_scales, "\\1", known), names(codes))
})

test_that("facts of priors are those of their densities", {
  scale <- 0.7
  densities <- list(
    normal = function(t) -t^2 / (2 * scale^2),
    laplace = function(t) -abs(t) / scale,
    uniform = function(t) ifelse(abs(t) > scale, -Inf, 0)
  )
  for (name in names(densities)) {
    kind <- prior_kinds[[name]]
    moment <- function(k) {
      integrand <- function(t) t^k * exp(densities[[name]](t))
      width <- if (kind$form == "bounded") scale else 40
      2 * stats::integrate(integrand, 0, width, rel.tol = 1e-10)$value
    }
    expect_equal(kind$precision(scale), moment(0) / moment(2), info = name)
    expect_true(kind$is_proper)
  }
  prior <- prior_resolve(prior_normal(0, 2), prior_laplace(0, 1), columns)
  prior <- append_aux(prior, list(prior_flat()))
  expect_identical(prior_facts(prior, "title"), c(
    "Laplace", "normal", "normal", "flat"
  ))
  expect_equal(prior_precision(prior), c(1 / 2, 1 / 4, 1 / 4, 0))
  expect_identical(prior_facts(NULL, "is_proper"), logical())
})
