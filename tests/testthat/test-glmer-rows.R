# What fits of tall_glmer() have of their own rows, and pictures of groups.

grouped_rows <- function() {
  withr::local_seed(3)
  d <- data.frame(
    g = factor(rep(letters[1:12], times = 5:16)),
    x = stats::rnorm(126),
    w = stats::runif(126, 0.5, 2)
  )
  u <- stats::rnorm(12)[d$g]
  d$y <- 0.5 + d$x + u + stats::rnorm(126, 0, 0.7)
  d$b <- stats::rbinom(126, 1, stats::plogis(d$x + u))
  d$size <- 3
  d$k <- stats::rbinom(126, 3, stats::plogis(d$x + u))
  d
}

brief <- function(...) {
  tall_glmer(..., iter = 200, chains = 2, seed = 1, refresh = 0)
}

test_that("fitted values are coefficients and effects of each row's group", {
  d <- grouped_rows()
  fit <- brief(y ~ x + (1 + x | g), d)
  own <- coef(fit, ndraws = 200)$g[as.character(d$g), ]
  # draws of effects about their means: within 5 Monte Carlo errors
  spread <- sqrt(rowSums(attr(ranef(fit)$g, "sd")^2))[d$g]
  error <- (fitted(fit) - own[[1]] - own$x * d$x) /
    (spread * (1 + abs(d$x)) / sqrt(200))
  expect_lt(max(abs(error)), 5)
  expect_identical(predict(fit, type = "response"), fitted(fit))
  population <- fitted(fit, re_formula = NA)
  expect_gt(stats::sd(d$y - population), stats::sd(residuals(fit)))
  # blocks are those of the matrix
  all <- rstantools::posterior_epred(fit, ndraws = 200)
  expect_equal(fitted(fit), colMeans(all))
})

test_that("residuals are those of the response, in glm()'s units", {
  d <- grouped_rows()
  fit <- brief(b ~ x + (1 | g), d, family = stats::binomial())
  mu <- fitted(fit)
  expect_equal(unname(residuals(fit)), unname(d$b - mu))
  pearson <- (d$b - mu) / sqrt(mu * (1 - mu))
  expect_equal(residuals(fit, "pearson"), pearson)
  log_lik <- stats::dbinom(d$b, 1, mu, log = TRUE)
  expect_equal(unname(residuals(fit, "deviance")^2), -2 * log_lik)
  expect_equal(deviance(fit), -2 * sum(log_lik))
  expect_identical(sigma(fit), 1)
  trials <- brief(cbind(k, size - k) ~ x + (1 | g), d, stats::binomial())
  mu <- fitted(trials)
  expect_equal(unname(residuals(trials)), unname(d$k / 3 - mu))
  error <- rstantools::predictive_error(trials, ndraws = 20, seed = 2)
  yrep <- rstantools::posterior_predict(trials, ndraws = 20, seed = 2)
  expect_equal(unname(error + yrep), matrix(d$k, 20, 126, byrow = TRUE))
})

test_that("rows that na.exclude left out are NA", {
  d <- grouped_rows()
  d$x[[4]] <- NA
  fit <- brief(y ~ x + (1 | g), d, na.action = stats::na.exclude)
  expect_identical(unname(which(is.na(fitted(fit)))), 4L)
  expect_identical(unname(which(is.na(residuals(fit, "pearson")))), 4L)
  expect_identical(length(residuals(fit)), 126L)
})

