# Responses with two parameters beside their mean, and what links such
# parameters and coefficients.

df_data <- function(n, df, seed = 1) {
  withr::with_seed(seed, {
    x <- cbind("(Intercept)" = 1, a = stats::rnorm(n))
    noise <- if (is.finite(df)) stats::rt(n, df) else stats::rnorm(n)
    list(x = x, y = drop(x %*% c(0.5, 0.3)) + 0.7 * noise)
  })
}

df_priors <- list(
  sigma = prior_exponential(1),
  nu = prior_gamma(2, 0.1)
)

df_model <- function(data, family = student(), prior_aux = df_priors) {
  model_glm(
    data$x,
    data$y,
    family,
    prior = prior_normal(0, 1),
    prior_aux = prior_aux
  )
}

# of (coefficients, log sigma, log(nu - 1)), in R's own densities
df_posterior <- function(data) {
  function(theta) {
    sigma <- exp(theta[[3]])
    nu <- 1 + exp(theta[[4]])
    e <- data$y - drop(data$x %*% theta[1:2])
    sum(stats::dt(e / sigma, nu, log = TRUE)) -
      length(e) * theta[[3]] +
      sum(stats::dnorm(theta[1:2], log = TRUE)) +
      stats::dexp(sigma, log = TRUE) +
      theta[[3]] +
      stats::dgamma(nu, 2, 0.1, log = TRUE) +
      theta[[4]]
  }
}

df_natural <- function(theta) {
  theta[3, ] <- exp(theta[3, ])
  theta[4, ] <- 1 + exp(theta[4, ])
  theta
}

df_fit <- function(data, ...) {
  suppressWarnings(sg_sample(
    df_model(data),
    iter = 1700,
    warmup = 200,
    seed = 1,
    refresh = 0,
    ...
  ))
}

test_that("the log posterior is that of the formula, with both parameters", {
  data <- df_data(60, 3)
  f <- df_posterior(data)
  model <- df_model(data)
  expect_identical(model$variables, c("(Intercept)", "a", "sigma", "nu"))
  theta <- rbind(c(0.4, 0.2), c(0.1, 0.5), c(-0.3, 0.2), c(0.7, 4))
  found <- model_evaluate(model, theta)
  expected <- apply(theta, 2, f)
  expect_equal(diff(found$log_density), diff(expected), tolerance = 1e-12)
  for (k in 1:2) {
    slope <- vapply(1:4, function(j) {
      response_slope(function(x) {
        vapply(x, function(one) f(replace(theta[, k], j, one)), 0)
      }, theta[[j, k]])
    }, 0)
    expect_equal(found$gradient[, k], slope, tolerance = 1e-7)
  }
})

test_that("degrees of freedom are sampled beside the scale, from few rows", {
  data <- df_data(150, 3)
  truth <- importance_moments(
    df_posterior(data),
    c(0.5, 0.3, -0.4, 1),
    df_natural,
    20000
  )
  expect_gt(truth$ess, 2000)
  fit <- df_fit(data)
  expect_identical(fit$kernel$name, "mala")
  expect_moments(fit, truth)
})

test_that("and from many rows, a few in each step", {
  skip_on_cran()
  data <- df_data(6000, 4, seed = 2)
  truth <- importance_moments(
    df_posterior(data),
    c(0.5, 0.3, -0.4, 1),
    df_natural,
    2000
  )
  fit <- df_fit(data)
  expect_identical(fit$kernel$name, "sgld")
  expect_identical(gradient_order(fit$gradient), 2)
  expect_moments(fit, truth)
})

# Of normal data the likelihood does not end as nu grows: only its prior does.
test_that("where tails are normal the posterior of nu is right all the same", {
  skip_on_cran()
  for (n in c(300, 6000)) {
    data <- df_data(n, Inf, seed = 3)
    truth <- importance_moments(
      df_posterior(data),
      c(0.5, 0.3, -0.4, 2),
      df_natural,
      if (n == 300) 20000 else 4000
    )
    expect_gt(truth$ess, 500)
    fit <- df_fit(data)
    expect_gt(truth$mean[[4]], 20)
    expect_moments(fit, truth)
  }
})

