# Packages that work on any regression take fits of tall_glm() and tall_glmer().

# of this file alone: others run in the same process
before <- options(tallbayes.refresh = 0)

other_data <- function() {
  withr::with_seed(1, {
    d <- data.frame(
      g = rep(1:40, each = 10),
      x = rnorm(400),
      f = factor(rep(c("a", "b"), 200))
    )
    effect <- rnorm(40)
    d$y <- rbinom(400, 1, plogis(d$x + (d$f == "b") + effect[d$g]))
    d$count <- rpois(400, exp(0.5 * d$x))
    d$z <- d$x + rnorm(400)
    d
  })
}

other_fits <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      d <- other_data()
      made <<- list(
        data = d,
        glm = tall_glm(y ~ log(x + 9) + f, d, binomial(), seed = 1),
        glmer = tall_glmer(
          y ~ x + f + (1 | g),
          d,
          binomial(),
          iter = 600,
          seed = 1
        )
      )
    }
    made
  }
})

test_that("predict() has intervals as predict.lm() has them", {
  d <- other_data()
  fit <- tall_glm(z ~ x, d, prior = NULL, prior_intercept = NULL, seed = 1)
  new <- d[1:20, ]
  ours <- predict(fit, new, interval = "confidence", level = 0.8, se.fit = TRUE)
  theirs <- predict(
    lm(z ~ x, d), new, interval = "confidence", level = 0.8, se.fit = TRUE
  )
  expect_identical(dimnames(ours$fit), dimnames(theirs$fit))
  # 4,000 independent draws: quantiles to some 0.03 sd
  se <- theirs$se.fit
  expect_lt(max(abs(ours$fit - theirs$fit) / se), 0.12)
  # the link is the identity: both types are of responses
  withr::with_seed(1, {
    ours <- predict(fit, new, interval = "prediction", level = 0.8)
  })
  theirs <- predict(lm(z ~ x, d), new, interval = "prediction", level = 0.8)
  expect_lt(max(abs(ours - theirs)), 0.12 * sigma(fit))
  expect_error(
    predict(other_fits()$glm, new, interval = "prediction"),
    "type = \"response\"",
    class = "tall_error_input"
  )
  # rows that were left out come back, and a source is read block by block
  d$x[3] <- NA
  gone <- tall_glm(y ~ x, d, binomial(), na.action = na.exclude, seed = 1)
  out <- predict(gone, interval = "confidence")
  expect_identical(nrow(out), nrow(d))
  expect_identical(which(is.na(out[, "lwr"])), c("3" = 3L))
  source <- as_source(d[5:9, ])
  expect_equal(
    unname(predict(gone, source, "response", interval = "confidence")),
    unname(predict(gone, d[5:9, ], "response", interval = "confidence"))
  )
})

test_that("multilevel fits have the intervals of their draws", {
  fits <- other_fits()
  fit <- fits$glmer
  new <- fits$data[1:20, ]
  out <- predict(
    fit, new, "response", interval = "confidence", level = 0.8, ndraws = 500
  )
  draws <- rstantools::posterior_epred(fit, newdata = new, ndraws = 500)
  expect_close(unname(out[, "fit"]), unname(colMeans(draws)))
  expect_close(unname(out[, "lwr"]), unname(apply(draws, 2, quantile, 0.1)))
  expect_close(unname(out[, "upr"]), unname(apply(draws, 2, quantile, 0.9)))
  both <- predict(fit, interval = "confidence", se.fit = TRUE)
  expect_identical(dim(both$fit), c(400L, 3L))
  expect_length(both$se.fit, 400)
  # responses, of a group that is new
  d <- fits$data
  normal <- tall_glmer(z ~ x + (1 | g), d, iter = 1000, seed = 1)
  new <- data.frame(x = 0, g = 99)
  out <- predict(
    normal, new, interval = "prediction", level = 0.8, allow_new_levels = TRUE
  )
  y <- rstantools::posterior_predict(
    normal, newdata = new, allow_new_levels = TRUE
  )
  expect_lt(max(abs(out[, 2:3] - quantile(y, c(0.1, 0.9)))), 0.25 * sd(y))
  expect_error(predict(fit, interval = "prediction"), "type = \"response\"")
  classes <- tall_polr(ordered(f) ~ x, d, iter = 200, seed = 1)
  expect_error(
    predict(classes, interval = "prediction"),
    "posterior_epred\\(\\)",
    class = "tall_error_unsupported"
  )
})

test_that("responses of new groups are not made of their effects' normals", {
  d <- withr::with_seed(1, {
    d <- data.frame(g = rep(1:80, each = 5))
    d$y <- 2 * rnorm(80)[d$g] + 2 * rnorm(400)
    d
  })
  fit <- tall_glmer(y ~ 1 + (1 | g), d, seed = 1)
  draw <- function(f) {
    f(fit, newdata = data.frame(g = 99), allow_new_levels = TRUE)
  }
  mean <- drop(draw(rstantools::posterior_epred))
  y <- drop(draw(rstantools::posterior_predict))
  # 4,000 draws: 4 standard errors
  expect_lt(abs(cor(mean, y - mean)), 4 / sqrt(length(y)))
})

