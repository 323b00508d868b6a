problems <- response_problems()

response_fit <- function(problem, data, known = NULL, ...) {
  model <- model_glm(
    data$x,
    data$y,
    problem$family(known),
    prior = prior_normal(0, 1),
    prior_aux = prior_exponential(1)
  )
  sg_sample(model, iter = 1200, warmup = 200, seed = 1, refresh = 0, ...)
}

for (name in names(problems)) {
  problem <- problems[[name]]

  test_that(paste("few rows are sampled exactly:", name), {
    data <- response_data(problem, 120)
    f <- response_posterior(problem, data)
    truth <- importance_moments(f, c(0, 0, 0, 0), natural_last)
    expect_gt(truth$ess, 1000)
    fit <- response_fit(problem, data)
    expect_identical(fit$kernel$name, "mala")
    expect_moments(fit, truth)
  })

  test_that(paste("a known parameter is exact from few rows:", name), {
    data <- response_data(problem, 120, seed = 2)
    f <- response_posterior(problem, data, problem$known)
    truth <- importance_moments(f, c(0, 0, 0))
    fit <- response_fit(problem, data, problem$known)
    exact <- if (name == "beta") "mala" else "smh"
    expect_identical(fit$kernel$name, exact)
    expect_moments(fit, truth)
  })

  test_that(paste("many rows are sampled by expansions of order 2:", name), {
    skip_on_cran()
    data <- response_data(problem, 4000, seed = 3)
    f <- response_posterior(problem, data)
    truth <- importance_moments(f, c(0.5, 0.3, -0.4, 0.5), natural_last, 1500)
    fit <- response_fit(problem, data)
    expect_identical(fit$kernel$name, "sgld")
    expect_identical(gradient_order(fit$gradient), 2)
    expect_moments(fit, truth)
  })
}

test_that("Student priors are those of the formula", {
  problem <- problems$neg_binomial_2
  data <- response_data(problem, 40, seed = 5)
  # a prior that counts, far from where the data are
  f <- function(theta) {
    density <- problem$density(data$y, drop(data$x %*% theta), problem$known)
    sum(density) + sum(stats::dt((theta - 1.5) / 0.2, 3, log = TRUE))
  }
  truth <- importance_moments(f, c(1, 1, 1), n = 20000)
  prior <- prior_student(3, 1.5, 0.2)
  model <- model_glm(data$x, data$y, neg_binomial_2(problem$known), prior)
  fit <- sg_sample(model, iter = 2200, warmup = 200, seed = 1, refresh = 0)
  expect_moments(fit, truth)
  mala <- sg_sample(
    model,
    kernel_mala(adapt = TRUE),
    gradient = gradient_full(),
    iter = 5000,
    warmup = 1000,
    seed = 1,
    refresh = 0
  )
  expect_moments(mala, truth)
})

test_that("Student priors print, and are found again", {
  expect_snapshot(prior_student(3, c(a = 0, b = 1), 2))
  expect_error(prior_student(0), class = "tall_error_input")
  fit <- tall_glm(
    am ~ wt,
    data = mtcars,
    family = binomial(),
    prior = prior_student(4, 0, 1),
    seed = 1,
    refresh = 0
  )
  expect_snapshot(print(rstantools::prior_summary(fit)))
})

# ---- far from normal ---------------------------------------------------------

# Of counts that vary no more than Poisson ones, with a prior that hardly holds
# the size.
wide_problem <- function(n, rate) {
  withr::with_seed(4, {
    x <- cbind("(Intercept)" = 1, a = stats::rnorm(n))
    list(x = x, y = stats::rbinom(n, 8, 0.3), rate = rate)
  })
}

wide_truth <- function(data) {
  # the size as good as independent of the coefficients: a grid
  start <- stats::glm.fit(data$x, data$y, family = stats::poisson())
  mu <- start$fitted.values
  s <- seq(0, 16, by = 0.01)
  log_p <- vapply(s, function(s) {
    sum(stats::dnbinom(data$y, size = exp(s), mu = mu, log = TRUE)) +
      s - exp(s) * data$rate
  }, 0)
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  mean <- sum(p * s)
  list(mean = mean, sd = sqrt(sum(p * (s - mean)^2)))
}

test_that("sizes that run off are sampled by what copes with them", {
  skip_on_cran()
  for (n in c(3000, 30000)) {
    data <- wide_problem(n, 1e-4)
    truth <- wide_truth(data)
    fit <- suppressWarnings(sg_sample(
      model_glm(
        data$x,
        data$y,
        neg_binomial_2(),
        prior_aux = prior_exponential(1e-4)
      ),
      iter = 1200,
      warmup = 200,
      seed = 1,
      refresh = 0
    ))
    s <- log(fit$draws[, , "reciprocal_dispersion"])
    se <- 1 / sqrt(posterior::ess_bulk(s))
    expect_lt(abs(mean(s) - truth$mean) / truth$sd, 0.05 + 5 * se)
    expect_lt(abs(stats::sd(s) / truth$sd - 1), 0.05 + 5 * se)
  }
})

