# Blueprints: with rows they are models.

test_that("a blueprint makes the model that the constructor makes", {
  withr::local_seed(1)
  x <- cbind("(Intercept)" = 1, a = rnorm(60))
  y <- rbinom(60, 1, 0.4)
  same <- function(blueprint, rows, model) {
    built <- build_model(blueprint, rows)
    expect_s3_class(built, class(model), exact = TRUE)
    expect_identical(built$fingerprint, model$fingerprint)
    expect_identical(built$variables, model$variables)
  }
  priors <- list(prior = prior_normal(0, 2), prior_aux = prior_flat())
  same(
    blueprint_glm(resolve_family("bernoulli"), priors, centers = FALSE),
    rows_memory(x, y),
    model_glm(x, y, prior = prior_normal(0, 2))
  )
  z <- drop(x %*% c(1, 2)) + rnorm(60)
  same(
    blueprint_glm(
      resolve_family("gaussian"),
      priors,
      sigma = 2,
      storage = "float",
      centers = FALSE
    ),
    rows_memory(x, z, weights = 1:60),
    model_glm(
      x,
      z,
      "gaussian",
      prior_normal(0, 2),
      weights = 1:60,
      sigma = 2,
      storage = "float"
    )
  )
  group <- factor(rep(1:12, 5))
  one <- cbind("(Intercept)" = rep(1, 60))
  groups <- list(group = group, name = "group", correlated = TRUE)
  same(
    blueprint_groups(
      resolve_family("bernoulli"),
      c(priors["prior"], list(prior_covariance = prior_lkj())),
      centers = FALSE
    ),
    rows_memory(
      look_at_rows(matrix_reader(x, one), group),
      y,
      groups = groups
    ),
    model_groups(x, y, group, prior = prior_normal(0, 2))
  )
  classes <- factor(sample(letters[1:3], 60, TRUE))
  same(
    blueprint_classes(
      "softmax",
      list(prior = prior_flat(), prior_intercept = prior_flat())
    ),
    rows_memory(x, as.integer(classes) - 1, levels = levels(classes)),
    model_classes(x, classes, prior = NULL, prior_intercept = NULL)
  )
  same(
    blueprint_network(4, "tanh", priors["prior"], sigma = 1),
    rows_memory(x, z, n_out = 1, likelihood = "gaussian"),
    model_network(x, z, 4, prior = prior_normal(0, 2), sigma = 1)
  )
})

test_that("a network of scaled responses has sigma in their own units", {
  withr::local_seed(1)
  x <- cbind(a = rnorm(30))
  rows <- rows_memory(
    x,
    rnorm(30),
    n_out = 1,
    likelihood = "gaussian",
    scaling = list(y_scale = 5)
  )
  flat <- list(prior = prior_flat())
  model <- build_model(blueprint_network(2, "tanh", flat, sigma = 10), rows)
  expect_identical(model$sigma, 2)
})

test_that("some rows have the prior of all of them", {
  withr::local_seed(2)
  x <- cbind("(Intercept)" = 1, a = rnorm(200, 3, 2))
  y <- rbinom(200, 1, 0.5)
  auto <- prior_normal(0, 2.5, autoscale = TRUE)
  blueprint <- blueprint_glm(
    resolve_family("bernoulli"),
    list(prior = auto, prior_intercept = auto)
  )
  all <- rows_memory(x, y)
  facts <- list(mean = colMeans(x), sd = apply(x, 2, stats::sd))
  some <- rows_at(all, 1:20)
  expect_identical(nrow(some$x), 20L)
  some$facts <- facts
  whole <- build_model(blueprint, all)
  part <- build_model(blueprint, some)
  expect_equal(part$prior, whole$prior)
  expect_equal(part$prior_functional, whole$prior_functional)
  expect_identical(part$n_data, 20)
})

test_that("a held-out model has no prior", {
  withr::local_seed(3)
  x <- cbind("(Intercept)" = 1, a = rnorm(20))
  y <- rpois(20, 2)
  family <- resolve_family("poisson")
  model <- build_model(blueprint_flat(family), rows_memory(x, y))
  theta <- c(0.3, 0.2)
  expect_equal(
    model_evaluate(model, theta)$log_density,
    model_evaluate(model, theta, "likelihood")$log_density
  )
})

test_that("fits are models again, from blueprint and rows", {
  data <- transform(mtcars, gears = ordered(gear), am = am == 1)
  run <- function(front, ...) {
    suppressWarnings(front(..., iter = 40, chains = 2, seed = 1, refresh = 0))
  }
  x <- cbind("(Intercept)" = 1, wt = data$wt)
  fits <- list(
    glm = run(tall_glm, am ~ wt, data, binomial()),
    sparse = run(tall_glm, mpg ~ factor(cyl), data, sparse = TRUE),
    matrix = run(tall_glm.fit, x, data$mpg, storage = "float"),
    groups = run(tall_glmer, mpg ~ wt + (1 | cyl), data),
    ordered = run(tall_polr, gears ~ wt, data),
    classes = run(tall_multinom, factor(gear) ~ wt, data),
    network = run(tall_nn, mpg ~ wt, data, hidden = 2, train_iter = 20)
  )
  for (name in names(fits)) {
    fit <- fits[[name]]
    expect_s3_class(fit$blueprint, "tall_blueprint")
    model <- build_model(fit$blueprint, fit$rows)
    expect_identical(model$fingerprint, fit$fingerprint, info = name)
    model <- rebuild_model(fit)
    expect_identical(model$fingerprint, fit$fingerprint, info = name)
    fit$rows <- rows_to_keep(fit$rows, FALSE)
    expect_null(rebuild_model(fit))
  }
})
