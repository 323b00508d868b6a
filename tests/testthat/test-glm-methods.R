test_that("intervals are quantiles", {
  fit <- method_cases()$gaussian$fit
  draws <- as.matrix(fit)
  expected <- t(apply(draws, 2, quantile, c(0.025, 0.975)))
  expect_close(confint(fit), unname(expected))
  expect_identical(
    dimnames(confint(fit)),
    list(fit$variables, c("2.5 %", "97.5 %"))
  )
  expect_identical(confint(fit, "a"), confint(fit, 2))
  expect_identical(confint(fit, "a"), confint(fit)["a", , drop = FALSE])
  skip_if_not_installed("rstantools")
  found <- rstantools::posterior_interval(fit, prob = 0.5, pars = "sigma")
  expect_identical(dimnames(found), list("sigma", c("25%", "75%")))
  expect_close(
    rstantools::posterior_interval(fit),
    unname(rstantools::posterior_interval(draws))
  )
})

test_that("fitted values and residuals are those of glm() at the same mean", {
  for (name in names(method_cases())) {
    fit <- method_cases()[[name]]$fit
    mu <- colMeans(direct_mean(fit))
    response <- own_response(fit)
    weight <- rep_len((response$trials %||% 1) * (response$weight %||% 1), 60)
    family <- fit$family$object
    y <- response$y
    expect_close(fitted(fit), mu, name)
    expect_close(residuals(fit), y - mu, name)
    expect_close(
      residuals(fit, "pearson"),
      (y - mu) * sqrt(weight) / sqrt(family$variance(mu)),
      name
    )
    deviance <- sum(residuals(fit, "deviance")^2)
    expect_close(deviance, sum(family$dev.resids(y, mu, weight)), name)
  }
})

test_that("coef() and vcov() go with the design, sigma apart", {
  fits <- list(
    method_cases()$gaussian$fit,
    method_cases()$known$fit,
    method_cases()$poisson$fit,
    quick_glm(
      y ~ a,
      family = gaussian(),
      iter = 100,
      keep = c("none", "covariance")
    )
  )
  for (fit in fits) {
    columns <- colnames(model.matrix(fit))
    expect_named(coef(fit), columns)
    expect_identical(dimnames(vcov(fit)), list(columns, columns))
  }
  fit <- fits[[1]]
  draws <- as.matrix(fit)[, colnames(model.matrix(fit))]
  expect_equal(coef(fit), colMeans(draws))
  expect_equal(vcov(fit), stats::cov(draws))
  expect_equal(
    drop(model.matrix(fit) %*% coef(fit)),
    predict(fit),
    ignore_attr = TRUE
  )
  # other things that are made of moments keep it
  expect_length(draws_moments(fit)$mean, length(fit$variables))
})

test_that("the parts of a fit are there", {
  fit <- method_cases()$gaussian$fit
  expect_identical(nobs(fit), 60)
  expect_identical(colnames(model.matrix(fit)), setdiff(fit$variables, "sigma"))
  expect_identical(nrow(model.frame(fit)), 60L)
  expect_s3_class(terms(fit), "terms")
  expect_identical(family(fit)$family, "gaussian")
  expect_identical(sigma(fit), mean(as.matrix(fit)[, "sigma"]))
  expect_identical(sigma(method_cases()$known$fit), 2)
  expect_identical(sigma(method_cases()$poisson$fit), 1)
  dots <- quick_glm(y ~ ., example_data(50)[c("y", "a", "g")], iter = 100)
  expect_identical(deparse1(formula(dots)), "y ~ a + g")
})

test_that("update() evaluates the changed call", {
  data <- example_data(50)
  fit <- tall_glm(y ~ a, data, binomial(), iter = 100, seed = 1, refresh = 0)
  expect_identical(as.matrix(update(fit)), as.matrix(fit))
  wider <- update(fit, . ~ . + b, iter = 80)
  expect_identical(wider$variables, c("(Intercept)", "a", "b"))
  expect_identical(posterior::niterations(wider), 40L)
  expect_identical(
    update(fit, evaluate = FALSE, refresh = NULL, chains = 2),
    quote(
      tall_glm(
        formula = y ~ a,
        data = data,
        family = binomial(),
        iter = 100,
        seed = 1,
        chains = 2
      )
    )
  )
})