test_that("a size that nothing holds is refused", {
  data <- wide_problem(300, 1)
  expect_error(
    find_mode(model_glm(data$x, data$y, neg_binomial_2(), prior_aux = NULL)),
    class = "tall_error_improper"
  )
})

# ---- methods -----------------------------------------------------------------

method_data <- function(problem, n = 80) {
  data <- response_data(problem, n, seed = 6)
  frame <- data.frame(data$x[, -1], y = data$y)
  frame$w <- rep(c(1, 2, 3, 4), length.out = n)
  frame$shift <- frame$a / 5
  frame
}

for (name in names(problems)) {
  problem <- problems[[name]]
  frame <- method_data(problem)

  test_that(paste("methods agree with R's densities:", name), {
    fit <- tall_glm(
      y ~ a + b + offset(shift),
      data = frame,
      family = problem$family(),
      weights = w,
      seed = 1,
      iter = 300,
      refresh = 0
    )
    aux <- fit$variables[[4]]
    known <- known_values(fit$family)
    expect_identical(aux, names(known)[is.na(known)])
    draws <- as.matrix(fit)
    x <- model.matrix(fit)
    eta <- draws[, 1:3] %*% t(x) + rep(frame$shift, each = nrow(draws))
    mu <- fit$family$object$linkinv(eta)
    expect_equal(unname(rstantools::posterior_linpred(fit)), unname(eta))
    expect_equal(unname(rstantools::posterior_epred(fit)), unname(mu))
    expect_equal(unname(fitted(fit)), unname(colMeans(mu)))
    expect_equal(unname(predict(fit)), unname(colMeans(eta)))
    log_lik <- rstantools::log_lik(fit)
    is_precision <- has_precisions(fit$family)
    expected <- vapply(seq_len(nrow(frame)), function(i) {
      w <- frame$w[[i]]
      scale <- draws[, 4] / if (is_precision) sqrt(w) else 1
      problem$density(frame$y[[i]], eta[, i], scale) *
        if (is_precision) 1 else w
    }, numeric(nrow(draws)))
    expect_equal(unname(log_lik), unname(expected), tolerance = 1e-10)
    pointwise <- rstantools::log_lik(fit, pointwise = TRUE)
    expect_identical(colnames(attr(pointwise, "draws"))[[4]], aux)
    yrep <- rstantools::posterior_predict(fit, seed = 1)
    expect_identical(dim(yrep), dim(eta))
    expect_true(all(first_outside(as.double(yrep), fit$family) == 0))
    interval <- rstantools::predictive_interval(fit, seed = 1)
    expect_identical(dim(interval), c(80L, 2L))
    r2 <- rstantools::bayes_R2(fit)
    expect_true(all(r2 > 0 & r2 < 1))
    for (type in c("response", "pearson", "deviance")) {
      r <- residuals(fit, type = type)
      expect_identical(sign(unname(r)), sign(unname(frame$y - fitted(fit))))
    }
    tidy <- tidy(fit, effects = c("fixed", "auxiliary"))
    expect_identical(tidy$term, fit$variables)
    expect_s3_class(stats::family(fit), "family")
    has_sigma <- aux == "sigma"
    expect_equal(sigma(fit), if (has_sigma) mean(draws[, 4]) else 1)
    expect_identical(is.na(glance(fit)$sigma), !has_sigma)
    expect_s3_class(bayesplot::pp_check(fit, seed = 1), "ggplot")
    expect_identical(
      names(stats::coef(update(fit, . ~ . - b))),
      c("(Intercept)", "a")
    )
    loo <- suppressWarnings(loo::loo(fit))
    expect_true(is.finite(loo$estimates["elpd_loo", "Estimate"]))
    summary <- rstantools::prior_summary(fit)
    expect_identical(summary$auxiliary, aux)
    expect_output(print(summary), paste0("Auxiliary (", aux, ")"), fixed = TRUE)
    more <- sg_resume(fit, iter = 100)
    expect_identical(posterior::niterations(more$draws), 250L)
  })

  test_that(paste("a known parameter is no variable:", name), {
    fit <- tall_glm(
      y ~ a + b,
      data = frame,
      family = problem$family(problem$known),
      seed = 1,
      iter = 300,
      refresh = 0
    )
    expect_identical(fit$variables, c("(Intercept)", "a", "b"))
    eta <- as.matrix(fit) %*% t(model.matrix(fit))
    expected <- vapply(seq_len(nrow(frame)), function(i) {
      problem$density(frame$y[[i]], eta[, i], problem$known)
    }, numeric(nrow(eta)))
    expect_equal(
      unname(rstantools::log_lik(fit)),
      unname(expected),
      tolerance = 1e-10
    )
    yrep <- rstantools::posterior_predict(fit, seed = 1)
    expect_identical(dim(yrep), dim(eta))
    monitored <- update(
      fit,
      kernel = kernel_mala(),
      monitor = list(held = monitor_log_lik(frame[1:20, ]))
    )
    expect_true(all(is.finite(monitored$monitor$draw)))
  })
}