test_that("one of the two may be known", {
  data <- df_data(120, 3, seed = 4)
  fixed_sigma <- df_model(data, student(sigma = 0.7))
  expect_identical(fixed_sigma$variables, c("(Intercept)", "a", "nu"))
  f <- df_posterior(data)
  at <- cbind(c(0.4, 0.2, 0.3), c(0.5, 0.1, 1.2))
  expected <- apply(at, 2, function(theta) {
    f(c(theta[1:2], log(0.7), theta[[3]]))
  })
  found <- model_evaluate(fixed_sigma, at)$log_density
  expect_equal(diff(found), diff(expected), tolerance = 1e-12)
  expect_identical(df_model(data, student(4))$variables[3], "sigma")
  both <- df_model(data, student(4, 0.7))
  expect_identical(both$variables, c("(Intercept)", "a"))
})

test_that("priors of two parameters are given by name", {
  data <- df_data(50, 3)
  shape_of <- function(prior_aux) df_model(data, prior_aux = prior_aux)$prior
  own <- shape_of(prior_exponential(2))
  expect_identical(own$scale[3:4], c(0.5, 10))
  expect_identical(own$shape[3:4], c(0, 2))
  expect_identical(own$location[3:4], c(0, 1))
  named <- shape_of(list(nu = prior_exponential(0.5)))
  expect_identical(named$scale[[4]], 2)
  expect_identical(shape_of(df_priors), shape_of(rev(df_priors)))
  expect_refusals(
    "tall_error_input",
    shape_of(list(mu = prior_flat())),
    shape_of(list(prior_flat())),
    shape_of(list(nu = 3)),
    shape_of(list(nu = prior_normal())),
    prior_gamma(0, 1)
  )
  expect_snapshot(prior_gamma(2, 0.1))
})

test_that("methods know both parameters", {
  data <- df_data(80, 3, seed = 5)
  frame <- data.frame(a = data$x[, "a"], y = data$y, w = rep(1:2, 40))
  fit <- tall_glm(
    y ~ a,
    data = frame,
    family = student(),
    weights = w,
    seed = 1,
    iter = 300,
    refresh = 0
  )
  expect_identical(fit$variables, c("(Intercept)", "a", "sigma", "nu"))
  draws <- as.matrix(fit)
  expect_true(all(draws[, "nu"] > 1))
  eta <- draws[, 1:2] %*% t(model.matrix(fit))
  expected <- vapply(1:80, function(i) {
    sigma <- draws[, 3] / sqrt(frame$w[[i]])
    stats::dt((frame$y[[i]] - eta[, i]) / sigma, draws[, 4], log = TRUE) -
      log(sigma)
  }, numeric(nrow(draws)))
  found <- rstantools::log_lik(fit)
  expect_equal(unname(found), unname(expected), tolerance = 1e-10)
  pointwise <- rstantools::log_lik(fit, pointwise = TRUE)
  expect_identical(
    colnames(attr(pointwise, "draws")),
    c("(Intercept)", "a", "sigma", "nu")
  )
  one <- pointwise(attr(pointwise, "data")[3, , drop = FALSE],
    attr(pointwise, "draws"))
  expect_equal(as.numeric(one), as.numeric(expected[, 3]))
  expect_identical(tidy(fit, "auxiliary")$term, c("sigma", "nu"))
  summary <- rstantools::prior_summary(fit)
  expect_identical(summary$auxiliary, c("sigma", "nu"))
  expect_output(print(summary), "gamma(shape = 2, rate = 0.1) above 1",
    fixed = TRUE)
  yrep <- rstantools::posterior_predict(fit, seed = 1)
  expect_identical(dim(yrep), dim(eta))
  expect_equal(sigma(fit), mean(draws[, "sigma"]))
  more <- sg_resume(fit, iter = 100)
  expect_identical(posterior::niterations(more$draws), 250L)
})