test_that("prior_summary() shows the priors in numbers", {
  skip_if_not_installed("rstantools")
  fit <- tall_glm(mpg ~ wt + hp, mtcars, iter = 100, seed = 1, refresh = 0)
  out <- rstantools::prior_summary(fit)
  sd_y <- sd(mtcars$mpg)
  expect_identical(
    out$table$prior,
    c("normal", "normal", "normal", "exponential")
  )
  expect_close(
    out$table$scale,
    c(2.5 * sd_y, 2.5 * sd_y / c(sd(mtcars$wt), sd(mtcars$hp)), sd_y)
  )
  expect_close(out$table$location[1:3], c(mean(mtcars$mpg), 0, 0))
  expect_snapshot(print(out))
  plain <- update(
    fit,
    prior = prior_laplace(0, 1:2),
    prior_intercept = prior_flat(),
    prior_aux = prior_flat()
  )
  expect_snapshot(print(rstantools::prior_summary(plain)))
  expect_snapshot(
    print(rstantools::prior_summary(quick_fit()))
  )
  model <- model_gaussian(matrix(rnorm(100), 50), diag(2))
  expect_snapshot(
    rstantools::prior_summary(quick_fit(model)),
    error = TRUE,
    cnd_class = TRUE
  )
})

test_that("posterior's and coda's generics take a fit", {
  fit <- method_cases()$bernoulli$fit
  expect_identical(posterior::ndraws(fit), 400L)
  expect_identical(posterior::nchains(fit), 4L)
  expect_identical(posterior::niterations(fit), 100L)
  expect_identical(posterior::nvariables(fit), 4L)
  expect_identical(posterior::variables(fit), fit$variables)
  skip_if_not_installed("coda")
  chains <- coda::as.mcmc.list(fit)
  expect_identical(coda::nchain(chains), 4L)
  expect_identical(coda::varnames(chains), fit$variables)
  expect_identical(stats::start(chains), 101)
  expect_close(as.matrix(chains), unname(as.matrix(fit)))
  skip_if_not_installed("rstantools")
  expect_identical(rstantools::nsamples(fit), 400L)
})

test_that("bayesplot's diagnostics are those of the draws", {
  skip_if_not_installed("bayesplot")
  fit <- method_cases()$gaussian$fit
  table <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_close(
    bayesplot::rhat(fit),
    stats::setNames(table$rhat, table$variable)
  )
  expect_close(
    bayesplot::neff_ratio(fit, pars = "sigma"),
    c(sigma = table$ess_bulk[table$variable == "sigma"] / 400)
  )
  expect_s3_class(bayesplot::mcmc_rhat(bayesplot::rhat(fit)), "ggplot")
  expect_error(bayesplot::rhat(fit, pars = "b"), class = "tall_error_input")
  weighted <- fit
  weighted[["weights"]] <- rep(1, 400)
  expect_error(bayesplot::rhat(weighted), class = "tall_error_unsupported")
  expect_error(bayesplot::nuts_params(fit), class = "tall_error_unsupported")
})

test_that("the log posterior of draws is the model's, up to a constant", {
  skip_if_not_installed("bayesplot")
  fit <- method_cases()$gaussian$fit
  log_posterior <- bayesplot::log_posterior(fit)
  expect_named(log_posterior, c("Chain", "Iteration", "Value"))
  expect_identical(nrow(log_posterior), 400L)
  expect_identical(range(log_posterior$Iteration), c(1L, 100L))
  model <- rebuild_model(fit)
  theta <- matrix(fit$unconstrained, 400)
  exact <- apply(theta, 1, function(at) model_evaluate(model, at)$log_density)
  expect_lt(stats::sd(log_posterior$Value - exact), 1e-8)
  expect_gt(stats::sd(exact), 0.1)
  stochastic <- tall_glm(
    y ~ a,
    example_data(60),
    "bernoulli",
    kernel = kernel_sgld(1e-3),
    iter = 40,
    seed = 1,
    refresh = 0
  )
  expect_error(
    bayesplot::log_posterior(stochastic),
    class = "tall_error_unsupported"
  )
})