test_that("emmeans has the draws of marginal means", {
  skip_if_not_installed("emmeans")
  fits <- other_fits()
  means <- emmeans::emmeans(fits$glm, ~f)
  draws <- as.matrix(coda::as.mcmc(means))
  x <- mean(fits$data$x)
  new <- data.frame(x = x, f = c("a", "b"))
  wanted <- rstantools::posterior_linpred(fits$glm, newdata = new)
  expect_close(unname(draws), unname(wanted))
  shown <- summary(means, type = "response")
  medians <- unname(apply(wanted, 2, median))
  expect_equal(shown$prob, plogis(medians), tolerance = 1e-6)
  # effects of groups at 0
  means <- emmeans::emmeans(fits$glmer, ~f)
  draws <- as.matrix(coda::as.mcmc(means))
  wanted <- rstantools::posterior_linpred(
    fits$glmer, newdata = transform(new, g = 1), re_formula = NA
  )
  expect_close(unname(draws), unname(wanted))
})

test_that("emmeans says of other fits what there is", {
  skip_if_not_installed("emmeans")
  fit <- tall_nn(Species ~ Sepal.Width, iris, hidden = 2, iter = 60, seed = 1)
  expect_error(emmeans::emmeans(fit, ~Sepal.Width), "posterior_epred")
})

test_that("an offset that is an argument is in the reference grid", {
  skip_if_not_installed("emmeans")
  d <- transform(other_data(), size = 5)
  fit <- tall_glm(count ~ f, d, poisson(), offset = log(size), seed = 1)
  means <- summary(emmeans::emmeans(fit, ~f))
  own <- predict(fit, data.frame(f = c("a", "b"), size = 5))
  expect_equal(means$emmean, unname(own), tolerance = 0.01)
})

test_that("data that a fit does not carry are asked for", {
  skip_if_not_installed("emmeans")
  d <- other_data()
  fit <- tall_glm(y ~ log(x + 9) + f, d, binomial(), iter = 300, seed = 1)
  kept <- d
  rm(d)
  # emmeans puts a sentence of its own in place of errors
  expect_error(recover_data.tall_regression(fit), class = "tall_error_stale")
  expect_error(
    recover_data.tall_regression(fit, kept["x"]),
    "\"f\"",
    class = "tall_error_input"
  )
  means <- emmeans::emmeans(fit, ~f, data = kept)
  expect_identical(nrow(summary(means)), 2L)
  # rows that are passed over: the source has them, while it is a data frame
  big <- kept[rep(1:400, 200), ]
  fit <- tall_glm(y ~ log(x + 9) + f, big, binomial(), iter = 300, seed = 1)
  rm(big)
  expect_identical(nrow(summary(emmeans::emmeans(fit, ~f))), 2L)
})

test_that("insight tells what a fit is", {
  skip_if_not_installed("insight")
  fits <- other_fits()
  expect_identical(insight::find_predictors(fits$glm)$conditional, c("x", "f"))
  expect_identical(insight::find_response(fits$glm), "y")
  expect_identical(
    as.list(insight::get_data(fits$glm)),
    as.list(fits$data[c("y", "x", "f")])
  )
  info <- insight::model_info(fits$glm)
  expect_true(info$is_binomial && info$is_bayesian)
  draws <- insight::get_parameters(fits$glm)
  expect_close(as.matrix(draws), as.matrix(fits$glm))
  found <- insight::find_parameters(fits$glmer)
  expect_identical(found$conditional, c("(Intercept)", "x", "fb"))
  expect_identical(found$random, "sd_g__Intercept")
  formula <- insight::find_formula(fits$glmer)
  expect_equal(formula$conditional, y ~ x + f, ignore_attr = TRUE)
  expect_equal(formula$random, ~ 1 | g, ignore_attr = TRUE)
})

test_that("the data of a fit are the rows that it used", {
  skip_if_not_installed("insight")
  set.seed(1)
  d <- data.frame(x = rnorm(500), k = rbinom(500, 1, 0.5))
  d$y <- d$x + rnorm(500)
  d$x[[7]] <- d$y[[9]] <- NA
  d$s <- replace(d$k == 1, 3, NA)
  # what the model frame has is not what was given
  whole <- complete.cases(d[c("x", "y")])
  fit <- tall_glm(y ~ exp(x / 9), d, iter = 300, seed = 1)
  expect_identical(insight::get_data(fit)$x, d$x[whole])
  for (rows in list(d$k == 1, d$s)) {
    d$rows <- rows
    fit <- tall_glm(y ~ exp(x / 9), d, subset = rows, iter = 300, seed = 1)
    expect_identical(insight::get_data(fit)$x, d$x[whole & rows %in% TRUE])
  }
  # of a source
  big <- d[rep(1:500, 140), ]
  fit <- tall_glm(y ~ exp(x / 9), big, subset = s, iter = 300, seed = 1)
  expect_identical(nrow(insight::get_data(fit)), as.integer(nobs(fit)))
})