test_that("residuals are those of stats and MASS where the fit is", {
  frame <- method_data(problems$Gamma)
  fit <- tall_glm(
    y ~ a + b,
    data = frame,
    family = Gamma("log"),
    seed = 1,
    iter = 300,
    refresh = 0
  )
  mu <- fitted(fit)
  expect_equal(
    residuals(fit, "pearson"),
    (frame$y - mu) / mu,
    ignore_attr = TRUE
  )
  expect_equal(
    residuals(fit, "deviance"),
    sign(frame$y - mu) * sqrt(Gamma()$dev.resids(frame$y, mu, 1)),
    ignore_attr = TRUE
  )
  skip_if_not_installed("MASS")
  frame <- method_data(problems$neg_binomial_2)
  family <- MASS::negative.binomial(1.5)
  fit <- tall_glm(
    y ~ a + b,
    data = frame,
    family = family,
    seed = 1,
    iter = 300,
    refresh = 0
  )
  mu <- fitted(fit)
  expect_equal(
    residuals(fit, "deviance"),
    sign(frame$y - mu) * sqrt(family$dev.resids(frame$y, mu, 1)),
    ignore_attr = TRUE
  )
  expect_equal(
    residuals(fit, "pearson"),
    (frame$y - mu) / sqrt(family$variance(mu)),
    ignore_attr = TRUE
  )
})

test_that("Student responses of infinite variance have no R-squared", {
  frame <- method_data(problems$student)
  fit <- tall_glm(y ~ a, frame, family = student(2), seed = 1, refresh = 0)
  expect_error(rstantools::bayes_R2(fit), class = "tall_error_unsupported")
})

# ---- families ----------------------------------------------------------------

test_that("families of other packages are understood", {
  resolved <- function(family) resolve_family(family)[c("name", "link")]
  count <- list(name = "neg_binomial_2", link = "log")
  expect_identical(resolved("neg_binomial_2"), count)
  expect_identical(resolved("negbinomial"), count)
  expect_identical(resolved(neg_binomial_2), count)
  foreign <- function(name, link) {
    structure(list(family = name, link = link), class = "family")
  }
  # as rstanarm, brms and glmmTMB name them
  expect_identical(resolved(foreign("neg_binomial_2", "log")), count)
  expect_identical(resolved(foreign("negbinomial", "log")), count)
  expect_identical(resolved(foreign("nbinom2", "log")), count)
  expect_identical(resolved(foreign("Beta", "logit"))$name, "beta")
  expect_identical(resolved("gamma")$name, "Gamma")
  expect_identical(resolve_family(student(5))$aux, c(NA, 5))
  expect_identical(resolve_family(neg_binomial_2(2))$aux, 2)
  skip_if_not_installed("MASS")
  theirs <- resolve_family(MASS::negative.binomial(2.123456))
  expect_identical(theirs$aux, 2.123456)
})

test_that("what is no response is refused with what to use", {
  x <- cbind(a = c(1, 2, 3))
  refuse <- function(family, y = c(0, 1, 2), ...) {
    expect_snapshot(error = TRUE, model_glm(x, y, family, ...))
  }
  refuse("quasipoisson")
  refuse(stats::quasibinomial())
  refuse(stats::quasi())
  refuse(stats::Gamma("inverse"))
  refuse(stats::inverse.gaussian())
  refuse(neg_binomial_2(), c(0, 1.5, 2))
  refuse(neg_binomial_2(), c(0, -1, 2))
  refuse(neg_binomial_2(), c(0, NA, 2))
  refuse(stats::Gamma("log"))
  refuse(beta_regression(), c(0.2, 0, 0.5))
  refuse(beta_regression(), c(0.2, 0.4, 1))
  refuse(neg_binomial_2(), sigma = 1)
  refuse(student(4, 1), sigma = 1)
  expect_snapshot(error = TRUE, neg_binomial_2(-1))
  expect_snapshot(error = TRUE, student("4"))
  expect_snapshot(error = TRUE, beta_regression(c(1, 2)))
  expect_snapshot(student(4, 0.5))
})