# ---- covariances -------------------------------------------------------------

numeric_hessian <- function(f, at, h = 1e-4) {
  d <- length(at)
  out <- matrix(0, d, d)
  for (i in seq_len(d)) {
    for (j in seq_len(d)) {
      value <- function(a, b) {
        x <- at
        x[[i]] <- x[[i]] + a * h
        x[[j]] <- x[[j]] + b * h
        f(x)
      }
      out[i, j] <- (value(1, 1) - value(1, -1) - value(-1, 1) + value(-1, -1)) /
        (4 * h^2)
    }
  }
  out
}

for (name in names(response_problems())) {
  test_that(paste("vcov() of a mode is the inverse Hessian's:", name), {
    problem <- response_problems()[[name]]
    data <- response_data(problem, 120)
    model <- model_glm(
      data$x,
      data$y,
      problem$family(),
      prior = prior_normal(0, 1),
      prior_aux = prior_exponential(1)
    )
    mode <- find_mode(model)
    f <- response_posterior(problem, data)
    expected <- solve(-numeric_hessian(f, mode$estimate))
    expect_equal(unname(vcov(mode)), expected, tolerance = 1e-4)
  })
}

test_that("and with two parameters, which are not apart", {
  data <- df_data(200, 3)
  mode <- find_mode(df_model(data))
  hessian <- numeric_hessian(df_posterior(data), mode$estimate)
  expect_equal(unname(mode$hessian), hessian, tolerance = 1e-4)
  expected <- solve(-hessian)
  expect_equal(unname(vcov(mode)), expected, tolerance = 1e-4)
  expect_gt(abs(stats::cov2cor(expected)[3, 4]), 0.3)
})

test_that("priors and families in the wrong place are told", {
  d <- data.frame(y = c(1.5, 0.2, 3), x = 1:3)
  expect_error(
    tall_glm(y ~ x, d, student(), prior_aux = list(tau = prior_exponential())),
    "`prior_aux` has the unknown parameter \"tau\"",
    class = "tall_error_input"
  )
  expect_error(
    tall_glm(y ~ x, student(), d),
    "`data` comes before `family`",
    class = "tall_error_input"
  )
})

test_that("few events and a parameter beside the mean are sampled exactly", {
  # minibatches miss the events: chains went to intercepts of 50
  y <- replace(numeric(2500), 1:9, 1)
  model <- model_glm(matrix(1, 2500, 1), y, neg_binomial_2())
  expect_warning(
    fit <- recipe_fit(model, iter = 1500, warmup = 500, chains = 2),
    "sampled exactly",
    class = "tall_warning_recipe"
  )
  expect_s3_class(fit$kernel, "tall_kernel_barker")
  expect_s3_class(fit$gradient, "tall_gradient_full")
  expect_match(fit$plan, "far from normal")
  # the log density on a grid of the two coordinates
  grid <- as.matrix(expand.grid(seq(-8, -2, 0.1), seq(-10, 3, 0.1)))
  log_density <- model_evaluate(model, t(grid), "posterior")$log_density
  weight <- exp(log_density - max(log_density))
  weight <- weight / sum(weight)
  values <- cbind(grid[, 1], exp(grid[, 2]))
  mean <- colSums(weight * values)
  sd <- sqrt(colSums(weight * values^2) - mean^2)
  expect_posterior_near(fit, mean, sd)
  # all rows in every step of many would take long
  local_settings(recipe = list(far_seconds = 0))
  expect_warning(
    other <- recipe_fit(model, iter = 20),
    "chains drift away",
    class = "tall_warning_recipe"
  )
  expect_s3_class(other$kernel, "tall_kernel_sgbd")
})