test_that("bayesplot takes a fit", {
  skip_if_not_installed("bayesplot")
  fit <- method_cases()$gaussian$fit
  expect_s3_class(bayesplot::mcmc_trace(fit, pars = "a"), "ggplot")
  expect_s3_class(bayesplot::mcmc_areas(fit, pars = c("a", "sigma")), "ggplot")
  expect_s3_class(pairs(fit, c("a", "sigma")), "bayesplot_grid")
  for (name in names(method_cases())) {
    check <- bayesplot::pp_check(method_cases()[[name]]$fit, seed = 1)
    expect_s3_class(check, "ggplot")
  }
  check <- bayesplot::pp_check(fit, "stat", stat = "sd", draws = 20)
  expect_s3_class(check, "ggplot")
  group <- rep(1:2, 30)
  check <- bayesplot::pp_check(
    fit,
    "stat_grouped",
    group = group,
    observations = 20,
    seed = 1
  )
  expect_s3_class(check, "ggplot")
  expect_snapshot(bayesplot::pp_check(fit, "dens_overlai"), error = TRUE)
})

test_that("a matrix twin is the same fit", {
  data <- example_data(50)
  data$f <- factor(data$y)
  x <- cbind("(Intercept)" = 1, a = data$a)
  by_matrix <- function(y, ...) {
    tall_glm.fit(x, y, ..., iter = 100, seed = 1, refresh = 0)
  }
  same <- function(matrix, formula) {
    expect_identical(as.matrix(matrix), as.matrix(formula))
    expect_close(fitted(matrix), fitted(formula))
    expect_close(residuals(matrix, "deviance"), residuals(formula, "deviance"))
    skip_if_not_installed("rstantools")
    expect_close(
      no_names(rstantools::log_lik(matrix)),
      no_names(rstantools::log_lik(formula))
    )
  }
  same(by_matrix(data$z), here_glm(z ~ a, iter = 100))
  same(by_matrix(data$f, binomial()), here_glm(f ~ a, binomial(), iter = 100))
  same(
    by_matrix(cbind(data$w, 1), binomial()),
    here_glm(cbind(w, 1) ~ a, binomial(), iter = 100)
  )
  same(
    by_matrix(
      data$count,
      poisson(),
      offset = log(data$exposure),
      weights = data$w
    ),
    here_glm(
      count ~ a,
      poisson(),
      offset = log(exposure),
      weights = w,
      iter = 100
    )
  )
})

test_that("a matrix fit goes on after a file, and says what it is not", {
  x <- example_matrix()
  y <- example_data()$y
  fit <- tall_glm.fit(x, y, "bernoulli", iter = 100, seed = 1, refresh = 0)
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  again <- sg_resume(readRDS(file), iter = 20)
  expect_identical(posterior::niterations(again), 70L)
  expect_snapshot(model.frame(fit), error = TRUE, cnd_class = TRUE)
  expect_snapshot(formula(fit), error = TRUE)
  expect_snapshot(tall_glm.fit(x[-1, ], y), error = TRUE)
  expect_snapshot(tall_glm.fit(as.data.frame(x), y), error = TRUE)
  expect_snapshot(tall_glm.fit(x, letters[1:2]), error = TRUE)
  expect_snapshot(tall_glm.fit(x), error = TRUE)
})