test_that("parameters has a table of a fit", {
  skip_if_not_installed("parameters")
  fit <- other_fits()$glm
  table <- parameters::model_parameters(fit)
  draws <- as.matrix(fit)
  expect_identical(table$Parameter, fit$variables)
  expect_equal(table$Median, unname(apply(draws, 2, median)))
  expect_equal(table$CI_low, unname(apply(draws, 2, quantile, 0.025)))
  rhat <- posterior::summarise_draws(fit, "rhat")$rhat
  expect_equal(table$Rhat, as.double(rhat))
  ratios <- parameters::model_parameters(fit, exponentiate = TRUE)
  expect_equal(ratios$Median, unname(apply(exp(draws), 2, median)))
  expect_identical(ratios$pd, table$pd)
  suppressMessages(expect_output(print(ratios), "Rhat"))
  expect_error(
    parameters::model_parameters(fit, effects = "random"),
    class = "tall_error_unsupported"
  )
  all <- parameters::model_parameters(other_fits()$glmer, effects = "all")
  expect_identical(nrow(all), 4L)
})

test_that("marginaleffects has the draws of slopes", {
  skip_if_not_installed("marginaleffects")
  skip_if_not_installed("collapse", "2.0.18")
  fits <- other_fits()
  expect_true("tall_glm" %in% getOption("marginaleffects_model_classes"))
  new <- fits$data[1:5, ]
  found <- marginaleffects::predictions(fits$glm, newdata = new)
  wanted <- rstantools::posterior_epred(fits$glm, newdata = new)
  expect_close(found$estimate, apply(wanted, 2, median))
  expect_close(found$conf.low, apply(wanted, 2, quantile, 0.025))
  moved <- marginaleffects::avg_comparisons(fits$glmer, variables = "f")
  at <- function(level) {
    rowMeans(rstantools::posterior_epred(
      fits$glmer, newdata = transform(fits$data, f = level)
    ))
  }
  expect_close(moved$estimate, median(at("b") - at("a")))
  # averages of one's own are those
  own <- average_comparisons(fits$glmer, "f")
  expect_close(moved$conf.low, own$lower)
})

test_that("marginaleffects is given fewer draws of many rows", {
  fit <- other_fits()$glm
  new <- other_fits()$data[rep(1:2, 3), ]
  local_settings(average_exact = 1200)
  rlang::reset_message_verbosity("tallbayes_marginal_draws")
  expect_message(found <- get_predict.tall_fit(fit, new), "200 of")
  expect_identical(dim(attr(found, "posterior_draws")), c(6L, 200L))
  wanted <- rstantools::posterior_epred(fit, newdata = new, ndraws = 200)
  expect_equal(attr(found, "posterior_draws"), unname(t(wanted)))
  expect_equal(found$estimate, unname(apply(wanted, 2, median)))
  expect_silent(found <- get_predict.tall_fit(fit, new, ndraws = 300))
  expect_identical(ncol(attr(found, "posterior_draws")), 300L)
  # never fewer than 100
  local_settings(average_exact = 60)
  found <- suppressMessages(get_predict.tall_fit(fit, new))
  expect_identical(ncol(attr(found, "posterior_draws")), 100L)
})

test_that("tidybayes has the draws of fits of all kinds", {
  skip_if_not_installed("tidybayes")
  fits <- other_fits()
  new <- fits$data[1:2, ]
  spread <- tidybayes::spread_draws(fits$glm, fb)
  expect_identical(spread$fb, as.vector(as.array(fits$glm)[, , "fb"]))
  expect_identical(unique(spread$.chain), 1:4)
  own <- rstantools::posterior_epred(fits$glm, newdata = new, ndraws = 5)
  found <- tidybayes::epred_draws(fits$glm, new, ndraws = 5)
  expect_identical(found$.epred[found$.row == 2], unname(own[, 2]))
  found <- tidybayes::predicted_draws(fits$glmer, new, ndraws = 5)
  expect_identical(nrow(found), 10L)
  own <- rstantools::posterior_epred(
    fits$glmer, newdata = new, re_formula = NA, ndraws = 5
  )
  found <- tidybayes::epred_draws(fits$glmer, new, re_formula = NA, ndraws = 5)
  expect_identical(found$.epred[found$.row == 1], unname(own[, 1]))
  # a row for each class
  classes <- tall_multinom(Species ~ Sepal.Width, iris, iter = 200, seed = 1)
  own <- rstantools::posterior_epred(classes, newdata = iris[1:2, ])
  found <- tidybayes::epred_draws(classes, iris[1:2, ])
  expect_identical(levels(found$.category), levels(iris$Species))
  virginica <- found$.row == 2 & found$.category == "virginica"
  expect_identical(found$.epred[virginica], unname(own[, 2, 3]))
  gears <- tall_polr(ordered(gear) ~ wt, mtcars, iter = 200, seed = 1)
  found <- tidybayes::linpred_draws(gears, mtcars[1:2, ], ndraws = 5)
  expect_identical(nrow(found), 10L)
})

options(before)
