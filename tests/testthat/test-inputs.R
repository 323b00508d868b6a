# Wrong arguments, of all functions: an error of this package that names the
# argument, whatever else would have gone wrong.

expect_refused <- function(call, argument) {
  label <- deparse1(call)
  error <- tryCatch(
    utils::capture.output(eval(call, parent.frame())),
    error = identity
  )
  testthat::expect(
    inherits(error, "tall_error_input"),
    paste0(
      label,
      if (inherits(error, "error")) {
        paste0(" failed with: ", conditionMessage(error))
      } else {
        " was not refused."
      }
    )
  )
  testthat::expect_identical(error$argument, argument, info = label)
  testthat::expect_match(conditionMessage(error), argument, fixed = TRUE)
}

test_that("what has no default must be given", {
  withr::local_options(tallbayes.download = FALSE)
  model <- example_model()
  calls <- list(
    object = quote(log_loss()),
    object = quote(rmse()),
    draws = quote(kl_gaussian()),
    draws = quote(standardised_bias()),
    x = quote(model_ica()),
    x = quote(monitor_rmse()),
    newdata = quote(monitor_log_lik()),
    newdata = quote(monitor_log_loss()),
    theta = quote(pseudo_variance(model)),
    gradient = quote(sgbd_probability()),
    name = quote(tall_data()),
    name = quote(model_density())
  )
  for (k in seq_along(calls)) {
    expect_refused(calls[[k]], names(calls)[[k]])
  }
})

test_that("counts that nobody can mean are refused before anything runs", {
  model <- example_model()
  kernel <- kernel_sgld(1e-3)
  fit <- quick_fit(model, iter = 10)
  draws <- matrix(rnorm(20), 10)
  data <- data.frame(y = rnorm(9), x = 1:9)
  for (huge in c(2^60, 1e300)) {
    calls <- list(
      iter = quote(sg_sample(model, kernel, iter = huge)),
      warmup = quote(sg_sample(model, kernel, iter = 10, warmup = huge)),
      thin = quote(sg_sample(model, kernel, iter = 10, thin = huge)),
      chains = quote(sg_sample(model, kernel, chains = huge)),
      chains = quote(sg_sample(model, kernel, chains = huge, init = c(0, 0))),
      chains = quote(noise_threshold(model, kernel, 10, chains = huge)),
      chains = quote(tall_factorize(y ~ x + x, data, chains = huge)),
      iter = quote(sg_resume(fit, iter = huge)),
      iter = quote(bias_check(fit, iter = huge)),
      max_iter = quote(find_mode(model, max_iter = huge)),
      train_iter = quote(tall_nn(y ~ x, data, train_iter = huge)),
      size = quote(subsample_uniform(huge)),
      size = quote(subsample_weighted(huge)),
      size = quote(subsample_optimal(huge)),
      size = quote(noise_threshold(model, kernel, huge)),
      batch_size = quote(find_mode(model, "adam", batch_size = huge)),
      steps = quote(kernel_hmc(0.1, huge)),
      leapfrog = quote(kernel_sghmc(0.1, leapfrog = huge)),
      length = quote(schedule_cyclical(huge)),
      optimise = quote(fssd(draws, -draws, optimise = huge)),
      locations = quote(fssd(draws, -draws, locations = huge)),
      dim = quote(model_density("banana", dim = huge)),
      dim = quote(model_density("normal", dim = huge)),
      rank = quote(model_pmf(1:3, 1:3, c(1, 2, 3), rank = huge)),
      layers = quote(model_network(draws, draws[, 1], layers = huge)),
      replicates = quote(pseudo_variance(
        model,
        numeric(model$n_dim),
        gradient_simple(),
        subsample_uniform(5),
        method = "monte_carlo",
        replicates = huge
      ))
    )
    for (k in seq_along(calls)) {
      expect_refused(calls[[k]], names(calls)[[k]])
    }
  }
  expect_snapshot(error = TRUE, {
    sg_sample(model, kernel, iter = 1e300)
    subsample_uniform(2^32)
    model_network(draws, draws[, 1], layers = c(1e5, 1e5))
    model_density("banana", dim = 1e300)
  })
})

test_that("draws that no memory holds are an error of the run", {
  # a million times the largest vector there may be
  sizes <- list(
    n_keep = 1e10,
    numbers = list(draw = 1e12, size = 1, weight = NULL)
  )
  error <- expect_error(make_buffers(sizes, 1), class = "tall_error_memory")
  expect_equal(error$bytes, 8e22)
  expect_match(conditionMessage(error), "80 ZB.*thin")
})

test_that("values of other kinds are refused by the name of their argument", {
  for (package in c("bayesplot", "loo", "rstantools")) {
    skip_if_not_installed(package)
  }
  model <- example_model()
  fit <- quick_fit(model, iter = 20, keep = c("draws", "gradients"))
  data <- example_data(60)
  glm <- quick_glm(y ~ a, data, binomial(), iter = 20, chains = 1)
  log_lik <- function(theta, batch) stats::dnorm(batch, theta$mu, log = TRUE)
  flat <- function(theta) 0
  calls <- list(
    dim = quote(model_density("banana", dim = "a")),
    dim = quote(model_density("banana", dim = NaN)),
    dim = quote(model_density("banana", dim = 3)),
    transform = quote(
      model_custom(log_lik, flat, 1:3, list(mu = 0), transform = 1)
    ),
    transform = quote(
      model_custom(log_lik, flat, 1:3, list(mu = 0), transform = new.env())
    ),
    iter = quote(sgldcv_bound(1, 2, 2, 0.1, 5, iter = -1)),
    order = quote(zero_variance(fit, order = mean)),
    order = quote(zero_variance(fit, order = list(1, 2))),
    f = quote(zero_variance(fit, f = function(x) stop("no"))),
    kernel = quote(sg_tune(
      model,
      function(step_size) stop("no"),
      list(step_size = c(0.1, 0.2)),
      budget = 1e5
    )),
    variables = quote(plot(fit, variables = list("a"))),
    variables = quote(plot(fit, variables = character())),
    variables = quote(pairs(fit, variables = mean)),
    variables = quote(pairs(fit, variables = "b")),
    parm = quote(confint(glm, parm = list())),
    parm = quote(confint(glm, parm = mean)),
    parm = quote(confint(glm, parm = 5)),
    variables = quote(rstantools::posterior_interval(glm, pars = list("a"))),
    digits = quote(print(fit, digits = NA)),
    digits = quote(print(summary(fit), digits = "a")),
    newdata = quote(log_loss(glm, data[0, ])),
    newdata = quote(rmse(glm, data[0, ])),
    cores = quote(loo::loo(glm, cores = 0)),
    cores = quote(loo::loo(glm, cores = NULL)),
    zz = quote(update(glm, zz = 3))
  )
  for (k in seq_along(calls)) {
    argument <- if (names(calls)[[k]] == "zz") "..." else names(calls)[[k]]
    expect_refused(calls[[k]], argument)
  }
})

test_that("arguments that a method does not have are refused", {
  fit <- quick_fit(example_model(), iter = 20)
  glm <- quick_glm(y ~ a, example_data(60), binomial(), iter = 20, chains = 1)
  for (call in list(
    quote(summary(fit, quantiles = 0.5)),
    quote(log_loss(glm, example_data(60), statistics = "draw")),
    quote(rmse(glm, example_data(60), statistics = "draw")),
    quote(rmse(1:3, 1:3, ranges = 1:2)),
    quote(log_loss(c(0.1, 0.2), c(0, 1), stat = "draw", zz = 1))
  )) {
    expect_error(eval(call), "not used here", class = "tall_error_input")
  }
})