test_that("bad arguments are refused in words", {
  fit <- method_cases()$bernoulli$fit
  expect_snapshot(confint(fit, "c"), error = TRUE, cnd_class = TRUE)
  expect_snapshot(confint(fit, 9), error = TRUE)
  expect_snapshot(confint(fit, level = 95), error = TRUE)
  expect_snapshot(residuals(fit, "working"), error = TRUE)
  expect_snapshot(tall_glm(y ~ .), error = TRUE)
  without <- quick_glm(iter = 100, keep_data = FALSE)
  expect_snapshot(fitted(without), error = TRUE, cnd_class = TRUE)
  expect_snapshot(confint(quick_fit(keep = "none")), error = TRUE)
})

test_that("update() takes a prior of NULL for what it is: flat", {
  data <- example_data()
  fit <- tall_glm(
    y ~ a + b,
    data,
    binomial(),
    prior = prior_normal(0, 1),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  expect_identical(update(fit, prior = NULL)$prior$kind, c(1L, 0L, 0L))
  expect_identical(
    update(fit, prior_intercept = NULL)$prior$kind,
    c(0L, 1L, 1L)
  )
  expect_null(update(fit, seed = NULL, evaluate = FALSE)$seed)
})

test_that("as.mcmc() has the draws of each chain, or of all", {
  skip_if_not_installed("coda")
  fit <- quick_glm(iter = 100, chains = 2)
  list <- coda::as.mcmc(fit)
  expect_s3_class(list, "mcmc.list")
  expect_identical(list, coda::as.mcmc.list(fit))
  expect_equal(unname(as.matrix(list)), unname(as.matrix(fit)))
  one <- coda::as.mcmc(fit, pars = "b", combine_chains = TRUE)
  expect_s3_class(one, "mcmc")
  expect_identical(c(one), unname(as.matrix(fit)[, "b"]))
  expect_identical(
    coda::varnames(coda::as.mcmc.list(fit, regex_pars = "^a")),
    "a"
  )
})

test_that("posterior_interval() takes regular expressions, central type", {
  skip_if_not_installed("rstantools")
  fit <- quick_glm(iter = 100, chains = 2)
  all <- rstantools::posterior_interval(fit)
  some <- rstantools::posterior_interval(fit, regex_pars = "^[ab]$")
  expect_identical(some, all[c("a", "b"), ])
  expect_identical(
    rstantools::posterior_interval(fit, pars = "b", regex_pars = "Int"),
    all[c("b", "(Intercept)"), ]
  )
  expect_identical(rstantools::posterior_interval(fit, type = "central"), all)
  expect_error(
    rstantools::posterior_interval(fit, type = "hpd"),
    class = "tall_error_input"
  )
})

test_that("pp_check() says what a type needs", {
  skip_if_not_installed("bayesplot")
  data <- example_data(60)
  fit <- quick_glm(z ~ a + g, data, gaussian(), iter = 200, chains = 2)
  expect_snapshot(
    bayesplot::pp_check(fit, "stat_grouped"),
    error = TRUE,
    cnd_class = TRUE
  )
  by_name <- bayesplot::pp_check(fit, "stat_grouped", group = "g", seed = 1)
  by_value <- bayesplot::pp_check(fit, "stat_grouped", group = data$g, seed = 1)
  expect_equal(by_name$data, by_value$data)
  expect_error(
    bayesplot::pp_check(fit, "stat_grouped", group = "h"),
    class = "tall_error_input"
  )
  expect_error(
    bayesplot::pp_check(fit, "stat_grouped", group = 1:3),
    class = "tall_error_input"
  )
  expect_error(
    bayesplot::pp_check(fit, "stat", foo = 1),
    "foo",
    class = "tall_error_input"
  )
  expect_s3_class(bayesplot::pp_check(fit, "intervals", x = "a"), "ggplot")
  skip_if_not_installed("loo")
  for (type in c(
    "loo_pit_overlay",
    "loo_pit_qq",
    "loo_intervals",
    "loo_ribbon"
  )) {
    drawn <- suppressMessages(suppressWarnings(
      bayesplot::pp_check(fit, type, seed = 1)
    ))
    expect_s3_class(drawn, "ggplot")
  }
})
