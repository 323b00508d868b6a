# Models for the recipe, and ways to have it leave something out.

tall_model <- function(n = 20000, seed = 1) {
  withr::with_seed(seed, {
    x <- cbind(1, matrix(stats::rnorm(n * 3), n))
    x[, 4] <- 5 + 100 * x[, 4] + 300 * x[, 3]
    eta <- drop(x %*% c(-1, 0.5, 0.3, 0.002))
    model_glm(x, stats::rbinom(n, 1, stats::plogis(eta)))
  })
}

recipe_fit <- function(model, ..., iter = 200, chains = 2) {
  sg_sample(model, iter = iter, chains = chains, seed = 1, refresh = 0, ...)
}

# fit: recipe_fit() of what make() returns. It goes on where it was, also after
# it was saved, and has the draws of a longer run.
expect_goes_on <- function(fit, make) {
  model <- make()
  longer <- sg_resume(fit, iter = 50, refresh = 0)
  whole <- recipe_fit(model, iter = 250, warmup = 100)
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
  saved <- unserialize(serialize(fit, NULL))
  again <- sg_resume(saved, iter = 50, model = make(), refresh = 0)
  expect_same_outcome(again, longer)
}

# The posterior of the slope by quadrature on a grid of both coefficients.
grid_posterior <- function(model) {
  mode <- find_mode(model)
  sd <- sqrt(diag(vcov(mode)))
  at <- function(j, from, n) {
    coef(mode)[[j]] + sd[[j]] * seq(-from, from, length.out = n)
  }
  grid <- expand.grid(at(1, 5, 21), at(2, 8, 401))
  log_p <- density_at(model, t(as.matrix(grid)))
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  mean <- sum(p * grid[[2]])
  list(
    mean = mean,
    sd = sqrt(sum(p * (grid[[2]] - mean)^2)),
    above = sum(p[grid[[2]] > 0])
  )
}

# A row that weighs nothing at the mode is a wall one or two sds away.
outlier_model <- function(value, rows = 1) {
  withr::with_seed(7, {
    n <- 20000
    x <- stats::rnorm(n)
    y <- stats::rbinom(n, 1, stats::plogis(-0.022 * x))
    x[rows] <- value
    y[rows] <- 0
    model_glm(cbind(1, x), y, "bernoulli", prior = prior_normal(0, 1))
  })
}

# The recipe without the ways that come before: "order" leaves out exact steps
# from a few rows, "minibatches" control variates of order 2 as well.
local_way <- function(way, env = parent.frame()) {
  none <- list(exact_acceptance = 2, awkward_acceptance = 2)
  local_settings(recipe = none, .frame = env)
  if (way == "minibatches") {
    local_settings(recipe = list(order_step = 0), .frame = env)
  }
}

# A fit with gradient noise and a step size: a bias that is estimated.
noisy_glm <- function(...) {
  local_way("order")
  quick_glm(...)
}