test_that("formula, terms and data are those of the fit; update() changes it", {
  d <- grouped_rows()
  fit <- tall_glmer(
    y ~ x + (1 | g),
    d,
    iter = 200,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_equal(formula(fit), y ~ x + (1 | g), ignore_attr = TRUE)
  expect_identical(attr(terms(fit), "term.labels"), "x")
  expect_named(model.frame(fit), c("y", "x", "g"))
  expect_equal(
    model.matrix(fit),
    stats::model.matrix(y ~ x, d),
    ignore_attr = "assign"
  )
  expect_identical(family(fit)$family, "gaussian")
  expect_identical(dim(vcov(fit)), c(2L, 2L))
  expect_identical(glance(fit)$nobs, 126L)
  smaller <- update(fit, . ~ . - x, iter = 100)
  expect_identical(names(fixef(smaller)), "(Intercept)")
  expect_error(update(fit, foo = 1), class = "tall_error_input")
  flat <- update(fit, prior_covariance = NULL, evaluate = FALSE)
  expect_true("prior_covariance" %in% names(as.list(flat)))
})

test_that("a run goes on where it stopped, and has its effects", {
  d <- grouped_rows()
  fit <- brief(b ~ x + (1 | g), d, family = stats::binomial())
  more <- sg_resume(fit, iter = 150, refresh = 0)
  n <- posterior::niterations(fit$draws)
  expect_gt(posterior::niterations(more$draws), n)
  expect_equal(
    posterior::subset_draws(more$draws, iteration = seq_len(n)),
    fit$draws,
    ignore_attr = TRUE
  )
  expect_identical(dim(ranef(more)$g), c(12L, 1L))
  expect_s3_class(more, "tall_glmer")
})

test_that("print() and summary() have a block of each kind of parameter", {
  d <- grouped_rows()
  fit <- brief(y ~ x + (1 + x | g), d)
  for (shown in list(fit, summary(fit))) {
    out <- capture.output(print(shown))
    expect_match(out, "^Group-level effects [(]g, 12 groups[)]", all = FALSE)
    expect_match(out, "^cor[(]Intercept, x[)] ", all = FALSE)
    expect_match(out, "^sd[(]x[)] ", all = FALSE)
    expect_match(out, "^Coefficients$", all = FALSE)
    expect_match(out, "^sigma ", all = FALSE)
  }
  expect_output(print(fit, variables = "sd_g__x"), "sd_g__x")
  expect_output(print(ranef(fit), n = 3), "with 9 more groups")
})

test_that("pp_check() compares responses, and leaves loo to groups", {
  skip_if_not_installed("bayesplot")
  d <- grouped_rows()
  fit <- brief(b ~ x + (1 | g), d, family = stats::binomial())
  plot <- bayesplot::pp_check(fit, observations = 50, ndraws = 20, seed = 1)
  expect_s3_class(plot, "ggplot")
  grouped <- bayesplot::pp_check(fit, "stat_grouped", group = "g", ndraws = 20)
  expect_s3_class(grouped, "ggplot")
  expect_error(
    bayesplot::pp_check(fit, "loo_pit_overlay"),
    class = "tall_error_unsupported"
  )
})

test_that("what a group's rows alone say is least squares", {
  d <- grouped_rows()
  fit <- brief(y ~ x + (1 + x | g), d)
  own <- shrinkage_table(fit)
  theta <- rowMeans(groups_theta(fit, NULL))
  d$rest <- d$y - theta[[1]] - theta[[2]] * d$x
  for (g in c("a", "l")) {
    alone <- stats::coef(stats::lm(rest ~ x, d[d$g == g, ]))
    expect_equal(own$alone[own$group == g], unname(alone), tolerance = 1e-6)
  }
  # all of one kind: finite
  d$b[d$g == "c"] <- 1
  fit <- brief(b ~ x + (1 | g), d, family = stats::binomial())
  expect_true(all(is.finite(shrinkage_table(fit)$alone)))
})

test_that("pictures of groups have a point for each, or for some", {
  skip_if_not_installed("ggplot2")
  d <- grouped_rows()
  fit <- brief(y ~ x + (1 + x | g), d)
  expect_identical(nrow(plot(fit, "caterpillar")$data), 24L)
  expect_identical(nrow(plot(ranef(fit), n = 5)$data), 10L)
  expect_identical(nrow(plot(fit, "shrinkage", n = 5)$data), 10L)
  some <- plot(ranef(fit), n = 5)$data
  expect_true(all(some$lower < some$mean & some$mean < some$upper))
  expect_s3_class(plot(fit, "intervals"), "ggplot")
  expect_error(plot(fit, "caterpiller"), class = "tall_error_input")
})

test_that("prior_summary() has the prior of standard deviations", {
  d <- grouped_rows()
  fit <- brief(b ~ x + (1 + x | g), d, family = stats::binomial())
  found <- rstantools::prior_summary(fit)
  expect_identical(found$table$variable, c("(Intercept)", "x"))
  expect_no_warning(capture.output(print(found)))
  expect_output(print(found), "half Student t[(]df = 3, scale = 2.5[)]")
  expect_output(print(found), "lkj[(]eta = 1[)]")
})

test_that("augment() adds what predict() and residuals() give", {
  d <- grouped_rows()
  d$x[[4]] <- NA
  fit <- brief(b ~ x + (1 | g), d, stats::binomial(), na.action = na.exclude)
  own <- augment(fit, type.predict = "response", se_fit = TRUE)
  expect_identical(own$.fitted, unname(fitted(fit)))
  expect_identical(own$.resid, unname(residuals(fit, "deviance")))
  se <- predict(fit, type = "response", se.fit = TRUE)$se.fit
  expect_identical(own$.se.fit, unname(se))
  expect_identical(which(is.na(own$.fitted)), 4L)
  whole <- augment(fit, data = d, re_formula = NA)
  expect_identical(whole$w, d$w)
  expect_identical(whole$.fitted, unname(predict(fit, re_formula = NA)))
  new <- data.frame(x = 0:1, g = c("a", "other"))
  expect_error(augment(fit, newdata = new), class = "tall_error_input")
  made <- augment(fit, newdata = new, allow_new_levels = TRUE)
  expect_named(made, c("x", "g", ".fitted"))
  expect_error(augment(fit, data = d[1:3, ]), class = "tall_error_input")
})

test_that("R-squared is variance explained, by effects of groups as well", {
  d <- grouped_rows()
  fit <- brief(y ~ x + (1 | g), d)
  r2 <- rstantools::bayes_R2(fit, ndraws = 50)
  mu <- rstantools::posterior_epred(fit, ndraws = 50)
  at <- choose_draws(fit, 50)$rows
  explained <- apply(mu, 1, stats::var)
  sigma <- as.matrix(fit)[at, "sigma"]
  expect_equal(r2, unname(explained / (explained + sigma^2)))
  population <- rstantools::bayes_R2(fit, re_formula = NA)
  expect_lt(mean(population), mean(r2))
  expect_length(population, 200)
  # one block or many
  rows <- rbind(d, d, d)
  all <- rstantools::bayes_R2(fit, newdata = rows, ndraws = 50)
  expect_equal(all, r2, tolerance = 0.01)
  d$size <- 3 + seq_len(nrow(d)) %% 9
  trials <- brief(cbind(k, size - k) ~ x + (1 | g), d, stats::binomial())
  for (groups in list(NULL, NA)) {
    mu <- rstantools::posterior_epred(trials, ndraws = 20, re_formula = groups)
    counts <- sweep(mu, 2, d$size, "*")
    explained <- apply(counts, 1, stats::var)
    expect_equal(
      rstantools::bayes_R2(trials, ndraws = 20, re_formula = groups),
      explained / (explained + rowMeans(counts * (1 - mu)))
    )
  }
})

test_that("weights, trials and offsets of new rows are those of the fit", {
  d <- grouped_rows()
  precise <- tall_glmer(
    y ~ x + (1 | g), d,
    weights = 1e4 * w, offset = 2 * x,
    iter = 200, chains = 2, seed = 1, refresh = 0
  )
  expect_equal(unname(weights(precise)), 1e4 * d$w)
  new <- d[1:5, ]
  at <- predict(precise, new)
  expect_equal(at, predict(precise)[1:5])
  expect_equal(predict(precise, new, offset = 2 * new$x), at)
  bare <- new[c("x", "g")]
  expect_error(
    rstantools::posterior_predict(precise, bare),
    class = "tall_error_input"
  )
  spread <- function(...) {
    y <- rstantools::posterior_predict(precise, new, ...) -
      rstantools::posterior_epred(precise, new)
    stats::sd(y)
  }
  expect_equal(spread(weights = 1) / sigma(precise), 1, tolerance = 0.1)
  expect_lt(spread(), sigma(precise) / 50)
  trials <- brief(cbind(k, size - k) ~ x + (1 | g), d, stats::binomial())
  expect_equal(unname(weights(trials)), rep(3, 126))
  new$k <- 0
  new$size <- 1000
  expect_gt(min(rstantools::posterior_predict(trials, new)[, 1:5]), 3)
  expect_equal(
    rstantools::posterior_predict(trials, new, seed = 2),
    rstantools::posterior_predict(
      trials,
      new[c("x", "g")],
      trials = 1000,
      seed = 2
    )
  )
  counts <- tall_glmer(
    k ~ x + (1 | g), d, stats::poisson(),
    weights = w,
    iter = 200, chains = 2, seed = 1, refresh = 0
  )
  expect_equal(unname(weights(counts)), d$w)
  expect_error(
    rstantools::posterior_predict(counts, weights = 2),
    class = "tall_error_input"
  )
})
